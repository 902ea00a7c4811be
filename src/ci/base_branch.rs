//! The branch that a fix is for, where nobody names it: that of the pull request, or of the run. A tag is not a branch.

use crate::base::explanation::Explanation;
use crate::base::lookup::Lookup;
use crate::base::text::one_line;
use crate::forge::github::other_run::OtherRun;
use crate::forge::github::workflow_event::WorkflowEvent;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::forge::names::BranchName;

/// Where the branch stands.
#[derive(Clone, Debug)]
pub enum DefaultBase {
    /// The environment names it.
    Branch(BranchName),
    /// It is the base of this pull request, which the server knows.
    OfPull(u64),
    /// It is the base of the pull request whose head this run had.
    OfRun(Box<OtherRun>),
    /// Nothing says it: this is not a job that is known.
    Unknown,
}

/// Returns the branch that a fix of this job is for.
///
/// # Errors
/// The job is of a tag, or of something else that has no branch.
pub fn default_base(env: Lookup<'_>) -> Result<DefaultBase, Explanation> {
    let given = |name: &str| env(name).filter(|value| !value.is_empty());
    // First, since a GitLab job has variables that no other system sets, and none of GitHub's.
    if given("GITLAB_CI").is_some() {
        let named = given("CI_MERGE_REQUEST_TARGET_BRANCH_NAME").or_else(|| given("CI_COMMIT_BRANCH"));
        return match (named, given("CI_COMMIT_TAG")) {
            (Some(name), _) => branch(&name),
            (None, Some(tag)) => Err(Explanation::new(of_tag(&tag))),
            (None, None) => Ok(DefaultBase::Unknown),
        };
    }
    let (job, event) = (WorkflowJob::read(env), WorkflowEvent::read(env));
    // A job of `workflow_run` runs on the default branch, and is about the branch of the other run.
    if let Some(run) = OtherRun::of_event(env) {
        return match run.own_branch(env) {
            Some(name) => branch(name),
            None => Ok(DefaultBase::OfRun(Box::new(run))),
        };
    }
    if let Some(name) = event.base_branch.clone().or(job.base_ref) {
        return branch(&name);
    }
    if let Some(number) = event.pull_request {
        return Ok(DefaultBase::OfPull(number));
    }
    let Some(name) = job.git_ref else { return Ok(DefaultBase::Unknown) };
    match (name.strip_prefix("refs/heads/"), name.strip_prefix("refs/tags/")) {
        (Some(name), _) => branch(name),
        (None, Some(tag)) => Err(Explanation::new(of_tag(tag))),
        (None, None) => {
            Err(Explanation::new(format!("`{}` is not the name of a branch", one_line(&name, 100))))
        }
    }
}

fn branch(name: &str) -> Result<DefaultBase, Explanation> {
    let parsed = BranchName::parse(name);
    parsed
        .map(DefaultBase::Branch)
        .map_err(|error| Explanation::new(format!("`{}`: {error}", one_line(name, 100))))
}

