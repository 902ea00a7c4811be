//! Lists the runs that belong to a directory, and finds those that a user names.

use std::io;
use std::path::{Path, PathBuf};

use crate::base::name::LoopName;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load::{self, DIRECTORY};
use crate::files::read;
use crate::journal::known::{self, KnownRun};
use crate::session::prepare::prepared::refused;

/// The directories whose runs are listed.
pub(crate) struct Places {
    cwd: PathBuf,
    loops: Vec<PathBuf>,
}

/// Says that the beginning of an id is that of several runs.
pub(crate) fn ambiguous(text: &str, [one, other]: [&KnownRun; 2]) -> Error {
    let (one, other) = (one.files.instance(), other.files.instance());
    Error::refused(format!("`{text}` can be {one} or {other}")).with_hint("write more of the id of the run")
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
        // A loop may be named by its file, which may name itself.
        let located = load::find(text, &self.cwd);
        let meant = located.as_ref().ok().and_then(|located| {
            let written = || Some(load::load(located).ok()?.definition.name);
            let name = located.name.clone().or_else(written)?;
            Some(MeantRun { name, loops: located.root.join(DIRECTORY) })
        });
        let special = read::special(&self.cwd.join(text));
        let special = special.map(|kind| Error::refused(format!("`{text}` is {kind}, not a file")));
        let unknown = special.or_else(|| located.err().map(|error| refused(&error)));
        let completed = if meant.is_some() { Ok(None) } else { self.completed(text) };
        let (text, unknown) = match completed {
            Ok(Some(id)) => (id, unknown),
            Ok(None) => (text.to_owned(), unknown),
            Err(error) => (text.to_owned(), Some(error)),
        };
        RunQuery { text, meant, unknown }
    }

    /// Returns the id of the run that a text begins, if it names none and begins that of only one. What fits every run of a
    /// loop is not the beginning of an id, but a loop that is not there.
    fn completed(&self, text: &str) -> Result<Option<String>, Error> {
        // Runs that cannot be listed are told of by whoever lists them.
        let Ok(all) = self.all() else { return Ok(None) };
        if all.iter().any(|run| run.files.instance() == text || run.name == text) {
            return Ok(None);
        }
        let is_begun = |run: &&KnownRun| {
            run.files.instance().starts_with(text) && text.len() > run.files.stem().len() + "-".len()
        };
        let begun: Vec<&KnownRun> = all.iter().filter(is_begun).collect();
        match begun.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.files.instance().to_owned())),
            [one, .., other] => Err(ambiguous(text, [one, other])),
        }
    }
}

/// Returns the name of the loop of a run as a user knows it. A run of an earlier version had the name that is written in
/// the file of the loop.
pub(crate) fn known_as(run: &KnownRun) -> String {
    let file = run.ends.start.as_ref().map(|(_, start)| Path::new(&start.source.file));
    let below = file.and_then(|file| file.strip_prefix(DIRECTORY).ok());
    let below = below.filter(|below| *below != Path::new(&run.name));
    let name = below.and_then(|below| load::name_below(below).ok().flatten());
    name.map_or_else(|| run.name.clone(), |name| name.to_string())
}

/// A user's text that names a loop or a run, and by which runs are selected.
pub(crate) struct RunQuery {
    text: String,
    meant: Option<MeantRun>,
    unknown: Option<Error>,
}

/// A loop, and where its runs are kept.
struct MeantRun {
    name: LoopName,
    loops: PathBuf,
}

impl RunQuery {
    pub(crate) fn is(&self, run: &KnownRun) -> bool {
        let is_of_loop = match &self.meant {
            Some(meant) => run.files.loops() == meant.loops && known_as(run) == meant.name.as_str(),
            None => run.name == self.text,
        };
        is_of_loop || run.files.instance() == self.text
    }

    /// Returns the id of the run that is asked for, if a run is.
    pub(crate) fn id(&self) -> &str {
        &self.text
    }

    /// Says that there is nothing: because the name is unknown, or because of `what`.
    pub(crate) fn nothing(self, what: &str, help: &str) -> Error {
        let Self { text, unknown, .. } = self;
        match unknown {
            Some(error) => {
                let advice = error.hint().map_or_else(String::new, |hint| format!("{hint}; "));
                Error::refused(format!("no run and no loop is named `{text}`"))
                    .of_kind(error.kind())
                    .with_hint(format!("{advice}`ll-loop history` lists the runs"))
            }
            None => Error::refused(format!("{what} `{text}`")).with_hint(help),
        }
    }
}
