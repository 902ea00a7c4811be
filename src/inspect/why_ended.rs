//! Says why a run ended as it did, and what another verdict would have made of it. Only reads.

use std::path::Path;

use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::Error;
use crate::journal::known::KnownRun;
use crate::journal::reader::{self, ReadError};
use crate::report::digest::Digest;
use crate::report::numbers::StepNumber;
use crate::report::why::Why;
use crate::run::other_verdicts::ExaminedVerdicts;
use crate::session::end::killed;
use crate::session::read::asked_flips;
use crate::session::read::asked_flips::AskedRun;
use crate::session::read::run_ref::RunRef;
use crate::session::start::incoming::unusable;

/// A run whose journal can be read.
struct WhyRun {
    /// What a user calls it.
    name: String,
    subject: AskedRun,
    is_killed: bool,
    /// Holds what was unpacked.
    _bundle: Option<OpenedBundle>,
}

impl Session<'_> {
    /// Says why a run ended as it did: the last one of a loop, a run by its id, the one in a bundle, or the last run; or
    /// why one of its steps did what it did.
    ///
    /// # Errors
    /// There is no such run or step, or its journal or bundle cannot be read.
    pub(crate) fn why(&self, name: Option<&str>, step: Option<&StepNumber>) -> Result<Why, Error> {
        let told = self.run_asked(name)?;
        let mut digest = step.cloned().map_or_else(Digest::default, Digest::asking);
        reader::read(&told.subject.journal, |stamped| digest.event(&stamped))
            .map_err(|error| told.unreadable(&error))?;
        if told.is_killed {
            digest.was_killed();
        }
        if digest.newer_schema().is_some() {
            // The warning about the version is the first one: the digest makes it with the first event.
            for warning in digest.warnings().iter().take(1) {
                self.talk.warning(&format!("{}: {}", told.name, warning.message));
            }
        }
        let looked =
            step.cloned().map_or(ExaminedVerdicts::LastOf(digest.verdicts()), ExaminedVerdicts::Step);
        digest.otherwise = match digest.start() {
            Some(start) => asked_flips::of(&told.subject, start, looked, self),
            None => return Err(Error::refused(format!("the journal of {} has no beginning", told.name))),
        };
        Why::of(&digest).ok_or_else(|| match step {
            Some(step) => Error::refused(format!("the run {} has no step {step}", told.name))
                .with_hint(format!("`ll-loop history {}` shows its steps", told.name)),
            None => Error::refused(format!("the run {} did nothing", told.name)),
        })
    }

    fn run_asked(&self, name: Option<&str>) -> Result<WhyRun, Error> {
        match RunRef::parse(name, self)? {
            RunRef::Here(run) => Ok(WhyRun::of(&run)),
            RunRef::Brought { path, shown } => self.bundled(&path, &shown),
            RunRef::Artifact(what) => Err(RunRef::not_fetched(&what)),
        }
    }

    fn bundled(&self, path: &Path, name: &str) -> Result<WhyRun, Error> {
        let opened = OpenedBundle::open(path).map_err(|error| unusable(name, &error))?;
        let subject = AskedRun::of_bundle(&opened, self);
        Ok(WhyRun { name: name.to_owned(), subject, is_killed: false, _bundle: Some(opened) })
    }
}

impl WhyRun {
    fn of(run: &KnownRun) -> Self {
        let start = run.ends.start.as_ref().map(|(_, start)| start);
        Self {
            name: run.files.instance().to_owned(),
            subject: AskedRun::of(&run.files, start),
            is_killed: killed::is_killed(run),
            _bundle: None,
        }
    }

    fn unreadable(&self, error: &ReadError) -> Error {
        Error::failed(format!("run {}", self.name), error)
    }
}
