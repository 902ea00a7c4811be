//! Where a cursor stands in a text that is being written, and so need not be YAML: told by indentation and brackets.

use std::ops::Range;

/// What can be written at a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CursorWish {
    /// A key, beside these.
    Key { present: Vec<String> },
    /// The value of the last key, or an item of the list there.
    Value,
    /// What follows `${`.
    Template,
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CursorPlace {
    /// The keys around the place, the outermost first.
    pub(super) keys: Vec<String>,
    pub(super) wanted: CursorWish,
    /// What is written of it so far, before the cursor.
    pub(super) written: Range<usize>,
    /// What stands under `type` beside it.
    pub(super) kind: Option<String>,
}

/// Finds the place of a cursor. In comments there is none, and in texts only that of a template.
pub(super) fn at(text: &str, byte: usize) -> Option<CursorPlace> {
    let start = text[..byte].rfind('\n').map_or(0, |end| end + 1);
    let before = &text[start..byte];
    if before.trim_start().starts_with('#') {
        return None;
    }
    if let Some(open) = before.rfind("${").filter(|open| !before[..*open].ends_with('$'))
        && !before[open..].contains('}')
    {
        let written = start + open + 2..byte;
        return Some(CursorPlace { keys: Vec::new(), wanted: CursorWish::Template, written, kind: None });
    }
    let line = CursorLine::of(before);
    let above = around(&text[..start], line.limit())?;
    let content = start + line.content;
    match key_of(&text[content..byte]) {
        Some((key, value)) => {
            let keys = [above, vec![key.to_owned()]].concat();
            in_flow(text, content + value, byte, keys)
        }
        None if text[content..byte].starts_with(['{', '[']) => in_flow(text, content, byte, above),
        None => {
            let siblings = siblings(text, start, line.content);
            let kind = siblings.iter().find(|(key, _)| key == "type").map(|(_, value)| value.clone());
            let present = siblings.into_iter().map(|(key, _)| key).collect();
            // A list of words is as possible as one of mappings.
            let wanted = if line.is_item { CursorWish::Value } else { CursorWish::Key { present } };
            Some(CursorPlace { keys: above, wanted, written: content..byte, kind })
        }
    }
}

/// A line, cut into its indentation, its dashes and what follows.
struct CursorLine {
    /// Where the first dash or the content begins.
    indent: usize,
    /// Where the content begins, behind all dashes.
    content: usize,
    is_item: bool,
}

impl CursorLine {
    fn of(line: &str) -> Self {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let mut content = indent;
        while let Some(rest) = line[content..].strip_prefix("- ") {
            content = line.len() - rest.trim_start_matches(' ').len();
        }
        Self { indent, content, is_item: content > indent }
    }

    /// Returns the indentation that what is around this line has less of. A list may begin below its key without any.
    fn limit(&self) -> usize {
        if self.is_item { self.indent + 1 } else { self.indent }
    }
}

/// Returns the keys around a line, from the lines above it. Inside of a text there are none.
fn around(above: &str, limit: usize) -> Option<Vec<String>> {
    let mut limit = limit;
    let mut keys = Vec::new();
    for text in above.lines().rev() {
        if limit == 0 {
            break;
        }
        let line = CursorLine::of(text);
        let content = &text[line.content..];
        if content.trim().is_empty() || content.starts_with('#') {
            continue;
        }
        if line.content < limit
            && let Some((key, value)) = key_of(content)
        {
            let value = content[value..].trim();
            if value.starts_with(['|', '>']) {
                return None;
            }
            keys.push(key.to_owned());
            limit = line.content;
        }
        if line.is_item && line.indent < limit {
            limit = line.indent + 1;
        }
        if !line.is_item && line.indent < limit {
            limit = line.indent;
        }
    }
    keys.reverse();
    Some(keys)
}

/// Returns the key that a line begins with, and where its value begins.
fn key_of(content: &str) -> Option<(&str, usize)> {
    let end = content.match_indices(':').map(|(at, _)| at).find(|at| {
        let rest = &content[at + 1..];
        // In a document of Windows, a line ends with `\r`.
        rest.is_empty() || rest.starts_with([' ', '\r'])
    })?;
    let key = content[..end].trim();
    if key.starts_with(['{', '[', '#']) || key.contains("${") {
        return None;
    }
    let value = content.len() - content[end + 1..].trim_start_matches(' ').len();
    Some((key.trim_matches(['"', '\'']), value))
}

/// Returns the keys beside a place in a mapping of several lines, with their values as far as they are on the same line.
fn siblings(text: &str, start: usize, indent: usize) -> Vec<(String, String)> {
    let entry = |line: &str| {
        let content = line.get(CursorLine::of(line).content..)?;
        let (key, value) = key_of(content)?;
        let value = &content[value..];
        let value = value.split_once(" #").map_or(value, |(value, _)| value);
        Some((key.to_owned(), value.trim().to_owned()))
    };
    let is_within = |line: &&str| line.trim().is_empty() || CursorLine::of(line).content >= indent;
    let is_own = |line: &&str| CursorLine::of(line).content == indent;
    let end = text[start..].find('\n').map_or(text.len(), |end| start + end + 1);
    let above = text[..start].lines().rev().take_while(is_within).filter(is_own).filter_map(entry);
    let below = text[end..].lines().take_while(is_within).filter(is_own).filter_map(entry);
    above.chain(below).collect()
}

/// A bracket that is open.
enum Open {
    Map { key: Option<String>, present: Vec<(String, String)> },
    List,
}

