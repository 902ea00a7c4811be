//! Death at a chosen point: for tests of what a crash leaves. In a release build there is nothing here.
//!
//! `LL_FAULT=N` in the environment of a debug build kills the process at its N-th write, where nothing can be put in
//! order any more.

use std::fs::File;

#[cfg(debug_assertions)]
mod armed {
    use std::sync::atomic::{AtomicU64, Ordering};

    /// How many points are passed before the one that kills; 0 for none.
    static LEFT: AtomicU64 = AtomicU64::new(0);

    pub(super) fn arm(points: u64) {
        LEFT.store(points, Ordering::Relaxed);
    }

    /// Tells whether this is the point.
    pub(super) fn is_due() -> bool {
        let count = |left: u64| left.checked_sub(1);
        LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count) == Ok(1)
    }

    /// Ends the process as `kill -9` does.
    pub(super) fn die() {
        let _never = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// Sets the point at which the process is killed.
#[cfg(debug_assertions)]
pub fn arm(points: u64) {
    armed::arm(points);
}

/// A point between two writes.
pub(crate) fn point() {
    #[cfg(debug_assertions)]
    if armed::is_due() {
        armed::die();
    }
}

/// A point in the middle of a write: a part of it reaches the file.
pub(super) fn torn(file: &mut File, bytes: &[u8]) {
    #[cfg(debug_assertions)]
    for part in [0, bytes.len() / 3, bytes.len().saturating_sub(1)] {
        if armed::is_due() {
            let _torn = std::io::Write::write_all(file, &bytes[..part]);
            armed::die();
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = (file, bytes);
}
