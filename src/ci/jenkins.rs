//! Jenkins: a log without commands. What a run leaves is published by steps of the pipeline.
//!
//! Jenkins hides notes of its own in the log, behind an escape sequence and signed; output of actions has no escape
//! sequences. Its plugins find `file:line: level: message` in a log.

use std::io::{self, Write};

use super::job::{Job, Variables};
use super::plain::Plain;
use super::{Lookup, Service, annotate};
use crate::report::annotations::Tree;
use crate::report::dialect::Dialect;
use crate::report::digest::Digest;

pub(super) const NAMES: &[&str] = &["jenkins"];

/// The secret by which an agent connects to its controller.
pub(super) const WITHHELD: &[&str] = &["JENKINS_SECRET", "JENKINS_AGENT_SECRET"];

pub(super) const TOKENS: &[&str] = &[];

const VARIABLES: Variables =
    Variables { workspace: "WORKSPACE", name: "JOB_NAME", run: "BUILD_NUMBER", attempt: "" };

pub(super) fn detect(env: Lookup<'_>) -> Option<&'static str> {
    (env("JENKINS_URL").is_some() && env("BUILD_ID").is_some()).then_some("jenkins")
}

/// A build of Jenkins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jenkins {
    job: Job,
}

impl Jenkins {
    /// Reads from the environment what the controller says about the build.
    pub(super) fn new(env: Lookup<'_>) -> Self {
        Self { job: Job::read(env, &VARIABLES) }
    }
}

impl Service for Jenkins {
    fn name(&self) -> &'static str {
        "jenkins"
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Plain)
    }

    fn job(&self) -> Job {
        self.job.clone()
    }

    fn publish(&self, digest: &Digest, tree: &Tree<'_>, log: &mut dyn Write) -> Vec<io::Error> {
        annotate(&Plain, digest, tree, log).err().into_iter().collect()
    }
}
