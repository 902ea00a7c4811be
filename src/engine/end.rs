//! How a run comes to its end: the action of a terminal, another cycle, an outcome.

use super::changes::Changes;
use super::common::{describe, saved};
use super::event::{Event, HandoffReason, LoopComplete, RouteReason};
use super::outcome::{Asker, Outcome, TerminatedBy};
use super::question::GivenAnswer;
use super::run::Ending;
use super::waiting::{Decision, TurnEvidence};
use super::{Engine, budget};
use crate::base::explanation::Explanation;
use crate::base::name::StateName;
use crate::base::text::one_line;
use crate::base::time::{human, millis};
use crate::evaluate::observation::{Observation, Stop};
use crate::machine::{Action, End, EndId, Meaning};

impl Engine<'_> {
    /// Runs the action of a terminal, if it has one.
    pub(super) fn close(&self, id: EndId) -> Decision {
        let end = self.machine.end(id);
        let Some(action) = &end.closing else {
            return Decision::Happens(self.finish(id));
        };
        self.begin_closing(action, &end.name).unwrap_or_else(|why| {
            let message = format!("the closing action was not run: {why}");
            // The run has come to its end already. A closing action that cannot run changes nothing
            // about that.
            Decision::Happens(Event::Warning { state: Some(end.name.clone()), message })
        })
    }

    fn begin_closing(&self, action: &Action, name: &StateName) -> Result<Decision, Explanation> {
        if action.asks_agent() {
            if !self.may_ask() {
                return Err(Explanation::new("it needs an agent, and none may be asked here"));
            }
            if let Some(why) = budget::met(self.budget(), &self.charged(), self.run.dearest()) {
                return Err(Explanation::new(why));
            }
        }
        self.begin(action, name, &TurnEvidence::default()).map_err(Explanation::from)
    }

    /// A closing action changes nothing, but its failure is said. One that was stopped because the run is to end is
    /// made up for when the run goes on.
    pub(super) fn closed(&self, id: EndId) -> Event {
        let (seen, name) = (self.run.seen(), &self.machine.end(id).name);
        let was_cut_short = seen.is_some_and(Observation::was_cut_short);
        // Cut off by the end of the run, it is made up for when the run goes on.
        if let Some(interrupted) = self.interrupted(name).filter(|_| was_cut_short) {
            return interrupted;
        }
        match seen {
            Some(seen) if seen.stop == Some(Stop::NotRecorded) => self.complete(Ending {
                outcome: Outcome::Error,
                by: TerminatedBy::NotRecorded,
                state: name.clone(),
                reason: seen.why_not_started(),
                signal: None,
            }),
            Some(seen) if !seen.succeeded() => {
                let message = format!("the closing action failed{}", describe(seen));
                Event::Warning { state: Some(name.clone()), message }
            }
            _ => self.finish(id),
        }
    }

    pub(super) fn finish(&self, id: EndId) -> Event {
        let end = self.machine.end(id);
        // A cap was met, and its handler led here: the outcome is that of the cap.
        if let Some(cap) = self.run.capped() {
            return self.complete(Ending { state: end.name.clone(), ..self.exhausted(cap, &end.name) });
        }
        let cycles_left = self.machine.limits.cycles.is_none_or(|cap| self.run.cycle() < cap);
        let starts_again = self.machine.maintain.is_some() && self.cancel.is_none() && cycles_left;
        if starts_again && !self.ends_clean(end) {
            let to = end.on_maintain.unwrap_or(self.machine.initial);
            let (from, to) = (end.name.clone(), self.machine.name_of(to).clone());
            return Event::Route { from, to, verdict: None, reason: RouteReason::Maintain };
        }
        let name = &end.name;
        let verified = self.run.is_verified();
        let (outcome, reason) = match (end.meaning, verified) {
            // A declared failure is one even where everything passed.
            (Meaning::Failure, _) => (Outcome::Failure, explained(end, "")),
            (Meaning::Blocked, _) => (Outcome::Blocked, explained(end, ": a person is needed")),
            (Meaning::Success | Meaning::DeclaredSuccess, true) => (Outcome::Success, self.succeeded(end)),
            (Meaning::DeclaredSuccess, false) => {
                (Outcome::Success, format!("ended in `{name}`, which the loop declares a success"))
            }
            (Meaning::Success, false) if self.run.is_excused() => (Outcome::Success, self.succeeded(end)),
            (Meaning::Success, false) => {
                // Nothing failed, but nothing was seen to pass either. `--strict` asks for the
                // proof.
                let outcome = if self.start.event.strict { Outcome::Failure } else { Outcome::Success };
                let since = if self.run.is_doubted() { " since the last failing observation" } else { "" };
                (outcome, format!("ended in `{name}` unverified: nothing passed{since}"))
            }
        };
        let ending =
            Ending { outcome, by: TerminatedBy::Terminal, state: name.clone(), reason, signal: None };
        let unproven = end.meaning == Meaning::Success && outcome == Outcome::Failure;
        Event::LoopComplete(LoopComplete { unproven, ..self.loop_end(ending) })
    }

    /// Tells whether a run that wants a clean cycle has one with this end.
    fn ends_clean(&self, end: &End) -> bool {
        let is_success = matches!(end.meaning, Meaning::Success | Meaning::DeclaredSuccess);
        self.start.event.until_clean && is_success && !self.run.is_doubted()
    }

    pub(super) fn succeeded(&self, end: &End) -> String {
        let (name, cycle) = (&end.name, self.run.cycle());
        if self.ends_clean(end) {
            format!("cycle {cycle} needed no fix")
        } else if self.start.event.until_clean {
            format!("ended in `{name}`, and cycle {cycle} needed a fix")
        } else {
            format!("ended in `{name}`")
        }
    }

    /// A cycle in which nothing failed, but after which the tree is another one, was not without a fix.
    pub(super) fn unless_clean(&self, end: LoopComplete) -> LoopComplete {
        let changes = end.changes.as_ref().and_then(Changes::known).filter(|changes| changes.has_own());
        match changes {
            Some(changes) if self.start.event.until_clean && end.outcome == Outcome::Success => {
                let reason = format!("cycle {} passed, and the run changed {}", end.cycles, changes.words());
                LoopComplete { reason, ..end }
            }
            Some(_) | None => end,
        }
    }

    pub(super) fn hand_off(&self, state: &StateName) -> Event {
        let message = format!("the deadline of this job came after {}", human(self.now));
        saved(state, HandoffReason::Deadline, message)
    }

    /// Returns the end of a run that was asked to end.
    pub(super) fn interrupted(&self, state: &StateName) -> Option<Event> {
        let state = state.clone();
        Some(self.complete(match self.cancel? {
            Asker::Signal(signal) => Ending {
                outcome: Outcome::Interrupted,
                by: TerminatedBy::Interrupted,
                reason: format!("interrupted by {} in `{state}`", signal.name()),
                state,
                signal: Some(signal),
            },
            Asker::Lease => Ending {
                outcome: Outcome::LeaseLost,
                by: TerminatedBy::LeaseLost,
                reason: format!(
                    "the lease of its scope was lost in `{state}`: it was not renewed in time, and another machine may \
                     have taken it over"
                ),
                state,
                signal: None,
            },
            Asker::ClosedPull => Ending {
                outcome: Outcome::Cancelled,
                by: TerminatedBy::Cancelled,
                reason: format!("the pull request was closed before somebody answered in `{state}`"),
                state,
                signal: None,
            },
            Asker::StoppedQuestion => {
                let answer = self.run.question().and_then(|question| question.answer.as_ref());
                let who = answer.map_or_else(|| "stopped".to_owned(), GivenAnswer::sentence);
                Ending {
                    outcome: Outcome::Cancelled,
                    by: TerminatedBy::Cancelled,
                    reason: format!("{who} before somebody answered in `{state}`"),
                    state,
                    signal: None,
                }
            }
        }))
    }

    pub(super) fn complete(&self, ending: Ending) -> Event {
        Event::LoopComplete(self.loop_end(ending))
    }

    fn loop_end(&self, ending: Ending) -> LoopComplete {
        LoopComplete {
            iterations: self.run.iteration(),
            steps: self.run.step(),
            cycles: self.run.cycle(),
            duration_ms: millis(self.now),
            verified: self.run.is_verified(),
            exit_code: ending.outcome.exit_code(ending.signal),
            signal: ending.signal,
            reason: ending.reason,
            // What changed, and what verified it, only the look at the tree on which the run ends can tell.
            ..LoopComplete::new(ending.outcome, ending.by, ending.state)
        }
    }
}

/// The longest explanation of an end, in characters.
const MAX_EXPLANATION: usize = 300;

/// Names an end that is not a success, with the explanation that its author gave, or else the usual one.
fn explained(end: &End, usual: &str) -> String {
    let name = &end.name;
    match end.description.as_deref().map(|description| one_line(description, MAX_EXPLANATION)) {
        Some(why) if !why.is_empty() => format!("ended in `{name}`: {why}"),
        _ => format!("ended in `{name}`{usual}"),
    }
}
