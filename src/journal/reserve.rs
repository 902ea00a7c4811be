//! Reserves disk space at the beginning of a run, so that the run can record its end even on a full disk.

use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::FallocateFlags;
use rustix::process::{Resource, getrlimit};

use super::fault;

/// Disk space that is reserved until a run has ended, and released when the disk is full: for its last event,
/// its state and its reports, as far as they fit.
const RESERVE: u64 = 64 * 1024;

/// Reserves space, and returns the largest size that a file may have here.
pub(super) fn keep(path: &Path) -> io::Result<u64> {
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    let size = RESERVE.min(limit);
    fault::write(size)?;
    let mut file = fs_err::File::create(path)?;
    // Setting the length alone would make a hole, which takes no space from the disk.
    let allocated = rustix::fs::fallocate(file.file(), FallocateFlags::empty(), 0, size);
    if matches!(allocated, Err(error) if error == rustix::io::Errno::NOSPC || error == rustix::io::Errno::DQUOT)
    {
        let _best_effort = fs_err::remove_file(path);
        return allocated.map(|()| limit).map_err(io::Error::from);
    }
    if allocated.is_err() {
        // Not every file system supports `fallocate`.
        let written = io::copy(&mut io::repeat(0).take(size), &mut file);
        written.inspect_err(|_| drop(fs_err::remove_file(path)))?;
    }
    fault::point();
    Ok(limit)
}

/// Releases the space.
pub(super) fn release(path: &Path) {
    if fs_err::remove_file(path).is_ok() {
        fault::freed(RESERVE);
    }
}
