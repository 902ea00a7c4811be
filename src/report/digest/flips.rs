//! What would have been with another verdict: one at a time, as the machine alone decides it.

use crate::base::name::StateName;
use crate::engine::suppose::Course;
use crate::evaluate::verdict::Verdict;
use crate::report::numbers::StepNumber;

/// What would have been with one other verdict each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Otherwise {
    /// The verdicts that would have made a difference, of the latest step first.
    pub flips: Vec<Flip>,
    /// How many steps before them were not looked at.
    pub earlier: u64,
    /// Why nothing can be said, or nothing of some steps.
    pub unknown: Option<String>,
}

/// Another verdict, and what the machine would have made of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Flip {
    /// The step.
    pub step: StepNumber,
    /// Its state.
    pub state: StateName,
    /// What it said.
    pub verdict: Verdict,
    /// What it could have said.
    pub instead: Verdict,
    /// What had followed.
    pub course: Course,
}
