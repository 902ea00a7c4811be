//! What a run leaves about the CI job that it is in, so that a later step of the job can tell how it ended if the process
//! of the run was killed. No secret is among it.

use serde::{Deserialize, Serialize};

use super::publication::wanted;
use crate::base::run_key::RunKey;
use crate::ci::Provider;
use crate::ci::reported::ReportOptions;
use crate::context::audience::Audience;
use crate::context::options::{KeyOption, RunOptions, Storing};
use crate::context::{Session, key_of_run};
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::journal::files::RunFiles;

/// A CI job, and where it reports a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    /// The CI system.
    provider: String,
    /// The job, as it names itself.
    job: String,
    /// What tells it from the other legs of its matrix that this machine had.
    mark: Option<String>,
    /// The key of the run.
    key: Option<RunKey>,
    /// Who stores the files of the run.
    storing: Storing,
    /// Whether a status is set, if somebody said so.
    status: Option<bool>,
    /// The name of the status, if somebody gave one.
    context: Option<String>,
    /// The commit.
    sha: Option<String>,
    /// Whether there is a check run.
    check: bool,
    /// Whether there is a comment.
    comment: bool,
    /// Whether a later job delivers what the run changes.
    #[serde(default)]
    delivers: bool,
}

/// What a later process caught up on for a run whose process was killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecoveredReports {
    /// Nothing.
    #[default]
    Nothing,
    /// The files of its reports were written.
    Written,
    /// The CI system was told as well.
    Told,
}

impl JobRecord {
    /// Returns the job that a run begins or goes on in.
    pub(super) fn of(files: &RunFiles, options: &RunOptions, session: &Session<'_>) -> Option<Self> {
        let Audience::Ci(provider) = &options.audience else { return None };
        let ReportOptions { status, context, check, comment, sha, delivers } =
            wanted(&options.commit, session);
        Some(Self {
            provider: provider.name().to_owned(),
            job: provider.job().id?.to_string(),
            mark: key_of_run::mark_of_job(session),
            key: key_of_run::of_run(options, files.stem(), session),
            storing: options.storing,
            status,
            context,
            sha: sha.or_else(|| WorkflowEvent::read(&session.env.lookup()).sha),
            check,
            comment,
            delivers,
        })
    }

    /// Returns how the run was to be reported, if this process is in the same job.
    pub(super) fn options(&self, session: &Session<'_>) -> Option<RunOptions> {
        let provider = Provider::detect(&session.env.lookup());
        let is_here = provider.name() == self.provider
            && provider.job().id.is_some_and(|id| id.to_string() == self.job)
            && key_of_run::mark_of_job(session) == self.mark;
        is_here.then(|| RunOptions {
            audience: Audience::Ci(provider),
            key: self.key.clone().map_or_else(KeyOption::default, KeyOption::Known),
            storing: self.storing,
            commit: ReportOptions {
                status: self.status,
                context: self.context.clone(),
                sha: self.sha.clone(),
                check: self.check,
                comment: self.comment,
                delivers: self.delivers,
            },
            ..RunOptions::default()
        })
    }
}
