//! Where claims lie: in the git directory where there is one, because actions may clean the working tree, and a claim
//! that is gone lets a second run in. Elsewhere, and where the git directory cannot be written, beside the journals.

use std::path::{Path, PathBuf};

use rustix::fs::Access;
use sha2::{Digest as _, Sha256};

use crate::base::text::hex;
use crate::files::{gitdir, place};

/// The directory of ours in a git directory.
const OURS: &str = "ll-loop";

/// How many bytes of the digest of a path name its directory; others of one repository are few.
const DIGEST: usize = 8;

/// Returns the directory in which claims are made, which exists unless the directory of the journals does not.
pub fn of(running: &Path) -> PathBuf {
    let in_git = in_git(running).filter(|directory| {
        let is_made = fs_err::create_dir_all(directory).is_ok();
        // A directory that is there already may lie on a file system that is mounted read-only.
        is_made && rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    });
    in_git.unwrap_or_else(|| running.to_owned())
}

/// Returns the directories in which claims may be. There are two: a run may be older than the repository, or unable to
/// write what is git's.
pub(super) fn all(running: &Path) -> Vec<PathBuf> {
    in_git(running).into_iter().chain([running.to_owned()]).collect()
}

/// Names the directory in the git directory. Each `.loops` of a working tree has its own, whatever the path to the
/// working tree is, which differs inside of a container.
fn in_git(running: &Path) -> Option<PathBuf> {
    let loops = place::resolved(running.parent()?);
    let git = gitdir::around(&loops)?;
    let path = loops.strip_prefix(&git.root).ok()?;
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    Some(git.own.join(OURS).join(hex(&digest[..DIGEST])))
}
