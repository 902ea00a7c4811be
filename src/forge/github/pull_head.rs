//! The pull request that a job is about, with the branch that it would be changed by. The event names it, but for pull
//! requests from forks: of those it names a commit, and the server is asked.

use serde::Deserialize;

use super::api::{Api, ApiError};
use super::other_run::OtherRun;
use super::repository::RepositoryName;
use super::workflow_event::WorkflowEvent;
use crate::base::lookup::Lookup;
use crate::base::object::ObjectId;
use crate::base::text::one_line;
use crate::forge::forge_trait::{ForgeError, ForgeErrorKind, PullState};
use crate::forge::names::BranchName;

/// The permission that reading needs.
const NEEDS: &str = "pull-requests: read";

/// A pull request, and what it proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullHead {
    /// Its number.
    pub number: u64,
    /// Its page.
    pub url: String,
    /// The branch that it proposes, in its own repository.
    pub branch: BranchName,
    /// The newest commit of that branch.
    pub sha: ObjectId,
    /// The repository of that branch; nothing where it was deleted.
    pub repository: Option<String>,
    /// Whether that is another one than ours, which is never written to.
    pub is_foreign: bool,
    /// The branch that it is to be merged into.
    pub base: BranchName,
    /// How it stands.
    pub state: PullState,
    /// Whether it is a draft.
    pub is_draft: bool,
    /// Whether nobody may say anything about it any more.
    pub is_locked: bool,
}

#[derive(Deserialize)]
struct PullReply {
    number: u64,
    html_url: String,
    state: String,
    head: PullBranch,
    base: PullBranch,
    merged_at: Option<String>,
    #[serde(default)]
    draft: bool,
    // Gitea's name for it.
    #[serde(default, alias = "is_locked")]
    locked: bool,
}

#[derive(Deserialize)]
struct PullBranch {
    r#ref: BranchName,
    sha: ObjectId,
    repo: Option<NamedRepository>,
}

#[derive(Deserialize)]
struct NamedRepository {
    full_name: String,
}

impl PullHead {
    fn new(raw: PullReply, ours: &RepositoryName) -> Self {
        let repository = raw.head.repo.map(|repo| repo.full_name);
        // Names of repositories are the same in any case.
        let is_ours = |name: &String| name.eq_ignore_ascii_case(&ours.to_string());
        let state = match raw.state.as_str() {
            "open" => PullState::Open,
            _ if raw.merged_at.is_some() => PullState::Merged,
            _ => PullState::Closed,
        };
        Self {
            number: raw.number,
            url: raw.html_url,
            branch: raw.head.r#ref,
            sha: raw.head.sha,
            // One that is gone is another one: nothing is pushed to it.
            is_foreign: !repository.as_ref().is_some_and(is_ours),
            repository,
            base: raw.base.r#ref,
            state,
            is_draft: raw.draft,
            is_locked: raw.locked,
        }
    }

    /// Asks the server for a pull request.
    ///
    /// # Errors
    /// There is none of this number, or the token may not read it.
    pub fn get(api: &Api, repository: &RepositoryName, number: u64) -> Result<Self, ApiError> {
        let raw = api.get(&repository.path(&format!("/pulls/{number}")), &[]);
        raw.map(|raw| Self::new(raw, repository)).map_err(|error| error.needing(NEEDS))
    }

    /// Returns the pull request of this job: the one that the event names, or whose head the run of a workflow had.
    ///
    /// # Errors
    /// The event is about none, or about several; or the server does not answer.
    pub fn find(env: Lookup<'_>, api: &Api, repository: &RepositoryName) -> Result<Self, ForgeError> {
        if let Some(run) = OtherRun::of_event(env) {
            return Self::of_run(&run, api, repository);
        }
        let event = WorkflowEvent::read(env);
        match event.pull_request {
            Some(number) => Ok(Self::get(api, repository, number)?),
            None if event.name.is_empty() => Err(declined("this is not a pull request job")),
            None => Err(declined(format!(
                "this job is about no pull request: its event is `{}`",
                one_line(&event.name, 60)
            ))),
        }
    }

