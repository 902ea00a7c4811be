//! What templates can see at this moment of a run.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::Engine;
use super::event::SubLoopComplete;
use super::state_result::StateResult;
use crate::base::diagnostic::nearest;
use crate::base::name::VarName;
use crate::base::path::Segment;
use crate::base::template::{Found, Missing, Namespace, RESULT_FIELDS, Scope, last_messages, walk};
use crate::base::text::{json_in, one_line};
use crate::base::time::{human, millis};
use crate::board;
use crate::evaluate::Evaluate;
use crate::evaluate::field::Field;
use crate::evaluate::observation::{Cause, Observation, Stop};
use crate::evaluate::verdict::Verdict;
use crate::machine::{Action, Step, Target, run_variables};

/// A view of the engine for templates.
pub(super) struct RunScope<'e, 'm>(&'e Engine<'m>);

impl<'m> Engine<'m> {
    pub(super) fn scope(&self) -> RunScope<'_, 'm> {
        RunScope(self)
    }
}

impl Scope for RunScope<'_, '_> {
    fn get(&self, namespace: Namespace, path: &[Segment]) -> Result<Found<'_>, Missing> {
        let (run, start) = (self.0.run(), self.0.start());
        match namespace {
            Namespace::Context => self.context(path),
            Namespace::Env => run_variables::env(&start.env, path),
            Namespace::Captured => self.captured(path),
            Namespace::Prev => {
                let prev = run.prev().ok_or_else(|| Missing {
                    nearest: None,
                    why: Some("no state with an action ran before this one".to_owned()),
                })?;
                result_field("prev", prev, path)
            }
            Namespace::Result => self.result(path),
            Namespace::State => match key(path) {
                Some("name") => Ok(text(run.current().map_or_else(String::new, ToString::to_string))),
                Some("iteration") => Ok(number(run.iteration())),
                Some("step") => Ok(number(run.step())),
                Some("attempt") => Ok(number(run.attempt())),
                wanted => Err(among_fields(namespace, wanted)),
            },
            Namespace::Loop => self.r#loop(path),
            Namespace::Param => self.param(path),
            Namespace::Messages => self.messages(path),
            Namespace::Criteria => self.criteria(path),
            Namespace::Board => self.board(path),
        }
    }

    fn is_cut(&self, namespace: Namespace, path: &[Segment]) -> bool {
        let run = self.0.run();
        let (result, field) = match (namespace, path) {
            (Namespace::Prev, field) => (run.prev(), field),
            (Namespace::Captured, [Segment::Key(name), field @ ..]) => (run.capture(name), field),
            _ => return false,
        };
        result.is_some_and(|result| is_cut(result, field))
    }

    fn is_printed(&self, namespace: Namespace, path: &[Segment]) -> bool {
        match namespace {
            // Whatever an action or an agent may have written is bounded in prompts, and marked
            // there as not ours.
            Namespace::Captured
            | Namespace::Prev
            | Namespace::Result
            | Namespace::Loop
            | Namespace::Messages
            | Namespace::Board => true,
            // What a sub-loop sees of the captures around it is not a variable of its own.
            Namespace::Context => {
                matches!(path, [Segment::Key(name)] if !self.0.start().context.contains_key(name))
            }
            Namespace::Param => self.is_printed_param(path),
            Namespace::Env | Namespace::State | Namespace::Criteria => false,
        }
    }
}

/// A view of the engine for a check that is made once more: its result is what it did now, and its parameters are its own,
/// whatever state the run stands in.
pub(super) struct CheckScope<'e, 'm> {
    run: RunScope<'e, 'm>,
    step: &'e Step,
    result: &'e StateResult,
}

impl<'m> Engine<'m> {
    pub(super) fn scope_of_check<'e>(
        &'e self,
        step: &'e Step,
        result: &'e StateResult,
    ) -> CheckScope<'e, 'm> {
        CheckScope { run: self.scope(), step, result }
    }
}

