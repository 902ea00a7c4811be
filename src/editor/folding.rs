//! Which parts of a document an editor may fold: what stands below a key or a dash, and comments of several lines.

use std::ops::Range;

use ls_types::{FoldingRange, FoldingRangeKind};

use super::text_document::TextDocument;
use crate::base::diagnostic::Diagnostics;
use crate::base::node::{FileId, Node, NodeValue};
use crate::definition::yaml;

/// Finds the parts of a document that can be folded. In one that cannot be parsed only comments can.
pub(super) fn ranges(document: &TextDocument) -> Vec<FoldingRange> {
    let text = document.text();
    let mut parts = Vec::new();
    if let Some(tree) = yaml::parse(text, FileId(0), &mut Diagnostics::default()) {
        below(&tree, text, &mut parts);
    }
    let folded = |part: Range<usize>, kind| FoldingRange { kind, ..lines(document, &part) };
    let mut all: Vec<_> = parts.into_iter().map(|part| folded(part, None)).collect();
    all.extend(comments(text).into_iter().map(|part| folded(part, Some(FoldingRangeKind::Comment))));
    all.retain(|range| range.start_line < range.end_line);
    // An editor has one fold in a line: the largest stands first, and is the one that stays.
    all.sort_by_key(|range| (range.start_line, std::cmp::Reverse(range.end_line)));
    all.dedup_by_key(|range| range.start_line);
    all
}

fn lines(document: &TextDocument, part: &Range<usize>) -> FoldingRange {
    // Only the lines are used, which no unit of columns changes.
    let range = document.range(part, super::text_document::ColumnUnit::Utf16);
    FoldingRange { start_line: range.start.line, end_line: range.end.line, ..FoldingRange::default() }
}

fn below(node: &Node, text: &str, parts: &mut Vec<Range<usize>>) {
    let mut add = |start: usize, value: &Node| {
        // What an alias stands for is written elsewhere, and a text may end with empty lines that stay visible.
        if value.span.range.start >= start {
            let end = start + text[start..value.span.range.end].trim_end().len();
            parts.push(start..end);
        }
        below(value, text, parts);
    };
    match &node.value {
        NodeValue::Map(entries) => {
            for entry in entries {
                add(entry.key_span.range.start, &entry.value);
            }
        }
        NodeValue::List(items) => {
            for item in items {
                add(item.span.range.start, item);
            }
        }
        NodeValue::Scalar(_) => {}
    }
}

/// Returns where comments stand in lines one below the other.
fn comments(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut open: Option<Range<usize>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        if content.starts_with('#') {
            let end = at + line.trim_end().len();
            open = Some(open.map_or(at..end, |open| open.start..end));
        } else {
            all.extend(open.take());
        }
        at += line.len();
    }
    all.extend(open);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(u32, u32)]) {
        let document = TextDocument::new(text.to_owned());
        let found: Vec<_> =
            ranges(&document).into_iter().map(|range| (range.start_line + 1, range.end_line + 1)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn states_texts_lists_and_comments_are_folded() {
        let text = "# one\n# two\nname: x\nstates:\n  a:\n    action: |\n      b\n\n  c: {terminal: true}\n\nlabels:\n- a\n- b: 1\n  c: 2\n";
        check(text, &[(1, 2), (4, 9), (5, 7), (6, 7), (11, 14), (13, 14)]);
        check(&text.replace('\n', "\r\n"), &[(1, 2), (4, 9), (5, 7), (6, 7), (11, 14), (13, 14)]);
        check("# one\n# two\nname: [", &[(1, 2)]);
        check("a: &a\n  b: 1\nc: *a\n", &[(1, 2)]);
        check("", &[]);
    }
}
