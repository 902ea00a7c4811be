//! How far the work of a run is that plans its own, in the words of those who plan work.

use serde_json::{Value, json};

use super::event::LoopComplete;
use super::outcome::Outcome;
use crate::board::Board;

/// Returns the word for a run that has begun or not, with its board, and has ended so, if it has.
pub fn word(has_begun: bool, board: &Board, end: Option<&LoopComplete>) -> &'static str {
    let Some(end) = end else { return if has_begun { "running" } else { "not_started" } };
    match end.outcome {
        Outcome::Success => "completed",
        Outcome::Handoff
        | Outcome::Interrupted
        | Outcome::OverBudget
        | Outcome::Unavailable
        | Outcome::LeaseLost => "paused",
        Outcome::Timeout | Outcome::Stopped | Outcome::Error | Outcome::Cancelled => "aborted",
        Outcome::Failure if board.planning.is_aborted => "aborted",
        Outcome::Failure | Outcome::Exhausted | Outcome::Blocked => "failed",
    }
}

/// Returns the board with that word, as `state.json` and `status` have it.
pub fn shown(has_begun: bool, board: &Board, end: Option<&LoopComplete>) -> Value {
    json!({ "execution": word(has_begun, board, end), "planning": board.planning, "tasks": board.tasks })
}
