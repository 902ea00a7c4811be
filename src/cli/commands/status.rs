//! `ll-loop status`: shows the status of runs.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::runs::{details, json};
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::journal::known::KnownRun;
use crate::process::clock::Clock;
use crate::session::read::listed_runs::Places;

/// How often `--watch` looks for changes.
const LOOK: Duration = Duration::from_millis(500);

/// The arguments of `status`.
#[derive(Debug, Args)]
pub(in crate::cli) struct StatusArgs {
    /// A loop or a run. The default is all running and unfinished runs
    #[arg(value_name = "NAME|INSTANCE")]
    pub(super) name: Option<String>,
    /// Write one JSON object per line
    #[arg(long)]
    pub(super) json: bool,
    /// Show every change until none of the runs is running
    #[arg(long, short)]
    pub(super) watch: bool,
}

pub(in crate::cli) fn status(args: &StatusArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let places = Places::of(session);
    let clock = Clock::start();
    let mut shown = String::new();
    loop {
        let runs = chosen(&places, args)?;
        let json: Vec<Value> = if args.json { runs.iter().map(json).collect() } else { Vec::new() };
        let text: String = if args.json {
            Value::from(json.clone()).to_string()
        } else {
            runs.iter().map(|run| details(run, clock.now())).collect()
        };
        if text != shown {
            // In a file every change stays; on a terminal the newest takes the place of the one before.
            if args.watch && output.is_terminal && !shown.is_empty() {
                let _closed = console::Term::stdout().clear_last_lines(shown.lines().count());
            }
            if args.json {
                for run in json {
                    output.json(run);
                }
            } else {
                output.data(&text);
            }
            shown = text;
        }
        if !args.watch || runs.iter().all(|run| !run.status.is_live()) {
            return Ok(0);
        }
        std::thread::sleep(LOOK);
    }
}

/// Finds the runs: all running and unfinished ones, or those of one loop, or else its last run.
fn chosen(places: &Places, args: &StatusArgs) -> Result<Vec<KnownRun>, Error> {
    let open = places.open()?;
    let Some(name) = &args.name else {
        return Ok(open);
    };
    let asked = places.asked(name);
    let (ours, _): (Vec<_>, Vec<_>) = open.into_iter().partition(|run| asked.is(run));
    if !ours.is_empty() {
        return Ok(ours);
    }
    match places.archived()?.into_iter().rfind(|run| asked.is(run)) {
        Some(last) => Ok(vec![last]),
        None => Err(asked.nothing("no run of", "`ll-loop history` lists the runs")),
    }
}
