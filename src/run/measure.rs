//! Measures the working tree on which a run begins and the one on which it ends, and what lies between: the files that
//! changed, the commits that were made, and a patch. Nothing in the repository is changed: the index is a copy, and new
//! objects lie beside the journal.
//!
//! Which files differ from the commit is for git to say, by the index as it stands, because only that one tells git
//! which times it may trust. The copy keeps its time for the same reason.

mod changed;
mod file_identity;
mod known_index;
mod look;
mod search;
mod unlisted;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use look::{Look, Measurer, SurroundingRepository};
use search::SecretSearch;
use tokio::sync::watch;

use super::area::Area;
use super::ignored;
use super::judging::{self, JudgedChanges, JudgingPlace, SearchVariables};
use super::look_error::LookError;
use super::ticking::while_ticking;
use super::world::World;
use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::territory::ScopePath;
use crate::base::text::one_line;
use crate::engine::changes::{
    ChangedFile, ChangedSince, Changes, EntryContent, IgnoredFile, KnownIndex, KnownStart, MadeCommit,
    Measured, SeenTree, StartTree, TreeChanges, TreeEntry, TreeIds,
};
use crate::engine::request::{AsideRequest, JudgingRequest, MeasureRequest, RestoreRequest, RestoredTree};
use crate::files::aside;
use crate::files::replace::replace;
use crate::files::secret::SECRET;
use crate::git::call::{Call, alternate};
use crate::git::in_run::GitCalls;
use crate::git::own_index::OwnIndex;
use crate::git::raw_diff;
use crate::git::runner::Git;
use crate::journal::claim;
use crate::journal::files::RunFiles;
use crate::judges::found_judges::{JudgesFound, JudgesState};
use crate::process::signal::{Cancel, EndRequest};

/// The longest time for a measurement.
const LIMIT: Duration = Duration::from_mins(5);

/// The same where somebody wants the run to end: GitHub waits 10 seconds before it kills.
const SHORT_LIMIT: Duration = Duration::from_secs(3);

/// How many files, commits and unseen things are listed.
const MOST_LISTED: usize = 2000;
const MOST_COMMITS: usize = 100;

/// How many files are listed that changed since a verdict.
const MOST_SINCE: usize = 100;

/// Measures the working tree on which a run begins.
pub async fn start(
    root: &Path,
    area: &Area,
    files: &RunFiles,
    judging: Option<&JudgingRequest>,
    env: BTreeMap<String, String>,
    cancel: Cancel,
) -> StartTree {
    let git = GitCalls::new(env.clone(), cancel, LIMIT);
    let mut measurer = Measurer { git, root, area, files, own: None, known_index: None };
    // Of a tree that is only looked at, nobody asks for it again.
    let is_of_a_run = judging.is_some();
    let judging = judging.filter(|judging| !judging.commands.is_empty());
    // Before both, because each of them would ask for the configuration.
    let walk = match measurer.git.begin_walk(root).await {
        Ok(walk) => walk,
        Err(why) => return StartTree::Unknown { unknown: LookError::from(why).to_string() },
    };
    let mut for_judges = measurer.git.clone();
    // A clone, so that both can walk the tree at the same time.
    let untracked = async {
        if judging.is_some() { ignored::untracked(&mut for_judges, root).await } else { Ok(Vec::new()) }
    };
    let (looked, untracked) = tokio::join!(Box::pin(measurer.look_from(walk)), untracked);
    let looked = looked.and_then(|found| {
        let of = |judging| measurer.ignored(judging, &found, &untracked?, SearchVariables::of(&env));
        let ignored = judging.map(of).transpose()?;
        Ok((found, ignored.unwrap_or_default()))
    });
    match looked {
        Ok((found, ignored)) => {
            let known_index = if is_of_a_run {
                // Where it cannot be kept, every file is read at the end instead.
                Box::pin(measurer.keep_index(&found.repository)).await.ok().flatten()
            } else {
                None
            };
            let before = found.entries.iter().filter(|entry| entry.tracked);
            let before = before.take(MOST_LISTED).map(|entry| changed::before(entry, &found.top)).collect();
            let Look { ids, entries, unseen, place, .. } = found;
            let place = Some(place);
            let stands_for = None;
            StartTree::Known(Box::new(KnownStart {
                ids,
                stands_for,
                entries,
                before,
                unseen,
                ignored,
                place,
                known_index,
            }))
        }
        Err(why) => StartTree::Unknown { unknown: why.to_string() },
    }
}

