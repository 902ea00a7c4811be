//! Tree snapshots: the working tree as it is before each step, as commits under refs of our own, so that people can stand
//! where a step stood. The user's index, HEAD and stash stay as they are.
//!
//! The index is a copy that stays from step to step: git itself decides by its times which files it has to read again.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::area::Area;
use super::filtered;
use super::look_error::LookError;
use crate::base::object::ObjectId;
use crate::base::own::is_own;
use crate::base::text::one_line;
use crate::git::call::{AUTHOR, Call};
use crate::git::in_run::GitCalls;
use crate::git::own_index::OwnIndex;
use crate::git::repository_paths::RepositoryPaths;
use crate::git::status;
use crate::git::status::{FileStanding, StatusLine, Untracked};
use crate::report::numbers::StepNumber;

/// The longest time for one snapshot.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// The longest untracked file that is kept.
const LONGEST: u64 = 64 << 20;

/// Where the snapshots of all runs are.
pub const ALL: &str = "refs/ll-loop/snap/";

/// A moment of a run at which its working tree is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before a step.
    Before(StepNumber),
    /// When the run has ended.
    End,
}

impl Moment {
    /// Returns the moment that the last part of the name of a ref stands for.
    pub fn of(part: &str) -> Option<Self> {
        if part == "end" { Some(Self::End) } else { part.parse().ok().map(Self::Before) }
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Before(step) => step.fmt(f),
            Self::End => f.write_str("end"),
        }
    }
}

/// Returns what the refs of a run begin with.
pub fn refs_of(instance: &str) -> String {
    // Git does not allow two dots in a row in names of refs: they stand for a range of commits.
    format!("{ALL}{}/", instance.replace("..", "-"))
}

/// Keeps the working trees of one run.
pub struct TreeSnapshots {
    refs: String,
    /// The trees in which it works, by their directories: a sub-loop may have its own.
    pub(super) trees: BTreeMap<PathBuf, KeptTree>,
    /// What was said already.
    pub(super) said: BTreeSet<String>,
}

impl TreeSnapshots {
    /// Keeps the working trees of this run.
    pub fn of(instance: &str) -> Self {
        Self { refs: refs_of(instance), trees: BTreeMap::new(), said: BTreeSet::new() }
    }

    /// Returns what `git update-ref --stdin` has to read.
    pub(super) fn lines(&self, moments: &[Moment], commit: &ObjectId) -> Vec<u8> {
        let line = |moment: &Moment| format!("update {}{moment} {commit}\n", self.refs);
        moments.iter().map(line).collect::<String>().into_bytes()
    }
}

/// A working tree, and what is known of it since the last snapshot.
pub(super) struct KeptTree {
    git: GitCalls,
    known: Option<KnownTree>,
    /// Warnings about files that are not in a snapshot.
    pub(super) left_out: Vec<String>,
}

struct KnownTree {
    top: PathBuf,
    /// The repository's index, and how it was when it was copied.
    index: PathBuf,
    identity: IndexIdentity,
    own: OwnIndex,
    /// Whether the last snapshot was made with this very copy.
    is_used: bool,
    last: Option<LastSnapshot>,
}

/// The last snapshot. Where nothing changed, it is the next one as well.
struct LastSnapshot {
    head: ObjectId,
    tree: ObjectId,
    commit: ObjectId,
}

type IndexIdentity = Option<(u64, u64, i64, i64)>;

