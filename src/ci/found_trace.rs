//! In which trace a run stands: that of whoever started it, or else that of the CI run, which all its jobs have in common.

use super::job::JobId;
use super::{Provider, job_page};
use crate::base::lookup::Lookup;
use crate::base::relative::Line;
use crate::base::trace_id::{TraceId, TraceParent};
use crate::engine::trace_origin::TraceOrigin;

/// The addresses of the repository, where a CI system says one in a variable of its own.
const REPOSITORIES: [&str; 5] =
    ["CI_PROJECT_URL", "BUILD_REPOSITORY_URI", "BUILDKITE_REPO", "CIRCLE_REPOSITORY_URL", "GIT_URL"];

/// The branch, tag or pull request. A pull request has the name of its branch, where there is one.
const REFS: [&str; 7] = [
    "GITHUB_HEAD_REF",
    "GITHUB_REF_NAME",
    "CI_COMMIT_REF_NAME",
    "BUILD_SOURCEBRANCHNAME",
    "BUILDKITE_BRANCH",
    "CIRCLE_BRANCH",
    "GIT_BRANCH",
];

/// The commit.
const REVISIONS: [&str; 6] =
    ["GITHUB_SHA", "CI_COMMIT_SHA", "BUILD_SOURCEVERSION", "BUILDKITE_COMMIT", "CIRCLE_SHA1", "GIT_COMMIT"];

/// What names the CI run, the same for all its jobs and for no other run, where [`JobId`] does not: there, its number is one of a
/// project, or tells the jobs of a run apart.
const RUNS: &[(&str, &[&str])] = &[
    ("gitlab", &["CI_PIPELINE_ID"]),
    ("buildkite", &["BUILDKITE_BUILD_ID"]),
    ("teamcity", &["TEAMCITY_PROJECT_NAME", "TEAMCITY_BUILDCONF_NAME", "BUILD_NUMBER"]),
    ("circleci", &["CIRCLE_WORKFLOW_ID"]),
    ("jenkins", &["JENKINS_URL", "JOB_NAME", "BUILD_NUMBER"]),
    ("travis", &["TRAVIS_BUILD_ID"]),
    ("drone", &["DRONE_REPO_LINK", "DRONE_BUILD_NUMBER"]),
    ("woodpecker", &["CI_REPO_URL", "CI_PIPELINE_NUMBER"]),
    ("bitbucket", &["BITBUCKET_REPO_FULL_NAME", "BITBUCKET_BUILD_NUMBER"]),
    ("appveyor", &["APPVEYOR_BUILD_ID"]),
];

/// Returns what is recorded of it; nothing where nothing around the run has a trace.
pub fn trace_origin(env: Lookup<'_>) -> Option<TraceOrigin> {
    // What is no header is as if there were none: so the standard has it.
    let around = env("TRACEPARENT").and_then(|header| header.trim().parse::<TraceParent>().ok());
    let provider = Provider::detect(env);
    let job = provider.job().id;
    let repository = repository(env);
    let origin = match (&around, &job) {
        (Some(around), _) => TraceOrigin {
            parent: Some(around.span),
            is_unsampled: !around.is_sampled,
            ..TraceOrigin::of_trace(around.trace)
        },
        (None, Some(job)) => {
            TraceOrigin::of_trace(of_ci_run(provider.name(), repository.as_deref(), job, env))
        }
        (None, None) => return None,
    };
    if job.is_none() {
        return Some(origin);
    }
    let line = |text: String| Line::of(&text);
    let first = |names: &[&str]| names.iter().find_map(|name| env(name).filter(|value| !value.is_empty()));
    Some(TraceOrigin {
        page: job_page::of_job(env).map(line),
        repository: repository.map(line),
        ref_name: first(&REFS).map(line),
        revision: first(&REVISIONS).map(line),
        ..origin
    })
}

/// Makes the id that every job of an attempt at a CI run finds.
fn of_ci_run(provider: &str, repository: Option<&str>, job: &JobId, env: Lookup<'_>) -> TraceId {
    let row = RUNS.iter().find(|(name, _)| *name == provider);
    let said = row.and_then(|(_, names)| {
        let values = names.iter().map(|name| env(name).filter(|value| !value.is_empty()));
        values.collect::<Option<Vec<String>>>()
    });
    // An attempt is a run of its own.
    let run = said.unwrap_or_else(|| vec![job.run().to_owned(), job.attempt().to_owned()]);
    let mut words = vec!["ll-loop CI run", provider, repository.unwrap_or_default()];
    words.extend(run.iter().map(String::as_str));
    TraceId::of(&words)
}

