//! Whose code the run of a workflow ran: that of the repository, or a stranger's. GitHub says it of every run. Gitea and
//! Forgejo do not, and there the event and the pull request tell.

use serde::Deserialize;

use super::api::{Api, ApiError};
use super::github_server::Flavour;
use super::repository::RepositoryName;
use super::workflow_run::{HeadRepository, Id, WorkflowRun};
use crate::people::ruling::PullFacts;

/// Whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOrigin {
    /// The code of this repository.
    Own,
    /// The code of another one, be it a fork.
    Foreign,
    /// The server does not say.
    Unknown,
}

impl CodeOrigin {
    fn of(repository: Option<u64>, own: u64) -> Self {
        if repository == Some(own) { Self::Own } else { Self::Foreign }
    }
}

#[derive(Deserialize)]
struct ProposedBranch {
    head: BranchSide,
}

#[derive(Deserialize)]
struct BranchSide {
    #[serde(default, rename = "ref")]
    name: String,
    repo: Option<Id>,
}

/// Tells by the name of the proposed branch whether there is none: on Gitea, whoever may read a repository can push to
/// `refs/for/…` of it, and the pull request that this makes names the repository itself as its head.
pub(super) fn is_pushed_for_review(branch: &str) -> bool {
    branch.is_empty() || branch.starts_with("refs/")
}

/// Finds out whose code a run ran. `own` is the id of the repository, where it is known from elsewhere than the run, and
/// `known` a pull request that was asked about already.
///
/// # Errors
/// The server does not answer what it is asked about a pull request.
pub(crate) fn of_run(
    api: &Api,
    repository: &RepositoryName,
    own: Option<u64>,
    run: &WorkflowRun,
    known: Option<&PullFacts>,
) -> Result<CodeOrigin, ApiError> {
    let of_run = run.repository.map(|of| of.id);
    let Some(own) = own.or(of_run) else { return Ok(CodeOrigin::Unknown) };
    match run.head_repository {
        HeadRepository::Is(head) => return Ok(CodeOrigin::of(Some(head), own)),
        HeadRepository::Gone => return Ok(CodeOrigin::Foreign),
        HeadRepository::Untold => {}
    }
    // GitHub always says it, so an answer without it cannot be relied on.
    if api.server().flavour() == Flavour::Github {
        return Ok(CodeOrigin::Unknown);
    }
    match (run.event.as_deref(), run.pull_request()) {
        // Only people who may write to the repository set these off, and what they run is in it.
        (Some("push" | "schedule" | "workflow_dispatch"), _) => Ok(CodeOrigin::of(of_run.or(Some(own)), own)),
        (Some("pull_request" | "pull_request_sync"), Some(number)) => {
            if let Some(known) = known.filter(|known| known.number == number) {
                return Ok(if known.is_of_fork { CodeOrigin::Foreign } else { CodeOrigin::Own });
            }
            let pull: ProposedBranch = api.get(&repository.path(&format!("/pulls/{number}")), &[])?;
            Ok(if is_pushed_for_review(&pull.head.name) {
                CodeOrigin::Foreign
            } else {
                CodeOrigin::of(pull.head.repo.map(|repo| repo.id), own)
            })
        }
        // Whatever else set a run off, strangers may have.
        (_, _) => Ok(CodeOrigin::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::http::Transport;
    use super::*;

    /// GitHub answers with the repository of the code, and an answer without it is not completed by guesses.
    #[test]
    fn what_github_does_not_say_is_unknown() {
        let api = Api::new("http://127.0.0.1:9", None, Transport::default());
        let repository = RepositoryName::parse("o/r").unwrap();
        for (told, expected) in [
            (json!({}), CodeOrigin::Unknown),
            (json!({"head_repository": null}), CodeOrigin::Foreign),
            (json!({"head_repository": {"id": 2}}), CodeOrigin::Foreign),
            (json!({"head_repository": {"id": 1}}), CodeOrigin::Own),
        ] {
            let mut run =
                json!({"event": "push", "path": ".github/workflows/a.yml", "repository": {"id": 1}});
            run.as_object_mut().unwrap().extend(told.as_object().unwrap().clone());
            let run: WorkflowRun = serde_json::from_value(run).unwrap();
            assert_eq!(of_run(&api, &repository, None, &run, None), Ok(expected), "{told}");
        }
        let nameless: WorkflowRun = serde_json::from_value(json!({"head_repository": {"id": 1}})).unwrap();
        assert_eq!(of_run(&api, &repository, None, &nameless, None), Ok(CodeOrigin::Unknown));
    }
}
