//! Looks for secrets in files, so that none leaves the machine in one.

use std::fs::Metadata;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::file_time::FileTime;
use super::read;
use crate::base::redact::{FileMark, FileSearch, Redactor};

/// Why a file is left out that holds a secret.
pub const SECRET: &str = "it holds a secret";

/// Why a file is left out that was not searched.
const UNSEARCHED: &str = "there was no time to search it for secrets";

/// Tells why a file must not leave the machine: it holds a secret, or was not searched for one. It is searched once as long as
/// it stays as it is.
///
/// # Errors
/// The file cannot be read.
pub fn why_kept_back(redactor: &Redactor, path: &Path) -> io::Result<Option<&'static str>> {
    if redactor.is_empty() {
        return Ok(None);
    }
    let mut file = read::open(path)?;
    let mark = mark(&file.metadata()?);
    let search = if let Some(known) = redactor.searched(&mark) {
        known
    } else {
        let found = holds_secret(redactor, &mut file)?;
        let search = if found { FileSearch::Secret } else { FileSearch::Clean };
        // What was written to meanwhile is another file.
        if self::mark(&file.metadata()?) == mark {
            redactor.keep_search(mark, search);
        }
        search
    };
    Ok(match search {
        FileSearch::Clean => None,
        FileSearch::Secret => Some(SECRET),
        FileSearch::Unsearched => Some(UNSEARCHED),
    })
}

/// Leaves a file out that there is no time to search, wherever it is asked for from now on.
pub fn keep_back(redactor: &Redactor, metadata: &Metadata) -> &'static str {
    redactor.keep_search(mark(metadata), FileSearch::Unsearched);
    UNSEARCHED
}

/// Tells versions of files apart.
fn mark(metadata: &Metadata) -> FileMark {
    let (seconds, nanoseconds) = FileTime::of(metadata).parts();
    FileMark { file: (metadata.dev(), metadata.ino()), size: metadata.len(), changed: (seconds, nanoseconds) }
}

/// Looks for a secret in a file, piece by piece.
fn holds_secret(redactor: &Redactor, file: &mut impl io::Read) -> io::Result<bool> {
    const PIECE: usize = 1 << 20;
    let mut piece = Vec::with_capacity(PIECE + redactor.longest());
    loop {
        let read = file.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
        if redactor.finds(&piece) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        // A secret may lie across the border of two pieces.
        let seen = piece.len().saturating_sub(redactor.longest());
        piece.drain(..seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_searched_again_when_it_has_changed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let redactor = Redactor::new(["correct-horse-battery"]);
        std::fs::write(&path, "nothing").unwrap();
        assert_eq!(why_kept_back(&redactor, &path).unwrap(), None);
        let mark = mark(&path.metadata().unwrap());
        assert_eq!(redactor.searched(&mark), Some(FileSearch::Clean));
        std::fs::write(&path, "correct-horse-battery").unwrap();
        assert_eq!(why_kept_back(&redactor, &path).unwrap(), Some(SECRET));
    }

    #[test]
    fn what_nobody_had_the_time_to_search_stays_where_it_is() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let redactor = Redactor::new(["correct-horse-battery"]);
        std::fs::write(&path, "nothing").unwrap();
        assert_eq!(keep_back(&redactor, &path.metadata().unwrap()), UNSEARCHED);
        assert_eq!(why_kept_back(&redactor.clone(), &path).unwrap(), Some(UNSEARCHED));
        let another = Redactor::new(["correct-horse-battery"]);
        assert_eq!(why_kept_back(&another, &path).unwrap(), None);
    }
}
