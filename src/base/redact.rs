//! The one place where secrets become `***`: in logs, the journal, state files and reports alike.
//!
//! A secret is looked for by its letters and digits, as it is and in the forms in which programs write it ([`super::forms`]).
//! A text with codes of characters, with sequences for terminals or with dumps is searched once more with these read, so
//! that it does not matter which characters of a secret a program wrote otherwise, and how.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::{Map, Value};

use super::dump;
use super::escape::{self, Codes, UnescapedText};
pub use super::forms::MIN_SECRET;
use super::forms::{self, SecretForm};
use super::signs::{Finder, GAP, PartialMatch, is_sign};
use super::text::tail;

/// What stands in a text where a secret stood.
pub const MASK: &str = "***";

/// A part of a secret that is left at a cut is hidden when it is as long.
// Fewer are the end of many a word: hiding them would wreck texts that have no secret in them.
const MIN_PART: usize = 8;

/// The longest way to write a byte that is looked for at a cut: a number on a line of its own.
const LONGEST_CODE: usize = 12;

/// How often codes are read: those of a URL in a URL.
const DEPTH: usize = 2;

/// A secret with a code in it is looked for so far around the code, and further where it is longer itself.
const NEAR: usize = 4 * 1024;

/// Codes are read in parts of about this size, so that long texts take no more memory than they have.
const PART: usize = 64 * 1024;

/// The sign that something was cut off.
const CUT: char = '…';

/// A text that was cut has few of them; one with more is about something else.
const MAX_CUTS: usize = 64;

/// Replaces known secrets, in the encodings in which programs tend to print them.
#[derive(Clone, Debug, Default)]
pub struct Redactor(Arc<Secrets>);

/// What every copy of a redactor knows.
#[derive(Debug, Default)]
struct Secrets {
    given: Option<KnownSecrets>,
    /// The same, and what was made later.
    learned: OnceLock<KnownSecrets>,
    /// What is known of files, with whether something was learned before.
    searched: Mutex<HashMap<(FileMark, bool), FileSearch>>,
}

/// A file as it was: one that has changed has another mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileMark {
    /// Its device and its number there.
    pub file: (u64, u64),
    /// Its bytes.
    pub size: u64,
    /// When it was changed last, in seconds and nanoseconds.
    pub changed: (i64, i64),
}

/// What is known of the secrets in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSearch {
    /// It has none.
    Clean,
    /// It has one.
    Secret,
    /// There was no time to search it.
    Unsearched,
}

/// What is looked for.
#[derive(Debug)]
struct KnownSecrets {
    finder: Option<Finder>,
    forms: Vec<SecretForm>,
    /// Those of too few letters and digits.
    exact: Option<AhoCorasick>,
    secrets: Vec<String>,
    /// The forms of what every token of a run begins with, by number: the letters and digits behind belong to it.
    beginnings: HashSet<usize>,
    longest: usize,
}

