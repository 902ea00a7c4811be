//! Loops that see whether anything changes: in real repositories, with the real `git`.

use std::process::Command;

use crate::common::{Project, signal, wait_for};

/// Makes a repository of the project, with everything in it committed.
fn repository(project: Project) -> Project {
    git(&project, &["init", "-q", "-b", "main"]);
    commit(&project);
    project
}

fn commit(project: &Project) {
    git(project, &["add", "-A"]);
    git(project, &["commit", "-q", "-m", "work", "--allow-empty"]);
}

fn git(project: &Project, arguments: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let status = Command::new("git").args(identity).args(arguments).current_dir(project.path()).status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

/// A loop that works, looks whether that changed anything, and goes on for as long as it did.
fn looking(work: &str, evaluate: &str) -> String {
    format!(
        "\
name: main
description: works until nothing changes
initial: work
max_iterations: 9
states:
  work: {{action: '{work}', next: look}}
  look: {{action: 'true', evaluate: {{type: diff_stall{evaluate}}}, on_yes: work, on_no: stuck, on_error: oops_failed}}
  stuck: {{terminal: true, outcome: success}}
  oops_failed: {{terminal: true}}
"
    )
}

fn visits(project: &Project, state: &str) -> usize {
    let is_visit = |event: &serde_json::Value| event["event"] == "state_enter" && event["state"] == state;
    project.events().iter().filter(|event| is_visit(event)).count()
}

#[test]
fn diff_stall_sees_every_way_to_change_something() {
    for (what, work, expected) in [
        ("nothing", "true", 2),
        ("tracked", "test $LL_STEP -gt 3 || echo x >> a.txt", 3),
        ("untracked", "test $LL_STEP -gt 3 || echo x >> new.txt", 3),
        ("staged", "test $LL_STEP -gt 3 || { echo x >> a.txt; git add a.txt; }", 3),
        ("deleted", "test $LL_STEP -gt 3 || rm -f a.txt", 2),
        ("ignored", "echo x >> build.log", 2),
        (
            "empty commit",
            "test $LL_STEP -gt 3 || git -c user.name=t -c user.email=t@e.org commit -qm x --allow-empty",
            3,
        ),
    ] {
        let work = format!("LL_STEP=${{state.step}}; {work}");
        let project = repository(
            Project::with_loop(&looking(&work, "")).file("a.txt", "one\n").file(".gitignore", "*.log\n"),
        );
        project.run(&["run", "main"]).code(0);
        assert_eq!(visits(&project, "look"), expected, "{what}");
    }
}

#[test]
fn diff_stall_keeps_to_its_scope_and_its_count() {
    let text = looking("echo x >> docs/b.txt", ", scope: [src], max_stall: 2");
    let project = repository(Project::with_loop(&text).file("src/a.txt", "1").file("docs/b.txt", "1"));
    project.run(&["run", "main"]).code(0);
    assert_eq!(visits(&project, "look"), 3);
    let last = project.events().into_iter().rfind(|event| event["event"] == "evaluate").unwrap();
    assert_eq!(last["details"], serde_json::json!({"stall_count": 2, "max_stall": 2, "diff_changed": false}));
}

#[test]
fn a_second_run_remembers_nothing_of_the_first() {
    let project = repository(Project::with_loop(&looking("true", "")));
    for _ in 0..2 {
        project.run(&["run", "main"]).code(0);
    }
    for journal in project.run_files(".events.jsonl") {
        let events = crate::common::events(&journal);
        let first = events.iter().find(|event| event["event"] == "evaluate").unwrap();
        assert_eq!(first["verdict"], "yes", "{first}");
    }
}

#[test]
fn without_a_repository_diff_stall_says_so() {
    let project = Project::with_loop(&looking("true", "")).env("GIT_CEILING_DIRECTORIES", "/");
    project.run(&["run", "main"]).code(1);
    let evaluated = project.events().into_iter().find(|event| event["event"] == "evaluate").unwrap();
    let why = evaluated["details"]["error"].as_str().unwrap();
    assert!(why.contains("not a git repository"), "{why}");
    let without_route = looking("true", "").replace(", on_error: oops_failed", "");
    let project = Project::with_loop(&without_route);
    project.run(&["run", "main"]).code(4).says("not a git repository");
}

const STALLING: &str = "\
name: main
description: fixes what cannot be fixed
initial: check
max_iterations: 9
stall: {window: 3}
states:
  check: {action: 'exit 1', on_yes: done, on_no: fix}
  fix: {action: 'true', next: check}
  done: {terminal: true}
";

#[test]
fn a_run_that_changes_nothing_ends_and_explains() {
    let project = repository(Project::with_loop(STALLING));
    let ran = project.run(&["run", "main"]).code(3);
    ran.says("nothing changed in the last 3 visits of `check`: same verdict `no`, same working tree, no new commit");
    let end = project.end();
    assert_eq!((end["outcome"].as_str(), end["terminated_by"].as_str()), (Some("exhausted"), Some("stall")));
    assert_eq!(end["iterations"], 3);
    let stall = project.events().into_iter().find(|event| event["event"] == "stall").unwrap();
    assert_eq!((stall["state"].as_str(), stall["window"].as_u64()), (Some("check"), Some(3)));
    assert_eq!(stall["seen"]["verdict"], "no");
    assert!(stall["seen"]["tree"]["head"].is_string(), "{stall}");
}

#[test]
fn a_run_that_meets_another_limit_says_that_its_last_pass_changed_nothing() {
    let text = STALLING.replace("max_iterations: 9", "max_iterations: 2");
    let project = repository(Project::with_loop(&text));
    let ran = project.run(&["run", "main"]).code(3);
    ran.says("met the cap of 2 iterations; `check` said no in 2 of 2 iterations; nothing changed between the last two");
    let text = text.replace("action: 'true'", "action: 'echo x >> notes.txt'");
    let project = repository(Project::with_loop(&text));
    let ran = project.run(&["run", "main"]).code(3);
    assert!(!ran.all().contains("nothing changed"), "{}", ran.all());
}

#[test]
fn the_answers_of_a_tool_take_their_aliases() {
    let text = "\
name: main
description: calls a tool
initial: call
states:
  call:
    action: 'echo ''{\"isError\": true, \"content\": []}'''
    evaluate: {type: mcp_result}
    on_yes: done
    on_no: broken_failed
    on_not_found: broken_failed
  done: {terminal: true, outcome: success}
  broken_failed: {terminal: true, outcome: failure}
";
    let project = Project::with_loop(text);
    project.run(&["validate", "--strict", "main"]).code(0);
    project.run(&["run", "main"]).code(1);
    assert_eq!(project.end()["final_state"], "broken_failed");
}

#[test]
fn a_run_that_changes_something_goes_on() {
    for fix in ["echo x >> notes.txt", "git -c user.name=t -c user.email=t@e.org commit -qm x --allow-empty"]
    {
        let project = repository(Project::with_loop(&STALLING.replace("'true'", &format!("'{fix}'"))));
        project.run(&["run", "main"]).code(3);
        assert_eq!(project.end()["terminated_by"], "max_iterations", "{fix}");
    }
    let counting =
        STALLING.replace("{action: 'exit 1', on_yes", "{action: 'echo x >> ../n-$$PPID; exit 1', on_yes");
    let counting = counting.replace("$$PPID", "run").replace("exit 1", "wc -l < ../n-run");
    let counting = counting.replace("', on_yes", "', evaluate: {type: output_numeric, target: 99}, on_yes");
    let project = Project::new();
    fs_subproject(&project, &counting);
    let ran = Command::new(crate::common::LL_LOOP.as_str())
        .args(["run", "main"])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir(project.at("inner"))
        .output();
    assert_eq!(ran.unwrap().status.code(), Some(3));
    let journals: Vec<_> = std::fs::read_dir(project.at("inner/.loops/.history")).unwrap().collect();
    assert!(!journals.is_empty());
    assert_eq!(project.read("n-run").lines().count(), 9, "another number is not a stall");
}

/// Makes a repository below the project, so that files beside it do not count.
fn fs_subproject(project: &Project, text: &str) {
    project.write("inner/.loops/main.yaml", text);
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let inner = project.at("inner");
        assert!(
            Command::new("git").args(identity).args(arguments).current_dir(inner).status().unwrap().success()
        );
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "work"]);
}

