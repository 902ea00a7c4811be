//! Trees put together: what the forms that a loop can be written in have in common.

use std::collections::HashMap;

use serde_json::Value;

use crate::base::node::{Entry, Node, NodeValue, Scalar, ScalarStyle, Span};
use crate::evaluate::verdict::Verdict;

/// Makes a text that stands for something at a place.
pub(super) fn text(at: &Span, text: impl Into<String>) -> Node {
    let scalar = Scalar::string(text.into(), ScalarStyle::Quoted);
    Node { value: NodeValue::Scalar(scalar), span: at.clone() }
}

/// Makes a value as if it had been written without quotes.
pub(super) fn plain(at: &Span, text: impl Into<String>) -> Node {
    Node { value: NodeValue::Scalar(Scalar::plain(text.into())), span: at.clone() }
}

/// Makes a value that stands for something at a place.
pub(super) fn value(at: &Span, value: &Value) -> Node {
    match value {
        Value::Null => plain(at, "null"),
        Value::Bool(_) | Value::Number(_) => plain(at, value.to_string()),
        Value::String(value) => text(at, value),
        Value::Array(items) => list(at, items.iter().map(|item| self::value(at, item)).collect()),
        Value::Object(fields) => {
            map(at, fields.iter().map(|(key, field)| entry(key, self::value(at, field))).collect())
        }
    }
}

/// Makes a list.
pub(super) fn list(at: &Span, items: Vec<Node>) -> Node {
    Node { value: NodeValue::List(items), span: at.clone() }
}

/// Makes a mapping.
pub(super) fn map(at: &Span, entries: Vec<Entry>) -> Node {
    Node { value: NodeValue::Map(entries), span: at.clone() }
}

/// Makes an entry whose key stands for something at the place of its value.
pub(super) fn entry(key: impl Into<String>, value: Node) -> Entry {
    Entry { key: key.into(), key_span: value.span.clone(), value }
}

/// Returns the entries of a mapping; anything else has none.
pub(super) fn entries(node: &Node) -> &[Entry] {
    match &node.value {
        NodeValue::Map(entries) => entries,
        NodeValue::Scalar(_) | NodeValue::List(_) => &[],
    }
}

/// Returns the entries of a mapping, to change them.
pub(super) fn entries_mut(node: &mut Node) -> &mut [Entry] {
    match &mut node.value {
        NodeValue::Map(entries) => entries,
        NodeValue::Scalar(_) | NodeValue::List(_) => &mut [],
    }
}

/// Returns the items of a list; anything else has none.
pub(super) fn items(node: &Node) -> &[Node] {
    match &node.value {
        NodeValue::List(items) => items,
        NodeValue::Scalar(_) | NodeValue::Map(_) => &[],
    }
}

/// Returns the value under a key, if it is given: `null` is not.
pub(super) fn given<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).filter(|value| !value.is_null())
}

/// Takes an entry out of a mapping. One that holds `null` is taken out, too, and counts as not given.
pub(super) fn take(node: &mut Node, key: &str) -> Option<Entry> {
    let NodeValue::Map(entries) = &mut node.value else {
        return None;
    };
    let at = entries.iter().position(|entry| entry.key == key)?;
    Some(entries.remove(at)).filter(|entry| !entry.value.is_null())
}

/// Adds an entry at the end of a mapping, or replaces the one of the same key.
pub(super) fn put(node: &mut Node, entry: Entry) {
    if let NodeValue::Map(entries) = &mut node.value {
        entries.retain(|other| other.key != entry.key);
        entries.push(entry);
    }
}

/// What a tree costs to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CopyCost {
    /// Values, each key and each item among them.
    pub(super) values: usize,
    /// Bytes of text.
    pub(super) bytes: usize,
}

impl CopyCost {
    /// Returns what a tree costs.
    pub(super) fn of(node: &Node) -> Self {
        let one = Self { values: 1, bytes: 0 };
        match &node.value {
            NodeValue::Scalar(scalar) => {
                Self { values: super::yaml::cost(&scalar.text), bytes: scalar.text.len() }
            }
            NodeValue::List(items) => items.iter().map(Self::of).fold(one, Self::and),
            NodeValue::Map(entries) => {
                let cost =
                    |entry: &Entry| Self { values: 1, bytes: entry.key.len() }.and(Self::of(&entry.value));
                entries.iter().map(cost).fold(one, Self::and)
            }
        }
    }

    /// Returns what two cost together.
    pub(super) fn and(self, other: Self) -> Self {
        Self { values: self.values + other.values, bytes: self.bytes + other.bytes }
    }
}

