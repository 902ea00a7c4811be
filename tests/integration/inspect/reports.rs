//! Reports read back by the programs that people read them with.

use std::process::Command;

use serde_json::Value;

use crate::common::{CHECK_FIX, Project, git};

/// Runs a loop in CI mode and returns its JUnit file as real readers see it.
fn junit(text: &str) -> Value {
    let project = Project::with_loop(text);
    let ran = project.run(&["run", "--ci=plain", "main", "--report-dir", "reports"]);
    assert!(ran.code.is_some_and(|code| code < 2), "{}", ran.all());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reports/read_junit.py");
    let read = Command::new("python3").arg(script).arg(project.at("reports/junit.xml")).output().unwrap();
    let stderr = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "run `tests/run` once, which installs the readers: {stderr}");
    let mut read: Value = serde_json::from_slice(&read.stdout).unwrap();
    let page = read["junit2html"].as_object_mut().unwrap().remove("page_bytes");
    assert!(page.is_some_and(|bytes| bytes.as_u64() > Some(1000)), "the page is empty");
    read
}

#[test]
fn real_readers_read_a_fixed_run() {
    let read = junit(CHECK_FIX);
    insta::assert_snapshot!(format!("{read:#}"), @r#"
    {
      "junitparser": {
        "suites": [
          "main"
        ],
        "tests": 3,
        "failures": 0,
        "errors": 0,
        "skipped": 0,
        "flaky": 0,
        "reruns": 0,
        "names": [
          "check",
          "fix",
          "loop outcome"
        ],
        "counted": {
          "tests": 3,
          "failures": 0,
          "errors": 0,
          "skipped": 0
        }
      },
      "junit2html": {
        "tests": 3,
        "failures": 0,
        "skipped": 0,
        "passed": 3,
        "names": [
          "check",
          "fix",
          "loop outcome"
        ]
      }
    }
    "#);
}

#[test]
fn real_readers_read_a_run_told_by_its_tasks() {
    let read = junit(crate::runs::board::TASKS);
    let expected = serde_json::json!({
        "suites": ["main"], "tests": 4, "failures": 2, "errors": 0, "skipped": 1, "flaky": 0, "reruns": 0,
        "names": ["1 Add the `form`", "2 Store…", "3 Document", "loop outcome"],
        "counted": {"tests": 4, "failures": 2, "errors": 0, "skipped": 1},
    });
    assert_eq!(read["junitparser"], expected);
    assert_eq!(read["junit2html"]["skipped"], 1);
}

#[test]
fn real_readers_read_hostile_output() {
    let text = "name: main\ninitial: a\nstates:\n  a: {action: \"printf ']]></system-out><failure/>\\\\000\\\\033[31m\\\\377\\\\357\\\\277\\\\276 & <b>'; exit 1\", on_yes: done, on_no: failed}\n  done: {terminal: true}\n  failed: {terminal: true}\n";
    let read = junit(text);
    insta::assert_snapshot!(format!("{read:#}"), @r#"
    {
      "junitparser": {
        "suites": [
          "main"
        ],
        "tests": 2,
        "failures": 2,
        "errors": 0,
        "skipped": 0,
        "flaky": 0,
        "reruns": 0,
        "names": [
          "a",
          "loop outcome"
        ],
        "counted": {
          "tests": 2,
          "failures": 2,
          "errors": 0,
          "skipped": 0
        }
      },
      "junit2html": {
        "tests": 2,
        "failures": 2,
        "skipped": 0,
        "passed": 0,
        "names": [
          "a",
          "loop outcome"
        ]
      }
    }
    "#);
}

/// Fails in the same way in each pass, but for one.
const SAME: &str = "\
name: main
description: d
initial: check
max_iterations: 50
states:
  check: {action: 'n=$(cat n 2> /dev/null); n=$((n + 1)); echo $n > n; echo broken; [ $n != 10 ] || echo odd; exit 1', on_yes: done, on_no: fix}
  fix: {action: echo trying, next: check}
  done: {terminal: true}
";

#[test]
fn passes_that_are_the_same_are_said_once_and_more_of_them_are_not_advised() {
    let project = Project::with_loop(SAME);
    let ran = project.run(&["run", "main", "--no-ci"]).code(3);
    let said = ran.all();
    let lines = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    assert_eq!(lines("] check → "), 2 + 1 + 2, "{said}");
    assert_eq!((lines("… 7 passes like this one"), lines("… 38 passes like this one")), (1, 1), "{said}");
    assert!(said.contains("the last 40 passes had the same verdicts and outputs"), "{said}");
    assert!(said.contains("`stall: {window: 3}`") && !said.contains("raise `max_iterations`"), "{said}");
    let verbose = Project::with_loop(SAME).run(&["run", "main", "--no-ci", "--verbose"]).code(3).all();
    assert!(!verbose.contains("like this one") && verbose.matches("] check → ").count() == 50);
    let steps = project.events().iter().filter(|event| event["event"] == "state_enter").count();
    assert_eq!(steps, 100, "the journal has all of them");
}

#[test]
fn passes_that_look_the_same_and_changed_files_are_not_called_idle() {
    let project = Project::with_loop(SAME);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "first"]);
    let said = project.run(&["run", "main", "--no-ci"]).code(3).all();
    assert!(
        said.contains("the last 40 passes had the same verdicts and outputs, but the working tree changed"),
        "{said}"
    );
    assert!(said.contains("raise `max_iterations`") && !said.contains("nothing changes"), "{said}");
}

#[test]
fn the_log_and_the_summary_in_ci_say_passes_that_are_the_same_once() {
    let project = Project::with_loop(SAME).in_github_job();
    // Without a repository there is a warning, which makes the first pass another one.
    git(&project, &["init", "-q"]);
    git(&project, &["add", ".loops"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    let log = project.run(&["run", "main", "--ci"]).code(3).stdout;
    assert_eq!(log.matches("::group::[").count(), 2 * (2 + 1 + 2), "{log}");
    assert_eq!(log.matches("::group::").count(), log.matches("::endgroup::").count(), "{log}");
    assert!(log.contains("… 7 passes like this one") && log.contains("… 38 passes like this one"), "{log}");
    let summary = project.read("summary");
    assert_eq!(summary.matches("✗ `no`").count(), 5, "{summary}");
    assert!(summary.contains("| … | … 7 passes like this one |"), "{summary}");
    assert!(summary.contains("| … | … 38 passes like this one |"), "{summary}");
    // The working tree changed, so more passes might help.
    assert!(summary.contains("if they do, raise"), "{summary}");
}

#[test]
fn a_run_that_ends_well_after_passes_that_were_the_same_shows_its_last_one() {
    let text = SAME.replace("exit 1'", "[ $n = 20 ]'");
    let said = Project::with_loop(&text).run(&["run", "main", "--no-ci"]).code(0).all();
    assert!(said.contains("[20/50] check") && said.contains("… 7 passes like this one"), "{said}");
    assert!(!said.contains("the same verdicts"), "{said}");
}
