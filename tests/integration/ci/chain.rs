//! A run that was handed off goes on in another run of the workflow.

use serde_json::{Value, json};
use wiremock::matchers::{method, path_regex};
use wiremock::{Mock, ResponseTemplate};

use crate::ci::reported::{Github, SHA};
use crate::common::{CHECK_FIX, Project};

/// Without an agent, the run is saved before it begins to work.
const SAVED: &str = "\
name: main
description: needs an agent
initial: a
states:
  a: {action: do it, action_type: prompt, next: done}
  done: {terminal: true}
";

const DISPATCHES: &str = "POST /repos/octo/project/actions/workflows/fix.yml/dispatches";

/// A GitHub that starts the run 99.
fn github() -> Github {
    let github = Github::silent();
    let details =
        json!({"workflow_run_id": 99, "html_url": "https://github.com/octo/project/actions/runs/99"});
    let started = ResponseTemplate::new(200).set_body_json(details);
    github.mount(Mock::given(method("POST")).and(path_regex("/dispatches$")).respond_with(started));
    github.mount(Mock::given(path_regex("/statuses/")).respond_with(ResponseTemplate::new(201)));
    github
}

fn project(github: &Github) -> Project {
    github.job(Project::with_loop(SAVED)).env("LL_TOKEN", "ghs_0123456789")
}

fn dispatched(github: &Github) -> Vec<Value> {
    let received = github.received().into_iter();
    received.filter(|(request, _)| request == DISPATCHES).map(|(_, body)| body).collect()
}

fn body(depth: &str, sha: &str) -> Value {
    json!({
        "ref": "refs/heads/main",
        "inputs": {"resume-from": "run:77", "chain-depth": depth, "sha": sha},
        "return_run_details": true,
    })
}

#[test]
fn a_step_after_the_upload_starts_the_next_run() {
    let github = github();
    let project = project(&github);
    project.run(&["run", "main"]).code(75);
    assert_eq!(dispatched(&github), Vec::<Value>::new());
    let ran = project.run(&["continue", "main", "--chain-depth", "2"]).code(0);
    let said = "::notice title=main::handed off: goes on in run 99: https://github.com/octo/project/actions/runs/99\n";
    assert_eq!(ran.stdout, said);
    assert_eq!(dispatched(&github), [body("3", SHA)]);
    assert_eq!(
        github.statuses(),
        [
            "pending: running",
            "pending: handed off: saved in `a`, to be resumed",
            "pending: handed off: goes on in run 99"
        ]
    );
    let last = github.changes().pop().unwrap().1;
    let page = last["target_url"].as_str().unwrap();
    assert!(page.starts_with("https://github.com/octo/project/actions/runs/99#ll-loop:main-"), "{page}");
}

#[test]
fn the_commit_is_handed_on() {
    let github = github();
    let project = project(&github);
    let other = "a".repeat(40);
    let arguments = ["run", "main", "--continue=dispatch", "--sha", &other, "--status-context", "quality"];
    let _ran = project.run(&arguments).code(75).says("goes on in run 99");
    assert_eq!(dispatched(&github), [body("1", &other)]);
    let received = github.received();
    assert!(
        received
            .iter()
            .filter(|(request, _)| request.contains("/statuses/"))
            .all(|(request, body)| { request.ends_with(&other) && body["context"] == "quality" })
    );
}

#[test]
fn a_run_that_is_over_starts_nothing() {
    let github = github();
    let project = github.job(Project::with_loop(CHECK_FIX)).env("LL_TOKEN", "ghs_0123456789");
    project.run(&["run", "main", "--continue=dispatch"]).code(0);
    let ran = project.run(&["continue", "main"]).code(2);
    let _ran = ran.says("was not handed off, it is completed").says("help: only a run with the exit code 75");
    let _ran = project.run(&["continue", "other"]).code(2);
    assert_eq!(dispatched(&github), Vec::<Value>::new());
}

