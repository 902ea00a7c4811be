//! The one vocabulary of a run: what the engine decides, the journal keeps and every sink shows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use indexmap::IndexMap;
use serde::ser::{Error as _, SerializeMap as _};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::changes::{Changes, SeenTree, StartTree, TreeEntry, unsettled};
use super::check_history::ChecksBefore;
use super::night::Night;
use super::outcome::{Outcome, Signal, TerminatedBy};
use super::question::{Awaiting, GivenAnswer};
use super::reused::ReusedRun;
use super::sandbox_event::SandboxEvent;
use super::state_result::StateResult;
use super::trace_origin::TraceOrigin;
use super::verification::{Reason, Verification};
use crate::base::name::{LoopName, StateName};
use crate::base::object::ObjectId;
use crate::base::relative::Line;
use crate::base::sum::Sum;
use crate::base::time::{Timestamp, millis};
use crate::base::{few_values, text};
use crate::board;
use crate::evaluate::model::Usage;
use crate::evaluate::observation::{Cause, Observation, Stop, StoredText, Text};
use crate::evaluate::survey::Survey;
use crate::evaluate::verdict::{Observes, Verdict};
use crate::machine::{OnChange, OnHandoff, SignalKind};

/// How much of a stream an event carries; a longer one stands whole in a file beside the journal.
pub const TAIL: usize = 8 * 1024;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run began.
    LoopStart(LoopStart),
    /// An earlier run stands for this one: nothing is run.
    Reused(Box<ReusedRun>),
    /// The run goes on after it was left.
    LoopResume(LoopResume),
    /// A person answered the question that the run was saved with, or approved its job.
    Approval(GivenAnswer),
    /// A state was entered.
    StateEnter {
        /// The state.
        state: StateName,
        /// The pass, from 1.
        iteration: u32,
        /// The state execution, from 1.
        step: u32,
        /// The consecutive entry into this state, from 1.
        attempt: u32,
    },
    /// An action is about to run.
    ActionStart {
        /// The state, or the terminal whose closing action this is.
        state: StateName,
        /// The text after interpolation.
        action: String,
        /// What kind of action.
        kind: ActionKind,
        /// Who does it, where the loop says so.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        role: Option<String>,
        /// The conversation that a prompt belongs to.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        session: Option<String>,
        /// The working tree before it, for a state that may be entered again without the work of another: whether such
        /// a state is flaky depends on whether the tree was the same.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tree: Option<TreeState>,
    },
    /// An action ended.
    ActionComplete(ActionComplete),
    /// An action was confined.
    Sandbox(SandboxEvent),
    /// An evaluator judged.
    Evaluate {
        /// The evaluator.
        r#type: String,
        /// Its verdict.
        verdict: Verdict,
        /// What that says about the work; a journal of an earlier version does not say it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        observes: Option<Observes>,
        /// How sure it is, for an evaluator that can be unsure.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        confidence: Option<f64>,
        /// What it saw, fixed per evaluator.
        #[serde(deserialize_with = "few_values::map")]
        details: Map<String, Value>,
        /// What whoever wrote the loop should know; each becomes a warning.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        warnings: Vec<String>,
        /// What its next judgement of this state has to know; none leaves it at what it was.
        #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "few_values::optional", default)]
        memory: Option<Value>,
        /// The working tree at this visit, where the stall detector of the loop compares it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tree: Option<TreeState>,
    },
    /// The working tree was looked at after a verdict: an action comes next, and the verdict is about the tree before it.
    VerdictTree {
        /// The state whose verdict it is.
        state: StateName,
        /// The tree.
        tree: SeenTree,
    },
    /// Checks are made once more, because their verdicts fell on another tree than the last one.
    ClosingPassStart(ClosingPassStart),
    /// One of them was made.
    ClosingPassCheck(Box<ClosingPassCheck>),
    /// Tests that were added were run without the work of the run.
    ClosingPassProof(ClosingPassProof),
    /// All of them were, and the tree is as it was.
    ClosingPassEnd(ClosingPassEnd),
    /// Visits of a state in a row were all the same.
    Stall {
        /// The state.
        state: StateName,
        /// How many visits.
        window: u32,
        /// What was the same in them.
        seen: StallSeen,
    },
    /// Another loop begins as the work of a state. Its own events follow, one level deeper.
    SubLoopStart {
        /// The state.
        state: StateName,
        /// The other loop.
        r#loop: String,
    },
    /// That loop ended.
    SubLoopComplete(SubLoopComplete),
    /// The next state was chosen.
    Route {
        /// The state that is left.
        from: StateName,
        /// The state or terminal that follows.
        to: StateName,
        /// The verdict that chose it; none for an unconditional `next`.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        verdict: Option<Verdict>,
        /// Which rule chose it.
        reason: RouteReason,
    },
    /// A state is entered again although its last visit did not do.
    Retry {
        /// The state.
        state: StateName,
        /// The coming attempt, from 2.
        attempt: u32,
        /// How many retries there may be.
        max_retries: u32,
    },
    /// A state added to the message log.
    Message {
        /// The state.
        state: StateName,
        /// The text.
        text: String,
    },
    /// The run waits before it does the next piece of work.
    Backoff {
        /// The state that comes next.
        state: StateName,
        /// How long.
        duration_ms: u64,
    },
    /// Something worth a line that changes nothing.
    Warning {
        /// The state it is about.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        state: Option<StateName>,
        /// The sentence.
        message: String,
    },
    /// A model was asked about the result of a state.
    Judge {
        /// The state.
        state: StateName,
        /// What it cost.
        usage: Usage,
        /// Why there is no answer, if there is none.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error: Option<String>,
    },
    /// An action printed a signal that the loop obeys.
    Signal {
        /// The state.
        state: StateName,
        /// Which signal.
        signal: SignalKind,
        /// What stood behind it.
        text: String,
    },
    /// A state worked on the task board.
    Board(BoardEvent),
    /// The run is saved for a later one.
    Handoff(Handoff),
    /// A state's work could not be made, and the state has a way for that.
    ActionError {
        /// The state.
        state: StateName,
        /// What is wrong, without the name of the state.
        error: String,
    },
    /// A call of an agent came to no usable answer.
    CallFailed(CallFailed),
    /// A state failed in a way that nothing caught.
    LoopError {
        /// The state.
        state: StateName,
        /// What happened, without the name of the state.
        error: String,
    },
    /// The loop's timeout passed.
    LoopTimeout {
        /// The state in which it passed.
        state: StateName,
        /// The time since the start.
        elapsed_ms: u64,
    },
    /// The run is over. Every journal ends with this line.
    LoopComplete(LoopComplete),
}

