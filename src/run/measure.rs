//! Measures the working tree on which a run begins and the one on which it ends, and what lies between: the files that
//! changed, the commits that were made, and a patch. Nothing in the repository is changed: the index is a copy, and new
//! objects lie beside the journal.
//!
//! Which files differ from the commit is for git to say, by the index as it stands, because only that one tells git
//! which times it may trust. The copy keeps its time for the same reason.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::own::is_own;
use crate::base::redact::Redactor;
use crate::base::territory::ScopePath;
use crate::base::text::{hex, one_line, plural};
use crate::engine::changes::{
    ChangeKind, ChangedFile, Changes, EntryContent, FileMode, KnownStart, MadeCommit, StartTree, TreeChanges,
    TreeEntry, TreeIds,
};
use crate::files::secret::holds_secret;
use crate::journal::claim;
use crate::journal::files::RunFiles;
use crate::process::git::Call;
use crate::process::signal::Cancel;

use super::area::Area;
use super::diff::{self, Difference};
use super::filtered;
use super::git::{GitCalls, OwnIndex};
use super::status::{self, FileStanding, StatusLine, Untracked};
use super::survey::Surveyor;
use super::ticking::while_ticking;
use super::world::World;

/// The longest time for a measurement.
const LIMIT: Duration = Duration::from_mins(5);

/// The same where somebody wants the run to end: GitHub waits 10 seconds before it kills.
const SHORT_LIMIT: Duration = Duration::from_secs(3);

/// How many untracked files are looked into, and how many bytes of them.
const MOST_UNTRACKED: usize = 10_000;
const MOST_BYTES: u64 = 256 << 20;

/// The longest untracked file whose content becomes part of a tree.
const LONGEST: u64 = 64 << 20;

/// How many files, commits and unseen things are listed.
const MOST_LISTED: usize = 2000;
const MOST_COMMITS: usize = 100;

const TOO_LARGE: &str = "it is too large";
const A_REPOSITORY: &str = "it is a repository of its own";
const SECRET: &str = "it holds a secret";

/// Measures the working tree on which a run begins.
pub async fn start(
    root: &Path,
    area: &Area,
    files: &RunFiles,
    (env, cancel): (BTreeMap<String, String>, Cancel),
) -> StartTree {
    let git = GitCalls::new(env, cancel, LIMIT);
    let mut measurer = Measurer { git, root, area, files, own: None };
    match Box::pin(measurer.look()).await {
        Ok(found) => {
            let before = found.entries.iter().filter(|entry| entry.tracked);
            let before = before.take(MOST_LISTED).map(|entry| changed_before(entry, &found.top)).collect();
            let Look { ids, entries, unseen, .. } = found;
            StartTree::Known(Box::new(KnownStart { ids, stands_for: None, entries, before, unseen }))
        }
        Err(unknown) => StartTree::Unknown { unknown },
    }
}

/// Compares the working tree with the one on which the run began, and writes the patch.
pub(super) async fn end(start: &KnownStart, world: &mut World) -> Changes {
    // What is wanted now is the end of the run, and this belongs to it.
    let (_never, uncancelled) = Cancel::channel();
    let limit = if world.cancel.signal().is_some() { SHORT_LIMIT } else { LIMIT };
    let git = GitCalls::new(world.env.clone(), uncancelled, limit);
    let (root, files, area) = (world.root.clone(), world.files.clone(), world.area.clone());
    let redactor = world.redactor.clone();
    let sinks = RefCell::new(&mut world.sinks);
    let mut measurer = Measurer { git, root: &root, area: &area, files: &files, own: None };
    let compared = while_ticking(&sinks, measurer.compare(start, &redactor)).await;
    match compared {
        Ok(changes) => Changes::Known(Box::new(changes)),
        Err(unknown) => Changes::Unknown { unknown },
    }
}

struct Measurer<'m> {
    git: GitCalls,
    root: &'m Path,
    area: &'m Area,
    files: &'m RunFiles,
    /// Where trees are made, once there is one to make.
    own: Option<OwnIndex>,
}

/// The repository around a run.
struct Place {
    top: PathBuf,
    objects: PathBuf,
    index: PathBuf,
    commit: ObjectId,
    tree: ObjectId,
}

/// A working tree as it was found.
struct Look {
    top: PathBuf,
    ids: TreeIds,
    entries: Vec<TreeEntry>,
    unseen: Vec<String>,
}

