//! `plan --changed-since`: what changed in the whole repository, looked at once for all items.

use std::collections::BTreeSet;

use crate::base::own::is_own;
use crate::base::territory::ScopePath;
use crate::context::error::Error;
use crate::git::call::Call;
use crate::git::error::GitError;
use crate::git::tree_list;
use crate::git::unwatched::UnwatchedPaths;
use crate::repository::changed;
use crate::session::start::changed_since::{Base, LoopRepository, committed_since, uncommitted};

/// What changed since a commit.
pub(super) struct ChangesSinceCommit {
    top: ScopePath,
    changed: BTreeSet<ScopePath>,
    /// What git knows of, now or at the commit.
    known: BTreeSet<ScopePath>,
    unwatched: UnwatchedPaths,
    /// The commit, as people name it.
    pub(super) shown: String,
}

/// Whether an item has to run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SinceCommit {
    /// Something changed that it looks at.
    Changed,
    /// It is certain that nothing did.
    Quiet,
    /// It is unknown, for this reason.
    Unknown(String),
}

impl ChangesSinceCommit {
    /// Looks at what changed, committed or not.
    pub(super) fn look(repository: &LoopRepository, base: Base) -> Result<Self, Error> {
        let failed = |why: GitError| {
            Error::refused(format!("cannot find out what changed since `{}`: {why}", base.shown))
        };
        let LoopRepository { git, top, .. } = repository;
        let git = git.at(std::path::Path::new(&top.to_string()));
        let ask = |call: Call| git.line(&call).map_err(failed);
        let at = |file: &str| top.join(file);
        let files = |printed: &str| -> Vec<ScopePath> {
            printed.split('\0').filter(|file| !file.is_empty() && !is_own(file.as_bytes())).map(at).collect()
        };
        let mut all: BTreeSet<ScopePath> = files(&ask(committed_since(&base.commit))?).into_iter().collect();
        all.extend(changed(&ask(uncommitted())?).map(at));
        let mut known: BTreeSet<ScopePath> =
            files(&ask(Call::new("ls-files").with(&["-z"]))?).into_iter().collect();
        // Files that are gone since are known as well: all of a scope may have been deleted.
        known.extend(files(&ask(tree_list::names(&base.commit))?));
        let unwatched = UnwatchedPaths::look(&git, top);
        Ok(Self { top: top.clone(), changed: all, known, unwatched, shown: base.shown })
    }

    /// Tells whether anything changed at or below the files of a loop and its scope. Where git tracks nothing, or does not
    /// look, it is unknown.
    pub(super) fn look_at(&self, files: &[ScopePath], scope: &[ScopePath]) -> SinceCommit {
        let ways = self.unwatched.ways_to(scope);
        // A change that is seen needs no certainty about the rest.
        if scope.iter().chain(files).chain(ways).any(|path| below(&self.changed, path)) {
            return SinceCommit::Changed;
        }
        let is_outside = |path: &&ScopePath| !self.top.holds(path);
        if let Some(path) = scope.iter().chain(files).find(is_outside) {
            return SinceCommit::Unknown(format!(
                "what changed in {path} is unknown, because it is outside of the repository"
            ));
        }
        let is_unseen = |path: &&ScopePath| **path != self.top && !below(&self.known, path);
        if let Some(path) = scope.iter().find(is_unseen) {
            let path = path.seen_from(&self.top);
            return SinceCommit::Unknown(format!(
                "what changed in `{path}` of the scope is unknown: git tracks nothing there"
            ));
        }
        self.unwatched.why(scope).map_or(SinceCommit::Quiet, SinceCommit::Unknown)
    }
}

/// Tells whether one of the files is this path or lies below it.
fn below(files: &BTreeSet<ScopePath>, path: &ScopePath) -> bool {
    // A path sorts right before what lies below it.
    files.range(path..).next().is_some_and(|file| path.holds(file))
}