impl Event {
    /// A judgement that is sure of itself, warns of nothing and remembers nothing.
    pub(crate) fn evaluated(
        r#type: &str,
        verdict: Verdict,
        observes: Option<Observes>,
        details: Map<String, Value>,
        tree: Option<TreeState>,
    ) -> Self {
        Self::Evaluate {
            r#type: r#type.to_owned(),
            verdict,
            observes,
            confidence: None,
            details,
            warnings: Vec::new(),
            memory: None,
            tree,
        }
    }
}

/// A call of an agent that came to no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFailed {
    /// The state.
    pub state: StateName,
    /// Who was asked.
    pub role: String,
    /// Which call it was.
    pub phase: String,
    /// What went wrong, without what differs from call to call.
    pub cause: String,
    /// What went wrong.
    pub error: String,
    /// How many of these calls failed for this cause, in a row.
    pub in_a_row: u32,
}

/// An operation on the task board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoardEvent {
    /// The state.
    pub state: StateName,
    /// The operation.
    pub operation: String,
    /// What it answers.
    pub verdict: Verdict,
    /// What it changed.
    pub change: board::BoardChange,
    /// What people should hear of.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<board::Note>,
}

/// Why and how a run is saved for a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// Where it continues.
    pub state: StateName,
    /// Why, in one word.
    pub reason: HandoffReason,
    /// Why, for people.
    pub message: String,
    /// What the action left for the session that continues the work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub continuation: Option<String>,
    /// Who continues it.
    pub behavior: OnHandoff,
    /// The question that it waits for an answer to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub awaiting: Option<Box<Awaiting>>,
}

/// Why a run is saved for a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffReason {
    /// The time of the job is over.
    Deadline,
    /// An action asked for it.
    Signal,
    /// A state needs a model, and none may be asked here.
    LlmDisabled,
    /// The quota of the model is used up for now.
    Quota,
    /// A person is asked.
    Question,
}

impl HandoffReason {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Deadline, Self::Signal, Self::LlmDisabled, Self::Quota, Self::Question];
}

/// The working tree as the stall detector saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TreeState {
    /// It was looked at.
    Seen(Survey),
    /// It could not be looked at.
    Unseen {
        /// Why.
        unseen: String,
    },
}

/// What was the same in the visits that are a stall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StallSeen {
    /// The verdict.
    pub verdict: Verdict,
    /// The value that was judged, for an evaluator that judges one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "few_values::optional", default)]
    pub metric: Option<Value>,
    /// The working tree, or why it was not compared.
    pub tree: TreeState,
}

impl StallSeen {
    /// Says it in a sentence without its end.
    pub fn sentence(&self, state: &StateName, window: u32) -> String {
        let Self { verdict, metric, tree } = self;
        let value =
            metric.as_ref().map(|metric| format!(", same value {}", text::one_line(&metric.to_string(), 60)));
        let value = value.unwrap_or_default();
        let compared = match tree {
            TreeState::Seen(Survey { head: Some(_), .. }) => ", same working tree, no new commit".to_owned(),
            TreeState::Seen(Survey { head: None, .. }) => ", same working tree".to_owned(),
            TreeState::Unseen { unseen } => {
                format!("; the working tree was not compared: {}", text::one_line(unseen, 200))
            }
        };
        format!(
            "nothing changed in the last {window} visits of `{state}`: same verdict `{verdict}`{value}{compared}"
        )
    }
}

