//! A loop file is code: in jobs that strangers can set off, only the repository's own is run.

use crate::common::{Project, git};

const LOOP: &str = "\
name: main
initial: a
states:
  a: {action: touch ran, next: b}
  b: {loop: inner, on_success: done, on_failure: done}
  done: {terminal: true}
";

const INNER: &str =
    "name: inner\ninitial: a\nstates: {a: {action: 'true', on_yes: done}, done: {terminal: true}}\n";

const PAYLOAD: &str = r#"{
  "pull_request": {
    "number": 7,
    "head": {"ref": "fix", "sha": "HEAD", "repo": {"full_name": "mallory/project"}},
    "base": {"ref": "main", "sha": "BASE", "repo": {"full_name": "octo/project"}}
  },
  "workflow_run": {"head_sha": "HEAD", "head_repository": {"full_name": "mallory/project"}},
  "repository": {"full_name": "octo/project"}
}"#;

/// A repository with a commit of its own, and one of a fork on top; the own one is checked out.
fn job(event: &str) -> Project {
    let project = Project::with_loop(LOOP).file(".loops/inner.yaml", INNER);
    git(&project, &["init", "--quiet", "--initial-branch=main"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "-m", "own"]);
    let base = git(&project, &["rev-parse", "HEAD"]);
    git(&project, &["checkout", "--quiet", "-b", "fork"]);
    project.write(".loops/main.yaml", &LOOP.replace("touch ran", "touch stolen"));
    git(&project, &["commit", "--quiet", "-am", "fork"]);
    let head = git(&project, &["rev-parse", "HEAD"]);
    git(&project, &["checkout", "--quiet", "main"]);
    let payload = PAYLOAD.replace("HEAD", &head).replace("BASE", &base);
    project.write(".git/event.json", &payload);
    let path = project.at(".git/event.json").to_string_lossy().into_owned();
    project
        .env("GITHUB_EVENT_NAME", event)
        .env("GITHUB_EVENT_PATH", path)
        .env("GITHUB_REPOSITORY", "octo/project")
        .env("GITHUB_SHA", base)
}

#[test]
fn the_repositorys_own_commit_is_run() {
    for event in ["pull_request_target", "workflow_run", "issue_comment"] {
        let project = job(event);
        project.run(&["run", "main"]).code(0);
        assert!(project.exists("ran"));
        // What a run leaves behind is no reason to refuse the next one.
        project.run(&["run", "main"]).code(0);
    }
}

#[test]
fn a_strangers_commit_is_refused_before_anything_runs() {
    for (event, why) in [
        ("pull_request_target", "comes from the repository mallory/project"),
        ("workflow_run", "comes from the repository mallory/project"),
        ("issue_comment", "is not known to be a commit of this repository's own branches"),
    ] {
        let project = job(event);
        git(&project, &["checkout", "--quiet", "fork"]);
        let ran = project.run(&["run", "main"]).code(2);
        let ran = ran.says(&format!(".loops/main.yaml is not run: the event `{event}`")).says(why);
        let ran = ran.says("help: leave `ref` and `repository` out of actions/checkout");
        assert!(!project.exists("stolen") && !project.exists(".loops/.running"), "{}", ran.all());
        project.run(&["run", "--no-ci", "main"]).code(2).says(why);
        project.run(&["run", "main", "--allow-untrusted"]).code(0);
        assert!(project.exists("stolen"));
    }
}

#[test]
fn a_strangers_commit_is_run_where_the_job_has_no_secrets() {
    let project = job("pull_request");
    git(&project, &["checkout", "--quiet", "fork"]);
    project.run(&["run", "main"]).code(0);
}

/// Puts something in the place of what the trusted commit has, and returns what is said about it.
#[track_caller]
fn check(change: impl FnOnce(&Project), why: &str) {
    let project = job("pull_request_target");
    change(&project);
    project.run(&["run", "main"]).code(2).says(why);
    assert!(!project.exists("ran") && !project.exists("stolen"));
    project.run(&["run", "main", "--allow-untrusted"]).code(0);
}

#[test]
fn other_files_in_the_trusted_commit_are_refused() {
    check(
        |project| drop(git(project, &["checkout", "fork", "--", ".loops"])),
        ".loops/main.yaml is not what it is in the commit",
    );
    check(
        |project| project.write(".loops/inner.yaml", &INNER.replace("'true'", "touch stolen")),
        ".loops/inner.yaml is not what it is",
    );
    check(|project| project.write(".loops/new.yaml", INNER), ".loops/new.yaml is not what it is");
    check(
        |project| {
            project.write(".git/info/exclude", "new.yaml\n");
            project.write(".loops/new.yaml", INNER);
        },
        ".loops/new.yaml is not what it is",
    );
    check(
        |project| {
            git(project, &["rm", "--quiet", "--cached", ".loops/main.yaml"]);
            project.write(".git/info/exclude", "main.yaml\n");
        },
        "the loop is not all of the commit",
    );
    check(
        |project| drop(std::fs::rename(project.at(".git"), project.at("git-dir"))),
        "what is checked out in",
    );
}

