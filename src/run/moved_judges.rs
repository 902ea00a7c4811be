//! Whether judges were written to since the run began, told from their times as a check is about to begin. A judge that says yes and
//! puts itself back while it runs is the same in both trees that are compared at the end, so the tree that such a check finds is
//! looked at before; where no judge was written to, nothing has to be.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use super::ignored;
use super::judging::{self, JudgingPlace, SearchVariables};
use super::measure;
use super::world::World;
use crate::base::gitpath;
use crate::engine::request::{ActionRequest, Input};
use crate::files::file_time::FileTime;
use crate::files::{gitdir, links};
use crate::git::call::Call;
use crate::git::in_run::GitCalls;
use crate::judges::compare::is_by_name;

/// The longest time for listing the files of a commit.
const LIMIT: Duration = Duration::from_mins(1);

/// Looks at the tree that a check is about to find, unless its judges are known to stand as they stood when the run began.
pub(super) async fn look(request: &ActionRequest, world: &mut World) -> Input {
    if are_moved(request, world).await {
        Input::Looked(Box::pin(measure::look(world)).await)
    } else {
        Input::JudgesStand
    }
}

/// Tells whether a judge of a check was written to since the run began. What is not known counts.
async fn are_moved(request: &ActionRequest, world: &mut World) -> bool {
    // Nothing is known of the moments of an earlier part of the run.
    let Some(began) = world.moments.began else { return true };
    let Some(around) = gitdir::around(&world.root) else { return true };
    let (top, root) = (links::real(&around.root), links::real(&world.root));
    let Some(inside) = root.strip_prefix(&top).ok().and_then(Path::to_str) else { return true };
    let place = JudgingPlace { top: &top, inside, env: SearchVariables::of(&world.env) };
    let of_check = judging::followed_action(request, &place).obeyed;
    let is_later = |path: &String| ignored::changed_at(path, &top).is_some_and(|at| at >= began);
    if of_check.iter().chain(world.rules.unlisted_judges()).any(is_later) {
        return true;
    }
    if world.rules.committed_judges.is_none() {
        world.rules.committed_judges = CommittedJudges::listed(world).await;
    }
    world.rules.committed_judges.as_ref().is_none_or(|judges| judges.are_moved(&top, began))
}

/// The judges of the commit on which a run began that are some by their names alone.
pub(super) struct CommittedJudges {
    paths: Vec<String>,
    /// Where the files of the commit lie: a new file beside them may be obeyed before they are.
    directories: BTreeSet<String>,
}

impl CommittedJudges {
    async fn listed(world: &World) -> Option<Self> {
        let commit = &world.rules.start()?.ids.commit;
        let list = Call::new("ls-tree").with(&["-r", "-z", "--name-only", "--full-tree"]).id(commit);
        let mut git = GitCalls::new(world.own_env.clone(), world.cancel.clone(), LIMIT);
        let printed = git.run(&world.root, &list).await.ok()?;
        let files = printed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(gitpath::to_text);
        Some(Self::among(files))
    }

    fn among(files: impl Iterator<Item = String>) -> Self {
        let mut found = Self { paths: Vec::new(), directories: BTreeSet::from([String::new()]) };
        for path in files {
            if let Some((directory, _)) = path.rsplit_once('/')
                && !found.directories.contains(directory)
            {
                found.directories.insert(directory.to_owned());
            }
            if is_by_name(&path) {
                found.paths.push(path);
            }
        }
        found
    }

    /// Tells whether one of them was written to or is gone, or a further one came.
    fn are_moved(&self, top: &Path, began: FileTime) -> bool {
        let is_later = |path: &str| ignored::changed_at(path, top).is_none_or(|at| at >= began);
        self.paths.iter().any(|path| is_later(path))
            || self.directories.iter().filter(|directory| is_later(directory)).any(|directory| {
                let entries =
                    std::fs::read_dir(ignored::place(top, directory)).into_iter().flatten().flatten();
                let paths = entries.map(|entry| {
                    let name = gitpath::to_text(entry.file_name().as_bytes());
                    if directory.is_empty() { name } else { format!("{directory}/{name}") }
                });
                paths.filter(|path| is_by_name(path)).any(|path| is_later(&path))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_that_were_written_to_or_came_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        let write = |path: &str| std::fs::write(top.join(path), path).unwrap();
        for folder in ["src", "tests"] {
            std::fs::create_dir(top.join(folder)).unwrap();
        }
        let committed = ["Makefile", "src/main.py", "tests/test_main.py"];
        for path in committed {
            write(path);
        }
        let judges = CommittedJudges::among(committed.map(str::to_owned).into_iter());
        let moment = || {
            let before = FileTime::now_in(top).unwrap();
            loop {
                let now = FileTime::now_in(top).unwrap();
                if now > before {
                    return now;
                }
            }
        };
        let began = moment();
        moment();
        write("src/main.py");
        write("coverage.xml");
        assert!(!judges.are_moved(top, began));
        write("tests/conftest.py");
        assert!(judges.are_moved(top, began));
        let began = moment();
        assert!(!judges.are_moved(top, began));
        std::fs::remove_file(top.join("tests/test_main.py")).unwrap();
        assert!(judges.are_moved(top, began));
        // The content is what it was, and it was another one meanwhile.
        let began = moment();
        moment();
        write("tests/test_main.py");
        assert!(judges.are_moved(top, began));
    }
}
