//! Events and phrases that several decisions have in common.

use super::event::{Event, Handoff, HandoffReason};
use crate::base::name::StateName;
use crate::base::time::human;
use crate::evaluate::observation::Observation;
use crate::evaluate::verdict::Verdict;
use crate::machine::OnHandoff;

/// Saves a run for a later one, for a reason that no action gave.
pub(super) fn saved(state: &StateName, reason: HandoffReason, message: String) -> Event {
    let (state, behavior) = (state.clone(), OnHandoff::Pause);
    Event::Handoff(Handoff { state, reason, message, continuation: None, behavior, awaiting: None })
}

pub(super) fn error_in(state: &StateName, key: &str, error: &str) -> Event {
    Event::LoopError { state: state.clone(), error: format!("in `{key}`: {error}") }
}

/// Returns the verdict of an action that is not handed to any evaluator.
pub(super) fn unjudged_verdict(seen: &Observation) -> Option<Verdict> {
    if seen.timed_out() {
        Some(Verdict::timeout())
    } else if seen.failure.is_some() {
        Some(Verdict::error())
    } else {
        None
    }
}

/// Says how an action ended, in parentheses.
pub(super) fn describe(seen: &Observation) -> String {
    match (&seen.failure, seen.timed_out(), seen.signal) {
        (Some(why), _, _) => format!(" ({why})"),
        (None, true, _) => format!(" (timed out after {})", human(seen.duration)),
        (None, false, Some(signal)) => format!(" (killed by signal {signal})"),
        (None, false, None) => format!(" (exit {})", seen.exit_code),
    }
}

/// Tells whether a text looks like words for somebody, and not like a command.
pub(super) fn is_prose(text: &str) -> bool {
    let begins = text.trim_start().starts_with(|c: char| c.is_ascii_uppercase());
    // A shell command rarely begins with a capital letter, and hardly ever has four words without a
    // sign of the shell.
    begins && text.split_whitespace().count() > 3 && !text.contains(['|', ';', '&', '$', '<', '>', '=', '/'])
}
