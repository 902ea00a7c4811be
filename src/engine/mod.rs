//! The pure run: what was observed goes in, what happened and what to do next come out.
//!
//! No clock, no process, no file. [`Engine::next`] says what the run waits for; [`Engine::handle`] takes the answer
//! and returns the events that follow from it. [`run::Run`] is the fold over those events, so that a journal is
//! enough to have the run again. Decisions look at the fold alone: nothing is decided twice or forgotten when a
//! batch of events is cut short.

use std::collections::BTreeMap;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::base::name::StateName;
use crate::base::object::ObjectId;
use crate::base::time::Timestamp;
use crate::machine::{Budget, Machine, OnHandoff, StepId, Target};

mod action_variables;
mod arrive;
pub mod artifact_request;
mod asking;
mod bounds;
mod breaker;
mod budget;
mod calls;
pub mod changes;
pub mod check_history;
pub mod closing_pass;
mod common;
mod decide;
mod end;
mod entered_state;
pub mod event;
mod excused;
pub mod execution;
mod going_pass;
mod judge;
mod leave;
pub mod loop_stack;
pub mod night;
pub mod outcome;
pub mod past;
pub mod question;
pub mod request;
pub mod reused;
mod reused_end;
pub mod run;
pub mod sandbox_event;
mod scope;
mod second_look;
mod signals;
pub mod state_result;
mod sub_loop_result;
pub mod suppose;
pub mod trace_origin;
mod verdict_trees;
pub mod verification;
mod waiting;
pub mod whereabouts;

use changes::{Changes, KnownStart, SeenTree, StartTree};
use event::{Event, LoopComplete, LoopResume, LoopStart};
use going_pass::GoingPass;
use outcome::Asker;
use past::Past;
use question::{GivenAnswer, MergedHead, People};
use request::{ActionRequest, Input, MeasureRequest, Next, Recheck, UnexpectedInput};
use reused::ReusedRun;
use run::placed::Placement;
use run::{Pending, Phase, Run};
use state_result::StateResult;
use verification::{FinalTree, Grounding};
use waiting::{Decision, FoundTree, LookFor, MissingEvidence, PassWork, TurnEvidence, Waiting, WorkRequest};

/// How many events follow from one fact at most, and from the facts that time passes all the others.
const TURN: usize = 1000;

/// The settings with which a run starts. They never change.
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
    /// Whom it may ask.
    pub people: People,
    /// The machine and the directory of the CI job that it runs in; none where it runs in no job.
    pub job: Option<String>,
    /// How the job that it begins in, or goes on in, was approved.
    pub approvals: Vec<GivenAnswer>,
    /// The head of the pull request whose merge is checked out, if one is.
    pub merged_head: Option<MergedHead>,
    /// The captures of the run around a sub-loop, where it sees them.
    pub captured: IndexMap<String, StateResult>,
    /// Whether a sub-loop works on the tree of the run around it, and that one is known.
    pub shares_tree: bool,
    /// The earlier run that stands for this one, which then does nothing.
    pub reused: Option<Box<ReusedRun>>,
}

impl Start {
    /// Makes the start of a run without an environment, limits or files of its own.
    pub fn of(event: LoopStart, at: Timestamp, key: &str) -> Self {
        Self {
            context: event.context.clone(),
            merged_head: MergedHead::of(event.tree.as_ref()),
            event,
            at,
            env: BTreeMap::new(),
            key: key.to_owned(),
            run_dir: String::new(),
            deadline: None,
            timeout: None,
            budget: Budget::default(),
            on_handoff: None,
            people: People::Here,
            job: None,
            approvals: Vec::new(),
            captured: IndexMap::new(),
            shares_tree: false,
            reused: None,
        }
    }
}

impl Start {
    /// Returns the commit that people know for the one that is checked out.
    pub fn commit_shown<'c>(&'c self, commit: &'c ObjectId) -> &'c ObjectId {
        self.merged_head.as_ref().filter(|known| known.merge == *commit).map_or(commit, |known| &known.head)
    }

    /// Tells whether the tree that the run works on was known when it began.
    pub fn sees_tree(&self) -> bool {
        self.shares_tree || matches!(self.event.tree, Some(StartTree::Known(_)))
    }
}

