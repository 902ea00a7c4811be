//! The results of trying the checks of a repository, and what they mean for a loop.

use std::collections::BTreeMap;
use std::time::Duration;

use super::found_repository::Finding;

/// The result of a check that was tried on the untouched tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It looked.
    Ran {
        /// Its exit code.
        exit: i32,
        /// How long it took.
        took: Duration,
        /// The last lines that it printed.
        last: Vec<String>,
    },
    /// It did not look: nothing is known of what it would have said.
    CouldNotRun {
        /// Why.
        why: String,
        /// What to do about it.
        advice: String,
        /// How long it took.
        took: Duration,
    },
    /// It changed a file that belongs to the repository, so it is not a check.
    Changed {
        /// The file.
        path: String,
        /// How long it took.
        took: Duration,
    },
}

impl Tried {
    /// Returns how long it took.
    pub fn took(&self) -> Duration {
        match self {
            Self::Ran { took, .. } | Self::CouldNotRun { took, .. } | Self::Changed { took, .. } => *took,
        }
    }
}

/// What tells checks apart. Packages of several groups call the same command in the same directory below them, and only the file that
/// says so is another one.
type TriedCheck = (String, String, String);

fn tried_check(finding: &Finding) -> TriedCheck {
    (finding.evidence.file.clone(), finding.directory.clone(), finding.command.clone())
}

/// The result of each check that was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trials {
    tried: BTreeMap<TriedCheck, Tried>,
}

impl Trials {
    /// Notes the result of a check.
    pub fn note(&mut self, finding: &Finding, tried: Tried) {
        self.tried.insert(tried_check(finding), tried);
    }

    /// Returns the result of a check, if it was tried.
    pub fn of(&self, finding: &Finding) -> Option<&Tried> {
        self.tried.get(&tried_check(finding))
    }

    /// Returns how long all of them took together.
    pub fn took(&self) -> Duration {
        self.tried.values().map(Tried::took).sum()
    }
}
