//! Keeps the working tree as it is while somebody looks at it who is not to change it: the supervisor and the tester of
//! planned work. What they change all the same is put back, files and commits alike, and does not count as an answer.
//!
//! Everything is compared with an index and objects of our own. What git ignores may change, and so may what ll-loop
//! itself writes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::look_error::LookError;
use super::recorded::is_in_repository;
use super::recording::Recording;
use super::tree_digest::{WorkingTree, WorkingTrees};
use super::world::World;
use crate::base::object::ObjectId;
use crate::base::text::one_line;
use crate::evaluate::observation::Observation;
use crate::files::replace::replace;
use crate::git::call::Call;
use crate::git::error::GitError;
use crate::git::in_run::GitCalls;
use crate::process::clock::Clock;
use crate::process::signal::Cancel;

/// The longest time for looking at the working tree, and for putting it back.
const LIMIT: Duration = Duration::from_mins(2);

/// How many files a message names.
const MOST_NAMED: usize = 5;

/// Files that are put back at a time, which all have to fit into one command line.
const AT_ONCE: usize = 200;

/// What ll-loop itself writes while a run goes on.
const OURS: [&str; 4] = ["/.loops/.running/", "/.loops/.history/", "/.loops/.gitignore", "/.loop/state.json"];

/// The mode of a repository inside the repository.
const REPOSITORY: &[u8] = b"160000";

/// Somebody who looks at work that others do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Onlooker {
    /// Changes nothing.
    Supervisor,
    /// Leaves new files at most, which are removed.
    Tester,
}

impl Onlooker {
    /// Finds the one with a role.
    pub(super) fn of(role: Option<&str>) -> Option<Self> {
        match role? {
            "supervisor" => Some(Self::Supervisor),
            "tester" => Some(Self::Tester),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Supervisor => "supervisor",
            Self::Tester => "tester",
        }
    }
}

/// The repository and the working tree as they were.
pub(super) struct RepositoryBefore {
    git: GitCalls,
    trees: WorkingTrees,
    before: WorkingTree,
    /// None in a run that claims a part of the repository only: in the others, somebody else may commit.
    commits: Option<Commits>,
}

/// What git itself knows about the working tree.
struct Commits {
    git: GitCalls,
    top: PathBuf,
    /// The branch; none where a commit is checked out.
    branch: Option<String>,
    head: Option<ObjectId>,
    index: PathBuf,
    staged: Vec<u8>,
    /// The index, byte for byte.
    bytes: Option<Vec<u8>>,
    /// Branches, tags and the stash; none where the repository has other working trees, in which somebody else may
    /// change them.
    references: Option<References>,
    /// The lock files of git that are not there.
    unlocked: Vec<PathBuf>,
}

/// What each reference names.
type References = BTreeMap<String, ObjectId>;

/// The reference of the newest stash; the older ones stand in its log.
const STASH: &str = "refs/stash";

/// How many stashes are taken away at most.
const MOST_STASHES: usize = 100;

/// How often is looked whether everything was put back: what was ignored by a file that is gone is seen only then.
const LOOKS: usize = 3;

/// A file that is not as it was.
struct FileDifference {
    path: Vec<u8>,
    is_new: bool,
    is_repository: bool,
}

impl RepositoryBefore {
    /// Looks at everything before somebody else does. Outside of a repository there is nothing to look at, and where
    /// git cannot do it, that is said.
    pub(super) async fn look(world: &mut World) -> Option<Self> {
        match Self::try_look(world).await {
            Ok(mut kept) => {
                let changed = world.rules.look(&mut kept.git, &kept.trees.top, &world.root).await;
                for remark in changed {
                    say(&remark, world);
                }
                Some(kept)
            }
            Err(why) => {
                // Outside of a repository nobody expects that anything is put back.
                if is_in_repository(world) {
                    say(&format!("what changes now cannot be put back: {why}"), world);
                }
                None
            }
        }
    }

    async fn try_look(world: &World) -> Result<Self, LookError> {
        let mut git = calls(world);
        let trees = WorkingTrees::open(&mut git, &world.root).await?;
        let before = seen(&mut git, &trees, world).await?;
        // In a part of the repository, somebody else may commit at the same time.
        let commits = if claims_all(world, &trees.top) {
            Some(Commits::look(calls(world), &trees.top).await?)
        } else {
            None
        };
        Ok(Self { git, trees, before, commits })
    }

