//! A bundle that was opened to be looked at, not to go on with: its manifest, what its journal tells, and its objects.
//! Everything in it is a claim of whoever wrote it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::manifest::Manifest;
use super::names;
use super::open::{self, Bundle, LIMITS, OpenError};
use crate::base::sum::Sum;
use crate::engine::event::Stamped;
use crate::files::transient;
use crate::journal::reader;
use crate::journal::streams::StreamDigests;
use crate::report::digest::Digest;

/// A bundle, apart from any checkout.
pub(crate) struct OpenedBundle {
    /// What it says about itself.
    pub(crate) manifest: Manifest,
    /// What its journal tells.
    pub(crate) digest: Digest,
    /// The bundle itself: it may have been inside of an artifact.
    pub(crate) file: PathBuf,
    /// The digest of the file.
    pub(crate) sum: Sum,
    unpacked: TempDir,
    /// Holds `file` where it was inside of an artifact.
    _found: TempDir,
}

impl OpenedBundle {
    /// Opens the bundle that a path means, and compares everything in it with its manifest.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_reading(path, &mut |_| {})
    }

    /// Does the same, and shows every event of its journal on the way.
    pub(crate) fn open_reading(path: &Path, each: &mut dyn FnMut(&Stamped)) -> Result<Self, OpenError> {
        let (found, unpacked) = (transient::directory("")?, transient::directory("")?);
        let file = open::locate(path, found.path(), LIMITS)?;
        // The digest is that of the bundle, which is what was signed or recorded, not that of the
        // artifact around it.
        let sum = open::digest(&file)?;
        let manifest = Bundle::open(&file, LIMITS)?.extract(unpacked.path())?;
        let mut digest = Digest::default();
        let journal = unpacked.path().join(names::JOURNAL);
        let read = reader::read(&journal, |event| {
            digest.event(&event);
            each(&event);
        });
        read.map_err(|error| OpenError::Damaged(error.to_string()))?;
        Ok(Self { manifest, digest, file, sum, unpacked, _found: found })
    }

    /// Returns its journal.
    pub(crate) fn journal(&self) -> PathBuf {
        self.unpacked.path().join(names::JOURNAL)
    }

    /// Returns what its actions printed.
    pub(crate) fn log(&self) -> PathBuf {
        self.unpacked.path().join(names::LOG)
    }

    /// Says which stream of an action is not what the journal says of it, if one is not.
    pub(crate) fn damaged_stream(&self) -> Option<String> {
        let mut named = match StreamDigests::in_journal(&self.journal()) {
            Ok(named) => named,
            Err(error) => return Some(error.to_string()),
        };
        for entry in &self.manifest.files {
            let Some(name) = entry.name.as_str().strip_prefix(names::STREAMS) else { continue };
            if let Some(how) = named.take(name, entry.size, Some(entry.sha256)) {
                return Some(format!(
                    "what an action printed, `{name}`, is not what the journal says: {how}"
                ));
            }
        }
        let is_left_out = |name: &str| {
            let path = format!("{}{name}", names::STREAMS);
            self.manifest.left_out.iter().any(|left| left.path.as_str() == path)
        };
        let missing = named.left().find(|name| !is_left_out(name))?;
        Some(format!("what an action printed, `{missing}`, is not in the bundle"))
    }

    /// Returns the objects of the working tree, if it has any.
    pub(crate) fn objects(&self) -> Option<PathBuf> {
        Some(self.unpacked.path().join(names::TREE)).filter(|path| path.exists())
    }
}
