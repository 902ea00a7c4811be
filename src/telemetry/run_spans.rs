//! Folds the events of a run into its spans: one for each part of the run, one for each step, and those of the loops, calls of
//! agents and checks inside of them. The ids follow from the trace and the names of steps, so that two exports say the same.

use std::collections::HashMap;
use std::time::Duration;

use super::span_words::{pipeline_result, provider_of, shown_command, task_result, word};
use super::trace_span::{Attribute, AttributeValue, SpanKind, SpanLink, SpanStatus, TraceSpan};
use crate::base::text::one_line;
use crate::base::time::{Timestamp, millis};
use crate::base::trace_id::SpanId;
use crate::engine::event::{
    ActionComplete, ActionKind, ClosingPassCheck, Event, LoopComplete, LoopResume, LoopStart, Stamped,
    SubLoopComplete,
};
use crate::engine::loop_stack::LoopStack;
use crate::engine::outcome::Outcome;
use crate::engine::trace_origin::TraceOrigin;
use crate::evaluate::model::Usage;
use crate::evaluate::verdict::{Observes, Verdict};

/// The longest name of a state, loop or verdict in a span, in characters. Only a journal that no loop of ours wrote has longer ones.
const LONGEST_NAME: usize = 200;

/// The most spans of a run. A run that has more is not exported whole, which its first span says.
const MOST_SPANS: usize = 200_000;

/// The index of a span among those that were made.
type Index = usize;

/// A loop that runs.
#[derive(Clone, Debug)]
struct LoopLevel {
    name: String,
    /// What the keys of its steps begin with.
    key: String,
    part: u32,
    span: Option<Index>,
    step: Option<OpenStep>,
    visits: HashMap<String, u32>,
}

/// A step that was entered and not left.
#[derive(Clone, Debug)]
struct OpenStep {
    key: String,
    span: Option<Index>,
    /// The call of an agent that goes on.
    agent: Option<Index>,
    kind: Option<ActionKind>,
}

/// Makes spans of events.
#[derive(Clone, Debug, Default)]
pub struct RunSpans {
    run_id: String,
    origin: Option<TraceOrigin>,
    levels: LoopStack<LoopLevel>,
    /// The loops that were left last, by their depth: one that was cut off is gone on with.
    left: HashMap<u32, LoopLevel>,
    spans: Vec<TraceSpan>,
    open: Vec<Index>,
    closing_pass: Option<Index>,
    last: Option<Timestamp>,
    usage: Usage,
    link: Option<SpanLink>,
    left_out: u64,
}

