//! An index of our own beside that of a repository, so that trees are made while the repository stays as it is.

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::TempDir;

use super::call::alternate;
use super::error::GitError;
use crate::files::transient;

/// An index of our own, and a place for objects of our own: trees can be made, and the repository stays as it is.
pub(crate) struct OwnIndex {
    pub(super) env: BTreeMap<String, String>,
    /// Holds the index.
    _place: TempDir,
}

impl OwnIndex {
    /// Copies an index. New objects go to `objects`, which stays.
    pub(crate) fn copy(index: &Path, known: &Path, objects: &Path) -> Result<Self, GitError> {
        let place = transient::directory("ll-index-")?;
        fs_err::create_dir_all(objects)?;
        let own = place.path().join("index");
        copy_index(index, &own)?;
        let env = BTreeMap::from([
            ("GIT_INDEX_FILE".to_owned(), text(&own)?),
            ("GIT_OBJECT_DIRECTORY".to_owned(), text(objects)?),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES".to_owned(), alternate(&text(known)?)),
        ]);
        Ok(Self { env, _place: place })
    }

    /// Copies an index. New objects go to the repository itself, and git may remember in the copy what it found out about
    /// files.
    pub(crate) fn of_repository(index: &Path) -> Result<Self, GitError> {
        let place = transient::directory("ll-index-")?;
        let own = place.path().join("index");
        copy_index(index, &own)?;
        let env = BTreeMap::from([
            ("GIT_INDEX_FILE".to_owned(), text(&own)?),
            ("GIT_OPTIONAL_LOCKS".to_owned(), "1".to_owned()),
        ]);
        Ok(Self { env, _place: place })
    }

    /// Returns the same with variables of its own.
    #[must_use]
    pub(crate) fn with(mut self, env: impl IntoIterator<Item = (&'static str, &'static str)>) -> Self {
        self.env.extend(env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        self
    }

    /// Makes another one with the same objects, and no files yet.
    pub(crate) fn another(&self) -> Result<Self, GitError> {
        let place = transient::directory("ll-index-")?;
        let mut env = self.env.clone();
        let own = place.path().join("index");
        env.insert("GIT_INDEX_FILE".to_owned(), own.to_string_lossy().into_owned());
        Ok(Self { env, _place: place })
    }
}

/// A variable of git holds text.
fn text(path: &Path) -> Result<String, GitError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| GitError::File(format!("{} is not text", path.display())))
}

/// Copies an index together with its time. By that time git knows which files it may take for unchanged: a file that
/// was written later than the index, or in the same moment, is read.
pub(crate) fn copy_index(index: &Path, copy: &Path) -> std::io::Result<()> {
    let written = match fs_err::metadata(index) {
        Ok(metadata) => metadata.modified()?,
        // A repository without files has none.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    crate::files::read::copy(index, copy)?;
    fs_err::OpenOptions::new().write(true).open(copy)?.file().set_modified(written)
}
