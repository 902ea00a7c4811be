//! Checks whose failures are excused for a time: who may do that, until when, and what is said.

use serde_json::Value;

use super::git;
use crate::common::Project;

/// Two checks; which of them fail is told by files of those names in `.git`.
const LOOP: &str = "name: main
description: checks
initial: lint
states:
  lint: {action: '[ ! -e .git/lint ]', check: true, on_yes: test, on_no: test}
  test: {action: '[ ! -e .git/test ]', check: true, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";

const ENTRY: &str = "- {loop: main, state: test, owner: ann, until: 2999-12-31, reason: times out}\n";

fn project() -> Project {
    let project = Project::with_loop(LOOP);
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "start"]);
    project
}

fn fails(project: &Project, check: &str) {
    project.write(&format!(".git/{check}"), "");
}

fn quarantine(project: &Project, text: &str) {
    project.write(".loops/quarantine.yaml", text);
    git(project, &["add", "-A"]);
    git(project, &["commit", "-q", "-m", "quarantine"]);
}

fn report(project: &Project, name: &str) -> String {
    std::fs::read_to_string(project.path().join(".git/reports").join(name)).unwrap()
}

#[test]
fn the_failure_of_a_check_in_quarantine_is_neither_passed_nor_failed() {
    let project = project();
    fails(&project, "test");
    project.run(&["run", "main"]).code(1);
    quarantine(&project, ENTRY);
    let ran = project.run(&["run", "main", "--strict", "--report-dir", ".git/reports"]).code(0);
    assert!(ran.all().contains("`test` is in quarantine until 2999-12-31, ann: times out"), "{}", ran.all());
    assert!(ran.all().contains("not verified (quarantined)"), "{}", ran.all());
    let result: Value = serde_json::from_str(&report(&project, "result.json")).unwrap();
    assert_eq!(result["verified"], false);
    assert_eq!(result["verification"]["reasons"], serde_json::json!(["quarantined"]));
    assert_eq!(result["quarantine"][0]["owner"], "ann");
    assert!(report(&project, "junit.xml").contains("ll.quarantined"));
    // One that passes is verified as ever.
    std::fs::remove_file(project.at(".git/test")).unwrap();
    project.run(&["run", "main", "--strict", "--report-dir", ".git/reports"]).code(0);
    let result: Value = serde_json::from_str(&report(&project, "result.json")).unwrap();
    assert_eq!(result["verified"], true);
}

