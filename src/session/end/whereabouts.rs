//! Works out where a run is read about: which paths and commands lead to it from there.

use std::path::{Component, Path, PathBuf};

use super::bundler;
use crate::ci::{Provider, is_ci};
use crate::context::audience::Audience;
use crate::context::options::{RunOptions, Storing};
use crate::context::{Session, key_of_run};
use crate::definition::load;
use crate::files::links::{followed, repository};
use crate::forge::github::results::is_offered;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::journal::files::RunFiles;
use crate::report::reading_place::{Reader, RunDownload};

/// The address of the API of github.com.
const GITHUB: &str = "https://api.github.com";

/// Returns where a run is read about that works in `root`: by a person beside it, or in the log and the reports of a job.
pub(crate) fn reader(root: &Path, files: &RunFiles, options: &RunOptions, session: &Session<'_>) -> Reader {
    let workspace = match &options.audience {
        Audience::Ci(provider) => provider.job().workspace,
        Audience::Person => None,
    };
    let repository = |directory: &Path| repository(directory, workspace.as_deref());
    let home = relative(root, &repository(root));
    // A run in a worktree of its own is kept where it was begun.
    let kept = files.loops().parent().unwrap_or(root);
    let remote = match &options.audience {
        Audience::Ci(provider) => remote(provider, kept, files, options, session),
        Audience::Person => None,
    };
    let is_near = || load::ancestors(&session.cwd).iter().any(|near| followed(near) == followed(kept));
    let directory = match &remote {
        Some(_) => relative(kept, &repository(kept)),
        None if is_near() => String::new(),
        None => kept.to_string_lossy().into_owned(),
    };
    Reader { home, directory, remote }
}

/// Returns how another machine gets the run. Only a job is gone when somebody reads its log.
fn remote(
    provider: &Provider,
    kept: &Path,
    files: &RunFiles,
    options: &RunOptions,
    session: &Session<'_>,
) -> Option<RunDownload> {
    let env = session.env;
    // What act stores is on the machine of whoever runs it.
    let is_workflow = provider.stores_artifacts() && !env.is_on("ACT");
    let job = WorkflowJob::read(&env.lookup());
    let workflow = job.run_id.zip(job.repository);
    if let Some((run, repository)) = workflow.filter(|_| is_workflow && is_stored(options.storing, session)) {
        // A command for github.com need not name its API: that is the one it asks by itself.
        let api = job.api_url.filter(|api| api != GITHUB);
        // Also where it is the job alone: other jobs may run the loop as well, before the command is read.
        let key = key_of_run::of_run(options, files.stem(), session).map(|key| key.to_string());
        return Some(RunDownload::Workflow { repository, run, key, api });
    }
    let is_job = provider.job().id.is_some() || is_ci(&env.lookup());
    let directory = options.report_dir.as_deref().map(|directory| session.path(directory));
    let directory = directory.unwrap_or_else(|| files.report());
    let bundle = bundler::file_name(files);
    is_job.then(|| RunDownload::Bundle(format!("{}/{bundle}", relative(&directory, kept))))
}

/// Tells whether the files of a run come to where other jobs find them: this process may store artifacts, or a later step
/// does.
fn is_stored(storing: Storing, session: &Session<'_>) -> bool {
    match storing {
        Storing::Ours(_) => is_offered(&session.env.lookup()),
        Storing::LaterStep => true,
        Storing::Nobody => false,
    }
}

/// Returns a path as it is written from a directory; empty for the directory itself.
pub(crate) fn relative(path: &Path, from: &Path) -> String {
    let (path, from) = (followed(path), followed(from));
    let shared = path.components().zip(from.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    let down = path.components().skip(shared);
    up.chain(down).collect::<PathBuf>().to_string_lossy().into_owned()
}
