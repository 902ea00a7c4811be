//! Writes cases as people write them in test files.

use std::fmt::Write as _;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::mock_witness::mock;
use super::proof::WalkStep;
use super::test_file::GENERATED;
use crate::base::path::Segment;
use crate::base::template::{Namespace, Template, TemplateFallback};
use crate::definition::schema::{Parameter, ParameterType};
use crate::machine::{Machine, Target};

/// A case to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseText {
    /// What it shows.
    pub name: String,
    /// What stands above it in a comment.
    pub comment: Option<String>,
    /// What is given.
    pub given: Map<String, Value>,
    /// The mocks of each visit, by the names of the states.
    pub mocks: IndexMap<String, Vec<Value>>,
    /// What checks come to in the closing pass, where that is something else.
    pub closing: IndexMap<String, Value>,
    /// What is expected.
    pub expect: Map<String, Value>,
}

impl CaseText {
    /// Makes a case of a walk through the model, if each of its steps has a mock.
    pub fn of_walk(name: String, way: &[WalkStep], machine: &Machine) -> Option<Self> {
        let mut mocks: IndexMap<String, Vec<Value>> = IndexMap::new();
        for (at, WalkStep { state, departure }) in way.iter().enumerate() {
            match (machine.find(state)?, departure) {
                (Target::Step(id), Some(departure)) => {
                    let step = machine.step(id);
                    let is_work = step.action.is_some() || step.evaluate.as_ref().is_some_and(|it| it.asks());
                    let mock = mock(step, departure);
                    if is_work {
                        mocks.entry(state.to_string()).or_default().push(mock?);
                    } else if mock.is_none() && step.evaluate.is_some() {
                        return None;
                    }
                }
                (Target::Step(id), None) => {
                    // It is entered, and what it comes to does not matter any more.
                    let first = crate::machine::routing::departures(machine.step(id)).into_iter().next()?;
                    if machine.step(id).action.is_some() {
                        let mut visit = mock(machine.step(id), &first)?;
                        // On from here leads only what a resume enters.
                        if let Some(visit) = visit.as_object_mut().filter(|_| at + 1 < way.len()) {
                            visit.extend(["killed", "resume"].map(|key| (key.to_owned(), true.into())));
                        }
                        mocks.entry(state.to_string()).or_default().push(visit);
                    }
                }
                (Target::End(id), _) => {
                    if machine.end(id).closing.is_some() {
                        mocks.entry(state.to_string()).or_default().push(json!({"exit": 0}));
                    }
                }
            }
        }
        let comment = Some(GENERATED.to_owned());
        Some(Self { name, comment, given: given(machine), mocks, ..Self::default() })
    }

    /// Returns the mocks of a state in the shortest form. A visit that resumes a run is one of a list.
    fn mocked(&self, state: &str, visits: &[Value]) -> Value {
        let is_alike =
            visits.iter().all(|visit| visit == &visits[0] && visit.get("resume") != Some(&true.into()));
        let listed = || Value::Array(visits.to_vec());
        match (visits.first(), self.closing.get(state)) {
            (_, Some(closing)) => json!({"visits": listed(), "closing_pass": closing}),
            (Some(first), None) if is_alike => first.clone(),
            (Some(_) | None, None) => listed(),
        }
    }

    /// Writes it as an item of a list that begins in this column.
    pub fn write(&self, column: usize) -> String {
        let indent = " ".repeat(column);
        let mut out = String::new();
        if let Some(comment) = &self.comment {
            let _ = writeln!(out, "{indent}# {comment}");
        }
        let _ = writeln!(out, "{indent}- name: {}", scalar(&self.name));
        if !self.given.is_empty() {
            let _ = writeln!(out, "{indent}  given: {}", flow(&Value::Object(self.given.clone())));
        }
        if !self.mocks.is_empty() {
            let _ = writeln!(out, "{indent}  mocks:");
        }
        for (state, visits) in &self.mocks {
            let _ = writeln!(out, "{indent}    {}: {}", scalar(state), flow(&self.mocked(state, visits)));
        }
        if !self.expect.is_empty() {
            let _ = writeln!(out, "{indent}  expect:");
        }
        for (key, value) in &self.expect {
            let _ = writeln!(out, "{indent}    {key}: {}", flow(value));
        }
        out
    }
}

