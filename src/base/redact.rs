//! The one place where secrets become `***`: in logs, the journal, state files and reports alike.
//!
//! A text is searched as it stands, for each secret as it is, in base64 and in hexadecimal. A text with escapes is
//! searched once more without them, so that it does not matter which characters of a secret a program escaped, and how.

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

use super::escape::{self, Bare, Codes};
use super::text::{hex, is_direction, plain, tail};

/// What stands in a text where a secret stood.
pub const MASK: &str = "***";

/// Shorter values are too common to be replaced without wrecking the text around them.
pub const MIN_SECRET: usize = 6;

/// A part of a secret that is left at a cut is hidden when it is as long.
const MIN_PART: usize = 8;

/// The longest way to write a byte that is searched for: `\\u0048`.
const LONGEST_ESCAPE: usize = 7;

/// How often codes are read: those of a URL in a URL.
const DEPTH: usize = 2;

/// Escapes are read in parts of about this size, so that long texts take no more memory than they have.
const PART: usize = 64 * 1024;

/// The sign that something was cut off.
const CUT: char = '…';

/// A text that was cut has few of them; one with more is about something else.
const MAX_CUTS: usize = 64;

/// Where programs break lines of base64.
const BASE64_LINES: [usize; 2] = [64, 76];

/// Replaces known secrets, in the encodings in which programs tend to print them.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    matcher: Option<AhoCorasick>,
    secrets: Vec<String>,
    longest: usize,
}

