//! Lists the runs that belong to a directory, and finds those that a user names.

use std::io;
use std::path::{Path, PathBuf};

use crate::definition::load::{self, DIRECTORY};
use crate::journal::known::{self, KnownRun};

use super::context::Session;
use super::error::{Error, Kind};
use super::prepared::refused;

/// The directories whose runs are listed.
pub(crate) struct Places {
    cwd: PathBuf,
    loops: Vec<PathBuf>,
}

impl Places {
    /// Returns the directories of a session.
    pub(crate) fn of(session: &Session<'_>) -> Self {
        let cwd = session.cwd.clone();
        let loops = load::ancestors(&cwd).into_iter().map(|root| root.join(DIRECTORY)).collect();
        Self { cwd, loops }
    }

    /// Returns the runs that are running or unfinished.
    pub(crate) fn open(&self) -> Result<Vec<KnownRun>, Error> {
        self.each(known::open)
    }

    /// Returns the runs in the history.
    pub(crate) fn archived(&self) -> Result<Vec<KnownRun>, Error> {
        self.each(known::archived)
    }

    /// Returns all runs, in the order in which they began.
    pub(crate) fn all(&self) -> Result<Vec<KnownRun>, Error> {
        let mut all = self.archived()?;
        all.extend(self.open()?);
        let mut all = known::in_order(all);
        // A run may move to the history between the two listings.
        all.dedup_by(|later, earlier| later.files.instance() == earlier.files.instance());
        Ok(all)
    }

    fn each(&self, find: impl Fn(&Path) -> io::Result<Vec<KnownRun>>) -> Result<Vec<KnownRun>, Error> {
        let mut all = Vec::new();
        for loops in &self.loops {
            all.extend(find(loops).map_err(|error| {
                Error::failed(format!("cannot look at the runs in {}", loops.display()), &error)
            })?);
        }
        Ok(all)
    }

    /// Interprets a user's text, which names a loop or a run.
    pub(crate) fn asked(&self, text: &str) -> RunQuery {
        // A loop may be named by its file, whose name may differ from that of the loop.
        let located = load::find(text, &self.cwd);
        let loaded = located.as_ref().ok().and_then(|located| load::load(located).ok());
        RunQuery {
            text: text.to_owned(),
            name: loaded.map(|loaded| loaded.definition.name.to_string()),
            unknown: located.err().map(|error| refused(&error)),
        }
    }
}

/// A user's text that names a loop or a run, and by which runs are selected.
pub(crate) struct RunQuery {
    text: String,
    name: Option<String>,
    unknown: Option<Error>,
}

impl RunQuery {
    pub(crate) fn is(&self, run: &KnownRun) -> bool {
        run.files.instance() == self.text || run.name == self.text || self.name.as_ref() == Some(&run.name)
    }

    /// Says that there is nothing: because nobody knows the name, or because of `what`.
    pub(crate) fn nothing(self, what: &str, help: &str) -> Error {
        let Self { text, unknown, .. } = self;
        unknown.unwrap_or_else(|| {
            Error::refused(format!("{what} `{text}`")).of_kind(Kind::Absent).with_hint(help)
        })
    }
}
