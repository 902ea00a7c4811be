//! From where a run stands to the next thing that happens in it. One decision is one event.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::base::name::StateName;
use crate::base::template::{RenderError, Template};
use crate::base::text::plural;
use crate::base::time::{human, millis};
use crate::evaluate::field::FieldError;
use crate::evaluate::observation::{Observation, Stop, Text};
use crate::evaluate::survey::Surveyed;
use crate::evaluate::verdict::Verdict;
use crate::evaluate::{Judged, Judging};
use crate::machine::routing::{self, Ended, Reason};
use crate::machine::{
    Action, Binding, Cap, EndId, Meaning, Routes, ShellAction, Step, StepId, SubLoopAction, SubLoopInput,
    Target,
};

use super::event::{ActionComplete, ActionKind, Event, LoopComplete, RouteReason, SubLoopComplete, Tree};
use super::outcome::{Outcome, TerminatedBy};
use super::request::{ActionRequest, Around, SubLoopEnd, SubLoopRequest, SurveyRequest};
use super::run::{Deciding, Ending, Phase};
use super::{Engine, Request, environment};

/// How long the action of a terminal may take when nothing else is said.
const CLOSING_TIME: Duration = Duration::from_mins(1);

/// Whether the working tree has been looked at, as far as a decision needs it.
enum Look {
    /// Everything that is needed is known.
    Seen,
    /// This scope has to be looked at first.
    Due(Vec<String>),
    /// It comes to something else.
    Refused(Box<Event>),
}

