//! A fix, as the files that it changes.

use crate::base::object::ObjectId;
use crate::engine::changes::FileMode;

/// A file at one side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSide {
    /// What it is.
    pub mode: FileMode,
    /// Its content.
    pub id: ObjectId,
    /// The length of its content in bytes; zero for another repository.
    pub size: u64,
}

/// A file that a fix changes. A renamed one is two: one that goes and one that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path from the root of the repository.
    pub path: String,
    /// What stood there.
    pub old: Option<FileSide>,
    /// What stands there now.
    pub new: Option<FileSide>,
}
