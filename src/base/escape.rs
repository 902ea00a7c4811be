//! Texts without their escapes, whoever wrote them: JSON, C, URLs, XML, shells, and one within the other. For finding
//! what was escaped, not for understanding it.
//!
//! Backslashes and quotes say how to read what stands between them, and how many there are depends on how often a text
//! was quoted. So they are left out, in what is searched for as in what is searched.

use std::ops::Range;

use super::text::{is_direction, sequences};

/// A text without escapes, with where each part of it stands in the text as written.
#[derive(Debug)]
pub struct UnescapedText {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
}

/// A part that stands so in the text, or that one code stands for.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it begins.
    at: usize,
    /// Where it stands in the text as written.
    from: usize,
    /// The length of the code; 0 for what stands so.
    code: usize,
}

/// Tells whether there may be a code to read.
pub fn is_in(text: &[u8]) -> bool {
    has(text, |byte| matches!(byte, b'\\' | b'%' | b'&'))
}

/// Tells whether such a byte is in a text, in few steps.
pub fn has(text: &[u8], is_wanted: impl Fn(u8) -> bool) -> bool {
    // There is no early exit within a chunk, so that the compiler can compare many bytes at once.
    text.chunks(256).any(|part| part.iter().fold(false, |any, byte| any | is_wanted(*byte)))
}

/// Tells whether a byte says how to read those beside it, and may be left out of what is meant.
pub fn is_quoting(byte: u8) -> bool {
    matches!(byte, b'\\' | b'\'' | b'"')
}

/// Whose codes of characters are read. In a text of one notation, those of the others are signs like any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codes {
    /// Nobody's.
    None,
    /// `\u0048`, `\u{48}`, `\U00000048`, `\x48` and `\110`, as in JSON, C and `$'…'`.
    Backslash,
    /// `%48`, as in URLs.
    Percent,
    /// `&lt;`, `&#72;` and `&#x48;`, as in XML and HTML.
    Entity,
}

impl Codes {
    /// Those that there are.
    pub const ALL: [Self; 3] = [Self::Backslash, Self::Percent, Self::Entity];

    fn sign(self) -> Option<u8> {
        match self {
            Self::None => None,
            Self::Backslash => Some(b'\\'),
            Self::Percent => Some(b'%'),
            Self::Entity => Some(b'&'),
        }
    }

    /// Tells whether there is such a code in a text.
    pub fn are_in(self, text: &[u8]) -> bool {
        self.next(text, 0).is_some()
    }

    /// Returns where the first code from a place on stands.
    fn next(self, text: &[u8], from: usize) -> Option<Range<usize>> {
        let sign = self.sign()?;
        let mut at = from;
        loop {
            at += text.get(at..)?.iter().position(|byte| *byte == sign)?;
            if let Some((length, _)) = self.first(&text[at..]) {
                return Some(at..at + length);
            }
            at += self.run(&text[at..]);
        }
    }

    /// Returns the length of the signs at the beginning that are not code together, so that none is looked at twice.
    fn run(self, text: &[u8]) -> usize {
        match self {
            Self::Backslash => text.iter().take_while(|byte| **byte == b'\\').count(),
            Self::None | Self::Percent | Self::Entity => 1,
        }
    }

    /// Reads the code that a text begins with: its length, and what it means.
    fn first(self, text: &[u8]) -> Option<(usize, EscapedBytes)> {
        match self {
            Self::None => None,
            Self::Backslash => backslash(text),
            Self::Percent => Some((3, EscapedBytes::byte(digits(text, 1..3, 16)?)?)),
            Self::Entity => entity(text),
        }
    }
}

/// Returns the parts of a text that are so near to a code, in order and apart. Elsewhere nothing has to be read to find what
/// stands there, and of what is no text hardly anything is near to one.
pub fn near_codes(text: &[u8], reach: usize) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    for codes in Codes::ALL {
        let mut next = codes.next(text, 0);
        while let Some(place) = next {
            next = codes.next(text, place.end);
            places.push(place);
        }
    }
    places.sort_unstable_by_key(|place| place.start);
    let mut near: Vec<Range<usize>> = Vec::new();
    for place in places {
        let (start, end) = (place.start.saturating_sub(reach), (place.end + reach).min(text.len()));
        match near.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => near.push(start..end),
        }
    }
    near
}

