//! What a run did to the working tree: the tree on which it began, the tree on which it ended, and what differs. A
//! success is a success of a tree, so whether it stands may depend on this.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
pub use crate::base::file_mode::FileMode;
use crate::base::object::ObjectId;
use crate::base::text::{listed_in_part, plural};
use crate::judges::found_judges::JudgesFound;
use crate::machine::OnChange;

/// A working tree at one moment, by the ids that git gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeIds {
    /// The commit that is checked out.
    pub commit: ObjectId,
    /// The tree of the files: the tracked ones, and the untracked ones of the scope.
    pub tree: ObjectId,
    /// The tree of the index; none while a merge is not finished.
    #[serde(default)]
    pub index: Option<ObjectId>,
    /// A digest of what differs from the commit and no tree can hold, such as a submodule with changes of its own; none
    /// where there is nothing like it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rest: Option<String>,
}

impl TreeIds {
    /// Tells whether the files are the same, whatever commit they are said to be of.
    pub fn holds_same_files(&self, other: &Self) -> bool {
        (&self.tree, &self.rest) == (&other.tree, &other.rest)
    }
}

/// A working tree at one moment, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SeenTree {
    /// It is known.
    Known(TreeIds),
    /// It is not known.
    Unknown {
        /// Why.
        unknown: String,
    },
}

/// How the tree on which a run ends compares with those before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What the run changed since it began.
    pub changes: Changes,
    /// The files that changed since each of the trees that were asked about.
    pub since: Vec<ChangedSince>,
    /// What became of the judges; none where it was not asked.
    pub judges: Option<JudgesFound>,
}

/// The files that changed since a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSince {
    /// The tree.
    pub tree: ObjectId,
    /// The first of them.
    pub files: Vec<String>,
    /// How many more there are.
    pub more: u64,
}

impl From<Changes> for Measured {
    fn from(changes: Changes) -> Self {
        Self { changes, since: Vec::new(), judges: None }
    }
}

/// The working tree on which a run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StartTree {
    /// It is known.
    Known(Box<KnownStart>),
    /// It is not known.
    Unknown {
        /// Why.
        unknown: String,
    },
}

/// A working tree on which a run began, and how to make it again from its commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownStart {
    /// Its ids.
    #[serde(flatten)]
    pub ids: TreeIds,
    /// The commit of a pull request for which the one that is checked out stands, because it merges it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stands_for: Option<ObjectId>,
    /// The files that differ from the commit, with their content by id.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub entries: Vec<TreeEntry>,
    /// The tracked files that differ from the commit, for people.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub before: Vec<ChangedFile>,
    /// What could not be seen.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unseen: Vec<String>,
    /// What git does not track and decides what checks say all the same.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ignored: Vec<IgnoredFile>,
    /// Where the run stands in its working tree, and what is checked out of it; none in journals of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<TreePlace>,
    /// The index of the repository; none in journals of an earlier version, and where there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub known_index: Option<KnownIndex>,
}

/// The index of a repository when a run began. A copy of it is kept beside the journal, because an action may write into the
/// index that a file is what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownIndex {
    /// Its path.
    pub place: String,
    /// The digest of its bytes.
    pub sha256: String,
    /// The digest of the copy, which holds all of an index that is split.
    pub kept: String,
}

impl StartTree {
    /// Says how the tree is not the one that a plan names for its items: that of a commit, or of the commit with these
    /// entries. A plan of a checkout with changes says nothing against a run that began without them, on the commit itself.
    pub fn departs_from(&self, planned: &[TreeEntry]) -> Option<String> {
        let start = match self {
            Self::Known(start) => start,
            Self::Unknown { unknown } => return Some(unknown.clone()),
        };
        // It began on the commit itself, which no plan contradicts.
        if start.entries.is_empty() {
            return None;
        }
        // By their paths, because a checkout may have as many of them as files.
        let (begun, wanted) = (by_path(&start.entries), by_path(planned));
        let others = start.entries.iter().filter(|entry| !has(&wanted, entry));
        // Whether an untracked file lies in its scope, only the run knows.
        let missing = planned.iter().filter(|entry| entry.tracked && !has(&begun, entry));
        let paths: BTreeSet<&str> = others.chain(missing).map(|entry| entry.path.as_str()).collect();
        (!paths.is_empty()).then(|| {
            let (count, named) = (paths.len() as u64, listed_in_part(paths.iter().take(3)));
            let differ = if count == 1 { "differs" } else { "differ" };
            format!("{} {differ} ({named})", plural(count, "file"))
        })
    }
}

