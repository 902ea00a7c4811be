//! Reports a run whose process was killed, from its journal and with the end that the process could not write. The
//! next command that meets such a run does it; in the job of the run, it also tells the CI system, once.

use std::path::Path;

use super::finish::{self, RunMaterials, bundler, due, keep};
use super::job_record::RecoveredReports;
use super::publication::{Publication, ReportedEnd, Stage, export, publisher};
use super::run_guard;
use crate::ci::Provider;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::options::RunOptions;
use crate::context::talk::{Findings, Talk, Watched};
use crate::journal::known::{KnownRun, RunStatus};
use crate::report::Sink;
use crate::session::read::choose::{Chosen, choose};
use crate::telemetry::live_export::ExportedRun;

/// Whom the reports of a killed run are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// Whoever reads files: the run goes on at once, and tells the rest itself.
    Files,
    /// The CI system as well, but for its log, which belongs to what the command prints.
    Quietly,
    /// The CI system.
    Fully,
}

/// Tells whether the process of a run was killed.
pub(crate) fn is_killed(run: &KnownRun) -> bool {
    run.status == RunStatus::Crashed && run.ends.start.is_some()
}

/// Makes the reports that a killed run was to have, where that is still to do. `directory` takes the place of the one
/// that it was begun with.
pub(crate) fn report(
    run: &KnownRun,
    directory: Option<&Path>,
    telling: Telling,
    session: &Session<'_>,
) -> Result<(), Error> {
    let Some((_, began)) = run.ends.start.as_ref().filter(|_| is_killed(run)) else { return Ok(()) };
    // The guard of the run may be setting the status at this moment.
    run_guard::wait_for(&run.files);
    // Read after the guard has ended, which notes there whether it has set the status.
    let Some(mut pending) = due(&run.files).filter(|pending| pending.reports) else { return Ok(()) };
    let of_job = pending.job.as_ref().filter(|_| telling != Telling::Files);
    let of_job = of_job.and_then(|job| job.options(session));
    let wanted = if of_job.is_some() { RecoveredReports::Told } else { RecoveredReports::Written };
    if pending.killed >= wanted {
        return Ok(());
    }
    let claim = finish::claimed(run, began, session)?;
    let is_told = of_job.is_some();
    let report_dir = directory.map(Path::to_owned).or_else(|| pending.report_dir.clone());
    let mut options = RunOptions { report_dir, ..of_job.unwrap_or_default() };
    if pending.is_status_set {
        options.commit.status = Some(false);
    }
    let without_log = WithoutLog(session.talk);
    let session = match telling {
        Telling::Fully if is_told => session.clone(),
        Telling::Files | Telling::Quietly | Telling::Fully => session.clone().talking_to(&without_log),
    };
    let session = &session;
    let files = &run.files;
    let RunMaterials { root, loops } = RunMaterials::find(files, began, session);
    let provider = publisher(&options).unwrap_or_else(|| Provider::detect(&|_| None));
    let (name, bundler) = (&began.r#loop, bundler(&loops, session));
    let mut publication = Publication::new(&options, provider, &root, name, files, bundler, session);
    let shown = publication.directory(files);
    if is_told {
        publication.begin(&options, began.r#loop.as_str(), Stage::Over, session);
    }
    let published = publication.tell(ReportedEnd::Killed { files }, session);
    // When its reports were made, it was exported.
    if pending.killed < RecoveredReports::Written {
        export(ExportedRun { files: files.clone(), unwritten: None, is_killed: true }, session);
    }
    if published.is_whole {
        pending.killed = wanted;
        if let Err(error) = keep(files, &pending) {
            session.talk.warning(&format!("the reports may be made once more: {error}"));
        }
    }
    drop(claim);
    let instance = files.instance();
    session.talk.note(&format!("the run {instance} was killed: its reports are in {}", shown.display()));
    Ok(())
}

impl Session<'_> {
    /// Makes up for what a run of this job could not do because its process was killed: reports, outputs and status.
    ///
    /// # Errors
    /// No such run exists, or its reports cannot be written.
    pub fn make_up(&self, name: &str, directory: Option<&Path>) -> Result<(), Error> {
        match choose(name, self)? {
            // One that was handed off has ended as well, although it can go on.
            Chosen::Left(_, run) if run.is_to_be_finished() => self.finish_as_begun(&run, directory),
            Chosen::Left(_, run) => report(&run, directory, Telling::Fully, self),
            Chosen::Unfinished(run) => self.finish_as_begun(&run, directory),
        }
    }

    /// Does what is still to do for a run that has ended, and reports it to the job as it was to be.
    fn finish_as_begun(&self, run: &KnownRun, directory: Option<&Path>) -> Result<(), Error> {
        // The guard of the run may be setting the status at this moment.
        run_guard::wait_for(&run.files);
        let pending = due(&run.files);
        let options = pending.and_then(|pending| pending.job?.options(self));
        finish::finish(run, options.as_ref(), directory, self).map(drop)
    }
}

/// Passes on everything but what a CI system obeys.
struct WithoutLog<'t>(&'t dyn Talk);

impl Talk for WithoutLog<'_> {
    fn note(&self, text: &str) {
        self.0.note(text);
    }

    fn warning(&self, text: &str) {
        self.0.warning(text);
    }

    fn findings(&self, findings: &Findings<'_>) {
        self.0.findings(findings);
    }

    fn watch(&self, run: &Watched<'_>) -> Option<Box<dyn Sink>> {
        self.0.watch(run)
    }
}
