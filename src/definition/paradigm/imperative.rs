//! `paradigm: imperative`: steps in a row, again and again until a condition holds.

use serde_json::{Value, json};

use super::paradigm_parts::{Judge, Work, done, empty, to};
use crate::base::decode::{Decode as _, Definitions, Record as _, record};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::{Node, NodeValue};
use crate::base::path::DocPath;
use crate::definition::assembled_tree::{entry, items, map, plain, put, text};

record! {
    /// Steps and the condition that ends them.
    pub struct Imperative {
        /// What is done, in turn.
        steps: Vec<Work>,
        /// How the result of the first step tells whether that was enough.
        condition: Option<Judge>,
        /// A command of its own that tells it.
        until: Option<Until>,
    }
}

record! {
    /// A command that tells whether the steps were enough.
    pub struct Until {
        /// The command.
        check: Work,
        /// How its result is judged.
        evaluator or "evaluate": Option<Judge>,
    }
}

/// Returns the schema of the keys; one of two has to be there.
pub(super) fn schema(definitions: &mut Definitions) -> Value {
    let mut schema = Imperative::object_schema(definitions);
    schema["anyOf"] = json!([{"required": ["condition"]}, {"required": ["until"]}]);
    schema
}

pub(super) fn expand(own: &Node, out: &mut Diagnostics) -> Option<Node> {
    let read = Imperative::decode(own, &DocPath::root(), out)?;
    let path = DocPath::root().key("steps");
    let written = own.get("steps")?;
    if read.steps.is_empty() {
        empty(&path, "step", out);
        return None;
    }
    let evaluate = match (&read.condition, &read.until) {
        (Some(condition), None) => {
            let at = own.get("condition")?;
            let mut judge = condition.0.clone();
            // The condition is about the first step unless it names another one.
            if judge.get("source").is_none() {
                put(&mut judge, entry("source", text(&at.span, "step_0")));
            }
            let keys =
                vec![entry("check_condition", judge), to("on_yes", "done", at), to("on_no", "step_0", at)];
            entry("evaluate", map(&at.span, keys))
        }
        (None, Some(until)) => {
            let at = own.get("until")?.get("check")?;
            let judge = until.evaluator.as_ref().map(|judge| judge.entry("evaluate"));
            let routes = judge.into_iter().chain([to("on_yes", "done", at), to("on_no", "step_0", at)]);
            let routes = routes.chain(until.check.check(at));
            until.check.state("evaluate", at, routes.collect())
        }
        (None, None) => {
            let place = FindingPlace::Value(DocPath::root().key("paradigm"));
            let message = "the key `condition` or `until` is missing";
            let help = "write `condition: {type: exit_code, target: 0}` to judge the first step, \
                        or `until: {check: COMMAND}`";
            out.push(Diagnostic::error("missing-key", place, message).help(help));
            return None;
        }
        (Some(_), Some(_)) => {
            let place = FindingPlace::Key(DocPath::root().key("until"));
            let message = "`condition` and `until` say the same in two ways";
            let other = FindingPlace::Key(DocPath::root().key("condition"));
            let finding = Diagnostic::error("duplicate-key", place, message);
            out.push(finding.related(other, "the other one").help("keep one"));
            return None;
        }
    };
    let mut states = Vec::new();
    for (index, (step, at)) in read.steps.iter().zip(items(written)).enumerate() {
        let next = match read.steps.get(index + 1) {
            Some(_) => format!("step_{}", index + 1),
            None => "evaluate".to_owned(),
        };
        let mut state = step.state(&format!("step_{index}"), at, vec![to("next", &next, at)]);
        if let (0, NodeValue::Map(keys), Some(_)) = (index, &mut state.value.value, &read.condition) {
            keys.push(entry("capture_exit", plain(&at.span, "true")));
        }
        states.push(state);
    }
    states.push(evaluate);
    states.push(done("done", written));
    Some(map(&own.span, vec![to("initial", "step_0", written), entry("states", map(&written.span, states))]))
}
