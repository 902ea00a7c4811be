//! Keeps the criteria of a piece of work in a file between calls of `ll-loop criteria`, and for runs.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::base::advised_command;
use crate::base::template::Template;
use crate::base::text::one_line;
use crate::context::environment::Environment;
use crate::context::error::{Error, Kind};
use crate::context::{Session, binding};
use crate::criteria::work_owner::{Owner, OwningRun};
use crate::criteria::{CriteriaState, advance};
use crate::engine::outcome::Signal;
use crate::evaluate::Evaluate;
use crate::evaluate::exit_codes::ExitCodes;
use crate::evaluate::observation::{Observation, Stop};
use crate::machine::{Machine, run_variables};
use crate::process::guard_pipe::Guard;
use crate::process::signal::{self, EndSignal};
use crate::process::spawn::{self, Heard, ProcessLimits, Program};
use crate::run::projection::{Anothers, Projection};
use crate::run::work_file::{self, LockedStateFile, WorkHolder};
use crate::run::{named, shared_file};

/// The variable in which Claude Code names its session to the commands that it runs.
const SESSION_ID: &str = "CLAUDE_CODE_SESSION_ID";

/// Returns the directory of the project, where the agent's CLI names one.
pub(crate) fn project(env: &Environment) -> Option<&Path> {
    env.get("CLAUDE_PROJECT_DIR").map(Path::new)
}

/// Returns what a session writes into work that it begins.
pub(crate) fn this_session(env: &Environment) -> Owner {
    Owner::Session(env.get(SESSION_ID).map(str::to_owned))
}

/// Takes the state file for a run that keeps criteria of its own.
pub(crate) fn claim(
    projection: &Projection,
    machine: &Machine,
    context: &Map<String, Value>,
    session: &Session<'_>,
) -> Result<(), Error> {
    let own = machine.steps().find_map(|(_, step)| match &step.evaluate {
        Some(Evaluate::Criteria(criteria)) if criteria.is_own() => Some(criteria),
        Some(_) | None => None,
    });
    let Some(own) = own else { return Ok(()) };
    // What is known only later stands there as it is written until the first round has ended.
    let render = |text: &Template| {
        let known = run_variables::render(text, context, &session.env.for_templates());
        Ok::<_, Infallible>(known.unwrap_or_else(|_| text.source().to_owned()))
    };
    let Ok(beginning) = own.beginning(render);
    match projection.claim(beginning) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(anothers)) => Err(refused(&anothers)),
        Err(error) => {
            // No error: the run decides by its own state, and the file is only for those who look on.
            session.talk.warning(&format!("how the work stands cannot be shown: {error}"));
            Ok(())
        }
    }
}

fn refused(anothers: &Anothers) -> Error {
    let hint = match &anothers.run {
        Some(run) => way_past(run),
        None => {
            "`ll-loop criteria done` ends it when all criteria are met, `ll-loop criteria cancel` in any case"
                .to_owned()
        }
    };
    Error::refused(anothers.sentence()).with_hint(hint).of_kind(Kind::Locked)
}

/// Says what to do about a run whose work is in the way.
fn way_past(run: &OwningRun) -> String {
    format!(
        "wait until it has ended, or end it with `{}`; if it ran on another machine that is gone, remove the file",
        advised_command::stop(&one_line(&run.instance, 100))
    )
}

/// The file that holds the criteria.
pub(crate) struct StateFile {
    pub(crate) path: PathBuf,
}

impl StateFile {
    /// Finds the file by its name, or else the one that belongs to the working directory.
    pub(crate) fn of(named: Option<&Path>, session: &Session<'_>) -> Self {
        let path = named.map_or_else(
            || work_file::find(&session.cwd, project(session.env)).0,
            |named| session.path(named),
        );
        Self { path }
    }

    /// Reads the state, which has to exist.
    pub(crate) fn read(&self) -> Result<CriteriaState, Error> {
        self.understood(shared_file::read(&self.path))?.ok_or_else(|| self.absent())
    }

    fn absent(&self) -> Error {
        let message = format!("cannot find the state file {}", self.path.display());
        let help = "`ll-loop criteria start SPEC --criterion NAME=COMMAND` begins";
        Error::refused(message).with_hint(help).of_kind(Kind::Absent)
    }