    /// Returns the one open pull request whose head the run of a workflow had.
    ///
    /// # Errors
    /// There is none, or there are several; or the server does not answer.
    pub fn of_run(run: &OtherRun, api: &Api, repository: &RepositoryName) -> Result<Self, ForgeError> {
        let Some(theirs) = run.head_repository() else {
            return Err(declined("the repository of the run's code is gone, and with it the pull request"));
        };
        let pulls = run.open_pulls::<PullReply>(api, repository).map_err(|error| error.needing(NEEDS))?;
        let of = format!("the commit {} of {}", run.head_sha, one_line(theirs, 100));
        let is_from = |pull: &Self| {
            pull.repository.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(theirs))
                && pull.state == PullState::Open
        };
        let mut of_branch =
            pulls.into_iter().map(|raw| Self::new(raw, repository)).filter(is_from).peekable();
        let is_there = of_branch.peek().is_some();
        // The branch may have moved since that run, and then the fix is for something else.
        let mut found: Vec<Self> = of_branch.filter(|pull| pull.sha.as_str() == run.head_sha).collect();
        match (found.pop(), found.as_slice()) {
            (Some(one), []) => Ok(one),
            (Some(one), others) => {
                let mut numbers: Vec<u64> = others.iter().chain([&one]).map(|pull| pull.number).collect();
                numbers.sort_unstable();
                let numbers: Vec<String> = numbers.iter().map(|number| format!("#{number}")).collect();
                Err(declined(format!(
                    "several open pull requests have {of} as their head: {}",
                    numbers.join(", ")
                )))
            }
            (None, _) if is_there => {
                Err(declined(format!("the pull request has new commits: its head is not {of} any more")))
            }
            (None, _) => Err(declined(format!("no open pull request has {of} as its head"))),
        }
    }
}

fn declined(message: impl Into<String>) -> ForgeError {
    ForgeError::new(ForgeErrorKind::Declined, message)
}