impl CheckScope<'_, '_> {
    /// Returns what is asked of the result of the check itself, with the name by which it is asked for.
    fn own<'p>(&self, namespace: Namespace, path: &'p [Segment]) -> Option<(&'p str, &'p [Segment])> {
        let (Namespace::Captured, [Segment::Key(name), field @ ..]) = (namespace, path) else { return None };
        let is_capture = self.step.capture.as_ref().is_some_and(|capture| capture.as_str() == name);
        // A capture goes before the result of a state with the same name.
        let is_state = self.step.name.as_str() == name && !self.run.0.run().captured().contains_key(name);
        (is_capture || is_state).then_some((name.as_str(), field))
    }
}

impl Scope for CheckScope<'_, '_> {
    fn get(&self, namespace: Namespace, path: &[Segment]) -> Result<Found<'_>, Missing> {
        if let Some((name, field)) = self.own(namespace, path) {
            return result_field(&format!("captured.{name}"), self.result, field);
        }
        if namespace == Namespace::Param {
            return param_among(Some(&self.step.params), path, self);
        }
        self.run.get(namespace, path)
    }

    fn is_cut(&self, namespace: Namespace, path: &[Segment]) -> bool {
        match self.own(namespace, path) {
            Some((_, field)) => is_cut(self.result, field),
            None => self.run.is_cut(namespace, path),
        }
    }

    fn is_printed(&self, namespace: Namespace, path: &[Segment]) -> bool {
        self.run.is_printed(namespace, path)
    }
}

