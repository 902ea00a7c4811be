//! Reports a run of another workflow run at its commit. A pull request from a fork has a token that may not; a job of the
//! event `workflow_run` has one that may, and tells what the other run left. Everything in that is a claim of whoever
//! opened the pull request: the server alone says which commit it is about, and how the workflow run ended.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::api::{Api, ApiError};
use super::comment::Comment;
use super::event::is_sha;
use super::reporter::{Channel as _, FinalReport};
use super::repository::Repository;
use super::status::{self, state};
use super::target::{Elsewhere, ReportTarget};
use crate::base::text::one_line;
use crate::ci::job::Lookup;
use crate::ci::reported::ReportedRun;
use crate::files::read;
use crate::report::digest::Digest;

/// The largest payload of an event that is read, in bytes.
const MAX_PAYLOAD: u64 = 32 * read::MIB;

/// What a workflow run says when all its jobs ended well.
const SUCCESS: &str = "success";

/// A run of a workflow that is over, as the server describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct OtherRun {
    /// Its number.
    pub id: u64,
    /// The commit of the code that ran.
    pub head_sha: String,
    /// How it ended.
    pub conclusion: Option<String>,
    /// Its attempt.
    #[serde(default)]
    run_attempt: u32,
    /// Its page.
    pub html_url: String,
    /// The branch of the code that ran.
    head_branch: Option<String>,
    head_repository: Option<Named>,
    /// What set it off.
    event: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Named {
    full_name: String,
}

/// What one run of a loop left, after a look at it.
#[derive(Debug)]
pub enum Claim {
    /// A report that fits the workflow run.
    Report(Box<Digest>),
    /// Nothing that can be believed, and why.
    Refused(String),
}

impl OtherRun {
    /// Returns the run that set off this job, if one did.
    pub fn of_event(env: Lookup<'_>) -> Option<Self> {
        env("GITHUB_EVENT_NAME").filter(|name| name == "workflow_run")?;
        let payload = read::text(Path::new(&env("GITHUB_EVENT_PATH")?), MAX_PAYLOAD).ok()?;
        let mut payload: Value = serde_json::from_str(&payload).ok()?;
        Self::checked(payload.get_mut("workflow_run")?.take())
    }

    /// Asks the server for a run.
    ///
    /// # Errors
    /// The server does not answer, or not with a run.
    pub fn get(api: &Api, repository: &Repository, id: u64) -> Result<Self, ApiError> {
        let path = repository.path(&format!("/actions/runs/{id}"));
        let run = api.get::<Value>(&path, &[]).map_err(|error| error.needing("actions: read"))?;
        Self::checked(run).ok_or_else(|| ApiError::Unreadable {
            request: format!("GET {path}"),
            reason: "it does not describe a run with a commit".to_owned(),
        })
    }

    fn checked(run: Value) -> Option<Self> {
        serde_json::from_value(run).ok().filter(|run: &Self| is_sha(&run.head_sha))
    }

