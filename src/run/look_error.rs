//! Why a working tree cannot be looked at, changed or put back while a run goes on.

use std::{fmt, io};

use crate::base::object::IdError;
use crate::base::text::one_line;
use crate::base::time::human;
use crate::git::error::GitError;

/// Why a working tree cannot be looked at or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LookError {
    /// A call of git failed.
    Git(GitError),
    /// A file or directory cannot be read or written.
    File(String),
    /// What is there is nothing that can be compared or put back, and why.
    Unfit(String),
}

impl LookError {
    /// Says why what is there cannot be compared or put back.
    pub(super) fn unfit(why: impl Into<String>) -> Self {
        Self::Unfit(why.into())
    }
}

/// These texts stand in the log and in the report of a run, where the calls are not known from the sentence around them.
impl fmt::Display for LookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Git(GitError::Cancelled) => f.write_str("the run is to end"),
            Self::Git(GitError::TooLong(limit)) => write!(f, "it took more than {}", human(*limit)),
            Self::Git(error) => match error.failure() {
                Some(failure) => {
                    let said = failure.said.lines().find(|line| !line.trim().is_empty());
                    let said = said.unwrap_or("it said nothing").trim().trim_start_matches("fatal: ");
                    let code = failure.code.unwrap_or(-1);
                    write!(f, "`git {}` failed (exit {code}): {}", failure.command, one_line(said, 200))
                }
                None => error.fmt(f),
            },
            Self::File(why) | Self::Unfit(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LookError {}

impl From<GitError> for LookError {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

impl From<IdError> for LookError {
    fn from(error: IdError) -> Self {
        Self::Git(error.into())
    }
}

impl From<io::Error> for LookError {
    fn from(error: io::Error) -> Self {
        Self::File(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::error::GitFailure;

    #[test]
    fn the_first_line_that_git_says_is_told_with_the_call() {
        let said = "\nfatal: bad object x\nmore".to_owned();
        let failed = GitError::Failed(GitFailure { command: "diff-tree", code: Some(128), said });
        assert_eq!(LookError::from(failed).to_string(), "`git diff-tree` failed (exit 128): bad object x");
        let silent = GitError::Failed(GitFailure { command: "add", code: Some(1), said: String::new() });
        assert_eq!(LookError::from(silent).to_string(), "`git add` failed (exit 1): it said nothing");
        assert_eq!(LookError::from(GitError::Cancelled).to_string(), "the run is to end");
    }
}
