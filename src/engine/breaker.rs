//! Ends a run whose agents do not answer, instead of paying for one failed call after the other.

use super::Engine;
use super::calls::{FORM, stable};
use super::event::{CallFailed, Event};
use super::outcome::{Outcome, TerminatedBy};
use super::run::Ending;
use crate::base::name::StateName;
use crate::base::text::{head, one_line};
use crate::evaluate::observation::Cause;
use crate::evaluate::verdict::Verdict;
use crate::machine::Step;

/// How much of what was wrong with an answer is kept.
const KEPT: usize = 2 * 1024;

impl Engine<'_> {
    /// Counts a call that came to no usable answer, and ends the run where that was one too many. Nothing, where the
    /// state made no call, or one that was answered: then its routes decide.
    pub(super) fn broken(&self, step: &Step, verdict: &Verdict) -> Option<Event> {
        let call = step.call()?;
        // A call that was answered is judged as always, whatever the answer.
        let seen = self.run.seen().filter(|_| verdict.is_error() || verdict.is_timeout())?;
        // The failure was counted by an event of its own before, so that a resumed run counts the
        // same.
        if self.run.is_call_counted() {
            let reason = self.run.calls().given_up(call, step.retry.as_ref().map(|retry| retry.max))?;
            let (outcome, by) = (Outcome::Unavailable, TerminatedBy::Unavailable);
            return Some(self.complete(Ending {
                outcome,
                by,
                state: step.name.clone(),
                reason,
                signal: None,
            }));
        }
        let said = self.run.evaluation().and_then(|result| result.details.get("error")?.as_str());
        let (cause, error) = match (&seen.failure, seen.timed_out()) {
            (Some(why), _) if seen.cause == Some(Cause::Form) => (FORM.to_owned(), why.clone()),
            (Some(why), _) => {
                (format!("{}: {}", seen.cause.map_or("failed", Cause::word), stable(why)), why.clone())
            }
            (None, true) => {
                let late = crate::base::time::human(seen.duration);
                ("timeout".to_owned(), format!("it took too long: {late}"))
            }
            // The process may have said that it succeeded, and still have no answer that can be
            // used.
            (None, false) if seen.succeeded() => {
                (FORM.to_owned(), said.unwrap_or("there is no usable answer").to_owned())
            }
            (None, false) => ("exit".to_owned(), said.unwrap_or("it failed after its answer").to_owned()),
        };
        Some(Event::CallFailed(CallFailed {
            state: step.name.clone(),
            role: call.role.to_owned(),
            phase: call.phase.word().to_owned(),
            in_a_row: self.run.calls().in_a_row(call, &cause),
            cause: one_line(&cause, 200),
            error: head(&error, KEPT).to_owned(),
        }))
    }

    /// Returns what was wrong with the form of the last answer, where the call of a state is made again for that.
    pub(super) fn refused_form(&self, state: &StateName) -> Option<&str> {
        self.run.calls().refused_form(self.step_of(state)?.call()?)
    }
}
