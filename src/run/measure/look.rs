//! Looks at a working tree: which files differ from the commit, and which tree they are.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::file_identity::identity;
use super::unlisted::Searched;
use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::own::{is_of_criteria, is_own};
use crate::base::territory::ScopePath;
use crate::base::text::{hex, plural};
use crate::engine::changes::{EntryContent, KnownIndex, TreeEntry, TreeIds, TreePlace};
use crate::git::call::Call;
use crate::git::error::{Absent, GitError};
use crate::git::filters::Walk;
use crate::git::in_run::GitCalls;
use crate::git::own_index::OwnIndex;
use crate::git::raw_diff::Difference;
use crate::git::repository_paths::RepositoryPaths;
use crate::git::status::{FileStanding, StatusLine, Untracked};
use crate::git::tracked_files::TrackedFile;
use crate::git::{raw_diff, status, tracked_files};
use crate::journal::files::RunFiles;
use crate::judges::compare::is_by_name;
use crate::run::area::Area;
use crate::run::filtered;
use crate::run::look_error::LookError;
use crate::run::tree_survey::Surveyor;

/// How many untracked files are looked into, and how many bytes of them.
const MOST_UNTRACKED: usize = 10_000;
const MOST_BYTES: u64 = 256 << 20;

/// The longest untracked file whose content becomes part of a tree.
const LONGEST: u64 = 64 << 20;

/// Looks at the working tree of a run.
pub(super) struct Measurer<'m> {
    pub(super) git: GitCalls,
    pub(super) root: &'m Path,
    pub(super) area: &'m Area,
    pub(super) files: &'m RunFiles,
    /// Where trees are made, once there is one to make.
    pub(super) own: Option<OwnIndex>,
    /// The index as it was when the run began.
    pub(super) known_index: Option<&'m KnownIndex>,
}

/// The repository around a run.
#[derive(Clone)]
pub(super) struct SurroundingRepository {
    top: PathBuf,
    objects: PathBuf,
    index: PathBuf,
    commit: ObjectId,
    tree: ObjectId,
}

impl SurroundingRepository {
    /// The top of the working tree.
    pub(super) fn top(&self) -> &Path {
        &self.top
    }

    /// Where the repository has its objects.
    pub(super) fn objects(&self) -> &Path {
        &self.objects
    }

    /// Its index.
    pub(super) fn index(&self) -> &Path {
        &self.index
    }

    /// The commit that is checked out.
    pub(super) fn commit(&self) -> &ObjectId {
        &self.commit
    }
}

/// A working tree as it was found.
pub(super) struct Look {
    pub(super) top: PathBuf,
    pub(super) repository: SurroundingRepository,
    pub(super) ids: TreeIds,
    pub(super) entries: Vec<TreeEntry>,
    pub(super) unseen: Vec<String>,
    /// What cannot be told because of filters; it is unseen, too.
    pub(super) untold: Option<String>,
    pub(super) place: TreePlace,
    /// The files that git tracks, as it lists them.
    tracked: Vec<u8>,
    /// Whether there are more untracked files that are judges by their names than can be looked at.
    pub(super) are_judges_unseen: bool,
}

impl Look {
    /// Returns which of some files are in the tree.
    pub(super) fn held(&self, paths: &BTreeSet<String>) -> BTreeSet<String> {
        let by_bytes: BTreeMap<Vec<u8>, &String> =
            paths.iter().map(|path| (gitpath::to_bytes(path), path)).collect();
        // The list of git is read once for all of them, as it may be long.
        let tracked = tracked_files::read(&self.tracked).filter_map(|file| by_bytes.get(file.path).copied());
        let others = self.entries.iter().map(|entry| &entry.path).filter(|path| paths.contains(*path));
        tracked.chain(others).cloned().collect()
    }

    /// Tells whether a file, or something in a folder, is in the tree.
    pub(super) fn holds(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let is_it = |held: &str| path.is_empty() || held == path || held.starts_with(&below);
        tracked_files::read(&self.tracked).any(|file| is_it(&gitpath::to_text(file.path)))
            || self.entries.iter().any(|entry| is_it(&entry.path))
    }
}

/// Tracked files that git was told not to look at.
#[derive(Default)]
struct Flagged {
    /// They are there, and may be anything.
    present: Vec<Vec<u8>>,
    /// A digest of those that a sparse checkout leaves out.
    left_out: Option<String>,
}