/// Returns the address of the repository, without a password.
fn repository(env: Lookup<'_>) -> Option<String> {
    let value = |name: &str| env(name).filter(|value| !value.is_empty());
    let github = || Some(format!("{}/{}", value("GITHUB_SERVER_URL")?, value("GITHUB_REPOSITORY")?));
    let address = github().or_else(|| REPOSITORIES.iter().find_map(|name| value(name)))?;
    let Some((scheme, rest)) = address.split_once("://") else { return Some(address) };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    Some(format!("{scheme}://{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: [(&str, &str); 6] = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_SERVER_URL", "https://u:p@github.com"),
        ("GITHUB_REPOSITORY", "o/r"),
        ("GITHUB_RUN_ID", "77"),
        ("GITHUB_RUN_ATTEMPT", "2"),
        ("GITHUB_REF_NAME", "main"),
    ];

    fn origin(more: &[(&str, &str)]) -> Option<TraceOrigin> {
        let env = |name: &str| {
            more.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        trace_origin(&env)
    }

    fn in_job(more: &[(&str, &str)]) -> TraceOrigin {
        origin(&[&JOB, more].concat()).unwrap()
    }

    #[test]
    fn all_jobs_of_an_attempt_are_in_one_trace() {
        let one = in_job(&[("GITHUB_JOB", "leg-1")]);
        assert_eq!(one.trace, in_job(&[("GITHUB_JOB", "leg-2")]).trace);
        assert_ne!(one.trace, in_job(&[("GITHUB_RUN_ATTEMPT", "3")]).trace);
        assert_ne!(one.trace, in_job(&[("GITHUB_REPOSITORY", "o/other")]).trace);
        assert_eq!(one.repository.unwrap().as_str(), "https://github.com/o/r");
    }

    #[test]
    fn other_systems_name_their_run_in_their_own_ways() {
        let trace = |variables: &[(&str, &str)]| origin(variables).unwrap().trace;
        let gitlab = |pipeline: &str, job: &str| {
            trace(&[("GITLAB_CI", "true"), ("CI_PIPELINE_ID", pipeline), ("CI_JOB_ID", job)])
        };
        assert_eq!(gitlab("5", "91"), gitlab("5", "92"));
        assert_ne!(gitlab("5", "91"), gitlab("6", "91"));
        let circleci = |workflow: &str, job: &str| {
            trace(&[("CIRCLECI", "true"), ("CIRCLE_WORKFLOW_ID", workflow), ("CIRCLE_BUILD_NUM", job)])
        };
        assert_eq!(circleci("a", "9"), circleci("a", "10"));
        assert_ne!(circleci("a", "9"), circleci("b", "9"));
        assert_ne!(circleci("", "9"), circleci("", "10"));
        let teamcity = |project: &str| {
            let names = [("TEAMCITY_PROJECT_NAME", project), ("TEAMCITY_BUILDCONF_NAME", "All")];
            trace(&[&names[..], &[("TEAMCITY_VERSION", "1"), ("BUILD_NUMBER", "8")]].concat())
        };
        assert_ne!(teamcity("one"), teamcity("other"));
        let travis = |build: &str| {
            let numbers = [("TRAVIS_BUILD_NUMBER", "4"), ("TRAVIS_JOB_ID", build)];
            trace(&[&numbers[..], &[("TRAVIS", "true"), ("TRAVIS_BUILD_ID", build)]].concat())
        };
        assert_ne!(travis("70"), travis("71"));
    }

    #[test]
    fn whoever_started_the_run_says_which_trace_it_is() {
        let given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let told = in_job(&[("TRACEPARENT", given)]);
        assert_eq!(told.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(told.parent.unwrap().to_string(), "00f067aa0ba902b7");
        assert!(told.is_unsampled);
        assert_eq!(in_job(&[("TRACEPARENT", "nonsense")]).trace, in_job(&[]).trace);
        assert_eq!(origin(&[]), None);
        assert_eq!(origin(&[("TRACEPARENT", given)]).unwrap().page, None);
    }
}
