//! Tree snapshots of runs, after the fact: which there are, a worktree that stands where a step stood, what each step
//! changed, and their end with the history of the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::base::object::ObjectId;
use crate::base::text::head;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::options::RunOptions;
use crate::engine::changes::TreeIds;
use crate::engine::event::Llm;
use crate::files::transient;
use crate::git::call::{AUTHOR, Call, alternate};
use crate::git::error::TreeError;
use crate::git::runner::Git;
use crate::journal::files::RunFiles;
use crate::report::detail::StepDiff;
use crate::report::numbers::StepNumber;
use crate::repository;
use crate::repository::worktree::{fill, make_directory, parent_of};
use crate::run::tree_snapshots::{Moment, refs_of};

/// Refuses a run whose tree is to be kept where it cannot be.
pub(crate) fn check(options: &RunOptions, root: &Path, session: &Session<'_>) -> Result<(), Error> {
    if options.snapshots != Some(true) {
        return Ok(());
    }
    let git = repository::at(root, session);
    git.line(&Call::new("rev-parse").with(&["--show-toplevel"])).map_err(|why| {
        Error::refused(format!("`--snapshots` needs a git repository: {why}"))
            .with_hint("make one with `git init` and a first commit, or run without `--snapshots`")
    })?;
    git.line(&repository::head()).map(drop).map_err(|_| {
        Error::refused("a tree snapshot stands on the last commit, and there is none yet")
            .with_hint("commit first, or run without `--snapshots`")
    })
}

/// Decides whether the tree is kept before each step of a new run: as the command line says, or else where agents run in
/// CI.
pub(crate) fn are_kept(options: &RunOptions, llm: Llm, root: &Path, session: &Session<'_>) -> bool {
    options.snapshots.unwrap_or_else(|| {
        // Without a commit they are just not kept: only what was asked for is refused, by `check`.
        let by_default = options.audience.is_ci() && llm == Llm::On;
        by_default && repository::at(root, session).line(&repository::head()).is_ok()
    })
}

/// Decides the same for a run that goes on: it keeps what it has kept before.
pub(crate) fn are_kept_again(
    options: &RunOptions,
    llm: Llm,
    root: &Path,
    files: &RunFiles,
    session: &Session<'_>,
) -> bool {
    let git = repository::at(root, session);
    let before = || all(&git, files.instance()).is_ok_and(|found| !found.is_empty());
    are_kept(options, llm, root, session) || options.snapshots.is_none() && before()
}

