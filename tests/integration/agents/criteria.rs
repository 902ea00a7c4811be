//! `ll-loop criteria`: the state of a piece of work, kept by commands.

use std::fs;

use serde_json::{Value, json};

use crate::common::{Project, Ran, git, path_with_ll_loop, signal};
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
    Project::with_loop(&text).env("PATH", path_with_ll_loop())
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
    let shown = state(&project);
    assert_eq!((&shown["status"], &shown["outcome"]), (&json!("cancelled"), &json!("exhausted")));
    assert_eq!(shown["spec"], "a spec");
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

#[test]
fn work_of_a_living_run_is_nobody_elses_to_change() {
    let commands = [
        "set docs true",
        "check",
        "done first",
        "done",
        "signal",
        "cancel",
        "reopen",
        "start x --criterion y",
    ];
    let calls: Vec<_> =
        commands.iter().map(|command| format!("ll-loop criteria {command}; echo $? >> codes")).collect();
    let work = format!(
        "cp .loop/state.json seen.json; {}; ll-loop criteria status; echo $? >> codes; touch one two",
        calls.join("; ")
    );
    let project = form(&work, "").env("PATH", path_with_ll_loop());
    project.run(&["run", "main"]).code(0);
    assert_eq!(project.read("codes"), format!("{}0\n", "73\n".repeat(commands.len())));
    let during: Value = serde_json::from_str(&project.read("seen.json")).unwrap();
    let run = project.events()[0]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(during["owner"]["run"], json!(run));
    assert_eq!((&during["status"], &during["spec"]), (&json!("in_progress"), &json!("a spec")));
    let after = state(&project);
    assert_eq!(
        (&after["status"], after.get("owner"), after.get("checks")),
        (&json!("completed"), None, None)
    );
}