/// Untracked files, by what becomes of them.
#[derive(Default)]
struct Others {
    /// They become part of the tree.
    hashed: Vec<Vec<u8>>,
    /// They are known by a digest.
    digested: Vec<TreeEntry>,
    unseen: Option<String>,
}

impl Measurer<'_> {
    async fn place(&mut self) -> Result<Place, String> {
        let ask = Call::new("rev-parse").with(&[
            "--path-format=absolute",
            "--show-toplevel",
            "--git-path",
            "objects",
            "--git-path",
            "index",
            "HEAD^{commit}",
            "HEAD^{tree}",
        ]);
        let said = self.git.list(self.root, &ask).await.map_err(|why| {
            let known = [
                ("HEAD^{commit}", "there is no commit yet"),
                ("not a git repository", "there is no git repository"),
            ];
            let found = known.into_iter().find(|(part, _)| why.contains(part));
            found.map_or(why, |(_, said)| said.to_owned())
        })?;
        let lines: Vec<&[u8]> = said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        let [top, objects, index, commit, tree] = lines.as_slice() else {
            return Err("git names the repository in a way that cannot be read".to_owned());
        };
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let id = |bytes: &[u8]| {
            ObjectId::parse(&String::from_utf8_lossy(bytes)).map_err(|error| error.to_string())
        };
        let top = path(top);
        let top = top.canonicalize().map_err(|error| format!("cannot find {}: {error}", top.display()))?;
        Ok(Place { top, objects: path(objects), index: path(index), commit: id(commit)?, tree: id(tree)? })
    }

    /// Looks at the working tree as it is.
    async fn look(&mut self) -> Result<Look, String> {
        let place = self.place().await?;
        // Beside each other, for each of them walks through the whole tree.
        let (mut for_untracked, mut for_hidden) = (self.git.clone(), self.git.clone());
        let status = status::call(Untracked::LeftOut);
        let (printed, untracked, hidden) = tokio::join!(
            self.git.run(&place.top, &status),
            untracked(&mut for_untracked, self.area, &place.top),
            hidden(&mut for_hidden, &place.top),
        );
        let (printed, mut untracked, hidden) = (printed?, untracked?, hidden?);
        let (_, mut lines) = status::read(&printed);
        lines.retain(|line| self.counts(&place.top, line.path));
        untracked.retain(|path| self.counts(&place.top, path));
        let untold = filtered::settle(&mut self.git, &place.top, &mut lines).await?;
        let others = self.others(&place.top, untracked, &lines).await?;
        let unseen: Vec<String> = others.unseen.into_iter().chain(hidden).chain(untold).collect();
        let mut digested = others.digested;
        for line in &lines {
            if line.standing == (FileStanding::Submodule { is_dirty: true }) {
                digested.push(self.repository(&place.top, line.path, true).await?);
            }
        }
        if lines.is_empty() && others.hashed.is_empty() {
            let ids = TreeIds { commit: place.commit, tree: place.tree.clone(), index: Some(place.tree) };
            return Ok(Look { top: place.top, ids, entries: digested, unseen });
        }
        let own = self.own(&place)?;
        let write_tree = Call::new("write-tree");
        // Fails while a merge is not finished.
        let index = self.git.id_in(&own, &place.top, &write_tree).await.ok();
        let files =
            lines.iter().filter(|line| is_to_be_hashed(line, &place.top)).map(|line| line.path.to_vec());
        let files: Vec<u8> = files.chain(others.hashed).flat_map(|path| [path, vec![0]].concat()).collect();
        let add = Call::new("update-index").with(&["-z", "--add", "--remove", "--replace", "--stdin"]);
        self.git.run_in(&own, &place.top, &add, Some(files)).await?;
        let tree = self.git.id_in(&own, &place.top, &write_tree).await?;
        let raw = Call::new("diff-index").with(&["--cached", "-z", "--raw", "--no-renames", "--no-abbrev"]);
        let raw = self.git.run_in(&own, &place.top, &raw.id(&place.commit), None).await?;
        self.own = Some(own);
        let tracked: BTreeSet<&[u8]> = lines.iter().map(|line| line.path).collect();
        let mut entries: Vec<TreeEntry> = diff::read(&raw)?
            .into_iter()
            .map(|difference| TreeEntry {
                path: gitpath::to_text(&difference.path),
                tracked: tracked.contains(difference.path.as_slice()),
                content: match difference.new {
                    Some((mode, id)) => EntryContent::Object { mode, id },
                    None => EntryContent::Gone,
                },
            })
            .collect();
        entries.extend(digested);
        let ids = TreeIds { commit: place.commit, tree, index };
        Ok(Look { top: place.top, ids, entries, unseen })
    }

    /// Tells whether a path can be work of the run.
    fn counts(&self, top: &Path, path: &[u8]) -> bool {
        !is_own(path) && !self.area.is_own(&top.join(OsStr::from_bytes(path)))
    }

    /// Sorts untracked files by what becomes of them.
    async fn others(
        &mut self,
        top: &Path,
        paths: BTreeSet<Vec<u8>>,
        tracked: &[StatusLine<'_>],
    ) -> Result<Others, String> {
        let tracked: BTreeSet<&[u8]> = tracked.iter().map(|line| line.path).collect();
        let mut others = Others::default();
        let mut bytes = 0;
        // A file that only the index no longer has is tracked by the commit.
        let paths: Vec<Vec<u8>> =
            paths.into_iter().filter(|path| !tracked.contains(path.as_slice())).collect();
        let over = paths.len().saturating_sub(MOST_UNTRACKED);
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
    async fn repository(&self, top: &Path, path: &[u8], tracked: bool) -> Result<TreeEntry, String> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let directory = top.join(OsStr::from_bytes(path));
        let digest =
            Surveyor { git: self.git.clone() }.survey(&directory, &[]).await.map(|survey| survey.digest);
        // One without a commit cannot be described, and is there.
        let digest = digest.unwrap_or_else(|why| format!("unknown: {why}"));
        Ok(TreeEntry { path: gitpath::to_text(path), tracked, content: EntryContent::Digest(digest) })
    }

    fn own(&mut self, place: &Place) -> Result<OwnIndex, String> {
        OwnIndex::copy(&place.index, &place.objects, &self.files.objects())
    }

    /// Compares the working tree with the one on which the run began.
    async fn compare(&mut self, start: &KnownStart, redactor: &Redactor) -> Result<TreeChanges, String> {
        let look = Box::pin(self.look()).await?;
        let mut files = Vec::new();
        let own = if look.ids.tree == start.ids.tree {
            None
        } else {
            let place = self.place().await?;
            let own = match self.own.take() {
                Some(own) => own,
                None => self.own(&place)?,
            };
            self.make(&own, &look.top, start).await?;
            files = self.differences(&own, start, &look).await?;
            Some(own)
        };
        digests(start, &look, &mut files);
        self.attribute(&look.top, &mut files);
        let is_committed = look.entries.iter().all(|entry| !entry.tracked);
        let commits = self.commits(&look.top, &start.ids.commit, &look.ids.commit).await?;
        for file in files.iter_mut().filter(|file| file.not_in_patch.is_none() && file.size.is_some()) {
            let path = look.top.join(OsStr::from_bytes(&gitpath::to_bytes(&file.path)));
            if path.is_file() && !path.is_symlink() && holds_secret(redactor, &path).unwrap_or(true) {
                file.not_in_patch = Some(SECRET.to_owned());
            }
        }
        let patch = match &own {
            Some(own) => self.patch(own, start, &look, &files, redactor).await,
            None => Ok(None),
        };
        let (patch, no_patch) = match patch {
            Ok(patch) => (patch, None),
            Err(why) => (None, Some(one_line(&why, 300))),
        };
        files.sort_by(|one, other| (!one.tracked, &one.path).cmp(&(!other.tracked, &other.path)));
        let more = files.len().saturating_sub(MOST_LISTED) as u64;
        files.truncate(MOST_LISTED);
        let mut unseen = look.unseen;
        unseen
            .extend(start.unseen.iter().filter(|known| !unseen.contains(known)).cloned().collect::<Vec<_>>());
        Ok(TreeChanges {
            as_committed: is_committed && start.ids.commit == look.ids.commit,
            start: start.ids.clone(),
            end: look.ids,
            files,
            more,
            commits,
            before: start.before.clone(),
            patch,
            no_patch,
            unseen,
        })
    }

    /// Makes the tree on which the run began once more, which no commit has where files differed from it.
    async fn make(&mut self, own: &OwnIndex, top: &Path, start: &KnownStart) -> Result<(), String> {
        let lines: Vec<u8> = start.entries.iter().filter_map(index_line).flatten().collect();
        if lines.is_empty() {
            return Ok(());
        }
        let scratch = own.another()?;
        let read = Call::new("read-tree").id(&start.ids.commit);
        self.git.run_in(&scratch, top, &read, None).await?;
        let add = Call::new("update-index").with(&["-z", "--index-info"]);
        self.git.run_in(&scratch, top, &add, Some(lines)).await?;
        let tree = self.git.id_in(&scratch, top, &Call::new("write-tree").with(&["--missing-ok"])).await?;
        if tree == start.ids.tree {
            Ok(())
        } else {
            Err("the tree on which the run began cannot be made again".to_owned())
        }
    }

    async fn differences(
        &mut self,
        own: &OwnIndex,
        start: &KnownStart,
        look: &Look,
    ) -> Result<Vec<ChangedFile>, String> {
        const RAW: [&str; 6] = ["-r", "-z", "--raw", "--numstat", "--no-abbrev", "--ignore-submodules=none"];
        let call = |renames: &'static str| {
            Call::new("diff-tree").with(&RAW).with(&[renames]).id(&start.ids.tree).id(&look.ids.tree)
        };
        let found = self.git.run_in(own, &look.top, &call("--find-renames"), None).await;
        let printed = if let Ok(printed) = found {
            printed
        } else {
            // Content of the start that another machine has cannot be compared.
            let plain = Call::new("diff-tree").with(&["-r", "-z", "--raw", "--no-renames", "--no-abbrev"]);
            let plain = plain.id(&start.ids.tree).id(&look.ids.tree);
            self.git.run_in(own, &look.top, &plain, None).await?
        };
        let untracked = |entries: &[TreeEntry]| -> BTreeSet<String> {
            entries.iter().filter(|entry| !entry.tracked).map(|entry| entry.path.clone()).collect()
        };
        let (before, after) = (untracked(&start.entries), untracked(&look.entries));
        let differences = diff::read(&printed)?.into_iter();
        Ok(differences.map(|difference| changed(&difference, &look.top, (&before, &after))).collect())
    }

    /// Names the other live run in whose scope a file lies. A run around this one shares its scope.
    fn attribute(&self, top: &Path, files: &mut [ChangedFile]) {
        let live = claim::live(self.files.directory()).unwrap_or_default();
        let ours = live.iter().find(|run| run.instance == self.files.instance());
        let around: Vec<String> =
            ours.and_then(|run| run.record.as_ref()).map_or_else(Vec::new, |record| record.ancestors.clone());
        let tree = &self.area.territory.tree;
        let others: Vec<_> = live
            .iter()
            .filter(|run| run.instance != self.files.instance() && !around.contains(&run.instance))
            .filter_map(|run| Some((run, run.record.as_ref()?)))
            .filter(|(_, record)| record.territory.tree == *tree)
            .collect();
        for file in files {
            let path = top.join(OsStr::from_bytes(&gitpath::to_bytes(&file.path)));
            let path = ScopePath::from(path.to_string_lossy().into_owned());
            let other =
                others.iter().find(|(_, record)| record.territory.paths.iter().any(|held| held.holds(&path)));
            file.run = other.map(|(run, _)| run.instance.clone());
        }
    }

    async fn commits(
        &mut self,
        top: &Path,
        from: &ObjectId,
        to: &ObjectId,
    ) -> Result<Vec<MadeCommit>, String> {
        if from == to {
            return Ok(Vec::new());
        }
        let log =
            Call::new("log").with(&["-z", "--reverse", "--format=%H %s", "--no-color", "--no-decorate"]);
        let printed = self.git.run(top, &log.ids("^", from, "").id(to)).await?;
        let made = printed.split(|byte| *byte == 0).filter_map(|line| {
            let line = String::from_utf8_lossy(line);
            let (sha, subject) = line.split_once(' ')?;
            Some(MadeCommit { sha: ObjectId::parse(sha.trim()).ok()?, subject: one_line(subject, 200) })
        });
        Ok(made.take(MOST_COMMITS).collect())
    }

    /// Writes the patch. Returns its length, or nothing where it would be empty.
    async fn patch(
        &mut self,
        own: &OwnIndex,
        start: &KnownStart,
        look: &Look,
        files: &[ChangedFile],
        redactor: &Redactor,
    ) -> Result<Option<u64>, String> {
        let left_out = files.iter().filter(|file| file.not_in_patch.is_some());
        let left_out = left_out.flat_map(|file| [Some(&file.path), file.from.as_ref()]).flatten();
        let mut paths = vec![":/".to_owned()];
        for path in left_out {
            let path = String::from_utf8(gitpath::to_bytes(path)).map_err(|_| "a path is no text")?;
            paths.push(format!(":(top,exclude,literal){path}"));
        }
        let call = Call::new("diff-tree").with(&[
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-color",
            "--unified=3",
            "--inter-hunk-context=0",
            "--diff-algorithm=default",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--submodule=short",
        ]);
        let call = call.id(&start.ids.tree).id(&look.ids.tree).paths(paths);
        let patch = self.git.run_in(own, &look.top, &call, None).await?;
        if patch.is_empty() {
            return Ok(None);
        }
        if redactor.finds(&patch) {
            return Err("a line that was there before holds a secret".to_owned());
        }
        fs_err::write(self.files.patch(), &patch).map_err(|error| error.to_string())?;
        Ok(Some(patch.len() as u64))
    }
}

