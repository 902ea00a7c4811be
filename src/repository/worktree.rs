//! `run --worktree` and `rewind`: makes a git worktree for one run, on a branch of its own, below `.loops` of the checkout.
//! It is removed only if it holds no work that is not elsewhere.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::object::ObjectId;
use crate::base::text::{listed, plural};
use crate::context::Session;
use crate::context::error::Error;
use crate::files::replace;
use crate::git::call::{Call, without_repository};
use crate::git::error::TreeError;
use crate::git::runner::Git;
use crate::journal::files::RunFiles;

/// What the names of branches begin with.
const BRANCHES: &str = "ll-loop/";

/// A worktree that is planned or exists.
#[derive(Debug)]
pub(crate) struct Worktree {
    /// The directory of the loop in the checkout.
    home: PathBuf,
    /// Its top directory.
    path: PathBuf,
    /// The counterpart of `home` in it.
    root: PathBuf,
    /// The name of its branch, below [`BRANCHES`].
    name: String,
    /// The commit that it begins with.
    base: ObjectId,
    /// The tree snapshot whose files it begins with, where those are not the commit's.
    snapshot: Option<ObjectId>,
    git: Git,
}

/// A worktree that was made for a run, and goes again unless the run begins.
pub(crate) struct UnkeptWorktree<'w> {
    /// Nothing once it is kept.
    worktree: Option<Worktree>,
    session: &'w Session<'w>,
}

impl<'w> UnkeptWorktree<'w> {
    /// Creates a worktree.
    pub(crate) fn create(worktree: Worktree, session: &'w Session<'w>) -> Result<Self, Error> {
        worktree.create(session)?;
        Ok(Self { worktree: Some(worktree), session })
    }

    /// Leaves it to the run, which has begun.
    pub(crate) fn keep(mut self) -> Option<Worktree> {
        self.worktree.take()
    }
}

impl Drop for UnkeptWorktree<'_> {
    fn drop(&mut self) {
        if let Some(worktree) = &self.worktree {
            worktree.close(true, self.session);
        }
    }
}

impl Worktree {
    /// Plans the worktree of a run, and changes nothing yet.
    pub(crate) fn plan(home: &Path, files: &RunFiles, session: &Session<'_>) -> Result<Self, Error> {
        let git = super::at(home, session);
        let advice = "make one with `git init` and a first commit, or run without `--worktree`";
        let prefix = git.line(&Call::new("rev-parse").with(&["--show-prefix"])).map_err(|why| {
            Error::refused(format!("`--worktree` needs a git repository: {why}")).with_hint(advice)
        })?;
        let base = git.id(&super::head()).map_err(|_| {
            Error::refused("`--worktree` begins with the last commit, and there is none yet")
                .with_hint("commit first")
        })?;
        let path = files.worktree();
        Ok(Self {
            home: home.to_owned(),
            root: path.join(prefix),
            path,
            name: branch_name(files.instance()),
            base,
            snapshot: None,
            git,
        })
    }

    /// Lets it begin with a tree snapshot: on the commit on which that stands, with everything else uncommitted.
    pub(crate) fn standing_on(self, snapshot: &ObjectId) -> Result<Self, TreeError> {
        let base = parent_of(&self.git, snapshot)?;
        Ok(Self { base, snapshot: Some(snapshot.clone()), ..self })
    }

    /// Returns its top directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory of the loop in the checkout.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the directory in which the run works.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Creates it, and says so.
    pub(crate) fn create(&self, session: &Session<'_>) -> Result<(), Error> {
        self.make_whole()?;
        session.talk.note(&format!("works in {} on the branch {}", self.path.display(), self.branch()));
        self.warn_of_filters(session);
        // The loop itself comes from the checkout, whether it is committed or not.
        let all_but_loops = Call::new("status").with(&["--porcelain"]).paths([":/", ":(exclude).loops"]);
        let changes = match self.git.line(&all_but_loops) {
            Ok(left_out) if left_out.is_empty() => return Ok(()),
            Ok(left_out) => plural(left_out.lines().count() as u64, "uncommitted change"),
            Err(_) => "any uncommitted changes".to_owned(),
        };
        session
            .talk
            .warning(&format!("it begins with the last commit: {changes} of the checkout not included"));
        Ok(())
    }

