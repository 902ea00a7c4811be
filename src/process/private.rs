//! Keeps this process to itself: its environment and memory may hold credentials that its actions do not get.

use std::io;

/// Makes the kernel refuse other processes of the same user to look into this one, by `/proc` or a debugger; it leaves
/// no core dump either. What it starts is as open as any process.
#[cfg(target_os = "linux")]
pub fn keep() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// There is nothing to ask of this system.
#[cfg(not(target_os = "linux"))]
pub fn keep() -> io::Result<()> {
    Ok(())
}
