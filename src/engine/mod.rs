//! The pure run: what was observed goes in, what happened and what to do next come out.
//!
//! No clock, no process, no file. [`Engine::next`] says what the world owes the run; [`Engine::handle`] takes a fact
//! and returns the events that follow from it. [`run::Run`] is the fold over those events, so that a journal is
//! enough to have the run again. Decisions look at the fold alone: nothing is decided twice or forgotten when a
//! batch of events is cut short.

use std::collections::BTreeMap;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::base::time::Timestamp;
use crate::evaluate::FileRead;
use crate::evaluate::model::Answer;
use crate::evaluate::query::Queried;
use crate::evaluate::survey::Surveyed;
use crate::machine::{Budget, Machine, OnHandoff};

mod bounds;
mod budget;
mod decide;
mod environment;
pub mod event;
pub mod execution;
pub mod night;
pub mod outcome;
pub mod past;
pub mod request;
pub mod run;
mod scope;
mod signals;

use event::{Event, LoopComplete, LoopResume, LoopStart};
use outcome::Signal;
use past::Past;
use request::{
    ActionRequest, AskRequest, Input, Next, PromptRequest, QueryRequest, SubLoopRequest, SurveyRequest,
    ToolRequest,
};
use run::{Deciding, Phase, Run, StateResult, Waiting};

/// How many events follow from one fact at most, and from the facts that time passes all the others.
const TURN: usize = 1000;

/// What a run is told at its start and never changes.
#[derive(Clone, Debug)]
pub struct Start {
    /// How the run begins, as its first event says.
    pub event: LoopStart,
    /// When.
    pub at: Timestamp,
    /// The variables, resolved.
    pub context: Map<String, Value>,
    /// The environment that templates see.
    pub env: BTreeMap<String, String>,
    /// What the keys of its steps begin with: the id of the run, or the key of the step that runs a sub-loop.
    pub key: String,
    /// The directory for files of the run's own.
    pub run_dir: String,
    /// The time after which the run hands itself over, if there is one.
    pub deadline: Option<Duration>,
    /// The time that is left to a sub-loop of the run around it.
    pub timeout: Option<Duration>,
    /// What models may cost, beside what the loop itself says.
    pub budget: Budget,
    /// Who continues after a hand-off, in place of what the loop says.
    pub on_handoff: Option<OnHandoff>,
    /// The captures of the run around a sub-loop, where it sees them.
    pub captured: IndexMap<String, StateResult>,
}

impl Start {
    /// Makes the start of a run without an environment, limits or files of its own.
    pub fn of(event: LoopStart, at: Timestamp, key: &str) -> Self {
        Self {
            context: event.context.clone(),
            event,
            at,
            env: BTreeMap::new(),
            key: key.to_owned(),
            run_dir: String::new(),
            deadline: None,
            timeout: None,
            budget: Budget::default(),
            on_handoff: None,
            captured: IndexMap::new(),
        }
    }
}

/// A run of a machine.
pub struct Engine<'m> {
    machine: &'m Machine,
    start: Start,
    run: Run,
    now: Duration,
    cancel: Option<Signal>,
    request: Option<Request>,
    survey: Option<SurveyRequest>,
    surveys: Vec<(Vec<String>, Surveyed)>,
    /// The file that is needed, until it is read.
    wanted: Option<String>,
    file: Option<FileRead>,
    query: Option<Box<QueryRequest>>,
    queried: Option<Queried>,
    question: Option<Box<AskRequest>>,
    answer: Option<Answer>,
    /// How a run that was left goes on, until it does.
    resuming: Option<Box<LoopResume>>,
    /// How much of a wait has passed while nobody ran the run.
    rested: Duration,
}

/// Work that was announced and not yet done.
enum Request {
    Action(ActionRequest),
    Prompt(Box<PromptRequest>),
    Tool(Box<ToolRequest>),
    SubLoop(Box<SubLoopRequest>),
}

