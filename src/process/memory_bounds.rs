//! Bounds that a process sets for itself before it works on what it cannot trust.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getppid, setrlimit};

/// What a process may take.
#[derive(Clone, Copy, Debug)]
pub struct ProcessBounds {
    /// The process that started it, by its number. It ends with this one.
    pub parent: u32,
    /// Memory, in bytes.
    pub memory: u64,
    /// Time of a processor.
    pub processor: Duration,
}

/// Bounds this process for the rest of its life, and ends it with the one that started it, where the system can.
///
/// # Errors
/// The system refuses a bound, or the process that started this one is gone already.
pub fn apply(bounds: ProcessBounds) -> io::Result<()> {
    let limits = [
        (Resource::As, bounds.memory),
        (Resource::Cpu, bounds.processor.as_secs()),
        // No regular file can be written then, whatever the process is made to do.
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ];
    for (resource, limit) in limits {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    end_with(bounds.parent)
}

/// Ends this process with the one that started it, where the system can.
///
/// # Errors
/// The process that started this one is gone already.
pub fn end_with(parent: u32) -> io::Result<()> {
    end_with_parent()?;
    // The system tells of an end from now on; one that came before has left us to another parent.
    let now = getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
    if now == Some(parent) { Ok(()) } else { Err(io::Error::other("the process that asked is gone")) }
}

#[cfg(target_os = "linux")]
fn end_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

#[cfg(not(target_os = "linux"))]
fn end_with_parent() -> io::Result<()> {
    Ok(())
}
