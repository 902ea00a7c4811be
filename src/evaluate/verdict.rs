//! What an evaluation says in one word, and whether that word speaks for or against the work.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The word by which a state is left: `yes`, `no`, `error`, or any word an evaluator or a tool comes up with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verdict(String);

/// A verdict longer than this is output that went to the wrong place.
const MAX_LENGTH: usize = 120;

/// The ending of a verdict that the model is not sure of.
pub(super) const UNCERTAIN: &str = "_uncertain";

/// The verdict of a judge that cannot judge.
pub(super) const CANNOT_JUDGE: &str = "cannot_judge";

/// What was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observes {
    /// The work passed.
    Passing,
    /// The work failed.
    Failing,
    /// Nothing about the work: that it goes on, that it changes something, that there was nothing to look at.
    Nothing,
}

impl Verdict {
    /// Makes a verdict from a word; aliases of `yes` and `no` are told apart by [`Verdict::canonical`].
    pub fn new(word: impl Into<String>) -> Self {
        Self(word.into())
    }

    /// Reads a verdict that a program printed: one line, not empty, not longer than a word or a few.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.trim();
        // Verdicts are printed to terminals and logs, where control characters would be obeyed.
        let fits = !word.is_empty() && word.len() <= MAX_LENGTH && !word.chars().any(char::is_control);
        fits.then(|| Self::new(word))
    }

    /// Returns the verdict for a boolean answer.
    pub fn yes_if(answer: bool) -> Self {
        Self::new(if answer { "yes" } else { "no" })
    }

    /// Returns the verdict of a failed evaluation or action.
    pub fn error() -> Self {
        Self::new("error")
    }

    /// Returns the verdict of an action that ran out of time.
    pub fn timeout() -> Self {
        Self::new("timeout")
    }

    /// Returns the verdict that a person is needed.
    pub fn blocked() -> Self {
        Self::new("blocked")
    }

    /// Returns the verdict of a check that could not judge.
    pub fn cannot_judge() -> Self {
        Self::new(CANNOT_JUDGE)
    }

    /// Returns the verdict of a check that failed while people have excused that.
    pub fn quarantined() -> Self {
        Self::new("quarantined")
    }

    /// Tells whether a failure was excused. A loop may use the word itself, for a verdict that observes something.
    pub fn is_quarantined(&self) -> bool {
        self.0 == "quarantined"
    }

    /// Reads a key of `route` or the word behind `on_`, folding the alias families: success, pass and met are
    /// `yes`; failure, fail and unmet are `no`.
    pub fn canonical(word: &str) -> Self {
        Self::new(match word {
            // A tool may print a boolean, and YAML 1.1 reads an unquoted `yes` as one.
            "success" | "pass" | "met" | "true" => "yes",
            "failure" | "fail" | "unmet" | "false" => "no",
            other => other,
        })
    }

    /// Returns the word.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether this verdict is an error.
    pub fn is_error(&self) -> bool {
        self.0 == "error"
    }

    /// Tells whether this verdict is a timeout.
    pub fn is_timeout(&self) -> bool {
        self.0 == "timeout"
    }

    /// Tells whether the check could not judge.
    pub fn is_unjudged(&self) -> bool {
        self.0 == CANNOT_JUDGE
    }

    /// Returns the verdict that the model was not sure of.
    pub fn certain(&self) -> Option<Self> {
        self.0.strip_suffix(UNCERTAIN).map(Self::new)
    }

    /// Returns what the word means when its evaluator is unknown, as in a journal of an earlier version. An answer that
    /// its own judge is not sure of verifies nothing.
    pub fn observes(&self) -> Observes {
        match self.as_str() {
            "no" | "failure" | "error" | "timeout" | "stall" | "blocked" | "partial" | "tool_error"
            | CANNOT_JUDGE => Observes::Failing,
            word if word.ends_with(UNCERTAIN) => Observes::Failing,
            "progress" => Observes::Nothing,
            // A tool that prints a word of its own, such as `deploy`, has answered.
            _ => Observes::Passing,
        }
    }

    /// Tells whether the word speaks against the work.
    pub fn is_failing(&self) -> bool {
        self.observes() == Observes::Failing
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