/// Leaves out what quotes.
pub fn bare(text: &str) -> String {
    text.replace(['\\', '\'', '"'], "")
}

impl UnescapedText {
    /// Leaves out what quotes in a text, and reads these codes.
    pub fn of(text: &[u8], codes: Codes) -> Self {
        let mut all = Self { bytes: Vec::with_capacity(text.len()), pieces: Vec::new() };
        let sign = codes.sign();
        let (mut plain, mut at) = (0, 0);
        let is_special = |byte: &u8| is_quoting(*byte) || Some(*byte) == sign;
        while let Some(next) = text[at..].iter().position(is_special) {
            at += next;
            let code = if Some(text[at]) == sign { codes.first(&text[at..]) } else { None };
            let length = match code {
                Some((length, _)) => length,
                // Backslashes without a code behind them only quote, however many there are.
                None if Some(text[at]) == sign && is_quoting(text[at]) => codes.run(&text[at..]),
                None if is_quoting(text[at]) => 1,
                None => {
                    at += 1;
                    continue;
                }
            };
            all.push(plain, 0, &text[plain..at]);
            if let Some((length, meant)) = code {
                all.push(at, length, meant.bytes());
            }
            at += length;
            plain = at;
        }
        all.push(plain, 0, &text[plain..]);
        all
    }

    /// Leaves out what no report shows of a text: sequences for terminals, control characters, and what turns the
    /// direction of reading.
    pub fn visible(text: &str) -> Self {
        let mut all = Self::empty();
        let (mut plain, mut at) = (0, 0);
        for (part, is_sequence) in sequences(text) {
            for (index, c) in part.char_indices().filter(|(_, c)| is_sequence || is_hidden(*c)) {
                let hidden = at + index;
                all.push(plain, 0, &text.as_bytes()[plain..hidden]);
                plain = hidden + c.len_utf8();
            }
            at += part.len();
        }
        all.push(plain, 0, &text.as_bytes()[plain..]);
        all
    }

    /// Writes what is beyond ASCII and neither letter nor digit as such signs of ASCII; nothing where a text has none of it.
    pub fn apart(text: &[u8]) -> Option<Self> {
        if !has(text, |byte| !byte.is_ascii()) {
            return None;
        }
        let mut all = Self::empty();
        let (mut plain, mut at) = (0, 0);
        for chunk in text.utf8_chunks() {
            for c in chunk.valid().chars() {
                if let Some(meant) = meant_as(c) {
                    all.push(plain, 0, &text[plain..at]);
                    all.push(at, c.len_utf8(), meant);
                    plain = at + c.len_utf8();
                }
                at += c.len_utf8();
            }
            at += chunk.invalid().len();
        }
        all.push(plain, 0, &text[plain..]);
        (plain > 0).then_some(all)
    }

    /// Makes one of nothing.
    pub fn empty() -> Self {
        Self { bytes: Vec::new(), pieces: Vec::new() }
    }

    /// Adds what stands so in the text as written, or what a code of this length stands for.
    pub fn push(&mut self, from: usize, code: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.pieces.push(Piece { at: self.bytes.len(), from, code });
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Returns the text without escapes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns where a part of it, which is not empty, stands in the text as written.
    pub fn origin(&self, range: Range<usize>) -> Range<usize> {
        let piece = |at: usize| {
            let next = self.pieces.partition_point(|piece| piece.at <= at);
            self.pieces.get(next.saturating_sub(1)).copied().unwrap_or(Piece { at: 0, from: 0, code: 0 })
        };
        let last = range.end.saturating_sub(1);
        let (first, end) = (piece(range.start), piece(last));
        let within = |piece: Piece, at: usize| if piece.code > 0 { 0 } else { at - piece.at };
        first.from + within(first, range.start)..end.from + end.code.max(within(end, last) + 1)
    }
}

/// Tells whether a character is taken out of everything that is shown.
pub fn is_hidden(c: char) -> bool {
    is_direction(c) || (c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
}

/// Returns the sign of ASCII for which a character stands that is neither letter nor digit, such as a dash or what was no UTF-8;
/// nothing for a letter or a digit, and no sign for what has no width.
fn meant_as(c: char) -> Option<&'static [u8]> {
    match c {
        c if c.is_ascii() || c.is_alphanumeric() => None,
        '\u{2028}' | '\u{2029}' => Some(b"\n"),
        '\u{ad}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2064}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' => Some(b""),
        _ => Some(b" "),
    }
}

/// What a code means: up to a character.
#[derive(Clone, Copy)]
struct EscapedBytes([u8; 4], usize);

impl EscapedBytes {
    fn byte(number: u32) -> Option<Self> {
        Some(Self([u8::try_from(number).ok()?, 0, 0, 0], 1))
    }