/// Returns the snapshots of a run.
pub(crate) fn all(git: &Git, instance: &str) -> Result<BTreeMap<Moment, ObjectId>, TreeError> {
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
pub(crate) fn refer(git: &Git, instance: &str, found: &BTreeMap<Moment, ObjectId>) -> Result<(), TreeError> {
    if found.is_empty() {
        return Ok(());
    }
    let refs = refs_of(instance);
    let lines = found.iter().map(|(moment, id)| format!("update {refs}{moment} {id}\n"));
    let lines = lines.collect::<Vec<_>>().concat();
    // One transaction of git: either all of them can be found, or none.
    git.bytes(&Call::new("update-ref").with(&["--stdin"]), lines.as_bytes())?;
    Ok(())
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

/// Makes the worktree of a snapshot, or takes one that is unchanged. One that was changed stays as it is, and
/// another one is made.
pub(crate) fn worktree(
    git: &Git,
    commit: &ObjectId,
    files: &RunFiles,
    moment: &Moment,
) -> Result<SnapshotWorktree, TreeError> {
    let trees = files
        .worktree()
        .parent()
        .map(Path::to_owned)
        .ok_or_else(|| TreeError::unfit("the run has no directory"))?;
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
    Err(TreeError::unfit(format!(
        "there are {MOST_WORKTREES} worktrees of this step, and somebody changed each of them"
    )))
}

impl SnapshotWorktree {
    fn make(&self, git: &Git) -> Result<(), TreeError> {
        let parent = parent_of(git, &self.commit)?;
        // Without the files of the parent, since `fill` writes those of the snapshot at once.
        let add = Call::new("worktree").with(&["add", "--quiet", "--no-checkout", "--detach"]);
        git.line(&add.path(self.path.to_string_lossy()).path(parent.as_str()))?;
        let filled = fill(&self.git, &self.commit, &parent);
        if filled.is_err() {
            // Nobody has seen it yet.
            let remove = Call::new("worktree").with(&["remove", "--force"]);
            let _stays = git.line(&remove.path(self.path.to_string_lossy()));
        }
        filled
    }

    /// Tells whether it is as it was made.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.compared().unwrap_or(false)
    }

    fn compared(&self) -> Result<bool, TreeError> {
        let head = self.git.id(&repository::head())?;
        let top = self.git.line(&Call::new("rev-parse").with(&["--show-toplevel"]))?;
        // If its `.git` was removed, git finds the repository around it, and would compare with that one.
        let is_here = Path::new(&top).canonicalize().ok() == self.path.canonicalize().ok();
        if !is_here || head != parent_of(&self.git, &self.commit)? {
            return Ok(false);
        }
        let staged = Call::new("diff-index").with(&["--cached", "--quiet"]).id(&head);
        if !self.git.judged(&staged)?.is_yes {
            return Ok(false);
        }
        let place = transient::directory("ll-index-")?;
        // An index without times: every file is read.
        let own = self.git.with("GIT_INDEX_FILE", place.path().join("index"));
        own.line(&Call::new("read-tree").id(&self.commit))?;
        let _differs = own.line(&Call::new("update-index").with(&["-q", "--refresh"]));
        // Ignored files as well: `close` would remove whatever somebody has put there.
        let others = own.line(&Call::new("ls-files").with(&["--others", "-z"]))?;
        Ok(others.is_empty() && own.judged(&Call::new("diff-files").with(&["--quiet"]))?.is_yes)
    }

    /// Removes it, if it is unchanged.
    pub(crate) fn close(&self, git: &Git) -> bool {
        let remove = Call::new("worktree").with(&["remove", "--force"]);
        // By force, because git takes the files of the snapshot for uncommitted work.
        self.is_unchanged() && git.line(&remove.path(self.path.to_string_lossy())).is_ok()
    }
}

/// The most bytes of one patch, and of all of them together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiffLimits {
    /// Of one.
    pub(crate) each: usize,
    /// Of all.
    pub(crate) all: usize,
}

/// Returns what each step changed, in the order of the steps, for those that changed something and have a snapshot
/// before and after them. Where there is no room for all of them, those of the last steps are here.
pub(crate) fn diffs(
    git: &Git,
    found: &BTreeMap<Moment, ObjectId>,
    limits: DiffLimits,
) -> Result<Vec<StepDiff>, TreeError> {
    let tree = |commit: &ObjectId| {
        git.id(&Call::new("rev-parse").with(&["--verify", "--quiet"]).ids("", commit, "^{tree}"))
    };
    let mut steps: Vec<_> = found
        .iter()
        .filter_map(|(moment, id)| match moment {
            Moment::Before(step) => Some((Some(step), id)),
            Moment::End => None,
        })
        .collect();
    steps.sort_by_key(|(step, _)| *step);
    steps.extend(found.get(&Moment::End).map(|end| (None, end)));
    let mut left = limits.all;
    let mut diffs = Vec::new();
    for at in (1..steps.len()).rev() {
        let [(Some(step), before), (next, after)] = [steps[at - 1], steps[at]] else { continue };
        // A step that ran a loop changed what the steps of that loop did.
        let is_around = next.is_some_and(|next| next.depth() > step.depth());
        if is_around || before == after || is_elsewhere(&steps, at - 1) {
            continue;
        }
        let (before, after) = (tree(before)?, tree(after)?);
        let call = Call::new("diff-tree").with(&["-r", "-p", "--find-renames", "--no-color", "--unified=3"]);
        let printed = git.bytes(&call.id(&before).id(&after), &[])?;
        if printed.is_empty() {
            continue;
        }
        let text = String::from_utf8_lossy(&printed);
        let patch = head(&text, limits.each.min(left)).to_owned();
        left -= patch.len();
        diffs.push(StepDiff { step: step.clone(), cut: (text.len() - patch.len()) as u64, patch });
    }
    diffs.reverse();
    Ok(diffs)
}

