//! The ways in which programs write a secret, and what has to hold for a text that has the same letters and digits.
//!
//! A form is looked for by its letters and digits alone ([`super::signs`]), whatever stands between them. Whether a text
//! that has them is the secret depends on the form and on its length: what is short is also an ordinary word.

use std::ops::Range;

use super::escape::{UnescapedText, bare, is_quoting};
use super::signs::is_sign;
use super::text::hex;

/// Shorter values are too common to be replaced without wrecking the text around them.
pub const MIN_SECRET: usize = 6;

/// With as many letters and digits, a secret is found whatever signs and blanks stand between them.
pub(super) const SPREAD: usize = 12;

/// A secret as long is found broken by line ends, and as a list of numbers.
pub(super) const BROKEN: usize = 8;

/// A secret as long with a digit in it is found in small and great letters alike.
const FOLDED: usize = 8;

/// Without a digit, it has to be as long as no word is.
const FOLDED_WORD: usize = 16;

/// A secret of one line that is longer is not looked for as a list of numbers, and its lines are.
const LONGEST_LIST: usize = 512;

/// A form as long is sure to be the secret where it overlaps one: it has its letters and digits, in small or great letters.
const LONG: usize = 256;

/// Where programs break lines of base64.
// 64 in PEM, as openssl writes it, and 76 in MIME, as the command `base64` does.
const BASE64_LINES: [usize; 2] = [64, 76];

/// A way to write a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SecretForm {
    kind: SecretEncoding,
    written: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SecretEncoding {
    /// As it is.
    Text { folds: bool },
    /// In base64 or base64url.
    Base64,
    /// In hexadecimal digits.
    Hex,
    /// As a list of numbers with so many digits each.
    Numbers(Vec<u8>),
}

