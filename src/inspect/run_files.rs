//! Finds the files with runs that somebody has put somewhere: bundles, artifacts and journals.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::base::file_name::file_name;
use crate::bundle::{EXTENSION, names};

/// How deep runs may lie in the directory that is given, and how many files of theirs are read.
const MOST_DEPTH: usize = 8;
pub(crate) const MOST_FILES: usize = 100_000;

/// The files with runs in a place.
#[derive(Clone, Debug)]
pub(crate) struct RunFilesFound {
    /// The files, in the order of their names.
    pub(crate) files: Vec<PathBuf>,
    /// Whether these are all.
    pub(crate) is_whole: bool,
}

impl RunFilesFound {
    /// Finds the files with runs below a directory, without following links, or the one that is named.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub(crate) fn below(path: &Path) -> io::Result<Self> {
        let mut found = Self { files: Vec::new(), is_whole: true };
        if fs::metadata(path)?.is_dir() {
            found.is_whole = below(path, MOST_DEPTH, &mut found.files)?;
            found.files.sort();
        } else {
            found.files.push(path.to_owned());
        }
        Ok(found)
    }
}

/// Tells whether a file is a journal, by its name.
pub(crate) fn is_journal(path: &Path) -> bool {
    let name = file_name(path);
    name == names::JOURNAL || name.ends_with(&format!(".{}", names::JOURNAL))
}

/// Adds the files with runs below a directory. Tells whether these are all.
fn below(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_run = || {
            is_journal(&path) || path.extension().is_some_and(|ending| ending == EXTENSION || ending == "zip")
        };
        if kind.is_dir() && depth > 0 {
            if !below(&path, depth - 1, found)? {
                return Ok(false);
            }
        } else if kind.is_file() && is_run() {
            if found.len() == MOST_FILES {
                return Ok(false);
            }
            found.push(path);
        }
    }
    Ok(true)
}
