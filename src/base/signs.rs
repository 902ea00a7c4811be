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

/// Tells whether a byte is a letter or a digit, or part of a character outside of ASCII.
pub(super) fn is_sign(byte: u8) -> bool {
    SIGNS[usize::from(byte)]
}

const SIGNS: [bool; 256] = {
    let mut signs = [false; 256];
    // Counted down, since a `u8` cannot count past 255 and a constant knows no `for`.
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
    texts: Vec<SoughtText>,
}

/// A text that is looked for.
#[derive(Debug)]
struct SoughtText {
    signs: Vec<u8>,
    /// For each of its signs, how many from there on are those that it begins with. It is made when the text is found
    /// inside of itself.
    repeats: OnceLock<Vec<usize>>,
}

/// How far a text agreed with one that is looked for, in the last place where that was compared.
#[derive(Clone, Copy)]
struct Agreed {
    /// The number of the sign with which it begins, of all that were read.
    first: usize,
    /// How many signs agree.
    signs: usize,
    /// The place of the last of them.
    last: usize,
    /// The place behind them, from which on it was not compared.
    next: usize,
}

#[derive(Debug)]
enum Either {
    Table(DFA),
    Small(NFA),
}

/// The end of a text that may be the beginning of what is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartialMatch {
    /// Where it begins.
    pub(super) at: usize,
    /// How many letters and digits it has.
    pub(super) signs: usize,
}

impl PartialMatch {
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
    /// It ends before, and has so many signs of it.
    Open(usize),
    /// With something else.
    Other,
}

impl Finder {
    /// Makes a finder of texts without signs but letters and digits; none where there are none or too many.
    pub(super) fn new(texts: Vec<Vec<u8>>) -> Option<Self> {
        let texts: Vec<SoughtText> =
            texts.into_iter().map(|signs| SoughtText { signs, repeats: OnceLock::new() }).collect();
        let heads: Vec<&[u8]> = texts.iter().map(|text| head(&text.signs)).collect();
        let length: usize = heads.iter().map(|head| head.len()).sum();
        let automaton = if heads.is_empty() {
            return None;
        } else if length <= MOST_FOR_TABLE {
            // The automata are walked byte by byte, where a prefilter is of no use.
            Either::Table(DFA::builder().ascii_case_insensitive(true).prefilter(false).build(&heads).ok()?)
        } else {
            Either::Small(NFA::builder().ascii_case_insensitive(true).prefilter(false).build(&heads).ok()?)
        };
        Some(Self(Arc::new(Inner { automaton, depths: OnceLock::new(), texts })))
    }

