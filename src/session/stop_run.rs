//! Stops a run of another process by SIGTERM, and waits until it has ended.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::Signal;

use crate::context::error::{Error, Kind};
use crate::journal::claim::{self, Live};
use crate::journal::known::KnownRun;
use crate::process::owner::{self, Sent};

/// How long a run may take to stop its actions gently: their grace period and a little more.
const GENTLY: Duration = Duration::from_secs(8);

/// How long it may take after the second signal, on which it kills them.
const AT_ONCE: Duration = Duration::from_secs(7);

/// Asks a run to stop, asks again if it takes too long, and waits for its end.
pub(crate) fn end(run: &KnownRun) -> Result<(), Error> {
    let mut pid = None;
    for patience in [GENTLY, AT_ONCE] {
        let Some(live) = ask(run)? else { return Ok(()) };
        pid = live.record.as_ref().map(|record| record.pid);
        if is_gone_within(run, live, patience)? {
            return Ok(());
        }
    }
    let message = format!("run {} does not end", run.files.instance());
    Err(Error::refused(message).of_kind(Kind::Failed).with_hint(last_resort(pid)))
}

/// Says what ends a run that does not end by itself.
fn last_resort(pid: Option<u32>) -> String {
    // To the shell's `kill`, 0 is the group of the caller.
    let pid = pid.filter(|pid| *pid > 0).map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    format!("`kill -9 {pid}` ends it, but perhaps not what it started; its journal stays whole")
}

fn alive(run: &KnownRun) -> Result<Option<Live>, Error> {
    claim::find(run.files.directory(), run.files.instance()).map_err(|error| unseen(&error))
}

fn unseen(error: &std::io::Error) -> Error {
    Error::failed("cannot look at the runs", error)
}

/// Sends the signal, and returns the run that it was sent to, or nothing if the run has ended.
fn ask(run: &KnownRun) -> Result<Option<Live>, Error> {
    let instance = run.files.instance();
    let mut before = None;
    loop {
        let Some(live) = alive(run)? else { return Ok(None) };
        let Some(record) = &live.record else {
            return Err(Error::refused(format!("the claim of run {instance} cannot be read"))
                .of_kind(Kind::Failed)
                .with_hint("a later version may have written it; stop the run with that one"));
        };
        // SIGCONT, because a suspended process handles SIGTERM only after it continues.
        let signals = [Signal::TERM, Signal::CONT];
        match owner::signal(record.pid, &claim::file(run.files.directory(), &live), &signals) {
            Ok(Sent::Yes | Sent::Gone) => return Ok(Some(live)),
            // A run that leaves the queue at this moment has renamed its claim, so look again.
            Ok(Sent::Stranger) if before.replace(live.standing) != Some(live.standing) => {}
            Ok(Sent::Stranger) => {
                let other =
                    format!("run {instance} is alive, but process {} here is another one", record.pid);
                return Err(Error::refused(format!("{other}; nothing was stopped"))
                    .of_kind(Kind::Failed)
                    .with_hint(format!(
                        "it runs on `{}`, perhaps in a container: stop it there",
                        record.host
                    )));
            }
            Err(error) => {
                let what = format!("cannot stop run {instance} (process {})", record.pid);
                return Err(Error::failed(what, &error).with_hint("stop it as the user who started it"));
            }
        }
    }
}

fn is_gone_within(run: &KnownRun, live: Live, patience: Duration) -> Result<bool, Error> {
    let (sender, receiver) = mpsc::channel();
    let directory: &Path = run.files.directory();
    let (directory, instance) = (directory.to_owned(), run.files.instance().to_owned());
    std::thread::spawn(move || {
        let mut next = Ok(Some(live));
        // A run that leaves the queue renames the claim that was watched, which ends the wait and not the run.
        while let Ok(Some(live)) = next {
            claim::watch(&directory, &live);
            next = claim::find(&directory, &instance);
        }
        let _nobody_waits = sender.send(next);
    });
    match receiver.recv_timeout(patience) {
        Ok(Ok(_)) => Ok(true),
        Ok(Err(error)) => Err(unseen(&error)),
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_kill_a_process_that_is_not_known() {
        assert!(last_resort(Some(4711)).starts_with("`kill -9 4711` ends it"));
        for unknown in [None, Some(0)] {
            let hint = last_resort(unknown);
            assert!(hint.starts_with("`kill -9 PID` ends it"), "{hint}");
        }
    }
}
