//! Errors of a session: what happened, what to do about it, and the kind that decides the exit code.

use std::error::Error as StdError;
use std::fmt;

use crate::base::name::LoopName;
use crate::base::object::ObjectId;
use crate::engine::outcome::Signal;
use crate::report::unbegun_run::Mistake;

/// The kind of an error, by which the command line chooses its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing was run: wrong usage, an invalid loop file, or a refusal.
    Refused,
    /// Another run or process holds what this one needs.
    Locked,
    /// Another process or job goes on with this very run, or has done so: it tells how that ends.
    Taken,
    /// This very run has gone on here, or has ended, since it was written down what is to go on.
    GoneOn,
    /// The run has ended, and told how.
    Over,
    /// A service did not answer, even after several tries.
    Unavailable,
    /// The named thing does not exist.
    Absent,
    /// A signal came before the run began.
    Interrupted(Signal),
    /// Something failed outside of the loop, such as writing a file.
    Failed,
}

/// An error for a person: what happened and, if known, what to do.
#[derive(Clone, Debug)]
pub struct Error {
    message: String,
    hint: Option<String>,
    kind: Kind,
    mistakes: Vec<Mistake>,
    bundled: Option<Box<BundledRun>>,
}

/// A run that was to go on from a bundle: where it has been reported until now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BundledRun {
    /// Its loop.
    pub(crate) loop_name: LoopName,
    /// The commit on which it began, where that is known.
    pub(crate) sha: Option<ObjectId>,
}

impl Error {
    /// Makes the error of a run that never began: usage, loop file, refusal.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, kind: Kind::Refused, mistakes: Vec::new(), bundled: None }
    }

    /// Makes an error of something that failed outside of the loop, with all of its sources.
    pub(crate) fn failed(what: impl Into<String>, error: &dyn StdError) -> Self {
        let mut message = format!("{}: {error}", what.into());
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            // Many libraries write their cause into their own message, and it would stand there
            // twice.
            if !message.contains(&cause_text) {
                message.push_str(": ");
                message.push_str(&cause_text);
            }
            source = cause.source();
        }
        Self { message, hint: None, kind: Kind::Failed, mistakes: Vec::new(), bundled: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the places in loop files that it is about.
    #[must_use]
    pub(crate) fn with_mistakes(mut self, mistakes: Vec<Mistake>) -> Self {
        self.mistakes = mistakes;
        self
    }

    /// Adds the run that was to go on.
    #[must_use]
    pub(crate) fn of_bundled(mut self, run: BundledRun) -> Self {
        self.bundled = Some(Box::new(run));
        self
    }

    /// Makes an error of a file that somebody named and that cannot be written: a wrong name is their mistake.
    pub(crate) fn unwritten(what: impl Into<String>, error: &std::io::Error) -> Self {
        let failed = Self::failed(what, error);
        let is_mistake =
            matches!(error.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::IsADirectory);
        if is_mistake { failed.of_kind(Kind::Refused) } else { failed }
    }

    /// Changes its kind.
    #[must_use]
    pub(crate) fn of_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Returns what happened.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what to do about it, if known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the places in loop files that it is about.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// Returns the run that was to go on from a bundle, if one was.
    pub(crate) fn bundled(&self) -> Option<&BundledRun> {
        self.bundled.as_deref()
    }

    /// Returns its kind.
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
