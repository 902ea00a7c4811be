//! Death and full disks at chosen points: for tests of what they leave. In a release build there is nothing here.
//!
//! `LL_FAULT` in the environment of a debug build is one of these:
//!
//! - `N` kills the process at its N-th write, where nothing can be put in order any more.
//! - `once:N` lets the N-th write fail for want of room.
//! - `full:N` lets it and everything after it fail, but for what fits into the room that is given back.

use std::fs::File;
use std::io;

#[cfg(debug_assertions)]
mod armed {
    use std::io;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    /// How many points are passed before the one that kills; 0 for none.
    static LEFT: AtomicU64 = AtomicU64::new(0);

    /// How many writes are made before the one that fails; 0 for none.
    static WRITES: AtomicU64 = AtomicU64::new(0);

    /// Whether the disk stays full.
    static STAYS_FULL: AtomicBool = AtomicBool::new(false);

    /// Whether the disk is full.
    static IS_FULL: AtomicBool = AtomicBool::new(false);

    /// The bytes that were given back since.
    static ROOM: AtomicU64 = AtomicU64::new(0);

    pub(super) fn arm(fault: &str) {
        let (kind, number) = fault.split_once(':').unwrap_or(("kill", fault));
        let number = number.parse().unwrap_or(0);
        match kind {
            "kill" => LEFT.store(number, Relaxed),
            _ => WRITES.store(number, Relaxed),
        }
        STAYS_FULL.store(kind == "full", Relaxed);
    }

    /// Tells whether this is the point.
    pub(super) fn is_due() -> bool {
        is_last(&LEFT)
    }

    fn is_last(left: &AtomicU64) -> bool {
        left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) == Ok(1)
    }

    /// Makes room for a write, or fails.
    pub(super) fn write(bytes: u64) -> io::Result<()> {
        let full = || io::Error::from(rustix::io::Errno::NOSPC);
        if IS_FULL.load(Relaxed) {
            let fits = ROOM.fetch_update(Relaxed, Relaxed, |room| room.checked_sub(bytes));
            return fits.map(drop).map_err(|_| full());
        }
        if is_last(&WRITES) {
            IS_FULL.store(STAYS_FULL.load(Relaxed), Relaxed);
            return Err(full());
        }
        Ok(())
    }

    /// Takes room back.
    pub(super) fn freed(bytes: u64) {
        ROOM.fetch_add(bytes, Relaxed);
    }

    /// Ends the process as `kill -9` does.
    pub(super) fn die() {
        let _never = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// Sets what is to go wrong, and where.
#[cfg(debug_assertions)]
pub fn arm(fault: &str) {
    armed::arm(fault);
}

/// A point between two writes.
pub(crate) fn point() {
    #[cfg(debug_assertions)]
    if armed::is_due() {
        armed::die();
    }
}

/// A write of so many bytes, which may find no room.
#[cfg_attr(
    not(debug_assertions),
    expect(clippy::unnecessary_wraps, reason = "in a release build nothing fails on purpose")
)]
pub(crate) fn write(bytes: u64) -> io::Result<()> {
    #[cfg(debug_assertions)]
    armed::write(bytes)?;
    #[cfg(not(debug_assertions))]
    let _ = bytes;
    Ok(())
}

/// So many bytes were given back.
pub(super) fn freed(bytes: u64) {
    #[cfg(debug_assertions)]
    armed::freed(bytes);
    #[cfg(not(debug_assertions))]
    let _ = bytes;
}

/// A point in the middle of a write: a part of it reaches the file.
#[cfg_attr(
    not(debug_assertions),
    expect(clippy::unnecessary_wraps, reason = "in a release build nothing fails on purpose")
)]
pub(super) fn torn(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    #[cfg(debug_assertions)]
    {
        // Before the first byte, within a line, and before the last line end: a reader has to cope with each.
        for part in [0, bytes.len() / 3, bytes.len().saturating_sub(1)] {
            if armed::is_due() {
                let _torn = io::Write::write_all(file, &bytes[..part]);
                armed::die();
            }
        }
        for part in [0, bytes.len() / 3, bytes.len().saturating_sub(1)] {
            // The room is taken once.
            if let Err(error) = armed::write(if part == 0 { bytes.len() as u64 } else { 0 }) {
                let _torn = io::Write::write_all(file, &bytes[..part]);
                return Err(error);
            }
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = (file, bytes);
    Ok(())
}