impl Redactor {
    /// Makes a redactor for these secrets; values shorter than [`MIN_SECRET`] bytes are left out. A secret of
    /// several lines is also masked line by line, as it appears in a log.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut all = Vec::new();
        for secret in secrets {
            let secret = secret.as_ref();
            // A secret from a file ends with a line end, which is left out wherever it is used.
            all.push(secret.trim().to_owned());
            if secret.contains('\n') {
                all.extend(secret.lines().map(|line| line.trim().to_owned()));
            }
        }
        all.retain(|text| text.len() >= MIN_SECRET);
        all.sort_unstable();
        all.dedup();
        let given = (!all.is_empty()).then(|| KnownSecrets::new(all, None));
        Self(Arc::new(Secrets { given, ..Secrets::default() }))
    }

    /// Hides from now on what begins like this, too, up to the end of its letters and digits: in every copy of this
    /// redactor. What is learned second is what was learned first, for a process makes one such beginning.
    pub fn learn(&self, beginning: &str) {
        self.0.learned.get_or_init(|| {
            let given = self.0.given.iter().flat_map(|known| known.secrets.iter().cloned());
            KnownSecrets::new(given.chain([beginning.to_owned()]).collect(), Some(beginning))
        });
    }

    fn known(&self) -> Option<&KnownSecrets> {
        self.0.learned.get().or(self.0.given.as_ref())
    }

    /// Tells whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.known().is_none()
    }

    /// Returns the length of the longest text that is hidden without a line end in it, in bytes: what a stream has to
    /// hold back of a line.
    pub fn longest(&self) -> usize {
        self.known().map_or(0, |known| known.longest)
    }

    /// Tells whether there is a secret in bytes of any kind.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        // Bytes that are not UTF-8 are lost here, and no secret has any: all of them are texts.
        self.known().is_some_and(|known| !known.found(&String::from_utf8_lossy(bytes)).0.is_empty())
    }

    /// Returns what is known of a file, from whichever copy of this redactor: a search takes a while.
    pub fn searched(&self, mark: &FileMark) -> Option<FileSearch> {
        let known = self.0.searched.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(*mark, self.0.learned.get().is_some())).copied()
    }

    /// Keeps what is known of a file.
    pub fn keep_search(&self, mark: FileMark, search: FileSearch) {
        let mut known = self.0.searched.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((mark, self.0.learned.get().is_some()), search);
    }

    /// Hides every secret in a text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.known() {
            Some(known) => masked(text, 0, &known.found(text).0),
            None => Cow::Borrowed(text),
        }
    }

    /// Hides every secret in the last `limit` bytes of a text, also one that only ends in them.
    pub fn tail<'a>(&self, text: &'a str, limit: usize) -> Cow<'a, str> {
        let part = tail(text, limit.saturating_add(self.longest()));
        match self.text(part) {
            Cow::Owned(clean) if part.len() < text.len() => {
                Cow::Owned(self.whole_end(&clean, limit).to_owned())
            }
            Cow::Owned(clean) => Cow::Owned(tail(&clean, limit).to_owned()),
            // Nothing was found in as much as a secret may take before the end, so none ends within it.
            Cow::Borrowed(_) => Cow::Borrowed(tail(text, limit)),
        }
    }

    /// Returns at most `limit` bytes of the end of a clean text, of which the beginning was cut off before it was
    /// cleaned: without what may be the end of a secret there.
    pub fn whole_end<'a>(&self, clean: &'a str, limit: usize) -> &'a str {
        tail(clean, limit.min(clean.len().saturating_sub(self.longest())))
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
}

impl KnownSecrets {
    fn new(secrets: Vec<String>, beginning: Option<&str>) -> Self {
        let (forms, few): (Vec<SecretForm>, Vec<SecretForm>) =
            secrets.iter().flat_map(|secret| forms::all(secret)).partition(forms::has_signs);
        let begun = beginning.map(forms::all);
        let begins = |(number, form): (usize, &SecretForm)| {
            begun.iter().flatten().any(|begun| begun == form).then_some(number)
        };
        let beginnings = forms.iter().enumerate().filter_map(begins).collect();
        let finder = Finder::new(forms.iter().map(SecretForm::signs).collect());
        // What has its letters and digits far apart cannot be followed by them.
        let is_apart = |secret: &String| {
            secret.as_bytes().split(u8::is_ascii_alphanumeric).any(|between| between.len() > GAP)
        };
        let exact: Vec<String> = if few.is_empty() && finder.is_some() && !secrets.iter().any(is_apart) {
            Vec::new()
        } else {
            secrets
                .iter()
                .flat_map(|secret| forms::exact(secret))
                .filter(|text| text.len() >= MIN_SECRET)
                .collect()
        };
        // A table for every state would take the square of the length of a secret that repeats itself.
        let kind = Some(AhoCorasickKind::ContiguousNFA);
        let build = || AhoCorasick::builder().match_kind(MatchKind::Standard).kind(kind).build(&exact).ok();
        let exact = if exact.is_empty() { None } else { build() };
        let longest = secrets.iter().map(String::len).max().unwrap_or(0) * LONGEST_CODE;
        Self { finder, forms, exact, secrets, beginnings, longest }
    }