/// A run of a machine.
pub struct Engine<'m> {
    machine: &'m Machine,
    start: Start,
    run: Run,
    now: Duration,
    cancel: Option<Asker>,
    waiting: Waiting,
    /// After which ways out of which states the tree has to be looked at, as far as that was worked out.
    matters: BTreeMap<(StepId, Target), bool>,
    /// What checks have found, until their verdicts are there.
    found: BTreeMap<StateName, FoundTree>,
    /// Whether something other than a check has acted that may have changed the tree, in this run or around it.
    has_acted: bool,
    /// What each check ran last.
    requests: BTreeMap<StateName, ActionRequest>,
    /// The checks of the loop that each state ran last.
    inner: BTreeMap<StateName, Vec<Recheck>>,
    /// The closing pass that goes on.
    pass: Option<Box<GoingPass>>,
    /// Where it begins, if not at the start.
    placement: Option<Box<Placement>>,
    /// The answers with which it goes on.
    answers: Vec<GivenAnswer>,
    /// Whether it had ended for good before it was made.
    had_ended: bool,
}

impl<'m> Engine<'m> {
    /// Makes a run that has not begun.
    pub fn new(machine: &'m Machine, mut start: Start) -> Self {
        // The engine counts by the machine, so the first event says that number.
        start.event.max_iterations = machine.limits.iterations.limit;
        let mut run = Run::new();
        run.inherit(start.captured.clone());
        let has_acted = start.shares_tree;
        Self { has_acted, ..Self::waiting(machine, start, run, Waiting::Start) }
    }

    /// Makes a run that begins in the middle. Its events do not say so, so it cannot be made again from them.
    pub fn placed(machine: &'m Machine, start: Start, placement: Placement) -> Self {
        Self { placement: Some(Box::new(placement)), ..Self::new(machine, start) }
    }

    /// Makes a run that is resumed after a pause of this length.
    pub fn resume(
        machine: &'m Machine,
        start: Start,
        past: Past,
        how: Box<LoopResume>,
        rested: Duration,
    ) -> Self {
        let Past { mut run, elapsed: now, .. } = past;
        run.rest(rested);
        Self { now, ..Self::waiting(machine, start, run, Waiting::Resume(how)) }
    }

    /// Adds the answers to the question that the run was saved with.
    #[must_use]
    pub fn answered(self, answers: Vec<GivenAnswer>) -> Self {
        Self { answers, ..self }
    }

    /// Makes a run that ended for good.
    pub fn ended(machine: &'m Machine, start: Start, past: Past, end: LoopComplete) -> Self {
        let Past { run, elapsed: now, .. } = past;
        Self { now, had_ended: true, ..Self::waiting(machine, start, run, Waiting::Nothing(end)) }
    }

    /// Makes a run that stands somewhere, to see what it would decide.
    fn suppose(machine: &'m Machine, start: Start, run: Run, now: Duration) -> Self {
        Self { now, ..Self::waiting(machine, start, run, Waiting::default()) }
    }

    fn waiting(machine: &'m Machine, start: Start, run: Run, waiting: Waiting) -> Self {
        Self {
            machine,
            start,
            run,
            now: Duration::ZERO,
            cancel: None,
            waiting,
            matters: BTreeMap::new(),
            found: BTreeMap::new(),
            has_acted: true,
            requests: BTreeMap::new(),
            inner: BTreeMap::new(),
            pass: None,
            placement: None,
            answers: Vec::new(),
            had_ended: false,
        }
    }

    /// Tells whether it had ended for good before it was made, so that it did nothing here.
    pub fn had_ended(&self) -> bool {
        self.had_ended
    }

