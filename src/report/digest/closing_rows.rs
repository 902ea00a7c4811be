//! The checks of the closing pass, each with the attempts before its last one: what fails and is made again is an attempt and
//! no verdict, as in the loop.

use super::Digest;
use super::green::once_more;
use crate::base::name::StateName;
use crate::base::text::plural;
use crate::engine::event::ClosingPassCheck;

/// A check that was made once more at the end.
pub struct ClosingRow<'d> {
    /// What it came to.
    pub last: &'d ClosingPassCheck,
    /// The attempts that failed before.
    pub earlier: Vec<&'d ClosingPassCheck>,
}

/// What a check of the closing pass says about the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosingStanding {
    /// It passed.
    Passed,
    /// It failed, and people have excused that.
    Quarantined,
    /// It failed, and that counts, unless it was to be made again.
    Failed,
}

impl ClosingStanding {
    /// Returns what one attempt says.
    pub fn of(check: &ClosingPassCheck) -> Self {
        match (check.passed, check.verdict.is_quarantined()) {
            (true, _) => Self::Passed,
            (false, true) => Self::Quarantined,
            (false, false) => Self::Failed,
        }
    }
}

impl ClosingRow<'_> {
    /// Returns what it says about the run.
    pub fn standing(&self) -> ClosingStanding {
        ClosingStanding::of(self.last)
    }

    /// Says what it came to: `test once more at the end: yes (exit 0, 2s), after 1 failed attempt`.
    pub fn words(&self) -> String {
        let after = self.after().map_or_else(String::new, |after| format!(", {after}"));
        format!("{}{after}", once_more(self.last))
    }

    /// Says how often it failed before.
    pub fn after(&self) -> Option<String> {
        let count = self.earlier.len() as u64;
        (count > 0).then(|| format!("after {}", plural(count, "failed attempt")))
    }
}

impl Digest {
    /// Returns the checks that were made once more at the end, each once.
    pub fn closing_rows(&self) -> Vec<ClosingRow<'_>> {
        let mut rows: Vec<ClosingRow<'_>> = Vec::new();
        for check in self.closing_pass() {
            match rows.last_mut().filter(|row| row.last.made_again && row.last.is_same_check(check)) {
                Some(row) => row.earlier.push(std::mem::replace(&mut row.last, check)),
                None => rows.push(ClosingRow { last: check, earlier: Vec::new() }),
            }
        }
        rows
    }

    /// Returns the checks of the closing pass that failed and passed at once, with how often they failed: nobody works
    /// there.
    pub(super) fn closing_failures(&self) -> Vec<(StateName, u64)> {
        let rows = self.closing_rows();
        let wavered = rows.iter().filter(|row| row.last.passed && !row.earlier.is_empty());
        wavered.map(|row| (row.last.state.clone(), row.earlier.len() as u64)).collect()
    }
}
