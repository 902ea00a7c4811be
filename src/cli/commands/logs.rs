//! `ll-loop logs`: what the actions of a run printed.

use std::fs::File;
use std::io::{self, Read as _};
use std::time::Duration;

use crate::cli::args::LogsArgs;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::journal::claim;
use crate::journal::known::KnownRun;

use super::runs::Places;

/// How often `--follow` looks for more.
const LOOK: Duration = Duration::from_millis(200);

pub(in crate::cli) fn logs(args: &LogsArgs, output: &Output) -> Result<u8, CliError> {
    let places = Places::here()?;
    let mut runs = places.all()?;
    let none = || CliError::invalid("there was no run here").code(exit::ABSENT);
    let run = match &args.name {
        Some(name) => {
            let asked = places.asked(name);
            runs.retain(|run| asked.is(run));
            newest(runs).ok_or_else(|| {
                asked.nothing("there was no run of", "`ll-loop history` lists the runs there were")
            })?
        }
        None => newest(runs).ok_or_else(none)?,
    };
    match show(&run, args.follow, output) {
        Ok(()) => Ok(0),
        // Somebody has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => {
            Err(CliError::failed(format!("cannot show the log of run {}", run.files.instance()), &error))
        }
    }
}

/// Returns the last run that is alive, or the last one.
fn newest(mut runs: Vec<KnownRun>) -> Option<KnownRun> {
    let live = runs.iter().rposition(|run| run.status.is_live());
    match live {
        Some(at) => Some(runs.swap_remove(at)),
        None => runs.pop(),
    }
}

/// Copies the log, and what comes until the run is gone. The file stays open, so it can move to the history meanwhile.
fn show(run: &KnownRun, follow: bool, output: &Output) -> io::Result<()> {
    let mut log = None;
    loop {
        // Looked at before the log is read, so that what is written last is shown, too.
        let is_live = follow && claim::find(run.files.directory(), run.files.instance())?.is_some();
        if log.is_none() {
            log = opened(run)?;
        }
        match &mut log {
            Some(log) => copy(log, output)?,
            None if !is_live => output.talk("this run has no log\n"),
            None => {}
        }
        if !is_live {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

fn opened(run: &KnownRun) -> io::Result<Option<File>> {
    // The run may have ended, and its files moved, since it was found.
    for path in [run.files.log(), run.files.archived().log()] {
        match fs_err::File::open(path) {
            Ok(file) => return Ok(Some(file.into_parts().0)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn copy(log: &mut File, output: &Output) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let length = log.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        output.bytes(&bytes[..length])?;
    }
}
