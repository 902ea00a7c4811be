//! Keeps this process to itself: its environment and memory may hold credentials that its actions do not get.

use std::io;
use std::sync::OnceLock;

/// Variables whose values were written over in the block that the kernel shows of this process.
static HIDDEN: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// Writes over the values of variables where the kernel shows with which environment this process was started: in
/// `/proc/PID/environ`, root reads it of any process. From then on these variables are asked for in a copy. This comes before
/// a second thread is started.
///
/// # Errors
/// The values can be read there as before.
pub fn hide(variables: Vec<(String, String)>) -> io::Result<()> {
    let hidden = overwrite(&variables);
    // They were at least tried, and then a part of them may be gone.
    HIDDEN.get_or_init(|| variables);
    hidden
}

/// Returns the variables that were hidden, for a child that is to start with the same environment as this process.
pub fn hidden() -> impl Iterator<Item = &'static (String, String)> {
    HIDDEN.get().into_iter().flatten()
}

/// Writes through the file in which the kernel shows the memory of this process. What is written over are bytes between
/// two addresses that the kernel has set up for the environment before the program began: no object of the program lies
/// there, no length changes, and nobody else reads while there is one thread.
#[cfg(target_os = "linux")]
fn overwrite(variables: &[(String, String)]) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;

    if variables.is_empty() {
        return Ok(());
    }
    let block = std::fs::read("/proc/self/environ")?;
    let own_entry = std::fs::read_to_string("/proc/self/stat")?;
    let start = environment_start(&own_entry).ok_or(io::ErrorKind::InvalidData)?;
    let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem")?;
    let mut at = 0;
    for entry in block.split_inclusive(|byte| *byte == 0) {
        let text = entry.strip_suffix(&[0]).unwrap_or(entry);
        if let Some(end) = text.iter().position(|byte| *byte == b'=')
            && variables.iter().any(|(known, _)| known.as_bytes() == &text[..end])
        {
            let blank = vec![b'*'; text.len() - end - 1];
            memory.write_all_at(&blank, start + (at + end + 1) as u64)?;
        }
        at += entry.len();
    }
    Ok(())
}

/// Reads from the status of a process where its environment begins.
#[cfg(target_os = "linux")]
fn environment_start(stat: &str) -> Option<u64> {
    // The name of the program, in parentheses, may have anything in it. Behind it comes the third field.
    let (_, fields) = stat.rsplit_once(')')?;
    // `env_start` is field 50 in proc(5); what stands behind the name begins with field 3.
    fields.split_whitespace().nth(50 - 3)?.parse().ok().filter(|start| *start > 0)
}

/// There is no such file on this system.
#[cfg(not(target_os = "linux"))]
fn overwrite(_: &[(String, String)]) -> io::Result<()> {
    Ok(())
}

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
