//! Tree snapshots of runs, after the fact: which there are, a worktree that stands where a step stood, what each step
//! changed, and their end with the history of the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::base::object::ObjectId;
use crate::engine::event::Llm;
use crate::journal::files::RunFiles;
use crate::process::git::{Call, Git};
use crate::report::numbers::StepNumber;
use crate::run::snapshots::{Moment, refs_of};

use super::context::Session;
use super::error::Error;
use super::git;
use super::options::RunOptions;
use super::worktree::make_directory;

/// Refuses a run whose tree is to be kept where it cannot be.
pub(crate) fn check(options: &RunOptions, root: &Path, session: &Session<'_>) -> Result<(), Error> {
    if options.snapshots != Some(true) {
        return Ok(());
    }
    let git = git::at(root, session);
    git.line(&Call::new("rev-parse").with(&["--show-toplevel"])).map_err(|why| {
        Error::refused(format!("`--snapshots` needs a git repository: {why}"))
            .with_hint("make one with `git init` and a first commit, or run without `--snapshots`")
    })?;
    git.line(&git::head()).map(drop).map_err(|_| {
        Error::refused("a tree snapshot stands on the last commit, and there is none yet")
            .with_hint("commit first, or run without `--snapshots`")
    })
}

/// Decides whether the tree is kept before each step of a new run: as the command line says, or else where agents run in
/// CI.
pub(crate) fn are_kept(options: &RunOptions, llm: Llm, root: &Path, session: &Session<'_>) -> bool {
    options.snapshots.unwrap_or_else(|| {
        let by_default = options.audience.is_ci() && llm == Llm::On;
        by_default && git::at(root, session).line(&git::head()).is_ok()
    })
}

/// Decides the same for a run that goes on: it keeps what it has kept before.
pub(crate) fn are_kept_again(
    options: &RunOptions,
    llm: Llm,
    (root, files): (&Path, &RunFiles),
    session: &Session<'_>,
) -> bool {
    let git = git::at(root, session);
    let before = || all(&git, files.instance()).is_ok_and(|found| !found.is_empty());
    are_kept(options, llm, root, session) || options.snapshots.is_none() && before()
}

/// Returns the snapshots of a run.
pub(crate) fn all(git: &Git, instance: &str) -> Result<BTreeMap<Moment, ObjectId>, String> {
    let refs = refs_of(instance);
    let list = Call::new("for-each-ref").with(&["--format=%(objectname) %(refname)"]);
    let printed = git.line(&list.named(&refs, ""))?;
    Ok(printed.lines().filter_map(|line| of_line(line, &refs)).collect())
}

fn of_line(line: &str, refs: &str) -> Option<(Moment, ObjectId)> {
    let (id, name) = line.split_once(' ')?;
    Some((Moment::of(name.strip_prefix(refs)?)?, ObjectId::parse(id).ok()?))
}

/// Lets the snapshots of a run be found.
pub(crate) fn refer(git: &Git, instance: &str, found: &BTreeMap<Moment, ObjectId>) -> Result<(), String> {
    if found.is_empty() {
        return Ok(());
    }
    let refs = refs_of(instance);
    let lines = found.iter().map(|(moment, id)| format!("update {refs}{moment} {id}\n"));
    let lines = lines.collect::<Vec<_>>().concat();
    git.bytes(&Call::new("update-ref").with(&["--stdin"]), lines.as_bytes()).map(drop)
}

/// Returns the snapshot before a step, or the steps that have one and are nearest to it.
pub(crate) fn before(
    found: &BTreeMap<Moment, ObjectId>,
    step: &StepNumber,
) -> Result<ObjectId, Vec<StepNumber>> {
    if let Some(id) = found.get(&Moment::Before(step.clone())) {
        return Ok(id.clone());
    }
    let steps = || {
        found.keys().filter_map(|moment| match moment {
            Moment::Before(step) => Some(step),
            Moment::End => None,
        })
    };
    let earlier = steps().filter(|other| *other < step).max();
    let later = steps().filter(|other| *other > step).min();
    Err(earlier.into_iter().chain(later).cloned().collect())
}

/// A worktree that stands where a step stood: on the commit of that moment, with everything else uncommitted.
#[derive(Debug)]
pub(crate) struct SnapshotWorktree {
    /// Its top directory.
    pub(crate) path: PathBuf,
    git: Git,
    commit: ObjectId,
}

/// How many worktrees of one step are looked at before the next one is a mistake.
const MOST_WORKTREES: u32 = 1000;