impl Redactor {
    /// Makes a redactor for these secrets; values shorter than [`MIN_SECRET`] bytes are left out. A secret of
    /// several lines is also masked line by line, as it appears in a log.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let lines = |secret: &'a str| secret.lines().filter(|_| secret.contains('\n'));
        let all = secrets.into_iter().flat_map(|secret| std::iter::once(secret).chain(lines(secret)));
        let mut secrets: Vec<String> =
            all.map(str::trim).filter(|text| text.len() >= MIN_SECRET).map(str::to_owned).collect();
        secrets.sort_unstable();
        secrets.dedup();
        let mut patterns: Vec<String> = secrets.iter().flat_map(|secret| encodings(secret)).collect();
        patterns.sort_unstable();
        patterns.dedup();
        let longest = secrets.iter().map(String::len).max().unwrap_or(0) * LONGEST_ESCAPE;
        let build = || AhoCorasick::builder().match_kind(MatchKind::Standard).build(&patterns).ok();
        let matcher = if patterns.is_empty() { None } else { build() };
        Self { matcher, secrets, longest }
    }

    /// Tells whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.matcher.is_none()
    }

    /// Returns the length of the longest text that is hidden, in bytes: what a stream has to hold back.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Tells whether there is a secret in bytes of any kind.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        !self.is_empty() && matches!(self.text(&String::from_utf8_lossy(bytes)), Cow::Owned(_))
    }

    /// Hides every secret in a text. A line that is only readable as a secret without its escape sequences loses them.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(matcher) = &self.matcher else { return Cow::Borrowed(text) };
        let hidden = text.contains('\u{1b}') || text.chars().any(is_hidden);
        if hidden && let Some(text) = self.without_hidden(matcher, text) {
            return Cow::Owned(self.masked(matcher, &text).into_owned());
        }
        self.masked(matcher, text)
    }

    /// Hides every secret in the last `limit` bytes of a text, also one that only ends in them.
    pub fn tail<'a>(&self, text: &'a str, limit: usize) -> Cow<'a, str> {
        let part = tail(text, limit + self.longest);
        match self.text(part) {
            Cow::Owned(clean) if part.len() < text.len() => {
                Cow::Owned(self.whole_end(&clean, limit).to_owned())
            }
            Cow::Owned(clean) => Cow::Owned(tail(&clean, limit).to_owned()),
            Cow::Borrowed(_) => Cow::Borrowed(tail(text, limit)),
        }
    }

    /// Returns at most `limit` bytes of the end of a clean text, of which the beginning was cut off before it was
    /// cleaned: without what may be the end of a secret there.
    pub fn whole_end<'a>(&self, clean: &'a str, limit: usize) -> &'a str {
        tail(clean, limit.min(clean.len().saturating_sub(self.longest)))
    }

    /// Hides every secret in the texts of a JSON value, and in keys that are more than a lower-case word.
    pub fn json(&self, value: &mut Value) {
        self.json_if(value, &|_| true);
    }

    /// Hides every secret in the texts of a JSON value, but for texts that are one lower-case word: the words of a
    /// format are such, and someone's password may be one of them.
    pub fn json_but_words(&self, value: &mut Value) {
        self.json_if(value, &|text| !is_word(text));
    }

    fn json_if(&self, value: &mut Value, wanted: &dyn Fn(&str) -> bool) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if wanted(text)
                    && let Cow::Owned(clean) = self.text(text)
                {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.json_if(item, wanted)),
            Value::Object(map) => {
                map.values_mut().for_each(|item| self.json_if(item, wanted));
                let is_secret = |key: &String| !is_word(key) && matches!(self.text(key), Cow::Owned(_));
                if map.keys().any(is_secret) {
                    *map = std::mem::take(map).into_iter().map(|(key, item)| (self.key(key), item)).collect();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn key(&self, key: String) -> String {
        if is_word(&key) { key } else { self.text(&key).into_owned() }
    }

    /// Returns the text with every line plain that shows a secret only when it is.
    fn without_hidden(&self, matcher: &AhoCorasick, text: &str) -> Option<String> {
        let mut changed = false;
        let lines = text.split_inclusive('\n').map(|line| {
            let shown: String = plain(line).chars().filter(|c| !is_direction(*c)).collect();
            let count = |text: &str| self.found(matcher, text).len();
            let more = if shown == line { 0 } else { count(&shown) };
            if more > 0 && more > count(line) {
                changed = true;
                Cow::Owned(shown)
            } else {
                Cow::Borrowed(line)
            }
        });
        let lines: String = lines.collect();
        changed.then_some(lines)
    }

    fn masked<'a>(&self, matcher: &AhoCorasick, text: &'a str) -> Cow<'a, str> {
        let found = self.found(matcher, text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut clean = String::with_capacity(text.len());
        let mut end = 0;
        for range in found {
            clean.push_str(&text[end..range.start]);
            clean.push_str(MASK);
            end = range.end;
        }
        clean.push_str(&text[end..]);
        Cow::Owned(clean)
    }

    /// Returns where secrets stand in a text, in order and apart.
    fn found(&self, matcher: &AhoCorasick, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        search(matcher, text.as_bytes(), &mut found);
        if escape::is_in(text.as_bytes()) {
            let mut start = 0;
            for part in parts(text) {
                let in_part = search_bare(matcher, part.as_bytes(), DEPTH);
                found.extend(in_part.into_iter().map(|range| range.start + start..range.end + start));
                start += part.len();
            }
        }
        if text.contains(CUT) {
            self.search_cuts(text, &mut found);
        }
        for range in &mut found {
            range.start = text.floor_char_boundary(range.start);
            range.end = text.ceil_char_boundary(range.end);
        }
        found.sort_unstable_by_key(|range| (range.start, range.end));
        found.dedup_by(|next, range| {
            let overlaps = next.start < range.end;
            if overlaps {
                range.end = range.end.max(next.end);
            }
            overlaps
        });
        found
    }

    /// Finds what is left of secrets where a text was cut: their beginning before the sign, their end behind it.
    fn search_cuts(&self, text: &str, found: &mut Vec<Range<usize>>) {
        for (cut, _) in text.match_indices(CUT).take(MAX_CUTS) {
            let (before, behind) = (&text.as_bytes()[..cut], &text.as_bytes()[cut + CUT.len_utf8()..]);
            for secret in self.secrets.iter().map(String::as_bytes) {
                let longest = secret.len() - 1;
                let lengths = || (MIN_PART..=longest).rev();
                if let Some(length) = lengths().find(|length| before.ends_with(&secret[..*length])) {
                    found.push(cut - length..cut);
                }
                if let Some(length) =
                    lengths().find(|length| behind.starts_with(&secret[secret.len() - length..]))
                {
                    let start = cut + CUT.len_utf8();
                    found.push(start..start + length);
                }
            }
        }
    }
}

