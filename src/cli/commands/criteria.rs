//! `ll-loop criteria`: keeps `.loop/state.json`, so that models need not edit JSON or count rounds themselves.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};

use crate::base::text::one_line;
use crate::base::time::parse_duration;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::cli::work::{LINE, names, result, shown};
use crate::criteria::decision::STUCK_AFTER;
use crate::criteria::edit::Criterion;
use crate::criteria::{Decision, Progress, State, decide};
use crate::evaluate::observation::Observation;
use crate::run::shared_file::STATE;
use crate::session::context::Session;
use crate::session::criteria::{Checks, StateFile};
use crate::session::error::Error;

/// What is done to a piece of work, and where its state is.
#[derive(Debug, Args)]
pub(in crate::cli) struct CriteriaArgs {
    /// The state file. The default is `.loop/state.json`
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) state: Option<PathBuf>,
    #[command(subcommand)]
    pub(super) command: CriteriaCommand,
}

/// A command about a piece of work.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum CriteriaCommand {
    /// Begin a piece of work
    Start(CriteriaStart),
    /// Run the commands of the criteria, and count the round. Exit code 0: all are met; 1: not all; 3: the work is
    /// stuck
    Check {
        /// The longest time for each command
        #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10m")]
        timeout: Duration,
    },
    /// Set whether a criterion is met
    Set {
        /// The criterion
        name: String,
        /// Whether it is met
        #[arg(value_name = "true|false", action = ArgAction::Set)]
        is_met: bool,
    },
    /// Claim that the work is done
    Signal,
    /// End the work if all criteria are met; with STEP, end that step
    Done {
        /// The step
        step: Option<String>,
    },
    /// End the work, whether it is done or not
    Cancel,
    /// Show the progress of the work
    Status,
}

/// The arguments of `criteria start`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CriteriaStart {
    /// What is to be done
    pub(super) spec: String,
    /// A criterion, and the command that checks it. Without a command, `set` sets it
    #[arg(long = "criterion", value_name = "NAME[=COMMAND]", required = true, value_parser = criterion)]
    pub(super) criteria: Vec<Criterion>,
    /// A step of the work
    #[arg(long = "step", value_name = "STEP")]
    pub(super) steps: Vec<String>,
}

fn criterion(text: &str) -> Result<Criterion, String> {
    let (name, check) = match text.split_once('=') {
        Some((name, check)) => (name.trim(), Some(check.trim().to_owned())),
        None => (text.trim(), None),
    };
    if name.is_empty() || check.as_deref() == Some("") {
        return Err("write NAME or NAME=COMMAND".to_owned());
    }
    Ok(Criterion { name: name.to_owned(), check })
}

pub(in crate::cli) fn criteria(
    args: &CriteriaArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let file = StateFile { path: session.path(args.state.as_deref().unwrap_or(Path::new(STATE))) };
    match &args.command {
        CriteriaCommand::Start(start) => begin(&file, start, output),
        CriteriaCommand::Check { timeout } => check(&file, *timeout, session, output),
        CriteriaCommand::Set { name, is_met } => {
            file.change(|state| {
                if state.set(name, *is_met) {
                    return Ok(());
                }
                let message = format!("there is no criterion `{}`", one_line(name, LINE));
                Err(Error::refused(message)
                    .with_hint(format!("there are {}", names(state.criteria().map(|(name, _)| name)))))
            })?;
            Ok(0)
        }
        CriteriaCommand::Signal => {
            file.change(|state| {
                state.signal(true);
                Ok(())
            })?;
            Ok(0)
        }
        CriteriaCommand::Done { step: Some(step) } => {
            file.change(|state| {
                if state.step_done(step) {
                    return Ok(());
                }
                let message = format!("the step `{}` is not left to do", one_line(step, LINE));
                let left = state.list("remainingSteps").iter().filter_map(|step| step.as_str());
                Err(Error::refused(message).with_hint(format!("there are {}", names(left))))
            })?;
            Ok(0)
        }
        CriteriaCommand::Done { step: None } => done(&file, output),
        CriteriaCommand::Cancel => {
            file.change(|state| {
                state.end("cancelled");
                Ok(())
            })?;
            Ok(0)
        }
        CriteriaCommand::Status => status(&file, output),
    }
}

fn begin(file: &StateFile, start: &CriteriaStart, output: &Output) -> Result<u8, Error> {
    if let Some(state) = file.find()?
        && decide(&state, STUCK_AFTER).progress != Progress::Inactive
    {
        let message =
            format!("{} is about work that goes on: {}", file.path.display(), one_line(state.spec(), LINE));
        let help = "`ll-loop criteria cancel` or `ll-loop criteria done` ends it";
        return Err(Error::refused(message).with_hint(help));
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = start.criteria.iter().find(|criterion| !seen.insert(&criterion.name)) {
        let message = format!("the criterion `{}` is given twice", one_line(&twice.name, LINE));
        return Err(Error::refused(message).with_hint("give each criterion a name of its own"));
    }
    let state = State::begin(&start.spec, &start.criteria, &start.steps);
    file.write(&state)?;
    output.data(&shown(&state));
    Ok(0)
}

/// Runs the commands, and shows and saves their results. Only a round that was not interrupted counts.
fn check(file: &StateFile, timeout: Duration, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let mut show = |name: &str, seen: &Observation| output.data(&result(name, seen, &session.redactor));
    let after = match file.check(timeout, session, &mut show)? {
        Checks::Done(after) => after,
        Checks::Cancelled(signal) => return Ok(signal.exit_code()),
    };
    let Decision { progress, reason, unmet, .. } = decide(&after, STUCK_AFTER);
    output.data(&reason.map(|reason| format!("{}\n", one_line(&reason, LINE))).unwrap_or_default());
    Ok(match progress {
        Progress::Stuck => exit::LIMIT,
        Progress::Inactive | Progress::Done | Progress::Continue if unmet.is_empty() => 0,
        Progress::Inactive | Progress::Done | Progress::Continue => exit::UNMET,
    })
}

/// Ends the work if everything is done.
fn done(file: &StateFile, output: &Output) -> Result<u8, Error> {
    let mut state = file.read()?;
    if state.status() != "in_progress" {
        return Err(Error::refused(format!(
            "the work is not in progress, but `{}`",
            one_line(state.status(), LINE)
        )));
    }
    state.signal(true);
    let decision = decide(&state, STUCK_AFTER);
    if decision.progress != Progress::Done {
        let reason = decision.reason.unwrap_or_default();
        output.error(&format!("the work is not done: {}", one_line(&reason, LINE)));
        return Ok(exit::UNMET);
    }
    state.end("completed");
    file.write(&state)?;
    Ok(0)
}

fn status(file: &StateFile, output: &Output) -> Result<u8, Error> {
    let state = file.read()?;
    output.data(&shown(&state));
    Ok(0)
}
