//! `worktree:` of a state: its sub-loop works on a branch that exists, in a git worktree of its own, which is removed
//! afterwards. The branch stays, with what was committed on it.

use std::path::{Path, PathBuf};

use super::worktree;
use crate::context::Session;
use crate::engine::request::SubLoopRequest;
use crate::files::gitdir::{self, GitDirectory};
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
        self.stand(branch, &path).map_err(failed)?;
        let prefix = self.git.line(&Call::new("rev-parse").with(&["--show-prefix"]));
        let prefix = prefix.map_err(|why| failed(why.into()))?;
        let root = path.join(prefix);
        // Git keeps no empty directories, so the branch need not have the one of the loop.
        fs_err::create_dir_all(&root).map_err(|error| failed(error.into()))?;
        let git = self.git.at(&self.root);
        Ok(Some(Workplace { root, leave: Box::new(move || Ok(remove(&git, &path)?)) }))
    }

    /// Makes the worktree of a branch, unless it stands there with all its files.
    fn stand(&self, branch: &str, path: &Path) -> Result<(), TreeError> {
        match gitdir::named(path).filter(|found| found.root == path) {
            Some(found) if is_cut_off(&found) => {
                // Locked as long as git makes it, which a kill leaves behind as well.
                let remove = Call::new("worktree").with(&["remove", "--force", "--force"]);
                self.git.line(&remove.path(path.to_string_lossy()))?;
                self.add(branch, path)
            }
            Some(_) => Ok(()),
            // Where something else stands, git refuses: in it, every call would be about the repository around it.
            None => self.add(branch, path),
        }
    }

    fn add(&self, branch: &str, path: &Path) -> Result<(), TreeError> {
        // A branch that exists is not an option of git, and no other name of a commit. Its short name would be another one
        // where a tag has it too.
        let known = Call::new("for-each-ref").with(&["--format=%(refname:lstrip=2)"]);
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

/// Tells whether a worktree was added and its files were never written whole: `reset` leaves an index, and the place where
/// it came from, when it has written them.
fn is_cut_off(found: &GitDirectory) -> bool {
    ["index", "ORIG_HEAD"].iter().all(|name| !found.own.join(name).exists())
}

/// Removes a worktree. Git refuses where work would be lost.
fn remove(git: &Git, path: &Path) -> Result<(), TreeError> {
    let remove = Call::new("worktree").with(&["remove"]).path(path.to_string_lossy());
    let removed = git.line(&remove).map(drop);
    removed.map_err(|why| TreeError::unfit(format!("the worktree {} stays: {why}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_worktree_whose_files_were_not_all_written_is_made_anew() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let path = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin".to_owned();
        let env = BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), "/nonexistent".to_owned())]);
        let git = crate::git::call::AUTHOR
            .iter()
            .fold(Git::new(&root, env), |git, (name, value)| git.with(name, value));
        git.line(&Call::new("init").with(&["--quiet"])).unwrap();
        fs_err::write(root.join("file"), "1").unwrap();
        git.line(&Call::new("add").path("file")).unwrap();
        git.line(&Call::new("commit").with(&["--quiet", "-m", "one"])).unwrap();
        git.line(&Call::new("branch").path("topic")).unwrap();
        git.line(&Call::new("tag").path("topic")).unwrap();
        let trees = root.join(".loops/.worktrees");
        let branches = Branches { root: root.clone(), trees: trees.clone(), git };
        let path = trees.join("sub");
        branches.stand("topic", &path).unwrap();
        let on = branches.git.of(&path).line(&Call::new("symbolic-ref").revision("HEAD")).unwrap();
        assert_eq!(on, "refs/heads/topic", "although there is a tag of that name");
        // What is there stays, whatever becomes of the index.
        fs_err::write(path.join("file"), "2").unwrap();
        fs_err::remove_file(root.join(".git/worktrees/sub/index")).unwrap();
        branches.stand("topic", &path).unwrap();
        assert_eq!(fs_err::read_to_string(path.join("file")).unwrap(), "2");
        // As a kill leaves it that came while files were written.
        fs_err::remove_file(root.join(".git/worktrees/sub/ORIG_HEAD")).unwrap();
        fs_err::write(root.join(".git/worktrees/sub/index.lock"), "").unwrap();
        fs_err::remove_file(path.join("file")).unwrap();
        branches.stand("topic", &path).unwrap();
        assert_eq!(fs_err::read_to_string(path.join("file")).unwrap(), "1");
        // As a kill leaves it that came before there was a worktree.
        let other = trees.join("other");
        fs_err::create_dir_all(other.join("below")).unwrap();
        assert!(branches.stand("topic", &other).is_err());
    }
}
