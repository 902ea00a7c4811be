//! Checks that fail and pass on the same inputs: how that is found, said and made good.

use serde_json::Value;

use super::git;
use crate::common::Project;

/// A check that fails where a file says so, which is no input.
const LOOP: &str = "name: main
description: checks
initial: check
reuse: {inputs: [src/], verify_every: 1}
states:
  check: {action: 'sh check.sh', check: true, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";

/// Takes the next line of a file that git does not see for its exit code; without one, it passes. The name of the file is put
/// together, or else it would be known as one that the check reads.
const CHECK: &str = "codes=.git/co$(printf des)
code=$(head -n 1 $codes 2>/dev/null)
[ -f $codes ] && sed -i.bak 1d $codes
exit ${code:-0}
";

fn project(text: &str) -> Project {
    let project = Project::with_loop(text).file("src/a.txt", "good\n").file("check.sh", CHECK);
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "start"]);
    project
}

fn will_end(project: &Project, codes: &[u8]) {
    let lines: Vec<String> = codes.iter().map(|code| format!("{code}\n")).collect();
    project.write(".git/codes", &lines.concat());
}

fn result(project: &Project) -> Value {
    let text = std::fs::read_to_string(project.path().join(".git/reports/result.json"));
    serde_json::from_str(&text.unwrap()).unwrap()
}