/// Untracked files, by what becomes of them.
#[derive(Default)]
struct Others {
    /// They become part of the tree.
    hashed: Vec<Vec<u8>>,
    /// They are known by a digest.
    digested: Vec<TreeEntry>,
    unseen: Option<String>,
    are_judges_unseen: bool,
}

impl Measurer<'_> {
    pub(super) async fn place(&mut self) -> Result<SurroundingRepository, LookError> {
        let ask = RepositoryPaths::call(&["HEAD^{commit}", "HEAD^{tree}"]);
        let said = match self.git.run(self.root, &ask).await {
            Ok(said) => said,
            Err(GitError::NotThere(Absent::Repository, _)) => {
                return Err(LookError::unfit("there is no git repository"));
            }
            Err(why) => return Err(self.unless_empty(why).await),
        };
        let (RepositoryPaths { top, objects, index }, [commit, tree]) = RepositoryPaths::read(&said)?;
        let top = top
            .canonicalize()
            .map_err(|error| LookError::unfit(format!("cannot find {}: {error}", top.display())))?;
        Ok(SurroundingRepository { top, objects, index, commit, tree })
    }

    /// Says that there is no commit yet, where that is why git names none.
    async fn unless_empty(&mut self, why: GitError) -> LookError {
        let head = Call::new("rev-parse").with(&["--verify", "--quiet"]).revision("HEAD^{commit}");
        match self.git.run(self.root, &head).await {
            Err(error) if error.is_of_no_object() => LookError::unfit("there is no commit yet"),
            Ok(_) | Err(_) => why.into(),
        }
    }

    /// Looks at the working tree as it is.
    pub(super) async fn look(&mut self) -> Result<Look, LookError> {
        let walk = self.git.begin_walk(self.root).await?;
        self.look_from(walk).await
    }

    /// The same where the look for what is to be turned off has begun.
    pub(super) async fn look_from(&mut self, mut walk: Walk) -> Result<Look, LookError> {
        let mut for_walk = self.git.clone();
        let (place, walked) = tokio::join!(self.place(), for_walk.finish_walk(&mut walk));
        walked?;
        let place = place?;
        let repository = place.clone();
        let tracked = match walk.take_tracked() {
            Some(tracked) => tracked,
            None => self.git.run(&place.top, &tracked_files::call()).await?,
        };
        let mut git = self.git.looked(walk.filters());
        // Beside each other, for each of them walks through the whole tree.
        let (mut for_untracked, mut for_status, mut for_doubts) = (git.clone(), git.clone(), git.clone());
        let status = status::call(Untracked::LeftOut);
        let (printed, untracked, doubted) = tokio::join!(
            for_status.run(&place.top, &status),
            untracked(&mut for_untracked, self.area, &place.top),
            self.doubted(&mut for_doubts, &place, &tracked),
        );
        let (printed, mut untracked, doubted) = (printed?, untracked?, doubted?);
        let searched =
            Searched { top: &place.top, area: self.area, tracked: &tracked, untracked: &untracked };
        let unlisted = searched.unlisted(&mut git).await?;
        let flagged = flagged(&place.top, &tracked);
        let inside = self.inside(&place.top)?;
        let (_, mut lines) = status::read(&printed);
        let (_, doubted) = status::read(&doubted);
        let doubted_paths: BTreeSet<&[u8]> = doubted.iter().map(|line| line.path).collect();
        // What the index hides is added anew, as a line that says that it may be anything.
        lines.retain(|line| !doubted_paths.contains(line.path) || !line.is_of_a_file());
        lines.extend(doubted);
        // A file of ours that somebody has committed is work of the repository; that of the criteria stays ours.
        lines.retain(|line| {
            self.counts(&place.top, line.path) || (line.is_in_commit() && !is_of_criteria(line.path))
        });
        untracked.retain(|path| self.counts(&place.top, path));
        let untold = filtered::settle(&mut git, &place.top, &mut lines).await?;
        let others = self.others(&place.top, untracked, &lines).await?;
        let are_judges_unseen = others.are_judges_unseen;
        let mut digested = others.digested;
        digested.extend(unlisted);
        let mut raw = Vec::new();
        for path in untold.iter().flat_map(|untold| &untold.paths) {
            raw.push(self.raw(&place.top, path, true).await?);
        }
        let untold = untold.map(|untold| untold.sentence);
        let unseen: Vec<String> = others.unseen.into_iter().chain(untold.clone()).collect();
        for line in &lines {
            if line.standing == (FileStanding::Submodule { is_dirty: true }) {
                digested.push(self.repository(&place.top, line.path, true).await?);
            }
        }
        let tree_place = TreePlace { inside, left_out: flagged.left_out, untold: rest(&raw) };
        // Nothing differs: the tree is that of the commit, and no index has to be made.
        if lines.is_empty() && others.hashed.is_empty() && flagged.present.is_empty() {
            let (commit, tree) = (place.commit, place.tree);
            let rest = rest(raw.iter().chain(&digested));
            let ids = TreeIds { commit, tree: tree.clone(), index: Some(tree), rest };
            let (top, entries) = (place.top, digested);
            let place = tree_place;
            return Ok(Look {
                top,
                repository,
                ids,
                entries,
                unseen,
                untold,
                place,
                tracked,
                are_judges_unseen,
            });
        }
        let own = self.own(&place)?;
        let write_tree = Call::new("write-tree");
        // Fails while a merge is not finished.
        let index = git.id_in(&own, &place.top, &write_tree).await.ok();
        let files =
            lines.iter().filter(|line| is_to_be_hashed(line, &place.top)).map(|line| line.path.to_vec());
        let seen: Vec<u8> =
            flagged.present.iter().flat_map(|path| [path.as_slice(), b"\0"].concat()).collect();
        // A flag keeps `update-index` from looking, so both are cleared in our index first.
        for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
            if !seen.is_empty() {
                let clear = Call::new("update-index").with(&["-z", flag, "--stdin"]);
                git.run_in(&own, &place.top, &clear, Some(seen.clone())).await?;
            }
        }
        let files = files.chain(flagged.present.iter().cloned()).chain(others.hashed.iter().cloned());
        let (gone, files): (Vec<_>, Vec<_>) = files.partition(|path| is_behind_a_link(path, &place.top));
        let list =
            |files: Vec<Vec<u8>>| files.into_iter().flat_map(|path| [path, vec![0]].concat()).collect();
        // What the index says of these is not believed; what it does not have is read.
        let doubted = lines.iter().map(|line| line.path).filter(|path| doubted_paths.contains(path));
        let again = flagged.present.iter().map(Vec::as_slice).chain(doubted);
        let gone: Vec<Vec<u8>> = gone.into_iter().chain(again.map(<[u8]>::to_vec)).collect();
        if !gone.is_empty() {
            let remove = Call::new("update-index").with(&["-z", "--force-remove", "--stdin"]);
            git.run_in(&own, &place.top, &remove, Some(list(gone))).await?;
        }
        // `--replace`, since a file may stand where the index has a directory.
        let add = Call::new("update-index").with(&["-z", "--add", "--remove", "--replace", "--stdin"]);
        git.run_in(&own, &place.top, &add, Some(list(files))).await?;
        let tree = git.id_in(&own, &place.top, &write_tree).await?;
        let diff = Call::new("diff-index").with(&["--cached", "-z", "--raw", "--no-renames", "--no-abbrev"]);
        let printed = git.run_in(&own, &place.top, &diff.id(&place.commit), None).await?;
        let differences = raw_diff::read(&printed)?;
        for path in not_taken(&mut git, &own, &place.top, &others.hashed, &differences).await? {
            digested.push(self.raw(&place.top, &path, false).await?);
        }
        self.own = Some(own);
        let rest = rest(raw.iter().chain(&digested));
        let changed = lines.iter().map(|line| line.path).chain(flagged.present.iter().map(Vec::as_slice));
        let changed: BTreeSet<&[u8]> = changed.collect();
        let mut entries: Vec<TreeEntry> = differences
            .into_iter()
            .map(|difference| TreeEntry {
                path: gitpath::to_text(&difference.path),
                tracked: changed.contains(difference.path.as_slice()),
                content: match difference.new {
                    Some((mode, id)) => EntryContent::Object { mode, id },
                    None => EntryContent::Gone,
                },
            })
            .collect();
        entries.extend(digested);
        let ids = TreeIds { commit: place.commit, tree, index, rest };
        let (top, place) = (place.top, tree_place);
        Ok(Look { top, repository, ids, entries, unseen, untold, place, tracked, are_judges_unseen })
    }

    /// Returns where the run stands in the working tree.
    pub(super) fn inside(&self, top: &Path) -> Result<String, LookError> {
        let root = self
            .root
            .canonicalize()
            .map_err(|error| LookError::unfit(format!("cannot find {}: {error}", self.root.display())))?;
        let inside = root.strip_prefix(top).map_err(|_| {
            LookError::unfit(format!(
                "the working tree of the repository is {}, and the run is not in it",
                top.display()
            ))
        })?;
        Ok(gitpath::to_text(inside.as_os_str().as_bytes()))
    }

    /// Describes a file by the bytes that it has, where it is unknown what git would make of them.
    async fn raw(&mut self, top: &Path, path: &[u8], tracked: bool) -> Result<TreeEntry, LookError> {
        let mut digest = Sha256::new();
        let place = top.join(OsStr::from_bytes(path));
        match crate::files::read::open(&place) {
            Ok(mut file) => self.git.read(&mut file, |piece| digest.update(piece)).await?,
            // That it cannot be read is part of what is known of it, and so is where a link leads.
            Err(error) => {
                digest.update(error.to_string());
                digest.update(place.read_link().unwrap_or_default().as_os_str().as_bytes());
            }
        }
        let content = EntryContent::Digest(hex(&digest.finalize()));
        Ok(TreeEntry { path: gitpath::to_text(path), tracked, content })
    }

    /// Tells whether a path can be work of the run.
    fn counts(&self, top: &Path, path: &[u8]) -> bool {
        // What ll-loop writes is no work, wherever it lies.
        !is_own(path) && !self.area.is_own(&top.join(OsStr::from_bytes(path)))
    }

    /// Sorts untracked files by what becomes of them.
    async fn others(
        &mut self,
        top: &Path,
        paths: BTreeSet<Vec<u8>>,
        tracked: &[StatusLine<'_>],
    ) -> Result<Others, LookError> {
        let tracked: BTreeSet<&[u8]> = tracked.iter().map(|line| line.path).collect();
        let mut others = Others::default();
        // The bound is for all of them, so that many large files end too.
        let mut bytes = 0;
        // A file that only the index no longer has is tracked by the commit.
        let mut paths: Vec<Vec<u8>> =
            paths.into_iter().filter(|path| !tracked.contains(path.as_slice())).collect();
        let over = paths.len().saturating_sub(MOST_UNTRACKED);
        if over > 0 {
            // However many others there are, what decides what checks say is looked at.
            paths.sort_by_cached_key(|path| !is_by_name(&gitpath::to_text(path)));
            let first = paths.get(MOST_UNTRACKED).map(|path| gitpath::to_text(path));
            others.are_judges_unseen = first.is_some_and(|path| is_by_name(&path));
        }
        if over > 0 {
            others.unseen = Some(format!(
                "{} of the scope {} not compared: there are more than {MOST_UNTRACKED}, and `.gitignore` names none of them",
                plural(over as u64, "untracked file"),
                if over == 1 { "is" } else { "are" },
            ));
        }
        for path in paths.into_iter().take(MOST_UNTRACKED) {
            if path.ends_with(b"/") {
                others.digested.push(self.repository(top, &path, false).await?);
                continue;
            }
            // It vanished since it was listed, as if it had not been there.
            let Ok(metadata) = top.join(OsStr::from_bytes(&path)).symlink_metadata() else { continue };
            if metadata.len() > LONGEST || bytes + metadata.len() > MOST_BYTES {
                others.digested.push(TreeEntry {
                    path: gitpath::to_text(&path),
                    tracked: false,
                    content: EntryContent::Digest(identity(&metadata)),
                });
                continue;
            }
            bytes += metadata.len();
            others.hashed.push(path);
        }
        Ok(others)
    }

    /// Describes a repository inside of this one by a digest.
    async fn repository(&self, top: &Path, path: &[u8], tracked: bool) -> Result<TreeEntry, LookError> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let directory = top.join(OsStr::from_bytes(path));
        let digest =
            Surveyor { git: self.git.clone() }.survey(&directory, &[]).await.map(|survey| survey.digest);
        // One without a commit cannot be described, and is there.
        let digest = digest.unwrap_or_else(|why| format!("unknown: {why}"));
        Ok(TreeEntry { path: gitpath::to_text(path), tracked, content: EntryContent::Digest(digest) })
    }

    /// Makes an index of our own, as the repository's is now.
    pub(super) fn own(&mut self, place: &SurroundingRepository) -> Result<OwnIndex, LookError> {
        Ok(OwnIndex::copy(&place.index, &place.objects, &self.files.objects())?)
    }
}

