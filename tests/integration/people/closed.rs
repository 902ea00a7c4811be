//! A question ends with its pull request: the run that is gone on with finds it closed, and its journal says `cancelled`.

use serde_json::{Value, json};
use wiremock::matchers::{method, path, query_param};
use wiremock::{Mock, ResponseTemplate};

use super::questions::{ASKS, of, project};
use super::steering::status;
use crate::ci::reported::Github;
use crate::common::{Project, Ran, git};

/// A pull request of the server.
fn pull(sha: &str, repository: &str) -> Value {
    json!({"number": 3, "head": {"ref": "change", "sha": sha, "repo": {"full_name": repository}}})
}

/// What the server says of pull requests, by the commit of the question.
type Pulls<'p> = &'p dyn Fn(&str) -> ResponseTemplate;

/// Resumes a run that asks and that this event has set off, where the server has these pull requests for the commit of the question.
fn resumed(event: &str, open: Pulls<'_>, closed: Pulls<'_>) -> (Ran, Project) {
    let project = project(ASKS);
    let ci = ["--ci=plain", "--no-strict", "--on-change", "report"];
    drop(project.run(&[&["run", "main"][..], &ci].concat()).code(75));
    let head = git(&project, &["rev-parse", "HEAD"]).trim().to_owned();
    let list = project.run(&["list", "--awaiting"]).code(0).stdout;
    let github = Github::silent();
    let get = |at: String, body: Value| {
        let answer = ResponseTemplate::new(200).set_body_json(body);
        github.mount(
            Mock::given(method("GET")).and(path(format!("/repos/octo/project{at}"))).respond_with(answer),
        );
    };
    // Another run went on with it, which a program has started.
    let status = |id, run| status(id, "main", run, list.split_whitespace().next().unwrap(), ":pending");
    get(format!("/commits/{head}/statuses"), json!([status(9, 71), status(8, 70)]));
    get("/actions/runs/70".to_owned(), json!({ "event": event }));
    get("/actions/runs/71".to_owned(), json!({"event": "workflow_dispatch"}));
    for (state, answer) in [("open", open(&head)), ("closed", closed(&head))] {
        let listed = Mock::given(method("GET")).and(path("/repos/octo/project/pulls"));
        github.mount(listed.and(query_param("state", state)).respond_with(answer));
    }
    let project = project
        .env("GITHUB_API_URL", github.address())
        .env("GITHUB_REPOSITORY", "octo/project")
        .env("LL_RETRY_WAIT", "1ms")
        .env("LL_TOKEN", "ghs_0123456789");
    let ran = project.run(&["resume", "main", "--ci=plain"]);
    (ran, project)
}

fn listed(pulls: &[Value]) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(json!(pulls))
}

#[test]
fn a_run_whose_pull_request_was_closed_ends_as_cancelled() {
    let (ran, project) =
        resumed("pull_request", &|_| listed(&[]), &|sha| listed(&[pull(sha, "Octo/project")]));
    drop(ran.code(3).says("cancelled: the pull request was closed before somebody answered in `ask`"));
    let end = of(&project, "loop_complete").pop().unwrap();
    assert_eq!((&end["outcome"], &end["terminated_by"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(end["exit_code"], 3);
    assert!(!project.exists("came"), "no route is taken");
    drop(project.run(&["list", "--awaiting"]).code(0).says("no run here waits"));
    // It is over: nobody answers it any more.
    drop(project.run(&["answer", "main", "approve", "--no-ci"]).code(2).says("does not wait for an answer"));
    assert!(!project.exists("came"));
    let result = project.run(&["report", "main", "--format", "result"]).code(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&result).unwrap()["outputs"]["outcome"], "cancelled");
    drop(project.run(&["why", "main"]).says("cancelled"));
}

/// What the server does not say has not happened: the question stays open.
#[test]
fn a_question_stays_open_as_long_as_a_pull_request_of_its_commit_is() {
    let none = |_: &str| listed(&[]);
    let own = |sha: &str| listed(&[pull(sha, "octo/project")]);
    let of_fork = |sha: &str| listed(&[pull(sha, "mallory/project")]);
    let other = |_: &str| listed(&[pull(&"4".repeat(40), "octo/project")]);
    let denied = |_: &str| ResponseTemplate::new(403);
    let cases: [(Pulls<'_>, Pulls<'_>); 6] =
        [(&own, &own), (&own, &none), (&none, &none), (&none, &of_fork), (&none, &other), (&denied, &own)];
    for (open, closed) in cases {
        let (ran, project) = resumed("pull_request", open, closed);
        drop(ran.code(75).says("waiting for a person"));
        drop(project.run(&["answer", "main", "approve", "--no-ci"]).code(0));
    }
    // What was merged is the head of a branch as well.
    let (ran, _) = resumed("push", &none, &own);
    drop(ran.code(75).says("waiting for a person"));
}
