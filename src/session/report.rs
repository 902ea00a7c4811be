//! Reads what a run did from its journal or its bundle, for reports on demand.

use std::path::Path;

use crate::journal::reader;
use crate::report::digest::Digest;
use crate::report::reader::Remote;

use super::context::Session;
use super::error::Error;
use super::finish;
use super::incoming::unusable;
use super::killed::{self, Telling};
use super::opened::OpenedBundle;
use super::options::RunOptions;
use super::otherwise;
use super::runs::Places;
use super::whereabouts::reader;

impl Session<'_> {
    /// Reads what a run did: the last one of a loop, a run by its id, or the one in a bundle.
    ///
    /// # Errors
    /// There is no such run, or its journal or bundle cannot be read.
    pub fn digest(&self, name: &str) -> Result<Digest, Error> {
        match self.path(Path::new(name)) {
            path if path.is_file() || path.is_dir() => {
                let opened = OpenedBundle::open(&path).map_err(|error| unusable(name, &error))?;
                let mut digest = opened.digest;
                digest.reader.remote = Some(Remote::Bundle(name.to_owned()));
                Ok(digest)
            }
            _ => of_run(name, self),
        }
    }
}

fn of_run(name: &str, session: &Session<'_>) -> Result<Digest, Error> {
    let places = Places::of(session);
    let asked = places.asked(name);
    let Some(run) = places.all()?.into_iter().rfind(|run| asked.is(run)) else {
        return Err(asked.nothing("no run of", "`ll-loop history` lists the runs"));
    };
    let mut files = run.files.clone();
    // Showing a run writes no file, so a failure to make its reports is only a warning.
    if let Err(error) = killed::report(&run, None, Telling::Quietly, session) {
        session.talk.warning(error.message());
    }
    if finish::is_due(&run) {
        // Showing a run writes no file, so a failure to finish the run is only a warning.
        match finish::finish(&run, None, session) {
            Ok(finished) => files = finished.files,
            Err(error) => session.talk.warning(error.message()),
        }
    }
    let failed = |error| Error::failed(format!("run {}", run.files.instance()), &error);
    let mut digest = read(&files.journal()).map_err(failed)?;
    let home = files.loops().parent().unwrap_or(files.loops());
    digest.reader = reader(home, &files, &RunOptions::default(), session);
    if killed::is_killed(&run) {
        digest.was_killed();
    }
    digest.otherwise = otherwise::of_run(&files, &digest, session);
    Ok(digest)
}

fn read(journal: &Path) -> Result<Digest, reader::ReadError> {
    let mut digest = Digest::default();
    reader::read(journal, |event| digest.event(&event))?;
    Ok(digest)
}
