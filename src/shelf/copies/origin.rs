//! Where a loop is copied from: GitHub's API, or any repository that git reaches. Both say which commit a name means, whether it
//! is one of the repository, and what its files are.

use super::failed;
use super::gather::Files;
use super::git_address::GitAddress;
use super::remote_repository::RemoteRepository;
use crate::base::text::one_line;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::definition::vendored::{LockedLoop, SharedName};
use crate::forge::github::api::Api;
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

/// Opens the repository that a loop of the lock file was copied from. `api` is a client of the server of loops on GitHub.
pub(super) fn of_locked<'o>(
    before: &LockedLoop,
    name: &SharedName,
    api: &'o Api,
    session: &'o Session<'o>,
) -> Result<Box<dyn Origin + 'o>, Error> {
    let what = format!("cannot update `{name}`");
    if before.is_of_git() {
        let address = GitAddress::parse(&before.server)
            .ok()
            .filter(|address| address.name(name.path()).as_ref() == Ok(name))
            .ok_or_else(|| {
                let shown = one_line(&before.server, 200);
                Error::refused(format!("{what}: `{shown}` is not the address of its repository"))
                    .with_hint("somebody has edited `.loops/lock.json`: add the loop again")
            })?;
        let origin = RemoteRepository::open(address, session).map_err(|error| error.failed(&what))?;
        return Ok(Box::new(origin));
    }
    let origin = ServerRepository::open(api, name.repository()).map_err(|error| failed(&what, &error))?;
    if origin.name() != name.repository() {
        let message = format!("`{}` is `{}` now", name.repository(), origin.name());
        return Err(Error::refused(message).with_hint("add it by its new name"));
    }
    Ok(Box::new(origin))
}
