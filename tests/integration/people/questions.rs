//! A question in CI: the run is saved with it, asked once, and goes on by an answer to it and nothing else.

use serde_json::{Value, json};

use crate::common::{Project, Ran, git};
use crate::fake_host::{found, install};

pub(super) const ASKS: &str = "\
name: main
description: d
initial: make
context: {what: 'it''s $(touch pwned)'}
states:
  make: {action: 'echo made > made', next: ask}
  ask: {action_type: human_approval, action: 'Deploy ${context.what}?', capture: answer, on_yes: yes, on_no: no}
  yes: {action: 'printf \"%s|%s|%s\" ${captured.answer.output:shell} ${captured.ask.verdict:shell} ${captured.answer.reason:shell} > came', next: done}
  no: {action: 'printf \"%s|%s|%s\" ${captured.answer.output:shell} ${captured.ask.verdict:shell} ${captured.answer.reason:shell} > came', next: stopped}
  done: {terminal: true, outcome: success}
  stopped: {terminal: true, outcome: blocked, description: nobody approved}
";

const CI: &[&str] = &["--ci=plain", "--no-strict", "--on-change", "report"];

pub(super) fn project(text: &str) -> Project {
    let project = Project::with_loop(text).file("README", "x\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "x"]);
    project
}

fn asked(project: &Project) -> Ran {
    project.run(&[&["run", "main"], CI].concat()).code(75)
}

pub(super) fn awaiting(project: &Project) -> Value {
    let listed = project.run(&["list", "--awaiting", "--json"]).code(0).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    serde_json::from_str::<Value>(&listed).unwrap()["awaiting"].clone()
}

pub(super) fn code(awaiting: &Value) -> String {
    awaiting["code"].as_str().unwrap().to_owned()
}

/// Returns the events of one kind.
pub(super) fn of(project: &Project, kind: &str) -> Vec<Value> {
    project.events().into_iter().filter(|event| event["event"] == kind).collect()
}

#[test]
fn a_question_is_a_hand_off_that_says_what_it_is_about() {
    let project = project(ASKS);
    let ran = asked(&project);
    assert!(ran.all().contains("waiting for a person"), "{}", ran.all());
    let handoff = &of(&project, "handoff")[0];
    assert_eq!(handoff["reason"], "question");
    let awaiting = awaiting(&project);
    assert_eq!(handoff["awaiting"], awaiting);
    assert_eq!(awaiting["question"], "Deploy it's $(touch pwned)?");
    assert_eq!(awaiting["options"], json!(["approve", "reject", "answer"]));
    assert_eq!(awaiting["state"], "ask");
    assert_eq!(awaiting["sha"], git(&project, &["rev-parse", "HEAD"]).trim());
    assert_ne!(
        awaiting["tree"],
        git(&project, &["rev-parse", "HEAD^{tree}"]).trim(),
        "`made` is a part of it"
    );
    let digest = awaiting["digest"].as_str().unwrap();
    assert_eq!(code(&awaiting), digest[..8]);
    drop(project.run(&["status", "main"]).code(0).says("Deploy it's").says(&code(&awaiting)));
    let events = of(&project, "action_start");
    assert_eq!(events.len(), 1, "no action of the state that asks has begun");
    let report = project.run(&["report", "main", "--format", "summary"]).code(0).stdout;
    assert!(report.contains("### Question") && report.contains(&code(&awaiting)), "{report}");
    let junit = project.run(&["report", "main", "--format", "junit"]).code(0).stdout;
    assert!(junit.contains("waiting for a person"), "{junit}");
    let page = project.run(&["report", "main", "--format", "html"]).code(0).stdout;
    assert!(page.contains("id=\"question\"") && page.contains(&code(&awaiting)));
    let result: Value =
        serde_json::from_str(&project.run(&["report", "main", "--format", "result"]).code(0).stdout).unwrap();
    assert_eq!(result["awaiting"], awaiting);
    assert_eq!(result["outputs"]["awaiting"], awaiting["code"]);
    drop(project.run(&["why", "main"]).says("Deploy it's"));
}

#[test]
fn an_answer_goes_on_with_the_run() {
    for (words, verdict, came, exit) in [
        (vec!["approve"], "approve", "|approve|", 0),
        (vec!["reject", "not", "on a $(friday)"], "reject", "|reject|not on a $(friday)", 5),
        (vec!["with `care`\nand so"], "answer", "with `care`\nand so|edit|", 0),
    ] {
        let project = project(ASKS);
        asked(&project);
        let code = code(&awaiting(&project));
        let answer = [vec!["answer", "main"], words, vec!["--code", &code]].concat();
        let project = project.env("USER", "ada");
        drop(project.run(&answer).code(exit));
        assert_eq!(project.read("came"), came);
        let approval = &of(&project, "approval")[0];
        assert_eq!(approval["verdict"], verdict);
        assert_eq!((&approval["who"], &approval["by"]), (&json!("ada"), &json!("command_line")));
        assert_eq!(approval["sha"], git(&project, &["rev-parse", "HEAD"]).trim());
        let kinds: Vec<_> = project.events().iter().map(|event| event["event"].clone()).collect();
        let resumed = kinds.iter().position(|kind| kind == "loop_resume").unwrap();
        assert_eq!(kinds[resumed + 1], "approval");
        assert!(!project.exists("pwned"));
        drop(project.run(&["list", "--awaiting"]).code(0).says("no run here waits"));
        drop(
            project
                .run(&["report", "main", "--format", "summary"])
                .code(0)
                .says("by ada, whom nobody checked"),
        );
    }
}

#[test]
fn a_run_of_agents_that_nothing_confines_goes_on_by_an_answer() {
    let text = "\
name: main
description: d
initial: ask
sandbox: off
states:
  ask: {action_type: human_approval, action: 'Go on?', on_yes: work, on_no: stopped}
  work: {action_type: prompt, action: Work., next: done}
  done: {terminal: true, outcome: success}
  stopped: {terminal: true, outcome: blocked, description: nobody approved}
";
    let project = project(text);
    install(&project, "bin", "claude");
    // What the host that is played here writes down, and the home, lie in the tree and are no work of the run.
    project.write(".git/info/exclude", "*\n");
    let project = found(project);
    drop(project.run(&[&["run", "main", "--llm", "--no-budget", "--yes"], CI].concat()).code(75));
    let kinds: Vec<_> = project.events().iter().map(|event| event["event"].clone()).collect();
    assert_eq!(kinds[0], "loop_start", "whoever goes on with a run knows it by its first line: {kinds:?}");
    assert!(kinds.contains(&json!("warning")), "{kinds:?}");
    let code = code(&awaiting(&project));
    drop(project.run(&["answer", "main", "reject", "no", "--code", &code]).code(5));
}

#[test]
fn without_an_answer_the_same_question_waits_on() {
    let project = project(ASKS);
    asked(&project);
    let first = awaiting(&project);
    drop(project.run(&[&["resume", "main"], &["--ci=plain"][..]].concat()).code(75));
    assert_eq!(awaiting(&project), first);
    assert_eq!(of(&project, "handoff").len(), 2);
    // About another tree, it is another question.
    project.write("made", "by somebody else");
    drop(project.run(&["resume", "main", "--ci=plain"]).code(75));
    let second = awaiting(&project);
    assert_ne!(second["code"], first["code"]);
    assert_ne!(second["tree"], first["tree"]);
}

/// Deploys to a place that its environment names, or that an action has said.
fn asking(question: &str) -> String {
    ASKS.replace("echo made > made', next", "echo to https://u:$MY_TOKEN@h/', capture: c, next")
        .replace("Deploy ${context.what}?", question)
}

#[test]
fn a_secret_in_the_text_of_a_question_leaves_it_the_same_one() {
    let project =
        project(&asking("Deploy ${captured.c.output}?")).env("MY_TOKEN", "ghs_secretsecretABCDEF12");
    asked(&project);
    let awaiting = awaiting(&project);
    assert!(awaiting["question"].as_str().unwrap().contains("***"), "{awaiting}");
    drop(project.run(&["answer", "main", "approve", "--code", &code(&awaiting)]).code(0));
    assert_eq!(project.read("came"), "|approve|");
}

#[test]
fn where_the_text_is_another_one_it_is_asked_anew() {
    let project = project(&asking("Deploy to ${env.PLACE}?")).env("PLACE", "staging");
    asked(&project);
    let first = awaiting(&project);
    let project = project.env("PLACE", "production");
    let ran = project.run(&["answer", "main", "approve", "--code", &code(&first)]).code(75);
    let told = project.events().iter().rev().find(|event| event["event"] == "handoff").cloned().unwrap();
    assert!(told["message"].as_str().unwrap().starts_with("the answer was to another question"), "{told}");
    let said = "waiting for a person in `ask`, as the answer was to another question: Deploy to production?";
    assert!(ran.all().contains(said) && !project.exists("came"), "{}", ran.all());
    let second = awaiting(&project);
    assert_eq!(second["question"], "Deploy to production?");
    assert_ne!(second["code"], first["code"]);
    drop(project.run(&["answer", "main", "approve", "--code", &code(&second)]).code(0));
    assert_eq!(project.read("came"), "|approve|");
}

#[test]
fn an_answer_counts_for_its_question_alone() {
    let project = project(ASKS);
    drop(project.run(&["answer", "main", "approve"]).code(2));
    asked(&project);
    let events = project.events().len();
    let code = code(&awaiting(&project));
    drop(
        project.run(&["answer", "main", "approve", "--code", "00000000"]).code(2).says("is not the question"),
    );
    drop(project.run(&["answer", "main", "approve", "at", "once"]).code(2).says("takes no text"));
    drop(project.run(&["answer", "main", " "]).code(2).says("has no text"));
    project.write("made", "something else");
    drop(
        project
            .run(&["answer", "main", "approve", "--code", &code])
            .code(2)
            .says("not the one that the question"),
    );
    project.write("made", "made\n");
    git(&project, &["commit", "-q", "--allow-empty", "-m", "later"]);
    drop(project.run(&["answer", "main", "approve", "--code", &code]).code(2).says("is checked out"));
    git(&project, &["reset", "-q", "--soft", "HEAD^"]);
    assert_eq!(project.events().len(), events, "what is refused leaves nothing");
    drop(project.run(&["answer", "main", "approve", "--code", &code]).code(0));
    drop(project.run(&["answer", "main", "approve", "--code", &code]).code(2));
}

#[test]
fn a_question_ends_with_its_time() {
    let text = ASKS.replace("capture: answer,", "capture: answer, stays_open: 1ms,");
    let project = project(&text);
    asked(&project);
    drop(project.run(&["answer", "main", "approve"]).code(2).says("was open until"));
    drop(project.run(&["resume", "main", "--ci=plain"]).code(5));
    assert_eq!(project.read("came"), "|timeout|nobody answered in time");
}

#[test]
fn what_a_stranger_set_off_asks_nobody() {
    let event = json!({"pull_request": {
        "number": 7,
        "head": {"sha": "1".repeat(40), "repo": {"full_name": "mallory/project"}},
        "base": {"sha": "2".repeat(40), "repo": {"full_name": "octo/project"}},
    }});
    let project = project(ASKS).file("event.json", &event.to_string());
    let path = project.at("event.json").to_string_lossy().into_owned();
    let project = project
        .env("GITHUB_EVENT_NAME", "pull_request")
        .env("GITHUB_REPOSITORY", "octo/project")
        .env("GITHUB_EVENT_PATH", path);
    drop(project.run(&[&["run", "main"], CI].concat()).code(5));
    assert!(project.read("came").starts_with("|timeout|nobody is asked"), "{}", project.read("came"));
}

#[test]
fn who_may_answer_is_not_checked_on_a_command_line_in_ci() {
    let text = ASKS.replace("states:", "approvers: {users: [ada], teams: [acme/release], min: 2}\nstates:");
    let project = project(&text);
    asked(&project);
    let awaiting = awaiting(&project);
    let approvers = json!({"users": ["ada"], "teams": ["acme/release"], "min": 2, "not_author": true});
    assert_eq!(awaiting["approvers"], approvers);
    drop(project.run(&["answer", "main", "approve", "--ci=plain"]).code(2).says("names who may answer"));
    drop(project.run(&["answer", "main", "approve"]).code(0));
}

#[test]
fn what_runs_in_the_job_that_asked_cannot_hide_that_it_does() {
    let project = project(&ASKS.replace("states:", "approvers: {users: [ada]}\nstates:"));
    let mut in_job = project.command(&[&["run", "main"], CI].concat());
    Ran::of(&in_job.env("CI", "true").output().unwrap()).code(75);
    for arguments in [&["answer", "main", "approve"][..], &["answer", "main", "approve", "--no-ci"]] {
        drop(project.run(arguments).code(2).says("names who may answer"));
    }
    assert_eq!(of(&project, "loop_resume"), Vec::<Value>::new());
}

#[test]
fn a_question_of_an_inner_loop_is_that_of_the_run() {
    let outer = "\
name: main
description: d
initial: inner
states:
  inner: {loop: inner, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";
    let inner = ASKS.replace("name: main", "name: inner");
    let project = Project::with_loop(outer).file(".loops/inner.yaml", &inner);
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "x"]);
    asked(&project);
    let first = awaiting(&project);
    assert_eq!(first["state"], "ask");
    drop(project.run(&["resume", "main", "--ci=plain"]).code(75));
    assert_eq!(awaiting(&project), first);
    drop(project.run(&["answer", "main", "approve", "--ci=plain"]).code(0));
    assert_eq!(project.read("came"), "|approve|");
    assert_eq!(of(&project, "action_start").iter().filter(|event| event["state"] == "make").count(), 1);
}

#[test]
fn gates_that_are_none_are_errors() {
    for (from, to, says) in [
        ("next: ask}", "next: ask, approvers: {users: [ada]}}", "this state asks nobody"),
        ("next: ask}", "next: ask, stays_open: 1h}", "this state asks nobody"),
        ("capture: answer,", "approvers: {users: ['@ada']},", "not the name of an account"),
        ("capture: answer,", "approvers: {teams: [release]},", "is not a team"),
        ("capture: answer,", "approvers: {users: [ada, Ada], min: 2},", "can never be met"),
        ("capture: answer,", "approvers: {users: [ada], min: 0},", "min"),
    ] {
        let project = Project::with_loop(&ASKS.replacen(from, to, 1));
        drop(project.run(&["validate", "main"]).code(2).says(says));
    }
    let none = "approvers: {users: [ada]}\nname: main\ndescription: d\ninitial: a\nstates:\n  a: {action: 'true', next: done}\n  done: {terminal: true}\n";
    drop(Project::with_loop(none).run(&["validate", "main"]).code(2).says("no state of this loop asks"));
}
