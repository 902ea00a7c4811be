//! What a green means: this tree, by these checks. Each test is a way to be green for something that nobody checked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{Project, Ran, git, signal, wait_for};

/// A loop that finds `a.txt` without its word, mends it, checks it, and does one more thing on its way to the end.
fn mending(last: &str, more: &str) -> String {
    format!(
        "name: main\ninitial: check\non_change: report\n{more}states:\n  check: {{action: grep -q good a.txt, on_yes: last, on_no: fix}}\n  fix: {{action: echo good > a.txt, next: check}}\n  last:\n    action: |\n      {}\n    next: done\n  done: {{terminal: true}}\n",
        last.replace('\n', "\n      ")
    )
}

fn project(definition: &str) -> Project {
    let project = Project::new().file(".gitignore", "reports/\n").file("a.txt", "bad\n").file("b.txt", "b\n");
    let project = project.file(".loops/main.yaml", definition);
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["config", "user.name", "nobody"]);
    git(&project, &["config", "user.email", "nobody@example.org"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "start"]);
    project
}

fn result(project: &Project) -> Value {
    serde_json::from_str(&project.read("reports/result.json")).unwrap()
}

/// Runs the loop strictly, and returns its exit code and its result.
fn run(project: &Project) -> (i32, Value) {
    let ran = project.run(&["run", "main", "--strict", "--report-dir", "reports"]);
    (ran.code.unwrap(), result(project))
}

fn reasons(result: &Value) -> Vec<&str> {
    let reasons = result["verification"]["reasons"].as_array().into_iter().flatten();
    reasons.map(|reason| reason.as_str().unwrap()).collect()
}

#[test]
fn what_moves_the_fix_away_after_the_check_is_not_verified() {
    for last in [
        "git stash -q",
        "git stash -q -u",
        "git checkout -q -- a.txt",
        "git reset -q --hard",
        "git switch -q -f -c other HEAD; git checkout -q HEAD -- a.txt",
        "echo bad > a.txt",
        "rm a.txt",
        "echo more >> b.txt",
        "git update-index --assume-unchanged a.txt; echo bad > a.txt",
        "git update-index --skip-worktree a.txt; echo bad > a.txt",
        "echo worse > a.txt; git commit -qam worse",
        "chmod +x a.txt",
        "touch new.txt",
    ] {
        let project = project(&mending(last, ""));
        let (code, result) = run(&project);
        assert_eq!((code, &result["verified"]), (1, &Value::Bool(false)), "{last}: {result:#}");
        assert_eq!(reasons(&result), ["stale"], "{last}");
        let stale = &result["verification"]["stale"][0];
        assert_eq!(stale["state"], "check", "{last}");
        assert!(!stale["files"].as_array().unwrap().is_empty(), "{last}: {stale}");
        let line = result["reason"].as_str().unwrap();
        assert!(line.starts_with("ended in `done` unverified: `check` passed on another tree"), "{line}");
        for report in ["reports/summary.md", "reports/junit.xml", "reports/report.html"] {
            assert!(project.read(report).contains("passed on another tree"), "{last}: {report}");
        }
    }
}

#[test]
fn what_no_tree_can_hold_is_a_change_and_the_commit_no_subject() {
    for (make, path, why) in [
        ("mkdir -p x/git~1; echo q > x/git~1/config", "x/git~1/config", "git keeps nothing by this name"),
        ("mkdir -p x/.GIT.; echo q > x/.GIT./config", "x/.GIT./config", "git keeps nothing by this name"),
        ("mkdir -p x/.git; echo q > x/.git/f", "x/.git", "git keeps nothing by this name"),
        ("mkdir -p x/y; mkfifo x/y/pipe", "x/y/pipe", "it is a pipe, a socket or a device"),
    ] {
        let definition = format!(
            "name: main\ninitial: check\non_change: report\nstates:\n  check: {{action: test -e {path}, on_yes: done, on_no: fix, check: true}}\n  fix:\n    action: |\n      {make}\n    next: check\n  done: {{terminal: true}}\n"
        );
        let project = project(&definition);
        project.run(&["run", "main", "--report-dir", "reports"]).code(0);
        let result = result(&project);
        let files = result["changes"]["files"].as_array().unwrap();
        assert_eq!(files.len(), 1, "{result:#}");
        assert_eq!((&files[0]["path"], &files[0]["not_in_patch"]), (&json!(path), &json!(why)), "{make}");
        let statement = project.read("reports/verdict.intoto.json");
        assert!(!statement.contains("gitCommit"), "{make}: {statement}");
        let delivered = project.run(&["deliver", "main", "--to", "patch"]).code(5);
        assert!(delivered.all().contains(why), "{}", delivered.all());
        // A second run finds it there, and changes nothing.
        project.run(&["run", "main", "--report-dir", "reports"]).code(0);
        assert_eq!(self::result(&project)["changes"]["files"], json!([]), "{make}");
    }
}

