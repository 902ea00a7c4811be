//! Whether, when and how a state is entered: time, caps, waits and tries.

use std::time::Duration;

use super::Engine;
use super::event::{Event, RouteReason};
use super::outcome::{Outcome, TerminatedBy};
use super::run::Ending;
use super::waiting::Decision;
use crate::base::name::StateName;
use crate::base::text::plural;
use crate::base::time::millis;
use crate::machine::{Cap, StepId, Target};

/// How long the wait before another try becomes at most.
const LONGEST_RETRY: Duration = Duration::from_mins(10);

impl Engine<'_> {
    /// Cancellation first, then the end, then the caps, then work.
    pub(super) fn arrive(&self, to: Target, waited: bool) -> Decision {
        if let Some(interrupted) = self.interrupted(self.machine.name_of(to)) {
            return Decision::Happens(interrupted);
        }
        match to {
            Target::End(id) => self.close(id),
            Target::Step(id) => Decision::Happens(self.approach(id, waited)),
        }
    }

    fn approach(&self, id: StepId, waited: bool) -> Event {
        if let Some(refused) = self.refuse(id) {
            return refused;
        }
        // The longer of both waits holds for both of their reasons.
        let wait = self.wait_before(id).into_iter().chain(self.wait_before_retry(id)).max();
        if let Some(wait) = wait.filter(|_| !waited) {
            return Event::Backoff { state: self.machine.step(id).name.clone(), duration_ms: millis(wait) };
        }
        // Announced before it is entered, so that the journal says why the state comes once more.
        self.retry(id).unwrap_or_else(|| self.enter(id))
    }

    /// Announces another try of a state that bounds its tries.
    fn retry(&self, id: StepId) -> Option<Event> {
        let step = self.machine.step(id);
        let retry = step.retry.as_ref()?;
        let again = self.run.is_another_try(id) && !self.run.is_retry_announced();
        let (state, attempt) = (step.name.clone(), self.run.tries().saturating_add(1));
        again.then(|| Event::Retry { state, attempt, max_retries: retry.max })
    }

    pub(super) fn enter(&self, id: StepId) -> Event {
        let run = &self.run;
        let again = run.last_entered() == Some(id);
        Event::StateEnter {
            state: self.machine.step(id).name.clone(),
            iteration: run.iteration().saturating_add(u32::from(run.begins_pass(id))),
            step: run.step().saturating_add(1),
            attempt: if again { run.attempt().saturating_add(1) } else { 1 },
        }
    }

    /// Enters the state once more whose step was not finished: it is the same step, and counts once.
    pub(super) fn enter_again(&self, id: StepId) -> Event {
        let state = self.machine.step(id).name.clone();
        let (iteration, step, attempt) = (self.run.iteration(), self.run.step(), self.run.attempt());
        let ended = self.interrupted(&state).or_else(|| self.out_of_time(&state));
        ended.unwrap_or(Event::StateEnter { state, iteration, step, attempt })
    }

    /// Returns why a state must not be entered, or what is entered in its place.
    fn refuse(&self, id: StepId) -> Option<Event> {
        let name = &self.machine.step(id).name;
        self.out_of_time(name).or_else(|| self.out_of_bounds(id, name))
    }

    /// Returns the end of a run whose time is over.
    pub(super) fn out_of_time(&self, name: &StateName) -> Option<Event> {
        if self.timeout().is_some_and(|timeout| self.now >= timeout) {
            return Some(Event::LoopTimeout { state: name.clone(), elapsed_ms: millis(self.now) });
        }
        if self.start.deadline.is_some_and(|deadline| self.now >= deadline) {
            // A hand-off and no failure: the job has no time left, the loop may have.
            return Some(self.hand_off(name));
        }
        None
    }

    fn out_of_bounds(&self, id: StepId, name: &StateName) -> Option<Event> {
        if self.run.capped().is_some() {
            // The handler of a cap runs although the cap is met.
            return None;
        }
        // Asked of the state that would come next, so that a terminal is never refused.
        if let Some(cap) = self.run.cap_before(self.machine, id) {
            return Some(self.cap_met(cap, name));
        }
        self.overused_edge(name)
    }

    fn cap_met(&self, cap: TerminatedBy, next: &StateName) -> Event {
        let limits = self.machine.limits;
        let handler = match cap {
            TerminatedBy::MaxSteps => limits.steps.and_then(|cap| cap.handler),
            TerminatedBy::MaxIterations
            | TerminatedBy::MaxEdgeRevisits
            | TerminatedBy::Terminal
            | TerminatedBy::UncommittedChanges
            | TerminatedBy::NotConfirmed
            | TerminatedBy::Error
            | TerminatedBy::Blocked
            | TerminatedBy::Timeout
            | TerminatedBy::Handoff
            | TerminatedBy::Interrupted
            | TerminatedBy::LeaseLost
            | TerminatedBy::Cancelled
            | TerminatedBy::Stall
            | TerminatedBy::FatalError
            | TerminatedBy::LoopStop
            | TerminatedBy::Budget
            | TerminatedBy::Unavailable
            | TerminatedBy::NotRecorded
            | TerminatedBy::JournalLost
            | TerminatedBy::Killed => limits.iterations.handler,
        };
        match (handler, self.run.current()) {
            (Some(handler), Some(from)) => Event::Route {
                from: from.clone(),
                to: self.machine.name_of(handler).clone(),
                // A handler belongs to the state that met its cap. Before the first state there is
                // nothing to lead away from.
                verdict: None,
                reason: RouteReason::Cap,
            },
            _ => self.complete(self.exhausted(cap, next)),
        }
    }

    pub(super) fn exhausted(&self, cap: TerminatedBy, state: &StateName) -> Ending {
        let limits = self.machine.limits;
        let reason = match (cap, limits.steps) {
            (TerminatedBy::MaxSteps, Some(Cap { limit, .. })) => {
                format!("max_steps ({limit}) reached before `{state}`")
            }
            _ => format!("max_iterations ({}) reached before `{state}`", self.run.iteration_cap()),
        };
        let state = self.run.current().unwrap_or(state).clone();
        Ending { outcome: Outcome::Exhausted, by: cap, state, reason, signal: None }
    }

    fn overused_edge(&self, to: &StateName) -> Option<Event> {
        let limit = self.machine.limits.edge_revisits?;
        let from = self.run.current()?;
        let used = *self.run.edges().get(&(from.clone(), to.clone()))?;
        // The fold counted this way already when it was taken.
        (used > limit).then(|| {
            self.complete(Ending {
                outcome: Outcome::Exhausted,
                by: TerminatedBy::MaxEdgeRevisits,
                state: from.clone(),
                reason: format!("the way from `{from}` to `{to}` was taken {}", plural(used, "time")),
                signal: None,
            })
        })
    }

    fn wait_before(&self, id: StepId) -> Option<Duration> {
        let wait = match (self.run.is_restarting(), self.machine.maintain) {
            (true, Some(maintain)) => maintain.delay,
            _ if self.run.begins_pass(id) => self.machine.limits.backoff?,
            _ => return None,
        };
        (wait > Duration::ZERO).then_some(wait)
    }

    /// Returns the wait before another try of a state, which doubles from try to try.
    fn wait_before_retry(&self, id: StepId) -> Option<Duration> {
        let retry = self.machine.step(id).retry.as_ref()?;
        let tries = self.run.tries().checked_sub(1).filter(|_| self.run.is_another_try(id))?;
        // The shift is bounded before it is made, or it would overflow after many tries.
        let wait = retry.delay.saturating_mul(1 << tries.min(16)).min(LONGEST_RETRY);
        (wait > Duration::ZERO).then_some(wait)
    }
}
