//! `ll-loop stats`: shows what many runs have in common, for people and for programs.

use clap::Args;

use crate::base::time::Since;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::inspect::known_deliveries::DeliveriesAsked;
use crate::inspect::stats_sources::RunsAsked;
use crate::process::clock::Clock;
use crate::report::run_stats::stats_report;
use crate::reuse::flaky_checks;

/// The arguments of `stats`.
#[derive(Debug, Args)]
pub(in crate::cli) struct StatsArgs {
    /// A loop; all of them without
    #[arg(value_name = "LOOP")]
    pub(super) name: Option<String>,
    /// Only runs that began since then: `7d`, `2026-11-20`, or `2026-11-20T18:00:00Z`
    #[arg(long, value_name = "DURATION|DATE")]
    pub(super) since: Option<Since>,
    /// The runs in a directory with bundles or reports, or in an artifact on GitHub (`run:ID`, `run:latest` or
    /// `artifact:NAME`), and not those of this checkout
    #[arg(long, value_name = "DIR|ARTIFACT")]
    pub(super) from: Option<String>,
    /// With `--from` or `--deliveries`: the repository on GitHub, if it is not that of the job
    #[arg(long, value_name = "OWNER/NAME")]
    pub(super) repo: Option<String>,
    /// Ask the server what became of what runs delivered: merged, edited first, reverted, closed; and what each fix that was kept
    /// has cost, by loop and model
    #[arg(long, conflicts_with = "flaky")]
    pub(super) deliveries: bool,
    /// Show the checks that waver: on the same inputs they failed, and passed later
    #[arg(long, conflicts_with_all = ["since", "from", "repo"])]
    pub(super) flaky: bool,
    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(in crate::cli) fn stats(args: &StatsArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    if args.flaky {
        return flaky(args, session, output);
    }
    if args.deliveries {
        return deliveries(args, session, output);
    }
    if args.repo.is_some() && args.from.is_none() {
        return Err(Error::refused(
            "`--repo` says where `--from` or `--deliveries` looks, and neither is given",
        ));
    }
    let asked = RunsAsked {
        name: args.name.clone(),
        since: args.since,
        from: args.from.clone(),
        repository: args.repo.clone(),
    };
    let stats = session.stats(&asked)?;
    if args.json {
        output.pretty_json(stats_report::json(&stats));
    } else {
        output.data(&stats_report::text(&stats));
    }
    Ok(0)
}

/// Shows what became of deliveries, as `ll-loop deliveries` does.
fn deliveries(args: &StatsArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let list = session.delivery_list(&DeliveriesAsked {
        name: args.name.clone(),
        since: args.since,
        from: args.from.clone(),
        repository: args.repo.clone(),
    })?;
    if args.json {
        output.pretty_json(list.json());
    } else {
        output.data(&list.text());
    }
    Ok(0)
}

/// Shows the checks that waver, of the results that are kept.
fn flaky(args: &StatsArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let tables = session
        .reuse_store()
        .all_verdicts(Clock::start().now())
        .map_err(|error| Error::failed("cannot read the verdicts of earlier runs", &error))?;
    let rows = flaky_checks::of(&tables, args.name.as_deref());
    if args.json {
        output.pretty_json(flaky_checks::json(&rows));
    } else {
        output.data(&flaky_checks::text(&rows));
    }
    Ok(0)
}
