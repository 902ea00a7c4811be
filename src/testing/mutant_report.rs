//! The results of the mutants of a loop.

use std::time::Duration;

use super::edges::share;
use super::mutants::SkippedLine;

/// The results of the mutants of a loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MutantReport {
    /// How many made a case fail.
    pub killed: usize,
    /// Those that no case has noticed.
    pub survivors: Vec<Survivor>,
    /// How many cannot be told from the loop, whatever happens.
    pub equal: usize,
    /// How many are not loops that can run.
    pub invalid: usize,
    /// The lines that were left out.
    pub skipped: Vec<SkippedLine>,
    /// How long it took.
    pub took: Duration,
    /// Why none was run, if none was.
    pub unusable: Option<String>,
}

/// A mutant that no case has noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// What was done to the loop.
    pub what: String,
    /// The file that was changed.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<usize>,
    /// The change as a difference.
    pub difference: Option<String>,
}

impl MutantReport {
    /// Returns how many were run.
    pub fn total(&self) -> usize {
        self.killed + self.survivors.len()
    }

    /// Returns the share of those that were noticed, in percent; 100 where there are none.
    pub fn percent(&self) -> f64 {
        share(self.killed, self.total())
    }

    /// Says it in a few words.
    pub fn sentence(&self) -> String {
        let Self { killed, survivors, equal, skipped, took, .. } = self;
        let more = [(*equal, "equal"), (skipped.len(), "skipped")];
        let more =
            more.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!(", {count} {word}"));
        let survived = survivors.len();
        let total = self.total();
        if total + equal + skipped.len() == 0 {
            return "no mutants: there is nothing to change".to_owned();
        }
        format!(
            "{killed} of {total} mutants killed, {survived} survived{} ({:.1} s)",
            more.collect::<String>(),
            took.as_secs_f64()
        )
    }
}
