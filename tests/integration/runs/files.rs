//! The files of a run: promised names, promised fields.

use crate::common::{CHECK_FIX, Project, Ran, git};

#[test]
fn a_finished_run_is_in_the_history_and_git_does_not_see_it() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    let left = std::fs::read_dir(project.at(".loops/.running")).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".gitignore", ".markdownlint-cli2.jsonc", ".mutex"]);
    for directory in [".running", ".history"] {
        assert!(project.read(&format!(".loops/{directory}/.gitignore")).ends_with("\n*\n"), "{directory}");
    }
    assert!(!project.exists(".loops/.gitignore"));
    for ending in [".events.jsonl", ".state.json", ".log"] {
        assert_eq!(project.run_files(ending).len(), 1, "{ending}");
    }
    assert!(project.run_files(".pid").is_empty() && project.run_files(".dir").is_empty());
    let log = std::fs::read_to_string(&project.run_files(".log")[0]).unwrap();
    assert!(log.contains("looking"), "{log}");
}

const STAGES: &str = "name: main
initial: fix
on_change: report
states:
  fix: {action: 'echo new > work; git add -A', next: check}
  check: {action: 'grep -q new work', on_yes: done, on_no: fix}
  done: {terminal: true}
";

#[test]
fn a_fix_that_stages_everything_stages_nothing_of_ours_and_is_delivered() {
    for (place, ignored) in [("", ""), ("", "/target\n"), ("pkg/", ""), ("", "!/.loops/\n!/.loops/**\n")] {
        let elsewhere = tempfile::tempdir().unwrap();
        let at = |name: &str| elsewhere.path().join(name).display().to_string();
        let project = Project::new();
        project.write(&format!("{place}.loops/main.yaml"), STAGES);
        project.write(&format!("{place}work"), "old\n");
        if !ignored.is_empty() {
            project.write(".gitignore", ignored);
        }
        git(&project, &["init", "-q", "-b", "main"]);
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-qm", "first"]);
        git(&project, &["init", "-q", "--bare", &at("bare.git")]);
        git(&project, &["push", "-q", &at("bare.git"), "main"]);
        let ours = |arguments: &[&str]| {
            let mut command = project.command(arguments);
            Ran::of(&command.current_dir(project.at(place)).output().unwrap())
        };
        for _ in 0..2 {
            let _ran = ours(&["run", "main", "--report-dir", &at("reports")]).code(0);
        }
        git(&project, &["add", "-A"]);
        let staged = git(&project, &["diff", "--cached", "--name-only"]);
        assert_eq!(staged.trim(), format!("{place}work"));
        git(&project, &["reset", "-q", "--hard"]);
        let _ran = ours(&["run", "main", "--report-dir", &at("reports")]).code(0);
        let _ran = ours(&[
            "deliver",
            "main",
            "--to",
            "branch",
            "--remote",
            &at("bare.git"),
            "--report-dir",
            &at("delivered"),
        ])
        .code(0);
    }
}

#[test]
fn state_json_has_the_promised_fields() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    let state = project.state();
    for field in [
        "schema",
        "loop",
        "instance",
        "status",
        "outcome",
        "current_state",
        "iteration",
        "step",
        "cycle",
        "attempt",
        "captured",
        "prev",
        "last_result",
        "context",
        "messages",
        "counters",
        "budget",
        "handoffs",
        "continuation_prompt",
        "started_at",
        "updated_at",
        "elapsed_ms",
        "definition_sha256",
        "overrides",
        "scope",
        "pid",
        "host",
        "last_seq",
    ] {
        assert!(state.get(field).is_some(), "no `{field}` in {state:#}");
    }
    assert_eq!(
        (&state["schema"], &state["status"], &state["outcome"]),
        (&1.into(), &"completed".into(), &"success".into())
    );
    assert_eq!(state["current_state"], "done");
    for counter in ["retries", "edges", "convergence", "stall"] {
        assert!(state["counters"].get(counter).is_some(), "no `{counter}` in {state:#}");
    }
    assert_eq!(state["scope"], serde_json::json!(["."]));
}

#[test]
fn events_are_numbered_dated_and_end_with_the_end() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    let events = project.events();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"].as_u64(), Some(index as u64 + 1));
        assert!(event["ts"].as_str().unwrap().ends_with('Z'));
        let keys: Vec<_> = event.as_object().unwrap().keys().take(3).cloned().collect();
        assert_eq!(keys, ["event", "ts", "seq"]);
    }
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names[..5], ["loop_start", "state_enter", "action_start", "action_complete", "evaluate"]);
    assert_eq!(names.last(), Some(&"loop_complete"));
    assert_eq!(project.state()["last_seq"].as_u64(), Some(events.len() as u64));
}

#[test]
fn a_long_stream_is_kept_whole_beside_the_journal() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: 'seq 1 5000', capture: numbers, next: done}\n  done: {terminal: true}\n",
    );
    project.run(&["run", "main"]).code(0);
    let streams = project.run_files(".stdout");
    assert_eq!(streams.len(), 1);
    assert_eq!(std::fs::read_to_string(&streams[0]).unwrap().lines().count(), 5000);
    let state = project.state();
    assert_eq!(state["captured"]["numbers"]["truncated"], true);
    assert!(state["captured"]["numbers"]["output"].as_str().unwrap().ends_with("\n5000"));
}

#[test]
fn secrets_are_in_no_file_and_on_no_line() {
    let secret = "hunter2-very-secret";
    let text = "name: main\ninitial: a\nstates:\n  a: {action: 'echo \"got $MY_TOKEN\"; printf %s \"$MY_TOKEN\" | base64; seq 1 3000; echo \"$MY_TOKEN\" >&2', capture: out, next: b}\n  b: {action: 'echo ${captured.out.stderr:shell} | cmp - <(echo \"$MY_TOKEN\") && touch same', next: done}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text).env("MY_TOKEN", secret);
    let ran = project.run(&["run", "--ci", "main", "--no-strict"]).code(0);
    assert!(project.exists("same"), "actions themselves see the real value");
    assert!(!ran.all().contains(secret), "{}", ran.all());
    let encoded = "aHVudGVyMi12ZXJ5LXNlY3JldA";
    let mut open = vec![project.at(".loops")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let content = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!content.contains(secret) && !content.contains(encoded), "{}", path.display());
        }
    }
}

#[test]
fn a_thousand_runs_in_one_second_would_not_collide() {
    let project = Project::with_loop("name: main\ninitial: done\nstates:\n  done: {terminal: true}\n");
    for _ in 0..20 {
        project.run(&["run", "main", "-q"]).code(0);
    }
    assert_eq!(project.run_files(".state.json").len(), 20);
}