#[test]
fn without_a_repository_the_verdict_has_to_do_and_that_is_said() {
    let project = Project::with_loop(STALLING);
    project
        .run(&["run", "main"])
        .code(3)
        .says("the working tree was not compared")
        .says("not a git repository");
    assert_eq!(project.end()["terminated_by"], "stall");
}

#[test]
fn a_stall_can_lead_to_a_state() {
    let text = STALLING
        .replace("{window: 3}", "{window: 2, action: rethink}")
        .replace("  done:", "  rethink: {action: touch better, next: check}\n  done:")
        .replace("exit 1", "test -f better");
    let project = repository(Project::with_loop(&text));
    project.run(&["run", "main"]).code(0);
    let routes: Vec<_> = project.events().into_iter().filter(|event| event["reason"] == "stall").collect();
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0]["to"], "rethink");
}

#[test]
fn what_is_wrong_with_a_stall_is_said() {
    for (stall, expected) in [
        ("{window: 3, action: nowhere}", "the state `nowhere` is not defined"),
        ("{window: 1}", "`window` must be a whole number from 2"),
        ("{windows: 3}", "did you mean `window`?"),
    ] {
        let project = Project::with_loop(&STALLING.replace("{window: 3}", stall));
        project.run(&["validate", "main"]).code(2).says(expected);
    }
    let text = STALLING
        .replace("{window: 3}", "{window: 3, action: rethink}")
        .replace("  done:", "  rethink: {action: think, next: check}\n  done:");
    let ran = Project::with_loop(&text).run(&["validate", "main"]).code(0);
    assert!(!ran.all().contains("never reached"), "{}", ran.all());
}