fn by_path(entries: &[TreeEntry]) -> BTreeMap<&str, &TreeEntry> {
    entries.iter().map(|entry| (entry.path.as_str(), entry)).collect()
}

fn has(entries: &BTreeMap<&str, &TreeEntry>, entry: &TreeEntry) -> bool {
    entries.get(entry.path.as_str()).is_some_and(|known| *known == entry)
}

/// A file that no tree of git has, and that decides what checks say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredFile {
    /// The path from the root of the repository, as those of others.
    pub path: String,
    /// What stood there when the run began, if something did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub found: Option<KeptFile>,
}

/// A file by its content, which is kept beside the journal of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Its mode.
    pub mode: FileMode,
    /// The digest of its content, or of what changes with it where that is long.
    pub sha256: String,
}

/// Where a run stands in its working tree, and how much of it is checked out. Where either is another one at the end, the
/// tree is not the one that was looked at in the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreePlace {
    /// The directory of the run, from the top of the working tree; empty for the top itself.
    pub inside: String,
    /// A digest of the tracked files that a sparse checkout leaves out; none where there are none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub left_out: Option<String>,
    /// A digest of the files that only a filter could compare with the commit; none where there are none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub untold: Option<String>,
}

/// A file of a tree that is not as in the commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// The path from the root of the repository; bytes that are not UTF-8 are escaped as git does it.
    pub path: String,
    /// Whether git tracks it.
    pub tracked: bool,
    /// What stands there.
    pub content: EntryContent,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryContent {
    /// Nothing any more.
    Gone,
    /// Something that git knows by an id.
    Object {
        /// Its mode.
        mode: FileMode,
        /// Its id.
        id: ObjectId,
    },
    /// Something that no tree can hold, or that is too large for one: a digest tells whether it changes.
    Digest(String),
}

/// How a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new, and tracked.
    Added,
    /// Its content.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another path, and the same or similar content.
    Renamed,
    /// Only whether it can be executed.
    Mode,
    /// It was a file and is a link, or the like.
    Type,
    /// It is new, and not tracked.
    Untracked,
}

impl ChangeKind {
    /// Returns the word that is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
            Self::Mode => "mode",
            Self::Type => "type",
            Self::Untracked => "untracked",
        }
    }
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// The path from the root of the repository; bytes that are not UTF-8 are escaped as git does it.
    pub path: String,
    /// The path that it had.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// How it changed.
    pub kind: ChangeKind,
    /// Its bytes at the end; none for a file that is gone, and for a submodule.
    pub size: Option<u64>,
    /// Whether git tracks it, at the start or at the end.
    pub tracked: bool,
    /// Lines that came and went; none for content that has no lines.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lines: Option<LineCount>,
    /// The other live run in whose scope it lies.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run: Option<String>,
    /// Why the patch does not hold it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub not_in_patch: Option<String>,
}

/// How many lines came and went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCount {
    /// Lines that came.
    pub added: u64,
    /// Lines that went.
    pub removed: u64,
}

/// A commit that was made during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeCommit {
    /// Its id.
    pub sha: ObjectId,
    /// The first line of its message.
    pub subject: String,
}

/// What a run did to the working tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Changes {
    /// It is known.
    Known(Box<TreeChanges>),
    /// It is not known.
    Unknown {
        /// Why.
        unknown: String,
    },
}

impl Changes {
    /// Returns the changes that are known.
    pub fn known(&self) -> Option<&TreeChanges> {
        match self {
            Self::Known(changes) => Some(changes),
            Self::Unknown { .. } => None,
        }
    }
}