/// Lists the untracked files of the scope, without those that are ignored.
async fn untracked(git: &mut GitCalls, area: &Area, top: &Path) -> Result<BTreeSet<Vec<u8>>, String> {
    let here = ScopePath::from(top.to_string_lossy().into_owned());
    let scope = area.territory.paths.iter();
    let scope = scope.filter(|path| here.holds(path) || path.holds(&here));
    let scope: Vec<String> =
        scope.map(|path| if path.holds(&here) { ".".to_owned() } else { path.seen_from(&here) }).collect();
    if scope.is_empty() {
        return Ok(BTreeSet::new());
    }
    let list = Call::new("ls-files").with(&["--others", "--exclude-standard", "-z"]).paths(scope).literal();
    let printed = git.list(top, &list).await?;
    Ok(printed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}

/// Looks for files that git was told not to look at.
async fn hidden(git: &mut GitCalls, top: &Path) -> Result<Option<String>, String> {
    let printed = git.list(top, &Call::new("ls-files").with(&["-v", "-z"])).await?;
    let mut hidden = printed.split(|byte| *byte == 0).filter(|line| match line {
        [b'S', b' ', path @ ..] => top.join(OsStr::from_bytes(path)).symlink_metadata().is_ok(),
        [first, ..] => first.is_ascii_lowercase(),
        [] => false,
    });
    let Some(first) = hidden.next() else { return Ok(None) };
    let shown = one_line(&gitpath::to_text(first.get(2..).unwrap_or_default()), 200);
    let more = match hidden.count() {
        0 => String::new(),
        more => format!(" and {}", plural(more as u64, "other")),
    };
    Ok(Some(format!(
        "changes of `{shown}`{more} are hidden by flags of the index, which `git ls-files -v` shows"
    )))
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

/// Describes a file by everything that changes with its content.
fn identity(metadata: &std::fs::Metadata) -> String {
    let parts = [
        metadata.len().to_string(),
        metadata.ino().to_string(),
        format!("{}.{}", metadata.mtime(), metadata.mtime_nsec()),
        format!("{}.{}", metadata.ctime(), metadata.ctime_nsec()),
        metadata.mode().to_string(),
    ];
    hex(&Sha256::digest(parts.join(" ")))
}

/// Describes a tracked file that differs from the commit before the run.
fn changed_before(entry: &TreeEntry, top: &Path) -> ChangedFile {
    let (kind, not_in_patch) = match &entry.content {
        EntryContent::Gone => (ChangeKind::Deleted, None),
        EntryContent::Object { .. } => (ChangeKind::Modified, None),
        EntryContent::Digest(_) => (ChangeKind::Modified, Some(A_REPOSITORY.to_owned())),
    };
    ChangedFile {
        size: size(top, &entry.path),
        path: entry.path.clone(),
        from: None,
        kind,
        tracked: true,
        lines: None,
        run: None,
        not_in_patch,
    }
}

fn size(top: &Path, path: &str) -> Option<u64> {
    let metadata = top.join(OsStr::from_bytes(&gitpath::to_bytes(path))).symlink_metadata().ok()?;
    (!metadata.is_dir()).then_some(metadata.len())
}

/// Describes a difference between the two trees.
fn changed(
    difference: &Difference,
    top: &Path,
    (before, after): (&BTreeSet<String>, &BTreeSet<String>),
) -> ChangedFile {
    let path = gitpath::to_text(&difference.path);
    let from = difference.from.as_deref().map(gitpath::to_text);
    let was_untracked = before.contains(from.as_ref().unwrap_or(&path));
    let is_untracked = after.contains(&path);
    let kind = match (&difference.old, &difference.new) {
        _ if from.is_some() => ChangeKind::Renamed,
        (None, _) if is_untracked => ChangeKind::Untracked,
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Deleted,
        (Some((old, one)), Some((new, other))) if old != new => {
            let are_files = |mode: &FileMode| matches!(mode, FileMode::File | FileMode::Executable);
            match (are_files(old) && are_files(new), one == other) {
                (true, true) => ChangeKind::Mode,
                (true, false) => ChangeKind::Modified,
                (false, _) => ChangeKind::Type,
            }
        }
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    let is_repository = [&difference.old, &difference.new]
        .into_iter()
        .any(|side| side.as_ref().is_some_and(|(mode, _)| *mode == FileMode::Repository));
    let tracked = match kind {
        ChangeKind::Untracked => false,
        ChangeKind::Deleted => !was_untracked,
        ChangeKind::Added => true,
        ChangeKind::Modified | ChangeKind::Mode | ChangeKind::Type => !is_untracked,
        ChangeKind::Renamed => !was_untracked || !is_untracked,
    };
    ChangedFile {
        size: difference.new.as_ref().and_then(|_| size(top, &path)),
        path,
        from,
        kind,
        tracked,
        lines: difference.lines,
        run: None,
        not_in_patch: is_repository.then(|| A_REPOSITORY.to_owned()),
    }
}

/// Adds what no tree holds and only a digest tells.
fn digests(start: &KnownStart, look: &Look, files: &mut Vec<ChangedFile>) {
    let of = |entries: &[TreeEntry]| -> BTreeMap<String, (String, bool)> {
        let digests = entries.iter().filter_map(|entry| match &entry.content {
            EntryContent::Digest(digest) => Some((entry.path.clone(), (digest.clone(), entry.tracked))),
            EntryContent::Gone | EntryContent::Object { .. } => None,
        });
        digests.collect()
    };
    let (before, after) = (of(&start.entries), of(&look.entries));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for path in paths {
        let (was, is) = (before.get(path), after.get(path));
        if was.map(|(digest, _)| digest) == is.map(|(digest, _)| digest) {
            continue;
        }
        let tracked = was.or(is).is_some_and(|(_, tracked)| *tracked);
        let full = look.top.join(OsStr::from_bytes(&gitpath::to_bytes(path)));
        let why = if full.is_dir() { A_REPOSITORY } else { TOO_LARGE };
        if let Some(known) = files.iter_mut().find(|file| file.path == *path) {
            known.kind = ChangeKind::Modified;
            known.size = size(&look.top, path);
            known.not_in_patch = Some(why.to_owned());
            continue;
        }
        let kind = match (was, is) {
            _ if tracked => ChangeKind::Modified,
            (None, _) => ChangeKind::Untracked,
            (Some(_), None) if !full.exists() => ChangeKind::Deleted,
            (Some(_), _) => ChangeKind::Modified,
        };
        files.push(ChangedFile {
            path: path.clone(),
            from: None,
            kind,
            size: size(&look.top, path),
            tracked,
            lines: None,
            run: None,
            not_in_patch: Some(why.to_owned()),
        });
    }
}

/// Returns the line for `git update-index -z --index-info` that makes an entry.
fn index_line(entry: &TreeEntry) -> Option<Vec<u8>> {
    let path = gitpath::to_bytes(&entry.path);
    if path.contains(&0) {
        return None;
    }
    let head = match &entry.content {
        EntryContent::Gone => format!("0 {}\t", "0".repeat(40)),
        EntryContent::Object { mode, id } => format!("{} {id}\t", mode.word()),
        EntryContent::Digest(_) => return None,
    };
    Some([head.as_bytes(), &path, b"\0"].concat())
}
