//! Says which part of a working tree is the work of a run.

use std::path::{Path, PathBuf};

use crate::base::territory::Territory;

/// The part of a working tree that is the work of a run.
#[derive(Clone, Debug)]
pub struct Area {
    /// The directory in which the run works, and the paths below which untracked files count.
    pub territory: Territory,
    /// Absolute paths of what ll-loop itself writes, such as reports.
    pub own: Vec<PathBuf>,
}

impl Area {
    /// Tells whether ll-loop itself writes there.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }
}
