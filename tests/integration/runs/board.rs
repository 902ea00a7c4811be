//! A loop that works on a task board, and what everything says about it that people read: by task, not by state.

use std::fs;

use serde_json::Value;

use crate::common::{Project, wait_for};
use crate::runs::crash::thorough;

/// Two tasks and one that waits for the second, which fails for good. `work` stops where it is told to.
pub(crate) const TASKS: &str = "\
name: main
description: d
initial: load
on_resume: recover
board: {attempts_before_replan: 2, max_replan_depth: 0}
states:
  recover: {action_type: board, action: recover, on_plan: load, on_review: load, on_next: next}
  load:
    action_type: board
    action: load
    params:
      answer: '{\"tasks\": [{\"description\": \"Add the `form`\"}, {\"description\": \"Store\\n::error::x\"}, {\"description\": \"Document\", \"dependencies\": [1]}]}'
    on_loaded: approve
  approve: {action_type: board, action: approve, on_approved: next}
  next: {action_type: board, action: next, on_task: work, on_done: done, on_stuck: bad}
  work:
    role: coder
    action: 'echo working on ${board.id}; echo ${board.id} >> worked; until ! test -e wait; do sleep 0.02; done'
    next: facts
  facts: {action: echo facts, next: test}
  test:
    role: tester
    action: 'echo testing; test ${board.id} != 2'
    on_yes: pass
    on_no: fail
  pass: {action_type: board, action: pass, params: {summary: did it}, route: {passed: next}}
  fail:
    action_type: board
    action: fail
    params: {output: the test said no}
    route: {retry: next, replan: give_up, give_up: give_up, stuck: bad, abort: bad}
  give_up: {action_type: board, action: give_up, on_given_up: next, on_abort: bad}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure}
";

