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
    pub(super) fn chosen(offered: &[PositionEncodingKind]) -> Self {
        if offered.contains(&PositionEncodingKind::UTF8) { Self::Utf8 } else { Self::Utf16 }
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
pub(super) struct LineStarts(Vec<usize>);

impl LineStarts {
    /// Finds the lines of a text.
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let is_end =
            |at: usize| bytes[at] == b'\n' || (bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let ends = (0..bytes.len()).filter(|at| is_end(*at));
        Self(std::iter::once(0).chain(ends.map(|at| at + 1)).collect())
    }

    /// Returns the position of a byte of the same text.
    pub(super) fn position(&self, text: &str, byte: usize, unit: ColumnUnit) -> Position {
        let mut byte = byte.min(text.len());
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        let line = self.0.partition_point(|start| *start <= byte).max(1) - 1;
        let before = text[self.0[line]..byte].chars();
        Position::new(number(line), number(before.map(|c| unit.length(c)).sum()))
    }

    /// Returns the positions of a range of bytes.
    pub(super) fn range(&self, text: &str, bytes: &Range<usize>, unit: ColumnUnit) -> LspRange {
        LspRange::new(self.position(text, bytes.start, unit), self.position(text, bytes.end, unit))
    }

    /// Returns the byte at a position. One behind the end of a line is its end, and one behind the last line that of the text.
    pub(super) fn byte(&self, text: &str, position: Position, unit: ColumnUnit) -> usize {
        let line = usize::try_from(position.line).unwrap_or(usize::MAX);
        let Some(start) = self.0.get(line).copied() else { return text.len() };
        let end = line.checked_add(1).and_then(|next| self.0.get(next)).copied().unwrap_or(text.len());
        let written = text[start..end].trim_end_matches(['\n', '\r']);
        let wanted = usize::try_from(position.character).unwrap_or(usize::MAX);
        let mut column = 0;
        for (at, c) in written.char_indices() {
            column += unit.length(c);
            if column > wanted {
                return start + at;
            }
        }
        start + written.len()
    }
}

fn number(count: usize) -> u32 {
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
        assert_eq!(ColumnUnit::chosen(&offered), ColumnUnit::Utf8);
        assert_eq!(ColumnUnit::chosen(&[]), ColumnUnit::Utf16);
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
