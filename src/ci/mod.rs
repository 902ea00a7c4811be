//! The CI systems a run can find itself in: how their logs are spoken to, and where they want results. The
//! environment is a value that comes in.

mod azure;
pub mod base_branch;
mod buildkite;
pub mod chain;
mod circleci;
pub mod found_trace;
pub mod github;
pub mod gitlab;
pub mod harmless;
mod jenkins;
pub mod job;
pub mod job_page;
mod line_marks;
#[cfg(test)]
mod log_tests;
mod others;
pub mod plain;
pub mod reported;
pub mod service;
pub mod strangers;
mod teamcity;
#[cfg(test)]
mod testing;
mod travis;

use std::ops::Deref;
use std::rc::Rc;

use service::{CiService, ProviderRow};

use crate::base::lookup::Lookup;

/// In the order in which they are asked: a system that imitates another comes before it, `plain` comes last.
const PROVIDERS: &[ProviderRow] = &[
    github::PROVIDER,
    gitlab::PROVIDER,
    azure::PROVIDER,
    buildkite::PROVIDER,
    teamcity::PROVIDER,
    circleci::PROVIDER,
    jenkins::PROVIDER,
    travis::PROVIDER,
    others::PROVIDER,
    plain::PROVIDER,
];

/// The CI system that a run is in. What it can do is in [`CiService`].
#[derive(Clone, Debug)]
pub struct Provider(Rc<dyn CiService>);

impl Provider {
    /// Returns the provider whose environment this is.
    pub fn detect(env: Lookup<'_>) -> Self {
        let found = PROVIDERS.iter().find_map(|row| Some((row.make)((row.detect)(env)?, env)));
        Self(found.unwrap_or_else(|| Box::new(plain::Plain)).into())
    }

    /// Returns the provider with this name, whatever the environment looks like.
    pub fn by_name(name: &str, env: Lookup<'_>) -> Option<Self> {
        PROVIDERS.iter().find(|row| row.names.contains(&name)).map(|row| Self((row.make)(name, env).into()))
    }

    /// Tells whether the logs of both have the same commands.
    pub fn speaks_like(&self, other: &Self) -> bool {
        PROVIDERS.iter().any(|row| row.names.contains(&self.name()) && row.names.contains(&other.name()))
    }

    /// Returns all names that [`Provider::by_name`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PROVIDERS.iter().flat_map(|row| row.names).copied()
    }
}

