//! What a verdict is, and how an observation becomes one.
//!
//! Each evaluator is one file: the keys it takes in a loop file, and the function that judges. It is known to the
//! rest by its line in [`Evaluate`].

use std::borrow::Cow;

use regex::Regex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::base::decode::tagged;
use crate::base::template::{Scope, Template};

pub mod answer;
pub mod effort;
pub mod field;
pub mod jq;
pub mod model;
pub mod observation;
pub mod observes;
pub mod operator;
pub mod query;
pub mod survey;
pub mod verdict;

mod action_stall;
mod classify;
mod convergence;
mod criteria;
mod diff_stall;
mod exit_code;
mod harbor_scorer;
mod level;
mod llm_structured;
mod mcp_result;
mod output_contains;
mod output_json;
mod output_numeric;
mod score;
mod score_stall;

pub use action_stall::ActionStall;
pub use answer::Answered;
pub use classify::Classify;
pub use convergence::{Convergence, Direction};
pub use criteria::Criteria;
pub use diff_stall::DiffStall;
pub use exit_code::ExitCode;
pub use harbor_scorer::HarborScorer;
pub use llm_structured::LlmStructured;
pub use mcp_result::McpResult;
pub use output_contains::OutputContains;
pub use output_json::OutputJson;
pub use output_numeric::OutputNumeric;
pub use score::Score;
pub use score_stall::ScoreStall;

use answer::Form;
use effort::Effort;
use field::{Field, FieldError};
use model::{Answer, Question};
use observation::Observation;
use query::{Queried, Query};
use survey::Surveyed;
use verdict::Verdict;

tagged! {
    /// How the result of a state becomes a verdict.
    pub enum Evaluate: Evaluator {
        /// By the exit code.
        ExitCode(ExitCode) = "exit_code",
        /// By a number that was printed.
        OutputNumeric(OutputNumeric) = "output_numeric",
        /// By a value in JSON that was printed.
        OutputJson(OutputJson) = "output_json",
        /// By a pattern in what was printed.
        OutputContains(OutputContains) = "output_contains",
        /// By the way of a number towards a target.
        Convergence(Convergence) = "convergence",
        /// By the word that was printed.
        Classify(Classify) = "classify",
        /// By whether the working tree changes.
        DiffStall(DiffStall) = "diff_stall",
        /// By whether a score improves.
        ScoreStall(ScoreStall) = "score_stall",
        /// By whether the same thing happens again.
        ActionStall(ActionStall) = "action_stall",
        /// By the exit code and the number of a scorer.
        HarborScorer(HarborScorer) = "harbor_scorer",
        /// By the envelope of an MCP tool's answer.
        McpResult(McpResult) = "mcp_result",
        /// By the criteria of a piece of work.
        Criteria(Criteria) = "criteria",
        /// By a field of the answer to a prompt.
        Answer(Answered) = "answer",
        /// By the score that a reviewer gives.
        Score(Score) = "score",
        /// By the answer of a model.
        LlmStructured(LlmStructured) = "llm_structured",
    }
}

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
    pub answer: Option<&'a Answer>,
    /// What came of its query, for an evaluator that has one.
    pub queried: Option<&'a Queried>,
    /// The form that the answer to the state's prompt has to have, if it asks for one.
    pub form: Option<&'a Form>,
}

/// What is in a file, none where there is no file, or why it cannot be read.
pub type FileRead = Result<Option<Vec<u8>>, String>;

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The evidence: which fields there are is fixed per evaluator.
    pub details: Map<String, Value>,
    /// What the next judgement of the same state has to know; none leaves it at what it was.
    pub memory: Option<Value>,
}

impl Judged {
    /// Makes a judgement; `details` is a JSON object.
    pub fn new(verdict: Verdict, mut details: Value) -> Self {
        let details = details.as_object_mut().map(std::mem::take).unwrap_or_default();
        Self { verdict, details, memory: None }
    }