#[test]
fn a_run_takes_no_work_from_a_session() {
    let project = form("touch one two", "");
    let start = ["criteria", "start", "mine", "--criterion", "a"];
    let begun = project.run(&start).code(0);
    assert_eq!(begun.stderr, "");
    let before = project.read(STATE);
    project.run(&["run", "main"]).code(73).says("is about work that goes on: mine").says("criteria cancel");
    assert_eq!(project.read(STATE), before);
    assert!(!project.exists("one"), "nothing was run");
    project.run(&["criteria", "cancel"]).code(0);
    project.run(&["run", "main"]).code(0);
    assert_eq!(state(&project)["spec"], "a spec");
    // What a stranger wrote there is shown without its escapes.
    let owner = r#"{"run": "\u001b[2Ja\nb'; rm x", "host": "\u001b[1m", "pid": 1, "started": ""}"#;
    project.write(STATE, &format!(r#"{{"status": "in_progress", "owner": {owner}}}"#));
    let ran = project.run(&["run", "main"]).code(73).says("is about the work of the run a");
    assert!(!ran.all().contains('\u{1b}') && ran.all().lines().count() == 2, "{}", ran.all());
    // Nobody has to say whose work it is.
    project.write(STATE, r#"{"status": "in_progress", "criteriaStatus": {"a": false}}"#);
    project.run(&["run", "main"]).code(73).says("is about work that goes on: unknown");
}

#[test]
fn a_run_takes_no_work_from_another_run() {
    let project =
        form("ll-loop run inner 2> said; echo $? > code; touch one two", "").env("PATH", path_with_ll_loop());
    let inner =
        project.read(".loops/main.yaml").replace("name: main", "name: inner").replace("a spec", "another");
    project.write(".loops/inner.yaml", &inner.replace("ll-loop run inner 2> said", "true"));
    project.run(&["run", "main"]).code(0).says("completed");
    assert_eq!(project.read("code"), "73\n");
    let said = project.read("said");
    assert!(
        said.contains("is about the work of the run main-") && said.contains("ll-loop stop main-"),
        "{said}"
    );
    assert_eq!(state(&project)["spec"], "a spec");
}

#[test]
fn a_run_that_is_over_holds_nobody_up() {
    for (work, code, outcome) in [
        ("echo 'CONTEXT_HANDOFF: later'", 75, "handoff"),
        ("echo 'FATAL_ERROR: no'", 4, "error"),
        ("echo 'LOOP_STOP: enough'", 3, "stopped"),
        ("true", 3, "exhausted"),
    ] {
        let project = form(work, "max_iterations: 1\n");
        project.run(&["run", "main"]).code(code);
        let after = state(&project);
        assert_eq!((&after["status"], &after["outcome"]), (&json!("cancelled"), &json!(outcome)), "{work}");
        assert_eq!((after.get("owner"), after.get("checks")), (None, None));
        let answer = project.run(&["hook", "stop-check"]).code(0).stdout;
        assert_eq!(answer.trim(), r#"{"ok": true}"#);
    }
}

#[test]
fn a_run_that_is_interrupted_leaves_its_work() {
    let project = form("touch begun; sleep 60", "");
    let mut run = project.start_until(&["run", "main"], "begun");
    assert_eq!(state(&project)["status"], "in_progress");
    signal(&run, rustix::process::Signal::INT);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let after = state(&project);
    assert_eq!((&after["status"], &after["outcome"]), (&json!("cancelled"), &json!("interrupted")));
    assert_eq!(after.get("owner"), None);
}

#[test]
fn a_run_that_goes_on_has_its_work_again_unless_somebody_else_works() {
    let work = "if test -f late; then touch one two; else touch late; echo 'CONTEXT_HANDOFF: later'; fi";
    let project = form(work, "");
    project.run(&["run", "main"]).code(75);
    project.run(&["criteria", "start", "mine", "--criterion", "a"]).code(0).says("in_progress: mine");
    project.run(&["resume", "main"]).code(73).says("is about work that goes on: mine");
    project.run(&["criteria", "cancel"]).code(0);
    project.run(&["resume", "main"]).code(0);
    let after = state(&project);
    assert_eq!(
        (&after["status"], &after["spec"], after.get("outcome")),
        (&json!("completed"), &json!("a spec"), None)
    );
}

/// Kills the run whose work the state file is about.
const KILL: &str = "kill -9 $(grep -o '\\\"pid\\\": [0-9]*' .loop/state.json | grep -o '[0-9]*')";

#[test]
fn a_run_that_was_killed_holds_nobody_up() {
    let killed = || {
        let project =
            form(&format!("test -f late || {{ touch late; {KILL}; sleep 60; }}; touch one two"), "");
        assert_ne!(project.command(&["run", "main"]).output().unwrap().status.code(), Some(0));
        assert_eq!(state(&project)["status"], "in_progress");
        project
    };
    let project = killed();
    let run = state(&project)["owner"]["run"].as_str().unwrap().to_owned();
    let answer: Value = serde_json::from_str(&project.run(&["hook", "stop-check"]).code(0).stdout).unwrap();
    assert_eq!(answer, json!({"ok": true, "reason": format!("the run {run} was killed")}));
    let answer: Value =
        serde_json::from_str(&project.run(&["hook", "session-resume"]).code(0).stdout).unwrap();
    assert_eq!(answer, json!({"ok": true, "message": ""}));
    project.run(&["criteria", "set", "docs", "true"]).code(0);
    project.run(&["criteria", "reopen"]).code(0).says("in_progress: a spec");
    assert!(state(&project)["owner"].get("session").is_some());
    project.run(&["resume", "main"]).code(73);
    project.run(&["criteria", "start", "mine", "--criterion", "a"]).code(2);
    // Another run, and the same one, take its place.
    let project = killed();
    project.run(&["run", "main"]).code(0);
    let project = killed();
    project.run(&["resume", "main"]).code(0);
    assert_eq!(state(&project)["status"], "completed");
    let project = killed();
    project.run(&["criteria", "start", "mine", "--criterion", "a"]).code(0).says("in_progress: mine");
}

#[test]
fn a_sub_loop_shows_its_work_until_it_ends() {
    let project = form("cp .loop/state.json seen.json; touch one two", "");
    let outer = "name: outer\ndescription: x\ninitial: sub\nstates:\n  sub: {loop: main, on_yes: after}\n  after: {action: 'cp .loop/state.json after.json', next: done}\n  done: {terminal: true}\n";
    project.write(".loops/outer.yaml", outer);
    project.run(&["run", "outer"]).code(0);
    assert!(!project.exists("seen.json"), "it is shown from its first round on");
    let after: Value = serde_json::from_str(&project.read("after.json")).unwrap();
    assert_eq!((&after["status"], after.get("owner")), (&json!("completed"), None));
}

#[test]
fn a_step_is_done_when_its_work_passed() {
    let project = form("if test -f ready; then touch one two; else touch ready; exit 7; fi", "");
    project.run(&["run", "main"]).code(0);
    assert_eq!(state(&project)["completedSteps"], json!(["first"]));
    let judged = Project::with_loop(
        "paradigm: criteria\nname: main\ndescription: x\nspec: s\ncriteria: [{name: a, check: 'test -f never'}]\nsteps: [first, second, third]\nmax_iterations: 2\nusing: {action: 'test -f ready || { touch ready; echo no; exit 0; }; echo fine', evaluate: {type: output_contains, pattern: fine}}\n",
    );
    judged.run(&["run", "main"]).code(3);
    assert_eq!(state(&judged)["completedSteps"], json!(["first"]));
    judged.run(&["validate", "--strict", "main"]).code(0).says("✓");
}

#[test]
fn no_update_of_many_writers_is_lost() {
    const WRITERS: usize = 8;
    const ROUNDS: usize = 4;
    let steps: Vec<_> = (0..WRITERS * ROUNDS).map(|step| format!("step {step}")).collect();
    let project = Project::new();
    let mut start = vec!["criteria", "start", "many hands", "--criterion", "a"];
    start.extend(steps.iter().flat_map(|step| ["--step", step]));
    assert_eq!(project.run(&start).code(0).stderr, "");
    for round in steps.chunks(WRITERS) {
        let writers: Vec<_> =
            round.iter().map(|step| project.command(&["criteria", "done", step]).spawn().unwrap()).collect();
        for mut writer in writers {
            assert!(writer.wait().unwrap().success());
        }
    }
    let after = state(&project);
    let mut done: Vec<_> =
        after["completedSteps"].as_array().unwrap().iter().map(ToString::to_string).collect();
    done.sort();
    done.dedup();
    assert_eq!((done.len(), &after["remainingSteps"]), (WRITERS * ROUNDS, &json!([])));
}

#[test]
fn a_writer_that_is_killed_leaves_the_file_whole_and_the_others_go_on() {
    let project = begun();
    for round in 0..20 {
        let is_met = if round % 2 == 0 { "true" } else { "false" };
        let mut writer = project.command(&["criteria", "set", "docs", is_met]).spawn().unwrap();
        writer.kill().ok();
        writer.wait().unwrap();
        assert!(state(&project)["criteriaStatus"]["docs"].is_boolean());
    }
    project.write(".loop/.ll-loop-half", "{");
    project.run(&["criteria", "set", "docs", "true"]).code(0);
    assert_eq!(state(&project)["criteriaStatus"]["docs"], true);
    assert_eq!(fs::read_dir(project.at(".loop")).unwrap().count(), 1);
}

#[test]
fn numbers_of_others_stay_as_they_were_written() {
    let text = r#"{"huge":1e400,"exact":12345678901234567890123,"same":1.0,"n":{"x":[0.10,-0]},"status":"in_progress","criteriaStatus":{"a":false,"b":1.0}}"#;
    let project = Project::new().file(STATE, text);
    project.run(&["criteria", "set", "a", "true"]).code(0);
    let compact: String = project.read(STATE).split_whitespace().collect();
    assert_eq!(compact, text.replace(r#""a":false"#, r#""a":true"#));
    project.run(&["criteria", "check"]).code(1).says("unmet criteria: b");
    let compact: String = project.read(STATE).split_whitespace().collect();
    assert!(
        compact
            .starts_with(r#"{"huge":1e400,"exact":12345678901234567890123,"same":1.0,"n":{"x":[0.10,-0]}"#),
        "{compact}"
    );
}

#[test]
fn a_path_through_a_link_out_of_the_repository_is_refused() {
    let project = form("touch one two", "").file("outside/x", "");
    for name in ["work/.git/x", "work/.loops/x"] {
        project.write(name, "");
    }
    std::os::unix::fs::symlink(project.at("outside"), project.at("work/.loop")).unwrap();
    let loop_file = project.read(".loops/main.yaml");
    project.write("work/.loops/main.yaml", &loop_file);
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        Ran::of(&command.current_dir(project.at("work")).output().unwrap())
    };
    let start = ["criteria", "start", "x", "--criterion", "a"];
    let refused = run(&start).code(2).says("leads out of the repository");
    assert!(refused.all().contains("is not a state file"), "{}", refused.all());
    project.write("outside/state.json", r#"{"criteriaStatus": {"a": false}}"#);
    for command in [&["set", "a", "true"][..], &["check"], &["status"], &["cancel"]] {
        run(&[&["criteria"], command].concat()).code(2).says("leads out of the repository");
    }
    assert!(run(&["hook", "stop-check"]).code(0).stdout.contains("invalid state file"));
    run(&["run", "main"]).code(0).says("leads out of the repository");
    assert_eq!(project.read("outside/state.json"), r#"{"criteriaStatus": {"a": false}}"#);
}

#[test]
fn the_file_is_found_from_below_and_its_commands_run_where_it_lies() {
    let project = begun().file(".git/HEAD", "").file("deep/er/x", "");
    let from = |directory: &str, arguments: &[&str]| {
        let mut command = project.command(arguments);
        Ran::of(&command.current_dir(project.at(directory)).output().unwrap())
    };
    project.write("flag", "");
    from("deep/er", &["criteria", "check"]).code(1).says("✓ tests");
    from("deep", &["criteria", "set", "docs", "true"]).code(0);
    from("deep/er", &["criteria", "check", "--signal"]).code(0);
    assert_eq!(state(&project)["exit_signal"], true);
    assert!(!project.exists("deep/.loop") && !project.exists("deep/er/.loop"));
    // Not above the root of a repository, but in the project.
    project.write("deep/.git", "gitdir: nowhere");
    from("deep/er", &["criteria", "status"]).code(1).says("cannot find the state file");
    let project = project.env("CLAUDE_PROJECT_DIR", "..");
    let mut command = project.command(&["criteria", "status"]);
    Ran::of(&command.current_dir(project.at("deep")).output().unwrap()).code(0).says("add validation");
}

#[test]
fn the_exit_codes_of_a_command_are_those_of_a_tool_that_failed_or_those_that_are_listed() {
    let file = |checks: &str| {
        format!(
            r#"{{"status": "in_progress", "criteriaStatus": {{"a": true}}, "checks": {{"a": {checks}}}}}"#
        )
    };
    for (checks, code, says) in [
        (r#""exit 125""#, 1, "✗ a (exit 125)\n"),
        (r#""exit 126""#, 1, "✗ a (exit 126, which says neither yes nor no)"),
        (r#""nowhere-to-be-found""#, 1, "✗ a (exit 127, which says neither yes nor no)"),
        (r#"{"check": "exit 3", "no": [1, "3-9"]}"#, 1, "✗ a (exit 3)\n"),
        (r#"{"check": "exit 2", "no": 1}"#, 1, "✗ a (exit 2, which says neither yes nor no)"),
        (r#"{"check": "true", "no": null}"#, 0, "✓ a"),
        (r#"{"check": "true", "no": [300]}"#, 2, "`no` of the check of `a`"),
    ] {
        let project = Project::new().file(STATE, &file(checks));
        project.run(&["criteria", "check"]).code(code).says(says);
        assert_eq!(state(&project)["criteriaStatus"]["a"], json!(code != 1), "{checks}");
    }
}

#[test]
fn what_has_ended_or_is_stuck_can_be_taken_up_again() {
    let project = begun();
    project.run(&["criteria", "reopen"]).code(2).says("has not ended");
    check(&project, &[(&["done", "users"], 0), (&["cancel"], 0)]);
    assert_eq!(state(&project).get("owner"), None);
    project.run(&["criteria", "reopen"]).code(0).says("in_progress: add validation").says("1/2 steps");
    for code in [1, 1, 1, 1, 1, 3] {
        project.run(&["criteria", "check"]).code(code);
    }
    project.run(&["criteria", "reopen"]).code(0);
    assert_eq!(state(&project)["circuitBreaker"], json!({"stuckCount": 0, "lastUnmet": ""}));
    project.write("flag", "");
    check(&project, &[(&["check"], 1), (&["set", "docs", "true"], 0), (&["done"], 0), (&["reopen"], 0)]);
    let after = state(&project);
    assert_eq!((&after["status"], &after["exit_signal"]), (&json!("in_progress"), &json!(false)));
    assert!(after["owner"].get("session").is_some());
}

#[test]
fn the_status_is_json_for_programs() {
    let project = begun();
    let shown = |code: i32| -> Value {
        serde_json::from_str(&project.run(&["criteria", "status", "--json"]).code(code).stdout).unwrap()
    };
    let before = shown(0);
    let path = fs::canonicalize(project.at(STATE)).unwrap();
    assert_eq!(before["path"], json!(path));
    assert_eq!((&before["ok"], &before["reason"]), (&json!(false), &json!("unmet criteria: tests, docs")));
    assert_eq!((&before["unmet"], &before["next_step"]), (&json!(["tests", "docs"]), &json!("users")));
    assert_eq!((&before["spec"], &before["iteration"]), (&json!("add validation"), &json!(1)));
    check(&project, &[(&["cancel"], 0)]);
    let after = shown(0);
    assert_eq!(
        (&after["ok"], &after["reason"], &after["status"]),
        (&json!(true), &json!(null), &json!("cancelled"))
    );
    project.run(&["criteria", "--state", "absent.json", "status", "--json"]).code(1);
}

#[test]
fn criteria_that_are_met_say_so_when_they_are_asked_to() {
    let project = begun();
    check(&project, &[(&["check", "--signal"], 1)]);
    assert_eq!(state(&project)["exit_signal"], false);
    project.write("flag", "");
    check(&project, &[(&["set", "docs", "true"], 0), (&["check"], 0)]);
    assert_eq!(state(&project)["exit_signal"], false);
    check(&project, &[(&["check", "--signal"], 0)]);
    assert_eq!(state(&project)["exit_signal"], true);
}

#[test]
fn work_begins_with_a_specification() {
    let spec = "---\ntitle: no\n---\n# Add login\n\n## Acceptance Criteria\n- [x] tests pass\n- docs say \"how\"\n\n## Steps\n1. [x] model\n2. [ ] form\n";
    let project =
        Project::new().file("spec.md", spec).file("none.md", "# T\n\n- a\n").file("headless.md", "- a\n");
    let start = [
        "criteria",
        "start",
        "--spec",
        "spec.md",
        "--criterion",
        "tests pass=test -f flag",
        "--step",
        "deploy",
    ];
    project.run(&start).code(0).says("✗ tests pass: test -f flag").says("1/3 steps, next: form");
    let begun = state(&project);
    assert_eq!(begun["spec"], "Add login");
    assert_eq!(begun["criteriaStatus"], json!({"tests pass": false, "docs say \"how\"": false}));
    assert_eq!(
        (&begun["completedSteps"], &begun["remainingSteps"]),
        (&json!(["model"]), &json!(["form", "deploy"]))
    );
    assert_eq!(begun["checks"], json!({"tests pass": "test -f flag"}));
    let before = project.read(STATE);
    for (file, why) in [
        ("none.md", "has no criteria"),
        ("headless.md", "has no criteria"),
        ("absent.md", "cannot read absent.md"),
        (".", "it is a directory"),
    ] {
        project.run(&["criteria", "start", "--spec", file]).code(2).says(why);
    }
    project
        .run(&["criteria", "start", "--spec", "headless.md", "--criterion", "a"])
        .code(2)
        .says("has no heading");
    assert_eq!(project.read(STATE), before);
    project.run(&["criteria", "cancel"]).code(0);
    project.run(&["criteria", "start", "mine", "--spec", "spec.md"]).code(0).says("in_progress: mine");
}

#[test]
fn our_own_file_is_no_change_of_the_tree() {
    let project = form("touch one two", "").file(".gitignore", "/one\n/two\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "start"]);
    project.run(&["run", "main", "--ci=plain", "--on-change", "fail"]).code(0);
    project.run(&["criteria", "start", "x", "--criterion", "a"]).code(0).says("in_progress");
    // Tracked it is none, either.
    git(&project, &["add", "-f", ".loop"]);
    git(&project, &["commit", "-qm", "with the file"]);
    project.run(&["criteria", "cancel"]).code(0);
    git(&project, &["commit", "-qam", "ended"]);
    project.run(&["run", "main", "--ci=plain", "--on-change", "fail"]).code(0);
}

#[test]
fn a_directory_that_cannot_be_written_is_said() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = begun();
    let before = project.read(STATE);
    fs::set_permissions(project.at(".loop"), fs::Permissions::from_mode(0o555)).unwrap();
    let ran = project.run(&["criteria", "set", "docs", "true"]);
    fs::set_permissions(project.at(".loop"), fs::Permissions::from_mode(0o755)).unwrap();
    // The superuser may write everywhere.
    if ran.code != Some(0) {
        ran.code(1).says("cannot write");
        assert_eq!(project.read(STATE), before);
    }
}