/// How a run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopStart {
    /// The loop.
    pub r#loop: LoopName,
    /// The instance id.
    pub run_id: String,
    /// Digest of the definition and everything it pulled in.
    pub definition_sha256: String,
    /// The cap in force.
    pub max_iterations: u32,
    /// Names of the inputs that were given.
    pub inputs: Vec<String>,
    /// Whether prompts may reach a model.
    pub llm: Llm,
    /// Whether an unverified success is a failure.
    pub strict: bool,
    /// Whether a maintain loop ends with the first cycle in which nothing failed.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub until_clean: bool,
    /// The limits of the task board, for a loop that uses one: its reports are grouped by task.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub board: Option<Box<board::Limits>>,
    /// What is to be said as soon as the run has begun, each as a warning of its own.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
    /// The nights before this one, the oldest first, where the run is a night of a maintain loop.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub nights: Vec<Night>,
    /// Where the loop is written down.
    pub source: Source,
    /// The run that it was rewound from; its first events are that run's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<Parent>,
    /// The item of a plan that it works on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub assignment: Option<Box<Assignment>>,
    /// The plan whose runs it brings together, where it is not a run of a loop but what they are worth.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub merges: Option<Sum>,
    /// The machine and the directory in which it began: hosts keep conversations by them. None in a sub-loop and in
    /// journals of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<String>,
    /// The trace that it stands in, where the CI system or somebody around it has one.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "TraceOrigin::read_if_whole"
    )]
    pub trace: Option<Box<TraceOrigin>>,
    /// The commit of the checkout, where somebody wanted to know: another machine can begin there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<String>,
    /// The working tree on which it began; none in a sub-loop and in journals of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tree: Option<StartTree>,
    /// Whether it may succeed on a tree that the commit does not have.
    #[serde(default = "reported")]
    pub on_change: OnChange,
    /// Whether checks are never made once more at the end, whatever the loop says.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub no_closing_pass: bool,
    /// What is known of its checks.
    #[serde(skip_serializing_if = "ChecksBefore::is_nothing", default)]
    pub checks: Box<ChecksBefore>,
    /// The variables, resolved.
    #[serde(deserialize_with = "few_values::map", default)]
    pub context: Map<String, Value>,
    /// The options of the command line, so that a resumed run uses the same ones.
    #[serde(default)]
    pub overrides: Box<Overrides>,
    /// The policy from above that bound it when it began, and since; it binds whoever goes on with it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub policy: Vec<PolicyRecord>,
    /// The version of the journal: a newer one is not understood.
    #[serde(default = "oldest")]
    pub schema: u32,
}

impl LoopStart {
    /// Returns the start of a run that was given nothing, and of whose loop and tree nothing is known.
    pub fn new(r#loop: LoopName, run_id: &str) -> Self {
        Self {
            r#loop,
            run_id: run_id.to_owned(),
            definition_sha256: String::new(),
            max_iterations: 1,
            inputs: Vec::new(),
            llm: Llm::Off,
            strict: false,
            until_clean: false,
            board: None,
            warnings: Vec::new(),
            nights: Vec::new(),
            source: Source::default(),
            parent: None,
            assignment: None,
            merges: None,
            place: None,
            trace: None,
            commit: None,
            tree: None,
            on_change: OnChange::Report,
            no_closing_pass: false,
            checks: Box::default(),
            context: Map::new(),
            overrides: Box::default(),
            policy: Vec::new(),
            schema: SCHEMA,
        }
    }

    /// Returns in which trace the run stands.
    pub fn trace_origin(&self) -> TraceOrigin {
        self.trace.as_deref().cloned().unwrap_or_else(|| TraceOrigin::of_run(&self.run_id))
    }

    /// Returns the commit on which the run began, where it is known.
    pub fn began_at(&self) -> Option<ObjectId> {
        // The one of the tree is there also where nobody was going to continue the run elsewhere.
        let of_tree = || match self.tree.as_ref()? {
            StartTree::Known(start) => Some(start.ids.commit.clone()),
            StartTree::Unknown { .. } => None,
        };
        let named = self.commit.as_deref().and_then(|commit| ObjectId::parse(commit).ok());
        named.or_else(of_tree)
    }
}

/// A policy from above that binds a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// The file or variable that it was read from.
    pub origin: String,
    /// What was written there.
    pub text: String,
}

/// Where a run that was rewound left the run that it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The instance id of that run.
    pub run: String,
    /// The last of its events that this one begins with.
    pub seq: u64,
}

/// The version of the journal that this program writes.
pub const SCHEMA: u32 = 1;

/// What an earlier version did.
fn reported() -> OnChange {
    OnChange::Report
}

fn oldest() -> u32 {
    1
}

/// What the command line says in place of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overrides {
    /// `--max-iterations`.
    pub max_iterations: Option<u32>,
    /// `--max-cycles`.
    pub max_cycles: Option<u32>,
    /// `--timeout`, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeout_ms: Option<u64>,
    /// `--context`.
    pub context: IndexMap<String, String>,
    /// `--param`.
    pub param: IndexMap<String, String>,
    /// The positional input.
    pub input: Option<String>,
    /// The paths that the run claims, where a plan says them instead of the loop.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scope: Option<Vec<String>>,
    /// `--max-cost`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_cost: Option<f64>,
    /// `--max-tokens`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_tokens: Option<u64>,
    /// `--max-llm-calls`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_llm_calls: Option<u32>,
    /// `--on-handoff`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_handoff: Option<String>,
    /// `--broker`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub broker: Option<String>,
    /// `--sandbox`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<String>,
    /// `--model`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// `--llm-model`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub llm_model: Option<String>,
}

impl Overrides {
    /// Returns those that also hold in the loops that a run runs.
    #[must_use]
    pub fn below(&self) -> Self {
        Self { model: self.model.clone(), llm_model: self.llm_model.clone(), ..Self::default() }
    }
}

