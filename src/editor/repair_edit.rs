//! The edit of a text that takes a finding away. It touches nothing but what the finding is about, so comments and layout stay.

use std::ops::Range;

use super::outline::entries;
use crate::base::diagnostic::{Diagnostics, Repair};
use crate::base::node::{Entry, FileId, Node, NodeValue};
use crate::definition::yaml;

/// A part of a text, and what is written in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RepairEdit {
    /// The bytes that are replaced.
    pub(crate) range: Range<usize>,
    /// What is written there.
    pub(crate) text: String,
}

impl RepairEdit {
    /// Returns the text with the change.
    pub(crate) fn apply(&self, text: &str) -> String {
        let mut changed = text.to_owned();
        changed.replace_range(self.range.clone(), &self.text);
        changed
    }
}

/// Returns the change that a repair of what is marked in a text makes, unless the text is not written as the finding has it, for
/// instance because an alias stands there.
pub(crate) fn change(text: &str, marked: &Range<usize>, repair: &Repair) -> Option<RepairEdit> {
    let written = text.get(marked.clone())?;
    match repair {
        Repair::Replace { old, new } => {
            let at = marked.start + written.find(old.as_str()).filter(|_| !old.is_empty())?;
            Some(RepairEdit { range: at..at + old.len(), text: new.clone() })
        }
        Repair::Rewrite(new) => {
            (!written.is_empty()).then(|| RepairEdit { range: marked.clone(), text: new.clone() })
        }
        Repair::Remove => {
            let tree = parse(text)?;
            let (mapping, index) = mapping_of(&tree, marked)?;
            Some(without(text, mapping, index))
        }
        Repair::Add { key, value } => {
            let tree = parse(text)?;
            let (mapping, index) = mapping_of(&tree, marked)?;
            Some(with(text, mapping, index, key, value))
        }
    }
}

fn parse(text: &str) -> Option<Node> {
    yaml::parse(text, FileId(0), &mut Diagnostics::default())
}

/// Finds the entry whose key, or whose value, is marked, with the mapping that it is in.
fn mapping_of<'n>(node: &'n Node, marked: &Range<usize>) -> Option<(&'n Node, usize)> {
    let all = entries(node);
    let holds = |range: &Range<usize>| range.start <= marked.start && marked.end <= range.end;
    let own = |entry: &Entry| {
        // A mapping or a list that holds the mark is looked through below, for the entry that is meant.
        let is_scalar = entry.value.as_scalar().is_some();
        entry.key_span.range.start == marked.start || (is_scalar && holds(&entry.value.span.range))
    };
    if let Some(index) = all.iter().position(own) {
        return Some((node, index));
    }
    let children: Vec<&Node> = match &node.value {
        NodeValue::Map(entries) => entries.iter().map(|entry| &entry.value).collect(),
        NodeValue::List(items) => items.iter().collect(),
        NodeValue::Scalar(_) => Vec::new(),
    };
    children.into_iter().find_map(|child| mapping_of(child, marked))
}

fn end_of(entry: &Entry) -> usize {
    entry.value.span.range.end.max(entry.key_span.range.end)
}

/// Takes an entry out: its lines, or in brackets also one comma.
fn without(text: &str, mapping: &Node, index: usize) -> RepairEdit {
    let all = entries(mapping);
    let entry = &all[index];
    let (start, end) = (entry.key_span.range.start, end_of(entry));
    let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
    let line_end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    let is_flow = text[mapping.span.range.clone()].starts_with('{');
    if !is_flow && text[line..start].trim().is_empty() {
        return RepairEdit { range: line..line_end, text: String::new() };
    }
    let range = match (all.get(index + 1), index.checked_sub(1).and_then(|before| all.get(before))) {
        // Behind a dash, or in brackets, the next one takes its place.
        (Some(next), _) => start..next.key_span.range.start,
        // The last one goes with the comma in front of it.
        (None, Some(before)) if is_flow => end_of(before)..end,
        (None, _) => start..end,
    };
    RepairEdit { range, text: String::new() }
}

/// Adds an entry in front of another one, written as that.
fn with(text: &str, mapping: &Node, index: usize, key: &str, value: &str) -> RepairEdit {
    let start = entries(mapping)[index].key_span.range.start;
    let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
    let is_flow = text[mapping.span.range.clone()].starts_with('{');
    // In front of the first entry of an item stands a dash, and of the others blanks.
    let indent: String = text[line..start].chars().map(|c| if c == '-' { ' ' } else { c }).collect();
    // Not by `lines`, which takes the carriage return off.
    let is_crlf = text[line..].split('\n').next().is_some_and(|line| line.ends_with('\r'));
    let end = if is_crlf { "\r\n" } else { "\n" };
    let behind = if is_flow { ", ".to_owned() } else { format!("{end}{indent}") };
    RepairEdit { range: start..start, text: format!("{key}: {value}{behind}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, marked: &str, repair: &Repair, expected: &str) {
        let start = text.find(marked).unwrap();
        let changed = change(text, &(start..start + marked.len()), repair).map(|change| change.apply(text));
        assert_eq!(changed.as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn a_part_of_what_is_marked_is_written_in_another_way() {
        let meant = |old: &str, new: &str| Repair::Replace { old: old.to_owned(), new: new.to_owned() };
        check("on_sucess: a # x", "on_sucess", &meant("on_sucess", "on_success"), "on_success: a # x");
        check("a: 'dne' # x", "'dne'", &meant("dne", "done"), "a: 'done' # x");
        check("a: ${contxt.contxt}", "${contxt.contxt}", &meant("contxt", "context"), "a: ${context.contxt}");
        check(
            "a: b ${captured.x?} c",
            "${captured.x?}",
            &meant("}", ":shell}"),
            "a: b ${captured.x?:shell} c",
        );
        check("a: \"true\" # x", "\"true\"", &Repair::Rewrite("true".to_owned()), "a: true # x");
        assert_eq!(change("a: *x", &(3..5), &meant("dne", "done")), None);
    }

    #[test]
    fn an_entry_goes_with_its_lines_and_nothing_else() {
        let text = "a:\n  # one\n  x: 1 # of x\n  y: |\n    two\n    three\n\n  # four\n  z: 3\n";
        check(text, "x", &Repair::Remove, "a:\n  # one\n  y: |\n    two\n    three\n\n  # four\n  z: 3\n");
        check(text, "y", &Repair::Remove, "a:\n  # one\n  x: 1 # of x\n\n  # four\n  z: 3\n");
        check("a: {x: 1, y: 2}", "x", &Repair::Remove, "a: {y: 2}");
        check("a: {x: 1, y: 2}", "y", &Repair::Remove, "a: {x: 1}");
        check("a: {y: 2}", "y", &Repair::Remove, "a: {}");
        check("l:\n- x: 1\n  y: 2\n", "x", &Repair::Remove, "l:\n- y: 2\n");
    }

    #[test]
    fn an_entry_is_added_in_the_way_of_its_neighbour() {
        let terminal = Repair::Add { key: "terminal", value: "true".to_owned() };
        check("a:\n  x: 1\n", "x", &terminal, "a:\n  terminal: true\n  x: 1\n");
        check("a: {x: 1}\n", "x", &terminal, "a: {terminal: true, x: 1}\n");
        check("l:\r\n- x: 1\r\n", "x", &terminal, "l:\r\n- terminal: true\r\n  x: 1\r\n");
    }
}
