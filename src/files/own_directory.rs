//! Directories that belong to a user whatever the environment says: an action can set variables, and cannot lead us elsewhere.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where they lie.
const ABOVE: &str = "/var/tmp";

/// Returns the path of a directory of this user, by the name that all users have for theirs.
pub fn path(name: &str) -> PathBuf {
    Path::new(ABOVE).join(format!(".{name}-{}", rustix::process::getuid().as_raw()))
}

/// Makes such a directory, which no other user can read.
///
/// # Errors
/// It cannot be made, or somebody else has taken its place.
pub fn make(directory: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    if is_ours(directory) {
        return Ok(());
    }
    let why = format!("{} belongs to somebody else", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Tells whether a directory is one of this user, and no link.
pub fn is_ours(directory: &Path) -> bool {
    let found = fs::symlink_metadata(directory);
    found.is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::getuid().as_raw())
}
