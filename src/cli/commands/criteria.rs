//! `ll-loop criteria`: keeps `.loop/state.json`, so that no model edits JSON or counts by hand.

use crate::base::time::parse_duration;
use crate::criteria::edit::Criterion;
use clap::{ArgAction, Args, Subcommand};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::redact::Redactor;
use crate::base::text::{one_line, plain, tail};
use crate::base::time::human;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::criteria::decision::STUCK_AFTER;
use crate::criteria::{Decision, Standing, State, advance, decide};
use crate::evaluate::observation::{Observation, Stop};
use crate::process::signal::{self, EndSignal};
use crate::process::spawn::{self, Heard, Limits, Program};
use crate::run::named;
use crate::run::shared_file::{self, Content, STATE};
use crate::session::context::Session;
use crate::session::error::{Error, Kind};

/// How much of a line is shown.
const LINE: usize = 100;

/// How many of the last lines of a failing command are shown.
const LAST_LINES: usize = 10;

/// The end of an output in which these lines are looked for.
const LAST_BYTES: usize = 16 * 1024;

/// What is done to a piece of work, and where its state is.
#[derive(Debug, Args)]
pub(in crate::cli) struct CriteriaArgs {
    /// The state file; `.loop/state.json` when absent
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) state: Option<PathBuf>,
    #[command(subcommand)]
    pub(super) command: CriteriaCommand,
}

/// What is done to a piece of work.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum CriteriaCommand {
    /// Begin, with nothing met
    Start(CriteriaStart),
    /// Run the commands of the criteria, and count the round. Exit code 0: all are met; 1: not all; 3: nothing moves
    Check {
        /// The longest time for each command
        #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10m")]
        timeout: Duration,
    },
    /// Say whether a criterion is met
    Set {
        /// The criterion
        name: String,
        /// Whether it is met
        #[arg(value_name = "true|false", action = ArgAction::Set)]
        is_met: bool,
    },
    /// Say that the work is done, as far as whoever works can tell
    Signal,
    /// End the work, when all criteria are met; with a step, end that
    Done {
        /// The step
        step: Option<String>,
    },
    /// End the work as it is
    Cancel,
    /// Show how the work stands
    Status,
}

/// The work that begins.
#[derive(Debug, Args)]
pub(in crate::cli) struct CriteriaStart {
    /// What is to be done
    pub(super) spec: String,
    /// A criterion, and the command that tells whether it is met; without one, `set` says it
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
    let file = StateFile { path: args.state.clone().unwrap_or_else(|| STATE.into()) };
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

/// The file that a command is about.
struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// Reads the state there has to be.
    fn read(&self) -> Result<State, Error> {
        self.find()?.ok_or_else(|| {
            let message = format!("there is no state file {}", self.path.display());
            let help = "`ll-loop criteria start SPEC --criterion NAME=COMMAND` begins";
            Error::refused(message).with_hint(help).of_kind(Kind::Absent)
        })
    }

    /// Reads the state, if there is one. What is no state is never replaced.
    fn find(&self) -> Result<Option<State>, Error> {
        let why = match shared_file::read(&self.path) {
            Content::Absent => return Ok(None),
            Content::Bytes(bytes) => match State::read(&bytes) {
                Ok(state) => return Ok(Some(state)),
                Err(invalid) => invalid.to_string(),
            },
            Content::Unreadable(error) => error.to_string(),
        };
        let message = format!("{} is no state file: {why}", self.path.display());
        Err(Error::refused(message).with_hint("mend it, or remove it and begin again"))
    }

    fn write(&self, state: &State) -> Result<(), Error> {
        let written = shared_file::replace(Path::new(&self.path), &state.text());
        written.map_err(|error| Error::failed(format!("{} is not written", self.path.display()), &error))
    }

    fn change(&self, edit: impl FnOnce(&mut State) -> Result<(), Error>) -> Result<State, Error> {
        let mut state = self.read()?;
        edit(&mut state)?;
        self.write(&state)?;
        Ok(state)
    }
}

fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let quoted: Vec<_> = names.map(|name| format!("`{}`", one_line(name, LINE))).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}