fn of_tag(tag: &str) -> String {
    format!("this job is of the tag `{}`, which no fix can be delivered to", one_line(tag, 100))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SHA: &str = "2222222222222222222222222222222222222222";

    fn said(more: &[(&str, &str)], payload: &Value) -> Result<DefaultBase, Explanation> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), payload.to_string()).unwrap();
        let path = file.path().to_string_lossy().into_owned();
        let env = |name: &str| match name {
            "GITHUB_EVENT_PATH" => Some(path.clone()),
            "GITHUB_REPOSITORY" => Some("octo/project".to_owned()),
            name => more.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()),
        };
        default_base(&env)
    }

    fn of(event: &str, git_ref: &str, payload: &Value) -> String {
        match said(&[("GITHUB_EVENT_NAME", event), ("GITHUB_REF", git_ref)], payload) {
            Ok(DefaultBase::Branch(name)) => name.to_string(),
            Ok(DefaultBase::OfPull(number)) => format!("pull {number}"),
            Ok(DefaultBase::OfRun(run)) => format!("run {}", run.id),
            Ok(DefaultBase::Unknown) => "unknown".to_owned(),
            Err(why) => why.to_string(),
        }
    }

    fn run(event: &str, repository: &str) -> Value {
        json!({"workflow_run": {
            "id": 99,
            "event": event,
            "head_sha": SHA,
            "head_branch": "release/1.0",
            "html_url": "https://github.com/octo/project/actions/runs/99",
            "head_repository": {"full_name": repository},
        }})
    }

    #[test]
    fn the_base_of_a_pull_request_comes_first() {
        let merge = "refs/pull/7/merge";
        let payload = json!({"pull_request": {"number": 7, "base": {"ref": "release/1.0"}}});
        for event in ["pull_request", "pull_request_target", "pull_request_review"] {
            assert_eq!(of(event, merge, &payload), "release/1.0");
        }
        let without = [("GITHUB_EVENT_NAME", "pull_request"), ("GITHUB_BASE_REF", "next")];
        assert!(
            matches!(said(&without, &json!({})), Ok(DefaultBase::Branch(name)) if name.as_str() == "next")
        );
        let comment = json!({"issue": {"number": 7, "pull_request": {}}});
        assert_eq!(of("issue_comment", "refs/heads/main", &comment), "pull 7");
        assert_eq!(of("issue_comment", "refs/heads/main", &json!({"issue": {"number": 8}})), "main");
        let group = json!({"merge_group": {"base_ref": "refs/heads/main", "head_sha": SHA}});
        assert_eq!(of("merge_group", "refs/heads/gh-readonly-queue/main/pr-7", &group), "main");
    }

    #[test]
    fn the_branch_of_another_run_is_not_the_one_of_this_job() {
        let main = "refs/heads/main";
        assert_eq!(of("workflow_run", main, &run("push", "Octo/project")), "release/1.0");
        assert_eq!(of("workflow_run", main, &run("schedule", "octo/project")), "release/1.0");
        assert_eq!(of("workflow_run", main, &run("pull_request", "octo/project")), "run 99");
        assert_eq!(of("workflow_run", main, &run("pull_request", "mallory/project")), "run 99");
        assert_eq!(of("workflow_run", main, &run("push", "mallory/project")), "run 99");
    }

    #[test]
    fn else_it_is_the_branch_of_the_job_and_never_a_tag() {
        for event in ["push", "schedule", "workflow_dispatch", "issues"] {
            assert_eq!(of(event, "refs/heads/a/b", &json!({})), "a/b");
        }
        let refused = "this job is of the tag `v1`, which no fix can be delivered to";
        assert_eq!(of("push", "refs/tags/v1", &json!({})), refused);
        assert_eq!(of("release", "refs/tags/v1", &json!({})), refused);
        assert!(of("push", "refs/pull/7/merge", &json!({})).contains("not the name of a branch"));
        assert!(of("push", "refs/heads/-x", &json!({})).contains("not the name of a branch"));
        assert_eq!(of("", "", &json!({})), "unknown");
    }

    #[test]
    fn gitlab_names_it_in_its_own_way() {
        let of = |more: &[(&str, &str)]| said(&[&[("GITLAB_CI", "true")], more].concat(), &json!({}));
        let branch = ("CI_COMMIT_BRANCH", "next");
        assert!(matches!(of(&[branch]), Ok(DefaultBase::Branch(name)) if name.as_str() == "next"));
        let target = ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main");
        assert!(matches!(of(&[target, branch]), Ok(DefaultBase::Branch(name)) if name.as_str() == "main"));
        assert!(of(&[("CI_COMMIT_TAG", "v1")]).unwrap_err().as_str().contains("`v1`"));
        assert!(matches!(of(&[]), Ok(DefaultBase::Unknown)));
    }
}
