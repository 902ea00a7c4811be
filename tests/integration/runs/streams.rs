//! Long outputs beside the journal: the journal names what they hold, and nothing else is ever taken for it.

use std::fs;
use std::path::PathBuf;

use ll_loop::internals::base::text::hex;
use rustix::process::Signal;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::common::{Project, signal};

/// A long output, and a step in which the run is killed before the output is asked for.
const LONG: &str = "name: main\ninitial: big\nstates:
  big: {action: 'seq 1 4000; seq 1 3000 >&2; echo $API_TOKEN', capture: big, next: wait}
  wait: {action: 'touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done', next: sum}
  sum: {action: 'printf %s ${captured.big.output:shell} | cksum > out', next: done}
  done: {terminal: true}\n";

fn killed() -> Project {
    let project = Project::with_loop(LONG).env("API_TOKEN", "correct-horse-battery");
    let mut child = project.start_until(&["run", "main", "-q"], "begun");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    project.write("go", "");
    project
}

fn stream(project: &Project, ending: &str) -> PathBuf {
    project.run_files(ending).pop().unwrap()
}

fn complete(project: &Project) -> Value {
    let is_it = |event: &Value| event["event"] == "action_complete";
    project.events().into_iter().find(is_it).unwrap()
}

#[test]
fn events_name_the_digests_of_the_outputs_that_stand_elsewhere() {
    let project = killed();
    let event = complete(&project);
    for (ending, field) in [(".stdout", "output"), (".stderr", "stderr")] {
        let bytes = fs::read(stream(&project, ending)).unwrap();
        let digits = hex(&Sha256::digest(&bytes));
        assert_eq!(event[format!("{field}_sha256")], digits, "{event}");
        assert_eq!(event[format!("{field}_stored")], bytes.len());
        // What is hidden is hidden before it is counted.
        assert!(!String::from_utf8_lossy(&bytes).contains("correct-horse"));
    }
}

#[test]
fn an_output_that_is_not_what_it_was_is_never_taken_for_it() {
    let path = |project: &Project| stream(project, ".stdout");
    let changed = |project: &Project| {
        let text = fs::read_to_string(path(project)).unwrap().replacen("17\n", "71\n", 1);
        fs::write(path(project), text).unwrap();
    };
    let shortened = |project: &Project| {
        fs::OpenOptions::new().write(true).open(path(project)).unwrap().set_len(9000).unwrap();
    };
    let gone = |project: &Project| fs::remove_file(path(project)).unwrap();
    let linked = |project: &Project| {
        let path = path(project);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    };
    for spoil in [&changed as &dyn Fn(&Project), &shortened, &gone, &linked] {
        let project = killed();
        spoil(&project);
        let ran = project.run(&["resume", "main"]).code(2).says("000004.stdout").says("ll-loop run");
        assert!(!project.exists("out"), "{}", ran.all());
        // A bundle does not carry it, and says so.
        let ran = project.run(&["bundle", "main"]).code(0).says("not in the bundle: streams/000004.stdout");
        let bundle = ran.stdout.trim().to_owned();
        let other = Project::with_loop(LONG);
        fs::copy(project.at(&bundle), other.at("run.llz")).unwrap();
        other.run(&["resume", "--from", "run.llz"]).code(2).says("000004.stdout");
    }
}

#[test]
fn a_journal_from_before_there_were_digests_is_read() {
    let project = killed();
    let path = stream(&project, ".events.jsonl");
    let mut old = String::new();
    for line in fs::read_to_string(&path).unwrap().lines() {
        let mut event: Value = serde_json::from_str(line).unwrap();
        let fields = event.as_object_mut().unwrap();
        fields.retain(|name, _| !["output_sha256", "stderr_sha256"].contains(&name.as_str()));
        old.extend([event.to_string().as_str(), "\n"]);
    }
    fs::write(&path, old).unwrap();
    project.run(&["resume", "main", "-q"]).code(0);
    assert!(project.exists("out"));
}