    fn character(number: u32) -> Option<Self> {
        let mut bytes = [0; 4];
        let length = char::from_u32(number)?.encode_utf8(&mut bytes).len();
        Some(Self(bytes, length))
    }

    fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// Reads `\u0048`, `\u{48}`, `\U00000048`, `\x48` or `\110`, with as many backslashes as there are.
fn backslash(text: &[u8]) -> Option<(usize, EscapedBytes)> {
    let at = text.iter().take_while(|byte| **byte == b'\\').count();
    match (*text.get(at)?, text.get(at + 1)) {
        (b'u', Some(b'{')) => {
            // Up to six digits, as in `\u{10ffff}`.
            let length = text[at + 2..].iter().take(7).position(|byte| *byte == b'}')?;
            Some((at + 3 + length, EscapedBytes::character(digits(text, at + 2..at + 2 + length, 16)?)?))
        }
        (b'u', _) => {
            let unit = digits(text, at + 1..at + 5, 16)?;
            match EscapedBytes::character(unit) {
                Some(meant) => Some((at + 5, meant)),
                None => pair(text, at, unit),
            }
        }
        (b'U', _) => Some((at + 9, EscapedBytes::character(digits(text, at + 1..at + 9, 16)?)?)),
        (b'x', _) => Some((at + 3, EscapedBytes::byte(digits(text, at + 1..at + 3, 16)?)?)),
        (b'0'..=b'7', _) => Some((at + 3, EscapedBytes::byte(digits(text, at..at + 3, 8)?)?)),
        _ => None,
    }
}

/// Reads a character of two units of UTF-16, of which the first stands at the beginning.
fn pair(text: &[u8], backslashes: usize, first: u32) -> Option<(usize, EscapedBytes)> {
    let second = backslashes + 5;
    // Both units were quoted equally often, so the second has as many backslashes as the first.
    let u = second + backslashes;
    let is_next = text.get(second..u)?.iter().all(|byte| *byte == b'\\') && text.get(u) == Some(&b'u');
    let unit = is_next.then(|| digits(text, u + 1..u + 5, 16)).flatten()?;
    let units = [u16::try_from(first).ok()?, u16::try_from(unit).ok()?];
    let c = char::decode_utf16(units).next()?.ok()?;
    Some((u + 5, EscapedBytes::character(u32::from(c))?))
}

/// Reads `&amp;`, `&#43;` or `&#x2B;`.
fn entity(text: &[u8]) -> Option<(usize, EscapedBytes)> {
    // `&#1114111;`, the longest that means a character, has ten.
    let end = text.iter().take(10).position(|byte| *byte == b';')?;
    let number = match &text[1..end] {
        b"amp" => u32::from('&'),
        b"lt" => u32::from('<'),
        b"gt" => u32::from('>'),
        b"quot" => u32::from('"'),
        b"apos" => u32::from('\''),
        [b'#', b'x' | b'X', ..] => digits(text, 3..end, 16)?,
        [b'#', ..] => digits(text, 2..end, 10)?,
        _ => return None,
    };
    Some((end + 1, EscapedBytes::character(number)?))
}

/// Reads digits, and nothing but digits.
fn digits(text: &[u8], range: Range<usize>, radix: u32) -> Option<u32> {
    let add = |sum: u32, byte: &u8| sum.checked_mul(radix)?.checked_add(char::from(*byte).to_digit(radix)?);
    let digits = text.get(range).filter(|digits| !digits.is_empty())?;
    digits.iter().try_fold(0, add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(codes: Codes, text: &str, expect: &str) {
        let bare = UnescapedText::of(text.as_bytes(), codes);
        assert_eq!(String::from_utf8_lossy(bare.bytes()), expect, "{text}");
        assert_eq!(codes.are_in(text.as_bytes()), bare.pieces.iter().any(|piece| piece.code > 0));
    }

    #[test]
    fn every_kind_of_code_is_read() {
        check(Codes::Percent, "a%2Fb%2fc%zz%2&lt;", "a/b/c%zz%2&lt;");
        check(
            Codes::Backslash,
            r"\u00e9\\u003C\uD83D\uDE00\\ud83d\\ude00\ud83d\u0041",
            "\u{e9}<\u{1f600}\u{1f600}ud83dA",
        );
        check(
            Codes::Backslash,
            r"\u{48}\u{1F600}\u{}\U0001F600\x2b\053\\\053\40\400",
            "H\u{1f600}u{}\u{1f600}+++40400",
        );
        check(Codes::Entity, "&amp;&lt;&gt;&quot;&apos;&#39;&#x2B;&#X2b;&nope;&amp", "&<>\"'\'++&nope;&amp");
    }

    #[test]
    fn only_what_is_near_to_a_code_is_read() {
        let text = format!("{}%41{}\\u0042&lt;{}%zz", "a".repeat(100), "b".repeat(100), "c".repeat(100));
        assert_eq!(near_codes(text.as_bytes(), 10), [90..113, 193..223]);
        assert_eq!(near_codes(text.as_bytes(), 60), vec![40..273; 1]);
        assert!(near_codes(b"no code: % & \\", 10).is_empty());
    }

    #[test]
    fn what_quotes_is_left_out() {
        check(Codes::None, r#"it'\''s "a'"'$b"c' \"d\\\"e\/f\ g"#, "its a$bc de/f g");
        check(Codes::Backslash, "\\", "");
        check(Codes::None, "a'b%41&lt;\\u0041", "ab%41&lt;u0041");
        assert_eq!(bare(r#"it's \"a\""#), "its a");
    }

    #[test]
    fn what_is_beyond_ascii_and_no_letter_is_a_sign_of_ascii() {
        let shown = |text: &str| {
            let apart = UnescapedText::apart(text.as_bytes())?;
            Some(String::from_utf8_lossy(apart.bytes()).into_owned())
        };
        assert_eq!(shown("a-b"), None);
        assert_eq!(shown("é世b"), None);
        assert_eq!(shown("a\u{2028}b\u{2029}c").unwrap(), "a\nb\nc");
        assert_eq!(shown("a\u{a0}b—é\u{fffd}\u{301}c").unwrap(), "a b é  c");
        assert_eq!(shown("\u{feff}a\u{200b}b\u{ad}").unwrap(), "ab");
        let apart = UnescapedText::apart("x—ab".as_bytes()).unwrap();
        assert_eq!([apart.origin(1..2), apart.origin(2..4)], [1..4, 4..6]);
    }

    proptest! {
        #[test]
        fn what_is_found_is_found_where_it_stands(
            text in r#"([a-c\\%&'";#xu{}0-9é]|\\\\"|%2[bB]|&lt;|\\u00e9){0,40}"#,
            codes in proptest::sample::select(vec![Codes::None, Codes::Backslash, Codes::Percent, Codes::Entity]),
        ) {
            let bare = UnescapedText::of(text.as_bytes(), codes);
            let mut end = 0;
            for (at, byte) in bare.bytes().iter().enumerate() {
                let origin = bare.origin(at..at + 1);
                prop_assert!(origin.start < origin.end && origin.end <= text.len());
                // The same code, or what comes behind it.
                prop_assert!(origin.start >= end || origin.end == end);
                prop_assert!(origin.len() > 1 || text.as_bytes()[origin.start] == *byte);
                end = origin.end;
            }
            let length = bare.bytes().len();
            if length > 0 {
                let whole = bare.origin(0..length);
                prop_assert_eq!(whole, bare.origin(0..1).start..end);
            }
        }
    }
}
