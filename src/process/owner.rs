//! Signals the process of a run, and no other: a process id may belong to somebody else by now, or mean another
//! process in another container.

use std::io;
use std::path::Path;

use rustix::process::{Pid, Signal};

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// The process has it.
    Yes,
    /// The process is gone.
    Gone,
    /// The process with this id is another one.
    Stranger,
}

/// Sends signals to a process if it has this file open.
///
/// The handle of the process is opened first. So if it is the right one, it stays the right one, even when it ends and
/// its number is given to another.
#[cfg(target_os = "linux")]
pub fn signal(pid: u32, file: &Path, signals: &[Signal]) -> io::Result<Sent> {
    use rustix::io::Errno;
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    let Some(pid) = process(pid) else { return Ok(Sent::Stranger) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(Sent::Gone),
        Err(error) => return Err(error.into()),
    };
    if !has_open(pid, file)? {
        return Ok(Sent::Stranger);
    }
    for signal in signals {
        match pidfd_send_signal(&handle, *signal) {
            Ok(()) => {}
            Err(Errno::SRCH) => return Ok(Sent::Gone),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Sent::Yes)
}

/// Sends signals to a process. The caller has seen that the lock of the run is held, and this system says no more.
#[cfg(not(target_os = "linux"))]
pub fn signal(pid: u32, _file: &Path, signals: &[Signal]) -> io::Result<Sent> {
    let Some(pid) = process(pid) else { return Ok(Sent::Stranger) };
    for signal in signals {
        match rustix::process::kill_process(pid, *signal) {
            Ok(()) => {}
            Err(rustix::io::Errno::SRCH) => return Ok(Sent::Gone),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Sent::Yes)
}

fn process(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(target_os = "linux")]
fn has_open(pid: Pid, file: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let wanted = match std::fs::metadata(file) {
        Ok(wanted) => wanted,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let entries = match fs_err::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        // A run keeps what it has open to itself, but not that it has the lock.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return has_locked(pid, wanted.ino());
        }
        Err(error) => return Err(error),
    };
    let open = entries.filter_map(|entry| std::fs::metadata(entry.ok()?.path()).ok());
    let mut same = open.filter(|open| (open.dev(), open.ino()) == (wanted.dev(), wanted.ino()));
    Ok(same.next().is_some())
}

/// Tells whether a process has the lock of a file. The kernel says it to everybody, with the ids of processes as they are
/// here: one in another container is not in its list. The device is not compared, because the list has another
/// number for it than the file where file systems lie upon each other.
#[cfg(target_os = "linux")]
fn has_locked(pid: Pid, inode: u64) -> io::Result<bool> {
    let locks = fs_err::read_to_string("/proc/locks")?;
    Ok(locks.lines().any(|line| is_lock(line, pid, inode)))
}

/// Reads a line such as `1: FLOCK  ADVISORY  WRITE 708 00:13:1093 0 EOF`.
#[cfg(target_os = "linux")]
fn is_lock(line: &str, pid: Pid, inode: u64) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, "WRITE", owner, file, ..] = words.as_slice() else { return false };
    let is_file = file.rsplit(':').next().and_then(|inode| inode.parse().ok()) == Some(inode);
    is_file && owner.parse() == Ok(pid.as_raw_nonzero().get())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn who_has_a_lock_is_known() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let inode = {
            use std::os::unix::fs::MetadataExt as _;
            file.as_file().metadata().unwrap().ino()
        };
        let me = rustix::process::getpid();
        assert!(!has_locked(me, inode).unwrap());
        file.as_file().lock().unwrap();
        assert!(has_locked(me, inode).unwrap());
        assert!(!has_locked(me, inode + 1).unwrap());
        assert!(!has_locked(Pid::INIT, inode).unwrap());
        let line = |kind: &str| format!("7: {kind}  ADVISORY  WRITE 708 00:13:1093 0 EOF");
        let pid = Pid::from_raw(708).unwrap();
        assert!(is_lock(&line("FLOCK"), pid, 1093));
        assert!(!is_lock(&line("POSIX"), pid, 1093));
        assert!(!is_lock(&line("FLOCK").replace("7: ", "7: -> "), pid, 1093));
    }

    #[test]
    fn only_the_process_that_has_the_file_open_is_signalled() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let sleeper = || {
            let mut command = Command::new("sleep");
            command.arg("60");
            command
        };
        let mut owner = sleeper().stdin(Stdio::from(file.reopen().unwrap())).spawn().unwrap();
        let mut stranger = sleeper().stdin(Stdio::null()).spawn().unwrap();
        let term = |pid| signal(pid, file.path(), &[Signal::TERM]).unwrap();
        assert_eq!(term(stranger.id()), Sent::Stranger);
        assert_eq!(term(owner.id()), Sent::Yes);
        owner.wait().unwrap();
        assert_eq!(term(owner.id()), Sent::Gone);
        assert_eq!(term(0), Sent::Stranger);
        assert!(stranger.try_wait().unwrap().is_none());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
