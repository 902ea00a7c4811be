//! What is known of the checks of a loop before a run begins: how often each of them wavered, and which of them people have
//! put into quarantine.

use serde::{Deserialize, Serialize};

use crate::base::name::StateName;
use crate::base::text::one_line;

/// What is known of the checks of a loop before a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksBefore {
    /// What they said in earlier runs.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub histories: Vec<CheckHistory>,
    /// Those whose failures people have excused for a time.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub quarantined: Vec<QuarantinedCheck>,
    /// The run that this one is made to prove right or wrong, although it could have been reused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proves: Option<String>,
}

/// What a check said in earlier runs that found the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckHistory {
    /// The state.
    pub state: StateName,
    /// How often it failed.
    pub failed: u64,
    /// How often it was made.
    pub of: u64,
    /// How many of these failures a later run has taken back, by passing on the same inputs.
    pub taken_back: u64,
    /// Whether this was on the inputs with which the run begins.
    pub is_here: bool,
}

impl CheckHistory {
    /// Tells whether the check is flaky. A failure that no later run takes back is a check that is broken.
    pub fn is_flaky(&self) -> bool {
        self.taken_back > 0
    }

    /// Adds what the check has said once more.
    pub fn add(&mut self, passed: bool) {
        self.of = self.of.saturating_add(1);
        if passed {
            self.taken_back = self.failed;
        } else {
            self.failed = self.failed.saturating_add(1);
        }
    }

    /// Says it in a few words: `failed 2 of 31 on these inputs`.
    pub fn words(&self) -> String {
        let inputs = if self.is_here { "these inputs" } else { "the same inputs, earlier" };
        format!("failed {} of {} on {inputs}", self.failed, self.of)
    }
}

/// A check whose failures people have excused for a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedCheck {
    /// The state.
    pub state: StateName,
    /// Who looks after it.
    pub owner: String,
    /// The last day, as `2026-12-31`.
    pub until: String,
    /// Why.
    pub reason: String,
}

impl QuarantinedCheck {
    /// Says it in a few words.
    pub fn words(&self) -> String {
        let Self { owner, until, reason, .. } = self;
        format!("until {until}, {}: {}", one_line(owner, 80), one_line(reason, 160))
    }
}

impl ChecksBefore {
    /// Tells whether nothing is known.
    pub fn is_nothing(&self) -> bool {
        self.histories.is_empty() && self.quarantined.is_empty() && self.proves.is_none()
    }

    /// Returns what a check said on the inputs with which the run begins.
    pub fn here(&self, state: &StateName) -> Option<&CheckHistory> {
        self.histories.iter().find(|history| history.state == *state && history.is_here)
    }

    /// Tells whether a check is known as flaky, on whatever inputs.
    pub fn is_flaky(&self, state: &StateName) -> bool {
        self.histories.iter().any(|history| history.state == *state && history.is_flaky())
    }

    /// Returns the quarantine of a check.
    pub fn quarantine(&self, state: &StateName) -> Option<&QuarantinedCheck> {
        self.quarantined.iter().find(|check| check.state == *state)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn history(verdicts: &[bool]) -> CheckHistory {
        let state = StateName::parse("check").unwrap();
        let mut history = CheckHistory { state, failed: 0, of: 0, taken_back: 0, is_here: true };
        for passed in verdicts {
            history.add(*passed);
        }
        history
    }

    #[test]
    fn a_failure_that_nothing_takes_back_is_broken_and_not_flaky() {
        assert!(!history(&[true, true, false, false]).is_flaky());
        assert!(!history(&[false, false]).is_flaky());
        assert!(!history(&[true, true]).is_flaky());
        assert!(history(&[false, true]).is_flaky());
        assert_eq!(history(&[true, false, true, false]).words(), "failed 2 of 4 on these inputs");
    }

    proptest! {
        /// Whatever came before and after: flaky is what failed and passed later, and nothing else.
        #[test]
        fn flaky_is_what_failed_and_passed_later(verdicts in prop::collection::vec(any::<bool>(), 0..60)) {
            let first_failure = verdicts.iter().position(|passed| !passed);
            let passes_later = first_failure.is_some_and(|at| verdicts[at..].contains(&true));
            let history = history(&verdicts);
            prop_assert_eq!(history.is_flaky(), passes_later);
            prop_assert_eq!(history.of, verdicts.len() as u64);
            prop_assert!(history.taken_back <= history.failed && history.failed <= history.of);
        }
    }
}