    /// Says what a test changed. It stays: a test may leave what it needs.
    pub(super) async fn tell(mut self, world: &mut World) {
        match self.changes(world).await {
            Ok(changes) if changes.is_empty() => {}
            Ok(changes) => say(&format!("the test changed {}", named(&changes)), world),
            Err(why) => say(&format!("it is not known whether the test changed anything: {why}"), world),
        }
    }

    /// Puts back what an onlooker changed, and makes of the call one that failed, unless only new files were left.
    pub(super) async fn put_back(
        mut self,
        onlooker: Onlooker,
        call: Observation,
        world: &mut World,
    ) -> Observation {
        let who = onlooker.word();
        let changes = match self.changes(world).await {
            Ok(changes) => changes,
            Err(why) => {
                return failed(call, &format!("it is not known whether the {who} changed anything: {why}"));
            }
        };
        let put_back = match &mut self.commits {
            Some(commits) => commits.put_back().await,
            None => Ok(false),
        };
        let has_committed = match put_back {
            Ok(has_committed) => has_committed,
            Err(why) => {
                return failed(call, &format!("the {who} made commits, which cannot be put back: {why}"));
            }
        };
        if changes.is_empty() && !has_committed {
            return call;
        }
        let changes = match self.put_all_back(changes, world).await {
            Ok(changes) => changes,
            Err((changes, why)) => {
                let names = named(&changes);
                return failed(call, &format!("the {who} changed {names}, which cannot be put back: {why}"));
            }
        };
        let names = named(&changes);
        let only_new = changes.iter().all(|change| change.is_new);
        match (onlooker, only_new, has_committed) {
            (Onlooker::Tester, true, false) => {
                say(&format!("the tester left {names}, removed again"), world);
                call
            }
            (_, _, true) if changes.is_empty() => {
                failed(call, &format!("the {who} made commits, which were taken back"))
            }
            (_, _, true) => {
                failed(call, &format!("the {who} made commits and changed {names}; both were put back"))
            }
            (_, _, false) => failed(call, &format!("the {who} changed {names}, which was put back")),
        }
    }

    /// Returns the files in the scope of the run that are not as they were.
    async fn changes(&mut self, world: &World) -> Result<Vec<FileDifference>, LookError> {
        // Each look has its time, as the call in between may have taken hours.
        self.git.clock = Clock::start();
        let after = seen(&mut self.git, &self.trees, world).await?;
        let call = Call::new("diff-tree").with(&["-r", "-z", "--raw", "--no-renames"]);
        let call = call.id(&self.before.id).id(&after.id).paths(&world.surroundings.scope).literal();
        let listed = self.git.run(&world.root, &call).await?;
        Ok(read(&listed).into_iter().filter(|change| !is_ours(&change.path)).collect())
    }

    /// Puts files back until nothing differs, and returns which. What git ignores is known only when the files that
    /// say so are as they were: until then, a new file may be one that was there and ignored.
    async fn put_all_back(
        &mut self,
        changes: Vec<FileDifference>,
        world: &World,
    ) -> Result<Vec<FileDifference>, (Vec<FileDifference>, LookError)> {
        let (mut first, unsure): (Vec<_>, Vec<_>) = {
            let others: Vec<_> =
                changes.iter().filter(|change| !change.is_new).map(|c| c.path.clone()).collect();
            let is_in_the_way =
                |path: &[u8]| others.iter().any(|other| is_below(path, other) || is_below(other, path));
            // Files in the way go first: a directory may stand where a file was.
            changes.into_iter().partition(|change| {
                !change.is_new || change.path.ends_with(b".gitignore") || is_in_the_way(&change.path)
            })
        };
        if let Err(why) = self.put_files_back(&first, world).await {
            first.extend(unsure);
            return Err((first, why));
        }
        // Our index knows the files by now that were not ignored for a while.
        let forget = Call::new("read-tree").id(&self.before.id);
        if let Err(why) = self.git.run(&self.trees.top, &forget).await {
            return Err((first, why.into()));
        }
        // Each time something is put back, files may appear that were ignored until then.
        for _ in 0..LOOKS {
            let more = match self.changes(world).await {
                Ok(more) if more.is_empty() => break,
                Ok(more) => more,
                Err(why) => return Err((first, why)),
            };
            let put_back = self.put_files_back(&more, world).await;
            first.extend(more);
            if let Err(why) = put_back {
                return Err((first, why));
            }
        }
        first.sort_by(|one, other| one.path.cmp(&other.path));
        first.dedup_by(|one, other| one.path == other.path);
        Ok(first)
    }

