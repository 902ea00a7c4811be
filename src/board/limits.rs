//! The limits of the work on a board.

use serde::{Deserialize, Serialize};

/// The limits of a board. A count of zero, where it is allowed, turns something off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Reviews of the plan, at least one.
    pub plan_revisions: u32,
    /// Fixes after a failed test, in one attempt at a task.
    pub fix_cycles: u32,
    /// Attempts at a task before it is split, at least one.
    pub attempts: u32,
    /// How deep tasks may be split.
    pub depth: u32,
    /// Passes in a row in which no task was completed, at least one.
    pub idle_passes: u32,
    /// The share of leaf tasks that may fail finally, from 0 to 1.
    pub failed_ratio: f64,
}

impl Limits {
    /// The limits of a loop that sets none.
    pub const STANDARD: Self =
        Self { plan_revisions: 3, fix_cycles: 3, attempts: 3, depth: 3, idle_passes: 5, failed_ratio: 0.5 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::STANDARD
    }
}
