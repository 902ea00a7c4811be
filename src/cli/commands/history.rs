//! `ll-loop history`: lists past runs, shows one of them, or deletes old ones.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::runs::{self, json};
use crate::base::advised_command;
use crate::base::text::{one_line, plural};
use crate::base::time::{Timestamp, human, parse_duration};
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::engine::event::{Event, LoopResume, Parent, ResumeReason};
use crate::engine::outcome::Outcome;
use crate::journal::known::KnownRun;
use crate::journal::reader;
use crate::journal::retention::{self, HistoryLimits};
use crate::process::clock::Clock;
use crate::report::digest::Digest;
use crate::report::formats::text_report;
use crate::report::lineage;
use crate::session::read::listed_runs::Places;

/// The arguments of `history`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
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
    /// Draw which run was rewound from which, and where each was resumed
    #[arg(long, conflicts_with_all = ["prune", "run"])]
    pub(super) graph: bool,
    #[command(flatten)]
    pub(super) filter: HistoryFilter,
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

/// Which runs are listed.
#[derive(Debug, Args)]
pub(in crate::cli) struct HistoryFilter {
    /// Only runs with this outcome; may be given several times
    #[arg(long, value_name = "OUTCOME", value_delimiter = ',', conflicts_with_all = ["prune", "run"],
          value_parser = PossibleValuesParser::new(outcomes()))]
    outcome: Vec<String>,
    /// Only runs that began since then: `24h`, `7d`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["prune", "run"])]
    since: Option<Duration>,
    /// Only so many runs, the newest
    #[arg(long, value_name = "N", conflicts_with_all = ["prune", "run"])]
    last: Option<usize>,
}

/// The outcome of a run that ended without saying how.
const CRASHED: &str = "crashed";

fn outcomes() -> impl Iterator<Item = &'static str> {
    Outcome::ALL.into_iter().map(Outcome::word).chain([CRASHED])
}

impl HistoryFilter {
    fn is_set(&self) -> bool {
        !self.outcome.is_empty() || self.since.is_some() || self.last.is_some()
    }

    /// Leaves the runs that are asked for.
    fn apply(&self, runs: &mut Vec<KnownRun>, now: Timestamp) {
        let outcome = |run: &KnownRun| run.ends.complete.as_ref().map_or(CRASHED, |end| end.outcome.word());
        if !self.outcome.is_empty() {
            runs.retain(|run| self.outcome.iter().any(|word| word == outcome(run)));
        }
        if let Some(since) = self.since {
            runs.retain(|run| run.started().is_some_and(|began| now.since(began) <= since));
        }
        // Last: of the runs that the other filters leave, the newest.
        if let Some(last) = self.last {
            runs.drain(..runs.len().saturating_sub(last));
        }
    }
}

pub(in crate::cli) fn history(
    args: &HistoryArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let places = Places::of(session);
    if args.prune {
        return prune(&places, args, session, output);
    }
    let mut runs = places.all()?;
    // What goes on is no past run; `status` shows it.
    runs.retain(|run| !run.status.is_live());
    let Some(name) = &args.name else {
        show(runs, args, output);
        return Ok(0);
    };
    let asked = places.asked(name);
    runs.retain(|run| asked.is(run));
    let wanted = args.run.as_ref().map_or(asked, |run| places.asked(run));
    // With a filter a list is asked for, also where only one run is in it.
    let is_one = !args.graph && !args.filter.is_set();
    if let Some(run) = runs.iter().find(|run| is_one && run.files.instance() == wanted.id()) {
        return whole(run, args, output).map(|()| 0);
    }
    match &args.run {
        Some(run) => Err(Error::refused(format!("`{name}` had no run `{run}`"))
            .with_hint(format!("`{}` lists its runs", advised_command::history(name)))),
        None if runs.is_empty() => Err(wanted.nothing("no run of", "`ll-loop history` lists the runs")),
        None => {
            show(runs, args, output);
            Ok(0)
        }
    }
}

fn show(mut runs: Vec<KnownRun>, args: &HistoryArgs, output: &Output) {
    let now = now();
    let is_empty = runs.is_empty();
    args.filter.apply(&mut runs, now);
    if args.graph {
        graph(&runs, args.json, now, output);
    } else {
        for run in &runs {
            if args.json {
                output.json(json(run));
            } else {
                output.data(&runs::dated(run, now));
            }
        }
    }
    if is_empty {
        output.talk("no run has ended here yet\n");
    } else if runs.is_empty() && args.filter.is_set() {
        output.talk("no run is like that\n");
    }
}

/// Draws the runs as a tree. A run that was resumed is the same run, so that it stays one line, with a line for each time.
fn graph(runs: &[KnownRun], as_json: bool, now: Timestamp, output: &Output) {
    let parent = |run: &KnownRun| run.ends.start.as_ref()?.1.parent.clone();
    let parents: Vec<Option<Parent>> = runs.iter().map(parent).collect();
    let named = runs
        .iter()
        .zip(&parents)
        .map(|(run, parent)| (run.files.instance(), parent.as_ref().map(|parent| parent.run.as_str())));
    for branch in lineage::tree(&named.collect::<Vec<_>>()) {
        let run = &runs[branch.item];
        let resumptions = resumptions(run);
        if as_json {
            let mut object = json(run);
            let resumed = resumptions.iter().map(|(at, resume)| {
                serde_json::json!({"at": at, "from_state": resume.from_state, "reason": resume.reason})
            });
            object["resumed"] = resumed.collect();
            output.json(object);
            continue;
        }
        output.data(&format!("{}{}", branch.lead, runs::dated(run, now)));
        if let Some(parent) = &parents[branch.item] {
            let run = one_line(&parent.run, 200);
            output.data(&format!("{}rewound from {run}, after its event {}\n", branch.inner, parent.seq));
        }
        for (at, resume) in resumptions {
            let (state, why) = (one_line(resume.from_state.as_str(), 80), resume.reason.after());
            let line = format!("{}resumed {} in {state}, after {why}\n", branch.inner, at.minute());
            output.data(&line);
        }
    }
}

/// Returns when and where a run went on after it was left. What cannot be read of a journal is passed over here:
/// the line of the run says so.
fn resumptions(run: &KnownRun) -> Vec<(Timestamp, LoopResume)> {
    let mut found = Vec::new();
    let _unread = reader::read(&run.files.journal(), |event| {
        // What a rewound run has copied happened to its parent.
        if let (Event::LoopResume(resume), 0, false) = (event.event, event.depth, event.inherited)
            && resume.reason != ResumeReason::Rewound
        {
            found.push((event.ts, resume));
        }
    });
    found
}

/// Shows one run from its journal, as its report did.
fn whole(run: &KnownRun, args: &HistoryArgs, output: &Output) -> Result<(), Error> {
    let mut digest = Digest::default();
    let read = reader::read(&run.files.journal(), |event| {
        if args.json {
            // An event that was read serializes to the line that it was read from.
            output.json(serde_json::to_value(&event).expect("the journal has written this event as JSON"));
        }
        digest.event(&event);
    });
    // What could be read is shown first, and the error comes behind it.
    if let Err(error) = &read {
        digest.breaks_off(error.place());
    }
    if !args.json {
        output.data(&text_report::render(&digest));
    }
    read.map_err(|error| Error::failed(format!("run {}", run.files.instance()), &error))
}

fn prune(places: &Places, args: &HistoryArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
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
