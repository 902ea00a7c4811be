//! Files that would take all time, memory or disk there is, and what becomes of them.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};

use rustix::process::Signal;

use crate::common::{Project, Ran, signal, wait_for};

/// A loop whose state prints a document and asks `path` about it.
fn asking(path: &str, keys: &str) -> Project {
    Project::with_loop(&format!(
        "name: main\ninitial: a\n{keys}\nstates:\n  a:\n    action: 'echo ran >> runs; echo \"{{}}\"'\n    timeout: 20s\n    \
         evaluate: {{type: output_json, path: '{path}', target: 1}}\n    on_yes: done\n    on_no: wrong\n    on_error: unknown\n  \
         done: {{terminal: true}}\n  wrong: {{terminal: true, outcome: failure}}\n  unknown: {{terminal: true, outcome: failure}}\n"
    ))
}

/// Never ends, and takes no memory.
const ENDLESS: &str = "last(range(1e15))";

fn error(project: &Project) -> String {
    let events = project.events();
    let judged = events.iter().find(|event| event["event"] == "evaluate").unwrap();
    judged["details"]["error"].as_str().unwrap().to_owned()
}

/// Runs `validate`, and fails rather than waits when that does not end.
fn validated(project: &Project) -> Ran {
    let mut child =
        project.command(&["validate", "main"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(|| child.try_wait().unwrap().is_some());
    Ran::of(&child.wait_with_output().unwrap())
}

#[test]
fn an_expression_is_not_executed_when_its_file_is_read() {
    for path in ["[range(1e12)]", ENDLESS, "def f: f, f; [f]", "error"] {
        let said = validated(&asking(path, "")).code(0).all();
        assert!(!said.contains("odd-evaluator"), "{said}");
    }
}

#[test]
fn an_expression_works_in_a_process_of_its_own() {
    asking("length + 1", "").run(&["run", "main"]).code(0);
    let project = asking("no_such | thing", "");
    project.run(&["run", "main"]).code(1).says("unknown");
}

#[test]
fn an_expression_sees_no_environment() {
    asking("env | length + 1", "").env("LL_TOKEN", "t").run(&["run", "main"]).code(0);
}

#[test]
fn an_expression_that_takes_too_long_is_an_error() {
    let project = asking(ENDLESS, "");
    project.write(".loops/main.yaml", &project.read(".loops/main.yaml").replace("20s", "1s"));
    project.run(&["run", "main"]).code(1);
    assert_eq!(error(&project), format!("`{ENDLESS}` was stopped after 1.0s"));
}

#[test]
fn an_expression_that_takes_too_much_is_an_error() {
    for path in [r#"reduce range(60) as $i ("x"; . + .) | length"#, "def f: [f]; f"] {
        let project = asking(&path.replace('\'', "''"), "");
        project.run(&["run", "main"]).code(1);
        assert!(
            error(&project).contains("it needs more than 1024 MiB of memory, or calls itself too deeply")
        );
    }
}

/// Processes that answer a query for this one.
fn helpers(of: &Child) -> Vec<String> {
    let children = format!("/proc/{0}/task/{0}/children", of.id());
    let children = fs::read_to_string(children).unwrap_or_default();
    let asks = |pid: &&str| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("answer-query"))
    };
    children.split_whitespace().filter(asks).map(str::to_owned).collect()
}

/// Starts a run and comes back when an expression is executed in it, with the process that does it.
fn querying(project: &Project, arguments: &[&str]) -> (Child, String) {
    let command = project.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = command.unwrap();
    wait_for(|| !helpers(&child).is_empty());
    let helper = helpers(&child).remove(0);
    (child, helper)
}

