//! A run of another workflow, as the server describes it: what set off a job of the event `workflow_run`.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::api::{Api, ApiError};
use super::repository::RepositoryName;
use super::workflow_event::is_sha;
use super::workflow_job::WorkflowJob;
use crate::base::lookup::Lookup;
use crate::base::text::percent_encoded;
use crate::files::read;

/// The largest payload of an event that is read, in bytes.
const MAX_PAYLOAD: u64 = 32 * read::MIB;

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
    head_repository: Option<RunRepository>,
    /// What set it off.
    event: Option<String>,
    /// The file of its workflow.
    path: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct RunRepository {
    full_name: String,
}

impl OtherRun {
    /// Returns the run that set off this job, if one did.
    pub fn of_event(env: Lookup<'_>) -> Option<Self> {
        let job = WorkflowJob::read(env);
        job.event_name.filter(|name| name == "workflow_run")?;
        let payload = read::text(&job.event_path?, MAX_PAYLOAD).ok()?;
        let mut payload: Value = serde_json::from_str(&payload).ok()?;
        Self::checked(payload.get_mut("workflow_run")?.take())
    }

    /// Asks the server for a run.
    ///
    /// # Errors
    /// The server does not answer, or not with a run.
    pub fn get(api: &Api, repository: &RepositoryName, id: u64) -> Result<Self, ApiError> {
        let path = repository.path(&format!("/actions/runs/{id}"));
        let run = api.get::<Value>(&path, &[]).map_err(|error| error.needing("actions: read"))?;
        Self::checked(run).ok_or_else(|| ApiError::Unreadable {
            request: format!("GET {path}"),
            reason: "it does not describe a run with a commit".to_owned(),
        })
    }

    // The commit becomes part of addresses.
    fn checked(run: Value) -> Option<Self> {
        serde_json::from_value(run).ok().filter(|run: &Self| is_sha(&run.head_sha))
    }

    /// Returns the attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        // Gitea counts none and says 0.
        self.run_attempt.max(1)
    }

    /// Returns the file of its workflow and the event that set it off, where the server says both.
    pub fn workflow_and_event(&self) -> Option<(&str, &str)> {
        let file = self.path.as_deref()?.split('@').next()?;
        Some((file, self.event.as_deref()?))
    }

    /// Returns the repository of the code that ran, if it is still there.
    pub fn head_repository(&self) -> Option<&str> {
        self.head_repository.as_ref().map(|head| head.full_name.as_str())
    }

    /// Returns the branch that ran, where that is one of the job's own repository, and of no pull request.
    pub fn own_branch(&self, env: Lookup<'_>) -> Option<&str> {
        let own = WorkflowJob::read(env).repository?;
        let is_own = self.head_repository().is_some_and(|head| head.eq_ignore_ascii_case(&own));
        // The branch of a pull request is what its author calls it.
        let is_of_pull = self.event.as_ref().is_none_or(|event| event.starts_with("pull_request"));
        self.head_branch.as_deref().filter(|_| is_own && !is_of_pull)
    }

    /// Tells whether a checkout of this commit is one of the commit that is reported: it is the same, or its merge into the
    /// branch that a pull request is for.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn is_of_commit(
        &self,
        commit: &str,
        api: &Api,
        repository: &RepositoryName,
    ) -> Result<bool, ApiError> {
        #[derive(Deserialize)]
        struct ProposedPull {
            base: BaseBranch,
        }
        #[derive(Deserialize)]
        struct BaseBranch {
            #[serde(rename = "ref")]
            name: String,
        }
        if commit == self.head_sha {
            return Ok(true);
        }
        // Also closed ones: a pull request may be merged while its checks are reported.
        let pulls: Vec<ProposedPull> = self.pulls("all", api, repository)?;
        let mut bases: Vec<String> = pulls.into_iter().map(|pull| pull.base.name).collect();
        bases.sort_unstable();
        bases.dedup();
        is_merge_of(commit, &self.head_sha, &bases, api, repository)
    }

    /// Finds the open pull request by its commit: the event does not name that of a fork.
    pub(crate) fn pull_request(
        &self,
        api: &Api,
        repository: &RepositoryName,
    ) -> Result<Option<u64>, ApiError> {
        #[derive(Deserialize)]
        struct CommitPull {
            number: u64,
            head: HeadOfPull,
        }
        #[derive(Deserialize)]
        struct HeadOfPull {
            sha: String,
        }
        let pulls: Vec<CommitPull> = self.open_pulls(api, repository)?;
        Ok(pulls.into_iter().find(|pull| pull.head.sha == self.head_sha).map(|pull| pull.number))
    }

    /// Asks for the open pull requests of the branch whose code ran. Not every server leaves out those of others.
    pub(crate) fn open_pulls<P: DeserializeOwned>(
        &self,
        api: &Api,
        repository: &RepositoryName,
    ) -> Result<Vec<P>, ApiError> {
        self.pulls("open", api, repository)
    }

    fn pulls<P: DeserializeOwned>(
        &self,
        state: &str,
        api: &Api,
        repository: &RepositoryName,
    ) -> Result<Vec<P>, ApiError> {
        // `head` means a branch only together with its owner.
        let owner = self.head_repository().and_then(|name| name.split_once('/')).map(|(owner, _)| owner);
        let Some((owner, branch)) = owner.zip(self.head_branch.as_ref()) else { return Ok(Vec::new()) };
        let head = format!("{owner}:{branch}");
        let query = [("state", state), ("head", head.as_str())];
        api.list::<Vec<P>>(&repository.path("/pulls"), &query).collect()
    }
}

