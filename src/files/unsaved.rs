//! Texts that an editor has and has not saved. They stand above the files on disk, so that a loop is checked as it is seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::place::resolved;
use super::read::{self, Unread};

/// The unsaved texts of files. By default there are none, and files are what is on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnsavedTexts(Arc<BTreeMap<PathBuf, Arc<str>>>);

impl UnsavedTexts {
    /// Takes the texts of these files, which need not exist.
    pub fn of(texts: impl IntoIterator<Item = (PathBuf, Arc<str>)>) -> Self {
        // A file may be asked for by another name than the editor has it by.
        Self(Arc::new(texts.into_iter().map(|(path, text)| (resolved(&path), text)).collect()))
    }

    /// Reads a text of at most `limit` bytes: the unsaved one, or else that on disk.
    ///
    /// # Errors
    /// The text is longer, or the file on disk cannot be read.
    pub fn text(&self, path: &Path, limit: u64) -> Result<String, Unread> {
        match self.get(path) {
            Some(text) if text.len() as u64 > limit => Err(Unread::TooLarge { limit }),
            Some(text) => Ok(text.to_string()),
            None => read::text(path, limit),
        }
    }

    fn get(&self, path: &Path) -> Option<&str> {
        // Most have none, and links are followed for nothing.
        if self.0.is_empty() { None } else { self.0.get(&resolved(path)).map(AsRef::as_ref) }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_unsaved_text_stands_above_its_file_by_every_name() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["a", "b"] {
            fs_err::write(at(name), "saved").unwrap();
        }
        symlink("a", at("link")).unwrap();
        let unsaved =
            UnsavedTexts::of([(at("link"), Arc::from("typed")), (at("new"), Arc::from("not there yet"))]);
        let read = |name: &str| unsaved.text(&at(name), 15).map_err(|unread| unread.to_string());
        assert_eq!(read("a").as_deref(), Ok("typed"));
        assert_eq!(read("link").as_deref(), Ok("typed"));
        assert_eq!(read("b").as_deref(), Ok("saved"));
        assert_eq!(read("new").as_deref(), Ok("not there yet"));
        assert!(matches!(unsaved.text(&at("a"), 4), Err(Unread::TooLarge { limit: 4 })));
    }
}
