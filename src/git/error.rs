//! Why a call of git did not do what it was asked, by what callers decide on it.
//!
//! Git has one exit code for nearly every failure, so what does not exist is told from what went wrong by the sentence
//! that git prints. This file is the only one that reads such sentences; every call runs with `LC_ALL=C`, so that they are
//! never translated.

use std::io;
use std::time::Duration;

use crate::base::object::IdError;
use crate::base::text::one_line;
use crate::base::time::human;

/// Why a call of git failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    /// The program cannot be started, or not be waited for.
    #[error("{0}")]
    NotStarted(String),
    /// The call was not made, because git would start a program of the repository, or would wait for somebody.
    #[error("{0}")]
    Unsafe(String),
    /// What the call is about does not exist.
    #[error("{1}")]
    NotThere(Absent, GitFailure),
    /// It ended with any other failure.
    #[error(transparent)]
    Failed(GitFailure),
    /// The caller stopped it.
    #[error("it was stopped")]
    Cancelled,
    /// It took longer than this.
    #[error("there was no answer within {}", human(*.0))]
    TooLong(Duration),
    /// It printed more than is read, or something that cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// A file that the call needs cannot be read or written.
    #[error("{0}")]
    File(String),
}

/// What does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// No repository around the directory.
    Repository,
    /// No ref or object of that name at the server.
    AtServer,
}

/// How git failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitFailure {
    /// The command of git, such as `push`.
    pub command: &'static str,
    /// The exit code; a signal has none.
    pub code: Option<i32>,
    /// What git said about it.
    pub said: String,
}

impl std::fmt::Display for GitFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let said = one_line(&self.said, 300);
        match (said.as_str(), self.code) {
            ("", Some(code)) => write!(f, "it ended with exit status: {code}"),
            ("", None) => f.write_str("it was ended by a signal"),
            (said, _) => f.write_str(said),
        }
    }
}

impl std::error::Error for GitFailure {}

/// What git says where something does not exist.
const ABSENT: [(&str, Absent); 4] = [
    ("not a git repository", Absent::Repository),
    // Said by the server, when it is asked for an object by its id.
    ("not our ref", Absent::AtServer),
    // Said by `fetch`, when it is asked for a name.
    ("couldn't find remote ref", Absent::AtServer),
    // Said by `fetch-pack` in the same case.
    ("no such remote ref", Absent::AtServer),
];

impl GitError {
    /// Sorts the failure of a call by what git said.
    pub(super) fn of(failure: GitFailure) -> Self {
        let absent = ABSENT.iter().find(|(sentence, _)| failure.said.contains(sentence));
        match absent {
            Some((_, absent)) => Self::NotThere(*absent, failure),
            None => Self::Failed(failure),
        }
    }

    /// Tells whether a quiet `rev-parse --verify` found no object of that name, as `HEAD` has none before the first commit. It
    /// has this code for that alone.
    pub fn is_of_no_object(&self) -> bool {
        matches!(self, Self::Failed(GitFailure { code: Some(1), .. }))
    }

    /// Returns how git failed, where it was git that failed.
    pub fn failure(&self) -> Option<&GitFailure> {
        match self {
            Self::NotThere(_, failure) | Self::Failed(failure) => Some(failure),
            Self::NotStarted(_)
            | Self::Unsafe(_)
            | Self::Cancelled
            | Self::TooLong(_)
            | Self::Unreadable(_)
            | Self::File(_) => None,
        }
    }
}

impl From<IdError> for GitError {
    fn from(error: IdError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl From<io::Error> for GitError {
    fn from(error: io::Error) -> Self {
        Self::File(error.to_string())
    }
}

/// Why a tree or its objects cannot be read, kept or made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// A call of git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file or directory cannot be read or written.
    #[error("{0}")]
    File(String),
    /// What is there cannot be used, and why.
    #[error("{0}")]
    Unfit(String),
}

impl TreeError {
    /// Says why what is there cannot be used.
    pub fn unfit(why: impl Into<String>) -> Self {
        Self::Unfit(why.into())
    }
}

impl From<IdError> for TreeError {
    fn from(error: IdError) -> Self {
        Self::Git(error.into())
    }
}

impl From<io::Error> for TreeError {
    fn from(error: io::Error) -> Self {
        Self::File(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(said: &str) -> GitFailure {
        GitFailure { command: "fetch", code: Some(128), said: said.to_owned() }
    }

    #[test]
    fn what_does_not_exist_is_told_from_what_went_wrong() {
        let is = |said: &str| {
            if let GitError::NotThere(absent, _) = GitError::of(failure(said)) { Some(absent) } else { None }
        };
        assert_eq!(
            is("fatal: not a git repository (or any of the parent directories): .git"),
            Some(Absent::Repository)
        );
        assert_eq!(is("fatal: remote error: upload-pack: not our ref 1234"), Some(Absent::AtServer));
        assert_eq!(is("fatal: couldn't find remote ref refs/heads/x"), Some(Absent::AtServer));
        assert_eq!(is("fatal: unable to access 'http://x/': Could not resolve host: x"), None);
    }

    #[test]
    fn a_failure_says_what_git_said_or_how_it_ended() {
        assert_eq!(failure("fatal: no\nmore").to_string(), "fatal: no…");
        assert_eq!(failure("").to_string(), "it ended with exit status: 128");
    }
}
