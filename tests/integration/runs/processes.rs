//! Signals and children, with real processes.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Project, Ran, signal, wait_for};

fn alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z"))
}

fn interrupted(with: Signal, code: i32) {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: 'sleep 60 & echo $! > child; touch begun; wait', next: done}\n  done: {terminal: true}\n",
    );
    let child = project.start_until(&["run", "main"], "begun");
    signal(&child, with);
    Ran::of(&child.wait_with_output().unwrap()).code(code);
    let (end, state) = (project.end(), project.state());
    assert_eq!((&end["outcome"], &state["status"]), (&"interrupted".into(), &"interrupted".into()));
    assert_eq!(state["current_state"], "a");
    wait_for(|| !alive(&project.read("child")));
    assert!(project.run_files(".pid").is_empty());
}

#[test]
fn sigint_ends_the_run_and_its_children() {
    interrupted(Signal::INT, 130);
}

#[test]
fn sigterm_ends_the_run_and_its_children() {
    interrupted(Signal::TERM, 143);
}

/// What the program that starts us does about its own children is inherited.
#[cfg(target_os = "linux")]
#[test]
fn who_is_started_deaf_to_the_ends_of_children_hears_of_them() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: exit 1, on_yes: failed, on_no: done}\n  done: {terminal: true}\n  failed: {terminal: true, outcome: failure}\n",
    );
    let deaf = format!("trap '' CHLD; exec {} run main", crate::common::LL_LOOP.as_str());
    let mut command = std::process::Command::new("timeout");
    command.args(["60", "bash", "-c", &deaf]).current_dir(project.path());
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    Ran::of(&command.output().unwrap()).code(0);
    assert_eq!(project.end()["final_state"], "done");
}

#[test]
fn sighup_ends_the_run_and_its_children() {
    interrupted(Signal::HUP, 129);
}

#[test]
fn sigquit_ends_the_run_and_its_children() {
    interrupted(Signal::QUIT, 131);
}

#[test]
fn sigxfsz_ends_the_run_and_its_children() {
    interrupted(Signal::XFSZ, 153);
}

/// Every signal that asks for an end, with the exit code it has.
const SIGNALS: [(Signal, i32); 5] =
    [(Signal::HUP, 129), (Signal::INT, 130), (Signal::QUIT, 131), (Signal::TERM, 143), (Signal::XFSZ, 153)];

/// Runs a loop until it stands where `stands` says, asks it to end by every signal in turn, and goes on with it: it is
/// interrupted there, and comes to the end that it would have come to.
fn interrupted_where(text: &str, stands: fn(&[serde_json::Value]) -> bool, state: &str) {
    let runs = SIGNALS.map(|(with, code)| {
        let project = Project::with_loop(text)
            .file(".loops/kid.yaml", "name: kid\ninitial: k\nstates:\n  k: {action: 'touch kid; test -e go || sleep 60', on_yes: done}\n  done: {terminal: true}\n");
        let child = project.start_until(&["run", "main", "--strict"], "begun");
        wait_for(|| stands(&project.events()));
        signal(&child, with);
        (project, child, code)
    });
    for (project, child, code) in runs {
        Ran::of(&child.wait_with_output().unwrap()).code(code);
        let end = project.end();
        assert_eq!((&end["outcome"], &end["final_state"]), (&"interrupted".into(), &state.into()), "{end}");
        assert_eq!(project.state()["status"], "interrupted");
        project.write("go", "");
        project.run(&["resume", "main"]).code(0);
        assert_eq!(project.end()["outcome"], "success", "{}", project.end());
        let begun = project.read("begun");
        assert_eq!(begun, "a\n", "what was finished is not done again");
    }
}

fn last_is(events: &[serde_json::Value], name: &str) -> bool {
    events.last().is_some_and(|event| event["event"] == name)
}

#[test]
fn the_action_of_a_terminal_that_is_interrupted_runs_again_when_the_run_goes_on() {
    let text = "name: main\ninitial: a\nstates:\n  a: {action: 'echo a >> begun', on_yes: done}\n  done: {terminal: true, action: 'echo a > bye; test -e go || sleep 60'}\n";
    let is_closing = |events: &[serde_json::Value]| {
        last_is(events, "action_start") && events.last().unwrap()["state"] == "done"
    };
    interrupted_where(text, is_closing, "done");
}

