//! Why a run could not begin, go on or be reported: what happened, what to do, and what kind of end that is.

use std::error::Error as StdError;
use std::fmt;

use crate::engine::outcome::Signal;

/// What kind of end an error is, by which the command line chooses its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing was run: a mistake of the caller, a loop file that cannot be used, or a refusal.
    Refused,
    /// Another run or process has what this one needs.
    Locked,
    /// A service is down or not there, also after several tries.
    Unavailable,
    /// What was asked about is not there.
    Absent,
    /// A signal came before the run began.
    Interrupted(Signal),
    /// Something went wrong that no loop is to blame for.
    Failed,
}

/// An error for a person: what happened and, where that is known, what to do.
#[derive(Clone, Debug)]
pub struct Error {
    message: String,
    hint: Option<String>,
    kind: Kind,
}

impl Error {
    /// Makes the error of a run that never began: usage, loop file, refusal.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, kind: Kind::Refused }
    }

    /// Makes an error that no loop is to blame for, with everything that led to it.
    pub(crate) fn failed(what: impl Into<String>, error: &dyn StdError) -> Self {
        let mut message = format!("{}: {error}", what.into());
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !message.contains(&cause_text) {
                message.push_str(": ");
                message.push_str(&cause_text);
            }
            source = cause.source();
        }
        Self { message, hint: None, kind: Kind::Failed }
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Makes it another kind of end.
    #[must_use]
    pub(crate) fn of_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Returns what happened.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what to do about it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns what kind of end it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {}