impl Engine<'_> {
    /// Makes the decision that is due, or none when the world is to move or the run is over.
    pub(super) fn decide(&mut self) -> Option<Event> {
        let Phase::Deciding(deciding) = self.run.phase() else {
            return None;
        };
        let deciding = deciding.clone();
        if let Some(id) = self.judged_now(&deciding) {
            match self.look(id) {
                Look::Seen => {}
                Look::Due(scope) => {
                    let limit = self.end_of_action(None).map(|(left, _)| left);
                    self.survey = Some(SurveyRequest { scope, limit });
                    return None;
                }
                Look::Refused(event) => return Some(*event),
            }
        }
        Some(match deciding {
            Deciding::Arrive { to, waited } => self.arrive(to, waited),
            Deciding::Act(id) => self.act(id),
            Deciding::Judge(id) => self.judge(id),
            Deciding::Leave(id, verdict) => self.leave(id, &verdict),
            Deciding::Closed(id) => self.closed(id),
            Deciding::Finish(id) => self.finish(id),
            Deciding::End(ending) => self.complete(ending),
        })
    }

    /// Returns the step that an evaluator is about to judge.
    fn judged_now(&self, deciding: &Deciding) -> Option<StepId> {
        let id = match deciding {
            Deciding::Judge(id) => *id,
            Deciding::Act(id) if self.machine.step(*id).action.is_none() => *id,
            Deciding::Arrive { .. }
            | Deciding::Act(_)
            | Deciding::Leave(..)
            | Deciding::Closed(_)
            | Deciding::Finish(_)
            | Deciding::End(_) => return None,
        };
        let step = self.machine.step(id);
        let has_evaluator = step.evaluate.is_some()
            && matches!(step.routes, Routes::ByVerdict { .. })
            && self.run.seen().and_then(unjudged_verdict).is_none();
        let is_judged = has_evaluator || self.run.sub_loop().is_some();
        (is_judged && self.ended_around(step).is_none()).then_some(id)
    }

    /// Finds out whether a survey of the working tree is missing before a step can be judged.
    fn look(&mut self, id: StepId) -> Look {
        let step = self.machine.step(id);
        let scopes = match self.scopes(step) {
            Ok(scopes) => scopes,
            Err(error) => {
                return Look::Refused(Box::new(error_in(&step.name, "evaluate", &error.to_string())));
            }
        };
        let missing = scopes.into_iter().find(|scope| self.surveyed(scope).is_none());
        match (missing, self.interrupted(&step.name)) {
            (None, _) => {
                // A look that the end of the run cut short is no error of the state.
                let was_cut = self.surveys.iter().any(|(_, surveyed)| surveyed.is_err());
                let event = self.out_of_time(&step.name).filter(|_| was_cut);
                event.map_or(Look::Seen, |event| Look::Refused(Box::new(event)))
            }
            // Whoever wants the run to end does not wait for it.
            (Some(_), Some(interrupted)) => {
                self.survey = None;
                Look::Refused(Box::new(interrupted))
            }
            (Some(scope), None) => Look::Due(scope),
        }
    }

    /// Returns the scopes of the surveys that a step needs.
    fn scopes(&self, step: &Step) -> Result<Vec<Vec<String>>, RenderError> {
        let of_evaluator = self.scope_of(step)?;
        let of_stall = self.machine.stall.map(|_| Vec::new());
        Ok(of_evaluator.into_iter().chain(of_stall).collect())
    }

    /// Returns the scope of the survey that the evaluator of a step needs.
    fn scope_of(&self, step: &Step) -> Result<Option<Vec<String>>, RenderError> {
        let scope = step.evaluate.as_ref().and_then(|evaluate| evaluate.survey());
        scope.map(|scope| scope.iter().map(|path| self.render(path)).collect()).transpose()
    }

    fn surveyed(&self, scope: &[String]) -> Option<&Surveyed> {
        self.surveys.iter().find(|(of, _)| of == scope).map(|(_, surveyed)| surveyed)
    }

    /// Returns the working tree as an event keeps it, when the loop looks for stalls.
    fn tree(&self) -> Option<Tree> {
        self.machine.stall?;
        Some(match self.surveyed(&[])? {
            Ok(survey) => Tree::Seen(survey.clone()),
            Err(why) => Tree::Unseen { unseen: why.clone() },
        })
    }

    /// The end of an action as an event.
    pub(super) fn completed(&self, seen: Observation) -> Event {
        Event::ActionComplete(ActionComplete { step: self.run.step(), seen })
    }

    /// Cancellation first, then the end, then the caps, then work.
    fn arrive(&mut self, to: Target, waited: bool) -> Event {
        if let Some(interrupted) = self.interrupted(self.machine.name_of(to)) {
            return interrupted;
        }
        let id = match to {
            Target::End(id) => return self.close(id),
            Target::Step(id) => id,
        };
        if let Some(refused) = self.refuse(id) {
            return refused;
        }
        if !waited && let Some(wait) = self.wait_before(id) {
            return Event::Backoff { state: self.machine.step(id).name.clone(), duration_ms: millis(wait) };
        }
        self.retry(id).unwrap_or_else(|| self.enter(id))
    }

    /// Announces another try of a state that bounds its tries.
    fn retry(&self, id: StepId) -> Option<Event> {
        let step = self.machine.step(id);
        let retry = step.retry.as_ref()?;
        let again = self.run.last_entered() == Some(id) && !self.run.is_retry_announced();
        let (state, attempt) = (step.name.clone(), self.run.attempt() + 1);
        again.then(|| Event::Retry { state, attempt, max_retries: retry.max })
    }

    fn enter(&self, id: StepId) -> Event {
        let run = &self.run;
        let again = run.last_entered() == Some(id);
        Event::StateEnter {
            state: self.machine.step(id).name.clone(),
            iteration: run.iteration() + u32::from(run.begins_pass(id)),
            step: run.step() + 1,
            attempt: if again { run.attempt() + 1 } else { 1 },
        }
    }

    /// Returns why a state must not be entered, or what is entered in its place.
    fn refuse(&self, id: StepId) -> Option<Event> {
        let name = &self.machine.step(id).name;
        self.out_of_time(name).or_else(|| self.out_of_bounds(id, name))
    }

    /// Returns the end of a run whose time is over.
    fn out_of_time(&self, name: &StateName) -> Option<Event> {
        if self.timeout().is_some_and(|timeout| self.now >= timeout) {
            return Some(Event::LoopTimeout { state: name.clone(), elapsed_ms: millis(self.now) });
        }
        if self.start.deadline.is_some_and(|deadline| self.now >= deadline) {
            return Some(self.hand_off(name));
        }
        None
    }

    fn out_of_bounds(&self, id: StepId, name: &StateName) -> Option<Event> {
        if self.run.capped().is_some() {
            // The handler of a cap runs although the cap is met.
            return None;
        }
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
            | TerminatedBy::Error
            | TerminatedBy::Blocked
            | TerminatedBy::Timeout
            | TerminatedBy::Handoff
            | TerminatedBy::Interrupted
            | TerminatedBy::Stall => limits.iterations.handler,
        };
        match (handler, self.run.current()) {
            (Some(handler), Some(from)) => Event::Route {
                from: from.clone(),
                to: self.machine.name_of(handler).clone(),
                verdict: None,
                reason: RouteReason::Cap,
            },
            _ => self.complete(self.exhausted(cap, next)),
        }
    }

    fn exhausted(&self, cap: TerminatedBy, state: &StateName) -> Ending {
        let limits = self.machine.limits;
        let reason = match (cap, limits.steps) {
            (TerminatedBy::MaxSteps, Some(Cap { limit, .. })) => {
                format!("max_steps ({limit}) reached before `{state}`")
            }
            _ => format!("max_iterations ({}) reached before `{state}`", limits.iterations.limit),
        };
        let state = self.run.current().unwrap_or(state).clone();
        Ending { outcome: Outcome::Exhausted, by: cap, state, reason, signal: None }
    }

    fn overused_edge(&self, to: &StateName) -> Option<Event> {
        let limit = self.machine.limits.edge_revisits?;
        let from = self.run.current()?;
        let used = *self.run.edges().get(&(from.clone(), to.clone()))?;
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

    fn act(&mut self, id: StepId) -> Event {
        let step = self.machine.step(id);
        match &step.action {
            Some(Action::Shell(shell)) => match self.request(shell, Some(step)) {
                Ok(event) => event,
                Err(error) => error_in(&step.name, "action", &error.to_string()),
            },
            Some(Action::SubLoop(sub)) => match self.request_sub_loop(sub, &step.name) {
                Ok(event) => event,
                Err(error) => error_in(&step.name, "loop", &error.to_string()),
            },
            None => self.judge(id),
        }
    }

    /// Resolves an action and announces it.
    fn request(&mut self, shell: &ShellAction, step: Option<&Step>) -> Result<Event, RenderError> {
        let text = self.render(&shell.text)?;
        let cwd = shell.cwd.as_ref().map(|cwd| self.render(cwd)).transpose()?;
        let mut env = environment::variables(self);
        for (name, value) in self.machine.env.iter().chain(&shell.env) {
            env.push((name.clone(), self.render(value)?));
        }
        let timeout = if step.is_none() { shell.timeout.or(Some(CLOSING_TIME)) } else { shell.timeout };
        self.request = Some(Request::Action(ActionRequest {
            shell: shell.shell.clone(),
            text: text.clone(),
            env,
            cwd,
            end: self.end_of_action(timeout),
            idle: shell.idle_timeout,
        }));
        let state = match (step, self.run.phase()) {
            (Some(step), _) => step.name.clone(),
            (None, Phase::Deciding(Deciding::Arrive { to, .. })) => self.machine.name_of(*to).clone(),
            (None, _) => self.machine.name_of(self.machine.initial).clone(),
        };
        Ok(Event::ActionStart { state, action: text, kind: ActionKind::Shell })
    }

    /// Resolves a sub-loop and announces it.
    fn request_sub_loop(&mut self, sub: &SubLoopAction, state: &StateName) -> Result<Event, RenderError> {
        let name = self.render(&sub.name)?;
        let mut params = Map::new();
        let mut around = None;
        match &sub.given {
            SubLoopInput::Nothing => {}
            SubLoopInput::Everything => {
                let (context, captured) = (self.start.context.clone(), self.run.captured().clone());
                around = Some(Around { context, captured });
            }
            SubLoopInput::Parameters(bindings) => {
                for (name, binding) in bindings {
                    let value = match binding {
                        Binding::Text(text) => Value::String(self.render(text)?),
                        Binding::Value(value) => value.clone(),
                    };
                    params.insert(name.to_string(), value);
                }
            }
        }
        let left = |end: Duration| end.saturating_sub(self.now);
        let timeout = sub.timeout.into_iter().chain(self.timeout().map(left)).min();
        let deadline = self.start.deadline.map(left);
        let request = SubLoopRequest { name: name.clone(), params, around, timeout, deadline };
        self.request = Some(Request::SubLoop(Box::new(request)));
        Ok(Event::SubLoopStart { state: state.clone(), r#loop: name })
    }

    /// The end of a sub-loop as an event.
    pub(super) fn completed_sub_loop(&self, id: StepId, end: Result<SubLoopEnd, String>) -> Event {
        let step = self.machine.step(id);
        let (name, gives_back) = match (&self.request, &step.action) {
            (_, Some(Action::SubLoop(sub))) => {
                (self.render(&sub.name).unwrap_or_default(), matches!(sub.given, SubLoopInput::Everything))
            }
            (_, Some(Action::Shell(_)) | None) => (String::new(), false),
        };
        let state = step.name.clone();
        Event::SubLoopComplete(match end {
            Ok(end) => SubLoopComplete {
                state,
                r#loop: name,
                verdict: sub_loop_verdict(end.complete.outcome),
                exit_code: end.complete.exit_code.into(),
                final_state: Some(end.complete.final_state),
                steps: end.complete.steps,
                duration_ms: end.complete.duration_ms,
                error: None,
                captured: if gives_back { end.captured } else { IndexMap::new() },
                output: end.output,
            },
            Err(error) => SubLoopComplete {
                state,
                r#loop: name,
                verdict: Verdict::error(),
                exit_code: 2,
                final_state: None,
                steps: 0,
                duration_ms: 0,
                error: Some(error),
                captured: IndexMap::new(),
                output: Text::default(),
            },
        })
    }

    /// Returns the first thing that would end an action from outside.
    fn end_of_action(&self, timeout: Option<Duration>) -> Option<(Duration, Stop)> {
        let left = |end: Duration| end.saturating_sub(self.now);
        let own = timeout.map(|timeout| (timeout, Stop::Timeout));
        let run = self.timeout().map(|end| (left(end), Stop::LoopTimeout));
        let job = self.start.deadline.map(|end| (left(end), Stop::Deadline));
        own.into_iter().chain(run).chain(job).min_by_key(|(after, _)| *after)
    }

    fn judge(&mut self, id: StepId) -> Event {
        let step = self.machine.step(id);
        if let Some(event) = self.ended_around(step) {
            return event;
        }
        if let Some(sub) = self.run.sub_loop() {
            let mut details = Map::new();
            details.insert("exit_code".to_owned(), sub.exit_code.into());
            details.insert("final_state".to_owned(), sub.final_state.as_ref().map(StateName::as_str).into());
            details.insert("steps".to_owned(), sub.steps.into());
            details.extend(sub.error.clone().map(|error| ("error".to_owned(), error.into())));
            let verdict = sub.verdict.clone();
            let (r#type, tree) = ("sub_loop".to_owned(), self.tree());
            return Event::Evaluate { r#type, verdict, details, memory: None, tree };
        }
        let unjudged = self.run.seen().and_then(unjudged_verdict);
        match (&step.routes, &step.evaluate, unjudged) {
            (Routes::Always { .. }, _, _) => self.noted(step).unwrap_or_else(|| self.go_on(step)),
            (Routes::ByVerdict { .. }, _, Some(verdict)) => {
                self.noted(step).unwrap_or_else(|| self.route(step, &verdict))
            }
            (Routes::ByVerdict { .. }, Some(evaluate), None) => {
                let scope = match self.scope_of(step) {
                    Ok(scope) => scope,
                    Err(error) => return error_in(&step.name, "evaluate", &error.to_string()),
                };
                let judging = Judging {
                    seen: self.run.seen(),
                    scope: &self.scope(),
                    action: self.run.action(),
                    memory: self.run.memories().get(&id),
                    survey: scope.and_then(|scope| self.surveyed(&scope)),
                };
                let judged = match evaluate.judge(judging) {
                    Ok(judged) => judged,
                    Err(FieldError::Render(error)) => {
                        return error_in(&step.name, "evaluate", &error.to_string());
                    }
                    Err(unreadable @ FieldError::Unreadable { .. }) => Judged::error(unreadable.to_string()),
                };
                let Judged { verdict, details, memory } = judged;
                Event::Evaluate {
                    r#type: evaluate.name().to_owned(),
                    verdict,
                    details,
                    memory,
                    tree: self.tree(),
                }
            }
            (Routes::ByVerdict { .. }, None, None) => {
                let yes = Verdict::yes_if(true);
                self.noted(step).unwrap_or_else(|| self.route(step, &yes))
            }
        }
    }

    /// An action that was stopped because the run is to end ends the run.
    fn ended_around(&self, step: &Step) -> Option<Event> {
        if self.run.sub_loop().is_some() {
            return self.interrupted(&step.name).or_else(|| self.out_of_time(&step.name));
        }
        match self.run.seen()?.stop? {
            Stop::LoopTimeout => {
                Some(Event::LoopTimeout { state: step.name.clone(), elapsed_ms: millis(self.now) })
            }
            Stop::Deadline => Some(self.hand_off(&step.name)),
            Stop::Cancelled => self.interrupted(&step.name),
            Stop::Timeout | Stop::IdleTimeout => None,
        }
    }

    fn leave(&mut self, id: StepId, verdict: &Verdict) -> Event {
        let step = self.machine.step(id);
        self.noted(step).unwrap_or_else(|| {
            let route = self.route(step, verdict);
            self.stall(id, &route).unwrap_or(route)
        })
    }

    /// Returns what is done in place of going on in the same way once more. A terminal may always be entered.
    fn stall(&self, id: StepId, route: &Event) -> Option<Event> {
        let stall = self.machine.stall?;
        let Event::Route { from, to, verdict, reason: RouteReason::Verdict | RouteReason::Error } = route
        else {
            return None;
        };
        let goes_on = matches!(self.machine.find(to), Some(Target::Step(_)));
        let streak = self.run.streak(id).filter(|streak| goes_on && streak.visits >= stall.window)?;
        let state = from.clone();
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
    fn noted(&self, step: &Step) -> Option<Event> {
        let message = step.message.as_ref().filter(|_| !self.run.is_noted())?;
        Some(match self.render(message) {
            Ok(text) => Event::Message { state: step.name.clone(), text },
            Err(error) => error_in(&step.name, "append_to_messages", &error.to_string()),
        })
    }

    /// Leaves a state whose way does not depend on a verdict.
    fn go_on(&self, step: &Step) -> Event {
        self.route(step, &Verdict::yes_if(true))
    }

    /// Takes the way out of a state, or the one in its place when there were enough tries.
    fn route(&self, step: &Step, verdict: &Verdict) -> Event {
        let seen = self.run.seen();
        let ended = match seen {
            Some(seen) if seen.timed_out() => Ended::Late,
            Some(seen) if !seen.succeeded() => Ended::Badly,
            _ => Ended::Well,
        };
        let Some(way) = routing::way(self.machine, step, verdict, ended) else {
            return self.no_way(step, verdict);
        };
        if let Some(cap) = self.run.capped() {
            // The handler of a cap has run; where it leads does not matter any more.
            return self.complete(self.exhausted(cap, &step.name));
        }
        let code = seen.map_or(0, |seen| seen.exit_code);
        let exhausted = routing::exhausted(self.machine, step, &way, self.run.attempt(), code);
        let reason = match (exhausted, way.reason) {
            (Some(_), _) => RouteReason::RetryExhausted,
            (None, Reason::Verdict) => RouteReason::Verdict,
            (None, Reason::Next) => RouteReason::Next,
            (None, Reason::Error) => RouteReason::Error,
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
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            return self.complete(Ending {
                outcome: Outcome::Blocked,
                by: TerminatedBy::Blocked,
                state: name.clone(),
                reason: format!("`{name}` is blocked{why}"),
                signal: None,
            });
        }
        let ways: Vec<_> = step.routes.ways().into_iter().map(|(word, _)| format!("`{word}`")).collect();
        let seen = self.run.seen().map(describe).unwrap_or_default();
        let why = self.error_of_evaluation(step, verdict).map(|why| format!(": {why}")).unwrap_or_default();
        let error =
            format!("no route for the verdict `{verdict}`{seen}{why}; the routes are {}", ways.join(", "));
        Event::LoopError { state: name.clone(), error }
    }

    /// Returns why the evaluator of this visit failed, if it did.
    fn error_of_evaluation(&self, step: &Step, verdict: &Verdict) -> Option<&str> {
        let was_judged = step.evaluate.is_some() && self.run.seen().and_then(unjudged_verdict).is_none();
        let evaluation = self.run.evaluation().filter(|_| was_judged && verdict.is_error())?;
        evaluation.details.get("error")?.as_str()
    }

    /// Runs the action of a terminal, if it has one.
    fn close(&mut self, id: EndId) -> Event {
        let end = self.machine.end(id);
        let Some(Action::Shell(shell)) = &end.closing else {
            return self.finish(id);
        };
        match self.request(shell, None) {
            Ok(event) => event,
            Err(error) => {
                let message = format!("the closing action was not run: {error}");
                Event::Warning { state: Some(end.name.clone()), message }
            }
        }
    }

    /// A closing action changes nothing, but its failure is said.
    fn closed(&mut self, id: EndId) -> Event {
        match self.run.seen() {
            Some(seen) if !seen.succeeded() => {
                let message = format!("the closing action failed{}", describe(seen));
                Event::Warning { state: Some(self.machine.end(id).name.clone()), message }
            }
            _ => self.finish(id),
        }
    }

    fn finish(&self, id: EndId) -> Event {
        let end = self.machine.end(id);
        if let Some(cap) = self.run.capped() {
            return self.complete(Ending { state: end.name.clone(), ..self.exhausted(cap, &end.name) });
        }
        let cycles_left = self.machine.limits.cycles.is_none_or(|cap| self.run.cycle() < cap);
        if self.machine.maintain.is_some() && self.cancel.is_none() && cycles_left {
            let to = end.on_maintain.unwrap_or(self.machine.initial);
            let (from, to) = (end.name.clone(), self.machine.name_of(to).clone());
            return Event::Route { from, to, verdict: None, reason: RouteReason::Maintain };
        }
        let name = &end.name;
        let verified = self.run.is_verified();
        let (outcome, reason) = match (end.meaning, verified) {
            (Meaning::Failure, _) => (Outcome::Failure, format!("ended in `{name}`")),
            (Meaning::Blocked, _) => (Outcome::Blocked, format!("ended in `{name}`: a person is needed")),
            (Meaning::Success | Meaning::DeclaredSuccess, true) => {
                (Outcome::Success, format!("ended in `{name}`"))
            }
            (Meaning::DeclaredSuccess, false) => {
                (Outcome::Success, format!("ended in `{name}`, which the loop declares a success"))
            }
            (Meaning::Success, false) => {
                let outcome = if self.start.event.strict { Outcome::Failure } else { Outcome::Success };
                let reason = format!(
                    "ended in `{name}` unverified: nothing passed since the last failing observation"
                );
                (outcome, reason)
            }
        };
        self.complete(Ending {
            outcome,
            by: TerminatedBy::Terminal,
            state: name.clone(),
            reason,
            signal: None,
        })
    }

    fn hand_off(&self, state: &StateName) -> Event {
        let reason = format!("the deadline of this job came after {}", human(self.now));
        Event::Handoff { state: state.clone(), reason }
    }

    fn interrupted(&self, state: &StateName) -> Option<Event> {
        let signal = self.cancel?;
        Some(self.complete(Ending {
            outcome: Outcome::Interrupted,
            by: TerminatedBy::Interrupted,
            state: state.clone(),
            reason: format!("interrupted by {} in `{state}`", signal.name()),
            signal: Some(signal),
        }))
    }

    fn complete(&self, ending: Ending) -> Event {
        Event::LoopComplete(LoopComplete {
            outcome: ending.outcome,
            terminated_by: ending.by,
            final_state: ending.state,
            iterations: self.run.iteration(),
            steps: self.run.step(),
            cycles: self.run.cycle(),
            duration_ms: millis(self.now),
            verified: self.run.is_verified(),
            exit_code: ending.outcome.exit_code(ending.signal),
            signal: ending.signal,
            reason: ending.reason,
        })
    }

    fn render(&self, template: &Template) -> Result<String, RenderError> {
        template.render(&self.scope())
    }
}

fn error_in(state: &StateName, key: &str, error: &str) -> Event {
    Event::LoopError { state: state.clone(), error: format!("in `{key}`: {error}") }
}

/// What the end of a sub-loop means for the state that ran it.
fn sub_loop_verdict(outcome: Outcome) -> Verdict {
    match outcome {
        Outcome::Success => Verdict::new("success"),
        Outcome::Failure
        | Outcome::Exhausted
        | Outcome::Stopped
        | Outcome::OverBudget
        | Outcome::Handoff
        | Outcome::Interrupted => Verdict::new("failure"),
        Outcome::Error | Outcome::Unavailable => Verdict::error(),
        Outcome::Blocked => Verdict::new("blocked"),
        Outcome::Timeout => Verdict::timeout(),
    }
}

/// Returns the verdict of an action that is not handed to any evaluator.
fn unjudged_verdict(seen: &Observation) -> Option<Verdict> {
    if seen.timed_out() {
        Some(Verdict::timeout())
    } else if seen.failure.is_some() {
        Some(Verdict::error())
    } else {
        None
    }
}

/// Says how an action ended, in parentheses.
fn describe(seen: &Observation) -> String {
    match (&seen.failure, seen.timed_out(), seen.signal) {
        (Some(why), _, _) => format!(" ({why})"),
        (None, true, _) => format!(" (timed out after {})", human(seen.duration)),
        (None, false, Some(signal)) => format!(" (killed by signal {signal})"),
        (None, false, None) => format!(" (exit {})", seen.exit_code),
    }
}