/// How a run goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopResume {
    /// The state or terminal where it goes on.
    pub from_state: StateName,
    /// The pass that it was in.
    pub iteration: u32,
    /// The last state execution.
    pub step: u32,
    /// Why it had been left.
    pub reason: ResumeReason,
    /// What the work left to say when it was handed off.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub continuation: Option<String>,
    /// Whether it goes on where it was, so that hosts know the conversations that it had.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub keeps_sessions: bool,
    /// Whether somebody changed the working tree since it ended, or may have.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub tree_changed: bool,
    /// What is different from now on.
    #[serde(flatten)]
    pub changes: ResumeChanges,
}

/// What is different after a run was resumed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResumeChanges {
    /// Another cap on passes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_iterations: Option<u32>,
    /// Another timeout of the loop, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeout_ms: Option<u64>,
    /// Whether an unverified success is a failure from now on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub strict: Option<bool>,
    /// The digest of a definition that has changed, and was accepted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub definition_sha256: Option<String>,
    /// Whether prompts may reach a model from now on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub llm: Option<Llm>,
    /// Where the changed definition is written down.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<Source>,
    /// Other values of variables.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "few_values::optional_map", default)]
    pub context: Option<Map<String, Value>>,
    /// Another machine or directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<String>,
    /// Captures that somebody set to another text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub captured: BTreeMap<String, String>,
    /// Another trace.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "TraceOrigin::read_if_whole"
    )]
    pub trace: Option<Box<TraceOrigin>>,
    /// A later attempt at the item of a plan.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub assignment: Option<Box<Assignment>>,
    /// What binds it from above in addition.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub policy: Vec<PolicyRecord>,
    /// Files of the working tree that the run had and its bundle did not bring, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_carried: Vec<String>,
}

/// The item of a plan that a run works on, by which `merge` knows it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The id of the plan.
    pub plan_id: Sum,
    /// The leg.
    pub leg: Line,
    /// The item.
    pub item: Line,
    /// Which attempt at the item this is, from 1. The highest one counts.
    pub attempt: u32,
    /// The CI run that it is part of, where the CI system names it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ci_run: Option<Line>,
    /// How the tree of the plan differs from its commit, where the plan was made of a checkout with changes.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub differs: Vec<TreeEntry>,
}

/// Why a run had been left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeReason {
    /// It was handed off.
    Handoff,
    /// Somebody ended it.
    Interrupted,
    /// The lease of its scope was lost.
    LeaseLost,
    /// It stopped without a last word.
    Crash,
    /// The loop's timeout passed.
    Timeout,
    /// The budget was met.
    OverBudget,
    /// A service or tool was missing.
    Unavailable,
    /// Its events could not be written.
    JournalLost,
    /// It had come to an end that was not a success.
    Failed,
    /// It was not left: another run begins again in front of one of its steps.
    Rewound,
}

impl ResumeReason {
    /// Returns why, in words that follow "after".
    pub fn after(self) -> &'static str {
        match self {
            Self::Handoff => "a hand-off",
            Self::Interrupted => "an interruption",
            Self::LeaseLost => "its lease was lost",
            Self::Crash => "its process was gone",
            Self::Timeout => "its timeout passed",
            Self::OverBudget => "its budget was used up",
            Self::Unavailable => "something was unavailable",
            Self::JournalLost => "its events could not be written",
            Self::Failed => "it ended without success",
            Self::Rewound => "a rewind",
        }
    }

    /// Returns why a run with this outcome had been left, if it can go on; none for an outcome that is always final.
    pub fn of(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Handoff => Some(Self::Handoff),
            Outcome::Interrupted => Some(Self::Interrupted),
            Outcome::LeaseLost => Some(Self::LeaseLost),
            Outcome::Timeout => Some(Self::Timeout),
            Outcome::OverBudget => Some(Self::OverBudget),
            Outcome::Unavailable => Some(Self::Unavailable),
            // Of all errors, this is the one that can be gone on with.
            Outcome::Error => Some(Self::JournalLost),
            Outcome::Success
            | Outcome::Failure
            | Outcome::Exhausted
            | Outcome::Stopped
            | Outcome::Blocked
            | Outcome::Cancelled => None,
        }
    }

    /// Says it after `the run`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Handoff => "was handed off",
            Self::Interrupted => "was interrupted",
            Self::Crash => "was killed",
            Self::Timeout => "ran into its timeout",
            Self::OverBudget => "met its budget",
            Self::Unavailable => "missed a service",
            Self::JournalLost => "could not be saved",
            Self::LeaseLost => "lost its lease",
            Self::Failed => "did not succeed",
            Self::Rewound => "was rewound",
        }
    }
}

/// Where a loop and its states are written down, so that a report can point there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The loop file, relative to the directory of the run where it lies below it.
    pub file: String,
    /// The files that it takes something over from, and those of the loops that it runs, in the same way.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub others: Vec<String>,
    /// The line of each state, from 1.
    pub lines: IndexMap<StateName, u32>,
}

/// Whether prompts may reach a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Llm {
    /// Never.
    Off,
    /// They are answered from a recording.
    Replay,
    /// They do.
    On,
}

/// What kind of action a state runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// A command line.
    Shell,
    /// A prompt for an agent.
    Prompt,
    /// A call of an MCP tool.
    Mcp,
    /// Another loop.
    SubLoop,
    /// An operation on the task board.
    Board,
    /// A question for a person.
    HumanApproval,
    /// A look at what is known.
    Learning,
}

impl ActionKind {
    /// Tells whether an agent does it.
    pub fn asks_agent(self) -> bool {
        match self {
            Self::Prompt => true,
            Self::Shell | Self::Mcp | Self::SubLoop | Self::Board | Self::HumanApproval | Self::Learning => {
                false
            }
        }
    }

