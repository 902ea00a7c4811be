//! Whether a stranger set off the job: what would go on of its run is a stranger's code, so nobody is asked about it.

use crate::base::lookup::Lookup;
use crate::base::repository_address::repository;
use crate::forge::github::workflow_event::WorkflowEvent;

/// Says why a run of this job may ask nobody, where a stranger set it off. In doubt, one has.
pub fn why_nobody_is_asked(env: Lookup<'_>) -> Option<String> {
    let event = WorkflowEvent::read(env);
    if event.has_texts_of_strangers() {
        return Some(format!(
            "nobody is asked: people without write access can set off the event `{}` with what runs here",
            event.name
        ));
    }
    is_of_fork(env).then(|| "nobody is asked: the job is about a fork".to_owned())
}

/// Tells whether another CI system says that the job is about a fork.
fn is_of_fork(env: Lookup<'_>) -> bool {
    let value = |name: &str| env(name).filter(|value| !value.is_empty());
    // Absent where the job is about no merge request.
    let differ = |one: Option<String>, other: Option<String>| one.is_some() && one != other;
    // Buildkite names the repository of a pull request with `git://`, and its own as it was configured. What is in no server has
    // no other name than its address.
    let place = |name: &str| value(name).map(|address| repository(&address).unwrap_or(address));
    let is_set = |name: &str| value(name).is_some_and(|value| !value.eq_ignore_ascii_case("false"));
    differ(value("CI_MERGE_REQUEST_SOURCE_PROJECT_ID"), value("CI_PROJECT_ID"))
        || differ(place("BUILDKITE_PULL_REQUEST_REPO"), place("BUILDKITE_REPO"))
        || is_set("SYSTEM_PULLREQUEST_ISFORK")
        || is_set("CIRCLE_PR_USERNAME")
        || is_set("CHANGE_FORK")
        || differ(value("TRAVIS_PULL_REQUEST_SLUG"), value("TRAVIS_REPO_SLUG"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], is_asked: bool) {
        let env = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(why_nobody_is_asked(&env).is_none(), is_asked, "{variables:?}");
    }

    #[test]
    fn about_a_fork_nobody_is_asked() {
        check(&[], true);
        check(&[("GITHUB_EVENT_NAME", "push")], true);
        check(&[("GITHUB_EVENT_NAME", "workflow_dispatch")], true);
        // An event that says nothing of its head may be of anybody.
        check(&[("GITHUB_EVENT_NAME", "pull_request")], false);
        check(&[("GITHUB_EVENT_NAME", "pull_request_target")], false);
        check(&[("GITHUB_EVENT_NAME", "issue_comment")], false);
        check(&[("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "7"), ("CI_PROJECT_ID", "7")], true);
        check(&[("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "8"), ("CI_PROJECT_ID", "7")], false);
        check(&[("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "8")], false);
        check(&[("BUILDKITE_PULL_REQUEST_REPO", ""), ("BUILDKITE_REPO", "git@x:a/b")], true);
        check(&[("BUILDKITE_PULL_REQUEST_REPO", "git@x:m/b"), ("BUILDKITE_REPO", "git@x:a/b")], false);
        let own = ("BUILDKITE_REPO", "git@github.com:acme/tool.git");
        for address in ["git://github.com/acme/tool.git", "https://u:p@github.com/Acme/tool/", own.1] {
            check(&[("BUILDKITE_PULL_REQUEST_REPO", address), own], true);
        }
        for address in ["git://github.com/mallory/tool.git", "git://example.com/acme/tool.git", "acme/tool"] {
            check(&[("BUILDKITE_PULL_REQUEST_REPO", address), own], false);
        }
        // The port is of the way to a repository.
        let own = ("BUILDKITE_REPO", "ssh://git@git.example:2222/acme/tool.git");
        check(&[("BUILDKITE_PULL_REQUEST_REPO", "git://git.example/acme/tool.git"), own], true);
        check(&[("BUILDKITE_PULL_REQUEST_REPO", "git://git.example/mallory/tool.git"), own], false);
        let own = ("BUILDKITE_REPO", "/srv/acme/tool.git");
        check(&[("BUILDKITE_PULL_REQUEST_REPO", "/srv/acme/tool.git"), own], true);
        check(&[("BUILDKITE_PULL_REQUEST_REPO", "/srv/mallory/tool.git"), own], false);
        check(&[("SYSTEM_PULLREQUEST_ISFORK", "False")], true);
        check(&[("SYSTEM_PULLREQUEST_ISFORK", "True")], false);
        check(&[("CIRCLE_PR_USERNAME", "mallory")], false);
        check(&[("CHANGE_FORK", "mallory")], false);
    }
}