#[test]
fn a_chain_has_an_end_and_says_so() {
    let github = github();
    let project = project(&github);
    project.run(&["run", "main", "--no-status"]).code(75);
    let ran = project.run(&["continue", "main", "--chain-depth=3", "--max-chain=3"]).code(1);
    let said = "handed off, and nothing goes on: the chain had its 3 further runs (`--max-chain`)";
    assert_eq!(ran.stdout, format!("::error title=main::{said}\n"));
    assert_eq!(github.statuses(), [format!("failure: {said}")]);
    assert_eq!(dispatched(&github), Vec::<Value>::new());
}

#[test]
fn what_was_not_uploaded_is_not_continued() {
    let github = github();
    let project = project(&github);
    project.run(&["run", "main"]).code(75);
    let ran = project.run(&["continue", "main", "--upload", "failure"]).code(4);
    let _ran = ran.says("::error title=main::handed off, and nothing goes on: its files were not uploaded");
    assert_eq!(
        github.statuses().pop().unwrap(),
        "error: handed off, and nothing goes on: its files were not uploaded"
    );
    assert_eq!(dispatched(&github), Vec::<Value>::new());
}

#[test]
fn a_refusal_is_said_and_does_not_change_the_run() {
    let github = Github::silent();
    let denied = json!({"message": "Resource not accessible by integration"});
    let denied = ResponseTemplate::new(403).set_body_json(denied);
    github.mount(Mock::given(path_regex("/dispatches$")).respond_with(denied));
    github.mount(Mock::given(path_regex("/statuses/")).respond_with(ResponseTemplate::new(201)));
    let ran = project(&github).run(&["run", "main", "--continue=dispatch"]).code(75);
    let _ran = ran
        .says("::error title=main::handed off, and nothing goes on: ")
        .says("permissions: { actions: write }");
    assert!(github.statuses().pop().unwrap().starts_with("error: handed off, and nothing goes on"));

    let ran = project(&github).env("LL_TOKEN", "").run(&["run", "main", "--continue=dispatch"]).code(75);
    let _ran = ran.says("nothing goes on: there is no token");
    let ran = project(&github).run(&["run", "--ci=plain", "main", "--continue=dispatch"]).code(75);
    let _ran = ran.says("nothing goes on: this job has no GitHub");
}

#[test]
fn the_action_goes_on_in_a_step_of_its_own() {
    let github = github();
    let project = project(&github)
        .env("INPUT_LOOP", "main")
        .env("INPUT_ON_HANDOFF", "dispatch")
        .env("INPUT_CHAIN_DEPTH", "4")
        .env("INPUT_MAX_CHAIN", "5")
        .env("INPUT_SHA", "B".repeat(40))
        .env("INPUT_STATUS_CONTEXT", "quality");
    project.run(&["action"]).code(75);
    assert_eq!(dispatched(&github), Vec::<Value>::new(), "its files are not uploaded yet");
    let project = project.env("INPUT_RUN", "main").env("INPUT_UPLOAD_OUTCOME", "success");
    project.run(&["action", "continue"]).code(0);
    assert_eq!(dispatched(&github), [body("5", &"b".repeat(40))]);
    assert_eq!(github.received().pop().unwrap().1["context"], "quality");
    let project = project.env("INPUT_CHAIN_DEPTH", "5").env("INPUT_STATUS", "false");
    project.run(&["action", "continue"]).code(1);
    assert_eq!(github.statuses().len(), 3);
    let skipped = project.env("INPUT_UPLOAD_OUTCOME", "");
    let _ran = skipped.run(&["action", "continue"]).code(4).says("its files were not uploaded");
}

/// An input that is wrong, and named before anything runs.
#[track_caller]
fn check(name: &str, value: &str) {
    let variable = format!("INPUT_{}", name.to_uppercase().replace('-', "_"));
    let github = github();
    let project = project(&github).env("INPUT_LOOP", "main").env(&variable, value);
    let _ran = project.run(&["action"]).code(2).says(&format!("the input `{name}` is `{value}`"));
    assert!(!project.exists(".loops/.running"));
}

#[test]
fn wrong_inputs_name_themselves_before_anything_runs() {
    check("on-handoff", "dispach");
    check("chain-depth", "-1");
    check("max-chain", "many");
    check("sha", "main");
    check("status", "maybe");
    check("check", "maybe");
    check("comment", "maybe");
    check("allow-untrusted", "maybe");
}
