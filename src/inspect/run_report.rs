//! Reads what a run did from its journal or its bundle, for reports on demand.

use std::path::Path;

use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::options::RunOptions;
use crate::engine::event::Stamped;
use crate::files::replace::deliver;
use crate::journal::files::RunFiles;
use crate::journal::known::KnownRun;
use crate::journal::reader;
use crate::report::detail::Detail;
use crate::report::difference::Against;
use crate::report::digest::Digest;
use crate::report::reading_place::RunDownload;
use crate::session::end::killed::Telling;
use crate::session::end::whereabouts::reader;
use crate::session::end::{finish, killed};
use crate::session::read::run_ref::RunRef;
use crate::session::read::{asked_flips, page_detail};
use crate::session::start::incoming::unusable;

impl Session<'_> {
    /// Reads what a run did: the last one of a loop, a run by its id, or the one in a bundle.
    ///
    /// # Errors
    /// There is no such run, or its journal or bundle cannot be read.
    pub(crate) fn digest(&self, name: Option<&str>) -> Result<Digest, Error> {
        Ok(self.read_run(name)?.0)
    }

    /// Reads the same, and looks closer: at every step, what it printed and changed, and how another run differs.
    ///
    /// # Errors
    /// The same, for either run.
    pub(crate) fn digest_in_detail(
        &self,
        name: Option<&str>,
        against: Option<&str>,
    ) -> Result<(Digest, Detail), Error> {
        let (digest, source) = self.read_run(name)?;
        let mut detail = match &source {
            ReportSource::Run(files) => page_detail::of_run(files, None, &digest, self),
            ReportSource::Bundle(opened) => page_detail::of_bundle(opened, &digest, self),
        };
        if against.is_some() {
            detail.against = Some(Against::of([&self.compared(name)?, &self.compared(against)?]));
        }
        Ok((digest, detail))
    }

    /// Writes a report to a file, all of it or nothing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_report(&self, file: &Path, text: &str) -> Result<(), Error> {
        let failed = |error| Error::unwritten("the report", &error);
        deliver(&self.path(file), text).map_err(failed)
    }

    pub(super) fn read_run(&self, name: Option<&str>) -> Result<(Digest, ReportSource), Error> {
        self.read_run_events(name, &mut |_| {})
    }

    /// Reads a run, and shows every event of its journal on the way.
    pub(super) fn read_run_events(
        &self,
        name: Option<&str>,
        each: &mut dyn FnMut(&Stamped),
    ) -> Result<(Digest, ReportSource), Error> {
        match RunRef::parse(name, self)? {
            RunRef::Here(run) => of_run(&run, each, self),
            RunRef::Brought { path, shown } => {
                let opened = OpenedBundle::open_reading(&path, each);
                let mut opened = opened.map_err(|error| unusable(&shown, &error))?;
                let mut digest = std::mem::take(&mut opened.digest);
                digest.reader.remote = Some(RunDownload::Bundle(shown));
                Ok((digest, ReportSource::Bundle(Box::new(opened))))
            }
            RunRef::Artifact(what) => Err(RunRef::not_fetched(&what)),
        }
    }
}

/// Where a run is read.
pub(super) enum ReportSource {
    /// In the files of this machine.
    Run(RunFiles),
    /// In a bundle.
    Bundle(Box<OpenedBundle>),
}

fn of_run(
    run: &KnownRun,
    each: &mut dyn FnMut(&Stamped),
    session: &Session<'_>,
) -> Result<(Digest, ReportSource), Error> {
    let mut files = run.files.clone();
    // Showing a run writes no file, so a failure to make its reports is only a warning.
    if let Err(error) = killed::report(run, None, Telling::Quietly, session) {
        session.talk.warning(error.message());
    }
    if run.is_to_be_finished() {
        // Showing a run writes no file, so a failure to finish the run is only a warning.
        match finish::finish(run, None, None, session) {
            Ok(finished) => files = finished.files,
            Err(error) => session.talk.warning(error.message()),
        }
    }
    let mut digest = read(&files, each, session)?;
    let home = files.loops().parent().unwrap_or(files.loops());
    digest.reader = reader(home, &files, &RunOptions::default(), session);
    if killed::is_killed(run) {
        digest.was_killed();
    }
    digest.otherwise = asked_flips::of_run(&files, &digest, session);
    Ok((digest, ReportSource::Run(files)))
}

/// Reads the journal of a run. What comes after a line that cannot be read is not known, which the digest says.
fn read(files: &RunFiles, each: &mut dyn FnMut(&Stamped), session: &Session<'_>) -> Result<Digest, Error> {
    let mut digest = Digest::default();
    let read = reader::read(&files.journal(), |event| {
        digest.event(&event);
        each(&event);
    });
    let Err(error) = read else { return Ok(digest) };
    let failed = Error::failed(format!("run {}", files.instance()), &error);
    // A file that cannot be read has no part that could be shown, and a damaged line has one before it.
    if matches!(error, reader::ReadError::Io { .. }) {
        return Err(failed);
    }
    session.talk.warning(failed.message());
    digest.breaks_off(error.place());
    Ok(digest)
}
