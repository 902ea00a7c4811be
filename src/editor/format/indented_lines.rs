//! The lines of a file, each with the indentation that its depth asks for.

use std::collections::BTreeMap;

use super::brackets::{self, WIDTH};
use super::long_text::LongText;
use super::quoted;
use crate::base::text::first_line;

/// How much deeper a level is than the one around it.
const STEP: usize = 2;

/// A level of mappings or lists: the column at which its lines begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    before: usize,
    now: usize,
    is_list: bool,
}

/// Writes the lines of a text anew.
pub(super) struct LineFormatter<'t> {
    text: &'t str,
    lines: Vec<&'t str>,
    /// Where each line begins.
    starts: Vec<usize>,
    long: BTreeMap<usize, (LongText, usize)>,
    levels: Vec<Level>,
    /// Comments and blank lines, which belong to what follows them.
    held: Vec<usize>,
    out: String,
}

impl<'t> LineFormatter<'t> {
    /// Takes a text with line ends of one kind, and the texts in it that go over several lines.
    pub(super) fn new(text: &'t str, long: BTreeMap<usize, (LongText, usize)>) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Self { text, lines, starts, long, levels: Vec::new(), held: Vec::new(), out: String::new() }
    }

    /// Returns the text in its new form, or nothing if there is none.
    pub(super) fn formatted(mut self) -> Option<String> {
        let mut at = 0;
        while at < self.lines.len() {
            let content = self.lines[at].trim();
            if content.is_empty() || content.starts_with('#') {
                self.held.push(at);
                at += 1;
            } else if is_marker(self.lines[at]) {
                self.release(&[], None);
                self.levels.clear();
                self.push_line(0, content);
                at += 1;
            } else {
                at = self.structure(at)?;
            }
        }
        let levels = std::mem::take(&mut self.levels);
        self.release(&levels, None);
        let trimmed = self.out.trim_end_matches('\n').len();
        if !self.ends_with_kept_lines() {
            self.out.truncate(trimmed);
            self.out.push('\n');
        }
        Some(self.out)
    }

    /// Tells whether the blank lines at the end of the text are a part of its last value.
    fn ends_with_kept_lines(&self) -> bool {
        let last = self.long.iter().next_back();
        last.is_some_and(|(first, (kind, end))| {
            *kind == LongText::Block
                && self.lines[end + 1..].iter().all(|line| line.trim().is_empty())
                && self.header_of(*first).is_some_and(|header| header.contains('+'))
        })
    }

