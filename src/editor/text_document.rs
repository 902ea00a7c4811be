//! A text as an editor has it: positions of lines and columns in the unit of the client, and edits of its parts.

use std::ops::Range;

use ls_types::{Position, PositionEncodingKind, Range as LspRange, TextDocumentContentChangeEvent};

/// What a column counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ColumnUnit {
    /// Bytes.
    Utf8,
    /// Half of what a character outside of the basic plane takes: what every client knows.
    #[default]
    Utf16,
}

impl ColumnUnit {
    /// Chooses what the client offers and is the least work.
    pub(super) fn chosen(offered: Option<&[PositionEncodingKind]>) -> Self {
        // A client that says nothing counts as the protocol always did.
        let has_bytes = offered.is_some_and(|offered| offered.contains(&PositionEncodingKind::UTF8));
        if has_bytes { Self::Utf8 } else { Self::Utf16 }
    }

    /// Returns its name in the protocol.
    pub(super) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    fn length(self, c: char) -> usize {
        match self {
            Self::Utf8 => c.len_utf8(),
            Self::Utf16 => c.len_utf16(),
        }
    }
}

/// Where the lines of a text begin. As the protocol has it, a line ends with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineStarts {
    starts: Vec<usize>,
    /// Places in long lines from which columns are counted: from the beginning of the line, thousands of findings in a line of a
    /// megabyte would take minutes.
    marks: Vec<ColumnMark>,
}

/// A place in a line whose column is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ColumnMark {
    byte: usize,
    /// Its column in UTF-16 units.
    column: usize,
}

/// At least so many bytes are between two marks.
const MARK_DISTANCE: usize = 256;

impl LineStarts {
    /// Finds the lines of a text.
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let is_end =
            |at: usize| bytes[at] == b'\n' || (bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let ends = (0..bytes.len()).filter(|at| is_end(*at));
        let starts: Vec<usize> = std::iter::once(0).chain(ends.map(|at| at + 1)).collect();
        let mut marks = Vec::new();
        for (line, start) in starts.iter().enumerate() {
            let end = starts.get(line + 1).copied().unwrap_or(text.len());
            if end - start <= MARK_DISTANCE {
                continue;
            }
            let (mut column, mut last) = (0, *start);
            for (at, c) in text[*start..end].char_indices() {
                let byte = start + at;
                if byte - last >= MARK_DISTANCE {
                    marks.push(ColumnMark { byte, column });
                    last = byte;
                }
                column += c.len_utf16();
            }
        }
        Self { starts, marks }
    }

    /// Returns the last place up to a byte of a line whose column is known.
    fn mark_before(&self, start: usize, byte: usize) -> ColumnMark {
        let count = self.marks.partition_point(|mark| mark.byte <= byte);
        let mark = count.checked_sub(1).map(|last| self.marks[last]);
        mark.filter(|mark| mark.byte >= start).unwrap_or(ColumnMark { byte: start, column: 0 })
    }

    /// Returns the last place up to a column of a line, which goes to `end`, whose column is known.
    fn mark_up_to(&self, start: usize, end: usize, column: usize) -> ColumnMark {
        let of_line = self.marks.partition_point(|mark| mark.byte < start)
            ..self.marks.partition_point(|mark| mark.byte <= end);
        let of_line = &self.marks[of_line];
        let count = of_line.partition_point(|mark| mark.column <= column);
        count.checked_sub(1).map_or(ColumnMark { byte: start, column: 0 }, |last| of_line[last])
    }

    /// Returns the position of a byte of the same text.
    pub(super) fn position(&self, text: &str, byte: usize, unit: ColumnUnit) -> Position {
        let mut byte = byte.min(text.len());
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= byte).max(1) - 1;
        let start = self.starts[line];
        let column = match unit {
            ColumnUnit::Utf8 => byte - start,
            ColumnUnit::Utf16 => {
                let mark = self.mark_before(start, byte);
                mark.column + text[mark.byte..byte].chars().map(char::len_utf16).sum::<usize>()
            }
        };
        Position::new(number(line), number(column))
    }

    /// Returns the positions of a range of bytes.
    pub(super) fn range(&self, text: &str, bytes: &Range<usize>, unit: ColumnUnit) -> LspRange {
        LspRange::new(self.position(text, bytes.start, unit), self.position(text, bytes.end, unit))
    }

    /// Returns the byte at a position. One behind the end of a line is its end, and one behind the last line that of the text.
    pub(super) fn byte(&self, text: &str, position: Position, unit: ColumnUnit) -> usize {
        let line = usize::try_from(position.line).unwrap_or(usize::MAX);
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let end = line.checked_add(1).and_then(|next| self.starts.get(next)).copied().unwrap_or(text.len());
        let end = start + text[start..end].trim_end_matches(['\n', '\r']).len();
        let wanted = usize::try_from(position.character).unwrap_or(usize::MAX);
        let mark = match unit {
            ColumnUnit::Utf8 => ColumnMark { byte: start, column: 0 },
            ColumnUnit::Utf16 => self.mark_up_to(start, end, wanted),
        };
        let mut column = mark.column;
        for (at, c) in text[mark.byte..end].char_indices() {
            column += unit.length(c);
            // A column may lie within a character that takes two units: then the place before it is meant.
            if column > wanted {
                return mark.byte + at;
            }
        }
        end
    }
}