#[test]
fn a_run_is_told_by_its_tasks() {
    let project = Project::with_loop(TASKS);
    let ran = project.run(&["run", "--ci=plain", "main", "--report-dir", "reports"]).code(1);
    for line in [
        "▸ task 1 of 3: Add the `form`\n",
        "==> task 1/3 Add the `form` › work (coder)\n│ working on 1\n",
        "✓ task 1 completed\n",
        "▸ task 2 of 3, attempt 2: Store…\n",
        "✗ task 2 failed\n",
        "! task 3 cannot begin any more: task 2 is not completed\n",
        "· 1 of 3 tasks completed, 1 failed, 1 unreachable\n",
    ] {
        assert!(ran.stdout.contains(line), "no {line:?} in\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("facts") && !ran.stdout.contains("give_up"), "{}", ran.stdout);

    let summary = project.read("reports/summary.md");
    assert!(summary.contains("- ✓ 1 Add the &#96;form&#96; — completed, 1 attempt\n"), "{summary}");
    assert!(summary.contains("- · 3 Document — unreachable, waits for task 2\n"), "{summary}");
    assert!(summary.contains("| `tester` | 0 | 0 |  |\n"), "{summary}");
    for (shown, hidden) in [("| `test` |", "| `facts` |"), ("[\"work\"]", "[\"next\"]")] {
        assert!(summary.contains(shown) && !summary.contains(hidden), "{shown} {hidden}\n{summary}");
    }
    assert!(summary.contains("steps that only keep the task board are not shown"), "{summary}");
    let junit = project.read("reports/junit.xml");
    assert!(junit.contains(r#"tests="4" skipped="1" errors="0" failures="2""#), "{junit}");
    assert!(junit.contains(r#"<testcase name="2 Store…""#), "{junit}");
    let result: Value = serde_json::from_str(&project.read("reports/result.json")).unwrap();
    let tasks = result["tasks"].as_array().unwrap().iter();
    let told: Vec<String> = tasks
        .map(|task| format!("{} {} {} {}", task["id"], task["status"], task["attempts"], task["reason"]))
        .collect();
    assert_eq!(
        told,
        [r#""1" "completed" 1 null"#, r#""2" "failed" 2 "the test said no""#, r#""3" "pending" 0 null"#]
    );
    assert_eq!(result["execution"], project.state()["board"]["execution"]);

    let ran = project.run(&["status", "main"]).code(0);
    insta::assert_snapshot!(about_tasks(&ran.stdout), @"
    tasks      1 of 3 completed, 1 failed, 1 unreachable
      ✓ 1 Add the `form` (completed)
      ✗ 2 Store… (failed)
      · 3 Document (unreachable, waits for task 2)
    ");
    let ran = project.run(&["status", "main", "--json"]).code(0);
    let status: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(status["board"], project.state()["board"]);
}

#[test]
fn the_tasks_of_a_killed_run_are_known_and_go_on() {
    let project = Project::with_loop(TASKS).file("wait", "");
    let mut child = project.start_until(&["run", "main"], "worked");
    let live = || project.run(&["status", "main"]).code(0).stdout;
    wait_for(|| live().contains("in progress"));
    child.kill().unwrap();
    child.wait().unwrap();
    let crashed = live();
    insta::assert_snapshot!(about_tasks(&crashed), @r#"
    tasks      0 of 3 completed; task 1 "Add the `form`" in progress
      ▸ 1 Add the `form` (in progress)
      · 2 Store… (pending)
      · 3 Document (pending)
    "#);
    // The copy may be gone, or be older than the journal.
    let state = project.run_files(".state.json").remove(0);
    let ran = project.run(&["status", "main", "--json"]).code(0);
    fs::remove_file(state).unwrap();
    assert_eq!(about_tasks(&live()), about_tasks(&crashed));
    let again = project.run(&["status", "main", "--json"]).code(0);
    let board = |text: &str| serde_json::from_str::<Value>(text).unwrap()["board"].clone();
    assert_eq!(board(&again.stdout), board(&ran.stdout));

    fs::remove_file(project.at("wait")).unwrap();
    let ran = project.run(&["resume", "main", "--ci=plain", "--report-dir", "reports"]).code(1);
    assert!(ran.stdout.contains("! task 1 begins anew: it was in_progress\n"), "{}", ran.stdout);
    let result: Value = serde_json::from_str(&project.read("reports/result.json")).unwrap();
    let numbers: Vec<u64> =
        result["steps"].as_array().unwrap().iter().map(|step| step["step"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let cut_off = &result["steps"][3];
    assert_eq!((cut_off["state"].as_str(), &cut_off["exit_code"]), (Some("work"), &Value::Null));
    assert_eq!(result["tasks"][0]["attempts"], 2);
}

/// Returns the lines of a status that are about tasks.
fn about_tasks(status: &str) -> String {
    let lines = status.lines().skip_while(|line| !line.starts_with("  tasks"));
    lines.take_while(|line| !line.starts_with("  next")).collect::<Vec<_>>().join("\n")
}

/// Returns the tasks that a journal calls completed, whether or not its last line is whole.
fn completed(project: &Project) -> Vec<String> {
    let Some(journal) = project.run_files(".events.jsonl").pop() else { return Vec::new() };
    let text = fs::read_to_string(journal).unwrap();
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let changed = events.filter_map(|event| event["change"]["tasks"].as_array().cloned()).flatten();
    let done = changed.filter(|task| task["status"] == "completed");
    done.map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

fn worked_on(project: &Project, task: &str) -> usize {
    fs::read_to_string(project.at("worked")).unwrap_or_default().lines().filter(|id| *id == task).count()
}

/// `LL_CRASH=all` kills at every write, otherwise at some.
#[test]
fn killed_at_any_write_a_run_does_nothing_again_that_was_completed() {
    let text = TASKS.replace("test ${board.id} != 2", "true");
    let mut point = 1;
    loop {
        let project = Project::with_loop(&text);
        let ran =
            project.command(&["run", "main", "-q"]).env("LL_FAULT", point.to_string()).output().unwrap();
        if ran.status.code().is_some() {
            break;
        }
        let before = completed(&project);
        let times: Vec<_> = before.iter().map(|task| worked_on(&project, task)).collect();
        let resumed = project.run(&["resume", "main", "-q"]);
        let has_begun = !resumed.stderr.contains("there is no run of")
            && !resumed.stderr.contains("before its first step")
            && !resumed.stderr.contains("has ended");
        if has_begun {
            let resumed = resumed.code(0);
            assert_eq!(completed(&project).len(), 3, "killed at {point}: {}", resumed.all());
        }
        for (task, times) in before.iter().zip(times) {
            assert_eq!(worked_on(&project, task), times, "killed at {point}: task {task} was done again");
        }
        point += if thorough() { 1 } else { 4 };
    }
    assert!(point > 60, "{point}");
}
