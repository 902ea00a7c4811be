//! Which mocks no longer fit what their commands come to.

use crate::base::text::one_line;
use crate::base::time::{Timestamp, human};

/// How much of a command is shown.
const SHOWN: usize = 120;

/// A mock of a command beside what the command came to; first the mock, then the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedMock {
    /// The case.
    pub case: String,
    /// The state.
    pub state: String,
    /// The command.
    pub text: String,
    /// The exit codes.
    pub exit: (i32, i32),
    /// The verdicts; nothing where they depend on more than the command.
    pub verdict: (Option<String>, Option<String>),
    /// What kinds of output they are.
    pub shape: (String, String),
    /// When the mock was recorded, where it says so.
    pub from: Option<String>,
}

impl ComparedMock {
    /// Tells whether the mock is still what the command comes to.
    pub fn fits(&self) -> bool {
        let same_verdict = match &self.verdict {
            (Some(mock), Some(real)) => mock == real,
            // Where the verdict takes more than the command, such as a judge, the codes have to do.
            (None, _) | (_, None) => self.exit.0 == self.exit.1,
        };
        same_verdict && self.shape.0 == self.shape.1 && self.exit.0 == self.exit.1
    }

    /// Says in which the two differ.
    pub fn sentence(&self, now: Timestamp) -> String {
        let mut all = Vec::new();
        if self.exit.0 != self.exit.1 {
            all.push(format!("exit {} in the mock, {} now", self.exit.0, self.exit.1));
        }
        if let ((Some(mock), Some(real)), true) = (&self.verdict, self.verdict.0 != self.verdict.1) {
            all.push(format!("`{mock}` in the mock, `{real}` now"));
        }
        if self.shape.0 != self.shape.1 {
            all.push(format!("printed {} in the mock, {} now", self.shape.0, self.shape.1));
        }
        let age = self.from.as_ref().and_then(|from| Timestamp::try_from(from.clone()).ok());
        let age =
            age.map_or_else(String::new, |from| format!("; the mock is {} old", human(now.since(from))));
        format!("`{}` ({}): {}{age}", self.state, one_line(&self.text, SHOWN), all.join(", "))
    }
}
