//! Keeps the texts of a definition, and turns places in them into lines and columns.

use std::ops::Range;

use crate::base::diagnostic::{Diagnostics, FindingPlace};
use crate::base::node::{FileId, Node, Scalar, ScalarStyle, Span};
use crate::base::path::DocPath;
use crate::base::text::up_to;

/// The files that a definition was read from; the first is the loop file itself.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<SourceFile>);

/// In a longer text a part is not searched for: with a thousand findings that would take seconds.
const MAX_SEARCHED: usize = 100_000;

/// A file as it was read.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: String,
    text: String,
    /// The byte at which each line begins.
    lines: Vec<usize>,
}

/// A position as people count it: lines and characters from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character of the line.
    pub column: usize,
}

impl Sources {
    /// Adds a file under the name by which people know it.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let ends = text.bytes().enumerate().filter(|(at, byte)| *byte == b'\n' && at + 1 < text.len());
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        // A definition is made of at most fifty files, so the numbers do not run out.
        let id = u16::try_from(self.0.len()).unwrap_or(u16::MAX);
        self.0.push(SourceFile { name: name.into(), text, lines });
        FileId(id)
    }

    /// Returns a file.
    pub fn get(&self, file: FileId) -> Option<&SourceFile> {
        self.0.get(usize::from(file.0))
    }

    /// Returns every file, the loop file first.
    pub fn iter(&self) -> impl Iterator<Item = &SourceFile> {
        self.0.iter()
    }

    /// Finds the bytes that a finding is about. A value that takes several lines is found by its first one, a value
    /// that is not there by what it is missing in; `None` means the file as a whole.
    pub fn locate(&self, place: &FindingPlace, tree: Option<&Node>) -> Option<Span> {
        let span = match (place, tree) {
            (FindingPlace::Bytes(range), _) => Some(Span { file: FileId(0), range: range.clone() }),
            (FindingPlace::At(span), _) => Some(span.clone()),
            (FindingPlace::Value(path), Some(tree)) => value(path, tree),
            (FindingPlace::Key(path), Some(tree)) => key(path, tree),
            (FindingPlace::Within(path, range), Some(tree)) => {
                let node = tree.at(path);
                node.and_then(|node| self.within(node, range)).or_else(|| value(path, tree))
            }
            (FindingPlace::File, _)
            | (FindingPlace::Value(_) | FindingPlace::Key(_) | FindingPlace::Within(..), None) => None,
        }?;
        let source = self.get(span.file)?;
        Some(Span { file: span.file, range: source.first_line(span.range) })
    }

    /// Gives findings about a tree that is not the one that comes of everything the places in the files.
    pub(super) fn placed(&self, found: &Diagnostics, tree: &Node) -> Diagnostics {
        let at = |place: &FindingPlace| self.locate(place, Some(tree)).map(FindingPlace::At);
        let mut placed = Diagnostics::default();
        for finding in found.iter() {
            let mut finding = finding.clone();
            finding.place = at(&finding.place).unwrap_or(finding.place);
            finding.related = finding.related.map(|(place, remark)| (at(&place).unwrap_or(place), remark));
            placed.push(finding);
        }
        placed
    }

    /// Finds a part of a text in the file: the nth occurrence there is the nth one here, provided that the file
    /// holds as many.
    fn within(&self, node: &Node, range: &Range<usize>) -> Option<Span> {
        let Scalar { text, style, .. } = node.as_scalar()?;
        let written = self.get(node.span.file)?.text.get(node.span.range.clone())?;
        if text.len() > MAX_SEARCHED {
            return None;
        }
        // Escapes are written otherwise than they read, so that occurrences cannot be counted off.
        if *style == ScalarStyle::Quoted && written.starts_with('"') && written.contains('\\') {
            return None;
        }
        let wanted = text.get(range.clone())?;
        let wanted = wanted.lines().next().filter(|line| !line.trim().is_empty())?;
        let before = text.match_indices(wanted).take_while(|(at, _)| *at < range.start).count();
        text.match_indices(wanted).nth(before).filter(|(at, _)| *at == range.start)?;
        // In a folded text, a line end may have become a blank, and the count of a part with it.
        let same_count = text.matches(wanted).count() == written.matches(wanted).count();
        let (found, _) = same_count.then(|| written.match_indices(wanted).nth(before)).flatten()?;
        let start = node.span.range.start + found;
        Some(Span { file: node.span.file, range: start..start + wanted.len() })
    }
}

