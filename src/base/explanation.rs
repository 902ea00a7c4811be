//! Why something came to no result, as a sentence for people and for the record.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A sentence that says why there is no result. It is shown and written down; where code has to tell one failure from
/// another, the error is an enum instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Explanation(String);

impl Explanation {
    /// Makes an explanation of a fragment without a full stop, as all messages are.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// Returns the sentence.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Explanation> for String {
    fn from(explanation: Explanation) -> Self {
        explanation.0
    }
}

/// An error ends as a sentence where no code decides by it any more. So this type is not an error itself.
impl<E: Error> From<E> for Explanation {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