    /// Understands the content of the file. What is not a state is an error, so that it is never overwritten.
    fn understood(&self, content: io::Result<Option<Vec<u8>>>) -> Result<Option<CriteriaState>, Error> {
        let why = match content {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => match CriteriaState::read(&bytes) {
                Ok(state) => return Ok(Some(state)),
                Err(invalid) => invalid.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let message = format!("{} is not a state file: {why}", self.path.display());
        Err(Error::refused(message).with_hint("mend it, or remove it and begin again"))
    }

    fn cannot_write(&self, error: &io::Error) -> Error {
        Error::failed(format!("cannot write {}", self.path.display()), error)
    }

    /// Refuses to touch the work of a run that goes on.
    fn check_holder(&self, state: &CriteriaState) -> Result<(), Error> {
        let WorkHolder::Run(run) = WorkHolder::of(state) else { return Ok(()) };
        let spec = state.spec().unwrap_or("unknown").to_owned();
        Err(refused(&Anothers { path: self.path.clone(), run: Some(run), spec }))
    }

    /// Makes the file, or replaces one: `make` sees what is there, which no run may be at work on.
    pub(crate) fn begin(
        &self,
        make: impl FnOnce(Option<CriteriaState>) -> Result<CriteriaState, Error>,
    ) -> Result<CriteriaState, Error> {
        let file = LockedStateFile::wait_for(&self.path).map_err(|error| {
            // A file that is out of bounds cannot be read, either, and that says why.
            let unread = self.understood(shared_file::read(&self.path)).err();
            unread.unwrap_or_else(|| self.cannot_write(&error))
        })?;
        let before = self.understood(file.read())?;
        before.iter().try_for_each(|before| self.check_holder(before))?;
        let state = make(before.clone())?;
        if before.as_ref() != Some(&state) {
            file.write(&state).map_err(|error| self.cannot_write(&error))?;
        }
        Ok(state)
    }

    /// Changes the state, which has to exist and which no run may be at work on.
    pub(crate) fn change(
        &self,
        edit: impl FnOnce(&mut CriteriaState) -> Result<(), Error>,
    ) -> Result<CriteriaState, Error> {
        // Before the lock, which would make the directory.
        self.check_holder(&self.read()?)?;
        self.begin(|state| {
            let mut state = state.ok_or_else(|| self.absent())?;
            edit(&mut state)?;
            Ok(state)
        })
    }

    /// Runs the commands of the criteria, shows what each found, and counts the round. With `signals`, criteria that are
    /// all met say that the work is done.
    pub(crate) fn check(
        &self,
        timeout: Duration,
        signals: bool,
        session: &Session<'_>,
        show: &mut dyn FnMut(&str, &Observation, bool),
    ) -> Result<CheckRound, Error> {
        binding::starting("`criteria check`, whose commands nothing confines", &session.cwd, session)?;
        let before = self.read()?;
        self.check_holder(&before)?;
        let checks: Vec<_> = before.checks().collect();
        let codes = checks.iter().map(|check| {
            let Some(no) = check.no else { return Ok(ExitCodes::nonzero()) };
            let codes = ExitCodes::of(&no.to_value()).map_err(|why| why.to_string());
            let is_told_apart = |codes: &ExitCodes| !codes.contain(0);
            codes
                .and_then(|codes| {
                    let codes = Some(codes).filter(is_told_apart);
                    codes.ok_or_else(|| "0 is the exit code of a criterion that is met".to_owned())
                })
                .map_err(|why| {
                    let name = one_line(check.name, 100);
                    Error::refused(format!("`no` of the check of `{name}` in {}: {why}", self.path.display()))
                })
        });
        // Before any command runs: a mistake in the file must not leave half a round behind.
        let codes: Vec<ExitCodes> = codes.collect::<Result<_, _>>()?;
        let directory = work_file::directory_of_work(&self.path).unwrap_or_else(|| session.cwd.clone());
        let commands: Vec<_> = checks.iter().map(|check| check.command).collect();
        let seen = perform(&commands, &directory, timeout, session)
            .map_err(|error| Error::failed("the checks cannot be started", &error))?;
        if let Some(signal) = seen.cancelled {
            return Ok(CheckRound::Cancelled(named(signal)));
        }
        let mut results = Vec::new();
        for ((check, codes), observation) in checks.iter().zip(&codes).zip(&seen.observations) {
            results.push((check.name.to_owned(), observation.succeeded()));
            let has_told =
                observation.stop.is_none() && observation.signal.is_none() && observation.failure.is_none();
            show(check.name, observation, has_told && codes.contain(observation.exit_code));
        }
        // What stands there now: while the checks ran, they or somebody else may have changed the file.
        let after = self.change(|state| {
            *state = advance(state.clone(), &results);
            if signals && state.criteria().next().is_some() && state.unmet().next().is_none() {
                state.signal(true);
            }
            Ok(())
        })?;
        Ok(CheckRound::Done(after))
    }
}

/// The result of a round of checks.
pub(crate) enum CheckRound {
    /// All commands ended; the new state.
    Done(CriteriaState),
    /// A signal stopped the round, which was not counted.
    Cancelled(Signal),
}

/// The results of the commands that ran, and the signal that stopped the round.
struct Seen {
    observations: Vec<Observation>,
    cancelled: Option<EndSignal>,
}

fn perform(checks: &[&str], directory: &Path, timeout: Duration, session: &Session<'_>) -> io::Result<Seen> {
    // The commands are somebody's own, as actions are; they get what actions get.
    let env: Vec<_> = session.env.for_actions(false).into_iter().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut cancel = signal::listen()?;
        let mut observations = Vec::new();
        for check in checks {
            let argv = ["bash", "-c", check].map(str::to_owned).to_vec();
            let program = Program {
                argv,
                env: env.clone(),
                cwd: Some(directory.to_owned()),
                stdin: None,
                guard: Guard::default(),
            };
            let limits = ProcessLimits { end: Some((timeout, Stop::Timeout)), idle: None, first: None };
            observations.push(spawn::run(&program, limits, &mut cancel, &mut |_, _| Heard::More).await);
            if cancel.signal().is_some() {
                break;
            }
        }
        Ok(Seen { observations, cancelled: cancel.signal() })
    })
}