    /// Returns the attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.run_attempt.max(1)
    }

    /// Returns the repository of the code that ran, if it is still there.
    pub fn head_repository(&self) -> Option<&str> {
        self.head_repository.as_ref().map(|head| head.full_name.as_str())
    }

    /// Returns the branch that ran, where that is one of the job's own repository, and of no pull request.
    pub fn own_branch(&self, env: Lookup<'_>) -> Option<&str> {
        let own = env("GITHUB_REPOSITORY")?;
        let is_own = self.head_repository().is_some_and(|head| head.eq_ignore_ascii_case(&own));
        let is_of_pull = self.event.as_ref().is_none_or(|event| event.starts_with("pull_request"));
        self.head_branch.as_deref().filter(|_| is_own && !is_of_pull)
    }

    /// Tells whether a checkout of this commit is one of the commit that is reported: it is the same, or the merge of it
    /// that the server makes for a pull request.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn is_of_commit(&self, commit: &str, api: &Api, repository: &Repository) -> Result<bool, ApiError> {
        Ok(commit == self.head_sha || is_merge_of(commit, &self.head_sha, api, repository)?)
    }

    /// Sets the status of the commit, and writes the comment on its pull request where that is asked for. Returns what
    /// the status says.
    ///
    /// # Errors
    /// The server does not answer, or the token may not.
    pub fn report(
        &self,
        (api, repository): (&Api, &Repository),
        subject: ReportedRun,
        claim: Claim,
        comments: bool,
    ) -> Result<String, ApiError> {
        let target = self.target((api, repository), subject);
        let (state, text, digest) = self.verdict(claim);
        let permission = target.server().permission("statuses: write").to_owned();
        let shared = status::settle(&target, state, &text, target.url());
        let shared = shared.map_err(|error| error.needing(&permission))?;
        // The pull request is looked up for a comment alone: it needs another permission.
        if let Some(digest) = digest.filter(|_| comments)
            && let Some(number) = self.pull_request(api, repository)?
        {
            let report = FinalReport { digest: *digest, annotations: Vec::new() };
            let written = Comment.end(&target.on_pull_request(number), &report);
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
        (api, repository): (&Api, &Repository),
        subject: ReportedRun,
    ) -> ReportTarget {
        let (run, attempt) = (self.id, self.attempt());
        let run = Elsewhere { run, attempt, url: self.html_url.clone(), sha: self.head_sha.clone() };
        ReportTarget::of_other(api.clone(), repository.clone(), run, subject)
    }

    /// Says no more than the report and the server both do.
    fn verdict(&self, claim: Claim) -> (&'static str, String, Option<Box<Digest>>) {
        let digest = match claim {
            Claim::Refused(why) => return ("error", one_line(&why, 500), None),
            Claim::Report(digest) => digest,
        };
        let commit = digest.commit().unwrap_or(&self.head_sha).to_owned();
        let (state, text) = (state(&digest, &commit), status::description(&digest, &commit));
        let conclusion = self.conclusion.as_deref().unwrap_or("no conclusion");
        if state == "success" && conclusion != SUCCESS {
            let text =
                format!("the report says success, and the run of the workflow ended with {conclusion}");
            return ("error", one_line(&text, 500), None);
        }
        (state, text, Some(digest))
    }

    /// Finds the open pull request by its commit: the event does not name that of a fork.
    fn pull_request(&self, api: &Api, repository: &Repository) -> Result<Option<u64>, ApiError> {
        #[derive(Deserialize)]
        struct Pull {
            number: u64,
            head: Head,
        }
        #[derive(Deserialize)]
        struct Head {
            sha: String,
        }
        let pulls: Vec<Pull> = self.pulls(api, repository)?;
        Ok(pulls.into_iter().find(|pull| pull.head.sha == self.head_sha).map(|pull| pull.number))
    }

    /// Asks for the open pull requests of the branch whose code ran. Not every server leaves out those of others.
    pub(super) fn pulls<P: DeserializeOwned>(
        &self,
        api: &Api,
        repository: &Repository,
    ) -> Result<Vec<P>, ApiError> {
        let owner = self.head_repository().and_then(|name| name.split_once('/')).map(|(owner, _)| owner);
        let Some((owner, branch)) = owner.zip(self.head_branch.as_ref()) else { return Ok(Vec::new()) };
        let head = format!("{owner}:{branch}");
        let query = [("state", "open"), ("head", head.as_str())];
        api.list::<Vec<P>>(&repository.path("/pulls"), &query).collect()
    }
}

/// Tells whether a commit is a merge of another one, such as the server makes for a pull request.
///
/// # Errors
/// The server does not answer.
pub fn is_merge_of(commit: &str, head: &str, api: &Api, repository: &Repository) -> Result<bool, ApiError> {
    #[derive(Deserialize)]
    struct Commit {
        #[serde(default)]
        parents: Vec<Parent>,
    }
    #[derive(Deserialize)]
    struct Parent {
        sha: String,
    }
    if !is_sha(commit) {
        return Ok(false);
    }
    match api.get::<Commit>(&repository.path(&format!("/git/commits/{commit}")), &[]) {
        Ok(merge) => Ok(merge.parents.len() > 1 && merge.parents.iter().any(|parent| parent.sha == head)),
        Err(ApiError::NotFound { .. } | ApiError::Refused { status: 409 | 422, .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
