//! A worktree for what tests run truly: a checkout of the commit, removed afterwards, in which mocks write as well.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::virtual_tree::{TreeEffects, outside};
use crate::base::explanation::Explanation;
use crate::base::object::ObjectId;
use crate::base::relative::RelativePath;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::interrupts::Interrupts;
use crate::engine::request::ActionRequest;
use crate::evaluate::observation::{Observation, Stop, Stream, Text};
use crate::files::links::real;
use crate::files::read::{self as files, MIB};
use crate::files::replace::replace;
use crate::files::transient;
use crate::git::call::Call;
use crate::git::error::GitError;
use crate::git::runner::Git;
use crate::process::guard_pipe::Guard;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};
use crate::repository::{at, changed, head};

/// How long a command may take.
// For commands without a timeout of their own: one that hangs must not hold up the tests for ever.
const LIMIT: Duration = Duration::from_mins(10);

/// How much of an output is kept.
const KEPT: usize = 1 << 20;

/// A worktree of the commit that is checked out, which goes with this value.
pub(crate) struct TestWorktree<'s> {
    session: &'s Session<'s>,
    root: PathBuf,
    tree: PathBuf,
    /// The directory of the repository in which the loop runs, with a slash at its end where it is not the whole.
    prefix: String,
    commit: ObjectId,
    interrupts: Interrupts,
    // Goes last: `drop` has git take back the worktree while it is still there.
    _place: TempDir,
}

/// The files that are not as in the commit, with what they hold; nothing for those that are gone.
type Differing = BTreeMap<String, Option<HeldText>>;

/// What a file holds, as far as a play has to know it. What cannot be read holds nothing, and is there.
#[derive(Debug, Default, PartialEq, Eq)]
struct HeldText {
    /// The text, or the beginning of a long one.
    begin: Vec<u8>,
    /// What tells a long one from another with this beginning: how long it is, and when it was written.
    version: Option<(u64, Option<SystemTime>)>,
}

impl HeldText {
    fn of(path: &Path) -> Option<Self> {
        let metadata = match fs_err::symlink_metadata(path) {
            // A repository inside is no file.
            Ok(metadata) if metadata.is_dir() => return None,
            Ok(metadata) => metadata,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return None;
            }
            Err(_) => return Some(Self::default()),
        };
        let is_long = metadata.len() > MIB;
        let version = is_long.then(|| (metadata.len(), metadata.modified().ok()));
        Some(Self { begin: files::head(path, MIB).unwrap_or_default(), version })
    }
}

impl<'s> TestWorktree<'s> {
    /// Makes one for a loop that runs in this directory.
    ///
    /// # Errors
    /// This is not a repository with a commit.
    pub(crate) fn make(root: &Path, session: &'s Session<'s>) -> Result<Self, Error> {
        let refused = |why: GitError| {
            Error::refused(format!("cannot make a temporary worktree: {why}"))
                .with_hint("commands are run there; it needs a git repository with a commit")
        };
        let git = at(root, session);
        let commit = git.id(&head()).map_err(refused)?;
        let prefix = git.line(&Call::new("rev-parse").with(&["--show-prefix"])).map_err(refused)?;
        let place = transient::directory("")
            .map_err(|error| Error::failed("cannot make a temporary directory", &error))?;
        let tree = place.path().join("tree");
        // Detached, or git would make a branch with the name of the directory.
        let add = Call::new("worktree").with(&["add", "--quiet", "--detach"]).path(tree.to_string_lossy());
        git.line(&add).map_err(refused)?;
        let interrupts = Interrupts::listen(&session.stop_by)?;
        Ok(Self { session, root: root.to_owned(), tree, prefix, commit, interrupts, _place: place })
    }

    fn git(&self) -> Git {
        at(&self.tree, self.session)
    }

    /// Makes it the commit again, with these files as a case gives them.
    pub(crate) fn begin(&self, given: &TreeEffects) -> Result<(), Explanation> {
        let git = self.git();
        git.line(&Call::new("read-tree").with(&["--reset", "-u"]).id(&self.commit))?;
        // `-ff` for repositories made inside, `-x` for what git ignores: no case finds what another has left.
        git.line(&Call::new("clean").with(&["--quiet", "-ffdx"]))?;
        self.take(given)
    }

