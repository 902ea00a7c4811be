//! Finds the files with runs that somebody has put somewhere: bundles, artifacts and journals.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::bundle::merged::RESULT;
use crate::bundle::{EXTENSION, names};
use crate::files::file_name::file_name;

/// How deep runs may lie in the directory that is given, and how many files of theirs are read.
const MOST_DEPTH: usize = 8;
pub(crate) const MOST_FILES: usize = 100_000;

/// The file that `ll-loop deliveries` writes for a board.
const DELIVERIES: &str = "deliveries.json";

/// The files with runs in a place.
#[derive(Clone, Debug)]
pub(crate) struct RunFilesFound {
    /// The files, in the order of their names.
    pub(crate) files: Vec<PathBuf>,
    /// The files that say what became of deliveries, in the same order.
    pub(crate) deliveries: Vec<PathBuf>,
    /// The results of runs and merges, in the same order.
    pub(crate) results: Vec<PathBuf>,
    /// Whether these are all.
    pub(crate) is_whole: bool,
}

impl RunFilesFound {
    /// Finds the files with runs below a directory, without following links, or the one that is named.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub(crate) fn below(path: &Path) -> io::Result<Self> {
        let mut found =
            Self { files: Vec::new(), deliveries: Vec::new(), results: Vec::new(), is_whole: true };
        if fs::metadata(path)?.is_dir() {
            found.is_whole = found.add_below(path, MOST_DEPTH)?;
            // A file system lists files in any order, and of two equal copies of a run the first one counts.
            found.files.sort();
            found.deliveries.sort();
            found.results.sort();
        } else if is_delivery_list(path) {
            found.deliveries.push(path.to_owned());
        } else {
            found.files.push(path.to_owned());
        }
        Ok(found)
    }

    /// Adds the files with runs below a directory. Tells whether these are all.
    fn add_below(&mut self, directory: &Path, depth: usize) -> io::Result<bool> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() && depth > 0 {
                if !self.add_below(&path, depth - 1)? {
                    return Ok(false);
                }
                continue;
            }
            if kind.is_file() && file_name(&path) == RESULT && self.results.len() < MOST_FILES {
                self.results.push(path);
                continue;
            }
            let is_list = is_delivery_list(&path);
            if !kind.is_file() || !(is_list || is_run(&path)) {
                continue;
            }
            if self.files.len() + self.deliveries.len() == MOST_FILES {
                return Ok(false);
            }
            if is_list { self.deliveries.push(path) } else { self.files.push(path) }
        }
        Ok(true)
    }
}

/// Tells whether a file is a journal, by its name.
pub(crate) fn is_journal(path: &Path) -> bool {
    is_called(path, names::JOURNAL)
}

/// Tells whether a file has this name, or one that ends in it, as those of several runs in one directory.
fn is_called(path: &Path, known: &str) -> bool {
    let name = file_name(path);
    name == known || name.ends_with(&format!(".{known}"))
}

fn is_run(path: &Path) -> bool {
    is_journal(path) || path.extension().is_some_and(|ending| ending == EXTENSION || ending == "zip")
}

/// Tells whether a file says what became of deliveries, by its name.
fn is_delivery_list(path: &Path) -> bool {
    is_called(path, DELIVERIES)
}
