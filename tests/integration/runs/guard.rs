//! The guard of a run in CI: what is done when the process of a run is killed and no step follows.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::ci::reported::Github;
use crate::common::{CHECK_FIX, Project, signal, wait_for};

/// An action with a child of its own, and both write down who they are.
const LOOP: &str = "name: main
initial: a
states:
  a: {action: 'true', on_yes: b}
  b: {action: 'sleep 600 & echo $! > grandchild; echo $$ > child; mv child begun; wait', next: done}
  done: {terminal: true}
";

fn is_alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

/// Returns the processes of this program that a process has started.
pub(crate) fn guards(of: u32) -> Vec<String> {
    let children = fs::read_dir(format!("/proc/{of}/task"))
        .unwrap()
        .map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    let children: Vec<String> =
        children.flat_map(|all| all.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect();
    let is_guard = |pid: &&String| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.ends_with(b"\0guard\0")
    };
    children.iter().filter(|pid| !pid.is_empty()).filter(is_guard).cloned().collect()
}

fn begun(project: &Project, github: &Github) -> (Child, [String; 2]) {
    let child = project.start_until(&["run", "main"], "begun");
    wait_for(|| github.statuses().len() == 1);
    let pids = ["begun", "grandchild"].map(|file| project.read(file).trim().to_owned());
    assert!(pids.iter().all(|pid| is_alive(pid)));
    (child, pids)
}

#[test]
fn who_is_killed_leaves_no_process_and_no_pending_status() {
    for flavour in ["GITHUB_ACTIONS", "GITEA_ACTIONS", "FORGEJO_ACTIONS"] {
        let github = Github::willing();
        let project = github.project(LOOP).env(flavour, "true");
        let (mut child, pids) = begun(&project, &github);
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        wait_for(|| github.statuses() == ["pending: running", "error: killed in state `b`"]);
        wait_for(|| !pids.iter().any(|pid| is_alive(pid)));
        let (request, body) = github.received().pop().unwrap();
        assert_eq!(request, format!("POST /repos/octo/project/statuses/{}", crate::ci::reported::SHA));
        assert_eq!(body["context"], "ll-loop/main");
    }
}

#[test]
fn a_workspace_that_is_deleted_at_once_keeps_nothing_from_being_told() {
    let github = Github::willing();
    let project = github.project(LOOP);
    let (mut child, pids) = begun(&project, &github);
    signal(&child, Signal::KILL);
    for entry in fs::read_dir(project.path()).unwrap() {
        let path = entry.unwrap().path();
        fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)).unwrap();
    }
    child.wait().unwrap();
    wait_for(|| github.statuses().len() == 2);
    wait_for(|| !pids.iter().any(|pid| is_alive(pid)));
    assert!(fs::read_dir(project.path()).unwrap().next().is_none(), "nothing is made anew");
}

#[test]
fn a_program_that_was_replaced_is_guarded_all_the_same() {
    let github = Github::willing();
    let project = github.project(LOOP);
    let program = project.at("ll-loop");
    fs::copy(crate::common::LL_LOOP.as_str(), &program).unwrap();
    let mut command = Command::new(&program);
    let usual = project.command(&["run", "main"]);
    let env = usual.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.arg("run").arg("main").current_dir(project.path()).env_clear().envs(env);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    // Another test may start a process while the copy is still open for writing.
    let mut started = None;
    wait_for(|| {
        started = command.spawn().ok();
        started.is_some()
    });
    let mut child = started.unwrap();
    wait_for(|| project.exists("begun") && github.statuses().len() == 1);
    fs::remove_file(&program).unwrap();
    fs::write(&program, "#!/bin/false\n").unwrap();
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for(|| github.statuses().len() == 2);
}

#[test]
fn the_step_ends_although_the_guard_still_works() {
    let github = Github::willing();
    // Whoever does not want to end gets a grace, which the guard waits for.
    let text = LOOP
        .replace("sleep 600 &", "trap \"\" TERM; sleep 600 &")
        .replace("; wait", "; while test -d /proc; do wait; sleep 1; done");
    let project = github.project(&text);
    let (child, pids) = begun(&project, &github);
    let guard = guards(child.id()).pop().unwrap();
    signal(&child, Signal::KILL);
    // Comes back when nobody holds the output of the step any more.
    child.wait_with_output().unwrap();
    assert!(is_alive(&guard));
    // The next command waits for the guard, so that nothing is in its way or told twice.
    let ran = project.run(&["report", "main"]).code(0);
    assert!(ran.stdout.contains("killed in state `b`"), "{}", ran.all());
    assert!(!pids.iter().chain([&guard]).any(|pid| is_alive(pid)));
    assert_eq!(github.statuses().len(), 2);
}

#[test]
fn a_run_that_ends_takes_its_guard_along() {
    let github = Github::willing();
    let project = github.project("name: main\ninitial: a\nstates:\n  a: {action: 'touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done', on_yes: done}\n  done: {terminal: true}\n");
    let child = project.start_until(&["run", "main"], "begun");
    let guards = guards(child.id());
    assert_eq!(guards.len(), 1);
    project.write("go", "");
    assert!(child.wait_with_output().unwrap().status.success());
    wait_for(|| !is_alive(&guards[0]));
    let statuses = github.statuses();
    assert!(statuses.len() == 2 && !statuses[1].contains("killed"), "{statuses:?}");
    let left = fs::read_dir(project.at(".loops/.running")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().contains("guard")));
}

