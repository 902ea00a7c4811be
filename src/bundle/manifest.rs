//! What a bundle says about itself.

use serde::{Deserialize, Serialize};

use crate::base::name::LoopName;
use crate::base::time::Timestamp;

/// The version of the format that this program writes. A newer one is refused, an older one is read.
pub const SCHEMA: u32 = 1;

/// The file that names all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub schema: u32,
    /// What wrote it.
    pub written_by: String,
    /// When.
    pub written_at: Timestamp,
    /// The loop.
    pub r#loop: LoopName,
    /// The id of the run.
    pub instance: String,
    /// The loop file, as seen from the directory of the run.
    pub file: String,
    /// Digest of the loop file and everything it pulled in.
    pub definition_sha256: String,
    /// The repository, as `host/owner/name`, where there is one to name.
    pub repository: Option<String>,
    /// The job that wrote it, as people can look it up.
    pub job: Option<String>,
    /// How the run ended; absent while it goes on, or when it was killed.
    pub outcome: Option<String>,
    /// Whether it can go on.
    pub resumable: bool,
    /// Where it stands.
    pub state: Option<String>,
    /// The pass.
    pub iteration: u32,
    /// The state execution.
    pub step: u32,
    /// The number of the last event.
    pub last_seq: u64,
    /// What the run made of the working tree; absent where there is no git repository.
    pub tree: Option<SavedTree>,
    /// Files that are not in it, and why.
    pub left_out: Vec<LeftOut>,
    /// Every other file in it.
    pub files: Vec<Entry>,
}

/// A file in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in the bundle.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its digest, in hexadecimal digits.
    pub sha256: String,
}

/// A file that a bundle does not carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its path in the repository, or in the bundle.
    pub path: String,
    /// Why.
    pub why: String,
}

/// A working tree, told by the objects of a git bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedTree {
    /// The commit that a checkout has to be at, to become this tree.
    pub base: String,
    /// The commit at which the run left it: the same, unless the loop commits.
    pub head: String,
    /// A commit of all files as they were, on top of `head`.
    pub commit: String,
    /// The tree of that commit.
    pub tree: String,
    /// A commit of the index; absent when it held a conflict or a secret.
    pub index: Option<String>,
    /// Whether there is a file with objects: there is none when nothing was changed, and none when it may not be carried.
    pub changed: bool,
    /// Why the changes are not carried, if they are not.
    pub missing: Option<String>,
}

/// Names a repository in one way, whatever way leads to it: `host/owner/name`.
pub fn repository(url: &str) -> Option<String> {
    let url = url.trim();
    let rest = match url.split_once("://") {
        Some((_, rest)) => rest.to_owned(),
        // What git makes of `host:path`.
        None => url.split_once(':').map(|(host, path)| format!("{host}/{path}"))?,
    };
    let (host, path) = rest.split_once('/')?;
    let host = host.rsplit('@').next().unwrap_or(host).split(':').next().unwrap_or(host);
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_named = !host.is_empty() && !path.is_empty();
    is_named.then(|| format!("{host}/{path}").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Option<&str>) {
        assert_eq!(repository(url).as_deref(), expected, "{url}");
    }

    #[test]
    fn a_repository_has_one_name_however_it_is_reached() {
        let name = Some("github.com/o/r");
        check("https://github.com/o/r", name);
        check("https://github.com/O/r.git/", name);
        check("https://x-access-token:secret@github.com/o/r.git", name);
        check("git@github.com:o/r.git", name);
        check("ssh://git@github.com:22/o/r", name);
        check("https://gitlab.example/a/b/c.git", Some("gitlab.example/a/b/c"));
        check("/srv/git/r.git", None);
        check("../r", None);
        check("https://", None);
        check("", None);
    }
}