/// Tells whether a step is of a loop that worked in a tree of its own: its first step then has another tree than the
/// step that ran the loop, between which nothing was done.
fn is_elsewhere(steps: &[(Option<&StepNumber>, &ObjectId)], at: usize) -> bool {
    let Some((Some(step), _)) = steps.get(at) else { return false };
    let path: Vec<u32> = step.path().collect();
    (1..path.len()).any(|length| {
        let of = |wanted: Vec<u32>| {
            let wanted = StepNumber::of(wanted)?;
            steps.iter().find(|(step, _)| *step == Some(&wanted)).map(|(_, id)| *id)
        };
        let around = path[..length].to_vec();
        let first = [&around[..], &[1]].concat();
        matches!((of(around), of(first)), (Some(around), Some(first)) if around != first)
    })
}

impl Session<'_> {
    /// Returns what each step of a run changed, as far as its tree snapshots tell; nothing where it has none.
    pub(crate) fn step_diffs(&self, files: &RunFiles, limits: DiffLimits) -> Vec<StepDiff> {
        let git = repository::at(files.loops().parent().unwrap_or(files.loops()), self);
        let found = all(&git, files.instance()).ok();
        found.and_then(|found| diffs(&git, &found, limits).ok()).into_iter().flatten().collect()
    }

    /// Removes the tree snapshots of a run that is forgotten.
    ///
    /// # Errors
    /// Git cannot remove them.
    pub(crate) fn forget_snapshots(&self, files: &RunFiles) -> Result<(), Error> {
        let git = repository::at(files.loops().parent().unwrap_or(files.loops()), self);
        forget(files, &git).map_err(|why| {
            Error::refused(format!("cannot forget the snapshots of {}: {why}", files.instance()))
        })
    }
}

/// Removes the tree snapshots of a run.
pub(crate) fn forget(files: &RunFiles, git: &Git) -> Result<(), TreeError> {
    let list = Call::new("for-each-ref").with(&["--format=delete %(refname) %(objectname)"]);
    // Where there is no repository, there are none.
    let lines = git.bytes(&list.named(&refs_of(files.instance()), ""), &[]).unwrap_or_default();
    if !lines.is_empty() {
        git.bytes(&Call::new("update-ref").with(&["--stdin"]), &lines)?;
    }
    Ok(())
}

