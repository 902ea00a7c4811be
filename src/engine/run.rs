//! What is known about a run: the fold over its events. It evaluates nothing and reads no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::base::name::StateName;
use crate::board::Board;
use crate::evaluate::model::Usage;
use crate::evaluate::observation::{Observation, Stream, Text};
use crate::evaluate::verdict::Observes;
use crate::evaluate::verdict::Verdict;
use crate::machine::{EndId, Machine, OnHandoff, Routes, SignalKind, Step, StepId, Target};

use super::bounds::{ALL_CAPTURES, ALL_MESSAGES, MOST_MESSAGES, Overflow};
use super::event::{
    BoardEvent, Event, Handoff, LoopComplete, LoopResume, RouteReason, StallSeen, SubLoopComplete, TAIL,
    TreeState,
};
use super::outcome::{Outcome, Signal, TerminatedBy};
use super::result::StateResult;

/// Where the events of a run leave it: something has begun and not ended, or a decision is due, or the run is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Something has begun whose end the events do not yet tell.
    Pending(Pending),
    /// A decision is due.
    Deciding(Deciding),
    /// The run is over.
    Done(LoopComplete),
}

/// What has begun and not ended. A journal does not say what exactly was asked for: a run that goes on begins such
/// work once more, and the engine knows what it asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Pending {
    /// The run itself.
    Start,
    /// A state's action.
    Action(StepId),
    /// A sub-loop.
    SubLoop(StepId),
    /// A terminal's action.
    Closing(EndId),
    /// The hand-off that this state asked for with this text.
    Continuation(StateName, String),
    /// A wait before `to` is entered.
    Backoff {
        /// What comes next.
        to: Target,
        /// How long.
        wait: Duration,
    },
}

/// What we have to decide.
#[derive(Clone, Debug, PartialEq)]
pub enum Deciding {
    /// Whether and how a target is entered.
    Arrive {
        /// The target.
        to: Target,
        /// Whether the wait before it is over.
        waited: bool,
    },
    /// Whether a state that was entered and not finished is entered once more.
    Again(StepId),
    /// What an entered state runs.
    Act(StepId),
    /// What the result of a state means.
    Judge(StepId),
    /// Where an evaluated state leads.
    Leave(StepId, Verdict),
    /// What the end of a terminal's action means.
    Closed(EndId),
    /// Whether the run ends in a terminal or starts again.
    Finish(EndId),
    /// How the run ends, now that it is known to.
    End(Ending),
}

/// An end that does not come from a terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// What ended it.
    pub by: TerminatedBy,
    /// Where.
    pub state: StateName,
    /// One sentence.
    pub reason: String,
    /// The signal, if one ended it.
    pub signal: Option<Signal>,
}

/// An evaluation, as `${result.…}` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The verdict.
    pub verdict: Verdict,
    /// What it rests on.
    pub details: Map<String, Value>,
}

/// Visits of one state in a row that were all the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Streak {
    /// What was the same.
    pub(super) seen: StallSeen,
    /// How many visits.
    pub(super) visits: u32,
    /// The step of the last one.
    step: u32,
}

/// What the observations say together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Trust {
    /// Whether one passed, and none failed since: in the whole run.
    is_verified: bool,
    /// Whether one failed in this cycle.
    is_doubted: bool,
}

impl Trust {
    fn observe(&mut self, observes: Observes) {
        match observes {
            Observes::Passing => self.is_verified = true,
            Observes::Failing => *self = Self { is_verified: false, is_doubted: true },
            Observes::Nothing => {}
        }
    }
}

/// Which prompt receives the text that a hand-off left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContinuationReader {
    Nobody,
    /// This step, which is done once more.
    Step(u32),
    /// The next prompt, in a run that does not go on where it was left.
    NextPrompt,
}

/// The way out of a stall, which is there once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detour {
    Unused,
    Due,
    Taken,
}