/// Tells whether a text is one lower-case word, as the words of our formats are.
fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Tells whether a character is taken out of everything that is shown.
fn is_hidden(c: char) -> bool {
    is_direction(c) || (c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
}

fn search(matcher: &AhoCorasick, bytes: &[u8], found: &mut Vec<Range<usize>>) {
    if matcher.is_match(bytes) {
        found.extend(matcher.find_overlapping_iter(bytes).map(|found| found.range()));
    }
}

/// Finds secrets in a text without its escapes, where a notation has codes with these read.
fn search_bare(matcher: &AhoCorasick, bytes: &[u8], depth: usize) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut search_in = |codes, depth| {
        let bare = Bare::of(bytes, codes);
        let mut found = Vec::new();
        search(matcher, bare.bytes(), &mut found);
        if depth > 0 {
            found.extend(search_bare(matcher, bare.bytes(), depth));
        }
        all.extend(found.into_iter().map(|range| bare.origin(range)));
    };
    search_in(Codes::None, 0);
    for codes in Codes::ALL.into_iter().filter(|codes| codes.are_in(bytes)) {
        search_in(codes, depth - 1);
    }
    all
}

/// Splits a text behind line ends.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let least = rest.ceil_char_boundary(PART);
        let end = rest[least..].find('\n').map_or(rest.len(), |end| least + end + 1);
        let part;
        (part, rest) = rest.split_at(end);
        (!part.is_empty()).then_some(part)
    })
}

/// Tells whether something in a value was hidden.
pub fn is_masked(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(MASK),
        Value::Array(items) => items.iter().any(is_masked),
        Value::Object(map) => map.values().any(is_masked),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns values as they were written down, and in place of those with something hidden what they are now.
pub fn filled(written: &Map<String, Value>, now: &Map<String, Value>) -> Map<String, Value> {
    let known = |(name, value): (&String, &Value)| {
        let value = now.get(name).filter(|_| is_masked(value)).unwrap_or(value);
        (name.clone(), value.clone())
    };
    written.iter().map(known).collect()
}

/// Returns the text itself, as it is without escapes, and the ways to write it that change every byte: base64 and
/// hexadecimal digits.
fn encodings(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned(), escape::bare(secret), escape::bare(secret).replace(' ', "+")];
    all.extend([hex(secret.as_bytes()), hex(secret.as_bytes()).to_uppercase()]);
    all.extend((0..3).map(|skip| base64_core(secret.as_bytes(), skip)));
    all.extend(base64_lines(secret));
    let for_urls: Vec<String> =
        all[5..].iter().map(|text| text.replace('+', "-").replace('/', "_")).collect();
    all.extend(for_urls);
    all.retain(|text| text.len() >= MIN_SECRET);
    all
}

