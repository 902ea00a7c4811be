//! Reads and replaces files that others read and write as well, so that anything can stand in their place:
//! `.loop/state.json`, and the settings of an agent.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::criteria::state::MAX_BYTES;

/// Where the state of a piece of work is, below its directory.
pub const STATE: &str = ".loop/state.json";

/// What is found at the place of the file.
#[derive(Debug)]
pub enum Content {
    /// Nothing.
    Absent,
    /// A file with these bytes; when there are more than [`MAX_BYTES`], not all of them.
    Bytes(Vec<u8>),
    /// Something that cannot be read.
    Unreadable(io::Error),
}

/// Reads the file. Nothing that stands in its place is waited for.
pub fn read(path: &Path) -> Content {
    match content(path) {
        Ok(bytes) => Content::Bytes(bytes),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Content::Absent
        }
        Err(error) => Content::Unreadable(error),
    }
}

fn content(path: &Path) -> io::Result<Vec<u8>> {
    // Without this flag, a pipe nobody writes to is waited for when it is opened.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces the file, or makes it with its directory. Half a file is never seen, and who may read it stays the same.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    // The file may be kept elsewhere, with a link to it here.
    let target = fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs_err::create_dir_all(directory)?;
    let mut file = tempfile::Builder::new()
        .prefix(".ll-loop-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    if let Ok(before) = fs_err::metadata(&target) {
        file.as_file().set_permissions(before.permissions())?;
    }
    file.persist(&target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
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
        assert!(matches!(read(file.path()), Content::Bytes(bytes) if bytes.len() == MAX_BYTES + 1));
    }
}
