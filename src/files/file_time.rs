//! When a file changed, by the clock of its file system. That clock runs behind the one of the machine, by a tick of the kernel
//! or by as much as a server's does, so that its times are compared with each other alone.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::transient;
use crate::base::time::Timestamp;

/// When a file changed last. Unlike the time of its content, no program can set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileTime {
    seconds: i64,
    nanoseconds: i64,
}

impl FileTime {
    /// Returns when a file changed.
    pub fn of(metadata: &Metadata) -> Self {
        Self { seconds: metadata.ctime(), nanoseconds: metadata.ctime_nsec() }
    }

    /// Returns its seconds and nanoseconds.
    pub(super) fn parts(self) -> (i64, i64) {
        (self.seconds, self.nanoseconds)
    }

    /// Returns when a file was made, where its file system says so. No program can set that either.
    pub fn of_birth(metadata: &Metadata) -> Option<Self> {
        let since = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let seconds = i64::try_from(since.as_secs()).ok()?;
        Some(Self { seconds, nanoseconds: i64::from(since.subsec_nanos()) })
    }

    /// Returns it as a time of the machine's clock, which may be a moment later. It tells what was long ago from what was not.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_millis(self.seconds.saturating_mul(1000).saturating_add(self.nanoseconds / 1_000_000))
    }

    /// Returns what time it is for files in a directory.
    ///
    /// # Errors
    /// No file can be made there.
    pub fn now_in(directory: &Path) -> io::Result<Self> {
        let made_now = transient::file_in(0o600, directory)?;
        Ok(Self::of(&made_now.as_file().metadata()?))
    }
}

/// Waits until the clock of the files in a directory has moved on.
#[cfg(test)]
pub(crate) fn next_moment(directory: &Path) -> FileTime {
    let before = FileTime::now_in(directory).unwrap();
    loop {
        let now = FileTime::now_in(directory).unwrap();
        if now > before {
            return now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_between_the_times_before_and_after_it() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..300 {
            let before = FileTime::now_in(directory.path()).unwrap();
            let path = directory.path().join(format!("program-{number}"));
            std::fs::write(&path, "").unwrap();
            let changed = FileTime::of(&path.metadata().unwrap());
            let after = FileTime::now_in(directory.path()).unwrap();
            assert!(before <= changed && changed <= after, "{before:?} {changed:?} {after:?}");
        }
    }
}