    /// Creates it, or nothing.
    pub(crate) fn make_whole(&self) -> Result<(), Error> {
        let made = self.make().map_err(|why| {
            Error::refused(format!("cannot make a worktree: {why}"))
                .with_hint("`git worktree list` shows those there are")
        });
        if made.is_err() {
            // Git removes the worktree that it began, but leaves the branch, which holds no commits of its own.
            let _gone = self.git.line(&self.delete());
        }
        made
    }

    /// Warns of files that are not as programs expect them.
    pub(crate) fn warn_of_filters(&self, session: &Session<'_>) {
        if let Ok((filters, files @ 1..)) = self.git.of(&self.path).filtered() {
            session.talk.warning(&format!(
                "{} in it {} as git keeps them: ll-loop starts no filter ({}); a state of the loop may, as with `git lfs checkout`",
                plural(files as u64, "file"),
                if files == 1 { "is" } else { "are" },
                listed(&filters, "and")
            ));
        }
    }

    fn make(&self) -> Result<(), TreeError> {
        make_directory(self.path.parent().unwrap_or(&self.home))?;
        let add = Call::new("worktree").with(&["add", "--quiet", "--no-checkout"]);
        let add = add.option_name("-b", BRANCHES, &self.name).path(self.path.to_string_lossy());
        self.git.line(&add.path(self.base.as_str()))?;
        let filled = match &self.snapshot {
            None => check_out(&self.git, &self.path),
            Some(snapshot) => fill(&self.git.of(&self.path), snapshot, &self.base),
        };
        filled.inspect_err(|_| {
            // Nobody has seen it yet.
            let _stays = self.take_back();
        })?;
        fs_err::create_dir_all(&self.root).map_err(TreeError::from)
    }

    /// Returns the environment of actions in it.
    pub(crate) fn env(env: BTreeMap<String, String>) -> BTreeMap<String, String> {
        without_repository(env)
    }

    /// Says where the work is. If the run is over and nothing changed, removes the worktree.
    pub(crate) fn close(&self, is_over: bool, session: &Session<'_>) {
        let found = self.found();
        if is_over && found.as_deref() == Ok("") && self.remove().is_ok() {
            session.talk.note("nothing was changed in the worktree, which is removed");
            return;
        }
        let found = found
            .unwrap_or_else(|why| TreeError::unfit(format!("cannot read what is in it: {why}")).to_string());
        let found = if found.is_empty() { "nothing was changed yet" } else { &found };
        let (path, branch) = (self.path.display(), self.branch());
        session.talk.note(&format!(
            "the work is in {path} on the branch {branch}: {found}\n  take it    git merge {branch}, when it is committed there\n  remove it  git worktree remove {path} && git branch -D {branch}"
        ));
    }

    /// Describes the work in it that is not elsewhere; an empty text if it holds none.
    fn found(&self) -> Result<String, TreeError> {
        let there = self.git.of(&self.path);
        let changes =
            // What git ignores may be work as well, and is nowhere else.
            there.line(&Call::new("status").with(&["--porcelain", "--ignored", "--untracked-files=all"]))?;
        let count = Call::new("rev-list").with(&["--count"]).ids("^", &self.base, "");
        // The run may have left its branch for another one, or for none.
        let commits = there.line(&count.clone().revision("HEAD"))?;
        let on_branch = self.git.line(&count.named(&self.branch(), ""))?;
        let mut found = Vec::new();
        if commits != "0" || on_branch != "0" {
            let count: u64 = commits.parse::<u64>().unwrap_or(0).max(on_branch.parse().unwrap_or(0));
            found.push(plural(count, "commit"));
        }
        if !changes.is_empty() {
            found.push(format!("{} not committed", plural(changes.lines().count() as u64, "file")));
        }
        Ok(found.join(", "))
    }

    /// Removes it and its branch. Git itself refuses both where work would be lost.
    fn remove(&self) -> Result<(), TreeError> {
        let remove = Call::new("worktree").with(&["remove"]).path(self.path.to_string_lossy());
        self.git.line(&remove)?;
        self.git.line(&self.delete())?;
        Ok(())
    }

    /// Removes it with whatever is in it, and its branch. Only for one that nobody has worked in.
    pub(crate) fn take_back(&self) -> Result<(), TreeError> {
        let remove = Call::new("worktree").with(&["remove", "--force"]).path(self.path.to_string_lossy());
        self.git.line(&remove)?;
        let delete = Call::new("branch").with(&["-D"]).path(self.branch());
        self.git.line(&delete)?;
        Ok(())
    }

