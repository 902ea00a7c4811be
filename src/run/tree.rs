//! The working tree as git sees it, kept apart from the repository: a digest to know it by, and patches between two.
//!
//! Everything is added to an index and an object directory of our own, so the repository stays as it is.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::base::text::hex;

use super::git::Git;

/// A place for indexes and objects, for as long as trees are compared.
pub(super) struct Trees {
    top: PathBuf,
    place: TempDir,
}

/// A working tree at one moment.
pub(super) struct Tree {
    id: String,
    /// What the scope holds.
    pub(super) digest: String,
}

impl Trees {
    /// Opens the repository around a directory, or says why there is none.
    pub(super) async fn open(git: &mut Git, root: &Path) -> Result<Self, String> {
        let top = path(&git.run(root, &["rev-parse", "--show-toplevel"]).await?);
        let objects = path(&git.run(&top, &["rev-parse", "--git-path", "objects"]).await?);
        let index = path(&git.run(&top, &["rev-parse", "--git-path", "index"]).await?);
        let place = TempDir::with_prefix("ll-trees-").map_err(|error| error.to_string())?;
        let own = |name: &str| place.path().join(name);
        fs_err::create_dir(own("objects")).map_err(|error| error.to_string())?;
        // Git's own index knows which files did not change; without it every file is read.
        let _no_commit_yet = fs_err::copy(top.join(index), own("index"));
        for (name, value) in [
            ("GIT_INDEX_FILE", own("index")),
            ("GIT_OBJECT_DIRECTORY", own("objects")),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", top.join(objects)),
        ] {
            git.env.retain(|(known, _)| known != name);
            git.env.push((name.to_owned(), value.to_string_lossy().into_owned()));
        }
        Ok(Self { top, place })
    }

    /// Looks at the working tree. What `except` holds is no part of it.
    pub(super) async fn look(
        &self,
        git: &mut Git,
        root: &Path,
        scope: &[String],
        except: &Path,
    ) -> Result<Tree, String> {
        let mut add = vec!["add".to_owned(), "-A".to_owned(), "--".to_owned(), ":/".to_owned()];
        if let Ok(inside) = except.strip_prefix(&self.top) {
            add.push(format!(":(top,literal,exclude){}", inside.display()));
            // What was committed is in the index already.
            let committed = format!(":(top,literal){}", inside.display());
            let forget = ["rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", &committed];
            git.run(&self.top, &forget).await?;
        }
        git.run(&self.top, &words(&add)).await?;
        let id = String::from_utf8_lossy(&git.run(&self.top, &["write-tree"]).await?).trim().to_owned();
        let mut list = ["--literal-pathspecs", "ls-files", "-s", "-z", "--"].map(str::to_owned).to_vec();
        list.extend(scope.iter().cloned());
        let listed = git.run(root, &words(&list)).await?;
        Ok(Tree { id, digest: hex(&Sha256::digest(&listed)) })
    }

    /// Returns what leads from one tree to another, empty when they are the same.
    pub(super) async fn patch(&self, git: &mut Git, from: &Tree, to: &Tree) -> Result<Vec<u8>, String> {
        if from.id == to.id {
            return Ok(Vec::new());
        }
        git.run(&self.top, &["diff-tree", "-r", "-p", "--binary", "--full-index", &from.id, &to.id]).await
    }

    /// Changes the working tree by a patch.
    pub(super) async fn apply(&self, git: &mut Git, patch: &[u8]) -> Result<(), String> {
        let file = self.place.path().join("patch");
        fs_err::write(&file, patch).map_err(|error| error.to_string())?;
        let file = file.to_string_lossy().into_owned();
        git.run(&self.top, &["apply", "--whitespace=nowarn", &file]).await.map(drop)
    }
}

fn words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// Reads the path that a line is.
fn path(line: &[u8]) -> PathBuf {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    PathBuf::from(OsStr::from_bytes(line.strip_suffix(b"\n").unwrap_or(line)))
}
