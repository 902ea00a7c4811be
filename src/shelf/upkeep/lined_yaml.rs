//! Reads YAML, and JSON, which is a part of it, with the lines on which values stand.

use crate::base::diagnostic::Diagnostics;
use crate::base::node::{Entry, FileId, Node, NodeValue};

/// Reads a text that is a mapping; nothing if it is not one.
pub(super) fn parse(text: &str) -> Option<Node> {
    // Findings are dropped: what is wrong with such a file is for its own tool to say.
    crate::definition::yaml::parse(text, FileId(0), &mut Diagnostics::default())
}

/// Returns the entries of a mapping.
pub(super) fn entries(node: Option<&Node>) -> &[Entry] {
    match node.map(|node| &node.value) {
        Some(NodeValue::Map(entries)) => entries,
        Some(NodeValue::List(_) | NodeValue::Scalar(_)) | None => &[],
    }
}

/// Returns the items of a list.
pub(super) fn items(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.value) {
        Some(NodeValue::List(items)) => items,
        Some(NodeValue::Map(_) | NodeValue::Scalar(_)) | None => &[],
    }
}

/// Returns the text of a single value.
pub(super) fn text(node: Option<&Node>) -> Option<&str> {
    node?.as_scalar().map(|scalar| scalar.text.as_str())
}

/// Returns every text below a value, one behind the other.
pub(super) fn texts(node: &Node) -> String {
    match &node.value {
        NodeValue::Scalar(scalar) => format!("{}\n", scalar.text),
        NodeValue::List(items) => items.iter().map(texts).collect(),
        NodeValue::Map(entries) => entries.iter().map(|entry| texts(&entry.value)).collect(),
    }
}

/// Returns the line, from 1, of a byte.
pub(super) fn line(text: &str, byte: usize) -> usize {
    text.get(..byte).map_or(1, |before| before.matches('\n').count() + 1)
}