/// Everything that is known about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    phase: Phase,
    current: Option<StateName>,
    /// The current state before the end of the run named another one, which it was to come to.
    stood: Option<StateName>,
    iteration: u32,
    step: u32,
    cycle: u32,
    attempt: u32,
    visited: BTreeSet<StepId>,
    last_entered: Option<StepId>,
    edges: BTreeMap<(StateName, StateName), u32>,
    memories: BTreeMap<StepId, Value>,
    streaks: BTreeMap<StepId, Streak>,
    detour: Detour,
    action: Option<String>,
    captured: IndexMap<String, StateResult>,
    results: IndexMap<StateName, StateResult>,
    prev: Option<StateResult>,
    seen: Option<StateResult>,
    sub_loop: Option<SubLoopComplete>,
    evaluation: Option<Evaluation>,
    messages: Vec<String>,
    /// How many bytes they have, and how many there were in all.
    message_bytes: usize,
    message_count: u64,
    /// Of what there was more than is kept, and whether that was said.
    exceeded: BTreeMap<Overflow, bool>,
    noted: bool,
    retry_announced: bool,
    trust: Trust,
    /// How many of the warnings of the start are said.
    warned: usize,
    capped: Option<TerminatedBy>,
    restarting: bool,
    usage: Usage,
    dearest: Usage,
    handoff: Option<Handoff>,
    handoffs: u32,
    /// What models had cost before the sub-loop of this step.
    before_sub_loop: Option<(u32, Usage)>,
    iteration_cap: u32,
    /// What was due when the run ended in a way that can be continued.
    due: Option<Deciding>,
    /// A state that the run stands in and that the machine does not have: it is another one than it was.
    lost: Option<StateName>,
    continuation: Option<String>,
    /// The text of a hand-off, until the run is resumed.
    left_to_say: Option<String>,
    /// Which prompt receives it.
    told: ContinuationReader,
    board: Board,
    /// What the host calls each conversation.
    sessions: BTreeMap<String, String>,
    /// The conversation of the prompt that is asked.
    session: Option<String>,
}