fn begin(file: &StateFile, start: &CriteriaStart, output: &Output) -> Result<u8, Error> {
    if let Some(state) = file.find()?
        && decide(&state, STUCK_AFTER).standing != Standing::Inactive
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

/// Runs the commands, and writes what they found. Only a check that came to its end counts.
fn check(file: &StateFile, timeout: Duration, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let before = file.read()?;
    let redactor = Redactor::new(session.env.secrets());
    let checks: Vec<_> = before.checks().map(|(name, check)| (name.to_owned(), check.to_owned())).collect();
    let seen = perform(&checks, timeout, session)
        .map_err(|error| Error::failed("the checks cannot be started", &error))?;
    if let Some(signal) = seen.cancelled {
        return Ok(named(signal).exit_code());
    }
    let mut results = Vec::new();
    for ((name, _), observation) in checks.iter().zip(&seen.observations) {
        results.push((name.clone(), observation.succeeded()));
        output.data(&result(name, observation, &redactor));
    }
    // The commands took their time, and may have changed the file themselves.
    let after = advance(file.read()?, &results);
    file.write(&after)?;
    let Decision { standing, reason, unmet, .. } = decide(&after, STUCK_AFTER);
    output.data(&reason.map(|reason| format!("{}\n", one_line(&reason, LINE))).unwrap_or_default());
    Ok(match standing {
        Standing::Stuck => exit::LIMIT,
        Standing::Inactive | Standing::Done | Standing::Continue if unmet.is_empty() => 0,
        Standing::Inactive | Standing::Done | Standing::Continue => exit::UNMET,
    })
}

/// What the commands did, and the signal that ended them before the last one.
struct Seen {
    observations: Vec<Observation>,
    cancelled: Option<EndSignal>,
}

fn perform(checks: &[(String, String)], timeout: Duration, session: &Session<'_>) -> std::io::Result<Seen> {
    let env: Vec<_> = session.env.for_actions(false).into_iter().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut cancel = signal::listen()?;
        let mut observations = Vec::new();
        for (_, check) in checks {
            let argv = ["bash", "-c", check].map(str::to_owned).to_vec();
            let program = Program { argv, env: env.clone(), cwd: None, stdin: None };
            let limits = Limits { end: Some((timeout, Stop::Timeout)), idle: None };
            observations.push(spawn::run(&program, limits, &mut cancel, &mut |_, _| Heard::More).await);
            if cancel.signal().is_some() {
                break;
            }
        }
        Ok(Seen { observations, cancelled: cancel.signal() })
    })
}

/// Returns what is shown of a check: its result, and the last words of one that failed.
fn result(name: &str, seen: &Observation, redactor: &Redactor) -> String {
    let name = one_line(name, LINE);
    if seen.succeeded() {
        return format!("✓ {name}\n");
    }
    let why = match &seen.failure {
        Some(why) => why.clone(),
        None if seen.timed_out() => format!("no answer after {}", human(seen.duration)),
        None => format!("exit {}", seen.exit_code),
    };
    let mut text = format!("✗ {name} ({why})\n");
    let printed = format!("{}{}", seen.stdout.as_str(), seen.stderr.as_str());
    let lines: Vec<_> = tail(&printed, LAST_BYTES).lines().collect();
    for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
        text.push_str("  │ ");
        text.push_str(&plain(&redactor.text(line)));
        text.push('\n');
    }
    text
}

/// Ends the work when nothing is left.
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
    if decision.standing != Standing::Done {
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

fn shown(state: &State) -> String {
    let mut lines = vec![format!("{}: {}", one_line(state.status(), LINE), one_line(state.spec(), LINE))];
    lines.extend(state.criteria().map(|(name, is_met)| {
        let check = state.checks().find(|(of, _)| *of == name);
        let check = check.map(|(_, check)| format!(": {}", one_line(check, LINE))).unwrap_or_default();
        format!("  {} {}{check}", if is_met { '✓' } else { '✗' }, one_line(name, LINE))
    }));
    let (done, all) = (state.list("completedSteps").len(), state.list("steps").len());
    let next = state.next_step().map(|step| format!(", next: {}", one_line(&step, LINE))).unwrap_or_default();
    lines.push(format!("round {}, {done}/{all} steps{next}", state.iteration()));
    let decision = decide(state, STUCK_AFTER);
    lines.extend(match decision.reason {
        Some(reason) => Some(one_line(&reason, LINE)),
        None if decision.standing == Standing::Done => Some("all criteria are met".to_owned()),
        None => None,
    });
    lines.push(String::new());
    lines.join("\n")
}
