//! The working tree in a bundle: what a run changed since the commit that every checkout has, as a git bundle of its
//! own objects; and the way back.
//!
//! The repository stays as it is while its tree is kept: index and objects are our own, as for every other look at it.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use tempfile::TempDir;

use crate::base::redact::Redactor;
use crate::process::git::Git;

use super::EXTENSION;
use super::manifest::{LeftOut, SavedTree};

/// The longest file of objects that is carried.
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// What is to be kept of which tree.
pub struct Wanted<'w> {
    /// Git, in the directory of the run.
    pub git: Git,
    /// The commit at which the run began, where it is known; otherwise the one it stands at counts.
    pub base: Option<String>,
    /// Absolute paths below which untracked files are part of the work.
    pub scope: &'w [PathBuf],
    /// Absolute paths of our own files, which are not.
    pub ours: &'w [PathBuf],
    /// What may not leave the machine.
    pub redactor: &'w Redactor,
}

/// A tree that was kept.
#[derive(Debug)]
pub struct Kept {
    /// What the manifest says about it.
    pub saved: SavedTree,
    /// Files that are not in it.
    pub left_out: Vec<LeftOut>,
}

/// Keeps a working tree: its objects go into the file `target`, when there are any. Returns nothing where there is no
/// repository, or none with a commit.
pub fn keep(wanted: &Wanted<'_>, target: &Path) -> Result<Option<Kept>, String> {
    let Ok(top) = wanted.git.line(&["rev-parse", "--show-toplevel"]) else { return Ok(None) };
    let git = wanted.git.at(Path::new(&top));
    let Ok(head) = git.line(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]) else { return Ok(None) };
    let keeper = Keeper::new(wanted, &git, PathBuf::from(top), head)?;
    keeper.keep(target).map(Some)
}

struct Keeper<'w> {
    wanted: &'w Wanted<'w>,
    /// With an index and objects of our own.
    git: Git,
    top: PathBuf,
    base: String,
    head: String,
    /// Holds the index and the objects.
    _place: TempDir,
    left_out: Vec<LeftOut>,
}

impl<'w> Keeper<'w> {
    fn new(wanted: &'w Wanted<'w>, git: &Git, top: PathBuf, head: String) -> Result<Self, String> {
        let inside = |name: &str| git.line(&["rev-parse", "--git-path", name]).map(|path| top.join(path));
        let (objects, index) = (inside("objects")?, inside("index")?);
        let place = TempDir::with_prefix("ll-tree-").map_err(|error| error.to_string())?;
        let own = |name: &str| place.path().join(name);
        fs::create_dir(own("objects")).map_err(|error| error.to_string())?;
        if index.exists() {
            fs::copy(index, own("index")).map_err(|error| error.to_string())?;
        }
        let known = |commit: &String| git.line(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).is_ok();
        let base = wanted.base.clone().filter(known).unwrap_or_else(|| head.clone());
        let git = git
            .with("GIT_INDEX_FILE", own("index"))
            .with("GIT_OBJECT_DIRECTORY", own("objects"))
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        Ok(Self { wanted, git, top, base, head, _place: place, left_out: Vec::new() })
    }

    fn keep(mut self, target: &Path) -> Result<Kept, String> {
        // Fails while a merge is not finished; the files themselves are kept all the same.
        let index = self.git.line(&["write-tree"]).ok();
        self.git.line(&["add", "--update", "--", ":/"])?;
        self.add_untracked()?;
        self.take_out_secrets()?;
        let tree = self.git.line(&["write-tree"])?;
        let commit = self.commit(&tree)?;
        let mut index = index.map(|index| self.commit(&index)).transpose()?;
        let mut missing = None;
        if !self.wanted.redactor.is_empty() {
            if let Some(staged) = &index
                && self.holds_secret(&[staged, "--not", &self.head])?
            {
                index = None;
            }
            if self.holds_secret(&[&self.head, "--not", &self.base])? {
                missing = Some("a commit of the run holds a secret".to_owned());
            }
        }
        let is_base = |tree: &str| self.tree_of(&self.base).is_ok_and(|base| base == tree);
        let staged = index.as_deref().map(|index| self.tree_of(index)).transpose()?;
        let changed =
            self.head != self.base || !is_base(&tree) || !staged.is_none_or(|staged| is_base(&staged));
        if changed && missing.is_none() {
            let size = self.write(&commit, index.as_deref(), target)?;
            if size > MOST_BYTES {
                fs::remove_file(target).map_err(|error| error.to_string())?;
                let (size, most) = (size >> 20, MOST_BYTES >> 20);
                missing =
                    Some(format!("the changes take {size} MiB, and {most} MiB is the most that is carried"));
            }
        }
        let Self { base, head, left_out, .. } = self;
        let changed = changed && missing.is_none();
        Ok(Kept { saved: SavedTree { base, head, commit, tree, index, changed, missing }, left_out })
    }