/// The difference between the tree on which a run began and the one on which it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeChanges {
    /// The tree on which it began.
    pub start: TreeIds,
    /// The tree on which it ended, after the action of the terminal.
    pub end: TreeIds,
    /// What differs, tracked files first.
    pub files: Vec<ChangedFile>,
    /// How many files differ beyond those that are listed.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub more: u64,
    /// The commits that were made, the oldest first.
    pub commits: Vec<MadeCommit>,
    /// The tracked files that differed from the commit when the run began.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub before: Vec<ChangedFile>,
    /// Whether the tracked files are those of the commit on which the run began.
    pub as_committed: bool,
    /// The bytes of the patch from the first tree to the last; none where nothing changed or none could be made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub patch: Option<u64>,
    /// Why there is no patch, where there should be one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub no_patch: Option<String>,
    /// What could not be seen, each in a sentence.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unseen: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl TreeChanges {
    /// Returns those of a run that did nothing, on a tree that is as its commit has it.
    pub fn none(ids: TreeIds) -> Self {
        Self {
            start: ids.clone(),
            end: ids,
            files: Vec::new(),
            more: 0,
            commits: Vec::new(),
            before: Vec::new(),
            as_committed: true,
            patch: None,
            no_patch: None,
            unseen: Vec::new(),
        }
    }

    /// Returns how many files changed.
    pub fn count(&self) -> u64 {
        self.files.len() as u64 + self.more
    }

    /// Tells whether another commit is checked out than at the start.
    pub fn head_moved(&self) -> bool {
        self.start.commit != self.end.commit
    }

    /// Tells whether the tree is the one on which the run began.
    pub fn is_nothing(&self) -> bool {
        self.count() == 0 && !self.head_moved()
    }

    /// Returns how many of the files are the work of this run.
    pub fn own(&self) -> u64 {
        // Of those that are not listed, nobody can see whose they are.
        self.files.iter().filter(|file| file.run.is_none()).count() as u64 + self.more
    }

    /// Tells whether the run itself changed anything.
    pub fn has_own(&self) -> bool {
        self.own() > 0 || self.head_moved()
    }

    /// Tells whether the run ended on a tree that the commit does not have: tracked files of its own differ both from
    /// those at the start and from those of the commit, or another commit is checked out.
    pub fn are_uncommitted(&self) -> bool {
        // What another live run wrote in its own scope is not this run's.
        let is_own = |file: &ChangedFile| file.tracked && file.run.is_none();
        // Tracked files come first in the list: behind the last one of them, there may be more that are not listed.
        let may_hide_own = self.more > 0 && self.files.last().is_none_or(|last| last.tracked);
        self.head_moved() || (!self.as_committed && (may_hide_own || self.files.iter().any(is_own)))
    }

    /// Tells whether the run left files of its own that git does not track.
    pub fn leave_untracked(&self) -> bool {
        let is_left =
            |file: &ChangedFile| !file.tracked && file.run.is_none() && file.kind != ChangeKind::Deleted;
        // Of those that are not listed, nobody can see whether they are tracked.
        self.more > 0 || self.files.iter().any(is_left)
    }

    /// Tells whether the patch of the changes holds some of them.
    pub fn are_in_patch(&self) -> bool {
        self.no_patch.is_none() && self.files.iter().any(|file| file.not_in_patch.is_none())
    }

    /// Says what changed, in a few words.
    pub fn words(&self) -> String {
        let files = match self.own() {
            0 => None,
            count => Some(plural(count, "file")),
        };
        let commits = (!self.commits.is_empty()).then(|| plural(self.commits.len() as u64, "new commit"));
        match (files, commits) {
            (Some(files), Some(commits)) => format!("{files} and {commits}"),
            (Some(files), None) => files,
            (None, Some(commits)) => commits,
            (None, None) if self.head_moved() => format!("commit {} checked out", self.end.commit),
            (None, None) => "no file".to_owned(),
        }
    }
}

/// Returns why a success does not stand, given what the run did to the tree: the one that succeeded is not the one that
/// was to be checked.
pub(super) fn unsettled(mode: OnChange, outcome: Outcome, changes: &Changes) -> Option<String> {
    // What is not known is dealt with elsewhere, as a doubt and not as a change.
    let changes = changes.known().filter(|changes| changes.are_uncommitted())?;
    let is_meant = outcome == Outcome::Success && mode == OnChange::Fail;
    is_meant.then(|| passes_only_with(changes))
}