impl Deref for Provider {
    type Target = dyn CiService;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

/// Tells whether this is the environment of a CI system: `CI` says so, or, where it says nothing, a variable that only one
/// system sets.
pub fn is_ci(env: Lookup<'_>) -> bool {
    match env("CI").filter(|value| !value.is_empty()) {
        Some(value) => !matches!(value.to_ascii_lowercase().as_str(), "0" | "false" | "no" | "off"),
        None => PROVIDERS.iter().any(|row| (row.detect)(env).is_some_and(|name| name != "plain")),
    }
}

/// Tells whether a variable is kept from actions, whatever the system: `--ci=NAME` changes the dialect of the log, not
/// what is in the environment.
pub fn is_withheld(name: &str, pass_token: bool) -> bool {
    PROVIDERS.iter().any(|row| {
        let is_token = row.tokens.contains(&name);
        row.withheld.iter().any(|prefix| name.starts_with(prefix)) || (is_token && !pass_token)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::base::run_key::RunKey;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expect: &str) {
        let env =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(Provider::detect(&env).name(), expect);
    }

    #[test]
    fn a_provider_is_known_by_its_environment() {
        check(&[], "plain");
        check(&[("CI", "true")], "plain");
        check(&[("GITHUB_ACTIONS", "true")], "github");
        check(&[("GITHUB_ACTIONS", "false")], "plain");
        check(&[("GITHUB_ACTIONS", "true"), ("GITEA_ACTIONS", "true")], "gitea");
        check(&[("GITHUB_ACTIONS", "true"), ("FORGEJO_ACTIONS", "true")], "forgejo");
        check(&[("CI", "true"), ("GITLAB_CI", "true")], "gitlab");
        check(&[("TF_BUILD", "True")], "azure");
        check(&[("CI", "true"), ("BUILDKITE", "true")], "buildkite");
        check(&[("TEAMCITY_VERSION", "2026.1 (build 1)")], "teamcity");
        check(&[("CI", "true"), ("CIRCLECI", "true")], "circleci");
        check(&[("JENKINS_URL", "https://j"), ("BUILD_ID", "7")], "jenkins");
        check(&[("JENKINS_URL", "https://j")], "plain");
        check(&[("BUILD_ID", "7")], "plain");
        check(&[("TRAVIS", "true")], "travis");
        check(&[("DRONE", "true"), ("DRONE_BUILD_NUMBER", "4")], "drone");
        check(&[("CI", "woodpecker"), ("CI_WORKFLOW_NUMBER", "1")], "woodpecker");
        check(&[("BITBUCKET_BUILD_NUMBER", "4")], "bitbucket");
        check(&[("APPVEYOR", "True"), ("APPVEYOR_BUILD_ID", "4")], "appveyor");
        // The runner of a workflow is nearer than the machine that it was started on.
        check(&[("JENKINS_URL", "https://j"), ("BUILD_ID", "7"), ("GITHUB_ACTIONS", "true")], "github");
        check(&[("JENKINS_URL", "https://j"), ("BUILD_ID", "7"), ("GITLAB_CI", "true")], "gitlab");
    }

    #[track_caller]
    fn check_ci(variables: &[(&str, &str)], expect: bool) {
        let env =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(is_ci(&env), expect, "{variables:?}");
    }

    #[test]
    fn ci_is_known_by_its_variable_or_by_those_of_a_system() {
        check_ci(&[], false);
        check_ci(&[("CI", "true")], true);
        check_ci(&[("CI", "woodpecker")], true);
        for system in
            ["TF_BUILD", "TEAMCITY_VERSION", "BUILDKITE", "GITLAB_CI", "CIRCLECI", "BITBUCKET_BUILD_NUMBER"]
        {
            check_ci(&[(system, "1")], true);
            check_ci(&[("CI", ""), (system, "1")], true);
            for off in ["false", "0", "OFF", "no"] {
                check_ci(&[("CI", off), (system, "1")], false);
            }
        }
        check_ci(&[("JENKINS_URL", "u"), ("BUILD_ID", "7")], true);
        check_ci(&[("BUILD_ID", "7")], false);
    }

    #[track_caller]
    fn check_key(variables: &[(&str, &str)], expect: Option<&str>) {
        let env =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let id = Provider::detect(&env).job().id;
        let name = id.map(|id| id.name_for(&RunKey::new(None, &id.name)));
        assert_eq!(name.as_deref(), expect);
    }

    #[test]
    fn every_system_tells_its_jobs_apart() {
        check_key(&[], None);
        check_key(&[("GITHUB_ACTIONS", "true")], None);
        let github = [("GITHUB_ACTIONS", "true"), ("GITHUB_RUN_ID", "77"), ("GITHUB_JOB", "check")];
        check_key(&github, Some("check-r77-a1"));
        check_key(&[&github[..], &[("GITHUB_RUN_ATTEMPT", "2")]].concat(), Some("check-r77-a2"));
        let gitlab = [("GITLAB_CI", "true"), ("CI_PIPELINE_ID", "5"), ("CI_JOB_NAME", "lint: [a, 1/2]")];
        check_key(&[&gitlab[..], &[("CI_JOB_ID", "91")]].concat(), Some("lint---a--1-2--e33ea4fc-r5-a91"));
        let azure = [("TF_BUILD", "True"), ("BUILD_BUILDID", "31"), ("SYSTEM_JOBATTEMPT", "3")];
        check_key(&[&azure[..], &[("SYSTEM_JOBNAME", "tidy")]].concat(), Some("tidy-r31-a3"));
        let buildkite =
            [("BUILDKITE", "true"), ("BUILDKITE_BUILD_NUMBER", "4"), ("BUILDKITE_JOB_ID", "0b-1")];
        check_key(&buildkite, Some("job-r4-a0b-1"));
        let teamcity = [("TEAMCITY_VERSION", "1"), ("BUILD_NUMBER", "8"), ("TEAMCITY_BUILDCONF_NAME", "All")];
        check_key(&teamcity, Some("All-r8-a1"));
        let circleci = [("CIRCLECI", "true"), ("CIRCLE_BUILD_NUM", "9"), ("CIRCLE_NODE_INDEX", "0")];
        check_key(&[&circleci[..], &[("CIRCLE_JOB", "test")]].concat(), Some("test-r9-a0"));
        let jenkins = [("JENKINS_URL", "u"), ("BUILD_ID", "7"), ("BUILD_NUMBER", "7"), ("JOB_NAME", "a/b")];
        let bitbucket = [("BITBUCKET_BUILD_NUMBER", "8"), ("BITBUCKET_STEP_UUID", "{a-1}")];
        check_key(&bitbucket, Some("-a-1--0989a8d2-r8-a1"));
        check_key(&jenkins, Some("a-b-c14cddc0-r7-a1"));
    }

    #[test]
    fn the_workspace_is_a_path() {
        let env = |name: &str| match name {
            "CIRCLECI" => Some("true".to_owned()),
            "CIRCLE_WORKING_DIRECTORY" => Some("~/project".to_owned()),
            "HOME" => Some("/home/me".to_owned()),
            _ => None,
        };
        assert_eq!(Provider::detect(&env).job().workspace.as_deref(), Some(Path::new("/home/me/project")));
    }

    #[test]
    fn credentials_of_every_system_are_withheld() {
        for name in [
            "CI_NETRC_PASSWORD",
            "DRONE_NETRC_PASSWORD",
            "PIPELINES_JWT_TOKEN",
            "APPVEYOR_API_TOKEN",
            "CI_JOB_JWT_V2",
            "ENDPOINT_AUTH_x",
            "BUILDKITE_AGENT_JOB_API_TOKEN",
            "CIRCLE_OIDC_TOKEN_V2",
            "GITHUB_OUTPUT",
            "FORGEJO_OUTPUT",
            "FORGEJO_ENV",
        ] {
            assert!(is_withheld(name, true) && is_withheld(name, false), "{name}");
        }
        for name in
            ["CI_JOB_TOKEN", "CI_REPOSITORY_URL", "SYSTEM_ACCESSTOKEN", "BUILDKITE_AGENT_ACCESS_TOKEN"]
        {
            assert!(!is_withheld(name, true) && is_withheld(name, false), "{name}");
        }
        for name in ["CI_JOB_ID", "CI_COMMIT_SHA", "BUILD_BUILDID", "BUILDKITE_COMMIT", "PATH", "NPM_TOKEN"] {
            assert!(!is_withheld(name, false), "{name}");
        }
    }

    #[test]
    fn every_name_finds_its_provider() {
        for name in Provider::names() {
            assert_eq!(Provider::by_name(name, &|_| None).unwrap().name(), name);
        }
        assert!(Provider::by_name("cvs", &|_| None).is_none());
    }
}
