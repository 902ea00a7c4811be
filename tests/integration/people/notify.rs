//! `notify`: whoever is named is told when the outcome of a loop changes, and whatever comes of that changes nothing.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use wiremock::matchers::{method, path, path_regex};
use wiremock::{Mock, ResponseTemplate};

use super::questions::ASKS;
use super::steering::status;
use crate::ci::reported::{Github, committed};
use crate::common::{Project, Ran, signal, wait_for};

const PREVIOUS: &str = "3333333333333333333333333333333333333333";

fn checking(command: &str, notify: &str) -> String {
    format!(
        "name: main\ndescription: d\ninitial: check\n{notify}\nstates:\n  check: {{action: '{command}', on_yes: done, on_no: failed}}\n  done: {{terminal: true}}\n  failed: {{terminal: true, outcome: failure}}\n"
    )
}

/// A run in a job, after what the commit before it says of another one; and what the receiver got.
struct Told {
    ran: Ran,
    documents: Vec<Value>,
    project: Project,
}

/// Runs the loop, which tells this receiver.
fn told(
    text: &dyn Fn(&str) -> String,
    before: &str,
    receiver: ResponseTemplate,
    env: &[(&str, &str)],
) -> Told {
    let (github, inbox) = (Github::silent(), Github::silent());
    inbox.mount(Mock::given(method("POST")).and(path("/hook/S3CRET")).respond_with(receiver));
    let (project, sha) = committed(github.project(&text(&format!("{}/hook/S3CRET", inbox.address()))));
    let answer = |body: Value| ResponseTemplate::new(200).set_body_json(body);
    let get = |at: &str| Mock::given(method("GET")).and(path(format!("/repos/octo/project{at}")));
    github.mount(get(&format!("/commits/{sha}/statuses")).respond_with(answer(json!([]))));
    let earlier = match before {
        "" => json!([]),
        end => json!([status(4, "main", 60, "main-20251119T000000-0000", end)]),
    };
    github.mount(get(&format!("/commits/{PREVIOUS}/statuses")).respond_with(answer(earlier)));
    github.mount(get("/commits").respond_with(answer(json!([{"sha": sha}, {"sha": PREVIOUS}]))));
    github.mount(
        Mock::given(method("POST")).and(path_regex("/statuses/")).respond_with(answer(json!({"id": 1}))),
    );
    let project = env.iter().fold(project, |project, (name, value)| project.env(name, *value));
    let ran = project.run(&["run", "main", "--no-strict", "--no-upload"]);
    let documents = inbox.received().into_iter().map(|(_, body)| body).collect();
    Told { ran, documents, project }
}

fn fine() -> ResponseTemplate {
    ResponseTemplate::new(200)
}

fn by_address(command: &'static str) -> impl Fn(&str) -> String {
    move |url| checking(command, &format!("notify: {{url: '{url}'}}"))
}

#[test]
fn only_a_change_is_told() {
    for (before, command, code, expected) in [
        (":success", "exit 1", 1, Some(("green", "red"))),
        (":failure", "exit 0", 0, Some(("red", "green"))),
        (":failure", "exit 1", 1, None),
        (":success", "exit 0", 0, None),
        ("@b-over:error", "exit 1", 1, Some(("over_budget", "red"))),
        // What is not over has said nothing.
        (":pending", "exit 0", 0, None),
        ("", "exit 0", 0, None),
    ] {
        let Told { ran, documents, .. } = told(&by_address(command), before, fine(), &[]);
        drop(ran.code(code));
        let found: Vec<_> = documents
            .iter()
            .map(|told| (told["was"].as_str().unwrap(), told["is"].as_str().unwrap()))
            .collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{before} {command}");
    }
    let Told { documents, .. } = told(&by_address("exit 1"), "", fine(), &[]);
    assert_eq!((&documents[0]["was"], &documents[0]["is"]), (&Value::Null, &json!("red")));
    assert_eq!((&documents[0]["branch"], &documents[0]["loop"]), (&json!("main"), &json!("main")));
    assert_eq!(documents[0]["url"], "https://github.com/octo/project/actions/runs/77/attempts/1");
}

#[test]
fn a_question_is_told_with_its_code() {
    let text = |url: &str| {
        ASKS.replacen("initial:", &format!("notify: {{url: '{url}'}}\non_change: report\ninitial:"), 1)
    };
    let Told { ran, documents, .. } = told(&text, ":success", fine(), &[]);
    drop(ran.code(75));
    assert_eq!(documents[0]["is"], "waiting");
    assert_eq!(documents[0]["code"].as_str().unwrap().len(), 8);
}