fn number(count: usize) -> u32 {
    // No message that is read is long enough for this to happen.
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A text that is edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextDocument {
    text: String,
    lines: LineStarts,
}

impl TextDocument {
    /// Takes a text as it is.
    pub(super) fn new(text: String) -> Self {
        let lines = LineStarts::of(&text);
        Self { text, lines }
    }

    /// Returns the text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the byte at a position.
    pub(super) fn byte(&self, position: Position, unit: ColumnUnit) -> usize {
        self.lines.byte(&self.text, position, unit)
    }

    /// Returns the positions of a range of bytes.
    pub(super) fn range(&self, bytes: &Range<usize>, unit: ColumnUnit) -> LspRange {
        self.lines.range(&self.text, bytes, unit)
    }

    /// Changes a part of the text, or all of it.
    pub(super) fn apply(&mut self, change: TextDocumentContentChangeEvent, unit: ColumnUnit) {
        let text = match change.range {
            None => change.text,
            Some(range) => {
                let start = self.byte(range.start, unit);
                // A range whose end comes first would end the server.
                let end = self.byte(range.end, unit).max(start);
                let mut text = std::mem::take(&mut self.text);
                text.replace_range(start..end, &change.text);
                text
            }
        };
        *self = Self::new(text);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position::new(line, character)
    }

    #[test]
    fn columns_count_what_the_client_counts() {
        let document = TextDocument::new("é: 1\r\n🐎b\rc\n".to_owned());
        let horse = document.text().find('🐎').unwrap();
        assert_eq!(document.range(&(horse..horse + 4), ColumnUnit::Utf16), LspRange::new(at(1, 0), at(1, 2)));
        assert_eq!(document.range(&(horse..horse + 4), ColumnUnit::Utf8), LspRange::new(at(1, 0), at(1, 4)));
        assert_eq!(document.byte(at(1, 2), ColumnUnit::Utf16), horse + 4);
        assert_eq!(document.byte(at(1, 1), ColumnUnit::Utf16), horse, "the middle of a character");
        assert_eq!(document.byte(at(0, 99), ColumnUnit::Utf16), "é: 1".len());
        assert_eq!(document.byte(at(2, 0), ColumnUnit::Utf16), document.text().find('c').unwrap());
        assert_eq!(document.byte(at(99, 0), ColumnUnit::Utf16), document.text().len());
    }

    #[test]
    fn a_client_that_offers_bytes_gets_them() {
        let offered = [PositionEncodingKind::UTF16, PositionEncodingKind::UTF8];
        assert_eq!(ColumnUnit::chosen(Some(&offered)), ColumnUnit::Utf8);
        assert_eq!(ColumnUnit::chosen(Some(&[])), ColumnUnit::Utf16);
        assert_eq!(ColumnUnit::chosen(None), ColumnUnit::Utf16);
    }

    #[test]
    fn columns_of_long_lines_are_those_of_short_ones() {
        let text = format!("a\n{}\r\n{}", "🐎é-".repeat(900), "b🐎".repeat(300));
        let document = TextDocument::new(text.clone());
        for (byte, c) in text.char_indices().filter(|(_, c)| !matches!(c, '\r' | '\n')) {
            let start = text[..byte].rfind('\n').map_or(0, |end| end + 1);
            let column: usize = text[start..byte].chars().map(char::len_utf16).sum();
            let position = document.range(&(byte..byte), ColumnUnit::Utf16).start;
            assert_eq!(position.character, u32::try_from(column).unwrap());
            assert_eq!(document.byte(position, ColumnUnit::Utf16), byte, "{c}");
            let bytes = document.range(&(byte..byte), ColumnUnit::Utf8).start;
            assert_eq!(document.byte(bytes, ColumnUnit::Utf8), byte, "{c}");
        }
    }

    proptest! {
        #[test]
        fn positions_lead_back_to_their_bytes(text in "[aé🐎\r\n]{0,30}", at in 0..60_usize, utf8: bool) {
            let unit = if utf8 { ColumnUnit::Utf8 } else { ColumnUnit::Utf16 };
            let document = TextDocument::new(text.clone());
            let start = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let position = document.range(&(start..start), unit).start;
            // Within `\r\n` there is no position.
            let expected = if text[..start].ends_with('\r') && text[start..].starts_with('\n') { start - 1 } else { start };
            prop_assert_eq!(document.byte(position, unit), expected);
        }
    }
}
