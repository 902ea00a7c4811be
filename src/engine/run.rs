//! What is known about a run: the fold over its events. It evaluates nothing and reads no clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::bounds::Overflow;
use super::calls::Calls;
use super::event::{Handoff, LoopComplete, StallSeen, SubLoopComplete};
use super::outcome::{Outcome, Signal, TerminatedBy};
use super::question::OpenQuestion;
use super::state_result::StateResult;
use super::verification::LastVerdict;
use crate::base::name::StateName;
use crate::board::Board;
use crate::evaluate::model::{ConversationUsage, Usage};
use crate::evaluate::observation::{Observation, Text};
use crate::evaluate::verdict::{Observes, Verdict};
use crate::machine::{EndId, StepId, Target};

mod fold;
pub mod placed;
mod resume_point;

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

/// The names under which the evaluators that compare values keep them.
pub(super) const METRICS: [&str; 3] = ["value", "current", "score"];

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

/// How often in a row a state was entered again by itself, whatever its routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rounds {
    /// Because nobody could judge it.
    pub(super) unjudged: u32,
    /// Because it has to pass more often.
    pub(super) passes: u32,
    /// Because it failed, and is known to waver.
    pub(super) failures: u32,
    /// For any of these reasons, since it was entered from elsewhere.
    all: u32,
    /// Whether the entry that is due is one of them.
    is_due: bool,
}

/// What is special about the visit of the current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpecialVisit {
    Usual,
    /// Its message was added to the log.
    Noted,
    /// Its work could not be made.
    Unmade,
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
#[expect(clippy::struct_excessive_bools, reason = "each is about something else")]
pub struct Run {
    phase: Phase,
    current: Option<StateName>,
    /// The current state before the end of the run named another one, which it was to come to.
    stood: Option<StateName>,
    /// How often it was gone on with.
    resumes: u32,
    iteration: u32,
    step: u32,
    cycle: u32,
    attempt: u32,
    rounds: Rounds,
    visited: BTreeSet<StepId>,
    last_entered: Option<StepId>,
    edges: BTreeMap<(StateName, StateName), u32>,
    memories: BTreeMap<StepId, Value>,
    streaks: BTreeMap<StepId, Streak>,
    detour: Detour,
    action: Option<String>,
    captured: IndexMap<String, StateResult>,
    results: IndexMap<StateName, StateResult>,
    /// How the last sub-loop of each state ended, with its captures.
    sub_loops: IndexMap<StateName, SubLoopComplete>,
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
    /// What the last evaluation warned of and was not said yet.
    warnings: VecDeque<String>,
    visit: SpecialVisit,
    retry_announced: bool,
    trust: Trust,
    /// The last verdict of each state that observed the work, in the order in which they first did.
    verdicts: IndexMap<StateName, LastVerdict>,
    /// The state that observed it last.
    last_observed: Option<StateName>,
    /// What each check ran last.
    texts: BTreeMap<StateName, String>,
    /// How many of the warnings of the start are said.
    warned: usize,
    capped: Option<TerminatedBy>,
    restarting: bool,
    usage: Usage,
    /// What calls may have cost that a kill cut off, each taken for one like the dearest before it: nobody said what it was.
    cut_off: Usage,
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
    continuation_reader: ContinuationReader,
    board: Board,
    /// What the host calls each conversation.
    sessions: BTreeMap<String, KnownConversation>,
    /// The conversation of the prompt that is asked.
    session: Option<String>,
    /// The calls that failed since they were last answered.
    calls: Calls,
    /// Whether this visit is one of them.
    is_call_counted: bool,
    /// Whether somebody changed the working tree before this part of the run.
    is_tree_changed: bool,
    /// Whether that is so, or unknown.
    is_tree_doubtful: bool,
    /// Files of the tree that were left behind where the run was before, each with the reason.
    not_carried: Vec<String>,
    /// The question that it was saved with, until the state that asks is left.
    question: Option<Box<OpenQuestion>>,
}

/// A conversation with an agent, as far as its host told of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KnownConversation {
    /// What the host calls it.
    pub(super) id: String,
    /// What the host says that it took so far.
    pub(super) total: Option<ConversationUsage>,
}

impl Run {
    /// Makes the state before the first event.
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Pending(Pending::Start),
            current: None,
            stood: None,
            resumes: 0,
            iteration: 1,
            step: 0,
            cycle: 1,
            attempt: 0,
            rounds: Rounds::default(),
            visited: BTreeSet::new(),
            last_entered: None,
            edges: BTreeMap::new(),
            memories: BTreeMap::new(),
            streaks: BTreeMap::new(),
            detour: Detour::Unused,
            action: None,
            captured: IndexMap::new(),
            results: IndexMap::new(),
            sub_loops: IndexMap::new(),
            prev: None,
            seen: None,
            sub_loop: None,
            evaluation: None,
            messages: Vec::new(),
            message_bytes: 0,
            message_count: 0,
            exceeded: BTreeMap::new(),
            warnings: VecDeque::new(),
            visit: SpecialVisit::Usual,
            retry_announced: false,
            trust: Trust::default(),
            verdicts: IndexMap::new(),
            last_observed: None,
            texts: BTreeMap::new(),
            warned: 0,
            capped: None,
            restarting: false,
            usage: Usage::default(),
            cut_off: Usage::default(),
            dearest: Usage::default(),
            handoff: None,
            handoffs: 0,
            before_sub_loop: None,
            iteration_cap: u32::MAX,
            due: None,
            lost: None,
            continuation: None,
            left_to_say: None,
            continuation_reader: ContinuationReader::Nobody,
            board: Board::default(),
            sessions: BTreeMap::new(),
            session: None,
            calls: Calls::default(),
            is_call_counted: false,
            is_tree_changed: false,
            is_tree_doubtful: false,
            not_carried: Vec::new(),
            question: None,
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

