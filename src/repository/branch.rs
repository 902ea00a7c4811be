//! `worktree:` of a state: its sub-loop works on a branch that exists, in a git worktree of its own, which is removed
//! afterwards. The branch stays, with what was committed on it.

use std::path::{Path, PathBuf};

use super::worktree;
use crate::context::Session;
use crate::engine::request::SubLoopRequest;
use crate::git::call::Call;
use crate::git::error::TreeError;
use crate::git::runner::Git;
use crate::journal::files::RunFiles;
use crate::run::Workplace;

/// Makes worktrees for the sub-loops of a run.
pub(crate) struct Branches {
    /// Where the run works.
    root: PathBuf,
    /// The directory of all worktrees.
    trees: PathBuf,
    git: Git,
}

impl Branches {
    pub(crate) fn new(root: &Path, files: &RunFiles, session: &Session<'_>) -> Self {
        let trees = files.worktree().parent().unwrap_or(root).to_owned();
        Self { root: root.to_owned(), trees, git: super::at(root, session) }
    }

    /// Makes the worktree of a sub-loop that asks for a branch, or takes the one in which it was left.
    pub(crate) fn workplace(&self, request: &SubLoopRequest) -> Result<Option<Workplace>, TreeError> {
        let Some(branch) = &request.worktree else { return Ok(None) };
        let failed =
            |why: TreeError| TreeError::unfit(format!("cannot check out the branch `{branch}`: {why}"));
        let path = self.trees.join(format!("{}-subloop", request.key.replace('/', "-")));
        if !path.is_dir() {
            self.add(branch, &path).map_err(failed)?;
        }
        let prefix = self.git.line(&Call::new("rev-parse").with(&["--show-prefix"]));
        let prefix = prefix.map_err(|why| failed(why.into()))?;
        let root = path.join(prefix);
        // Git keeps no empty directories, so the branch need not have the one of the loop.
        fs_err::create_dir_all(&root).map_err(|error| failed(error.into()))?;
        let git = self.git.at(&self.root);
        Ok(Some(Workplace { root, leave: Box::new(move || Ok(remove(&git, &path)?)) }))
    }

    fn add(&self, branch: &str, path: &Path) -> Result<(), TreeError> {
        // A branch that exists is not an option of git, and no other name of a commit.
        let known = Call::new("for-each-ref").with(&["--format=%(refname:short)"]);
        let known = self.git.line(&known.named("refs/heads/", ""))?;
        if !known.lines().any(|name| name == branch) {
            return Err(TreeError::unfit("there is no such branch"));
        }
        worktree::make_directory(&self.trees)?;
        let add = Call::new("worktree").with(&["add", "--quiet", "--no-checkout"]);
        self.git.line(&add.path(path.to_string_lossy()).path(branch))?;
        worktree::check_out(&self.git, path)
    }
}

/// Removes a worktree. Git refuses where work would be lost.
fn remove(git: &Git, path: &Path) -> Result<(), TreeError> {
    let remove = Call::new("worktree").with(&["remove"]).path(path.to_string_lossy());
    let removed = git.line(&remove).map(drop);
    removed.map_err(|why| TreeError::unfit(format!("the worktree {} stays: {why}", path.display())))
}
