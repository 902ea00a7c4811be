//! What the judgement of a state needs from the world, and what its result means.

use std::time::Duration;

use serde_json::{Map, Value};

use super::common::{error_in, saved, unjudged_verdict};
use super::event::{Event, Halt, Handoff, HandoffReason, TreeState};
use super::excused::Said;
use super::outcome::{Outcome, TerminatedBy};
use super::request::{AskRequest, QueryRequest, SurveyRequest};
use super::run::Ending;
use super::signals::{self, PrintedSignal};
use super::waiting::{MissingEvidence, TurnEvidence};
use super::{Engine, bounds};
use crate::base::name::StateName;
use crate::base::template::{RenderError, Room, Scope};
use crate::base::text::one_line;
use crate::base::time::millis;
use crate::evaluate::field::FieldError;
use crate::evaluate::model::Question;
use crate::evaluate::observation::Stop;
use crate::evaluate::survey::Surveyed;
use crate::evaluate::verdict::Verdict;
use crate::evaluate::{Judged, Judging};
use crate::machine::routing::{self, ActionEnd, RouteKey};
use crate::machine::{self, Action, OnHandoff, Routes, SignalKind, Step, StepId};

/// A reason is cut to so many characters.
const REASON: usize = 300;

/// How long a model may take to answer when the loop does not say.
const ASKING_TIME: Duration = Duration::from_mins(30);

/// How long the answer to a query may take when the state does not say how long its work may.
const QUERYING_TIME: Duration = Duration::from_mins(1);

/// What a judgement needs from the world first, if it needs anything, or what comes in its place.
type Needed<T> = Result<Option<T>, Box<Event>>;

/// The most characters of what a signal or a verdict says that become the reason of an end, which stands in every report.
pub(super) const MOST_SAID: usize = 2000;