impl RunScope<'_, '_> {
    fn context(&self, path: &[Segment]) -> Result<Found<'_>, Missing> {
        let context = &self.0.start().context;
        let Some((first, rest)) = path.split_first() else {
            return Ok(Found::Json(Cow::Owned(Value::Object(context.clone()))));
        };
        // A key may look like a number: `context.7`.
        let name = match first {
            Segment::Key(name) => name.clone(),
            Segment::Index(index) => index.to_string(),
        };
        let Some(value) = context.get(&name) else {
            // A sub-loop that sees the captures around it may take them for variables.
            let capture = self.0.start().captured.get(&name).filter(|_| rest.is_empty());
            return capture.map(|result| output(result)).ok_or_else(|| Missing {
                nearest: nearest(&name, context.keys().map(String::as_str))
                    .map(|near| format!("context.{near}")),
                why: None,
            });
        };
        walk(&format!("context.{name}"), value, rest).map(|value| Found::Json(Cow::Borrowed(value)))
    }

    /// Looks a parameter up among those of the state that the run stands in.
    fn param(&self, path: &[Segment]) -> Result<Found<'_>, Missing> {
        let machine = self.0.machine();
        let current = self.0.run().current().and_then(|name| machine.find(name));
        let params = match current {
            Some(Target::Step(id)) => Some(&machine.step(id).params),
            Some(Target::End(_)) | None => None,
        };
        param_among(params, path, self)
    }

    fn is_printed_param(&self, path: &[Segment]) -> bool {
        let machine = self.0.machine();
        let current = self.0.run().current().and_then(|name| machine.find(name));
        let Some(Target::Step(id)) = current else { return false };
        let mut params = machine.step(id).params.iter();
        let value = params.find(|(name, _)| key(path) == Some(name.as_str())).map(|(_, value)| value);
        let template = value.and_then(Field::as_template);
        template.is_some_and(|template| {
            template.expressions().any(|inner| self.is_printed(inner.namespace, &inner.path))
        })
    }

    fn captured(&self, path: &[Segment]) -> Result<Found<'_>, Missing> {
        let run = self.0.run();
        let name = match path.first() {
            Some(Segment::Key(name)) => name.clone(),
            Some(Segment::Index(index)) => index.to_string(),
            None => return Err(Missing::default()),
        };
        let result = run.capture(&name).ok_or_else(|| {
            let near = nearest(&name, run.capture_names()).map(|near| format!("captured.{near}"));
            Missing { nearest: near, why: Some(format!("`{name}` was not captured on the way here")) }
        })?;
        // The answer of a person has fields of its own, which hide those of a result.
        if let Some(found) = self.approval_field(result, &path[1..]) {
            return Ok(found);
        }
        let prefix = format!("captured.{name}");
        match run.sub_loop_of(&name) {
            Some(sub) => sub_loop_field(&prefix, result, sub, &path[1..]),
            None => result_field(&prefix, result, &path[1..]),
        }
    }

    /// Looks for what only the answer of a person has: its words for a verdict, the text that they make, its reason.
    fn approval_field<'r>(&self, result: &'r StateResult, path: &[Segment]) -> Option<Found<'r>> {
        let machine = self.0.machine();
        let Some(Target::Step(id)) = machine.find(&result.state) else { return None };
        let Some(Action::Approval(_)) = machine.step(id).action else { return None };
        let seen = &result.seen;
        let word = match result.verdict.as_ref().map(Verdict::as_str) {
            _ if seen.timed_out() => "timeout",
            Some("yes") => "approve",
            Some("no") => "reject",
            Some(other) => other,
            None => "",
        };
        // Only where nothing comes behind it: these are texts.
        match (key(path), path.len()) {
            (Some("verdict"), 1) => Some(text(word.to_owned())),
            (Some("edit"), 1) => Some(Found::Text(Cow::Borrowed(seen.stdout.without_line_end()))),
            (Some("reason"), 1) => Some(Found::Text(Cow::Borrowed(seen.stderr.without_line_end()))),
            _ => None,
        }
    }

    fn result(&self, path: &[Segment]) -> Result<Found<'_>, Missing> {
        let evaluation = self.0.run().evaluation().ok_or_else(|| Missing {
            nearest: None,
            why: Some("nothing was evaluated before this state".to_owned()),
        })?;
        match path {
            [Segment::Key(key)] if key == "verdict" => {
                Ok(Found::Text(Cow::Borrowed(evaluation.verdict.as_str())))
            }
            [Segment::Key(key), rest @ ..] if key == "details" => {
                let Some((Segment::Key(name), rest)) = rest.split_first() else {
                    return Ok(Found::Json(Cow::Owned(Value::Object(evaluation.details.clone()))));
                };
                let value = evaluation.details.get(name).ok_or_else(|| {
                    let keys = evaluation.details.keys().map(String::as_str);
                    // With no name near it, the first one at least shows what such a name looks
                    // like.
                    let near = nearest(name, keys.clone()).or_else(|| keys.clone().next());
                    Missing { nearest: near.map(|near| format!("result.details.{near}")), why: None }
                })?;
                walk(&format!("result.details.{name}"), value, rest)
                    .map(|value| Found::Json(Cow::Borrowed(value)))
            }
            _ => Err(among_fields(Namespace::Result, key(path))),
        }
    }

    fn r#loop(&self, path: &[Segment]) -> Result<Found<'_>, Missing> {
        let start = self.0.start();
        let elapsed = self.0.elapsed();
        match key(path) {
            Some("name") => Ok(Found::Text(Cow::Borrowed(start.event.r#loop.as_str()))),
            Some("run_id") => Ok(Found::Text(Cow::Borrowed(&start.event.run_id))),
            Some("started_at") => Ok(text(start.at.to_string())),
            Some("elapsed_ms") => Ok(number(millis(elapsed))),
            Some("elapsed") => Ok(text(human(elapsed))),
            Some("run_dir") => Ok(Found::Text(Cow::Borrowed(&start.run_dir))),
            Some("continuation") => Ok(Found::Text(Cow::Borrowed(self.0.run().continuation().unwrap_or("")))),
            wanted => Err(among_fields(Namespace::Loop, wanted)),
        }
    }

    /// What the one state knows that puts the results of the criteria together.
    fn criteria(&self, path: &[Segment]) -> Result<Found<'_>, Missing> {
        let mut steps = self.0.machine().steps();
        let found = steps.find_map(|(id, step)| match &step.evaluate {
            Some(Evaluate::Criteria(criteria)) if criteria.is_own() => Some((id, criteria)),
            Some(_) | None => None,
        });
        let (id, criteria) = found.ok_or_else(|| Missing {
            nearest: None,
            why: Some("no state has the evaluator `criteria` with `results`".to_owned()),
        })?;
        let state = criteria
            .state(self.0.run().memories().get(&id), self)
            .map_err(|error| Missing { nearest: None, why: Some(error.to_string()) })?;
        match key(path) {
            Some("unmet") => Ok(text(state.unmet().collect::<Vec<_>>().join(", "))),
            Some("next_step") => Ok(text(state.next_step().unwrap_or_default().into_owned())),
            wanted => Err(among_fields(Namespace::Criteria, wanted)),
        }
    }

    fn board(&self, path: &[Segment]) -> Result<Found<'_>, Missing> {
        let wanted = key(path);
        let field = wanted.and_then(|field| self.0.run().board().text(&self.0.machine().board, field));
        field.map(text).ok_or_else(|| among("board", wanted, board::FIELDS))
    }

    fn messages(&self, path: &[Segment]) -> Result<Found<'_>, Missing> {
        let messages = self.0.run().messages();
        let shown = match key(path) {
            None => messages,
            Some(call) => {
                let count = last_messages(call).ok_or_else(|| among("messages", Some(call), &["last(3)"]))?;
                // Fewer than were asked for are simply all of them.
                &messages[messages.len().saturating_sub(count)..]
            }
        };
        Ok(text(shown.join("\n")))
    }
}

