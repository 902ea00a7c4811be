//! `ll-loop test`: cases, bounds, snapshots, mutants, walks and old runs.

use serde_json::Value;

use crate::common::{Project, git};

/// A loop whose actions would be seen if they ran.
const LOOP: &str = "\
name: tidy
initial: check
max_iterations: 4
states:
  check: { action: touch ran; make check, timeout: 1m, on_yes: done, on_no: fix, on_error: broken }
  fix: { action: touch ran; make fix, next: check }
  done: { terminal: true }
  broken: { terminal: true, outcome: failure }
";

const CASES: &str = "\
loop: tidy
cases:
  - name: nothing to do
    mocks: { check: { exit: 0 } }
    expect: { outcome: success, verified: true, path: [check, done], commands: { check: touch ran; make check } }
  - name: it is mended
    mocks:
      check: [{ exit: 1 }, { exit: 0 }]
      fix: { exit: 0, writes: { notes.md: fine } }
    expect: { outcome: success, path: [check, fix, check, done], changed: [notes.md] }
  - name: it goes round
    mocks: { check: { exit: 1 }, fix: { exit: 0 } }
    expect: { terminated_by: max_iterations, iterations: 4 }
  - name: the check takes too long
    mocks: { check: { timed_out: true } }
    expect: { path: [check, broken] }
";

fn project(cases: &str) -> Project {
    Project::new().file(".loops/tidy.yaml", LOOP).file(".loops/tests/tidy.test.yaml", cases)
}

fn only(case: &str) -> String {
    format!("loop: tidy\ncases:\n  - {case}\n")
}

fn json(project: &Project, arguments: &[&str], code: i32) -> Value {
    let all: Vec<&str> = ["test", "--format", "json"].iter().chain(arguments).copied().collect();
    serde_json::from_str(&project.run(&all).code(code).stdout).unwrap()
}

#[test]
fn cases_pass_and_nothing_is_run() {
    let project = project(CASES);
    let ran = project.run(&["test", "--min-edges", "100"]).code(0);
    assert_eq!(ran.stdout, "✓ tidy: 4 cases, 4 of 4 ways taken\n");
    assert!(!project.exists("ran") && !project.exists("notes.md") && !project.exists(".loops/.history"));
    for name in ["tidy", ".loops/tests", ".loops/tests/tidy.test.yaml", ".loops/tidy.yaml"] {
        project.run(&["test", name]).code(0).says("4 cases");
    }
    project.run(&["test", "--case", "it *"]).code(0).says("2 cases");
    project.run(&["validate"]).code(0);
    project.run(&["validate", ".loops/tests/tidy.test.yaml"]).code(0);
}

#[test]
fn what_is_not_as_expected_is_shown_beside_it() {
    let project = project(&only(
        "{name: wrong, mocks: {check: [{exit: 1}, {exit: 0}], fix: {exit: 0}}, expect: {path: [check, done], verified: false}}",
    ));
    let ran = project.run(&["test"]).code(1);
    for text in ["✗ tidy / wrong", "expected  found", "fix", "verified: expected false"] {
        assert!(ran.stdout.contains(text), "{text} in\n{}", ran.stdout);
    }
    project.run(&["test", "--junit", "out/junit.xml"]).code(1);
    assert!(project.read("out/junit.xml").contains("tidy / wrong"));
    let annotated = project.run(&["test", "--format", "github"]).code(1).stdout;
    assert!(annotated.contains("::error file=.loops/tests/tidy.test.yaml,line=3"), "{annotated}");
}

#[test]
fn what_has_no_mock_is_not_run_but_fails() {
    for mocks in ["{}", "{check: [{exit: 1}], fix: {exit: 0}}"] {
        let project = project(&only(&format!("{{name: gap, mocks: {mocks}}}")));
        project.run(&["test"]).code(1).says("touch ran; make check");
        assert!(!project.exists("ran"));
    }
}

