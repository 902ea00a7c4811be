//! `ll-loop criteria`: keeps `.loop/state.json`, so that no model edits JSON or counts by hand.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::redact::Redactor;
use crate::base::text::{one_line, plain, tail};
use crate::base::time::human;
use crate::cli::args::{CriteriaArgs, CriteriaCommand, CriteriaStart};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::criteria::decision::STUCK_AFTER;
use crate::criteria::{Decision, Standing, State, advance, decide};
use crate::evaluate::observation::{Observation, Stop};
use crate::process::signal::{self, EndSignal};
use crate::process::spawn::{self, Heard, Program, TimeLimits};
use crate::run::named;
use crate::run::shared_file::{self, STATE};

/// How much of a line is shown.
const LINE: usize = 100;

/// How many of the last lines of a failing command are shown.
const LAST_LINES: usize = 10;

/// The end of an output in which these lines are looked for.
const LAST_BYTES: usize = 16 * 1024;

pub(in crate::cli) fn criteria(args: &CriteriaArgs, env: &Env, output: &Output) -> Result<u8, CliError> {
    let file = StateFile { path: args.state.clone().unwrap_or_else(|| STATE.into()) };
    match &args.command {
        CriteriaCommand::Start(start) => begin(&file, start, output),
        CriteriaCommand::Check { timeout } => check(&file, *timeout, env, output),
        CriteriaCommand::Set { name, is_met } => {
            file.change(|state| {
                if state.set(name, *is_met) {
                    return Ok(());
                }
                let message = format!("there is no criterion `{}`", one_line(name, LINE));
                Err(CliError::invalid(message)
                    .help(format!("there are {}", names(state.criteria().map(|(name, _)| name)))))
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
                Err(CliError::invalid(message).help(format!("there are {}", names(left))))
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
    fn read(&self) -> Result<State, CliError> {
        self.find()?.ok_or_else(|| {
            let message = format!("there is no state file {}", self.path.display());
            let help = "`ll-loop criteria start SPEC --criterion NAME=COMMAND` begins";
            CliError::invalid(message).help(help).code(exit::ABSENT)
        })
    }

    /// Reads the state, if there is one. What is no state is never replaced.
    fn find(&self) -> Result<Option<State>, CliError> {
        let why = match shared_file::read(&self.path) {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => match State::read(&bytes) {
                Ok(state) => return Ok(Some(state)),
                Err(invalid) => invalid.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let message = format!("{} is no state file: {why}", self.path.display());
        Err(CliError::invalid(message).help("mend it, or remove it and begin again"))
    }

    fn write(&self, state: &State) -> Result<(), CliError> {
        let written = shared_file::replace(Path::new(&self.path), &state.text());
        written.map_err(|error| CliError::failed(format!("{} is not written", self.path.display()), &error))
    }

    fn change(&self, edit: impl FnOnce(&mut State) -> Result<(), CliError>) -> Result<State, CliError> {
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

fn begin(file: &StateFile, start: &CriteriaStart, output: &Output) -> Result<u8, CliError> {
    if let Some(state) = file.find()?
        && decide(&state, STUCK_AFTER).standing != Standing::Inactive
    {
        let message =
            format!("{} is about work that goes on: {}", file.path.display(), one_line(state.spec(), LINE));
        let help = "`ll-loop criteria cancel` or `ll-loop criteria done` ends it";
        return Err(CliError::invalid(message).help(help));
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = start.criteria.iter().find(|criterion| !seen.insert(&criterion.name)) {
        let message = format!("the criterion `{}` is given twice", one_line(&twice.name, LINE));
        return Err(CliError::invalid(message).help("give each criterion a name of its own"));
    }
    let state = State::begin(&start.spec, &start.criteria, &start.steps);
    file.write(&state)?;
    output.data(&shown(&state));
    Ok(0)
}

/// Runs the commands, and writes what they found. Only a check that came to its end counts.
fn check(file: &StateFile, timeout: Duration, env: &Env, output: &Output) -> Result<u8, CliError> {
    let before = file.read()?;
    let redactor = Redactor::new(env.secrets());
    let checks: Vec<_> = before.checks().map(|(name, check)| (name.to_owned(), check.to_owned())).collect();
    let seen = perform(&checks, timeout, env)
        .map_err(|error| CliError::failed("the checks cannot be started", &error))?;
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

fn perform(checks: &[(String, String)], timeout: Duration, env: &Env) -> std::io::Result<Seen> {
    let env: Vec<_> = env.for_actions(false).into_iter().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut cancel = signal::listen()?;
        let mut observations = Vec::new();
        for (_, check) in checks {
            let argv = ["bash", "-c", check].map(str::to_owned).to_vec();
            let program = Program { argv, env: env.clone(), cwd: None, stdin: None };
            let limits = TimeLimits { end: Some((timeout, Stop::Timeout)), idle: None };
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
fn done(file: &StateFile, output: &Output) -> Result<u8, CliError> {
    let mut state = file.read()?;
    if state.status() != "in_progress" {
        return Err(CliError::invalid(format!(
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

fn status(file: &StateFile, output: &Output) -> Result<u8, CliError> {
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