/// Returns the files that git did not take into an index, whose names no tree can hold, such as `a/git~1/config`.
async fn not_taken(
    git: &mut GitCalls,
    own: &OwnIndex,
    top: &Path,
    added: &[Vec<u8>],
    differences: &[Difference],
) -> Result<Vec<Vec<u8>>, LookError> {
    let taken: BTreeSet<&[u8]> = differences.iter().map(|difference| difference.path.as_slice()).collect();
    let is_there = |path: &[u8]| top.join(OsStr::from_bytes(path)).symlink_metadata().is_ok();
    let mut missing: Vec<Vec<u8>> =
        added.iter().filter(|path| !taken.contains(path.as_slice()) && is_there(path)).cloned().collect();
    if !missing.is_empty() {
        // One that is as in the commit is no difference.
        let held = git.run_in(own, top, &Call::new("ls-files").with(&["-z"]), None).await?;
        let held: BTreeSet<&[u8]> = held.split(|byte| *byte == 0).collect();
        missing.retain(|path| !held.contains(path.as_slice()));
    }
    Ok(missing)
}

/// Lists the untracked files of the scope, without those that are ignored.
async fn untracked(git: &mut GitCalls, area: &Area, top: &Path) -> Result<BTreeSet<Vec<u8>>, LookError> {
    let here = ScopePath::from(top.to_string_lossy().into_owned());
    let scope = area.territory.paths.iter();
    let scope = scope.filter(|path| here.holds(path) || path.holds(&here));
    let scope: Vec<String> =
        // A scope above the repository is all of it; one below is named from its top.
        scope.map(|path| if path.holds(&here) { ".".to_owned() } else { path.seen_from(&here) }).collect();
    if scope.is_empty() {
        return Ok(BTreeSet::new());
    }
    let list = Call::new("ls-files").with(&["--others", "--exclude-standard", "-z"]).paths(scope).literal();
    let printed = git.run(top, &list).await?;
    Ok(printed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}

/// Tells whether a sparse checkout leaves a file out, and it is not there: then it is as the index has it.
pub(super) fn is_left_out(top: &Path, file: &TrackedFile<'_>) -> bool {
    file.is_sparse() && top.join(OsStr::from_bytes(file.path)).symlink_metadata().is_err()
}

/// Looks for files that git was told not to look at.
fn flagged(top: &Path, tracked: &[u8]) -> Flagged {
    let mut flagged = Flagged::default();
    let mut left_out = Sha256::new();
    let mut is_whole = true;
    for file in tracked_files::read(tracked).filter(|file| !file.is_seen()) {
        if is_left_out(top, &file) {
            left_out.update(file.path);
            left_out.update([0]);
            is_whole = false;
        } else {
            flagged.present.push(file.path.to_vec());
        }
    }
    flagged.left_out = (!is_whole).then(|| hex(&left_out.finalize()));
    flagged
}

/// Returns a digest of everything that no tree can hold.
fn rest<'e>(digested: impl IntoIterator<Item = &'e TreeEntry>) -> Option<String> {
    let mut digest = Sha256::new();
    let mut parts: Vec<(&str, &str)> = digested
        .into_iter()
        .filter_map(|entry| match &entry.content {
            EntryContent::Digest(content) => Some((entry.path.as_str(), content.as_str())),
            EntryContent::Gone | EntryContent::Object { .. } => None,
        })
        .collect();
    // In the order of paths, so that the digest does not depend on the order of calls.
    parts.sort_unstable();
    for (path, content) in &parts {
        for part in [path, content] {
            // With its length in front, or two lists could read as the same.
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
    }
    (!parts.is_empty()).then(|| hex(&digest.finalize()))
}

/// Tells whether a file has to be read for its id to be known.
fn is_to_be_hashed(line: &StatusLine<'_>, top: &Path) -> bool {
    match line.standing {
        // One that is there although the index no longer has it is still a file of the commit.
        FileStanding::Tracked { unstaged: false, is_removed: true } => {
            let there = top.join(OsStr::from_bytes(line.path)).symlink_metadata();
            there.is_ok_and(|metadata| !metadata.is_dir())
        }
        FileStanding::Tracked { unstaged, .. } => unstaged,
        FileStanding::Submodule { .. } | FileStanding::Unmerged => true,
        FileStanding::Untracked => false,
    }
}

/// Tells whether a link stands in the place of a directory of a path: for git, nothing is there any more.
fn is_behind_a_link(path: &[u8], top: &Path) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    let mut folders = ends.map(|end| top.join(OsStr::from_bytes(&path[..end])));
    folders.any(|folder| folder.is_symlink())
}
