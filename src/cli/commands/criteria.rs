//! `ll-loop criteria`: keeps `.loop/state.json`, so that models need not edit JSON or count rounds themselves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};
use serde_json::json;

use crate::base::text::one_line;
use crate::base::time::parse_duration;
use crate::cli::exit;
use crate::cli::misread::Misread;
use crate::cli::output::Output;
use crate::cli::work::{LINE, names, result, shown};
use crate::context::Session;
use crate::context::error::Error;
use crate::criteria::decision::STUCK_AFTER;
use crate::criteria::edit::NewCriterion;
use crate::criteria::exact_json::Json;
use crate::criteria::spec::Spec;
use crate::criteria::{CriteriaDecision, CriteriaState, Progress, decide};
use crate::evaluate::observation::Observation;
use crate::files::read;
use crate::run::work_file::{self, WorkHolder};
use crate::session::criteria::{CheckRound, StateFile, this_session};

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
    /// Run the commands of the criteria, and count the round. Exit code 0: all are met; 1: not all, or there are none;
    /// 3: the work is stuck
    Check {
        /// The longest time for each command
        #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10m")]
        timeout: Duration,
        /// Claim that the work is done if all criteria are met
        #[arg(long)]
        signal: bool,
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
    /// Take up work that has ended, or that is stuck
    Reopen,
    /// Show the progress of the work
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The arguments of `criteria start`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CriteriaStart {
    /// What is to be done
    #[arg(required_unless_present = "file")]
    pub(super) spec: Option<String>,
    /// A Markdown file: its first heading is what is to be done, the items under Criteria or Acceptance are criteria,
    /// and those under Steps, Plan or Tasks are steps
    #[arg(long = "spec", value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// A criterion, and the command that checks it. Without a command, `set` sets it
    #[arg(long = "criterion", value_name = "NAME[=COMMAND]", required_unless_present = "file", value_parser = criterion)]
    pub(super) criteria: Vec<NewCriterion>,
    /// A step of the work
    #[arg(long = "step", value_name = "STEP")]
    pub(super) steps: Vec<String>,
}

fn criterion(text: &str) -> Result<NewCriterion, Misread> {
    // At the first `=`, as a command may hold more of them.
    let (name, check) = match text.split_once('=') {
        Some((name, check)) => (name.trim(), Some(check.trim().to_owned())),
        None => (text.trim(), None),
    };
    if name.is_empty() || check.as_deref() == Some("") {
        return Err(Misread("write NAME or NAME=COMMAND"));
    }
    Ok(NewCriterion { name: name.to_owned(), check })
}

pub(in crate::cli) fn criteria(
    args: &CriteriaArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let file = StateFile::of(args.state.as_deref(), session);
    match &args.command {
        CriteriaCommand::Start(start) => begin(&file, start, session, output),
        CriteriaCommand::Check { timeout, signal } => check(&file, *timeout, *signal, session, output),
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
        CriteriaCommand::Reopen => reopen(&file, session, output),
        CriteriaCommand::Status { json } => status(&file, *json, output),
    }
}

/// Begins work, where none goes on.
fn begin(
    file: &StateFile,
    start: &CriteriaStart,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let CriteriaDraft { spec, criteria, steps } = wanted(start, session)?;
    let state = file.begin(|before| {
        if let Some(before) = before
            // Work whose process is gone does not stand in the way of other work.
            .filter(|before| !matches!(WorkHolder::of(before), WorkHolder::Nobody | WorkHolder::Gone(_)))
        {
            let spec = one_line(before.spec().unwrap_or("unknown"), LINE);
            let message = format!("{} is about work that goes on: {spec}", file.path.display());
            let help = "`ll-loop criteria cancel` or `ll-loop criteria done` ends it";
            return Err(Error::refused(message).with_hint(help));
        }
        let names: Vec<_> = steps.iter().map(|(step, _)| step.clone()).collect();
        let mut state = CriteriaState::begin(&spec, &criteria, &names);
        for (step, _) in steps.iter().filter(|(_, is_done)| *is_done) {
            state.step_done(step);
        }
        // A run refuses to take a file over that names a session as its owner.
        state.give_to(&this_session(session.env));
        Ok(state)
    })?;
    output.data(&shown(&state));
    Ok(0)
}

/// What is to be done, by which criteria it is done, and its steps with whether they are.
struct CriteriaDraft {
    spec: String,
    criteria: Vec<NewCriterion>,
    steps: Vec<(String, bool)>,
}

/// Puts together what the file and the command line say.
fn wanted(start: &CriteriaStart, session: &Session<'_>) -> Result<CriteriaDraft, Error> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = start.criteria.iter().find(|criterion| !seen.insert(&criterion.name)) {
        let message = format!("the criterion `{}` is given twice", one_line(&twice.name, LINE));
        return Err(Error::refused(message).with_hint("give each criterion a name of its own"));
    }
    let spec = start.file.as_deref().map(|file| read_spec(file, session)).transpose()?.unwrap_or_default();
    // A criterion of the file gets its command on the command line, by its name.
    let check = |name: &String| start.criteria.iter().find(|given| given.name == *name)?.check.clone();
    let listed = spec.criteria.into_iter().map(|name| NewCriterion { check: check(&name), name });
    let mut seen = BTreeSet::new();
    let criteria: Vec<_> = listed
        .chain(start.criteria.iter().cloned())
        // The file comes first, so its order stays, and what the command line repeats is not there twice.
        .filter(|criterion| seen.insert(criterion.name.clone()))
        .collect();
    let steps = spec.steps.into_iter().chain(start.steps.iter().map(|step| (step.clone(), false))).collect();
    let file = start.file.as_deref().unwrap_or(Path::new("")).display();
    if criteria.is_empty() {
        let help = "list them under a heading `Criteria` or `Acceptance`, or give them with `--criterion`";
        return Err(Error::refused(format!("{file} has no criteria")).with_hint(help));
    }
    let Some(spec) = start.spec.clone().or(spec.title) else {
        let help = "begin the file with a heading, or say on the command line what is to be done";
        return Err(Error::refused(format!("{file} has no heading")).with_hint(help));
    };
    Ok(CriteriaDraft { spec, criteria, steps })
}

