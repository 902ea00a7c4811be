//! The tree snapshots of a run in a bundle, as one git bundle; and the way back. What may not leave the machine, and what
//! may not come from elsewhere, is left out here and refused there, as for the working tree itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use tempfile::TempDir;

use super::brought::{Protected, unfit};
use super::manifest::{LeftOut, SavedSnapshots, SnapshotName};
use super::tree::{self, MOST_BYTES};
use crate::base::object::ObjectId;
use crate::base::redact::Redactor;
use crate::files::{read, transient};
use crate::git::call::{Call, alternate};
use crate::git::error::TreeError;
use crate::git::repository_paths::RepositoryPaths;
use crate::git::runner::Git;

/// The most trees that are carried. Each of them is looked at by itself.
const MOST_TREES: usize = 300;

/// Where the file has them.
const REFS: &str = "refs/ll-loop/snap/";

/// The snapshots of a run that are to be kept, in any order.
pub struct SnapshotOptions<'s> {
    /// Git, in the directory of the run.
    pub git: &'s Git,
    /// The commit that every checkout has.
    pub base: &'s ObjectId,
    /// The snapshots.
    pub snapshots: &'s BTreeMap<SnapshotName, ObjectId>,
    /// The files of the loop, which come from every checkout itself.
    pub definition: &'s [PathBuf],
    /// What may not leave the machine.
    pub redactor: &'s Redactor,
}

/// Keeps snapshots: their objects go into the file `target`. Returns what the manifest says about them, if there are
/// any, and what is left out.
pub(super) fn keep(
    wanted: &SnapshotOptions<'_>,
    target: &Path,
) -> Result<(Option<SavedSnapshots>, Vec<LeftOut>), TreeError> {
    if wanted.snapshots.is_empty() {
        return Ok((None, Vec::new()));
    }
    let mut packer = Packer::new(wanted)?;
    let mut refs = packer.fit_all();
    // One look for all of them is the usual case; only where it finds something is each looked at
    // alone.
    if packer.hold_secret(refs.values())? {
        let distinct: BTreeSet<ObjectId> = refs.values().cloned().collect();
        let mut secret = BTreeSet::new();
        for commit in distinct {
            if packer.hold_secret([&commit])? {
                secret.insert(commit);
            }
        }
        for (name, _) in refs.extract_if(.., |_, commit| secret.contains(commit)) {
            packer.leave_out(&name, "it holds a secret");
        }
    }
    if refs.is_empty() {
        return Ok((None, packer.left_out));
    }
    let saved = SavedSnapshots { base: wanted.base.clone(), refs };
    if packer.write(&saved, target)? > MOST_BYTES {
        fs::remove_file(target)?;
        let why = format!("they take more than {} MiB", MOST_BYTES >> 20);
        packer.left_out.push(LeftOut::new(REFS, &why));
        return Ok((None, packer.left_out));
    }
    Ok((Some(saved), packer.left_out))
}

struct Packer<'s> {
    wanted: &'s SnapshotOptions<'s>,
    /// With an index and objects of our own.
    git: Git,
    protected: Protected,
    _place: TempDir,
    left_out: Vec<LeftOut>,
}

