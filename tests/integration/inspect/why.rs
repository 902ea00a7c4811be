//! `why`: the chain from an outcome back to what was printed, and what another verdict would have led to.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{CHECK_FIX, Project, git, signal};
use crate::runs::board::TASKS;

const FAILING: &str = "\
name: main
initial: check
max_iterations: 3
states:
  check: {action: 'seq 20; echo src/app.py:3: error >&2; exit 1', on_yes: done, on_no: fix}
  fix: {action: 'echo fixing', next: check}
  done: {terminal: true}
";

/// A loop whose verdicts are in files.
const OUTER: &str = "\
name: main
initial: build
states:
  build: {action: 'test ! -e no-build', on_yes: part, on_no: failed}
  part: {loop: inner, on_success: deploy, on_failure: look, on_blocked: failed}
  deploy: {next: done}
  look: {action: 'test ! -e no-look', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";

const INNER: &str = "\
name: inner
initial: a
states:
  a: {action: 'test ! -e no-a', on_yes: b, on_no: bad}
  b: {action: 'test ! -e no-b', on_yes: deeper, on_no: bad}
  deeper: {loop: innermost, on_success: good, on_failure: bad}
  good: {terminal: true}
  bad: {terminal: true, outcome: failure}
";

const INNERMOST: &str = "\
name: innermost
initial: c
states:
  c: {action: 'test ! -e no-c', on_yes: good, on_no: bad}
  good: {terminal: true}
  bad: {terminal: true, outcome: failure}
";

fn nested() -> Project {
    Project::with_loop(OUTER).file(".loops/inner.yaml", INNER).file(".loops/innermost.yaml", INNERMOST)
}

fn committed(project: &Project) {
    if !project.exists(".git") {
        git(project, &["init", "-q"]);
    }
    git(project, &["add", "-A"]);
    git(project, &["commit", "-q", "-m", "work"]);
}

fn why(project: &Project, arguments: &[&str]) -> Value {
    let ran = project.run(&[&["why", "--json"], arguments].concat()).code(0);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.all()))
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Returns the codes of a chain.
fn codes(why: &Value) -> String {
    let codes = why["chain"].as_array().unwrap().iter().map(|link| link["code"].as_str().unwrap());
    codes.collect::<Vec<_>>().join(" ")
}

/// Returns what is said of other verdicts.
fn otherwise(why: &Value) -> Vec<String> {
    let flips = why["otherwise"].as_array().unwrap().iter();
    let word = |flip: &Value, key: &str| flip[key].as_str().unwrap_or("-").to_owned();
    flips
        .map(|flip| {
            let [step, state, verdict, instead, outcome, place] =
                ["step", "state", "verdict", "instead", "outcome", "final_state"].map(|key| word(flip, key));
            format!("{step} {state}: {instead} for {verdict}: {outcome} {place}")
        })
        .collect()
}

