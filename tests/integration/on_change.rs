//! What a run did to the working tree, told alike by its exit code, the status of the commit and every report.

use std::process::Command;

use serde_json::Value;

use crate::common::{Project, git};
#[cfg(feature = "github")]
use crate::reported::{Github, committed};

fn json(project: &Project, path: &str) -> Value {
    serde_json::from_str(&project.read(path)).unwrap()
}

/// A loop whose one state works on the tree and is judged by its exit code.
fn working(action: &str, more: &str) -> String {
    format!(
        "name: main\ninitial: work\n{more}states:\n  work:\n    action: |\n      {}\n    on_yes: done\n    on_no: failed\n  done: {{terminal: true}}\n  failed: {{terminal: true}}\n",
        action.replace('\n', "\n      ")
    )
}

fn files(project: Project) -> Project {
    let long: String = (0..40).map(|line| format!("line {line}\n")).collect();
    project
        .file(".gitignore", "ignored\n")
        .file("a.txt", "one\n")
        .file("b.txt", "two\n")
        .file("long.txt", &long)
        .file("sub/c.txt", "three\n")
}

/// Tells whether the patch makes of a clean clone of the start what the run left, byte for byte.
fn patch_makes_the_end(project: &Project) {
    let result = json(project, "reports/result.json");
    let ids = |at: &str, key: &str| result["changes"][at][key].as_str().unwrap().to_owned();
    let clone = Project::new();
    let root = project.path().to_string_lossy().into_owned();
    git(&clone, &["init", "-q"]);
    git(&clone, &["fetch", "-q", &root, &ids("start", "commit")]);
    git(&clone, &["checkout", "-q", "--detach", &ids("start", "commit")]);
    let patch = project.at("reports/changes.patch");
    if patch.exists() {
        git(&clone, &["apply", "--index", "--whitespace=nowarn", &patch.to_string_lossy()]);
    }
    assert_eq!(git(&clone, &["write-tree"]), ids("end", "tree"), "{}", result["changes"]);
}

