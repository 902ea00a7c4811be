//! Mappings and lists in brackets: read from a text, and written on one line, or with one part on each.

use super::quoted;

/// The longest line that something in brackets is written on.
pub(super) const WIDTH: usize = 100;

/// How deep brackets are followed; the reader of YAML allows no more.
const DEEPEST: usize = 64;

/// A value within brackets, or the brackets themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FlowValue {
    /// What stands before a value: an anchor, a tag, or both.
    properties: String,
    content: FlowContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FlowContent {
    /// A text as it is written.
    Text(String),
    List(Vec<FlowEntry>),
    Map(Vec<FlowEntry>),
}

/// A part of what is in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FlowEntry {
    key: Option<FlowValue>,
    /// Whether a colon follows the key, as it does unless there is no value.
    has_colon: bool,
    value: Option<FlowValue>,
}

/// Reads what is in brackets at the beginning of a text, and returns it with its end. Comments, and what is written over several
/// lines without quotes, are not followed.
pub(super) fn read(text: &str) -> Option<(FlowValue, usize)> {
    let mut reader = FlowReader { text, at: 0 };
    let value = reader.value(0)?;
    Some((value, reader.at))
}

struct FlowReader<'t> {
    text: &'t str,
    at: usize,
}

impl FlowReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, mark: char) -> bool {
        let is_there = self.rest().starts_with(mark);
        self.at += if is_there { mark.len_utf8() } else { 0 };
        is_there
    }

    fn value(&mut self, depth: usize) -> Option<FlowValue> {
        let mut properties = String::new();
        while self.rest().starts_with(['&', '!']) {
            let end = self.rest().find(|c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}'))?;
            properties.push_str(&self.text[self.at..self.at + end]);
            properties.push(' ');
            self.at += end;
            self.skip_blanks();
        }
        if depth > DEEPEST || self.rest().starts_with('#') {
            return None;
        }
        let content = match self.rest().chars().next()? {
            '{' => FlowContent::Map(self.entries('}', depth)?),
            '[' => FlowContent::List(self.entries(']', depth)?),
            '"' | '\'' => {
                let end = quoted::end(self.rest())?;
                let written = &self.text[self.at..self.at + end];
                if written.contains('\n') {
                    return None;
                }
                self.at += end;
                FlowContent::Text(quoted::chosen(written))
            }
            _ => FlowContent::Text(self.plain()?),
        };
        Some(FlowValue { properties, content })
    }

    fn entries(&mut self, end: char, depth: usize) -> Option<Vec<FlowEntry>> {
        self.at += 1;
        let mut all = Vec::new();
        loop {
            self.skip_blanks();
            if self.take(end) {
                return Some(all);
            }
            if self.rest().starts_with(['?', ',']) {
                return None;
            }
            let is_empty_key = self.rest().starts_with(':');
            let first = if is_empty_key { None } else { Some(self.value(depth + 1)?) };
            self.skip_blanks();
            let mut entry = FlowEntry { key: None, has_colon: false, value: first };
            if self.take(':') {
                self.skip_blanks();
                let is_over = self.rest().starts_with([',', end]);
                let value = if is_over { None } else { Some(self.value(depth + 1)?) };
                entry = FlowEntry { key: entry.value, has_colon: true, value };
                self.skip_blanks();
            }
            all.push(entry);
            if !self.take(',') && !self.rest().starts_with(end) {
                return None;
            }
        }
    }

    /// Reads a text without quotes, on one line.
    fn plain(&mut self) -> Option<String> {
        let rest = self.rest();
        let mut end = 0;
        for (at, c) in rest.char_indices() {
            let next = rest[at + c.len_utf8()..].chars().next();
            // A colon within a word, as in an address, separates nothing.
            let is_over = matches!(c, ',' | '[' | ']' | '{' | '}' | '\n')
                || (c == ':'
                    && next.is_none_or(|next| next.is_whitespace() || matches!(next, ',' | ']' | '}')));
            if is_over {
                break;
            }
            if c == '#' && rest[..at].ends_with([' ', '\t']) {
                return None;
            }
            end = at + c.len_utf8();
        }
        let text = rest[..end].trim_end().to_owned();
        self.at += end;
        (!text.is_empty()).then_some(text)
    }
}

