//! What a check makes of one file.

use std::path::PathBuf;

use crate::context::error::Error;
use crate::session::prepare::loop_check::Checked;

/// A file with what was found in it.
pub(crate) struct CheckedFile {
    /// The file.
    pub(crate) path: PathBuf,
    pub(crate) checked: Checked,
}

/// A file that could not be read.
pub(crate) struct UnreadableFile {
    /// What was asked for.
    pub(crate) asked: String,
    /// The file, where that is known.
    pub(crate) path: Option<PathBuf>,
    pub(crate) error: Box<Error>,
}
