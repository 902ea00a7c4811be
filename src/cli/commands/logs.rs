//! `ll-loop logs`: shows what the actions of a run printed.

use std::io::{self};

use clap::Args;

use crate::cli::follow;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::journal::known::KnownRun;
use crate::session::read::listed_runs::Places;

/// The arguments of `logs`.
#[derive(Debug, Args)]
pub(in crate::cli) struct LogsArgs {
    /// A run, or a loop, whose running or else last run is taken
    #[arg(value_name = "NAME|INSTANCE")]
    pub(super) name: Option<String>,
    /// Follow the log until the run ends
    #[arg(long, short)]
    pub(super) follow: bool,
}

pub(in crate::cli) fn logs(args: &LogsArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let places = Places::of(session);
    let mut runs = places.all()?;
    let none = || Error::refused("there is no run here").with_hint("`ll-loop run LOOP` begins one");
    let run = match &args.name {
        Some(name) => {
            let asked = places.asked(name);
            runs.retain(|run| asked.is(run));
            newest(runs).ok_or_else(|| asked.nothing("no run of", "`ll-loop history` lists the runs"))?
        }
        None => newest(runs).ok_or_else(none)?,
    };
    match follow::show(&run, args.follow, output) {
        Ok(()) => Ok(0),
        // The reader closed the pipe, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => {
            Err(Error::failed(format!("cannot show the log of run {}", run.files.instance()), &error))
        }
    }
}

/// Returns the last running run, or else the last one.
fn newest(mut runs: Vec<KnownRun>) -> Option<KnownRun> {
    let live = runs.iter().rposition(|run| run.status.is_live());
    match live {
        Some(at) => Some(runs.swap_remove(at)),
        None => runs.pop(),
    }
}