    /// Returns its branch.
    pub(crate) fn branch(&self) -> String {
        format!("{BRANCHES}{}", self.name)
    }

    /// Removes its branch, where that still stands on the commit that it began with. `git branch -d` would ask whether the
    /// checkout has that commit too, and it may stand on another branch by now.
    fn delete(&self) -> Call {
        let delete = Call::new("update-ref").with(&["-d"]);
        delete.named(&format!("refs/heads/{}", self.branch()), "").id(&self.base)
    }
}

/// Removes the worktrees of runs that were killed before they began: they have a branch of ours and no journal, and nobody has
/// worked in them. One that holds anything of its own stays.
pub(crate) fn remove_unbegun(
    home: &Path,
    loops: &Path,
    is_live: impl Fn(&str) -> bool,
    session: &Session<'_>,
) {
    if !loops.join(RunFiles::WORKTREES).is_dir() {
        return;
    }
    let git = super::at(home, session);
    // What cannot be listed stays, and the next run looks again.
    let listed = git.bytes(&Call::new("worktree").with(&["list", "--porcelain", "-z"]), &[]);
    let Ok(listed) = listed else { return };
    for entry in String::from_utf8_lossy(&listed).split("\0\0") {
        let field = |name: &str| entry.split('\0').find_map(|line| line.strip_prefix(name));
        let (Some(path), Some(branch)) = (field("worktree "), field("branch refs/heads/")) else { continue };
        let path = Path::new(path);
        let run = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let Some(files) = RunFiles::of(loops, &run).filter(|files| is_same(&files.worktree(), path)) else {
            continue;
        };
        let is_ours = branch.strip_prefix(BRANCHES) == Some(branch_name(&run).as_str());
        let has_begun = files.journal().exists() || files.archived().journal().exists();
        if is_ours && !has_begun && !is_live(&run) {
            remove_clean(&git, path, branch);
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Removes a worktree and its branch. Git refuses where there is more in it than the commit has, but also one whose files
/// were not written yet.
fn remove_clean(git: &Git, path: &Path, branch: &str) {
    let names = fs_err::read_dir(path).map(|entries| entries.flatten().map(|entry| entry.file_name()));
    let is_bare = names.is_ok_and(|mut names| names.all(|name| name == ".git"));
    let remove = Call::new("worktree").with(if is_bare { &["remove", "--force"] } else { &["remove"] });
    if git.line(&remove.path(path.to_string_lossy())).is_ok() {
        let _has_commits = git.line(&Call::new("branch").with(&["-d"]).path(branch));
    }
}

/// Returns the name of the branch of a run. Git does not allow two dots in a row there: they stand for a range of commits.
fn branch_name(run: &str) -> String {
    run.replace("..", "-")
}

/// Makes the directory of all worktrees, in which git sees nothing.
pub(crate) fn make_directory(trees: &Path) -> Result<(), TreeError> {
    let quiet = || -> io::Result<()> {
        fs_err::create_dir_all(trees)?;
        replace::create(&trees.join(".gitignore"), "# Written by ll-loop: worktrees of runs.\n*\n")
    };
    quiet().map_err(TreeError::from)
}

/// Writes the files of a worktree that was added without them: another directory may have other filters and hooks, so
/// this call looks for them there.
pub(crate) fn check_out(git: &Git, path: &Path) -> Result<(), TreeError> {
    git.of(path).line(&Call::new("reset").with(&["--hard", "--quiet"]))?;
    Ok(())
}

/// Returns the commit on which a tree snapshot stands.
pub(crate) fn parent_of(git: &Git, snapshot: &ObjectId) -> Result<ObjectId, TreeError> {
    let parent = Call::new("rev-parse").with(&["--verify", "--quiet"]).ids("", snapshot, "^");
    git.id(&parent).map_err(|_| TreeError::unfit("the snapshot does not stand on a commit"))
}

/// Writes the files of a tree snapshot into a worktree that stands on its parent: all of them, uncommitted.
pub(crate) fn fill(there: &Git, snapshot: &ObjectId, parent: &ObjectId) -> Result<(), TreeError> {
    let read = Call::new("read-tree");
    there.line(&read.clone().with(&["--reset", "-u"]).id(snapshot))?;
    there.line(&read.with(&["--reset"]).id(parent))?;
    // Its exit code only tells that some file differs from the index.
    let _differs = there.line(&Call::new("update-index").with(&["-q", "--refresh"]));
    Ok(())
}
