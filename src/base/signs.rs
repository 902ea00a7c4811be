//! Finds texts by their letters and digits alone, in one pass: blanks, line ends and all other signs between them are
//! passed over, and so are small and great letters. What was found is a candidate, to be looked at again.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::nfa::contiguous::NFA;

/// More than this between two letters or digits, and they do not belong together.
pub(super) const GAP: usize = 64;

/// So many letters and digits are looked for at once; what follows is compared where these are found.
const HEAD: usize = 16;

/// A table of all transitions is the faster automaton and takes the more memory and time to make.
const MOST_FOR_TABLE: usize = 4 * 1024;

/// Tells whether a byte is a letter or a digit, or part of a character that is none of ASCII.
pub(super) fn is_sign(byte: u8) -> bool {
    SIGNS[usize::from(byte)]
}

const SIGNS: [bool; 256] = {
    let mut signs = [false; 256];
    let mut byte = u8::MAX;
    loop {
        signs[byte as usize] = byte >= 128 || byte.is_ascii_alphanumeric();
        if byte == 0 {
            break signs;
        }
        byte -= 1;
    }
};

/// Finds several texts at once.
#[derive(Clone, Debug)]
pub(super) struct Finder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    automaton: Either,
    /// How many signs lead to a state, for those on the way to a text.
    depths: OnceLock<HashMap<StateID, usize>>,
    texts: Vec<Vec<u8>>,
}

#[derive(Debug)]
enum Either {
    Table(DFA),
    Small(NFA),
}

/// The end of a text that may be the beginning of what is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    /// Where it begins.
    pub(super) at: usize,
    /// How many letters and digits it has.
    pub(super) signs: usize,
}

impl Open {
    /// Returns what begins first, with the most that is known of it.
    pub(super) fn first(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let both = one
            .zip(other)
            .map(|(one, other)| Self { at: one.at.min(other.at), signs: one.signs.max(other.signs) });
        both.or(one).or(other)
    }
}

/// How a text goes on behind the beginning of what is looked for.
enum Rest {
    /// With all of it, up to here.
    Whole(usize),
    /// It ends before.
    Open(usize),
    /// With something else.
    Other,
}

impl Finder {
    /// Makes a finder of texts without signs but letters and digits; none where there are none or too many.
    pub(super) fn new(texts: Vec<Vec<u8>>) -> Option<Self> {
        let heads: Vec<&[u8]> = texts.iter().map(|text| head(text)).collect();
        let length: usize = heads.iter().map(|head| head.len()).sum();
        let automaton = if heads.is_empty() {
            return None;
        } else if length <= MOST_FOR_TABLE {
            Either::Table(DFA::builder().ascii_case_insensitive(true).prefilter(false).build(&heads).ok()?)
        } else {
            Either::Small(NFA::builder().ascii_case_insensitive(true).prefilter(false).build(&heads).ok()?)
        };
        Some(Self(Arc::new(Inner { automaton, depths: OnceLock::new(), texts })))
    }

    /// Hands on the number of each text that is found, with where it stands, also those that overlap; and returns the end
    /// that may be the beginning of one.
    pub(super) fn search(&self, text: &[u8], found: &mut dyn FnMut(usize, Range<usize>)) -> Option<Open> {
        match &self.0.automaton {
            Either::Table(automaton) => self.0.search(automaton, text, found),
            Either::Small(automaton) => self.0.search(automaton, text, found),
        }
    }
}

impl Inner {
    fn search<A: Automaton>(
        &self,
        automaton: &A,
        text: &[u8],
        found: &mut dyn FnMut(usize, Range<usize>),
    ) -> Option<Open> {
        let start = automaton.start_state(Anchored::No).ok()?;
        let (mut state, mut last) = (start, 0);
        let mut open = None;
        for (at, byte) in text.iter().enumerate() {
            if !is_sign(*byte) {
                continue;
            }
            if at - last > GAP {
                state = start;
            }
            last = at;
            state = automaton.next_state(Anchored::No, state, *byte);
            if automaton.is_special(state) && automaton.is_match(state) {
                for index in 0..automaton.match_len(state) {
                    let pattern = automaton.match_pattern(state, index);
                    let length = automaton.pattern_len(pattern);
                    let begin = back(text, at + 1, length);
                    match rest(text, at + 1, &self.texts[pattern.as_usize()][length..]) {
                        Rest::Whole(end) => found(pattern.as_usize(), begin..end),
                        Rest::Open(signs) => {
                            open = Open::first(open, Some(Open { at: begin, signs: length + signs }));
                        }
                        Rest::Other => {}
                    }
                }
            }
        }
        if text.len() - last > GAP {
            return open;
        }
        let depth = *self.depths.get_or_init(|| depths(automaton, &self.texts)).get(&state).unwrap_or(&0);
        Open::first(open, (depth > 0).then(|| Open { at: back(text, text.len(), depth), signs: depth }))
    }
}

fn head(text: &[u8]) -> &[u8] {
    &text[..text.len().min(HEAD)]
}

fn rest(text: &[u8], start: usize, expected: &[u8]) -> Rest {
    let mut last = start.saturating_sub(1);
    let mut wanted = expected.iter();
    let Some(mut next) = wanted.next() else { return Rest::Whole(start) };
    for (at, byte) in text.iter().enumerate().skip(start) {
        if at - last > GAP + 1 {
            return Rest::Other;
        }
        if !is_sign(*byte) {
            continue;
        }
        if !byte.eq_ignore_ascii_case(next) {
            return Rest::Other;
        }
        last = at;
        match wanted.next() {
            Some(one) => next = one,
            None => return Rest::Whole(at + 1),
        }
    }
    Rest::Open(expected.len() - wanted.len() - 1)
}

fn depths<A: Automaton>(automaton: &A, texts: &[Vec<u8>]) -> HashMap<StateID, usize> {
    let mut depths = HashMap::new();
    let Ok(start) = automaton.start_state(Anchored::No) else { return depths };
    for text in texts {
        let mut state = start;
        for (index, byte) in head(text).iter().enumerate() {
            state = automaton.next_state(Anchored::No, state, *byte);
            depths.insert(state, index + 1);
        }
    }
    depths
}

/// Returns where the last so many letters and digits before a place begin.
fn back(text: &[u8], end: usize, count: usize) -> usize {
    let signs = text[..end].iter().enumerate().rev().filter(|(_, byte)| is_sign(**byte));
    signs.map(|(at, _)| at).nth(count.saturating_sub(1)).unwrap_or(0)
}