    /// Adds the untracked files of the scope.
    fn add_untracked(&mut self) -> Result<(), String> {
        let mut list = ["ls-files", "--others", "--exclude-standard", "-z", "--"].map(str::to_owned).to_vec();
        let scope: Vec<_> = self.wanted.scope.iter().filter_map(|path| self.pathspec("", path)).collect();
        if scope.is_empty() {
            return Ok(());
        }
        list.extend(scope);
        list.push(format!(":(top,exclude,glob)**/*.{EXTENSION}"));
        list.extend(self.wanted.ours.iter().filter_map(|path| self.pathspec(",exclude", path)));
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        let mut added = Vec::new();
        for path in self.git.bytes(&list, &[])?.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            if path.ends_with(b"/") {
                let path = String::from_utf8_lossy(path).into_owned();
                self.left_out.push(LeftOut { path, why: "it is a repository of its own".to_owned() });
            } else {
                added.extend_from_slice(path);
                added.push(0);
            }
        }
        self.git.bytes(&["update-index", "--add", "-z", "--stdin"], &added).map(drop)
    }

    /// Names a path for git; nothing when it is outside of the tree.
    fn pathspec(&self, magic: &str, path: &Path) -> Option<String> {
        let top = self.top.canonicalize().ok()?;
        let inside = path.strip_prefix(&top).or_else(|_| path.strip_prefix(&self.top)).ok()?.to_str()?;
        Some(format!(":(top,literal{magic}){inside}"))
    }

    /// Puts files with a secret in them back to what they were. A masked file would be another one.
    fn take_out_secrets(&mut self) -> Result<(), String> {
        if self.wanted.redactor.is_empty() {
            return Ok(());
        }
        let changed = ["diff-index", "--cached", "--name-only", "--no-renames", "-z", &self.head];
        for path in self.git.bytes(&changed, &[])?.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            let path = String::from_utf8_lossy(path).into_owned();
            let file = self.top.join(&path);
            let is_file = file.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
            let held =
                is_file && holds_secret(self.wanted.redactor, &file).map_err(|error| error.to_string())?;
            if held {
                self.git.line(&["--literal-pathspecs", "reset", "--quiet", &self.head, "--", &path])?;
                self.left_out.push(LeftOut { path, why: SECRET.to_owned() });
            }
        }
        Ok(())
    }

    /// Looks for a secret in everything that some commits have and others have not.
    fn holds_secret(&self, commits: &[&str]) -> Result<bool, String> {
        let arguments = [&["rev-list", "--objects", "--no-object-names"], commits].concat();
        let objects = self.git.bytes(&arguments, &[])?;
        if objects.is_empty() {
            return Ok(false);
        }
        let found = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let file = found.reopen().map_err(|error| error.to_string())?;
        self.git.into_file(&["cat-file", "--batch"], &objects, file)?;
        holds_secret(self.wanted.redactor, found.path()).map_err(|error| error.to_string())
    }

    /// Makes a commit that depends on nothing but the tree and its parent.
    fn commit(&self, tree: &str) -> Result<String, String> {
        let mut git = self.git.clone();
        for who in ["AUTHOR", "COMMITTER"] {
            for (what, value) in [("NAME", "ll-loop"), ("EMAIL", "ll-loop@localhost"), ("DATE", "@0 +0000")] {
                git = git.with(&format!("GIT_{who}_{what}"), value);
            }
        }
        git.line(&["commit-tree", "-p", &self.head, "-m", "The working tree of a run", tree])
    }

    fn tree_of(&self, commit: &str) -> Result<String, String> {
        self.git.line(&["rev-parse", &format!("{commit}^{{tree}}")])
    }

    /// Writes a git bundle: a header, and a pack of what a checkout of the base does not have.
    fn write(&self, commit: &str, index: Option<&str>, target: &Path) -> Result<u64, String> {
        let format = self.git.line(&["rev-parse", "--show-object-format"])?;
        let version = match format.as_str() {
            "sha1" => "# v2 git bundle".to_owned(),
            format => format!("# v3 git bundle\n@object-format={format}"),
        };
        let index_ref = index.map(|index| format!("{index} refs/ll-loop/index\n")).unwrap_or_default();
        let base = &self.base;
        let header =
            format!("{version}\n-{base} where the run began\n{commit} refs/ll-loop/tree\n{index_ref}\n");
        let io = |error: std::io::Error| error.to_string();
        let mut file = std::fs::File::create(target).map_err(io)?;
        file.write_all(header.as_bytes()).map_err(io)?;
        let tips: Vec<&str> = [commit].into_iter().chain(index).collect();
        let tips = format!("{}\n^{}\n", tips.join("\n"), self.base);
        let pack = ["pack-objects", "--revs", "--thin", "--delta-base-offset", "--stdout", "-q"];
        self.git.into_file(&pack, tips.as_bytes(), file)?;
        Ok(fs::metadata(target).map_err(io)?.len())
    }
}

