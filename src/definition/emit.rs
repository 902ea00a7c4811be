//! A tree as the text of a file again: the keys in the order of the reference, the states at the end.
//!
//! Values keep the text they were written with, for `1.10` is a number in one place and a version in another.

use std::fmt::Write as _;

use super::schema::{Loop, State};
use super::tree::entries;
use crate::base::decode::Record as _;
use crate::base::node::{Node, NodeValue, Scalar, ScalarValue};
use crate::base::text::is_direction;

/// Writes a plain loop.
pub fn to_yaml(tree: &Node) -> String {
    let mut out = String::new();
    let keys = Loop::KEYS.iter().copied().filter(|key| *key != "states");
    for (key, value) in ordered(tree, &keys.collect::<Vec<_>>()) {
        if key == "paradigm" {
            continue;
        }
        if key != "states" {
            line(key, value, 0, &mut out);
            continue;
        }
        out.push_str("states:\n");
        for state in entries(value) {
            let keys = ordered(&state.value, State::KEYS);
            if keys.is_empty() {
                line(&state.key, &state.value, 2, &mut out);
                continue;
            }
            let _ = writeln!(out, "  {}:", quoted(&state.key));
            for (key, value) in keys {
                line(key, value, 4, &mut out);
            }
        }
    }
    out
}

/// Returns the entries in the order of known keys; those with a known prefix and the rest follow in their own.
fn ordered<'n>(node: &'n Node, keys: &[&str]) -> Vec<(&'n str, &'n Node)> {
    let mut entries: Vec<_> = entries(node).iter().map(|entry| (entry.key.as_str(), &entry.value)).collect();
    let place = |key: &str| {
        let exact = keys.iter().position(|known| *known == key);
        exact.or_else(|| keys.iter().position(|known| known.ends_with('_') && key.starts_with(known)))
    };
    entries.sort_by_key(|(key, _)| (*key == "states", place(key).unwrap_or(usize::MAX)));
    entries
}

/// Writes a key with its value.
fn line(key: &str, value: &Node, indent: usize, out: &mut String) {
    let space = " ".repeat(indent);
    let _ = write!(out, "{space}{}:", quoted(key));
    below(value, indent, out);
}

/// Writes the value behind a `:` or a `-`.
fn below(value: &Node, indent: usize, out: &mut String) {
    match &value.value {
        NodeValue::Scalar(scalar) => {
            out.push(' ');
            out.push_str(&self::scalar(scalar, indent + 2));
            out.push('\n');
        }
        NodeValue::List(items) if items.is_empty() => out.push_str(" []\n"),
        NodeValue::Map(entries) if entries.is_empty() => out.push_str(" {}\n"),
        NodeValue::List(items) => {
            out.push('\n');
            for item in items {
                let space = " ".repeat(indent + 2);
                let start = out.len();
                below(item, indent + 2, out);
                // A nested value starts on a line of its own; its first one can stand behind the mark.
                let written = out.split_off(start);
                let _ = write!(out, "{space}- {}", written.trim_start());
            }
        }
        NodeValue::Map(entries) => {
            out.push('\n');
            for entry in entries {
                line(&entry.key, &entry.value, indent + 2, out);
            }
        }
    }
}

fn scalar(scalar: &Scalar, indent: usize) -> String {
    match scalar.value {
        ScalarValue::Null => "null".to_owned(),
        ScalarValue::Bool(_) | ScalarValue::Int(_) | ScalarValue::Float(_) => scalar.text.clone(),
        ScalarValue::String => match block(&scalar.text, indent) {
            Some(block) => block,
            None => quoted(&scalar.text),
        },
    }
}

/// Writes a text of several lines as such, if that says exactly the same.
fn block(text: &str, indent: usize) -> Option<String> {
    let odd = |c: char| c != '\n' && !is_printable(c);
    let hollow = |line: &str| !line.is_empty() && line.trim().is_empty();
    let fits = text.contains('\n')
        && !text.starts_with(char::is_whitespace)
        && !text.chars().any(odd)
        && !text.split('\n').any(hollow)
        && !text.ends_with("\n\n");
    if !fits {
        return None;
    }
    let space = " ".repeat(indent);
    let (mark, body) = match text.strip_suffix('\n') {
        Some(body) => ("|", body),
        None => ("|-", text),
    };
    let lines =
        body.split('\n').map(|line| if line.is_empty() { String::new() } else { format!("{space}{line}") });
    Some(format!("{mark}\n{}", lines.collect::<Vec<_>>().join("\n")))
}

/// Writes a text on one line, with quotes where it needs them.
fn quoted(text: &str) -> String {
    const WORDS: [&str; 6] = ["yes", "no", "on", "off", "y", "n"];
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ' | '$');
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/' | '$'))
        && text.chars().all(safe)
        && !text.ends_with(' ')
        && ScalarValue::of_plain(text) == ScalarValue::String
        && !WORDS.contains(&text.to_lowercase().as_str());
    if is_plain {
        return text.to_owned();
    }
    if text.chars().all(is_printable) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let escaped = |c: char| {
        let plain = if is_printable(c) && !matches!(c, '"' | '\\') { Some(c.to_string()) } else { None };
        plain.unwrap_or_else(|| format!("\\U{:08x}", u32::from(c)))
    };
    let text: String = text
        .chars()
        .map(|c| match c {
            '\n' => "\\n".to_owned(),
            '\t' => "\\t".to_owned(),
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            other => escaped(other),
        })
        .collect();
    format!("\"{text}\"")
}

fn is_printable(c: char) -> bool {
    !c.is_control()
        && !is_direction(c)
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::diagnostic::Diagnostics;
    use crate::base::node::FileId;
    use crate::definition::yaml;

    #[track_caller]
    fn check(text: &str) {
        let parse = |text: &str| yaml::parse(text, FileId(0), &mut Diagnostics::default());
        let tree = parse(text).unwrap();
        let written = to_yaml(&tree);
        let again = parse(&written).unwrap_or_else(|| panic!("it cannot be read:\n{written}"));
        assert_eq!(again.to_json(), tree.to_json(), "{written}");
        assert_eq!(to_yaml(&again), written);
    }

    #[test]
    fn what_stands_in_lists_is_what_was_there() {
        check("commands: [{cmd: a, comment: b}, {cmd: c, comment: d}]");
        check("context: {a: [[1, [2, 3], []], [{b: {c: [4, {d: 5, e: 6}]}}], {}]}");
        check("context: {a: [\"x\\ny\\n\", {b: \"x\\n\\ny\", c: 1}, [\"x\\ny\"]]}");
        check("states: {s: {params: {a: [{b: 1, c: [2]}, 3]}}}");
    }
}
