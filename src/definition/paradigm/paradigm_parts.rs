//! What the forms are put together from: work, evaluators, routes and ends.

use serde_json::{Value, json};

use crate::base::decode::{Decode, Definitions, subject, wrong_type};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::{Entry, Node, NodeValue};
use crate::base::path::DocPath;
use crate::definition::assembled_tree::{entries, entry, map, plain, take, text};
use crate::definition::schema::ActionType;
use crate::evaluate::exit_codes::NONZERO;

/// Something to do: the text of an action, or the keys of a state with the action under `action` or `tool`.
#[derive(Clone, Debug, PartialEq)]
pub struct Work(Vec<Entry>);

impl Work {
    /// Returns a state that does it and has these keys besides.
    pub(super) fn state(&self, name: &str, at: &Node, routes: Vec<Entry>) -> Entry {
        let keys = self.0.iter().cloned().chain(routes).collect();
        entry(name, map(&at.span, keys))
    }

    /// Tells whether it is a shell command that its exit code judges.
    pub(super) fn is_judged_by_code(&self) -> bool {
        self.is_shell() && ["evaluate", "condition", "next"].iter().all(|key| !self.has(key))
    }

    /// Returns the key that makes a state of it a check, whose observation may be made again, where it is a command.
    pub(super) fn check(&self, at: &Node) -> Option<Entry> {
        // Where the author has said it, a second key of this name would be a contradiction.
        let is_command = self.is_shell() && !self.has("check");
        is_command.then(|| entry("check", plain(&at.span, "true")))
    }

    fn is_shell(&self) -> bool {
        let said = |key: &str| self.0.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
        let word = |key: &str| said(key).and_then(Node::as_scalar).map(|scalar| scalar.text.as_str());
        match word("action_type") {
            Some(kind) => kind == ActionType::Shell.word(),
            None => ActionType::inferred(word("action").unwrap_or("")) == ActionType::Shell,
        }
    }

    /// Tells whether something judges what it did.
    pub(super) fn is_judged(&self) -> bool {
        self.has("evaluate") || self.has("condition")
    }

    /// Tells whether it has a key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|entry| entry.key == key)
    }

    /// Takes the keys apart: whatever a state can have.
    fn of(node: &Node) -> Vec<Entry> {
        let mut node = node.clone();
        if !matches!(node.value, NodeValue::Map(_)) {
            return vec![entry("action", node)];
        }
        if let Some(tool) = take(&mut node, "tool") {
            let action = Entry { key: "action".to_owned(), ..tool };
            return std::iter::once(action).chain(entries(&node).iter().cloned()).collect();
        }
        entries(&node).to_vec()
    }
}

impl Decode for Work {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let is_action = match &node.value {
            NodeValue::Scalar(_) => !node.is_null(),
            NodeValue::Map(_) => node.get("tool").or_else(|| node.get("action")).is_some(),
            NodeValue::List(_) => false,
        };
        if !is_action {
            wrong_type(node, path, "a command, or a mapping with `action`", out);
            return None;
        }
        Some(Self(Self::of(node)))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let text = String::schema(definitions);
        json!({"anyOf": [text, {"type": "object", "anyOf": [{"required": ["tool"]}, {"required": ["action"]}]}]})
    }
}

/// An evaluator that is read with the state it comes to stand in.
#[derive(Clone, Debug, PartialEq)]
pub struct Judge(pub(super) Node);

impl Decode for Judge {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        if !matches!(node.value, NodeValue::Map(_)) {
            wrong_type(node, path, "a mapping with a `type`", out);
            return None;
        }
        Some(Self(node.clone()))
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]})
    }
}

impl Judge {
    pub(super) fn entry(&self, key: &str) -> Entry {
        entry(key, self.0.clone())
    }
}

/// Makes the evaluator that asks the exit code of a test: what is listed under `no`, or else any code by which a tool
/// says that it failed.
pub(super) fn by_exit_code(no: Option<&Node>, at: &Node) -> Entry {
    let no = no.cloned().unwrap_or_else(|| text(&at.span, NONZERO));
    let keys = vec![to("type", "exit_code", at), entry("no", no)];
    entry("evaluate", map(&at.span, keys))
}

/// Makes the state in which the form ends.
pub(super) fn done(name: &str, at: &Node) -> Entry {
    entry(name, map(&at.span, vec![entry("terminal", plain(&at.span, "true"))]))
}

/// Makes a route.
pub(super) fn to(key: &str, state: &str, at: &Node) -> Entry {
    entry(key, text(&at.span, state))
}

/// Reports an empty list.
pub(super) fn empty(path: &DocPath, of: &str, out: &mut Diagnostics) {
    let message = format!("{} needs at least one {of}", subject(path));
    out.push(Diagnostic::error("missing-value", FindingPlace::Value(path.clone()), message));
}

/// Makes a name that can stand in a template: letters, digits and `_`.
pub(super) fn identifier(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_an_identifier() {
        for (name, expected) in [("tests-pass", "tests_pass"), ("  A b.c ", "A_b_c"), ("-", "")] {
            assert_eq!(identifier(name), expected);
        }
    }
}
