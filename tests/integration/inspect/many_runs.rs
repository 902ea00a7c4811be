//! `stats` and `diff`: what many runs have in common, and what tells two apart.

use std::fs;

use serde_json::{Value, json};

use crate::common::{CHECK_FIX, Project, Ran, signal, wait_for};

/// A loop that remembers what it was told, and ends as it was told.
const TOLD: &str = "\
name: told
description: d
initial: hear
context: {word: good}
states:
  hear: {action: 'echo ${context.word}', capture: heard, next: inner}
  inner: {loop: part, with: {word: '${context.word}'}, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

const PART: &str = "\
name: part
description: d
initial: listen
parameters: {word: {type: string}}
states:
  listen: {action: 'true', next: test}
  test: {action: 'test ${context.word} = good', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

fn parsed(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.all()))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Two runs of `main`, the first of which had something to fix, and one of `other`.
fn with_history() -> Project {
    let project =
        Project::with_loop(CHECK_FIX).file(".loops/other.yaml", &CHECK_FIX.replace("main", "other"));
    for name in ["main", "main", "other"] {
        project.run(&["run", name]).code(0);
    }
    project
}

fn instances(project: &Project, name: &str) -> Vec<String> {
    let ran = project.run(&["history", name, "--json"]).code(0);
    let runs = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    runs.map(|run| run["instance"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn stats_are_of_every_loop_that_has_run() {
    let project = with_history();
    let stats = parsed(&project.run(&["stats", "--json"]).code(0));
    assert_eq!(keys(&stats), ["loops", "slowest"]);
    let main = &stats["loops"][0];
    let of_loop = [
        "loop",
        "runs",
        "outcomes",
        "verified",
        "flaky",
        "median_ms",
        "p90_ms",
        "passes",
        "cost_usd",
        "states",
    ];
    assert_eq!(keys(main), of_loop);
    assert_eq!(
        (&main["loop"], &main["runs"], &main["outcomes"]),
        (&json!("main"), &json!(2), &json!({"success": 2}))
    );
    assert_eq!(
        (&main["verified"], &main["flaky"], &main["cost_usd"]),
        (&json!(1.0), &json!(0.0), &json!(0.0))
    );
    assert_eq!(main["passes"], json!({"median": 1}));
    let check = &main["states"][0];
    assert_eq!(keys(check), ["state", "visits", "median_ms", "p90_ms", "total_ms", "flaky"]);
    assert_eq!((&check["state"], &check["visits"]), (&json!("check"), &json!(3)));
    assert_eq!(stats["loops"][1]["loop"], "other");
    for slow in stats["slowest"].as_array().unwrap() {
        assert_eq!(keys(slow), ["loop", "state", "total_ms"]);
    }
    let one = parsed(&project.run(&["stats", "other", "--json"]).code(0));
    assert_eq!((one["loops"].as_array().unwrap().len(), &one["loops"][0]["runs"]), (1, &json!(1)));
    project.run(&["stats"]).code(0).says("main: 2 runs, 2 success").says("✓✓").says("100% of the successes");
}

#[test]
fn stats_begin_when_they_are_told_to() {
    let project = with_history();
    for since in ["1d", "3600", "2020-01-01", "2020-01-01T00:00:00Z"] {
        let stats = parsed(&project.run(&["stats", "main", "--since", since, "--json"]).code(0));
        assert_eq!(stats["loops"][0]["runs"], 2, "{since}");
    }
    project
        .run(&["stats", "--since", "2999-01-01"])
        .code(2)
        .says("there is no run that has ended since 2999-01-01T00:00:00.000Z");
    project.run(&["stats", "--since", "yesterday"]).code(2).says("a date such as `2026-11-20`");
}

#[test]
fn without_a_run_there_are_no_stats() {
    let project = Project::with_loop(CHECK_FIX);
    let ran = project.run(&["stats", "--json"]).code(2).says("there is no run");
    assert_eq!(ran.stdout, "");
    project.run(&["stats", "main"]).code(2).says("no run of `main`");
    project.run(&["stats", "mian"]).code(2).says("main");
    project.run(&["stats", "--from", "nowhere"]).code(2).says("nowhere");
    fs::create_dir(project.at("empty")).unwrap();
    let _ran =
        project.run(&["stats", "--from", "empty"]).code(2).says("there is no run in empty").says("<run>.llz");
}

#[test]
fn stats_of_a_directory_count_every_run_in_it_once() {
    let project = Project::with_loop(CHECK_FIX);
    for directory in ["down/1/report", "down/2"] {
        project.run(&["run", "main", "--report-dir", directory]).code(0);
    }
    fs::remove_dir_all(project.at(".loops/.history")).unwrap();
    // The same run once more, from another download.
    fs::create_dir(project.at("down/3")).unwrap();
    for entry in fs::read_dir(project.at("down/2")).unwrap().filter_map(Result::ok) {
        if entry.path().extension().is_some_and(|ending| ending == "llz") {
            fs::copy(entry.path(), project.at("down/3/again.llz")).unwrap();
        }
    }
    project.write("down/notes.txt", "nothing");
    let ran = project.run(&["stats", "--from", "down", "--json"]).code(0);
    assert_eq!((parsed(&ran)["loops"][0]["runs"].as_u64(), ran.stderr.as_str()), (Some(2), ""));
    let _ran =
        project.run(&["stats", "other", "--from", "down"]).code(2).says("there is no run of `other` in down");
    // What cannot be read is told, and the rest is counted.
    project.write("down/broken.llz", "PK");
    project.write("down/4/events.jsonl", "{\"torn");
    let ran = project.run(&["stats", "--from", "down", "--json"]).code(0);
    assert_eq!(parsed(&ran)["loops"][0]["runs"], 2);
    let ran = ran.says("broken.llz is left out").says("events.jsonl is left out: ");
    assert_eq!(ran.stderr.matches("warning").count(), 2, "{}", ran.stderr);
    project.run(&["stats", "--from", "down/3/again.llz"]).code(0).says("main: 1 run, 1 success");
}

#[test]
fn stats_and_diff_of_a_killed_run_change_nothing() {
    let long = CHECK_FIX.replace("touch flag", "touch begun flag; while test -e begun; do sleep 0.02; done");
    let project = Project::with_loop(&long);
    let mut child = project.start_until(&["run", "main"], "begun");
    project.run(&["stats"]).code(2).says("there is no run that has ended");
    signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    fs::remove_file(project.at("begun")).unwrap();
    wait_for(|| project.run(&["status"]).stdout.contains("crashed"));
    let before = project.run_files("");
    let stats = parsed(&project.run(&["stats", "--json"]).code(0));
    assert_eq!(stats["loops"][0]["outcomes"], json!({"interrupted": 1}));
    let diff = parsed(&project.run(&["diff", "main", "main", "--json"]).code(0));
    assert_eq!(diff["outcomes"], json!(["interrupted", "interrupted"]));
    assert_eq!(project.run_files(""), before);
}

#[test]
fn a_diff_names_the_step_where_two_runs_part_and_the_captures_that_differ() {
    let project = Project::new().file(".loops/told.yaml", TOLD).file(".loops/part.yaml", PART);
    project.run(&["run", "told"]).code(0);
    project.run(&["run", "told", "--context", "word=bad", "--report-dir", "out"]).code(1);
    project.run(&["run", "told"]).code(0);
    let runs = instances(&project, "told");
    let [good, bad, same] = runs.as_slice() else { panic!("{runs:?}") };
    let bundle = format!("out/{bad}.llz");
    for other in [bad.as_str(), bundle.as_str(), "out"] {
        let diff = parsed(&project.run(&["diff", good, other, "--json"]).code(0));
        assert_eq!(
            diff,
            json!({
                "first": {"step": "2.2", "state": "test"},
                "outcomes": ["success", "failure"],
                "captures": [{"name": "heard"}],
            }),
            "{other}"
        );
    }
    let ran = project.run(&["diff", good, bad]).code(0);
    let ran = ran.says("they part at step 2.2").says("test: yes → done").says("test: no → failed");
    ran.says("a  exit 0, `good`").says("b  exit 0, `bad`");
    let diff = parsed(&project.run(&["diff", good, same, "--json"]).code(0));
    assert_eq!(diff, json!({"first": null, "outcomes": ["success", "success"], "captures": []}));
    project.run(&["diff", good, "nothing"]).code(2);
    project.run(&["diff", good]).code(2);
}
