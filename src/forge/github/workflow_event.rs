//! The event that set off a job: which commit and which pull request the run belongs to, and whether what is checked
//! out may come from a stranger. The payload says it; the environment alone would name the wrong commit.

use serde_json::Value;

use super::workflow_job::WorkflowJob;
use crate::base::lookup::Lookup;
use crate::files::read;

/// The largest payload that is read, in bytes. GitHub sends at most 25 MB ("Webhook events and payloads").
const MAX_PAYLOAD: u64 = 32 * read::MIB;

/// Events that people without write access can set off, and whose jobs have the secrets and the token of the
/// repository all the same.
const OPEN_TO_OUTSIDERS: &[&str] = &[
    "discussion",
    "discussion_comment",
    "fork",
    "gollum",
    "issue_comment",
    "issues",
    "pull_request_target",
    "watch",
    "workflow_run",
];

/// Further events that anybody can set off with a text, and whose jobs have no more than a stranger's own. The last three are
/// Gitea's names for a review.
const OPEN_TO_TEXTS: &[&str] = &[
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_comment",
    "pull_request_approved",
    "pull_request_rejected",
];

/// What a job knows about the event that set it off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowEvent {
    /// Its name; empty outside of a job.
    pub name: String,
    /// The commit that a status belongs to.
    pub sha: Option<String>,
    /// The commit before the change, where the event is about a change.
    pub base: Option<String>,
    /// The branch that the change is for, where the event is about one.
    pub base_branch: Option<String>,
    /// The pull request.
    pub pull_request: Option<u64>,
    /// The branch or tag on which a workflow can be dispatched that goes on with the work of this job.
    pub dispatch_ref: Option<String>,
    /// The commit that the runner chose: of the base, where outsiders can set off the event.
    chosen: Option<String>,
    /// The proposed commit, where the event is about one.
    head: Option<Head>,
}

/// A commit that somebody proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Head {
    sha: String,
    /// The repository that it comes from; unknown when that was deleted.
    repository: Option<String>,
    /// Whether that is another one than that of the job.
    is_foreign: bool,
}

impl WorkflowEvent {
    /// Reads the event of this job. What the payload does not tell is not guessed.
    pub fn read(env: Lookup<'_>) -> Self {
        let job = WorkflowJob::read(env);
        let payload = job.event_path.as_ref().and_then(|path| read::text(path, MAX_PAYLOAD).ok());
        Self::new(job, payload.as_deref())
    }

