//! The working tree in a bundle: what a run changed since the commit that every checkout has, as a git bundle of its
//! own objects; and the way back.
//!
//! The repository stays as it is while its tree is kept: index and objects are our own, as for every other look at it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use tempfile::TempDir;

use super::brought::{self, Protected, TreeChange, unfit};
use super::manifest::{LeftOut, SavedTree};
use super::{EXTENSION, objects};
use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::redact::Redactor;
use crate::base::relative::Line;
use crate::files::aside::{self, PutAside};
use crate::files::file_time::FileTime;
use crate::files::secret::{SECRET, why_kept_back};
use crate::files::transient;
use crate::git::call::{AUTHOR, Call, alternate};
use crate::git::error::{Absent, GitError, TreeError};
use crate::git::own_index::copy_index;
use crate::git::repository_paths::RepositoryPaths;
use crate::git::runner::Git;

/// The longest file of objects that is carried.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// What is to be kept of which tree.
pub struct TreeOptions<'w> {
    /// Git, in the directory of the run.
    pub git: Git,
    /// The commit at which the run began, where it is known; otherwise the one it stands at counts.
    pub base: Option<ObjectId>,
    /// Absolute paths below which untracked files are part of the work.
    pub scope: &'w [PathBuf],
    /// Absolute paths of our own files, which are not.
    pub ours: &'w [PathBuf],
    /// The files of the loop, which come from every checkout itself.
    pub definition: &'w [PathBuf],
    /// What may not leave the machine.
    pub redactor: &'w Redactor,
    /// Where a closing pass that was killed has put files aside: the tree of the run is the one with them.
    pub aside: &'w Path,
}

/// A tree that was kept.
#[derive(Debug)]
pub struct BundledTree {
    /// What the manifest says about it.
    pub saved: SavedTree,
    /// Files that are not in it.
    pub left_out: Vec<LeftOut>,
}

/// Keeps a working tree: its objects go into the file `target`, when there are any. Returns nothing where there is no
/// repository, or none with a commit.
pub fn keep(wanted: &TreeOptions<'_>, target: &Path) -> Result<Option<BundledTree>, TreeError> {
    let ask = RepositoryPaths::call(&["HEAD^{commit}", "HEAD^{tree}"]);
    let printed = match wanted.git.bytes(&ask, &[]) {
        Ok(printed) => printed,
        Err(why) if is_without_commit(&wanted.git, &why) => return Ok(None),
        Err(why) => return Err(why.into()),
    };
    let (paths, [commit, tree]) = RepositoryPaths::read(&printed)?;
    TreeKeeper::new(wanted, paths, HeadCommit { commit, tree })?.keep(target).map(Some)
}

/// Tells whether git cannot say where a working tree stands because there is no repository, or none with a commit. Behind
/// any other failure there may be changes that the run has made.
fn is_without_commit(git: &Git, why: &GitError) -> bool {
    let head = Call::new("rev-parse").with(&["--verify", "--quiet"]).revision("HEAD^{commit}");
    match why {
        GitError::NotThere(Absent::Repository, _) => true,
        // Without git, only a place that cannot be in a repository has no changes of one.
        GitError::NotStarted(_) => !git.may_be_in_repository(),
        GitError::Failed(_) => git.line(&head).is_err_and(|why| why.is_of_no_object()),
        GitError::NotThere(Absent::AtServer, _)
        | GitError::Unsafe(_)
        | GitError::Cancelled
        | GitError::TooLong(_)
        | GitError::Unreadable(_)
        | GitError::File(_) => false,
    }
}

/// A tree that was made of objects alone, on top of a commit.
#[derive(Clone, Debug)]
pub struct MadeTree {
    /// Git, in the repository with the objects.
    pub git: Git,
    /// The commit.
    pub base: ObjectId,
    /// The tree.
    pub tree: ObjectId,
    /// Why it is not all that it should be, if it is not: then its objects are not kept.
    pub missing: Option<Line>,
}

/// Keeps a tree that is in no checkout.
pub fn keep_made(made: &MadeTree, redactor: &Redactor, target: &Path) -> Result<BundledTree, TreeError> {
    let MadeTree { git, base, tree, missing } = made;
    let commit = commit(git, base, tree, "The working tree of a run")?;
    let base_tree = tree_of(git, base)?;
    let mut missing = missing.clone();
    if missing.is_none() && hold_secret(git, redactor, &BTreeSet::from([&commit]), base)? {
        missing = Some(Line::of("a changed file holds a secret"));
    }
    let changed = base_tree != *tree && missing.is_none();
    if changed {
        write_objects(git, base, &commit, None, target)?;
    }
    let (base, head, tree) = (base.clone(), base.clone(), tree.clone());
    Ok(BundledTree {
        saved: SavedTree { base, head, commit, tree, index: None, changed, missing },
        left_out: Vec::new(),
    })
}