#[test]
fn a_quarantine_is_of_one_loop_and_not_of_those_that_it_runs() {
    let project = project();
    project.write(".loops/kid.yaml", &LOOP.replace("name: main", "name: kid"));
    let outer = "name: main
description: both
initial: below
states:
  below: {loop: kid, on_success: test, on_failure: failed}
  test: {action: 'true', check: true, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";
    project.write(".loops/main.yaml", outer);
    quarantine(&project, ENTRY);
    project.run(&["run", "main", "--strict"]).code(0);
    fails(&project, "test");
    project.run(&["run", "main", "--strict"]).code(1);
}

#[test]
fn a_quarantine_excuses_nobody_who_changes_what_the_check_says() {
    let text = "name: main
description: checks
initial: last
on_change: report
states:
  last: {action: 'LAST', next: test}
  test: {action: sh test.sh, check: true, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";
    for (last, code, reasons) in [
        ("true", 0, &["quarantined"][..]),
        ("echo false > test.sh", 1, &["quarantined", "judges_changed"][..]),
    ] {
        let project = project();
        project.write("test.sh", "test -e ok\n");
        project.write(".loops/main.yaml", &text.replace("LAST", last));
        quarantine(&project, ENTRY);
        project.run(&["run", "main", "--strict", "--report-dir", ".git/reports"]).code(code);
        let result: Value = serde_json::from_str(&report(&project, "result.json")).unwrap();
        assert_eq!(result["verification"]["reasons"], serde_json::json!(reasons), "{last}: {result:#}");
    }
}

#[test]
fn a_quarantine_hides_no_other_failure() {
    let project = project();
    quarantine(&project, ENTRY);
    // Another check: its failure is not taken back by one that is excused.
    fails(&project, "lint");
    fails(&project, "test");
    let ran = project.run(&["run", "main", "--strict"]).code(1);
    assert!(ran.all().contains("unverified"), "{}", ran.all());
    // Another way to fail: a command that is not there is no failure of what it looks at.
    project.write(".loops/main.yaml", &LOOP.replace("'[ ! -e .git/test ]'", "'no-such-command-at-all'"));
    std::fs::remove_file(project.at(".git/lint")).unwrap();
    let ran = project.run(&["run", "main"]);
    assert_ne!(ran.code, Some(0), "{}", ran.all());
}

#[test]
fn after_its_day_a_check_fails_like_any_other() {
    let project = project();
    fails(&project, "test");
    quarantine(&project, &ENTRY.replace("2999", "2020"));
    let ran = project.run(&["run", "main"]).code(1);
    assert!(ran.all().contains("the quarantine of `test` ended on 2020-12-31 (ann)"), "{}", ran.all());
    let listed = project.run(&["quarantine", "list"]).code(0);
    assert!(listed.stdout.contains("which has passed"), "{}", listed.all());
}

#[test]
fn a_wrong_file_excuses_nothing_and_is_no_loop() {
    let project = project();
    fails(&project, "test");
    quarantine(&project, &ENTRY.replace("owner: ann, ", ""));
    let ran = project.run(&["run", "main"]).code(1);
    assert!(ran.all().contains("nothing is in quarantine"), "{}", ran.all());
    project.run(&["validate"]).code(0);
    let listed = project.run(&["list"]).code(0);
    assert!(!listed.all().contains("quarantine"), "{}", listed.all());
}

#[test]
fn people_write_the_file_and_runs_do_not() {
    let project = project();
    let add = [
        "quarantine",
        "add",
        "main",
        "test",
        "--owner",
        "ann",
        "--until",
        "2999-12-31",
        "--reason",
        "a: 'b'",
    ];
    let added = project.run(&add).code(0);
    let said = "`test` of `main` is in quarantine until 2999-12-31; commit .loops/quarantine.yaml\n";
    assert_eq!(added.stderr, said);
    let listed = project.run(&["quarantine", "list"]).code(0);
    assert_eq!(listed.stdout, "main: test until 2999-12-31 (ann: a: 'b')\n");
    // The same again adds nothing, and nothing is excused that is not there.
    project.run(&add).code(0);
    assert_eq!(project.read(".loops/quarantine.yaml").matches("loop:").count(), 1);
    for (is, other) in [("main", "nope"), ("test", "nope"), ("test", "done")] {
        project.run(&add.map(|word| if word == is { other } else { word })).code(2);
    }
    let past = add.map(|word| if word == "2999-12-31" { "2020-01-01" } else { word });
    project.run(&past).code(2);
    // In CI only what is committed counts, so that no step of a job excuses what comes after it.
    fails(&project, "test");
    let project = project.env("CI", "true");
    let ran = project.run(&["run", "main"]).code(1);
    assert!(ran.all().contains("it is in no commit"), "{}", ran.all());
    let project = project.env("LL_RUN_DIR", "/tmp/x");
    let refused = project.run(&add).code(2);
    assert!(refused.all().contains("a run may not put a check into quarantine"), "{}", refused.all());
}

#[test]
fn a_quarantine_that_promises_protection_lets_nothing_begin() {
    let project = project();
    for text in [ENTRY.replace('}', ", sandbox: workspace}"), "broker: auto\n".to_owned()] {
        quarantine(&project, &text);
        for command in [["run", "main"].as_slice(), &["validate"]] {
            let ran = project.run(command).code(2);
            assert!(ran.all().contains("protects nothing in a quarantine"), "{}", ran.all());
        }
    }
    // Any other mistake excuses nothing, and a run goes on without it.
    quarantine(&project, &ENTRY.replace('}', ", forever: true}"));
    project.run(&["run", "main"]).code(0);
}

#[test]
fn a_failure_in_the_closing_pass_that_is_excused_is_red_nowhere() {
    let text = "name: main
description: checks
initial: test
on_change: report
states:
  test: {action: '[ ! -e late ]', check: true, on_yes: write, on_no: failed}
  write: {action: 'touch late', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";
    let project = project();
    project.write(".loops/main.yaml", text);
    quarantine(&project, ENTRY);
    let ran = project.run(&["run", "main", "--ci=plain", "--report-dir", ".git/reports"]).code(0);
    assert!(ran.all().contains("• test once more: quarantined ("), "{}", ran.all());
    let junit = report(&project, "junit.xml");
    assert!(junit.contains("it is in quarantine") && junit.contains("ll.quarantined"), "{junit}");
    assert!(!junit.contains("<failure"), "{junit}");
    assert!(!report(&project, "summary.md").contains('❌'), "{}", report(&project, "summary.md"));
}