#[test]
fn a_file_that_is_wrong_is_drawn_and_the_others_are_played() {
    for (case, code) in [
        ("{name: x, mocks: {check: {verdict: maybe}}}", "mock"),
        ("{name: x, mocks: {chekc: {exit: 0}}}", "mock"),
        ("{name: x, mocks: {check: {exit: 0, timed_out: true}}}", "mock"),
        ("{name: x, given: {now: soon}, mocks: {}}", "test-start"),
        ("{name: x, given: {state: nowhere}, mocks: {}}", "mock"),
        ("{name: x, expect: {never: [nowhere]}}", "test-case"),
    ] {
        let project = project(CASES).file(".loops/tests/bad.test.yaml", &only(case));
        let ran = project.run(&["test"]).code(2);
        assert!(ran.stdout.contains(&format!("[{code}]")), "{case}\n{}", ran.stdout);
        assert!(ran.stdout.contains("✓ tidy: 4 cases"), "{}", ran.stdout);
        project.run(&["validate"]).code(2).says(code);
    }
    let none = Project::new().file(".loops/tidy.yaml", LOOP);
    none.run(&["test"]).code(2);
    none.run(&["test", "tidy"]).code(2);
    project(CASES).run(&["test", "--case", "nothing like this"]).code(2);
}

#[test]
fn ways_that_no_case_takes_are_shown_bounded_and_generated() {
    let project = project(&only("{name: good, mocks: {check: {exit: 0}}, expect: {path: [check, done]}}"));
    project.run(&["test", "--coverage"]).code(0).says("no test takes the way");
    project.run(&["test", "--min-edges", "100"]).code(1);
    project.run(&["test", "--generate", "--ci", "tidy"]).code(2);
    project.run(&["test", "--generate", "tidy"]).code(0);
    assert!(project.read(".loops/tests/tidy.test.yaml").contains("# generated"));
    project.run(&["test", "--min-edges", "100"]).code(0).says("nobody has looked at it yet");
    let lcov = project.run(&["test", "--format", "lcov"]).code(0).stdout;
    assert!(lcov.contains("SF:.loops/tidy.yaml") && lcov.contains("DA:"), "{lcov}");
}

#[test]
fn mutants_that_no_case_notices_are_shown() {
    let killed = |report: &Value| report["files"][0]["mutants"]["killed"].as_u64().unwrap();
    let good = json(&project(CASES), &["--mutate", "--min-killed", "80"], 0);
    assert!(killed(&good) > 5, "{good}");
    let weak = project(&only("{name: weak, mocks: {check: {exit: 0}}}"));
    assert!(killed(&json(&weak, &["--mutate"], 0)) < 3);
    weak.run(&["test", "--mutate", "--min-killed", "90"]).code(1).says("no test notices it");
}

#[test]
fn texts_are_kept_beside_the_tests_and_never_written_in_ci() {
    let case = "{name: text, mocks: {check: {exit: 0}}, expect: {commands: {check: {snapshot: true}}}}";
    let project = project(&only(case));
    project.run(&["test", "--ci"]).code(1);
    assert!(!project.exists(".loops/tests/tidy.snapshots"));
    project.run(&["test", "--update"]).code(0);
    assert!(project.read(".loops/tests/tidy.snapshots").contains("touch ran; make check"));
    project.write(".loops/tidy.yaml", &LOOP.replace("make check", "make all"));
    project.run(&["test"]).code(1).says("make all");
}

#[test]
fn what_always_holds_is_proven_and_walked() {
    let with = |sentence: &str| project(&format!("{CASES}always: [{sentence}]\n"));
    with("enter done implies verified").run(&["test", "--fuzz", "500", "--seed", "7"]).code(0);
    let project = with("never broken");
    let ran = project.run(&["test", "--case", "nothing to do"]).code(1);
    assert!(ran.stdout.contains("never broken") && ran.stdout.contains("mocks:"), "{}", ran.stdout);
}

#[test]
fn a_run_that_is_killed_again_is_resumed_again() {
    let mocks = "{check: [{killed: true, resume: true}, {killed: true, resume: true}, {exit: 0}]}";
    let case = format!(
        "{{name: killed, mocks: {mocks}, expect: {{outcome: success, path: [check, check, check, done]}}}}"
    );
    project(&only(&case)).run(&["test"]).code(0);
}

