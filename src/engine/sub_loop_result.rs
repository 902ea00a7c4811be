//! What the end of a sub-loop means for the run around it.

use indexmap::IndexMap;

use super::event::{Event, Halt, SubLoopComplete};
use super::outcome::{Outcome, TerminatedBy};
use super::request::{SubLoopEnd, SubLoopRequest};
use crate::base::explanation::Explanation;
use crate::base::name::StateName;
use crate::evaluate::model::Usage;
use crate::evaluate::observation::Text;
use crate::evaluate::verdict::Verdict;

/// The end of a sub-loop as an event.
pub(super) fn completed(
    state: StateName,
    request: SubLoopRequest,
    end: Result<SubLoopEnd, Explanation>,
) -> Event {
    Event::SubLoopComplete(match end {
        Ok(end) => SubLoopComplete {
            halt: halt(&end),
            state,
            r#loop: request.name,
            verdict: sub_loop_verdict(end.complete.outcome),
            exit_code: end.complete.exit_code.into(),
            outcome: Some(end.complete.outcome),
            final_state: Some(end.complete.final_state),
            // What passed on a branch of its own says nothing about the tree that the run around it ends on.
            verified: end.complete.verified && request.worktree.is_none(),
            steps: end.complete.steps,
            duration_ms: end.complete.duration_ms,
            terminated_by: Some(end.complete.terminated_by),
            reason: end.complete.reason,
            error: None,
            usage: end.usage,
            captured: if request.gives_back { end.captured } else { IndexMap::new() },
            sub_loops: if request.gives_back { end.sub_loops } else { IndexMap::new() },
            output: end.output,
        },
        Err(error) => SubLoopComplete {
            state,
            r#loop: request.name,
            verdict: Verdict::error(),
            // The exit code of a command that was called wrongly: the sub-loop never began.
            exit_code: 2,
            outcome: None,
            final_state: None,
            verified: false,
            steps: 0,
            duration_ms: 0,
            terminated_by: None,
            reason: String::new(),
            error: Some(error.into()),
            halt: None,
            usage: Usage::default(),
            captured: IndexMap::new(),
            sub_loops: IndexMap::new(),
            output: Text::default(),
        },
    })
}

/// Returns what a run has to end with because its sub-loop ended so.
fn halt(end: &SubLoopEnd) -> Option<Halt> {
    let complete = &end.complete;
    match (complete.terminated_by, &end.handoff) {
        // What asks for more time or another session asks for it of the whole run.
        (TerminatedBy::Handoff, Some(handoff)) => Some(Halt::Handoff(handoff.clone())),
        (
            terminated_by @ (TerminatedBy::FatalError
            | TerminatedBy::LoopStop
            | TerminatedBy::Budget
            | TerminatedBy::Unavailable
            | TerminatedBy::NotRecorded),
            _,
        ) => Some(Halt::End { outcome: complete.outcome, terminated_by, reason: complete.reason.clone() }),
        (
            TerminatedBy::Terminal
            | TerminatedBy::UncommittedChanges
            | TerminatedBy::NotConfirmed
            | TerminatedBy::MaxIterations
            | TerminatedBy::MaxSteps
            | TerminatedBy::MaxEdgeRevisits
            | TerminatedBy::Error
            | TerminatedBy::Blocked
            | TerminatedBy::Timeout
            | TerminatedBy::Handoff
            | TerminatedBy::Interrupted
            | TerminatedBy::LeaseLost
            | TerminatedBy::Cancelled
            | TerminatedBy::Stall
            | TerminatedBy::JournalLost
            | TerminatedBy::Killed,
            _,
        ) => None,
    }
}

/// What the end of a sub-loop means for the state that ran it.
pub(super) fn sub_loop_verdict(outcome: Outcome) -> Verdict {
    match outcome {
        Outcome::Success => Verdict::new("success"),
        Outcome::Failure
        | Outcome::Exhausted
        | Outcome::Stopped
        | Outcome::OverBudget
        | Outcome::Handoff
        | Outcome::Interrupted
        | Outcome::LeaseLost
        | Outcome::Cancelled => Verdict::new("failure"),
        Outcome::Error | Outcome::Unavailable => Verdict::error(),
        Outcome::Blocked => Verdict::new("blocked"),
        Outcome::Timeout => Verdict::timeout(),
    }
}