    /// Makes the event from what the job is told and the text of its payload.
    fn new(job: WorkflowJob, payload: Option<&str>) -> Self {
        let name = job.event_name.unwrap_or_default();
        let chosen = job.sha.filter(|sha| is_sha(sha));
        let payload = payload.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
        // Everything in the payload may be absent, and some of it is written by strangers.
        let seen = Payload(&payload);
        let own = job.repository.or_else(|| seen.text("/repository/full_name"));
        let known = job.git_ref.filter(|name| is_branch_or_tag(name));
        let head = |at: &str, repository: &str| {
            let repository = seen.text(repository);
            // A repository that was deleted is foreign: its code was never in this one.
            let is_foreign = repository.is_none() || !same(repository.as_deref(), own.as_deref());
            seen.sha(at).map(|sha| Head { sha, repository, is_foreign })
        };
        let event = Self { name, chosen: chosen.clone(), ..Self::default() };
        match event.name.as_str() {
            name if name.starts_with("pull_request") => {
                let head = head("/pull_request/head/sha", "/pull_request/head/repo/full_name");
                let branch = seen.text("/pull_request/head/ref").map(|branch| format!("refs/heads/{branch}"));
                let is_own = head.as_ref().is_some_and(|head| !head.is_foreign);
                Self {
                    sha: head.as_ref().map(|head| head.sha.clone()),
                    base: seen.sha("/pull_request/base/sha"),
                    base_branch: seen.text("/pull_request/base/ref"),
                    pull_request: seen.number("/pull_request/number"),
                    // `refs/pull/N/merge` cannot be dispatched on, the branch can. With `pull_request_target`, the
                    // workflow of the base branch runs, and continues there.
                    dispatch_ref: known.or_else(|| branch.filter(|_| is_own)),
                    head,
                    ..event
                }
            }
            "workflow_run" => {
                let head = head("/workflow_run/head_sha", "/workflow_run/head_repository/full_name");
                Self {
                    sha: head.as_ref().map(|head| head.sha.clone()),
                    base: seen.sha("/workflow_run/pull_requests/0/base/sha"),
                    pull_request: seen.number("/workflow_run/pull_requests/0/number"),
                    dispatch_ref: known,
                    head,
                    ..event
                }
            }
            "issue_comment" => {
                // Of an issue that is none, Gitea has `null` there.
                let is_of_pull_request =
                    seen.0.pointer("/issue/pull_request").is_some_and(|pull| !pull.is_null());
                Self {
                    // The runner's own commit is that of the default branch here.
                    sha: chosen,
                    pull_request: seen.number("/issue/number").filter(|_| is_of_pull_request),
                    dispatch_ref: known,
                    ..event
                }
            }
            "push" => Self { sha: chosen, base: seen.sha("/before"), dispatch_ref: known, ..event },
            "merge_group" => {
                let branch = seen.text("/merge_group/base_ref");
                let branch = branch.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned));
                Self {
                    sha: chosen,
                    base: seen.sha("/merge_group/base_sha"),
                    base_branch: branch,
                    dispatch_ref: known,
                    ..event
                }
            }
            _ => Self { sha: chosen, dispatch_ref: known, ..event },
        }
    }

    /// Returns why the checked-out commit may be a stranger's, if it may. Where only people with write access can set
    /// off the event, or its job has neither secrets nor a token that writes, there is nothing to ask.
    pub fn doubt(&self, checked_out: &str) -> Option<String> {
        let trusted = [&self.chosen, &self.base];
        // The commit that the runner chose is the base, and nobody but a writer can have changed
        // that.
        if !self.is_open_to_outsiders() || trusted.iter().any(|sha| sha.as_deref() == Some(checked_out)) {
            return None;
        }
        let head = self.head.as_ref().filter(|head| head.sha == checked_out);
        let short = short(checked_out);
        match head {
            Some(Head { is_foreign: false, .. }) => None,
            Some(Head { repository: Some(repository), .. }) => {
                Some(format!("{short} is checked out, which comes from the repository {repository}"))
            }
            Some(Head { repository: None, .. }) => {
                Some(format!("{short} is checked out, which comes from a repository that is gone"))
            }
            None => Some(format!(
                "{short} is checked out, which is not known to be a commit of this repository's own branches"
            )),
        }
    }

    /// Returns the commit of the repository's own that this job stands on: that of its branch where outsiders can set off the
    /// event, and else the one before the change.
    pub fn own_commit(&self) -> Option<&str> {
        let chosen = self.chosen.as_ref().filter(|_| self.is_open_to_outsiders());
        chosen.or(self.base.as_ref()).map(String::as_str)
    }

    /// Tells whether people without write access can set off a job that has secrets, or a token that writes.
    pub fn is_open_to_outsiders(&self) -> bool {
        OPEN_TO_OUTSIDERS.contains(&self.name.as_str())
    }

    /// Tells whether strangers may have written what a job reads: titles, comments, names of branches, the code
    /// itself. In doubt, they have.
    pub fn has_texts_of_strangers(&self) -> bool {
        // Where nothing says whose the head is, it is a stranger's.
        let is_of_fork = || self.head.as_ref().is_none_or(|head| head.is_foreign);
        self.is_open_to_outsiders()
            || OPEN_TO_TEXTS.contains(&self.name.as_str())
            || (self.name.starts_with("pull_request") && is_of_fork())
    }
}

/// Returns the name of the workflow's file that a job is of, if the environment says it.
pub fn workflow_file(env: Lookup<'_>) -> Option<String> {
    let named = WorkflowJob::read(env).workflow_ref?;
    let (file, _) = named.split_once('@')?;
    file.rsplit('/').next().filter(|file| !file.is_empty()).map(str::to_owned)
}

/// Returns the beginning of the name of a commit, as people know it.
pub fn short(sha: &str) -> &str {
    sha.get(..7).unwrap_or(sha)
}

/// Tells whether a text is the full name of a commit. It becomes part of an address, so nothing else will do.
pub fn is_sha(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        // A push that deletes a branch has zeros in the place of a commit.
        && text.bytes().any(|byte| byte != b'0')
}

fn is_branch_or_tag(name: &str) -> bool {
    name.starts_with("refs/heads/") || name.starts_with("refs/tags/")
}

/// Names of repositories are the same in any case.
fn same(one: Option<&str>, other: Option<&str>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
}

/// A payload that may hold anything, or nothing.
struct Payload<'p>(&'p Value);