/// What is measured of a run that goes on, apart from the run itself, which is shown to people meanwhile.
struct KnownPlace {
    root: PathBuf,
    area: Area,
    files: RunFiles,
    /// The index as it was when the run began.
    index: Option<KnownIndex>,
}

impl KnownPlace {
    fn of(world: &World) -> Self {
        Self {
            root: world.root.clone(),
            area: world.area.clone(),
            files: world.files.clone(),
            index: world.rules.known_index().cloned(),
        }
    }

    fn measurer(&self, git: GitCalls) -> Measurer<'_> {
        let Self { root, area, files, index } = self;
        Measurer { git, root, area, files, own: None, known_index: index.as_ref() }
    }
}

/// Looks at the working tree as it is, with nothing to compare it with.
pub(super) async fn look(world: &mut World) -> SeenTree {
    let git = GitCalls::new(world.own_env.clone(), world.cancel.clone(), LIMIT);
    let known = KnownPlace::of(world);
    let sinks = RefCell::new(&mut world.sinks);
    let mut measurer = known.measurer(git);
    match Box::pin(while_ticking(&sinks, measurer.look())).await {
        Ok(found) => SeenTree::Known(found.ids),
        Err(why) => SeenTree::Unknown { unknown: why.to_string() },
    }
}

/// Makes sure that there is an index to believe, where a run goes on.
pub(super) async fn know_index(world: &mut World) {
    let git = GitCalls::new(world.own_env.clone(), world.cancel.clone(), LIMIT);
    let known = KnownPlace::of(world);
    let Some(index) = &known.index else { return };
    // A run that goes on elsewhere has no copy of the index, so one is made that can be believed.
    if let Ok(Some(made)) = known.measurer(git).make_index(index).await {
        world.rules.know_index(made);
    }
}

/// Puts the judges of the start in their places, for the checks that are made once more.
pub(super) async fn set_aside(request: &AsideRequest, world: &mut World) -> Result<(), LookError> {
    // A run that is to end still puts its tree back.
    let (_never, uncancelled) = Cancel::channel();
    let git = GitCalls::new(world.own_env.clone(), uncancelled, LIMIT);
    let known = KnownPlace::of(world);
    let place = known.measurer(git).place().await?;
    let git = reader(&place, &known.files, &world.own_env)?;
    judging::set_aside(request, &git, place.top(), &known.files)
}

/// Makes the working tree what it was before the closing pass.
pub(super) async fn restore(request: &RestoreRequest, world: &mut World) -> Result<RestoredTree, LookError> {
    let (_never, uncancelled) = Cancel::channel();
    let git = GitCalls::new(world.own_env.clone(), uncancelled, LIMIT);
    let known = KnownPlace::of(world);
    let sinks = RefCell::new(&mut world.sinks);
    let mut measurer = known.measurer(git);
    // The judges of the end come first: what is compared afterwards is what the checks themselves changed.
    let replaced = aside::replaced(&known.files.aside())?;
    let edited = aside::take_back(&known.files.aside())?;
    let restored = while_ticking(&sinks, measurer.restore(&request.tree)).await;
    let written = world.beside_checks.take_written();
    let put_back = |restored| edited.into_iter().chain(restored).collect();
    restored.map(|restored| RestoredTree { put_back: put_back(restored), replaced, written })
}

