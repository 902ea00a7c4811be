//! CircleCI: a log without commands. What a run leaves is stored by steps of the job.

use std::path::Path;

use super::job::{Job, Variables};
use super::plain::Plain;
use super::service::{CiService, ProviderRow};
use crate::base::lookup::Lookup;
use crate::report::dialect::Dialect;

/// How this provider is found, and what of its environment actions do not see.
pub(super) const PROVIDER: ProviderRow = ProviderRow {
    names: &["circleci"],
    detect,
    make: |_, env| Box::new(Circleci::new(env)),
    withheld: WITHHELD,
    tokens: &[],
};

/// Tokens that identify the job elsewhere.
const WITHHELD: &[&str] = &["CIRCLE_OIDC_TOKEN"];

const VARIABLES: Variables = Variables {
    workspace: "CIRCLE_WORKING_DIRECTORY",
    name: "CIRCLE_JOB",
    // A job that is run again has another number.
    run: "CIRCLE_BUILD_NUM",
    // Which of several that share the number.
    attempt: "CIRCLE_NODE_INDEX",
};

fn detect(env: Lookup<'_>) -> Option<&'static str> {
    env("CIRCLECI").is_some().then_some("circleci")
}

/// A job of CircleCI.
#[derive(Debug)]
struct Circleci {
    job: Job,
}

impl Circleci {
    /// Reads from the environment what the runner says about the job.
    fn new(env: Lookup<'_>) -> Self {
        let mut job = Job::read(env, &VARIABLES);
        // `CIRCLE_WORKING_DIRECTORY` holds the `~` of the configuration, which no program expands.
        if let (Some(path), Some(home)) = (&job.workspace, env("HOME"))
            && let Ok(below) = path.strip_prefix("~")
        {
            job.workspace = Some(Path::new(&home).join(below));
        }
        Self { job }
    }
}

impl CiService for Circleci {
    fn name(&self) -> &'static str {
        "circleci"
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Plain)
    }

    fn job(&self) -> Job {
        self.job.clone()
    }

    fn shows_colours(&self) -> bool {
        true
    }
}
