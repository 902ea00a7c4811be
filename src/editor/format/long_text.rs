//! Which texts of a file go over several lines: their lines are moved together, and are no structure.

use std::collections::BTreeMap;

use crate::base::node::{Node, NodeValue, ScalarStyle};

/// A text that goes over several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongText {
    /// In a block, which begins in this line.
    Block,
    /// In quotes or plain, which goes on after its first line.
    Folded,
}

/// Returns the last line of each text that goes over several, by its first line as a text has it. Lines count from 0.
pub(super) fn long_texts(text: &str, tree: &Node) -> BTreeMap<usize, (LongText, usize)> {
    let line = |byte: usize| text[..byte].matches('\n').count();
    let mut found = BTreeMap::new();
    let mut open = vec![tree];
    while let Some(node) = open.pop() {
        match &node.value {
            NodeValue::Scalar(scalar) => {
                let range = &node.span.range;
                let (first, last) = (line(range.start), line(range.end));
                if scalar.style == ScalarStyle::Block && !scalar.text.is_empty() {
                    found.insert(first, (LongText::Block, last));
                } else if last > first {
                    found.insert(first, (LongText::Folded, last));
                }
            }
            NodeValue::List(items) => open.extend(items),
            NodeValue::Map(entries) => open.extend(entries.iter().map(|entry| &entry.value)),
        }
    }
    found
}
