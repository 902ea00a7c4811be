//! Where an evaluated state leads.

use super::common::{describe, error_in, is_prose, unjudged_verdict};
use super::event::{Event, RouteReason};
use super::judge::MOST_SAID;
use super::outcome::{Outcome, TerminatedBy};
use super::run::Ending;
use super::{Engine, bounds};
use crate::base::text::one_line;
use crate::evaluate::Evaluate;
use crate::evaluate::observation::NOT_FOUND_CODE;
use crate::evaluate::verdict::Verdict;
use crate::machine::routing::{self, ActionEnd, Reason};
use crate::machine::{Step, StepId, Target};

impl Engine<'_> {
    pub(super) fn leave(&self, id: StepId, verdict: &Verdict) -> Event {
        let step = self.machine.step(id);
        // Work that could not be made has nothing to say and no visit to compare.
        if self.run.is_unmade() {
            return self.route(id, verdict);
        }
        self.noted(step).unwrap_or_else(|| {
            // The message comes first and the route after it, one decision each.
            let route = self.route(id, verdict);
            self.stall(id, &route).unwrap_or(route)
        })
    }

    /// Returns what is done in place of going on in the same way once more. A terminal may always be entered.
    fn stall(&self, id: StepId, route: &Event) -> Option<Event> {
        let stall = self.machine.stall?;
        // A retry or a cap has bounds of its own.
        let Event::Route { from, to, verdict, reason: RouteReason::Verdict | RouteReason::Error } = route
        else {
            return None;
        };
        let goes_on = matches!(self.machine.find(to), Some(Target::Step(_)));
        let streak = self.run.streak(id).filter(|streak| goes_on && streak.visits >= stall.window)?;
        let state = from.clone();
        // The way out was taken already, and the same happened again.
        let Some(way) = stall.to.filter(|_| self.run.is_stalling()) else {
            return Some(Event::Stall { state, window: stall.window, seen: streak.seen.clone() });
        };
        Some(Event::Route {
            from: state,
            to: self.machine.name_of(way).clone(),
            verdict: verdict.clone(),
            reason: RouteReason::Stall,
        })
    }

    /// The state's message, once.
    pub(super) fn noted(&self, step: &Step) -> Option<Event> {
        // Once, because deciding comes back here after each event.
        let message = step.message.as_ref().filter(|_| !self.run.is_noted())?;
        Some(match self.render(message) {
            Ok(text) => {
                Event::Message { state: step.name.clone(), text: bounds::in_event(&text).into_owned() }
            }
            Err(error) => error_in(&step.name, "append_to_messages", &error.to_string()),
        })
    }

    /// Leaves a state whose way does not depend on a verdict.
    pub(super) fn go_on(&self, id: StepId) -> Event {
        self.route(id, &Verdict::yes_if(true))
    }

    /// Takes the way out of a state, or the one in its place when there were enough tries.
    pub(super) fn route(&self, id: StepId, verdict: &Verdict) -> Event {
        let step = self.machine.step(id);
        // A host that does not answer ends the run before its routes send the next call.
        if let Some(event) = self.broken(step, verdict) {
            return event;
        }
        let seen = self.run.seen();
        let ended = match seen {
            Some(seen) if seen.timed_out() => ActionEnd::Late,
            Some(seen) if !seen.succeeded() => ActionEnd::Badly,
            _ => ActionEnd::Well,
        };
        let rounds = self.run.rounds();
        let way = if self.run.is_unmade() {
            routing::unmade(self.machine, step)
        } else if self.is_excused(step, verdict) {
            routing::excused(self.machine, step, verdict)
        } else if self.is_without_model(step) {
            routing::without_model(self.machine, step)
        } else {
            routing::unjudged(step, id, verdict, rounds.unjudged)
                // In this order: it could not be judged, it has to pass again, and then the routes.
                .or_else(|| routing::repeated(step, id, verdict, rounds.passes))
                .or_else(|| self.made_again(step, id, verdict))
                .or_else(|| routing::way(self.machine, step, verdict, ended))
        };
        let Some(way) = way else {
            return self.no_way(step, verdict);
        };
        if let Some(cap) = self.run.capped() {
            // The handler of a cap has run; where it leads does not matter any more.
            return self.complete(self.exhausted(cap, &step.name));
        }
        let code = seen.map_or(0, |seen| seen.exit_code);
        let exhausted = routing::exhausted(self.machine, step, &way, self.run.tries(), code);
        let reason = match (exhausted, way.reason) {
            (Some(_), _) => RouteReason::RetryExhausted,
            (None, Reason::Verdict) => RouteReason::Verdict,
            (None, Reason::Next) => RouteReason::Next,
            (None, Reason::Error) => RouteReason::Error,
            (None, Reason::Unjudged) => RouteReason::Unjudged,
            (None, Reason::Repeat) => RouteReason::Repeat,
            (None, Reason::Flaky) => RouteReason::Flaky,
        };
        let to = self.machine.name_of(exhausted.unwrap_or(way.to)).clone();
        Event::Route { from: step.name.clone(), to, verdict: way.verdict, reason }
    }

    fn no_way(&self, step: &Step, verdict: &Verdict) -> Event {
        let name = &step.name;
        if verdict.as_str() == "blocked" {
            let why = self
                .run
                .evaluation()
                .and_then(|result| result.details.get("reason")?.as_str().map(str::to_owned));
            let why = why.map_or_else(String::new, |why| format!(": {}", one_line(&why, MOST_SAID)));
            return self.complete(Ending {
                outcome: Outcome::Blocked,
                by: TerminatedBy::Blocked,
                state: name.clone(),
                reason: format!("`{name}` is blocked{why}"),
                signal: None,
            });
        }
        let ways: Vec<_> = step.routes.ways().into_iter().map(|(word, _)| format!("`{word}`")).collect();
        let seen = self.run.seen().map_or_else(String::new, describe);
        let why = self.error_of_evaluation(step, verdict).map_or_else(String::new, |why| format!(": {why}"));
        let advice = self.advice(step, verdict);
        let error = format!(
            "no route for the verdict `{verdict}`{seen}{why}; the routes are {}{advice}",
            ways.join(", ")
        );
        Event::LoopError { state: name.clone(), error }
    }

    /// Returns the ways on after an error or a timeout: a route for it, more time, or another meaning of its exit code.
    fn advice(&self, step: &Step, verdict: &Verdict) -> String {
        if verdict.is_timeout() {
            return "; add `on_timeout`, or raise the `timeout` of the state".to_owned();
        }
        if !verdict.is_error() {
            return String::new();
        }
        let was_judged = self.run.seen().and_then(unjudged_verdict).is_none();
        let code = self.run.evaluation().and_then(|result| result.details.get("exit_code")?.as_i64());
        let code = code.and_then(|code| i32::try_from(code).ok()).filter(|_| was_judged);
        let other = match (&step.evaluate, code) {
            (Some(Evaluate::ExitCode(by)), Some(code)) => by.advice(code).map(|advice| (advice, code)),
            _ => None,
        };
        // `127` is how a shell says that it found no command.
        if code == Some(NOT_FOUND_CODE) {
            let text = self.run.action().unwrap_or("");
            let prompt = if is_prose(text) { "; if it is a prompt, write `action_type: prompt`" } else { "" };
            return format!("; install what it calls, or correct the name{prompt}; or add `on_error`");
        }
        match other {
            Some((advice, code)) => {
                format!("; add `on_error`, or write {advice} if {code} is an answer of this tool")
            }
            None => "; add `on_error`".to_owned(),
        }
    }

    /// Returns why the evaluator of this visit failed, if it did.
    fn error_of_evaluation(&self, step: &Step, verdict: &Verdict) -> Option<&str> {
        let was_judged = step.evaluate.is_some() && self.run.seen().and_then(unjudged_verdict).is_none();
        let evaluation = self.run.evaluation().filter(|_| was_judged && verdict.is_error())?;
        evaluation.details.get("error")?.as_str()
    }
}
