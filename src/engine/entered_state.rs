//! What an entered state runs: its action with every template resolved, or why it cannot be run.

use std::time::Duration;

use serde_json::{Map, Value};

use super::changes::StartTree;
use super::common::{error_in, saved};
use super::event::{ActionKind, BoardEvent, Event, HandoffReason, Llm, TreeState};
use super::outcome::{Outcome, TerminatedBy};
use super::request::{
    ActionRequest, AgentSession, Around, LearningRequest, PromptRequest, Setting, SubLoopRequest,
    SurveyRequest, ToolRequest,
};
use super::run::{Deciding, Ending, Phase};
use super::waiting::{Decision, MissingEvidence, TurnEvidence, WorkRequest};
use super::{Engine, action_variables, bounds, budget};
use crate::base::composed::Composed;
use crate::base::name::StateName;
use crate::base::path::Segment;
use crate::base::template::{Namespace, RenderError, Room, Template};
use crate::base::text::one_line;
use crate::board::{self, Operation};
use crate::evaluate::model::Usage;
use crate::evaluate::observation::{Observation, Stop};
use crate::evaluate::verdict::{Observes, Verdict};
use crate::machine::routing::{self};
use crate::machine::{
    self, Action, Binding, BoardAction, Budget, LearningAction, PromptAction, Routes, ShellAction, Step,
    StepId, SubLoopAction, SubLoopInput, ToolAction,
};

/// How long the action of a terminal may take when nothing else is said.
const CLOSING_TIME: Duration = Duration::from_mins(1);

/// Why the work of a state cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(super) struct Unmade {
    /// The key that is wrong, if that is not the action itself.
    key: Option<&'static str>,
    why: String,
}

impl From<RenderError> for Unmade {
    fn from(error: RenderError) -> Self {
        Self { key: None, why: error.to_string() }
    }
}

