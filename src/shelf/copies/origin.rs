//! Where a loop is copied from: GitHub's API, or any repository that git reaches. Both say which commit a name means, whether it
//! is one of the repository, and what its files are.

use super::failed;
use super::gather::Files;
use crate::context::error::{Error, Kind};
use crate::forge::github::contents::{ContentsError, MeantCommit, ServerRepository};
use crate::git::error::{GitError, TreeError};

/// A repository that loops are copied from.
pub(super) trait Origin {
    /// Finds the commit that a name means, and makes sure that it is one of this repository.
    fn resolve(&self, name: &str) -> Result<MeantCommit, OriginError>;
    /// Tells whether a commit is another one, or came before it.
    fn is_before(&self, commit: &str, later: &str) -> Result<bool, OriginError>;
    /// Returns the files at a commit.
    fn at<'o>(&'o self, commit: &str) -> Result<Box<dyn Files + 'o>, OriginError>;
}

impl Origin for ServerRepository<'_> {
    fn resolve(&self, name: &str) -> Result<MeantCommit, OriginError> {
        Ok(Self::resolve(self, name)?)
    }

    fn is_before(&self, commit: &str, later: &str) -> Result<bool, OriginError> {
        Ok(Self::is_before(self, commit, later)?)
    }

    fn at<'o>(&'o self, commit: &str) -> Result<Box<dyn Files + 'o>, OriginError> {
        Ok(Box::new(Self::at(self, commit)?))
    }
}

/// Why nothing can be copied from a repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OriginError {
    /// What was asked for is not there, or cannot be copied.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// Git did not reach it, or could not read what came.
    #[error(transparent)]
    Git(#[from] TreeError),
    /// More comes than any loop needs.
    #[error("the repository is larger than {} MiB, even without its history", .0 >> 20)]
    TooMuch(u64),
}

impl From<GitError> for OriginError {
    fn from(error: GitError) -> Self {
        Self::Git(error.into())
    }
}

impl OriginError {
    /// Says that something cannot be done, and what to do about it.
    pub(super) fn failed(&self, what: &str) -> Error {
        match self {
            Self::Contents(error) => failed(what, error),
            Self::Git(error) => Error::failed(what, error).of_kind(Kind::Unavailable).with_hint(
                "try `git ls-remote` with the same address: git has to reach it without asking anything",
            ),
            Self::TooMuch(_) => Error::failed(what, self)
                .of_kind(Kind::Refused)
                .with_hint("copy the file by hand into `.loops`"),
        }
    }
}
