//! Records that come into the store while actions of a run work. They are as untrusted as the actions: one could write a record that is
//! right in every part, by which a later commit passes that nobody has checked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::store::{ReuseStore, StoreError};
use crate::files::file_time::FileTime;

/// The records that lay in the store before the first action of a run.
pub struct RecordsBefore {
    store: ReuseStore,
    /// When each of them changed last. Those of a store that could not be read are all unknown, for an action may have had a hand in
    /// that.
    known: BTreeMap<PathBuf, FileTime>,
}

impl RecordsBefore {
    /// Notes what lies in a store.
    pub fn of(store: ReuseStore) -> Self {
        let known = times(&store).unwrap_or_default();
        Self { store, known }
    }

    /// Removes what has come since, or was written to. Returns how many records there were.
    ///
    /// # Errors
    /// The store cannot be read, or a record cannot be removed.
    pub fn remove_others(self) -> Result<usize, StoreError> {
        let mut others = times(&self.store)?;
        others.retain(|place, changed| self.known.get(place) != Some(changed));
        if others.is_empty() {
            return Ok(0);
        }
        self.store.remove(|place| others.contains_key(place))
    }
}

/// Returns when each record changed last.
fn times(store: &ReuseStore) -> Result<BTreeMap<PathBuf, FileTime>, StoreError> {
    let changed = |place: PathBuf| {
        let metadata = place.symlink_metadata().ok()?;
        Some((place, FileTime::of(&metadata)))
    };
    Ok(store.records()?.into_iter().filter_map(changed).collect())
}
