//! Escapes as JSON and C, URLs, XML and shells write them: for finding what was escaped, not for understanding it.

use std::ops::Range;

/// A text of which the escapes were read, with where each part of it came from.
#[derive(Debug)]
pub struct Unescaped {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    length: usize,
}

/// A part that came from one escape, or from a text without escapes.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it begins.
    at: usize,
    /// Where it began in the text as written.
    from: usize,
    is_escape: bool,
}

/// The signs that escapes begin with: those of JSON, C and `$'…'`, of URLs, of XML, and of a quote between single
/// quotes. Each belongs to another notation, in which the others are signs like any.
pub const SIGNS: [u8; 4] = [b'\\', b'%', b'&', b'\''];

/// Tells whether there may be an escape in a text.
pub fn is_in(text: &[u8]) -> bool {
    text.iter().any(|byte| SIGNS.contains(byte))
}

impl Unescaped {
    /// Reads the escapes that begin with one of [`SIGNS`]; returns nothing where there are none.
    pub fn of(text: &[u8], sign: u8) -> Option<Self> {
        let mut all = Self { bytes: Vec::new(), pieces: Vec::new(), length: text.len() };
        let (mut plain, mut at) = (0, 0);
        while let Some(next) = text[at..].iter().position(|byte| *byte == sign) {
            at += next;
            let Some((length, meant)) = escape(&text[at..]) else {
                at += 1;
                continue;
            };
            all.push(plain, false, &text[plain..at]);
            all.push(at, true, meant.bytes());
            at += length;
            plain = at;
        }
        if all.pieces.is_empty() {
            return None;
        }
        all.push(plain, false, &text[plain..]);
        Some(all)
    }

    fn push(&mut self, from: usize, is_escape: bool, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.pieces.push(Piece { at: self.bytes.len(), from, is_escape });
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Returns the text as it is meant.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns where a part of it, which is not empty, stands in the text as written.
    pub fn origin(&self, range: Range<usize>) -> Range<usize> {
        let piece = |at: usize| self.pieces.partition_point(|piece| piece.at <= at).saturating_sub(1);
        let from = |at: usize, piece: &Piece| if piece.is_escape { 0 } else { at - piece.at };
        let (first, last) = (piece(range.start), piece(range.end.saturating_sub(1)));
        let start = &self.pieces[first];
        let end = match &self.pieces[last] {
            Piece { is_escape: true, .. } => {
                self.pieces.get(last + 1).map_or(self.length, |piece| piece.from)
            }
            piece => piece.from + (range.end - piece.at),
        };
        start.from + from(range.start, start)..end
    }
}

/// What an escape means: up to a character.
#[derive(Clone, Copy)]
struct Meant([u8; 4], usize);

impl Meant {
    fn byte(byte: u8) -> Self {
        Self([byte, 0, 0, 0], 1)
    }

    fn character(c: char) -> Self {
        let mut bytes = [0; 4];
        let length = c.encode_utf8(&mut bytes).len();
        Self(bytes, length)
    }

    fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// Reads the escape that a text begins with: its length, and what it means.
fn escape(text: &[u8]) -> Option<(usize, Meant)> {
    match text[0] {
        b'%' => Some((3, Meant::byte(u8::try_from(number(text.get(1..3)?, 16)?).ok()?))),
        b'\\' => backslash(text),
        b'&' => entity(text),
        // Between single quotes a shell has no escape: they end, the quote is written, and they begin again.
        _ => ["'\\''", "'\"'\"'"]
            .iter()
            .find(|quote| text.starts_with(quote.as_bytes()))
            .map(|quote| (quote.len(), Meant::byte(b'\''))),
    }
}

fn backslash(text: &[u8]) -> Option<(usize, Meant)> {
    let simple = |byte| Some((2, Meant::byte(byte)));
    match *text.get(1)? {
        b'u' => unicode(text),
        b'U' => Some((10, Meant::character(char::from_u32(number(text.get(2..10)?, 16)?)?))),
        b'x' => Some((4, Meant::byte(u8::try_from(number(text.get(2..4)?, 16)?).ok()?))),
        b'0'..=b'7' => {
            let digits = text[1..].iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            Some((1 + digits, Meant::byte(u8::try_from(number(&text[1..=digits], 8)?).ok()?)))
        }
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        byte if byte.is_ascii() => simple(byte),
        _ => None,
    }
}

/// Reads `\u0048`, two of them for a character that is beyond them, or `\u{48}`.
fn unicode(text: &[u8]) -> Option<(usize, Meant)> {
    if text.get(2) == Some(&b'{') {
        let digits = text[3..].iter().take(7).position(|byte| *byte == b'}')?;
        let c = char::from_u32(number(&text[3..3 + digits], 16)?)?;
        return Some((4 + digits, Meant::character(c)));
    }
    let unit = |at: usize| number(text.get(at..at + 4)?, 16);
    let first = unit(2)?;
    if let Some(c) = char::from_u32(first) {
        return Some((6, Meant::character(c)));
    }
    let second = unit(8).filter(|_| text[6..].starts_with(b"\\u"))?;
    let units = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    let c = char::decode_utf16(units).next()?.ok()?;
    Some((12, Meant::character(c)))
}

/// Reads `&amp;`, `&#43;` or `&#x2B;`.
fn entity(text: &[u8]) -> Option<(usize, Meant)> {
    let end = text.iter().take(10).position(|byte| *byte == b';')?;
    let c = match &text[1..end] {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(number(digits, 10)?)?,
        _ => return None,
    };
    Some((end + 1, Meant::character(c)))
}

/// Reads digits, and nothing but digits.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let add = |sum: u32, byte: &u8| sum.checked_mul(radix)?.checked_add(char::from(*byte).to_digit(radix)?);
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(sign: u8, text: &str, expect: &str) {
        let unescaped = Unescaped::of(text.as_bytes(), sign);
        let bytes = unescaped.as_ref().map_or(text.as_bytes(), Unescaped::bytes);
        assert_eq!(String::from_utf8_lossy(bytes), expect, "{text}");
    }

    #[test]
    fn every_kind_of_escape_is_read() {
        check(b'%', "a%2Fb%2fc%zz%2&lt;", "a/b/c%zz%2&lt;");
        check(b'\\', r#"\"\\\/\n\u00e9\u003C\uD83D\uDE00\ud83d%20"#, "\"\\/\n\u{e9}<\u{1f600}\\ud83d%20");
        check(b'\\', r"\u{48}\u{1F600}\u{}\U0001F600\x2b\053\7\400", "H\u{1f600}\\u{}\u{1f600}++\u{7}\\400");
        check(b'\\', r"$'a\'b' a\ b\é", "$'a'b' a b\\é");
        check(b'\\', "\\", "\\");
        check(b'&', "&amp;&lt;&gt;&quot;&apos;&#39;&#x2B;&#X2b;&nope;&amp", "&<>\"'\'++&nope;&amp");
        check(b'\'', r#"it'\''s it'"'"'s 'x'"#, "it's it's 'x'");
        check(b'\'', "plain", "plain");
    }

    proptest! {
        #[test]
        fn what_is_found_is_found_where_it_stands(text in r#"([a-c\\%&'";#xu{}0-9é]|\\"|%2[bB]|&lt;|\\u00e9){0,40}"#) {
            for unescaped in SIGNS.iter().filter_map(|sign| Unescaped::of(text.as_bytes(), *sign)) {
                let length = unescaped.bytes().len();
                let mut last = 0;
                for at in 0..length {
                    let origin = unescaped.origin(at..at + 1);
                    prop_assert!(origin.start < origin.end && origin.end <= text.len());
                    prop_assert!(origin.start >= last);
                    last = origin.start;
                }
                prop_assert_eq!(unescaped.origin(0..length), 0..text.len());
            }
        }
    }
}