fn read_spec(file: &Path, session: &Session<'_>) -> Result<Spec, Error> {
    let text = read::text(&session.path(file), read::MIB);
    let text = text.map_err(|error| Error::refused(format!("cannot read {}: {error}", file.display())))?;
    Ok(Spec::read(&text))
}

/// Runs the commands, and shows and saves their results. Only a round that was not interrupted counts.
fn check(
    file: &StateFile,
    timeout: Duration,
    signals: bool,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let mut show = |name: &str, seen: &Observation, is_told: bool| {
        output.data(&result(name, seen, is_told, &session.redactor));
    };
    let after = match file.check(timeout, signals, session, &mut show)? {
        CheckRound::Done(after) => after,
        CheckRound::Cancelled(signal) => return Ok(signal.exit_code()),
    };
    let CriteriaDecision { progress, reason, unmet, .. } = decide(&after, STUCK_AFTER);
    output.data(&reason.map_or_else(String::new, |reason| format!("{}\n", one_line(&reason, LINE))));
    Ok(match progress {
        Progress::Stuck => exit::LIMIT,
        // A step or the claim may be missing, but this is about the criteria alone.
        Progress::Inactive | Progress::Done | Progress::Continue
            if unmet.is_empty() && after.criteria().next().is_some() =>
        {
            0
        }
        // Without a criterion, nothing was checked.
        Progress::Inactive | Progress::Done | Progress::Continue => exit::UNMET,
    })
}

/// Ends the work if everything is done.
fn done(file: &StateFile, output: &Output) -> Result<u8, Error> {
    let mut left = None;
    file.change(|state| {
        if state.status() != "in_progress" {
            let status = one_line(state.status(), LINE);
            return Err(Error::refused(format!("the work is not in progress, but `{status}`")));
        }
        // On a copy: a claim that does not hold must not stay in the file.
        let mut signalled = state.clone();
        signalled.signal(true);
        let decision = decide(&signalled, STUCK_AFTER);
        if decision.progress == Progress::Done {
            signalled.end("completed");
            *state = signalled;
        } else {
            left = Some(decision.reason.unwrap_or_default());
        }
        Ok(())
    })?;
    let Some(reason) = left else { return Ok(0) };
    output.error(&format!("the work is not done: {}", one_line(&reason, LINE)));
    Ok(exit::UNMET)
}

/// Takes up work that does not go on by itself.
fn reopen(file: &StateFile, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let state = file.change(|state| {
        let goes_on = decide(state, STUCK_AFTER).progress == Progress::Continue;
        if goes_on && WorkHolder::of(state) == WorkHolder::Session {
            return Err(Error::refused("the work has not ended, and is not stuck"));
        }
        state.reopen();
        state.give_to(&this_session(session.env));
        Ok(())
    })?;
    output.data(&shown(&state));
    Ok(0)
}

fn status(file: &StateFile, is_json: bool, output: &Output) -> Result<u8, Error> {
    let state = file.read()?;
    if is_json {
        // As the hook decides, for which the work of a killed run has ended.
        let CriteriaDecision { stop, reason, unmet, .. } = work_file::decide(&state);
        let mut all = state.document().clone();
        let path = file.path.to_string_lossy();
        let more = [
            ("path", json!(path)),
            ("ok", json!(stop)),
            ("reason", json!(reason)),
            ("unmet", json!(unmet)),
            ("next_step", json!(state.next_step())),
        ];
        // As JSON that is exact: numbers that other tools wrote keep their digits.
        all.extend(more.map(|(key, value)| (key.to_owned(), Json::from(value))));
        output.json_text(&format!("{:#}", Json::Object(all)));
    } else {
        output.data(&shown(&state));
    }
    Ok(0)
}