impl Run {
    /// Makes the state before the first event.
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Pending(Pending::Start),
            current: None,
            stood: None,
            iteration: 1,
            step: 0,
            cycle: 1,
            attempt: 0,
            visited: BTreeSet::new(),
            last_entered: None,
            edges: BTreeMap::new(),
            memories: BTreeMap::new(),
            streaks: BTreeMap::new(),
            detour: Detour::Unused,
            action: None,
            captured: IndexMap::new(),
            results: IndexMap::new(),
            prev: None,
            seen: None,
            sub_loop: None,
            evaluation: None,
            messages: Vec::new(),
            message_bytes: 0,
            message_count: 0,
            exceeded: BTreeMap::new(),
            noted: false,
            retry_announced: false,
            trust: Trust::default(),
            warned: 0,
            capped: None,
            restarting: false,
            usage: Usage::default(),
            dearest: Usage::default(),
            handoff: None,
            handoffs: 0,
            before_sub_loop: None,
            iteration_cap: u32::MAX,
            due: None,
            lost: None,
            continuation: None,
            left_to_say: None,
            told: ContinuationReader::Nobody,
            board: Board::default(),
            sessions: BTreeMap::new(),
            session: None,
        }
    }

    /// Returns where the run stands.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Returns the state that was entered last, or the terminal.
    pub fn current(&self) -> Option<&StateName> {
        self.current.as_ref()
    }

    /// Returns the pass, from 1.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Returns the number of state executions.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Returns the cycle of a maintain loop, from 1.
    pub fn cycle(&self) -> u32 {
        self.cycle
    }

    /// Returns the consecutive entry into the current state, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the stored results by their names, in the order in which they first appeared.
    pub fn captured(&self) -> &IndexMap<String, StateResult> {
        &self.captured
    }

    /// Finds what `${captured.name}` means: a capture, or else the last result of the state of that name.
    pub fn capture(&self, name: &str) -> Option<&StateResult> {
        self.captured.get(name).or_else(|| {
            self.results.iter().find(|(state, _)| state.as_str() == name).map(|(_, result)| result)
        })
    }

    /// Returns every name that `${captured.…}` knows.
    pub fn capture_names(&self) -> impl Iterator<Item = &str> {
        self.captured.keys().map(String::as_str).chain(self.results.keys().map(StateName::as_str))
    }

    /// Returns the result of the last executed state.
    pub fn prev(&self) -> Option<&StateResult> {
        self.prev.as_ref()
    }

    /// Returns the last evaluation.
    pub fn evaluation(&self) -> Option<&Evaluation> {
        self.evaluation.as_ref()
    }

    /// Returns the message log, as far as it is kept.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// Returns how many messages there were.
    pub fn message_count(&self) -> u64 {
        self.message_count
    }

    /// Returns what is to be said because not everything is kept any more.
    pub(super) fn unsaid(&self) -> Option<Overflow> {
        self.exceeded.iter().find(|(_, said)| !**said).map(|(bound, _)| *bound)
    }

    /// Returns how often each way was taken.
    pub fn edges(&self) -> &BTreeMap<(StateName, StateName), u32> {
        &self.edges
    }

    /// Returns what the evaluator of each state remembers.
    pub fn memories(&self) -> &BTreeMap<StepId, Value> {
        &self.memories
    }

    /// Returns what models cost so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns the most that one call cost: its tokens and its price, which may be of two calls.
    pub(super) fn dearest(&self) -> &Usage {
        &self.dearest
    }

    /// Returns how the run was saved the last time, if it was.
    pub fn handoff(&self) -> Option<&Handoff> {
        self.handoff.as_ref()
    }

    /// Returns how often actions asked for a fresh session.
    pub fn handoffs(&self) -> u32 {
        self.handoffs
    }

    /// Returns the text of the current state's action.
    pub(super) fn action(&self) -> Option<&str> {
        self.action.as_deref()
    }

    /// Returns the visits of a state that were all the same, up to the last one.
    pub(super) fn streak(&self, id: StepId) -> Option<&Streak> {
        self.streaks.get(&id)
    }

    /// Returns how many visits in a row were all the same, for each state where they are counted.
    pub fn streaks(&self) -> impl Iterator<Item = (StepId, u32)> {
        self.streaks.iter().map(|(id, streak)| (*id, streak.visits))
    }

    /// Returns the task board.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Returns what the host calls each conversation.
    pub(super) fn sessions(&self) -> &BTreeMap<String, String> {
        &self.sessions
    }

    /// Returns the cap on passes that is in force.
    pub fn iteration_cap(&self) -> u32 {
        self.iteration_cap
    }

    /// Returns the text that a hand-off left for this part of the run.
    pub fn continuation(&self) -> Option<&str> {
        self.continuation.as_deref()
    }

    /// Returns that text for the current prompt, if this is the one that receives it.
    pub(super) fn told_again(&self) -> Option<&str> {
        let is_told = match self.told {
            ContinuationReader::Nobody => false,
            ContinuationReader::Step(step) => step == self.step,
            ContinuationReader::NextPrompt => true,
        };
        self.continuation.as_deref().filter(|_| is_told)
    }

    /// Returns the state that the run stands in although the machine does not have it.
    pub(super) fn lost(&self) -> Option<&StateName> {
        self.lost.as_ref()
    }

    /// Tells whether a stall was found that the run has not yet left.
    pub(super) fn is_stalling(&self) -> bool {
        self.detour == Detour::Due
    }

    /// Tells whether there was a passing observation, and no failing one since.
    pub fn is_verified(&self) -> bool {
        self.trust.is_verified
    }

    /// Tells whether there was a failing observation in this cycle.
    pub(super) fn is_doubted(&self) -> bool {
        self.trust.is_doubted
    }

    /// Returns how many of the warnings of the start are said.
    pub(super) fn warned(&self) -> usize {
        self.warned
    }

    /// Returns what the action of the current state did.
    pub(super) fn seen(&self) -> Option<&Observation> {
        self.seen.as_ref().map(|result| &result.seen)
    }

    /// Returns how the sub-loop of the current state ended.
    pub(super) fn sub_loop(&self) -> Option<&SubLoopComplete> {
        self.sub_loop.as_ref()
    }

    /// Begins with the captures of the run around this one.
    pub(super) fn inherit(&mut self, captured: IndexMap<String, StateResult>) {
        self.captured = captured;
    }

    pub(super) fn last_entered(&self) -> Option<StepId> {
        self.last_entered
    }

    pub(super) fn is_noted(&self) -> bool {
        self.noted
    }

    pub(super) fn is_retry_announced(&self) -> bool {
        self.retry_announced
    }

    pub(super) fn capped(&self) -> Option<TerminatedBy> {
        self.capped
    }

    pub(super) fn is_restarting(&self) -> bool {
        self.restarting
    }

    /// Tells whether entering a state begins a new pass.
    pub(super) fn begins_pass(&self, id: StepId) -> bool {
        self.visited.contains(&id)
    }

    /// Ends a wait: it ran to its end, or the run is to end.
    pub(super) fn waited(&mut self) {
        if let Phase::Pending(Pending::Backoff { to, .. }) = self.phase {
            self.phase = Phase::Deciding(Deciding::Arrive { to, waited: true });
        }
    }

    /// Shortens a pending wait by the time between two parts of the run.
    pub(super) fn rest(&mut self, rested: Duration) {
        if let Phase::Pending(Pending::Backoff { wait, .. }) = &mut self.phase {
            *wait = wait.saturating_sub(rested);
        }
    }

    /// Takes the next event. An event that does not fit the phase changes nothing: the engine never makes one.
    pub(super) fn apply(&mut self, machine: &Machine, event: &Event) {
        match event {
            Event::LoopStart(start) => {
                self.iteration_cap = start.max_iterations;
                self.arrive(machine.initial);
            }
            Event::LoopResume(resume) => self.resume(machine, resume),
            Event::StateEnter { state, iteration, step, attempt } => {
                let id = match machine.find(state) {
                    Some(Target::Step(id)) => Some(id),
                    Some(Target::End(_)) | None => None,
                };
                self.enter(id, state, (*iteration, *step, *attempt));
            }
            Event::ActionStart { state, action, session, kind, .. } => match machine.find(state) {
                Some(Target::Step(id)) => {
                    if self.told == ContinuationReader::NextPrompt && kind.asks_agent() {
                        self.told = ContinuationReader::Nobody;
                    }
                    self.action = Some(action.clone());
                    self.session.clone_from(session);
                    self.phase = Phase::Pending(Pending::Action(id));
                }
                Some(Target::End(id)) => {
                    self.current = Some(state.clone());
                    self.phase = Phase::Pending(Pending::Closing(id));
                }
                None => {}
            },
            Event::ActionComplete(complete) => {
                self.spend(complete.usage.as_ref());
                self.converse(&complete.seen, complete.usage.as_ref());
                self.complete(machine, &complete.seen);
            }
            Event::SubLoopStart { state, .. } => {
                self.before_sub_loop = Some((self.step, self.usage.clone()));
                if let Some(Target::Step(id)) = machine.find(state) {
                    self.phase = Phase::Pending(Pending::SubLoop(id));
                }
            }
            Event::SubLoopComplete(complete) => {
                self.spend(Some(&complete.usage));
                self.complete_sub_loop(machine, complete);
            }
            Event::Judge { usage, .. } => self.spend(Some(usage)),
            Event::Board(event) => self.operate(event),
            Event::Signal { state, signal, text } => self.signalled(state, *signal, text),
            Event::Evaluate { verdict, observes, details, memory, tree, .. } => {
                self.evaluate(machine, (verdict, *observes), details, (memory.as_ref(), tree.as_ref()));
            }
            Event::Stall { state, window, seen } => self.stalled(machine, state, *window, seen),
            Event::Retry { .. } => self.retry_announced = true,
            Event::Message { text, .. } => {
                self.add_message(text);
                self.noted = true;
            }
            Event::Route { from, to, verdict, reason } => {
                self.route(machine, (from, to), verdict.as_ref(), *reason);
            }
            Event::Backoff { duration_ms, .. } => {
                if let Phase::Deciding(Deciding::Arrive { to, .. }) = self.phase {
                    let wait = Duration::from_millis(*duration_ms);
                    self.phase = Phase::Pending(Pending::Backoff { to, wait });
                }
            }
            Event::Warning { state: None, .. } => self.warned += 1,
            Event::Warning { state: Some(_), .. } => match self.unsaid() {
                Some(bound) => drop(self.exceeded.insert(bound, true)),
                None => self.warn_of_closing(),
            },
            Event::Handoff(handoff) => self.hand_off(handoff),
            Event::LoopError { state, error } => {
                self.trust.observe(Observes::Failing);
                self.end(Outcome::Error, TerminatedBy::Error, state, error);
            }
            Event::LoopTimeout { state, elapsed_ms } => {
                self.suspend();
                let elapsed = crate::base::time::human(Duration::from_millis(*elapsed_ms));
                let reason = format!("the loop's timeout passed after {elapsed}, in `{state}`");
                self.end(Outcome::Timeout, TerminatedBy::Timeout, state, &reason);
            }
            Event::LoopComplete(complete) => {
                self.suspend_at(complete);
                self.stood = self.current.replace(complete.final_state.clone());
                self.phase = Phase::Done(complete.clone());
            }
        }
    }

    fn add_message(&mut self, text: &str) {
        self.messages.push(text.to_owned());
        self.message_bytes += text.len();
        self.message_count += 1;
        let (mut dropped, mut bytes) = (0, 0);
        while self.messages.len() - dropped > MOST_MESSAGES || self.message_bytes - bytes > ALL_MESSAGES {
            bytes += self.messages[dropped].len();
            dropped += 1;
        }
        if dropped > 0 {
            self.messages.drain(..dropped);
            self.message_bytes -= bytes;
            self.exceeded.entry(Overflow::Messages).or_insert(false);
        }
    }

    fn arrive(&mut self, to: Target) {
        self.phase = Phase::Deciding(Deciding::Arrive { to, waited: false });
    }

    fn end(&mut self, outcome: Outcome, by: TerminatedBy, state: &StateName, reason: &str) {
        let ending = Ending { outcome, by, state: state.clone(), reason: reason.to_owned(), signal: None };
        self.phase = Phase::Deciding(Deciding::End(ending));
    }

    /// A signal goes before every route.
    fn signalled(&mut self, state: &StateName, signal: SignalKind, text: &str) {
        let bare = format!("`{state}` asked for it");
        let reason = if text.is_empty() { bare.as_str() } else { text };
        match signal {
            SignalKind::Handoff => {
                self.handoffs += 1;
                self.left_to_say = Some(text.to_owned());
                self.phase = Phase::Pending(Pending::Continuation(state.clone(), text.to_owned()));
            }
            SignalKind::Error => self.end(Outcome::Error, TerminatedBy::FatalError, state, reason),
            SignalKind::Stop => self.end(Outcome::Stopped, TerminatedBy::LoopStop, state, reason),
        }
    }

    fn hand_off(&mut self, handoff: &Handoff) {
        // What leaves nothing to resume has failed.
        let outcome = match handoff.behavior {
            OnHandoff::Terminate => Outcome::Error,
            OnHandoff::Pause | OnHandoff::Spawn => Outcome::Handoff,
        };
        self.suspend();
        self.end(outcome, TerminatedBy::Handoff, &handoff.state, &handoff.message);
        self.left_to_say.clone_from(&handoff.continuation);
        self.handoff = Some(handoff.clone());
    }

    /// An operation on the board observes nothing about the work, unless it failed.
    fn operate(&mut self, event: &BoardEvent) {
        let Phase::Deciding(Deciding::Act(id)) = self.phase else { return };
        self.board.take(&event.change);
        if event.verdict.is_error() {
            self.trust.observe(Observes::Failing);
        }
        self.phase = Phase::Deciding(Deciding::Leave(id, event.verdict.clone()));
    }

    /// Keeps what the host calls a conversation. One in which a call failed is not gone on with.
    fn converse(&mut self, seen: &Observation, usage: Option<&Usage>) {
        let Some(name) = self.session.take() else { return };
        match usage.and_then(|usage| usage.session.clone()).filter(|_| seen.succeeded()) {
            Some(id) => self.sessions.insert(name, id),
            None => self.sessions.remove(&name),
        };
    }

    /// Counts what models cost.
    fn spend(&mut self, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        self.usage.add(usage);
        let dearest = &mut self.dearest;
        if usage.tokens() > dearest.tokens() {
            (dearest.input_tokens, dearest.output_tokens) = (usage.input_tokens, usage.output_tokens);
        }
        dearest.cost_usd = match (dearest.cost_usd, usage.cost_usd) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    }

    /// Keeps what is due, for when a run that ends here goes on.
    fn suspend(&mut self) {
        self.due = match &self.phase {
            // The end was announced before, and what was due then is kept already.
            Phase::Deciding(Deciding::End(_)) | Phase::Done(_) => return,
            Phase::Deciding(due) => Some(due.clone()),
            Phase::Pending(Pending::Backoff { to, .. }) => Some(Deciding::Arrive { to: *to, waited: true }),
            // The work itself asked to be continued: it is not finished.
            Phase::Pending(Pending::Continuation(..)) => self.last_entered.map(Deciding::Again),
            // The events of its end could not be written.
            Phase::Pending(Pending::Action(id) | Pending::SubLoop(id)) => Some(Deciding::Again(*id)),
            Phase::Pending(Pending::Closing(id)) => {
                Some(Deciding::Arrive { to: Target::End(*id), waited: true })
            }
            Phase::Pending(Pending::Start) => None,
        };
    }

    /// The same for the last event. One that only says that nothing could be written decides no end that was due.
    fn suspend_at(&mut self, complete: &LoopComplete) {
        match &self.phase {
            Phase::Deciding(due @ Deciding::End(ending))
                if complete.terminated_by == TerminatedBy::JournalLost && !ending.outcome.is_resumable() =>
            {
                self.due = Some(due.clone());
            }
            Phase::Pending(_) | Phase::Deciding(_) | Phase::Done(_) => self.suspend(),
        }
    }

    /// Goes on where the run was left: with what was due, or with the step that was not finished.
    fn resume(&mut self, machine: &Machine, resume: &LoopResume) {
        if let Some(cap) = resume.changes.max_iterations {
            self.iteration_cap = cap;
        }
        self.continuation.clone_from(&resume.continuation);
        self.left_to_say = None;
        // The host of another machine does not know them.
        self.sessions.clear();
        let outcome = self.resumable_end();
        if let Some(stood) = self.stood.take() {
            self.current = Some(stood);
        }
        let due = match &self.phase {
            Phase::Done(_) | Phase::Deciding(Deciding::End(_)) if outcome.is_some() => self.due.take(),
            Phase::Pending(Pending::Action(id) | Pending::SubLoop(id)) => Some(Deciding::Again(*id)),
            Phase::Pending(Pending::Continuation(..)) => self.last_entered.map(Deciding::Again),
            Phase::Pending(Pending::Closing(id)) => {
                Some(Deciding::Arrive { to: Target::End(*id), waited: true })
            }
            Phase::Deciding(due) => Some(due.clone()),
            Phase::Pending(Pending::Start | Pending::Backoff { .. }) | Phase::Done(_) => None,
        };
        let due = match due {
            Some(Deciding::Act(id)) => Some(Deciding::Again(id)),
            Some(Deciding::Judge(id)) if self.was_cut_short(outcome) => Some(Deciding::Again(id)),
            Some(Deciding::Closed(id)) if self.seen().is_some_and(Observation::was_cut_short) => {
                Some(Deciding::Arrive { to: Target::End(id), waited: true })
            }
            due => due,
        };
        // An end that was reached stays one.
        let is_over = matches!(
            due,
            Some(Deciding::Arrive { to: Target::End(_), .. } | Deciding::Closed(_) | Deciding::Finish(_))
        );
        let entry = machine.on_resume.filter(|_| due.is_some() && !is_over);
        let due = entry.map(|to| Deciding::Arrive { to, waited: true }).or(due);
        if let Some(due) = due {
            self.told = match (entry, &due) {
                (Some(_), _) => ContinuationReader::NextPrompt,
                (None, Deciding::Again(_)) => ContinuationReader::Step(self.step),
                (None, _) => ContinuationReader::Nobody,
            };
            self.phase = Phase::Deciding(due);
        }
    }

    /// Returns the outcome of a run that ended, or is about to, and can go on.
    pub(super) fn resumable_end(&self) -> Option<Outcome> {
        let outcome = match &self.phase {
            Phase::Done(end) => return Some(end.outcome).filter(|_| end.is_resumable()),
            Phase::Deciding(Deciding::End(ending)) => ending.outcome,
            Phase::Pending(_) | Phase::Deciding(_) => return None,
        };
        Some(outcome).filter(|outcome| outcome.is_resumable())
    }

    /// Tells whether the work of the current state came to no result because the run ended around it.
    fn was_cut_short(&self, end: Option<Outcome>) -> bool {
        match (&self.sub_loop, &self.seen) {
            (Some(sub), _) => sub.is_cut_short() || (sub.outcome == end && end == Some(Outcome::Timeout)),
            (None, Some(result)) => result.seen.was_cut_short(),
            (None, None) => false,
        }
    }

    /// Returns where the run goes on when it is resumed: the state or terminal that comes next, or the current one.
    pub(super) fn place<'r>(&'r self, machine: &'r Machine) -> Option<&'r StateName> {
        let due = match &self.phase {
            Phase::Deciding(due) => Some(due),
            Phase::Pending(Pending::Backoff { to, .. }) => return Some(machine.name_of(*to)),
            Phase::Pending(Pending::Closing(id)) => return Some(&machine.end(*id).name),
            Phase::Pending(
                Pending::Start | Pending::Action(_) | Pending::SubLoop(_) | Pending::Continuation(..),
            ) => None,
            Phase::Done(_) => self.due.as_ref(),
        };
        match due {
            Some(Deciding::Arrive { to, .. }) => Some(machine.name_of(*to)),
            Some(Deciding::End(_)) => match &self.due {
                Some(Deciding::Arrive { to, .. }) => Some(machine.name_of(*to)),
                Some(_) | None => self.current.as_ref(),
            },
            Some(Deciding::Closed(id) | Deciding::Finish(id)) => Some(&machine.end(*id).name),
            Some(Deciding::Again(id) | Deciding::Act(id) | Deciding::Judge(id) | Deciding::Leave(id, _)) => {
                Some(&machine.step(*id).name)
            }
            None => self.current.as_ref(),
        }
    }

    /// Returns the text that a hand-off left for the next part of the run.
    pub(super) fn left_to_say(&self) -> Option<&str> {
        self.left_to_say.as_deref()
    }

    /// Returns every text that may be asked for later.
    pub(super) fn texts_mut(&mut self) -> impl Iterator<Item = (Stream, &mut Text)> {
        let sub = self.sub_loop.iter_mut().flat_map(|sub| {
            let captured = sub.captured.values_mut().flat_map(StateResult::texts_mut);
            captured.chain([(Stream::Stdout, &mut sub.output)])
        });
        let named = self.captured.values_mut().chain(self.results.values_mut());
        named.chain(&mut self.prev).chain(&mut self.seen).flat_map(StateResult::texts_mut).chain(sub)
    }

    fn enter(&mut self, id: Option<StepId>, state: &StateName, (iteration, step, attempt): (u32, u32, u32)) {
        if iteration != self.iteration {
            self.visited.clear();
        }
        self.visited.extend(id);
        self.last_entered = id;
        self.lost = id.is_none().then(|| state.clone());
        self.current = Some(state.clone());
        (self.iteration, self.step, self.attempt) = (iteration, step, attempt);
        // A sub-loop that goes on says at its end what it cost in all.
        if let Some((_, usage)) = self.before_sub_loop.take_if(|(at, _)| *at == step) {
            self.usage = usage;
        }
        self.seen = None;
        self.sub_loop = None;
        self.action = None;
        self.noted = false;
        self.retry_announced = false;
        self.restarting = false;
        if let Some(id) = id {
            self.phase = Phase::Deciding(Deciding::Act(id));
        }
    }

    fn complete(&mut self, machine: &Machine, seen: &Observation) {
        match self.phase {
            Phase::Pending(Pending::Action(id)) => {
                let step = machine.step(id);
                let result = StateResult { state: step.name.clone(), seen: seen.clone(), verdict: None };
                // An action that was cut short has no result: a resumed run still sees the previous one.
                if !seen.was_cut_short() {
                    self.store(machine, step, &result);
                }
                self.seen = Some(result);
                self.phase = Phase::Deciding(Deciding::Judge(id));
            }
            Phase::Pending(Pending::Closing(id)) => {
                let state = machine.end(id).name.clone();
                self.seen = Some(StateResult { state, seen: seen.clone(), verdict: None });
                self.phase = Phase::Deciding(Deciding::Closed(id));
            }
            Phase::Pending(_) | Phase::Deciding(_) | Phase::Done(_) => {}
        }
    }

    /// The sub-loop stands for the action: its exit code and its last output are the state's.
    fn complete_sub_loop(&mut self, machine: &Machine, complete: &SubLoopComplete) {
        let Phase::Pending(Pending::SubLoop(id)) = self.phase else { return };
        let seen = Observation {
            stdout: complete.output.clone(),
            duration: Duration::from_millis(complete.duration_ms),
            ..Observation::exited(complete.exit_code, "")
        };
        let step = machine.step(id);
        let result = StateResult { state: step.name.clone(), seen, verdict: None };
        if !complete.is_cut_short() {
            for (name, result) in &complete.captured {
                self.captured.insert(name.clone(), result.clone());
            }
            // It counts what it adds, too.
            self.store(machine, step, &result);
        }
        self.seen = Some(result);
        self.sub_loop = Some(complete.clone());
        self.phase = Phase::Deciding(Deciding::Judge(id));
    }

    /// Stores a result under the names by which later states can refer to it. Of a result that no template refers to,
    /// only the end is kept: a hundred states that print much must not add up.
    fn store(&mut self, machine: &Machine, step: &Step, result: &StateResult) {
        if let Some(name) = &step.capture {
            self.captured.insert(name.to_string(), result.clone());
        }
        let kept = if machine.refers_to(step.name.as_str()) {
            result.clone()
        } else {
            StateResult { seen: result.seen.shortened(TAIL), ..result.clone() }
        };
        self.results.insert(step.name.clone(), kept);
        self.shorten(step);
    }

    /// Keeps the ends of the oldest results when all of them are too much. What this step did is not one of them.
    fn shorten(&mut self, step: &Step) {
        let all = || self.captured.values().chain(self.results.values());
        let mut taken: u64 = all().map(StateResult::length).sum();
        if taken <= ALL_CAPTURES {
            return;
        }
        let names = self.captured.iter_mut().map(|(name, result)| (name.as_str(), result));
        let states = self.results.iter_mut().map(|(state, result)| (state.as_str(), result));
        for (name, result) in names.chain(states) {
            let is_new =
                name == step.name.as_str() || step.capture.as_ref().is_some_and(|own| own.as_str() == name);
            if taken <= ALL_CAPTURES || is_new {
                continue;
            }
            taken -= result.length();
            result.seen = result.seen.shortened(TAIL);
            taken += result.length();
        }
        self.exceeded.entry(Overflow::Captures).or_insert(false);
    }

    fn evaluate(
        &mut self,
        machine: &Machine,
        (verdict, observes): (&Verdict, Option<Observes>),
        details: &Map<String, Value>,
        (memory, tree): (Option<&Value>, Option<&TreeState>),
    ) {
        // An action that was never judged comes here with `Act`, a judged one with `Judge`.
        if let Phase::Deciding(Deciding::Judge(id) | Deciding::Act(id)) = self.phase {
            if let Some(memory) = memory {
                self.memories.insert(id, memory.clone());
            }
            if let Some(tree) = tree {
                self.compare(id, verdict, details, tree);
            }
            self.evaluation = Some(Evaluation { verdict: verdict.clone(), details: details.clone() });
            let of_sub_loop = || self.sub_loop.as_ref().map(SubLoopComplete::observes);
            let observes = observes.or_else(of_sub_loop);
            self.trust.observe(observes.unwrap_or_else(|| machine.step(id).observes(verdict)));
            self.phase = Phase::Deciding(Deciding::Leave(id, verdict.clone()));
        }
    }

    /// Continues the row of visits that were all the same, or begins a new one.
    fn compare(&mut self, id: StepId, verdict: &Verdict, details: &Map<String, Value>, tree: &TreeState) {
        let metric = ["value", "current", "score"].iter().find_map(|key| details.get(*key)).cloned();
        let seen = StallSeen { verdict: verdict.clone(), metric, tree: tree.clone() };
        let visits = match self.streaks.get(&id) {
            Some(streak) if streak.seen == seen => streak.visits.saturating_add(1),
            _ => 1,
        };
        self.streaks.insert(id, Streak { seen, visits, step: self.step });
    }

    /// The first stall may have a way out; any other one ends the run.
    fn stalled(&mut self, machine: &Machine, state: &StateName, window: u32, seen: &StallSeen) {
        let has_way = machine.stall.is_some_and(|stall| stall.to.is_some());
        if has_way && self.detour == Detour::Unused {
            self.detour = Detour::Due;
        } else {
            let reason = seen.sentence(state, window);
            self.end(Outcome::Exhausted, TerminatedBy::Stall, state, &reason);
        }
    }

    fn route(
        &mut self,
        machine: &Machine,
        (from, to): (&StateName, &StateName),
        verdict: Option<&Verdict>,
        reason: RouteReason,
    ) {
        *self.edges.entry((from.clone(), to.clone())).or_default() += 1;
        match reason {
            RouteReason::Maintain => self.restart(),
            RouteReason::Cap => self.capped = self.capped.or_else(|| self.cap_in_force(machine)),
            RouteReason::Verdict | RouteReason::Next | RouteReason::Error | RouteReason::RetryExhausted => {
                self.leave(machine, from, verdict);
            }
            RouteReason::Stall => {
                self.leave(machine, from, verdict);
                self.streaks.clear();
                self.detour = Detour::Taken;
            }
        }
        match machine.find(to) {
            Some(target) => {
                self.lost = None;
                self.arrive(target);
            }
            None => self.lost = Some(to.clone()),
        }
    }

    fn restart(&mut self) {
        self.cycle += 1;
        self.attempt = 0;
        self.streaks.clear();
        self.last_entered = None;
        self.trust.is_doubted = false;
        self.restarting = true;
        self.board = Board::default();
        self.sessions.clear();
    }

    /// Works out which cap made the engine choose a handler, from the same numbers.
    fn cap_in_force(&self, machine: &Machine) -> Option<TerminatedBy> {
        match self.phase {
            Phase::Deciding(Deciding::Arrive { to: Target::Step(id), .. }) => self.cap_before(machine, id),
            Phase::Pending(_) | Phase::Deciding(_) | Phase::Done(_) => None,
        }
    }

    /// Returns the cap that forbids entering a state, if one does.
    pub(super) fn cap_before(&self, machine: &Machine, id: StepId) -> Option<TerminatedBy> {
        let limits = machine.limits;
        if self.begins_pass(id) && self.iteration >= self.iteration_cap {
            Some(TerminatedBy::MaxIterations)
        } else if limits.steps.is_some_and(|cap| self.step >= cap.limit) {
            Some(TerminatedBy::MaxSteps)
        } else {
            None
        }
    }

    fn leave(&mut self, machine: &Machine, from: &StateName, verdict: Option<&Verdict>) {
        let Some(Target::Step(id)) = machine.find(from) else { return };
        // A visit without an evaluation, as after a timeout, breaks the streak.
        if self.streaks.get(&id).is_some_and(|streak| streak.step != self.step) {
            self.streaks.remove(&id);
        }
        if let Some(mut result) = self.seen.take() {
            let step = machine.step(id);
            self.judge_unevaluated(step, &result.seen, verdict);
            result.verdict = verdict.cloned();
            self.store(machine, step, &result);
            self.prev = Some(result);
        }
    }

    /// An action that no evaluator looked at still speaks when it fails: by its exit code, its timeout, its absence.
    fn judge_unevaluated(&mut self, step: &Step, seen: &Observation, verdict: Option<&Verdict>) {
        let failed_silently = matches!(step.routes, Routes::Always { .. }) && !seen.succeeded();
        if seen.timed_out() || seen.failure.is_some() {
            let verdict = verdict.cloned().unwrap_or_else(Verdict::error);
            let mut details = Map::from_iter([("exit_code".to_owned(), Value::from(seen.exit_code))]);
            let late = || format!("it took too long: {}", crate::base::time::human(seen.duration));
            let why = seen.failure.clone().unwrap_or_else(late);
            details.insert("error".to_owned(), why.into());
            self.evaluation = Some(Evaluation { verdict, details });
            self.trust.observe(Observes::Failing);
        } else if failed_silently {
            self.trust.observe(Observes::Failing);
        }
    }

    /// A warning about a terminal's action is the last thing before the end.
    fn warn_of_closing(&mut self) {
        if let Phase::Deciding(Deciding::Closed(id) | Deciding::Arrive { to: Target::End(id), .. }) =
            self.phase
        {
            self.phase = Phase::Deciding(Deciding::Finish(id));
        }
    }
}