#[test]
fn the_chain_goes_from_the_outcome_to_what_was_printed() {
    let project = Project::with_loop(FAILING);
    project.run(&["run", "main"]).code(3);
    let why = why(&project, &[]);
    assert_eq!(keys(&why), ["chain", "otherwise", "outcome", "run"].into());
    assert_eq!(why["outcome"], "exhausted");
    let links = why["chain"].as_array().unwrap();
    for link in links {
        let all =
            ["code", "evaluator", "file", "kind", "line", "lines", "numbers", "state", "step", "verdict"];
        assert_eq!(keys(link), all.into(), "{link}");
        let explained = project.run(&["explain", link["code"].as_str().unwrap()]).code(0);
        assert!(explained.stdout.contains("Next: "), "{}", explained.stdout);
    }
    assert_eq!(
        codes(&why),
        "outcome-exhausted terminal-max-iterations route-next route-verdict verdict-failing evaluator-exit-code evidence-output"
    );
    let kinds: Vec<&str> = links.iter().map(|link| link["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["outcome", "terminal", "route", "route", "verdict", "evaluator", "evidence"]);
    let said = &links[5];
    assert_eq!((&said["state"], &said["step"], &said["line"]), (&json!("check"), &json!("5"), &json!(5)));
    assert_eq!((&said["file"], &said["evaluator"]), (&json!(".loops/main.yaml"), &json!("exit_code")));
    assert_eq!(said["numbers"]["exit_code"], 1);
    let evidence = links[6]["lines"].as_array().unwrap();
    assert_eq!(
        (evidence.len(), &evidence[0], &evidence[9]),
        (10, &json!("12"), &json!("src/app.py:3: error"))
    );
    assert_eq!(
        otherwise(&why),
        [5, 3, 1].map(|step| format!("{step} check: yes for no: success done")),
        "the latest first"
    );
    let text = project.run(&["why"]).code(0).stdout;
    assert!(text.contains("\n← max_iterations (3) reached before `check` (.loops/main.yaml:"), "{text}");
    assert!(text.contains("[evidence-output]\n    12\n"), "{text}");
    assert!(text.contains("step 5: `check` had said yes instead of no: success in `done`\n"), "{text}");
}

#[test]
fn a_step_says_why_it_did_what_it_did() {
    let project = Project::with_loop(FAILING);
    project.run(&["run", "main"]).code(3);
    let of_step = why(&project, &["--step", "3"]);
    assert_eq!(codes(&of_step), "route-verdict verdict-failing evaluator-exit-code evidence-output");
    assert_eq!(otherwise(&of_step), ["3 check: yes for no: success done"]);
    assert_eq!(
        codes(&why(&project, &["main", "--step", "2"])),
        "route-next verdict-none evaluator-none evidence-output"
    );
    drop(project.run(&["why", "--step", "9"]).code(2).says("has no step 9"));
    drop(project.run(&["why", "--step", "x"]).code(2));
}

#[test]
fn without_a_run_there_is_nothing_to_say() {
    let project = Project::with_loop(FAILING);
    drop(project.run(&["why"]).code(2).says("there is no run here"));
    drop(project.run(&["why", "main"]).code(2).says("no run of `main`"));
    drop(project.run(&["why", "main-20260101T000000-000000"]).code(2));
}

#[test]
fn it_goes_into_the_loops_that_a_step_ran() {
    let project = nested().file("no-c", "").file("no-look", "");
    project.run(&["run", "main"]).code(1);
    let told = why(&project, &["--step", "2"]);
    let steps: Vec<&str> =
        told["chain"].as_array().unwrap().iter().filter_map(|link| link["step"].as_str()).collect();
    assert_eq!(steps, ["2", "2", "2", "2", "2.3", "2.3", "2.3", "2.3", "2.3.1", "2.3.1", "2.3.1"]);
    let place = told["chain"].as_array().unwrap().iter().rfind(|link| link["kind"] == "terminal").unwrap();
    assert_eq!((&place["file"], &place["line"]), (&json!(".loops/innermost.yaml"), &json!(6)));
    // The run failed because of its last step, and could have succeeded by each of these.
    let told = why(&project, &["main"]);
    assert!(codes(&told).ends_with("route-verdict verdict-failing evaluator-exit-code"), "{}", codes(&told));
    assert_eq!(
        otherwise(&told),
        [
            "3 look: yes for no: success done",
            "2 part: success for failure: success done",
            "2.3 deeper: success for failure: success done",
            "2.3.1 c: yes for no: success done",
            "2.2 b: no for yes: open: would have entered look -",
            "2.1 a: no for yes: open: would have entered look -",
        ],
        "what leads to the same end is no other one"
    );
}

#[test]
fn what_is_claimed_is_what_a_run_does() {
    for files in ["", "build", "a", "b", "c", "look", "c look", "a look", "b c look", "build look"] {
        let flags: BTreeSet<String> = files.split_whitespace().map(|file| format!("no-{file}")).collect();
        let run = |flags: &BTreeSet<String>| {
            let project = flags.iter().fold(nested(), |project, flag| project.file(flag, ""));
            drop(project.run(&["run", "main", "-q"]));
            project
        };
        let told = why(&run(&flags), &[]);
        let mut claimed = 0;
        for flip in told["otherwise"].as_array().unwrap() {
            let state = flip["state"].as_str().unwrap();
            // Other answers of these follow from the loops that they run.
            if matches!(state, "part" | "deeper") {
                continue;
            }
            let mut other = flags.clone();
            let flag = format!("no-{state}");
            if !other.remove(&flag) {
                other.insert(flag);
            }
            let project = run(&other);
            let outcome = flip["outcome"].as_str().unwrap();
            match outcome.strip_prefix("open: would have entered ") {
                None => {
                    let end = project.end();
                    assert_eq!(
                        (&flip["outcome"], &flip["final_state"]),
                        (&end["outcome"], &end["final_state"]),
                        "{files}: {flip}"
                    );
                }
                Some(entered) => {
                    assert_eq!(flip["final_state"], Value::Null);
                    let mut events =
                        project.events().into_iter().filter(|event| event["event"] == "state_enter");
                    let _itself = events.find(|event| event["state"] == state).unwrap();
                    assert_eq!(events.next().unwrap()["state"], entered, "{files}: {flip}");
                }
            }
            claimed += 1;
        }
        assert!(claimed > 0, "{files}: {told}");
    }
}

#[track_caller]
fn check(text: &str, arguments: &[&str], expected: &str, other: &[&str]) {
    let project = Project::with_loop(text);
    let ran = project.run(&[&["run", "main"], arguments].concat());
    assert_ne!(ran.code, Some(2), "{}", ran.all());
    let told = why(&project, &[]);
    assert_eq!(codes(&told), expected, "{told:#}");
    assert_eq!(otherwise(&told), other, "{told:#}");
}

fn one(state: &str) -> String {
    format!(
        "name: main\ninitial: work\nstates:\n  work: {{{state}}}\n  done: {{terminal: true}}\n  failed: {{terminal: true, outcome: failure}}\n"
    )
}

#[test]
fn every_end_has_its_chain() {
    let passing = "verdict-passing evaluator-exit-code";
    check(
        &one("action: 'true', on_yes: done, on_no: failed"),
        &[],
        &format!("outcome-success terminal-reached route-verdict {passing}"),
        &["1 work: no for yes: failure failed"],
    );
    check(
        &one("action: 'true', next: done"),
        &[],
        "outcome-unverified terminal-reached route-next verdict-none evaluator-none",
        &[],
    );
    check(
        &one("action: 'true', next: done"),
        &["--strict"],
        "outcome-failure terminal-unverified route-next verdict-none evaluator-none",
        &[],
    );
    check(
        &one("action: 'exit 7', on_yes: done, on_no: failed"),
        &[],
        "outcome-error terminal-error route-none verdict-failing evaluator-exit-code evidence-output",
        &["1 work: yes for error: success done", "1 work: no for error: failure failed"],
    );
    check(
        &one("action: 'echo blocked', evaluate: {type: classify}, route: {yes: done, no: failed}"),
        &[],
        "outcome-blocked terminal-blocked route-none verdict-failing evaluator-classify evidence-output",
        &["1 work: no for blocked: failure failed", "1 work: yes for blocked: success done"],
    );
    check(
        &one("action: 'echo FATAL_ERROR: no way', on_yes: done, on_no: failed"),
        &[],
        "outcome-error terminal-fatal-error verdict-none evaluator-none evidence-output",
        &[],
    );
    check(
        &one("action: 'echo LOOP_STOP: enough', on_yes: done, on_no: failed"),
        &[],
        "outcome-stopped terminal-loop-stop verdict-none evaluator-none evidence-output",
        &[],
    );
    check(
        &one("action: 'echo CONTEXT_HANDOFF: later', on_yes: done, on_no: failed"),
        &[],
        "outcome-handoff terminal-handoff verdict-none evaluator-none evidence-output",
        &[],
    );
    check(
        &one("action_type: prompt, action: 'do it', on_yes: done, on_no: failed"),
        &["--ci"],
        "outcome-handoff terminal-llm-disabled verdict-none",
        &[],
    );
    check(
        &one("action: 'false', on_yes: done, on_no: work, max_retries: 1, on_retry_exhausted: failed"),
        &[],
        "outcome-failure terminal-reached route-retry-exhausted verdict-failing evaluator-exit-code",
        &["2 work: yes for no: success done", "1 work: yes for no: success done"],
    );
    check(
        &one("action: 'sleep 9', timeout: 1, on_yes: done, on_no: work, on_timeout: failed"),
        &[],
        "outcome-failure terminal-reached route-verdict verdict-failing evaluator-none",
        &["1 work: yes for timeout: success done", "1 work: no for timeout: open: would have entered work -"],
    );
    check(
        &one("action: 'sleep 9', on_yes: done, on_no: failed").replace("states:", "timeout: 1\nstates:"),
        &[],
        "outcome-timeout terminal-timeout verdict-none evaluator-none",
        &[],
    );
    check(
        &one("action: 'exit 1', on_yes: done, on_no: work, max_retries: 1, on_retry_exhausted: failed"),
        &[],
        "outcome-failure terminal-reached route-retry-exhausted verdict-failing evaluator-exit-code",
        &["2 work: yes for no: success done", "1 work: yes for no: success done"],
    );
    check(
        &one("action: 'exit 1', on_yes: done, on_no: work")
            .replace("states:", "max_steps: 2\non_max_steps: failed\nstates:"),
        &[],
        "outcome-exhausted terminal-max-steps route-cap verdict-failing evaluator-exit-code",
        &["2 work: yes for no: success done", "1 work: yes for no: success done"],
    );
    check(
        &one("action: 'echo ${env.NOT_THERE}', on_yes: done, on_no: failed"),
        &[],
        "outcome-error terminal-error verdict-none evidence-output",
        &[],
    );
}

#[test]
fn a_run_that_was_asked_to_end_would_have_ended_whatever_its_verdict() {
    let text = one(
        "action: 'touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done', on_yes: done, on_no: failed",
    );
    let project = Project::with_loop(&text);
    let mut child = project.start_until(&["run", "main"], "begun");
    signal(&child, Signal::INT);
    child.wait().unwrap();
    let told = why(&project, &[]);
    assert_eq!(codes(&told), "outcome-interrupted terminal-interrupted verdict-none evaluator-none");
    assert_eq!(told["otherwise"], json!([]));
}

#[test]
fn a_run_that_goes_on_or_was_killed_has_a_chain_as_well() {
    let text = one(
        "action: 'echo one; touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done', on_yes: done, on_no: failed",
    );
    let project = Project::with_loop(&text);
    let mut child = project.start_until(&["run", "main"], "begun");
    assert_eq!(codes(&why(&project, &[])), "outcome-incomplete verdict-none");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    project.write("go", "");
    assert_eq!(codes(&why(&project, &["main"])), "outcome-interrupted terminal-killed verdict-none");
}

#[test]
fn a_task_board_says_what_is_left() {
    let project = Project::with_loop(TASKS);
    project.run(&["run", "main"]).code(1);
    let told = why(&project, &[]);
    assert!(
        codes(&told).starts_with("outcome-failure terminal-reached evidence-tasks route-verdict "),
        "{}",
        codes(&told)
    );
    let tasks = &told["chain"][2]["lines"];
    assert_eq!(tasks.as_array().unwrap().len(), 2, "{tasks}");
    assert!(tasks[0].as_str().unwrap().starts_with("2 Store… — failed: the test said no"), "{tasks}");
    let flips = otherwise(&told);
    assert!(
        flips.iter().any(|flip| flip.ends_with("test: no for yes: open: would have entered fail -")),
        "{flips:?}"
    );
    assert!(!flips.iter().any(|flip| flip.contains(" next: ")), "the board is not a judge: {flips:?}");
}

#[test]
fn only_the_last_verdicts_are_looked_at() {
    let project = Project::with_loop(&FAILING.replace("max_iterations: 3", "max_iterations: 230"));
    project.run(&["run", "main", "-q"]).code(3);
    assert_eq!(why(&project, &[])["otherwise"].as_array().unwrap().len(), 200);
    let text = project.run(&["why"]).code(0).stdout;
    assert!(text.contains("… and 190 other verdicts of earlier steps (`--json`)\n"), "{text}");
    assert!(text.contains("30 verdicts before these were not looked at"), "{text}");
    assert_eq!(otherwise(&why(&project, &["--step", "1"])), ["1 check: yes for no: success done"]);
}

#[test]
fn of_a_loop_that_was_changed_since_nothing_is_claimed() {
    let project = Project::with_loop(FAILING);
    project.run(&["run", "main"]).code(3);
    project.write(".loops/main.yaml", &FAILING.replace("on_no: fix", "on_no: done"));
    let told = why(&project, &[]);
    assert_eq!((told["chain"].as_array().unwrap().len(), &told["otherwise"]), (7, &json!([])));
    drop(project.run(&["why"]).code(0).says("is not known: the loop is not what it was then"));
    project.write(".loops/main.yaml", "name: [");
    let ran = project.run(&["why", project.end()["run_id"].as_str().unwrap_or("main")]);
    assert!(ran.code == Some(0) || ran.code == Some(2), "{}", ran.all());
}

#[test]
fn a_bundle_has_the_same_chain() {
    let project = nested().file("no-c", "").file("no-look", "");
    project.run(&["run", "main", "--report-dir", "out"]).code(1);
    let bundle = fs::read_dir(project.at("out")).unwrap().map(|entry| entry.unwrap().path());
    let bundle = bundle.filter(|path| path.extension().is_some_and(|ending| ending == "llz")).last().unwrap();
    let name = bundle.to_str().unwrap();
    assert_eq!(why(&project, &[name]), why(&project, &["main"]));
    let elsewhere = Project::new();
    let told = why(&elsewhere, &[name]);
    assert_eq!(told["chain"], why(&project, &["main"])["chain"]);
    assert_eq!(told["otherwise"], json!([]));
    drop(elsewhere.run(&["why", name]).code(0).says("is not known: the loop is not in this checkout"));
}

#[test]
fn a_run_that_was_resumed_is_told_as_one() {
    let text = one(
        "action: 'test -e later || echo CONTEXT_HANDOFF: later; test -e good', on_yes: done, on_no: failed",
    );
    let project = Project::with_loop(&text);
    project.run(&["run", "main"]).code(75);
    project.write("later", "");
    project.run(&["resume", "main"]).code(1);
    let told = why(&project, &[]);
    assert_eq!(
        codes(&told),
        "outcome-failure terminal-reached route-verdict verdict-failing evaluator-exit-code"
    );
    assert_eq!(otherwise(&told), ["1 work: yes for no: success done"]);
}

/// Returns every file below a directory with what it holds.
fn content(directory: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            content(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn it_only_reads() {
    let project = nested().file("no-a", "");
    drop(project.run(&["run", "main", "--report-dir", "out"]));
    let all = || {
        let mut found = Vec::new();
        content(&project.at(""), &mut found);
        found
    };
    let before = all();
    for arguments in [&["why"][..], &["why", "main", "--json"], &["why", "--step", "2.1"]] {
        drop(project.run(arguments).code(0));
    }
    assert!(before == all());
}

#[test]
fn reports_begin_with_the_chain() {
    let project = Project::with_loop(FAILING);
    project.run(&["run", "main", "--report-dir", "out"]).code(3);
    let summary = project.read("out/summary.md");
    let heading = summary.lines().find(|line| line.starts_with("### ")).unwrap();
    assert_eq!(heading, "### Why");
    for part in [
        "- ← step 5: `check` said no · `verdict-failing`\n",
        "- step 5: `check` had said `yes` instead of `no`: success in `done`\n",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    let junit = project.read("out/junit.xml");
    assert!(junit.contains("← step 5: `check` said no [verdict-failing]\n"), "{junit}");
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main", "--report-dir", "out"]).code(0);
    assert!(project.read("out/summary.md").contains("- ← step 3: `check` said yes · `verdict-passing`\n"));
}

#[test]
fn a_stall_and_uncommitted_changes_are_ends_like_others() {
    let stalling = FAILING.replace("max_iterations: 3", "max_iterations: 9\nstall: {window: 2}");
    let project = Project::with_loop(&stalling);
    committed(&project);
    project.run(&["run", "main"]).code(3);
    let told = why(&project, &[]);
    assert!(codes(&told).starts_with("outcome-exhausted terminal-stall "), "{}", codes(&told));
    assert_eq!(otherwise(&told)[0], "3 check: yes for no: success done");

    let text = CHECK_FIX.replace("touch flag", "echo x >> kept; touch flag");
    let text = text.replace("initial:", "on_change: fail\ninitial:");
    let project = Project::with_loop(&text).file("kept", "one\n");
    committed(&project);
    project.run(&["run", "main"]).code(1);
    let told = why(&project, &[]);
    let ends = "outcome-failure terminal-uncommitted-changes evidence-changes ";
    assert!(codes(&told).starts_with(ends), "{}", codes(&told));
    // Whether it would have been a success is for the tree to say.
    let open = [
        "3 check: no for yes: open: would have entered fix -",
        "1 check: yes for no: open: would have entered done -",
    ];
    assert_eq!(otherwise(&told), open);
}
