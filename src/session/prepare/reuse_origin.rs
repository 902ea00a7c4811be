//! Tells where a run is made, as far as it decides whose records it may take, and whether strangers have set it off.

use std::path::Path;
use std::thread::JoinHandle;

use crate::ci::strangers::why_nobody_is_asked;
use crate::context::Session;
use crate::files::gitdir;
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::git::call::Call;
use crate::git::runner::Git;
use crate::process::address::without_credential;
use crate::reuse::origin::{OriginEvent, RunOrigin};

/// Variables by which CI systems name the repository, each in its own way.
const REPOSITORIES: [&str; 8] = [
    "CI_PROJECT_URL",
    "BUILDKITE_REPO",
    "CIRCLE_REPOSITORY_URL",
    "BUILD_REPOSITORY_URI",
    "BITBUCKET_GIT_HTTP_ORIGIN",
    "TRAVIS_REPO_SLUG",
    "DRONE_REPO_LINK",
    "GIT_URL",
];

/// A question about where a run is made, which may be answered while something else is done.
pub(crate) struct OriginQuestion {
    event: OriginEvent,
    branch: Option<String>,
    repository: AskedRepository,
}

/// What a repository is known by.
enum AskedRepository {
    /// The name that the CI system has for it.
    Named(String),
    /// Its first commit, for which git is asked meanwhile.
    FirstCommit(JoinHandle<Option<String>>),
}

impl OriginQuestion {
    /// Begins to find out where a run is made.
    pub(crate) fn ask(in_ci: bool, git: &Git, root: &Path, session: &Session<'_>) -> Self {
        let env = &session.env.lookup();
        let job = WorkflowJob::read(env);
        let (event, branch) = if in_ci { of_job(&job, session) } else { (OriginEvent::Local, None) };
        let of_github = || Some(format!("{}/{}", job.server_url.as_deref()?, job.repository.as_deref()?));
        let named = if in_ci { of_github().or_else(|| of_others(env)) } else { None };
        let repository = named.map_or_else(
            || {
                let (git, root) = (git.clone(), root.to_owned());
                AskedRepository::FirstCommit(std::thread::spawn(move || first_commit(&git, &root)))
            },
            AskedRepository::Named,
        );
        Self { event, branch, repository }
    }

    /// Waits for the answer; nothing where the repository is unknown.
    pub(crate) fn answer(self) -> Option<RunOrigin> {
        let Self { event, branch, repository } = self;
        let repository = match repository {
            AskedRepository::Named(name) => name,
            AskedRepository::FirstCommit(thread) => thread.join().expect("calling git does not panic")?,
        };
        Some(RunOrigin { repository, event, branch })
    }
}

/// Says why a run keeps nothing, where strangers may have set it off.
pub(crate) fn strangers(session: &Session<'_>) -> Option<String> {
    let env = &session.env.lookup();
    why_nobody_is_asked(env).map(|_| "strangers may have set off this job".to_owned())
}

fn of_job(job: &WorkflowJob, session: &Session<'_>) -> (OriginEvent, Option<String>) {
    if let Some(name) = &job.event_name {
        let event = match name.as_str() {
            "push" => OriginEvent::Push,
            "merge_group" => OriginEvent::MergeGroup,
            "schedule" => OriginEvent::Schedule,
            "workflow_dispatch" | "repository_dispatch" => OriginEvent::Dispatch,
            name if name.starts_with("pull_request") => OriginEvent::PullRequest,
            _ => OriginEvent::Other,
        };
        let request = WorkflowEvent::read(&session.env.lookup()).pull_request;
        let branch = if event == OriginEvent::PullRequest {
            request.map(|number| format!("#{number}"))
        } else {
            job.git_ref.clone()
        };
        return (event, branch);
    }
    let get = |name: &str| session.env.get(name).map(str::to_owned);
    match get("CI_PIPELINE_SOURCE").as_deref() {
        Some("push") => (OriginEvent::Push, get("CI_COMMIT_BRANCH")),
        Some("schedule") => (OriginEvent::Schedule, get("CI_COMMIT_BRANCH")),
        Some("web" | "api" | "trigger") => (OriginEvent::Dispatch, get("CI_COMMIT_BRANCH")),
        Some("merge_request_event")
            if get("CI_MERGE_REQUEST_EVENT_TYPE").as_deref() == Some("merge_train") =>
        {
            (OriginEvent::MergeGroup, None)
        }
        Some("merge_request_event") => {
            (OriginEvent::PullRequest, get("CI_MERGE_REQUEST_IID").map(|number| format!("!{number}")))
        }
        Some(_) | None => (OriginEvent::Other, None),
    }
}

/// Returns how a CI system other than GitHub names the repository.
fn of_others(env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    REPOSITORIES.iter().find_map(|name| env(name)).map(|address| without_credential(&address))
}

/// Returns the first commit of the history, by which a repository is known wherever it lies; nothing in a shallow clone,
/// which does not have it.
fn first_commit(git: &Git, root: &Path) -> Option<String> {
    // As git tells: the file is there as long as the clone lacks some of the history.
    if gitdir::around(root)?.shared.join("shallow").symlink_metadata().is_ok() {
        return None;
    }
    let roots = Call::new("rev-list").with(&["--max-parents=0", "--first-parent"]).revision("HEAD");
    let first = git.line(&roots).ok()?;
    Some(first.lines().last()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_named_by_all_of_its_address_but_the_credential() {
        for (address, named) in [
            ("https://x.org/o/r", "https://x.org/o/r"),
            ("https://me:geheim@x.org/o/r", "https://x.org/o/r"),
            ("https://me:ge@heim@x.org/o/r", "https://x.org/o/r"),
            ("https://x.org/o@2/r", "https://x.org/o@2/r"),
            ("https://me:geheim@x.org/o@2/r", "https://x.org/o@2/r"),
            ("git@x.org:o/r", "git@x.org:o/r"),
        ] {
            let env = |name: &str| (name == "BUILDKITE_REPO").then(|| address.to_owned());
            assert_eq!(of_others(&env).as_deref(), Some(named));
        }
    }
}