fn is_gone(pid: &str) -> bool {
    !fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

#[test]
fn a_signal_ends_an_expression_and_the_run_goes_on_where_it_was() {
    let project = asking(ENDLESS, "");
    let (child, helper) = querying(&project, &["run", "main"]);
    signal(&child, Signal::TERM);
    Ran::of(&child.wait_with_output().unwrap()).code(143);
    wait_for(|| is_gone(&helper));
    assert_eq!(project.end()["terminated_by"], "interrupted");
    project.write(".loops/main.yaml", &project.read(".loops/main.yaml").replace(ENDLESS, "length + 1"));
    project.run(&["resume", "main", "--accept-changes"]).code(0);
    assert_eq!(project.read("runs"), "ran\n", "what was printed is judged, and not printed again");
}

#[test]
fn an_expression_does_not_outlive_a_run_that_is_killed() {
    let project = asking(ENDLESS, "");
    let (mut child, helper) = querying(&project, &["run", "main"]);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for(|| is_gone(&helper));
}

#[test]
fn an_expression_is_not_begun_for_a_run_that_is_gone() {
    // A run can be killed before its helper has asked the system to be told of that.
    let project = Project::new();
    let question = |asker: u32| format!("{asker} {}\n{ENDLESS}null", ENDLESS.len());
    let command = project.command(&["answer-query"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = command.unwrap();
    child.stdin.take().unwrap().write_all(question(0).as_bytes()).unwrap();
    wait_for(|| child.try_wait().unwrap().is_some());
    Ran::of(&child.wait_with_output().unwrap()).code(4).says("the process that asked is gone");
}

#[test]
fn an_expression_ends_with_the_time_of_the_run() {
    let project = asking(ENDLESS, "timeout: 1s");
    project.run(&["run", "main"]).code(124);
    let project = asking(ENDLESS, "");
    project.run(&["run", "main", "--deadline", "1"]).code(75);
}

/// Goes round and does nothing.
const SPINNING: &str =
    "name: main\ninitial: a\nmax_iterations: 20000000\nstates:\n  a: {next: b}\n  b: {next: a}\n";

/// The most memory that a process had, in KiB.
fn peak(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_run_without_work_ends_when_it_is_told_to_and_takes_no_memory() {
    for more in ["", "  c: {evaluate: {type: criteria}, next: a}\n"] {
        let text =
            if more.is_empty() { SPINNING.to_owned() } else { SPINNING.replace("next: a", "next: c") + more };
        let project = Project::with_loop(&text);
        let command = project
            .command(&["run", "main", "--ci"])
            .env("CI", "true")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child = command.unwrap();
        let length = || {
            project
                .run_files(".events.jsonl")
                .first()
                .and_then(|path| path.metadata().ok())
                .map_or(0, |file| file.len())
        };
        wait_for(|| length() > 2_000_000);
        let before = peak(&child);
        wait_for(|| length() > 12_000_000);
        let grown = peak(&child).saturating_sub(before);
        signal(&child, Signal::TERM);
        assert_eq!(child.wait().unwrap().code(), Some(143));
        assert!(grown < 10_000, "{grown} KiB for 10 MB of events");
    }
}

#[test]
fn a_run_without_work_ends_with_its_time() {
    let project = Project::with_loop(&format!("timeout: 1s\n{SPINNING}"));
    project.run(&["run", "main", "-q"]).code(124);
    let project = Project::with_loop(SPINNING);
    project.run(&["run", "main", "-q", "--deadline", "1"]).code(75);
}

#[test]
fn a_file_of_hostile_patterns_is_read_at_once() {
    let state = |n: usize| {
        format!(
            "  s{n}: {{action: x, evaluate: {{type: output_contains, pattern: '(?i)\\p{{L}}{{99}}x{n}(a{{1000}}){{900}}'}}, on_yes: s{n}, on_no: s{n}}}\n"
        )
    };
    let states: String = (0..500).map(state).collect();
    let project = Project::with_loop(&format!("name: main\ninitial: s0\nstates:\n{states}"));
    let said = validated(&project);
    assert!(said.code.is_some(), "{}", said.all());
}

#[test]
fn a_pattern_that_can_never_say_anything_is_refused() {
    let text = |pattern: &str| {
        format!(
            "name: main\ninitial: a\nstates:\n  a: {{action: echo x, evaluate: {{type: output_contains, pattern: '{pattern}', negate: true}}, on_yes: done, on_no: done}}\n  done: {{terminal: true}}\n"
        )
    };
    for pattern in ["[done", "(a{1000}){1000}"] {
        let project = Project::with_loop(&text(pattern));
        project.run(&["validate", "main"]).code(2).says("unusable-evaluator");
        project.run(&["run", "main"]).code(2);
    }
    Project::with_loop(&text("[done]")).run(&["run", "main"]).code(0);
}
