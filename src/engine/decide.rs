//! From where a run stands to the next thing that happens in it. One decision is one event.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::base::name::StateName;
use crate::base::path::Segment;
use crate::base::template::{Namespace, RenderError, Room, Scope, Template};
use crate::base::text::{one_line, plural};
use crate::base::time::{human, millis};
use crate::board;
use crate::evaluate::field::FieldError;
use crate::evaluate::model::{Question, Usage};
use crate::evaluate::observation::{Observation, Stop};
use crate::evaluate::survey::Surveyed;
use crate::evaluate::verdict::Observes;
use crate::evaluate::verdict::Verdict;
use crate::evaluate::{Judged, Judging};
use crate::machine::routing::{self, Ended, Reason};
use crate::machine::{
    self, Action, Binding, BoardAction, Budget, Cap, End, EndId, Meaning, OnHandoff, PromptAction, Routes,
    ShellAction, Step, StepId, SubLoopAction, SubLoopInput, Target, ToolAction,
};

use super::event::{
    ActionComplete, ActionKind, BoardEvent, Event, Halt, Handoff, HandoffReason, Llm, LoopComplete,
    RouteReason, Tree,
};
use super::outcome::{Outcome, TerminatedBy};
use super::request::{
    ActionRequest, Around, AskRequest, PromptRequest, QueryRequest, Session, Setting, SubLoopRequest,
    SurveyRequest, ToolRequest,
};
use super::run::{Deciding, Ending, Phase};
use super::signals::{self, Found};
use super::waiting::{Decision, Evidence, Missing, Work};
use super::{Engine, bounds, budget, environment};

/// How long a model may take to answer when the loop does not say.
const ASKING_TIME: Duration = Duration::from_mins(30);

/// How long the answer to a query may take when the state does not say how long its work may.
const QUERYING_TIME: Duration = Duration::from_mins(1);

/// How long the wait before another try becomes at most.
const LONGEST_RETRY: Duration = Duration::from_mins(10);

/// How long the action of a terminal may take when nothing else is said.
const CLOSING_TIME: Duration = Duration::from_mins(1);

/// What a judgement needs from the world first, if it needs anything, or what comes in its place.
type Needed<T> = Result<Option<T>, Box<Event>>;

