//! How far the work of a run is that plans its own, in the words of those who plan work.

use super::event::LoopComplete;
use super::outcome::Outcome;

/// The terminal of the paradigm `agents` for work that was given up. Another failure is work that did not do.
const ABORTED: &str = "aborted";

/// Returns the word for a run that has begun or not, and has ended so, if it has.
pub fn word(has_begun: bool, end: Option<&LoopComplete>) -> &'static str {
    let Some(end) = end else { return if has_begun { "running" } else { "not_started" } };
    match end.outcome {
        Outcome::Success => "completed",
        Outcome::Handoff | Outcome::Interrupted | Outcome::OverBudget | Outcome::Unavailable => "paused",
        Outcome::Timeout | Outcome::Stopped | Outcome::Error => ABORTED,
        Outcome::Failure if end.final_state.as_str() == ABORTED => ABORTED,
        Outcome::Failure | Outcome::Exhausted | Outcome::Blocked => "failed",
    }
}
