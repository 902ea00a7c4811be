//! What a verdict is, and how an observation becomes one.
//!
//! Each evaluator is one file: the keys it takes in a loop file, and the function that judges. It is known to the
//! rest by its line in [`Evaluate`].

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::base::decode::tagged;
use crate::base::template::{Scope, Template};

pub mod field;
pub mod observation;
pub mod operator;
pub mod verdict;

mod classify;
mod convergence;
mod exit_code;
mod output_contains;
mod output_json;
mod output_numeric;

pub use classify::Classify;
pub use convergence::{Convergence, Direction};
pub use exit_code::ExitCode;
pub use output_contains::OutputContains;
pub use output_json::OutputJson;
pub use output_numeric::OutputNumeric;

use field::FieldError;
use observation::Observation;
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
    }
    later {
        "llm_structured" = "judging by a model comes with a later version",
        "diff_stall" = "it comes with a later version",
        "score_stall" = "it comes with a later version",
        "action_stall" = "it comes with a later version",
        "harbor_scorer" = "it comes with a later version",
        "mcp_result" = "MCP tools come with a later version",
    }
}

/// What an evaluator can see.
#[derive(Clone, Copy)]
pub struct Judging<'a> {
    /// What the state's action did; none for a state without an action.
    pub seen: Option<&'a Observation>,
    /// What its templates can see.
    pub scope: &'a dyn Scope,
    /// The number that the same state measured last, in this run.
    pub last_measure: Option<f64>,
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The evidence: which fields there are is fixed per evaluator.
    pub details: Map<String, Value>,
}

impl Judged {
    /// Makes a judgement; `details` is a JSON object.
    pub fn new(verdict: Verdict, mut details: Value) -> Self {
        let details = details.as_object_mut().map(std::mem::take).unwrap_or_default();
        Self { verdict, details }
    }

    /// Makes the judgement that the evaluation itself failed, with its reason.
    pub fn error(why: impl Into<String>) -> Self {
        Self::new(Verdict::error(), json!({ "error": why.into() }))
    }
}

/// The verdicts an evaluator can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdicts {
    /// These and `error` or `timeout` of the action.
    Only(&'static [&'static str]),
    /// Whatever the action prints.
    Any,
}

/// One way to judge.
pub trait Evaluator {
    /// Judges. An error means that a template of the evaluator itself has no value.
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError>;

    /// Returns the verdicts that can come out.
    fn verdicts(&self) -> Verdicts;

    /// Returns every template in the evaluator's keys, with the key.
    fn templates(&self) -> Vec<(&'static str, &Template)>;

    /// Returns what is odd about the evaluator's own keys, with the key, as warnings at load.
    fn oddities(&self) -> Vec<(&'static str, String)> {
        Vec::new()
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
    }

    /// Decodes `spec` as the value of `evaluate:` and judges an action that printed and exited so; with the details
    /// behind the verdict.
    pub(super) fn judge_with(spec: &str, last: Option<f64>, stdout: &str, exit_code: i32) -> (String, Value) {
        let mut problems = crate::base::diagnostic::Diagnostics::default();
        let tree = crate::definition::yaml::parse(spec, crate::base::node::FileId(0), &mut problems).unwrap();
        let evaluate = Evaluate::decode(&tree, &crate::base::path::DocPath::root(), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let scope = Values(json!({"context": {"n": 5, "t": "5", "word": "OK"}}));
        let seen = Observation::exited(exit_code, stdout);
        let judging = Judging { seen: Some(&seen), scope: &scope, last_measure: last };
        match evaluate.unwrap().judge(judging) {
            Ok(judged) => (judged.verdict.to_string(), Value::Object(judged.details)),
            Err(error) => (format!("unresolved: {error}"), Value::Null),
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