const NIGHTLY: &str = "\
name: main
description: looks every now and then
initial: look
maintain: true
states:
  look: {action: 'echo x >> log; test $(wc -l < log) -ne ${context.bad}', on_yes: done, on_no: broken_failed}
  done: {terminal: true}
  broken_failed: {terminal: true}
";

#[test]
fn a_maintain_loop_ends_after_its_cycles_as_its_last_terminal_says() {
    for (bad, code, outcome) in [("9", 0, "success"), ("2", 0, "success"), ("3", 1, "failure")] {
        let project = Project::with_loop(NIGHTLY);
        project.run(&["run", "main", "--max-cycles", "3", "--context", &format!("bad={bad}")]).code(code);
        assert_eq!(project.read("log").lines().count(), 3);
        let end = project.end();
        assert_eq!((end["outcome"].as_str(), end["cycles"].as_u64()), (Some(outcome), Some(3)));
    }
    let once = Project::with_loop(crate::common::CHECK_FIX);
    once.run(&["run", "main", "--max-cycles", "2"]).code(0).says("`--max-cycles` has no effect");
    once.run(&["run", "main", "--max-cycles", "0"]).code(2);
}

#[test]
fn the_log_says_that_a_maintain_loop_starts_again() {
    for mode in ["--ci", "--no-ci"] {
        let project = Project::with_loop(NIGHTLY);
        // In CI a clean cycle is the last one.
        let ran = project.run(&["run", "main", "--max-cycles", "2", "--context", "bad=1", mode]).code(0);
        assert_eq!(ran.stdout.matches("✓ yes").count(), 1, "{}", ran.all());
        assert_eq!(ran.stdout.matches("↻ again from look").count(), 1, "{}", ran.all());
    }
}

#[test]
fn the_wait_of_a_maintain_loop_ends_with_a_signal() {
    let text = NIGHTLY.replace("maintain: true", "maintain: true\nmaintain_delay: 1h");
    let project = Project::with_loop(&text);
    let mut child = project.start_until(&["run", "main", "--context", "bad=9"], "log");
    wait_for(|| {
        project
            .run_files(".events.jsonl")
            .iter()
            .any(|journal| std::fs::read_to_string(journal).unwrap_or_default().contains("\"backoff\""))
    });
    signal(&child, rustix::process::Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let end = project.end();
    assert_eq!((end["outcome"].as_str(), end["cycles"].as_u64()), (Some("interrupted"), Some(2)));
}