/// Base64 of a long secret, alone or as a line, as programs break it into lines.
fn base64_lines(secret: &str) -> Vec<String> {
    let wholes = [base64_core(secret.as_bytes(), 0), base64_core(format!("{secret}\n").as_bytes(), 0)];
    let lines = wholes.iter().flat_map(|whole| {
        let broken = BASE64_LINES.iter().filter(|width| whole.len() > **width);
        broken.flat_map(|width| whole.as_bytes().chunks(*width))
    });
    lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

/// Base64 of the bytes as they stand after `skip` unknown ones; only the characters that do not depend on neighbours.
fn base64_core(bytes: &[u8], skip: usize) -> String {
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
    whole.get(start..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SECRET: &str = "hunter2+/=&\"\\<'é";

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(Redactor::new([SECRET]).text(text), expect);
    }

    #[test]
    fn a_secret_is_hidden_in_every_usual_encoding() {
        check(&format!("x {SECRET} y {SECRET}{SECRET}"), "x *** y ******");
        // JSON, as serde, PHP, Go and Python write it, and JSON in JSON.
        check(r#"{"a":"hunter2+/=&\"\\<'é"}"#, r#"{"a":"***"}"#);
        check(r#"{"a":"hunter2+\/=&\"\\<'\u00e9"}"#, r#"{"a":"***"}"#);
        check(r#"{"a":"hunter2+/=\u0026\"\\\u003c'é"}"#, r#"{"a":"***"}"#);
        check(r#""{\"a\":\"hunter2+/=&\\\"\\\\<'\\u00E9\"}""#, r#""{\"a\":\"***\"}""#);
        let units = SECRET.encode_utf16().fold(String::new(), |out, unit| out + &format!("\\u{unit:04x}"));
        check(&units, "***");
        // URLs: everything, what has to be, small digits.
        check("q=hunter2%2B%2F%3D%26%22%5C%3C%27%C3%A9&r=1", "q=***&r=1");
        check("q=hunter2%2b/=%26%22%5c%3c'%c3%a9", "q=***");
        // XML and HTML.
        check("<a b=\"hunter2+/=&amp;&quot;\\&lt;&apos;é\"/>", "<a b=\"***\"/>");
        check("hunter2&#43;&#x2F;&#61;&amp;&#34;\\&lt;&#39;&#233;", "***");
        // Shells: single quotes in two ways, `$'…'`, and a backslash before each sign.
        check(r#"+ curl 'hunter2+/=&"\<'\''é'"#, "+ curl '***'");
        check(r#"'hunter2+/=&"\<'"'"'é'"#, "'***'");
        check(r#"don't "hunter2+/=&\"\\<'"é x"#, "don't \"*** x");
        check(r#"$'hunter2+/=&"\\<\'\303\251'"#, "$'***'");
        check(r#"hunter2+/=\&\"\\\<\'é"#, "***");
        check("68756e746572322b2f3d26225c3c27c3a9", "***");
        check("68756E746572322B2F3D26225C3C27C3A9", "***");
        // With colours in the middle, as `grep --color` shows what it found.
        check(
            "a \u{1b}[31mred\u{1b}[0m\nhunter2\u{1b}[31m+/=\u{1b}[0m&\"\\<'é\n",
            "a \u{1b}[31mred\u{1b}[0m\n***\n",
        );
    }

    #[test]
    fn base64_hides_nothing() {
        let redactor = Redactor::new([SECRET]);
        for before in ["", "a", "ab", "abc"] {
            let text = base64_core(format!("{before}{SECRET}xyz").as_bytes(), 0);
            for text in [text.replace('+', "-").replace('/', "_"), text.replace('/', "\\/"), text] {
                assert!(redactor.text(&text).contains(MASK), "{text}");
            }
        }
        let long: String = (0..90).map(|n| char::from(b'0' + n % 75)).collect();
        let redactor = Redactor::new([long.as_str()]);
        let lines = |width| base64_lines(&long).into_iter().filter(move |line| line.len() == width);
        for line in lines(76).chain(lines(64)) {
            assert_eq!(redactor.text(&line), MASK);
        }
    }

    #[test]
    fn what_a_cut_left_of_a_secret_is_hidden() {
        let redactor = Redactor::new(["correct-horse-battery"]);
        assert_eq!(redactor.text("`correct-hor…` is no number"), "`***…` is no number");
        assert_eq!(redactor.text("…rse-battery is the end"), "…*** is the end");
        assert_eq!(redactor.text("correct…"), "correct…");
        let text = format!("{}correct-horse-battery{}", "a".repeat(500), "b".repeat(90));
        for limit in 85..115 {
            let end = redactor.tail(&text, limit);
            assert!(!end.contains("battery") && !end.contains("correct"), "{limit}: {end}");
            assert!(end.ends_with(&"b".repeat(60)) && end.len() <= limit, "{limit}: {end}");
        }
        let many = "correct-horse-battery ".repeat(50);
        assert!(!redactor.tail(&many[3..], 400).contains("battery"));
        assert_eq!(redactor.tail("short", 400), "short");
    }

    #[test]
    fn secrets_that_overlap_are_hidden_whole() {
        assert_eq!(Redactor::new(["abcdefgh", "efghijkl"]).text("x abcdefghijkl y"), "x *** y");
        assert_eq!(Redactor::new(["abcdefgh", "cdefgh"]).text("x abcdefgh y"), "x *** y");
    }

    #[test]
    fn words_of_a_format_can_be_kept() {
        let mut value = json!({"outcome": "success", "text": "a success"});
        Redactor::new(["success"]).json_but_words(&mut value);
        assert_eq!(value, json!({"outcome": "success", "text": "a ***"}));
    }

    #[test]
    fn each_line_of_a_long_secret_is_hidden() {
        let redactor = Redactor::new(["-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----"]);
        assert_eq!(redactor.text("line: abcdefgh"), "line: ***");
    }

    #[test]
    fn short_values_are_left_alone() {
        assert_eq!(Redactor::new(["true", "1"]).text("1 is true"), "1 is true");
    }

    #[test]
    fn in_json_the_structure_and_the_words_of_a_format_stay() {
        let mut value = json!({"secret": ["a secret b", 1, null], "n1": {"token-9": {"my token-9": 2}}});
        Redactor::new(["secret", "token-9"]).json(&mut value);
        assert_eq!(value, json!({"secret": ["a *** b", 1, null], "n1": {"***": {"my ***": 2}}}));
    }

    proptest! {
        #[test]
        fn whichever_characters_are_escaped_it_is_hidden(
            style in 0..3,
            choices in proptest::collection::vec(0..4, SECRET.chars().count()),
            before in "[a-c]{0,3}", after in "[a-c%&'\\\\]{0,3}",
        ) {
            let is_plain = |c: char| c.is_alphanumeric() || c == '=';
            let bytes = |c: char, form: &dyn Fn(u8) -> String| c.to_string().bytes().map(form).collect::<String>();
            let written: String = SECRET.chars().zip(choices).map(|(c, choice)| match (style, choice) {
                (_, 0) if is_plain(c) => c.to_string(),
                (0, 1) => format!("\\u{:04x}", u32::from(c)),
                (0, 2) => bytes(c, &|byte| format!("\\{byte:03o}")),
                (0, _) => if is_plain(c) { format!("\\u{{{:x}}}", u32::from(c)) } else { format!("\\{c}") },
                (1, 1) => bytes(c, &|byte| format!("%{byte:02x}")),
                (1, _) => bytes(c, &|byte| format!("%{byte:02X}")),
                (_, 1) => format!("&#{};", u32::from(c)),
                _ => format!("&#x{:X};", u32::from(c)),
            }).collect();
            let hidden = Redactor::new([SECRET]).text(&format!("{before} {written} {after}")).into_owned();
            prop_assert_eq!(hidden, format!("{before} {MASK} {after}"), "{}", written);
        }

        #[test]
        fn base64_of_a_longer_text_never_shows_the_secret(before in "[a-z]{0,7}", after in "[a-z]{0,7}") {
            let secret = "s3cr3t-t0k3n-value";
            let encoded = base64_core(format!("{before}{secret}{after}").as_bytes(), 0);
            let hidden = Redactor::new([secret]).text(&encoded).into_owned();
            prop_assert!(hidden.contains(MASK), "{} -> {}", encoded, hidden);
        }
    }
}
