//! The one place where secrets become `***`: in logs, the journal, state files and reports alike.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

use super::text::percent_encoded;

/// What stands in a text where a secret stood.
pub const MASK: &str = "***";

/// Shorter values are too common to be replaced without wrecking the text around them.
pub const MIN_SECRET: usize = 6;

/// Replaces known secrets, in the encodings in which programs tend to print them.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    matcher: Option<AhoCorasick>,
    longest: usize,
}

impl Redactor {
    /// Makes a redactor for these secrets; values shorter than [`MIN_SECRET`] bytes are left out. A secret of
    /// several lines is also masked line by line, as it appears in a log.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns: Vec<String> = Vec::new();
        for secret in secrets {
            let lines = secret.lines().filter(|_| secret.contains('\n'));
            for text in std::iter::once(secret).chain(lines).map(str::trim) {
                if text.len() >= MIN_SECRET {
                    patterns.extend(encodings(text));
                }
            }
        }
        patterns.sort_unstable();
        patterns.dedup();
        let longest = patterns.iter().map(String::len).max().unwrap_or(0);
        let matcher = (!patterns.is_empty())
            .then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns).ok())
            .flatten();
        Self { matcher, longest }
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
        self.matcher.as_ref().is_some_and(|matcher| matcher.is_match(bytes))
    }

    /// Hides every secret in a text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.matcher {
            Some(matcher) if matcher.is_match(text) => {
                let mut clean = String::with_capacity(text.len());
                matcher.replace_all_with(text, &mut clean, |_, _, out| {
                    out.push_str(MASK);
                    true
                });
                Cow::Owned(clean)
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// Hides every secret in the texts of a JSON value; keys and structure stay as they are.
    pub fn json(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.json(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
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

/// Returns the text itself and the ways in which it is usually printed: JSON, percent encoding, base64.
fn encodings(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned(), secret.escape_default().to_string()];
    if let Ok(json) = serde_json::to_string(secret) {
        all.push(json.trim_matches('"').to_owned());
    }
    all.push(percent_encoded(secret));
    all.extend((0..3).map(|skip| base64_core(secret.as_bytes(), skip)));
    all.retain(|text| text.len() >= MIN_SECRET);
    all
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

    #[test]
    fn a_secret_is_hidden_in_every_usual_encoding() {
        let redactor = Redactor::new(["hunter2/&\"secret"]);
        for text in [
            "x hunter2/&\"secret y",
            r#"{"a":"hunter2/&\"secret"}"#,
            "q=hunter2%2F%26%22secret",
            "aHVudGVyMi8mInNlY3JldA==",
        ] {
            assert!(redactor.text(text).contains(MASK), "{text}");
            assert!(!redactor.text(text).contains("secret\""), "{text}");
        }
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
    fn json_keys_and_structure_stay() {
        let mut value = json!({"secret1": ["a secret1 b", 1, null]});
        Redactor::new(["secret1"]).json(&mut value);
        assert_eq!(value, json!({"secret1": ["a *** b", 1, null]}));
    }

    proptest! {
        #[test]
        fn base64_of_a_longer_text_never_shows_the_secret(before in "[a-z]{0,7}", after in "[a-z]{0,7}") {
            let secret = "s3cr3t-t0k3n-value";
            let encoded = base64_core(format!("{before}{secret}{after}").as_bytes(), 0);
            let hidden = Redactor::new([secret]).text(&encoded).into_owned();
            prop_assert!(hidden.contains(MASK), "{} -> {}", encoded, hidden);
        }
    }
}
