//! Keeps the criteria of a piece of work in a file between calls of `ll-loop criteria`.

use std::path::PathBuf;
use std::time::Duration;

use crate::criteria::{State, advance};
use crate::engine::outcome::Signal;
use crate::evaluate::observation::{Observation, Stop};
use crate::process::guard::Guard;
use crate::process::signal::{self, EndSignal};
use crate::process::spawn::{self, Heard, ProcessLimits, Program};
use crate::run::named;
use crate::run::shared_file;

use super::context::Session;
use super::error::{Error, Kind};

/// The file that holds the criteria.
pub(crate) struct StateFile {
    pub(crate) path: PathBuf,
}

impl StateFile {
    /// Reads the state, which has to exist.
    pub(crate) fn read(&self) -> Result<State, Error> {
        self.find()?.ok_or_else(|| {
            let message = format!("cannot find the state file {}", self.path.display());
            let help = "`ll-loop criteria start SPEC --criterion NAME=COMMAND` begins";
            Error::refused(message).with_hint(help).of_kind(Kind::Absent)
        })
    }

    /// Reads the state, if the file exists. A file that holds anything else is an error, so that it is never
    /// overwritten.
    pub(crate) fn find(&self) -> Result<Option<State>, Error> {
        let why = match shared_file::read(&self.path) {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => match State::read(&bytes) {
                Ok(state) => return Ok(Some(state)),
                Err(invalid) => invalid.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let message = format!("{} is not a state file: {why}", self.path.display());
        Err(Error::refused(message).with_hint("mend it, or remove it and begin again"))
    }

    pub(crate) fn write(&self, state: &State) -> Result<(), Error> {
        let written = shared_file::replace(&self.path, &state.text());
        written.map_err(|error| Error::failed(format!("cannot write {}", self.path.display()), &error))
    }

    pub(crate) fn change(&self, edit: impl FnOnce(&mut State) -> Result<(), Error>) -> Result<State, Error> {
        let mut state = self.read()?;
        edit(&mut state)?;
        self.write(&state)?;
        Ok(state)
    }

    /// Runs the commands of the criteria, shows what each found, and counts the round.
    pub(crate) fn check(
        &self,
        timeout: Duration,
        session: &Session<'_>,
        show: &mut dyn FnMut(&str, &Observation),
    ) -> Result<Checks, Error> {
        let before = self.read()?;
        let checks: Vec<_> =
            before.checks().map(|(name, check)| (name.to_owned(), check.to_owned())).collect();
        let seen = perform(&checks, timeout, session)
            .map_err(|error| Error::failed("the checks cannot be started", &error))?;
        if let Some(signal) = seen.cancelled {
            return Ok(Checks::Cancelled(named(signal)));
        }
        let mut results = Vec::new();
        for ((name, _), observation) in checks.iter().zip(&seen.observations) {
            results.push((name.clone(), observation.succeeded()));
            show(name, observation);
        }
        // Read again: while the checks ran, they or somebody else may have changed the file.
        let after = advance(self.read()?, &results);
        self.write(&after)?;
        Ok(Checks::Done(after))
    }
}

/// The result of a round of checks.
pub(crate) enum Checks {
    /// All commands ended; the new state.
    Done(State),
    /// A signal stopped the round, which was not counted.
    Cancelled(Signal),
}

/// The results of the commands that ran, and the signal that stopped the round.
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
            let program = Program {
                argv,
                env: env.clone(),
                cwd: Some(session.cwd.clone()),
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
