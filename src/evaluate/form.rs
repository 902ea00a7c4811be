//! The form that an answer has to have: a JSON Schema, as a loop file says it.

use serde_json::{Value, json};

use crate::base::decode::{Decode, Definitions, subject as named};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::Node;
use crate::base::path::DocPath;
use crate::base::text::one_line;

/// A longer reason does not quote the value that it is about.
const QUOTED: usize = 200;

/// A JSON Schema for the answer to a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerForm(Value);

impl AnswerForm {
    /// Returns the schema.
    pub fn schema(&self) -> &Value {
        &self.0
    }
}

impl Decode for AnswerForm {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let (schema, why) = (node.to_json(), unusable(&node.to_json(), path));
        let Some(why) = why else { return Some(Self(schema)) };
        let help = "write a JSON Schema of an object, such as `{type: object, required: [status]}`";
        out.push(Diagnostic::error("answer-schema", FindingPlace::Value(path.clone()), why).help(help));
        None
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "object"})
    }
}

/// Returns why a value at a place of a file cannot be used as a schema, if it cannot.
pub(super) fn unusable(schema: &Value, path: &DocPath) -> Option<String> {
    if !schema.is_object() {
        return Some(format!("{} must be a mapping", named(path)));
    }
    let error = jsonschema::validator_for(schema).err()?;
    Some(format!("{} is not a JSON Schema: {}", named(path), one_line(&error.to_string(), 200)))
}

/// Returns why a value does not satisfy a schema, if it does not.
pub fn mismatch(schema: &Value, value: &Value) -> Option<String> {
    match jsonschema::validator_for(schema) {
        Ok(validator) => {
            let error = validator.iter_errors(value).next()?;
            let place = error.instance_path().to_string();
            let at = if place.is_empty() { String::new() } else { format!("{place}: ") };
            // What is wrong stands behind the value, which may be long.
            let whole = error.to_string();
            let why = if whole.len() > QUOTED { error.masked().to_string() } else { whole };
            Some(one_line(&format!("{at}{why}"), 300))
        }
        Err(error) => Some(one_line(&error.to_string(), 300)),
    }
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;

    use super::*;

    const FORM: &str = "{type: object, required: [status], properties: {status: {type: string}}}";

    #[test]
    fn a_form_is_a_schema() {
        let decoded = |text: &str| {
            let mut problems = Diagnostics::default();
            let text = format!("answer: {text}");
            let node = crate::definition::yaml::parse(&text, crate::base::node::FileId(0), &mut problems);
            let forms =
                IndexMap::<String, AnswerForm>::decode(&node.unwrap(), &DocPath::root(), &mut problems);
            (
                forms.is_some_and(|forms| forms.len() == 1),
                problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>(),
            )
        };
        for text in [FORM, "{}", "{properties: {a: {enum: [1, x]}}}"] {
            assert_eq!(decoded(text), (true, Vec::new()), "{text}");
        }
        for (text, why) in [
            ("[a]", "`answer` must be a mapping"),
            ("word", "`answer` must be a mapping"),
            ("true", "`answer` must be a mapping"),
            ("{type: thing}", "`answer` is not a JSON Schema: "),
            ("{properties: {a: {pattern: '('}}}", "`answer` is not a JSON Schema: "),
            ("{$ref: 'https://example.org/schema'}", "`answer` is not a JSON Schema: "),
        ] {
            let (is_form, said) = decoded(text);
            assert!(!is_form && said.len() == 1 && said[0].starts_with(why), "{text}: {said:?}");
        }
    }
}