impl<'s> Packer<'s> {
    fn new(wanted: &'s SnapshotOptions<'s>) -> Result<Self, TreeError> {
        let printed = wanted.git.bytes(&RepositoryPaths::call(&[]), &[])?;
        let (RepositoryPaths { top, objects, .. }, []) = RepositoryPaths::read(&printed)?;
        let git = wanted.git.at(&top);
        let place = transient::directory("ll-snapshots-")?;
        let own = place.path().join("objects");
        fs::create_dir(&own)?;
        let git = git
            .with("GIT_INDEX_FILE", place.path().join("index"))
            .with("GIT_OBJECT_DIRECTORY", own)
            .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&objects.to_string_lossy()));
        let protected = Protected::new(&top, wanted.definition);
        Ok(Self { wanted, git, protected, _place: place, left_out: Vec::new() })
    }

    fn leave_out(&mut self, name: &SnapshotName, why: &str) {
        self.left_out.push(LeftOut::new(&format!("{REFS}{name}"), why));
    }

    /// Returns the snapshots as they may be carried, each tree looked at once.
    fn fit_all(&mut self) -> BTreeMap<SnapshotName, ObjectId> {
        let mut known: BTreeMap<ObjectId, Result<ObjectId, TreeError>> = BTreeMap::new();
        let mut refs = BTreeMap::new();
        let wanted = self.wanted;
        // The last ones are the nearest to the end, which people ask about.
        for (name, commit) in wanted.snapshots.iter().rev() {
            if !known.contains_key(commit) {
                let fit = if known.len() < MOST_TREES {
                    self.fit(commit)
                } else {
                    Err(TreeError::unfit(format!("there are more than {MOST_TREES} trees")))
                };
                known.insert(commit.clone(), fit);
            }
            match known.get(commit) {
                Some(Ok(fit)) => drop(refs.insert(name.clone(), fit.clone())),
                Some(Err(why)) => self.leave_out(name, &why.to_string()),
                None => {}
            }
        }
        refs
    }

    /// Returns the snapshot without the changes that no bundle may bring.
    fn fit(&mut self, commit: &ObjectId) -> Result<ObjectId, TreeError> {
        let parent = parent_of(&self.git, commit)?;
        stands_on(&self.git, self.wanted.base, &parent)?;
        let found = unfit(&self.git, &parent, commit, &self.protected)?;
        if found.is_empty() {
            return Ok(commit.clone());
        }
        self.git.line(&Call::new("read-tree").with(&["--reset"]).id(commit))?;
        let mut lines = Vec::new();
        for unfit in found {
            lines.extend(unfit.change.taken_back());
            let left = LeftOut::new(&unfit.change.shown(), unfit.why);
            if !self.left_out.contains(&left) {
                self.left_out.push(left);
            }
        }
        self.git.bytes(&Call::new("update-index").with(&["-z", "--index-info"]), &lines)?;
        let tree = self.git.id(&Call::new("write-tree"))?;
        tree::commit(&self.git, &parent, &tree, "The working tree before a step of a run")
    }

    fn hold_secret<'c>(&self, commits: impl IntoIterator<Item = &'c ObjectId>) -> Result<bool, TreeError> {
        // Snapshots of steps that changed nothing are the same commit.
        let tips: BTreeSet<&ObjectId> = commits.into_iter().collect();
        tree::hold_secret(&self.git, self.wanted.redactor, &tips, self.wanted.base)
    }

    /// Writes a git bundle: a header, and a pack of what a checkout of the base does not have.
    fn write(&self, saved: &SavedSnapshots, target: &Path) -> Result<u64, TreeError> {
        let mut file = File::create(target)?;
        file.write_all(header(saved).as_bytes())?;
        let tips: BTreeSet<&ObjectId> = saved.refs.values().collect();
        let tips: String =
            tips.iter().map(|tip| format!("{tip}\n")).chain([format!("^{}\n", saved.base)]).collect();
        let pack =
            Call::new("pack-objects").with(&["--revs", "--thin", "--delta-base-offset", "--stdout", "-q"]);
        self.git.write_to(&pack, tips.as_bytes(), file)?;
        Ok(fs::metadata(target)?.len())
    }
}

/// Returns the one parent of a snapshot.
fn parent_of(git: &Git, commit: &ObjectId) -> Result<ObjectId, TreeError> {
    let line = git.line(&Call::new("rev-list").with(&["--parents", "--max-count=1"]).id(commit))?;
    match line.split(' ').collect::<Vec<_>>().as_slice() {
        [own, parent] if *own == commit.as_str() => ObjectId::parse(parent).map_err(TreeError::from),
        _ => Err(TreeError::unfit("it does not stand on one commit")),
    }
}

