//! The results of walks at random.

use std::time::Duration;

/// The results of walks at random through a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzReport {
    /// What the walks follow from: the same seed, the same walks.
    pub seed: u64,
    /// How many were taken.
    pub walks: u64,
    /// How many events they had in all.
    pub steps: u64,
    /// How many came to a state without a mock, and ended there.
    pub unplayed: u64,
    /// What does not hold, if anything does not.
    pub failure: Option<FuzzFailure>,
    /// How long it took.
    pub took: Duration,
}

/// A walk that breaks something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzFailure {
    /// What.
    pub what: String,
    /// The walk as a case, as short as it could be made.
    pub case: String,
    /// Whether playing the case shows it, too.
    pub is_shown: bool,
}
