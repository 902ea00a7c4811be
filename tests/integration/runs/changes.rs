//! `--changed-since`: a loop runs only when something changed that it is about, and nothing is called verified that was
//! not.

use crate::ci::reported::Github;
use crate::common::{Project, Ran, git};

const LOOP: &str = "\
name: main
description: looks at the sources
initial: a
scope: [src, 'docs/*']
states:
  a: {action: echo ran >> runs, next: done}
  done: {terminal: true, outcome: success}
";

/// A repository with two commits; the second one changes a file in the scope of the loop.
fn repository() -> Project {
    let project = Project::with_loop(LOOP)
        .file("src/a", "1")
        .file("docs/*/b", "1")
        .file("other", "1")
        .file(".gitignore", "runs\n");
    git(&project, &["init", "--quiet", "--initial-branch=main"]);
    commit(&project);
    project
}

fn commit(project: &Project) -> String {
    git(project, &["add", "--all"]);
    git(project, &["commit", "--quiet", "--allow-empty", "-m", "x"]);
    git(project, &["rev-parse", "HEAD"])
}

/// Whether the loop runs after a change since the first commit.
#[track_caller]
fn check(change: impl FnOnce(&Project), runs: bool) {
    let project = repository();
    change(&project);
    let first = git(&project, &["rev-list", "--max-parents=0", "HEAD"]);
    let ran = project.run(&["run", "main", "--changed-since", &first]).code(0);
    assert_eq!(project.exists("runs"), runs, "{}", ran.all());
}

#[test]
fn a_loop_runs_when_its_scope_or_the_loop_itself_has_changed() {
    check(|_| {}, false);
    check(|project| drop((project.write("other", "2"), commit(project))), false);
    check(|project| drop((project.write("src/a", "2"), commit(project))), true);
    check(|project| drop((project.write("src/new", ""), commit(project))), true);
    check(|project| drop((std::fs::remove_file(project.at("src/a")), commit(project))), true);
    check(|project| drop((git(project, &["mv", "src/a", "moved"]), commit(project))), true);
    check(|project| project.write("src/a", "2"), true);
    check(|project| project.write("src/untracked", ""), true);
    check(|project| project.write("other", "2"), false);
    check(|project| project.write(".loops/main.yaml", &LOOP.replace("looks", "looked")), true);
    // The path is one, and no pattern.
    check(|project| project.write("docs/a", ""), false);
    check(|project| project.write("docs/*/a", ""), true);
}

#[test]
fn only_what_changed_on_this_side_of_the_common_commit_counts() {
    let project = repository();
    git(&project, &["checkout", "--quiet", "-b", "topic"]);
    project.write("other", "2");
    commit(&project);
    git(&project, &["checkout", "--quiet", "main"]);
    project.write("src/a", "2");
    commit(&project);
    git(&project, &["checkout", "--quiet", "topic"]);
    let ran = project.run(&["run", "main", "--changed-since", "main"]).code(0);
    let said = "✓ main: success (not in scope): nothing was run or verified, because nothing changed in `src`, `docs/*` since main\n";
    assert_eq!((ran.stdout.as_str(), project.exists("runs")), (said, false));
    assert!(!project.exists(".loops/.running") && !project.exists(".loops/.history"));
}

fn outputs(project: &Project) -> String {
    let directory = git(project, &["ls-files", "--others", "--", ".loops/.history"]);
    let file = directory.lines().find(|file| file.ends_with("outputs.env")).unwrap().to_owned();
    project.read(&file)
}