    /// Does what a mock does to the tree.
    pub(crate) fn take(&self, effects: &TreeEffects) -> Result<(), Explanation> {
        for (path, text) in &effects.writes {
            let file = self.file(path)?;
            let parent = file.parent().unwrap_or(&self.tree);
            fs_err::create_dir_all(parent)?;
            replace(&file, text)?;
        }
        for path in &effects.deletes {
            match fs_err::remove_file(self.file(path)?) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Returns the place of a file that a mock names: never one to which a link of the commit leads outside.
    fn file(&self, path: &str) -> Result<PathBuf, Explanation> {
        let whole = format!("{}{path}", self.prefix);
        let outside = || Explanation::new(outside(path));
        let file = self.tree.join(RelativePath::parse(&whole).map_err(|_| outside())?.as_str());
        let is_inside = real(&file).starts_with(real(&self.tree));
        if is_inside { Ok(file) } else { Err(outside()) }
    }

    /// Runs a command, and returns what it did to the tree.
    pub(crate) fn run(&self, request: &ActionRequest) -> (Observation, TreeEffects) {
        let before = self.differing();
        let seen = self.observe(request);
        let after = self.differing();
        (seen, self.effects(&before, &after))
    }

    fn observe(&self, request: &ActionRequest) -> Observation {
        let mut argv = request.shell.clone();
        argv.push(request.text.clone());
        // What actions of a run inherit: no token of the job is among it.
        let mut env: BTreeMap<String, String> = self.session.env.for_actions(false);
        env.extend(request.setting.env.iter().cloned());
        // Beside the tree, so that what a command keeps there is no change of it.
        let scratch = self.tree.with_file_name("run");
        let _made = fs_err::create_dir_all(&scratch);
        env.insert("LL_RUN_DIR".to_owned(), scratch.to_string_lossy().into_owned());
        let root = self.tree.join(&self.prefix);
        let cwd = request.setting.cwd.as_ref().map_or_else(|| root.clone(), |cwd| root.join(cwd));
        let program = Program {
            argv,
            env: env.into_iter().collect(),
            cwd: Some(cwd),
            stdin: None,
            guard: Guard::default(),
        };
        let end = request.setting.end.unwrap_or((LIMIT, Stop::Timeout));
        let limits = ProcessLimits { end: Some(end), ..ProcessLimits::default() };
        let mut streams = [Vec::new(), Vec::new()];
        let mut hear = |stream: Stream, bytes: &[u8]| {
            let kept: &mut Vec<u8> = match stream {
                Stream::Stdout => &mut streams[0],
                Stream::Stderr => &mut streams[1],
            };
            // The rest is read all the same: a command would wait for ever on a pipe that is full.
            kept.extend(bytes.iter().take(KEPT.saturating_sub(kept.len())));
            Heard::More
        };
        let mut cancel = self.interrupts.cancel();
        let seen = self.interrupts.block_on(spawn::run(&program, limits, &mut cancel, &mut hear));
        let [stdout, stderr] = streams.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Observation { stdout: Text::whole(stdout), stderr: Text::whole(stderr), ..seen }
    }

    fn differing(&self) -> Differing {
        // Each path by itself: a renamed file is one that is gone and one that is new, and a new directory is its files.
        let status =
            Call::new("status").with(&["--porcelain", "-z", "--no-renames", "--untracked-files=all"]);
        let printed = self.git().bytes(&status, &[]).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let content = |path: &str| (path.to_owned(), HeldText::of(&self.tree.join(path)));
        changed(&printed).map(content).collect()
    }

    /// Returns what makes the one the other, for files in the directory of the loop.
    fn effects(&self, before: &Differing, after: &Differing) -> TreeEffects {
        let mut effects = TreeEffects::default();
        for path in before.keys().chain(after.keys().filter(|path| !before.contains_key(*path))) {
            let Some(known) = path.strip_prefix(&self.prefix) else { continue };
            if before.get(path) == after.get(path) {
                continue;
            }
            // What is as in the commit again is read there.
            match HeldText::of(&self.tree.join(path)) {
                Some(held) => {
                    let text = String::from_utf8_lossy(&held.begin).into_owned();
                    effects.writes.push((known.to_owned(), text));
                }
                None => effects.deletes.push(known.to_owned()),
            }
        }
        effects
    }
}

impl Drop for TestWorktree<'_> {
    fn drop(&mut self) {
        let gone = Call::new("worktree").with(&["remove", "--force"]).path(self.tree.to_string_lossy());
        // What cannot be removed goes with the temporary directory, and git forgets it then.
        let _best_effort = at(&self.root, self.session).line(&gone);
        let _pruned = at(&self.root, self.session).line(&Call::new("worktree").with(&["prune"]));
    }
}
