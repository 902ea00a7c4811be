//! Looks at the working tree with `git`, and changes nothing there: neither the index nor anything else.
//!
//! `git status` names the commit and everything that differs from it; what it does not identify by a hash, the content
//! of changed and untracked files, is read. A repository inside the repository is looked at in the same way.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::look_error::LookError;
use super::ticking::while_ticking;
use super::world::World;
use crate::base::explanation::Explanation;
use crate::base::own::is_own;
use crate::base::text::hex;
use crate::engine::request::SurveyRequest;
use crate::evaluate::survey::{Survey, Surveyed};
use crate::git::call::Call;
use crate::git::in_run::GitCalls;
use crate::git::status;
use crate::git::status::{Untracked, read};

/// The longest time for a survey.
const LIMIT: Duration = Duration::from_secs(30);

/// Repositories inside the repository that are looked at.
// Each costs two processes, and a survey is made for a single verdict.
const MOST_REPOSITORIES: usize = 64;

/// Looks at what a request names. A request to end the run ends this, too.
pub(super) async fn look(request: &SurveyRequest, world: &mut World) -> Surveyed {
    let limit = request.limit.map_or(LIMIT, |left| left.min(LIMIT));
    let mut surveyor = Surveyor { git: GitCalls::new(world.own_env.clone(), world.cancel.clone(), limit) };
    let root = world.root.clone();
    let sinks = RefCell::new(&mut world.sinks);
    while_ticking(&sinks, surveyor.survey(&root, &request.scope)).await.map_err(Explanation::from)
}

/// Looks at repositories.
pub(super) struct Surveyor {
    pub(super) git: GitCalls,
}

impl Surveyor {
    /// Looks at a repository, and at those inside of it.
    pub(super) async fn survey(&mut self, root: &Path, scope: &[String]) -> Result<Survey, LookError> {
        let mut digest = Sha256::new();
        let mut head = None;
        let mut seen = BTreeSet::new();
        let mut open = VecDeque::from([root.to_owned()]);
        while let Some(directory) = open.pop_front() {
            let is_first = seen.is_empty();
            // Two submodules may lead to the same place by a link.
            if !seen.insert(directory.clone()) {
                continue;
            }
            if seen.len() > MOST_REPOSITORIES {
                return Err(LookError::unfit(format!(
                    "there are more than {MOST_REPOSITORIES} repositories in it"
                )));
            }
            if !is_first && !directory.is_dir() {
                continue;
            }
            // A directory without a repository of its own answers with the one around it.
            let top = self.top(&directory).await?;
            if !is_first && top != directory.canonicalize()? {
                // A submodule that is not checked out.
                continue;
            }
            // The paths of the scope are those of the outer repository.
            let scope = if is_first { scope } else { &[] };
            let status = self.status(&directory, scope).await?;
            let (commit, changes) = read(&status);
            add(&mut digest, commit.as_deref().unwrap_or("").as_bytes());
            for change in changes.iter().filter(|change| !is_own(change.path)) {
                add(&mut digest, change.line);
                let path = top.join(OsStr::from_bytes(change.path));
                if change.is_repository() {
                    open.push_back(path);
                } else if change.is_unhashed() {
                    self.add_content(&mut digest, &path).await?;
                }
            }
            // Only the outer commit is told; that of a submodule is part of its status line.
            if is_first {
                head = commit;
            }
        }
        Ok(Survey { head, digest: hex(&digest.finalize()) })
    }

    /// Finds the top of the working tree, which the paths of the list are relative to.
    async fn top(&mut self, directory: &Path) -> Result<PathBuf, LookError> {
        let mut output = self.git.run(directory, &Call::new("rev-parse").with(&["--show-toplevel"])).await?;
        if output.last() == Some(&b'\n') {
            output.pop();
        }
        let top = PathBuf::from(OsStr::from_bytes(&output));
        top.canonicalize()
            .map_err(|error| LookError::unfit(format!("cannot find {}: {error}", top.display())))
    }

    async fn status(&mut self, directory: &Path, scope: &[String]) -> Result<Vec<u8>, LookError> {
        let status = status::call(Untracked::Listed);
        Ok(self.git.run(directory, &status.paths(scope).literal()).await?)
    }

