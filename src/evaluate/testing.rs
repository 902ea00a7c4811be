//! For tests: a scope of plain JSON, and what an evaluator, as a loop file writes it, makes of an output.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::effort::PatternEffort;
use super::evaluator::Oddity;
use super::field::FieldError;
use super::form::AnswerForm;
use super::jq_question::Queried;
use super::model::{ModelAnswer, Question};
use super::observation::Observation;
use super::survey::Surveyed;
use super::{ANY_DETAILS, Evaluate, FileRead, Judged, Judging, jq};
use crate::base::decode::Decode;
use crate::base::path::Segment;
use crate::base::template::{Found, Missing, Namespace, Scope, walk};

pub(super) struct TestValues(pub(super) Value);

impl Scope for TestValues {
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

fn scope() -> TestValues {
    TestValues(json!({"context": {"n": 5, "t": "5", "word": "OK"}, "captured": {"cut": "the end"}}))
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
fn judging<'a>(seen: &'a Observation, scope: &'a TestValues) -> Judging<'a> {
    Judging { action: Some("x"), ..Judging::of_end(seen, scope) }
}

/// Judges with an answer to the query of the evaluator, if it has one.
fn answered(evaluate: &Evaluate, judging: Judging<'_>) -> Result<Judged, FieldError> {
    let queried = match evaluate.query(judging).transpose()? {
        Some(query) => Some(Queried { result: jq::run(&query.filter, &query.text), stop: None }),
        None => None,
    };
    Ok(declared(evaluate, evaluate.judge(Judging { queried: queried.as_ref(), ..judging })?))
}

/// Checks that the details of a judgement are among those that the evaluator says it has.
fn declared(evaluate: &Evaluate, judged: Judged) -> Judged {
    if let Some(known) = evaluate.details() {
        let known = |key: &&String| known.contains(&key.as_str()) || ANY_DETAILS.contains(&key.as_str());
        let undeclared: Vec<_> = judged.details.keys().filter(|key| !known(key)).collect();
        assert!(undeclared.is_empty(), "{undeclared:?} of {} are in no `fn details`", evaluate.name());
    }
    judged
}

/// The judgement of what an action did.
pub(super) fn judge_seen(spec: &str, seen: &Observation) -> Judged {
    let scope = scope();
    answered(&evaluator(spec), judging(seen, &scope)).unwrap()
}

/// What is odd about the keys of an evaluator.
pub(super) fn checked(spec: &str) -> Vec<Oddity> {
    evaluator(spec).check(&mut PatternEffort::new())
}

/// Decodes `spec` and does something with it and an action that printed and exited so.
fn with_action<T>(
    spec: &str,
    stdout: &str,
    exit_code: i32,
    answer: Option<&ModelAnswer>,
    run: impl FnOnce(&Evaluate, Judging<'_>) -> T,
) -> T {
    let (seen, scope) = (Observation::exited(exit_code, stdout), scope());
    run(&evaluator(spec), Judging { answer, ..judging(&seen, &scope) })
}

/// The judgement of an action with what a model answered about it.
pub(super) fn judge_answer(spec: &str, answer: &ModelAnswer, exit_code: i32) -> Judged {
    with_action(spec, "out", exit_code, Some(answer), |evaluate, judging| {
        declared(evaluate, evaluate.judge(judging).unwrap())
    })
}

/// The judgement of the answer to a prompt that asks for one in this form.
pub(super) fn judge_formed(spec: &str, form: Option<&str>, stdout: &str, exit_code: i32) -> Judged {
    let form: Option<AnswerForm> = form.map(decoded);
    with_action(spec, stdout, exit_code, None, |evaluate, judging| {
        declared(evaluate, evaluate.judge(Judging { form: form.as_ref(), ..judging }).unwrap())
    })
}

/// What a model is asked about an action.
pub(super) fn asked(spec: &str, stdout: &str, exit_code: i32) -> Question {
    let ask = |evaluate: &Evaluate, judging: Judging<'_>| evaluate.question(judging).unwrap().unwrap();
    with_action(spec, stdout, exit_code, None, ask)
}

/// Visits of one state, one after the other, with what it remembers between them.
pub(super) struct TestVisits {
    evaluate: Evaluate,
    memory: Option<Value>,
    pub(super) action: Option<String>,
    pub(super) survey: Option<Surveyed>,
    pub(super) file: Option<FileRead>,
}

impl TestVisits {
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
