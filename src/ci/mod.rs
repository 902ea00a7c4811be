//! The CI systems a run can find itself in: how their logs are spoken to, and where they want results. The
//! environment is a value that comes in.

pub mod archive;
mod azure;
mod buildkite;
mod circleci;
pub mod github;
mod gitlab;
mod jenkins;
pub mod job;
#[cfg(test)]
mod log_tests;
mod marker;
pub mod plain;
mod teamcity;
#[cfg(test)]
mod testing;

use std::io::{self, Write};
use std::path::Path;

use azure::Azure;
use buildkite::Buildkite;
use circleci::Circleci;
use github::Github;
use github::dispatch::{Link, Next};
use github::reporter::Reporter;
use gitlab::Gitlab;
use jenkins::Jenkins;
use job::Job;
use plain::Plain;
use teamcity::Teamcity;

use crate::report::annotations::{Tree, annotations};
use crate::report::dialect::Dialect;
use crate::report::digest::{Digest, Places};

/// The environment: looks up a variable.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// One row of the table of providers.
struct Row {
    names: &'static [&'static str],
    /// Returns the name of the provider whose environment this is.
    detect: fn(Lookup<'_>) -> Option<&'static str>,
    make: fn(&str, Lookup<'_>) -> Provider,
    /// What variables begin with that no action sees: credentials of the system, and its side channels.
    withheld: &'static [&'static str],
    /// The job's own token, under every name that it has, which an action sees when it is asked for.
    tokens: &'static [&'static str],
}

/// In the order in which they are asked: what imitates another one before it, what is always there last.
const PROVIDERS: &[Row] = &[
    Row {
        names: github::NAMES,
        detect: github::detect,
        make: |name, env| Provider::Github(Github::new(name, env)),
        withheld: github::WITHHELD,
        tokens: github::TOKENS,
    },
    Row {
        names: gitlab::NAMES,
        detect: gitlab::detect,
        make: |_, env| Provider::Gitlab(Gitlab::new(env)),
        withheld: gitlab::WITHHELD,
        tokens: gitlab::TOKENS,
    },
    Row {
        names: azure::NAMES,
        detect: azure::detect,
        make: |_, env| Provider::Azure(Azure::new(env)),
        withheld: azure::WITHHELD,
        tokens: azure::TOKENS,
    },
    Row {
        names: buildkite::NAMES,
        detect: buildkite::detect,
        make: |_, env| Provider::Buildkite(Buildkite::new(env)),
        withheld: buildkite::WITHHELD,
        tokens: buildkite::TOKENS,
    },
    Row {
        names: teamcity::NAMES,
        detect: teamcity::detect,
        make: |_, env| Provider::Teamcity(Teamcity::new(env)),
        withheld: teamcity::WITHHELD,
        tokens: teamcity::TOKENS,
    },
    Row {
        names: circleci::NAMES,
        detect: circleci::detect,
        make: |_, env| Provider::Circleci(Circleci::new(env)),
        withheld: circleci::WITHHELD,
        tokens: circleci::TOKENS,
    },
    Row {
        names: jenkins::NAMES,
        detect: jenkins::detect,
        make: |_, env| Provider::Jenkins(Jenkins::new(env)),
        withheld: jenkins::WITHHELD,
        tokens: jenkins::TOKENS,
    },
    Row {
        names: plain::NAMES,
        detect: plain::detect,
        make: |_, _| Provider::Plain(Plain),
        withheld: &[],
        tokens: &[],
    },
];

/// A CI system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// GitHub Actions, and what speaks its protocol: Gitea and Forgejo.
    Github(Github),
    /// GitLab CI.
    Gitlab(Gitlab),
    /// Azure Pipelines.
    Azure(Azure),
    /// Buildkite.
    Buildkite(Buildkite),
    /// TeamCity.
    Teamcity(Teamcity),
    /// CircleCI.
    Circleci(Circleci),
    /// Jenkins.
    Jenkins(Jenkins),
    /// Any other, or none.
    Plain(Plain),
}

