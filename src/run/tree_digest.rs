//! The working tree as git sees it, kept apart from the repository: a digest to know it by, and patches between two.
//!
//! Everything is added to an index and an object directory of our own, so the repository stays as it is.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::look_error::LookError;
use crate::base::object::ObjectId;
use crate::base::text::hex;
use crate::files::transient;
use crate::git::call::{Call, alternate};
use crate::git::in_run::GitCalls;
use crate::git::own_index::copy_index;
use crate::git::repository_paths::RepositoryPaths;

/// A place for indexes and objects, for as long as trees are compared.
pub(super) struct WorkingTrees {
    pub(super) top: PathBuf,
    place: TempDir,
}

/// A working tree at one moment.
pub(super) struct WorkingTree {
    pub(super) id: ObjectId,
    /// What the scope holds.
    pub(super) digest: String,
}

impl WorkingTrees {
    /// Opens the repository around a directory, or says why there is none.
    pub(super) async fn open(git: &mut GitCalls, root: &Path) -> Result<Self, LookError> {
        let printed = git.run(root, &RepositoryPaths::call(&[])).await?;
        let (RepositoryPaths { top, objects, index }, []) = RepositoryPaths::read(&printed)?;
        let place = transient::directory("ll-trees-")?;
        let own = |name: &str| place.path().join(name);
        fs_err::create_dir(own("objects"))?;
        // Git's own index knows which files did not change; without it every file is read.
        copy_index(&index, &own("index"))?;
        for (name, value) in [("GIT_INDEX_FILE", own("index")), ("GIT_OBJECT_DIRECTORY", own("objects"))] {
            git.env.insert(name.to_owned(), value.to_string_lossy().into_owned());
        }
        let objects = alternate(&objects.to_string_lossy());
        git.env.insert("GIT_ALTERNATE_OBJECT_DIRECTORIES".to_owned(), objects);
        Ok(Self { top, place })
    }

    /// Looks at the working tree. What `except` holds is not part of it.
    pub(super) async fn look(
        &self,
        git: &mut GitCalls,
        root: &Path,
        scope: &[String],
        except: Option<&Path>,
    ) -> Result<WorkingTree, LookError> {
        let mut git = git.look(&self.top, None).await?;
        git.run(&self.top, &Call::new("add").with(&["-A"]).path(":/")).await?;
        // A recording within the tree grows with each call, and would make every tree another one.
        if let Some(Ok(inside)) = except.map(|except| except.strip_prefix(&self.top)) {
            if inside.as_os_str().is_empty() {
                return Err(LookError::unfit("the recording is the whole working tree"));
            }
            // Taken out again afterwards: `add` refuses to leave out what is ignored anyway.
            let forget = Call::new("rm").with(&["-r", "-f", "--cached", "--quiet", "--ignore-unmatch"]);
            git.run(&self.top, &forget.path(format!(":(top,literal){}", inside.display()))).await?;
        }
        let id = git.run(&self.top, &Call::new("write-tree")).await?;
        let id = ObjectId::parse(String::from_utf8_lossy(&id).trim())?;
        // The digest is that of the scope; what lies outside must not decide whether a call is
        // known.
        let list = Call::new("ls-files").with(&["-s", "-z"]).paths(scope).literal();
        let listed = git.run(root, &list).await?;
        Ok(WorkingTree { id, digest: hex(&Sha256::digest(&listed)) })
    }

    /// Returns what leads from one tree to another, empty when they are the same.
    pub(super) async fn patch(
        &self,
        git: &mut GitCalls,
        from: &WorkingTree,
        to: &WorkingTree,
    ) -> Result<Vec<u8>, LookError> {
        if from.id == to.id {
            return Ok(Vec::new());
        }
        let patch = Call::new("diff-tree").with(&["-r", "-p", "--binary", "--full-index"]);
        Ok(git.run(&self.top, &patch.id(&from.id).id(&to.id)).await?)
    }

    /// Changes the working tree by a patch.
    pub(super) async fn apply(&self, git: &mut GitCalls, patch: &[u8]) -> Result<(), LookError> {
        let file = self.place.path().join("patch");
        fs_err::write(&file, patch)?;
        let file = file.to_string_lossy().into_owned();
        // Without this, git warns about blanks that were there before.
        let apply = Call::new("apply").with(&["--whitespace=nowarn"]).path(file);
        git.run(&self.top, &apply).await?;
        Ok(())
    }
}
