//! Counts how often a session was kept from stopping at the same criterion, so that none is kept for ever: in a file of
//! its own, because the state file is not the hook's to change.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::base::text::{hex, is_hex};
use crate::files::{read, replace};

/// How often a session is kept from stopping at the same criterion.
pub const PATIENCE: u32 = 5;

/// The largest count that is read, in bytes.
const MAX_BYTES: u64 = 4096;

/// How many sessions are remembered in a place.
const SESSIONS: usize = 200;

/// What is kept of a session.
#[derive(Default, Serialize, Deserialize)]
struct SessionBlocks {
    /// The digest of where it was kept from stopping.
    at: String,
    /// How often in a row.
    blocks: u32,
}

/// Counts that a session wants to stop and may not, in the first of some directories that takes the count. `at` is what
/// it may not stop at. Returns how often in a row that was so, this time included; nothing if it cannot be counted.
pub fn count(directories: &[PathBuf], session: &str, at: &str) -> Option<u32> {
    // By its digest, because the name of a session comes from outside.
    let name = format!("{}.json", hex(&Sha256::digest(session)));
    directories.iter().find_map(|directory| count_in(directory, &name, at).ok())
}

fn count_in(directory: &Path, name: &str, at: &str) -> io::Result<u32> {
    fs_err::create_dir_all(directory)?;
    // Old counts are removed there, so it has to be a place of ours and no link to another one.
    if !fs_err::symlink_metadata(directory)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let path = directory.join(name);
    // Whatever else stands in its place says nothing, and is replaced.
    // Neither a link nor a pipe is followed or read.
    let file = std::fs::symlink_metadata(&path).ok().filter(std::fs::Metadata::is_file);
    let text = file.and_then(|_| read::bytes(&path, MAX_BYTES).ok());
    let kept = text.as_deref().and_then(|text| serde_json::from_slice::<SessionBlocks>(text).ok());
    let at = hex(&Sha256::digest(at));
    let before = kept.filter(|kept| kept.at == at).map_or(0, |kept| kept.blocks);
    let blocks = before.saturating_add(1);
    replace::replace(&path, serde_json::to_vec(&SessionBlocks { at, blocks })?)?;
    // Only a new session can make one too many.
    if text.is_none() {
        forget_oldest(directory);
    }
    Ok(blocks)
}

/// Tells whether a name is that of a count.
fn is_count(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(|digest| digest.len() == 64 && digest.bytes().all(is_hex))
}

/// Removes the counts of the sessions that were heard of least recently.
fn forget_oldest(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| is_count(&entry.file_name().to_string_lossy()));
    let aged = |entry: std::fs::DirEntry| {
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        (changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.path())
    };
    let mut all: Vec<_> = entries.map(aged).collect();
    all.sort();
    for (_, path) in &all[..all.len().saturating_sub(SESSIONS)] {
        let _gone = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_is_counted_for_itself_at_each_place() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().join("stops")];
        let counts: Vec<_> = [("a", "x"), ("a", "x"), ("b", "x"), ("a", "y"), ("a", "x"), ("a", "x")]
            .map(|(session, at)| count(&places, session, at).unwrap())
            .into();
        assert_eq!(counts, [1, 2, 1, 1, 1, 2]);
    }

    #[test]
    fn what_stands_in_the_place_of_a_count_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().join("stops")];
        assert_eq!(count(&places, "a", "x"), Some(1));
        let entry = fs_err::read_dir(&places[0]).unwrap().next().unwrap().unwrap().path();
        let victim = directory.path().join("victim");
        for text in ["", "[]", "{\"at\": 1}", "x"] {
            fs_err::write(&entry, text).unwrap();
            assert_eq!(count(&places, "a", "x"), Some(1), "{text}");
        }
        fs_err::write(&victim, "mine").unwrap();
        fs_err::remove_file(&entry).unwrap();
        std::os::unix::fs::symlink(&victim, &entry).unwrap();
        assert_eq!(count(&places, "a", "x"), Some(1));
        assert_eq!(fs_err::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(count(&places, "a", "x"), Some(2));
    }

    #[test]
    fn the_next_place_is_taken_where_one_cannot_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let (file, other) = (directory.path().join("file"), directory.path().join("other"));
        fs_err::write(&file, "").unwrap();
        assert_eq!(count(&[file.join("stops"), other.clone()], "a", "x"), Some(1));
        assert_eq!(count(&[file.join("stops"), other], "a", "x"), Some(2));
        assert_eq!(count(&[file.join("stops")], "a", "x"), None);
    }

    #[test]
    fn hundreds_of_sessions_leave_no_more_than_some_hundred_files() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().join("stops")];
        fs_err::create_dir(&places[0]).unwrap();
        fs_err::write(places[0].join("notes.json"), "mine").unwrap();
        for session in 0..SESSIONS + 20 {
            assert_eq!(count(&places, &session.to_string(), "x"), Some(1));
        }
        assert_eq!(fs_err::read_dir(&places[0]).unwrap().count(), SESSIONS + 1);
        assert!(places[0].join("notes.json").exists());
        // A link leads to a place of others.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&places[0], &link).unwrap();
        assert_eq!(count(&[link], "new", "x"), None);
    }
}
