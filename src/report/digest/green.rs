//! Says in one line what the green of a run means: by which checks, on which tree, and why the run is not green where it is not.

use std::time::Duration;

use super::Digest;
use crate::base::text::{listed_in_part, one_line};
use crate::base::time::human;
use crate::engine::event::ClosingPassCheck;
use crate::engine::verification::{Confirmed, Verification, VerifiedExtent};

/// Says what a check of the closing pass came to.
pub fn once_more(check: &ClosingPassCheck) -> String {
    let took = human(Duration::from_millis(check.duration_ms));
    let name = one_line(&check.check, 200);
    let without = check.without();
    format!("{name} once more at the end{without}: {} (exit {}, {took})", check.verdict, check.exit_code)
}

/// What is said where each item of a plan is verified, and all of their changes together were not checked.
pub const EACH_ALONE: &str = "each alone";

/// The most checks that are named which waver.
const MOST_FLAKY: usize = 5;

/// The longest explanation, in characters.
const LONGEST: usize = 500;

impl Digest {
    /// Returns what verified the run, and what did not; none before its end, and in a journal of an earlier version.
    pub fn verification(&self) -> Option<&Verification> {
        self.end()?.verification.as_deref()
    }

    /// Returns why something passed in the run and its success does not stand all the same.
    pub fn refutation(&self) -> Option<&Verification> {
        self.verification().filter(|verification| verification.is_refuted())
    }

    /// Says what the green of the run means, and which of its checks waver; nothing where neither is known.
    pub fn green(&self) -> Option<String> {
        let said: Vec<String> = self.meaning_of_green().into_iter().chain(self.flaky_words()).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// Says which checks waver: `flaky: test failed 2 of 31 on these inputs`.
    pub fn flaky_words(&self) -> Option<String> {
        let flaky = self.flaky_checks();
        let words: Vec<String> =
            flaky.iter().map(|check| format!("{} {}", check.state, check.words())).take(MOST_FLAKY).collect();
        (!words.is_empty()).then(|| one_line(&format!("flaky: {}", words.join(", ")), LONGEST))
    }

    /// Says what the green of the run means; nothing where no tree was known, so that nothing can be said about it.
    fn meaning_of_green(&self) -> Option<String> {
        let verification = self.verification()?;
        if let Some(why) = verification.why() {
            let words: Vec<&str> = verification.reasons.iter().map(|reason| reason.word()).collect();
            return Some(one_line(&format!("not verified ({}): {why}", words.join(", ")), LONGEST));
        }
        // Where an earlier run stands for this one, its checks passed on its tree, and none on this one.
        let tree =
            verification.tree.as_ref().map(|tree| self.reused().map_or(tree, |reused| &reused.tree))?;
        let end = self.end().filter(|end| end.verified)?;
        let of = |confirmed: Confirmed| {
            let those = verification.checks.iter().filter(|check| check.confirmed == confirmed);
            let states: Vec<&str> = those.map(|check| check.state.as_str()).collect();
            (!states.is_empty()).then(|| listed_in_part(&states))
        };
        let by = [
            of(Confirmed::InRun),
            of(Confirmed::ClosingPass).map(|states| format!("{states} once more at the end")),
            of(Confirmed::Reused).map(|states| format!("{states} in an earlier run")),
        ];
        let by: Vec<String> = by.into_iter().flatten().collect();
        // Then what passed was not a check, and `verification` names only checks.
        let by = if by.is_empty() { format!("`{}`", end.final_state) } else { by.join(", ") };
        let nothing = if verification.proves_nothing.is_empty() {
            String::new()
        } else {
            format!("; proves nothing: {}", listed_in_part(&verification.proves_nothing))
        };
        let short = tree.as_str().get(..12).unwrap_or(tree.as_str());
        Some(one_line(
            &match verification.extent {
                VerifiedExtent::Whole => format!("verified by {by} on tree {short}{nothing}"),
                VerifiedExtent::EachAlone => {
                    format!(
                        "verified: {EACH_ALONE}, by {by}; nobody has checked tree {short} as a whole{nothing}"
                    )
                }
            },
            LONGEST,
        ))
    }

    /// Returns the word that says whether the run is verified; none before its end.
    pub fn verified_word(&self) -> Option<&'static str> {
        let end = self.end()?;
        let extent = self.verification().map_or(VerifiedExtent::Whole, |verification| verification.extent);
        Some(match (end.verified, extent) {
            (false, _) => "false",
            (true, VerifiedExtent::Whole) => "true",
            (true, VerifiedExtent::EachAlone) => EACH_ALONE,
        })
    }
}