fn passes_only_with(changes: &TreeChanges) -> String {
    match changes.own() {
        0 => format!(
            "the check passes only at {}, which is not the commit that was to be checked",
            changes.end.commit
        ),
        count => format!(
            "the check passes only with changes to {} that this commit does not have",
            plural(count, "file")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(letter: char) -> TreeIds {
        let id = ObjectId::parse(&letter.to_string().repeat(40)).unwrap();
        TreeIds { commit: id.clone(), tree: id.clone(), index: Some(id), rest: None }
    }

    fn file(path: &str, tracked: bool) -> ChangedFile {
        ChangedFile {
            path: path.to_owned(),
            from: None,
            kind: if tracked { ChangeKind::Modified } else { ChangeKind::Untracked },
            size: Some(3),
            tracked,
            lines: None,
            run: None,
            not_in_patch: None,
        }
    }

    fn changes(files: Vec<ChangedFile>) -> TreeChanges {
        TreeChanges {
            start: ids('a'),
            end: ids('a'),
            files,
            more: 0,
            commits: Vec::new(),
            before: Vec::new(),
            as_committed: false,
            patch: None,
            no_patch: None,
            unseen: Vec::new(),
        }
    }

    #[track_caller]
    fn check(changes: TreeChanges, expected: Option<&str>) {
        let changes = Changes::Known(Box::new(changes));
        let found = unsettled(OnChange::Fail, Outcome::Success, &changes);
        assert_eq!(found.as_deref(), expected);
        for (mode, outcome) in [(OnChange::Report, Outcome::Success), (OnChange::Fail, Outcome::Exhausted)] {
            assert!(unsettled(mode, outcome, &changes).is_none());
        }
    }

    #[test]
    fn a_success_stands_only_on_the_tree_that_was_to_be_checked() {
        check(changes(vec![]), None);
        check(
            changes(vec![file("a", true), file("b", false)]),
            Some("the check passes only with changes to 2 files that this commit does not have"),
        );
        // Untracked files are not part of a commit.
        check(changes(vec![file("b", false)]), None);
        // What the run undid is what the commit has.
        check(TreeChanges { as_committed: true, ..changes(vec![file("a", true)]) }, None);
        let theirs = ChangedFile { run: Some("other-1".to_owned()), ..file("a", true) };
        check(changes(vec![theirs.clone()]), None);
        // What is not listed may be of this run, unless only untracked files are left.
        check(
            TreeChanges { more: 1, ..changes(vec![theirs.clone()]) },
            Some("the check passes only with changes to 1 file that this commit does not have"),
        );
        check(TreeChanges { more: 1, ..changes(vec![theirs, file("b", false)]) }, None);
        let moved = TreeChanges { end: ids('b'), as_committed: true, ..changes(vec![]) };
        let id = "b".repeat(40);
        check(
            moved,
            Some(&format!("the check passes only at {id}, which is not the commit that was to be checked")),
        );
    }

    #[test]
    fn a_start_departs_from_a_plan_by_what_either_has_alone() {
        let entry = |path: &str, tracked: bool, digest: &str| TreeEntry {
            path: path.to_owned(),
            tracked,
            content: EntryContent::Digest(digest.to_owned()),
        };
        let departs = |entries: Vec<TreeEntry>, planned: &[TreeEntry]| {
            let start = KnownStart {
                ids: ids('a'),
                stands_for: None,
                entries,
                before: vec![],
                unseen: vec![],
                ignored: vec![],
                place: None,
                known_index: None,
            };
            StartTree::Known(Box::new(start)).departs_from(planned)
        };
        let planned = [entry("a", true, "1"), entry("b", true, "1"), entry("new", false, "1")];
        assert_eq!(departs(vec![], &planned), None);
        assert_eq!(
            departs(planned[..2].to_vec(), &planned),
            None,
            "what is untracked may be out of its scope"
        );
        assert_eq!(departs(planned[..1].to_vec(), &planned).as_deref(), Some("1 file differs (`b`)"));
        let other = vec![entry("a", true, "2"), entry("b", true, "1"), entry("more", false, "1")];
        assert_eq!(departs(other, &planned).as_deref(), Some("2 files differ (`a`, `more`)"));
        let many: Vec<_> = (0..100_000).map(|number| entry(&number.to_string(), true, "1")).collect();
        assert_eq!(departs(many.clone(), &many), None);
    }

    #[test]
    fn what_is_unknown_fails_nothing() {
        let unknown = Changes::Unknown { unknown: "no git".to_owned() };
        assert!(unsettled(OnChange::Fail, Outcome::Success, &unknown).is_none());
    }

    #[test]
    fn changes_are_read_as_they_were_written() {
        let known = Changes::Known(Box::new(changes(vec![file("a", true)])));
        for changes in [known, Changes::Unknown { unknown: "no git".to_owned() }] {
            let text = serde_json::to_string(&changes).unwrap();
            assert_eq!(serde_json::from_str::<Changes>(&text).unwrap(), changes);
        }
    }
}