impl FlowValue {
    /// Returns the value on one line.
    pub(super) fn on_one_line(&self) -> String {
        let all =
            |entries: &[FlowEntry]| entries.iter().map(FlowEntry::on_one_line).collect::<Vec<_>>().join(", ");
        let content = match &self.content {
            FlowContent::Text(text) => text.clone(),
            FlowContent::List(entries) => format!("[{}]", all(entries)),
            FlowContent::Map(entries) if entries.is_empty() => "{}".to_owned(),
            FlowContent::Map(entries) => format!("{{ {} }}", all(entries)),
        };
        format!("{}{content}", self.properties)
    }

    /// Tells whether it is in brackets that something is in.
    fn is_open(&self) -> bool {
        match &self.content {
            FlowContent::Text(_) => false,
            FlowContent::List(entries) | FlowContent::Map(entries) => !entries.is_empty(),
        }
    }

    /// Returns the value with one part on each line, which are indented by so much.
    pub(super) fn on_lines(&self, indent: usize) -> String {
        let (open, close, entries) = match &self.content {
            FlowContent::Text(text) => return format!("{}{text}", self.properties),
            FlowContent::List(entries) => ('[', ']', entries),
            FlowContent::Map(entries) => ('{', '}', entries),
        };
        let inner = indent + 2;
        // Prettier has a comma behind the last part as well.
        let lines = entries.iter().map(|entry| format!("{:inner$}{},\n", "", entry.within(inner)));
        format!("{}{open}\n{}{:indent$}{close}", self.properties, lines.collect::<String>(), "")
    }
}

impl FlowEntry {
    fn on_one_line(&self) -> String {
        let value = self.value.as_ref().map(FlowValue::on_one_line);
        match (&self.key, value) {
            (Some(key), Some(value)) => format!("{}: {value}", key.on_one_line()),
            (Some(key), None) => format!("{}:", key.on_one_line()),
            (None, Some(value)) if self.has_colon => format!(": {value}"),
            (None, value) => value.unwrap_or_else(|| ":".to_owned()),
        }
    }

    /// Returns the entry on a line with this indentation, or on several.
    fn within(&self, indent: usize) -> String {
        let whole = self.on_one_line();
        let Some(value) = self.value.as_ref().filter(|value| value.is_open()) else { return whole };
        // One column is left for the comma.
        if indent + console::measure_text_width(&whole) < WIDTH {
            return whole;
        }
        match &self.key {
            None => value.on_lines(indent),
            // A comma follows.
            Some(key) => behind_key(&key.on_one_line(), value, indent, WIDTH - 1),
        }
    }
}

/// Writes a value behind its key: on the same line, on the next one, or on several, of which none is longer than this if that can
/// be.
pub(super) fn behind_key(key: &str, value: &FlowValue, indent: usize, longest: usize) -> String {
    let line = value.on_one_line();
    let length = console::measure_text_width(&line);
    if indent + console::measure_text_width(key) + 2 + length <= longest || !value.is_open() {
        return format!("{key}: {line}");
    }
    let inner = indent + 2;
    let below = if inner + length <= longest { line } else { value.on_lines(inner) };
    format!("{key}:\n{:inner$}{below}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let read = read(text).map(|(value, end)| format!("{}{}", value.on_one_line(), &text[end..]));
        assert_eq!(read.as_deref(), expected, "{text}");
    }

    #[test]
    fn brackets_are_spaced_in_one_way() {
        check("{a: 1,b:  [x,'y' , ] } # c", Some("{ a: 1, b: [x, \"y\"] } # c"));
        check("{}", Some("{}"));
        check("[a b,c: d, http://x:80]", Some("[a b, c: d, http://x:80]"));
        check("{a, b: , 'c': &x {d: *y}}", Some("{ a, b:, \"c\": &x { d: *y } }"));
        check("[\n  a,\n  {b: c}\n]", Some("[a, { b: c }]"));
        check("[a, # why\n b]", None);
        check("[a", None);
    }

    #[test]
    fn what_is_too_long_is_written_on_lines() {
        let (value, _) = read(&format!("{{a: {}, b: [c, d]}}", "x".repeat(95))).unwrap();
        let expected = format!("k:\n  {{\n    a: {},\n    b: [c, d],\n  }}", "x".repeat(95));
        assert_eq!(behind_key("k", &value, 0, WIDTH), expected);
        let (value, _) = read(&format!("[{}]", "x".repeat(94))).unwrap();
        assert_eq!(behind_key("key", &value, 0, WIDTH), format!("key:\n  [{}]", "x".repeat(94)));
    }
}
