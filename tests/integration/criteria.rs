//! `ll-loop criteria`: the state of a piece of work, kept by commands.

use std::fs;

use serde_json::{Value, json};

use crate::common::{Project, Ran};
use crate::fake_host;

const STATE: &str = ".loop/state.json";

/// A project whose work has begun: one criterion with a command, and one that somebody says.
fn begun() -> Project {
    let project = Project::new();
    let start = ["criteria", "start", "add validation", "--criterion", "tests=test -f flag"];
    let rest = ["--criterion", "docs", "--step", "users", "--step", "orders"];
    project.run(&[&start[..], &rest].concat()).code(0).says("✗ tests: test -f flag").says("next: users");
    project
}

fn state(project: &Project) -> Value {
    serde_json::from_str(&project.read(STATE)).unwrap()
}

/// Runs one command after the other, each with its exit code.
#[track_caller]
fn check(project: &Project, table: &[(&[&str], i32)]) {
    for (arguments, code) in table {
        drop(project.run(&[&["criteria"], *arguments].concat()).code(*code));
    }
}

#[test]
fn work_begins_goes_on_and_ends() {
    let project = begun();
    check(&project, &[(&["check"], 1), (&["done"], 1), (&["done", "users"], 0), (&["done", "users"], 2)]);
    project.write("flag", "");
    check(&project, &[(&["check"], 1), (&["set", "docs", "true"], 0), (&["check"], 0)]);
    assert_eq!(state(&project)["exit_signal"], false);
    check(&project, &[(&["status"], 0), (&["signal"], 0)]);
    let ok = json!({"ok": true});
    let answer = project.run(&["hook", "stop-check"]).code(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), ok);
    check(&project, &[(&["done"], 0), (&["done"], 2)]);
    assert_eq!(
        state(&project),
        json!({
            "spec": "add validation", "criteria": ["tests", "docs"], "criteriaStatus": {"tests": true, "docs": true},
            "checks": {"tests": "test -f flag"}, "exit_signal": true, "steps": ["users", "orders"],
            "completedSteps": ["users"], "remainingSteps": ["orders"], "iteration": 3, "status": "completed",
            "circuitBreaker": {"stuckCount": 0, "lastUnmet": ""}
        })
    );
}