impl Engine<'_> {
    /// Returns what the judgement of a step still needs from the world.
    pub(super) fn lacking(
        &self,
        step: &Step,
        id: StepId,
        evidence: &TurnEvidence,
    ) -> Needed<MissingEvidence> {
        let has_evaluator = step.evaluate.is_some()
            && matches!(step.routes, Routes::ByVerdict { .. })
            && self.run.seen().and_then(unjudged_verdict).is_none();
        let is_judged = has_evaluator || self.run.sub_loop().is_some();
        // Without a verdict to be found, nothing need be looked at.
        if !is_judged || self.is_without_model(step) {
            return Ok(None);
        }
        // In the order of their price: a look at the tree, a file, a query, and a model last.
        if let Some(scope) = self.look(step, evidence)? {
            let limit = self.end_of_action(None).map(|(left, _)| left);
            return Ok(Some(MissingEvidence::Survey(SurveyRequest { scope, limit })));
        }
        let file = step.evaluate.as_ref().and_then(|evaluate| evaluate.file());
        if let (Some(path), None) = (file, &evidence.file) {
            let path = self
                .render(path)
                .map_err(|error| Box::new(error_in(&step.name, "evaluate", &error.to_string())))?;
            return Ok(Some(MissingEvidence::File(path)));
        }
        if let Some(query) = self.query(step, id, evidence)? {
            return Ok(Some(MissingEvidence::Query(Box::new(query))));
        }
        let question = self.ask(step, id, evidence)?;
        Ok(question.map(|question| MissingEvidence::Answer(Box::new(question))))
    }

    /// Returns the query that has to be answered before a step can be judged, or what comes in its place.
    fn query(&self, step: &Step, id: StepId, evidence: &TurnEvidence) -> Needed<QueryRequest> {
        let evaluate = step.evaluate.as_ref().filter(|_| evidence.queried.is_none());
        let scope = self.scope();
        let judging = || self.judging(id, &scope, None, evidence);
        let Some(query) = evaluate.and_then(|evaluate| evaluate.query(judging())) else {
            return Ok(None);
        };
        // The judgement reports an unreadable field.
        let Ok(query) = query else { return Ok(None) };
        if let Some(event) = self.interrupted(&step.name).or_else(|| self.out_of_time(&step.name)) {
            return Err(Box::new(event));
        }
        let own = step.action.as_ref().and_then(Action::timeout).unwrap_or(QUERYING_TIME);
        Ok(Some(QueryRequest { query, end: self.end_of_action(Some(own)) }))
    }

    /// Returns the scope whose survey is missing before a step can be judged.
    fn look(&self, step: &Step, evidence: &TurnEvidence) -> Needed<Vec<String>> {
        let scopes = self
            .scopes(step)
            .map_err(|error| Box::new(error_in(&step.name, "evaluate", &error.to_string())))?;
        let missing = scopes.into_iter().find(|scope| evidence.survey(scope).is_none());
        let instead = if missing.is_some() {
            // A cancelled run does not wait for a survey.
            self.interrupted(&step.name)
        } else {
            // A survey that failed because the run's time was over is not an error of the state.
            let was_cut = evidence.surveys.iter().any(|(_, surveyed)| surveyed.is_err());
            self.out_of_time(&step.name).filter(|_| was_cut)
        };
        instead.map_or(Ok(missing), |event| Err(Box::new(event)))
    }

    /// Returns the question for a model that is due before a step can be judged, or what comes in its place.
    fn ask(&self, step: &Step, id: StepId, evidence: &TurnEvidence) -> Needed<AskRequest> {
        let asking = step.evaluate.as_ref().filter(|evaluate| evaluate.asks() && evidence.answer.is_none());
        let Some(evaluate) = asking else { return Ok(None) };
        let name = &step.name;
        // The same look as before an action: asking a model may take as long as one.
        let refused =
            self.interrupted(name).or_else(|| self.out_of_time(name)).or_else(|| self.over_budget(name));
        if let Some(event) = refused {
            return Err(Box::new(event));
        }
        let unresolved = |error: String| Box::new(error_in(name, "evaluate", &error));
        let question = match evaluate.question(self.judging(id, &self.scope(), None, evidence)) {
            Some(Ok(question)) => question,
            Some(Err(error)) => return Err(unresolved(error.to_string())),
            None => return Ok(None),
        };
        let llm = &self.machine.llm;
        // The evaluator's own model, then that of the command line, then that of the loop.
        let given = || self.start.event.overrides.llm_model.clone();
        let model = match (question.model.clone().or_else(given), &llm.model) {
            (None, Some(model)) => Some(self.render(model).map_err(|error| unresolved(error.to_string()))?),
            (model, _) => model,
        };
        let bounds = machine::ActionSetting {
            timeout: llm.timeout.or(Some(ASKING_TIME)),
            ..machine::ActionSetting::default()
        };
        let setting = self.setting(&bounds).map_err(|error| unresolved(error.to_string()))?;
        Ok(Some(AskRequest {
            question: Question { model, ..question },
            max_tokens: llm.max_tokens,
            setting,
            budget: self.budget_left(),
        }))
    }

    /// Returns what an evaluator can see.
    fn judging<'e>(
        &'e self,
        id: StepId,
        scope: &'e dyn Scope,
        survey: Option<&'e Surveyed>,
        evidence: &'e TurnEvidence,
    ) -> Judging<'e> {
        let form = self.machine.step(id).action.as_ref().and_then(Action::form);
        Judging {
            seen: self.run.seen(),
            scope,
            action: self.run.action(),
            memory: self.run.memories().get(&id),
            survey,
            file: evidence.file.as_ref(),
            answer: evidence.answer.as_ref(),
            queried: evidence.queried.as_ref(),
            form,
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
        let mut room = Room::new();
        let mut render = |path| self.render_within(&mut room, path);
        scope.map(|scope| scope.iter().map(&mut render).collect()).transpose()
    }

    /// Returns the working tree as an event keeps it, when the loop looks for stalls.
    fn tree(&self, evidence: &TurnEvidence) -> Option<TreeState> {
        self.machine.stall?;
        Some(match evidence.survey(&[])? {
            Ok(survey) => TreeState::Seen(survey.clone()),
            Err(why) => TreeState::Unseen { unseen: why.clone().to_string() },
        })
    }

    pub(super) fn judge(&self, id: StepId, evidence: &TurnEvidence) -> Event {
        let step = self.machine.step(id);
        if let Some(sub) = self.run.sub_loop() {
            let mut details = Map::new();
            details.insert("exit_code".to_owned(), sub.exit_code.into());
            details.insert("final_state".to_owned(), sub.final_state.as_ref().map(StateName::as_str).into());
            details.insert("steps".to_owned(), sub.steps.into());
            details.extend(sub.error.clone().map(|error| ("error".to_owned(), error.into())));
            let (verdict, observes) = (sub.verdict.clone(), Some(sub.observes()));
            return Event::evaluated("sub_loop", verdict, observes, details, self.tree(evidence));
        }
        let unjudged = self.run.seen().and_then(unjudged_verdict);
        match (&step.routes, &step.evaluate, unjudged) {
            (Routes::Always { .. }, _, _) => self.noted(step).unwrap_or_else(|| self.go_on(id)),
            (Routes::ByVerdict { .. }, _, Some(verdict)) => {
                self.noted(step).unwrap_or_else(|| self.route(id, &verdict))
            }
            (Routes::ByVerdict { .. }, Some(evaluate), None) => {
                let scope = match self.scope_of(step) {
                    Ok(scope) => scope,
                    Err(error) => return error_in(&step.name, "evaluate", &error.to_string()),
                };
                let survey = scope.and_then(|scope| evidence.survey(&scope));
                let judged = match evaluate.judge(self.judging(id, &self.scope(), survey, evidence)) {
                    Ok(judged) => judged,
                    Err(FieldError::Render(error)) => {
                        return error_in(&step.name, "evaluate", &error.to_string());
                    }
                    // A field that cannot be read is a result of the check; a template without a
                    // value is a fault of the loop.
                    Err(unreadable @ FieldError::Unreadable { .. }) => Judged::error(unreadable.to_string()),
                };
                let Judged { verdict, details, memory, warnings } = judged;
                let details = bounds::details(details);
                let Said { verdict, observes, details } = self.said(step, id, verdict, details);
                Event::Evaluate {
                    r#type: evaluate.name().to_owned(),
                    verdict,
                    observes: Some(observes),
                    confidence: details.get("confidence").and_then(Value::as_f64),
                    details,
                    warnings,
                    memory,
                    tree: self.tree(evidence),
                }
            }
            (Routes::ByVerdict { .. }, None, None) => self.decided(step, evidence).unwrap_or_else(|| {
                let yes = Verdict::yes_if(true);
                self.noted(step).unwrap_or_else(|| self.route(id, &yes))
            }),
        }
    }

    /// Returns what the action of a step decided itself, if it is one that does.
    fn decided(&self, step: &Step, evidence: &TurnEvidence) -> Option<Event> {
        let seen = self.run.seen()?;
        let (r#type, verdict) = step.action.as_ref()?.decided(seen)?;
        let reason = one_line(seen.stderr.as_str(), REASON);
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        let details = reason.map(|reason| ("reason".to_owned(), reason.into())).into_iter().collect();
        let observes = Some(step.observes(&verdict));
        Some(Event::evaluated(r#type, verdict, observes, details, self.tree(evidence)))
    }

    /// An action that was stopped because the run is to end ends the run.
    pub(super) fn ended_around(&self, step: &Step, evidence: &TurnEvidence) -> Option<Event> {
        if let Some(sub) = self.run.sub_loop() {
            let own = self.interrupted(&step.name).or_else(|| self.out_of_time(&step.name));
            // The sub-loop was ended by the same request or the same limit.
            return own.or_else(|| Some(self.halted(step, sub.halt.as_ref()?)));
        }
        let answer = evidence.answer.as_ref();
        let seen = self.run.seen();
        let queried = evidence.queried.as_ref();
        let of_action = seen.and_then(|seen| seen.stop);
        let cause = of_action.or_else(|| answer?.stop).or_else(|| queried?.stop)?;
        let why = || {
            let of_action = seen.and_then(|seen| seen.failure.clone());
            of_action
                .or_else(|| answer?.reply.as_ref().err().cloned().map(|why| why.to_string()))
                .unwrap_or_default()
        };
        match cause {
            Stop::LoopTimeout => {
                Some(Event::LoopTimeout { state: step.name.clone(), elapsed_ms: millis(self.now) })
            }
            Stop::Deadline => Some(self.hand_off(&step.name)),
            Stop::Cancelled => self.interrupted(&step.name),
            Stop::Budget => Some(self.spent(&step.name, why())),
            // A call that is made again is no way on: the host would be missing then, too.
            Stop::Missing if self.has_error_route(step) && step.call().is_none() => None,
            Stop::Missing | Stop::Unavailable => {
                let (outcome, by) = (Outcome::Unavailable, TerminatedBy::Unavailable);
                let (state, reason) = (step.name.clone(), why());
                Some(self.complete(Ending { outcome, by, state, reason, signal: None }))
            }
            Stop::Quota => Some(saved(&step.name, HandoffReason::Quota, why())),
            Stop::NotRecorded => {
                let (outcome, by) = (Outcome::Error, TerminatedBy::NotRecorded);
                let (state, reason) = (step.name.clone(), why());
                Some(self.complete(Ending { outcome, by, state, reason, signal: None }))
            }
            Stop::Timeout | Stop::IdleTimeout => None,
        }
    }

    /// Tells whether a state itself says what comes after an error.
    fn has_error_route(&self, step: &Step) -> bool {
        let way = routing::way(self.machine, step, &Verdict::error(), ActionEnd::Badly);
        way.is_some_and(|way| match way.key {
            RouteKey::On(_) | RouteKey::AnyError => true,
            // These lead on from everything, and say nothing about errors.
            RouteKey::Next
            | RouteKey::AnyOther
            | RouteKey::Loop(_)
            | RouteKey::Repeat
            | RouteKey::Flaky
            | RouteKey::Unjudged => false,
        })
    }

    /// Ends as the sub-loop of a step did.
    fn halted(&self, step: &Step, halt: &Halt) -> Event {
        let state = step.name.clone();
        match halt {
            Halt::Handoff(handoff) => Event::Handoff(Handoff { state, ..handoff.clone() }),
            Halt::End { outcome, terminated_by, reason } => self.complete(Ending {
                outcome: *outcome,
                by: *terminated_by,
                state,
                reason: reason.clone(),
                signal: None,
            }),
        }
    }

    /// Returns the signal that the action of a step printed, if the loop obeys it, or what has to be known to tell. A
    /// sub-loop obeys its own. A hand-off without a word is one where something was written down for the next session.
    pub(super) fn signal(
        &self,
        step: &Step,
        evidence: &TurnEvidence,
    ) -> Option<Result<Event, MissingEvidence>> {
        // A signal in a sub-loop's output was for that sub-loop.
        let seen = self.run.seen().filter(|_| self.run.sub_loop().is_none())?;
        let obeyed = &self.machine.signals;
        let mut found = signals::find(seen.stdout.as_str(), obeyed)?;
        // The word alone may be a mention. With something written down for the next session it is
        // meant.
        if found.signal == SignalKind::Handoff && found.text.is_empty() {
            match evidence.is_continued {
                None => return Some(Err(MissingEvidence::Continuation)),
                Some(false) => {
                    let others: Vec<_> =
                        obeyed.iter().copied().filter(|kind| *kind != SignalKind::Handoff).collect();
                    found = signals::find(seen.stdout.as_str(), &others)?;
                }
                Some(true) => {}
            }
        }
        let PrintedSignal { signal, text } = found;
        let text = match signal {
            // The next session is told all of it.
            SignalKind::Handoff => text,
            SignalKind::Error | SignalKind::Stop => one_line(&text, MOST_SAID),
        };
        Some(Ok(Event::Signal { state: step.name.clone(), signal, text }))
    }

    /// The hand-off that an action asked for. What it says itself comes before what was written to a file.
    pub(super) fn signalled_handoff(&self, state: &StateName, text: &str, written: Option<String>) -> Event {
        let wanted = self.start.on_handoff.unwrap_or(self.machine.on_handoff);
        // Each spawned session may spawn the next one; the cap keeps that from going on for ever.
        let too_many = self.run.handoffs() > self.machine.max_handoffs;
        let behavior = if wanted == OnHandoff::Spawn && too_many { OnHandoff::Pause } else { wanted };
        // The standard words of the signal say nothing to the session that goes on.
        let own = Some(text.to_owned()).filter(|text| !signals::is_standard(text));
        let continuation = own.or(written).or_else(|| Some(text.to_owned()).filter(|text| !text.is_empty()));
        let what =
            continuation.as_deref().map_or_else(String::new, |text| format!(": {}", one_line(text, 200)));
        let message = format!("`{state}` asked for a fresh session{what}");
        let (state, reason) = (state.clone(), HandoffReason::Signal);
        Event::Handoff(Handoff { state, reason, message, continuation, behavior, awaiting: None })
    }
}
