//! Reports read back by the programs that people read them with.

use std::process::Command;

use serde_json::Value;

use crate::common::{CHECK_FIX, Project};

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
        "flaky": 1,
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
    let read = junit(crate::board::TASKS);
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
