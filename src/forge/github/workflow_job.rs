//! What GitHub's runner says of the job in variables, and those of Gitea and Forgejo, which use the same names. Nothing else
//! in the program reads them; a test counts.

use std::path::PathBuf;

use crate::base::lookup::Lookup;

/// The variables that hold a token which reaches the server, the first that is set.
pub const TOKENS: [&str; 2] = ["GITHUB_TOKEN", "GH_TOKEN"];

/// The variable that names the API, for a command that somebody is told to call elsewhere.
pub const API_URL: &str = "GITHUB_API_URL";

/// What a job is told of itself. Each part is absent where the variable is not set or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowJob {
    /// The address of the API.
    pub api_url: Option<String>,
    /// The address of the server's pages. One that is set and empty names no server, and nothing stands in for it.
    pub server_url: Option<String>,
    /// `OWNER/NAME` of the repository that the workflow runs for.
    pub repository: Option<String>,
    /// Its number, which stays when it is renamed.
    pub repository_id: Option<String>,
    /// The commit that set off the workflow; for a pull request, the one that merges it.
    pub sha: Option<String>,
    /// The branch or tag, as `refs/heads/main`.
    pub git_ref: Option<String>,
    /// The name of the branch that a pull request is for.
    pub base_ref: Option<String>,
    /// The number of the workflow's run, unique on the server.
    pub run_id: Option<String>,
    /// The number of the run among those of its workflow.
    pub run_number: Option<String>,
    /// How often the run was started, from 1.
    pub run_attempt: Option<String>,
    /// The event that set off the workflow.
    pub event_name: Option<String>,
    /// The file with the payload of the event.
    pub event_path: Option<PathBuf>,
    /// The workflow's file and where it was taken from, as `octo/project/.github/workflows/fix.yml@refs/heads/main`.
    pub workflow_ref: Option<String>,
    /// The workflow's name, or its file where it has none.
    pub workflow: Option<String>,
    /// The name of the job in the workflow's file.
    pub job: Option<String>,
    /// The directory that the repository is checked out in.
    pub workspace: Option<PathBuf>,
}

impl WorkflowJob {
    /// Reads the variables. Outside of a job some of them may be set by a user, who names a server in this way.
    pub fn read(env: Lookup<'_>) -> Self {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        Self {
            api_url: set(API_URL),
            server_url: env("GITHUB_SERVER_URL"),
            repository: set("GITHUB_REPOSITORY"),
            repository_id: set("GITHUB_REPOSITORY_ID"),
            sha: set("GITHUB_SHA"),
            git_ref: set("GITHUB_REF"),
            base_ref: set("GITHUB_BASE_REF"),
            run_id: set("GITHUB_RUN_ID"),
            run_number: set("GITHUB_RUN_NUMBER"),
            run_attempt: set("GITHUB_RUN_ATTEMPT"),
            event_name: set("GITHUB_EVENT_NAME"),
            event_path: set("GITHUB_EVENT_PATH").map(PathBuf::from),
            workflow_ref: set("GITHUB_WORKFLOW_REF"),
            workflow: set("GITHUB_WORKFLOW"),
            job: set("GITHUB_JOB"),
            workspace: set("GITHUB_WORKSPACE").map(PathBuf::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_empty_says_nothing() {
        let job = WorkflowJob::read(&|name: &str| match name {
            "GITHUB_REPOSITORY" => Some("octo/project".to_owned()),
            "GITHUB_SHA" => Some(String::new()),
            _ => None,
        });
        let expected = WorkflowJob { repository: Some("octo/project".to_owned()), ..WorkflowJob::default() };
        assert_eq!(job, expected);
    }
}