/// What a mapping is, for some keys have several names in some mappings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MergeLevel {
    /// A whole loop.
    Loop,
    /// States by name.
    States,
    /// One state.
    State,
    /// The routes of a state.
    Route,
    /// Anything else.
    Other,
}

impl MergeLevel {
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Loop, "states" | "state_defs" | "fragments") => Self::States,
            (Self::States, _) => Self::State,
            (Self::State, "route") => Self::Route,
            _ => Self::Other,
        }
    }

    /// Returns the one word for all names of a key.
    fn meaning(self, key: &str) -> String {
        match (self, key.strip_prefix("on_")) {
            (Self::Loop, _) if key == "idle_timeout" => "default_idle_timeout".to_owned(),
            (Self::State, _) if key == "condition" => "evaluate".to_owned(),
            (Self::State, Some(word)) if !word.is_empty() => format!("on_{}", Verdict::canonical(word)),
            // `_` and `_error` are keys of their own and no words for verdicts.
            (Self::Route, _) if !key.is_empty() && !key.starts_with('_') => {
                Verdict::canonical(key).to_string()
            }
            _ => key.to_owned(),
        }
    }
}

/// Lays one tree over another: mappings are merged key by key, everything else replaces what is below, and nothing
/// (`key:` or `key: null`) removes it. A key that has several names replaces every one of them.
pub(super) fn merge(below: Node, over: Node, level: MergeLevel) -> Node {
    let (below, over, span) = match (below, over) {
        (Node { value: NodeValue::Map(below), .. }, Node { value: NodeValue::Map(over), span }) => {
            (below, over, span)
        }
        (_, over) => return over,
    };
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut merged: Vec<Option<Entry>> = Vec::with_capacity(below.len() + over.len());
    for entry in below {
        places.insert(level.meaning(&entry.key), merged.len());
        merged.push(Some(entry));
    }
    for entry in over {
        // Taken out, so that a second name for the same key stays in the tree and is reported as a contradiction.
        let place = places.remove(&level.meaning(&entry.key));
        let inherited = place.and_then(|place| merged[place].take());
        match (place, inherited) {
            (Some(_), _) if entry.value.is_null() => {}
            (Some(place), Some(inherited)) => {
                let value = merge(inherited.value, entry.value, level.below(&entry.key));
                merged[place] = Some(Entry { key: entry.key, key_span: entry.key_span, value });
            }
            _ => merged.push(Some(entry)),
        }
    }
    let entries = merged.into_iter().flatten().collect();
    Node { value: NodeValue::Map(entries), span }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::diagnostic::Diagnostics;
    use crate::base::node::FileId;
    use crate::definition::yaml;

    #[track_caller]
    fn check(below: &str, over: &str, level: MergeLevel, expected: &str) {
        let read = |text: &str| yaml::parse(text, FileId(0), &mut Diagnostics::default()).unwrap();
        assert_eq!(merge(read(below), read(over), level).to_json().to_string(), expected);
    }

    #[test]
    fn mappings_are_merged_and_the_rest_is_replaced() {
        check(
            "{a: 1, b: {c: [1, 2], d: 3}}",
            "{b: {c: [4]}, e: 5}",
            MergeLevel::Other,
            r#"{"a":1,"b":{"c":[4],"d":3},"e":5}"#,
        );
        check("{a: {b: 1}}", "{a: 2}", MergeLevel::Other, r#"{"a":2}"#);
        check("{a: 1}", "{a: {b: 2}}", MergeLevel::Other, r#"{"a":{"b":2}}"#);
    }

    #[test]
    fn nothing_removes_what_was_inherited() {
        check("{a: 1, b: 2}", "{a: null, c: ~}", MergeLevel::Other, r#"{"b":2,"c":null}"#);
        check("{a: {b: 1}}", "{a:}", MergeLevel::Other, "{}");
    }

    #[test]
    fn a_key_replaces_its_other_names() {
        check("{on_pass: a, next: b}", "{on_yes: c}", MergeLevel::State, r#"{"on_yes":"c","next":"b"}"#);
        check(
            "{condition: {type: x}}",
            "{evaluate: {target: 1}}",
            MergeLevel::State,
            r#"{"evaluate":{"type":"x","target":1}}"#,
        );
        check("{true: a, _: b}", "{success: c}", MergeLevel::Route, r#"{"success":"c","_":"b"}"#);
        check("{on_pass: a}", "{on_yes: c}", MergeLevel::Other, r#"{"on_pass":"a","on_yes":"c"}"#);
    }
}
