//! Where people find the job on the web.

use super::github::target;
use crate::base::lookup::Lookup;

/// Where other systems than GitHub's say it.
const VARIABLES: &[&str] = &["CI_JOB_URL", "BUILDKITE_BUILD_URL", "CIRCLE_BUILD_URL", "BUILD_URL"];

/// Returns the URL of the CI job, if this is one that says it.
pub fn of_job(env: Lookup<'_>) -> Option<String> {
    target::page(env).or_else(|| VARIABLES.iter().find_map(|name| env(name)))
}
