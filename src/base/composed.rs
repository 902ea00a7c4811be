//! A text put together from its author's own words and from what others printed. What others printed is bounded, so
//! that no output, however long, becomes a prompt beyond any budget.

use super::text::{head, tail};

const KIB: usize = 1024;

/// How much of one text that others printed is inserted, in bytes.
pub const ONE: usize = 16 * KIB;

/// How much of all of them is inserted. With the words of our own prompts and the form of their answers it is less
/// than 96 KiB.
pub const ALL: usize = 88 * KIB;

/// How much of a text is kept before it is bounded.
const KEPT: usize = 4 * ONE;

/// How many bytes of a line may be left out so that a text begins with a whole line.
const BROKEN_LINE: usize = 200;

/// What a text begins with whose beginning is left out.
const NOTE: &str = "[only the last ";

/// One part of such a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComposedPart {
    /// The author's own words, which always stay whole.
    Own(String),
    /// What others printed.
    Printed {
        /// Its end.
        text: String,
        /// Its length, in bytes.
        length: usize,
    },
}

/// A text before it is bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Composed(Vec<ComposedPart>);

impl Composed {
    /// Makes a text of the author's words alone.
    pub fn own(text: impl Into<String>) -> Self {
        Self(vec![ComposedPart::Own(text.into())])
    }

    /// Adds words of the author.
    pub fn push_own(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(ComposedPart::Own(last)) => last.push_str(text),
            Some(ComposedPart::Printed { .. }) | None => self.0.push(ComposedPart::Own(text.to_owned())),
        }
    }

    /// Adds a text that others printed.
    pub fn push_printed(&mut self, text: &str) {
        self.0.push(ComposedPart::Printed { text: tail(text, KEPT).to_owned(), length: text.len() });
    }

    /// Adds another text.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns its parts.
    pub fn parts(&self) -> &[ComposedPart] {
        &self.0
    }

    /// Returns the text with as much as is kept of what others printed.
    pub fn kept(self) -> String {
        self.0
            .into_iter()
            .map(|part| match part {
                ComposedPart::Own(text) | ComposedPart::Printed { text, .. } => text,
            })
            .collect()
    }

    /// Returns the text: of what others printed, the last [`ONE`] bytes each, or less where all of them would be more
    /// than [`ALL`]. The longest ones give way first.
    pub fn bounded(&self) -> String {
        let lengths = self.0.iter().map(|part| match part {
            ComposedPart::Own(_) => 0,
            ComposedPart::Printed { length, .. } => (*length).min(ONE),
        });
        let limit = fair_share(lengths, ALL).min(ONE);
        self.0.iter().fold(String::new(), |mut out, part| {
            match part {
                ComposedPart::Own(text) => out.push_str(text),
                ComposedPart::Printed { text, length } => out.push_str(&ending(text, *length, limit)),
            }
            out
        })
    }
}