    async fn put_files_back(&mut self, changes: &[FileDifference], world: &World) -> Result<(), LookError> {
        if let Some(change) = changes.iter().find(|change| change.is_repository) {
            // Its content is not in our objects.
            return Err(LookError::unfit(format!("{} is a repository of its own", shown(&change.path))));
        }
        for change in changes.iter().filter(|change| change.is_new) {
            remove(&self.trees.top, &change.path)?;
        }
        let top = self.trees.top.clone();
        let others: Vec<_> = changes.iter().filter(|change| !change.is_new).collect();
        // Several patches, because all paths of one have to fit into a command line.
        for some in others.chunks(AT_ONCE) {
            let name = |change: &&FileDifference| {
                let name = String::from_utf8(change.path.clone());
                name.map_err(|_| LookError::unfit(format!("{} is not text", shown(&change.path))))
            };
            let names: Vec<_> = some.iter().map(name).collect::<Result<_, _>>()?;
            let now = seen(&mut self.git, &self.trees, world).await?;
            let call = Call::new("diff-tree").with(&["-r", "-p", "--binary", "--full-index", "--no-renames"]);
            let call = call.id(&now.id).id(&self.before.id).paths(names).literal();
            let patch = self.git.run(&top, &call).await?;
            self.trees.apply(&mut self.git, &patch).await?;
        }
        Ok(())
    }
}

impl Commits {
    async fn look(mut git: GitCalls, top: &Path) -> Result<Self, LookError> {
        let index = line(&git.run(top, &Call::new("rev-parse").with(&["--git-path", "index"])).await?);
        let index = top.join(OsStr::from_bytes(&index));
        let (branch, head) = stand(&mut git, top).await?;
        let staged = staged(&mut git, top).await?;
        let bytes = crate::files::read::bytes(&index, u64::MAX).ok();
        // Other working trees have branches of their own, which are not this run's to put back.
        let references =
            if has_one_tree(&mut git, top).await? { Some(references(&mut git, top).await?) } else { None };
        let directory = index.parent().unwrap_or(top);
        let locks = ["index.lock", "HEAD.lock"].map(|lock| directory.join(lock));
        // A lock that was there before belongs to somebody else.
        let unlocked = locks.into_iter().filter(|lock| !lock.exists()).collect();
        Ok(Self { git, top: top.to_owned(), branch, head, index, staged, bytes, references, unlocked })
    }

    /// Puts the branch, its commit and the index back; tells whether a commit was made, or another one checked out.
    async fn put_back(&mut self) -> Result<bool, LookError> {
        // Git would refuse every step below as long as a lock is left.
        for lock in self.unlocked.iter().filter(|lock| lock.exists()) {
            fs_err::remove_file(lock)?;
        }
        let (git, top) = (&mut self.git, &self.top);
        git.clock = Clock::start();
        let (branch, head) = stand(git, top).await?;
        let has_moved = (&branch, &head) != (&self.branch, &self.head);
        if has_moved {
            // Moved first, or the branch that is set below would be another one.
            if let Some(branch) = self.branch.as_ref().filter(|_| branch != self.branch) {
                let call = Call::new("symbolic-ref").revision("HEAD").named(branch, "");
                git.run(top, &call).await?;
            }
            let set = Call::new("update-ref");
            let call = match (&self.branch, &self.head) {
                (Some(branch), Some(head)) => set.named(branch, "").named(head.as_str(), ""),
                (Some(branch), None) => set.with(&["-d"]).named(branch, ""),
                // Without a branch, `HEAD` itself names the commit.
                (None, Some(head)) => set.with(&["--no-deref"]).revision("HEAD").named(head.as_str(), ""),
                (None, None) => return Err(LookError::unfit("there was no commit")),
            };
            git.run(top, &call).await?;
        }
        if has_moved || staged(git, top).await? != self.staged {
            let written = match &self.bytes {
                // As a whole, since the run may be killed at any moment.
                Some(bytes) => replace(&self.index, bytes),
                None => fs_err::remove_file(&self.index),
            };
            written?;
        }
        if let Some(before) = &self.references {
            restore(git, top, before).await?;
        }
        Ok(has_moved)
    }
}