#[test]
fn a_check_that_fails_and_passes_on_the_same_inputs_is_named() {
    let project = project(LOOP);
    let report = ["run", "main", "--report-dir", ".git/reports"];
    // The second run proves the first one wrong, and makes the check once more.
    will_end(&project, &[0, 1, 1]);
    project.run(&["run", "main"]).code(0);
    // Nobody knows yet whether it is flaky or broken.
    let failed = project.run(&report).code(1);
    assert!(!failed.all().contains("flaky:"), "{}", failed.all());
    let listed = project.run(&["stats", "--flaky"]).code(0);
    assert!(
        listed.stdout.contains("main: check failed 2 of 3 on the same inputs, and has not passed since"),
        "{}",
        listed.all()
    );
    let passed = project.run(&report).code(0);
    assert!(passed.all().contains("flaky: check failed 2 of 4 on these inputs"), "{}", passed.all());
    assert_eq!(result(&project)["flaky"][0]["failed"], 2);
    let junit = std::fs::read_to_string(project.path().join(".git/reports/junit.xml")).unwrap();
    assert!(junit.contains(r#"name="ll.flaky" value="failed 2 of 4 on these inputs""#), "{junit}");
    let listed = project.run(&["stats", "--flaky", "--json"]).code(0);
    let rows: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((&rows["flaky"][0]["flaky"], &rows["flaky"][0]["of"]), (&Value::from(true), &Value::from(4)));
    project.run(&["reuse", "list"]).code(0);
}

#[test]
fn a_check_that_passes_on_other_inputs_is_mended_and_not_flaky() {
    let project = project(LOOP);
    will_end(&project, &[1]);
    project.run(&["run", "main"]).code(1);
    project.write("src/a.txt", "better\n");
    let passed = project.run(&["run", "main"]).code(0);
    assert!(!passed.all().contains("flaky"), "{}", passed.all());
    let listed = project.run(&["stats", "--flaky"]).code(0);
    assert!(listed.stdout.contains("no check is known to waver"), "{}", listed.all());
}

#[test]
fn what_a_fixer_mends_is_not_flaky_although_it_puts_everything_back() {
    let fixing = LOOP.replace("on_no: failed}", "on_no: fix}\n  fix: {action: 'true', next: check}");
    let project = project(&fixing);
    will_end(&project, &[1, 0]);
    let ran = project.run(&["run", "main"]).code(0);
    assert!(!ran.all().contains("flaky:"), "{}", ran.all());
    // The first failure was about what the run began with, and the next run takes it back.
    let ran = project.run(&["run", "main"]).code(0);
    assert!(ran.all().contains("flaky: check failed 1 of 2 on these inputs"), "{}", ran.all());
}

#[test]
fn a_check_that_is_known_to_waver_is_made_again_and_that_is_said() {
    let project = project(&LOOP.replace("check: true,", "check: true, flaky: {again: 2},"));
    will_end(&project, &[1]);
    project.run(&["run", "main"]).code(1);
    project.run(&["run", "main"]).code(0);
    will_end(&project, &[1, 1, 0]);
    let ran = project.run(&["run", "main", "--report-dir", ".git/reports"]).code(0);
    assert!(ran.all().contains("flaky: check failed 3 of 5 on these inputs"), "{}", ran.all());
    let junit = std::fs::read_to_string(project.path().join(".git/reports/junit.xml")).unwrap();
    assert_eq!(junit.matches("<flakyFailure").count(), 2, "{junit}");
    assert_eq!(result(&project)["verified"], true);
    // It is made so often and not once more.
    will_end(&project, &[1, 1, 1, 0]);
    project.run(&["run", "main", "--report-dir", ".git/reports"]).code(1);
    let junit = std::fs::read_to_string(project.path().join(".git/reports/junit.xml")).unwrap();
    assert_eq!(junit.matches("<rerunFailure").count(), 2, "{junit}");
}

#[test]
fn a_check_that_is_not_known_to_waver_is_made_once() {
    let project = project(&LOOP.replace("check: true,", "check: true, flaky: {again: 2},"));
    will_end(&project, &[1, 0]);
    project.run(&["run", "main"]).code(1);
}

#[test]
fn a_check_that_is_made_again_without_reuse_or_after_a_fixer_is_named_all_the_same() {
    let always = LOOP
        .replace("reuse: {inputs: [src/], verify_every: 1}\n", "")
        .replace("check: true,", "check: true, flaky: {again: 2, always: true},");
    for text in [
        always.clone(),
        always
            .replace("initial: check", "initial: fix")
            .replace("states:\n", "states:\n  fix: {action: 'echo fixed > src/a.txt', next: check}\n"),
    ] {
        let project = project(&text);
        will_end(&project, &[1, 0]);
        let ran = project.run(&["run", "main", "--report-dir", ".git/reports"]).code(0);
        assert!(ran.all().contains("flaky: check failed 1 of 2 on these inputs"), "{}", ran.all());
        assert_eq!(result(&project)["flaky"][0]["failed"], 1);
        let junit = std::fs::read_to_string(project.path().join(".git/reports/junit.xml")).unwrap();
        assert_eq!(junit.matches("<flakyFailure").count(), 1, "{junit}");
        // What no later pass takes back is broken.
        will_end(&project, &[1, 1, 1]);
        let ran = project.run(&["run", "main"]).code(1);
        assert!(!ran.all().contains("flaky:"), "{}", ran.all());
    }
}

#[test]
fn a_check_that_wavers_in_the_closing_pass_is_one_case_with_attempts() {
    let text = LOOP
        .replace("reuse: {inputs: [src/], verify_every: 1}\n", "on_change: report\n")
        .replace("check: true, on_yes: done", "check: true, flaky: {again: 2, always: true}, on_yes: write")
        .replace(
            "  done: {terminal: true}\n",
            "  write: {action: 'echo more >> src/a.txt', on_yes: done, on_no: failed}\n  done: {terminal: true}\n",
        );
    let project = project(&text);
    will_end(&project, &[0, 1, 0]);
    let ran = project.run(&["run", "main", "--report-dir", ".git/reports"]).code(0);
    assert!(ran.all().contains("flaky: check failed 1 of 2 on these inputs"), "{}", ran.all());
    assert_eq!(result(&project)["flaky"][0]["failed"], 1);
    let junit = std::fs::read_to_string(project.path().join(".git/reports/junit.xml")).unwrap();
    let count = |part: &str| junit.matches(part).count();
    assert_eq!((count("closing pass: check\""), count("<flakyFailure")), (1, 1), "{junit}");
    assert_eq!(count("<failure"), 0, "{junit}");
}