/// A loop that checks, and then waits for what its environment says.
const WAITING: &str = "\
name: main
initial: check
backoff: 60
states:
  check: {action: grep -q good a.txt, check: true, on_yes: gate, on_no: failed}
  gate: {evaluate: {type: output_contains, source: '${env.GATE}', pattern: open}, on_yes: done, on_no: gate}
  done: {terminal: true}
  failed: {terminal: true}
";

#[test]
fn what_is_edited_before_a_run_goes_on_is_checked_once_more() {
    for (edited, code) in [("bad\n", 1), ("good, too\n", 0)] {
        let project = project(WAITING);
        project.write("a.txt", "good\n");
        let mut command = project.command(&["run", "main"]);
        command.env("GATE", "shut").stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let waits = |journal: &PathBuf| fs::read_to_string(journal).unwrap().contains("\"backoff\"");
        wait_for(|| project.run_files(".events.jsonl").iter().any(waits));
        signal(&child, Signal::TERM);
        assert_eq!(child.wait().unwrap().code(), Some(143));
        project.write("a.txt", edited);
        let mut command = project.command(&["resume", "main", "--report-dir", "reports"]);
        let _ran = Ran::of(&command.env("GATE", "open").output().unwrap()).code(code);
        let result = result(&project);
        assert_eq!(result["verified"], code == 0, "{edited}: {result:#}");
        let checks = &result["verification"]["checks"];
        assert_eq!(
            checks[0]["confirmed"],
            if code == 0 { "closing_pass" } else { "no" },
            "{edited}: {checks}"
        );
    }
}

#[test]
fn what_changes_no_file_makes_nothing_stale() {
    for last in [
        "true",
        "touch a.txt",
        "git commit -qam good",
        "git add a.txt",
        "echo x > reports-of-mine; rm reports-of-mine",
    ] {
        let project = project(&mending(last, ""));
        let (code, result) = run(&project);
        assert_eq!((code, &result["verified"]), (0, &Value::Bool(true)), "{last}: {result:#}");
        assert!(reasons(&result).is_empty());
        assert_eq!(result["verification"]["checks"][0]["confirmed"], "in_run");
        assert_eq!(result["verification"]["tree"], result["verification"]["checks"][0]["tree"]);
    }
}

#[test]
fn a_tree_that_nobody_can_look_at_any_more_is_not_taken_for_unchanged() {
    for last in [
        "mv .git ../gone-$$",
        "git config core.bare true",
        "git checkout -q --orphan fresh",
        "git config core.worktree \"$(mktemp -d)\"",
        "git sparse-checkout set --no-cone '/*' '!b.txt'",
    ] {
        for on_change in ["report", "fail"] {
            let project =
                project(&mending(last, "").replace("on_change: report", &format!("on_change: {on_change}")));
            let (code, result) = run(&project);
            assert_eq!((code, &result["verified"]), (1, &Value::Bool(false)), "{last}: {result:#}");
            assert_eq!(reasons(&result), ["tree_unknown"], "{last}: {result:#}");
            let by = if on_change == "fail" { "uncommitted_changes" } else { "terminal" };
            assert_eq!(result["terminated_by"], by, "{last}");
            assert!(
                project.read("reports/summary.md").contains("the tree that the run ended on is unknown"),
                "{last}"
            );
        }
    }
}