/// Refuses a commit that does not go on from the one that every checkout has.
fn stands_on(git: &Git, base: &ObjectId, commit: &ObjectId) -> Result<(), TreeError> {
    let ancestor = Call::new("merge-base").with(&["--is-ancestor"]).id(base).id(commit);
    if base == commit || git.line(&ancestor).is_ok() {
        Ok(())
    } else {
        Err(TreeError::unfit("it does not go on from the commit where the run began"))
    }
}

/// Writes what stands before the objects.
fn header(saved: &SavedSnapshots) -> String {
    let version = match saved.base.as_str().len() {
        40 => "# v2 git bundle\n",
        _ => "# v3 git bundle\n@object-format=sha256\n",
    };
    let mut header = format!("{version}-{} where the run began\n", saved.base);
    for (name, commit) in &saved.refs {
        let _ = writeln!(header, "{commit} {REFS}{name}");
    }
    header.push('\n');
    header
}

/// Opens the file at its pack. Nothing else may stand before it than what the manifest says.
fn pack(path: &Path, saved: &SavedSnapshots) -> Result<File, TreeError> {
    let expected = header(saved);
    let mut file = read::open(path).map_err(io::Error::from)?;
    let mut start = Vec::new();
    (&mut file).take(expected.len() as u64 + 4).read_to_end(&mut start)?;
    if start.strip_prefix(expected.as_bytes()) != Some(b"PACK") {
        return Err(TreeError::unfit("its snapshots are not the ones that its manifest names"));
    }
    file.seek(SeekFrom::Start(expected.len() as u64))?;
    Ok(file)
}

/// Takes the objects of snapshots into a repository, once each of them was looked at. `definition` are the files of the
/// loop, which no bundle brings.
pub fn take(git: &Git, saved: &SavedSnapshots, path: &Path, definition: &[PathBuf]) -> Result<(), TreeError> {
    let top = PathBuf::from(git.line(&Call::new("rev-parse").with(&["--show-toplevel"]))?);
    let git = git.at(&top);
    if git.line(&Call::new("cat-file").with(&["-e"]).ids("", &saved.base, "^{commit}")).is_err() {
        return Err(TreeError::unfit(format!(
            "the run began at commit {}, which is not in this clone",
            saved.base
        )));
    }
    let objects = top.join(git.line(&Call::new("rev-parse").with(&["--git-path", "objects"]))?);
    let place = transient::directory("ll-objects-")?;
    let apart = git
        .with("GIT_OBJECT_DIRECTORY", place.path())
        .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&objects.to_string_lossy()));
    let index = Call::new("index-pack").with(&["--stdin", "--fix-thin", "--strict"]);
    apart.read_from(&index, pack(path, saved)?)?;
    let protected = Protected::new(&top, definition);
    let distinct: BTreeSet<&ObjectId> = saved.refs.values().collect();
    if distinct.len() > MOST_TREES {
        return Err(TreeError::unfit(format!("there are more than {MOST_TREES} trees")));
    }
    let mut parents = BTreeSet::new();
    for commit in distinct {
        let parent = parent_of(&apart, commit)?;
        refuse(&apart, &parent, commit, &protected)?;
        parents.insert(parent);
    }
    for parent in &parents {
        stands_on(&apart, &saved.base, parent)?;
        // The parent is a commit of the run, and so as foreign as the snapshot itself.
        refuse(&apart, &saved.base, parent, &protected)?;
    }
    git.read_from(&index, pack(path, saved)?)?;
    Ok(())
}

fn refuse(git: &Git, from: &ObjectId, to: &ObjectId, protected: &Protected) -> Result<(), TreeError> {
    match unfit(git, from, to, protected)?.first() {
        Some(found) => {
            Err(TreeError::unfit(format!("a snapshot changes `{}`: {}", found.change.shown(), found.why)))
        }
        None => Ok(()),
    }
}