impl RunSpans {
    /// Takes the next event.
    pub fn event(&mut self, stamped: &Stamped) {
        let Stamped { ts, depth, event, .. } = stamped;
        let (at, depth) = (*ts, *depth);
        // What was taken over happened in another run, whose trace has it.
        if stamped.inherited && !matches!(event, Event::LoopStart(_) | Event::LoopResume(_)) {
            return;
        }
        match event {
            Event::LoopStart(start) => self.begin(start, stamped),
            Event::LoopResume(resume) => self.go_on(resume, stamped),
            Event::StateEnter { state, iteration, step, attempt } => {
                self.enter(depth, at, state.as_str(), *step);
                self.say(depth, "ll.iteration", *iteration);
                self.say(depth, "ll.attempt", *attempt);
            }
            Event::ActionStart { action, kind, role, .. } => {
                self.act(depth, at, action, *kind, role.as_deref());
            }
            Event::ActionComplete(complete) => self.acted(depth, at, complete),
            Event::Judge { usage, error, .. } => self.judged(depth, at, usage, error.is_some()),
            Event::Evaluate { r#type, verdict, observes, .. } => {
                self.evaluated(depth, r#type, verdict, *observes);
            }
            Event::Route { to, .. } => {
                self.say(depth, "ll.next", one_line(to.as_str(), LONGEST_NAME));
                self.leave(depth, at);
            }
            Event::SubLoopComplete(complete) => self.sub_loop_ended(depth, at, complete),
            Event::ClosingPassStart(_) => {
                let parent = self.levels.at(0).and_then(|level| level.span);
                self.closing_pass = self.child(parent, "closing pass", SpanKind::Internal, at);
            }
            Event::ClosingPassCheck(check) => self.checked_again(at, check),
            Event::ClosingPassEnd(end) => {
                if let Some(index) = self.closing_pass.take() {
                    let result = word(&end.result);
                    self.spans[index].say("ll.closing_pass", result);
                    self.close(index, at);
                }
            }
            Event::Handoff(handoff) => {
                let reason = word(&handoff.reason);
                self.of_loop(depth, "ll.handoff", reason);
            }
            Event::Reused(reused) => {
                self.of_loop(depth, "ll.reused", true);
                self.of_loop(depth, "ll.reused.run", one_line(&reused.run, LONGEST_NAME));
            }
            Event::ActionError { .. } | Event::LoopError { .. } => self.fails(depth, "error"),
            Event::LoopTimeout { .. } => self.fails(depth, "timeout"),
            Event::LoopComplete(end) => self.end(depth, at, end),
            Event::Approval(_)
            | Event::Sandbox(_)
            | Event::VerdictTree { .. }
            | Event::ClosingPassProof(_)
            | Event::Stall { .. }
            | Event::SubLoopStart { .. }
            | Event::Retry { .. }
            | Event::Message { .. }
            | Event::Backoff { .. }
            | Event::Warning { .. }
            | Event::Signal { .. }
            | Event::Board(_)
            | Event::CallFailed(_) => {}
        }
        // Last of all, because some spans begin where the event before this one happened.
        self.last = Some(at);
    }

    /// Says that the process of a run without an end is gone.
    pub fn was_killed(&mut self) {
        if self.levels.at(0).is_some_and(|level| level.span.is_some()) {
            self.of_loop(0, "ll.outcome", "interrupted");
            self.of_loop(0, "cicd.pipeline.result", "cancellation");
            self.fails_loop(0, "killed");
        }
    }

    /// Tells whether somebody around the run said that its trace is not recorded.
    pub fn is_unsampled(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.is_unsampled)
    }

    /// Returns the spans, each after the one around it. What the journal has no end of ends with the last event.
    pub fn into_spans(mut self) -> Vec<TraceSpan> {
        if let Some(last) = self.last {
            while let Some(index) = self.open.last().copied() {
                self.close(index, last);
            }
        }
        if self.left_out > 0
            && let Some(first) = self.spans.first_mut()
        {
            first.say("ll.spans_left_out", self.left_out);
        }
        self.spans
    }

    fn origin(&self) -> TraceOrigin {
        self.origin.clone().unwrap_or_else(|| TraceOrigin::of_run(&self.run_id))
    }

