//! What people have to look at in a fix: that the run changed what its checks are judged by, kept them from looking, or
//! verified its parts each alone. It stands on top of whatever is delivered.

use std::fmt::Write as _;

use crate::base::text::one_line;
use crate::engine::verification::{JudgesStanding, Reason, Verification, VerifiedExtent};
use crate::judges::found_judges::{JudgeFile, JudgesState};
use crate::report::digest::Digest;
use crate::report::formats::markdown::{code, words};

/// How many judges, and how many suppressions, are named.
const MOST_NAMED: usize = 30;

/// How long a path and a line may be, in characters.
const PATH: usize = 200;
const LINE: usize = 160;

/// The most bytes of the quotations: whatever files are called, they leave room for the rest of the text.
const MOST_BYTES: usize = 12_000;

/// What people have to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caveats {
    /// A sentence for each thing, with what it is about.
    all: Vec<ReviewPoint>,
}

/// One thing to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReviewPoint {
    /// A sentence.
    says: &'static str,
    /// Files and lines, each as it stands in the run.
    about: Vec<CaveatPlace>,
    /// How many more there are.
    more: usize,
}

/// A file or a line that is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CaveatPlace {
    place: String,
    what: String,
}

impl Caveats {
    /// Finds what the end of a run gives people to look at.
    pub fn of(digest: &Digest) -> Self {
        digest.verification().map(Self::of_verification).unwrap_or_default()
    }

    fn of_verification(verification: &Verification) -> Self {
        let mut all = Vec::new();
        if verification.extent == VerifiedExtent::EachAlone {
            all.push(ReviewPoint {
                says: "The parts of this fix were verified each alone. Nobody has checked the merged tree as a whole: `ll-loop \
                       merge --confirm` does",
                about: Vec::new(),
                more: 0,
            });
        }
        let judges: Vec<&JudgeFile> = verification
            .judges
            .files
            .iter()
            .filter(|file| file.kind.state() >= JudgesState::Changed)
            .collect();
        let state = verification.judges.state;
        // New judges alone take nothing away from what the checks say.
        let is_told = matches!(state, JudgesStanding::Changed | JudgesStanding::Confirmed);
        if is_told && !judges.is_empty() || verification.reasons.contains(&Reason::JudgesChanged) {
            let says = match state {
                JudgesStanding::Confirmed => {
                    "The run changed what its checks are judged by. They pass as they were in the commit as well; look at \
                     whether people want these changes"
                }
                JudgesStanding::Changed | JudgesStanding::Unchanged | JudgesStanding::Added
                    if verification.holds() =>
                {
                    "The loop may change what its checks are judged by, and did: its green says what they say now"
                }
                JudgesStanding::Changed
                | JudgesStanding::Unchanged
                | JudgesStanding::Added
                | JudgesStanding::Unknown => {
                    "The run changed what its checks are judged by, and nothing confirms that the fix passes without that"
                }
            };
            let subject = |file: &&JudgeFile| CaveatPlace {
                place: file.path.clone(),
                what: format!("{}, {}", file.kind.word(), file.why),
            };
            all.push(ReviewPoint::new(says, judges.iter().map(subject).collect()));
        }
        if !verification.suppressions.is_empty() {
            let subjects = verification.suppressions.iter().map(|one| CaveatPlace {
                place: format!("{}:{}", one.path, one.line),
                what: one.text.trim().to_owned(),
            });
            let says = "The run added comments or markers that keep checks from looking";
            all.push(ReviewPoint::new(says, subjects.collect()));
        }
        Self { all }
    }

    /// Returns them for the top of a text in Markdown, each as a quotation.
    pub fn quotations(&self) -> String {
        let mut out = String::new();
        for ReviewPoint { says, about, more } in &self.all {
            let _ = writeln!(out, "> [!WARNING]\n> **{says}.**");
            let mut left = about.len() + more;
            for CaveatPlace { place, what } in about {
                let line = format!("> - {}: {}\n", code(place, PATH), words(&one_line(what, LINE)));
                if out.len() + line.len() > MOST_BYTES {
                    break;
                }
                out.push_str(&line);
                left -= 1;
            }
            if left > 0 {
                let _ = writeln!(out, "> - and {left} more");
            }
            out.push('\n');
        }
        out
    }

    /// Returns them in a line each.
    pub fn lines(&self) -> Vec<String> {
        let line = |ReviewPoint { says, about, more }: &ReviewPoint| {
            let named: Vec<String> = about
                .iter()
                .map(|CaveatPlace { place, what }| {
                    format!("{} ({})", one_line(place, PATH), one_line(what, LINE))
                })
                .collect();
            let more = if *more > 0 { format!(", and {more} more") } else { String::new() };
            if named.is_empty() { (*says).to_owned() } else { format!("{says}: {}{more}", named.join(", ")) }
        };
        self.all.iter().map(line).collect()
    }
}

impl ReviewPoint {
    fn new(says: &'static str, mut about: Vec<CaveatPlace>) -> Self {
        let more = about.len().saturating_sub(MOST_NAMED);
        about.truncate(MOST_NAMED);
        Self { says, about, more }
    }
}
