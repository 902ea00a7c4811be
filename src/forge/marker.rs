//! The mark in the text of a pull request or a review, which people do not see and by which we know it again.

use super::message::PatchId;
use super::standing::FixStanding;
use crate::base::name::InstanceName;

const BEGIN: &str = "<!-- ll-loop:deliver ";
const END: &str = " -->";

/// What a mark says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The run whose fix it is.
    pub run: InstanceName,
    /// The changes.
    pub patch: PatchId,
    /// Whether something verified them.
    pub standing: FixStanding,
}

impl Marker {
    /// Writes the mark, on one line.
    pub fn text(&self) -> String {
        format!("{BEGIN}run={} patch={} {}{END}", self.run, self.patch, self.standing.word())
    }

    /// Finds the last mark of a text, wherever it stands: people edit texts and quote older ones, and some servers keep them
    /// on one line. Ours is the last that we write; what a run says cannot hold one.
    pub fn find(text: &str) -> Option<Self> {
        text.rmatch_indices(BEGIN).find_map(|(at, _)| {
            let (said, _) = text[at + BEGIN.len()..].split_once(END)?;
            Self::parse(said)
        })
    }

    fn parse(said: &str) -> Option<Self> {
        let [run, patch, standing] = said.split(' ').collect::<Vec<_>>()[..] else { return None };
        let standing = FixStanding::ALL.into_iter().find(|known| known.word() == standing)?;
        let run = InstanceName::parse(run.strip_prefix("run=")?).ok()?;
        let patch = PatchId::parse(patch.strip_prefix("patch=")?).ok()?;
        Some(Self { run, patch, standing })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marker(patch: char, standing: FixStanding) -> Marker {
        let run = InstanceName::parse("main-20260101T000000-abcdef").unwrap();
        Marker { run, patch: PatchId::parse(&patch.to_string().repeat(40)).unwrap(), standing }
    }

    #[test]
    fn a_mark_is_read_back_from_a_text_that_people_edited() {
        let (first, last) = (marker('1', FixStanding::Verified), marker('2', FixStanding::Unverified));
        let text = format!("Hello\r\n{}\r\nedited\r\n  {}  \r\nmore", first.text(), last.text());
        assert_eq!(Marker::find(&text), Some(last));
        assert_eq!(Marker::find(&format!("a\n{}", first.text())), Some(first.clone()));
        for text in [
            String::new(),
            first.text().replace("verified", "true"),
            first.text().replace("patch=1", "patch=x"),
            first.text().replace(" -->", ""),
            first.text().replace("ll-loop:deliver", "ll-loop:other"),
            first.text().replace(" verified", " verified more"),
            first.text().replace("run=main-", "run=../main-"),
            first.text().replace(" patch", "  patch"),
        ] {
            assert_eq!(Marker::find(&text), None, "{text}");
        }
    }

    #[test]
    fn the_last_mark_counts_wherever_it_stands() {
        let (first, last) = (marker('1', FixStanding::Verified), marker('2', FixStanding::Verified));
        for text in [
            format!("Fixed. {} {} More.", first.text(), last.text()),
            format!("```\n{}\n```\n> {}", first.text(), last.text()),
            format!("{}\n{}{BEGIN}run=x{END}{BEGIN}", first.text(), last.text()),
        ] {
            assert_eq!(Marker::find(&text), Some(last.clone()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_mark_is_found_in_whatever_text_and_is_what_was_written(
            before in any::<String>(), after in "([a-z <!>-]|<!-- ll-loop:deliver |run=| patch=| -->|é){0,20}", patch in "[1-3]",
        ) {
            let mark = marker(patch.chars().next().unwrap(), FixStanding::Unverified);
            let text = format!("{before}{}{after}", mark.text());
            prop_assert_eq!(Marker::find(&text), Some(mark));
            if let Some(found) = Marker::find(&format!("{before}{after}")) {
                prop_assert_eq!(Marker::find(&found.text()), Some(found));
            }
        }
    }
}
