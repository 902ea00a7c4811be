//! Reports a run of another workflow run at its commit. A pull request from a fork has a token that may not; a job of the
//! event `workflow_run` has one that may, and tells what the other run left. Everything in that is a claim of whoever
//! opened the pull request: the server alone says which commit it is about, and how the workflow run ended.

use super::comment::CommentChannel;
use super::commit_status::{self, state};
use super::reporter::Channel as _;
use super::target::{Elsewhere, ReportTarget, origin};
use crate::base::text::one_line;
use crate::ci::reported::{FinalReport, ReportedRun};
use crate::forge::github::api::{Api, ApiError};
use crate::forge::github::other_run::OtherRun;
use crate::forge::github::repository::RepositoryName;
use crate::report::digest::Digest;

/// What a workflow run says when all its jobs ended well.
const SUCCESS: &str = "success";

/// What one run of a loop left, after a look at it.
#[derive(Debug)]
pub enum RelayedRun {
    /// A report that fits the workflow run.
    Report(Box<Digest>),
    /// Nothing that can be believed, and why.
    Refused(String),
}

impl OtherRun {
    /// Sets the status of the commit, and writes the comment on its pull request where that is asked for. Returns what
    /// the status says.
    ///
    /// # Errors
    /// The server does not answer, or the token may not.
    pub fn report(
        &self,
        api: &Api,
        repository: &RepositoryName,
        subject: ReportedRun,
        claim: RelayedRun,
        comments: bool,
    ) -> Result<String, ApiError> {
        let target = self.target(api, repository, subject);
        let (state, text, digest) = self.verdict(claim);
        let permission = target.server().permission("statuses: write").to_owned();
        // `settle`, and not `set`: other legs of the same workflow run report under the same name.
        let shared = commit_status::settle(&target, state, &text, target.url());
        let shared = shared.map_err(|error| error.needing(&permission))?;
        // The pull request is looked up for a comment alone: it needs another permission.
        if let Some(digest) = digest.filter(|_| comments)
            && let Some(number) = self.pull_request(api, repository)?
        {
            let report = FinalReport { digest: *digest, annotations: Vec::new() };
            let written = CommentChannel.end(&target.on_pull_request(number), &report);
            written.map_err(|error| error.needing("pull-requests: write"))?;
        }
        Ok(match shared {
            Some(shared) => format!("{state}: {text} ({shared})"),
            None => format!("{state}: {text}"),
        })
    }

    /// Returns where one of its runs of loops is reported.
    pub(super) fn target(
        &self,
        api: &Api,
        repository: &RepositoryName,
        subject: ReportedRun,
    ) -> ReportTarget {
        let (run, attempt) = (self.id, self.attempt());
        // Which of its jobs it was, no trusted source says.
        let origin = self.workflow_and_event().map(|(file, event)| origin(&[file, event], None));
        let (url, sha) = (self.html_url.clone(), self.head_sha.clone());
        let run = Elsewhere { run, attempt, url, sha, origin };
        ReportTarget::of_other(api.clone(), repository.clone(), run, subject)
    }

    /// Says no more than the report and the server both do.
    fn verdict(&self, claim: RelayedRun) -> (&'static str, String, Option<Box<Digest>>) {
        let digest = match claim {
            RelayedRun::Refused(why) => return ("error", one_line(&why, 500), None),
            RelayedRun::Report(digest) => digest,
        };
        let commit = digest.commit().unwrap_or(&self.head_sha).to_owned();
        let (state, text) = (state(&digest, &commit), commit_status::description(&digest, &commit));
        let conclusion = self.conclusion.as_deref().unwrap_or("no conclusion");
        // A report that only its own job contradicts was made by whoever wrote the workflow of the
        // pull request.
        if state == "success" && conclusion != SUCCESS {
            let text =
                format!("the report says success, and the run of the workflow ended with {conclusion}");
            return ("error", one_line(&text, 500), None);
        }
        (state, text, Some(digest))
    }
}