impl From<ApiError> for ForgeError {
    fn from(error: ApiError) -> Self {
        let kind = if error.is_unavailable() { ForgeErrorKind::Unavailable } else { ForgeErrorKind::Failed };
        let made = Self::new(kind, error.to_string());
        match error.help() {
            Some(help) => made.with_help(help),
            None => made,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wiremock::matchers::{method, path, query_param};
    use wiremock::{Mock, ResponseTemplate};

    use super::super::http::Transport;
    use super::super::testing::{Pauses, TestServer};
    use super::*;

    const HEAD: &str = "2222222222222222222222222222222222222222";
    const OTHER: &str = "4444444444444444444444444444444444444444";

    fn pull(number: u64, sha: &str, repository: &str) -> Value {
        json!({
            "number": number,
            "html_url": format!("https://github.com/octo/project/pull/{number}"),
            "state": "open",
            "draft": false,
            "locked": false,
            "merged_at": null,
            "head": {"ref": "fix", "sha": sha, "repo": {"full_name": repository}},
            "base": {"ref": "main", "sha": OTHER, "repo": {"full_name": "octo/project"}},
        })
    }

    fn run(repository: &Value) -> Value {
        json!({
            "id": 99,
            "head_sha": HEAD,
            "head_branch": "fix",
            "conclusion": "success",
            "html_url": "https://github.com/octo/project/actions/runs/99",
            "head_repository": repository,
            "pull_requests": [],
        })
    }

    fn of_mallory() -> Value {
        json!({"full_name": "mallory/project"})
    }

    /// Finds the pull request of an event, with a server that has these.
    fn found(name: &str, payload: &Value, pulls: &[Value]) -> Result<PullHead, ForgeError> {
        let server = TestServer::start();
        server.mount(
            Mock::given(method("GET"))
                .and(path("/repos/octo/project/pulls"))
                .and(query_param("state", "open"))
                .and(query_param("head", "mallory:fix"))
                .respond_with(ResponseTemplate::new(200).set_body_json(pulls)),
        );
        for pull in pulls {
            server.mount(
                Mock::given(method("GET"))
                    .and(path(format!("/repos/octo/project/pulls/{}", pull["number"])))
                    .respond_with(ResponseTemplate::new(200).set_body_json(pull)),
            );
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), payload.to_string()).unwrap();
        let event = file.path().to_string_lossy().into_owned();
        let env = |variable: &str| match variable {
            "GITHUB_EVENT_NAME" => Some(name.to_owned()),
            "GITHUB_EVENT_PATH" => Some(event.clone()),
            "GITHUB_REPOSITORY" => Some("octo/project".to_owned()),
            _ => None,
        };
        let api = Api::new(&server.address(), None, Transport::default().pause(Pauses::none().pause()));
        PullHead::find(&env, &api, &RepositoryName::parse("octo/project").unwrap())
    }

    #[test]
    fn the_pull_request_of_an_event_is_looked_up() {
        let payload = json!({"pull_request": {"number": 7}});
        let pulls = [pull(7, HEAD, "Octo/Project")];
        let found = |name: &str, payload: &Value| found(name, payload, &pulls).unwrap();
        let seen = found("pull_request", &payload);
        assert_eq!((seen.number, seen.branch.as_str(), seen.base.as_str()), (7, "fix", "main"));
        assert_eq!((seen.sha.as_str(), seen.is_foreign, seen.state), (HEAD, false, PullState::Open));
        assert_eq!(found("pull_request_target", &payload).number, 7);
        let comment = json!({"issue": {"number": 7, "pull_request": {"url": "x"}}});
        assert_eq!(found("issue_comment", &comment).number, 7);
    }

    #[test]
    fn how_it_stands_is_told() {
        let with = |key: &str, value: Value| {
            let mut pull = pull(7, HEAD, "mallory/project");
            pull[key] = value;
            found("pull_request", &json!({"pull_request": {"number": 7}}), &[pull]).unwrap()
        };
        assert!(with("number", json!(7)).is_foreign);
        assert!(with("draft", json!(true)).is_draft);
        assert!(with("locked", json!(true)).is_locked);
        assert_eq!(with("state", json!("closed")).state, PullState::Closed);
        let gone = with("head", json!({"ref": "fix", "sha": HEAD, "repo": null}));
        assert_eq!((gone.repository, gone.is_foreign), (None, true));
    }

    #[test]
    fn the_pull_request_of_a_fork_is_the_one_open_one_of_that_commit_and_repository() {
        let event = json!({"workflow_run": run(&of_mallory())});
        let find = |pulls: &[Value]| found("workflow_run", &event, pulls);
        let says = |pulls: &[Value], text: &str| {
            let error = find(pulls).unwrap_err();
            assert_eq!(error.kind, ForgeErrorKind::Declined);
            assert!(error.message.contains(text), "{}", error.message);
        };
        let ours = pull(7, HEAD, "mallory/project");
        assert_eq!(find(std::slice::from_ref(&ours)).unwrap().number, 7);
        let others = [pull(8, HEAD, "eve/project"), pull(9, OTHER, "mallory/project")];
        assert_eq!(find(&[others[0].clone(), ours.clone(), others[1].clone()]).unwrap().number, 7);
        says(&[], "no open pull request has the commit 2222");
        says(&others[..1], "no open pull request");
        says(&others[1..], "new commits");
        says(&[pull(12, HEAD, "mallory/project"), ours], "#7, #12");
        let gone = found("workflow_run", &json!({"workflow_run": run(&Value::Null)}), &[]).unwrap_err();
        assert!(gone.message.contains("gone"), "{}", gone.message);
    }

    #[test]
    fn a_job_of_no_pull_request_says_so() {
        let said = found("push", &json!({}), &[]).unwrap_err();
        assert_eq!(said.kind, ForgeErrorKind::Declined);
        assert!(said.message.contains("`push`"), "{}", said.message);
        let missing = found("pull_request", &json!({"pull_request": {"number": 3}}), &[]).unwrap_err();
        assert_eq!(missing.kind, ForgeErrorKind::Failed);
    }
}