    /// Leaves something for the next judgement of the same state.
    #[must_use]
    pub fn remembering(mut self, memory: Option<Value>) -> Self {
        self.memory = memory;
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

/// One way to judge.
pub trait Evaluator {
    /// Judges. An error means that a template of the evaluator itself has no value.
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError>;

    /// Returns the verdicts that can come out.
    fn verdicts(&self) -> Verdicts<'_>;

    /// Returns every template in the evaluator's keys, with the key.
    fn templates(&self) -> Vec<(&'static str, &Template)>;

    /// Returns what is odd about the evaluator's own keys, with the key, as warnings at load.
    fn oddities(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Looks at the evaluator's own keys when its file is read, and returns what is odd about them.
    fn check(&self, _effort: &mut Effort) -> Vec<Oddity> {
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

/// The text an evaluator judges, or the judgement that there is none.
enum Subject<'a> {
    Text(Cow<'a, str>),
    Crashed(Judged),
}

/// Takes `source`, or else what the action printed. An action that crashed said nothing that could be judged.
fn subject<'a>(source: Option<&Template>, judging: Judging<'a>) -> Result<Subject<'a>, FieldError> {
    match (source, judging.seen) {
        (Some(source), _) => Ok(Subject::Text(Cow::Owned(source.render(judging.scope)?))),
        (None, Some(seen)) if seen.crashed() => Ok(Subject::Crashed(Judged::new(
            Verdict::error(),
            json!({ "exit_code": seen.exit_code, "error": format!("the action failed (exit {})", seen.exit_code) }),
        ))),
        (None, seen) => Ok(Subject::Text(printed(seen))),
    }
}

fn printed(seen: Option<&Observation>) -> Cow<'_, str> {
    Cow::Borrowed(seen.map_or("", |seen| seen.stdout.as_str()))
}

/// Reads a text as a number: surrounding blanks are fine; units, separators and further words are not.
fn number_in(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'));
    let infinite = matches!(text.trim_start_matches(['+', '-']), "inf" | "infinity");
    if plain || infinite { text.parse().ok() } else { None }
}

/// Reads the whole text as a number, or the last `KEY = NUMBER` in it.
fn number_of(text: &str, key: Option<&str>) -> Option<f64> {
    match key {
        Some(key) => last_assignment(text, key).and_then(number_in),
        None => number_in(text),
    }
}

/// Says that [`number_of`] found none.
fn no_number(text: &str, key: Option<&str>) -> String {
    match key {
        Some(key) => format!("no `{key} = NUMBER` in the output"),
        None => format!("`{}` is not a number", excerpt(text)),
    }
}

/// Finds the last `key = number`, blanks around the sign allowed.
fn last_assignment<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let pattern = format!(r"(?:^|[^\w.]){}\s*[=:]\s*([-+0-9.eE]+)", regex::escape(key));
    let found = Regex::new(&pattern).ok()?.captures_iter(text).last()?;
    found.get(1).map(|number| number.as_str())
}

/// Reads what [`remembered`] wrote. What cannot be read is no memory.
fn recalled<T: DeserializeOwned>(memory: Option<&Value>) -> Option<T> {
    memory.and_then(|memory| T::deserialize(memory).ok())
}

/// Writes a memory.
fn remembered(memory: &impl Serialize) -> Option<Value> {
    serde_json::to_value(memory).ok()
}

/// Notes a count that would mean that the state never says yes.
fn at_least_one(key: &'static str, count: &Field<i32>) -> Vec<(&'static str, String)> {
    let odd = count.as_literal().filter(|count| **count < 1);
    odd.map(|count| (key, format!("`{key}: {count}` counts as 1"))).into_iter().collect()
}

/// Writes a number as JSON, whole ones without a fraction.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the value is whole and far from the limits")]
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}

/// Shortens a text for a message.
fn excerpt(text: &str) -> String {
    crate::base::text::one_line(text, 60)
}

#[cfg(test)]
mod testing {
    //! A scope of plain JSON and a way to say what an evaluator makes of an output.

    use super::*;
    use crate::base::decode::Decode;
    use crate::base::path::Segment;
    use crate::base::template::{Found, Missing, Namespace, walk};

    pub(super) struct Values(pub(super) Value);

    impl Scope for Values {
        fn get(&self, namespace: Namespace, path: &[Segment]) -> Result<Found<'_>, Missing> {
            let root = self.0.get(namespace.word()).ok_or_else(Missing::default)?;
            walk(namespace.word(), root, path).map(|value| Found::Json(Cow::Borrowed(value)))
        }

        fn is_cut(&self, namespace: Namespace, path: &[Segment]) -> bool {
            namespace == Namespace::Captured && path == [Segment::Key("cut".to_owned())]
        }
    }

    /// Decodes the value of `evaluate:`.
    pub(super) fn evaluator(spec: &str) -> Evaluate {
        decoded(spec)
    }

