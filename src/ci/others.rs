//! CI systems whose logs have no commands: Drone, Woodpecker, Bitbucket Pipelines and `AppVeyor`. They are known so that
//! a run behaves as in CI, and so that their credentials stay where they are.

use super::job::{Job, Variables};
use super::plain::Plain;
use super::service::{CiService, ProviderRow};
use crate::base::lookup::Lookup;
use crate::report::dialect::Dialect;

/// How these providers are found, and what of their environment actions do not see.
pub(super) const PROVIDER: ProviderRow = ProviderRow {
    names: &["drone", "woodpecker", "bitbucket", "appveyor"],
    detect,
    make: |name, env| Box::new(OtherSystem::new(name, env)),
    withheld: WITHHELD,
    tokens: &[],
};

/// Credentials for the repository and for the system itself, and the address at which an `AppVeyor` build is changed.
const WITHHELD: &[&str] = &[
    "DRONE_NETRC_",
    "DRONE_RPC_SECRET",
    "CI_NETRC_",
    "WOODPECKER_AGENT_SECRET",
    "BITBUCKET_STEP_OIDC_TOKEN",
    "BITBUCKET_SSH_KEY_FILE",
    "PIPELINES_JWT_TOKEN",
    "APPVEYOR_API_URL",
    "APPVEYOR_API_TOKEN",
];

/// The name of a system, the variable that only it sets, and the variables of a job.
const SYSTEMS: &[(&str, &str, Variables)] = &[
    (
        "drone",
        "DRONE_BUILD_NUMBER",
        Variables {
            workspace: "DRONE_WORKSPACE",
            name: "DRONE_STEP_NAME",
            run: "DRONE_BUILD_NUMBER",
            attempt: "DRONE_STAGE_NUMBER",
        },
    ),
    (
        "woodpecker",
        "CI_WORKFLOW_NUMBER",
        Variables {
            workspace: "CI_WORKSPACE",
            name: "CI_STEP_NAME",
            run: "CI_PIPELINE_NUMBER",
            attempt: "CI_WORKFLOW_NUMBER",
        },
    ),
    (
        "bitbucket",
        "BITBUCKET_BUILD_NUMBER",
        Variables {
            workspace: "BITBUCKET_CLONE_DIR",
            name: "BITBUCKET_STEP_UUID",
            run: "BITBUCKET_BUILD_NUMBER",
            attempt: "BITBUCKET_STEP_RUN_NUMBER",
        },
    ),
    (
        "appveyor",
        "APPVEYOR_BUILD_ID",
        Variables {
            workspace: "APPVEYOR_BUILD_FOLDER",
            name: "APPVEYOR_JOB_NAME",
            run: "APPVEYOR_BUILD_NUMBER",
            // Each entry of the matrix is a job of its own.
            attempt: "APPVEYOR_JOB_ID",
        },
    ),
];

fn detect(env: Lookup<'_>) -> Option<&'static str> {
    SYSTEMS.iter().find(|(_, marker, _)| env(marker).is_some()).map(|(name, ..)| *name)
}

/// A job of one of these systems.
#[derive(Debug)]
struct OtherSystem {
    name: &'static str,
    job: Job,
}

impl OtherSystem {
    /// Reads from the environment what the system with this name says about the job.
    fn new(name: &str, env: Lookup<'_>) -> Self {
        let known = SYSTEMS.iter().find(|(known, ..)| *known == name).unwrap_or(&SYSTEMS[0]);
        Self { name: known.0, job: Job::read(env, &known.2) }
    }
}

impl CiService for OtherSystem {
    fn name(&self) -> &'static str {
        self.name
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Plain)
    }

    fn job(&self) -> Job {
        self.job.clone()
    }
}
