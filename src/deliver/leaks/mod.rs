//! Finds what looks like somebody's credential in bytes that are about to be published. The forms are data
//! (`rules.toml`); what a pattern cannot say of them is in [`proof`].
//!
//! Everything takes linear time, whoever wrote the bytes: one pass finds the keywords, the pattern of a rule is looked
//! for only where one of its keywords stands, and nothing is looked at twice.

mod match_proof;
mod rule_set;

use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use rule_set::{LeakRule, RULES};

use crate::base::redact::MASK;

/// Something that looks like a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// The rule that found it.
    pub rule: &'static str,
    /// What it is, for people.
    pub what: &'static str,
    /// Its lines, counted from 1. What makes it one may be on several, such as a key and the secret that belongs to it.
    pub lines: RangeInclusive<usize>,
    /// The secret itself, which is never shown.
    pub value: Vec<u8>,
}

/// A place where a person allows what looks like a credential.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeakPlace {
    /// The file.
    pub path: String,
    /// The line at which it begins, counted from 1.
    pub line: usize,
}

/// The error for a text that names no such place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a place is written `PATH:LINE`, such as `docs/example.md:12`")]
pub struct LeakPlaceError;

impl FromStr for LeakPlace {
    type Err = LeakPlaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (path, line) = text.rsplit_once(':').ok_or(LeakPlaceError)?;
        let line = line.parse().ok().filter(|line| *line > 0).ok_or(LeakPlaceError)?;
        let is_path = !path.is_empty();
        is_path.then(|| Self { path: path.to_owned(), line }).ok_or(LeakPlaceError)
    }
}

/// A place in bytes where a rule found something.
struct FoundSecret {
    rule: &'static LeakRule,
    /// All that makes it one.
    whole: Range<usize>,
    /// What is secret of it.
    value: Range<usize>,
}

/// Returns what looks like a credential in bytes of any kind, in its order.
pub fn find(bytes: &[u8]) -> Vec<Leak> {
    let mut leaks = located(bytes);
    // Text of two bytes for each character shows its ASCII once the zeros are gone.
    if bytes.contains(&0) {
        let narrow: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
        let known = leaks.len();
        for leak in located(&narrow) {
            if !leaks[..known].contains(&leak) {
                leaks.push(leak);
            }
        }
    }
    leaks
}

/// Hides what looks like a credential in a text.
pub fn masked(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut end = 0;
    for found in search(text.as_bytes()) {
        // Patterns know bytes, and may begin or end inside of a character.
        let value = text.floor_char_boundary(found.value.start)..text.ceil_char_boundary(found.value.end);
        if value.start >= end {
            clean.push_str(&text[end..value.start]);
            clean.push_str(MASK);
            end = value.end;
        }
    }
    clean + &text[end..]
}

fn located(bytes: &[u8]) -> Vec<Leak> {
    let (mut line, mut counted) = (1, 0);
    let leaks = search(bytes).into_iter().map(|found| {
        line += line_ends(&bytes[counted..found.whole.start]);
        counted = found.whole.start;
        let last = line + line_ends(&bytes[found.whole.clone()]);
        Leak {
            rule: &found.rule.id,
            what: &found.rule.what,
            lines: line..=last,
            value: bytes[found.value].to_vec(),
        }
    });
    leaks.collect()
}