    /// Adds what a file holds, so that no two contents look the same. One that vanishes is as good as deleted.
    async fn add_content(&self, digest: &mut Sha256, path: &Path) -> Result<(), LookError> {
        let Ok(metadata) = path.symlink_metadata() else {
            // Said as a word, so that a file that vanished differs from an empty one.
            add(digest, b"gone");
            return Ok(());
        };
        if metadata.is_symlink() {
            let Ok(target) = path.read_link() else {
                add(digest, b"gone");
                return Ok(());
            };
            add(digest, b"link");
            add(digest, target.as_os_str().as_bytes());
            return Ok(());
        }
        if !metadata.is_file() {
            add(digest, b"other");
            return Ok(());
        }
        // The one bit of the mode that git keeps.
        let is_executable = metadata.permissions().mode() & 0o100 != 0;
        add(digest, if is_executable { b"executable" } else { b"file" });
        let mut content = Sha256::new();
        match crate::files::read::open(path) {
            Ok(mut file) => self.git.read(&mut file, |piece| content.update(piece)).await?,
            // What we may not read, `git` may not read either; its times tell of most changes.
            Err(_) => content.update(format!("{:?} {}", metadata.modified(), metadata.len())),
        }
        add(digest, &content.finalize());
        Ok(())
    }
}

