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
    // Found once: a file may have many values, and each asks for two lines.
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |byte: usize| ends.partition_point(|end| *end < byte);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::diagnostic::Diagnostics;
    use crate::base::node::FileId;
    use crate::definition::yaml;

    fn tree(text: &str) -> Node {
        yaml::parse(text, FileId(0), &mut Diagnostics::default()).unwrap()
    }

    #[test]
    fn a_text_has_its_first_and_its_last_line() {
        let text = "a: |\n  one\n  two\nb: x\nc: y\n  z\n";
        let found = long_texts(text, &tree(text));
        let found: Vec<_> = found.into_iter().collect();
        assert_eq!(found, [(1, (LongText::Block, 2)), (4, (LongText::Folded, 5))]);
    }
}
