//! `ll-loop history`: lists past runs, shows one of them, or deletes old ones.

use std::time::Duration;

use clap::Args;

use crate::base::command;
use crate::base::text::plural;
use crate::base::time::parse_duration;
use crate::base::time::{Timestamp, human};
use crate::cli::output::Output;
use crate::journal::known::KnownRun;
use crate::journal::reader;
use crate::journal::retention::{self, HistoryLimits};
use crate::report::digest::Digest;
use crate::report::formats::text;
use crate::run::clock::Clock;
use crate::session::context::Session;
use crate::session::error::{Error, Kind};
use crate::session::runs::Places;

use super::runs::{self, json};

/// The arguments of `history`.
#[derive(Debug, Args)]
pub(in crate::cli) struct HistoryArgs {
    /// A loop or a run
    #[arg(value_name = "NAME|INSTANCE")]
    pub(super) name: Option<String>,
    /// A run of that loop
    #[arg(value_name = "RUN")]
    pub(super) run: Option<String>,
    /// Write one JSON object per line: one for each run, or for each event of a run
    #[arg(long)]
    pub(super) json: bool,
    /// Delete old runs. Runs that are running or can be resumed stay
    #[arg(long)]
    pub(super) prune: bool,
    /// With `--prune`: delete runs that ended longer ago; 90 days by default
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "prune")]
    pub(super) older_than: Option<Duration>,
    /// With `--prune`: keep so many runs of each loop; 500 by default
    #[arg(long, value_name = "N", requires = "prune")]
    pub(super) keep: Option<usize>,
    /// With `--prune`: list what would be deleted, and delete nothing
    #[arg(long, requires = "prune")]
    pub(super) dry_run: bool,
}

pub(in crate::cli) fn history(
    args: &HistoryArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let places = Places::of(session);
    if args.prune {
        return prune(&places, args, (session, output));
    }
    let mut runs = places.all()?;
    runs.retain(|run| !run.status.is_live());
    let Some(name) = &args.name else {
        show(&runs, args, output);
        return Ok(0);
    };
    let asked = places.asked(name);
    runs.retain(|run| asked.is(run));
    let wanted = args.run.as_ref().or(Some(name));
    if let Some(run) = runs.iter().find(|run| Some(run.files.instance()) == wanted.map(String::as_str)) {
        return whole(run, args, output).map(|()| 0);
    }
    match &args.run {
        Some(run) => Err(Error::refused(format!("`{name}` had no run `{run}`"))
            .of_kind(Kind::Absent)
            .with_hint(format!("`{}` lists its runs", command::history(name)))),
        None if runs.is_empty() => Err(asked.nothing("no run of", "`ll-loop history` lists the runs")),
        None => {
            show(&runs, args, output);
            Ok(0)
        }
    }
}

fn show(runs: &[KnownRun], args: &HistoryArgs, output: &Output) {
    let now = now();
    for run in runs {
        runs::show(run, args.json, now, output);
    }
    if runs.is_empty() {
        output.talk("no run has ended here yet\n");
    }
}

/// Shows one run from its journal, as its report did.
fn whole(run: &KnownRun, args: &HistoryArgs, output: &Output) -> Result<(), Error> {
    let mut digest = Digest::default();
    let read = reader::read(&run.files.journal(), |event| {
        if args.json {
            // An event that was read serializes to the line that it was read from.
            output.json(serde_json::to_value(&event).unwrap_or_default());
        }
        digest.event(&event);
    });
    if !args.json {
        output.data(&text::render(&digest));
    }
    read.map_err(|error| Error::failed(format!("run {}", run.files.instance()), &error))
}

fn prune(
    places: &Places,
    args: &HistoryArgs,
    (session, output): (&Session<'_>, &Output),
) -> Result<u8, Error> {
    let default = HistoryLimits::default();
    let limits = HistoryLimits {
        age: args.older_than.unwrap_or(default.age),
        count: args.keep.unwrap_or(default.count),
    };
    let mut runs = places.archived()?;
    if let Some(name) = &args.name {
        let asked = places.asked(name);
        runs.retain(|run| asked.is(run));
    }
    let plan = retention::plan(&runs, limits, now());
    let days = limits.age.as_secs() / (24 * 3600);
    let age = if days > 1 { format!("{days} days") } else { human(limits.age) };
    output.talk(&format!(
        "keeping the last {} of each loop that ended less than {age} ago\n",
        plural(limits.count as u64, "run")
    ));
    for run in &plan {
        if !args.dry_run {
            // The journal goes last, so that an interrupted deletion can be repeated.
            session.forget_snapshots(&run.files)?;
            retention::forget(run).map_err(|error| {
                Error::failed(format!("cannot forget run {}", run.files.instance()), &error)
            })?;
        }
        if args.json {
            output.json(json(run));
        } else {
            output.data(&format!("{}\n", run.files.instance()));
        }
    }
    let (did, kept) =
        (if args.dry_run { "would be forgotten" } else { "forgotten" }, runs.len() - plan.len());
    output.talk(&format!("{} {did}, {kept} kept\n", plural(plan.len() as u64, "run")));
    Ok(0)
}

fn now() -> Timestamp {
    Clock::start().now()
}
