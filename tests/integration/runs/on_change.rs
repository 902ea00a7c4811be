//! What a run did to the working tree, told alike by its exit code, the status of the commit and every report.

use std::process::Command;

use serde_json::Value;

use crate::ci::reported::{Github, committed};
use crate::common::{Project, git};

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
    let long = (0..40).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
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

const PASSED: Option<(&str, &str)> = Some(("success", "success: `work` said yes"));
const FAILED: Option<(&str, &str)> = Some(("failure", "failure: `work` said no"));
const REPORT: (&str, &[&str]) = ("on_change: report\n", &[]);
const FAIL: (&str, &[&str]) = ("", &["--on-change", "fail"]);
const PLAIN: (&str, &[&str]) = ("", &[]);
const NOT_REPORTED: (&str, &[&str]) = ("on_change: fail\n", &["--on-change", "report"]);

#[rustfmt::skip]
const TABLE: &[(&str, Case)] = &[
    ("nothing", case("", "true", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("nothing, and it fails", case("", "false", PLAIN, "push", 1, "terminal", FAILED, Some(0))),
    ("the same content again", case("", "echo one > a.txt", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("an ignored file", case("", "echo x > ignored", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("an untracked file", case("", "echo x > new", PLAIN, "push", 0, "terminal", PASSED, Some(1))),
    ("an untracked file outside of the scope", case("", "echo x > new", ("scope: [sub]\n", &[]), "push", 0, "terminal", PASSED, Some(0))),
    ("an untracked file in the scope", case("", "echo x > sub/new", ("scope: [sub]\n", &[]), "push", 0, "terminal", PASSED, Some(1))),
    ("a tracked file", case("", "echo x > a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a tracked file outside of the scope", case("", "echo x > a.txt", ("scope: [sub]\n", &[]), "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a tracked file, asked to fail", case("", "echo x > a.txt", FAIL, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a tracked file, to be reported", case("", "echo x > a.txt", REPORT, "push", 0, "terminal", WITH, Some(1))),
    ("the command line wins", case("", "echo x > a.txt", NOT_REPORTED, "push", 0, "terminal", WITH, Some(1))),
    ("a tracked file, and it fails", case("", "echo x > a.txt; false", PLAIN, "push", 1, "terminal", FAILED, Some(1))),
    ("a tracked file, reported, and it fails", case("", "echo x > a.txt; false", REPORT, "push", 1, "terminal", FAILED, Some(1))),
    ("same size", case("", "echo eno > a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("deleted", case("", "rm a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("emptied", case("", ": > a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("emptied by a maintain loop", case("", ": > a.txt", ("maintain: true\nmax_iterations: 3\n", &["--max-cycles", "1"]), "push", 0, "terminal", WITH, Some(1))),
    ("renamed", case("", "mv long.txt other.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("renamed with git", case("", "git mv long.txt other.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a mode", case("", "chmod +x a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a type", case("", "rm a.txt; ln -s b.txt a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a file becomes a directory", case("", "rm a.txt; mkdir a.txt; echo x > a.txt/y", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY_WITH_TWO, Some(2))),
    ("binary", case("", "printf '\\000\\001\\377' > a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a mode that the configuration hides", case("git config core.fileMode false", "chmod +x a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a mode that the action hides", case("", "git config core.fileMode false; chmod +x a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a mode that a worktree's configuration hides", case("", "git config extensions.worktreeConfig true; git config --worktree core.fileMode false; chmod +x a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a mode that an included file hides", case("", "printf '[core]\\nfileMode = false\\n' > .git/more; git config include.path more; chmod +x a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    // Git compares whole seconds.
    ("times that are put back", case("git config core.checkStat minimal; git config core.trustctime false; touch -d @1700000000 a.txt; git status", "sleep 1.1; echo eno > a.txt; touch -d @1700000000 a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("times that are put back, as the action says", case("touch -d @1700000000 a.txt; git status", "git config core.checkStat minimal; git config core.trustctime false; sleep 1.1; echo eno > a.txt; touch -d @1700000000 a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a name in other letters", case("git config core.ignoreCase true", "echo x > A.txt", PLAIN, "push", 0, "terminal", PASSED, Some(1))),
    ("a name in other letters, as the action says", case("", "git config core.ignoreCase true; echo x > A.txt", PLAIN, "push", 0, "terminal", PASSED, Some(1))),
    ("renamed to other letters", case("git config core.ignoreCase true", "mv a.txt A.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a link that the configuration takes for a file", case("git config core.symlinks false; git config core.fileMode false", "printf b.txt > x; rm a.txt; ln -s b.txt a.txt; rm x", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a tracked file of ours", case("mkdir -p .loop; echo '{}' > .loop/state.json; echo x > kept.llz; git add -f .loop kept.llz; git -c user.name=t -c user.email=t@t commit -qm more", "echo y > kept.llz", REPORT, "push", 0, "terminal", Some(("error", "success of commit")), Some(1))),
    ("a file of ours", case("", "echo y > left.llz", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("an index-only change", case("", "git rm -q --cached a.txt", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("staged and taken back", case("", "echo x > a.txt; git add a.txt; git reset -q --hard", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("changed and taken back", case("", "echo x > a.txt; git checkout -q a.txt", PLAIN, "push", 0, "terminal", PASSED, Some(0))),
    ("staged", case("", "echo x > a.txt; git add a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("committed", case("", "echo x > a.txt; git -c user.name=t -c user.email=t@t commit -qam more", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("committed, to be reported", case("", "echo x > a.txt; git -c user.name=t -c user.email=t@t commit -qam more", REPORT, "push", 0, "terminal", WITH_COMMIT, Some(1))),
    ("an empty commit", case("", "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m more", PLAIN, "push", 1, "uncommitted_changes", Some(("failure", "failure: the check passes only at")), Some(0))),
    ("cleaned", case("echo x > new", "git clean -fdxq -e .loops -e reports -e out -e summary -e event.json", PLAIN, "push", 0, "terminal", PASSED, Some(1))),
    ("dirty from the beginning", case("echo x > a.txt", "true", PLAIN, "push", 0, "terminal", BEFORE, Some(0))),
    ("dirty, and changed more", case("echo x > a.txt", "echo y > a.txt", PLAIN, "push", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("dirty, and taken back", case("echo x > a.txt", "git checkout -q a.txt", PLAIN, "push", 0, "terminal", BEFORE, Some(1))),
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
    ("a pull request that was repaired", case("", "echo x > a.txt", PLAIN, "pull_request", 1, "uncommitted_changes", PASSES_ONLY, Some(1))),
    ("a pull request at another commit", case("git -c user.name=t -c user.email=t@t commit -q --allow-empty -m more", "true", PLAIN, "pull_request", 0, "terminal", Some(("error", "success of commit")), Some(0))),
];

#[expect(clippy::too_many_arguments, reason = "a line of the table, in the order of its columns")]
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

const PASSES_ONLY: Option<(&str, &str)> =
    Some(("failure", "failure: the check passes only with changes to 1 file that this commit does not have"));
const PASSES_ONLY_WITH_TWO: Option<(&str, &str)> = Some((
    "failure",
    "failure: the check passes only with changes to 2 files that this commit does not have",
));
const WITH: Option<(&str, &str)> =
    Some(("failure", "success with changes to 1 file, not part of this commit"));
const WITH_COMMIT: Option<(&str, &str)> =
    Some(("failure", "success with changes to 1 file and 1 new commit, not part of this commit"));
const BEFORE: Option<(&str, &str)> =
    Some(("failure", "success with 1 file that differed from this commit from the beginning"));

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
            assert!(last.is_none_or(|last| !last.starts_with("success")), "{name}: {last:?}");
        }
        None => assert_eq!(last, None, "{name}"),
    }
    if case.exit == 69 {
        return;
    }
    agree(name, case, &project);
}

/// Checks that every report says the same.
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

#[test]
fn exit_code_status_and_reports_agree_on_every_line_of_the_table() {
    assert!(TABLE.len() >= 40);
    let failed = TABLE.iter().filter(|(name, case)| std::panic::catch_unwind(|| check(name, case)).is_err());
    let failed: Vec<&str> = failed.map(|(name, _)| *name).collect();
    assert_eq!(failed, [""; 0]);
}

/// A project with a repository, as a run in CI sees it without GitHub.
fn in_ci(text: &str) -> Project {
    let project = files(Project::with_loop(text)).env("CI", "true");
    git(&project, &["init", "-q", "-b", "main"]);
    project.write(".git/info/exclude", "/reports\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project
}

#[track_caller]
fn run(project: &Project, code: i32) -> Value {
    project.run(&["run", "main", "--report-dir", "reports"]).code(code);
    json(project, "reports/result.json")
}

/// Returns the changed files as `modified a.txt`.
fn changed(result: &Value) -> Vec<String> {
    let files = result["changes"]["files"].as_array().unwrap();
    files
        .iter()
        .map(|file| format!("{} {}", file["kind"].as_str().unwrap(), file["path"].as_str().unwrap()))
        .collect()
}

/// Makes the race in which git cannot tell by its times whether a file changed: the file has the size and the time that
/// the index knows, and the index is as old as the file. A copy of the index that is newer believes the times.
const RACE: &str = "git config core.checkStat minimal; git config core.trustctime false; touch -d @1600000000 a.txt; \
    git update-index --refresh; echo eno > a.txt; touch -d @1600000000 a.txt .git/index";

#[test]
fn an_edit_in_the_moment_of_the_checkout_is_seen() {
    let project = in_ci(&working(RACE, ""));
    let result = run(&project, 1);
    assert_eq!(changed(&result), ["modified a.txt"]);
    patch_makes_the_end(&project);
    let bundle = format!("reports/{}.llz", result["outputs"]["run-id"].as_str().unwrap());
    let listed =
        Command::new("unzip").args(["-p", &bundle, "manifest.json"]).current_dir(project.path()).output();
    let manifest: Value = serde_json::from_slice(&listed.unwrap().stdout).unwrap();
    assert_eq!(manifest["tree"]["changed"], true, "{manifest}");
    assert_eq!(manifest["tree"]["tree"], result["changes"]["end"]["tree"], "{manifest}");
}

#[test]
fn names_that_are_no_text_come_along() {
    let action =
        "printf x > $'new\nline'; printf x > $'bad\\377'; printf 'x' > '\"quoted\"'; printf x > 'ü ß'";
    let project = in_ci(&working(action, "on_change: report\n"));
    let result = run(&project, 0);
    let mut found = changed(&result);
    found.sort();
    assert_eq!(
        found,
        ["untracked \"\\\"quoted\\\"\"", "untracked \"bad\\377\"", "untracked new\nline", "untracked ü ß"]
    );
    patch_makes_the_end(&project);
}

#[test]
fn a_shallow_clone_and_a_sparse_checkout_are_enough() {
    let source = in_ci(&working("true", ""));
    git(&source, &["commit", "-q", "--allow-empty", "-m", "second"]);
    let clone = Project::new().env("CI", "true");
    let from = format!("file://{}", source.path().display());
    git(&clone, &["init", "-q"]);
    git(&clone, &["-c", "protocol.file.allow=always", "fetch", "-q", "--depth", "1", &from, "main"]);
    git(&clone, &["sparse-checkout", "set", "--no-cone", "/*", "!/sub/"]);
    git(&clone, &["checkout", "-q", "FETCH_HEAD"]);
    assert!(!clone.exists("sub/c.txt"));
    assert_eq!(changed(&run(&clone, 0)), [""; 0]);
    clone.write("a.txt", "other\n");
    let result = run(&clone, 0);
    assert_eq!(result["changes"]["before"][0]["path"], "a.txt");
}

#[test]
fn files_that_differ_from_the_beginning_are_named() {
    let (project, _) = committed(files(Project::with_loop(&working("true", ""))));
    project.write("a.txt", "other");
    let ran = project.run(&["run", "main", "--ci"]);
    drop(ran.says("the run begins with 1 tracked file that differs from the commit: `a.txt`\n"));
}

#[test]
fn a_submodule_is_a_change_that_no_patch_holds() {
    let project = in_ci(&working("echo x > vendor/a.txt; echo y > a.txt", "on_change: report\n"));
    let inner = in_ci("");
    let from = inner.path().to_string_lossy().into_owned();
    git(&project, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "vendor"]);
    git(&project, &["commit", "-q", "-am", "second"]);
    let result = run(&project, 0);
    assert_eq!(changed(&result), ["modified a.txt", "modified vendor"]);
    assert_eq!(result["changes"]["files"][1]["not_in_patch"], "it is a repository of its own");
    let patch = project.read("reports/changes.patch");
    assert!(patch.contains("a/a.txt") && !patch.contains("vendor"), "{patch}");
}

#[test]
fn a_submodule_that_moved_is_named_with_both_commits() {
    let project = in_ci(&working("git -C vendor checkout -q HEAD~1", "on_change: report\n"));
    let inner = in_ci("");
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "second"]);
    let commit = |revision| git(&inner, &["rev-parse", "--short=12", revision]);
    let moved =
        format!("it is a repository of its own, moved from {} to {}", commit("HEAD"), commit("HEAD~1"));
    let from = inner.path().to_string_lossy().into_owned();
    git(&project, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "vendor"]);
    git(&project, &["commit", "-q", "-am", "second"]);
    let result = run(&project, 0);
    assert_eq!(changed(&result), ["modified vendor"]);
    assert_eq!(result["changes"]["files"][0]["not_in_patch"], moved);
    assert!(project.read("reports/summary.md").contains(&moved));
    project.write(".loops/main.yaml", &working("git -C vendor checkout -q HEAD~1", ""));
    git(&project, &["-C", "vendor", "checkout", "-q", "-"]);
    git(&project, &["commit", "-q", "-am", "third"]);
    let ran = project.run(&["run", "main"]).code(1);
    drop(ran.says("commit the changes, or run it with `--on-change report`"));
}

#[test]
fn what_git_is_told_not_to_see_is_seen_all_the_same() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let project = in_ci(&working(&format!("git update-index {flag} a.txt; echo x > a.txt"), ""));
        let result = run(&project, 1);
        assert_eq!(changed(&result), ["modified a.txt"], "{flag}");
        assert_eq!(result["terminated_by"], "uncommitted_changes", "{flag}");
    }
}

#[test]
fn a_locked_index_and_a_repository_that_cannot_be_written_keep_nobody_from_looking() {
    let project = in_ci(&working("touch .git/index.lock; chmod -R a-w .git; echo x > a.txt", ""));
    let result = run(&project, 1);
    Command::new("chmod").args(["-R", "u+w", ".git"]).current_dir(project.path()).status().unwrap();
    assert_eq!(changed(&result), ["modified a.txt"]);
}

#[test]
fn too_many_and_too_large_files_are_named_and_not_read() {
    let action = "mkdir many; (cd many; seq 12000 | xargs touch); truncate -s 300M large";
    let project = in_ci(&working(action, "on_change: report\n"));
    // None of their names is that of a judge.
    let result = run(&project, 0);
    let unseen = result["changes"]["unseen"][0].as_str().unwrap();
    assert!(unseen.contains("untracked files of the scope are not compared"), "{unseen}");
    let large =
        result["changes"]["files"].as_array().unwrap().iter().find(|file| file["path"] == "large").unwrap();
    assert_eq!((&large["size"], &large["not_in_patch"]), (&(300u64 << 20).into(), &"it is too large".into()));
    assert_eq!(result["outputs"]["changed-files"], "10000");
}

#[test]
fn line_ends_are_compared_as_git_keeps_them() {
    let project = in_ci(&working("printf 'one\\r\\n' > a.txt; printf 'two\\r\\nmore\\r\\n' > b.txt", ""));
    git(&project, &["config", "core.autocrlf", "true"]);
    assert_eq!(changed(&run(&project, 1)), ["modified b.txt"]);
    patch_makes_the_end(&project);
}

#[test]
fn a_repository_that_disappears_is_said_to_be_unknown() {
    let project = in_ci(&working("rm -rf .git", ""));
    let result = run(&project, 1);
    assert_eq!(
        (&result["verified"], &result["terminated_by"]),
        (&Value::Bool(false), &"uncommitted_changes".into())
    );
    assert_eq!(result["changes"], Value::Null);
    assert_eq!(result["changes_unknown"], "there is no git repository");
}

#[test]
fn a_secret_is_not_in_the_patch() {
    let project = in_ci(&working("echo \"$MY_TOKEN\" > a.txt; echo x > b.txt", "on_change: report\n"));
    let project = project.env("MY_TOKEN", "s3cr3t-0123456789");
    let result = run(&project, 0);
    assert_eq!(changed(&result), ["modified a.txt", "modified b.txt"]);
    assert_eq!(result["changes"]["files"][0]["not_in_patch"], "it holds a secret");
    let patch = project.read("reports/changes.patch");
    assert!(patch.contains("b.txt") && !patch.contains("s3cr3t") && !patch.contains("a/a.txt"), "{patch}");
}

#[test]
fn a_file_whose_name_holds_a_secret_is_left_out_of_the_patch_alone() {
    let project = in_ci(&working("touch cache-$MY_TOKEN; echo x > b.txt", "on_change: report\n"));
    let project = project.env("MY_TOKEN", "s3cr3t-0123456789");
    let result = run(&project, 0);
    assert_eq!(changed(&result), ["modified b.txt", "untracked cache-***"]);
    assert_eq!(result["changes"]["files"][1]["not_in_patch"], "it holds a secret");
    let patch = project.read("reports/changes.patch");
    assert!(patch.contains("b.txt") && !patch.contains("cache-"), "{patch}");
}

#[test]
fn a_resume_keeps_the_tree_on_which_the_run_began() {
    let text = "name: main\ninitial: one\nstates:\n  one: {action: echo x > a.txt, next: two}\n  two: {action: 'test -e go || { echo CONTEXT_HANDOFF: later; exit 1; }', on_yes: done, on_no: two}\n  done: {terminal: true}\n";
    let project = in_ci(text);
    assert_eq!(changed(&run(&project, 75)), ["modified a.txt"]);
    project.write("go", "");
    let again = project.run(&["resume", "main", "--report-dir", "reports"]).code(1);
    again.says("the check passes only with changes to 2 files that this commit does not have");
    let result = json(&project, "reports/result.json");
    assert_eq!(changed(&result), ["modified a.txt", "untracked go"]);
    assert_eq!(result["terminated_by"], "uncommitted_changes");
    assert_eq!(result["outputs"]["verified"], "true");
}

#[test]
fn the_files_of_another_run_are_listed_with_it_and_fail_nothing() {
    let other = "name: other\ninitial: work\nscope: [sub]\nstates:\n  work: {action: 'echo x > sub/c.txt; touch begun; until test -e go || ! test -d $PWD; do sleep 0.02; done', on_yes: done}\n  done: {terminal: true}\n";
    let text = working("test -e begun", "scope: [docs]\n");
    let project = in_ci(&text).file(".loops/other.yaml", other);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "second"]);
    let child = project.start_until(&["run", "other", "--no-ci"], "begun");
    git(&project, &["checkout", "-q", "sub/c.txt"]);
    let text = working("echo y > sub/c.txt", "scope: [docs]\n");
    project.write(".loops/main.yaml", &text);
    git(&project, &["commit", "-q", "-am", "third"]);
    let result = run(&project, 0);
    project.write("go", "");
    child.wait_with_output().unwrap();
    let file = &result["changes"]["files"][0];
    assert_eq!(file["path"], "sub/c.txt");
    assert!(file["run"].as_str().unwrap().starts_with("other-"), "{file}");
}

#[test]
fn a_person_hears_of_changes_in_one_line() {
    let project = in_ci(&working("echo x > a.txt", ""));
    let ran = project.run(&["run", "main", "--no-ci"]).code(0);
    ran.says("changed 1 file: modified a.txt (+1 −1)");
}

/// A checkout with filters, whose index says nothing about the times of files, as one that was just made.
fn filtered(action: &str, filter: &str) -> Project {
    let project = in_ci(&working(action, "")).file(".gitattributes", &format!("*.bin filter={filter}\n"));
    git(&project, &["config", &format!("filter.{filter}.clean"), "touch started; cat"]);
    git(&project, &["config", &format!("filter.{filter}.smudge"), "touch started; cat"]);
    // The content is what Git LFS keeps elsewhere: `printf large | sha256sum`.
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:d35c416a85b807e9b5384915d6ebb4a9f7352713efd89857b45a242f473728a9\nsize 5\n";
    project.write("big.bin", pointer);
    git(&project, &["-c", &format!("filter.{filter}.clean="), "add", "-A"]);
    git(&project, &["commit", "-q", "-m", "second"]);
    project.write("big.bin", "large");
    let _absent = std::fs::remove_file(project.at("started"));
    project
}

#[test]
fn a_file_of_git_lfs_is_compared_by_its_pointer() {
    let project = filtered("test -s big.bin", "lfs");
    let result = run(&project, 0);
    assert_eq!(changed(&result), [""; 0]);
    assert_eq!(result["changes"]["before"], Value::Null, "{}", result["changes"]);
    let project = filtered("echo other > big.bin", "lfs");
    assert_eq!(changed(&run(&project, 1)), ["modified big.bin"]);
    assert!(!project.exists("started"));
}

#[test]
fn what_another_filter_makes_of_a_file_is_not_known() {
    let project = filtered("true", "crypt");
    let result = run(&project, 0);
    assert_eq!(changed(&result), [""; 0]);
    let unseen = result["changes"]["unseen"][0].as_str().unwrap();
    assert!(unseen.contains("1 file changed is not known") && unseen.contains("`crypt`"), "{unseen}");
    assert!(!project.exists("started"));
}

#[test]
fn the_patch_is_that_of_this_run_and_of_its_end() {
    let text = "name: main\ninitial: one\nstates:\n  one: {action: \"test -e undo || echo x > a.txt\", next: two}\n  two: {action: 'if test -e undo; then git checkout -q a.txt; else echo CONTEXT_HANDOFF: later; exit 1; fi', on_yes: done, on_no: two}\n  done: {terminal: true}\n";
    let project = in_ci(text);
    project.write(".git/info/exclude", "/reports\n/undo\n");
    assert_eq!(changed(&run(&project, 75)), ["modified a.txt"]);
    assert!(project.exists("reports/changes.patch"));
    project.write("undo", "");
    project.run(&["resume", "main", "--report-dir", "reports"]).code(0);
    assert!(!project.exists("reports/changes.patch"));
    // A directory that another run left.
    project.write("reports/changes.patch", "old");
    assert_eq!(changed(&run(&project, 0)), [""; 0]);
    assert!(!project.exists("reports/changes.patch"));
}

#[test]
fn a_submodule_that_moved_is_seen_whatever_the_repository_says_of_it() {
    let project = in_ci(&working("git -C vendor checkout -q HEAD~1", ""));
    let inner = in_ci("");
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "second"]);
    let from = inner.path().to_string_lossy().into_owned();
    git(&project, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &from, "vendor"]);
    git(&project, &["config", "-f", ".gitmodules", "submodule.vendor.ignore", "all"]);
    git(&project, &["config", "submodule.vendor.ignore", "all"]);
    git(&project, &["commit", "-q", "-am", "second"]);
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
    let result = run(&project, 1);
    assert_eq!(
        (changed(&result), &result["terminated_by"]),
        (vec!["modified vendor".to_owned()], &"uncommitted_changes".into())
    );
}

/// Runs the loop as somebody who may not read everything, also where the tests themselves may.
fn as_somebody(project: &Project) -> Option<i32> {
    let own = project.command(&["run", "main", "--report-dir", "reports", "--ci"]);
    if !rustix::process::getuid().is_root() {
        return { own }.output().unwrap().status.code();
    }
    let nobody = "65534";
    Command::new("chown").args(["-R", nobody]).arg(project.path()).status().unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", nobody, "--regid", nobody, "--clear-groups"]);
    command.arg(own.get_program()).args(own.get_args()).current_dir(project.path());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.output().unwrap().status.code()
}

#[test]
fn a_file_that_nobody_may_read_makes_the_tree_unknown() {
    let project = in_ci(&working("echo x > a.txt; chmod 0 a.txt", ""));
    let code = as_somebody(&project);
    let result = json(&project, "reports/result.json");
    assert_eq!((code, &result["verified"]), (Some(1), &Value::Bool(false)), "{result:#}");
    assert_eq!(result["verification"]["reasons"][0], "tree_unknown", "{result:#}");
    assert_eq!(result["terminated_by"], "uncommitted_changes");
    for report in ["reports/summary.md", "reports/report.html"] {
        let text = project.read(report);
        assert!(text.contains("the tree that the run ended on is unknown"), "{report}: {text}");
        assert!(text.contains("mend what keeps git from looking at the working tree"), "{report}: {text}");
        assert!(!text.contains("commit the changes"), "{report}: {text}");
    }
}

#[test]
fn a_repair_by_a_file_that_git_does_not_track_is_none_of_the_commit() {
    const WITH_FILE: &str = "failure: success with changes to 1 file, not part of this commit";
    const PASSED: &str = "success: success: `check` said yes";
    for (before, checks, fixes, said) in [
        ("true", "test -e gen.txt", "echo x > gen.txt", WITH_FILE),
        ("touch old", "test ! -e old", "rm old", PASSED),
        ("true", "test -e ignored", "touch ignored", PASSED),
        ("touch gen.txt", "touch report.xml; test -e gen.txt", "true", PASSED),
    ] {
        let github = Github::willing();
        let text = format!(
            "name: main\ninitial: check\nstates:\n  check: {{action: '{checks}', on_yes: done, on_no: fix}}\n  fix: {{action: '{fixes}', next: check}}\n  done: {{terminal: true}}\n"
        );
        let project = github.job(files(Project::with_loop(&text))).env("GITHUB_TOKEN", "ghs_0123456789");
        let (project, _) = committed(project);
        let project = project.env("GITHUB_EVENT_NAME", "push");
        let made = Command::new("bash").args(["-c", before]).current_dir(project.path()).status();
        assert!(made.unwrap().success(), "{before}");
        // The working tree alone decides about the exit code: no tracked file changed.
        project.run(&["run", "main", "--report-dir", "reports"]).code(0);
        assert_eq!(github.statuses().last().map(String::as_str), Some(said), "{checks}");
    }
}
