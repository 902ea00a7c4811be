//! A tree as the text of a file again: the keys in the order of the reference, the states at the end.
//!
//! Values keep the text they were written with, for `1.10` is a number in one place and a version in another. Where
//! readers of YAML 1.1 and 1.2 would not agree about a number, it is written as a text, or as a number for both.

use std::fmt::Write as _;

use super::assembled_tree::entries;
use super::schema::{Loop, State};
use crate::base::decode::{Decode as _, Record as _};
use crate::base::diagnostic::Diagnostics;
use crate::base::node::{Entry, Node, NodeValue, Scalar, ScalarStyle, ScalarValue};
use crate::base::path::DocPath;
use crate::base::text::is_direction;

/// The most numbers that are tried as texts; more of them are written as numbers.
const MOST_TRIED: usize = 64;

/// Writes a plain loop.
pub fn to_yaml(tree: &Node) -> String {
    let tree = &portable(tree);
    let mut out = String::new();
    let keys = Loop::KEYS.iter().copied().filter(|key| *key != "states");
    for (key, value) in ordered(tree, &keys.collect::<Vec<_>>()) {
        // The states are written out already, and the form would expand once more.
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

/// Returns the tree without numbers that readers of YAML 1.1 and 1.2 read differently, such as `0o17` and `1e3`. Where
/// the loop wants a text, it is quoted, with the same text; elsewhere, another number is written that means the same.
fn portable(tree: &Node) -> Node {
    let decode = |tree: &Node| Loop::decode(tree, &DocPath::root(), &mut Diagnostics::default());
    let mut count = 0;
    let numbers = rewritten(tree, &mut |scalar| {
        count += 1;
        canonical(scalar)
    });
    if count == 0 {
        return numbers;
    }
    let meant = decode(tree);
    // A quoted number is taken where a number is wanted, but not the other way round.
    // Each try decodes the whole loop.
    let is_number: Vec<bool> = (0..count.min(MOST_TRIED))
        .map(|wanted| {
            let mut at = 0..;
            let tried = rewritten(tree, &mut |scalar| {
                if at.next() == Some(wanted) { canonical(scalar) } else { scalar.clone() }
            });
            decode(&tried) == meant
        })
        .collect();
    let mut is_number = is_number.into_iter();
    rewritten(tree, &mut |scalar| {
        if is_number.next().unwrap_or(true) { canonical(scalar) } else { as_text(scalar) }
    })
}

/// Returns the tree with something in the place of each number that is read differently.
fn rewritten(node: &Node, write: &mut impl FnMut(&Scalar) -> Scalar) -> Node {
    let value = match &node.value {
        NodeValue::Scalar(scalar) if is_read_differently(scalar) => NodeValue::Scalar(write(scalar)),
        NodeValue::Scalar(scalar) => NodeValue::Scalar(scalar.clone()),
        NodeValue::List(items) => NodeValue::List(items.iter().map(|item| rewritten(item, write)).collect()),
        NodeValue::Map(entries) => {
            let entry = |entry: &Entry| Entry { value: rewritten(&entry.value, write), ..entry.clone() };
            NodeValue::Map(entries.iter().map(entry).collect())
        }
    };
    Node { value, span: node.span.clone() }
}

/// Tells whether a number is one for readers of YAML 1.2 only, or for none but ours.
fn is_read_differently(scalar: &Scalar) -> bool {
    let text = scalar.text.as_str();
    match scalar.value {
        ScalarValue::Null | ScalarValue::Bool(_) | ScalarValue::String => false,
        ScalarValue::Int(_) => {
            // Both versions read `0x1f`; each form of octal and binary numbers belongs to one of them.
            let is_hex = text.strip_prefix("0x").is_some_and(|digits| !digits.is_empty());
            let digits = text.trim_start_matches(['+', '-']);
            !is_hex && !digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        // `.inf` and `.nan` are the same in both.
        ScalarValue::Float(number) if !number.is_finite() => false,
        ScalarValue::Float(_) => {
            let unsigned = text.trim_start_matches(['+', '-']);
            let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
                Some((mantissa, exponent)) => (mantissa, exponent),
                None => (unsigned, "+"),
            };
            // YAML 1.1 reads `1e3` and `1.0e3` as texts: it wants a point, and a sign behind the
            // `e`.
            let begins_with_digit = mantissa.starts_with(|c: char| c.is_ascii_digit());
            !(mantissa.contains('.') && begins_with_digit && exponent.starts_with(['+', '-']))
        }
    }
}

/// Returns a number as every reader reads it.
fn canonical(scalar: &Scalar) -> Scalar {
    let text = match scalar.value {
        ScalarValue::Int(number) => number.to_string(),
        ScalarValue::Float(number) => {
            // `Debug` keeps the point of `1.0`, without which it would be read as a whole number.
            let text = format!("{number:?}");
            match text.split_once('e') {
                Some((mantissa, exponent)) => {
                    let point = if mantissa.contains('.') { "" } else { ".0" };
                    let sign = if exponent.starts_with('-') { "" } else { "+" };
                    format!("{mantissa}{point}e{sign}{exponent}")
                }
                None => text,
            }
        }
        ScalarValue::Null | ScalarValue::Bool(_) | ScalarValue::String => scalar.text.clone(),
    };
    Scalar { text, ..scalar.clone() }
}

fn as_text(scalar: &Scalar) -> Scalar {
    Scalar::string(scalar.text.clone(), ScalarStyle::Quoted)
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
        // The first line of a block says how far all of it is indented.
        && !text.starts_with(char::is_whitespace)
        && !text.chars().any(odd)
        && !text.split('\n').any(hollow)
        // Keeping further line ends would take the mark `|+`.
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
    // Readers of YAML 1.1 take these for booleans.
    const WORDS: [&str; 6] = ["yes", "no", "on", "off", "y", "n"];
    // Narrower than YAML allows: quotes that are not needed do no harm.
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
        // The longest form of an escape is the one that serves every character.
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
    // What turns the direction of reading is escaped, or else a person would not read what the file says.
    !c.is_control()
        && !is_direction(c)
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::node::FileId;
    use crate::definition::{load, promises, yaml};
    use crate::machine::Machine;
    use crate::machine::compile::compile;

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

    #[test]
    fn a_number_is_one_for_every_reader_or_a_text_where_a_text_is_wanted() {
        let text = "\
name: n
initial: a
max_iterations: 0o17
context: {a: 0o17, b: 1e3, c: 0b101, d: -0xC, e: -.5, f: 1.5e3, g: 0x1F, h: 1.10, i: 1e300, j: '0o17', k: .inf}
states:
  a: {action: 0o17, env: {X: 1e3, Y: 1.10}, next: done}
  done: {terminal: true}
";
        let loaded = load::decode("f", text, String::new()).unwrap();
        insta::assert_snapshot!(to_yaml(&loaded.tree), @"
        name: 'n'
        initial: a
        context:
          a: 15
          b: 1000.0
          c: 5
          d: -12
          e: -0.5
          f: 1500.0
          g: 0x1F
          h: 1.10
          i: 1.0e+300
          j: '0o17'
          k: .inf
        max_iterations: 15
        states:
          a:
            action: '0o17'
            next: done
            env:
              X: '1e3'
              'Y': 1.10
          done:
            terminal: true
        ");
    }

    /// Texts that readers of YAML take for something else, or that are hard to write.
    fn hard_text() -> impl Strategy<Value = String> {
        let words = prop::sample::select(vec![
            "",
            " ",
            "a",
            " a",
            "a ",
            "a\n",
            "\na",
            "a\n\n",
            "a\n b",
            " a\nb",
            "a\r\nb",
            "a\rb",
            "a\tb",
            "\ta",
            "a:",
            "a: b",
            ":a",
            "#a",
            "a #b",
            "a#b",
            "---",
            "...",
            "--- a",
            "- a",
            "-",
            "? a",
            "!a",
            "&a",
            "*a",
            "%a",
            "@a",
            "`a",
            "|",
            ">",
            "{a}",
            "[a]",
            "a, b",
            "\"a\"",
            "'a'",
            "a'b",
            "\\",
            "\\n",
            "a\u{85}b",
            "a\u{2028}b",
            "a\u{2029}b",
            "\u{feff}a",
            "\u{a0}",
            "\u{1b}[31m",
            "\u{0}",
            "\u{7f}",
            "é",
            "\u{1f600}",
            "\u{202e}",
            "yes",
            "No",
            "on",
            "OFF",
            "y",
            "N",
            "true",
            "True",
            "null",
            "Null",
            "~",
            "0o17",
            "017",
            "012",
            "1e3",
            "1.5e3",
            "0x1F",
            "0b11",
            "1_000",
            "12:30:45",
            "12:30",
            "1.10",
            ".inf",
            "-.INF",
            ".nan",
            "+1",
            "-0",
            "2026-11-22",
            "2026-11-22 10:00:00",
            "<<",
            "=",
            "<",
            ">-",
            "$${a}",
            "\u{fffd}",
        ]);
        prop_oneof![
            3 => words.clone().prop_map(str::to_owned),
            2 => prop::collection::vec(words, 2..4).prop_map(|words| words.concat()),
            1 => "\\PC{0,12}".prop_map(|text: String| text.replace("${", "$")),
            1 => "[ \\n\\t:#'\"a-]{0,8}",
        ]
    }

    /// A value written without quotes, or a text with them.
    fn hard_scalar() -> impl Strategy<Value = Scalar> {
        prop_oneof![
            4 => hard_text().prop_map(|text| Scalar::string(text, ScalarStyle::Quoted)),
            1 => "-?[0-9]{1,3}(\\.[0-9]{0,2})?([eE][+-]?[0-9]{1,2})?|0[xob][0-7]{1,3}|[.][0-9]|true|~".prop_map(Scalar::plain),
        ]
    }

    fn hard_value() -> impl Strategy<Value = Node> {
        let span = crate::base::node::Span { file: FileId(0), range: 0..0 };
        let node = move |value| Node { value, span: span.clone() };
        let leaf = hard_scalar().prop_map(NodeValue::Scalar).prop_map(node.clone());
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let entries = prop::collection::hash_map(hard_text(), inner.clone(), 0..4);
            let entries = entries.prop_map(|entries| {
                entries
                    .into_iter()
                    .map(|(key, value)| super::super::assembled_tree::entry(key, value))
                    .collect()
            });
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(NodeValue::List),
                entries.prop_map(NodeValue::Map),
            ]
            .prop_map(node.clone())
        })
    }

    /// The trees of the loops in the documents, which have every key of the language.
    fn documented() -> Vec<Node> {
        let docs = fs_err::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs")).unwrap();
        let mut files: Vec<_> = docs.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let texts = files.iter().filter_map(|file| fs_err::read_to_string(file).ok());
        let loops = texts.flat_map(|text| {
            let blocks = text.split("```yaml loop\n").skip(1);
            blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        });
        loops.filter_map(|text| Some(load::decode("f", &text, String::new()).ok()?.tree)).collect()
    }

    /// Puts a value in the place of the leaf with a number.
    fn put(node: &mut Node, at: &mut usize, value: &Node) {
        match &mut node.value {
            NodeValue::Scalar(_) => {
                if *at == 0 {
                    *node = value.clone();
                }
                *at = at.wrapping_sub(1);
            }
            NodeValue::List(items) => items.iter_mut().for_each(|item| put(item, at, value)),
            NodeValue::Map(entries) => entries.iter_mut().for_each(|entry| put(&mut entry.value, at, value)),
        }
    }

    fn leaves(node: &Node) -> usize {
        match &node.value {
            NodeValue::Scalar(_) => 1,
            NodeValue::List(items) => items.iter().map(leaves).sum(),
            NodeValue::Map(entries) => entries.iter().map(|entry| leaves(&entry.value)).sum(),
        }
    }

    fn machine(tree: &Node) -> Option<Machine> {
        let mut problems = Diagnostics::default();
        // As a file is read: an empty promise makes no machine.
        promises::in_vain(tree, &mut problems);
        let decoded = Loop::decode(tree, &DocPath::root(), &mut problems)?;
        if problems.has_errors() { None } else { compile(&decoded).0 }
    }

    thread_local! {
        static DOCUMENTED: Vec<Node> = documented();
    }

    #[test]
    fn the_documents_have_loops_with_most_keys() {
        let all = documented();
        let texts: String = all.iter().map(to_yaml).collect();
        assert!(all.len() > 30, "{}", all.len());
        let missing: Vec<_> = State::KEYS
            .iter()
            .filter(|key| !key.ends_with('_') && !texts.contains(&format!("    {key}:")))
            .collect();
        assert!(missing.len() < State::KEYS.len() / 2, "{missing:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn what_is_printed_is_the_same_machine(
            which in any::<prop::sample::Index>(),
            places in prop::collection::vec((any::<prop::sample::Index>(), hard_value()), 1..6),
        ) {
            let mut tree = DOCUMENTED.with(|all| which.get(all).clone());
            for (place, value) in places {
                let mut changed = tree.clone();
                put(&mut changed, &mut place.index(leaves(&tree)), &value);
                // Most places take only some values; a `with` beside no loop is refused before there is a machine.
                let is_stray = to_yaml(&changed).contains("\n    loop: null\n");
                if machine(&changed).is_some() && !is_stray {
                    tree = changed;
                }
            }
            let written = to_yaml(&tree);
            let again = load::decode("f", &written, String::new());
            prop_assert!(again.is_ok(), "it cannot be read: {:?}\n{}", again.err().map(|e| e.findings), written);
            let again = again.unwrap().tree;
            let (one, other) = (machine(&tree), machine(&again));
            prop_assert!(one.is_some());
            prop_assert_eq!(format!("{one:?}"), format!("{other:?}"), "{}", written);
            prop_assert_eq!(to_yaml(&again), written);
        }
    }
}