fn line_ends(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

/// Returns what the rules find, in the order of the bytes; of what overlaps, the first.
fn search(bytes: &[u8]) -> Vec<FoundSecret> {
    let mut all: Vec<FoundSecret> =
        RULES.with_a_keyword_in(bytes).flat_map(|rule| of_rule(rule, bytes)).collect();
    // Stable: where two rules find the same, the earlier one of the file names it.
    all.sort_by_key(|found| found.whole.start);
    let mut end = 0;
    all.retain(|found| {
        let is_apart = found.whole.start >= end;
        if is_apart {
            end = found.whole.end;
        }
        is_apart
    });
    all
}

fn of_rule(rule: &'static LeakRule, bytes: &[u8]) -> Vec<FoundSecret> {
    let found = rule.regex().captures_iter(bytes).filter_map(|captures| {
        let whole = captures.get(0)?.range();
        let value = captures.name("value").map_or(whole.clone(), |value| value.range());
        if rule.is_bounded && !match_proof::stands_alone(bytes, &whole) {
            return None;
        }
        let is_public = |begin: &String| bytes[value.clone()].starts_with(begin.as_bytes());
        if rule.public.iter().any(is_public) {
            return None;
        }
        let proved = rule.proof.holds(bytes, &captures)?;
        let whole = whole.start..whole.end.max(proved.end);
        let Some(beside) = rule.beside() else { return Some(FoundSecret { rule, whole, value }) };
        let other = beside.near(bytes, &whole)?;
        Some(FoundSecret { rule, whole: whole.start.min(other.start)..whole.end.max(other.end), value })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(bytes: &[u8]) -> Vec<&'static str> {
        find(bytes).into_iter().map(|leak| leak.rule).collect()
    }

    #[test]
    fn every_rule_finds_its_examples_and_nothing_else() {
        let mut wrong = Vec::new();
        for rule in RULES.all() {
            assert!(!rule.examples.is_empty(), "{}", rule.id);
            assert!(rule.source.starts_with("https://"), "{}", rule.id);
            for example in &rule.examples {
                let text = example.concat();
                for around in [
                    text.clone(),
                    format!("first\nkey = \"{text}\"\n"),
                    format!("say \"a\\n{text}\\n\""),
                    format!("\0\u{1}{text}\0"),
                ] {
                    if ids(around.as_bytes()) != [rule.id.as_str()] {
                        wrong.push(format!("{}: {:?} in {around:?}", rule.id, ids(around.as_bytes())));
                    }
                }
                let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
                if !ids(&wide).contains(&rule.id.as_str()) {
                    wrong.push(format!("{} in UTF-16", rule.id));
                }
            }
            for other in &rule.others {
                let text = other.concat();
                if !ids(text.as_bytes()).is_empty() {
                    wrong.push(format!("{}: {:?} in {text:?}", rule.id, ids(text.as_bytes())));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn a_place_is_named_by_its_lines() {
        let token = ["ghp_", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"].concat();
        let leaks = find(format!("one\ntwo\n  token: {token} # three\n").as_bytes());
        assert_eq!(leaks.len(), 1);
        assert_eq!((leaks[0].rule, leaks[0].lines.clone()), ("github-token", 3..=3));
        assert_eq!(leaks[0].value, token.as_bytes());
        let pair = format!(
            "{}\n\n{} = {}\n",
            ["AKIA", "7QX2MZ5KLR3TNPWV"].concat(),
            "secret",
            "aB3dE5fG7hJ9kL1m".repeat(3)[..40].to_owned()
        );
        assert_eq!(find(pair.as_bytes())[0].lines, 1..=3);
    }

    #[test]
    fn hashes_and_ids_are_no_credentials() {
        let hex = "0123456789abcdef".repeat(8);
        let text = format!(
            "commit {}\nintegrity sha512-{}==\nid 123e4567-e89b-12d3-a456-426614174000\nchecksum = \"{}\"\n\
             data:image/png;base64,{}\n<svg d=\"M0 0L{}\"/>\n",
            &hex[..40],
            "aB3/".repeat(21) + "xQ",
            &hex[..64],
            "iVBORw0KGgoAAAANSUhEUgAA".repeat(200),
            "10 20 30 ".repeat(50),
        );
        assert_eq!(ids(text.as_bytes()), [""; 0]);
    }

    #[test]
    fn what_is_found_can_be_hidden() {
        let token = ["ghp_", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"].concat();
        assert_eq!(masked(&format!("ü {token} and {token}.")), "ü *** and ***.");
        assert_eq!(masked("nothing"), "nothing");
    }

    /// Texts that make a careless search look at everything for each sign: a square of them would not end while anybody
    /// waits for this test.
    #[test]
    fn hostile_bytes_take_as_long_as_any_others() {
        let begins = [
            "eyJ",
            "eyJhbGciOiJIUzI1NiJ9.",
            "://",
            "://a:",
            "-----BEGIN ",
            "AKIAIOSFODNN7ABCDEFG",
            "sk-",
            "LS0tLS1CRUdJT",
            "\"kty\":\"RSA\"",
            "a.",
            "SG.",
            "PuTTY-User-Key-File-3:",
            "AccountKey=",
            "?sig=a",
            "T3BlbkFJ",
            "-",
            "\0",
            "\n",
            "A",
        ];
        let key = ["-----BEGIN ", "PRIVATE KEY-----"].concat();
        for begin in begins.into_iter().chain([key.as_str()]) {
            let found = find(begin.repeat((256 << 10) / begin.len()).as_bytes());
            assert!(found.is_empty(), "{begin:?}: {:?}", found[0].rule);
        }
    }
}