/// Tells whether the repository has no working tree but this one.
async fn has_one_tree(git: &mut GitCalls, top: &Path) -> Result<bool, LookError> {
    let listed = git.run(top, &Call::new("worktree").with(&["list", "--porcelain"])).await?;
    Ok(String::from_utf8_lossy(&listed).lines().filter(|line| line.starts_with("worktree ")).count() == 1)
}

async fn references(git: &mut GitCalls, top: &Path) -> Result<References, LookError> {
    let call = Call::new("for-each-ref").with(&["--format=%(objectname) %(refname)"]);
    let listed = git.run(top, &call.with(&["refs/heads", "refs/tags", STASH])).await?;
    let listed = String::from_utf8_lossy(&listed);
    let pairs = listed.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.filter_map(|(id, name)| Some((name.to_owned(), ObjectId::parse(id).ok()?))).collect())
}

/// Makes every reference name again what it did.
async fn restore(git: &mut GitCalls, top: &Path, before: &References) -> Result<(), LookError> {
    // Dropping the newest shows the one before it; bounded, as an agent may have made any number.
    for _ in 0..MOST_STASHES {
        let now = references(git, top).await?;
        let Some(stash) = now.get(STASH).filter(|stash| before.get(STASH) != Some(stash)) else { break };
        let call = if before.contains_key(STASH) {
            Call::new("stash").with(&["drop", "--quiet"])
        } else {
            Call::new("update-ref").with(&["-d"]).revision(STASH).id(stash)
        };
        git.run(top, &call).await?;
    }
    let now = references(git, top).await?;
    // The new ones go first, since `a/b` stands in the way of `a`.
    for name in now.keys().filter(|name| *name != STASH && !before.contains_key(*name)) {
        git.run(top, &Call::new("update-ref").with(&["-d"]).named(name, "")).await?;
    }
    let is_there = |name: &str, id: &ObjectId| now.get(name) == Some(id);
    for (name, id) in before.iter().filter(|(name, id)| *name != STASH && !is_there(name, id)) {
        git.run(top, &Call::new("update-ref").named(name, "").id(id)).await?;
    }
    Ok(())
}

/// Tells whether nobody else may work in the repository while the run goes on.
fn claims_all(world: &World, top: &Path) -> bool {
    let is_top =
        // By their real paths: a scope may be named through a link.
        |path: &Path| matches!((path.canonicalize(), top.canonicalize()), (Ok(path), Ok(top)) if path == top);
    world.surroundings.scope.iter().any(|scope| is_top(&world.root.join(scope)))
}

/// Makes calls that end by themselves: what was changed is put back even when the run is to end.
fn calls(world: &World) -> GitCalls {
    // A channel that nobody holds never asks.
    let (_nobody, cancel) = Cancel::channel();
    GitCalls::new(world.own_env.clone(), cancel, LIMIT)
}

async fn seen(git: &mut GitCalls, trees: &WorkingTrees, world: &World) -> Result<WorkingTree, LookError> {
    let recording = world.agents.recording.as_ref().map(Recording::directory);
    trees.look(git, &world.root, &world.surroundings.scope, recording).await
}

/// Returns the branch and the commit that are checked out.
async fn stand(git: &mut GitCalls, top: &Path) -> Result<(Option<String>, Option<ObjectId>), LookError> {
    let branch = Call::new("symbolic-ref").with(&["--quiet"]).revision("HEAD");
    let branch = unless_none(git.run(top, &branch).await)?;
    let branch = branch.and_then(|branch| String::from_utf8(line(&branch)).ok());
    let head = Call::new("rev-parse").with(&["--verify", "--quiet"]).revision("HEAD");
    let head = unless_none(git.run(top, &head).await)?;
    let head =
        head.map(|head| ObjectId::parse(String::from_utf8_lossy(&head).lines().last().unwrap_or("").trim()));
    Ok((branch, head.transpose()?))
}

