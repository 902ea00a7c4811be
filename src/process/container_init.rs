//! What process 1 of a container owes to the rest: pass signals on, reap orphans, and not work as root.
//!
//! The kernel gives PID 1 no default signal actions, so a program that is started as PID 1 and does not act as an
//! init cannot be stopped. Instead of mixing that into the run, ll-loop starts itself once more and lets the first
//! process do nothing but this.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, WaitOptions, getpid, getuid, kill_process, wait};
use tokio::signal::unix::{SignalKind, signal};

/// Tells whether this process is the first one of its container.
pub fn is_first_process() -> bool {
    getpid() == Pid::INIT
}

/// Starts this program again with the same arguments, as the owner of `workspace` when we are root, and stays with
/// it until it ends. Returns its exit code.
pub async fn supervise(
    arguments: impl IntoIterator<Item = OsString>,
    environment: &[(&str, String)],
    workspace: &Path,
) -> io::Result<u8> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(arguments)
        // In the environment that a child inherits, the values that were hidden are asterisks.
        .envs(super::private::hidden().cloned())
        .envs(environment.iter().map(|(key, value)| (key, value)));
    if getuid().is_root()
        && let Ok(owner) = workspace.metadata()
        && owner.uid() != 0
    {
        // The standard library also drops the supplementary groups, and with them access to a mounted engine socket.
        command.uid(owner.uid()).gid(owner.gid());
    }
    let mut int = signal(SignalKind::interrupt())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut hup = signal(SignalKind::hangup())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut child_ended = signal(SignalKind::child())?;
    let child = Pid::from_child(&command.spawn()?);
    loop {
        let forward = tokio::select! {
            _ = int.recv() => Signal::INT,
            _ = term.recv() => Signal::TERM,
            _ = hup.recv() => Signal::HUP,
            _ = quit.recv() => Signal::QUIT,
            _ = child_ended.recv() => {
                if let Some(code) = reap(child) {
                    return Ok(code);
                }
                continue;
            }
        };
        let _gone = kill_process(child, forward);
    }
}

/// Reaps every child that ended, ours and adopted ones; returns the exit code when ours did.
fn reap(ours: Pid) -> Option<u8> {
    let mut code = None;
    // Signals of one kind merge while they wait: one SIGCHLD may stand for many children.
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == ours {
            let status = std::process::ExitStatus::from_raw(status.as_raw());
            let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
            code = Some(u8::try_from(number).unwrap_or(u8::MAX));
        }
    }
    code
}