    fn decoded<T: Decode>(text: &str) -> T {
        let mut problems = crate::base::diagnostic::Diagnostics::default();
        let tree = crate::definition::yaml::parse(text, crate::base::node::FileId(0), &mut problems).unwrap();
        let decoded = T::decode(&tree, &crate::base::path::DocPath::root(), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        decoded.unwrap()
    }

    fn scope() -> Values {
        Values(json!({"context": {"n": 5, "t": "5", "word": "OK"}, "captured": {"cut": "the end"}}))
    }

    /// Decodes `spec` as the value of `evaluate:` and judges an action that printed and exited so; with the details
    /// behind the verdict. `last` is what convergence remembers.
    pub(super) fn judge_with(spec: &str, last: Option<f64>, stdout: &str, exit_code: i32) -> (String, Value) {
        let seen = Observation::exited(exit_code, stdout);
        let memory = last.map(|last| json!(last));
        let scope = scope();
        let judging = Judging { memory: memory.as_ref(), ..judging(&seen, &scope) };
        match answered(&evaluator(spec), judging) {
            Ok(judged) => (judged.verdict.to_string(), Value::Object(judged.details)),
            Err(error) => (format!("unresolved: {error}"), Value::Null),
        }
    }

    /// What is there to judge an action.
    fn judging<'a>(seen: &'a Observation, scope: &'a Values) -> Judging<'a> {
        Judging {
            seen: Some(seen),
            scope,
            action: Some("x"),
            memory: None,
            survey: None,
            file: None,
            answer: None,
            queried: None,
            form: None,
        }
    }

    /// Judges with an answer to the query of the evaluator, if it has one.
    fn answered(evaluate: &Evaluate, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let queried = match evaluate.query(judging).transpose()? {
            Some(query) => Some(Queried { result: jq::run(&query.filter, &query.text), stop: None }),
            None => None,
        };
        evaluate.judge(Judging { queried: queried.as_ref(), ..judging })
    }

    /// The judgement of what an action did.
    pub(super) fn judge_seen(spec: &str, seen: &Observation) -> Judged {
        let scope = scope();
        answered(&evaluator(spec), judging(seen, &scope)).unwrap()
    }

    /// What is odd about the keys of an evaluator.
    pub(super) fn checked(spec: &str) -> Vec<Oddity> {
        evaluator(spec).check(&mut Effort::new())
    }

    /// Decodes `spec` and does something with it and an action that printed and exited so.
    fn with_action<T>(
        spec: &str,
        stdout: &str,
        exit_code: i32,
        answer: Option<&Answer>,
        run: impl FnOnce(&Evaluate, Judging<'_>) -> T,
    ) -> T {
        let (seen, scope) = (Observation::exited(exit_code, stdout), scope());
        run(&evaluator(spec), Judging { answer, ..judging(&seen, &scope) })
    }

    /// The judgement of an action with what a model answered about it.
    pub(super) fn judge_answer(spec: &str, answer: &Answer, exit_code: i32) -> Judged {
        with_action(spec, "out", exit_code, Some(answer), |evaluate, judging| {
            evaluate.judge(judging).unwrap()
        })
    }

    /// The judgement of the answer to a prompt that asks for one in this form.
    pub(super) fn judge_formed(spec: &str, form: Option<&str>, stdout: &str, exit_code: i32) -> Judged {
        let form: Option<Form> = form.map(decoded);
        with_action(spec, stdout, exit_code, None, |evaluate, judging| {
            evaluate.judge(Judging { form: form.as_ref(), ..judging }).unwrap()
        })
    }

    /// What a model is asked about an action.
    pub(super) fn asked(spec: &str, stdout: &str, exit_code: i32) -> Question {
        let ask = |evaluate: &Evaluate, judging: Judging<'_>| evaluate.question(judging).unwrap().unwrap();
        with_action(spec, stdout, exit_code, None, ask)
    }

    /// Visits of one state, one after the other, with what it remembers between them.
    pub(super) struct Visits {
        evaluate: Evaluate,
        memory: Option<Value>,
        pub(super) action: Option<String>,
        pub(super) survey: Option<Surveyed>,
        pub(super) file: Option<FileRead>,
    }

    impl Visits {
        pub(super) fn of(spec: &str) -> Self {
            Self { evaluate: evaluator(spec), memory: None, action: None, survey: None, file: None }
        }

        pub(super) fn judge(&mut self, stdout: &str, exit_code: i32) -> Judged {
            let seen = Observation::exited(exit_code, stdout);
            let scope = scope();
            let judged = self.evaluate.judge(Judging {
                action: self.action.as_deref(),
                memory: self.memory.as_ref(),
                survey: self.survey.as_ref(),
                file: self.file.as_ref(),
                ..judging(&seen, &scope)
            });
            let judged = judged.unwrap();
            if judged.memory.is_some() {
                self.memory.clone_from(&judged.memory);
            }
            judged
        }
    }

    /// The verdict alone.
    pub(super) fn judge(spec: &str, stdout: &str, exit_code: i32) -> String {
        judge_with(spec, None, stdout, exit_code).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_strict_about_everything_but_blanks() {
        for (text, expected) in [(" 5\n", Some(5.0)), ("-1.5e3", Some(-1500.0)), ("inf", Some(f64::INFINITY))]
        {
            assert_eq!(number_in(text), expected, "{text}");
        }
        for text in ["", "5 errors", "85%", "1,000", "0x10", "1_000", "a\n5", "nan", "5\n6"] {
            assert_eq!(number_in(text), None, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_written_whole() {
        assert_eq!(number(42.0).to_string(), "42");
        assert_eq!(number(0.5).to_string(), "0.5");
    }
}
