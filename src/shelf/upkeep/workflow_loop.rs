//! What the job of a loop is made from, whatever CI system runs it.

use super::chosen_commands::{Plan, PlannedLoop};

/// A loop that a workflow runs, with the plan that is left of it after a try.
pub struct WorkflowLoop<'p> {
    /// What was planned.
    pub planned: &'p PlannedLoop,
    /// What is written of it.
    pub settled: &'p Plan,
}

/// How long a job may take. The loop ends after an hour by itself, and says where.
pub(super) const MINUTES: u32 = 75;