/// Looks a parameter up. It is worked out where it is used; it cannot refer to another one.
fn param_among<'p>(
    params: Option<&'p IndexMap<VarName, Field<Value>>>,
    path: &[Segment],
    scope: &dyn Scope,
) -> Result<Found<'p>, Missing> {
    let params = params.filter(|params| !params.is_empty()).ok_or_else(|| Missing {
        nearest: None,
        why: Some("parameters exist in states with a fragment that declares them".to_owned()),
    })?;
    let name = match path.first() {
        Some(Segment::Key(name)) => name.clone(),
        Some(Segment::Index(index)) => index.to_string(),
        None => return Err(Missing::default()),
    };
    let known = || params.keys().map(VarName::as_str);
    let value = params.iter().find(|(known, _)| known.as_str() == name).map(|(_, value)| value);
    let value = value.ok_or_else(|| Missing {
        nearest: nearest(&name, known()).map(|near| format!("param.{near}")),
        why: None,
    })?;
    match value {
        Field::Literal(value) => {
            walk(&format!("param.{name}"), value, &path[1..]).map(|value| Found::Json(Cow::Borrowed(value)))
        }
        Field::Template(template) if path.len() == 1 => template
            .render(scope)
            .map(text)
            .map_err(|error| Missing { nearest: None, why: Some(error.to_string()) }),
        Field::Template(_) => {
            Err(Missing { nearest: Some(format!("param.{name}")), why: Some("it is a text".to_owned()) })
        }
    }
}

/// Tells whether a field of a result is only the end of what it was.
fn is_cut(result: &StateResult, field: &[Segment]) -> bool {
    let seen = &result.seen;
    match key(field) {
        // The whole output, as text or as JSON, may be cut.
        None | Some("output" | "json") => seen.stdout.is_truncated(),
        Some("stderr") => seen.stderr.is_truncated(),
        Some(_) => false,
    }
}

fn output(result: &StateResult) -> Found<'_> {
    Found::Text(Cow::Borrowed(result.seen.stdout.without_line_end()))
}

/// Looks into the result of a state: output, `json`, stderr, `exit_code`, `duration_ms`, verdict, state.
fn result_field<'r>(prefix: &str, result: &'r StateResult, path: &[Segment]) -> Result<Found<'r>, Missing> {
    let seen = &result.seen;
    match (key(path), path.len()) {
        (None, 0) | (Some("output"), 1) => Ok(output(result)),
        (Some("stderr"), 1) => Ok(Found::Text(Cow::Borrowed(seen.stderr.without_line_end()))),
        (Some("exit_code"), 1) => Ok(number(seen.exit_code)),
        (Some("duration_ms"), 1) => Ok(number(millis(seen.duration))),
        (Some("state"), 1) => Ok(Found::Text(Cow::Borrowed(result.state.as_str()))),
        (Some("verdict"), 1) => {
            Ok(Found::Text(Cow::Borrowed(result.verdict.as_ref().map_or("", |verdict| verdict.as_str()))))
        }
        (Some("failure_type"), 1) => Ok(Found::Text(Cow::Borrowed(failure_type(seen)))),
        (Some("timeout_kind"), 1) => Ok(Found::Text(Cow::Borrowed(timeout_kind(seen)))),
        (Some("json"), _) => document(prefix, seen.stdout.as_str(), &path[1..]),
        (wanted, _) => Err(among(prefix, wanted, &RESULT_FIELDS)),
    }
}

