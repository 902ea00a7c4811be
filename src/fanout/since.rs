//! `plan --changed-since`: what changed in the whole repository, looked at once for all items.

use std::collections::BTreeSet;

use crate::base::object::ObjectId;
use crate::base::own::is_own;
use crate::base::territory::ScopePath;
use crate::git::call::Call;
use crate::session::error::Error;
use crate::session::git::changed;
use crate::session::start::changes::{Base, LoopRepository};

/// What changed since a commit.
pub(super) struct ChangesSinceCommit {
    top: ScopePath,
    changed: BTreeSet<ScopePath>,
    /// What git knows of, now or at the commit.
    known: BTreeSet<ScopePath>,
    /// The commit, as people name it.
    pub(super) shown: String,
}

impl ChangesSinceCommit {
    /// Looks at what changed, committed or not.
    pub(super) fn look(repository: &LoopRepository, base: Base) -> Result<Self, Error> {
        let failed = |why: String| {
            Error::refused(format!("cannot find out what changed since `{}`: {why}", base.shown))
        };
        let LoopRepository { git, top, .. } = repository;
        let git = git.at(std::path::Path::new(&top.to_string()));
        let ask = |call: Call| git.line(&call).map_err(failed);
        let at = |file: &str| top.join(file);
        let files = |printed: &str| -> Vec<ScopePath> {
            printed.split('\0').filter(|file| !file.is_empty() && !is_own(file.as_bytes())).map(at).collect()
        };
        let committed = Call::new("diff").with(&["--name-only", "-z", "--no-renames"]);
        let status =
            Call::new("status").with(&["--porcelain", "-z", "--no-renames", "--untracked-files=all"]);
        let mut all: BTreeSet<ScopePath> =
            files(&ask(committed.ids("", &base.commit, "...HEAD"))?).into_iter().collect();
        all.extend(changed(&ask(status)?).map(at));
        let mut known: BTreeSet<ScopePath> =
            files(&ask(Call::new("ls-files").with(&["-z"]))?).into_iter().collect();
        known.extend(files(&ask(tree(&base.commit))?));
        Ok(Self { top: top.clone(), changed: all, known, shown: base.shown })
    }

    /// Tells whether it is certain that nothing at or below any of these paths changed. It is not where git tracks
    /// nothing, or does not look.
    pub(super) fn is_quiet(&self, paths: &[ScopePath], scope: &[ScopePath]) -> bool {
        let is_quiet = |path: &ScopePath| self.top.holds(path) && !below(&self.changed, path);
        let is_seen = |path: &ScopePath| *path == self.top || below(&self.known, path);
        paths.iter().all(is_quiet) && scope.iter().all(is_seen)
    }
}

fn tree(commit: &ObjectId) -> Call {
    Call::new("ls-tree").with(&["-r", "--full-tree", "--name-only", "-z"]).id(commit)
}

/// Tells whether one of the files is this path or lies below it.
fn below(files: &BTreeSet<ScopePath>, path: &ScopePath) -> bool {
    // A path sorts right before what lies below it.
    files.range(path..).next().is_some_and(|file| path.holds(file))
}