fn identity(index: &Path) -> IndexIdentity {
    let metadata = index.metadata().ok()?;
    Some((metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

impl KeptTree {
    pub(super) fn new(git: GitCalls) -> Self {
        Self { git, known: None, left_out: Vec::new() }
    }

    /// Makes a commit of the working tree as it is.
    pub(super) async fn take(&mut self, root: &Path, area: &Area) -> Result<ObjectId, LookError> {
        self.git.again();
        let mut known = self.known(root).await?;
        let taken = self.commit(&mut known, area).await;
        // What an attempt that failed left in the index is not known.
        // So the next one begins with a new copy.
        self.known = taken.is_ok().then_some(known);
        taken
    }

    /// Returns what is known of the tree. The index is copied anew where the repository's is another one: what git
    /// tracks may be something else now.
    async fn known(&mut self, root: &Path) -> Result<KnownTree, LookError> {
        if let Some(known) = self.known.take() {
            // A changed index may track other files.
            if known.identity == identity(&known.index) {
                return Ok(known);
            }
            return Self::copied(known.top, known.index, known.last);
        }
        let said = self.git.run(root, &RepositoryPaths::call(&[])).await?;
        let (RepositoryPaths { top, index, .. }, []) = RepositoryPaths::read(&said)?;
        let top = top
            .canonicalize()
            .map_err(|error| LookError::unfit(format!("cannot find {}: {error}", top.display())))?;
        Self::copied(top, index, None)
    }

    fn copied(top: PathBuf, index: PathBuf, last: Option<LastSnapshot>) -> Result<KnownTree, LookError> {
        let identity = identity(&index);
        // With a fixed author and time, the same tree on the same commit is the same object.
        let own = OwnIndex::of_repository(&index)?.with(AUTHOR);
        Ok(KnownTree { top, index, identity, own, is_used: false, last })
    }

    async fn commit(&mut self, known: &mut KnownTree, area: &Area) -> Result<ObjectId, LookError> {
        let KnownTree { top, own, is_used, last, .. } = known;
        let was_used = std::mem::replace(is_used, true);
        let mut git = self.git.look(top, Some(own)).await?;
        let printed = git.run_in(own, top, &status::call(Untracked::Listed), None).await?;
        let (head, mut lines) = status::read(&printed);
        let head = head.ok_or_else(|| LookError::unfit("there is no commit yet"))?;
        let head = ObjectId::parse(&head)?;
        // Files of a run change with every step.
        lines.retain(|line| !is_own(line.path) && !area.is_own(&top.join(OsStr::from_bytes(line.path))));
        let untold = filtered::settle(&mut git, top, &mut lines).await?;
        self.left_out.extend(untold.map(|untold| format!("in tree snapshots, {}", untold.sentence)));
        let mut changed = Vec::new();
        for line in lines {
            if self.is_to_be_read(&line, top) {
                changed.extend([line.path, b"\0"].concat());
            }
        }
        // Where nothing changed since, the commit is there already, and no process is started.
        if let Some(last) = last.as_ref().filter(|last| was_used && changed.is_empty() && last.head == head) {
            return Ok(last.commit.clone());
        }
        if !changed.is_empty() {
            // A file may have become a directory, or the other way round: without `--replace` git
            // refuses both.
            let add = Call::new("update-index").with(&["-z", "--add", "--remove", "--replace", "--stdin"]);
            git.run_in(own, top, &add, Some(changed)).await?;
        }
        let tree = git.id_in(own, top, &Call::new("write-tree")).await?;
        if let Some(last) = last.as_ref().filter(|last| last.tree == tree && last.head == head) {
            return Ok(last.commit.clone());
        }
        let commit = Call::new("commit-tree").option_id("-p", &head);
        let commit = commit.with(&["-m", "The working tree before a step of a run"]).id(&tree);
        let commit = git.id_in(own, top, &commit).await?;
        *last = Some(LastSnapshot { head, tree, commit: commit.clone() });
        Ok(commit)
    }

    /// Tells whether a file has to be read for the tree to be known.
    fn is_to_be_read(&mut self, line: &StatusLine<'_>, top: &Path) -> bool {
        match line.standing {
            FileStanding::Tracked { unstaged, .. } => unstaged,
            FileStanding::Submodule { .. } | FileStanding::Unmerged => true,
            // A repository of its own is not part of this one.
            FileStanding::Untracked if line.is_repository() => false,
            FileStanding::Untracked => {
                let path = top.join(OsStr::from_bytes(line.path));
                let is_short = path.symlink_metadata().is_ok_and(|metadata| metadata.len() <= LONGEST);
                if !is_short {
                    let shown = one_line(&String::from_utf8_lossy(line.path), 200);
                    self.left_out.push(format!(
                        "tree snapshots do not hold `{shown}`, which git does not track and which has more than {} MiB",
                        LONGEST >> 20
                    ));
                }
                is_short
            }
        }
    }

    /// Changes refs.
    pub(super) async fn refer(&mut self, root: &Path, lines: Vec<u8>) -> Result<(), LookError> {
        // All refs at once, and only if all of them can be.
        let update = Call::new("update-ref").with(&["--stdin"]);
        self.git.feed(root, &update, lines).await?;
        Ok(())
    }
}