/// Returns which of its limits an action met, in the words of little-loops.
fn timeout_kind(seen: &Observation) -> &'static str {
    match seen.stop {
        Some(stop) if !stop.is_own_timeout() => "",
        Some(Stop::IdleTimeout) => "idle",
        Some(_) => "wall",
        None => "",
    }
}

/// Returns the kind of a failure, in the words of little-loops: whether another try may help.
fn failure_type(seen: &Observation) -> &'static str {
    // A limit of an action and a failed one are told apart by `timeout_kind`.
    match seen.cause {
        _ if seen.succeeded() => "",
        Some(Cause::Transient | Cause::Quota) => "transient",
        Some(Cause::Missing | Cause::Unavailable | Cause::OverBudget) => "non_recoverable",
        Some(Cause::Failed | Cause::Form | Cause::OutOfTurns | Cause::Misunderstood) | None => "real",
    }
}

/// Looks into the result of a state that ran a loop: what the state came to, how the loop ended, and its captures.
fn sub_loop_field<'r>(
    prefix: &str,
    result: &'r StateResult,
    sub: &'r SubLoopComplete,
    path: &[Segment],
) -> Result<Found<'r>, Missing> {
    result_field(prefix, result, path)
        // A field of the result comes first; a capture of the sub-loop may have the same name.
        .or_else(|missing| given_back(prefix, sub, path).unwrap_or(Err(missing)))
}

/// Looks into what a sub-loop gave back: its captures, those that its own sub-loops gave back to it below the name of
/// the state that ran them, and how it ended.
fn given_back<'r>(
    prefix: &str,
    sub: &'r SubLoopComplete,
    path: &[Segment],
) -> Option<Result<Found<'r>, Missing>> {
    let name = key(path)?;
    let below = format!("{prefix}.{name}");
    let result = sub.captured.get(name);
    // A capture has the name that the sub-loop gave it, and stands for the state that made it.
    let state = result.map_or(name, |result| result.state.as_str());
    let inner = sub.sub_loops.iter().find(|(ran, _)| ran.as_str() == state).map(|(_, inner)| inner);
    match (result, inner) {
        (Some(result), Some(inner)) => Some(sub_loop_field(&below, result, inner, &path[1..])),
        (Some(result), None) => Some(result_field(&below, result, &path[1..])),
        (None, Some(inner)) => given_back(&below, inner, &path[1..]),
        (None, None) => Some(Ok(text(sub.ending(name).filter(|_| path.len() == 1)?))),
    }
}

/// Looks into an output that is JSON, or has it in a code fence. The whole of it is inserted as it would be written.
fn document<'f>(prefix: &str, output: &str, path: &[Segment]) -> Result<Found<'f>, Missing> {
    let document = json_in(output).ok_or_else(|| {
        let why = match one_line(output, 60) {
            line if line.is_empty() => "the output is empty, and no JSON".to_owned(),
            line => format!("the output is not JSON: {line}"),
        };
        Missing { nearest: Some(format!("{prefix}.output")), why: Some(why) }
    })?;
    // As one line of JSON, whatever blanks and fences stood around it.
    if path.is_empty() {
        return Ok(text(document.to_string()));
    }
    walk(&format!("{prefix}.json"), &document, path).map(|value| Found::Json(Cow::Owned(value.clone())))
}

fn key(path: &[Segment]) -> Option<&str> {
    match path.first() {
        Some(Segment::Key(key)) => Some(key),
        Some(Segment::Index(_)) | None => None,
    }
}

fn among_fields(namespace: Namespace, wanted: Option<&str>) -> Missing {
    among(namespace.word(), wanted, namespace.fields().unwrap_or(&[]))
}

fn among(prefix: &str, wanted: Option<&str>, known: &[&str]) -> Missing {
    let near =
        wanted.and_then(|wanted| nearest(wanted, known.iter().copied())).or_else(|| known.first().copied());
    Missing { nearest: near.map(|near| format!("{prefix}.{near}")), why: None }
}

fn text<'t>(text: String) -> Found<'t> {
    Found::Text(Cow::Owned(text))
}

fn number<'t>(number: impl Into<serde_json::Number>) -> Found<'t> {
    Found::Json(Cow::Owned(json!(number.into())))
}