    /// Returns everything that is known about the run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the settings with which the run started.
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
        self.waiting.next()
    }

    /// Takes the answer to [`Engine::next`], `now` after the start, and returns what follows from it. Any other input is
    /// refused and changes nothing.
    pub fn handle(&mut self, input: Input, now: Duration) -> Result<Vec<Event>, UnexpectedInput> {
        // Time that is told out of order must not go back.
        self.now = self.now.max(now);
        let mut events = Vec::new();
        let evidence = self.take(input, &mut events)?;
        self.waiting = self.settle(evidence, &mut events);
        Ok(events)
    }

    /// Takes the wish that the run ends, `now` after the start, and returns what follows from it. What is running comes
    /// to its own end.
    pub fn cancel(&mut self, asker: impl Into<Asker>, now: Duration) -> Vec<Event> {
        self.now = self.now.max(now);
        // The first request names the outcome.
        self.cancel.get_or_insert(asker.into());
        let mut events = Vec::new();
        self.waiting = match std::mem::take(&mut self.waiting) {
            // A run that goes on says so first, also when it is to end at once.
            waiting @ (Waiting::Start
            | Waiting::Resume(_)
            | Waiting::Work(_)
            | Waiting::Continuation(..)
            | Waiting::Looking(LookFor::End(_))
            | Waiting::Measuring(..)
            | Waiting::Closing(_)
            | Waiting::Nothing(_)) => waiting,
            Waiting::Backoff(_)
            | Waiting::Looking(LookFor::Verdict(_) | LookFor::Check(_) | LookFor::Judges(..)) => {
                self.settle(TurnEvidence::default(), &mut events)
            }
            Waiting::Judging(_, _, evidence) | Waiting::Turn(evidence) => self.settle(evidence, &mut events),
        };
        events
    }

    /// Ends the run, because what follows from a fact could not be written down.
    pub fn end_unsaved(&mut self, end: LoopComplete) {
        self.run.apply(self.machine, &Event::LoopComplete(end.clone()));
        self.waiting = Waiting::Nothing(end);
    }

    /// Writes down what people have said before the run begins or goes on.
    fn approve(&mut self, events: &mut Vec<Event>) {
        let of_job = std::mem::take(&mut self.start.approvals);
        for approval in of_job.into_iter().chain(std::mem::take(&mut self.answers)) {
            self.record(Event::Approval(approval), events);
        }
    }

    /// Takes an input into the run, and returns what the judgement that is going on has to go by. This is the one place
    /// that knows which input answers what, and refuses every other one.
    fn take(&mut self, input: Input, events: &mut Vec<Event>) -> Result<TurnEvidence, UnexpectedInput> {
        let mut evidence = TurnEvidence::default();
        match (std::mem::take(&mut self.waiting), input) {
            (Waiting::Start, Input::Begin) => {
                self.record(Event::LoopStart(self.start.event.clone()), events);
                self.approve(events);
                if let Some(placement) = self.placement.take() {
                    self.run.place_at(self.machine, *placement);
                }
                self.stand_in(events);
            }
            (Waiting::Resume(how), Input::Begin) => {
                self.record(Event::LoopResume(*how), events);
                self.approve(events);
            }
            // Kept with its templates resolved, because a check that is made once more has to be
            // the same.
            (Waiting::Work(WorkRequest::Action(request)), Input::ActionDone(seen)) => {
                self.keep_request(request);
                let event = self.never_begun(&seen).unwrap_or_else(|| self.completed(seen, None));
                self.record(event, events);
            }
            (Waiting::Work(WorkRequest::Tool(_) | WorkRequest::Approval(_)), Input::ActionDone(seen)) => {
                self.record(self.completed(seen, None), events);
            }
            (
                Waiting::Work(WorkRequest::Prompt(_) | WorkRequest::Learning(_)),
                Input::PromptDone(seen, usage),
            ) => {
                self.record(self.completed(seen, Some(usage)), events);
            }
            (Waiting::Work(WorkRequest::SubLoop(state, request)), Input::SubLoopDone(end)) => {
                // What was done to the tree since it ended, while the run was left, is unknown.
                if self.start.sees_tree() && end.as_ref().is_ok_and(|end| end.had_ended) {
                    let unknown = "the loop had ended before the run was left".to_owned();
                    self.found.insert(state.clone(), FoundTree::Seen(SeenTree::Unknown { unknown }));
                }
                // Where a check of it cannot be made again, none of them confirms the state.
                match end.as_ref().ok().and_then(|end| end.rechecks.clone()) {
                    Some(rechecks) => drop(self.inner.insert(state.clone(), rechecks)),
                    None => drop(self.inner.remove(&state)),
                }
                self.record(sub_loop_result::completed(state, *request, end), events);
            }
            // Where the run is to end, that is what follows.
            (Waiting::Continuation(..), Input::Continuation(_)) if self.cancel.is_some() => {}
            (Waiting::Continuation(state, text), Input::Continuation(written)) => {
                self.record(self.signalled_handoff(&state, &text, written), events);
            }
            (Waiting::Looking(LookFor::Verdict(state)), Input::Looked(tree)) => {
                self.record(Event::VerdictTree { state, tree }, events);
            }
            (Waiting::Looking(LookFor::Check(state) | LookFor::Judges(state, _)), Input::Looked(tree)) => {
                self.found.insert(state, FoundTree::Seen(tree));
            }
            (Waiting::Looking(LookFor::Judges(state, _)), Input::JudgesStand) => {
                self.found.insert(state, FoundTree::WithItsJudges);
            }
            (Waiting::Looking(LookFor::End(end)), Input::Looked(tree)) => {
                // The look may have found what turns the end into another one.
                let end = self.still_wanted(*end);
                self.conclude(end, &FinalTree::from(tree), Grounding::default(), events);
            }
            (Waiting::Measuring(_, end), Input::Measured(measured)) => {
                let end = self.still_wanted(*end);
                self.measured(end, measured, events);
            }
            (Waiting::Closing(PassWork::Check(check, _)), Input::ActionDone(seen)) => {
                self.rechecked(*check, &seen, events);
            }
            (Waiting::Closing(PassWork::SetAside(_)), Input::SetAside(placed)) => self.set_aside(placed),
            (Waiting::Closing(PassWork::Restore(_)), Input::Restored(restored)) => {
                self.end_pass(restored, events);
            }
            (Waiting::Backoff(_), Input::WaitDone) => self.run.waited(),
            (Waiting::Judging(_, MissingEvidence::Survey(request), before), Input::Surveyed(surveyed)) => {
                evidence = before;
                evidence.surveys.push((request.scope, surveyed));
            }
            (Waiting::Judging(_, MissingEvidence::AskedAbout, before), Input::AskedAbout(about)) => {
                evidence = TurnEvidence { about: Some(about), ..before };
            }
            (Waiting::Judging(_, MissingEvidence::File(_), before), Input::FileRead(read)) => {
                evidence = TurnEvidence { file: Some(read), ..before };
            }
            (Waiting::Judging(_, MissingEvidence::Continuation, before), Input::Continuation(written)) => {
                evidence = TurnEvidence { is_continued: Some(written.is_some()), ..before };
            }
            (Waiting::Judging(_, MissingEvidence::Query(_), before), Input::Queried(queried)) => {
                evidence = TurnEvidence { queried: Some(queried), ..before };
            }
            (Waiting::Judging(id, MissingEvidence::Answer(_), before), Input::Answered(answer)) => {
                let state = self.machine.step(id).name.clone();
                // The cost is an event of its own, so that it counts even if the run is killed
                // before the judgement.
                let (usage, error) = (answer.usage.clone(), answer.reply.as_ref().err().cloned());
                evidence = TurnEvidence { answer: Some(answer), ..before };
                self.record(Event::Judge { state, usage, error: error.map(Into::into) }, events);
            }
            (Waiting::Turn(before), Input::Yielded) => evidence = before,
            (
                waiting @ (Waiting::Start
                | Waiting::Resume(_)
                | Waiting::Work(
                    WorkRequest::Action(_)
                    | WorkRequest::Prompt(_)
                    | WorkRequest::Tool(_)
                    | WorkRequest::Approval(_)
                    | WorkRequest::Learning(_)
                    | WorkRequest::SubLoop(..),
                )
                | Waiting::Continuation(..)
                | Waiting::Backoff(_)
                | Waiting::Judging(
                    _,
                    MissingEvidence::Survey(_)
                    | MissingEvidence::AskedAbout
                    | MissingEvidence::File(_)
                    | MissingEvidence::Continuation
                    | MissingEvidence::Query(_)
                    | MissingEvidence::Answer(_),
                    _,
                )
                | Waiting::Turn(_)
                | Waiting::Looking(_)
                | Waiting::Measuring(..)
                | Waiting::Closing(_)
                | Waiting::Nothing(_)),
                Input::Begin
                | Input::ActionDone(_)
                | Input::PromptDone(..)
                | Input::Answered(_)
                | Input::Continuation(_)
                | Input::SubLoopDone(_)
                | Input::Surveyed(_)
                | Input::AskedAbout(_)
                | Input::FileRead(_)
                | Input::Queried(_)
                | Input::Measured(_)
                | Input::Looked(_)
                | Input::JudgesStand
                | Input::SetAside(_)
                | Input::Restored(_)
                | Input::WaitDone
                | Input::Yielded,
            ) => {
                self.waiting = waiting;
                return Err(UnexpectedInput);
            }
        }
        Ok(evidence)
    }

    /// Makes the decisions that need nothing from the world, and returns what the run waits for then. States without
    /// work could go round for ever: after [`TURN`] events the world may look at the time, and at whether somebody wants
    /// the run to end.
    fn settle(&mut self, mut evidence: TurnEvidence, events: &mut Vec<Event>) -> Waiting {
        if let Some(waiting) = self.pass_work() {
            return waiting;
        }
        loop {
            let deciding = match self.run.phase() {
                // Cloned, because recording an event changes the run.
                Phase::Deciding(deciding) => deciding.clone(),
                Phase::Done(end) => return Waiting::Nothing(end.clone()),
                Phase::Pending(Pending::Start) => return Waiting::Start,
                Phase::Pending(Pending::Continuation(state, text)) => match self.interrupted(state) {
                    Some(Event::LoopComplete(end)) => match self.end_with(end, events) {
                        Some(waiting) => return waiting,
                        None => continue,
                    },
                    Some(_) | None => return Waiting::Continuation(state.clone(), text.clone()),
                },
                Phase::Pending(Pending::Backoff { .. }) if self.cancel.is_some() => {
                    self.run.waited();
                    continue;
                }
                Phase::Pending(Pending::Backoff { wait, .. }) => {
                    return Waiting::Backoff(self.bounded(*wait));
                }
                Phase::Pending(Pending::Action(_) | Pending::SubLoop(_) | Pending::Closing(_)) => {
                    unreachable!("work begins with its request, and is begun once more where a run goes on")
                }
            };
            // A batch ends here, so that the world can save it, look at the time and hear signals.
            if events.len() >= TURN {
                return Waiting::Turn(evidence);
            }
            match self.decide(deciding, &evidence) {
                Decision::Happens(event) => {
                    let event = match self.look_before(&event) {
                        Some(state) => match self.interrupted(&state) {
                            Some(end) => end,
                            None => return Waiting::Looking(LookFor::Verdict(state)),
                        },
                        None => self.unless_asked_to_end(event),
                    };
                    // What was gathered is about the visit before.
                    if matches!(event, Event::StateEnter { .. }) {
                        evidence = TurnEvidence::default();
                    }
                    if let Event::LoopComplete(end) = event {
                        if let Some(waiting) = self.end_with(end, events) {
                            return waiting;
                        }
                    } else {
                        self.record(event, events);
                    }
                }
                Decision::Begins(event, work) => {
                    if let Some(look) = self.look_before_check(&work) {
                        return Waiting::Looking(look);
                    }
                    self.record(event, events);
                    return Waiting::Work(work);
                }
                Decision::Lacks(id, missing) => return Waiting::Judging(id, missing, evidence),
            }
        }
    }

    /// Ends the run, or waits for a look at the tree on which it ends, where the one on which it began is known.
    fn end_with(&mut self, end: LoopComplete, events: &mut Vec<Event>) -> Option<Waiting> {
        let (changes, tree) = match &self.start.event.tree {
            // The end is written only when the tree is known, because that may turn a success into
            // a failure.
            Some(StartTree::Known(start)) => {
                let request = MeasureRequest {
                    start: KnownStart::clone(start),
                    verdicts: self.seen_trees(),
                    judging: self.may_stand().then(|| self.judges_asked_for()),
                    is_late: self.start.deadline.is_some_and(|deadline| self.now >= deadline),
                };
                return Some(Waiting::Measuring(Box::new(request), Box::new(end)));
            }
            Some(StartTree::Unknown { unknown }) => {
                (Some(Changes::Unknown { unknown: unknown.clone() }), self.unknown_since_start(unknown))
            }
            None if self.start.shares_tree && self.rests_on_earlier_tree() => {
                return Some(Waiting::Looking(LookFor::End(Box::new(end))));
            }
            None => (None, FinalTree::None),
        };
        self.conclude(LoopComplete { changes, ..end }, &tree, Grounding::default(), events);
        None
    }

    /// Keeps what a check runs, so that it can be made once more.
    fn keep_request(&mut self, request: ActionRequest) {
        let acting = self.run.acting().map(|id| self.machine.step(id));
        if let Some(step) = acting.filter(|step| step.is_check) {
            // An action that is no check is never made again.
            self.requests.insert(step.name.clone(), request);
        }
    }

    fn record(&mut self, event: Event, events: &mut Vec<Event>) {
        self.run.apply(self.machine, &event);
        let mut judged = None;
        if let (Event::Evaluate { .. }, Some(state)) = (&event, self.run.current()) {
            let state = state.clone();
            judged = match self.found.remove(&state) {
                Some(FoundTree::Seen(tree)) => Some(Event::VerdictTree { state, tree }),
                Some(FoundTree::WithItsJudges) | None => None,
            };
        } else if let Event::StateEnter { state, .. } = &event {
            // An earlier visit may have ended without a verdict.
            self.found.remove(state);
        }
        events.push(event);
        if let Some(event) = judged {
            self.record(event, events);
        }
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
