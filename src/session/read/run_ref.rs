//! The one way from a text of the user to the run that it means, for every command that looks at a run.

use std::path::{Path, PathBuf};

use super::fetch::artifact;
use super::listed_runs::{Places, known_as};
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load;
use crate::journal::known::KnownRun;

/// What a text means.
#[derive(Debug)]
pub(crate) enum RunRef {
    /// A run of this checkout.
    Here(Box<KnownRun>),
    /// A bundle, a report directory or an artifact that was fetched, which others may have written.
    Brought {
        /// Where it lies.
        path: PathBuf,
        /// How the user named it.
        shown: String,
    },
    /// An artifact of a service, such as `run:latest`, which is fetched first.
    Artifact(String),
}

impl RunRef {
    /// Finds what is meant, the first of: an artifact by its prefix, the last run of a loop, a path, a run by its id or the
    /// beginning of it. A loop comes before a path, because a directory of sources often has the name of the loop that
    /// works on it. Where nothing is named, it is the last run of all.
    ///
    /// # Errors
    /// There is no such run, or there are several.
    pub(crate) fn parse(text: Option<&str>, session: &Session<'_>) -> Result<Self, Error> {
        let Some(text) = text else { return last(session).map(|run| Self::Here(Box::new(run))) };
        if artifact(text).is_some() {
            return Ok(Self::Artifact(text.to_owned()));
        }
        if let Some(path) = brought(text, session) {
            return Ok(Self::Brought { path, shown: text.to_owned() });
        }
        named(text, session).map(|run| Self::Here(Box::new(run)))
    }

    /// Says that an artifact has to be fetched before a command can look at it.
    pub(crate) fn not_fetched(what: &str) -> Error {
        Error::refused(format!(
            "`{what}` is an artifact of a service, and only files of this machine are read"
        ))
        .with_hint("fetch it with `ll-loop artifact download --to DIR NAME`, and name the file")
    }
}

/// Finds a run of this checkout: the last one of a loop, or one by its id or the beginning of its id.
///
/// # Errors
/// There is none, or there are several.
pub(crate) fn here(text: Option<&str>, session: &Session<'_>) -> Result<KnownRun, Error> {
    text.map_or_else(|| last(session), |text| named(text, session))
}

/// Returns the run of the same loop that began before this one.
///
/// # Errors
/// This was its first run here.
pub(crate) fn before(run: &KnownRun, session: &Session<'_>) -> Result<KnownRun, Error> {
    let (name, instance) = (known_as(run), run.files.instance());
    let all = Places::of(session).all()?.into_iter();
    let earlier = all.take_while(|other| other.files.instance() != instance);
    earlier.filter(|other| known_as(other) == name).last().ok_or_else(|| {
        Error::refused(format!("there is no run of `{name}` before {instance}")).with_hint("name both runs")
    })
}

fn named(text: &str, session: &Session<'_>) -> Result<KnownRun, Error> {
    let places = Places::of(session);
    let asked = places.asked(text);
    let found = places.all()?.into_iter().rfind(|run| asked.is(run));
    found.ok_or_else(|| asked.nothing("no run of", "`ll-loop history` lists the runs"))
}

fn last(session: &Session<'_>) -> Result<KnownRun, Error> {
    let none = || Error::refused("there is no run here").with_hint("`ll-loop run LOOP` begins one");
    Places::of(session).all()?.pop().ok_or_else(none)
}

/// Returns the path of the bundle, or of the directory with one, that a text names.
fn brought(text: &str, session: &Session<'_>) -> Option<PathBuf> {
    let path = session.path(Path::new(text));
    // Every file can be loaded as a loop, so only its name says that it is one.
    let is_loop = || load::find(text, &session.cwd).is_ok_and(|found| load::is_loop_file(&found.path));
    ((path.is_file() || path.is_dir()) && !is_loop()).then_some(path)
}
