//! Commands that are killed at any moment: the next one, whichever it is, removes what they left, and nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use rustix::process::Signal;

use crate::ci::relay;
use crate::common::{Project, git, signal};
use crate::forge::servers::{Kind, Scene};

/// At how many moments each command is killed.
const MOMENTS: u32 = 20;

const LOOP: &str = "name: main
initial: a
states:
  a: {action: 'date >> work; sleep 0.05; date >> more', on_yes: b}
  b: {action: 'grep -q . work', on_yes: done}
  done: {terminal: true}
";

fn project() -> Project {
    let project =
        kept_apart(Project::with_loop(LOOP).file(".gitignore", "/reports\n/tmp\n").file("work", ""));
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "first"]);
    project
}

/// A project whose temporary files have a directory of their own.
fn kept_apart(project: Project) -> Project {
    let temporary = project.at("tmp");
    fs::create_dir(&temporary).unwrap();
    project.env("TMPDIR", temporary.to_string_lossy())
}

/// Returns what lies below a directory and is temporary.
fn left(project: &Project) -> Vec<PathBuf> {
    let mut left: Vec<PathBuf> = entries(&project.at("tmp"));
    let mut open = vec![project.path().to_owned()];
    while let Some(directory) = open.pop() {
        for path in entries(&directory) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if [".ll-bundle-", ".incoming-", ".ll-loop-"].iter().any(|prefix| name.starts_with(prefix)) {
                left.push(path);
            } else if path.is_dir() && !path.is_symlink() && name != ".git" {
                open.push(path);
            }
        }
    }
    left
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// Waits until nobody holds the lock of a directory in `TMPDIR`. What a killed process had just forked holds it too, until it has
/// become another program.
fn let_its_children_go(project: &Project) {
    for home in entries(&project.at("tmp")) {
        fs::File::open(home).unwrap().lock().unwrap();
    }
}

/// Kills a command in a project that a run was made in.
#[track_caller]
fn check(line: &str) {
    let project = project();
    let _ran = project.run(&["run", "main", "--report-dir", "reports"]).code(0);
    check_in(&project, line);
}

/// Kills a command at moments that are spread over the time that it takes. `MOMENT` in its line is another word each time.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a command takes here spreads the moments, and is asserted nowhere"
)]
#[track_caller]
fn check_in(project: &Project, line: &str) {
    let words = |moment: &str| -> Vec<String> {
        line.split_whitespace().map(|word| word.replace("MOMENT", moment)).collect()
    };
    let command = |words: &[String]| project.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let start = Instant::now();
    let _ended = command(&words("whole")).output().unwrap();
    let whole = start.elapsed();
    assert_eq!(left(project), Vec::<PathBuf>::new(), "{line}, which came to its end");
    for moment in 0..MOMENTS {
        let mut command = command(&words(&moment.to_string()));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * moment / MOMENTS);
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        let_its_children_go(project);
        let _ran = project.run(&["status"]);
        assert_eq!(left(project), Vec::<PathBuf>::new(), "{line}, killed at {moment} of {MOMENTS}");
    }
}

#[test]
fn a_run_leaves_nothing() {
    check("run main --report-dir reports --ci");
}

#[test]
fn a_delivery_leaves_nothing() {
    check("deliver main --to patch --unverified --report-dir reports");
}

#[test]
fn a_look_at_a_bundle_leaves_nothing() {
    check("report reports --format html");
    check("diff reports reports");
}

#[test]
fn a_take_over_leaves_nothing() {
    check("resume main --from reports");
    check("rewind main --to 1");
}

#[test]
fn what_is_published_leaves_nothing() {
    let of_fork = relay::left(relay::PASSING, &[], &[]);
    let github = relay::github(&[("ll-loop-main-test-r77-a1", &of_fork)]);
    let project = kept_apart(relay::publishing(&github, &relay::run(&of_fork.sha, "success")));
    let _ran = project.run(&["publish", "--loop", "main"]).code(0);
    check_in(&project, "publish --loop main --comment");
}

#[test]
fn artifacts_leave_nothing() {
    let scene = Scene::of(Kind::Gitea);
    let project = kept_apart(scene.job(Project::new().file("report/page", "x"), "7", "JOB"));
    let _ran = project.run(&["artifact", "upload", "first", "report"]).code(0);
    let _ran = project.run(&["artifact", "download", "first", "--to", "to"]).code(0);
    assert_eq!(project.read("to/page"), "x");
    check_in(&project, "artifact upload name-MOMENT report");
    check_in(&project, "artifact download first --to again-MOMENT");
}