/// Where a run is to be reported beside its log and its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// As a status of the commit; without a word, wherever that is possible.
    pub status: Option<bool>,
    /// The name of the status and of the check run, in place of the loop's own.
    pub context: Option<String>,
    /// As a check run.
    pub check: bool,
    /// As a comment on the pull request.
    pub comment: bool,
    /// The commit, in place of that of the event.
    pub sha: Option<String>,
}

impl Wanted {
    /// Tells whether something was asked for in words.
    pub(crate) fn is_asked(&self) -> bool {
        self.status == Some(true) || self.check || self.comment
    }
}

/// What is reported: which run of which loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The loop.
    pub loop_name: String,
    /// The run.
    pub instance: String,
    /// Where the loop is at home, as seen from the root of the repository; nothing for the root itself.
    pub directory: String,
}

/// A run that people are to be told about beside its log: where, by whom, and what has to be known for that.
#[derive(Clone, Copy)]
pub struct Telling<'t> {
    /// The environment.
    pub env: Lookup<'t>,
    /// The token that may tell.
    pub token: Option<&'t str>,
    /// Where it is told.
    pub wanted: &'t Wanted,
    /// Which run it is.
    pub subject: &'t Subject,
}

/// What a provider can do.
trait Service {
    fn name(&self) -> &'static str;
    fn dialect(&self) -> Box<dyn Dialect>;

    fn job(&self) -> Job {
        Job::default()
    }

    fn shows_colours(&self) -> bool {
        false
    }

    fn refusal(&self, _env: Lookup<'_>) -> Option<String> {
        None
    }

    fn announce(&self, _places: &Places) -> io::Result<()> {
        Ok(())
    }

    fn publish(&self, digest: &Digest, tree: &Tree<'_>, log: &mut dyn Write) -> Vec<io::Error>;

    fn report(&self, telling: Telling<'_>) -> (Option<Reporter>, Vec<String>) {
        let nobody = "there is no GitHub here that could be told about the run";
        (None, telling.wanted.is_asked().then(|| nobody.to_owned()).into_iter().collect())
    }

    fn go_on(&self, _telling: Telling<'_>, _link: Option<Link>) -> (Next, Option<String>) {
        (Next::Not("there is no GitHub here whose workflow could be dispatched".to_owned()), None)
    }
}

impl Provider {
    /// Returns the provider whose environment this is.
    pub fn detect(env: Lookup<'_>) -> Self {
        let mut found = PROVIDERS.iter().filter_map(|row| Some((row.make)((row.detect)(env)?, env)));
        found.next().unwrap_or(Self::Plain(Plain))
    }

    /// Returns the provider with this name, whatever the environment looks like.
    pub fn by_name(name: &str, env: Lookup<'_>) -> Option<Self> {
        PROVIDERS.iter().find(|row| row.names.contains(&name)).map(|row| (row.make)(name, env))
    }

    /// Returns all names that [`Provider::by_name`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PROVIDERS.iter().flat_map(|row| row.names).copied()
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.service().name()
    }

    /// Returns how its log is spoken to.
    pub fn dialect(&self) -> Box<dyn Dialect> {
        self.service().dialect()
    }

    /// Returns what it says about the job.
    pub fn job(&self) -> Job {
        self.service().job()
    }

    /// Tells whether its log shows colours although it is no terminal.
    pub fn shows_colours(&self) -> bool {
        self.service().shows_colours()
    }

    /// Returns why nothing should run in this environment, if nothing should.
    pub fn refusal(&self, env: Lookup<'_>) -> Option<String> {
        self.service().refusal(env)
    }

    /// Says where the results of a run that begins now will be, for the case that it is killed before it can publish
    /// them.
    pub fn announce(&self, places: &Places) -> io::Result<()> {
        self.service().announce(places)
    }

    /// Gives the results of a run to the CI system: annotations on its log, outputs and a summary in its files.
    /// Each thing that fails is one error and keeps nothing else from being published.
    pub fn publish(&self, digest: &Digest, tree: &Tree<'_>, log: &mut dyn Write) -> Vec<io::Error> {
        self.service().publish(digest, tree, log)
    }

