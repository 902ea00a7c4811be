//! Reads and replaces files that others read and write as well, so that anything can stand in their place:
//! the state of a piece of work, and the settings of an agent.

use std::io;
use std::path::{Path, PathBuf};

use crate::criteria::state::MAX_BYTES;
use crate::files::read::{self, Unread};
use crate::files::{place, replace};

/// The directory of the state.
const HOME: &str = ".loop";

/// Reads the file, if there is one; of one with more than [`MAX_BYTES`] one byte more. Nothing that stands in its place
/// is waited for.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // A link in the repository could lead the write anywhere.
    place::stays_at_home(path, HOME)?;
    match read::head(path, MAX_BYTES as u64 + 1) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Unread::Absent) => Ok(None),
        Err(unread) => Err(unread.into()),
    }
}

/// Replaces the file, or makes it with its directory. Half a file is never seen, and who may read it stays the same.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = target(path)?;
    fs_err::create_dir_all(directory(&target))?;
    replace::replace(&target, text)
}

/// Returns where the file is kept: perhaps elsewhere in the repository, with a link to it in its place.
pub fn target(path: &Path) -> io::Result<PathBuf> {
    place::stays_at_home(path, HOME)?;
    Ok(fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}

/// Returns the directory that a file is in.
pub fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_place_and_its_readers() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        replace(&at("made/file"), "1").unwrap();
        fs_err::set_permissions(at("made/file"), Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("made/file", at("link")).unwrap();
        replace(&at("link"), "2").unwrap();
        assert!(at("link").is_symlink());
        assert_eq!(fs_err::read_to_string(at("made/file")).unwrap(), "2");
        assert_eq!(fs_err::metadata(at("made/file")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs_err::read_dir(at("made")).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_too_large_is_read_as_far_as_that_shows() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 40).unwrap();
        assert!(matches!(read(file.path()), Ok(Some(bytes)) if bytes.len() == MAX_BYTES + 1));
    }
}
