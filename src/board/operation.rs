//! The operations on a board: their names in a loop file, their parameters and their verdicts.

use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::planner_answers::{TaskParts, TaskPlan};
use super::task::{TaskId, Tests};
use crate::base::explanation::Explanation;
use crate::base::text::one_line;

/// The parameter that is a document, and not a text.
pub const ANSWER: &str = "answer";

/// Which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// A plan becomes the tasks.
    Load,
    /// The plan may be worked on.
    Approve,
    /// The next task is begun.
    Next,
    /// Another round is counted: of the plan while there is no approval, of fixes in a task after that.
    Tick,
    /// The task is completed.
    Pass,
    /// The attempt at the task failed.
    Fail,
    /// The task is done in parts.
    Split,
    /// The task failed for good.
    GiveUp,
    /// An unfinished run is resumed.
    Recover,
}

impl OperationKind {
    /// Every operation.
    pub const ALL: [Self; 9] = [
        Self::Load,
        Self::Approve,
        Self::Next,
        Self::Tick,
        Self::Pass,
        Self::Fail,
        Self::Split,
        Self::GiveUp,
        Self::Recover,
    ];

    /// Finds an operation by its word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Returns the word by which a loop file names it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Approve => "approve",
            Self::Next => "next",
            Self::Tick => "tick",
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Split => "split",
            Self::GiveUp => "give_up",
            Self::Recover => "recover",
        }
    }

    /// Returns the words that it answers, beside `error`.
    pub fn verdicts(self) -> &'static [&'static str] {
        match self {
            Self::Load => &["loaded"],
            Self::Approve => &["approved"],
            Self::Next => &["task", "done", "stuck"],
            Self::Tick => &["again", "enough", "abort"],
            Self::Pass => &["passed"],
            Self::Fail => &["retry", "replan", "give_up", "stuck", "abort"],
            Self::Split => &["split"],
            Self::GiveUp => &["given_up", "abort"],
            Self::Recover => &["plan", "review", "next"],
        }
    }

    /// Returns the names of its `params`.
    pub fn params(self) -> &'static [&'static str] {
        match self {
            Self::Load | Self::Split => &[ANSWER],
            Self::Approve => &["because"],
            Self::Tick => &[ANSWER, "output", "feedback", "level", "fix"],
            Self::Pass => &["summary", "tests"],
            Self::Fail => &[ANSWER, "output", "feedback", "level", "error"],
            Self::Next | Self::GiveUp | Self::Recover => &[],
        }
    }

    /// Makes the operation from its parameters, or says why they are invalid.
    pub fn with(self, params: &IndexMap<String, String>) -> Result<Operation, Explanation> {
        let text = |name: &str| params.get(name).map_or_else(String::new, |text| text.trim().to_owned());
        let report = || Report {
            // What a command printed need not be JSON: then `output` is read in its place.
            answer: serde_json::from_str(&text(ANSWER)).ok(),
            output: text("output"),
            feedback: text("feedback"),
            // `none` is the level of work that needs no escalation.
            level: Some(text("level")).filter(|level| !level.is_empty() && level != "none"),
            error: text("error"),
            fix: text("fix"),
        };
        Ok(match self {
            Self::Load => Operation::Load(read("a plan", &text(ANSWER))?),
            Self::Approve => Operation::Approve { because: text("because") },
            Self::Next => Operation::Next,
            Self::Tick => Operation::Tick(report()),
            Self::Pass => {
                Operation::Pass { summary: text("summary"), tests: serde_json::from_str(&text("tests")).ok() }
            }
            Self::Fail => Operation::Fail(report()),
            Self::Split => Operation::Split(read("a plan for the parts", &text(ANSWER))?),
            Self::GiveUp => Operation::GiveUp,
            Self::Recover => Operation::Recover { is_changed: false },
        })
    }
}

fn read<T: DeserializeOwned>(what: &str, answer: &str) -> Result<T, Explanation> {
    if answer.is_empty() {
        return Err(Explanation::new(format!("the answer is not {what}: it is missing, or too long")));
    }
    serde_json::from_str(answer)
        .map_err(|error| Explanation::new(format!("the answer is not {what}: {error}")))
}

/// An operation with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A plan becomes the tasks.
    Load(TaskPlan),
    /// The plan may be worked on.
    Approve {
        /// Why.
        because: String,
    },
    /// The next task is begun.
    Next,
    /// Another round is counted.
    Tick(Report),
    /// The task is completed.
    Pass {
        /// What was done.
        summary: String,
        /// How its tests ended, where the tester counts them.
        tests: Option<Tests>,
    },
    /// The attempt at the task failed.
    Fail(Report),
    /// The task is done in parts.
    Split(TaskParts),
    /// The task failed for good.
    GiveUp,
    /// An unfinished run is resumed.
    Recover {
        /// Whether somebody changed the working tree since the run ended.
        is_changed: bool,
    },
}

/// What is said about work that was not good enough.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The answer of whoever said it.
    pub answer: Option<Value>,
    /// What was printed, where there is no answer.
    pub output: String,
    /// What the supervisor said.
    pub feedback: String,
    /// How seriously the supervisor takes it.
    pub level: Option<String>,
    /// Why there is no answer.
    pub error: String,
    /// What the last fix did.
    pub fix: String,
}

/// A note for people, beside the board itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What it is, for programs.
    pub kind: NoteKind,
    /// The task it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub task: Option<TaskId>,
    /// The sentence, without its end.
    pub text: String,
}

impl Note {
    /// Makes the note that an operation could not be made.
    pub fn refused(why: &str) -> Self {
        Self::new(NoteKind::Refused, None, why)
    }

    pub(super) fn new(kind: NoteKind, task: Option<&TaskId>, text: impl AsRef<str>) -> Self {
        Self { kind, task: task.cloned(), text: one_line(text.as_ref(), 400) }
    }
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// A dependency on an unknown task.
    DroppedEdge,
    /// A dependency that closed a cycle.
    BrokenCycle,
    /// The supervisor raised the level of its feedback.
    Escalation,
    /// A task that can never begin.
    Unreachable,
    /// An attempt that failed.
    Failed,
    /// A task that begins anew because the run was interrupted.
    Reset,
    /// The goal was judged, or tested, and is not reached.
    Rejected,
    /// A limit that ends the work.
    Limit,
    /// An operation that the board refused.
    Refused,
}