/// One line of the table.
#[cfg(feature = "github")]
struct Case {
    /// What is done to the checkout before the run.
    before: &'static str,
    /// What the run does.
    action: &'static str,
    /// Keys of the loop, and arguments of the command line.
    given: (&'static str, &'static [&'static str]),
    event: &'static str,
    exit: i32,
    by: &'static str,
    /// The state and the description of the status; none where none is set.
    status: Option<(&'static str, &'static str)>,
    /// How many files changed; none where that is not known.
    files: Option<u64>,
}

#[cfg(feature = "github")]
const PASSED: Option<(&str, &str)> = Some(("success", "success: `work` said yes"));
#[cfg(feature = "github")]
const FAILED: Option<(&str, &str)> = Some(("failure", "failure: `work` said no"));
#[cfg(feature = "github")]
const REPORT: (&str, &[&str]) = ("on_change: report\n", &[]);
#[cfg(feature = "github")]
const FAIL: (&str, &[&str]) = ("", &["--on-change", "fail"]);
#[cfg(feature = "github")]
const PLAIN: (&str, &[&str]) = ("", &[]);
#[cfg(feature = "github")]
const NOT_REPORTED: (&str, &[&str]) = ("on_change: fail\n", &["--on-change", "report"]);

#[cfg(feature = "github")]
#[rustfmt::skip]
const TABLE: &[(&str, Case)] = &[
    ("nothing", case("", "true", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("nothing, and it fails", case("", "false", PLAIN, "push", 1, "terminal", FAILED, Some(0))),
    ("the same content again", case("", "echo one > a.txt", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("an ignored file", case("", "echo x > ignored", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("an untracked file", case("", "echo x > new", PLAIN, "push", 0, "terminal", PASSED, Some(1))),
    ("an untracked file outside of the scope", case("", "echo x > new", ("scope: [sub]\n", &[]), "push", 0, "terminal", PASSED, Some(0))),
    ("an untracked file in the scope", case("", "echo x > sub/new", ("scope: [sub]\n", &[]), "push", 0, "terminal", PASSED, Some(1))),
    ("a tracked file", case("", "echo x > a.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("a tracked file outside of the scope", case("", "echo x > a.txt", ("scope: [sub]\n", &[]), "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("a tracked file, asked to fail", case("", "echo x > a.txt", FAIL, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("a tracked file, to be reported", case("", "echo x > a.txt", REPORT, "push", 0, "terminal", with("1 file"), Some(1))),
    ("the command line wins", case("", "echo x > a.txt", NOT_REPORTED, "push", 0, "terminal", with("1 file"), Some(1))),
    ("a tracked file, and it fails", case("", "echo x > a.txt; false", PLAIN, "push", 1, "terminal", FAILED, Some(1))),
    ("a tracked file, reported, and it fails", case("", "echo x > a.txt; false", REPORT, "push", 1, "terminal", FAILED, Some(1))),
    ("same size", case("", "echo eno > a.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("deleted", case("", "rm a.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("emptied", case("", ": > a.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("emptied by a maintain loop", case("", ": > a.txt", ("maintain: true\nmax_iterations: 3\n", &["--max-cycles", "1"]), "push", 0, "terminal", with("1 file"), Some(1))),
    ("renamed", case("", "mv long.txt other.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("renamed with git", case("", "git mv long.txt other.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("a mode", case("", "chmod +x a.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("a type", case("", "rm a.txt; ln -s b.txt a.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("a file becomes a directory", case("", "rm a.txt; mkdir a.txt; echo x > a.txt/y", PLAIN, "push", 1, "uncommitted_changes", passes_only(2), Some(2))),
    ("binary", case("", "printf '\\000\\001\\377' > a.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("an index-only change", case("", "git rm -q --cached a.txt", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("staged and taken back", case("", "echo x > a.txt; git add a.txt; git reset -q --hard", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("changed and taken back", case("", "echo x > a.txt; git checkout -q a.txt", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("staged", case("", "echo x > a.txt; git add a.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("committed", case("", "echo x > a.txt; git -c user.name=t -c user.email=t@t commit -qam more", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("committed, to be reported", case("", "echo x > a.txt; git -c user.name=t -c user.email=t@t commit -qam more", REPORT, "push", 0, "terminal", with("1 file in 1 new commit and beside"), Some(1))),
    ("an empty commit", case("", "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m more", PLAIN, "push", 1, "uncommitted_changes", Some(("failure", "failure: the check passes only at")), Some(0))),
    ("cleaned", case("echo x > new", "git clean -fdxq -e .loops -e reports -e out -e summary -e event.json", PLAIN, "push", 0, "terminal", PASSED, Some(1))),
    ("dirty from the beginning", case("echo x > a.txt", "true", PLAIN, "push", 0, "terminal", before("1 file"), Some(0))),
    ("dirty, and changed more", case("echo x > a.txt", "echo y > a.txt", PLAIN, "push", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("dirty, and taken back", case("echo x > a.txt", "git checkout -q a.txt", PLAIN, "push", 0, "terminal", before("1 file"), Some(1))),
    ("dirty, and it fails", case("echo x > a.txt", "false", PLAIN, "push", 1, "terminal", FAILED, Some(0))),
    ("untracked from the beginning", case("echo x > new", "true", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("untracked, and changed", case("echo x > new", "echo y > new", PLAIN, "push", 0, "terminal", PASSED, Some(1))),
    ("nothing is observed", case("", "true", ("strict", &[]), "push", 1, "terminal", Some(("failure", "failure")), Some(0))),
    ("a hand-off", case("", "echo x > a.txt; echo CONTEXT_HANDOFF: later", PLAIN, "push", 75, "handoff", Some(("pending", "handed off")), Some(1))),
    ("a fatal error", case("", "echo x > a.txt; echo FATAL_ERROR: no", PLAIN, "push", 4, "fatal_error", Some(("error", "error")), Some(1))),
    ("no repository", case("rm -rf .git", "echo x > a.txt", PLAIN, "push", 0, "terminal", Some(("error", "success of a tree that is not known: there is no git repository")), None)),
    ("no repository, asked to fail", case("rm -rf .git", "echo x > a.txt", FAIL, "push", 69, "", None, None)),
    ("no commit", case("rm -rf .git; git init -q", "echo x > a.txt", PLAIN, "push", 0, "terminal", Some(("error", "success of a tree that is not known: there is no commit yet")), None)),
    ("another commit is checked out", case("git -c user.name=t -c user.email=t@t commit -q --allow-empty -m more", "true", PLAIN, "push", 0, "terminal", Some(("error", "success of commit")), Some(0))),
    ("at night", case("", "true", PLAIN, "schedule", 0, "terminal", None, Some(0))),
    ("at night, with changes", case("", "echo x > a.txt", PLAIN, "schedule", 1, "uncommitted_changes", None, Some(1))),
    ("by hand", case("", "true", PLAIN, "workflow_dispatch", 0, "terminal", None, Some(0))),
    ("by hand, with a status", case("", "true", ("", &["--status"]), "workflow_dispatch", 0, "terminal", PASSED, Some(0))),
    ("a pull request", case("", "true", PLAIN, "pull_request", 0, "terminal", PASSED, Some(0))),
    ("a pull request that was repaired", case("", "echo x > a.txt", PLAIN, "pull_request", 1, "uncommitted_changes", passes_only(1), Some(1))),
    ("a pull request at another commit", case("git -c user.name=t -c user.email=t@t commit -q --allow-empty -m more", "true", PLAIN, "pull_request", 0, "terminal", Some(("error", "success of commit")), Some(0))),
];

#[cfg(feature = "github")]
const fn case(
    before: &'static str,
    action: &'static str,
    given: (&'static str, &'static [&'static str]),
    event: &'static str,
    exit: i32,
    by: &'static str,
    status: Option<(&'static str, &'static str)>,
    files: Option<u64>,
) -> Case {
    Case { before, action, given, event, exit, by, status, files }
}

#[cfg(feature = "github")]
const fn passes_only(files: u8) -> Option<(&'static str, &'static str)> {
    Some((
        "failure",
        match files {
            1 => "failure: the check passes only with changes to 1 file that this commit does not have",
            _ => "failure: the check passes only with changes to 2 files that this commit does not have",
        },
    ))
}

#[cfg(feature = "github")]
const fn with(what: &'static str) -> Option<(&'static str, &'static str)> {
    Some((
        "failure",
        match what.len() {
            6 => "success with changes to 1 file, not part of this commit",
            _ => "success with changes to 1 file in 1 new commit and beside, not part of this commit",
        },
    ))
}

#[cfg(feature = "github")]
const fn before(_files: &str) -> Option<(&'static str, &'static str)> {
    Some(("failure", "success with 1 file that differed from this commit from the beginning"))
}

#[cfg(feature = "github")]
fn check(name: &str, case: &Case) {
    let github = Github::willing();
    let (keys, arguments) = case.given;
    let text = match keys {
        "strict" => "name: main\ninitial: work\nstates:\n  work: {action: \"true\", next: done}\n  done: {terminal: true}\n".to_owned(),
        keys => working(case.action, keys),
    };
    let project = github.job(files(Project::with_loop(&text))).env("GITHUB_TOKEN", "ghs_0123456789");
    let (mut project, _) = committed(project);
    let head = "2222222222222222222222222222222222222222";
    if case.event == "pull_request" {
        let payload = format!(
            r#"{{"pull_request": {{"number": 7, "head": {{"ref": "fix", "sha": "{head}", "repo": {{"full_name": "octo/project"}}}}, "base": {{"ref": "main", "sha": "{}"}}}}}}"#,
            "3".repeat(40)
        );
        let path = project.at("event.json").to_string_lossy().into_owned();
        project = project.file("event.json", &payload).env("GITHUB_EVENT_PATH", path);
    }
    let project = project.env("GITHUB_EVENT_NAME", case.event);
    let made = Command::new("bash").args(["-c", case.before]).current_dir(project.path()).status();
    assert!(made.unwrap().success(), "{name}");
    let ran = project.run(&[&["run", "main", "--report-dir", "reports"], arguments].concat());
    assert_eq!(ran.code, Some(case.exit), "{name}: {}", ran.all());
    let statuses = github.statuses();
    let last = statuses.last().map(String::as_str);
    match case.status {
        Some((state, words)) => {
            let last = last.unwrap_or_default();
            assert!(last.starts_with(&format!("{state}: {words}")), "{name}: {statuses:?}");
        }
        None if case.exit == 69 => {
            assert!(last.is_none_or(|last| !last.starts_with("success")), "{name}: {last:?}")
        }
        None => assert_eq!(last, None, "{name}"),
    }
    if case.exit == 69 {
        return;
    }
    agree(name, case, &project);
}

/// Checks that every report says the same.
#[cfg(feature = "github")]
fn agree(name: &str, case: &Case, project: &Project) {
    let result = json(project, "reports/result.json");
    assert_eq!(result["outputs"]["exit-code"], case.exit.to_string(), "{name}");
    assert_eq!(result["terminated_by"], case.by, "{name}: {}", result["sentence"]);
    let changes = &result["changes"];
    let listed = changes["files"].as_array().map(|files| files.len() as u64);
    assert_eq!(listed, case.files, "{name}: {changes}");
    assert_eq!(&project.events().last().unwrap()["changes"]["files"], &changes["files"], "{name}");
    let count = case.files.map(|count| count.to_string()).unwrap_or_default();
    assert_eq!(result["outputs"]["changed-files"], count, "{name}");
    let outputs = project.read("reports/outputs.env");
    assert!(outputs.contains(&format!("changed-files={count}\n")), "{name}: {outputs}");
    let has_changes = case.files.is_some_and(|count| count > 0);
    let summary = project.read("summary");
    assert_eq!(
        summary.contains("### Changed files"),
        has_changes || case.action.contains("--allow-empty"),
        "{name}: {summary}"
    );
    assert_eq!(
        summary.contains("in the working tree is not known"),
        case.files.is_none(),
        "{name}: {summary}"
    );
    let junit = project.read("reports/junit.xml");
    let property = format!("<property name=\"ll.changed_files\" value=\"{count}\"/>");
    assert_eq!(junit.contains(&property), case.files.is_some(), "{name}: {junit}");
    let has_failed = junit.contains("<failure") || junit.contains("<error");
    assert_eq!(has_failed, !matches!(case.exit, 0 | 75), "{name}: {junit}");
    if has_changes {
        assert_eq!(result["outputs"]["patch"], "reports/changes.patch", "{name}");
        if case.before.is_empty() {
            patch_makes_the_end(project);
        }
    } else {
        assert!(!project.exists("reports/changes.patch"), "{name}");
    }
}

#[cfg(feature = "github")]
#[test]
fn exit_code_status_and_reports_agree_on_every_line_of_the_table() {
    assert!(TABLE.len() >= 40);
    let failed = TABLE.iter().filter(|(name, case)| std::panic::catch_unwind(|| check(name, case)).is_err());
    let failed: Vec<&str> = failed.map(|(name, _)| *name).collect();
    assert_eq!(failed, [""; 0]);
}