/// Returns values for what a loop needs before it begins.
pub fn given(machine: &Machine) -> Map<String, Value> {
    let required = machine.parameters.iter().filter(|(_, parameter)| parameter.required);
    let params: Map<String, Value> =
        required.map(|(name, parameter)| (name.to_string(), example(parameter))).collect();
    let has_param = |name: &str| machine.parameters.keys().any(|known| known.as_str() == name);
    let inputs = machine.required_inputs.iter().filter(|name| !has_param(name.as_str()));
    let context: Map<String, Value> = inputs.map(|name| (name.to_string(), "text".into())).collect();
    let all = [("params", params), ("context", context), ("env", environment(machine))];
    all.into_iter()
        .filter(|(_, map)| !map.is_empty())
        .map(|(key, map)| (key.to_owned(), map.into()))
        .collect()
}

/// Returns values for the variables of the environment without which the loop has no context.
fn environment(machine: &Machine) -> Map<String, Value> {
    let texts = machine.context.values().filter_map(Value::as_str);
    let templates: Vec<Template> = texts.filter_map(|text| Template::parse(text).ok()).collect();
    let needed = templates.iter().flat_map(Template::expressions).filter(|expression| {
        expression.namespace == Namespace::Env && expression.fallback == TemplateFallback::Required
    });
    let names = needed.filter_map(|expression| match expression.path.first() {
        Some(Segment::Key(name)) => Some(name.clone()),
        Some(Segment::Index(_)) | None => None,
    });
    names.map(|name| (name, "text".into())).collect()
}

fn example(parameter: &Parameter) -> Value {
    match parameter.kind {
        ParameterType::String | ParameterType::Path => "text".into(),
        ParameterType::Integer | ParameterType::Number => 1.into(),
        ParameterType::Boolean => true.into(),
        ParameterType::Enum => parameter.values.first().cloned().unwrap_or_default().into(),
    }
}

/// Writes a value on one line, as YAML.
pub fn flow(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => scalar(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Writes a text, in quotes where it would be read as something else.
pub fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let begins = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let is_plain = begins && text.chars().all(is_word);
    // YAML 1.1 takes these for booleans or null, and other tools than ours read test files, too.
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if is_plain && !reserved.contains(&text.to_ascii_lowercase().as_str()) {
        text.to_owned()
    } else {
        // A string of JSON, with its escapes, is one of YAML.
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_written_as_people_write_it() {
        let case = CaseText {
            name: "check says no".to_owned(),
            comment: Some(GENERATED.to_owned()),
            given: Map::new(),
            mocks: IndexMap::from([
                ("check".to_owned(), vec![json!({"exit": 1, "stdout": "a: b"}), json!({"exit": 0})]),
                ("fix".to_owned(), vec![json!({"exit": 0}), json!({"exit": 0})]),
                ("no".to_owned(), vec![json!({})]),
                ("again".to_owned(), vec![json!({"exit": 0, "resume": true})]),
            ]),
            closing: IndexMap::from([("fix".to_owned(), json!({"exit": 1}))]),
            expect: json!({"outcome": "success", "path": ["check", "done"]}).as_object().unwrap().clone(),
        };
        let expected = r#"  # generated: look at it
  - name: "check says no"
    mocks:
      check: [{ exit: 1, stdout: "a: b" }, { exit: 0 }]
      fix: { visits: [{ exit: 0 }, { exit: 0 }], closing_pass: { exit: 1 } }
      "no": {}
      again: [{ exit: 0, resume: true }]
    expect:
      outcome: success
      path: [check, done]
"#;
        assert_eq!(case.write(2), expected);
    }
}