    /// Tells whether it is an operation on the task board, which is planning and no work.
    pub fn is_operation(self) -> bool {
        match self {
            Self::Board => true,
            Self::Shell | Self::Prompt | Self::Mcp | Self::SubLoop | Self::HumanApproval | Self::Learning => {
                false
            }
        }
    }

    /// Tells whether it is a run of its own, with steps that are shown one by one.
    pub fn has_steps(self) -> bool {
        match self {
            Self::SubLoop => true,
            Self::Shell | Self::Prompt | Self::Mcp | Self::Board | Self::HumanApproval | Self::Learning => {
                false
            }
        }
    }
}

/// Which rule chose the next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteReason {
    /// A route for this verdict.
    Verdict,
    /// `next`.
    Next,
    /// An error route.
    Error,
    /// `on_retry_exhausted`.
    RetryExhausted,
    /// A maintain loop starts again.
    Maintain,
    /// The handler of a cap.
    Cap,
    /// The way out of a stall.
    Stall,
    /// The check could not judge, and the state is entered once more.
    Unjudged,
    /// `repeat`: it has to pass more often.
    Repeat,
    /// `flaky`: it failed, and is made again.
    Flaky,
}

impl RouteReason {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Verdict,
        Self::Next,
        Self::Error,
        Self::RetryExhausted,
        Self::Maintain,
        Self::Cap,
        Self::Stall,
        Self::Unjudged,
        Self::Repeat,
        Self::Flaky,
    ];
}

/// How an action ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "ActionCompleteWire", into = "ActionCompleteWire")]
pub struct ActionComplete {
    /// The step that ran it; names the files that hold longer streams.
    pub step: u32,
    /// What was observed. Read from a journal, it holds the ends of the streams only.
    pub seen: Observation,
    /// What a model cost, where one was asked.
    pub usage: Option<Usage>,
}

/// The same as it is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ActionCompleteWire {
    step: u32,
    exit_code: i32,
    duration_ms: u64,
    timed_out: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    stop: Option<Stop>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cause: Option<Cause>,
    truncated: bool,
    output_tail: String,
    stderr_tail: String,
    output_bytes: u64,
    stderr_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    output_stored: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    output_sha256: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    stderr_stored: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    stderr_sha256: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    usage: Option<Usage>,
}

impl ActionComplete {
    /// Says under which number the event is written, so that its longer streams are found.
    #[must_use]
    pub fn numbered(mut self, seq: u64) -> Self {
        self.seen.stdout = self.seen.stdout.of_event(seq);
        self.seen.stderr = self.seen.stderr.of_event(seq);
        self
    }

    /// Notes the digests of the streams that stand beside the journal.
    pub fn note_sums(&mut self, [stdout, stderr]: [Option<Sum>; 2]) {
        for (text, sum) in [(&mut self.seen.stdout, stdout), (&mut self.seen.stderr, stderr)] {
            if let Some(sum) = sum {
                text.note_sum(sum);
            }
        }
    }
}

/// Tells whether a stream is longer than an event can carry.
pub fn is_long(text: &Text) -> bool {
    text.as_str().len() > TAIL
}

/// Returns the length of what is stored of a stream beside the journal.
fn stored(text: &Text) -> Option<u64> {
    let here = is_long(text).then_some(text.as_str().len() as u64);
    text.elsewhere().map(|stored| stored.length).or(here)
}

impl From<ActionComplete> for ActionCompleteWire {
    fn from(ActionComplete { step, seen, usage }: ActionComplete) -> Self {
        Self {
            step,
            exit_code: seen.exit_code,
            duration_ms: millis(seen.duration),
            timed_out: seen.timed_out(),
            stop: seen.stop,
            signal: seen.signal,
            error: seen.failure,
            cause: seen.cause,
            truncated: seen.stdout.is_truncated() || seen.stderr.is_truncated(),
            output_tail: text::tail(seen.stdout.as_str(), TAIL).to_owned(),
            stderr_tail: text::tail(seen.stderr.as_str(), TAIL).to_owned(),
            output_bytes: seen.stdout.bytes(),
            stderr_bytes: seen.stderr.bytes(),
            output_stored: stored(&seen.stdout),
            output_sha256: seen.stdout.sum(),
            stderr_stored: stored(&seen.stderr),
            stderr_sha256: seen.stderr.sum(),
            usage,
        }
    }
}

impl From<ActionCompleteWire> for ActionComplete {
    fn from(wire: ActionCompleteWire) -> Self {
        let text = |tail: String, bytes: u64, stored: Option<u64>, sum: Option<Sum>| match stored {
            Some(length) => {
                // `truncated` speaks of both streams; this one was cut only if it had more than is
                // stored.
                let truncated = wire.truncated && bytes > length;
                Text::stored(tail, bytes, truncated, StoredText { event: 0, length, sum })
            }
            // Longer than the tail and not stored: the rest is gone, and the text says so.
            None if bytes > TAIL as u64 => Text::end_of(tail, bytes),
            None => Text::whole(tail),
        };
        Self {
            step: wire.step,
            usage: wire.usage,
            seen: Observation {
                stdout: text(wire.output_tail, wire.output_bytes, wire.output_stored, wire.output_sha256),
                stderr: text(wire.stderr_tail, wire.stderr_bytes, wire.stderr_stored, wire.stderr_sha256),
                exit_code: wire.exit_code,
                signal: wire.signal,
                duration: Duration::from_millis(wire.duration_ms),
                stop: wire.stop,
                failure: wire.error,
                cause: wire.cause,
            },
        }
    }
}