    /// Returns the header of a block whose content begins in this line.
    fn header_of(&self, first: usize) -> Option<&'t str> {
        let above = self.lines[..first].iter().rev().find(|line| !line.trim().is_empty())?;
        above.rsplit([' ', ':']).find(|word| word.starts_with(['|', '>']))
    }

    fn push_line(&mut self, indent: usize, content: &str) {
        if !content.is_empty() {
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.out.push_str(content);
        }
        self.out.push('\n');
    }

    /// Writes comments and blank lines, of which one is enough, in front of a line that begins at these columns.
    fn release(&mut self, levels: &[Level], next: Option<Level>) {
        for at in std::mem::take(&mut self.held) {
            let line = self.lines[at];
            let content = line.trim();
            let column = line.len() - line.trim_start().len();
            if content.is_empty() {
                if !self.out.is_empty() && !self.out.ends_with("\n\n") {
                    self.out.push('\n');
                }
                continue;
            }
            // A comment belongs to what follows it, or, where it is deeper than that, to the end of what is before it.
            let end = levels
                .iter()
                .chain(&next)
                .filter(|level| level.before <= column)
                .max_by_key(|level| level.before);
            let level = next.as_ref().filter(|next| column <= next.before).or(end);
            self.push_line(level.map_or(0, |level| level.now), content);
        }
    }

    /// Drops blank lines between a key and what is below it.
    fn drop_held_blanks(&mut self) {
        let is_blank = |at: &&usize| self.lines[**at].trim().is_empty();
        let blanks = self.held.iter().take_while(is_blank).count();
        self.held.drain(..blanks);
    }

    /// Writes a line of structure with everything that goes on below it, and returns the next line.
    fn structure(&mut self, at: usize) -> Option<usize> {
        let line = self.lines[at];
        // Tabs, complex keys and directives would need rules of their own: such a text is left as it is.
        if line.trim_start_matches(' ').starts_with(['\t', '?', '%']) {
            return None;
        }
        let mut column = line.len() - line.trim_start_matches(' ').len();
        let levels = self.levels.clone();
        let mut is_first = true;
        let mut prefix = String::new();
        let mut indent = 0;
        loop {
            let rest = &line[column..];
            let is_item = rest == "-" || rest.starts_with("- ");
            let level = self.level(column, is_item, is_first)?;
            if is_first {
                let is_deeper = self.levels.len() > levels.len() && !levels.is_empty();
                if is_deeper {
                    self.drop_held_blanks();
                }
                self.release(&levels, Some(level));
                indent = level.now;
            }
            is_first = false;
            if !is_item {
                break;
            }
            prefix.push_str("- ");
            let content = rest[1..].trim_start_matches(' ');
            if content.is_empty() || content.starts_with('#') {
                self.push_line(indent, format!("{prefix}{content}").trim_end());
                return Some(at + 1);
            }
            column = line.len() - content.len();
        }
        self.entry(at, column, indent, &prefix)
    }

    /// Finds the level of a column. Behind a dash a new one begins.
    fn level(&mut self, column: usize, is_item: bool, is_first: bool) -> Option<Level> {
        while self.levels.last().is_some_and(|top| top.before > column) {
            self.levels.pop();
        }
        if let Some(top) = self.levels.last().copied().filter(|top| top.before == column) {
            match (top.is_list, is_item) {
                (true, true) | (false, false) => return Some(top),
                // A list may begin at the column of its key.
                (false, true) => {}
                // A list at the column of its key ends where the next key begins.
                (true, false) => {
                    self.levels.pop();
                    return self
                        .levels
                        .last()
                        .copied()
                        .filter(|around| around.before == column && !around.is_list);
                }
            }
        }
        let around = self.levels.last().copied();
        // What follows a dash on its line begins behind that.
        debug_assert!(is_first || around.is_some(), "there is a dash before it");
        let now = around.map_or(0, |around| around.now + STEP);
        let level = Level { before: column, now, is_list: is_item };
        self.levels.push(level);
        Some(level)
    }

    /// Writes an entry or an item, whose content begins at a column.
    fn entry(&mut self, at: usize, column: usize, indent: usize, prefix: &str) -> Option<usize> {
        let line = self.lines[at];
        let content = &line[column..];
        let level = *self.levels.last()?;
        let (key, value_at) = match key_end(content) {
            Some(end) => {
                let key = content[..end].trim_end();
                let key = if key.starts_with(['"', '\'']) { quoted::chosen(key) } else { key.to_owned() };
                let blanks = content[end + 1..].len() - content[end + 1..].trim_start().len();
                (Some(key), column + end + 1 + blanks)
            }
            None => (None, column),
        };
        let mut head = match &key {
            Some(key) => format!("{prefix}{key}"),
            None => prefix.trim_end().to_owned(),
        };
        let mut value = line[value_at..].trim_end();
        let mut properties = String::new();
        while value.starts_with(['&', '!']) {
            let end = value.find(' ').unwrap_or(value.len());
            properties.push(' ');
            properties.push_str(&value[..end]);
            value = value[end..].trim_start();
        }
        let colon = if key.is_some() { ":" } else { "" };
        if value.starts_with(['{', '[']) {
            let start =
                self.starts[at] + line.len() - line[value_at..].len() + line[value_at..].find(value)?;
            return self.in_brackets(at, start, indent, &format!("{head}{colon}{properties}"), key.is_some());
        }
        head.push_str(colon);
        head.push_str(&properties);
        if let Some((LongText::Folded, last)) = self.long.get(&at).copied() {
            return Some(self.folded(at, value, last, indent, &head, level));
        }
        let (written, comment) = cut(value);
        let written = if quoted::end(written) == Some(written.len()) {
            quoted::chosen(written)
        } else {
            written.to_owned()
        };
        let parts = [head.as_str(), written.as_str(), comment].into_iter().filter(|part| !part.is_empty());
        let line = parts.collect::<Vec<_>>().join(" ");
        self.push_line(indent, &line);
        if written.starts_with(['|', '>']) && is_header(&written) {
            return Some(self.block(at, &written, level));
        }
        Some(at + 1)
    }

    /// Writes the lines of a block, moved as a whole, and returns the line behind it.
    fn block(&mut self, at: usize, header: &str, level: Level) -> usize {
        let Some((first, (_, last))) = self.long.range(at + 1..).next().map(|(first, long)| (*first, *long))
        else {
            return at + 1;
        };
        // An empty one has no content; what is found then belongs to another.
        if self.lines[at + 1..first].iter().any(|line| !line.trim().is_empty()) {
            return at + 1;
        }
        let has_indent = header.contains(|c: char| c.is_ascii_digit());
        let own = self.lines[first].len() - self.lines[first].trim_start_matches(' ').len();
        // A digit in the header counts from the level of its key, and has to be right afterwards as well.
        let (from, to) = if has_indent { (level.before, level.now) } else { (own, level.now + STEP) };
        let mut end = last;
        // With this sign, blank lines at the end are a part of the text.
        if header.contains('+') {
            let behind = self.lines.iter().skip(last + 1);
            end += behind.take_while(|line| line.trim().is_empty()).count();
        }
        for at in at + 1..=end {
            let line = self.lines[at];
            let blanks = line.len() - line.trim_start_matches(' ').len();
            let text = &line[from.min(blanks)..];
            // Blanks behind the last letter are a part of the text.
            self.push_line(to, if line.trim_matches(' ').is_empty() && blanks <= from { "" } else { text });
        }
        end + 1
    }

    /// Writes a text in quotes, or a plain one, that goes on below its first line.
    fn folded(
        &mut self,
        at: usize,
        value: &str,
        last: usize,
        indent: usize,
        head: &str,
        level: Level,
    ) -> usize {
        // Prettier begins a text of several lines below its key.
        let has_key = head.contains(':');
        let inner = if has_key { level.now + STEP } else { level.now };
        if has_key {
            self.push_line(indent, head);
            self.push_line(inner, value);
        } else {
            self.push_line(indent, format!("{head} {value}").trim_start());
        }
        let (end, comment) = cut(self.lines[last].trim());
        let end = [end, comment].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        for line in at + 1..last {
            let content = self.lines[line].trim().to_owned();
            self.push_line(inner, &content);
        }
        self.push_line(inner, &end);
        last + 1
    }

    /// Writes what is in brackets, which may go over several lines.
    fn in_brackets(
        &mut self,
        at: usize,
        start: usize,
        indent: usize,
        head: &str,
        has_key: bool,
    ) -> Option<usize> {
        let text = self.text;
        let read = brackets::read(&text[start..]).filter(|(_, end)| {
            // Brackets may be a key themselves: then a colon follows, and they are left as they are.
            let behind = first_line(&text[start + end..]);
            behind.trim().is_empty()
                || behind.starts_with([' ', '\t']) && behind.trim_start().starts_with('#')
        });
        let Some((value, end)) = read else { return self.as_they_are(at, start, indent, head) };
        let last = at + text[self.starts[at]..start + end].matches('\n').count();
        let comment = first_line(&text[start + end..]).trim();
        let comment = if comment.is_empty() { String::new() } else { format!(" {comment}") };
        let line = value.on_one_line();
        let dashes = head.len() - head.trim_start_matches("- ").len();
        let deep = indent + if head == "-" { STEP } else { dashes };
        // Measured in columns, as Prettier does: a wide character takes two.
        let written =
            if indent + console::measure_text_width(head) + 1 + console::measure_text_width(&line) <= WIDTH {
                format!("{head} {line}")
            } else if let Some(key) = head.strip_suffix(':').filter(|_| has_key) {
                brackets::behind_key(key, &value, deep, WIDTH)
            } else {
                format!("{head} {}", value.on_lines(deep))
            };
        self.push_line(indent, &format!("{}{comment}", written.trim_start()));
        Some(last + 1)
    }

    /// Writes brackets with comments in them: the lines below the first as they are.
    fn as_they_are(&mut self, at: usize, start: usize, indent: usize, head: &str) -> Option<usize> {
        let end = closing(&self.text[start..])?;
        let last = at + self.text[self.starts[at]..start + end].matches('\n').count();
        let first = first_line(&self.text[start..]).trim_end().to_owned();
        self.push_line(indent, format!("{head} {first}").trim_start());
        for line in at + 1..=last {
            let line = self.lines[line].trim_end().to_owned();
            self.push_line(0, &line);
        }
        Some(last + 1)
    }
}