const SECRET: &str = "it holds a secret";

/// Looks for a secret in a file, piece by piece.
pub(super) fn holds_secret(redactor: &Redactor, path: &Path) -> std::io::Result<bool> {
    const PIECE: usize = 1 << 20;
    let mut file = fs::File::open(path)?;
    let mut piece = Vec::with_capacity(PIECE + redactor.longest());
    loop {
        let read = (&mut file).take(PIECE as u64).read_to_end(&mut piece)?;
        if redactor.finds(&piece) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        // A secret may lie across the border of two pieces.
        let seen = piece.len().saturating_sub(redactor.longest());
        piece.drain(..seen);
    }
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
        base: String,
        /// Where it is.
        found: String,
    },
    /// The changes are not in the bundle.
    #[error("the bundle does not carry what the run changed: {0}")]
    Missing(String),
    /// Something in the checkout would be lost.
    #[error("the checkout has changes of its own: {0}")]
    Dirty(String),
    /// Git does not take the objects.
    #[error("what the run changed cannot be read: {0}")]
    Damaged(String),
}

/// Tells whether a checkout can become what it was when the run was left, as far as that shows without a look at its
/// files. Nothing is changed.
pub fn check(git: &Git, saved: &SavedTree) -> Result<(), RestoreError> {
    place(git, saved).map(drop)
}

/// Returns git at the top of the checkout, and the commit that it is at.
fn place(git: &Git, saved: &SavedTree) -> Result<(Git, String), RestoreError> {
    let top = git.line(&["rev-parse", "--show-toplevel"]).map_err(|_| RestoreError::NoRepository)?;
    let git = git.at(Path::new(&top));
    let head = git.line(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
    let head = head.map_err(|_| RestoreError::NoRepository)?;
    if head != saved.base && head != saved.head {
        return Err(RestoreError::Elsewhere { base: saved.base.clone(), found: head });
    }
    match &saved.missing {
        Some(missing) => Err(RestoreError::Missing(missing.clone())),
        None => Ok((git, head)),
    }
}

/// Makes a checkout what it was when the run was left. Nothing that is only in the checkout is overwritten.
pub fn restore(git: &Git, saved: &SavedTree, objects: Option<&Path>) -> Result<(), RestoreError> {
    let (git, head) = &place(git, saved)?;
    let Some(objects) = objects else { return Ok(()) };
    let unbundle = ["-c", "transfer.fsckObjects=true", "bundle", "unbundle", &objects.to_string_lossy()]
        .map(str::to_owned);
    git.line(&unbundle.each_ref().map(String::as_str)).map_err(RestoreError::Damaged)?;
    // A kill may have come between the tree and the files of the run.
    if !is_there(git, saved).map_err(RestoreError::Damaged)? {
        // A file with another time or owner than the index knows is no change, but would be taken for one.
        let _differs = git.line(&["update-index", "-q", "--refresh"]);
        git.line(&["read-tree", "-m", "-u", head, &saved.commit]).map_err(RestoreError::Dirty)?;
    }
    let index = saved.index.as_ref().unwrap_or(&saved.head);
    git.line(&["read-tree", index]).map_err(RestoreError::Damaged)?;
    // Its exit code only tells that some file differs from the index.
    let _differs = git.line(&["update-index", "-q", "--refresh"]);
    if *head != saved.head {
        git.line(&["reset", "--quiet", "--soft", &saved.head]).map_err(RestoreError::Damaged)?;
    }
    match is_there(git, saved) {
        Ok(true) => Ok(()),
        Ok(false) => Err(RestoreError::Damaged("the files are not what they were".to_owned())),
        Err(why) => Err(RestoreError::Damaged(why)),
    }
}

/// Tells whether the files are those of the saved tree. Other files may lie among them.
fn is_there(git: &Git, saved: &SavedTree) -> Result<bool, String> {
    let place = TempDir::with_prefix("ll-tree-").map_err(|error| error.to_string())?;
    let own = git.with("GIT_INDEX_FILE", place.path().join("index"));
    own.line(&["read-tree", &saved.commit])?;
    let _differs = own.line(&["update-index", "-q", "--refresh"]);
    if own.line(&["diff-files", "--quiet"]).is_err() {
        return Ok(false);
    }
    let gone = [
        "diff-tree",
        "-r",
        "-z",
        "--name-only",
        "--no-renames",
        "--diff-filter=D",
        &saved.base,
        &saved.commit,
    ];
    let gone = git.bytes(&gone, &[])?;
    let top = git.line(&["rev-parse", "--show-toplevel"])?;
    let mut gone = gone.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(!gone
        .any(|path| Path::new(&top).join(String::from_utf8_lossy(path).as_ref()).symlink_metadata().is_ok()))
}