/// How a sub-loop ended, for the state that ran it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubLoopComplete {
    /// The state.
    pub state: StateName,
    /// The other loop.
    pub r#loop: String,
    /// What its end means for the state: success, failure, error, timeout or blocked.
    pub verdict: Verdict,
    /// Its exit code, had it run alone.
    pub exit_code: i32,
    /// How it ended; none when it could not be started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<Outcome>,
    /// Where it ended; none when it could not be started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub final_state: Option<StateName>,
    /// Whether something passed in it, and nothing failed since, on the tree of the run around it. A journal of an earlier
    /// version does not say it, and what is not known is not verified.
    #[serde(default)]
    pub verified: bool,
    /// Its steps.
    pub steps: u32,
    /// How long it took.
    pub duration_ms: u64,
    /// What ended it; none when it could not be started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub terminated_by: Option<TerminatedBy>,
    /// How it ended, in one sentence.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub reason: String,
    /// Why it could not be started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// What the run around it has to end with, because the sub-loop did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub halt: Option<Halt>,
    /// What models cost in it.
    #[serde(skip_serializing_if = "Usage::is_nothing", default)]
    pub usage: Usage,
    /// What it gives back to the captures of the run around it. Not written: the events of the sub-loop say it.
    #[serde(skip)]
    pub captured: IndexMap<String, StateResult>,
    /// How the sub-loops of its own states ended, with what each gave back. Not written either.
    #[serde(skip)]
    pub sub_loops: IndexMap<StateName, Self>,
    /// What its last action printed.
    #[serde(skip)]
    pub output: Text,
}

impl SubLoopComplete {
    /// Returns every result that it gives back, and those that its own sub-loops gave back to it.
    pub fn results(&self) -> Vec<&StateResult> {
        let below = self.sub_loops.values().flat_map(Self::results);
        self.captured.values().chain(below).collect()
    }

    /// Returns the same to be changed.
    pub fn results_mut(&mut self) -> Vec<&mut StateResult> {
        let below = self.sub_loops.values_mut().flat_map(Self::results_mut);
        self.captured.values_mut().chain(below).collect()
    }

    /// Returns how it ended, by one of the words that `${captured.<state>.…}` knows.
    pub fn ending(&self, word: &str) -> Option<String> {
        let is_error = self.outcome.is_none_or(|outcome| outcome == Outcome::Error);
        let is_failure =
            self.terminated_by == Some(TerminatedBy::Terminal) && self.outcome != Some(Outcome::Success);
        match word {
            "terminated_by" => {
                let by = serde_json::to_value(self.terminated_by.unwrap_or(TerminatedBy::Error)).ok()?;
                by.as_str().map(str::to_owned)
            }
            "failure_terminal" => is_failure.then(|| "true".to_owned()),
            "error" => is_error.then(|| self.error.clone().unwrap_or_else(|| self.reason.clone())),
            _ => None,
        }
    }

    /// Returns what its end says about the work.
    pub fn observes(&self) -> Observes {
        match (self.outcome, self.verified) {
            (Some(Outcome::Success), true) => Observes::Passing,
            (Some(Outcome::Success), false) => Observes::Nothing,
            (Some(_) | None, _) => Observes::Failing,
        }
    }

    /// Tells whether it ended with the run around it, so that it came to no result. One that ran into a timeout may
    /// have had its own.
    pub fn is_cut_short(&self) -> bool {
        self.outcome.is_some_and(|outcome| outcome.is_resumable() && outcome != Outcome::Timeout)
    }
}

/// An end of a sub-loop that is the end of the run around it, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Halt {
    /// It is saved for a later run.
    Handoff(Handoff),
    /// It is over.
    End {
        /// The outcome.
        outcome: Outcome,
        /// What ended it.
        terminated_by: TerminatedBy,
        /// Why.
        reason: String,
    },
}

/// What a closing pass is made for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosingPassStart {
    /// The checks that are made once more, in their order.
    pub checks: Vec<String>,
    /// Why.
    pub reasons: Vec<Reason>,
    /// The judges that are as they were at the start meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub put_back: Vec<String>,
    /// The files that are out of the way meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub hidden: Vec<String>,
    /// The files with added tests that are run without the work of the run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub to_prove: Vec<String>,
}

/// A check that was made on the files of the start, with tests that the run has added: where it passes, they prove nothing.
/// It decides nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosingPassProof {
    /// The tests: their cases, or the files where those cannot be told.
    pub tests: Vec<String>,
    /// The check: the state itself, or one of the loop that it runs.
    pub check: String,
    /// What it said.
    pub verdict: Verdict,
    /// Whether it passed.
    pub passed: bool,
    /// The exit code.
    pub exit_code: i32,
    /// How long it took.
    pub duration_ms: u64,
}