#[test]
fn numbers_and_plans_leave_nothing() {
    check("stats --from reports");
    check("plan main -o reports/plan.json");
}

#[test]
fn the_worktree_of_a_run_that_never_began_is_removed_unless_something_is_in_it() {
    let project = project();
    let trees = ".loops/.worktrees";
    let made = |run: &str, more: &[&str]| {
        let (branch, path) = (format!("ll-loop/{run}"), format!("{trees}/{run}"));
        git(&project, &[&["worktree", "add", "-q", "-b", &branch], more, &[&path]].concat());
    };
    // Killed before its files were written, after that, and after somebody came.
    made("main-20260101T000000-000001", &["--no-checkout"]);
    made("main-20260101T000000-000002", &[]);
    made("main-20260101T000000-000003", &[]);
    project.write(&format!("{trees}/main-20260101T000000-000003/notes"), "mine");
    // Of a person, and of a step that somebody stands in.
    git(&project, &["worktree", "add", "-q", "-b", "mine", &format!("{trees}/main-20260101T000000-000004")]);
    git(
        &project,
        &["worktree", "add", "-q", "--detach", &format!("{trees}/main-20260101T000000-000005-at-1")],
    );
    let _ran = project.run(&["run", "main"]).code(0);
    let mut left: Vec<_> = entries(&project.at(trees));
    left.sort();
    let left: Vec<_> = left.iter().map(|path| path.file_name().unwrap().to_string_lossy()).collect();
    let stay = ["000003", "000004", "000005-at-1"].map(|end| format!("main-20260101T000000-{end}"));
    assert_eq!(left, stay);
}

/// A directory of a dead process, as it is made: nobody holds its lock.
fn dead(project: &Project, mark: &str, elsewhere: &[&Path]) -> PathBuf {
    let home = project.at(&format!("tmp/ll-loop-tmp-{mark}"));
    fs::create_dir(&home).unwrap();
    let noted: Vec<String> = elsewhere.iter().map(|path| format!("{}\0", path.display())).collect();
    fs::write(home.join("elsewhere"), noted.concat()).unwrap();
    home
}

#[test]
fn only_what_is_ours_and_dead_is_removed() {
    let project = project();
    project.write("keep/file", "mine");
    let home = dead(&project, "dead", &[&project.at("keep"), &project.at("reports")]);
    // Links lead to what is somebody's.
    symlink(project.at("keep"), home.join("link")).unwrap();
    symlink(project.at("keep"), project.at("tmp/ll-loop-tmp-link")).unwrap();
    project.write("keep/.ll-loop-dead-1", "half a file");
    project.write("keep/.ll-bundle-dead-1/part", "half a bundle");
    project.write("keep/.ll-loop-other-1", "of another process");
    project.write("keep/.ll-loop-deadly", "of nobody we know");
    symlink(project.at("keep/file"), project.at("keep/.incoming-dead-1")).unwrap();
    // Somebody else calls a directory so.
    project.write("tmp/ll-loop-tmp-mine/notes", "mine");
    let living = dead(&project, "living", &[&project.at("keep")]);
    project.write("keep/.ll-loop-living-1", "of a living process");
    let held = fs::File::open(&living).unwrap();
    held.lock().unwrap();
    let _ran = project.run(&["list"]).code(0);
    assert!(
        !home.exists()
            && !project.exists("keep/.ll-loop-dead-1")
            && !project.exists("keep/.ll-bundle-dead-1")
    );
    for kept in [
        "keep/file",
        "keep/.ll-loop-other-1",
        "keep/.ll-loop-deadly",
        "keep/.incoming-dead-1",
        "keep/.ll-loop-living-1",
        "tmp/ll-loop-tmp-mine/notes",
        "tmp/ll-loop-tmp-link/file",
        "tmp/ll-loop-tmp-living/elsewhere",
    ] {
        assert!(project.exists(kept), "{kept}");
    }
    drop(held);
    let _ran = project.run(&["version"]).code(0);
    assert!(!living.exists() && !project.exists("keep/.ll-loop-living-1"));
}