/// Finds the place in a value, which may be in brackets.
fn in_flow(text: &str, from: usize, byte: usize, mut keys: Vec<String>) -> Option<CursorPlace> {
    let mut open: Vec<Open> = Vec::new();
    let mut token = from;
    let mut quote = None;
    let value = &text[from..byte];
    for (at, c) in value.char_indices() {
        let next = from + at + c.len_utf8();
        match (quote, c) {
            (Some(mark), _) if c == mark => quote = None,
            // Within a word, a quote is a letter: `it's`.
            (None, '"' | '\'') if text[token..from + at].trim().is_empty() => quote = Some(c),
            // What follows is a comment.
            (None, '#') if value[..at].ends_with(' ') => return None,
            (None, '{' | '[') if text[token..from + at].trim().is_empty() => {
                open.push(if c == '{' { Open::Map { key: None, present: Vec::new() } } else { Open::List });
                token = next;
            }
            (None, '}' | ']') if !open.is_empty() => {
                open.pop();
                token = next;
            }
            (None, ',') if !open.is_empty() => {
                if let Some(Open::Map { key, present }) = open.last_mut() {
                    let value = text[token..from + at].trim().to_owned();
                    present.extend(key.take().map(|key| (key, value)));
                }
                token = next;
            }
            // Right before the cursor, the blank behind a colon is still to come.
            (None, ':') if value[at + 1..].starts_with(' ') || next == byte => {
                if let Some(Open::Map { key, .. }) = open.last_mut().filter(|_| next <= byte) {
                    *key = Some(text[token..from + at].trim().trim_matches(['"', '\'']).to_owned());
                    token = next;
                }
            }
            (Some(_) | None, _) => {}
        }
    }
    let written = text[token..byte].trim_start();
    let written = byte - written.len()..byte;
    let last = open.len();
    let mut wanted = CursorWish::Value;
    let mut kind = None;
    for (index, bracket) in open.into_iter().enumerate() {
        match bracket {
            Open::Map { key: Some(key), .. } => keys.push(key),
            Open::Map { key: None, present } if index + 1 == last => {
                kind = present.iter().find(|(key, _)| key == "type").map(|(_, value)| value.clone());
                wanted = CursorWish::Key { present: present.into_iter().map(|(key, _)| key).collect() };
            }
            Open::Map { key: None, .. } | Open::List => {}
        }
    }
    Some(CursorPlace { keys, wanted, written, kind })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Finds the place of the `|` in a text, and shows it.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let byte = text.find('‸').unwrap();
        let text = text.replacen('‸', "", 1);
        let shown = at(&text, byte).map(|place| {
            let wanted = match place.wanted {
                CursorWish::Key { present } => format!("key beside {present:?}"),
                CursorWish::Value => "value".to_owned(),
                CursorWish::Template => "template".to_owned(),
            };
            let kind = place.kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
            format!("{}: {wanted}{kind} {:?}", place.keys.join("."), &text[place.written])
        });
        assert_eq!(shown.as_deref().unwrap_or("nothing"), expected, "{text}");
    }

    #[test]
    fn a_key_is_wanted_where_none_is_written() {
        check("name: x\nini‸\nstates: {}\n", r#": key beside ["name", "states"] "ini""#);
        check(
            "states:\n  a:\n    action: x\n    on_‸\n  b:\n    next: a\n",
            r#"states.a: key beside ["action"] "on_""#,
        );
        check("states:\n  a:\n    ‸\n", r#"states.a: key beside [] """#);
        check("states:\n  a: {action: x, on‸}\n", r#"states.a: key beside ["action"] "on""#);
        check(
            "states:\n  a: {evaluate: {type: output_json, ‸}}\n",
            r#"states.a.evaluate: key beside ["type"] (output_json) """#,
        );
        check(
            "states:\n  a:\n    evaluate:\n      type: output_json # jq\n      p‸\n",
            r#"states.a.evaluate: key beside ["type"] (output_json) "p""#,
        );
    }

    #[test]
    fn a_value_is_wanted_behind_a_key() {
        check("initial: ch‸", r#"initial: value "ch""#);
        check("states:\n  a:\n    on_yes: ‸\n", r#"states.a.on_yes: value """#);
        check("states:\n  a: {action: x, on_yes: d‸\n", r#"states.a.on_yes: value "d""#);
        check("states:\n  a:\n    route: {yes: ‸}\n", r#"states.a.route.yes: value """#);
        check("labels: [a, b‸]\n", r#"labels: value "b""#);
        check("import:\n- li‸\n", r#"import: value "li""#);
        check("constraints:\n  - name: x\n    check: ‸\n", r#"constraints.check: value """#);
    }

    #[test]
    fn a_text_has_only_templates() {
        check("states:\n  a:\n    action: |\n      echo ${captured.‸\n", r#": template "captured.""#);
        check("states:\n  a:\n    action: |\n      echo on‸\n", "nothing");
        check("a: '${cont‸}'", r#": template "cont""#);
        check("a: $${cont‸}", r#"a: value "$${cont""#);
        check("# on‸", "nothing");
        check("a: b # on‸", "nothing");
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[-a:{}\\[\\],#'\"$ \r\n🐎]{0,40}", at_char in 0..40_usize) {
            let byte = text.char_indices().map(|(at, _)| at).nth(at_char).unwrap_or(text.len());
            if let Some(place) = at(&text, byte) {
                prop_assert!(text.get(place.written).is_some());
            }
        }
    }
}
