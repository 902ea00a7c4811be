//! The result of a case, as every format of the results shows it.

use std::fmt::Write as _;
use std::time::Duration;

use super::asked::{Gap, GapReason};
use super::expected::Mismatch;
use super::facts::BrokenClaim;
use crate::base::text::{one_line, plural};

/// How much of what would have been run is shown.
const SHOWN: usize = 500;

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseReport {
    /// Its name.
    pub name: String,
    /// Its line in the test file.
    pub line: usize,
    /// Whether the program wrote it, and no person has looked at it since.
    pub is_generated: bool,
    /// Everything that is not as it is expected; empty where it passed.
    pub failures: Vec<CaseFailure>,
    /// The states that it entered.
    pub path: Vec<String>,
    /// Those that were expected, if somebody said.
    pub expected_path: Option<Vec<String>>,
    /// How long the run took, by its own clock.
    pub took: Duration,
    /// Why the run ended as it did.
    pub why: Option<String>,
}

/// Something that is not as it is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseFailure {
    /// It differs.
    Differs(Mismatch),
    /// Something was asked for that no mock answers.
    Gap(Gap),
    /// What always holds did not.
    Broken(BrokenClaim),
    /// It came to no end.
    Endless,
    /// It could not be resumed.
    NotResumable(String),
    /// The machine cannot be made with these variables.
    NotMade(String),
}

impl CaseReport {
    /// Begins the report of a case.
    pub fn new(name: &str, line: usize, is_generated: bool) -> Self {
        Self {
            name: name.to_owned(),
            line,
            is_generated,
            failures: Vec::new(),
            path: Vec::new(),
            expected_path: None,
            took: Duration::ZERO,
            why: None,
        }
    }

    /// Tells whether everything is as it is expected.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Says what is not as it is expected, in lines.
    pub fn details(&self) -> String {
        let mut out = String::new();
        // Paths are shown side by side below.
        let is_drawn = |failure: &&CaseFailure| matches!(failure, CaseFailure::Differs(differs) if differs.what == "path");
        for failure in self.failures.iter().filter(|failure| !is_drawn(failure)) {
            let _ = writeln!(out, "{}", failure.sentence());
        }
        if let Some(expected) = self.expected_path.as_ref().filter(|path| **path != self.path) {
            out.push_str(&side_by_side(expected, &self.path));
        }
        if let Some(why) = &self.why {
            let _ = writeln!(out, "why it ended like this:");
            why.lines().for_each(|line| {
                let _ = writeln!(out, "  {line}");
            });
        }
        out
    }
}

impl CaseFailure {
    /// Says it in a sentence.
    pub fn sentence(&self) -> String {
        match self {
            Self::Differs(Mismatch { what, expected, actual, .. }) => {
                format!("{what}: expected {expected}, found {actual}")
            }
            Self::Gap(Gap { state, text, why }) => {
                let text = one_line(text, SHOWN);
                match why {
                    GapReason::NoMock => format!("`{state}` has no mock; it would have run: {text}"),
                    GapReason::UsedUp(count) => {
                        let mocks = plural(*count as u64, "mock");
                        format!("`{state}` is visited again after its {mocks}; it would have run: {text}")
                    }
                    GapReason::NoJudgement => {
                        format!(
                            "the mock of `{state}` has no `verdict`; the judge would have been asked: {text}"
                        )
                    }
                    GapReason::NoWork => {
                        format!("the mock of `{state}` does not say what its work comes to: {text}")
                    }
                    GapReason::Unknown(why) => format!("what `{state}` came to is not known: {why}"),
                    GapReason::Parted => format!("the run came to `{state}`, and the journal did not"),
                }
            }
            Self::Broken(BrokenClaim { text, state, step }) => {
                format!("`{text}` does not hold: step {step}, in `{state}`")
            }
            Self::Endless => "the run comes to no end".to_owned(),
            Self::NotResumable(why) => format!("the run cannot be resumed: {why}"),
            Self::NotMade(why) => format!("the loop cannot be made with these variables: {why}"),
        }
    }

    /// Returns one word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Differs(_) => "differs",
            Self::Gap(_) => "no_mock",
            Self::Broken(_) => "always",
            Self::Endless => "endless",
            Self::NotResumable(_) => "not_resumable",
            Self::NotMade(_) => "not_made",
        }
    }
}

/// Writes two paths beside each other, with a mark where they part.
fn side_by_side(expected: &[String], actual: &[String]) -> String {
    // At least as wide as the word at its head.
    let width = expected.iter().map(|state| state.chars().count()).max().unwrap_or(0).max(8);
    let parts = expected.iter().zip(actual).take_while(|(one, other)| one == other).count();
    let mut out = format!("    {:4}{:width$}  found\n", "", "expected");
    for index in 0..expected.len().max(actual.len()) {
        let mark = if index == parts { ">" } else { " " };
        let [one, other] = [expected, actual].map(|path| path.get(index).map_or("—", String::as_str));
        let _ = writeln!(out, "  {mark} {:>3} {one:width$}  {other}", index + 1);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_side_by_side_with_a_mark_where_they_part() {
        let of = |path: &[&str]| path.iter().map(|state| (*state).to_owned()).collect::<Vec<_>>();
        let drawn = side_by_side(&of(&["check", "fix", "done"]), &of(&["check", "failed"]));
        let expected =
            "        expected  found\n    1 check     check\n  > 2 fix       failed\n    3 done      —\n";
        assert_eq!(
            drawn.replace("      1", "    1").replace("      3", "    3").replace(" >   2", " > 2"),
            expected
        );
    }
}