/// A check of a closing pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosingPassCheck {
    /// The state whose verdict it confirms.
    pub state: StateName,
    /// The check: the state itself, or one of the loop that it runs.
    pub check: String,
    /// Whether the tests that the run has added were put aside for it, as it had said no with them.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub without_added: bool,
    /// Whether it is made again at once, because it is known to waver: its failure is an attempt, and decides nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub made_again: bool,
    /// What it ran.
    pub action: String,
    /// What it said.
    pub verdict: Verdict,
    /// Whether that confirms it.
    pub passed: bool,
    /// The exit code.
    pub exit_code: i32,
    /// How long it took.
    pub duration_ms: u64,
    /// What the verdict rests on.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    pub details: Map<String, Value>,
    /// The end of what it printed.
    pub stdout: String,
    /// The end of what it complained of.
    pub stderr: String,
}

impl ClosingPassCheck {
    /// Says in a few words what was put aside for it beyond the rest of the pass.
    pub fn without(&self) -> &'static str {
        if self.without_added { " without the tests that were added" } else { "" }
    }

    /// Tells whether it failed, and that counts against the run: neither excused by a quarantine nor made again.
    pub fn is_refusal(&self) -> bool {
        !self.passed && !self.made_again && !self.verdict.is_quarantined()
    }

    /// Tells whether two of them are attempts at the same check.
    pub fn is_same_check(&self, other: &Self) -> bool {
        (&self.state, &self.check) == (&other.state, &other.check)
    }
}

/// How a closing pass ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosingPassEnd {
    /// Its result.
    pub result: PassResult,
    /// The files that its checks changed, and that are as they were before.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub put_back: Vec<String>,
    /// Why the judges of the start could not be put in their places.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<String>,
    /// Why the tree is not known to be as it was before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unknown: Option<String>,
}

/// The result of a closing pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PassResult {
    /// Every check passed.
    Confirmed,
    /// One did not.
    NotConfirmed,
    /// The judges of the start could not be put in their places.
    NotMade,
    /// The run was to end in the middle of it.
    CutShort,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopComplete {
    /// The outcome.
    pub outcome: Outcome,
    /// What ended it, more exactly.
    pub terminated_by: TerminatedBy,
    /// The terminal, or the state in which it ended.
    pub final_state: StateName,
    /// Passes, over all cycles.
    pub iterations: u32,
    /// State executions.
    pub steps: u32,
    /// How often a maintain loop started again, from 1.
    pub cycles: u32,
    /// Time since the start, over resumes.
    pub duration_ms: u64,
    /// Whether there was a passing observation, and no failing one since, and what passed holds for the tree on which it
    /// ended.
    pub verified: bool,
    /// Whether it is a failure only because `--strict` asks that something verify a success.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub unproven: bool,
    /// The exit code.
    pub exit_code: u8,
    /// The signal that interrupted it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<Signal>,
    /// One sentence for people.
    pub reason: String,
    /// Where in its closing pass the process was killed: ``the closing pass, in `test` ``. No run writes this, for only who
    /// reads a journal that stops there can tell.
    #[serde(skip)]
    pub killed_in_pass: Option<String>,
    /// What it did to the working tree; none in a sub-loop and in journals of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub changes: Option<Changes>,
    /// What verified it, and what did not; none in journals of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verification: Option<Box<Verification>>,
}

impl LoopComplete {
    /// Returns the end of a run that did nothing and verified nothing.
    pub fn new(outcome: Outcome, terminated_by: TerminatedBy, final_state: StateName) -> Self {
        Self {
            outcome,
            terminated_by,
            final_state,
            iterations: 0,
            steps: 0,
            cycles: 0,
            duration_ms: 0,
            verified: false,
            unproven: false,
            exit_code: outcome.exit_code(None),
            signal: None,
            reason: String::new(),
            killed_in_pass: None,
            changes: None,
            verification: None,
        }
    }

    /// Adds what the run did to the working tree, which may turn a success into a failure.
    #[must_use]
    pub(super) fn on_tree(mut self, changes: Changes, mode: OnChange) -> Self {
        if let Some(reason) = unsettled(mode, self.outcome, &changes) {
            self.outcome = Outcome::Failure;
            self.terminated_by = TerminatedBy::UncommittedChanges;
            self.exit_code = self.outcome.exit_code(self.signal);
            self.reason = reason;
        }
        self.changes = Some(changes);
        self
    }

    /// Tells whether a later run can continue where this one stopped.
    pub fn is_resumable(&self) -> bool {
        self.outcome.is_resumable() || self.terminated_by == TerminatedBy::JournalLost
    }

    /// Tells whether the run is over and can be taken up again all the same: it was not a success.
    pub fn may_be_reopened(&self) -> bool {
        // `on_handoff: terminate` says that nobody goes on.
        let is_terminated = self.terminated_by == TerminatedBy::Handoff && self.outcome == Outcome::Error;
        !self.is_resumable() && self.outcome != Outcome::Success && !is_terminated
    }

    /// Tells whether something passed, and yet the end does not stand on the tree that it is about.
    pub fn is_refuted(&self) -> bool {
        self.verification.as_deref().is_some_and(Verification::is_refuted)
    }

    /// Tells whether nothing is left to look at.
    pub fn is_verified_success(&self) -> bool {
        self.outcome == Outcome::Success && self.verified
    }
}