    /// Returns where secrets stand in a text, in order and apart, and where its end begins that may be the beginning of
    /// one.
    fn found(&self, text: &str) -> (Vec<Range<usize>>, Option<PartialMatch>) {
        let bytes = text.as_bytes();
        let mut found = Vec::new();
        let mut open = self.search(bytes, &mut found);
        open = PartialMatch::first(open, self.search_codes(bytes, &mut found));
        // The bytes are asked first, because that is cheap and rules out most texts.
        if escape::has(bytes, is_maybe_hidden) && text.chars().any(escape::is_hidden) {
            let visible = UnescapedText::visible(text);
            let mut in_visible = Vec::new();
            let mut end = self.search(visible.bytes(), &mut in_visible);
            end = PartialMatch::first(end, self.search_codes(visible.bytes(), &mut in_visible));
            found.extend(in_visible.into_iter().map(|range| visible.origin(range)));
            open = PartialMatch::first(open, origin(end, &visible));
        }
        for view in dump::views(bytes) {
            let mut in_dump = Vec::new();
            let end = self.search(view.bare.bytes(), &mut in_dump);
            found.extend(in_dump.into_iter().map(|range| view.bare.origin(range)));
            if view.is_open {
                let end = PartialMatch::first(end, self.begun(view.bare.bytes()));
                open = PartialMatch::first(open, origin(end.map(in_hidden_line), &view.bare));
            }
        }
        if text.contains(CUT) {
            self.search_cuts(text, &mut found);
        }
        // What was read out of codes may begin or end within a character of the text as written.
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
        (found, open)
    }

    /// Finds secrets in a text as it stands, whatever stands between their letters and digits.
    fn search(&self, text: &[u8], found: &mut Vec<Range<usize>>) -> Option<PartialMatch> {
        let open = self.search_signs(text, found);
        let Some(apart) = UnescapedText::apart(text) else { return open };
        let mut in_apart = Vec::new();
        let end = self.search_signs(apart.bytes(), &mut in_apart);
        found.extend(in_apart.into_iter().map(|range| apart.origin(range)));
        PartialMatch::first(open, origin(end, &apart))
    }

    /// Finds secrets in a text of which all that is beyond ASCII is letters and digits.
    fn search_signs(&self, text: &[u8], found: &mut Vec<Range<usize>>) -> Option<PartialMatch> {
        if let Some(exact) = &self.exact {
            // Overlapping, because one secret may be a part of another.
            found.extend(exact.find_overlapping_iter(text).map(|found| found.range()));
            let bare = UnescapedText::of(text, Codes::None);
            found.extend(exact.find_overlapping_iter(bare.bytes()).map(|found| bare.origin(found.range())));
        }
        let finder = self.finder.as_ref()?;
        let mut ends: HashMap<usize, usize> = HashMap::new();
        finder.search(text, &mut |number, range| {
            let end = ends.entry(number).or_default();
            let overlaps = range.start < *end;
            if let Some(range) = self.forms.get(number).and_then(|form| form.confirm(text, range, overlaps)) {
                let behind = text.get(range.end..).filter(|_| self.beginnings.contains(&number));
                let more = behind.map_or(0, |rest| rest.iter().take_while(|byte| is_sign(**byte)).count());
                let range = range.start..range.end + more;
                *end = range.end;
                found.push(range);
            }
        })
    }

    /// Finds secrets in a text with the codes of characters read.
    fn search_codes(&self, text: &[u8], found: &mut Vec<Range<usize>>) -> Option<PartialMatch> {
        if !escape::is_in(text) {
            return None;
        }
        let mut open = None;
        for part in parts(text, self.longest) {
            open = None;
            for near in escape::near_codes(&text[part.clone()], self.longest.max(NEAR)) {
                let near = near.start + part.start..near.end + part.start;
                let mut in_part = Vec::new();
                let end = self.in_codes(&text[near.clone()], DEPTH, &mut in_part);
                found.extend(
                    in_part.into_iter().map(|range| range.start + near.start..range.end + near.start),
                );
                // What ends before is followed by what stands as it is, and is told by that.
                if near.end == part.end {
                    open = end.map(|end| PartialMatch { at: end.at + near.start, ..end });
                }
            }
        }
        open
    }

