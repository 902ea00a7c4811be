//! What binds the runs of this machine, by their processes: what an action starts has its run among its ancestors, whatever
//! it did to its environment and wherever it went.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::files::replace::replace;
use crate::files::{own_directory, read};
use crate::process::life;

/// The directory of all records of a user.
const DIRECTORY: &str = "ll-loop-policy";

/// The largest record, in bytes.
const MOST_RECORD: u64 = 4 * read::MIB;

/// A document that binds a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedDocument {
    /// The file or variable that it was read from.
    pub origin: String,
    /// What is written there.
    pub text: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct ProcessRecord {
    /// When the process began: its number comes again.
    started: String,
    documents: Vec<RecordedDocument>,
}

/// The record of this process; dropped, it is gone.
#[derive(Debug)]
pub struct KeptRecord {
    path: PathBuf,
}

impl Drop for KeptRecord {
    fn drop(&mut self) {
        // One that stays is known to be of a process that is gone.
        let _left = fs::remove_file(&self.path);
    }
}

/// Writes down what binds this process, and removes what processes left that are gone.
///
/// # Errors
/// It cannot be written, or somebody else has taken its place.
pub fn keep(documents: Vec<RecordedDocument>) -> io::Result<KeptRecord> {
    keep_in(&home(), documents)
}

/// Returns what binds the processes around this one.
pub fn around() -> Vec<RecordedDocument> {
    let home = home();
    // What another user has put in its place says nothing that can be relied on.
    if !own_directory::is_ours(&home) {
        return Vec::new();
    }
    life::ancestors().into_iter().flat_map(|pid| of_process(&home, pid)).collect()
}

fn home() -> PathBuf {
    own_directory::path(DIRECTORY)
}

fn keep_in(home: &Path, documents: Vec<RecordedDocument>) -> io::Result<KeptRecord> {
    own_directory::make(home)?;
    for entry in fs::read_dir(home)?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if pid.is_some_and(|pid| {
            read_record(home, pid).is_some_and(|record| life::is_over(pid, &record.started))
        }) {
            let _another_time = fs::remove_file(entry.path());
        }
    }
    let path = home.join(std::process::id().to_string());
    let record = ProcessRecord { started: life::started(), documents };
    replace(&path, serde_json::to_string(&record).map_err(io::Error::other)?)?;
    Ok(KeptRecord { path })
}

fn of_process(home: &Path, pid: u32) -> Vec<RecordedDocument> {
    match read_record(home, pid) {
        Some(record) if !life::is_over(pid, &record.started) => record.documents,
        Some(_) | None => Vec::new(),
    }
}

fn read_record(home: &Path, pid: u32) -> Option<ProcessRecord> {
    let text = read::text(&home.join(pid.to_string()), MOST_RECORD).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_record_as_long_as_it_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        let documents = vec![RecordedDocument { origin: "P".to_owned(), text: "hosts: []".to_owned() }];
        fs::create_dir(&home).unwrap();
        fs::write(home.join("1"), r#"{"started": "", "documents": [{"origin": "Q", "text": ""}]}"#).unwrap();
        let kept = keep_in(&home, documents.clone()).unwrap();
        assert_eq!(of_process(&home, std::process::id()), documents);
        drop(kept);
        assert_eq!(of_process(&home, std::process::id()), []);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&home, &link).unwrap();
        assert!(keep_in(&link, documents).is_err());
    }
}