fn add(digest: &mut Sha256, part: &[u8]) {
    digest.update(part.len().to_le_bytes());
    digest.update(part);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;
    use crate::process::signal::Cancel;

    struct TestRepository(TempDir);

    impl TestRepository {
        fn empty() -> Self {
            let this = Self(TempDir::with_prefix("ll-survey-").unwrap());
            this.git(&["init", "-q", "-b", "main"]);
            this
        }

        /// Makes one with a commit of `src/a.txt` and `docs/b.txt`.
        fn new() -> Self {
            let this = Self::empty();
            this.write("src/a.txt", "one\n");
            this.write("docs/b.txt", "one\n");
            this.commit();
            this
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn write(&self, path: &str, text: impl AsRef<[u8]>) {
            let path = self.at(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }

        fn git(&self, arguments: &[&str]) {
            let identity =
                ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"];
            let output =
                Command::new("git").args(identity).args(arguments).current_dir(self.0.path()).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }

        fn commit(&self) {
            self.git(&["add", "-A"]);
            self.git(&["commit", "-q", "-m", "more", "--allow-empty"]);
        }

        fn look(&self, scope: &[&str]) -> Survey {
            survey(self.0.path(), scope).unwrap()
        }

        /// Asserts that `change` shows in a survey, and that looking twice is looking once.
        #[track_caller]
        fn sees(&self, what: &str, change: impl FnOnce(&Self)) {
            let before = self.look(&[]);
            change(self);
            let after = self.look(&[]);
            assert_ne!(before, after, "{what}");
            assert_eq!(after, self.look(&[]), "{what}");
        }

        #[track_caller]
        fn misses(&self, what: &str, change: impl FnOnce(&Self)) {
            let before = self.look(&[]);
            change(self);
            assert_eq!(before, self.look(&[]), "{what}");
        }
    }

    fn surveyor(path: &str) -> Surveyor {
        let env = [("PATH", path), ("HOME", "/nonexistent")];
        let (_ask, cancel) = Cancel::channel();
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Surveyor { git: GitCalls::new(env.into(), cancel, LIMIT) }
    }

    fn run(mut surveyor: Surveyor, root: &Path, scope: &[&str]) -> Result<Survey, LookError> {
        let scope: Vec<_> = scope.iter().map(|path| (*path).to_owned()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(surveyor.survey(root, &scope))
    }

    fn survey(root: &Path, scope: &[&str]) -> Result<Survey, LookError> {
        run(surveyor("/usr/local/bin:/usr/bin:/bin"), root, scope)
    }

    #[test]
    fn every_kind_of_change_is_seen() {
        let repository = TestRepository::new();
        repository.sees("a tracked file changes", |r| r.write("src/a.txt", "two\n"));
        repository.sees("it changes again, to the same length", |r| r.write("src/a.txt", "six\n"));
        repository.sees("it is staged", |r| r.git(&["add", "-A"]));
        repository.sees("a staged file changes", |r| r.write("src/a.txt", "ten\n"));
        repository.sees("an untracked file comes", |r| r.write("new/file.txt", "1"));
        repository.sees("it changes", |r| r.write("new/file.txt", "2"));
        repository
            .sees("it is renamed", |r| fs_err::rename(r.at("new/file.txt"), r.at("new/other.txt")).unwrap());
        repository.sees("it goes", |r| fs_err::remove_file(r.at("new/other.txt")).unwrap());
        repository.sees("a commit", TestRepository::commit);
        repository.sees("a commit of nothing", TestRepository::commit);
        repository.sees("a file is deleted", |r| fs_err::remove_file(r.at("docs/b.txt")).unwrap());
        repository.sees("the deletion is staged", |r| r.git(&["rm", "-q", "docs/b.txt"]));
        repository.sees("a rename", |r| r.git(&["mv", "src/a.txt", "src/c.txt"]));
        repository.sees("a mode", |r| {
            fs_err::set_permissions(r.at("src/c.txt"), std::fs::Permissions::from_mode(0o755)).unwrap();
        });
        repository.sees("a link", |r| symlink("nowhere", r.at("link")).unwrap());
        repository.sees("bytes", |r| r.write("bytes", [0, 159, 146, 150, 0]));
        repository.sees("other bytes", |r| r.write("bytes", [0, 159, 146, 151, 0]));
        repository.sees("an odd name", |r| r.write("a\n\"b\" ü", "1"));
        repository.sees("the odd name changes", |r| r.write("a\n\"b\" ü", "2"));
    }

    #[test]
    fn settings_of_the_user_change_nothing() {
        let repository = TestRepository::new();
        let inner = TestRepository::new();
        repository.git(&["submodule", "add", "-q", &inner.0.path().to_string_lossy(), "vendor"]);
        repository.commit();
        for setting in [
            ["status.showUntrackedFiles", "no"],
            ["status.renames", "copies"],
            ["status.relativePaths", "true"],
            ["status.showStash", "true"],
            ["color.ui", "always"],
            ["core.quotePath", "true"],
            ["core.fsmonitor", "/nonexistent/monitor"],
            ["diff.ignoreSubmodules", "all"],
            ["submodule.vendor.ignore", "all"],
        ] {
            repository.git(&["config", setting[0], setting[1]]);
        }
        repository.sees("an untracked file", |r| r.write("ü/new.txt", "1"));
        repository.sees("it changes", |r| r.write("ü/new.txt", "2"));
        repository.sees("a rename", |r| r.git(&["mv", "src/a.txt", "src/c.txt"]));
        repository.sees("the renamed file changes", |r| r.write("src/c.txt", "two\n"));
        repository.sees("a submodule", |r| r.write("vendor/src/a.txt", "two\n"));
    }

    #[test]
    fn what_is_no_change_is_not_seen() {
        let repository = TestRepository::new();
        repository.write(".gitignore", "*.log\n");
        repository.misses("an ignored file", |r| r.write("build.log", "1"));
        repository.misses("the same content again", |r| r.write("src/a.txt", "one\n"));
        repository.misses("another branch at the same commit", |r| r.git(&["switch", "-q", "-c", "other"]));
        repository.misses("our own files", |r| {
            r.write(".loops/.running/x.events.jsonl", "1");
            r.write(".loops/.history/x/state.json", "1");
            r.write("part/.loops/.running/y", "1");
        });
        repository.sees("a loop file", |r| r.write(".loops/main.yaml", "name: main"));
        repository.sees("a name like ours", |r| r.write(".loops/.running-notes", "1"));
    }

    #[test]
    fn a_change_that_is_taken_back_leaves_the_same_tree() {
        let repository = TestRepository::new();
        let before = repository.look(&[]);
        repository.write("src/a.txt", "two\n");
        repository.look(&[]);
        repository.write("src/a.txt", "one\n");
        assert_eq!(before, repository.look(&[]));
    }

    #[test]
    fn a_scope_sees_its_own_paths_only_and_takes_them_as_they_are() {
        let repository = TestRepository::new();
        let look = || (repository.look(&["src/"]).digest, repository.look(&["docs", "none"]).digest);
        let before = look();
        repository.write("docs/b.txt", "two\n");
        repository.write("docs/new.txt", "new\n");
        let after = look();
        assert_eq!(before.0, after.0);
        assert_ne!(before.1, after.1);
        repository.write("*", "1");
        let star = repository.look(&["*"]);
        repository.write("src/a.txt", "three\n");
        assert_eq!(star, repository.look(&["*"]), "`*` is the name of a file");
        let error = survey(repository.0.path(), &["../elsewhere"]).unwrap_err();
        assert!(error.to_string().contains("outside repository"), "{error}");
    }

    #[test]
    fn before_the_first_commit_there_is_no_head() {
        let repository = TestRepository::empty();
        assert_eq!(repository.look(&[]).head, None);
        repository.sees("an untracked file", |r| r.write("a", "1"));
        repository.sees("a staged file", |r| r.git(&["add", "a"]));
        repository.sees("the first commit", TestRepository::commit);
        assert!(repository.look(&[]).head.is_some());
    }

    #[test]
    fn a_subdirectory_sees_the_whole_repository_and_its_scope_is_relative() {
        let repository = TestRepository::new();
        let look = |scope: &[&str]| survey(&repository.at("src"), scope).unwrap();
        let (whole, own) = (look(&[]), look(&["."]));
        assert_eq!(whole, repository.look(&[]));
        repository.write("docs/b.txt", "two\n");
        assert_ne!(whole, look(&[]));
        assert_eq!(own, look(&["."]));
        repository.write("src/new.txt", "1");
        let new = look(&["new.txt"]);
        repository.write("src/new.txt", "2");
        assert_ne!(new, look(&["new.txt"]));
    }

    #[test]
    fn a_linked_worktree_is_looked_at_by_itself() {
        let repository = TestRepository::new();
        repository.git(&["worktree", "add", "-q", "-b", "side", "linked"]);
        let linked = || survey(&repository.at("linked"), &[]).unwrap();
        let before = linked();
        repository.write("src/a.txt", "two\n");
        assert_eq!(before, linked());
        repository.write("linked/src/a.txt", "two\n");
        assert_ne!(before, linked());
    }

    #[test]
    fn a_repository_in_the_repository_is_looked_at() {
        let inner = TestRepository::new();
        let repository = TestRepository::new();
        repository.git(&["submodule", "add", "-q", &inner.0.path().to_string_lossy(), "vendor"]);
        repository.commit();
        repository.sees("a change in the submodule", |r| r.write("vendor/src/a.txt", "two\n"));
        repository.sees("another change there", |r| r.write("vendor/src/a.txt", "six\n"));
        repository.write("loose/x", "1");
        Command::new("git").args(["init", "-q"]).current_dir(repository.at("loose")).status().unwrap();
        repository.sees("an untracked repository", |r| r.write("loose/x", "2"));
        fs_err::remove_dir_all(repository.at("vendor")).unwrap();
        repository.look(&[]);
    }

    #[test]
    fn without_a_repository_or_git_there_is_a_reason() {
        let directory = TempDir::with_prefix("ll-survey-").unwrap();
        let error = survey(directory.path(), &[]).unwrap_err();
        assert!(error.to_string().contains("not a git repository"), "{error}");
        let error = run(surveyor("/nonexistent"), directory.path(), &[]).unwrap_err();
        assert_eq!(error.to_string(), "cannot start `git`: no such program on PATH");
        let mut hurried = surveyor("/usr/bin:/bin");
        hurried.git.limit = Duration::ZERO;
        assert_eq!(run(hurried, directory.path(), &[]).unwrap_err().to_string(), "it took more than 0ms");
    }

    #[test]
    fn the_index_stays_as_it_is() {
        let repository = TestRepository::new();
        repository.write("src/a.txt", "two\n");
        let index = || {
            let path = repository.at(".git/index");
            (fs_err::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap())
        };
        let before = index();
        repository.look(&[]);
        assert_eq!(before, index());
        repository.write(".git/index.lock", "");
        repository.look(&[]);
    }

    #[test]
    fn one_of_thousands_of_untracked_files_makes_a_difference() {
        let repository = TestRepository::new();
        for index in 0..5000 {
            repository.write(&format!("new/{}/file-{index}.txt", index % 50), format!("{index}"));
        }
        let before = repository.look(&[]);
        repository.write("new/7/file-7.txt", "8");
        assert_ne!(before, repository.look(&[]));
    }
}