/// Compares the working tree with the one on which the run began and with those of its verdicts, and writes the patch.
pub(super) async fn end(request: &MeasureRequest, world: &mut World) -> Measured {
    let moments = world.moments.clone();
    let (own_env, variables) = (world.own_env.clone(), SearchVariables::of(&world.env));
    // What is wanted now is the end of the run, and this belongs to it.
    let (ask, uncancelled) = Cancel::channel();
    let limit = if world.cancel.is_asked() { SHORT_LIMIT } else { LIMIT };
    let git = GitCalls::new(world.own_env.clone(), uncancelled, limit);
    let known = KnownPlace::of(world);
    let redactor = world.redactor.clone();
    let sinks = RefCell::new(&mut world.sinks);
    let mut measurer = known.measurer(git);
    let mut for_judges = measurer.git.clone();
    let untracked = async {
        match &request.judging {
            Some(_) => ignored::untracked(&mut for_judges, &known.root).await,
            None => Ok(Vec::new()),
        }
    };
    // Listing the untracked files takes as long as the comparison, so both go on at once.
    let asked = world.cancel.clone();
    let is_late = request.is_late;
    let search = SecretSearch { redactor: &redactor, asked: asked.clone(), is_late, searched: 0 };
    let both = async { tokio::join!(measurer.compare(request, search), untracked) };
    let both = async {
        tokio::select! {
            found = both => found,
            never = soon_after(asked, ask) => match never {},
        }
    };
    let (compared, untracked) = while_ticking(&sinks, Box::pin(both)).await;
    match compared {
        Ok(ComparedTrees { changes, since, touched, repository }) => {
            // One look that failed makes the judges unknown: what was not seen is not unchanged.
            let judges = match (&request.judging, untracked.ok().zip(touched)) {
                (Some(judging), Some((untracked, touched))) => {
                    let (start, end) = (&request.start, &changes.end);
                    let changes = JudgedChanges { start, end, touched, untracked, moments };
                    Some(measurer.judged(judging, changes, &repository, &own_env, variables))
                }
                (Some(_), None) => Some(unknown_judges()),
                (None, _) => None,
            };
            Measured { changes: Changes::Known(Box::new(changes)), since, judges }
        }
        Err(why) => Changes::Unknown { unknown: why.to_string() }.into(),
    }
}

/// Ends the calls of git some time after the run was asked to end: git may wait for somebody who never comes, at a pipe in the
/// place of a file.
async fn soon_after(mut asked: Cancel, ask: watch::Sender<EndRequest>) -> Infallible {
    asked.differs_from(EndRequest::None).await;
    tokio::time::sleep(SHORT_LIMIT).await;
    let _over = ask.send(asked.request());
    std::future::pending().await
}

/// How the tree on which a run ends compares with those before it.
struct ComparedTrees {
    changes: TreeChanges,
    since: Vec<ChangedSince>,
    /// The paths that differ since the run began; none where there may be judges among those that were not looked at.
    touched: Option<Vec<String>>,
    /// The repository as it was looked at.
    repository: SurroundingRepository,
}