impl Payload<'_> {
    fn text(&self, at: &str) -> Option<String> {
        self.0.pointer(at)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    fn sha(&self, at: &str) -> Option<String> {
        self.text(at).filter(|text| is_sha(text))
    }

    fn number(&self, at: &str) -> Option<u64> {
        self.0.pointer(at)?.as_u64()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CHOSEN: &str = "1111111111111111111111111111111111111111";
    const HEAD: &str = "2222222222222222222222222222222222222222";
    const BASE: &str = "3333333333333333333333333333333333333333";
    const OTHER: &str = "4444444444444444444444444444444444444444";

    fn event(name: &str, git_ref: &str, payload: Option<&str>) -> WorkflowEvent {
        let env = |variable: &str| match variable {
            "GITHUB_EVENT_NAME" => Some(name.to_owned()),
            "GITHUB_SHA" => Some(CHOSEN.to_owned()),
            "GITHUB_REF" => Some(git_ref.to_owned()),
            "GITHUB_REPOSITORY" => Some("Octo/Project".to_owned()),
            _ => None,
        };
        WorkflowEvent::new(WorkflowJob::read(&env), payload)
    }

    /// What is said of an event: commit, base, pull request, where to dispatch.
    #[track_caller]
    fn check(
        (name, git_ref): (&str, &str),
        payload: &Value,
        expected: (Option<&str>, Option<&str>, Option<u64>, Option<&str>),
    ) -> WorkflowEvent {
        let event = event(name, git_ref, Some(&payload.to_string()));
        let found =
            (event.sha.as_deref(), event.base.as_deref(), event.pull_request, event.dispatch_ref.as_deref());
        assert_eq!(found, expected, "{name}");
        event
    }

    fn pull_request(repository: &Value) -> Value {
        json!({
            "action": "synchronize",
            "number": 7,
            "pull_request": {
                "number": 7,
                "head": {"ref": "fix", "sha": HEAD, "repo": repository},
                "base": {"ref": "main", "sha": BASE, "repo": {"full_name": "octo/project"}},
                "merge_commit_sha": CHOSEN,
            },
            "repository": {"full_name": "octo/project"},
        })
    }

    fn workflow_run(repository: &str) -> Value {
        json!({
            "action": "completed",
            "workflow_run": {
                "id": 99,
                "head_branch": "fix",
                "head_sha": HEAD,
                "event": "pull_request",
                "head_repository": {"full_name": repository},
                "repository": {"full_name": "octo/project"},
                "pull_requests": if repository == "octo/project" {
                    json!([{"number": 7, "head": {"sha": HEAD}, "base": {"ref": "main", "sha": BASE}}])
                } else {
                    json!([])
                },
            },
            "repository": {"full_name": "octo/project"},
        })
    }

    #[test]
    fn a_status_belongs_to_the_commit_that_people_look_at() {
        let main = "refs/heads/main";
        let push = json!({"ref": main, "before": BASE, "after": CHOSEN, "created": false});
        check(("push", main), &push, (Some(CHOSEN), Some(BASE), None, Some(main)));
        let new = json!({"ref": "refs/tags/v1", "before": "0".repeat(40), "after": CHOSEN, "created": true});
        check(("push", "refs/tags/v1"), &new, (Some(CHOSEN), None, None, Some("refs/tags/v1")));

        let (own, fork) =
            (json!({"full_name": "octo/project", "fork": false}), json!({"full_name": "mallory/project"}));
        let merge = "refs/pull/7/merge";
        let of_head = |branch| (Some(HEAD), Some(BASE), Some(7), branch);
        check(("pull_request", merge), &pull_request(&own), of_head(Some("refs/heads/fix")));
        check(("pull_request", merge), &pull_request(&fork), of_head(None));
        check(("pull_request_review", merge), &pull_request(&own), of_head(Some("refs/heads/fix")));
        check(("pull_request_target", main), &pull_request(&fork), of_head(Some(main)));
        check(("pull_request_target", main), &pull_request(&own), of_head(Some(main)));
        check(("pull_request_target", main), &pull_request(&Value::Null), of_head(Some(main)));

        check(("workflow_run", main), &workflow_run("octo/project"), of_head(Some(main)));
        let of_fork = (Some(HEAD), None, None, Some(main));
        check(("workflow_run", main), &workflow_run("mallory/project"), of_fork);

        let comment =
            |issue: Value| json!({"action": "created", "issue": issue, "comment": {"body": "/fix"}});
        let on_pull_request = comment(json!({"number": 7, "pull_request": {"url": "https://api/pulls/7"}}));
        check(("issue_comment", main), &on_pull_request, (Some(CHOSEN), None, Some(7), Some(main)));
        for on_issue in [json!({"number": 8}), json!({"number": 8, "pull_request": null})] {
            check(("issue_comment", main), &comment(on_issue), (Some(CHOSEN), None, None, Some(main)));
        }

        let of_chosen = (Some(CHOSEN), None, None, Some(main));
        check(("schedule", main), &json!({"schedule": "0 3 * * *"}), of_chosen);
        check(("workflow_dispatch", main), &json!({"inputs": {"sha": HEAD}, "ref": main}), of_chosen);
        let queue = "refs/heads/gh-readonly-queue/main/pr-7-3333";
        let group =
            json!({"action": "checks_requested", "merge_group": {"head_sha": CHOSEN, "base_sha": BASE}});
        check(("merge_group", queue), &group, (Some(CHOSEN), Some(BASE), None, Some(queue)));
    }

    #[test]
    fn what_the_payload_does_not_tell_is_not_guessed() {
        let odd = [None, Some(""), Some("{"), Some("[]"), Some("null"), Some(r#"{"pull_request": 3}"#)];
        for payload in odd {
            for name in ["pull_request", "pull_request_target", "workflow_run"] {
                let found = event(name, "refs/pull/7/merge", payload);
                assert_eq!((found.sha, found.base, found.pull_request), (None, None, None), "{payload:?}");
                assert_eq!(found.dispatch_ref, None);
            }
            assert_eq!(event("push", "refs/heads/main", payload).sha.as_deref(), Some(CHOSEN));
        }
        let hostile = json!({"pull_request": {"head": {"sha": "../../../user"}, "number": -1}}).to_string();
        assert_eq!(event("pull_request", "", Some(&hostile)).sha, None);
        assert_eq!(WorkflowEvent::new(WorkflowJob::default(), None), WorkflowEvent::default());
        let gone = |name: &str| (name == "GITHUB_EVENT_PATH").then(|| "/nowhere/event.json".to_owned());
        assert_eq!(WorkflowEvent::read(&gone), WorkflowEvent::default());
    }

    #[test]
    fn the_payload_is_read_from_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), workflow_run("octo/project").to_string()).unwrap();
        let path = file.path().to_string_lossy().into_owned();
        let read = WorkflowEvent::read(&|name| match name {
            "GITHUB_EVENT_NAME" => Some("workflow_run".to_owned()),
            "GITHUB_EVENT_PATH" => Some(path.clone()),
            _ => None,
        });
        assert_eq!(read.sha.as_deref(), Some(HEAD));
    }

    #[track_caller]
    fn doubted(name: &str, payload: &Value, checked_out: &str, expected: Option<&str>) {
        let doubt = event(name, "refs/heads/main", Some(&payload.to_string())).doubt(checked_out);
        match (&doubt, expected) {
            (Some(doubt), Some(expected)) => assert!(doubt.contains(expected), "{doubt}"),
            _ => assert_eq!(doubt.as_deref(), expected, "{name} {checked_out}"),
        }
    }

    #[test]
    fn only_the_repositorys_own_commits_are_trusted_where_outsiders_set_off_the_job() {
        let (own, fork) = (json!({"full_name": "octo/project"}), json!({"full_name": "mallory/project"}));
        let from_fork = pull_request(&fork);
        doubted("pull_request_target", &from_fork, CHOSEN, None);
        doubted("pull_request_target", &from_fork, BASE, None);
        doubted("pull_request_target", &from_fork, HEAD, Some("the repository mallory/project"));
        doubted("pull_request_target", &from_fork, OTHER, Some("not known"));
        doubted("pull_request_target", &pull_request(&Value::Null), HEAD, Some("a repository that is gone"));
        doubted("pull_request_target", &pull_request(&own), HEAD, None);
        doubted("pull_request_target", &json!({}), HEAD, Some("not known"));

        doubted("workflow_run", &workflow_run("mallory/project"), CHOSEN, None);
        doubted("workflow_run", &workflow_run("mallory/project"), HEAD, Some("mallory/project"));
        doubted("workflow_run", &workflow_run("octo/project"), HEAD, None);
        for name in ["issue_comment", "issues", "discussion", "discussion_comment", "fork", "watch", "gollum"]
        {
            doubted(name, &json!({}), CHOSEN, None);
            doubted(name, &json!({}), HEAD, Some("not known"));
        }

        for name in ["push", "pull_request", "schedule", "workflow_dispatch", "merge_group", ""] {
            doubted(name, &from_fork, HEAD, None);
        }
    }

    #[test]
    fn whatever_is_about_a_pull_request_from_a_fork_has_texts_of_strangers() {
        let (own, fork) = (json!({"full_name": "octo/project"}), json!({"full_name": "mallory/project"}));
        let has = |name: &str, payload: &Value| {
            event(name, "refs/pull/7/merge", Some(&payload.to_string())).has_texts_of_strangers()
        };
        for name in ["pull_request", "pull_request_sync"] {
            assert!(has(name, &pull_request(&fork)) && has(name, &json!({})), "{name}");
            assert!(!has(name, &pull_request(&own)), "{name}");
        }
        for name in ["pull_request_review", "pull_request_approved", "pull_request_rejected"] {
            assert!(has(name, &pull_request(&own)), "{name}");
        }
        assert!(!has("push", &pull_request(&fork)));
    }
}