#[test]
fn walks_do_not_resume_for_ever_what_has_spent_its_budget() {
    let text = "name: tidy\ninitial: fix\nbudget: { llm_calls: 2 }\nstates:\n  fix: { action_type: prompt, action: mend it, \
                next: check }\n  check: { action: make check, on_yes: done, on_no: fix }\n  done: { terminal: true }\n";
    let cases =
        only("{name: spent, mocks: {fix: {says: done}, check: {exit: 1}}, expect: {outcome: over_budget}}");
    let project = Project::new().file(".loops/tidy.yaml", text).file(".loops/tests/tidy.test.yaml", &cases);
    project.run(&["test", "--fuzz", "2000", "--seed", "4"]).code(0).says("2000 walks");
}

/// Returns the case that a run of tests printed, as an item of a list.
fn printed_case(stdout: &str) -> String {
    let lines = stdout.lines().skip_while(|line| !line.trim_start().starts_with("- name:"));
    lines.take_while(|line| line.starts_with("        ")).flat_map(|line| [&line[6..], "\n"]).collect()
}

#[test]
fn what_breaks_a_sentence_can_be_played() {
    let text = LOOP.replace("max_iterations: 4", "max_iterations: 4\non_max_iterations: broken");
    for sentence in ["never broken", "visits fix <= 1", "fix before done"] {
        let always = format!("always: [{sentence}]\n");
        let project = project(&format!("loop: tidy\n{always}")).file(".loops/tidy.yaml", &text);
        let ran = project.run(&["test"]).code(1);
        let case = printed_case(&ran.stdout);
        project.write(".loops/tests/tidy.test.yaml", &format!("loop: tidy\ncases:\n{case}{always}"));
        let ran = project.run(&["test", "--case", "breaks*"]).code(1);
        assert!(ran.stdout.contains(&format!("`{sentence}` does not hold")), "{case}\n{}", ran.stdout);
    }
}

#[test]
fn old_runs_are_played_on_the_loop_as_it_is_now() {
    let text = LOOP.replace("make check", "test -f ok").replace("make fix", "touch ok");
    let project = Project::new().file(".loops/tidy.yaml", &text);
    project.run(&["run", "tidy"]).code(0);
    project.run(&["test", "--replay", "history"]).code(0).says("the same way");
    project.write(".loops/tidy.yaml", &text.replace("on_no: fix", "on_no: broken"));
    project.run(&["test", "--replay", "history"]).code(0).says("parts at step");
    project.write(".loops/tidy.yaml", &text);
    project.run(&["test", "--from", "tidy"]).code(0);
    project.run(&["test"]).code(0).says("1 case");
}

#[test]
fn mocks_are_held_against_what_the_commands_do() {
    let text = LOOP.replace("make check", "test -f ok").replace("make fix", "touch ok");
    let project = project(&only("{name: old, mocks: {check: {exit: 0}}}")).file(".loops/tidy.yaml", &text);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "all"]);
    project.run(&["test", "--verify-mocks"]).code(1).says("no longer fit");
    assert!(!project.exists("ran"));
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn the_action_tests_loops() {
    let project = project(CASES)
        .in_github_job()
        .env("INPUT_COMMAND", "test")
        .env("INPUT_ARGS", "--min-edges 100")
        .env("INPUT_REPORT_DIR", "reports");
    project.run(&["action"]).code(0);
    assert!(project.read("reports/junit.xml").contains("it is mended"));
}

#[test]
fn loops_bring_their_tests() {
    let project = Project::new().file("Makefile", "test:\n\ttrue\n");
    project.run(&["init", "--ci", "none"]).code(0);
    project.run(&["test", "--min-edges", "100"]).code(0);
    project.run(&["add", "typos"]).code(0).says(".loops/tests/typos.test.yaml");
    project.run(&["test", "typos", "--min-edges", "100"]).code(0);
}
