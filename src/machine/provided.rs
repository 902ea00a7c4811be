//! The variables that a loop has without declaring them, where it names them. Loops of little-loops rely on them.

use serde_json::{Map, Value, json};

use super::Machine;
use crate::base::sum::Sum;

/// The names of all of them.
pub const NAMES: [&str; 9] = [
    RUN_DIR,
    INPUT_HASH,
    "max_steps",
    "max_iterations",
    "readiness_threshold",
    "outcome_threshold",
    "include",
    "design_tokens_context",
    "design_guidance_context",
];

/// The directory for files of the run's own.
const RUN_DIR: &str = "run_dir";

/// The beginning of the digest of the positional input.
const INPUT_HASH: &str = "input_hash";

/// How many digits it has.
const HASH_DIGITS: usize = 12;

/// What a program provides to a loop.
#[derive(Clone, Debug, Default)]
pub struct Provided {
    names: Vec<&'static str>,
    run_dir: String,
    max_iterations: Option<u32>,
}

impl Provided {
    /// Provides what the texts of a loop mention, with the directory of its run.
    pub fn new(texts: &[&str], run_dir: &str) -> Self {
        let is_mentioned = |name: &&str| {
            // The text is searched without being parsed; a mention too many only provides what
            // nobody reads.
            let mention = format!("context.{name}");
            texts.iter().any(|text| text.contains(&mention))
        };
        let names = NAMES.into_iter().filter(is_mentioned).collect();
        Self { names, run_dir: with_slash(run_dir), max_iterations: None }
    }

    /// The same with a cap on passes from the command line.
    #[must_use]
    pub fn at_most(self, max_iterations: Option<u32>) -> Self {
        Self { max_iterations, ..self }
    }

    /// Returns the values that do not depend on the input, for variables that the loop itself leaves absent or empty.
    pub(super) fn values<'p>(
        &'p self,
        machine: &'p Machine,
        raw: &'p Map<String, Value>,
    ) -> impl Iterator<Item = (&'static str, Value)> + 'p {
        let iterations = self.max_iterations.unwrap_or(machine.limits.iterations.limit);
        let value = move |name: &str| match name {
            RUN_DIR => Some(json!(self.run_dir)),
            "max_steps" => Some(json!(machine.limits.steps.map_or(iterations, |cap| cap.limit))),
            "max_iterations" => Some(json!(iterations)),
            // The thresholds and the empty texts below are what little-loops gives without a
            // configuration.
            "readiness_threshold" => Some(json!(85)),
            "outcome_threshold" => Some(json!(65)),
            "include" | "design_tokens_context" | "design_guidance_context" => Some(json!("")),
            _ => None,
        };
        // A path that begins with nothing would lead to the root of the file system.
        let is_open = |name: &str| match raw.get(name) {
            None => true,
            Some(written) => name == RUN_DIR && (written == "" || written.is_null()),
        };
        let is_declared = |name: &str| {
            let variables = machine.parameters.keys().chain(&machine.required_inputs);
            variables.chain(machine.context.keys()).any(|declared| declared.as_str() == name)
        };
        let names = NAMES.into_iter().filter(move |name| self.names.contains(name) || is_declared(name));
        names.filter(move |name| is_open(name)).filter_map(move |name| Some((name, value(name)?)))
    }

    /// Returns the beginning of the digest of an input.
    pub(super) fn hash(&self, input: Option<&Value>) -> Option<(&'static str, Value)> {
        let text = input?.as_str().filter(|_| self.names.contains(&INPUT_HASH))?;
        let digest = Sum::of(text.as_bytes()).to_string();
        Some((INPUT_HASH, json!(digest[..HASH_DIGITS])))
    }
}

/// Lets the variables of a run that was moved, or that begins with those of another one, name its own directory.
pub fn rebase(context: &mut Map<String, Value>, run_dir: &str) {
    let Some(old) = context.get(RUN_DIR).and_then(Value::as_str).map(str::to_owned) else { return };
    let new = with_slash(run_dir);
    // Only a directory that a run was given is moved: one of somebody's own stays where it is.
    if is_of_a_run(&old) && old != new {
        for value in context.values_mut() {
            // Other variables may have been made of it.
            replace(value, &old, &new);
        }
    }
}

fn replace(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text.contains(old) => *text = text.replace(old, new),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, old, new)),
        Value::Object(map) => map.values_mut().for_each(|value| replace(value, old, new)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Tells whether a directory is one that a run was given, and not one of somebody's own.
fn is_of_a_run(path: &str) -> bool {
    let mut parts = path.trim_end_matches('/').rsplit('/');
    parts.next().is_some_and(|name| name.strip_suffix(".dir").is_some()) && parts.next() == Some(".running")
}

fn with_slash(path: &str) -> String {
    if path.ends_with('/') { path.to_owned() } else { format!("{path}/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_moved_knows_its_directory() {
        let old = "/a/.loops/.running/x-1.dir/";
        let mut context = json!({"run_dir": old, "out": format!("{old}out"), "all": [old], "n": 1});
        let context = context.as_object_mut().unwrap();
        rebase(context, "/b/.loops/.running/x-1.dir");
        let new = "/b/.loops/.running/x-1.dir/";
        let expected = json!({"run_dir": new, "out": format!("{new}out"), "all": [new], "n": 1});
        assert_eq!(Value::Object(context.clone()), expected);
        // That of the run before, which this one was rewound from.
        let mut other = json!({"run_dir": "/b/.loops/.running/x-0.dir/"});
        rebase(other.as_object_mut().unwrap(), "/b/.loops/.running/x-1.dir");
        assert_eq!(other, json!({"run_dir": new}));
        // A directory of somebody's own stays.
        let mut own = json!({"run_dir": "/tmp/mine/"});
        rebase(own.as_object_mut().unwrap(), "/b/.loops/.running/x-1.dir");
        assert_eq!(own, json!({"run_dir": "/tmp/mine/"}));
    }
}
