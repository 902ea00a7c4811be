//! Records that come into the store while actions of a run work. They are as untrusted as the actions: one could write a record that is
//! right in every part, by which a later commit passes that nobody has checked. What lay there before is noted in a file, so that
//! whoever comes after a run that was killed can tell them, too.

use std::collections::BTreeMap;
use std::path::Path;

use super::store::{ReuseStore, StoreError};
use crate::files::file_time::FileTime;
use crate::files::read::{self, Unread};
use crate::files::replace::replace;

/// The largest note that is read, in bytes.
const LARGEST: u64 = 16 * read::MIB;

/// The records that lay in the store before the first action of a run.
pub struct RecordsBefore {
    store: ReuseStore,
    /// When each of them changed last, by its file below the store. Those of a store or a note that could not be read are all unknown,
    /// for an action may have had a hand in that.
    known: BTreeMap<String, FileTime>,
}

impl RecordsBefore {
    /// Returns what lay in a store when a run began, and notes it. A run that goes on after it was killed has begun before.
    pub fn noted(store: ReuseStore, note: &Path) -> Self {
        if let Some(known) = Self::left(store.clone(), note) {
            return known;
        }
        let known = times(&store).unwrap_or_default();
        // Without the note, the end of the run still removes what has come.
        let _best_effort = serde_json::to_vec(&known).map(|bytes| replace(note, bytes));
        Self { store, known }
    }

    /// Returns what a note says of a store; nothing where there is no note.
    pub fn left(store: ReuseStore, note: &Path) -> Option<Self> {
        match read::bytes(note, LARGEST) {
            Err(Unread::Absent) => None,
            noted => {
                let known = noted.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
                Some(Self { store, known: known.unwrap_or_default() })
            }
        }
    }

    /// Removes what has come since, or was written to. Returns how many records there were.
    ///
    /// # Errors
    /// The store cannot be read, or a record cannot be removed.
    pub fn remove_others(self) -> Result<usize, StoreError> {
        let mut others = times(&self.store)?;
        others.retain(|file, changed| self.known.get(file) != Some(changed));
        if others.is_empty() {
            return Ok(0);
        }
        let folder = self.store.folder();
        self.store.remove(|place| others.contains_key(&below(place, &folder)))
    }
}

/// Returns when each record changed last.
fn times(store: &ReuseStore) -> Result<BTreeMap<String, FileTime>, StoreError> {
    let folder = store.folder();
    let records = store.records()?.into_iter();
    let changed = records.filter_map(|place| {
        let metadata = place.symlink_metadata().ok()?;
        Some((below(&place, &folder), FileTime::of(&metadata)))
    });
    Ok(changed.collect())
}

fn below(place: &Path, folder: &Path) -> String {
    place.strip_prefix(folder).unwrap_or(place).to_string_lossy().into_owned()
}