/// Finds the value at a path, or the key of the nearest thing around it.
fn value(path: &DocPath, tree: &Node) -> Option<Span> {
    match tree.at(path) {
        Some(node) => Some(node.span.clone()),
        None => parent(path).and_then(|parent| key(&parent, tree)),
    }
}

/// Finds the key at a path, or the item itself for an item of a list.
fn key(path: &DocPath, tree: &Node) -> Option<Span> {
    if path.segments().is_empty() {
        return None;
    }
    match tree.key_span(path) {
        Some(span) => Some(span.clone()),
        None => value(path, tree),
    }
}

fn parent(path: &DocPath) -> Option<DocPath> {
    path.segments().split_last().map(|(_, before)| before.iter().cloned().collect())
}

impl SourceFile {
    /// Returns the name by which people know the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text, without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the position of a byte.
    pub fn position(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= byte).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let column = self.text.get(start..byte).map_or(1, |before| before.chars().count() + 1);
        Position { line, column }
    }

    /// Returns the bytes of lines, counted from 1, the last one included, without the end of the last.
    pub fn lines(&self, lines: std::ops::RangeInclusive<usize>) -> Range<usize> {
        let start = self.lines.get(lines.start().saturating_sub(1)).copied().unwrap_or(self.text.len());
        let end = self.lines.get(*lines.end()).copied().unwrap_or(self.text.len()).max(start);
        start..start + self.text[start..end].trim_end_matches(['\n', '\r']).len()
    }

    /// Cuts a range to what can be shown: within the text, between characters, and on one line.
    fn first_line(&self, range: Range<usize>) -> Range<usize> {
        let mut start = range.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let mut end = range.end.clamp(start, self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        let line = up_to(&self.text[start..end], &['\n']);
        start..start + line.trim_end().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::yaml;

    /// Finds `${x.y}` in the value of `a`, by its position in the decoded text.
    fn check(text: &str, expected: &str) {
        let mut sources = Sources::default();
        let file = sources.add("f", text);
        let tree = yaml::parse(text, file, &mut Diagnostics::default()).unwrap();
        let path = DocPath::root().key("a");
        let decoded = &tree.at(&path).unwrap().as_scalar().unwrap().text;
        let at = decoded.rfind("${x.y}").unwrap();
        let span = sources.locate(&FindingPlace::Within(path, at..at + 6), Some(&tree)).unwrap();
        let position = sources.get(file).unwrap().position(span.range.start);
        assert_eq!(
            format!("{}:{} {}", position.line, position.column, &text[span.range]),
            expected,
            "{text}"
        );
    }

    #[test]
    fn a_part_of_a_text_is_found_however_it_is_written() {
        check("a: b ${x.y} c", "1:6 ${x.y}");
        check("a: 'it''s ${x.y}' # ${x.y}", "1:11 ${x.y}");
        check("a: \"é ${x.y}\"", "1:7 ${x.y}");
        check("a: |\n  one\n\n  two ${x.y}\nb: 1", "4:7 ${x.y}");
        check("a: | # ${x.y}\n  ${x.y}\n    ${x.y}\n", "3:5 ${x.y}");
        check("a: >-\n  one\n  two ${x.y}\n  three\n", "3:7 ${x.y}");
        check("a: one\n  two ${x.y}\n", "2:7 ${x.y}");
    }

    #[test]
    fn a_text_with_escapes_is_found_as_a_whole() {
        check(r#"a: "\x24{x.y} ${x.y}""#, r#"1:4 "\x24{x.y} ${x.y}""#);
    }

    #[test]
    fn positions_count_characters_and_stay_within_the_file() {
        let mut sources = Sources::default();
        let file = sources.add("f", "é: 1\r\nb: 2\n");
        let source = sources.get(file).unwrap();
        assert_eq!(source.position(4), Position { line: 1, column: 4 });
        assert_eq!(source.position(7), Position { line: 2, column: 1 });
        assert_eq!(source.position(99), Position { line: 2, column: 6 });
        assert_eq!(source.lines(1..=1), 0..5);
    }
}