    /// Returns in which of its parts the run is, from 1: each resume begins one.
    pub fn part(&self) -> u32 {
        self.resumes.saturating_add(1)
    }

    /// Returns the consecutive entry into the current state, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns how many of these entries are tries, which `max_retries` bounds.
    pub(super) fn tries(&self) -> u32 {
        self.attempt.saturating_sub(self.rounds.all)
    }

    /// Returns how often in a row the current state was entered again by itself.
    pub(super) fn rounds(&self) -> Rounds {
        self.rounds
    }

    /// Tells whether the work of the current state could not be made.
    pub(super) fn is_unmade(&self) -> bool {
        self.visit == SpecialVisit::Unmade
    }

    /// Tells whether the entry that is due is another try of the state that was left.
    pub(super) fn is_another_try(&self, id: StepId) -> bool {
        self.last_entered == Some(id) && !self.rounds.is_due
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

    /// Returns the step whose action goes on.
    pub(super) fn acting(&self) -> Option<StepId> {
        match self.phase {
            Phase::Pending(Pending::Action(id)) => Some(id),
            Phase::Pending(_) | Phase::Deciding(_) | Phase::Done(_) => None,
        }
    }

    /// Returns how the last sub-loop of the state of that name ended.
    pub(super) fn sub_loop_of(&self, state: &str) -> Option<&SubLoopComplete> {
        self.sub_loops.iter().find(|(name, _)| name.as_str() == state).map(|(_, complete)| complete)
    }

    /// Returns how the last sub-loop of each state ended.
    pub fn sub_loops(&self) -> &IndexMap<StateName, SubLoopComplete> {
        &self.sub_loops
    }

    /// Returns every name that `${captured.…}` knows.
    pub fn capture_names(&self) -> impl Iterator<Item = &str> {
        self.captured.keys().map(String::as_str).chain(self.results.keys().map(StateName::as_str))
    }

    /// Returns the result of the last executed state.
    pub fn prev(&self) -> Option<&StateResult> {
        self.prev.as_ref()
    }

    /// Returns what the last executed state printed; where none was executed yet, nothing was printed.
    pub fn last_output(&self) -> Text {
        self.prev().map(|prev| prev.seen.stdout.clone()).unwrap_or_default()
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

    /// Returns what the last evaluation warned of, if that is still to be said.
    pub(super) fn warning(&self) -> Option<&str> {
        self.warnings.front().map(String::as_str)
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

    /// Returns what calls may have cost that a kill cut off.
    pub(super) fn cut_off(&self) -> &Usage {
        &self.cut_off
    }

    /// Returns the most that one call cost: its tokens and its price, which may be of two calls.
    pub(super) fn dearest(&self) -> &Usage {
        &self.dearest
    }

    /// Returns how the run was saved the last time, if it was.
    pub fn handoff(&self) -> Option<&Handoff> {
        self.handoff.as_ref()
    }

    /// Returns the question that the run was saved with, until the state that asks is left.
    pub fn question(&self) -> Option<&OpenQuestion> {
        self.question.as_deref()
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
    pub(super) fn sessions(&self) -> &BTreeMap<String, KnownConversation> {
        &self.sessions
    }

    /// Returns the calls that failed since they were last answered.
    pub(super) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Tells whether somebody changed the working tree before this part of the run.
    pub fn is_tree_changed(&self) -> bool {
        self.is_tree_changed
    }

    /// Tells whether this part of the run may have begun on another working tree than the one before it ended on.
    pub(super) fn is_tree_doubtful(&self) -> bool {
        self.is_tree_doubtful
    }

    /// Returns the files of the tree that were left behind where the run was before, each with the reason.
    pub(super) fn not_carried(&self) -> &[String] {
        &self.not_carried
    }

    /// Tells whether it was said that the call of the current state failed.
    pub(super) fn is_call_counted(&self) -> bool {
        self.is_call_counted
    }

    /// Returns the cap on passes that is in force.
    pub fn iteration_cap(&self) -> u32 {
        self.iteration_cap
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

    /// Tells whether checks failed of which people have excused that, and no other one.
    pub(super) fn is_excused(&self) -> bool {
        let is_excused =
            |last: &LastVerdict| last.verdict.is_quarantined() && last.observes == Observes::Nothing;
        !self.trust.is_doubted && self.verdicts.values().any(is_excused)
    }

    /// Returns the last verdict of each state that observed the work, with the state, in the order in which they first did.
    pub(super) fn verdicts(&self) -> &IndexMap<StateName, LastVerdict> {
        &self.verdicts
    }

    /// Returns the text that a check ran last.
    pub(super) fn text_of(&self, state: &StateName) -> Option<&str> {
        self.texts.get(state).map(String::as_str)
    }

    /// Returns the state that observed the work last.
    pub(super) fn last_observed(&self) -> Option<&StateName> {
        self.last_observed.as_ref()
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
        self.visit == SpecialVisit::Noted
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
}