    /// Says that a run has begun where people look at its commit, and returns who will say how it ended. With it come
    /// warnings about what was asked for and cannot be.
    pub fn report(&self, telling: Telling<'_>) -> (Option<Reporter>, Vec<String>) {
        self.service().report(telling)
    }

    /// Starts the run that goes on with one that was handed off, and says so where people look at its commit. Without
    /// a link, its files are where no other run finds them, and nothing is started. A warning comes with it, where the
    /// status could not be set.
    pub fn go_on(&self, telling: Telling<'_>, link: Option<Link>) -> (Next, Option<String>) {
        self.service().go_on(telling, link)
    }

    fn service(&self) -> &dyn Service {
        match self {
            Self::Github(github) => github,
            Self::Gitlab(gitlab) => gitlab,
            Self::Azure(azure) => azure,
            Self::Buildkite(buildkite) => buildkite,
            Self::Teamcity(teamcity) => teamcity,
            Self::Circleci(circleci) => circleci,
            Self::Jenkins(jenkins) => jenkins,
            Self::Plain(plain) => plain,
        }
    }
}

/// Tells whether a variable is kept from actions, of whichever system it is: `--ci=NAME` changes what is said, not
/// what is in the environment.
pub fn is_withheld(name: &str, pass_token: bool) -> bool {
    PROVIDERS.iter().any(|row| {
        let is_token = row.tokens.contains(&name);
        row.withheld.iter().any(|prefix| name.starts_with(prefix)) || (is_token && !pass_token)
    })
}

/// Writes the annotations of a run to the log.
fn annotate(dialect: &dyn Dialect, digest: &Digest, tree: &Tree<'_>, log: &mut dyn Write) -> io::Result<()> {
    for annotation in annotations(digest, tree) {
        writeln!(log, "{}", dialect.annotation(&annotation))?;
    }
    log.flush()
}

/// Returns a path of the places of a run as one that is right wherever it is read.
fn absolute(job: &Job, tree: &Tree<'_>, path: &str) -> String {
    let workspace = job.workspace.as_deref().unwrap_or_else(|| Path::new(tree.root));
    workspace.join(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // The runner of a workflow is nearer than the machine that it was started on.
        check(&[("JENKINS_URL", "https://j"), ("BUILD_ID", "7"), ("GITHUB_ACTIONS", "true")], "github");
        check(&[("JENKINS_URL", "https://j"), ("BUILD_ID", "7"), ("GITLAB_CI", "true")], "gitlab");
    }

    #[track_caller]
    fn check_key(variables: &[(&str, &str)], expect: Option<&str>) {
        let env =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(Provider::detect(&env).job().key.as_deref(), expect);
    }

    #[test]
    fn every_system_tells_its_jobs_apart() {
        check_key(&[], None);
        check_key(&[("GITHUB_ACTIONS", "true")], None);
        let github = [("GITHUB_ACTIONS", "true"), ("GITHUB_RUN_ID", "77"), ("GITHUB_JOB", "check")];
        check_key(&github, Some("check-r77-a1"));
        check_key(&[&github[..], &[("GITHUB_RUN_ATTEMPT", "2")]].concat(), Some("check-r77-a2"));
        let gitlab = [("GITLAB_CI", "true"), ("CI_PIPELINE_ID", "5"), ("CI_JOB_NAME", "lint: [a, 1/2]")];
        check_key(&[&gitlab[..], &[("CI_JOB_ID", "91")]].concat(), Some("lint---a--1-2--r5-a91"));
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
        check_key(&jenkins, Some("a-b-r7-a1"));
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
        for name in
            ["CI_JOB_JWT_V2", "ENDPOINT_AUTH_x", "BUILDKITE_AGENT_JOB_API_TOKEN", "CIRCLE_OIDC_TOKEN_V2"]
        {
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
        assert_eq!(Provider::by_name("cvs", &|_| None), None);
    }
}
