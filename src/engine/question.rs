//! A question for a person that outlives its process: what is asked, about what exactly, who may answer, and the answer.

use serde::{Deserialize, Serialize};

use super::changes::{SeenTree, StartTree};
use crate::base::name::StateName;
use crate::base::object::ObjectId;
use crate::base::sum::Sum;
use crate::base::text::one_line;
use crate::base::time::Timestamp;
use crate::machine::Approvers;

/// Why a question is asked anew.
pub const ANSWERED_ANOTHER: &str = "the answer was to another question";

/// Whom a run may ask before it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum People {
    /// The person at the terminal, if there is one.
    #[default]
    Here,
    /// Somebody who answers later: the run is saved with its question.
    Later,
    /// Nobody, for this reason.
    Nobody(String),
}

/// What a question is about, and when it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedAbout {
    /// The time.
    pub at: Timestamp,
    /// The working tree, where it is known.
    pub tree: Option<ObjectId>,
    /// The commit that is checked out, where there is one.
    pub sha: Option<ObjectId>,
}

impl AskedAbout {
    /// Describes this tree at this time.
    pub fn of(tree: &SeenTree, at: Timestamp) -> Self {
        let ids = match tree {
            SeenTree::Known(ids) => Some(ids),
            SeenTree::Unknown { .. } => None,
        };
        Self { at, tree: ids.map(|ids| ids.tree.clone()), sha: ids.map(|ids| ids.commit.clone()) }
    }
}

/// The head of a pull request, and the commit that merges it into its base for a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedHead {
    /// The commit that is checked out.
    pub merge: ObjectId,
    /// The commit that people know.
    pub head: ObjectId,
}

impl MergedHead {
    /// Finds it in what a run knows of the tree on which it began.
    pub(super) fn of(tree: Option<&StartTree>) -> Option<Self> {
        match tree {
            Some(StartTree::Known(start)) => {
                let (merge, head) = (start.ids.commit.clone(), start.stands_for.clone()?);
                Some(Self { merge, head })
            }
            Some(StartTree::Unknown { .. }) | None => None,
        }
    }
}

/// A question that a run was saved with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaiting {
    /// What is asked.
    pub question: String,
    /// The words that answer it.
    pub options: Vec<AnswerKind>,
    /// When it was asked first.
    pub asked_at: Timestamp,
    /// The state that asks, which may be one of a sub-loop.
    pub state: StateName,
    /// The working tree that it is about.
    pub tree: Option<ObjectId>,
    /// The commit that was checked out.
    pub sha: Option<ObjectId>,
    /// The digest of the question, the run, the state, its visit, the commit and the tree.
    pub digest: Sum,
    /// The beginning of it, for people.
    pub code: String,
    /// Who may answer, where the loop says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approvers: Option<Approvers>,
    /// When it is not open any more.
    pub until: Timestamp,
    /// The machine and the directory in which a job of a CI system asked it; none where no job did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub asked_in: Option<String>,
    /// Whether somebody had answered another question before, so that this one is asked in its place.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub asked_anew: bool,
}

impl Awaiting {
    /// Tells whether it is about this tree and this commit.
    pub fn is_about(&self, tree: Option<&ObjectId>, sha: Option<&ObjectId>) -> bool {
        (self.tree.as_ref(), self.sha.as_ref()) == (tree, sha)
    }

    /// Tells whether it, as a journal has it, asks what another one asks now. What was read of a journal has no secrets any more, so
    /// a text that was made with one has another digest afterwards, and the same words.
    pub(super) fn asks_as(&self, now: &Self) -> bool {
        let has_same_words = (&self.question, &self.state) == (&now.question, &now.state);
        self.digest == now.digest || has_same_words && self.is_about(now.tree.as_ref(), now.sha.as_ref())
    }

    /// Returns the question in one line, for people.
    pub fn shown(&self) -> String {
        one_line(&self.question, 200)
    }
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// The run goes on by `yes`.
    Approve,
    /// It goes on by `no`.
    Reject,
    /// It goes on by `edit`, with a text.
    Answer,
    /// It does not go on: nobody needs an answer any more.
    Stop,
}

impl AnswerKind {
    /// Those that a question offers. That it can be stopped, no question says.
    pub const OFFERED: [Self; 3] = [Self::Approve, Self::Reject, Self::Answer];

    /// Returns the word that people write.
    pub fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Answer => "answer",
            Self::Stop => "stop",
        }
    }
}

/// How an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerWay {
    /// By a comment, whose author the server named.
    Comment,
    /// On the command line of a machine, whose user was not checked.
    CommandLine,
    /// By a reviewer of an environment, before the job of the run began. It answers no question.
    Environment,
}

/// An answer to a question, or what a reviewer of an environment said about the job of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenAnswer {
    /// The name of the person.
    pub who: String,
    /// The id of the account, where a server knows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<u64>,
    /// The comment.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub comment: Option<u64>,
    /// When it was given.
    pub at: Timestamp,
    /// The commit that it is about.
    pub sha: Option<ObjectId>,
    /// What it says.
    pub verdict: AnswerKind,
    /// With which words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// The question that it answers; none of what is said about a job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<Sum>,
    /// How it came.
    pub by: AnswerWay,
    /// The environment that the job was approved for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub environment: Option<String>,
}

impl GivenAnswer {
    /// Says it in a sentence without its end.
    pub fn sentence(&self) -> String {
        let did = match self.verdict {
            AnswerKind::Approve => "approved",
            AnswerKind::Reject => "rejected",
            AnswerKind::Answer => "answered",
            AnswerKind::Stop => "stopped",
        };
        let who = one_line(&self.who, 80);
        match (self.by, self.comment) {
            (AnswerWay::Comment, Some(comment)) => format!("{did} by {who} (comment {comment})"),
            (AnswerWay::Comment, None) => format!("{did} by {who}"),
            (AnswerWay::CommandLine, _) => {
                format!("{did} on the command line by {who}, whom nobody checked")
            }
            (AnswerWay::Environment, _) => {
                let environment = one_line(self.environment.as_deref().unwrap_or("?"), 80);
                format!("job {did} by {who} for the environment `{environment}`")
            }
        }
    }
}

/// The question that a run was saved with, and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// The question.
    pub awaiting: Awaiting,
    /// The answer, once there is one.
    pub answer: Option<GivenAnswer>,
}

impl OpenQuestion {
    /// Begins with a question alone.
    pub(super) fn of(awaiting: &Awaiting) -> Self {
        Self { awaiting: awaiting.clone(), answer: None }
    }

    /// Takes an answer, if it is one to this question.
    pub(super) fn take(&mut self, approval: &GivenAnswer) {
        // A late answer to an earlier question must not answer this one.
        if approval.digest == Some(self.awaiting.digest) {
            self.answer = Some(approval.clone());
        }
    }

    /// Tells whether somebody has stopped it.
    pub fn is_stopped(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.verdict == AnswerKind::Stop)
    }
}