#[test]
fn a_run_that_is_asked_to_end_tells_that_itself() {
    let github = Github::willing();
    let project = github.project(LOOP);
    let (child, pids) = begun(&project, &github);
    signal(&child, Signal::TERM);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
    assert!(!pids.iter().any(|pid| is_alive(pid)));
    assert_eq!(github.statuses()[1..], ["error: interrupted: SIGTERM in `b`"]);
}

#[test]
fn without_a_status_the_actions_are_ended_all_the_same() {
    let github = Github::willing();
    let project = github.project(LOOP);
    for more in [&["--no-status"][..], &["--ci=plain"]] {
        let mut child = project.start_until(&[&["run", "main"], more].concat(), "begun");
        let pids = ["begun", "grandchild"].map(|file| project.read(file).trim().to_owned());
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        wait_for(|| !pids.iter().any(|pid| is_alive(pid)));
        fs::remove_file(project.at("begun")).unwrap();
    }
    assert_eq!(github.received(), []);
}

/// By the clock and by hand a run sets no status, and none that comes later would take back what the guard said.
#[test]
fn a_killed_run_that_nobody_waits_for_sets_no_status() {
    for event in ["schedule", "workflow_dispatch"] {
        let github = Github::willing();
        let project = github.project(LOOP).env("GITHUB_EVENT_NAME", event);
        let mut child = project.start_until(&["run", "main"], "begun");
        let guard = guards(child.id()).pop().unwrap();
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        wait_for(|| !is_alive(&guard));
        assert_eq!(github.received(), [], "{event}");
    }
}

#[test]
fn nobody_guards_a_run_of_a_person() {
    let github = Github::willing();
    let project = github.project(LOOP);
    let child = project.start_until(&["run", "main", "--no-ci"], "begun");
    assert_eq!(guards(child.id()), Vec::<String>::new());
    signal(&child, Signal::TERM);
    child.wait_with_output().unwrap();
}

#[test]
fn no_agent_goes_on_after_its_run_was_killed() {
    let text = "name: main\ninitial: ask\nstates:\n  ask: {action_type: prompt, action: fix it, next: done}\n  done: {terminal: true}\n";
    let answer = "sleep 600 & echo $! > grandchild; echo $$ > agent; mv agent begun; wait";
    let project = crate::fake_host::project(&["claude"], text, &[answer.to_owned()]);
    let mut child = project.start_until(&["run", "main", "--no-ci", "--yes"], "begun");
    let pids = ["begun", "grandchild"].map(|file| project.read(file).trim().to_owned());
    assert!(pids.iter().all(|pid| is_alive(pid)));
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for(|| !pids.iter().any(|pid| is_alive(pid)));
}

/// Reads every file below a directory.
fn all(directory: &Path, seen: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all(&path, seen);
        } else {
            seen.extend(fs::read(&path).ok());
        }
    }
}

#[test]
fn the_token_is_in_no_command_line_no_environment_and_no_file() {
    let github = Github::willing();
    let project = github.project(LOOP);
    let (mut child, _) = begun(&project, &github);
    let guard = guards(child.id()).pop().unwrap();
    let mut seen: Vec<Vec<u8>> = vec![fs::read(format!("/proc/{guard}/cmdline")).unwrap()];
    // Only root may look; that others may not is what the program asks for.
    seen.extend(fs::read(format!("/proc/{guard}/environ")).ok());
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for(|| github.statuses().len() == 2);
    all(project.path(), &mut seen);
    assert!(seen.len() > 5);
    for text in seen {
        assert!(!String::from_utf8_lossy(&text).contains("ghs_0123456789"));
    }
}

#[test]
fn a_guard_that_does_not_read_holds_nothing_up() {
    let github = Github::willing();
    let text = "name: main\ninitial: a\nmax_iterations: 100000\nstates:\n  a: {action: 'test $LL_STEP = 1 && touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done; test $LL_STEP -gt 3000', next: b}\n  b: {action: 'true', next: c}\n  c: {action: 'test $LL_STEP -gt 900', on_yes: done, on_no: b}\n  done: {terminal: true}\n";
    let project = github.project(&text.replace("name: main", "name: main\ncontext: {long: x}"));
    let child = project.start_until(&["run", "main", "-q"], "begun");
    let guard = guards(child.id()).pop().unwrap();
    let stopped = rustix::process::Pid::from_raw(guard.parse().unwrap()).unwrap();
    rustix::process::kill_process(stopped, Signal::STOP).unwrap();
    project.write("go", "");
    assert!(child.wait_with_output().unwrap().status.success());
    rustix::process::kill_process(stopped, Signal::CONT).unwrap();
    wait_for(|| !is_alive(&guard));
}

#[test]
fn what_was_killed_after_the_guard_told_it_is_told_once() {
    let github = Github::willing();
    let project = github.project(CHECK_FIX).file(".loops/main.yaml", LOOP);
    let (mut child, _) = begun(&project, &github);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    project.run(&["report", "main"]).code(0);
    project.run(&["report", "main"]).code(0);
    let errors: Vec<(String, Value)> =
        github.received().into_iter().filter(|(_, body)| body["state"] == "error").collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
}