#[test]
fn the_sixth_round_at_the_same_criterion_trips_the_breaker() {
    let project = begun();
    for _ in 0..5 {
        project.run(&["criteria", "check"]).code(1).says("unmet criteria: tests, docs");
    }
    let tripped = project.run(&["criteria", "check"]).code(3);
    tripped.says("circuit breaker: 5 rounds without progress at: tests");
    let answer = project.run(&["hook", "stop-check"]).code(0);
    assert!(answer.stdout.starts_with(r#"{"ok": true, "reason": "circuit breaker"#), "{}", answer.stdout);
}

#[test]
fn what_a_failing_command_printed_is_shown_without_secrets() {
    let project = Project::new().env("MY_TOKEN", "geheimnis");
    let noisy = "noisy=for i in $(seq 30); do echo line $i $MY_TOKEN; done; exit 4";
    let start = ["criteria", "start", "x", "--criterion", noisy, "--criterion", "slow=sleep 60"];
    assert_eq!(project.run(&start).code(0).stderr, "");
    let shown = project.run(&["criteria", "check", "--timeout", "200ms"]).code(1);
    let shown = shown.says("✗ noisy (exit 4)").says("│ line 30 ***").says("✗ slow (timed out after");
    assert!(!shown.all().contains("geheimnis") && !shown.all().contains("line 20 "), "{}", shown.all());
}

#[test]
fn what_others_wrote_stays() {
    let before = r#"{"mine": [1, {"x": null}], "status": "in_progress", "criteriaStatus": {"a": "false"}}"#;
    let project = Project::new().file(STATE, before);
    check(&project, &[(&["set", "a", "true"], 0), (&["cancel"], 0)]);
    let after = r#"{"mine":[1,{"x":null}],"status":"cancelled","criteriaStatus":{"a":true}}"#;
    assert_eq!(state(&project).to_string(), after);
    // What was ended gives way to other work.
    check(
        &project,
        &[(&["start", "other", "--criterion", "b"], 0), (&["start", "more", "--criterion", "c"], 2)],
    );
    assert_eq!(state(&project)["spec"], "other");
    project.run(&["criteria", "start", "x", "--criterion", "b"]).code(2).says("work that goes on: other");
}

#[test]
fn what_cannot_be_done_is_said_and_changes_nothing() {
    let project = Project::new();
    for command in [&["check"][..], &["status"], &["signal"], &["cancel"], &["done"], &["set", "a", "true"]] {
        project.run(&[&["criteria"], command].concat()).code(1).says("cannot find the state file");
    }
    assert!(!project.exists(".loop"));
    for text in ["", "[]", "{\"a\":"] {
        project.write(STATE, text);
        for command in [&["check"][..], &["status"], &["cancel"], &["start", "x", "--criterion", "a"]] {
            project.run(&[&["criteria"], command].concat()).code(2).says("is not a state file").says("help:");
        }
        assert_eq!(project.read(STATE), text);
    }
    let project = begun();
    let before = project.read(STATE);
    project
        .run(&["criteria", "set", "dosc", "true"])
        .code(2)
        .says("no criterion `dosc`")
        .says("`tests`, `docs`");
    check(
        &project,
        &[(&["set", "docs", "yes"], 2), (&["start", "x"], 2), (&["start", "x", "--criterion", "="], 2)],
    );
    let twice = ["--state", "other", "start", "x", "--criterion", "a", "--criterion", "a=true"];
    project.run(&[&["criteria"], &twice[..]].concat()).code(2).says("`a` is given twice");
    assert_eq!(project.read(STATE), before);
    assert_eq!(fs::read_dir(project.at(".loop")).unwrap().count(), 1);
}

/// A loop that asks the state file, and its program on the path of actions.
fn looping(work: &str) -> Project {
    let text = format!(
        "name: main\ndescription: x\ninitial: decide\nmax_iterations: 9\nstates:\n  decide: {{evaluate: {{type: criteria}}, on_done: done, on_continue: work, on_stuck: failed, on_inactive: failed}}\n  work: {{action: '{work}', next: decide}}\n  done: {{terminal: true}}\n  failed: {{terminal: true, outcome: failure}}\n"
    );
    let program =
        std::path::Path::new(env!("CARGO_BIN_EXE_ll-loop")).parent().unwrap().to_string_lossy().into_owned();
    Project::with_loop(&text).env("PATH", format!("{program}:/usr/local/bin:/usr/bin:/bin"))
}

#[track_caller]
fn ended(project: &Project, code: i32, verdicts: &[&str]) -> Ran {
    let ran = project.run(&["run", "--strict", "main"]).code(code);
    let events = project.events();
    let given = events.iter().filter(|event| event["event"] == "evaluate" && event["type"] == "criteria");
    let given: Vec<_> = given.map(|event| event["verdict"].as_str().unwrap()).collect();
    assert_eq!(given, verdicts, "{}", ran.all());
    ran
}

#[test]
fn a_loop_goes_on_until_the_criteria_are_met() {
    let project = looping("touch flag; ll-loop criteria check; ll-loop criteria signal");
    let start = ["criteria", "start", "x", "--criterion", "tests=test -f flag"];
    assert_eq!(project.run(&start).code(0).stderr, "");
    ended(&project, 0, &["continue", "done"]);
    let stuck = looping("ll-loop criteria check");
    assert_eq!(stuck.run(&start).code(0).stderr, "");
    ended(&stuck, 1, &["continue", "continue", "continue", "continue", "continue", "continue", "stuck"]);
}

#[test]
fn a_loop_does_not_take_a_broken_file_for_success() {
    ended(&looping("true"), 1, &["inactive"]);
    for text in ["", "[]"] {
        let project = looping("true").file(STATE, text);
        ended(&project, 4, &["error"]).says("invalid state file");
    }
    let project = looping("true");
    fs::create_dir_all(project.at(STATE)).unwrap();
    ended(&project, 4, &["error"]).says("it is a directory, not a file");
}

/// A loop of the form `criteria`; `work` is what its rounds do.
fn form(work: &str, more: &str) -> Project {
    Project::with_loop(&format!(
        "paradigm: criteria\nname: main\ndescription: x\nspec: a spec\ncriteria:\n  - {{name: tests pass, check: test -f two}}\n  - {{name: docs, check: test -f one}}\nsteps: [first, second]\nusing: \"{work}\"\n{more}"
    ))
}

/// Notes what it sees, and makes one file a round: `zero`, `one`, `two`.
const ROUNDS: &str = "echo ${criteria.unmet:shell}/${criteria.next_step:shell} >> seen; if test -f one; then touch two; elif test -f zero; then touch one; else touch zero; fi";

#[test]
fn a_form_works_until_every_criterion_is_met_and_shows_it() {
    let project = form(ROUNDS, "");
    project.run(&["run", "--ci=plain", "--report-dir", "report", "main"]).code(0);
    assert_eq!(project.read("seen"), "tests pass, docs/first\ntests pass, docs/second\ntests pass/\n");
    let shown = state(&project);
    assert_eq!(shown["criteriaStatus"], json!({"tests pass": true, "docs": true}));
    assert_eq!((&shown["status"], &shown["exit_signal"]), (&json!("completed"), &json!(true)));
    assert_eq!((&shown["completedSteps"], &shown["spec"]), (&json!(["first", "second"]), &json!("a spec")));
    let junit = project.read("report/junit.xml");
    for case in ["check_tests_pass", "check_docs", "decide"] {
        assert!(junit.contains(case), "no {case} in {junit}");
    }
}

#[test]
fn a_form_that_does_not_move_trips_and_says_where() {
    let project = form("true", "stuck_after: 2\n");
    let ran = project.run(&["run", "--ci=plain", "main"]).code(3);
    ran.says("circuit breaker: 2 rounds without progress at: tests pass");
    assert_eq!(project.end()["outcome"], "stopped");
    assert_eq!(state(&project)["circuitBreaker"], json!({"stuckCount": 2, "lastUnmet": "tests pass"}));
}

#[test]
fn an_agent_says_itself_that_it_is_done() {
    let project =
        form("touch one two; test -f three && echo EXIT_SIGNAL: true; touch three", "exit_signal: agent\n");
    project.run(&["run", "main"]).code(0);
    let works = project
        .events()
        .iter()
        .filter(|event| event["event"] == "state_enter" && event["state"] == "work")
        .count();
    assert_eq!(works, 2);
}

#[test]
fn what_a_run_knows_is_not_read_from_the_file() {
    let lie = r#"{\"status\": \"completed\"}"#;
    let project = form(&format!("mkdir -p .loop; echo '{lie}' > .loop/state.json"), "max_iterations: 2\n");
    project.run(&["run", "main"]).code(3);
    assert_eq!(state(&project)["status"], "in_progress");
}

#[test]
fn the_compiled_form_runs_as_well_also_when_it_is_edited() {
    let project = form(ROUNDS, "");
    let compiled = project.run(&["compile", "main"]).code(0).stdout;
    project.write(".loops/main.yaml", &compiled.replace("test -f two", "test -f zero"));
    project.run(&["validate", "--strict", "main"]).code(0);
    project.run(&["run", "main"]).code(0);
    assert_eq!(project.read("seen").lines().count(), 2);
}

#[test]
fn a_form_that_says_too_little_or_too_much_is_refused() {
    let head = "paradigm: criteria\nname: main\nspec: x\nusing: x\ncriteria: ";
    for (criteria, why) in [
        ("[]", "at least one criterion"),
        ("[{name: a}]", "nothing tells whether `a` is met"),
        ("[{name: a, check: x, judge: y}]", "both tell whether it is met"),
        ("[{name: a b, check: x}, {name: a-b, check: x}]", "two criteria are named `a_b`"),
        ("[{name: '?', check: x}]", "has no letters or digits"),
        ("[{check: x}]", "name"),
    ] {
        Project::with_loop(&format!("{head}{criteria}\n")).run(&["validate", "main"]).code(2).says(why);
    }
}

#[test]
fn a_criterion_without_a_command_is_judged_by_a_model() {
    let text = "\
paradigm: criteria
name: main
spec: describe the rules
criteria:
  - {name: made, check: test -e made}
  - {name: docs updated, judge: the README describes the rules}
using: touch made
max_iterations: 5
";
    let says = |more: Value| {
        let mut said = json!({"type": "result", "subtype": "success", "is_error": false, "result": "looked"});
        said.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fake_host::prints(&[said])
    };
    let judged = |verdict: &str| {
        says(json!({"structured_output": {"verdict": verdict, "confidence": 0.9, "reason": "seen"}}))
    };
    let looked = says(json!({}));
    let answers = [looked.clone(), judged("no"), looked, judged("yes")];
    let project = fake_host::project(&["claude"], text, &answers);
    let ran = project.run(&["run", "main", "--no-ci"]).code(0);
    let ran = ran.says("unmet criteria: docs updated").says("Loop completed: completed (2 iterations");
    assert_eq!(fake_host::calls(&project), 4, "{}", ran.all());
    assert!(project.read("calls/1.stdin").contains("the README describes the rules"));
    assert_eq!(state(&project)["criteriaStatus"], json!({"made": true, "docs updated": true}));
    // Where no model may be asked, nobody says that it is met.
    let project = fake_host::project(&["claude"], text, &answers);
    let ran = project.run(&["run", "main", "--no-ci", "--no-llm"]).code(75);
    ran.says("`check_docs_updated` needs an agent");
    assert_eq!(fake_host::calls(&project), 0);
    project.run(&["resume", "main", "--no-ci", "--llm"]).code(0).says("goes on in check_docs_updated");
    assert_eq!(fake_host::calls(&project), 4);
}

#[test]
fn the_exit_codes_of_a_check_say_no_or_that_it_told_nothing() {
    let verdict = |check: &str| {
        let project = Project::with_loop(&format!(
            "paradigm: criteria\nname: main\nspec: x\nusing: 'true'\nmax_iterations: 1\ncriteria:\n  - {{name: it, {check}}}\n"
        ));
        drop(project.run(&["run", "main", "--no-ci"]));
        let all = project.events();
        let judged = all.iter().find(|event| event["event"] == "evaluate").unwrap();
        judged["verdict"].as_str().unwrap().to_owned()
    };
    for (check, expected) in [
        ("check: 'true'", "yes"),
        ("check: exit 101", "no"),
        ("check: exit 127", "error"),
        ("check: exit 2, no: [1]", "error"),
        ("check: exit 2, \"no\": 2-3", "no"),
        ("check: {action: exit 1, shell: sh}", "no"),
        ("check: {action: exit 1, evaluate: {type: exit_code, target: 1}}", "yes"),
    ] {
        assert_eq!(verdict(check), expected, "{check}");
    }
    let odd = Project::with_loop(
        "paradigm: criteria\nname: main\nspec: x\nusing: x\ncriteria:\n  - {name: a, judge: is it?, no: 1}\n  - {name: b, check: {action: x, evaluate: {type: classify}}, no: 1}\n  - {name: c, check: x, no: 0}\n",
    );
    let ran = odd.run(&["validate", "main"]).code(2);
    assert_eq!(ran.stdout.matches("`no` has no effect here").count(), 2, "{}", ran.stdout);
    drop(ran.says("the exit code 0 means yes, and stands in `no` as well"));
}