/// The name of our own index.
const OWN_INDEX: &str = "index";

/// The commit that a repository is at, and its tree.
struct HeadCommit {
    commit: ObjectId,
    tree: ObjectId,
}

struct TreeKeeper<'w> {
    wanted: &'w TreeOptions<'w>,
    /// With an index and objects of our own.
    git: Git,
    top: PathBuf,
    base: ObjectId,
    base_tree: ObjectId,
    head: ObjectId,
    head_tree: ObjectId,
    protected: Protected,
    /// Holds the index and the objects.
    place: TempDir,
    left_out: Vec<LeftOut>,
}

impl<'w> TreeKeeper<'w> {
    fn new(wanted: &'w TreeOptions<'w>, paths: RepositoryPaths, head: HeadCommit) -> Result<Self, TreeError> {
        let RepositoryPaths { top, objects, index } = paths;
        let git = wanted.git.at(&top);
        let place = transient::directory("ll-tree-")?;
        let own = |name: &str| place.path().join(name);
        fs::create_dir(own("objects"))?;
        copy_index(&index, &own(OWN_INDEX))?;
        let protected = Protected::new(&top, wanted.definition);
        let other = wanted.base.as_ref().filter(|base| **base != head.commit);
        // Where the commit is not known here, there is nothing to compare with but the one that it stands at.
        let tree_of = |base: &ObjectId| Some((base.clone(), tree_of(&git, base).ok()?));
        let at_head = || (head.commit.clone(), head.tree.clone());
        let (base, base_tree) = other.and_then(tree_of).unwrap_or_else(at_head);
        let git = git
            .with("GIT_INDEX_FILE", own(OWN_INDEX))
            .with("GIT_OBJECT_DIRECTORY", own("objects"))
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&objects.to_string_lossy()))
            .looked()?;
        let (head, head_tree, left_out) = (head.commit, head.tree, Vec::new());
        Ok(Self { wanted, git, top, base, base_tree, head, head_tree, protected, place, left_out })
    }

    fn keep(mut self, target: &Path) -> Result<BundledTree, TreeError> {
        let write_tree = Call::new("write-tree");
        // Fails while a merge is not finished; the files themselves are kept all the same.
        let staged = self.git.id(&write_tree).ok();
        let of_staged = self.index_version();
        // `add --update` takes tracked files alone; of others, only those in the scope are the
        // work.
        self.git.line(&Call::new("add").with(&["--update"]).path(":/"))?;
        self.add_untracked()?;
        let aside = aside::to_put_back(self.wanted.aside)?;
        // Before what was put aside returns: that is looked at by itself, since it does not stand
        // in the tree.
        self.take_out_secrets()?;
        self.put_back(aside)?;
        // Mostly nothing was added, and each call of git costs as much as all that is computed here.
        let mut tree = match &staged {
            Some(staged) if self.index_version() == of_staged => staged.clone(),
            Some(_) | None => self.git.id(&write_tree)?,
        };
        let found = if tree == self.head_tree {
            Vec::new()
        } else {
            unfit(&self.git, &self.head, &tree, &self.protected)?
        };
        if !found.is_empty() {
            self.take_out(found.into_iter().map(|unfit| (unfit.change, unfit.why)))?;
            tree = self.git.id(&write_tree)?;
        }
        let commit = self.commit(&tree)?;
        // Mostly there is nothing staged that the files do not have: what fits there fits here.
        let is_same = staged.as_ref() == Some(&tree);
        let mut index = match &staged {
            Some(_) if is_same => Some(commit.clone()),
            Some(staged) => Some(self.commit(staged)?),
            None => None,
        };
        let mut missing = None;
        if let Some(staged) = &index
            && (self.holds_secret(&[(staged, &self.head)])?
                || (!is_same && !unfit(&self.git, &self.head, staged, &self.protected)?.is_empty()))
        {
            index = None;
        }
        if self.holds_secret(&[(&self.head, &self.base)])? {
            missing = Some(Line::of("a commit of the run holds a secret"));
        } else if self.head != self.base
            && let Some(found) = unfit(&self.git, &self.base, &self.head, &self.protected)?.first()
        {
            let (path, why) = (found.change.shown(), found.why);
            missing = Some(Line::of(&format!("a commit of the run changes `{path}`: {why}")));
        }
        let staged = staged.filter(|_| index.is_some());
        let is_base = |tree: &ObjectId| *tree == self.base_tree;
        let changed = self.head != self.base || !is_base(&tree) || !staged.as_ref().is_none_or(is_base);
        if changed && missing.is_none() {
            let size = write_objects(&self.git, &self.base, &commit, index.as_ref(), target)?;
            if size > MOST_BYTES {
                fs::remove_file(target)?;
                let (size, most) = (size >> 20, MOST_BYTES >> 20);
                let why = format!("the changes take {size} MiB, and {most} MiB is the most that is carried");
                missing = Some(Line::of(&why));
            }
        }
        let Self { base, head, left_out, .. } = self;
        let changed = changed && missing.is_none();
        Ok(BundledTree { saved: SavedTree { base, head, commit, tree, index, changed, missing }, left_out })
    }

    /// Tells versions of our own index apart: git writes each as a new file, beside the one before. None while there is none.
    fn index_version(&self) -> Option<(u64, FileTime)> {
        let metadata = fs::metadata(self.place.path().join(OWN_INDEX)).ok()?;
        Some((metadata.ino(), FileTime::of(&metadata)))
    }

    /// Adds the untracked files of the scope.
    fn add_untracked(&mut self) -> Result<(), TreeError> {
        let scope: Vec<_> = self.wanted.scope.iter().filter_map(|path| self.pathspec("", path)).collect();
        if scope.is_empty() {
            return Ok(());
        }
        let ours: Vec<_> =
            self.wanted.ours.iter().filter_map(|path| self.pathspec(",exclude", path)).collect();
        let list = Call::new("ls-files").with(&["--others", "--exclude-standard", "-z"]).paths(scope);
        // A bundle that lies in the checkout would carry itself.
        let list = list.path(format!(":(top,exclude,glob)**/*.{EXTENSION}")).paths(ours);
        let mut added = Vec::new();
        for path in self.git.bytes(&list, &[])?.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            if path.ends_with(b"/") {
                let path = String::from_utf8_lossy(path);
                self.leave_out(&path, "it is a repository of its own");
            } else {
                added.extend_from_slice(path);
                added.push(0);
            }
        }
        if !added.is_empty() {
            // A file that is gone by now, such as one of an editor, is no reason to keep nothing.
            let add = Call::new("update-index").with(&["--add", "--remove", "-z", "--stdin"]);
            self.git.bytes(&add, &added)?;
            self.say_refused(&added)?;
        }
        Ok(())
    }

    /// Says which of some files git did not add, as no tree can hold their names, such as `a/git~1/config`.
    fn say_refused(&mut self, added: &[u8]) -> Result<(), TreeError> {
        let held = self.git.bytes(&Call::new("ls-files").with(&["-z"]), &[])?;
        let held: BTreeSet<&[u8]> = held.split(|byte| *byte == 0).collect();
        for path in added.split(|byte| *byte == 0).filter(|path| !path.is_empty() && !held.contains(path)) {
            // One that is gone by now was not refused.
            if self.top.join(OsStr::from_bytes(path)).symlink_metadata().is_ok() {
                self.leave_out(&String::from_utf8_lossy(path), "git keeps nothing by this name");
            }
        }
        Ok(())
    }

    /// Takes what is put aside in the place of what stands there meanwhile.
    fn put_back(&mut self, aside: Vec<PutAside>) -> Result<(), TreeError> {
        if aside.is_empty() {
            return Ok(());
        }
        let paths: Vec<u8> =
            aside.iter().flat_map(|file| [gitpath::to_bytes(&file.path), vec![0]].concat()).collect();
        let ask = Call::new("check-ignore").with(&["-z", "--stdin"]);
        let ignored = self.git.judged_reading(&ask, &paths)?.printed;
        let ignored: BTreeSet<&[u8]> = ignored.split(|byte| *byte == 0).collect();
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        for file in aside {
            let path = gitpath::to_bytes(&file.path);
            match file.was {
                Some((_, bytes))
                    if self.wanted.redactor.finds(&bytes) || self.wanted.redactor.finds(&path) =>
                {
                    self.leave_out(&file.path, SECRET);
                }
                Some(_) if ignored.contains(path.as_slice()) => {}
                Some((mode, bytes)) => {
                    let write = Call::new("hash-object").with(&["-w", "--stdin"]);
                    let id = self.git.bytes(&write, &bytes)?;
                    let id = String::from_utf8_lossy(&id).trim().to_owned();
                    there.extend([format!("{} {id}\t", mode.word()).as_bytes(), &path, b"\0"].concat());
                }
                // The lines that remove come first: a file may stand where a directory was.
                None => {
                    let nothing = "0".repeat(self.base.as_str().len());
                    gone.extend([format!("0 {nothing}\t").as_bytes(), &path, b"\0"].concat());
                }
            }
        }
        let lines = [gone, there].concat();
        self.git.bytes(&Call::new("update-index").with(&["-z", "--index-info"]), &lines)?;
        Ok(())
    }

    /// Names a path for git; nothing when it is outside of the tree.
    fn pathspec(&self, magic: &str, path: &Path) -> Option<String> {
        // Git names the top with its links followed, and the scope may not.
        let top = self.top.canonicalize().ok()?;
        let inside = path.strip_prefix(&top).or_else(|_| path.strip_prefix(&self.top)).ok()?.to_str()?;
        Some(format!(":(top,literal{magic}){inside}"))
    }

    /// Puts files with a secret in them back to what they were. A masked file would be another one.
    fn take_out_secrets(&mut self) -> Result<(), TreeError> {
        if self.wanted.redactor.is_empty() {
            return Ok(());
        }
        let list = Call::new("diff-index").with(&["--cached", "-z", "--raw", "--no-renames", "--no-abbrev"]);
        let mut held = Vec::new();
        for change in brought::changes(&self.git.bytes(&list.id(&self.head), &[])?)? {
            let file = change.below(&self.top);
            let is_file = file.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
            let is_named_so = self.wanted.redactor.finds(change.path());
            let why = if is_named_so {
                Some(SECRET)
            } else if is_file {
                why_kept_back(self.wanted.redactor, &file)?
            } else {
                None
            };
            held.extend(why.map(|why| (change, why)));
        }
        self.take_out(held)
    }

    /// Takes changes back in our own index.
    fn take_out(
        &mut self,
        changes: impl IntoIterator<Item = (TreeChange, &'static str)>,
    ) -> Result<(), TreeError> {
        let mut lines = Vec::new();
        for (change, why) in changes {
            lines.extend(change.taken_back());
            self.leave_out(&change.shown(), why);
        }
        if lines.is_empty() {
            return Ok(());
        }
        self.git.bytes(&Call::new("update-index").with(&["-z", "--index-info"]), &lines)?;
        Ok(())
    }

    /// Says what is not carried. Its name may be a secret itself.
    fn leave_out(&mut self, path: &str, why: &str) {
        self.left_out.push(LeftOut::new(&self.wanted.redactor.text(path), why));
    }

    /// Looks for a secret in everything that one commit has and another has not.
    fn holds_secret(&self, commits: &[(&ObjectId, &ObjectId)]) -> Result<bool, TreeError> {
        for (commit, without) in commits {
            if hold_secret(&self.git, self.wanted.redactor, &BTreeSet::from([*commit]), without)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes a commit that depends on nothing but the tree and its parent.
    fn commit(&self, tree: &ObjectId) -> Result<ObjectId, TreeError> {
        commit(&self.git, &self.head, tree, "The working tree of a run")
    }
}

/// Returns the tree of a commit.
fn tree_of(git: &Git, commit: &ObjectId) -> Result<ObjectId, GitError> {
    git.id(&Call::new("rev-parse").with(&["--verify", "--quiet"]).ids("", commit, "^{commit}^{tree}"))
}

/// Writes a git bundle: a header, and a pack of what a checkout of the base does not have. Returns its bytes.
fn write_objects(
    git: &Git,
    base: &ObjectId,
    commit: &ObjectId,
    index: Option<&ObjectId>,
    target: &Path,
) -> Result<u64, TreeError> {
    let mut file = std::fs::File::create(target)?;
    file.write_all(objects::header(base, commit, index).as_bytes())?;
    let tips = std::iter::once(commit).chain(index).map(|tip| format!("{tip}\n"));
    let tips = tips.chain([format!("^{base}\n")]).collect::<String>();
    let pack = Call::new("pack-objects").with(&["--revs", "--thin", "--delta-base-offset", "--stdout", "-q"]);
    git.write_to(&pack, tips.as_bytes(), file)?;
    Ok(fs::metadata(target)?.len())
}

/// Makes a commit that depends on nothing but the tree and its parent.
pub(super) fn commit(
    git: &Git,
    parent: &ObjectId,
    tree: &ObjectId,
    message: &'static str,
) -> Result<ObjectId, TreeError> {
    let git = AUTHOR.iter().fold(git.clone(), |git, (name, value)| git.with(name, value));
    Ok(git.id(&Call::new("commit-tree").option_id("-p", parent).with(&["-m", message]).id(tree))?)
}

/// Looks for a secret in everything that some commits have and another has not.
pub(super) fn hold_secret(
    git: &Git,
    redactor: &Redactor,
    commits: &BTreeSet<&ObjectId>,
    without: &ObjectId,
) -> Result<bool, TreeError> {
    if redactor.is_empty() || commits.is_empty() {
        return Ok(false);
    }
    let list = Call::new("rev-list").with(&["--objects", "--no-object-names", "--stdin"]);
    let tips = commits.iter().map(|commit| format!("{commit}\n"));
    let tips: String = tips.chain([format!("^{without}\n")]).collect();
    let objects = git.bytes(&list, tips.as_bytes())?;
    if objects.is_empty() {
        return Ok(false);
    }
    let found = transient::file("", "")?;
    // The contents may be larger than memory, so they are searched in a file.
    let file = found.reopen()?;
    git.write_to(&Call::new("cat-file").with(&["--batch"]), &objects, file)?;
    Ok(why_kept_back(redactor, found.path())?.is_some())
}

/// Why a checkout cannot become the tree of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// There is no repository, or none with a commit.
    #[error("there is no git repository here, and the run changed files of one")]
    NoRepository,
    /// It is at another commit.
    #[error("the run began at commit {base}, and the checkout is at {found}")]
    Elsewhere {
        /// Where it has to be.
        base: ObjectId,
        /// Where it is.
        found: ObjectId,
    },
    /// The changes are not in the bundle.
    #[error("the bundle does not carry what the run changed: {0}")]
    Missing(Line),
    /// Something in the checkout would be lost.
    #[error("the checkout has changes of its own: {0}")]
    Dirty(String),
    /// It would bring what comes from a checkout alone.
    #[error("the bundle contains a change that is not allowed: {0}")]
    Unfit(String),
    /// Git does not take the objects.
    #[error("what the run changed cannot be read: {0}")]
    Damaged(String),
}

/// Tells whether a checkout can become what it was when the run was left, as far as that shows without a look at its
/// files. Nothing is changed. `definition` are the files of the loop, which no bundle brings.
pub fn check(
    git: &Git,
    saved: &SavedTree,
    objects: Option<&Path>,
    definition: &[PathBuf],
) -> Result<(), RestoreError> {
    let (git, top, _) = place(git, saved)?;
    match objects {
        Some(path) if saved.changed => {
            let protected = Protected::new(&top, definition);
            objects::check(&git, &top, saved, path, &protected).map_err(refused)
        }
        None if !saved.changed => Ok(()),
        Some(_) | None => {
            Err(RestoreError::Damaged("its objects are not the ones that its manifest names".to_owned()))
        }
    }
}

/// Takes the objects of a tree into a bare repository that has its base, once they were looked at. `repository` is its
/// directory.
pub fn take(
    git: &Git,
    repository: &Path,
    saved: &SavedTree,
    objects: Option<&Path>,
) -> Result<(), RestoreError> {
    let Some(path) = objects.filter(|_| saved.changed) else {
        let is_base = !saved.changed && objects.is_none();
        let odd = || RestoreError::Damaged("its objects are not the ones that its manifest names".to_owned());
        return is_base.then_some(()).ok_or_else(odd);
    };
    objects::check(git, repository, saved, path, &Protected::default()).map_err(refused)?;
    objects::unpack(git, saved, path, true).map_err(damaged)
}

fn refused(refused: objects::ObjectsError) -> RestoreError {
    match refused {
        objects::ObjectsError::Damaged(why) => RestoreError::Damaged(why),
        objects::ObjectsError::Unfit(why) => RestoreError::Unfit(why),
    }
}

fn damaged(why: impl std::fmt::Display) -> RestoreError {
    RestoreError::Damaged(why.to_string())
}

/// Returns git at the top of the checkout, the top, and the commit that it is at.
fn place(git: &Git, saved: &SavedTree) -> Result<(Git, PathBuf, ObjectId), RestoreError> {
    let ask = RepositoryPaths::call(&["HEAD^{commit}"]);
    let said = git.bytes(&ask, &[]).and_then(|printed| RepositoryPaths::read(&printed));
    let (RepositoryPaths { top, .. }, [head]) = said.map_err(|_| RestoreError::NoRepository)?;
    let git = git.at(&top);
    if head != saved.base && head != saved.head {
        return Err(RestoreError::Elsewhere { base: saved.base.clone(), found: head });
    }
    match &saved.missing {
        Some(missing) => Err(RestoreError::Missing(missing.clone())),
        None => Ok((git, top, head)),
    }
}

/// Makes a checkout what it was when the run was left. Nothing that is only in the checkout is overwritten. The tree has
/// to have been checked.
pub fn restore(git: &Git, saved: &SavedTree, objects: Option<&Path>) -> Result<(), RestoreError> {
    let (git, top, head) = &place(git, saved)?;
    let Some(objects) = objects else { return Ok(()) };
    objects::unpack(git, saved, objects, false).map_err(damaged)?;
    let refresh = Call::new("update-index").with(&["-q", "--refresh"]);
    // A kill may have come between the tree and the files of the run.
    if !is_there(git, top, saved).map_err(damaged)? {
        // A file with another time or owner than the index knows is not a change, but would be taken for one.
        // The exit code of `--refresh` only says that some file differs.
        let _differs = git.line(&refresh);
        let left_out: Vec<u8> = differences(git, head, &saved.commit)
            .map_err(damaged)?
            .iter()
            .filter(|change| change.was_there() && change.below(top).symlink_metadata().is_err())
            .flat_map(|change| [change.path(), b"\0"].concat())
            .collect();
        if !left_out.is_empty() {
            git.bytes(&seen(), &left_out).map_err(damaged)?;
        }
        // The run worked on files that the patterns of a sparse checkout leave out: they come back all the same.
        let merge = Call::new("read-tree").with(&["-m", "-u", "--no-sparse-checkout"]);
        let merge = merge.id(head).id(&saved.commit);
        git.line(&merge).map_err(|why| RestoreError::Dirty(why.to_string()))?;
    }
    let index = saved.index.as_ref().unwrap_or(&saved.head);
    // `read-tree --reset` without `-u` moves the index alone, and touches no file.
    git.line(&Call::new("read-tree").with(&["--reset"]).id(index)).map_err(damaged)?;
    // Its exit code only tells that some file differs from the index.
    let _differs = git.line(&refresh);
    // Last: after a kill before this, the files are still compared with the commit that the checkout is at.
    if *head != saved.head {
        let move_on = Call::new("update-ref").with(&["-m", "ll-loop: a run goes on"]).revision("HEAD");
        git.line(&move_on.id(&saved.head)).map_err(damaged)?;
    }
    match is_there(git, top, saved) {
        Ok(true) => Ok(()),
        Ok(false) => Err(RestoreError::Damaged("the files are not what they were".to_owned())),
        Err(why) => Err(damaged(why)),
    }
}

/// Tells whether the files are those of the saved tree. Other files may lie among them.
fn is_there(git: &Git, top: &Path, saved: &SavedTree) -> Result<bool, TreeError> {
    let place = transient::directory("ll-tree-")?;
    let copy = place.path().join("index");
    // What git knows about files that are as they were saves reading them. A copy that is newer than the index
    // would hide a change of the same second.
    let index = top.join(git.line(&Call::new("rev-parse").with(&["--git-path", "index"]))?);
    copy_index(&index, &copy)?;
    let own = git.with("GIT_INDEX_FILE", copy);
    own.line(&Call::new("read-tree").with(&["--reset"]).id(&saved.commit))?;
    // A file that the run removed must be gone; files that were never tracked may lie about.
    let (gone, left): (Vec<TreeChange>, Vec<TreeChange>) =
        differences(git, &saved.base, &saved.commit)?.into_iter().partition(TreeChange::is_gone);
    // What it changed must be there, also where the patterns of a sparse checkout leave it out.
    let left: Vec<u8> = left.iter().flat_map(|change| [change.path(), b"\0"].concat()).collect();
    if !left.is_empty() {
        own.bytes(&seen(), &left)?;
    }
    let _differs = own.line(&Call::new("update-index").with(&["-q", "--refresh"]));
    if own.line(&Call::new("diff-files").with(&["--quiet"])).is_err() {
        return Ok(false);
    }
    Ok(!gone.iter().any(|change| change.below(top).symlink_metadata().is_ok()))
}

/// Returns how two commits differ.
fn differences(git: &Git, from: &ObjectId, to: &ObjectId) -> Result<Vec<TreeChange>, TreeError> {
    let list = Call::new("diff-tree").with(&["-r", "-z", "--raw", "--no-renames", "--no-abbrev"]);
    brought::changes(&git.bytes(&list.id(from).id(to), &[])?)
}

/// The call that has git look at files again which a sparse checkout leaves out.
fn seen() -> Call {
    Call::new("update-index").with(&["--no-skip-worktree", "-z", "--stdin"])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::base::file_mode::FileMode;
    use crate::files::aside::Placed;

    fn git(top: &Path) -> Git {
        let path = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin".to_owned();
        let env = BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), "/nonexistent".to_owned())]);
        let git = Git::new(top, env);
        AUTHOR.iter().fold(git, |git, (name, value)| git.with(name, value))
    }

    fn kept(top: &Path, aside: &Path) -> Result<Option<BundledTree>, TreeError> {
        let target = tempfile::tempdir().unwrap();
        let wanted = TreeOptions {
            git: git(top),
            base: None,
            scope: &[],
            ours: &[],
            definition: &[],
            redactor: &Redactor::default(),
            aside,
        };
        keep(&wanted, &target.path().join("objects"))
    }

    #[test]
    fn only_without_a_commit_there_is_nothing_to_keep() {
        let (place, nowhere) = (tempfile::tempdir().unwrap(), Path::new("/nonexistent"));
        let top = place.path();
        assert!(kept(top, nowhere).unwrap().is_none());
        git(top).line(&Call::new("init").with(&["--quiet"])).unwrap();
        assert!(kept(top, nowhere).unwrap().is_none());
        git(top).line(&Call::new("commit").with(&["--quiet", "--allow-empty", "-m", "one"])).unwrap();
        assert!(kept(top, nowhere).unwrap().is_some());
        fs::write(top.join(".git/config"), "[core").unwrap();
        assert!(kept(top, nowhere).unwrap_err().to_string().contains("config"));
    }

    #[test]
    fn what_no_tree_can_hold_is_told() {
        let (place, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let top = place.path().canonicalize().unwrap();
        git(&top).line(&Call::new("init").with(&["--quiet"])).unwrap();
        git(&top).line(&Call::new("commit").with(&["--quiet", "--allow-empty", "-m", "one"])).unwrap();
        for path in ["a/git~1/config", "a/b"] {
            fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
            fs::write(top.join(path), "x").unwrap();
        }
        let wanted = TreeOptions {
            git: git(&top),
            base: None,
            scope: std::slice::from_ref(&top),
            ours: &[],
            definition: &[],
            redactor: &Redactor::default(),
            aside: Path::new("/nonexistent"),
        };
        let kept = keep(&wanted, &target.path().join("objects")).unwrap().unwrap();
        assert!(kept.saved.changed);
        assert_eq!(kept.left_out, [LeftOut::new("a/git~1/config", "git keeps nothing by this name")]);
    }

    #[test]
    fn what_a_closing_pass_has_placed_is_not_kept_whatever_the_ids_are_made_with() {
        for format in ["--object-format=sha1", "--object-format=sha256"] {
            let (place, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let top = place.path();
            git(top).line(&Call::new("init").with(&["--quiet", format])).unwrap();
            git(top).line(&Call::new("commit").with(&["--quiet", "--allow-empty", "-m", "one"])).unwrap();
            let content = Some((FileMode::File, b"assert False\n".to_vec()));
            let placed = Placed { path: "test.py".to_owned(), content };
            aside::put_aside(aside.path(), top, &[placed]).unwrap();
            git(top).line(&Call::new("add").path("test.py")).unwrap();
            let saved = kept(top, aside.path()).unwrap().unwrap().saved;
            let head = Call::new("rev-parse").with(&["--verify", "--quiet"]).revision("HEAD^{tree}");
            let first = git(top).id(&head).unwrap();
            assert_eq!(saved.tree, first, "{format}");
        }
    }
}