/// Tells whether a line begins or ends a document.
fn is_marker(line: &str) -> bool {
    ["---", "..."].iter().any(|marker| line.strip_prefix(marker).is_some_and(|rest| rest.trim().is_empty()))
}

/// Returns where the colon behind the key is that a line begins with.
fn key_end(content: &str) -> Option<usize> {
    let is_colon = |at: usize| {
        let rest = &content[at..];
        rest.starts_with(':') && rest[1..].chars().next().is_none_or(|c| c == ' ' || c == '\t')
    };
    if content.starts_with(['"', '\'']) {
        let end = quoted::end(content)?;
        let blanks = content[end..].len() - content[end..].trim_start().len();
        return is_colon(end + blanks).then_some(end + blanks);
    }
    if content.starts_with(['{', '[', '|', '>']) {
        return None;
    }
    let comment = content.match_indices(" #").map(|(at, _)| at).next().unwrap_or(content.len());
    content[..comment].match_indices(':').map(|(at, _)| at).find(|at| is_colon(*at))
}

/// Cuts a value on one line from the comment behind it.
fn cut(value: &str) -> (&str, &str) {
    if value.starts_with('#') {
        return ("", value);
    }
    let from = quoted::end(value).unwrap_or(0);
    let comment = value[from..].match_indices('#').map(|(at, _)| from + at);
    // Only behind a blank does the sign begin a comment.
    match comment.into_iter().find(|at| value[..*at].ends_with([' ', '\t'])) {
        Some(at) => (value[..at].trim_end(), &value[at..]),
        None => (value.trim_end(), ""),
    }
}

/// Tells whether a text is the header of a block.
fn is_header(text: &str) -> bool {
    text[1..].chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-'))
}

/// Returns the end of brackets at the beginning of a text, whatever is in them.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let before = text[..at].chars().next_back();
        let begins = before.is_none_or(|c| c.is_whitespace() || matches!(c, '{' | '[' | ',' | ':'));
        match c {
            // Within a plain text, a quote is a letter: `it's`.
            '"' | '\'' if begins => {
                at += quoted::end(rest)?;
                continue;
            }
            '#' if before.is_none_or(char::is_whitespace) => {
                at += rest.find('\n')?;
                continue;
            }
            '{' | '[' => depth += 1,
            '}' | ']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += c.len_utf8();
    }
    None
}
