//! Finds the files with runs that somebody has put somewhere: bundles, artifacts and journals.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::bundle::merged::RESULT;
use crate::bundle::{EXTENSION, names};
use crate::files::file_name::file_name;

/// How deep runs may lie in the directory that is given, and how many files of theirs are read.
const MOST_DEPTH: usize = 8;
const MOST_FILES: usize = 100_000;

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
    /// Why these are perhaps not all.
    pub(crate) unread: Option<UnreadRuns>,
}

/// What of a directory was not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnreadRuns {
    /// There are more files than are read.
    Many,
    /// Directories lie deeper than is looked.
    Deep,
}

impl UnreadRuns {
    /// Says what a place has that was not looked at.
    pub(crate) fn sentence(self, shown: &str) -> String {
        match self {
            Self::Many => format!("{shown} has more than {MOST_FILES} runs; only those are read"),
            Self::Deep => {
                format!("{shown} has directories below the {MOST_DEPTH}th; runs in them are not read")
            }
        }
    }
}

impl RunFilesFound {
    /// Finds the files with runs below a directory, without following links, or the one that is named.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub(crate) fn below(path: &Path) -> io::Result<Self> {
        let mut found = Self { files: Vec::new(), deliveries: Vec::new(), results: Vec::new(), unread: None };
        if fs::metadata(path)?.is_dir() {
            found.add_below(path, MOST_DEPTH)?;
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

    /// Adds the files with runs below a directory, until there are too many.
    fn add_below(&mut self, directory: &Path, depth: usize) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                match depth.checked_sub(1) {
                    Some(depth) => self.add_below(&path, depth)?,
                    // Its siblings are read all the same.
                    None => self.unread = self.unread.or(Some(UnreadRuns::Deep)),
                }
            } else if kind.is_file() && file_name(&path) == RESULT {
                if self.results.len() == MOST_FILES {
                    self.unread = Some(UnreadRuns::Many);
                } else {
                    self.results.push(path);
                }
            } else if kind.is_file() && (is_delivery_list(&path) || is_run(&path)) {
                if self.files.len() + self.deliveries.len() == MOST_FILES {
                    self.unread = Some(UnreadRuns::Many);
                } else if is_delivery_list(&path) {
                    self.deliveries.push(path);
                } else {
                    self.files.push(path);
                }
            }
            if self.unread == Some(UnreadRuns::Many) {
                break;
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_too_deep_is_told_of_and_the_rest_is_found() {
        let place = tempfile::tempdir().unwrap();
        let directory = (0..MOST_DEPTH).fold(place.path().to_owned(), |path, _| path.join("d"));
        std::fs::create_dir_all(&directory).unwrap();
        let run = directory.join("a.llz");
        std::fs::write(&run, "").unwrap();
        let found = RunFilesFound::below(place.path()).unwrap();
        assert_eq!((found.files, found.unread), (vec![run.clone()], None));
        std::fs::create_dir(directory.join("deeper")).unwrap();
        let found = RunFilesFound::below(place.path()).unwrap();
        assert_eq!((found.files, found.unread), (vec![run], Some(UnreadRuns::Deep)));
    }
}