#[test]
fn without_strict_it_is_a_success_that_says_that_it_is_not_verified() {
    let project = project(&mending("git stash -q", ""));
    let ran = project.run(&["run", "main", "--report-dir", "reports"]);
    assert_eq!(ran.code, Some(0));
    let result = result(&project);
    assert_eq!(
        (&result["verified"], &result["outputs"]["outcome"]),
        (&Value::Bool(false), &"success".into())
    );
}

#[test]
fn a_declared_success_excuses_no_stale_verdict() {
    let definition =
        mending("git stash -q", "").replace("{terminal: true}", "{terminal: true, outcome: success}");
    let (code, _) = run(&project(&definition));
    assert_eq!(code, 1);
}

#[test]
fn a_loop_inside_of_a_loop_is_bound_to_its_tree_as_well() {
    let inner = mending("true", "").replace("name: main", "name: inner");
    let outer = "name: main\ninitial: work\non_change: report\nstates:\n  work: {loop: inner, on_success: spoil, on_failure: failed}\n  spoil: {action: echo bad > a.txt, next: done}\n  done: {terminal: true}\n  failed: {terminal: true}\n";
    let project = project(outer).file(".loops/inner.yaml", &inner);
    let (code, result) = run(&project);
    assert_eq!((code, reasons(&result)), (1, vec!["stale"]), "{result:#}");
    let project = self::project(&outer.replace("echo bad > a.txt", "true")).file(".loops/inner.yaml", &inner);
    assert_eq!(run(&project).0, 0);
}

/// The same loop with a check that may be made again.
fn checking(last: &str, more: &str) -> String {
    mending(last, more).replace("grep -q good a.txt,", "grep -q good a.txt, check: true,")
}

#[test]
fn a_check_is_made_once_more_where_something_changed_after_it() {
    let project = project(&checking("echo more >> b.txt", ""));
    let (code, result) = run(&project);
    assert_eq!((code, &result["verified"]), (0, &Value::Bool(true)), "{result:#}");
    assert_eq!(result["verification"]["checks"][0]["confirmed"], "closing_pass");
    assert_eq!(result["closing_pass"][0]["check"], "check");
    let events: Vec<String> =
        project.events().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    let passes: Vec<&str> =
        events.iter().map(String::as_str).filter(|event| event.starts_with("closing_pass")).collect();
    assert_eq!(passes, ["closing_pass_start", "closing_pass_check", "closing_pass_end"]);
    // It is neither an iteration nor a step.
    assert_eq!((&result["outputs"]["steps"], &result["outputs"]["iterations"]), (&"4".into(), &"2".into()));
    assert!(project.read("reports/summary.md").contains("### Closing pass"));
    assert!(project.read("reports/junit.xml").contains("closing pass: check"));
}

const PROVEN: &str = "name: main
initial: check
judges: {prove_added: true}
states:
  check: {action: python3 -m unittest discover -s tests, check: true, on_yes: done, on_no: fix}
  fix: {action: sh .loops/fix.sh, next: check}
  done: {terminal: true}
";

const ADDS: &str = "sed -i 's/a - b/a + b/' calc.py
printf 'import calc, unittest\n\nclass New(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(calc.add(2, 3), 5)\n' > tests/test_adds.py
";

const PROVES_NOTHING: &str = "printf 'import calc, unittest\n\nclass Nothing(unittest.TestCase):\n    def test_exists(self):\n        self.assertTrue(calc.add)\n' > tests/test_nothing.py
";