#[test]
fn a_maintain_loop_that_is_interrupted_in_its_terminal_has_not_succeeded() {
    // The second cycle finds nothing to do any more, and that is an error without a way.
    let text = "name: main\ninitial: a\nmaintain: true\nstates:\n  a: {action: 'test ! -e go || exit 9', on_yes: done}\n  done: {terminal: true, action: 'touch bye; test -e go || sleep 60'}\n";
    let project = Project::with_loop(text);
    let child = project.start_until(&["run", "main"], "bye");
    signal(&child, Signal::TERM);
    Ran::of(&child.wait_with_output().unwrap()).code(143);
    let end = project.end();
    assert_eq!(
        (&end["outcome"], &end["final_state"], &end["cycles"]),
        (&"interrupted".into(), &"done".into(), &1.into())
    );
    project.write("go", "");
    project.run(&["resume", "main"]).code(4);
    let begins = |event: &&serde_json::Value| event["event"] == "action_start" && event["state"] == "done";
    assert_eq!(project.events().iter().filter(begins).count(), 2);
    assert_eq!((&project.end()["cycles"], &project.end()["final_state"]), (&2.into(), &"a".into()));
}

#[test]
fn a_run_that_is_asked_to_end_by_its_last_action_is_interrupted() {
    // The signal arrives before the action ends, whatever that comes to.
    for (states, left) in [
        ("a: {action: 'kill -TERM $PPID', on_yes: done}\n  done: {terminal: true}", "done"),
        ("a: {action: 'kill -TERM $PPID; exit 7', on_yes: done}\n  done: {terminal: true}", "a"),
        (
            "a: {action: 'kill -TERM $PPID; echo FATAL_ERROR: no', on_yes: done}\n  done: {terminal: true}",
            "a",
        ),
        ("a: {action: 'true', on_yes: done}\n  done: {terminal: true, action: 'kill -TERM $PPID'}", "done"),
    ] {
        let project = Project::with_loop(&format!("name: main\ninitial: a\nstates:\n  {states}\n"));
        project.run(&["run", "main"]).code(143);
        let end = project.end();
        assert_eq!(end["outcome"], "interrupted", "{end}");
        // Whether the action had come to its end before it was stopped depends on the machine.
        assert!(["a", left].iter().any(|state| end["final_state"] == **state), "{end}");
    }
}

#[test]
fn a_wait_and_a_sub_loop_are_interrupted_and_gone_on_with() {
    let a = "a: {action: 'echo a >> begun; false', on_yes: done, on_no: b}";
    interrupted_where(
        &format!(
            "name: main\ninitial: a\nstates:\n  {a}\n  b: {{action: 'test -e go', on_yes: done, on_no: $current, max_retries: 3, retry_delay: 1h, on_retry_exhausted: done}}\n  done: {{terminal: true}}\n"
        ),
        |events| last_is(events, "backoff"),
        "b",
    );
    interrupted_where(
        &format!(
            "name: main\ninitial: a\nstates:\n  {a}\n  b: {{loop: kid, on_success: done}}\n  done: {{terminal: true}}\n"
        ),
        |events| last_is(events, "action_start") && events.last().unwrap()["depth"] == 1,
        "b",
    );
}

#[test]
fn a_pause_between_cycles_is_interrupted() {
    for (with, code) in SIGNALS {
        let text = "name: main\ninitial: a\nmaintain: true\nmaintain_delay: 1h\nstates:\n  a: {action: 'touch begun', on_yes: done}\n  done: {terminal: true}\n";
        let project = Project::with_loop(text);
        let child = project.start_until(&["run", "main"], "begun");
        wait_for(|| last_is(&project.events(), "backoff"));
        signal(&child, with);
        Ran::of(&child.wait_with_output().unwrap()).code(code);
        assert_eq!((&project.end()["outcome"], &project.end()["cycles"]), (&"interrupted".into(), &2.into()));
    }
}

