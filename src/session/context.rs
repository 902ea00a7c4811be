//! What a session works with. Nothing else of the process around it is looked at.

use std::path::{Path, PathBuf};

use crate::base::redact::Redactor;
use crate::run::Helper;

use super::environment::Environment;
use super::interrupts::StopBy;
use super::talk::Talk;

/// An environment, a directory, and whom to talk to.
#[derive(Clone)]
pub struct Session<'a> {
    /// The environment.
    pub(crate) env: &'a Environment,
    /// The directory that names of files are read from. It is absolute.
    pub(crate) cwd: PathBuf,
    /// Whom to talk to.
    pub(crate) talk: &'a dyn Talk,
    /// Hides the secrets of the environment.
    pub(crate) redactor: Redactor,
    /// Answers the queries of runs.
    pub(crate) helper: Helper,
    /// Who may ask runs to end.
    pub(crate) stop_by: StopBy,
}

impl<'a> Session<'a> {
    /// Makes a session. `cwd` is where names of files are read from.
    ///
    /// # Errors
    /// The working directory of the process cannot be found, and `cwd` is relative to it.
    pub fn new(env: &'a Environment, cwd: &Path, talk: &'a dyn Talk) -> std::io::Result<Self> {
        Ok(Self {
            cwd: std::path::absolute(cwd)?,
            redactor: Redactor::new(env.secrets()),
            helper: Helper::default(),
            stop_by: StopBy::default(),
            env,
            talk,
        })
    }

    /// Names the program that answers queries about JSON, which is `ll-loop` on PATH otherwise.
    #[must_use]
    pub fn with_helper(mut self, helper: Helper) -> Self {
        self.helper = helper;
        self
    }

    /// Says who may ask runs to end, which is nobody otherwise.
    #[must_use]
    pub fn stopped_by(mut self, stop_by: StopBy) -> Self {
        self.stop_by = stop_by;
        self
    }

    /// Talks to somebody else.
    #[must_use]
    pub fn talking_to<'t>(self, talk: &'t dyn Talk) -> Session<'t>
    where
        'a: 't,
    {
        Session { talk, ..self }
    }

    /// Works from another directory, which is absolute.
    #[must_use]
    pub(crate) fn at(&self, cwd: &Path) -> Self {
        Self { cwd: cwd.to_owned(), ..self.clone() }
    }

    /// Returns the path that a caller means.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        self.cwd.join(path)
    }
}