/// Keeps the tree on which a run began that has snapshots, while its own objects are still there: a run that is rewound from it
/// is compared with that tree, which no commit may have.
pub(crate) fn keep_start(git: &Git, files: &RunFiles, start: &TreeIds) -> Result<(), TreeError> {
    let (tree, instance) = (&start.tree, files.instance());
    let committed =
        git.id(&Call::new("rev-parse").with(&["--verify", "--quiet"]).ids("", &start.commit, "^{tree}"))?;
    if committed == *tree {
        return Ok(());
    }
    // New objects go into the repository, and those of the run are read beside it.
    let own = AUTHOR.iter().fold(git.clone(), |git, (name, value)| git.with(name, value));
    let own = own.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&files.objects().to_string_lossy()));
    let commit = Call::new("commit-tree").option_id("-p", &start.commit);
    let commit = own.id(&commit.with(&["-m", "The working tree on which a run began"]).id(tree))?;
    let list = Call::new("rev-list").with(&["--objects", "--no-object-names", "--stdin"]);
    let wanted = own.bytes(&list, format!("{commit}\n^{}\n", start.commit).as_bytes())?;
    let pack = own.bytes(&Call::new("pack-objects").with(&["--stdout", "-q"]), &wanted)?;
    git.bytes(&Call::new("unpack-objects").with(&["-q"]), &pack)?;
    let line = format!("update {}start {commit}\n", refs_of(instance));
    git.bytes(&Call::new("update-ref").with(&["--stdin"]), line.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn plain(directory: &Path, words: &[&str]) -> String {
        let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
        // Equal snapshots are one commit, whenever they were made.
        let at = [("GIT_AUTHOR_DATE", "@0 +0000"), ("GIT_COMMITTER_DATE", "@0 +0000")];
        let ended =
            Command::new("git").args(who).args(words).current_dir(directory).envs(at).output().unwrap();
        assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8_lossy(&ended.stdout).trim().to_owned()
    }

    /// Makes snapshots whose trees hold these texts, on one commit.
    fn made(place: &Path, texts: &[(&str, &str)]) -> (Git, BTreeMap<Moment, ObjectId>) {
        plain(place, &["init", "-q"]);
        plain(place, &["commit", "-q", "--allow-empty", "-m", "first"]);
        let commit = |text: &str| {
            fs_err::write(place.join("file"), text).unwrap();
            plain(place, &["add", "-A"]);
            let tree = plain(place, &["write-tree"]);
            ObjectId::parse(&plain(place, &["commit-tree", "-p", "HEAD", "-m", text, &tree])).unwrap()
        };
        let found = texts.iter().map(|(name, text)| (Moment::of(name).unwrap(), commit(text))).collect();
        let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
        (Git::new(place, BTreeMap::from([("PATH".to_owned(), path)])), found)
    }

    fn told(texts: &[(&str, &str)], limits: DiffLimits) -> Vec<(String, String, u64)> {
        let place = tempfile::tempdir().unwrap();
        let (git, found) = made(place.path(), texts);
        let diffs = diffs(&git, &found, limits).unwrap();
        let lines = |patch: &str| {
            let changed = patch.lines().filter(|line| line.starts_with(['+', '-']) && line.len() == 2);
            changed.collect::<Vec<_>>().join("")
        };
        diffs.iter().map(|diff| (diff.step.to_string(), lines(&diff.patch), diff.cut)).collect()
    }

    const PLENTY: DiffLimits = DiffLimits { each: 10_000, all: 100_000 };

    #[test]
    fn each_step_has_what_it_changed() {
        let texts = [("1", "a\n"), ("2", "b\n"), ("9", "b\n"), ("10", "b\n"), ("11", "c\n"), ("end", "d\n")];
        let expected = [("1", "-a+b"), ("10", "-b+c"), ("11", "-c+d")];
        let expected = expected.map(|(step, lines)| (step.to_owned(), lines.to_owned(), 0));
        assert_eq!(told(&texts, PLENTY), expected);
    }

    #[test]
    fn the_steps_of_a_sub_loop_have_theirs_unless_it_worked_elsewhere() {
        let texts = [("1", "a\n"), ("1.1", "a\n"), ("1.2", "b\n"), ("2", "c\n"), ("end", "c\n")];
        let expected = [("1.1", "-a+b"), ("1.2", "-b+c")];
        let expected = expected.map(|(step, lines)| (step.to_owned(), lines.to_owned(), 0));
        assert_eq!(told(&texts, PLENTY), expected);
        let texts = [("1", "a\n"), ("1.1", "x\n"), ("1.2", "y\n"), ("2", "a\n"), ("end", "c\n")];
        assert_eq!(told(&texts, PLENTY), [("2".to_owned(), "-a+c".to_owned(), 0)]);
    }

    #[test]
    fn what_is_too_long_is_cut_and_the_last_steps_are_kept() {
        let long = format!("{}\n", "x".repeat(5000));
        let texts = [("1", "a\n"), ("2", long.as_str()), ("3", "b\n"), ("end", "c\n")];
        let found = told(&texts, DiffLimits { each: 1000, all: 1100 });
        let steps: Vec<_> = found.iter().map(|(step, _, cut)| (step.as_str(), *cut > 0)).collect();
        assert_eq!(steps, [("1", true), ("2", true), ("3", false)]);
        assert!(found[0].2 > 5000, "nothing of it is here, and that is said");
    }
}
