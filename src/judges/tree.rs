//! A tree of files, as the rules read it.

use std::collections::BTreeMap;

use crate::base::file_mode::FileMode;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// Nothing.
    Nothing,
    /// A file.
    File(FileAt),
    /// Something that could not be read. Unknown is not unchanged: a judge that cannot be read makes the whole
    /// [`JudgesState::Unknown`](super::found_judges::JudgesState::Unknown).
    Unreadable,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAt {
    /// Its mode.
    pub mode: FileMode,
    /// Its content; the target of a link, the commit of a submodule.
    pub bytes: Vec<u8>,
    /// Whether git ignores it: it is not tracked, and would not be added.
    pub is_ignored: bool,
}

/// A tree of files: that of the start, or the final one. Paths begin at the root of the repository and have `/` between
/// their parts.
pub trait Tree {
    /// Returns what stands at a path, whether git tracks it or not.
    fn at(&self, path: &str) -> At;

    /// Returns the paths of all files that git does not ignore. It is asked for only where a list of ignored paths
    /// changed, or a check runs the scripts of all packages.
    fn seen(&self) -> Vec<String>;

    /// Tells whether the file at a path was made by the last action of the run.
    fn was_made_at_last(&self, _path: &str) -> bool {
        true
    }

    /// Tells whether a program that was not there at the start was installed: it was there before a check had looked, or a
    /// package manager knows of it.
    fn is_installed(&self, _path: &str) -> bool {
        true
    }

    /// Returns the file at a path, if there is one and it can be read.
    fn file(&self, path: &str) -> Option<FileAt> {
        match self.at(path) {
            At::File(file) => Some(file),
            At::Nothing | At::Unreadable => None,
        }
    }
}

/// Returns what stands behind the last dot of the name at a path. Tools tell `.PY` from `.py`, and so do the rules.
pub fn extension(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    // `.bashrc` is a name without an extension.
    (!stem.is_empty()).then_some(extension)
}

/// A tree in memory.
impl Tree for BTreeMap<String, FileAt> {
    fn at(&self, path: &str) -> At {
        self.get(path).cloned().map_or(At::Nothing, At::File)
    }

    fn seen(&self) -> Vec<String> {
        self.iter().filter(|(_, file)| !file.is_ignored).map(|(path, _)| path.clone()).collect()
    }
}
