//! Computes the most calls of agents that the work on a board can take, before a plan exists.

use super::limits::Limits;

/// A plan has at most this many tasks.
pub const MOST_TASKS: u64 = 15;

/// A task is split into at most this many.
pub const MOST_PARTS: u64 = 5;

/// The calls that agents are used for, and how often each is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCalls {
    /// Whether plans are reviewed.
    pub reviews: bool,
    /// Whether an agent tests.
    pub tests: bool,
    /// Whether an agent verifies tasks.
    pub verifies: bool,
    /// How often a call that failed is made again.
    pub retries: u32,
}

/// The most calls of each kind, without repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallBound {
    /// Plans and their reviews.
    pub planning: u64,
    /// Attempts at tasks.
    pub attempts: u64,
    /// Calls in one attempt.
    pub per_attempt: u64,
    /// Splits of tasks.
    pub splits: u64,
    /// How often each of them is made at most.
    pub tries: u64,
}

impl CallBound {
    /// Works it out from the limits.
    pub fn of(limits: &Limits, calls: AgentCalls) -> Self {
        // At a greater depth, the number of tasks overflows.
        const DEEPEST: u32 = 64;
        let level = |depth: u32| MOST_TASKS.saturating_mul(MOST_PARTS.saturating_pow(depth));
        let sum =
            |depths: std::ops::Range<u32>| depths.fold(0_u64, |sum, depth| sum.saturating_add(level(depth)));
        let tasks = sum(0..limits.depth.saturating_add(1).min(DEEPEST));
        let fixes = u64::from(limits.fix_cycles);
        let plans = if calls.reviews { u64::from(limits.plan_revisions) } else { 1 };
        Self {
            planning: plans * if calls.reviews { 2 } else { 1 },
            attempts: tasks.saturating_mul(limits.attempts.into()),
            per_attempt: 1 + fixes + if calls.tests { 1 + fixes } else { 0 } + u64::from(calls.verifies),
            splits: sum(0..limits.depth.min(DEEPEST)),
            tries: 1 + u64::from(calls.retries),
        }
    }

    /// Writes the bound: the sum, and its parts.
    pub fn sentence(&self) -> String {
        let Self { planning, attempts, per_attempt, splits, tries } = self;
        let again = if *tries > 1 { format!("; each of them up to {tries} times") } else { String::new() };
        format!(
            "at most {} calls of agents: {planning} for the plan, {attempts} attempts of {per_attempt}, {splits} \
             splits, 1 for the goal{again}",
            self.all()
        )
    }

    /// Returns the calls in all, with the one that verifies the goal.
    pub fn all(&self) -> u64 {
        let tasks = self.attempts.saturating_mul(self.per_attempt);
        let once = tasks.saturating_add(self.planning).saturating_add(self.splits).saturating_add(1);
        once.saturating_mul(self.tries)
    }
}