/// An event with its time and its number, from 1 without gaps.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Stamped {
    /// When.
    pub ts: Timestamp,
    /// The number.
    pub seq: u64,
    /// The time that the run has taken so far, without the pauses between its parts.
    #[serde(rename = "at_ms", deserialize_with = "in_millis::deserialize", default)]
    pub at: Duration,
    /// How deep in sub-loops, 0 for the run itself.
    #[serde(default)]
    pub depth: u32,
    /// The loops on the way there, the run itself first; empty for the run itself.
    #[serde(default)]
    pub path: Vec<LoopName>,
    /// Whether it is an event of the run that this one was rewound from: budgets count it, statistics do not.
    #[serde(default)]
    pub inherited: bool,
    /// What was shown since the event before it that does not follow from events.
    #[serde(default)]
    pub shown: Vec<Shown>,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// Something in the log of a run that does not follow from its events, so that the log can be shown again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// How this part of the run is shown.
    Look {
        /// The CI system whose log it is; none for a person.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        provider: Option<String>,
        /// Whether there are colours.
        colour: bool,
        /// The columns of the window, where there is one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        width: Option<usize>,
        /// How much a person is shown: `quiet`, `normal` or `verbose`.
        verbosity: String,
    },
    /// The token behind which commands of the CI system were on again.
    Token(String),
    /// A line in a long silence.
    Still {
        /// How many lines of output had come since the last event.
        lines: u64,
        /// The time that it told.
        took_ms: u64,
    },
}

/// What every line has in front.
#[derive(Deserialize)]
struct LineHead<'l> {
    #[serde(borrow)]
    event: Cow<'l, str>,
    ts: Timestamp,
    seq: u64,
    #[serde(default)]
    at_ms: u64,
    #[serde(default)]
    depth: u32,
    #[serde(default)]
    path: Vec<LoopName>,
    #[serde(default)]
    inherited: bool,
    #[serde(default)]
    shown: Vec<Shown>,
}

impl Stamped {
    /// Reads a line of a journal: the same as `Deserialize`, in a third of the time, because the fields of an event are
    /// not collected before it is known which event they are of.
    pub fn from_line(line: &[u8]) -> serde_json::Result<Self> {
        let LineHead { event, ts, seq, at_ms, depth, path, inherited, shown } = serde_json::from_slice(line)?;
        let event = match &*event {
            "action_complete" => Event::ActionComplete(serde_json::from_slice(line)?),
            "loop_start" => Event::LoopStart(serde_json::from_slice(line)?),
            "loop_complete" => Event::LoopComplete(serde_json::from_slice(line)?),
            _ => serde_json::from_slice(line)?,
        };
        Ok(Self { ts, seq, at: Duration::from_millis(at_ms), depth, path, inherited, shown, event })
    }

    /// Stamps an event of the run itself.
    pub fn new(ts: Timestamp, seq: u64, event: Event) -> Self {
        let (path, shown) = (Vec::new(), Vec::new());
        Self { ts, seq, at: Duration::ZERO, depth: 0, path, inherited: false, shown, event }
    }
}

/// A duration as whole milliseconds.
mod in_millis {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

impl Serialize for Stamped {
    /// Writes the name first, then time and number, then the fields: the order in which people read a line.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = serde_json::to_value(&self.event).map_err(S::Error::custom)? else {
            return Err(S::Error::custom("an event is an object"));
        };
        let mut map = serializer.serialize_map(None)?;
        let mut fields = fields.into_iter();
        if let Some((key, name)) = fields.next() {
            map.serialize_entry(&key, &name)?;
        }
        map.serialize_entry("ts", &self.ts)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("at_ms", &millis(self.at))?;
        if self.depth > 0 {
            map.serialize_entry("depth", &self.depth)?;
            map.serialize_entry("path", &self.path)?;
        }
        if self.inherited {
            map.serialize_entry("inherited", &true)?;
        }
        if !self.shown.is_empty() {
            map.serialize_entry("shown", &self.shown)?;
        }
        for (key, value) in fields {
            map.serialize_entry(&key, &value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(event: Event) -> Stamped {
        Stamped::new(Timestamp::from_millis(0), 1, event)
    }

    #[test]
    fn a_line_begins_with_name_time_and_number() {
        let state = StateName::parse("check").unwrap();
        let line =
            serde_json::to_string(&stamped(Event::StateEnter { state, iteration: 1, step: 2, attempt: 3 }));
        assert_eq!(
            line.unwrap(),
            r#"{"event":"state_enter","ts":"1970-01-01T00:00:00.000Z","seq":1,"at_ms":0,"state":"check","iteration":1,"step":2,"attempt":3}"#
        );
    }

    #[test]
    fn an_event_reads_back_as_it_was_written() {
        let seen = Observation { signal: Some(9), ..Observation::exited(137, "out\n") };
        let event = stamped(Event::ActionComplete(ActionComplete { step: 4, seen, usage: None }));
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Stamped>(&line).unwrap(), event);
        assert_eq!(Stamped::from_line(line.as_bytes()).unwrap(), event);
    }

    #[test]
    fn a_long_stream_is_written_as_its_end() {
        let seen = Observation::exited(0, "x".repeat(TAIL) + "end");
        let line = serde_json::to_string(&stamped(Event::ActionComplete(ActionComplete {
            step: 1,
            seen,
            usage: None,
        })))
        .unwrap();
        assert!(line.len() < TAIL + 500);
        let Event::ActionComplete(back) = serde_json::from_str::<Stamped>(&line).unwrap().event else {
            panic!()
        };
        assert!(back.seen.stdout.as_str().ends_with("end"));
        assert_eq!(back.seen.stdout.bytes(), TAIL as u64 + 3);
        assert_eq!(back.seen.stdout.elsewhere().map(|stored| stored.length), Some(TAIL as u64 + 3));
    }
}
