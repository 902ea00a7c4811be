//! The CI systems a run can find itself in: how their logs are spoken to, and where they want results. The
//! environment is a value that comes in.

pub mod archive;
pub mod github;
#[cfg(test)]
mod log_tests;
mod marker;
pub mod plain;

use std::io::{self, Write};

use github::Github;
use github::reporter::Reporter;
use plain::Plain;

use crate::report::annotations::Tree;
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
}

/// In the order in which they are asked: what imitates another one before it, what is always there last.
const PROVIDERS: &[Row] = &[
    Row {
        names: github::NAMES,
        detect: github::detect,
        make: |name, env| Provider::Github(Github::new(name, env)),
    },
    Row { names: plain::NAMES, detect: plain::detect, make: |_, _| Provider::Plain(Plain) },
];

/// A CI system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// GitHub Actions, and what speaks its protocol: Gitea and Forgejo.
    Github(Github),
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
    fn is_asked(&self) -> bool {
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

/// What a provider can do.
trait Service {
    fn name(&self) -> &'static str;
    fn dialect(&self) -> Box<dyn Dialect>;
    fn refusal(&self, env: Lookup<'_>) -> Option<String>;
    fn announce(&self, places: &Places) -> io::Result<()>;
    fn publish(&self, digest: &Digest, tree: &Tree<'_>, log: &mut dyn Write) -> Vec<io::Error>;
    fn report(
        &self,
        env: Lookup<'_>,
        token: Option<&str>,
        wanted: &Wanted,
        subject: &Subject,
    ) -> (Option<Reporter>, Vec<String>);
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
    pub fn report(
        &self,
        env: Lookup<'_>,
        token: Option<&str>,
        wanted: &Wanted,
        subject: &Subject,
    ) -> (Option<Reporter>, Vec<String>) {
        self.service().report(env, token, wanted, subject)
    }

    fn service(&self) -> &dyn Service {
        match self {
            Self::Github(github) => github,
            Self::Plain(plain) => plain,
        }
    }
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
    }

    #[test]
    fn every_name_finds_its_provider() {
        for name in Provider::names() {
            assert_eq!(Provider::by_name(name, &|_| None).unwrap().name(), name);
        }
        assert_eq!(Provider::by_name("cvs", &|_| None), None);
    }
}