impl Engine<'_> {
    /// Makes the decision that is due, with what the world gave to the judgement that is going on.
    pub(super) fn decide(&self, deciding: Deciding, evidence: &Evidence) -> Decision {
        if let Some(warning) = self.due_warning() {
            return Decision::Happens(warning);
        }
        if let Some(id) = self.weighed_now(&deciding) {
            let step = self.machine.step(id);
            if let Some(event) = self.ended_around(step, evidence).or_else(|| self.signal(step)) {
                return Decision::Happens(event);
            }
            match self.lacking(step, id, evidence) {
                Ok(None) => {}
                Ok(Some(missing)) => return Decision::Lacks(id, missing),
                Err(event) => return Decision::Happens(*event),
            }
        }
        Decision::Happens(match deciding {
            Deciding::Arrive { to, waited } => return self.arrive(to, waited),
            Deciding::Act(id) => return self.act(id, evidence),
            Deciding::Again(id) => self.enter_again(id),
            Deciding::Judge(id) => self.judge(id, evidence),
            Deciding::Leave(id, verdict) => self.leave(id, &verdict),
            Deciding::Closed(id) => self.closed(id),
            Deciding::Finish(id) => self.finish(id),
            Deciding::End(ending) => self.complete(ending),
        })
    }

    /// Returns what is to be said before anything else is decided.
    fn due_warning(&self) -> Option<Event> {
        if let Some(message) = self.start.event.warnings.get(self.run.warned()) {
            return Some(Event::Warning { state: None, message: message.clone() });
        }
        let (bound, state) = (self.run.unsaid()?, self.run.current()?);
        Some(Event::Warning { state: Some(state.clone()), message: bound.sentence() })
    }

    /// Whoever asked for the end before the last event gets it: what would end the run in another way is decided
    /// again when the run goes on. An end that is written down already stays what it is.
    pub(super) fn unless_asked_to_end(&self, event: Event) -> Event {
        let is_decided = matches!(self.run.phase(), Phase::Deciding(Deciding::End(_)));
        let state = match &event {
            Event::LoopComplete(end) if end.outcome != Outcome::Interrupted => &end.final_state,
            Event::Signal { state, .. }
            | Event::Stall { state, .. }
            | Event::LoopError { state, .. }
            | Event::LoopTimeout { state, .. }
            | Event::Handoff(Handoff { state, .. }) => state,
            Event::LoopStart(_)
            | Event::LoopResume(_)
            | Event::StateEnter { .. }
            | Event::ActionStart { .. }
            | Event::ActionComplete(_)
            | Event::Evaluate { .. }
            | Event::SubLoopStart { .. }
            | Event::SubLoopComplete(_)
            | Event::Route { .. }
            | Event::Retry { .. }
            | Event::Message { .. }
            | Event::Backoff { .. }
            | Event::Warning { .. }
            | Event::Judge { .. }
            | Event::Board(_)
            | Event::LoopComplete(_) => return event,
        };
        self.interrupted(state).filter(|_| !is_decided).unwrap_or(event)
    }

    /// Returns the step whose work is about to be weighed.
    fn weighed_now(&self, deciding: &Deciding) -> Option<StepId> {
        match deciding {
            Deciding::Judge(id) => Some(*id),
            Deciding::Act(id) if self.machine.step(*id).action.is_none() => Some(*id),
            Deciding::Arrive { .. }
            | Deciding::Again(_)
            | Deciding::Act(_)
            | Deciding::Leave(..)
            | Deciding::Closed(_)
            | Deciding::Finish(_)
            | Deciding::End(_) => None,
        }
    }

    /// Returns what the judgement of a step still needs from the world.
    fn lacking(&self, step: &Step, id: StepId, evidence: &Evidence) -> Needed<Missing> {
        let has_evaluator = step.evaluate.is_some()
            && matches!(step.routes, Routes::ByVerdict { .. })
            && self.run.seen().and_then(unjudged_verdict).is_none();
        let is_judged = has_evaluator || self.run.sub_loop().is_some();
        if !is_judged || self.is_without_model(step) {
            return Ok(None);
        }
        if let Some(scope) = self.look(step, evidence)? {
            let limit = self.end_of_action(None).map(|(left, _)| left);
            return Ok(Some(Missing::Survey(SurveyRequest { scope, limit })));
        }
        let file = step.evaluate.as_ref().and_then(|evaluate| evaluate.file());
        if let (Some(path), None) = (file, &evidence.file) {
            let path = self
                .render(path)
                .map_err(|error| Box::new(error_in(&step.name, "evaluate", &error.to_string())))?;
            return Ok(Some(Missing::File(path)));
        }
        if let Some(query) = self.query(step, id, evidence)? {
            return Ok(Some(Missing::Query(Box::new(query))));
        }
        let question = self.ask(step, id, evidence)?;
        Ok(question.map(|question| Missing::Answer(Box::new(question))))
    }

    /// Returns the query that has to be answered before a step can be judged, or what comes in its place.
    fn query(&self, step: &Step, id: StepId, evidence: &Evidence) -> Needed<QueryRequest> {
        let evaluate = step.evaluate.as_ref().filter(|_| evidence.queried.is_none());
        let scope = self.scope();
        let judging = || self.judging(id, &scope, None, evidence);
        let Some(query) = evaluate.and_then(|evaluate| evaluate.query(judging())) else {
            return Ok(None);
        };
        // An unreadable field is told by the judgement.
        let Ok(query) = query else { return Ok(None) };
        if let Some(event) = self.interrupted(&step.name).or_else(|| self.out_of_time(&step.name)) {
            return Err(Box::new(event));
        }
        let own = step.action.as_ref().and_then(Action::timeout).unwrap_or(QUERYING_TIME);
        Ok(Some(QueryRequest { query, end: self.end_of_action(Some(own)) }))
    }

    /// Returns the scope whose survey is missing before a step can be judged.
    fn look(&self, step: &Step, evidence: &Evidence) -> Needed<Vec<String>> {
        let scopes = self
            .scopes(step)
            .map_err(|error| Box::new(error_in(&step.name, "evaluate", &error.to_string())))?;
        let missing = scopes.into_iter().find(|scope| evidence.survey(scope).is_none());
        let instead = if missing.is_some() {
            // Whoever wants the run to end does not wait for it.
            self.interrupted(&step.name)
        } else {
            // A look that the end of the run cut short is no error of the state.
            let was_cut = evidence.surveys.iter().any(|(_, surveyed)| surveyed.is_err());
            self.out_of_time(&step.name).filter(|_| was_cut)
        };
        instead.map_or(Ok(missing), |event| Err(Box::new(event)))
    }

    /// Returns the question for a model that is due before a step can be judged, or what comes in its place.
    fn ask(&self, step: &Step, id: StepId, evidence: &Evidence) -> Needed<AskRequest> {
        let asking = step.evaluate.as_ref().filter(|evaluate| evaluate.asks() && evidence.answer.is_none());
        let Some(evaluate) = asking else { return Ok(None) };
        let name = &step.name;
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
        let model = match (question.model.clone(), &llm.model) {
            (None, Some(model)) => Some(self.render(model).map_err(|error| unresolved(error.to_string()))?),
            (model, _) => model,
        };
        let bounds =
            machine::Setting { timeout: llm.timeout.or(Some(ASKING_TIME)), ..machine::Setting::default() };
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
        evidence: &'e Evidence,
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
    fn tree(&self, evidence: &Evidence) -> Option<Tree> {
        self.machine.stall?;
        Some(match evidence.survey(&[])? {
            Ok(survey) => Tree::Seen(survey.clone()),
            Err(why) => Tree::Unseen { unseen: why.clone() },
        })
    }

    /// The end of an action as an event.
    pub(super) fn completed(&self, seen: Observation, usage: Option<Usage>) -> Event {
        Event::ActionComplete(ActionComplete { step: self.run.step(), seen, usage })
    }

    /// Cancellation first, then the end, then the caps, then work.
    fn arrive(&self, to: Target, waited: bool) -> Decision {
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
        let wait = self.wait_before(id).into_iter().chain(self.wait_before_retry(id)).max();
        if let Some(wait) = wait.filter(|_| !waited) {
            return Event::Backoff { state: self.machine.step(id).name.clone(), duration_ms: millis(wait) };
        }
        self.retry(id).unwrap_or_else(|| self.enter(id))
    }

    /// Announces another try of a state that bounds its tries.
    fn retry(&self, id: StepId) -> Option<Event> {
        let step = self.machine.step(id);
        let retry = step.retry.as_ref()?;
        let again = self.run.last_entered() == Some(id) && !self.run.is_retry_announced();
        let (state, attempt) = (step.name.clone(), self.run.attempt().saturating_add(1));
        again.then(|| Event::Retry { state, attempt, max_retries: retry.max })
    }

    fn enter(&self, id: StepId) -> Event {
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
    fn enter_again(&self, id: StepId) -> Event {
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
            | TerminatedBy::Stall
            | TerminatedBy::FatalError
            | TerminatedBy::LoopStop
            | TerminatedBy::Budget
            | TerminatedBy::Unavailable
            | TerminatedBy::NotRecorded
            | TerminatedBy::JournalLost => limits.iterations.handler,
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
            _ => format!("max_iterations ({}) reached before `{state}`", self.run.iteration_cap()),
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

    /// Returns the wait before another try of a state, which doubles from try to try.
    fn wait_before_retry(&self, id: StepId) -> Option<Duration> {
        let retry = self.machine.step(id).retry.as_ref()?;
        let tries = self.run.attempt().checked_sub(1).filter(|_| self.run.last_entered() == Some(id))?;
        let wait = retry.delay.saturating_mul(1 << tries.min(16)).min(LONGEST_RETRY);
        (wait > Duration::ZERO).then_some(wait)
    }

    fn act(&self, id: StepId, evidence: &Evidence) -> Decision {
        let step = self.machine.step(id);
        if self.is_without_model(step) {
            return Decision::Happens(self.without_model(step));
        }
        let Some(action) = &step.action else { return Decision::Happens(self.judge(id, evidence)) };
        self.begin(action, &step.name)
            .unwrap_or_else(|error| Decision::Happens(error_in(&step.name, action.key(), &error.to_string())))
    }

    /// Goes on without the model that a step needs, or saves the run for where there is one.
    fn without_model(&self, step: &Step) -> Event {
        if routing::without_model(self.machine, step).is_none() {
            let message =
                format!("`{}` needs an agent, and none may be asked here (llm_disabled)", step.name);
            return saved(&step.name, HandoffReason::LlmDisabled, message);
        }
        let r#type = step.evaluate.as_ref().map_or("prompt", |evaluate| evaluate.name()).to_owned();
        let details = Map::from_iter([("reason".to_owned(), "llm_disabled".into())]);
        let (verdict, observes) = (Verdict::blocked(), Some(Observes::Failing));
        Event::Evaluate { r#type, verdict, observes, details, memory: None, tree: None }
    }

    /// Tells whether a step needs a model and none may be asked.
    fn is_without_model(&self, step: &Step) -> bool {
        step.needs_model() && !self.may_ask()
    }

    fn may_ask(&self) -> bool {
        match self.start.event.llm {
            Llm::Off => false,
            Llm::Replay => true,
            Llm::On => !self.machine.llm.is_forbidden,
        }
    }

    /// Returns the end of a run whose budget is met.
    fn over_budget(&self, name: &StateName) -> Option<Event> {
        let reason = budget::met(self.budget(), self.run.usage(), self.run.dearest())?;
        Some(self.spent(name, reason))
    }

    fn spent(&self, name: &StateName, reason: String) -> Event {
        let (outcome, by) = (Outcome::OverBudget, TerminatedBy::Budget);
        self.complete(Ending { outcome, by, state: name.clone(), reason, signal: None })
    }

    /// Returns what models may cost in all.
    fn budget(&self) -> Budget {
        budget::both(self.machine.budget, self.start.budget)
    }

    fn budget_left(&self) -> Budget {
        budget::left(self.budget(), self.run.usage())
    }

    /// Resolves an action and begins it.
    fn begin(&self, action: &Action, state: &StateName) -> Result<Decision, RenderError> {
        let text = self.render(action.text())?;
        match action {
            Action::Shell(shell) => self.begin_command(shell, text, state),
            Action::Prompt(prompt) => {
                if let Some(event) = self.interrupted(state).or_else(|| self.over_budget(state)) {
                    return Ok(Decision::Happens(event));
                }
                self.begin_prompt(prompt, text, state)
            }
            Action::Tool(tool) => self.begin_call(tool, &text, state),
            Action::SubLoop(sub) => self.begin_sub_loop(sub, text, state),
            Action::Board(board) => Ok(Decision::Happens(self.operate(board, state)?)),
        }
    }

    fn begin_command(
        &self,
        shell: &ShellAction,
        text: String,
        state: &StateName,
    ) -> Result<Decision, RenderError> {
        let event = self.announced(state, ActionKind::Shell, &text, None);
        let setting = self.setting(&shell.setting)?;
        let request = ActionRequest { shell: shell.shell.clone(), text, setting };
        Ok(Decision::Begins(event, Work::Action(request)))
    }

    fn begin_prompt(
        &self,
        prompt: &PromptAction,
        text: String,
        state: &StateName,
    ) -> Result<Decision, RenderError> {
        let request = self.prompt(prompt, text, state)?;
        let session = request.session.as_ref().map(|session| session.name.clone());
        let event = self.announced(state, ActionKind::Prompt, &request.text, session);
        Ok(Decision::Begins(event, Work::Prompt(Box::new(request))))
    }

    fn begin_call(&self, call: &ToolAction, text: &str, state: &StateName) -> Result<Decision, RenderError> {
        let Some((server, tool)) = text.trim().split_once('/') else {
            return Ok(Decision::Happens(error_in(state, "action", &format!("`{text}` is not SERVER/TOOL"))));
        };
        let mut room = Room::new();
        let params = call.params.iter().map(|(key, value)| {
            let value = value.render(&mut |template| self.render_within(&mut room, template))?;
            Ok((key.clone(), value))
        });
        let params: Map<String, Value> = params.collect::<Result<_, RenderError>>()?;
        let shown = format!("{text} {}", Value::Object(params.clone()));
        let (server, tool) = (server.to_owned(), tool.to_owned());
        let setting = self.setting(&call.setting)?;
        let event = self.announced(state, ActionKind::Mcp, &shown, None);
        Ok(Decision::Begins(event, Work::Tool(Box::new(ToolRequest { server, tool, params, setting }))))
    }

    /// Announces an action.
    fn announced(&self, state: &StateName, kind: ActionKind, shown: &str, session: Option<String>) -> Event {
        let role = self.step_of(state).and_then(|step| step.role.as_ref()).map(ToString::to_string);
        let action = bounds::in_event(shown).into_owned();
        Event::ActionStart { state: state.clone(), action, kind, role, session }
    }

    pub(super) fn step_of(&self, state: &StateName) -> Option<&Step> {
        match self.machine.find(state)? {
            Target::Step(id) => Some(self.machine.step(id)),
            Target::End(_) => None,
        }
    }

    /// Makes an operation on the task board. It needs nothing from the world.
    fn operate(&self, action: &BoardAction, state: &StateName) -> Result<Event, RenderError> {
        let mut room = Room::new();
        let params = action.params.iter();
        let params = params.map(|(name, text)| Ok((name.clone(), self.render_within(&mut room, text)?)));
        let params = params.collect::<Result<_, RenderError>>()?;
        let before = self.run.board();
        let (after, word, notes) = match action.kind.with(&params) {
            Ok(operation) => board::apply(before.clone(), &self.machine.board, operation),
            Err(why) => (before.clone(), "error", vec![board::Note::refused(&why)]),
        };
        Ok(Event::Board(BoardEvent {
            state: state.clone(),
            operation: action.kind.word().to_owned(),
            verdict: Verdict::new(word),
            change: board::Change::between(before, &after),
            notes,
        }))
    }

    /// Puts a prompt together.
    fn prompt(
        &self,
        prompt: &PromptAction,
        mut text: String,
        state: &StateName,
    ) -> Result<PromptRequest, RenderError> {
        let mut room = Room::new();
        for (index, (name, value)) in prompt.context.iter().enumerate() {
            let before = if index == 0 { "\n\nContext:\n" } else { "\n" };
            let value = self.render_within(&mut room, value)?;
            let _ = write!(text, "{before}- {name}: {value}");
        }
        if let Some(told) = self.run.told_again().filter(|_| !names_continuation(&prompt.text)) {
            // A slash command is one only at the start of a prompt.
            text =
                if text.starts_with('/') { format!("{text}\n\n{told}") } else { format!("{told}\n\n{text}") };
        }
        let rendered = |template: &Option<Template>| template.as_ref().map(|t| self.render(t)).transpose();
        let (model, fallback_model) = (rendered(&prompt.model)?, rendered(&prompt.fallback_model)?);
        // What the first model did not answer well is asked of the other one.
        let is_retry = self.run.attempt() > 1 && self.step_of(state).is_some_and(|step| step.retry.is_some());
        let model = if is_retry { fallback_model.clone().or(model) } else { model };
        let session = rendered(&prompt.session)?
            .map(|name| Session { id: self.run.sessions().get(&name).cloned(), name });
        Ok(PromptRequest {
            text,
            agent: rendered(&prompt.agent)?,
            tools: prompt.tools.clone(),
            fallback_model: fallback_model.filter(|fallback| Some(fallback) != model.as_ref()),
            model,
            answer: prompt.answer.as_ref().map(|form| form.schema().clone()),
            session,
            setting: self.setting(&prompt.setting)?,
            budget: self.budget_left(),
        })
    }

    /// Resolves where and how long an action runs. That of a terminal has little time when nothing else is said.
    fn setting(&self, setting: &machine::Setting) -> Result<Setting, RenderError> {
        let cwd = setting.cwd.as_ref().map(|cwd| self.render(cwd)).transpose()?;
        let mut env = environment::variables(self);
        let mut room = Room::new();
        for (name, value) in self.machine.env.iter().chain(&setting.env) {
            env.push((name.clone(), environment::value(&self.render_within(&mut room, value)?)));
        }
        let closes = matches!(self.run.phase(), Phase::Deciding(Deciding::Arrive { .. }));
        let timeout = setting.timeout.or(closes.then_some(CLOSING_TIME));
        Ok(Setting { env, cwd, end: self.end_of_action(timeout), idle: setting.idle_timeout })
    }

    /// Resolves what a sub-loop is given. It is announced by itself.
    fn begin_sub_loop(
        &self,
        sub: &SubLoopAction,
        name: String,
        state: &StateName,
    ) -> Result<Decision, RenderError> {
        let mut params = Map::new();
        let mut around = None;
        match &sub.given {
            SubLoopInput::Nothing => {}
            SubLoopInput::Everything => {
                let (context, captured) = (self.start.context.clone(), self.run.captured().clone());
                around = Some(Around { context, captured });
            }
            SubLoopInput::Parameters(bindings) => {
                let mut room = Room::new();
                for (name, binding) in bindings {
                    let value = match binding {
                        Binding::Text(text) => Value::String(self.render_within(&mut room, text)?),
                        Binding::Value(value) => value.clone(),
                    };
                    params.insert(name.to_string(), value);
                }
            }
        }
        let left = |end: Duration| end.saturating_sub(self.now);
        let (timeout, left_over) = (sub.timeout, self.timeout().map(left));
        let deadline = self.start.deadline.map(left);
        let (budget, key) = (self.budget_left(), environment::key(self));
        let request = SubLoopRequest {
            name: name.clone(),
            params,
            around,
            timeout,
            left: left_over,
            deadline,
            budget,
            key,
        };
        let event = Event::SubLoopStart { state: state.clone(), r#loop: name };
        Ok(Decision::Begins(event, Work::SubLoop(state.clone(), Box::new(request))))
    }

    /// Returns the first thing that would end an action from outside.
    fn end_of_action(&self, timeout: Option<Duration>) -> Option<(Duration, Stop)> {
        let left = |end: Duration| end.saturating_sub(self.now);
        let own = timeout.map(|timeout| (timeout, Stop::Timeout));
        let run = self.timeout().map(|end| (left(end), Stop::LoopTimeout));
        let job = self.start.deadline.map(|end| (left(end), Stop::Deadline));
        own.into_iter().chain(run).chain(job).min_by_key(|(after, _)| *after)
    }

    fn judge(&self, id: StepId, evidence: &Evidence) -> Event {
        let step = self.machine.step(id);
        if let Some(sub) = self.run.sub_loop() {
            let mut details = Map::new();
            details.insert("exit_code".to_owned(), sub.exit_code.into());
            details.insert("final_state".to_owned(), sub.final_state.as_ref().map(StateName::as_str).into());
            details.insert("steps".to_owned(), sub.steps.into());
            details.extend(sub.error.clone().map(|error| ("error".to_owned(), error.into())));
            let verdict = sub.verdict.clone();
            let (r#type, observes, tree) = ("sub_loop".to_owned(), Some(sub.observes()), self.tree(evidence));
            return Event::Evaluate { r#type, verdict, observes, details, memory: None, tree };
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
                let survey = scope.and_then(|scope| evidence.survey(&scope));
                let judged = match evaluate.judge(self.judging(id, &self.scope(), survey, evidence)) {
                    Ok(judged) => judged,
                    Err(FieldError::Render(error)) => {
                        return error_in(&step.name, "evaluate", &error.to_string());
                    }
                    Err(unreadable @ FieldError::Unreadable { .. }) => Judged::error(unreadable.to_string()),
                };
                let Judged { verdict, details, memory } = judged;
                let observes = Some(step.observes(&verdict));
                let details = bounds::details(details);
                Event::Evaluate {
                    r#type: evaluate.name().to_owned(),
                    verdict,
                    observes,
                    details,
                    memory,
                    tree: self.tree(evidence),
                }
            }
            (Routes::ByVerdict { .. }, None, None) => {
                let yes = Verdict::yes_if(true);
                self.noted(step).unwrap_or_else(|| self.route(step, &yes))
            }
        }
    }

    /// An action that was stopped because the run is to end ends the run.
    fn ended_around(&self, step: &Step, evidence: &Evidence) -> Option<Event> {
        if let Some(sub) = self.run.sub_loop() {
            let own = self.interrupted(&step.name).or_else(|| self.out_of_time(&step.name));
            return own.or_else(|| Some(self.halted(step, sub.halt.as_ref()?)));
        }
        let answer = evidence.answer.as_ref();
        let seen = self.run.seen();
        let queried = evidence.queried.as_ref();
        let of_action = seen.and_then(|seen| seen.stop);
        let cause = of_action.or_else(|| answer?.stop).or_else(|| queried?.stop)?;
        let why = || {
            let of_action = seen.and_then(|seen| seen.failure.clone());
            of_action.or_else(|| answer?.reply.as_ref().err().cloned()).unwrap_or_default()
        };
        match cause {
            Stop::LoopTimeout => {
                Some(Event::LoopTimeout { state: step.name.clone(), elapsed_ms: millis(self.now) })
            }
            Stop::Deadline => Some(self.hand_off(&step.name)),
            Stop::Cancelled => self.interrupted(&step.name),
            Stop::Budget => Some(self.spent(&step.name, why())),
            Stop::Unavailable => {
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

    /// Returns the signal that the action of a step printed, if the loop obeys it. A sub-loop obeys its own.
    fn signal(&self, step: &Step) -> Option<Event> {
        let seen = self.run.seen().filter(|_| self.run.sub_loop().is_none())?;
        let Found { signal, text } = signals::find(seen.stdout.as_str(), &self.machine.signals)?;
        Some(Event::Signal { state: step.name.clone(), signal, text })
    }

    /// The hand-off that an action asked for. What it says itself comes before what was written to a file.
    pub(super) fn signalled_handoff(&self, state: &StateName, text: &str, written: Option<String>) -> Event {
        let wanted = self.start.on_handoff.unwrap_or(self.machine.on_handoff);
        let too_many = self.run.handoffs() > self.machine.max_handoffs;
        let behavior = if wanted == OnHandoff::Spawn && too_many { OnHandoff::Pause } else { wanted };
        let own = Some(text.to_owned()).filter(|text| !signals::is_standard(text));
        let continuation = own.or(written).or_else(|| Some(text.to_owned()).filter(|text| !text.is_empty()));
        let what =
            continuation.as_deref().map(|text| format!(": {}", one_line(text, 200))).unwrap_or_default();
        let message = format!("`{state}` asked for a fresh session{what}");
        let (state, reason) = (state.clone(), HandoffReason::Signal);
        Event::Handoff(Handoff { state, reason, message, continuation, behavior })
    }

    fn leave(&self, id: StepId, verdict: &Verdict) -> Event {
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
            Ok(text) => {
                Event::Message { state: step.name.clone(), text: bounds::in_event(&text).into_owned() }
            }
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
        let way = if self.is_without_model(step) {
            routing::without_model(self.machine, step)
        } else {
            routing::way(self.machine, step, verdict, ended)
        };
        let Some(way) = way else {
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
    fn close(&self, id: EndId) -> Decision {
        let end = self.machine.end(id);
        let Some(action) = &end.closing else {
            return Decision::Happens(self.finish(id));
        };
        self.begin_closing(action, &end.name).unwrap_or_else(|why| {
            let message = format!("the closing action was not run: {why}");
            Decision::Happens(Event::Warning { state: Some(end.name.clone()), message })
        })
    }

    fn begin_closing(&self, action: &Action, name: &StateName) -> Result<Decision, String> {
        if action.asks_agent() {
            if !self.may_ask() {
                return Err("it needs an agent, and none may be asked here".to_owned());
            }
            if let Some(why) = budget::met(self.budget(), self.run.usage(), self.run.dearest()) {
                return Err(why);
            }
        }
        self.begin(action, name).map_err(|error| error.to_string())
    }

    /// A closing action changes nothing, but its failure is said. One that was stopped because the run is to end is
    /// made up for when the run goes on.
    fn closed(&self, id: EndId) -> Event {
        let (seen, name) = (self.run.seen(), &self.machine.end(id).name);
        let was_cut_short = seen.is_some_and(Observation::was_cut_short);
        if let Some(interrupted) = self.interrupted(name).filter(|_| was_cut_short) {
            return interrupted;
        }
        match seen {
            Some(seen) if seen.stop == Some(Stop::NotRecorded) => self.complete(Ending {
                outcome: Outcome::Error,
                by: TerminatedBy::NotRecorded,
                state: name.clone(),
                reason: seen.failure.clone().unwrap_or_default(),
                signal: None,
            }),
            Some(seen) if !seen.succeeded() => {
                let message = format!("the closing action failed{}", describe(seen));
                Event::Warning { state: Some(name.clone()), message }
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
        let starts_again = self.machine.maintain.is_some() && self.cancel.is_none() && cycles_left;
        if starts_again && !self.ends_clean(end) {
            let to = end.on_maintain.unwrap_or(self.machine.initial);
            let (from, to) = (end.name.clone(), self.machine.name_of(to).clone());
            return Event::Route { from, to, verdict: None, reason: RouteReason::Maintain };
        }
        let name = &end.name;
        let verified = self.run.is_verified();
        let (outcome, reason) = match (end.meaning, verified) {
            (Meaning::Failure, _) => (Outcome::Failure, format!("ended in `{name}`")),
            (Meaning::Blocked, _) => (Outcome::Blocked, format!("ended in `{name}`: a person is needed")),
            (Meaning::Success | Meaning::DeclaredSuccess, true) => (Outcome::Success, self.succeeded(end)),
            (Meaning::DeclaredSuccess, false) => {
                (Outcome::Success, format!("ended in `{name}`, which the loop declares a success"))
            }
            (Meaning::Success, false) => {
                let outcome = if self.start.event.strict { Outcome::Failure } else { Outcome::Success };
                let since = if self.run.is_doubted() { " since the last failing observation" } else { "" };
                (outcome, format!("ended in `{name}` unverified: nothing passed{since}"))
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

    /// Tells whether a run that wants a clean cycle has one with this end.
    fn ends_clean(&self, end: &End) -> bool {
        let is_success = matches!(end.meaning, Meaning::Success | Meaning::DeclaredSuccess);
        self.start.event.until_clean && is_success && !self.run.is_doubted()
    }

    fn succeeded(&self, end: &End) -> String {
        let (name, cycle) = (&end.name, self.run.cycle());
        if self.ends_clean(end) {
            format!("cycle {cycle} needed no fix")
        } else if self.start.event.until_clean {
            format!("ended in `{name}`, and cycle {cycle} needed a fix")
        } else {
            format!("ended in `{name}`")
        }
    }

    fn hand_off(&self, state: &StateName) -> Event {
        let message = format!("the deadline of this job came after {}", human(self.now));
        saved(state, HandoffReason::Deadline, message)
    }

    /// Returns the end of a run that was asked to end.
    pub(super) fn interrupted(&self, state: &StateName) -> Option<Event> {
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

    fn render_within(&self, room: &mut Room, template: &Template) -> Result<String, RenderError> {
        template.render_within(room, &self.scope())
    }
}

/// Tells whether a prompt says itself what was left to say.
fn names_continuation(text: &Template) -> bool {
    let wanted = [Segment::Key("continuation".to_owned())];
    text.expressions().any(|expression| expression.namespace == Namespace::Loop && expression.path == wanted)
}

/// Saves a run for a later one, for a reason that no action gave.
fn saved(state: &StateName, reason: HandoffReason, message: String) -> Event {
    let (state, behavior) = (state.clone(), OnHandoff::Pause);
    Event::Handoff(Handoff { state, reason, message, continuation: None, behavior })
}

fn error_in(state: &StateName, key: &str, error: &str) -> Event {
    Event::LoopError { state: state.clone(), error: format!("in `{key}`: {error}") }
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