/// A project whose fix adds tests, and whose check tells that its work is missing.
fn with_added_tests(definition: &str, fix: &str) -> Project {
    let test = "import calc, unittest\n\nclass Old(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(calc.add(1, 1), 2)\n";
    let project = Project::new()
        .file(".loops/main.yaml", definition)
        .file(".loops/fix.sh", fix)
        .file("calc.py", "def add(a, b):\n    return a - b\n")
        .file("tests/test_old.py", test)
        .file(".gitignore", "__pycache__\n/reports\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "first"]);
    project
}

#[test]
fn tests_that_were_added_and_pass_without_the_work_are_named() {
    let both = [ADDS, PROVES_NOTHING].concat();
    let nothing = &["tests/test_nothing.py::test_exists"][..];
    let none = PROVEN.replace("judges: {prove_added: true}\n", "");
    for (definition, fix, named) in [
        (PROVEN, both.as_str(), nothing),
        (PROVEN, ADDS, &[]),
        (none.as_str(), both.as_str(), &[]),
        (&PROVEN.replace("initial", "closing_pass: false\ninitial"), both.as_str(), &[]),
    ] {
        // The fix is as long as what it replaces, and may come in the same second: Python would not see it.
        let project = with_added_tests(definition, fix).env("PYTHONDONTWRITEBYTECODE", "1");
        let (code, result) = run(&project);
        assert_eq!((code, &result["verified"]), (0, &Value::Bool(true)), "{result:#}");
        let found = result["verification"].get("proves_nothing").cloned().unwrap_or_else(|| json!([]));
        assert_eq!(found, json!(named), "{definition} {fix}\n{result:#}");
        let words = named.iter().map(|name| format!("proves nothing: {name}"));
        let summary = project.read("reports/summary.md");
        assert!(words.clone().all(|words| summary.replace('`', "").contains(&words)), "{summary}");
        assert!(project.read("calc.py").contains("a + b") && project.exists("tests/test_old.py"));
    }
}

#[test]
fn what_python_made_of_a_weakened_test_does_not_confirm_it() {
    // The weakened test is as long as the one of the start and written in the same second, which is all that Python looks
    // at before it trusts what it compiled.
    let project = with_added_tests(
        &PROVEN.replace("judges: {prove_added: true}\n", ""),
        "sed -i 's/, 2)/, 0)/' tests/test_old.py\n",
    );
    let (code, result) = run(&project);
    assert_eq!((code, &result["terminated_by"]), (1, &"not_confirmed".into()), "{result:#}");
}

#[test]
fn a_check_that_does_not_pass_once_more_makes_the_run_a_failure() {
    for strict in ["--strict", "--no-strict"] {
        let project = project(&checking("git stash -q", ""));
        let ran = project.run(&["run", "main", strict, "--report-dir", "reports"]);
        let result = result(&project);
        assert_eq!((ran.code, &result["terminated_by"]), (Some(1), &"not_confirmed".into()), "{result:#}");
        assert_eq!(reasons(&result), ["not_confirmed"]);
        assert!(result["reason"].as_str().unwrap().contains("check says no"), "{result:#}");
    }
}

#[test]
fn a_closing_pass_that_is_not_wanted_is_not_made() {
    let project = project(&checking("echo more >> b.txt", "closing_pass: false\n"));
    let (code, result) = run(&project);
    assert_eq!((code, reasons(&result)), (1, vec!["stale"]), "{result:#}");
    let project = self::project(&checking("echo more >> b.txt", ""));
    let ran = project.run(&["run", "main", "--strict", "--no-closing-pass", "--report-dir", "reports"]);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn what_the_closing_pass_changes_is_put_back_and_named() {
    let check =
        "grep -q good a.txt; found=$?; date +%N >> b.txt; date +%N > made.txt; rm -f c.txt; exit $found";
    let definition = checking("echo more >> b.txt; echo c > c.txt", "")
        .replace("grep -q good a.txt,", &format!("'{check}',"));
    let project = project(&definition).file("c.txt", "c\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "c"]);
    let (code, result) = run(&project);
    assert_eq!((code, &result["verified"]), (0, &Value::Bool(true)), "{result:#}");
    let events = project.events();
    let end = events.iter().find(|event| event["event"] == "closing_pass_end").unwrap();
    assert!(!end["put_back"].as_array().unwrap().is_empty(), "{end}");
    assert_eq!(result["verification"]["tree"], result["changes"]["end"]["tree"]);
}

#[test]
fn the_checks_of_loops_inside_are_made_once_more_as_well() {
    let inner = checking("true", "").replace("name: main", "name: inner");
    let outer = "name: main\ninitial: work\non_change: report\nstates:\n  work: {loop: inner, on_success: more, on_failure: failed}\n  more: {action: echo more >> b.txt, next: done}\n  done: {terminal: true}\n  failed: {terminal: true}\n";
    let project = project(outer).file(".loops/inner.yaml", &inner);
    let (code, result) = run(&project);
    assert_eq!((code, &result["verified"]), (0, &Value::Bool(true)), "{result:#}");
    assert_eq!(result["closing_pass"][0]["check"], "work/check");
}

/// A loop whose check is a script of the repository, and whose fix is this.
fn scripted(fix: &str, more: &str) -> Project {
    let definition = format!(
        "name: main\ninitial: check\non_change: report\n{more}states:\n  check: {{action: sh test.sh, check: true, on_yes: done, on_no: fix}}\n  fix:\n    action: |\n      {}\n    next: check\n  done: {{terminal: true}}\n",
        fix.replace('\n', "\n      ")
    );
    let project = project(&definition).file("test.sh", "grep -q good a.txt\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "a test"]);
    project
}

#[test]
fn a_fix_that_weakens_its_own_check_is_not_confirmed_by_that_of_the_commit() {
    let project = scripted("echo 'exit 0' > test.sh", "");
    let (code, result) = run(&project);
    assert_eq!((code, &result["terminated_by"]), (1, &"not_confirmed".into()), "{result:#}");
    assert_eq!(result["verification"]["judges"]["state"], "changed");
    assert_eq!(result["verification"]["judges"]["files"][0]["path"], "test.sh");
    assert!(result["reason"].as_str().unwrap().starts_with("the commit's own check says no"), "{result:#}");
    // The change itself is what the run left.
    assert_eq!(project.read("test.sh"), "exit 0\n");
}

#[test]
fn a_fix_that_also_changes_its_check_is_confirmed_where_that_of_the_commit_passes() {
    let project = scripted("echo good > a.txt; echo 'grep -q goo a.txt' > test.sh; chmod 750 test.sh", "");
    let (code, result) = run(&project);
    assert_eq!((code, &result["verified"]), (0, &Value::Bool(true)), "{result:#}");
    assert_eq!(result["verification"]["judges"]["state"], "confirmed");
    assert_eq!(project.read("test.sh"), "grep -q goo a.txt\n");
    let mode = std::fs::metadata(project.at("test.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);
}

#[test]
fn without_a_closing_pass_judges_that_changed_verify_nothing() {
    let project = scripted("echo 'exit 0' > test.sh", "closing_pass: false\n");
    let (code, result) = run(&project);
    assert_eq!((code, reasons(&result)), (1, vec!["judges_changed"]), "{result:#}");
    let project = scripted("echo 'exit 0' > test.sh", "judges: {may: change}\n");
    assert_eq!(run(&project).0, 0);
}

/// After a kill in the middle of a closing pass, the next run puts back what the pass had put aside.
#[test]
fn a_closing_pass_that_was_killed_is_undone_by_the_next_run() {
    let project = scripted("echo good > a.txt; echo 'grep -q goo a.txt' > test.sh; chmod 750 test.sh", "");
    // The check of the commit is slow only while it is asked again.
    project.write(
        "test.sh",
        "grep -q good a.txt && test -e later && touch waiting && sleep 60; grep -q good a.txt\n",
    );
    git(&project, &["commit", "-qam", "slow"]);
    project.write(
        ".loops/main.yaml",
        &project.read(".loops/main.yaml").replace("chmod 750 test.sh", "chmod 750 test.sh; touch later"),
    );
    git(&project, &["commit", "-qam", "later"]);
    let mut child = project.start_until(&["run", "main", "--strict"], "waiting");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(project.read("test.sh").contains("sleep 60"), "the judge of the start stands there");
    drop(project.run(&["status", "main"]).code(0).says("the closing pass, in `"));
    let ran = project.run(&["run", "main", "--strict", "--no-closing-pass"]);
    assert!(
        ran.stderr.contains("was killed while checks were made once more")
            || ran.stdout.contains("was killed while checks"),
        "{}",
        ran.all()
    );
    assert_eq!(project.read("test.sh"), "grep -q goo a.txt\n");
    let mode = std::fs::metadata(project.at("test.sh")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o7777, 0o750);
}
