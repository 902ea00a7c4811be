//! An index of our own beside that of a repository, so that trees are made while the repository stays as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::call::{Call, alternate};
use super::error::GitError;
use super::runner::Git;
use crate::files::read::{self, Unread};
use crate::files::transient;

/// An index of our own, and a place for objects of our own: trees can be made, and the repository stays as it is.
pub(crate) struct OwnIndex {
    pub(super) env: BTreeMap<String, String>,
    /// Holds the index, where it goes with this.
    _place: Option<TempDir>,
}

impl OwnIndex {
    /// Copies an index. New objects go to `objects`, which stays.
    pub(crate) fn copy(index: &Path, known: &Path, objects: &Path) -> Result<Self, GitError> {
        let place = transient::directory("ll-index-")?;
        fs_err::create_dir_all(objects)?;
        let own = place.path().join("index");
        copy_index(index, &own)?;
        Ok(Self { _place: Some(place), ..Self::at(&own, known, objects)? })
    }

    /// Takes an index that is kept. New objects go to `objects`.
    pub(crate) fn at(index: &Path, known: &Path, objects: &Path) -> Result<Self, GitError> {
        let env = BTreeMap::from([
            ("GIT_INDEX_FILE".to_owned(), text(index)?),
            ("GIT_OBJECT_DIRECTORY".to_owned(), text(objects)?),
            // With an object directory of its own, git no longer sees the objects of the
            // repository.
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES".to_owned(), alternate(&text(known)?)),
        ]);
        Ok(Self { env, _place: None })
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
        Ok(Self { env, _place: Some(place) })
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
        Ok(Self { env, _place: Some(place) })
    }
}

/// The index of a repository as it was at a moment, to be put back.
pub(crate) struct SavedIndex {
    index: PathBuf,
    /// Nothing where there was no index.
    copy: Option<PathBuf>,
    /// Holds the copy.
    _place: TempDir,
}

impl SavedIndex {
    /// Saves an index. One that is split is saved as a whole.
    pub(crate) fn of(git: &Git) -> Result<Self, GitError> {
        let ask = Call::new("rev-parse").with(&["--path-format=absolute", "--git-path", "index"]);
        let index = PathBuf::from(git.line(&ask)?);
        let place = transient::directory("ll-index-")?;
        let copy = place.path().join("index");
        copy_index(&index, &copy)?;
        // The other part of a split index lies in the repository, where it may change or expire
        // before this one is put back.
        if is_split(&copy)? {
            git.with("GIT_INDEX_FILE", &copy).line(&joining())?;
        }
        let copy = copy.exists().then_some(copy);
        Ok(Self { index, copy, _place: place })
    }

    /// Makes the index what it was, with its time.
    pub(crate) fn put_back(&self) -> Result<(), GitError> {
        // A copy that is gone, with everything else in `/tmp`, is not an index that never was.
        let saved = self.copy.as_ref().map(|copy| read::bytes(copy, LARGEST)).transpose();
        let saved = saved.map_err(|why| GitError::File(format!("its copy cannot be read: {why}")))?;
        if saved == read::bytes(&self.index, LARGEST).ok() {
            return Ok(());
        }
        let Some(copy) = &self.copy else {
            fs_err::remove_file(&self.index)?;
            return Ok(());
        };
        let folder = self.index.parent().unwrap_or(Path::new("."));
        // In the same folder, because only a rename within one file system is atomic: git never
        // sees half an index.
        let new = tempfile::Builder::new().prefix("index.ll-").tempfile_in(folder)?;
        copy_index(copy, new.path())?;
        new.persist(&self.index).map_err(|error| error.error)?;
        Ok(())
    }
}

/// The largest index that is read: more than ten million files.
pub(crate) const LARGEST: u64 = 4 << 30;

/// How the extension begins by which an index has its files elsewhere, in a file whose content nobody checks.
const SPLIT: &[u8] = b"link";

/// Tells whether an index may be split.
pub(crate) fn is_split(index: &Path) -> std::io::Result<bool> {
    match read::bytes(index, LARGEST) {
        // The word may also stand in a path. That costs one call more, and saves a parser of the
        // index.
        Ok(bytes) => Ok(bytes.windows(SPLIT.len()).any(|window| window == SPLIT)),
        Err(Unread::Absent) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The call that makes of an index that is split one that is not.
pub(crate) fn joining() -> Call {
    Call::new("update-index").with(&["--no-split-index", "--force-write-index"])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_put_back_and_stays_where_its_copy_is_gone() {
        let top = tempfile::tempdir().unwrap();
        let path = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin".to_owned();
        let git = Git::new(top.path(), BTreeMap::from([("PATH".to_owned(), path)]));
        git.line(&Call::new("init").with(&["--quiet"])).unwrap();
        let index = top.path().join(".git/index");
        let without_files = SavedIndex::of(&git).unwrap();
        fs_err::write(&index, "one").unwrap();
        let saved = SavedIndex::of(&git).unwrap();
        fs_err::write(&index, "two").unwrap();
        saved.put_back().unwrap();
        assert_eq!(fs_err::read(&index).unwrap(), b"one");
        fs_err::write(&index, "two").unwrap();
        fs_err::remove_file(saved.copy.as_ref().unwrap()).unwrap();
        assert!(saved.put_back().unwrap_err().to_string().contains("its copy cannot be read"));
        assert_eq!(fs_err::read(&index).unwrap(), b"two");
        without_files.put_back().unwrap();
        assert!(!index.exists());
    }
}
