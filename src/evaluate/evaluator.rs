//! What every evaluator is: what it may see, what it answers, and what it can be asked about itself.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::effort::PatternEffort;
use super::field::FieldError;
use super::form::AnswerForm;
use super::jq_question::{Queried, Query};
use super::model::{ModelAnswer, Question};
use super::observation::Observation;
use super::survey::Surveyed;
use super::verdict::Verdict;
use crate::base::explanation::Explanation;
use crate::base::template::{Scope, Template};

/// What an evaluator can see.
#[derive(Clone, Copy)]
pub struct Judging<'a> {
    /// What the state's action did; none for a state without an action.
    pub seen: Option<&'a Observation>,
    /// What its templates can see.
    pub scope: &'a dyn Scope,
    /// The text of the state's action, after interpolation.
    pub action: Option<&'a str>,
    /// What the evaluator of the same state asked to remember last, in this run.
    pub memory: Option<&'a Value>,
    /// The working tree, for an evaluator that asks for a survey.
    pub survey: Option<&'a Surveyed>,
    /// What was read, for an evaluator that names a file.
    pub file: Option<&'a FileRead>,
    /// What a model answered, for an evaluator that asks one.
    pub answer: Option<&'a ModelAnswer>,
    /// The result of its query, for an evaluator that has one.
    pub queried: Option<&'a Queried>,
    /// The form that the answer to the state's prompt has to have, if it asks for one.
    pub form: Option<&'a AnswerForm>,
}

impl<'a> Judging<'a> {
    /// Makes what is seen of the end of an action, and nothing else.
    pub fn of_end(seen: &'a Observation, scope: &'a dyn Scope) -> Self {
        Self {
            seen: Some(seen),
            scope,
            action: None,
            memory: None,
            survey: None,
            file: None,
            answer: None,
            queried: None,
            form: None,
        }
    }
}

/// The content of a file (`None` if the file does not exist), or why it cannot be read.
pub type FileRead = Result<Option<Vec<u8>>, Explanation>;

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The evidence: which fields there are is fixed per evaluator.
    pub details: Map<String, Value>,
    /// What the next judgement of the same state has to know; none leaves it at what it was.
    pub memory: Option<Value>,
    /// What somebody should know who wrote the loop.
    pub warnings: Vec<String>,
}

impl Judged {
    /// Makes a judgement; `details` is a JSON object.
    pub fn new(verdict: Verdict, mut details: Value) -> Self {
        let details = details.as_object_mut().map(std::mem::take).unwrap_or_default();
        Self { verdict, details, memory: None, warnings: Vec::new() }
    }

    /// Leaves something for the next judgement of the same state.
    #[must_use]
    pub fn remembering(mut self, memory: Option<Value>) -> Self {
        self.memory = memory;
        self
    }

    /// Warns whoever wrote the loop.
    #[must_use]
    pub fn warning(mut self, warning: Option<String>) -> Self {
        self.warnings.extend(warning);
        self
    }

    /// Makes the judgement that the evaluation itself failed, with its reason.
    pub fn error(why: impl Into<String>) -> Self {
        Self::new(Verdict::error(), json!({ "error": why.into() }))
    }
}

/// The verdicts an evaluator can give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdicts<'e> {
    /// These and `error` or `timeout` of the action.
    Only(Vec<Cow<'e, str>>),
    /// Whatever the action prints.
    Any,
}

impl Verdicts<'_> {
    /// Makes the list of an evaluator whose verdicts are always the same.
    pub fn only(words: &[&'static str]) -> Self {
        Self::Only(words.iter().copied().map(Cow::Borrowed).collect())
    }
}

/// What is odd about a key of an evaluator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    /// The key.
    pub key: &'static str,
    /// A sentence.
    pub message: String,
    /// Whether the evaluator could never say yes or no.
    pub is_fault: bool,
}

impl Oddity {
    /// Makes one with which the evaluator works, though perhaps not as it was meant.
    pub fn warning(key: &'static str, message: String) -> Self {
        Self { key, message, is_fault: false }
    }

    /// Makes one with which the evaluator can never say yes or no.
    pub fn fault(key: &'static str, message: String) -> Self {
        Self { key, message, is_fault: true }
    }
}

/// The keys that the details of every evaluation can have: an action can fail, an evaluation too, and a model may be
/// missing.
pub const ANY_DETAILS: [&str; 3] = ["error", "exit_code", "reason"];

/// One way to judge.
pub trait Evaluator {
    /// Judges. An error means that a template of the evaluator itself has no value.
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError>;

    /// Returns the verdicts that can come out.
    fn verdicts(&self) -> Verdicts<'_>;

    /// Returns the keys that the details of its judgements can have besides [`ANY_DETAILS`], or none if they are not
    /// known before the run.
    fn details(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Returns every template in the evaluator's keys, with the key.
    fn templates(&self) -> Vec<(&'static str, &Template)>;

    /// Returns what is odd about the evaluator's own keys, with the key, as warnings at load.
    fn oddities(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Looks at the evaluator's own keys when its file is read, and returns what is odd about them.
    fn check(&self, _effort: &mut PatternEffort) -> Vec<Oddity> {
        self.oddities().into_iter().map(|(key, message)| Oddity::warning(key, message)).collect()
    }

    /// Returns the scope of the survey that it needs, if it needs one: files and directories, or none for everything.
    fn survey(&self) -> Option<&[Template]> {
        None
    }

    /// Returns the file that it needs to see, if it needs one, relative to the directory of the run.
    fn file(&self) -> Option<&Template> {
        None
    }

    /// Returns what a model is asked before this can judge, if one is asked. An error means that a template of the
    /// evaluator itself has no value.
    fn question(&self, _judging: Judging<'_>) -> Option<Result<Question, FieldError>> {
        None
    }

    /// Returns the query that somebody has to answer before this can judge, if it has one. An error means that a
    /// template of the evaluator itself has no value.
    fn query(&self, _judging: Judging<'_>) -> Option<Result<Query, FieldError>> {
        None
    }

    /// Tells whether it asks a model.
    fn asks(&self) -> bool {
        false
    }

    /// Returns the other word by which a route for this verdict may go.
    fn alias(&self, _verdict: &str) -> Option<&'static str> {
        None
    }
}