impl<'m> Engine<'m> {
    /// Makes a run that has not begun.
    pub fn new(machine: &'m Machine, mut start: Start) -> Self {
        start.event.max_iterations = machine.limits.iterations.limit;
        let mut run = Run::new();
        run.inherit(start.captured.clone());
        Self::with(machine, start, run)
    }

    /// Makes a run that goes on, after nobody ran it for a time. Without `how` it has nothing left to do.
    pub fn resume(
        machine: &'m Machine,
        start: Start,
        past: Past,
        how: Option<Box<LoopResume>>,
        rested: Duration,
    ) -> Self {
        let now = past.elapsed;
        let waits = matches!(past.run.phase(), Phase::Waiting(Waiting::Backoff { .. }));
        let rested = if waits { rested } else { Duration::ZERO };
        Self { now, resuming: how, rested, ..Self::with(machine, start, past.run) }
    }

    fn with(machine: &'m Machine, start: Start, run: Run) -> Self {
        Self {
            machine,
            start,
            run,
            now: Duration::ZERO,
            cancel: None,
            request: None,
            survey: None,
            surveys: Vec::new(),
            wanted: None,
            file: None,
            query: None,
            queried: None,
            question: None,
            answer: None,
            resuming: None,
            rested: Duration::ZERO,
        }
    }

