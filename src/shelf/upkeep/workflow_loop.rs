//! What the job of a loop is made from, whatever CI system runs it.

use super::chosen_commands::{Plan, PlannedLoop};

/// A loop that a workflow runs, with the plan that is left of it after a try.
pub struct WorkflowLoop<'p> {
    /// What was planned.
    pub planned: &'p PlannedLoop,
    /// What is written of it.
    pub settled: &'p Plan,
}

impl WorkflowLoop<'_> {
    /// Returns how many minutes a job may take. The loop ends a quarter of an hour before by itself, and says where.
    pub(super) fn minutes(&self) -> u32 {
        60 * self.settled.allowed_hours() + 15
    }
}