    fn begin(&mut self, start: &LoopStart, stamped: &Stamped) {
        let (at, depth) = (stamped.ts, stamped.depth);
        let name = one_line(start.r#loop.as_str(), LONGEST_NAME);
        let level = |key: String| LoopLevel {
            name: name.clone(),
            key,
            part: 1,
            span: None,
            step: None,
            visits: HashMap::new(),
        };
        if depth > 0 {
            let key = self.levels.at(depth - 1).and_then(|level| Some(level.step.as_ref()?.key.clone()));
            // A journal that no run of ours wrote may have a loop with no step around it.
            let Some(key) = key else { return };
            self.levels.begin(depth, level(key));
            if !stamped.inherited {
                self.begin_inner(depth, at);
            }
            return;
        }
        self.origin = Some(start.trace_origin());
        self.run_id = one_line(&start.run_id, LONGEST_NAME);
        self.levels.begin(0, level(self.run_id.clone()));
        if stamped.inherited {
            self.was_rewound_from(start);
        } else {
            self.begin_part(at, Some(start));
        }
    }

    /// Keeps the run that this one was rewound from as its predecessor.
    fn was_rewound_from(&mut self, start: &LoopStart) {
        let origin = start.trace_origin();
        let attributes = vec![Attribute::new("ll.resume.reason", "rewound")];
        let span = origin.run_span(&start.run_id, 1);
        self.link = Some(SpanLink { trace: origin.trace, span, attributes });
    }

    /// Begins a part of the run.
    fn begin_part(&mut self, at: Timestamp, start: Option<&LoopStart>) {
        let origin = self.origin();
        let Some((name, part)) = self.levels.at(0).map(|level| (level.name.clone(), level.part)) else {
            return;
        };
        let id = origin.run_span(&self.run_id, part);
        // The conventions for pipelines say that a run is a server.
        let Some(index) = self.add(id, origin.parent, format!("ll-loop {name}"), SpanKind::Server, at) else {
            return;
        };
        let run_id = self.run_id.clone();
        let span = &mut self.spans[index];
        span.links.extend(self.link.take());
        span.say("cicd.pipeline.name", name);
        span.say("cicd.pipeline.run.id", run_id);
        span.say("ll.part", part);
        let revision = origin
            .revision
            .map(|line| line.to_string())
            .or_else(|| start.and_then(|start| start.commit.clone()));
        let places = [
            ("cicd.pipeline.run.url.full", origin.page.map(|line| line.to_string())),
            ("vcs.repository.url.full", origin.repository.map(|line| line.to_string())),
            ("vcs.ref.head.name", origin.ref_name.map(|line| line.to_string())),
            ("vcs.ref.head.revision", revision.map(|text| one_line(&text, LONGEST_NAME))),
        ];
        for (name, value) in places {
            if let Some(value) = value {
                span.say(name, value);
            }
        }
        if let Some(start) = start {
            span.say("ll.definition_sha256", one_line(&start.definition_sha256, LONGEST_NAME));
            if let Some(assignment) = &start.assignment {
                span.say("ll.plan.leg", assignment.leg.to_string());
                span.say("ll.plan.item", assignment.item.to_string());
                span.say("ll.plan.attempt", assignment.attempt);
            }
        }
        if let Some(level) = self.levels.at_mut(0) {
            level.span = Some(index);
        }
    }

    /// Begins the span of a loop that a step runs.
    fn begin_inner(&mut self, depth: u32, at: Timestamp) {
        let around = self.levels.at(depth - 1).and_then(|level| level.step.as_ref()?.span);
        let Some(level) = self.levels.at(depth) else { return };
        let name = level.name.clone();
        // The step around it has the same key, and must not have the same id.
        let id = self.origin().step_span(&format!("{} loop", level.key), level.part);
        let parent = around.map(|index| self.spans[index].id);
        let Some(index) = self.add(id, parent, format!("ll-loop {name}"), SpanKind::Internal, at) else {
            return;
        };
        self.spans[index].say("ll.loop", name);
        if let Some(level) = self.levels.at_mut(depth) {
            level.span = Some(index);
        }
    }

    /// Ends the part before, where the journal has no end of it, and begins the next one.
    fn go_on(&mut self, resume: &LoopResume, stamped: &Stamped) {
        let (at, depth) = (stamped.ts, stamped.depth);
        self.restore(depth);
        let Some(level) = self.levels.at_mut(depth) else { return };
        level.part += 1;
        if stamped.inherited {
            return;
        }
        if depth > 0 {
            self.stand(depth - 1, at);
            self.begin_inner(depth, at);
            return;
        }
        let before = level.span.take();
        let reason = word(&resume.reason);
        let attributes = vec![Attribute::new("ll.resume.reason", reason)];
        if let Some(index) = before {
            let earlier = &self.spans[index];
            self.link = Some(SpanLink { trace: earlier.trace, span: earlier.id, attributes });
        }
        let ended = self.last.unwrap_or(at);
        while let Some(index) = self.open.last().copied() {
            self.close(index, ended);
        }
        self.closing_pass = None;
        // Each part says what it has spent itself, or a backend that adds the parts up would count it twice.
        self.usage = Usage::default();
        if let Some(origin) = resume.changes.trace.as_deref() {
            self.origin = Some(origin.clone());
        }
        self.cut_off(resume);
        self.begin_part(at, None);
    }

    /// Puts the loop back that the step around it runs again, where it was cut off.
    fn restore(&mut self, depth: u32) {
        let around = depth.checked_sub(1).and_then(|depth| self.levels.at(depth)?.step.as_ref());
        let (Some(step), None) = (around, self.levels.at(depth)) else { return };
        let Some(level) = self.left.remove(&depth) else { return };
        self.levels.begin(depth, LoopLevel { key: step.key.clone(), span: None, step: None, ..level });
    }

    /// Makes of the steps that were cut off such as are gone on with, without a span until something happens in them.
    fn cut_off(&mut self, resume: &LoopResume) {
        for depth in 0.. {
            let Some(level) = self.levels.at_mut(depth) else { return };
            level.span = None;
            if let Some(step) = &mut level.step {
                (step.span, step.agent, step.kind) = (None, None, None);
            } else if depth == 0 {
                let key = format!("{}/{}", level.key, resume.step);
                level.step = Some(OpenStep { key, span: None, agent: None, kind: None });
            }
        }
    }

    fn enter(&mut self, depth: u32, at: Timestamp, state: &str, step: u32) {
        self.leave(depth, at);
        let state = one_line(state, LONGEST_NAME);
        let Some(level) = self.levels.at_mut(depth) else { return };
        let visit = level.visits.entry(state.clone()).and_modify(|visits| *visits += 1).or_insert(1);
        let visit = *visit;
        let key = format!("{}/{step}", level.key);
        level.step = Some(OpenStep { key, span: None, agent: None, kind: None });
        self.stand(depth, at);
        self.name_step(depth, &state);
        self.say(depth, "ll.step", step);
        self.say(depth, "ll.visit", visit);
    }

    /// Makes the span of the step that a loop is in, where it has none yet.
    fn stand(&mut self, depth: u32, at: Timestamp) {
        let Some(level) = self.levels.at(depth) else { return };
        let (Some(step), parent) = (&level.step, level.span) else { return };
        if step.span.is_some() {
            return;
        }
        let key = step.key.clone();
        let id = self.origin().step_span(&key, level.part);
        let parent = parent.map(|index| self.spans[index].id);
        let index = self.add(id, parent, "step".to_owned(), SpanKind::Internal, at);
        if let Some(index) = index {
            self.spans[index].say("cicd.pipeline.task.run.id", key);
        }
        if let Some(step) = self.levels.at_mut(depth).and_then(|level| level.step.as_mut()) {
            step.span = index;
        }
    }

    fn name_step(&mut self, depth: u32, state: &str) {
        if let Some(index) = self.step_span(depth)
            && self.spans[index].said("ll.state").is_none()
        {
            let span = &mut self.spans[index];
            state.clone_into(&mut span.name);
            span.say("cicd.pipeline.task.name", state);
            span.say("ll.state", state);
        }
    }

    fn act(&mut self, depth: u32, at: Timestamp, action: &str, kind: ActionKind, role: Option<&str>) {
        self.stand(depth, at);
        self.say(depth, "ll.action.kind", word(&kind));
        match kind {
            ActionKind::Shell => self.say(depth, "ll.action", shown_command(action)),
            // What an agent, a tool, a person or a board is told is no name, number or state.
            ActionKind::Prompt
            | ActionKind::Mcp
            | ActionKind::SubLoop
            | ActionKind::Board
            | ActionKind::HumanApproval
            | ActionKind::Learning => {}
        }
        let agent = kind.asks_agent().then(|| {
            let parent = self.step_span(depth);
            let state = parent.map(|index| self.spans[index].name.clone()).unwrap_or_default();
            let name = role.map_or(state, |role| one_line(role, LONGEST_NAME));
            let index = self.child(parent, &format!("invoke_agent {name}"), SpanKind::Client, at)?;
            self.spans[index].say("gen_ai.operation.name", "invoke_agent");
            self.spans[index].say("gen_ai.agent.name", name);
            Some(index)
        });
        if let Some(step) = self.levels.at_mut(depth).and_then(|level| level.step.as_mut()) {
            (step.agent, step.kind) = (agent.flatten(), Some(kind));
        }
    }

    fn acted(&mut self, depth: u32, at: Timestamp, complete: &ActionComplete) {
        let seen = &complete.seen;
        let step = self.levels.at_mut(depth).and_then(|level| level.step.as_mut());
        let agent = step.and_then(|step| step.agent.take());
        if let Some(usage) = &complete.usage {
            self.spent(usage);
            if let Some(index) = agent {
                self.say_usage(index, usage);
            }
        }
        if let Some(index) = agent {
            if seen.exit_code != 0 {
                self.fail(index, if seen.timed_out() { "timeout" } else { "error" });
            }
            self.close(index, at);
        }
        self.say(depth, "process.exit.code", seen.exit_code);
        self.say(depth, "ll.action.duration_ms", millis(seen.duration));
        if seen.timed_out() {
            self.say(depth, "cicd.pipeline.task.run.result", "timeout");
            self.fails(depth, "timeout");
        }
    }

    /// Adds the call of a model that judged a step. It began when its action had ended.
    fn judged(&mut self, depth: u32, at: Timestamp, usage: &Usage, has_failed: bool) {
        self.stand(depth, at);
        let began = self.last.unwrap_or(at);
        let model = usage.model.as_deref().map(|model| one_line(model, LONGEST_NAME));
        let name = model.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
        let Some(index) = self.child(self.step_span(depth), &name, SpanKind::Client, began) else { return };
        self.spans[index].say("gen_ai.operation.name", "chat");
        self.say_usage(index, usage);
        self.spent(usage);
        if has_failed {
            self.fail(index, "error");
        }
        self.close(index, at);
    }

    fn evaluated(&mut self, depth: u32, evaluator: &str, verdict: &Verdict, observes: Option<Observes>) {
        self.say(depth, "ll.evaluator", one_line(evaluator, LONGEST_NAME));
        self.say(depth, "ll.verdict", one_line(verdict.as_str(), LONGEST_NAME));
        let Some(index) = self.step_span(depth) else { return };
        // A timeout has said already how the step ended.
        if self.spans[index].said("cicd.pipeline.task.run.result").is_some() {
            return;
        }
        if verdict.as_str() == "error" {
            self.spans[index].say("cicd.pipeline.task.run.result", "error");
            self.fail(index, "error");
        } else if let Some(result) = observes.and_then(task_result) {
            self.spans[index].say("cicd.pipeline.task.run.result", result);
            if result == "failure" {
                self.fail(index, "verdict");
            }
        }
    }

    fn leave(&mut self, depth: u32, at: Timestamp) {
        for inner in depth.saturating_add(1).. {
            let Some(level) = self.levels.at(inner) else { break };
            self.left.insert(inner, level.clone());
        }
        self.levels.leave_inner(depth);
        let step = self.levels.at_mut(depth).and_then(|level| level.step.take());
        if let Some(index) = step.and_then(|step| step.span) {
            self.close(index, at);
        }
    }

    fn sub_loop_ended(&mut self, depth: u32, at: Timestamp, complete: &SubLoopComplete) {
        let inner = self.levels.at(depth.saturating_add(1)).and_then(|level| level.span);
        if let Some(index) = inner {
            let outcome = complete.outcome.map_or("error", Outcome::word);
            self.spans[index].say("ll.outcome", outcome);
            self.spans[index].say("ll.verified", complete.verified);
            self.close(index, at);
        }
    }

    fn checked_again(&mut self, at: Timestamp, check: &ClosingPassCheck) {
        let began = at.before(Duration::from_millis(check.duration_ms));
        let name = one_line(&check.check, LONGEST_NAME);
        let Some(index) = self.child(self.closing_pass, &name, SpanKind::Internal, began) else { return };
        let span = &mut self.spans[index];
        span.say("cicd.pipeline.task.name", name);
        span.say("ll.state", one_line(check.state.as_str(), LONGEST_NAME));
        span.say("ll.verdict", one_line(check.verdict.as_str(), LONGEST_NAME));
        span.say("ll.action", shown_command(&check.action));
        span.say("process.exit.code", check.exit_code);
        let result = match (check.passed, check.verdict.is_quarantined()) {
            (true, _) => "success",
            (false, true) => "skip",
            (false, false) => "failure",
        };
        span.say("cicd.pipeline.task.run.result", result);
        if check.is_refusal() {
            self.fail(index, "verdict");
        }
        self.close(index, at);
    }

    fn end(&mut self, depth: u32, at: Timestamp, end: &LoopComplete) {
        if depth > 0 {
            // The step that ran it says how it ended.
            self.leave(depth, at);
            return;
        }
        // A step that was cut off is gone on with by the next part.
        let open: Vec<Index> = self.open.iter().rev().copied().collect();
        let root = self.levels.at(0).and_then(|level| level.span);
        for index in open.into_iter().filter(|index| Some(*index) != root) {
            self.close(index, at);
        }
        let by = word(&end.terminated_by);
        self.of_loop(0, "ll.outcome", end.outcome.word());
        self.of_loop(0, "ll.verified", end.verified);
        self.of_loop(0, "ll.terminated_by", by.clone());
        self.of_loop(0, "ll.exit_code", u32::from(end.exit_code));
        self.of_loop(0, "ll.steps", end.steps);
        if !self.usage.is_nothing() {
            self.of_loop(0, "ll.agent.calls", self.usage.calls);
            self.of_loop(0, "ll.agent.tokens", self.usage.tokens());
            if let Some(cost) = self.usage.cost_usd {
                self.of_loop(0, "ll.cost_usd", cost);
            }
        }
        if let Some(result) = pipeline_result(end.outcome) {
            self.of_loop(0, "cicd.pipeline.result", result);
            if result != "success" {
                self.fails_loop(0, &by);
            }
        }
        if let Some(index) = root {
            self.close(index, at);
        }
    }

    fn spent(&mut self, usage: &Usage) {
        self.usage.add(usage);
    }

    fn say_usage(&mut self, index: Index, usage: &Usage) {
        let span = &mut self.spans[index];
        if let Some(model) = &usage.model {
            let model = one_line(model, LONGEST_NAME);
            if let Some(provider) = provider_of(&model) {
                span.say("gen_ai.provider.name", provider);
            }
            span.say("gen_ai.response.model", model);
        }
        span.say("gen_ai.usage.input_tokens", usage.input_tokens);
        span.say("gen_ai.usage.output_tokens", usage.output_tokens);
        if let Some(cost) = usage.cost_usd {
            span.say("ll.cost_usd", cost);
        }
    }

    fn step_span(&self, depth: u32) -> Option<Index> {
        self.levels.at(depth)?.step.as_ref()?.span
    }

    fn say(&mut self, depth: u32, name: &str, value: impl Into<AttributeValue>) {
        if let Some(index) = self.step_span(depth) {
            self.spans[index].say(name, value);
        }
    }

    fn of_loop(&mut self, depth: u32, name: &str, value: impl Into<AttributeValue>) {
        if let Some(index) = self.levels.at(depth).and_then(|level| level.span) {
            self.spans[index].say(name, value);
        }
    }

    fn fails(&mut self, depth: u32, why: &str) {
        if let Some(index) = self.step_span(depth) {
            self.fail(index, why);
        }
    }

    fn fails_loop(&mut self, depth: u32, why: &str) {
        if let Some(index) = self.levels.at(depth).and_then(|level| level.span) {
            self.fail(index, why);
        }
    }

    fn fail(&mut self, index: Index, why: &str) {
        let span = &mut self.spans[index];
        // The first reason stays: later ones mostly follow from it.
        if span.status == SpanStatus::Unset {
            span.status = SpanStatus::Failed(why.to_owned());
            span.say("error.type", why);
        }
    }

    /// Adds a span below another one, with an id by its number there.
    fn child(&mut self, parent: Option<Index>, name: &str, kind: SpanKind, at: Timestamp) -> Option<Index> {
        let parent = self.spans.get(parent?)?.id;
        let number = self.spans.iter().rev().take_while(|span| span.id != parent).count();
        let id = SpanId::of(&[&parent.to_string(), name, &number.to_string()]);
        self.add(id, Some(parent), name.to_owned(), kind, at)
    }

    fn add(
        &mut self,
        id: SpanId,
        parent: Option<SpanId>,
        name: String,
        kind: SpanKind,
        at: Timestamp,
    ) -> Option<Index> {
        if self.spans.len() >= MOST_SPANS {
            self.left_out += 1;
            return None;
        }
        let part = self.levels.at(0).map_or(1, |level| level.part);
        self.spans.push(TraceSpan {
            trace: self.origin().trace,
            id,
            parent,
            name,
            kind,
            start: at,
            end: at,
            attributes: Vec::new(),
            links: Vec::new(),
            status: SpanStatus::Unset,
            part,
        });
        let index = self.spans.len() - 1;
        self.open.push(index);
        Some(index)
    }

    fn close(&mut self, index: Index, at: Timestamp) {
        let span = &mut self.spans[index];
        // A clock that was set back must not end a span before its beginning.
        span.end = at.max(span.start);
        self.open.retain(|open| *open != index);
    }
}