#[test]
fn what_git_was_told_not_to_look_at_is_compared_all_the_same() {
    let stolen = LOOP.replace("touch ran", "touch stolen");
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        check(
            |project| {
                git(project, &["update-index", flag, ".loops/main.yaml", ".loops/inner.yaml"]);
                project.write(".loops/main.yaml", &stolen);
            },
            ".loops/main.yaml is not what it is in the commit",
        );
        check(
            |project| {
                git(project, &["update-index", flag, ".loops/main.yaml", ".loops/inner.yaml"]);
                project.write(".loops/inner.yaml", &INNER.replace("'true'", "touch stolen"));
            },
            ".loops/inner.yaml is not what it is in the commit",
        );
    }
    // A file with the size and the times that the index knows.
    check(
        |project| {
            let file = project.at(".loops/main.yaml");
            let other = LOOP.replace("touch ran", "touch ra2");
            let times = std::fs::metadata(&file).unwrap().modified().unwrap();
            git(project, &["config", "core.trustctime", "false"]);
            git(project, &["config", "core.checkStat", "minimal"]);
            std::thread::sleep(std::time::Duration::from_millis(1100));
            git(project, &["update-index", "--refresh"]);
            project.write(".git/touch", "");
            std::fs::write(&file, other).unwrap();
            std::fs::File::options().append(true).open(&file).unwrap().set_modified(times).unwrap();
        },
        ".loops/main.yaml is not what it is in the commit",
    );
    // The commit of the fork in the place of the trusted one, for whoever asks git.
    check(
        |project| {
            git(project, &["replace", "main", "fork"]);
            git(project, &["checkout", "fork", "--", ".loops"]);
        },
        ".loops/main.yaml is not what it is in the commit",
    );
    // A filter that makes the trusted file of any.
    check(
        |project| {
            git(project, &["config", "filter.same.clean", "git cat-file blob HEAD:.loops/main.yaml"]);
            project.write(".git/info/attributes", ".loops/main.yaml filter=same\n");
            project.write(".loops/main.yaml", &stolen);
            git(project, &["add", ".loops/main.yaml"]);
        },
        ".loops/main.yaml is not what it is in the commit",
    );
}

#[test]
fn what_a_loop_pulls_in_is_compared_too() {
    const WITH_IMPORT: &str = "\
name: main
initial: a
import: [parts.yaml]
states:
  a: {fragment: act}
  done: {terminal: true}
";
    const PARTS: &str = "fragments:\n  act: {action: touch ran, next: done}\n";
    let project = job("pull_request_target");
    project.write(".loops/main.yaml", WITH_IMPORT);
    project.write(".loops/parts.yaml", PARTS);
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "-m", "parts"]);
    let own = git(&project, &["rev-parse", "HEAD"]);
    let project = project.env("GITHUB_SHA", own);
    project.run(&["run", "main"]).code(0);
    std::fs::remove_file(project.at("ran")).unwrap();
    git(&project, &["update-index", "--assume-unchanged", ".loops/parts.yaml"]);
    project.write(".loops/parts.yaml", &PARTS.replace("touch ran", "touch stolen"));
    project.run(&["run", "main"]).code(2).says(".loops/parts.yaml is not what it is in the commit");
    assert!(!project.exists("ran") && !project.exists("stolen"));
}

#[test]
fn a_checkout_beside_the_trusted_one_is_refused() {
    let project = job("pull_request_target");
    git(&project, &["clone", "--quiet", "--branch", "fork", ".", "theirs"]);
    project.run(&["run", "theirs/.loops/main.yaml"]).code(2).says("the loop is not all of the commit");
    let theirs = project.command(&["run", "main"]).current_dir(project.at("theirs")).output().unwrap();
    crate::common::Ran::of(&theirs).code(2).says("comes from the repository mallory/project");
    assert!(!project.exists("stolen") && !project.exists("theirs/stolen"));
}

#[test]
fn a_run_is_not_resumed_with_a_strangers_commit() {
    let slow = LOOP.replace("touch ran", "touch ran; sleep 60");
    let project = job("pull_request_target");
    project.write(".loops/main.yaml", &slow);
    git(&project, &["commit", "--quiet", "-am", "slow"]);
    let project = {
        let own = git(&project, &["rev-parse", "HEAD"]);
        project.env("GITHUB_SHA", own)
    };
    let child = project.start_until(&["run", "main"], "ran");
    crate::common::signal(&child, rustix::process::Signal::TERM);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
    git(&project, &["checkout", "--quiet", "fork"]);
    project
        .run(&["resume", "main", "--accept-changes"])
        .code(2)
        .says("comes from the repository mallory/project");
    assert!(!project.exists("stolen"));
}

#[test]
fn the_action_agrees_by_its_input() {
    let project = job("workflow_run").env("INPUT_LOOP", "main").env("INPUT_ALLOW_UNTRUSTED", "true");
    git(&project, &["checkout", "--quiet", "fork"]);
    project.run(&["action"]).code(0);
    assert!(project.exists("stolen"));
}
