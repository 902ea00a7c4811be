//! Tree snapshots: what they hold, what they leave alone, and when they go. With real repositories.

use std::fs;
use std::process::Command;

use crate::common::{Project, Ran};

const IDENTITY: [&str; 4] = ["-c", "user.name=n", "-c", "user.email=e@example.com"];

fn git(project: &Project, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(IDENTITY).args(arguments).current_dir(project.path());
    let ran = Ran::of(&command.env("HOME", project.path()).output().unwrap());
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.all());
    ran.stdout.trim_end().to_owned()
}

/// A repository with one commit of `file`, `.gitignore` and this loop.
fn repository(text: &str) -> Project {
    let project = Project::with_loop(text).file("file", "0\n").file(".gitignore", "*.log\n");
    git(&project, &["init", "-q", "-b", "trunk"]);
    git(&project, &["add", "file", ".gitignore", ".loops/main.yaml"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project
}

/// Returns the snapshots that there are, by the last part of their names, in the order of git.
fn snapshots(project: &Project) -> Vec<String> {
    let refs = git(project, &["for-each-ref", "--format=%(refname)", "refs/ll-loop/snap/"]);
    refs.lines().map(|name| name.rsplit('/').next().unwrap().to_owned()).collect()
}

/// Returns the ref of the snapshot before a step.
fn snapshot(project: &Project, step: &str) -> String {
    let refs = git(project, &["for-each-ref", "--format=%(refname)", "refs/ll-loop/snap/"]);
    let found = refs.lines().find(|name| name.ends_with(&format!("/{step}")));
    found.unwrap_or_else(|| panic!("{step}: {refs}")).to_owned()
}

fn content(project: &Project, step: &str, path: &str) -> String {
    git(project, &["cat-file", "-p", &format!("{}:{path}", snapshot(project, step))])
}

const THREE: &str = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > file; echo new > other; echo no > x.log', next: b}
  b: {next: c}
  c: {action: 'rm file; git add -A file other; git -c user.name=n -c user.email=e@x commit -qm more; exit 1', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";

#[test]
fn every_step_has_the_tree_before_it() {
    let project = repository(THREE);
    let first = git(&project, &["rev-parse", "HEAD"]);
    project.run(&["run", "main", "--snapshots"]).code(1);
    assert_eq!(snapshots(&project), ["1", "2", "3", "end"]);
    assert_eq!(content(&project, "1", "file"), "0");
    for step in ["2", "3"] {
        assert_eq!(content(&project, step, "file"), "1");
        assert_eq!(content(&project, step, "other"), "new");
        assert_eq!(git(&project, &["rev-parse", &format!("{}^", snapshot(&project, step))]), first);
    }
    let files = git(&project, &["ls-tree", "-r", "--name-only", &snapshot(&project, "3")]);
    assert_eq!(files, ".gitignore\n.loops/main.yaml\nfile\nother");
    let files = git(&project, &["ls-tree", "-r", "--name-only", &snapshot(&project, "end")]);
    assert_eq!(files, ".gitignore\n.loops/main.yaml\nother");
    let parent = git(&project, &["rev-parse", &format!("{}^", snapshot(&project, "end"))]);
    assert_eq!(parent, git(&project, &["rev-parse", "HEAD"]));
    project.run(&["history", "--prune", "--keep", "0"]).code(0);
    assert!(snapshots(&project).is_empty());
}

#[test]
fn index_head_and_stash_of_the_user_stay_as_they_are() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > file', next: b}
  b: {action: 'echo 2 > file', on_yes: done}
  done: {terminal: true}\n";
    let project = repository(text);
    project.write("file", "stashed\n");
    git(&project, &["stash", "-q"]);
    project.write("staged", "staged\n");
    git(&project, &["add", "staged"]);
    let index = || {
        let path = project.at(".git/index");
        (fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap())
    };
    let heads = || git(&project, &["for-each-ref", "refs/heads", "refs/stash"]);
    let before = (index(), heads(), project.read(".git/HEAD"));
    project.run(&["run", "main", "--snapshots"]).code(0);
    assert_eq!(before, (index(), heads(), project.read(".git/HEAD")));
    assert_eq!(content(&project, "2", "staged"), "staged");
}

#[test]
fn a_change_of_the_same_length_in_the_same_second_is_seen() {
    let text = "name: main\ndescription: d\ninitial: a\nmax_iterations: 100\nstates:
  a: {action: 'n=$(($(cat count) + 1)); echo $n > count; echo $n > file; test $n -ge 1100', on_yes: done, on_no: a}
  done: {terminal: true}\n";
    let project = repository(text).file("count", "1000\n");
    project.write("file", "1000\n");
    project.run(&["run", "main", "--snapshots"]).code(0);
    for step in 1..=100 {
        assert_eq!(content(&project, &step.to_string(), "file"), (999 + step).to_string());
    }
}

#[test]
fn steps_of_sub_loops_have_their_own() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > file', next: b}
  b: {loop: inner, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";
    let inner = "name: inner\ndescription: d\ninitial: x\nstates:
  x: {action: 'echo 2 > file', next: y}
  y: {action: 'echo 3 > file', on_yes: done}
  done: {terminal: true}\n";
    let project = repository(text).file(".loops/inner.yaml", inner);
    project.run(&["run", "main", "--snapshots"]).code(0);
    assert_eq!(snapshots(&project), ["1", "2", "2.1", "2.2", "end"]);
    let seen = ["1", "2", "2.1", "2.2", "end"].map(|step| content(&project, step, "file"));
    assert_eq!(seen, ["0", "1", "1", "2", "3"]);
}

#[test]
fn without_a_repository_or_a_commit_they_are_refused() {
    let project = Project::with_loop(THREE);
    project.run(&["run", "main", "--snapshots"]).code(2).says("needs a git repository");
    git(&project, &["init", "-q"]);
    project.run(&["run", "main", "--snapshots"]).code(2).says("there is none yet");
    assert!(project.run_files(".events.jsonl").is_empty());
    let project = repository(THREE);
    project.run(&["run", "main"]).code(1);
    assert!(snapshots(&project).is_empty());
}

#[test]
fn a_run_that_goes_on_keeps_them_as_before() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'echo 1 > file', next: b}
  b: {action: 'test -e go || kill -9 $PPID', on_yes: done, on_no: failed, on_error: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";
    let project = repository(text);
    let _killed = project.run(&["run", "main", "--snapshots"]);
    assert_eq!(snapshots(&project), ["1", "2"]);
    project.write("go", "");
    project.run(&["resume", "main"]).code(0);
    assert_eq!(snapshots(&project), ["1", "2", "end"]);
    assert_eq!(content(&project, "2", "go"), "");
}

#[test]
fn what_cannot_be_kept_is_a_warning_and_a_repository_inside_is_none() {
    let text = "name: main\ndescription: d\ninitial: a\nstates:
  a: {action: 'git init -q inner; echo 1 > file; git merge -q side || true', next: b}
  b: {action: 'rm -rf .git', on_yes: done}
  done: {terminal: true}\n";
    let project = repository(text);
    git(&project, &["switch", "-q", "-c", "side"]);
    project.write("file", "side\n");
    git(&project, &["commit", "-q", "-a", "-m", "side"]);
    git(&project, &["switch", "-q", "trunk"]);
    let copy = project.at("copy.git");
    project.write(".git/info/exclude", "copy.git\n");
    let ran = project.run(&["run", "main", "--snapshots"]).code(0);
    assert!(!copy.exists());
    assert!(!ran.all().contains("panicked"));
}