#[test]
fn a_second_signal_does_not_wait_for_the_grace() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: \"trap '' TERM; touch begun; while :; do sleep 0.05; done\", next: done}\n  done: {terminal: true}\n",
    );
    let child = project.start_until(&["run", "main"], "begun");
    signal(&child, Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, Signal::INT);
    Ran::of(&child.wait_with_output().unwrap()).code(130);
    let events = project.events();
    let complete = events.iter().find(|event| event["event"] == "action_complete").unwrap();
    assert_eq!((&complete["signal"], &complete["stop"]), (&9.into(), &"cancelled".into()));
    assert!(complete["duration_ms"].as_u64().unwrap() < 5_000, "{complete}");
}

/// Who does not want to end, and a grandchild that nobody can find by its group, and that holds the pipes.
const STUBBORN: &str = "name: main\ninitial: a\nstates:\n  a: {action: \"trap '' TERM INT HUP; setsid sleep 60 & echo said; touch begun; while :; do sleep 0.05; done\", next: done}\n  done: {terminal: true}\n";

#[test]
fn who_does_not_want_to_end_is_ended_after_the_grace_and_everything_is_written() {
    let cases = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];
    let children = cases.map(|(with, code)| {
        let project = Project::with_loop(STUBBORN);
        let child = project.start_until(&["run", "main", "--ci=plain", "--report-dir", "r"], "begun");
        signal(&child, with);
        (project, child, code)
    });
    for (project, child, code) in children {
        let ran = Ran::of(&child.wait_with_output().unwrap()).code(code).says("interrupted by SIG");
        assert!(ran.stdout.contains("said"), "{}", ran.stdout);
        let events = project.events();
        let complete = events.iter().find(|event| event["event"] == "action_complete").unwrap();
        assert_eq!((&complete["signal"], &complete["stop"]), (&9.into(), &"cancelled".into()));
        // From the request to the end: five seconds of grace, and not the sixty of what holds the pipes.
        let took = |event: &serde_json::Value| event["duration_ms"].as_u64().unwrap();
        assert!((5_000..30_000).contains(&took(complete)), "{complete}");
        assert!(took(&project.end()) - took(complete) < 20_000, "{}", project.end());
        for report in ["summary.md", "junit.xml", "result.json", "outputs.env", "events.jsonl", "state.json"]
        {
            assert!(project.exists(&format!("r/{report}")), "{report}");
        }
        assert!(project.read("r/outputs.env").contains("outcome=interrupted"));
        assert_eq!(project.state()["status"], "interrupted");
    }
}

#[test]
fn a_second_signal_of_another_kind_hurries_and_the_first_one_names_the_end() {
    let project = Project::with_loop(STUBBORN);
    let child = project.start_until(&["run", "main"], "begun");
    signal(&child, Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, Signal::TERM);
    Ran::of(&child.wait_with_output().unwrap()).code(130);
    assert!(project.end()["duration_ms"].as_u64().unwrap() < 5_000, "{}", project.end());
}

#[test]
fn a_wait_between_two_passes_is_interrupted() {
    let text = "name: main\ninitial: a\nbackoff: 1h\nstates:\n  a: {action: touch begun; false, on_yes: done, on_no: a}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text);
    let child = project.start_until(&["run", "main"], "begun");
    wait_for(|| project.events().last().unwrap()["event"] == "backoff");
    signal(&child, Signal::TERM);
    Ran::of(&child.wait_with_output().unwrap()).code(143);
    assert_eq!(project.end()["final_state"], "a");
}

#[test]
fn after_kill_9_the_journal_and_the_state_can_be_read() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: echo one, capture: first, next: b}\n  b: {action: echo $$ > action; touch begun; exec sleep 60, next: done}\n  done: {terminal: true}\n",
    );
    let mut child = project.start_until(&["run", "main"], "begun");
    child.kill().unwrap();
    child.wait().unwrap();
    let events = project.events();
    assert_eq!(events.last().unwrap()["event"], "action_start");
    let state = project.state();
    assert_eq!(state["status"], "running");
    assert_eq!(
        (&state["current_state"], &state["captured"]["first"]["output"]),
        (&"b".into(), &"one".into())
    );
    let action = Pid::from_raw(project.read("action").trim().parse().unwrap()).unwrap();
    let _gone = kill_process(action, Signal::KILL);
}