#[test]
fn a_run_there_was_no_reason_for_is_reported_as_what_it_was() {
    let github = Github::willing();
    let project = github.job(repository()).env("GITHUB_TOKEN", "ghs_0123456789");
    project.write(".git/info/exclude", "out\nsummary\nevent.json\n");
    let ran = project.run(&["run", "main", "--changed-since", "HEAD"]).code(0);
    assert!(!project.exists("runs") && !ran.all().contains("::error"), "{}", ran.all());
    let sentence = "success (not in scope): nothing was run or verified, because nothing changed in `src`, `docs/*` since HEAD";
    assert_eq!(github.statuses(), ["pending: running".to_owned(), format!("success: {sentence}")]);
    let outputs = outputs(&project);
    for line in
        ["outcome=success", "exit-code=0", "verified=false", "final-state=", "steps=0", "handoff=false"]
    {
        assert!(outputs.lines().any(|found| found == line), "{line} in {outputs}");
    }
    assert!(project.read("summary").contains("nothing was run or verified"));
    let told = project.read("out");
    assert!(told.contains("report-dir") && told.contains("junit"), "{told}");
    // A later run is not confused by it.
    project.run(&["history"]).code(0);
    project.run(&["run", "main"]).code(0);
}

#[test]
fn auto_is_the_base_of_the_event() {
    let github = Github::willing();
    let project = repository();
    let base = git(&project, &["rev-parse", "HEAD"]);
    project.write("other", "2");
    commit(&project);
    project.write(".git/info/exclude", "out\nsummary\n");
    project.write(".git/event.json", &format!(r#"{{"before": "{base}"}}"#));
    let path = project.at(".git/event.json").to_string_lossy().into_owned();
    let project = github.job(project).env("GITHUB_EVENT_PATH", path);
    let run = |project: &Project| project.run(&["run", "main", "--changed-since", "auto"]).code(0);
    let short = &base[..7];
    let _ran = run(&project).says(&format!("since {short}"));
    assert!(!project.exists("runs"));
    // Without a base, or when it is gone after a forced push, the loop is run.
    project.write(".git/event.json", &format!(r#"{{"before": "{}"}}"#, "a".repeat(40)));
    let _ran = run(&project).says("the base aaaaaaa is gone, so the loop is run");
    let project = project.env("GITHUB_EVENT_NAME", "schedule");
    let _ran = run(&project).says("the event of this job has no base, so the loop is run");
    assert_eq!(project.read("runs"), "ran\nran\n");
    // The input of the action.
    std::fs::remove_file(project.at("runs")).unwrap();
    let project = project.env("INPUT_LOOP", "main").env("INPUT_CHANGED_SINCE", "HEAD~1");
    project.run(&["action"]).code(0);
    assert!(!project.exists("runs"));
}

#[test]
fn a_scope_outside_of_the_repository_is_in_doubt_and_run() {
    let project = repository();
    project.write(".loops/main.yaml", &LOOP.replace("src", "/etc/hosts"));
    commit(&project);
    let _ran = project
        .run(&["run", "main", "--changed-since", "HEAD"])
        .code(0)
        .says("outside of the repository, so");
    assert!(project.exists("runs"));
}

#[test]
fn a_scope_of_which_nothing_can_be_told_is_said_to_be_and_run() {
    let said = |scope: &str, ignored: &str, expected: &str| {
        let project = repository();
        project.write(".loops/main.yaml", &LOOP.replace("[src, 'docs/*']", scope));
        project.write(".gitignore", &format!("runs\n{ignored}"));
        commit(&project);
        let ran = project.run(&["run", "main", "--changed-since", "HEAD"]).code(0);
        assert_eq!(project.exists("runs"), !expected.is_empty(), "{}", ran.all());
        let _ran = ran.says(expected);
    };
    // A typing mistake is no reason to call a job green.
    said("[scr]", "", "`scr` of the scope is unknown: it does not exist, so the loop is run");
    said("[src, scr]", "", "`scr` of the scope is unknown: it does not exist, so the loop is run");
    said("[src/a/b]", "", "`src/a/b` of the scope is unknown: it does not exist, so the loop is run");
    said("[build]", "build\n", "`build` of the scope is unknown: git ignores it, so the loop is run");
    said("[build/x]", "build/\n", "`build/x` of the scope is unknown: git ignores it, so the loop is run");
    said("[runs]", "", "`runs` of the scope is unknown: git ignores it, so the loop is run");
    said("[src]", "src\n", "");
    said("['.']", "", "");
}

#[test]
fn a_scope_that_was_deleted_has_changed() {
    let project = repository();
    project.write(".loops/main.yaml", &LOOP.replace("src, 'docs/*'", "src"));
    let base = commit(&project);
    std::fs::remove_dir_all(project.at("src")).unwrap();
    commit(&project);
    let ran = project.run(&["run", "main", "--changed-since", &base]).code(0);
    assert!(project.exists("runs") && !ran.all().contains("of the scope"), "{}", ran.all());
}

#[test]
fn a_base_that_cannot_be_found_is_refused() {
    let project = repository();
    let refused = |base: &str| project.run(&["run", "main", &format!("--changed-since={base}")]).code(2);
    let _ran = refused("nowhere").says("the base `nowhere` is not in this clone\nhelp: name a commit");
    let _ran = refused("--output=x").says("the base `--output=x` is not in this clone");
    assert!(!project.exists("runs") && !project.exists("x"));
    let _ran = Project::with_loop(LOOP)
        .run(&["run", "main", "--changed-since", "main"])
        .code(2)
        .says("needs a git repository");

    let first = git(&project, &["rev-parse", "HEAD"]);
    commit(&project);
    let address = format!("file://{}", project.path().display());
    git(&project, &["clone", "--quiet", "--depth=1", &address, "shallow"]);
    for base in [first.as_str(), "auto"] {
        let mut command = project.command(&["run", "main", "--changed-since", base]);
        project.write(".git/event.json", &format!(r#"{{"before": "{first}"}}"#));
        command.env("GITHUB_EVENT_NAME", "push").env("GITHUB_EVENT_PATH", project.at(".git/event.json"));
        let ended = command.current_dir(project.at("shallow")).output().unwrap();
        let said = format!(
            "error: the base `{}` is not in this clone, which is shallow\nhelp: let actions/checkout get the history: `fetch-depth: 0`",
            &first[..7]
        );
        let _ran = Ran::of(&ended).code(2).says(&said);
    }
}

#[test]
fn only_what_is_known_is_skipped() {
    let said = |change: &dyn Fn(&Project), why: &str| {
        let project = repository();
        change(&project);
        commit(&project);
        let ran = project.run(&["run", "main", "--changed-since", "HEAD"]).code(0);
        assert_eq!(project.exists("runs"), !why.is_empty(), "{}", ran.all());
        let _ran = ran.says(why);
    };
    said(&|_| {}, "");
    let more = |states: &str| LOOP.replace("next: done", "next: more") + states;
    let unreadable = more("  more: {loop: inner, on_success: done, on_failure: done, on_error: done}\n");
    said(
        &|project| {
            project.write(".loops/main.yaml", &unreadable);
            project.write(".loops/inner.yaml", "name: inner\nstates: [");
        },
        "the loop `inner`, which `more` of `main` runs, cannot be read",
    );
    let chosen = LOOP.replace("initial: a", "initial: a\ncontext: {which: absent}");
    let chosen = chosen.replace("next: done", "next: more")
        + "  more: {loop: '${context.which}', on_success: done, on_failure: done, on_error: done}\n";
    said(&|project| project.write(".loops/main.yaml", &chosen), "chooses its loop only while it runs");
    said(
        &|project| std::os::unix::fs::symlink("../other", project.at("src/link")).unwrap(),
        "`src/link` of the scope is unknown: it is a link to `other`",
    );
    said(&|project| std::os::unix::fs::symlink("a", project.at("src/link")).unwrap(), "");
    let project = repository();
    git(&project, &["update-index", "--assume-unchanged", "src/a"]);
    project.write("src/a", "2");
    let ran = project.run(&["run", "main", "--changed-since", "HEAD"]).code(0);
    let _ran = ran.says("the index tells git not to look at it, so the loop is run");
}
