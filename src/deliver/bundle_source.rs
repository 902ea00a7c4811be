//! Finds the bundle of the run that is to be delivered: a file, an artifact, or a run of this machine.

use std::path::Path;

use crate::bundle::merged::bundle_of;
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::files::transient;
use crate::forge::github::artifacts::RunsMeant;
use crate::forge::github::other_run::OtherRun;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::journal::known::{KnownRun, RunStatus};
use crate::session::end::bundler::{Bundler, file_name};
use crate::session::end::finish;
use crate::session::read::fetch::{ArtifactRequest, Local, artifact};
use crate::session::read::run_ref::RunRef;
use crate::session::start::incoming::unusable;

/// A bundle to deliver, and how people know it.
pub(crate) struct Source {
    pub(crate) bundle: OpenedBundle,
    pub(crate) shown: String,
}

/// Opens what a user named. An artifact that the code of strangers may have made is only fetched where
/// `is_for_strangers`: what comes of it stands under their own pull request.
pub(crate) fn open(what: &str, is_for_strangers: bool, session: &Session<'_>) -> Result<Source, Error> {
    let is_name = what.starts_with("artifact:");
    if let Some(what) = artifact(what) {
        let run = if is_name { run_of_job(session) } else { None };
        let runs = RunsMeant::of_loop(None, None);
        let (allow_untrusted, env) = (is_for_strangers, session.env.with_token_of_job());
        let session = &session.within(&env);
        let asked = ArtifactRequest { what, run, repository: None, runs, allow_untrusted, session };
        // Here, as for a file, a wrong name is wrong usage.
        let local = asked.local().map_err(|error| {
            if error.kind() == Kind::Absent { error.of_kind(Kind::Refused) } else { error }
        })?;
        return opened(&local);
    }
    let path = session.path(Path::new(what));
    // Two merges into one directory at once leave two bundles, and the result names the one that belongs to it.
    if let Some(name) = bundle_of(&path) {
        let merged = path.join(name);
        let bundle = OpenedBundle::open(&merged).map_err(|error| unusable(what, &error))?;
        return Ok(Source { bundle, shown: what.to_owned() });
    }
    match RunRef::parse(Some(what), session)? {
        RunRef::Here(run) => of_run(&run, session),
        RunRef::Brought { shown, .. } => opened(&Local::path(&shown, session)),
        RunRef::Artifact(what) => Err(RunRef::not_fetched(&what)),
    }
}

/// Returns the run of the workflow whose artifacts are meant in a job: the one that set it off, or its own. The name often
/// comes from a job that runs code, and must not lead to what another run has left.
fn run_of_job(session: &Session<'_>) -> Option<u64> {
    let env = &session.env.lookup();
    let before = OtherRun::of_event(env).map(|run| run.id);
    before.or_else(|| WorkflowJob::read(env).run_id?.parse().ok())
}

fn opened(local: &Local) -> Result<Source, Error> {
    let bundle = OpenedBundle::open(&local.path).map_err(|error| unusable(&local.shown, &error))?;
    Ok(Source { bundle, shown: local.shown.clone() })
}

/// Takes the bundle of a run of this machine; one without a bundle gets one now. Its files may not be those that the run
/// left any more, which is found out like any other lie of a bundle.
fn of_run(run: &KnownRun, session: &Session<'_>) -> Result<Source, Error> {
    let instance = run.files.instance().to_owned();
    let shown = format!("the run {instance}");
    if run.status == RunStatus::Running {
        return Err(Error::refused(format!("{shown} has not ended")).with_hint(format!(
            "`{}` shows how it stands",
            crate::base::advised_command::status(&instance)
        )));
    }
    let left = run.files.report().join(file_name(&run.files));
    if left.is_file() {
        let bundle = OpenedBundle::open(&left).map_err(|error| unusable(&shown, &error))?;
        return Ok(Source { bundle, shown });
    }
    let Some((_, began)) = &run.ends.start else {
        return Err(Error::refused(format!("{shown} never began")));
    };
    let (prepared, territory) = finish::read_again(&run.files, began, session)?;
    let failed = |error: &dyn std::error::Error| Error::failed("cannot write a bundle", error);
    let scratch = transient::directory("ll-deliver-").map_err(|error| failed(&error))?;
    let target = scratch.path().join(file_name(&run.files));
    let bundler = Bundler::new(&prepared, &territory, session);
    bundler.write_to(&run.files, &run.files.report(), &target).map_err(|error| failed(&error))?;
    let bundle = OpenedBundle::open(&target).map_err(|error| unusable(&shown, &error))?;
    Ok(Source { bundle, shown })
}