impl Engine<'_> {
    pub(super) fn act(&self, id: StepId, evidence: &TurnEvidence) -> Decision {
        let step = self.machine.step(id);
        if self.is_without_model(step) {
            return Decision::Happens(self.without_model(step));
        }
        let Some(action) = &step.action else { return Decision::Happens(self.judge(id, evidence)) };
        let tree = if self.compares_tree(id) { evidence.survey(&[]) } else { None };
        // A look costs a `git status`, so only states that may be flaky get one.
        if self.compares_tree(id) && tree.is_none() {
            let limit = self.timeout().map(|limit| limit.saturating_sub(self.now));
            let request = SurveyRequest { scope: Vec::new(), limit };
            return Decision::Lacks(id, MissingEvidence::Survey(request));
        }
        let tree = tree.map(|surveyed| match surveyed {
            Ok(survey) => TreeState::Seen(survey.clone()),
            Err(unseen) => TreeState::Unseen { unseen: unseen.clone().to_string() },
        });
        let begun = self.begin(action, &step.name, evidence).map(|decision| on_tree(decision, tree));
        begun.unwrap_or_else(|Unmade { key, why }| {
            Decision::Happens(self.unmade(step, key.unwrap_or(action.key()), &why))
        })
    }

    /// Says that the work of a state cannot be made. Where nothing leads on from there, the run ends.
    fn unmade(&self, step: &Step, key: &str, error: &str) -> Event {
        // Without a way for it, this is a fault of the loop, which ends the run with its place.
        if routing::unmade(self.machine, step).is_none() {
            return error_in(&step.name, key, error);
        }
        Event::ActionError { state: step.name.clone(), error: format!("in `{key}`: {error}") }
    }

    /// Says of an action that no process came of, such as one in a directory that is not there, that it cannot be made, where
    /// something leads on from that: what earlier states left then stays. Nothing where a process ran, or where the run was
    /// asked to end before.
    pub(super) fn never_begun(&self, seen: &Observation) -> Option<Event> {
        let why = seen.failure.as_deref().filter(|_| seen.stop.is_none())?;
        let step = self.machine.step(self.run.acting()?);
        routing::unmade(self.machine, step)?;
        // A state without a verdict of its own goes on as it always does.
        if matches!(step.routes, Routes::Always { on_error: None, .. }) {
            return None;
        }
        Some(self.unmade(step, step.action.as_ref()?.key(), why))
    }

    /// Tells whether the working tree is looked at before a step: where it may come again and nothing else acts in
    /// between, only the tree tells whether it is flaky.
    fn compares_tree(&self, id: StepId) -> bool {
        matches!(self.start.event.tree, Some(StartTree::Known(_))) && self.machine.repeats(id)
    }

    /// Goes on without the model that a step needs, or saves the run for where there is one.
    fn without_model(&self, step: &Step) -> Event {
        if routing::without_model(self.machine, step).is_none() {
            let message =
                format!("`{}` needs an agent, and none may be asked here (llm_disabled)", step.name);
            return saved(&step.name, HandoffReason::LlmDisabled, message);
        }
        let r#type = step.evaluate.as_ref().map_or("prompt", |evaluate| evaluate.name());
        let details = Map::from_iter([("reason".to_owned(), "llm_disabled".into())]);
        Event::evaluated(r#type, Verdict::blocked(), Some(Observes::Failing), details, None)
    }

    /// Tells whether a step needs a model and none may be asked.
    pub(super) fn is_without_model(&self, step: &Step) -> bool {
        step.needs_model() && !self.may_ask()
    }

    pub(super) fn may_ask(&self) -> bool {
        match self.start.event.llm {
            Llm::Off => false,
            // A recording answers without asking anybody, so no rule about models forbids it.
            Llm::Replay => true,
            Llm::On => !self.machine.llm.is_forbidden,
        }
    }

    /// Returns the end of a run whose budget is met.
    pub(super) fn over_budget(&self, name: &StateName) -> Option<Event> {
        let reason = budget::met(self.budget(), &self.charged(), self.run.dearest())?;
        Some(self.spent(name, reason))
    }

    pub(super) fn spent(&self, name: &StateName, reason: String) -> Event {
        let (outcome, by) = (Outcome::OverBudget, TerminatedBy::Budget);
        self.complete(Ending { outcome, by, state: name.clone(), reason, signal: None })
    }

    /// Returns what models may cost in all.
    pub(super) fn budget(&self) -> Budget {
        budget::both(self.machine.budget, self.start.budget)
    }

    pub(super) fn budget_left(&self) -> Budget {
        budget::left(self.budget(), &self.charged())
    }

    /// Returns what is held against the caps.
    pub(super) fn charged(&self) -> Usage {
        budget::charged(self.budget(), self.run.usage(), self.run.cut_off())
    }

    /// Resolves an action and begins it.
    pub(super) fn begin(
        &self,
        action: &Action,
        state: &StateName,
        evidence: &TurnEvidence,
    ) -> Result<Decision, Unmade> {
        let text = || self.render(action.text());
        match action {
            Action::Shell(shell) => Ok(self.begin_command(shell, text()?, state)?),
            Action::Prompt(prompt) => {
                let text = self.composed(prompt, state)?;
                if let Some(event) = self.interrupted(state).or_else(|| self.over_budget(state)) {
                    return Ok(Decision::Happens(event));
                }
                Ok(self.begin_prompt(prompt, text, state)?)
            }
            Action::Tool(tool) => self.begin_call(tool, &text()?, state),
            Action::SubLoop(sub) => Ok(self.begin_sub_loop(sub, text()?, state)?),
            Action::Board(board) => Ok(Decision::Happens(self.operate(board, state)?)),
            Action::Approval(approval) => Ok(self.ask_person(approval, state, evidence)?),
            Action::Learning(learning) => self.begin_learning(learning, &text()?, state),
        }
    }

    fn begin_learning(
        &self,
        learning: &LearningAction,
        shown: &str,
        state: &StateName,
    ) -> Result<Decision, Unmade> {
        let mut room = Room::new();
        let mut targets: Vec<String> = Vec::new();
        for target in &learning.targets {
            targets.push(self.render_within(&mut room, target)?);
        }
        // One room for all targets, so that their sum is bounded.
        if let Some(listed) = &learning.listed {
            let listed = self.render_within(&mut room, listed)?;
            targets.extend(listed.split(',').map(str::to_owned));
        }
        targets.retain(|target| !target.trim().is_empty());
        let tries = match &learning.tries_by {
            Some(tries) => {
                let text = self.render(tries)?;
                text.trim().parse().map_err(|_| Unmade {
                    key: Some("learning.max_retries_expr"),
                    why: format!("`{}` is not a count", one_line(&text, 60)),
                })?
            }
            None => learning.tries,
        };
        let event = self.announced(state, ActionKind::Learning, shown, None);
        let (setting, budget) = (self.setting(&learning.setting)?, self.budget_left());
        let (may_ask, heeds_project) = (self.may_ask(), self.machine.heeds_project);
        // Names that nothing leads to are left out, so that a list may end with a comma.
        let request = LearningRequest { targets, tries, may_ask, heeds_project, setting, budget };
        Ok(Decision::Begins(event, WorkRequest::Learning(Box::new(request))))
    }

    fn begin_command(
        &self,
        shell: &ShellAction,
        text: String,
        state: &StateName,
    ) -> Result<Decision, RenderError> {
        let event = self.announced(state, ActionKind::Shell, &text, None);
        let setting = self.setting(&shell.setting)?;
        let request = ActionRequest { shell: shell.shell.clone(), text, role: self.role_in(state), setting };
        Ok(Decision::Begins(event, WorkRequest::Action(request)))
    }

    fn begin_prompt(
        &self,
        prompt: &PromptAction,
        text: Composed,
        state: &StateName,
    ) -> Result<Decision, RenderError> {
        let request = self.prompt(prompt, text, state)?;
        let session = request.session.as_ref().map(|session| session.name.clone());
        let event = self.announced(state, ActionKind::Prompt, &request.text, session);
        Ok(Decision::Begins(event, WorkRequest::Prompt(Box::new(request))))
    }

    fn begin_call(&self, call: &ToolAction, text: &str, state: &StateName) -> Result<Decision, Unmade> {
        // The name stands in a template, and only at run time is it known whether it names both.
        let Some((server, tool)) = text.trim().split_once('/') else {
            return Err(Unmade { key: None, why: format!("`{}` is not SERVER/TOOL", one_line(text, 60)) });
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
        Ok(Decision::Begins(
            event,
            WorkRequest::Tool(Box::new(ToolRequest { server, tool, params, setting })),
        ))
    }

    fn role_in(&self, state: &StateName) -> Option<String> {
        self.step_of(state).and_then(|step| step.role.as_ref()).map(ToString::to_string)
    }

    /// Announces an action.
    pub(super) fn announced(
        &self,
        state: &StateName,
        kind: ActionKind,
        shown: &str,
        session: Option<String>,
    ) -> Event {
        let role = self.role_in(state);
        let action = bounds::in_event(shown).into_owned();
        Event::ActionStart { state: state.clone(), action, kind, role, session, tree: None }
    }

    /// Makes an operation on the task board. It needs nothing from the world.
    pub(super) fn operate(&self, action: &BoardAction, state: &StateName) -> Result<Event, RenderError> {
        let mut room = Room::new();
        let params = action.params.iter();
        let params = params.map(|(name, text)| {
            let value = if name == board::ANSWER {
                match self.render_within(&mut room, text) {
                    // The board says itself what it cannot do without an answer.
                    Err(RenderError::TooLong { .. }) => String::new(),
                    rendered => rendered?,
                }
            } else {
                self.compose_within(&mut room, text)?.kept()
            };
            Ok((name.clone(), value))
        });
        let params = params.collect::<Result<_, RenderError>>()?;
        let before = self.run.board();
        let mut operation = action.kind.with(&params);
        if let Ok(Operation::Recover { is_changed }) = &mut operation {
            // Only the run knows whether the tree was changed since; the board asks for it.
            *is_changed = self.run.is_tree_changed();
        }
        let (after, word, notes) = match operation {
            Ok(operation) => board::apply(before.clone(), &self.machine.board, operation),
            Err(why) => (before.clone(), "error", vec![board::Note::refused(why.as_str())]),
        };
        Ok(Event::Board(BoardEvent {
            state: state.clone(),
            operation: action.kind.word().to_owned(),
            verdict: Verdict::new(word),
            change: board::BoardChange::between(before, &after),
            notes,
        }))
    }

    /// Puts the words of a prompt together: what was left to say, the prompt itself, what it has for context, and what
    /// was wrong with the last answer.
    fn composed(&self, prompt: &PromptAction, state: &StateName) -> Result<Composed, RenderError> {
        let mut room = Room::new();
        let mut text = self.compose_within(&mut room, &prompt.text)?;
        for (index, (name, value)) in prompt.context.iter().enumerate() {
            let before = if index == 0 { "\n\nContext:\n" } else { "\n" };
            text.push_own(&format!("{before}- {name}: "));
            text.append(self.compose_within(&mut room, value)?);
        }
        let continuation = self.run.own_continuation().filter(|_| !names_continuation(&prompt.text));
        // The session that goes on has to hear what the one before it left to say, unless the loop
        // says it itself.
        if let Some(continuation) = continuation {
            // A slash command is one only at the start of a prompt.
            if text.bounded().starts_with('/') {
                text.push_own("\n\n");
                text.push_printed(continuation);
            } else {
                let own = std::mem::take(&mut text);
                text.push_printed(continuation);
                text.push_own("\n\n");
                text.append(own);
            }
        }
        if let Some(why) = self.refused_form(state) {
            text.push_own("\n\nYour last answer to this could not be used: ");
            text.push_printed(why);
            text.push_own(
                "\nDo not begin again with what is done already. Answer in the form that is asked for.",
            );
        }
        Ok(text)
    }

    /// Makes a request of a prompt.
    fn prompt(
        &self,
        prompt: &PromptAction,
        composed: Composed,
        state: &StateName,
    ) -> Result<PromptRequest, RenderError> {
        let rendered = |template: &Option<Template>| template.as_ref().map(|t| self.render(t)).transpose();
        let (model, fallback_model) = (rendered(&prompt.model)?, rendered(&prompt.fallback_model)?);
        let model = model.or_else(|| self.start.event.overrides.model.clone());
        // What the first model did not answer well is asked of the other one.
        let is_retry = self.run.attempt() > 1 && self.step_of(state).is_some_and(|step| step.retry.is_some());
        let model = if is_retry { fallback_model.clone().or(model) } else { model };
        let session = rendered(&prompt.session)?.map(|name| match self.run.sessions().get(&name) {
            Some(known) => AgentSession { id: Some(known.id.clone()), total: known.total, name },
            None => AgentSession { id: None, total: None, name },
        });
        Ok(PromptRequest {
            text: composed.bounded(),
            composed,
            agent: rendered(&prompt.agent)?,
            tools: prompt.tools.clone(),
            sandbox: prompt.sandbox,
            // The model cannot be its own replacement.
            fallback_model: fallback_model.filter(|fallback| Some(fallback) != model.as_ref()),
            model,
            answer: prompt.answer.as_ref().map(|form| form.schema().clone()),
            session,
            role: self.role_in(state),
            heeds_project: self.machine.heeds_project,
            setting: self.setting(&prompt.setting)?,
            budget: self.budget_left(),
        })
    }

    /// Resolves where and how long an action runs. That of a terminal has little time when nothing else is said.
    pub(super) fn setting(&self, setting: &machine::ActionSetting) -> Result<Setting, RenderError> {
        let cwd = setting.cwd.as_ref().map(|cwd| self.render(cwd)).transpose()?;
        let mut env = action_variables::variables(self);
        let mut room = Room::new();
        for (name, value) in self.machine.env.iter().chain(&setting.env) {
            env.push((name.clone(), action_variables::value(&self.render_within(&mut room, value)?)));
        }
        // Nothing comes after the action of a terminal that could notice that it hangs.
        let closes = matches!(self.run.phase(), Phase::Deciding(Deciding::Arrive { .. }));
        let timeout = setting.timeout.or(closes.then_some(CLOSING_TIME));
        Ok(Setting {
            env,
            cwd,
            end: self.end_of_action(timeout),
            idle: setting.idle_timeout,
            sandbox: setting.sandbox.clone().map(Box::new),
        })
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
        // An empty branch means none, so that a template can decide whether there is one.
        let worktree = sub.worktree.as_ref().map(|branch| self.render(branch)).transpose()?;
        let worktree = worktree.map(|branch| branch.trim().to_owned()).filter(|branch| !branch.is_empty());
        let left = |end: Duration| end.saturating_sub(self.now);
        let (timeout, left_over) = (sub.timeout, self.timeout().map(left));
        let deadline = self.start.deadline.map(left);
        let (budget, key) = (self.budget_left(), action_variables::key(self));
        let request = SubLoopRequest {
            name: name.clone(),
            params,
            around,
            worktree,
            gives_back: sub.given.gives_back(),
            timeout,
            left: left_over,
            deadline,
            budget,
            key,
            answer: self.run.question().and_then(|question| question.answer.clone()),
        };
        let event = Event::SubLoopStart { state: state.clone(), r#loop: name };
        Ok(Decision::Begins(event, WorkRequest::SubLoop(state.clone(), Box::new(request))))
    }

    /// Returns the first thing that would end an action from outside.
    pub(super) fn end_of_action(&self, timeout: Option<Duration>) -> Option<(Duration, Stop)> {
        let left = |end: Duration| end.saturating_sub(self.now);
        let own = timeout.map(|timeout| (timeout, Stop::Timeout));
        let run = self.timeout().map(|end| (left(end), Stop::LoopTimeout));
        let job = self.start.deadline.map(|end| (left(end), Stop::Deadline));
        // Of two that end at the same time the first one in this order is told: the state's own
        // limit.
        own.into_iter().chain(run).chain(job).min_by_key(|(after, _)| *after)
    }
}

/// Tells whether a prompt says itself what was left to say.
fn names_continuation(text: &Template) -> bool {
    let wanted = [Segment::Key("continuation".to_owned())];
    text.expressions().any(|expression| expression.namespace == Namespace::Loop && expression.path == wanted)
}

/// Adds to the start of an action the tree that was seen before it.
fn on_tree(mut decision: Decision, seen: Option<TreeState>) -> Decision {
    if let Decision::Begins(Event::ActionStart { tree, .. }, _) = &mut decision {
        *tree = seen;
    }
    decision
}
