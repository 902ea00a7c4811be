//! Reviewers of an environment approve a job: that is written down, and answers nothing.

use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, ResponseTemplate};

use super::questions::{ASKS, of};
use crate::ci::reported::{Github, SHA};
use crate::common::{Project, Ran};

const PASSING: &str = "name: main\ndescription: d\ninitial: check\nstates:\n  check: {action: 'true', on_yes: done, on_no: done}\n  done: {terminal: true, outcome: success}\n";

fn review(state: &str, environment: &str, id: u64, name: &str) -> Value {
    json!({
        "state": state, "comment": "Ship\u{1b}[31m it, hunter2hunter2", "environments": [{"id": 5, "name": environment}],
        "user": {"id": id, "login": name, "type": "User"},
    })
}

/// Runs a loop in the job 77, of which the server says this.
fn run(text: &str, said: ResponseTemplate, arguments: &[&str]) -> (Ran, Project, Github) {
    let github = Github::silent();
    let at = path("/repos/octo/project/actions/runs/77/approvals");
    github.mount(Mock::given(method("GET")).and(at).respond_with(said));
    let fine = |body: Value| ResponseTemplate::new(200).set_body_json(body);
    github.mount(Mock::given(method("GET")).respond_with(fine(json!([]))));
    github.mount(Mock::given(method("POST")).respond_with(fine(json!({"id": 5}))));
    let project = github.project(text).env("TOP_SECRET", "hunter2hunter2");
    let begin = ["run", "main", "--ci=plain", "--no-strict", "--on-change", "report", "--no-upload"];
    let ran = project.run(&[&begin, arguments].concat());
    (ran, project, github)
}

fn fine(reviews: &[Value]) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(json!(reviews))
}

#[test]
fn whoever_approved_the_job_is_in_the_journal_and_in_the_reports() {
    let reviews = [
        review("approved", "Production", 7, "ada"),
        review("rejected", "production", 8, "bob"),
        review("approved", "staging", 9, "eve"),
    ];
    let (ran, project, _) = run(PASSING, fine(&reviews), &["--environment", "production"]);
    drop(ran.code(0).says("job approved by ada for the environment `production`"));
    let approvals = of(&project, "approval");
    assert_eq!(approvals.len(), 1, "{approvals:?}");
    let approval = &approvals[0];
    assert_eq!((&approval["by"], &approval["id"]), (&json!("environment"), &json!(7)));
    assert_eq!((&approval["environment"], &approval["verdict"]), (&json!("production"), &json!("approve")));
    assert_eq!((&approval["sha"], &approval["digest"]), (&json!(SHA), &Value::Null));
    assert!(!approval.to_string().contains("hunter2"), "{approval}");
    assert_eq!(project.events()[1]["event"], "approval", "before anything is done");
    for format in ["summary", "html"] {
        let report = project.run(&["report", "main", "--format", format]).code(0).stdout;
        assert!(report.contains("job approved by"), "{report}");
    }
    let result = project.run(&["report", "main", "--format", "result"]).code(0).stdout;
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["approvals"][0]["by"], "environment");
}

#[test]
fn what_cannot_be_read_is_said_and_changes_nothing() {
    for (said, says) in [
        (fine(&[]), "no reviewer of the environment `production` has approved"),
        (fine(&[review("rejected", "production", 8, "bob")]), "no reviewer of the environment"),
        (ResponseTemplate::new(404), "the journal does not say who approved"),
        (ResponseTemplate::new(403), "the journal does not say who approved"),
        (ResponseTemplate::new(200).set_body_string("["), "the journal does not say who approved"),
    ] {
        let (ran, project, _) = run(PASSING, said, &["--environment", "production"]);
        drop(ran.code(0).says(says));
        assert_eq!(of(&project, "approval"), Vec::<Value>::new());
    }
    let (ran, _, github) = run(PASSING, fine(&[review("approved", "production", 7, "ada")]), &[]);
    drop(ran.code(0));
    let asked = github.received().into_iter().filter(|(request, _)| request.ends_with("/approvals")).count();
    assert_eq!(asked, 0, "nobody is asked about an environment that is not named");
}

#[test]
fn an_approved_job_answers_no_question() {
    let reviews = [review("approved", "production", 7, "ada")];
    let (ran, project, _) = run(ASKS, fine(&reviews), &["--environment", "production"]);
    drop(ran.code(75).says("waiting for a person"));
    assert_eq!(of(&project, "approval").len(), 1);
    let resume = ["resume", "main", "--ci=plain", "--no-upload", "--environment", "production"];
    drop(project.run(&resume).code(75));
    let kinds: Vec<Value> = project.events().into_iter().map(|event| event["event"].clone()).collect();
    let resumed = kinds.iter().position(|kind| kind == "loop_resume").unwrap();
    assert_eq!(kinds[resumed + 1], "approval");
    assert_eq!(of(&project, "approval").len(), 2, "each job is approved");
    drop(project.run(&["list", "--awaiting"]).code(0).says("Deploy"));
}
