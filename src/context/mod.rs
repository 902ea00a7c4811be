//! Holds what a session works with, so that no other code reads the environment or the directory of the process.

pub(crate) mod audience;
pub(crate) mod binding;
pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod interrupts;
pub(crate) mod job_server;
pub(crate) mod key_of_run;
pub(crate) mod mistakes;
pub(crate) mod options;
pub(crate) mod secrets;
pub(crate) mod talk;

use std::path::{Path, PathBuf};

use environment::Environment;
use interrupts::StopBy;
use talk::Talk;

use crate::base::redact::Redactor;
use crate::ci::Provider;
use crate::files::unsaved::UnsavedTexts;
use crate::run::Helper;

/// An environment, a directory, and the [`Talk`] that messages go to.
#[derive(Clone)]
pub struct Session<'a> {
    /// The environment.
    pub(crate) env: &'a Environment,
    /// The directory that relative paths start from. It is absolute.
    pub(crate) cwd: PathBuf,
    /// Shows messages to the caller.
    pub(crate) talk: &'a dyn Talk,
    /// Hides the secrets of the environment.
    pub(crate) redactor: Redactor,
    /// The program that answers the JSON queries of runs.
    pub(crate) helper: Helper,
    /// The program that guards runs in CI, if there is one.
    pub(crate) guard: Option<Vec<String>>,
    /// What may stop runs.
    pub(crate) stop_by: StopBy,
    /// What stands above the files of loops on disk.
    pub(crate) unsaved: UnsavedTexts,
}

impl<'a> Session<'a> {
    /// Makes a session. Relative paths start from `cwd`.
    ///
    /// # Errors
    /// The working directory of the process cannot be found, and `cwd` is relative to it.
    pub fn new(env: &'a Environment, cwd: &Path, talk: &'a dyn Talk) -> std::io::Result<Self> {
        Ok(Self {
            cwd: std::path::absolute(cwd)?,
            redactor: env.redactor(),
            helper: Helper::default(),
            guard: None,
            stop_by: StopBy::default(),
            unsaved: UnsavedTexts::default(),
            env,
            talk,
        })
    }

    /// Lets the CI system mask what was made or received while it ran, such as the signatures of URLs, in case anything
    /// shows it.
    pub(crate) fn mask(&self, secrets: &[String]) {
        let provider = Provider::detect(&self.env.lookup());
        let dialect = provider.dialect();
        for line in secrets.iter().filter_map(|secret| dialect.mask(secret)) {
            self.talk.ci_line(&line, &provider);
        }
    }

    /// Sets the program that answers queries about JSON. The default is `ll-loop` on PATH.
    #[must_use]
    pub fn with_helper(mut self, helper: Helper) -> Self {
        self.helper = helper;
        self
    }

    /// Sets the program that guards runs in CI: one that calls [`guard`](Self::guard). By default, nothing guards them.
    #[must_use]
    pub fn with_guard(mut self, argv: Vec<String>) -> Self {
        self.guard = Some(argv);
        self
    }

    /// Sets what may stop runs. By default, nothing does.
    #[must_use]
    pub fn stopped_by(mut self, stop_by: StopBy) -> Self {
        self.stop_by = stop_by;
        self
    }

    /// Takes what an editor has not saved for what is in the files of loops and of their tests.
    #[must_use]
    pub(crate) fn beneath(mut self, unsaved: UnsavedTexts) -> Self {
        self.unsaved = unsaved;
        self
    }

    /// Sends messages elsewhere.
    #[must_use]
    pub fn talking_to<'t>(self, talk: &'t dyn Talk) -> Session<'t>
    where
        'a: 't,
    {
        Session { talk, ..self }
    }

    /// Reads another environment. What is secret in the first one stays hidden.
    #[must_use]
    pub(crate) fn within<'e>(&self, env: &'e Environment) -> Session<'e>
    where
        'a: 'e,
    {
        Session { env, ..self.clone() }
    }

    /// Works from another directory, which has to be absolute.
    #[must_use]
    pub(crate) fn at(&self, cwd: &Path) -> Self {
        Self { cwd: cwd.to_owned(), ..self.clone() }
    }

    /// Makes a path of the caller absolute.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        self.cwd.join(path)
    }
}
