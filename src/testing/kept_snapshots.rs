//! The texts that are kept in a file beside a test file.

use std::collections::BTreeMap;
use std::path::Path;

use super::expected::Snapshots;
use super::snapshot_file::{KeptText, SnapshotKey, read, write};
use crate::context::error::Error;
use crate::files::read::{self as files, MIB};
use crate::files::replace::replace;

/// The texts that are kept beside a test file.
pub(crate) struct KeptSnapshots {
    kept: BTreeMap<SnapshotKey, String>,
    new: Vec<KeptText>,
    updates: bool,
    is_ci: bool,
}

impl KeptSnapshots {
    /// Reads the texts that are kept in a file.
    pub(crate) fn read(file: &Path, updates: bool, is_ci: bool) -> Self {
        // Without the file every text is new, and each case says so itself.
        let text = files::text(file, 16 * MIB).unwrap_or_default();
        Self { kept: read(&text), new: Vec::new(), updates, is_ci }
    }

    /// Compares with nothing, and keeps nothing.
    pub(crate) fn frozen(&self) -> Self {
        Self { kept: self.kept.clone(), new: Vec::new(), updates: false, is_ci: true }
    }

    /// Writes those that are new.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(self, file: &Path) -> Result<(), Error> {
        let Self { mut kept, new, .. } = self;
        if new.is_empty() {
            return Ok(());
        }
        kept.extend(new.into_iter().map(|snapshot| (snapshot.key, snapshot.text)));
        replace(file, write(&kept))
            .map_err(|error| Error::failed(format!("cannot write `{}`", file.display()), &error))
    }
}

impl Snapshots for KeptSnapshots {
    fn kept(&self, key: &SnapshotKey) -> Option<String> {
        self.kept.get(key).cloned()
    }

    fn keep(&mut self, snapshot: KeptText) {
        self.new.push(snapshot);
    }

    fn is_updated(&self) -> bool {
        // In CI a text that differs is a failure, and never the new truth.
        self.updates && !self.is_ci
    }
}