#[test]
fn what_comes_of_it_changes_nothing() {
    let lies = "::error::forged\n::set-output name=outcome::success\n".repeat(100_000);
    for (receiver, says) in [
        (ResponseTemplate::new(500).set_body_string("::error::forged"), "the status 500"),
        (ResponseTemplate::new(403), "the status 403"),
        (ResponseTemplate::new(302).insert_header("location", "http://169.254.169.254/"), "leads elsewhere"),
        (ResponseTemplate::new(200).set_delay(Duration::from_mins(2)), "no answer in time"),
        (ResponseTemplate::new(200).set_body_string(lies), ""),
    ] {
        let Told { ran, documents, project } = told(&by_address("exit 1"), ":success", receiver, &[]);
        let ran = ran.code(1).says(says);
        assert_eq!(documents.len(), 1, "nobody is asked twice");
        assert_eq!(says.is_empty(), !ran.all().contains("was not taken by `notify`"), "{}", ran.all());
        assert!(!ran.all().contains("forged") && !ran.all().contains("S3CRET"), "{}", ran.all());
        assert!(project.read("out").contains("failure"));
    }
    let nobody = |_: &str| checking("exit 1", "notify: {url: 'http://127.0.0.1:9/S3CRET'}");
    let Told { ran, .. } = told(&nobody, ":success", fine(), &[]);
    assert!(!ran.code(1).says("was not taken").all().contains("S3CRET"));
}

/// Who is killed is told of by the guard, which has the address from the run and not from its environment.
#[test]
fn a_run_that_is_killed_is_told() {
    let (github, inbox) = (Github::willing(), Github::silent());
    inbox.mount(Mock::given(method("POST")).and(path("/hook/S3CRET")).respond_with(fine()));
    let text = "name: main\ndescription: d\ninitial: check\nnotify: {url_from: HOOK_TOKEN}\nstates:\n  check: {action: 'echo > begun; sleep 600', on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    let project = github.project(text).env("HOOK_TOKEN", format!("{}/hook/S3CRET", inbox.address()));
    let mut child = project.start_until(&["run", "main"], "begun");
    wait_for(|| github.statuses().len() == 1);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for(|| !inbox.received().is_empty());
    let (_, told) = inbox.received().pop().unwrap();
    assert_eq!((&told["is"], &told["outcome"]), (&json!("red"), &json!("interrupted")));
    assert_eq!((&told["sentence"], &told["loop"]), (&json!("killed in state `check`"), &json!("main")));
}

#[test]
fn a_command_reads_it_and_can_fail() {
    let with = |command: &'static str| {
        move |_: &str| {
            checking("echo $TOP_SECRET; exit 1", &format!("notify: {{command: \"{command}\", shape: slack}}"))
        }
    };
    let secret = [("TOP_SECRET", "hunter2hunter2")];
    let Told { ran, project, .. } = told(&with("cat > told.json"), ":success", fine(), &secret);
    drop(ran.code(1));
    let told_by: Value = serde_json::from_str(&project.read("told.json")).unwrap();
    let said = told_by["text"].as_str().unwrap();
    assert!(said.starts_with("❌ main on main: green → red") && !said.contains("hunter2"), "{said}");
    let Told { ran, .. } = told(&with("echo ::error::forged; exit 3"), ":success", fine(), &secret);
    assert!(!ran.code(1).says("ended with the exit code 3").all().contains("forged"));
}

#[test]
fn the_option_and_a_variable_name_an_address_too() {
    let of_variable = |_: &str| checking("exit 1", "notify: {url_from: HOOK_TOKEN}");
    let Told { ran, documents, .. } = told(&of_variable, ":success", fine(), &[]);
    assert!(documents.is_empty() && !ran.code(1).all().contains("notify"));
    let inbox = Github::silent();
    inbox.mount(Mock::given(method("POST")).respond_with(fine()));
    let address = inbox.address();
    let Told { ran, .. } = told(&of_variable, ":success", fine(), &[("HOOK_TOKEN", &address)]);
    drop(ran.code(1));
    assert_eq!(inbox.received().len(), 1);
    let project = Project::with_loop(&checking("exit 1", ""));
    drop(project.run(&["run", "main", "--ci=plain", "--notify", &address]).code(1));
    // At home nobody is told.
    drop(project.run(&["run", "main", "--notify", &address]).code(1));
    assert_eq!(inbox.received().len(), 2);
    drop(project.run(&["run", "main", "--notify", "ftp://x"]).code(2).says("write an address"));
}

#[test]
fn what_a_stranger_set_off_is_told_to_nobody() {
    let event = [("GITHUB_EVENT_NAME", "issue_comment")];
    let Told { ran, documents, .. } = told(&by_address("exit 1"), ":success", fine(), &event);
    assert_eq!(documents, Vec::<Value>::new(), "{}", ran.all());
}

#[test]
fn receivers_that_are_none_are_errors() {
    for (notify, says) in [
        ("notify: {}", "no receiver"),
        ("notify: {url: 'https://x', command: mail}", "or several"),
        ("notify: {url: 'example.com'}", "not an address"),
        ("notify: {url: 'https://x y'}", "not an address"),
        ("notify: {url_from: '$HOOK'}", "not the name of a variable"),
        ("notify: {command: ' '}", "is empty"),
        ("notify: {url: 'https://x', shape: irc}", "shape"),
    ] {
        let project = Project::with_loop(&checking("exit 1", notify));
        drop(project.run(&["validate", "main"]).code(2).says(says));
    }
}