/// Tells that there is nothing from that it is not known: a quiet question has a code of its own for the one.
fn unless_none(printed: Result<Vec<u8>, GitError>) -> Result<Option<Vec<u8>>, LookError> {
    match printed {
        Ok(printed) => Ok(Some(printed)),
        Err(error) if error.is_of_no_object() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn staged(git: &mut GitCalls, top: &Path) -> Result<Vec<u8>, LookError> {
    Ok(git.run(top, &Call::new("ls-files").with(&["-s", "-z"])).await?)
}

fn line(printed: &[u8]) -> Vec<u8> {
    printed.strip_suffix(b"\n").unwrap_or(printed).to_vec()
}

/// Reads `:MODE MODE ID ID LETTER`, a NUL, the path and a NUL, as often as there are files.
fn read(listed: &[u8]) -> Vec<FileDifference> {
    let mut parts = listed.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let (Some(facts), Some(path)) = (parts.next(), parts.next()) {
        let words: Vec<_> = facts.split(|byte| *byte == b' ').collect();
        let [before, after, _, _, letter] = words[..] else { continue };
        let is_repository = before.strip_prefix(b":") == Some(REPOSITORY) || after == REPOSITORY;
        changes.push(FileDifference { path: path.to_vec(), is_new: letter == b"A", is_repository });
    }
    changes
}

/// Tells whether a path lies below another one.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.first() == Some(&b'/'))
}

fn is_ours(path: &[u8]) -> bool {
    let path = format!("/{}", String::from_utf8_lossy(path));
    // Some of these lie in a loop directory further down.
    OURS.iter().any(|own| path.contains(own))
}

/// Removes a file, and the directories that are empty then.
fn remove(top: &Path, path: &[u8]) -> Result<(), LookError> {
    let path = top.join(OsStr::from_bytes(path));
    fs_err::remove_file(&path)?;
    for directory in path.ancestors().skip(1).take_while(|directory| *directory != top) {
        // The first one that is not empty ends it.
        if fs_err::remove_dir(directory).is_err() {
            break;
        }
    }
    Ok(())
}

fn named(changes: &[FileDifference]) -> String {
    let names: Vec<_> = changes.iter().take(MOST_NAMED).map(|change| shown(&change.path)).collect();
    let more = changes.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

fn shown(path: &[u8]) -> String {
    format!("`{}`", one_line(&String::from_utf8_lossy(path), 80))
}

/// Makes of a call one that failed, unless it had already.
fn failed(call: Observation, why: &str) -> Observation {
    // The call failed first for its own reason.
    let exit_code = if call.exit_code == 0 { 1 } else { call.exit_code };
    let failure = call.failure.map_or_else(|| why.to_owned(), |first| format!("{first}; {why}"));
    Observation { exit_code, failure: Some(failure), ..call }
}

fn say(what: &str, world: &mut World) {
    let what = world.redactor.text(what).into_owned();
    world.remarks.push(what);
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A repository, and calls of git in it as a run makes them.
    struct WatchedRepository(TempDir);

    impl WatchedRepository {
        fn new() -> Self {
            let this = Self(tempfile::tempdir().unwrap());
            this.git(&["init", "-q", "-b", "main"]);
            this
        }

        fn git(&self, arguments: &[&str]) {
            let mut command = std::process::Command::new("git");
            command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
            assert!(command.current_dir(self.0.path()).status().unwrap().success(), "{arguments:?}");
        }

        fn stand(&self, path: &str) -> Result<(Option<String>, Option<ObjectId>), LookError> {
            runtime().block_on(stand(&mut calls_with(path), self.0.path()))
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// Calls of the git that is found in these directories.
    fn calls_with(path: &str) -> GitCalls {
        let env = [("PATH", path), ("HOME", "/nonexistent")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (_ask, cancel) = Cancel::channel();
        GitCalls::new(env.into(), cancel, LIMIT)
    }

    const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

    #[test]
    fn what_git_does_not_say_is_not_taken_for_nothing() {
        let repository = WatchedRepository::new();
        assert_eq!(repository.stand(USUAL).unwrap(), (Some("refs/heads/main".to_owned()), None));
        repository.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        repository.git(&["switch", "-q", "--detach"]);
        assert!(matches!(repository.stand(USUAL).unwrap(), (None, Some(_))));
        assert!(repository.stand("/nonexistent").is_err());
    }

    #[test]
    fn a_branch_is_put_back_where_another_stands_in_its_way() {
        let repository = WatchedRepository::new();
        repository.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        repository.git(&["branch", "side"]);
        let (mut git, top) = (calls_with(USUAL), repository.0.path());
        let before = runtime().block_on(references(&mut git, top)).unwrap();
        repository.git(&["branch", "-q", "-D", "side"]);
        repository.git(&["branch", "side/more"]);
        runtime().block_on(restore(&mut git, top, &before)).unwrap();
        assert_eq!(runtime().block_on(references(&mut git, top)).unwrap(), before);
    }
}
