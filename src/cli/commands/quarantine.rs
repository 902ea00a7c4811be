//! `ll-loop quarantine`: excuses the failures of a check for a time, and shows which are excused.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::base::name::{LoopName, StateName};
use crate::base::text::one_line;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::process::clock::Clock;
use crate::reuse::quarantine::{self, QuarantineEntry};
use crate::reuse::quarantine_file;
use crate::session::prepare::check_quarantine::{has_check, unusable};

/// The variable by which actions know their run.
const OF_ACTIONS: &str = "LL_RUN_DIR";

/// The commands about checks in quarantine.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum QuarantineArgs {
    /// Excuse the failures of a check until a day
    Add(QuarantineAddArgs),
    /// List the checks whose failures are excused
    List,
}

/// The arguments of `quarantine add`.
#[derive(Debug, Args)]
pub(in crate::cli) struct QuarantineAddArgs {
    /// The loop
    #[arg(value_name = "LOOP", value_parser = LoopName::parse)]
    name: LoopName,
    /// The check
    #[arg(value_name = "STATE", value_parser = StateName::parse)]
    state: StateName,
    /// Who looks after it
    #[arg(long)]
    owner: String,
    /// The last day, in UTC
    #[arg(long, value_name = "YYYY-MM-DD")]
    until: String,
    /// Why
    #[arg(long)]
    reason: String,
}

pub(in crate::cli) fn quarantine(
    args: &QuarantineArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let loops = loops(session)?;
    let today = quarantine::day(Clock::start().now());
    match args {
        QuarantineArgs::Add(args) => {
            // An agent could otherwise excuse the very check that it cannot pass.
            if session.env.get(OF_ACTIONS).is_some() {
                return Err(Error::refused("a run may not put a check into quarantine")
                    .with_hint("people do, outside of runs"));
            }
            let QuarantineAddArgs { name, state, owner, until, reason } = args;
            // Days that are written like this sort as texts.
            if quarantine::is_day(until) && until.as_str() < today.as_str() {
                return Err(Error::refused(format!("the day {until} has passed")));
            }
            // It would excuse nothing, and nobody would hear of it before a run does.
            let prepared = session.prepare(session.find(name.as_str(), false)?)?;
            if !has_check(&prepared.machine, state) {
                return Err(Error::refused(format!("`{name}` has no check `{state}`"))
                    .with_hint(format!("`ll-loop show {name}` shows its states")));
            }
            let entry = QuarantineEntry {
                subject: name.to_string(),
                state: state.clone(),
                owner: owner.clone(),
                until: until.clone(),
                reason: reason.clone(),
            };
            quarantine_file::add(&loops, &entry).map_err(|why| unusable(&why))?;
            output.talk(&format!(
                "`{state}` of `{name}` is in quarantine until {until}; commit .loops/quarantine.yaml\n"
            ));
        }
        QuarantineArgs::List => {
            output.data(&listed(&quarantine_file::entries(&loops).map_err(|why| unusable(&why))?, &today));
        }
    }
    Ok(0)
}

fn loops(session: &Session<'_>) -> Result<PathBuf, Error> {
    let store = session.reuse_store().folder();
    let loops = store.parent().map(std::path::Path::to_owned).filter(|loops| loops.is_dir());
    loops.ok_or_else(|| Error::refused("there is no `.loops` here").with_hint("`ll-loop init` makes one"))
}

fn listed(entries: &[QuarantineEntry], today: &str) -> String {
    let mut out = String::new();
    for QuarantineEntry { subject, state, owner, until, reason } in entries {
        let (owner, reason) = (one_line(owner, 80), one_line(reason, 200));
        let past = if until.as_str() < today { ", which has passed: it fails like any other" } else { "" };
        let _ = writeln!(out, "{}: {state} until {until}{past} ({owner}: {reason})", one_line(subject, 80));
    }
    if out.is_empty() {
        out.push_str("no check is in quarantine\n");
    }
    out
}