#[test]
fn stdin_is_at_its_end_for_every_action() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: cat; echo over, capture: out, next: done}\n  done: {terminal: true}\n",
    );
    let mut command = project.command(&["run", "main"]);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let _open = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(project.state()["captured"]["out"]["output"], "over");
}

#[test]
fn a_gigabyte_of_output_is_bounded_everywhere() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: \"head -c 1073741824 /dev/zero; printf END\", capture: out, timeout: 5m, next: b}\n  b: {action: \"grep VmHWM /proc/$PPID/status > memory\", on_yes: done}\n  done: {terminal: true}\n",
    );
    let ran = project.run(&["run", "--ci", "main"]).code(0);
    assert!(ran.stdout.len() < 8 * 1024 * 1024, "{} bytes of log", ran.stdout.len());
    let state = project.state();
    assert_eq!(state["captured"]["out"]["output_bytes"], 1_073_741_827_u64);
    assert!(state["captured"]["out"]["output"].as_str().unwrap().ends_with("END"));
    let log = std::fs::metadata(&project.run_files(".log")[0]).unwrap().len();
    assert!(log < 80 * 1024 * 1024, "{log} bytes of log file");
    let memory = project.read("memory");
    let kilobytes: u64 = memory.split_whitespace().nth(1).unwrap().parse().unwrap();
    // The bound of the release build is in benches/; this one only tells bounded from unbounded.
    assert!(kilobytes < 100 * 1024, "{memory}");
}

#[test]
fn actions_stay_in_the_working_tree() {
    for (cwd, message) in
        [("..", "leads out of the working tree"), ("/tmp", "leads out"), ("nowhere", "does not exist")]
    {
        let project = Project::with_loop(&format!(
            "name: main\ninitial: a\nstates:\n  a: {{action: 'true', cwd: '{cwd}', on_yes: done}}\n  done: {{terminal: true}}\n"
        ));
        project.run(&["run", "main"]).code(4).says(message);
    }
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: pwd > here, cwd: 'sub/dir', next: done}\n  done: {terminal: true}\n",
    );
    std::fs::create_dir_all(project.at("sub/dir")).unwrap();
    project.run(&["run", "main"]).code(0);
    assert!(project.read("sub/dir/here").trim().ends_with("sub/dir"));
}

/// What leaves its group and its session, in the first of two states.
const LEAVES: &str = "name: main\ndescription: d\nKEY\ninitial: a\nstates:\n  a: {action: 'setsid sh -c \"echo \\$\\$ > pid; touch apart; exec sleep 300\" > /dev/null 2>&1 & until test -e apart; do sleep 0.05; done', next: b}\n  b: {action: 'true', next: done}\n  done: {terminal: true}\n";

#[cfg(target_os = "linux")]
#[test]
fn what_an_action_leaves_running_is_named_once_and_ended_with_the_run() {
    for (key, stays) in [("category: x", false), ("leaves_running: true", true)] {
        let project = Project::with_loop(&LEAVES.replace("KEY", key));
        let ran = project.run(&["run", "main"]).code(0);
        let said = ran.all();
        let warnings = project.events().into_iter().filter(|event| event["event"] == "warning");
        let named = warnings
            .filter(|event| event["message"].to_string().contains("left a process running: `sleep ("));
        assert_eq!(named.count(), 1, "{said}");
        assert_eq!(said.contains("as the loop says `leaves_running`"), stays, "{said}");
        let pid = Pid::from_raw(project.read("pid").trim().parse().unwrap()).unwrap();
        assert_eq!(rustix::process::test_kill_process(pid).is_ok(), stays, "{said}");
        if stays {
            rustix::process::kill_process(pid, Signal::KILL).unwrap();
        }
    }
}