/// Returns the most that each of several lengths may have so that all of them fit, where the shorter ones stay whole.
pub fn fair_share(lengths: impl IntoIterator<Item = usize>, room: usize) -> usize {
    let mut lengths: Vec<_> = lengths.into_iter().collect();
    lengths.sort_unstable();
    let mut left = room;
    for (index, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - index);
        if *length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

/// Cuts a text to its end, where programs say what is wrong, and says so in front of it.
pub fn shown_end(text: &str, limit: usize) -> String {
    ending(text, text.len(), limit)
}

/// Cuts a text to its beginning, where people and agents say what matters.
pub fn shown_beginning(text: &str, limit: usize) -> String {
    const CUT: &str = "…";
    if text.len() <= limit {
        return text.to_owned();
    }
    let kept = head(text, limit.saturating_sub(CUT.len()));
    if kept.len() + CUT.len() <= limit { format!("{kept}{CUT}") } else { String::new() }
}

/// Tells whether the beginning of some text in it was left out.
pub fn is_cut(text: &str) -> bool {
    text.contains(NOTE)
}

/// Cuts what is left of a text of this length to its end.
fn ending(text: &str, length: usize, limit: usize) -> String {
    if length <= limit {
        return text.to_owned();
    }
    let note = format!("{NOTE}{} of {} are shown]\n", size(limit), size(length));
    // Without room for the note nothing is shown, because a text without it would look whole.
    let Some(room) = limit.checked_sub(note.len()) else { return String::new() };
    let kept = tail(text, room);
    let broken = kept.bytes().take(BROKEN_LINE).position(|byte| byte == b'\n').map_or(0, |end| end + 1);
    format!("{note}{}", &kept[broken..])
}

fn size(bytes: usize) -> String {
    if bytes < 10 * KIB { format!("{bytes} bytes") } else { format!("{} KiB", bytes / KIB) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts() -> impl Strategy<Value = Vec<(bool, String, usize)>> {
        let text = prop_oneof!["\\PC{0,40}", "[a-zé\n]{1,80}", Just("😀".to_owned())];
        let times = prop_oneof![1_usize..3, 1_usize..2000];
        prop::collection::vec((any::<bool>(), text, times), 0..24)
    }

    proptest! {
        #[test]
        fn no_prompt_is_above_the_bounds_and_the_author_s_words_are_whole(parts in parts()) {
            let mut composed = Composed::default();
            let (mut own, mut most) = (0, 0);
            for (is_own, text, times) in &parts {
                let text = text.repeat(*times);
                if *is_own {
                    own += text.len();
                    composed.push_own(&text);
                } else {
                    most += text.len();
                    composed.push_printed(&text);
                }
            }
            let bounded = composed.bounded();
            prop_assert!(bounded.len() <= own + most.min(ALL), "{} > {own} + {ALL}", bounded.len());
            let mut rest = bounded.as_str();
            for part in composed.parts() {
                let ComposedPart::Own(text) = part else { continue };
                let found = rest.find(text.as_str());
                prop_assert!(found.is_some(), "own words are not whole");
                rest = &rest[found.unwrap_or_default() + text.len()..];
            }
        }

        #[test]
        fn one_text_keeps_its_end_and_says_what_is_left_out(text in "[a-zé😀\n]{0,300}", limit in 0_usize..400) {
            let shown = shown_end(&text, limit);
            prop_assert!(shown.len() <= limit, "{} > {limit}", shown.len());
            match shown.strip_prefix(NOTE) {
                Some(_) => {
                    let (note, kept) = shown.split_once('\n').unwrap();
                    prop_assert!(text.ends_with(kept) && text.len() > limit && note.ends_with("shown]"), "{shown}");
                }
                None => prop_assert!(shown == text || shown.is_empty()),
            }
            let begun = shown_beginning(&text, limit);
            prop_assert!(begun.len() <= limit);
            prop_assert!(text.starts_with(begun.trim_end_matches('…')));
        }

        #[test]
        fn a_fair_share_uses_the_room_and_no_more(lengths in prop::collection::vec(0_usize..1000, 1..20), room in 0_usize..5000) {
            let share = fair_share(lengths.iter().copied(), room);
            let taken: usize = lengths.iter().map(|length| (*length).min(share)).sum();
            prop_assert!(taken <= room);
            let all: usize = lengths.iter().sum();
            prop_assert!(share == usize::MAX || all > room && taken + lengths.len() > room);
        }
    }

    #[test]
    fn a_short_text_stays_whole_beside_long_ones() {
        let mut composed = Composed::own("Judge this:\n");
        let long = "a line of a long output\n".repeat(200_000);
        for _ in 0..8 {
            composed.push_printed(&long);
        }
        composed.push_printed("short");
        let bounded = composed.bounded();
        assert!(bounded.len() < ALL + 20 && bounded.len() > ALL - 9 * BROKEN_LINE, "{}", bounded.len());
        assert!(bounded.starts_with("Judge this:\n[only the last 10 KiB of 4687 KiB are shown]\na line of"));
        assert!(bounded.ends_with("output\nshort"));
    }
}