    /// Returns everything that is known about the run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns what the run was told at its start.
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// Returns the machine that is run.
    pub fn machine(&self) -> &'m Machine {
        self.machine
    }

    /// Returns the time since the start, as of the last input.
    pub fn elapsed(&self) -> Duration {
        self.now
    }

    /// Says what the world has to do now.
    pub fn next(&self) -> Next<'_> {
        if self.resuming.is_some() {
            return Next::Begin;
        }
        if let (Phase::Deciding(_), Some(survey)) = (self.run.phase(), &self.survey) {
            return Next::Survey(survey);
        }
        if let (Phase::Deciding(_), Some(path)) = (self.run.phase(), &self.wanted) {
            return Next::Read(path);
        }
        if let (Phase::Deciding(_), Some(query)) = (self.run.phase(), &self.query) {
            return Next::Query(query);
        }
        if let (Phase::Deciding(_), Some(question)) = (self.run.phase(), &self.question) {
            return Next::Ask(question);
        }
        match (self.run.phase(), &self.request) {
            (Phase::Waiting(Waiting::Start), _) => Next::Begin,
            (Phase::Waiting(Waiting::Action(_) | Waiting::Closing(_)), Some(Request::Action(request))) => {
                Next::Run(request)
            }
            (Phase::Waiting(Waiting::Action(_) | Waiting::Closing(_)), Some(Request::Prompt(request))) => {
                Next::Prompt(request)
            }
            (Phase::Waiting(Waiting::Action(_) | Waiting::Closing(_)), Some(Request::Tool(request))) => {
                Next::Call(request)
            }
            (Phase::Waiting(Waiting::Continuation(..)), _) => Next::ReadContinuation,
            (Phase::Waiting(Waiting::SubLoop(_)), Some(Request::SubLoop(request))) => Next::SubLoop(request),
            (Phase::Waiting(Waiting::Backoff { wait, .. }), _) => {
                Next::Wait(self.bounded(wait.saturating_sub(self.rested)))
            }
            (Phase::Done(end), _) => Next::Done(end),
            // There was much to decide, and the world has its turn before it goes on. What is waited for is asked for
            // above: a request is made with the event that announces it.
            (Phase::Deciding(_) | Phase::Waiting(_), _) => Next::Wait(Duration::ZERO),
        }
    }

    /// Takes a fact, `now` after the start, and returns what follows from it. A fact that nobody waits for changes
    /// nothing.
    pub fn handle(&mut self, input: Input, now: Duration) -> Vec<Event> {
        self.now = self.now.max(now);
        let mut events = Vec::new();
        if let Some(how) = self.resuming.take_if(|_| matches!(input, Input::Begin)) {
            self.record(Event::LoopResume(*how), &mut events);
        }
        match (self.run.phase(), input) {
            (Phase::Waiting(Waiting::Start), Input::Begin) => {
                self.record(Event::LoopStart(self.start.event.clone()), &mut events);
            }
            (Phase::Waiting(Waiting::Action(_) | Waiting::Closing(_)), Input::ActionDone(seen)) => {
                self.request = None;
                let event = self.completed(seen, None);
                self.record(event, &mut events);
            }
            (Phase::Waiting(Waiting::Action(_) | Waiting::Closing(_)), Input::PromptDone(seen, usage)) => {
                self.request = None;
                let event = self.completed(seen, Some(usage));
                self.record(event, &mut events);
            }
            (Phase::Deciding(Deciding::Judge(id) | Deciding::Act(id)), Input::Answered(answer)) => {
                let state = self.machine.step(*id).name.clone();
                self.question = None;
                let (usage, error) = (answer.usage.clone(), answer.reply.as_ref().err().cloned());
                self.answer = Some(answer);
                self.record(Event::Judge { state, usage, error }, &mut events);
            }
            (Phase::Waiting(Waiting::Continuation(state, text)), Input::Continuation(written)) => {
                let event =
                    self.interrupted(state).unwrap_or_else(|| self.signalled_handoff(state, text, written));
                self.record(event, &mut events);
            }
            (Phase::Waiting(Waiting::SubLoop(id)), Input::SubLoopDone(end)) => {
                let id = *id;
                self.request = None;
                let event = self.completed_sub_loop(id, end);
                self.record(event, &mut events);
            }
            (Phase::Deciding(_), Input::Surveyed(surveyed)) => {
                if let Some(request) = self.survey.take() {
                    self.surveys.push((request.scope, surveyed));
                }
            }
            (Phase::Deciding(_), Input::FileRead(read)) if self.wanted.is_some() => {
                self.wanted = None;
                self.file = Some(read);
            }
            (Phase::Deciding(_), Input::Queried(queried)) if self.query.is_some() => {
                self.query = None;
                self.queried = Some(queried);
            }
            (Phase::Waiting(Waiting::Backoff { .. }), Input::WaitDone) => {
                self.rested = Duration::ZERO;
                self.run.waited();
            }
            (_, Input::Cancel(signal)) => {
                self.cancel.get_or_insert(signal);
            }
            _ => {}
        }
        self.settle(&mut events);
        events
    }

    /// Ends the run, because what follows from a fact could not be written down.
    pub fn end_unsaved(&mut self, end: LoopComplete) {
        self.run.apply(self.machine, &Event::LoopComplete(end));
    }

    /// Makes the decisions that need nothing from the world. States without work could go round for ever: after
    /// [`TURN`] events the world may look at the time, and at whether somebody wants the run to end.
    fn settle(&mut self, events: &mut Vec<Event>) {
        if self.resuming.is_some() {
            // A run that goes on says so first, also when it is to end at once.
            return;
        }
        if self.cancel.is_some() {
            self.run.stop_waiting();
        }
        while events.len() < TURN
            && let Some(event) = self.decide()
        {
            let event = self.unless_asked_to_end(event);
            self.record(event, events);
        }
    }

    fn record(&mut self, event: Event, events: &mut Vec<Event>) {
        if matches!(event, Event::StateEnter { .. }) {
            self.surveys.clear();
            self.file = None;
            self.queried = None;
            self.answer = None;
        }
        self.run.apply(self.machine, &event);
        events.push(event);
    }

    /// Returns the time for the whole run: its own, or less when the run around it has less left.
    fn timeout(&self) -> Option<Duration> {
        self.machine.limits.timeout.into_iter().chain(self.start.timeout).min()
    }

    /// Shortens a wait to what is left of the run.
    fn bounded(&self, wait: Duration) -> Duration {
        let ends = self.timeout().into_iter().chain(self.start.deadline);
        ends.map(|end| end.saturating_sub(self.now)).fold(wait, Duration::min)
    }
}

#[cfg(test)]
mod tests;
