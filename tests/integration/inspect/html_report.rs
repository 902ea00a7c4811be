//! `report.html`: the page of a run, for runs of every kind. What a browser makes of it is tested in `tests/html`.

use crate::common::{CHECK_FIX, Project, git};
use crate::runs::board::TASKS;

/// Prints on both streams, in colour, and changes a file.
const LOUD: &str = "\
name: main
description: x
initial: check
max_iterations: 2
states:
  check: {action: \"seq 1 40; printf '\\\\033[31mbad\\\\033[0m\\\\n' >&2; exit 1\", on_yes: done, on_no: fix}
  fix: {action: 'echo more >> file', next: inner}
  inner: {loop: sub, on_success: check, on_failure: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

const SUB: &str = "\
name: sub
description: x
initial: a
states:
  a: {action: echo two, next: b}
  b: {action: 'test -e /', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

fn has(page: &str, what: &[&str]) {
    for text in what {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_run_in_ci_leaves_its_page_with_the_reports() {
    let project = Project::with_loop(LOUD).file(".loops/sub.yaml", SUB);
    project.run(&["run", "main", "--ci", "--report-dir", "out"]).code(3);
    let page = project.read("out/report.html");
    has(
        &page,
        &[
            "<!doctype html>",
            "id=\"why\"",
            "id=\"step-1\"",
            "id=\"step-3.2\"",
            "id=\"out-1\"",
            "id=\"err-1\"",
        ],
    );
    has(&page, &["<title>✗ exhausted: main</title>", "id=\"state-check\"", "<svg ", "On your machine"]);
    assert!(
        !page.contains("http://")
            || page.matches("http://").count() == page.matches("http://www.w3.org/2000/svg").count()
    );
    let asked = project.run(&["report", "main", "--format", "html"]).code(0).stdout;
    has(&asked, &["id=\"step-3.2\"", "id=\"out-1\""]);
}

#[test]
fn a_run_of_which_nothing_was_run_has_a_page_too() {
    let project = Project::with_loop("name: main\ninitial: nowhere\nstates: {}\n");
    project.run(&["run", "main", "--ci", "--report-dir", "out"]).code(2);
    has(&project.read("out/report.html"), &["Nothing was run.", "<h1>main</h1>"]);
}

#[test]
fn a_report_is_written_to_a_file() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    let printed = project.run(&["report", "main", "--format", "html"]).code(0).stdout;
    let quiet = project.run(&["report", "main", "--format", "html", "-o", "here.html"]).code(0);
    assert_eq!((quiet.stdout.as_str(), project.read("here.html")), ("", printed));
    project.run(&["report", "main", "--format", "junit", "-o", "here.xml"]).code(0);
    assert!(project.read("here.xml").starts_with("<?xml"));
    let refused = project.run(&["report", "main", "-o", "no/such/directory.txt"]).code(4);
    assert!(refused.stderr.contains("the report: cannot write"), "{}", refused.stderr);
}

#[test]
fn the_page_marks_how_another_run_differs() {
    let text = "name: main\ndescription: x\ninitial: check\nstates:
  check: {action: 'test -e there', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}\n";
    let project = Project::with_loop(text);
    project.run(&["run", "main"]).code(1);
    let first = project.run_files(".events.jsonl").remove(0);
    let first = first.file_name().unwrap().to_str().unwrap().replace(".events.jsonl", "");
    let project = project.file("there", "");
    project.run(&["run", "main"]).code(0);
    let page = project.run(&["report", "main", "--format", "html", "--against", &first]).code(0).stdout;
    has(&page, &["id=\"against\"", "They part at", "<span class=\"differs\">there no → failed</span>"]);
    let refused = project.run(&["report", "main", "--against", &first]).code(2);
    assert!(refused.stderr.contains("`--format html`"), "{}", refused.stderr);
}

#[test]
fn the_page_has_what_each_step_changed() {
    let project = Project::with_loop(LOUD).file(".loops/sub.yaml", SUB).file("file", "one\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project.run(&["run", "main", "--snapshots", "--ci", "--report-dir", "out"]).code(3);
    let page = project.read("out/report.html");
    has(&page, &["<span class=\"added\">+more</span>"]);
}

#[test]
fn the_page_of_a_board_has_its_tasks() {
    let project = Project::with_loop(TASKS);
    project.run(&["run", "main", "--ci", "--report-dir", "out"]).code(1);
    has(&project.read("out/report.html"), &["id=\"tasks\"", "id=\"task-1\"", "coder"]);
}

#[test]
fn whatever_a_run_prints_is_a_text_on_the_page() {
    let hostile = "</script><img src=x onerror=alert(1)>\u{202e}";
    let text = format!(
        "name: main\ndescription: x\ninitial: 'a<b>'\nstates:
  'a<b>': {{action: \"echo '{hostile}'; echo '{hostile}' >&2; exit 1\", on_yes: done, on_no: failed}}
  done: {{terminal: true}}
  failed: {{terminal: true}}\n"
    );
    let project = Project::with_loop(&text);
    project.run(&["run", "main"]).code(1);
    let page = project.run(&["report", "main", "--format", "html"]).code(0).stdout;
    assert!(!page.contains("<img") && !page.contains("a<b>") && !page.contains('\u{202e}'));
    has(&page, &["a&lt;b&gt;", "⟨U+202E⟩", "id=\"state-a~3cb~3e\""]);
}