    /// Hands on the number of each text that is found, with where it stands, also those that overlap; and returns the end
    /// that may be the beginning of one.
    pub(super) fn search(
        &self,
        text: &[u8],
        found: &mut dyn FnMut(usize, Range<usize>),
    ) -> Option<PartialMatch> {
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
    ) -> Option<PartialMatch> {
        let start = automaton.start_state(Anchored::No).ok()?;
        let (mut state, mut last) = (start, 0);
        let mut open = None;
        let mut count = 0;
        let mut agreed: HashMap<usize, Agreed> = HashMap::new();
        for (at, byte) in text.iter().enumerate() {
            if !is_sign(*byte) {
                continue;
            }
            // What stands so far apart is not one text, so the search begins anew.
            if at - last > GAP {
                state = start;
            }
            last = at;
            count += 1;
            state = automaton.next_state(Anchored::No, state, *byte);
            // Matches are among the special states, which take a single comparison to tell.
            if automaton.is_special(state) && automaton.is_match(state) {
                for index in 0..automaton.match_len(state) {
                    let pattern = automaton.match_pattern(state, index);
                    let length = automaton.pattern_len(pattern);
                    let number = pattern.as_usize();
                    let head = Agreed { first: count - length, signs: length, last: at, next: at + 1 };
                    let Some(begun) = self.texts[number].begun(head, agreed.get(&number)) else { continue };
                    let (begun, rest) = self.texts[number].rest(text, begun);
                    agreed.insert(number, begun);
                    match rest {
                        Rest::Whole(end) => found(number, back(text, at + 1, length)..end),
                        Rest::Open(signs) => {
                            open = PartialMatch::first(
                                open,
                                Some(PartialMatch { at: back(text, at + 1, length), signs }),
                            );
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
        PartialMatch::first(
            open,
            (depth > 0).then(|| PartialMatch { at: back(text, text.len(), depth), signs: depth }),
        )
    }
}

fn head(text: &[u8]) -> &[u8] {
    &text[..text.len().min(HEAD)]
}

impl SoughtText {
    /// Returns how much of a text is known to agree behind its head, from where it was compared before; nothing where it
    /// is known not to go on. So a text that repeats itself is compared once, in a text that repeats it, too.
    fn begun(&self, head: Agreed, before: Option<&Agreed>) -> Option<Agreed> {
        let Some(before) = before.filter(|before| head.first < before.first + before.signs) else {
            return Some(head);
        };
        let shift = head.first - before.first;
        let known = before.signs - shift;
        let repeats = self.repeats.get_or_init(|| repeats(&self.signs));
        let same = repeats.get(shift).copied().unwrap_or(0);
        if same < known {
            None
        } else if known <= head.signs {
            Some(head)
        } else {
            Some(Agreed { first: head.first, signs: known, ..*before })
        }
    }

    /// Compares the text from there on.
    fn rest(&self, text: &[u8], begun: Agreed) -> (Agreed, Rest) {
        let mut agreed = begun;
        let is_whole = |agreed: &Agreed| agreed.signs == self.signs.len();
        for (at, byte) in text.iter().enumerate().skip(begun.next) {
            agreed.next = at;
            if is_whole(&agreed) {
                break;
            }
            if at - agreed.last > GAP + 1 {
                return (agreed, Rest::Other);
            }
            if !is_sign(*byte) {
                continue;
            }
            #[cfg(test)]
            work::count();
            if !byte.eq_ignore_ascii_case(&self.signs[agreed.signs]) {
                return (agreed, Rest::Other);
            }
            agreed = Agreed { signs: agreed.signs + 1, last: at, next: at + 1, ..agreed };
        }
        let rest = if is_whole(&agreed) { Rest::Whole(agreed.last + 1) } else { Rest::Open(agreed.signs) };
        (agreed, rest)
    }
}

/// For each sign of a text, how many from there on are those that it begins with.
fn repeats(text: &[u8]) -> Vec<usize> {
    let mut all = vec![text.len(); text.len()];
    // What is known to repeat the beginning: it reaches the furthest.
    let (mut start, mut end) = (0, 0);
    for at in 1..text.len() {
        let mut length = if at < end { all[at - start].min(end - at) } else { 0 };
        while text.get(at + length).is_some_and(|byte| byte.eq_ignore_ascii_case(&text[length])) {
            length += 1;
        }
        all[at] = length;
        if at + length > end {
            (start, end) = (at, at + length);
        }
    }
    all
}

fn depths<A: Automaton>(automaton: &A, texts: &[SoughtText]) -> HashMap<StateID, usize> {
    let mut depths = HashMap::new();
    let Ok(start) = automaton.start_state(Anchored::No) else { return depths };
    for text in texts {
        let mut state = start;
        for (index, byte) in head(&text.signs).iter().enumerate() {
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

/// How many signs were compared by this thread, for tests of how much work something is.
#[cfg(test)]
pub(super) mod work {
    use std::cell::Cell;

    thread_local!(static DONE: Cell<usize> = const { Cell::new(0) });

    pub(in crate::base) fn count() {
        DONE.set(DONE.get() + 1);
    }

    pub(in crate::base) fn of(work: impl FnOnce()) -> usize {
        let before = DONE.get();
        work();
        DONE.get() - before
    }
}