/// Returns every way to write a secret that is looked for.
pub(super) fn all(secret: &str) -> Vec<SecretForm> {
    let bytes = secret.as_bytes();
    let mut all: Vec<SecretForm> =
        texts(secret).into_iter().map(|text| SecretForm::text(secret, text)).collect();
    all.extend(base64_forms(secret));
    let each = |write: fn(u8) -> String| bytes.iter().map(|byte| write(*byte)).collect::<String>();
    all.extend(
        [hex(bytes), each(|byte| format!("0x{byte:02x} "))]
            .map(|text| SecretForm::new(SecretEncoding::Hex, text)),
    );
    if (BROKEN..=LONGEST_LIST).contains(&bytes.len()) {
        all.extend(lists(secret));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The secret itself, and what is left of it and stands for it where some of its signs are written otherwise.
fn texts(secret: &str) -> Vec<String> {
    let quoted_printable = |is_plain: fn(u8) -> bool| {
        secret.bytes().fold(String::new(), |all, byte| {
            if is_plain(byte) {
                all + char::from(byte).encode_utf8(&mut [0; 4])
            } else {
                all + &format!("={byte:02X}")
            }
        })
    };
    // With `+` for blanks, as forms of web pages send it, and in quoted-printable, as mail does.
    let mut all = vec![
        secret.to_owned(),
        secret.replace(' ', "+"),
        quoted_printable(|byte| matches!(byte, b' '..=b'~') && byte != b'='),
        quoted_printable(|byte| byte.is_ascii_alphanumeric()),
    ];
    // The search ignores case in ASCII only, and passes over what else is no letter and no digit.
    if !secret.is_ascii() {
        all.extend([secret.to_lowercase(), secret.to_uppercase()]);
        let apart = UnescapedText::apart(secret.as_bytes());
        all.extend(apart.map(|apart| String::from_utf8_lossy(apart.bytes()).into_owned()));
    }
    all
}

/// Base64 of the secret, and of what it is as a text of JSON, wherever it stands in what was encoded.
fn base64_forms(secret: &str) -> Vec<SecretForm> {
    let json = serde_json::Value::from(secret).to_string();
    let json = &json[1..json.len() - 1];
    let units = |c: char| {
        let units =
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>();
        units.concat()
    };
    let but = |is_plain: fn(char) -> bool| {
        json.chars().map(|c| if is_plain(c) { c.to_string() } else { units(c) }).collect::<String>()
    };
    let mut texts = vec![
        secret.to_owned(),
        json.to_owned(),
        // As PHP writes JSON; below, as Python does; and last, as Go does.
        json.replace('/', "\\/"),
        but(|c| c.is_ascii()),
        but(|c| c.is_ascii()).replace('/', "\\/"),
        but(|c| !matches!(c, '&' | '<' | '>')),
    ];
    texts.sort_unstable();
    texts.dedup();
    let cores = texts.iter().flat_map(|text| (0..3).map(|skip| base64_core(text.as_bytes(), skip)));
    cores.chain(base64_lines(secret)).map(|core| SecretForm::new(SecretEncoding::Base64, core)).collect()
}

/// Lists of the numbers of its bytes, or of its characters, as programs write them.
fn lists(secret: &str) -> impl Iterator<Item = SecretForm> {
    let bytes: Vec<i32> = secret.bytes().map(i32::from).collect();
    // The bytes of Java have a sign, which is passed over like everything between the numbers.
    let signed = secret.bytes().map(|byte| i32::from(byte.cast_signed()).abs()).collect();
    let characters = secret.chars().filter_map(|c| i32::try_from(u32::from(c)).ok()).collect();
    // As C and shells write them, and with the sign of each.
    let octal = |write: fn(&i32) -> String| bytes.iter().map(write).collect::<Vec<_>>();
    let mut all = vec![
        octal(|byte| format!("{byte:03o}")),
        octal(|byte| format!("{byte:o}")),
        octal(|byte| format!("0{byte:o}")),
    ];
    all.push(bytes.iter().map(|byte| format!("{byte:03}")).collect());
    let decimal = |numbers: Vec<i32>| numbers.iter().map(i32::to_string).collect::<Vec<_>>();
    all.extend([bytes, signed, characters].map(decimal));
    all.into_iter().map(|numbers: Vec<String>| {
        let digits = numbers.iter().map(|number| u8::try_from(number.len()).unwrap_or(u8::MAX)).collect();
        SecretForm::new(SecretEncoding::Numbers(digits), numbers.join(" "))
    })
}

impl SecretForm {
    fn new(kind: SecretEncoding, written: String) -> Self {
        Self { kind, written: written.into_bytes() }
    }

    fn text(secret: &str, written: String) -> Self {
        let least = if secret.bytes().any(|byte| byte.is_ascii_digit()) { FOLDED } else { FOLDED_WORD };
        Self::new(SecretEncoding::Text { folds: secret.len() >= least }, written)
    }

    /// Returns its letters and digits.
    pub(super) fn signs(&self) -> Vec<u8> {
        self.written.iter().copied().filter(|byte| is_sign(*byte)).collect()
    }

    /// Returns where the secret stands in a text, of which this range has the signs of the form. A long one that overlaps
    /// what was confirmed before is not compared once more: each place of a text that repeats a secret that repeats itself
    /// would be compared with all of it.
    pub(super) fn confirm(&self, text: &[u8], found: Range<usize>, overlaps: bool) -> Option<Range<usize>> {
        let is_sure = overlaps && self.written.len() >= LONG;
        match &self.kind {
            SecretEncoding::Text { folds } => self.confirm_text(text, found, *folds, is_sure),
            SecretEncoding::Base64 => self.confirm_base64(text, found, is_sure),
            // A dozen hexadecimal digits in just this order are no coincidence.
            SecretEncoding::Hex => Some(found),
            SecretEncoding::Numbers(digits) => are_numbers(text, &found, digits).then_some(found),
        }
    }

    fn confirm_text(
        &self,
        text: &[u8],
        found: Range<usize>,
        folds: bool,
        is_sure: bool,
    ) -> Option<Range<usize>> {
        let inside = &text[found.clone()];
        let (lead, core, trail) = self.split();
        if is_sure {
            return Some(around(text, &found, lead, trail).unwrap_or(found));
        }
        let is_same = signs(inside).eq(signs(core));
        if !is_same && !folds {
            return None;
        }
        let with_ends = around(text, &found, lead, trail);
        let is_whole =
            || equal(inside, core, false) || self.written.len() >= BROKEN && equal(inside, core, true);
        match with_ends {
            Some(range) if is_whole() => Some(range),
            range => (signs(core).count() >= SPREAD).then(|| range.unwrap_or(found)),
        }
    }

    fn confirm_base64(&self, text: &[u8], found: Range<usize>, is_sure: bool) -> Option<Range<usize>> {
        let inside = &text[found.clone()];
        let (lead, core, trail) = self.split();
        let belongs = |byte: &u8| matches!(byte, b'+' | b'/' | b'-' | b'_' | b'\\' | b'\r' | b'\n');
        let is_close = || inside.iter().all(|byte| is_sign(*byte) || belongs(byte));
        let is_same = || signs(inside).eq(signs(core)) && (signs(core).count() >= SPREAD || is_close());
        if !is_sure && !is_same() {
            return None;
        }
        let is_digit = |byte: &&u8| matches!(byte, b'+' | b'/' | b'-' | b'_');
        let before = text[..found.start].iter().rev().take(lead.len()).take_while(is_digit).count();
        let behind = text[found.end..].iter().take(trail.len()).take_while(is_digit).count();
        Some(found.start - before..found.end + behind)
    }

    /// Splits it before its first and behind its last letter or digit.
    fn split(&self) -> (&[u8], &[u8], &[u8]) {
        let first = self.written.iter().position(|byte| is_sign(*byte)).unwrap_or(0);
        let end = self.written.iter().rposition(|byte| is_sign(*byte)).map_or(first, |last| last + 1);
        (&self.written[..first], &self.written[first..end], &self.written[end..])
    }
}

fn signs(text: &[u8]) -> impl Iterator<Item = u8> {
    let signs = text.iter().copied().filter(|byte| is_sign(*byte));
    #[cfg(test)]
    let signs = signs.inspect(|_| super::signs::work::count());
    signs
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Compares texts without what quotes, in small and great letters alike, and perhaps without their line ends.
fn equal(one: &[u8], other: &[u8], is_broken: bool) -> bool {
    let counts = |byte: &&u8| !(is_quoting(**byte) || is_broken && is_line_end(**byte));
    let (mut one, mut other) = (one.iter().filter(counts), other.iter().filter(counts));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a.eq_ignore_ascii_case(b) => {}
            _ => return false,
        }
    }
}

/// Returns a range with what a secret begins and ends with, if that stands there.
fn around(text: &[u8], found: &Range<usize>, lead: &[u8], trail: &[u8]) -> Option<Range<usize>> {
    let before = length(text[..found.start].iter().rev().copied(), lead.iter().rev().copied())?;
    let behind = length(text[found.end..].iter().copied(), trail.iter().copied())?;
    Some(found.start - before..found.end + behind)
}

/// Returns how much of a text is what it should begin with, which may be quoted in it or broken by line ends.
fn length(text: impl Iterator<Item = u8>, expected: impl Iterator<Item = u8>) -> Option<usize> {
    let mut text = text.enumerate().peekable();
    let mut length = 0;
    for wanted in expected {
        loop {
            match text.peek() {
                Some((at, byte)) if *byte == wanted => {
                    length = at + 1;
                    text.next();
                    break;
                }
                // What quotes in the secret may be left out in the text.
                _ if is_quoting(wanted) => break,
                Some((_, byte)) if is_quoting(*byte) || is_line_end(*byte) => {
                    text.next();
                }
                _ => return None,
            }
        }
    }
    Some(length)
}

/// Tells whether numbers with so many digits each stand there, apart.
fn are_numbers(text: &[u8], found: &Range<usize>, digits: &[u8]) -> bool {
    let is_part = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = found.start;
    for count in digits {
        while at < found.end && !is_part(at) {
            at += 1;
        }
        let end = at + usize::from(*count);
        if (at > 0 && is_part(at - 1)) || end > found.end || !(at..end).all(is_part) || is_part(end) {
            return false;
        }
        at = end;
    }
    at == found.end
}

/// Base64 of a long secret, alone or as a line, as programs break it into lines.
fn base64_lines(secret: &str) -> Vec<String> {
    // `echo` adds a line end, which is encoded with the secret.
    let wholes = [base64_core(secret.as_bytes(), 0), base64_core(format!("{secret}\n").as_bytes(), 0)];
    let lines = wholes.iter().flat_map(|whole| {
        let broken = BASE64_LINES.iter().filter(|width| whole.len() > **width);
        broken.flat_map(|width| whole.as_bytes().chunks(*width))
    });
    lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

/// Base64 of the bytes as they stand after `skip` unknown ones; only the characters that do not depend on neighbours.
pub(super) fn base64_core(bytes: &[u8], skip: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut padded = vec![0_u8; skip];
    padded.extend_from_slice(bytes);
    let whole: String = padded
        .chunks(3)
        .flat_map(|chunk| {
            let group =
                chunk.iter().fold(0_u32, |acc, byte| acc << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
            (0..=chunk.len()).map(move |i| char::from(ALPHABET[(group >> (18 - 6 * i)) as usize & 63]))
        })
        .collect();
    let start = (skip * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    whole.get(start..end).unwrap_or("").to_owned()
}

/// Tells whether a secret has enough letters and digits to be looked for by them.
pub(super) fn has_signs(form: &SecretForm) -> bool {
    form.signs().len() >= MIN_SECRET
}

/// Returns a secret as it is, as it is without what quotes, and in base64: for one of few letters and digits.
pub(super) fn exact(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned(), bare(secret), bare(secret).replace(' ', "+")];
    // Three bytes are encoded together, and the secret may begin at any of them.
    for skip in 0..3 {
        let core = base64_core(secret.as_bytes(), skip);
        all.extend([core.replace('+', "-").replace('/', "_"), core]);
    }
    all
}
