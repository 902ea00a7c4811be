//! Reads and replaces `.loop/state.json`, which others read and write as well, and which can be anything.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::criteria::state::MAX_BYTES;

/// Where the file is, below the directory of the work.
pub const PLACE: &str = ".loop/state.json";

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