/// Makes what reads the objects of the repository and those of the run.
fn reader(
    repository: &SurroundingRepository,
    files: &RunFiles,
    env: &BTreeMap<String, String>,
) -> Result<Git, LookError> {
    // The objects of the run lie beside its journal; git finds them as alternates.
    let objects = files.objects();
    fs_err::create_dir_all(&objects)?;
    let known = repository.objects().to_string_lossy().into_owned();
    let git = Git::new(repository.top(), env.clone());
    Ok(git.with("GIT_OBJECT_DIRECTORY", &objects).with("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&known)))
}

impl Measurer<'_> {
    /// Compares the working tree with the one on which the run began, and with those of its verdicts.
    async fn compare(
        &mut self,
        request: &MeasureRequest,
        mut search: SecretSearch<'_>,
    ) -> Result<ComparedTrees, LookError> {
        let start = &request.start;
        let look = Box::pin(self.look()).await?;
        unless_moved(start, &look)?;
        let since = self.since(&request.verdicts, &look).await?;
        let mut files = Vec::new();
        let own = if look.ids.tree == start.ids.tree {
            None
        } else {
            // Kept from the look, which has put the files into an index of our own already.
            let own = match self.own.take() {
                Some(own) => own,
                None => self.own(&look.repository)?,
            };
            self.make(&own, &look.top, start).await?;
            files = self.differences(&own, start, &look).await?;
            Some(own)
        };
        changed::digests(start, &look, &mut files);
        if let Some(link) = changed::link_to_elsewhere(&files, &look) {
            return Err(LookError::unfit(format!(
                "`{}` is a link to what no tree of the repository holds",
                one_line(link, 200)
            )));
        }
        self.attribute(&look.top, &mut files);
        let is_committed = look.entries.iter().all(|entry| !entry.tracked);
        let commits = self.commits(&look.top, &start.ids.commit, &look.ids.commit).await?;
        for file in files.iter_mut().filter(|file| file.not_in_patch.is_none()) {
            // A patch has the names as they are, also those of files that are gone.
            let mut names = std::iter::once(&file.path).chain(file.from.as_ref());
            if names.any(|name| search.redactor.finds(&gitpath::to_bytes(name))) {
                file.not_in_patch = Some(SECRET.to_owned());
                continue;
            }
            if file.size.is_none() {
                continue;
            }
            let path = look.top.join(OsStr::from_bytes(&gitpath::to_bytes(&file.path)));
            file.not_in_patch = search.why_left_out(&path).await.map(str::to_owned);
        }
        // An earlier part of the run may have left one.
        // It would be taken for the patch of this part.
        let _absent = std::fs::remove_file(self.files.patch());
        let patch = match &own {
            Some(own) => self.patch(own, start, &look, &files, &mut search).await,
            None => Ok(None),
        };
        let (patch, no_patch) = match patch {
            Ok(patch) => (patch, None),
            Err(why) => (None, Some(one_line(&why.to_string(), 300))),
        };
        files.sort_by(|one, other| (!one.tracked, &one.path).cmp(&(!other.tracked, &other.path)));
        let touched = files.iter().flat_map(|file| [Some(&file.path), file.from.as_ref()]).flatten();
        // Before the list is cut: judges are told from all files.
        let touched = (!look.are_judges_unseen).then(|| touched.cloned().collect());
        let more = files.len().saturating_sub(MOST_LISTED) as u64;
        files.truncate(MOST_LISTED);
        let mut unseen = look.unseen;
        unseen
            .extend(start.unseen.iter().filter(|known| !unseen.contains(known)).cloned().collect::<Vec<_>>());
        let changes = TreeChanges {
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
        };
        Ok(ComparedTrees { changes, since, touched, repository: look.repository })
    }

    /// Tells what the run did to its judges. What cannot be read is not unchanged.
    fn judged(
        &self,
        request: &JudgingRequest,
        changes: JudgedChanges<'_>,
        repository: &SurroundingRepository,
        env: &BTreeMap<String, String>,
        variables: SearchVariables,
    ) -> JudgesFound {
        let top = repository.top();
        let Ok(git) = reader(repository, self.files, env) else { return unknown_judges() };
        let Ok(inside) = self.inside(top) else { return unknown_judges() };
        let place = JudgingPlace { top, inside: &inside, env: variables };
        judging::judged(request, changes, &git, &place, self.files)
    }

    /// Describes what git does not track and decides what checks say, and keeps it.
    fn ignored(
        &self,
        request: &JudgingRequest,
        found: &Look,
        untracked: &[u8],
        env: SearchVariables,
    ) -> Result<Vec<IgnoredFile>, LookError> {
        let inside = self.inside(&found.top)?;
        let place = JudgingPlace { top: &found.top, inside: &inside, env };
        let mut paths = ignored::by_name(untracked, &found.top);
        paths.extend(judging::programs(request, &place));
        paths.extend(request.loop_files.iter().filter_map(|file| gitpath::from_top(&inside, file)));
        let held = found.held(&paths);
        paths.retain(|path| !held.contains(path));
        Ok(ignored::kept(&paths, &found.top, &judging::store(self.files))?)
    }

    /// Makes the working tree another one, whose content is known, and returns the files that differed.
    async fn restore(&mut self, wanted: &TreeIds) -> Result<Vec<String>, LookError> {
        let look = Box::pin(self.look()).await?;
        if look.ids.holds_same_files(wanted) {
            return Ok(Vec::new());
        }
        let own = match self.own.take() {
            Some(own) => own,
            None => self.own(&look.repository)?,
        };
        let raw = Call::new("diff-tree").with(&["-r", "-z", "--raw", "--no-renames", "--no-abbrev"]);
        let raw = self.git.run_in(&own, &look.top, &raw.id(&look.ids.tree).id(&wanted.tree), None).await?;
        let differences = raw_diff::read(&raw)?;
        for gone in differences.iter().filter(|difference| difference.new.is_none()) {
            let path = look.top.join(OsStr::from_bytes(&gone.path));
            fs_err::remove_file(path)?;
        }
        // Through an index of our own, so that the user's stays as it is.
        // A file that is written anew has a new time: tools that build would trust what they made of the other content.
        let index = own.another()?;
        self.git.run_in(&index, &look.top, &Call::new("read-tree").id(&wanted.tree), None).await?;
        let there = differences.iter().filter(|difference| difference.new.is_some());
        let paths: Vec<u8> = there.flat_map(|one| [one.path.as_slice(), b"\0"].concat()).collect();
        if !paths.is_empty() {
            // `--force`, because what stands there is what a check left.
            let write = Call::new("checkout-index").with(&["--force", "-z", "--stdin"]);
            self.git.run_in(&index, &look.top, &write, Some(paths)).await?;
        }
        // It knows the files as they were before.
        self.own = None;
        let after = Box::pin(self.look()).await?;
        if after.ids.holds_same_files(wanted) {
            Ok(differences.iter().map(|difference| gitpath::to_text(&difference.path)).collect())
        } else {
            Err(LookError::unfit("the checks of the closing pass changed what cannot be put back"))
        }
    }

    /// Names the files in which the trees of verdicts differ from the last one.
    async fn since(&mut self, trees: &[ObjectId], look: &Look) -> Result<Vec<ChangedSince>, LookError> {
        let mut all = Vec::new();
        for tree in trees.iter().filter(|tree| **tree != look.ids.tree) {
            if self.own.is_none() {
                self.own = Some(self.own(&look.repository)?);
            }
            // Taken for the call, since both are parts of the same measurer.
            let Some(own) = self.own.take() else { continue };
            let names = Call::new("diff-tree").with(&["-r", "-z", "--name-only", "--no-renames"]);
            let names = names.id(tree).id(&look.ids.tree);
            // Another machine has the content of a tree on which this run stood there.
            let printed = self.git.run_in(&own, &look.top, &names, None).await.unwrap_or_default();
            self.own = Some(own);
            let mut files: Vec<String> = printed
                .split(|byte| *byte == 0)
                .filter(|path| !path.is_empty())
                .map(gitpath::to_text)
                .collect();
            let more = files.len().saturating_sub(MOST_SINCE) as u64;
            files.truncate(MOST_SINCE);
            all.push(ChangedSince { tree: tree.clone(), files, more });
        }
        Ok(all)
    }

    /// Makes the tree on which the run began once more, which no commit has where files differed from it.
    async fn make(&mut self, own: &OwnIndex, top: &Path, start: &KnownStart) -> Result<(), LookError> {
        let digits = start.ids.commit.as_str().len();
        let lines = start.entries.iter().filter_map(|entry| index_line(entry, digits));
        let lines: Vec<u8> = lines.flatten().collect();
        if lines.is_empty() {
            return Ok(());
        }
        let scratch = own.another()?;
        let read = Call::new("read-tree").id(&start.ids.commit);
        self.git.run_in(&scratch, top, &read, None).await?;
        let add = Call::new("update-index").with(&["-z", "--index-info"]);
        self.git.run_in(&scratch, top, &add, Some(lines)).await?;
        // The content of files that were never objects here is missing, and its id is all that is
        // needed.
        let tree = self.git.id_in(&scratch, top, &Call::new("write-tree").with(&["--missing-ok"])).await?;
        if tree == start.ids.tree {
            Ok(())
        } else {
            Err(LookError::unfit("the tree on which the run began cannot be made again"))
        }
    }

    async fn differences(
        &mut self,
        own: &OwnIndex,
        start: &KnownStart,
        look: &Look,
    ) -> Result<Vec<ChangedFile>, LookError> {
        const RAW: [&str; 6] = ["-r", "-z", "--raw", "--numstat", "--no-abbrev", "--ignore-submodules=none"];
        let call = |renames: &'static str| {
            Call::new("diff-tree").with(&RAW).with(&[renames]).id(&start.ids.tree).id(&look.ids.tree)
        };
        // Finding renames reads both contents, which another machine may have.
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
        let differences = raw_diff::read(&printed)?.into_iter();
        Ok(differences.map(|difference| changed::between(&difference, &look.top, &before, &after)).collect())
    }

    /// Names the other live run in whose scope a file lies. A run around this one shares its scope.
    fn attribute(&self, top: &Path, files: &mut [ChangedFile]) {
        // Without the claims nobody can be named.
        let Ok(live) = claim::live(self.files.directory()) else { return };
        let ours = live.iter().find(|run| run.instance == self.files.instance());
        let around: Vec<String> =
            ours.and_then(|run| run.record.as_ref()).map_or_else(Vec::new, |record| record.ancestors.clone());
        // Runs of other repositories have paths of other trees.
        let tree = &self.area.territory.tree;
        let others: Vec<_> = live
            .iter()
            .filter(|run| run.instance != self.files.instance() && !around.contains(&run.instance))
            .filter_map(|run| Some((run, run.record.as_ref()?)))
            .filter(|(_, record)| record.territory.tree == *tree)
            .collect();
        for file in files {
            let path = top.join(OsStr::from_bytes(&gitpath::to_bytes(&file.path)));
            // By whole components, as scopes do.
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
    ) -> Result<Vec<MadeCommit>, LookError> {
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
        search: &mut SecretSearch<'_>,
    ) -> Result<Option<u64>, LookError> {
        let left_out = files.iter().filter(|file| file.not_in_patch.is_some());
        let left_out = left_out.flat_map(|file| [Some(&file.path), file.from.as_ref()]).flatten();
        // Everything but what is left out; with exclusions alone, git takes the directory that it
        // stands in.
        let mut paths = vec![":/".to_owned()];
        for path in left_out {
            let path = String::from_utf8(gitpath::to_bytes(path))
                .map_err(|_| LookError::unfit("a path is not text"))?;
            paths.push(format!(":(top,exclude,literal){path}"));
        }
        // Each of these has a setting that would change the patch.
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
        search.patch(&patch)?;
        replace(&self.files.patch(), &patch)?;
        Ok(Some(patch.len() as u64))
    }
}

fn unknown_judges() -> JudgesFound {
    JudgesFound { state: JudgesState::Unknown, ..JudgesFound::unchanged() }
}

/// A tree that is looked at from elsewhere, or of which another part is checked out, is not the one of the start; and a
/// file that git does not let us read may hold anything.
fn unless_moved(start: &KnownStart, look: &Look) -> Result<(), LookError> {
    match &start.place {
        Some(place) if place.untold != look.place.untold => {
            let gone = || "a filter is not there any more".to_owned();
            Err(LookError::unfit(look.untold.clone().unwrap_or_else(gone)))
        }
        Some(place) if place.inside != look.place.inside => {
            Err(LookError::unfit("the repository around the run is another one than in the beginning"))
        }
        Some(place) if place.left_out != look.place.left_out => {
            Err(LookError::unfit("a sparse checkout leaves out other files than in the beginning"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the line for `git update-index -z --index-info` that makes an entry, where ids have so many digits.
fn index_line(entry: &TreeEntry, digits: usize) -> Option<Vec<u8>> {
    let path = gitpath::to_bytes(&entry.path);
    if path.contains(&0) {
        return None;
    }
    let head = match &entry.content {
        EntryContent::Gone => format!("0 {}\t", "0".repeat(digits)),
        EntryContent::Object { mode, id } => format!("{} {id}\t", mode.word()),
        // A digest is of what no index can hold.
        EntryContent::Digest(_) => return None,
    };
    Some([head.as_bytes(), &path, b"\0"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_has_an_id_as_long_as_the_others() {
        let gone = TreeEntry { path: "a b".to_owned(), tracked: true, content: EntryContent::Gone };
        for digits in [40, 64] {
            let expected = format!("0 {}\ta b\0", "0".repeat(digits));
            assert_eq!(index_line(&gone, digits).unwrap(), expected.into_bytes());
        }
    }
}