/// Makes the worktree of a snapshot, or takes one that nobody has changed. One that somebody changed stays as it is, and
/// another one is made.
pub(crate) fn worktree(
    git: &Git,
    commit: &ObjectId,
    (files, moment): (&RunFiles, &Moment),
) -> Result<SnapshotWorktree, String> {
    let trees = files.worktree().parent().map(Path::to_owned).ok_or("the run has no directory")?;
    make_directory(&trees)?;
    for number in 1..=MOST_WORKTREES {
        let more = if number > 1 { format!("-{number}") } else { String::new() };
        let path = trees.join(format!("{}-at-{moment}{more}", files.instance()));
        let there = SnapshotWorktree { git: git.of(&path), path: path.clone(), commit: commit.clone() };
        if path.symlink_metadata().is_err() {
            there.make(git)?;
            return Ok(there);
        }
        if there.is_unchanged() {
            return Ok(there);
        }
    }
    Err(format!("there are {MOST_WORKTREES} worktrees of this step, and somebody changed each of them"))
}

impl SnapshotWorktree {
    fn make(&self, git: &Git) -> Result<(), String> {
        let parent =
            git.id(&Call::new("rev-parse").with(&["--verify", "--quiet"]).ids("", &self.commit, "^"));
        let parent = parent.map_err(|_| "the snapshot does not stand on a commit".to_owned())?;
        let add = Call::new("worktree").with(&["add", "--quiet", "--no-checkout", "--detach"]);
        git.line(&add.path(self.path.to_string_lossy()).path(parent.as_str()))?;
        let filled = self.fill(&parent);
        if filled.is_err() {
            // Nobody has seen it yet.
            let remove = Call::new("worktree").with(&["remove", "--force"]);
            let _stays = git.line(&remove.path(self.path.to_string_lossy()));
        }
        filled
    }

    fn fill(&self, parent: &ObjectId) -> Result<(), String> {
        let read = Call::new("read-tree");
        self.git.line(&read.clone().with(&["--reset", "-u"]).id(&self.commit))?;
        self.git.line(&read.with(&["--reset"]).id(parent))?;
        // Its exit code only tells that some file differs from the index.
        let _differs = self.git.line(&Call::new("update-index").with(&["-q", "--refresh"]));
        Ok(())
    }

    /// Tells whether it is as it was made.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.compared().unwrap_or(false)
    }

    fn compared(&self) -> Result<bool, String> {
        let head = self.git.id(&git::head())?;
        let parent = Call::new("rev-parse").with(&["--verify", "--quiet"]).ids("", &self.commit, "^");
        let top = self.git.line(&Call::new("rev-parse").with(&["--show-toplevel"]))?;
        let is_here = Path::new(&top).canonicalize().ok() == self.path.canonicalize().ok();
        if !is_here || head != self.git.id(&parent)? {
            return Ok(false);
        }
        let staged = Call::new("diff-index").with(&["--cached", "--quiet"]).id(&head);
        if !self.git.judged(&staged)?.is_yes {
            return Ok(false);
        }
        let place = tempfile::TempDir::with_prefix("ll-index-").map_err(|error| error.to_string())?;
        // An index without times: every file is read.
        let own = self.git.with("GIT_INDEX_FILE", place.path().join("index"));
        own.line(&Call::new("read-tree").id(&self.commit))?;
        let _differs = own.line(&Call::new("update-index").with(&["-q", "--refresh"]));
        let others = own.line(&Call::new("ls-files").with(&["--others", "-z"]))?;
        Ok(others.is_empty() && own.judged(&Call::new("diff-files").with(&["--quiet"]))?.is_yes)
    }

    /// Removes it, if nobody has changed it.
    pub(crate) fn close(&self, git: &Git) -> bool {
        let remove = Call::new("worktree").with(&["remove", "--force"]);
        self.is_unchanged() && git.line(&remove.path(self.path.to_string_lossy())).is_ok()
    }
}

impl Session<'_> {
    /// Removes the tree snapshots of a run that is forgotten.
    ///
    /// # Errors
    /// Git cannot remove them.
    pub(crate) fn forget_snapshots(&self, files: &RunFiles) -> Result<(), Error> {
        forget(files, self).map_err(|why| {
            Error::refused(format!("cannot forget the snapshots of {}: {why}", files.instance()))
        })
    }
}

fn forget(files: &RunFiles, session: &Session<'_>) -> Result<(), String> {
    let git = git::at(files.loops().parent().unwrap_or(files.loops()), session);
    // Where there is no repository, there are none.
    let found = all(&git, files.instance()).unwrap_or_default();
    if found.is_empty() {
        return Ok(());
    }
    let refs = refs_of(files.instance());
    let lines = found.iter().map(|(moment, id)| format!("delete {refs}{moment} {id}\n"));
    let lines = lines.collect::<Vec<_>>().concat();
    git.bytes(&Call::new("update-ref").with(&["--stdin"]), lines.as_bytes()).map(drop)
}