/// Returns so many commits before one, the newest first.
///
/// # Errors
/// The server does not answer.
pub fn ancestors(
    api: &Api,
    repository: &RepositoryName,
    sha: &str,
    most: usize,
) -> Result<Vec<String>, ApiError> {
    #[derive(Deserialize)]
    struct ListedCommit {
        sha: String,
    }
    let path = repository.path("/commits");
    let listed: Vec<ListedCommit> =
        // One more, because the list begins with the commit itself.
        api.list::<Vec<ListedCommit>>(&path, &[("sha", sha)]).take(most + 1).collect::<Result<_, _>>()?;
    let all = listed.into_iter().map(|commit| commit.sha);
    Ok(all.filter(|other| other != sha && is_sha(other)).take(most).collect())
}

/// Tells whether a commit is the merge of a head into one of these branches, as the server makes it for a pull request: its first
/// parent is on the branch, its second one is the head, and there is no third.
///
/// # Errors
/// The server does not answer.
pub fn is_merge_of(
    commit: &str,
    head: &str,
    bases: &[String],
    api: &Api,
    repository: &RepositoryName,
) -> Result<bool, ApiError> {
    #[derive(Deserialize)]
    struct CommitParents {
        #[serde(default)]
        parents: Vec<ParentCommit>,
    }
    #[derive(Deserialize)]
    struct ParentCommit {
        sha: String,
    }
    if !is_sha(commit) || bases.is_empty() {
        return Ok(false);
    }
    let path = repository.path(&format!("/git/commits/{commit}"));
    let merge: CommitParents = match api.get(&path, &[]) {
        Ok(merge) => merge,
        Err(ApiError::NotFound { .. } | ApiError::Refused { status: 409 | 422, .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let [first, second] = &merge.parents[..] else { return Ok(false) };
    if second.sha != head || !is_sha(&first.sha) {
        return Ok(false);
    }
    // Anybody can make a merge of the head with a commit of a fork, and servers show the commits of forks as well.
    for base in bases {
        if is_on_branch(&first.sha, base, api, repository)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tells whether a branch has a commit: there is none in it that the branch has not.
fn is_on_branch(
    commit: &str,
    branch: &str,
    api: &Api,
    repository: &RepositoryName,
) -> Result<bool, ApiError> {
    #[derive(Deserialize)]
    struct BranchComparison {
        total_commits: u64,
    }
    let path = repository.path(&format!("/compare/{}...{commit}", percent_encoded(branch)));
    // One item, because only the number of all is wanted.
    match api.get::<BranchComparison>(&path, &[("per_page", "1")]) {
        Ok(compared) => Ok(compared.total_commits == 0),
        // The branch is gone, or the two have nothing in common.
        Err(ApiError::NotFound { .. } | ApiError::Refused { status: 409 | 422, .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
