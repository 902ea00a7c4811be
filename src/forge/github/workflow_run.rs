//! What the REST API says about a run of a workflow: which file it is of, what set it off, and whose code ran.

use serde::{Deserialize, Deserializer};

use super::api::{Api, ApiError};
use super::repository::RepositoryName;

/// A run of a workflow.
#[derive(Debug, Deserialize)]
pub(crate) struct WorkflowRun {
    /// The event that set it off.
    pub(crate) event: Option<String>,
    /// The file of the workflow: `.github/workflows/fix.yml` on GitHub, `fix.yml@refs/heads/main` on Gitea.
    #[serde(default)]
    path: String,
    /// How far it is.
    pub(crate) status: Option<String>,
    /// The attempt that it is in; nothing or 0 where the server counts none.
    #[serde(default)]
    pub(crate) run_attempt: u32,
    /// Who set it off.
    actor: Option<Id>,
    /// Who started its last attempt.
    triggering_actor: Option<Id>,
    /// The commit that it is of, where the server says it.
    pub(crate) head_sha: Option<String>,
    /// The repository of the run.
    pub(crate) repository: Option<Id>,
    /// The repository of the code.
    #[serde(default, deserialize_with = "head")]
    pub(crate) head_repository: HeadRepository,
}

/// Who started runs of workflows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStarters {
    /// The accounts that the server names.
    pub accounts: Vec<u64>,
    /// Whether one was started by a dispatch or was run again: then the account may be that of a program, which somebody has
    /// asked for it by a comment.
    pub is_by_request: bool,
}

impl RunStarters {
    /// Adds those of another run.
    pub fn add(&mut self, others: Self) {
        self.accounts.extend(others.accounts);
        self.is_by_request |= others.is_by_request;
    }
}

/// The id of something.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Id {
    pub(crate) id: u64,
}

/// The repository of the code that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadRepository {
    /// The one with this id; it may be a fork.
    Is(u64),
    /// A fork that was deleted.
    Gone,
    /// The server does not say.
    #[default]
    Untold,
}

fn head<'de, D: Deserializer<'de>>(from: D) -> Result<HeadRepository, D::Error> {
    Ok(Option::<Id>::deserialize(from)?.map_or(HeadRepository::Gone, |head| HeadRepository::Is(head.id)))
}

/// Returns a run.
pub(crate) fn get(api: &Api, repository: &RepositoryName, run: u64) -> Result<WorkflowRun, ApiError> {
    api.get(&repository.path(&format!("/actions/runs/{run}")), &[])
}

impl WorkflowRun {
    /// Returns who set it off and who started it again, as far as the server says it.
    pub(crate) fn starters(&self) -> RunStarters {
        RunStarters {
            accounts: self.actor.iter().chain(&self.triggering_actor).map(|actor| actor.id).collect(),
            is_by_request: self.run_attempt > 1 || self.event.as_deref() == Some("workflow_dispatch"),
        }
    }

    /// Returns the name of the workflow's file.
    pub(crate) fn workflow(&self) -> Option<&str> {
        let (file, _) = self.at();
        let name = file.rsplit('/').next().filter(|name| !name.is_empty())?;
        // GitHub has workflows without a file as well, such as those of code scanning and of Pages, which it makes itself.
        let is_file = matches!(file.strip_suffix(name), Some("" | ".github/workflows/"));
        is_file.then_some(name)
    }

    /// Returns the number of the pull request that it is for, where the server says it in this way.
    pub(crate) fn pull_request(&self) -> Option<u64> {
        let (_, git_ref) = self.at();
        git_ref.strip_prefix("pull/")?.split('/').next()?.parse().ok()
    }

    /// Returns the file, and the ref without `refs/`. No file has a slash in its name, but a branch has what it likes.
    fn at(&self) -> (&str, &str) {
        self.path.split_once("@refs/").unwrap_or((&self.path, ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, workflow: Option<&str>, pull_request: Option<u64>) {
        let run: WorkflowRun = serde_json::from_value(serde_json::json!({"path": path})).unwrap();
        assert_eq!((run.workflow(), run.pull_request()), (workflow, pull_request), "{path}");
    }

    #[test]
    fn the_path_of_a_run_names_its_workflow_and_its_pull_request() {
        check(".github/workflows/fix.yml", Some("fix.yml"), None);
        check("fix.yml@refs/heads/main", Some("fix.yml"), None);
        check("fix.yml@refs/pull/2/head", Some("fix.yml"), Some(2));
        check("fix.yml@refs/heads/a@refs/pull/2/head", Some("fix.yml"), None);
        check("a@b.yml@refs/heads/main", Some("a@b.yml"), None);
        check("dynamic/github-code-scanning/codeql", None, None);
        check("../../x.yml", None, None);
        check("", None, None);
        check("@refs/heads/main", None, None);
    }
}
