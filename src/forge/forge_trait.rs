//! What a delivery needs of a server: to read refs, to write one commit with all its refs at once, and to keep one pull
//! request. A new kind of server is one implementation of [`Forge`].

use std::collections::BTreeMap;

use super::change::FileChange;
use super::names::BranchName;
use crate::base::explanation::Explanation;
use crate::base::object::ObjectId;

/// What an error of a server means for a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgeErrorKind {
    /// Somebody else was faster: look again, and build anew.
    Raced,
    /// It would be possible, and must not be: unsigned, no drafts.
    Declined,
    /// The lock of the delivery is not held any more.
    Locked,
    /// The server does not answer, even after several tries.
    Unavailable,
    /// The token may not, or the server refuses.
    Failed,
}

/// Why a server did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ForgeError {
    /// What it means.
    pub kind: ForgeErrorKind,
    /// What happened.
    pub message: String,
    /// What to do about it, where that is known: the permission, or the setting.
    pub help: Option<String>,
}

impl ForgeError {
    /// Makes an error without advice.
    pub fn new(kind: ForgeErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), help: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// A commit, as far as a delivery looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: ObjectId,
    /// Its files.
    pub tree: ObjectId,
    /// What it goes on from.
    pub parents: Vec<ObjectId>,
    /// Its whole message.
    pub message: String,
}

/// A commit that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewCommit<'c> {
    /// The commit that it goes on from.
    pub parent: &'c ObjectId,
    /// The files that it has to have in the end.
    pub tree: &'c ObjectId,
    /// The difference between both.
    pub changes: &'c [FileChange],
    /// The headline, an empty line, and the rest.
    pub message: &'c str,
    /// Whether it is only to be used if the server vouches for its signature.
    pub require_signed: bool,
    /// The pull request that goes with it, for servers that make one while they take a push.
    pub pull: Option<&'c NewPull>,
}

/// A ref that is to point at the new commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefMove {
    /// Its whole name.
    pub name: String,
    /// What it points at now; nothing where it is not there. It is moved only from there.
    pub from: Option<ObjectId>,
}

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenCommit {
    /// Its id.
    pub id: ObjectId,
    /// Whether the server says that its signature is good; `false` for none.
    pub signed: bool,
}

/// What becomes of checks when our token writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// They run.
    Run,
    /// They wait for a person.
    Approval,
    /// They do not run.
    None,
}

impl Checks {
    /// Returns the word of the output `checks`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Approval => "approval",
            Self::None => "none",
        }
    }
}

/// The contents of files, by their ids.
pub trait FileContents {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not there.
    fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, Explanation>;
}

/// A server that takes deliveries.
pub trait Forge {
    /// Returns the name that people know it by.
    fn name(&self) -> String;

    /// Returns what refs point at, those that are there. Their names are whole.
    fn refs(&self, names: &[&str]) -> Result<BTreeMap<String, ObjectId>, ForgeError>;

    /// Returns a commit.
    fn commit(&self, id: &ObjectId) -> Result<Commit, ForgeError>;

    /// Makes a commit and moves all refs to it, or none. Whatever fails, nothing else is left on the server; what an
    /// earlier delivery left when it was broken off, below `temporary` (see [`super::names::StickyNames`]), is removed.
    fn write(
        &self,
        commit: &NewCommit<'_>,
        moves: &[RefMove],
        temporary: &str,
        contents: &dyn FileContents,
    ) -> Result<WrittenCommit, ForgeError>;

    /// Puts refs back to where they stood before they were moved to a commit, all of them or none: none if somebody has
    /// moved one since.
    fn take_back(&self, written: &ObjectId, moves: &[RefMove]) -> Result<(), ForgeError>;

    /// Asks what a push with our token starts.
    fn starts_checks(&self) -> Result<bool, ForgeError>;

    /// Tells whether checks that our token does not start wait in a pull request for a person to let them run.
    fn waits_for_approval(&self) -> bool {
        true
    }

    /// Returns its pull requests; nothing where it has none, or tells nothing of them.
    fn pulls(&self) -> Option<&dyn Pulls>;

    /// Tells whether it opens or changes a pull request while it takes a push, and tells nothing of those that it has:
    /// each commit comes with one.
    fn takes_pulls_with_pushes(&self) -> bool {
        false
    }
}

/// How a pull request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullState {
    /// It can be merged, or is a draft.
    Open,
    /// A person closed it.
    Closed,
    /// It was merged.
    Merged,
}

/// A pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Its number.
    pub number: u64,
    /// Its page.
    pub url: String,
    /// How it stands.
    pub state: PullState,
    /// Whether it is a draft.
    pub is_draft: bool,
    /// Whether it is merged by itself once its checks pass.
    pub merges_itself: bool,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
}

/// A pull request as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPull {
    /// The branch that is to be merged.
    pub branch: BranchName,
    /// The branch that it is to be merged into.
    pub base: BranchName,
    /// Its title.
    pub title: String,
    /// Its text, in Markdown.
    pub body: String,
    /// Whether it is a draft.
    pub is_draft: bool,
}

/// The pull requests of a server.
pub trait Pulls {
    /// Returns those from one branch of this repository into another, whatever became of them, the newest first.
    fn of_branch(&self, branch: &BranchName, base: &BranchName) -> Result<Vec<Pull>, ForgeError>;

    /// Opens one. If there is one already, it is [`ForgeErrorKind::Raced`]; if no draft can be made,
    /// [`ForgeErrorKind::Declined`].
    fn open(&self, new: &NewPull) -> Result<Pull, ForgeError>;

    /// Makes title and text of an open one those of `wanted`. A draft is made ready where `wanted` is not one and
    /// `makes_ready` says that the draft is ours to end.
    fn edit(&self, pull: &Pull, wanted: &NewPull, makes_ready: bool) -> Result<(), ForgeError>;
}
