//! `run --background`: what the caller gets, and what happens when the caller is gone.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use rustix::process::Signal;

use crate::common::{Project, Ran, signal, wait_for};

const LONG: &str = "\
name: long
description: d
initial: a
states:
  a: {action: 'echo $PPID > pid; echo words; until test -e may-end || ! test -d $PWD; do sleep 0.02; done', next: done}
  done: {terminal: true}
";

fn project() -> Project {
    Project::new().file(".loops/long.yaml", LONG)
}

/// Starts the loop in the background and returns its instance.
fn started(project: &Project) -> String {
    let ran = project.run(&["run", "long", "--background"]).code(0);
    let instance = ran.stdout.trim().to_owned();
    assert!(instance.starts_with("long-2") && !instance.contains('\n'), "{instance}");
    assert!(
        project.exists(&format!(".loops/.running/{instance}.events.jsonl")),
        "the first event is written"
    );
    let pid = project.read(&format!(".loops/.running/{instance}.pid"));
    ran.says(&format!("process {}", pid.trim()))
        .says(&format!("ll-loop logs -f {instance}"))
        .says(&format!("ll-loop stop {instance}"));
    instance
}

#[test]
fn the_caller_comes_back_when_the_run_has_begun() {
    let project = project();
    let instance = started(&project);
    project.run(&["status", &instance]).code(0).says("running");
    wait_for(|| project.exists("pid"));
    project.write("may-end", "");
    project.run(&["logs", "-f", &instance]).code(0).says("words");
    project.run(&["status", &instance]).code(0).says("completed");
    assert!(project.exists(&format!(".loops/.history/long/{instance}.log")));
}

#[test]
fn a_run_in_the_background_can_be_stopped() {
    let project = project();
    let instance = started(&project);
    project.run(&["stop", &instance]).code(0).says("interrupted");
    project.run(&["run", "long", "--background"]).code(0);
    project.run(&["stop", "long"]).code(0);
}

#[test]
fn a_run_in_the_background_that_is_stopped_in_the_action_of_its_terminal_is_interrupted() {
    let text = "name: main\ninitial: a\nmaintain: true\nstates:\n  a: {action: 'true', on_yes: done}\n  done: {terminal: true, action: 'touch begun; sleep 60'}\n";
    let project = Project::with_loop(text);
    project.run(&["run", "main", "--background"]).code(0);
    wait_for(|| project.exists("begun"));
    project.run(&["stop", "main"]).code(0).says("interrupted");
    let end = project.end();
    assert_eq!((&end["outcome"], &end["exit_code"]), (&"interrupted".into(), &143.into()), "{end}");
    project.run(&["status", "main"]).code(0).says("interrupted");
}

#[test]
fn nothing_that_happens_to_the_caller_reaches_the_run() {
    let project = project();
    let script = format!(
        "\"{}\" run long --background; trap '' HUP TERM; kill -HUP 0; kill -TERM 0",
        crate::common::LL_LOOP.as_str()
    );
    let mut command = std::process::Command::new("bash");
    let output = command
        .args(["-c", &script])
        .current_dir(project.path())
        .process_group(0)
        .stdin(Stdio::null())
        .output();
    Ran::of(&output.unwrap()).code(0);
    wait_for(|| project.exists("pid") && project.read("pid").ends_with('\n'));
    let pid = project.read("pid").trim().to_owned();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!((fields[2], fields[3]), (pid.as_str(), pid.as_str()), "group and session are its own");
    assert_eq!(fields[4], "0", "it has no terminal");
    for fd in ["0", "1", "2"] {
        // A run lets only root look at what it has open.
        let Ok(target) = fs::read_link(format!("/proc/{pid}/fd/{fd}")) else {
            assert!(!rustix::process::getuid().is_root());
            continue;
        };
        let expected = if fd == "0" { "/dev/null" } else { ".log" };
        assert!(target.to_string_lossy().ends_with(expected), "{fd}: {target:?}");
    }
    project.run(&["stop", "long"]).code(0);
}

#[test]
fn a_start_that_fails_fails_in_the_caller() {
    let project = project();
    let started = started(&project);
    let both = |arguments: &[&str], code: i32| {
        let ahead = project.run(arguments).code(code);
        let behind = project.run(&[arguments, &["--background"]].concat()).code(code);
        assert_eq!((ahead.stdout, ahead.stderr), (behind.stdout, behind.stderr));
    };
    both(&["run", "long"], 73);
    both(&["run", "lang"], 2);
    both(&["run", "long", "--param", "x=1"], 2);
    project.write(".loops/bad.yaml", "name: bad\ninitial: nowhere\nstates: {a: {terminal: true}}\n");
    both(&["run", "bad"], 2);
    both(&["run", "long", "--dry-run"], 0);
    project.run(&["stop", &started]).code(0);
    let blocked = self::project().file(".loops/.running", "a file where a directory has to be");
    blocked.run(&["run", "long", "--background"]).code(2).says("cannot save the run");
}

#[test]
fn a_run_that_waits_for_its_turn_waits_in_front_of_the_caller() {
    let project = project();
    let first = started(&project);
    let waiting = |count: usize| {
        let names = fs::read_dir(project.at(".loops/.running")).unwrap();
        let waiting =
            names.filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().ends_with(".wait"));
        waiting.count() == count
    };
    let queue = ["run", "long", "--background", "--queue"];
    let caller = project.command(&queue).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(|| waiting(1));
    signal(&caller, Signal::INT);
    Ran::of(&caller.wait_with_output().unwrap()).code(130).says("waiting: run long-").says("nothing was run");
    assert!(waiting(0));
    let caller = project.command(&queue).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(|| waiting(1));
    project.run(&["stop", &first]).code(0);
    Ran::of(&caller.wait_with_output().unwrap()).code(0).says("runs in the background");
    project.run(&["stop", "long"]).code(0);
}

#[test]
fn what_would_have_gone_to_the_terminal_is_in_the_log() {
    let project = project();
    project.write("may-end", "");
    // The reports cannot be written, which is a warning at the end of the run.
    project.write("reports", "a file where a directory has to be");
    project.run(&["run", "long", "--background", "--ci", "--report-dir", "reports/here"]).code(0);
    project.run(&["logs", "long", "-f"]).code(0).says("words").says("not every report was written");
}
