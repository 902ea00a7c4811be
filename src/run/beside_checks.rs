//! What a run knows of files that were written to while its checks were made.

use std::collections::{BTreeMap, BTreeSet};

/// What is known of files that were written to while checks were made.
#[derive(Debug, Default)]
pub struct BesideChecks {
    /// What each command of a check writes itself.
    pub(super) own: BTreeMap<String, BTreeSet<String>>,
    /// Whether something was written to beside a check of the loop.
    pub(super) is_doubted: bool,
    /// A judge that was written to in the closing pass.
    pub(super) written: Option<String>,
}

impl BesideChecks {
    /// Returns the judge that was written to since the closing pass began.
    pub(super) fn take_written(&mut self) -> Option<String> {
        self.written.take()
    }
}
