//! Room on the disk that is kept from the beginning of a run, so that it can say on a full one how it ended.

use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::FallocateFlags;
use rustix::process::{Resource, getrlimit};

use super::fault;

/// The room that is kept on the disk until a run has ended, and given back when there is no other: for its last words,
/// its state and its reports, as far as they fit.
const RESERVE: u64 = 64 * 1024;

/// Keeps room on the disk, and returns the size that a file may have here.
pub(super) fn keep(path: &Path) -> io::Result<u64> {
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    let size = RESERVE.min(limit);
    fault::write(size)?;
    let mut file = fs_err::File::create(path)?;
    let allocated = rustix::fs::fallocate(file.file(), FallocateFlags::empty(), 0, size);
    if matches!(allocated, Err(error) if error == rustix::io::Errno::NOSPC || error == rustix::io::Errno::DQUOT)
    {
        let _best_effort = fs_err::remove_file(path);
        return allocated.map(|()| limit).map_err(io::Error::from);
    }
    if allocated.is_err() {
        // Not every file system can set room aside without writing it.
        let written = io::copy(&mut io::repeat(0).take(size), &mut file);
        written.inspect_err(|_| drop(fs_err::remove_file(path)))?;
    }
    fault::point();
    Ok(limit)
}

/// Gives the room back.
pub(super) fn release(path: &Path) {
    if fs_err::remove_file(path).is_ok() {
        fault::freed(RESERVE);
    }
}
