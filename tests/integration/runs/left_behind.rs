//! Processes that a killed run leaves behind: whoever comes next ends them first.

use std::fs;
use std::process::Child;

use rustix::process::{Pid, Signal};

use crate::common::{Project, Ran, git, signal};

fn is_alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z"))
}

/// Kills a run, so that only its actions stay.
fn kill(mut run: Child) {
    signal(&run, Signal::KILL);
    run.wait().unwrap();
}

const TWO: &str = "name: main
initial: a
states:
  a: {action: 'test -e again && exit 0; touch again; WORK', next: b}
  b: {action: 'cat pid | xargs ps -o stat= -p | grep -qv Z && touch two; exit 0', on_yes: done}
  done: {terminal: true}
";

/// Kills a run whose action works on, and sees that it is ended before anything else begins.
fn check(next: &[&str], work: &str) {
    let project = Project::with_loop(&TWO.replace("WORK", work));
    project.write(".loops/other.yaml", &TWO.replace("main", "other"));
    git(&project, &["init", "-q"]);
    let run = project.start_until(&["run", "main"], "pid");
    let pid = project.read("pid");
    kill(run);
    assert!(is_alive(&pid), "{work}");
    let _ran = project.run(next).code(0).says("was killed, and an action was still at work: ended");
    assert!(!is_alive(&pid) && !project.exists("two"), "{next:?} {work}");
    assert!(!project.run(&["run", "other"]).code(0).all().contains("was killed"), "{next:?} {work}");
}

#[test]
fn actions_of_a_killed_run_are_ended_before_another_one_begins() {
    let work = "echo $$ > new; mv new pid; exec sleep 600";
    check(&["resume", "main"], work);
    check(&["run", "main"], work);
    check(&["run", "other"], work);
    // Nothing in its environment says whose it is.
    check(&["resume", "main"], "echo $$ > new; mv new pid; exec env -i /bin/sleep 600");
    // It does not want to end.
    check(&["resume", "main"], "trap \"\" TERM; echo $$ > new; mv new pid; while :; do sleep 0.1; done");
}

#[test]
fn a_server_that_left_the_session_of_the_run_stays() {
    // Only what has left the session before the run is killed may stay.
    let work = "setsid sh -c \"echo \\$\\$ > its; mv its server; exec sleep 600\" & \
                until test -e server; do sleep 0.05; done; echo $$ > new; mv new pid; exec sleep 600";
    let project = Project::with_loop(&TWO.replace("WORK", work));
    kill(project.start_until(&["run", "main"], "pid"));
    project.run(&["resume", "main"]).code(0);
    let server = project.read("server");
    assert!(is_alive(&server));
    let server = Pid::from_raw(server.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(server, Signal::KILL).unwrap();
}

/// What `docker exec` starts has the leaders of its group and session outside of its namespace, and their numbers are
/// zero inside.
#[test]
fn what_is_left_is_ended_where_the_leader_of_the_session_is_elsewhere() {
    let inside = |project: &Project, script: &str| {
        let own = ["--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c", script];
        Ran::of(&project.program("unshare", &own).output().unwrap())
    };
    let work = "echo $$ > new; mv new pid; exec sleep 600";
    let project = Project::with_loop(&TWO.replace("WORK", work));
    if inside(&project, "true").code != Some(0) {
        // Only a system that lets its users make namespaces can show it.
        return;
    }
    let script = "LL run main & RUN=$!; until test -e pid; do sleep 0.05; done; kill -9 $RUN; wait $RUN
        LL resume main; code=$?; test -e /proc/$(cat pid) && touch alive; exit $code";
    let _ran = inside(&project, &script.replace("LL", crate::common::LL_LOOP.as_str()))
        .code(0)
        .says("was killed, and an action was still at work: ended");
    assert!(!project.exists("alive") && !project.exists("two"));
}
