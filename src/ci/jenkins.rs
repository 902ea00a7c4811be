//! Jenkins: a log without commands. What a run leaves is published by steps of the pipeline.
//!
//! Jenkins hides notes of its own in the log, behind an escape sequence and signed; output of actions has no escape
//! sequences. Its plugins find `file:line: level: message` in a log.

use super::job::{Job, Variables};
use super::plain::Plain;
use super::service::{CiService, ProviderRow};
use crate::base::lookup::Lookup;
use crate::report::dialect::Dialect;

/// How this provider is found, and what of its environment actions do not see.
pub(super) const PROVIDER: ProviderRow = ProviderRow {
    names: &["jenkins"],
    detect,
    make: |_, env| Box::new(Jenkins::new(env)),
    withheld: WITHHELD,
    tokens: &[],
};

/// The secret by which an agent connects to its controller.
const WITHHELD: &[&str] = &["JENKINS_SECRET", "JENKINS_AGENT_SECRET"];

const VARIABLES: Variables =
    Variables { workspace: "WORKSPACE", name: "JOB_NAME", run: "BUILD_NUMBER", attempt: "" };

fn detect(env: Lookup<'_>) -> Option<&'static str> {
    (env("JENKINS_URL").is_some() && env("BUILD_ID").is_some()).then_some("jenkins")
}

/// A build of Jenkins.
#[derive(Debug)]
struct Jenkins {
    job: Job,
}

impl Jenkins {
    /// Reads from the environment what the controller says about the build.
    fn new(env: Lookup<'_>) -> Self {
        Self { job: Job::read(env, &VARIABLES) }
    }
}

impl CiService for Jenkins {
    fn name(&self) -> &'static str {
        "jenkins"
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Plain)
    }

    fn job(&self) -> Job {
        self.job.clone()
    }
}
