//! Reads two runs to tell them apart, from their journals or their bundles. Only reads.

use std::path::Path;

use serde_json::{Map, Value};

use crate::bundle::names;
use crate::bundle::open::{Bundle, LIMITS, OpenError};
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::Error;
use crate::files::read::MIB;
use crate::journal::known::{KnownRun, state_now};
use crate::journal::reader;
use crate::report::difference::{Compared, Trail};
use crate::report::digest::Digest;
use crate::session::end::killed;
use crate::session::read::run_ref::{self, RunRef};
use crate::session::start::incoming::unusable;

/// The longest `state.json` that is read from a bundle.
const MAX_STATE: u64 = 64 * MIB;

impl Session<'_> {
    /// Reads the last run and the one of the same loop before it.
    ///
    /// # Errors
    /// There are no such runs, or a journal cannot be read.
    pub(crate) fn last_two(&self) -> Result<[Compared; 2], Error> {
        let last = run_ref::here(None, self)?;
        let before = run_ref::before(&last, self)?;
        Ok([self.warned(of_run(&before)?), self.warned(of_run(&last)?)])
    }

    /// Reads a run to be compared: the last one of a loop, a run by its id, or the one in a bundle.
    pub(crate) fn compared(&self, name: Option<&str>) -> Result<Compared, Error> {
        let compared = match RunRef::parse(name, self)? {
            RunRef::Here(run) => of_run(&run)?,
            RunRef::Brought { path, shown } => {
                of_bundle(&path, &shown).map_err(|error| unusable(&shown, &error))?
            }
            RunRef::Artifact(what) => return Err(RunRef::not_fetched(&what)),
        };
        Ok(self.warned(compared))
    }

    /// Warns of a journal that a newer version wrote.
    fn warned(&self, compared: Compared) -> Compared {
        if compared.digest.newer_schema().is_some() {
            // The warning about the version is the first one: the digest makes it with the first event.
            compared.digest.warnings().first().into_iter().for_each(|warning| {
                self.talk.warning(&format!("{}: {}", compared.name, warning.message));
            });
        }
        compared
    }
}

fn of_run(run: &KnownRun) -> Result<Compared, Error> {
    let instance = run.files.instance().to_owned();
    let (mut digest, trail) =
        read(&run.files.journal()).map_err(|error| Error::failed(format!("run {instance}"), &error))?;
    if killed::is_killed(run) {
        digest.was_killed();
    }
    Ok(Compared { name: instance, digest, trail, captured: state_now(run).and_then(captured) })
}

fn of_bundle(path: &Path, name: &str) -> Result<Compared, OpenError> {
    let opened = OpenedBundle::open(path)?;
    let mut trail = Trail::default();
    reader::read(&opened.journal(), |event| trail.event(&event))
        .map_err(|error| OpenError::Damaged(error.to_string()))?;
    let state = Bundle::open(&opened.file, LIMITS)?.read(names::STATE, MAX_STATE)?;
    let state = state.and_then(|state| serde_json::from_slice(&state).ok());
    Ok(Compared { name: name.to_owned(), digest: opened.digest, trail, captured: state.and_then(captured) })
}

fn captured(mut state: Value) -> Option<Map<String, Value>> {
    match state.get_mut("captured")?.take() {
        Value::Object(captured) => Some(captured),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}

fn read(journal: &Path) -> Result<(Digest, Trail), reader::ReadError> {
    // The trail has the steps, with a few numbers for each.
    let (mut digest, mut trail) = (Digest::without_steps(0), Trail::default());
    reader::read(journal, |event| {
        digest.event(&event);
        trail.event(&event);
    })?;
    Ok((digest, trail))
}