    fn in_codes(&self, text: &[u8], depth: usize, found: &mut Vec<Range<usize>>) -> Option<PartialMatch> {
        let mut open = None;
        for codes in Codes::ALL.into_iter().filter(|codes| codes.are_in(text)) {
            let bare = UnescapedText::of(text, codes);
            let mut in_bare = Vec::new();
            let mut end = self.search(bare.bytes(), &mut in_bare);
            if depth > 1 {
                end = PartialMatch::first(end, self.in_codes(bare.bytes(), depth - 1, &mut in_bare));
            }
            found.extend(in_bare.into_iter().map(|range| bare.origin(range)));
            open = PartialMatch::first(open, origin(end, &bare));
        }
        open
    }

    /// Returns where the end of a text begins that is the beginning of a secret, sign by sign.
    fn begun(&self, text: &[u8]) -> Option<PartialMatch> {
        let begun = |secret: &String| {
            (1..secret.len()).rev().find(|length| text.ends_with(&secret.as_bytes()[..*length]))
        };
        let signs = self.secrets.iter().filter_map(begun).max()?;
        Some(PartialMatch { at: text.len() - signs, signs })
    }

    /// Finds what is left of secrets where a text was cut: their beginning before the sign, their end behind it.
    fn search_cuts(&self, text: &str, found: &mut Vec<Range<usize>>) {
        for (cut, _) in text.match_indices(CUT).take(MAX_CUTS) {
            let (before, behind) = (&text.as_bytes()[..cut], &text.as_bytes()[cut + CUT.len_utf8()..]);
            for secret in self.secrets.iter().map(String::as_bytes) {
                let longest = secret.len() - 1;
                // The longest part first: a shorter one would leave the rest of it.
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

/// A secret hides all of each line of a dump that shows a part of it, so that the line waits however small the part is.
fn in_hidden_line(open: PartialMatch) -> PartialMatch {
    PartialMatch { signs: open.signs.max(HELD), ..open }
}

/// Returns where the end of a view stands in the text as written.
fn origin(open: Option<PartialMatch>, bare: &UnescapedText) -> Option<PartialMatch> {
    open.map(|open| PartialMatch { at: bare.origin(open.at..open.at + 1).start, ..open })
}

/// Masks ranges in a text that begins at `start` of the text in which they were found.
fn masked<'a>(text: &'a str, start: usize, found: &[Range<usize>]) -> Cow<'a, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut end = start;
    for range in found {
        // A secret may have begun in what was shown already; only the rest of it can still be hidden.
        clean.push_str(&text[end - start..range.start.max(start) - start]);
        clean.push_str(MASK);
        end = range.end;
    }
    clean.push_str(&text[end - start..]);
    Cow::Owned(clean)
}

/// A piece of a line that does not end is shown when it is as long.
const PIECE: usize = 16 * 1024;

/// When as much text waits, it is searched again once there is a sixteenth more.
const MUCH: usize = 1024;

/// The end of a line with as many letters and digits of a secret waits for the next line.
// With fewer, many lines would wait, because their last letters happen to be the first ones of some secret.
const HELD: usize = 4;

/// Hides secrets in a text that comes in pieces, as soon as nothing that comes later can change what is shown.
///
/// A line is shown when it is whole, and a line without end in pieces. A line whose end may be the beginning of a secret
/// (at least four letters or digits of it, or one byte in a dump) waits for the next one, so that a secret that is broken by
/// line ends is hidden whole; what was shown with fewer of them stays shown, and only the rest is hidden.
#[derive(Debug, Default)]
pub struct Flow {
    /// What was not shown yet, behind the end of what was.
    text: String,
    /// How much of it was shown.
    shown: usize,
    /// How much of it was there when it was searched the last time.
    searched: usize,
}

impl Flow {
    /// Takes the next piece and shows what can be: whole lines with their ends, or a piece of a long one.
    pub fn push(&mut self, piece: &str, redactor: &Redactor, show: &mut dyn FnMut(&str)) {
        self.text.push_str(piece);
        let longest = redactor.longest();
        let lines = self.text[self.shown..].rfind('\n').map(|at| self.shown + at + 1);
        let open_line = self.text.len() - lines.unwrap_or(self.shown);
        let is_long = open_line >= PIECE + longest;
        // Of a line without end, as much as a secret may take stays back: one may have begun there.
        let wanted = if is_long { self.text.len() - longest } else { lines.unwrap_or(self.shown) };
        if wanted > self.shown && !self.is_much_held() {
            self.searched = self.text.len();
            self.show(wanted, is_long, redactor, show);
        }
    }

    /// Tells whether much text waits, and little came since it was searched: it may be that of a long secret that comes
    /// in short lines, and a search of all that waits for each of them would take the square of its length.
    fn is_much_held(&self) -> bool {
        let held = self.text.len() - self.shown;
        held > MUCH && self.text.len() - self.searched < held / 16
    }

    /// Shows what is left.
    pub fn finish(&mut self, redactor: &Redactor, show: &mut dyn FnMut(&str)) {
        if self.shown < self.text.len() {
            let found = redactor.known().map_or_else(Vec::new, |known| known.found(&self.text).0);
            self.emit(self.text.len(), &found, show);
        }
        *self = Self::default();
    }

    fn show(&mut self, wanted: usize, is_piece: bool, redactor: &Redactor, show: &mut dyn FnMut(&str)) {
        let Some(known) = redactor.known() else {
            let end = self.text.floor_char_boundary(wanted);
            self.emit(end, &[], show);
            self.forget(end);
            return;
        };
        // What is behind the last line end is not looked at before its line is whole or long.
        let seen = if is_piece { self.text.len() } else { wanted };
        let (found, open) = known.found(&self.text[..seen]);
        let mut end = self.text.floor_char_boundary(wanted);
        let open = open.map(|open| PartialMatch { at: self.text.floor_char_boundary(open.at), ..open });
        if let Some(open) = open.filter(|open| open.signs >= HELD) {
            let line = self.text[..open.at].rfind('\n').map_or(0, |at| at + 1);
            let is_piece = is_piece && open.at > line + PIECE;
            end = end.min(if is_piece { open.at } else { line });
        }
        end = self.text.floor_char_boundary(end).max(self.shown);
        // What is hidden is shown as one.
        while let Some(range) = found.iter().find(|range| range.start < end && end < range.end) {
            let line = self.text[range.end..seen].find('\n').map(|at| range.end + at + 1);
            end = line.unwrap_or(range.end);
        }
        if end > self.shown {
            self.emit(end, &found, show);
        }
        // With the beginning of its line, which may say what the rest is.
        let kept = open.map_or(end, |open| {
            let line = self.text[..open.at].rfind('\n').map_or(0, |at| at + 1);
            if open.at - line > PIECE { open.at } else { line }
        });
        self.forget(kept.min(end));
    }

    /// Shows the text up to a place.
    fn emit(&mut self, end: usize, found: &[Range<usize>], show: &mut dyn FnMut(&str)) {
        let start = self.shown;
        let first = found.partition_point(|range| range.end <= start);
        let last = found.partition_point(|range| range.start < end);
        show(&masked(&self.text[start..end], start, &found[first..last.max(first)]));
        self.shown = end;
    }

    /// Forgets what stands before a place.
    fn forget(&mut self, place: usize) {
        let place = place.min(self.shown);
        self.text.drain(..place);
        self.shown -= place;
        self.searched = self.searched.saturating_sub(place);
    }
}

/// Tells whether a text is one lower-case word, as the words of our formats are.
fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Tells whether a character that is not shown may begin with this byte.
fn is_maybe_hidden(byte: u8) -> bool {
    // From DEL on: every character beyond ASCII begins so, the marks of direction among them.
    (byte < b' ' && !matches!(byte, b'\n' | b'\t' | b'\r')) || byte >= 0x7F
}

/// Splits a text behind line ends; a long line in parts that have so much in common.
fn parts(text: &[u8], common: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next?;
        let least = (start + PART + common).min(text.len());
        // A text may be a single line of any length, so its end is looked for in a bounded part.
        let most = (start + 16 * PART + 2 * common).min(text.len());
        let line = text[least..most].iter().position(|byte| *byte == b'\n').map(|at| least + at + 1);
        let end = line.unwrap_or(most);
        next = (end < text.len()).then(|| if line.is_some() { end } else { end - common });
        (start < end).then_some(start..end)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::forms::base64_core;
    use super::*;
    use crate::base::signs;

    const SECRET: &str = "hunter2+/=&\"\\<'é";

    #[test]
    fn what_is_learned_is_hidden_with_all_that_follows_in_every_copy() {
        let beginning = "ll-0123456789abcdef0123456789abcdef";
        let redactor = Redactor::default();
        let copy = redactor.clone();
        assert!(copy.is_empty());
        redactor.learn(beginning);
        redactor.learn("something else");
        let token = format!("{beginning}fedcba98");
        assert_eq!(
            copy.text(&format!("a {token}, b {beginning} something else")),
            "a ***, b *** something else"
        );
        assert_eq!(copy.text(&format!("{token:?} more")), "\"***\" more");
        let encoded = base64_core(token.as_bytes(), 0);
        assert!(!copy.text(&encoded).contains(&encoded[encoded.len() - 6..]));
        let both = Redactor::new([SECRET]);
        both.learn(beginning);
        assert_eq!(both.text(&format!("{SECRET} {token}")), "*** ***");
    }

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(Redactor::new([SECRET]).text(text), expect);
    }

    #[test]
    fn a_secret_with_letters_and_digits_far_apart_is_found_as_it_is() {
        let secret = format!("hunter2{}AAAA", "- ".repeat(60));
        assert_eq!(Redactor::new([&secret]).text(&format!("'{secret}'")), "'***'");
    }

    #[test]
    fn a_secret_of_few_letters_and_digits_is_found_in_base64_too() {
        let redactor = Redactor::new(["\u{fffd}\u{fffd}"]);
        for text in ["de+/ve+/vUA=", "de-_ve-_vUA="] {
            assert!(matches!(redactor.text(text), Cow::Owned(_)), "{text}");
        }
    }

    #[test]
    fn what_quotes_may_be_coded_or_not_also_in_a_url_in_a_url() {
        let secret = r#"p"a's\s w"#;
        let redactor = Redactor::new([secret]);
        for url in [
            r#"p"a's\s w"#,
            r#"p"a%27s\s%20w"#,
            r"p%22a's%5Cs w",
            r"%2570%2522a's%255Cs w",
            r"p%22a%2527s\s w",
        ] {
            assert_eq!(redactor.text(url), MASK, "{url}");
        }
    }

    #[test]
    fn a_long_secret_takes_no_longer_than_its_length() {
        // An automaton with a table for every state takes minutes for it, and gigabytes.
        let secret = "ab".repeat(20_000);
        let redactor = Redactor::new([secret.as_str()]);
        assert_eq!(redactor.text(&format!("<{secret}>")), "<***>");
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
    fn a_sequence_that_nothing_ends_hides_no_secret_on_later_lines() {
        for begun in ["\u{1b}]0;title", "\u{1b}Pq"] {
            let text = format!("{begun}\nline\nhunter2\u{1b}[0K+/=&\"\\<'é\n");
            check(&text, &format!("{begun}\nline\n***\n"));
        }
    }

    #[test]
    fn whatever_is_no_letter_and_no_digit_may_stand_in_a_secret() {
        let secret = "npm_Q7w8E9r0T1y2U3i4O5p6";
        let redactor = Redactor::new([secret]);
        let each = |sign: &str| secret.chars().map(String::from).collect::<Vec<_>>().join(sign);
        for sign in
            ["\u{2028}", "\u{2029}", "\u{a0}", "\u{200b}", "\u{feff}", "\u{ad}", "—", "\u{301}", "\u{fffd}"]
        {
            let (before, behind) = secret.split_at(9);
            for text in [format!("{before}{sign}{behind}"), each(sign)] {
                assert_eq!(redactor.text(&format!("é {text} x")), "é *** x", "{text:?}");
            }
        }
        assert_eq!(redactor.text(r#""npm_Q7w8\u2028E9r0T1y2U3i4O5p6""#), r#""***""#);
        assert!(redactor.finds(b"npm_Q7w8\xffE9r0T1y2U3i4O5p6"));
        // Line ends break what is short, and blanks do not.
        let shown = |text: &str| Redactor::new(["notebook"]).text(text).into_owned();
        assert_eq!(shown("not\u{2028}ebook, note\u{a0}book"), "***, note\u{a0}book");
        // A secret may have them itself.
        let shown = |text: &str| Redactor::new(["correct—horse-battery"]).text(text).into_owned();
        assert_eq!(shown("correct—horse-battery, correct\u{a0}horse—\nbattery"), "***, ***");
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
        for width in [64, 76] {
            for line in
                base64_core(long.as_bytes(), 0).as_bytes().chunks(width).filter(|line| line.len() == width)
            {
                assert_eq!(redactor.text(std::str::from_utf8(line).unwrap()), MASK);
            }
        }
    }

    #[test]
    fn what_a_cut_left_of_a_secret_is_hidden() {
        let redactor = Redactor::new(["correct-horse-battery"]);
        assert_eq!(redactor.text("`correct-hor…` is not a number"), "`***…` is not a number");
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

    #[test]
    fn what_is_short_is_found_as_it_is_alone() {
        let shown = |secret: &str, text: &str| Redactor::new([secret]).text(text).into_owned();
        // A word in other case, with blanks in it, or as numbers by chance.
        for (secret, text) in [
            ("letmein", "let me in"),
            ("password", "Password: PASSWORD"),
            ("notebook", "a note, book it"),
            ("abcdef", "97, 98, 99, 100, 101, 102"),
            ("administrator", "The Administrator said"),
            ("secret-1", "secret 1, secret1"),
        ] {
            assert_eq!(shown(secret, text), text);
        }
        assert_eq!(shown("Summer24!", "it is SUMMER24! or summer24!"), "it is *** or ***");
        assert_eq!(shown("notebook", "not\r\nebook, note\nbook"), "***, ***");
        assert_eq!(shown("abcdefgh", "[97, 98,99, 100, 101, 102, 103, 104]"), "[***]");
        assert_eq!(
            shown("abcdefgh", "197, 98,99, 100, 101, 102, 103, 104"),
            "197, 98,99, 100, 101, 102, 103, 104"
        );
        assert_eq!(shown("abcdef", "61:62:63:64:65:66"), "***");
        assert_eq!(shown("correct horse battery", "Correct Horse Battery"), "***");
        assert_eq!(shown("correct-horse-battery", "correct horse\n  battery"), "***");
        // Of hardly any letters and digits.
        assert_eq!(shown("a!b@#$%^", "x a!b@#$%^ y ab"), "x *** y ab");
        assert_eq!(shown("+/+\"/+/", r#"{"a": "+/+\"/+/"}"#), r#"{"a": "***"}"#);
    }

    #[test]
    fn a_dump_hides_the_lines_that_show_a_part() {
        let text = "\
00000000: 6120 6c69 6e65 2063 6f72 7265 6374 2d68  a line correct-h
00000010: 6f72 7365 2d62 6174 7465 7279 2069 7320  orse-battery is\u{20}
00000020: 616c 6c20                                all\u{20}
";
        let shown = Redactor::new(["correct-horse-battery"]).text(text).into_owned();
        assert_eq!(shown, "00000000:***\n00000020: 616c 6c20                                all \n");
        let text = "0000000 6f63 7272 6365 2d74 6f68 7372 2d65 6162\n0000020 7474 7265 0079\n0000025\n";
        assert_eq!(Redactor::new(["correct-horse-battery"]).text(text), "0000000 ***\n0000025\n");
    }

    fn flowed(secret: &str, pieces: &[&str]) -> Vec<String> {
        let (redactor, mut flow, mut shown) = (Redactor::new([secret]), Flow::default(), Vec::new());
        for piece in pieces {
            let mut now = String::new();
            flow.push(piece, &redactor, &mut |text| now.push_str(text));
            shown.push(now);
        }
        let mut rest = String::new();
        flow.finish(&redactor, &mut |text| rest.push_str(text));
        shown.push(rest);
        shown
    }

    #[test]
    fn a_line_is_shown_when_it_is_whole_unless_its_end_may_begin_a_secret() {
        let secret = "correct-horse-battery";
        assert_eq!(flowed(secret, &["one\ntw", "o\n", "three"]), ["one\n", "two\n", "", "three"]);
        assert_eq!(flowed(secret, &["is it cor\n", "no\n"]), ["is it cor\n", "no\n", ""]);
        assert_eq!(flowed(secret, &["x\nis it correct\n", "no\n"]), ["x\n", "is it correct\nno\n", ""]);
        assert_eq!(
            flowed(secret, &["is it correct-\n", "  horse-bat\n", "  tery\nx\n"]),
            ["", "", "is it ***\nx\n", ""]
        );
        assert_eq!(flowed(secret, &["it is correct\n"]), ["", "it is correct\n"]);
        // Of what was shown already, the rest is hidden.
        assert_eq!(flowed(secret, &["co\n", "rrect-horse-battery\nx\n"]), ["co\n", "***\nx\n", ""]);
        assert_eq!(flowed("", &["a", "b\nc"]), ["", "ab\n", "c"]);
    }

    #[test]
    fn texts_of_one_sign_take_no_more_time_than_others() {
        let redactor =
            Redactor::new([SECRET, "correct-horse-battery", "aaaaaaaaaaaaaaaaaaaaaaaa", "111111111111"]);
        for unit in [
            "\\", "%", "&", "=", "a", "1", "61", "61 ", "97, ", "\n", " ", "\\u0061", "\u{1b}[", "0000000 ",
            "|",
        ] {
            let text = unit.repeat(300_000 / unit.len());
            let shown = redactor.text(&text);
            assert!(shown.len() <= text.len());
        }
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

    #[test]
    fn what_is_far_from_every_code_is_searched_once() {
        // Of the first letters of the secret, so that they are compared.
        let redactor = Redactor::new(["correct-horse-battery-staple"]);
        let plain = "correct-horse-batter. ".repeat(20_000);
        let work = |text: &str| signs::work::of(|| assert!(!redactor.finds(text.as_bytes())));
        let (without, with) = (work(&plain), work(&format!("{plain}%41\\u0042&lt;{plain}")));
        assert!(without > 0 && with < without * 3, "{without} and {with} comparisons");
        let coded = format!("{plain}correct%2Dhorse\\u002dbattery%2dstaple{plain}");
        assert!(redactor.finds(coded.as_bytes()));
    }

    #[test]
    fn a_secret_that_repeats_itself_is_looked_for_in_linear_work() {
        let work = |count: usize| {
            let redactor = Redactor::new(["ab".repeat(count / 2)]);
            let text = format!("<{}>", "ab".repeat(2 * count));
            signs::work::of(|| assert_eq!(redactor.text(&text), "<***>"))
        };
        let (small, large) = (work(1000), work(16_000));
        assert!(small > 1000 && large < 20 * small, "{small} and {large} comparisons");
    }

    #[test]
    fn a_long_secret_in_short_lines_takes_no_square_of_work() {
        let work = |length: usize| {
            let redactor = Redactor::new(["ab".repeat(length / 2)]);
            let mut shown = String::new();
            let work = signs::work::of(|| {
                let mut flow = Flow::default();
                for _ in 0..length / 10 {
                    flow.push("ababababab\n", &redactor, &mut |text| shown.push_str(text));
                }
                flow.finish(&redactor, &mut |text| shown.push_str(text));
            });
            assert_eq!(shown, "***\n");
            work
        };
        let (small, large) = (work(1000), work(8000));
        assert!(large < 16 * small, "{small} and {large} comparisons");
    }

    #[test]
    fn what_begins_inside_of_a_secret_that_repeats_itself_is_found() {
        let secret = format!("{}c", "ab".repeat(200));
        let redactor = Redactor::new([&secret]);
        for before in ["ab", "abab", "b", "abababa", &"ab".repeat(150), &"ab".repeat(250)] {
            let text = format!("{before}{secret} {before}{}", "ab".repeat(199));
            let shown = redactor.text(&text).into_owned();
            assert_eq!(shown, format!("{before}*** {before}{}", "ab".repeat(199)), "{}", before.len());
        }
        let apart = secret.split_at(101);
        assert_eq!(redactor.text(&format!("x ab{}\n{} y", apart.0, apart.1)), "x ab*** y");
    }
}
