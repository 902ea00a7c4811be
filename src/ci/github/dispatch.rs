//! Continues a run that was handed off in another run of the same workflow. The length of such a chain is limited,
//! because a loop that never ends would run up costs for ever.

use serde_json::json;

use super::commit_status;
use super::target::ReportTarget;
use crate::base::explanation::Explanation;
use crate::base::text::one_line;
use crate::ci::chain::{ChainLink, NextRun};
use crate::forge::github::api::ApiError;
use crate::forge::github::workflow_control::{self, DispatchedRun};
use crate::forge::github::workflow_run;

/// Starts the next run of the chain.
pub(super) fn go_on(target: &ReportTarget, link: ChainLink) -> NextRun {
    if link.depth >= link.max {
        // A chain without an end would go on spending, with nobody looking.
        return NextRun::ChainEnded { max: link.max };
    }
    let workflow = match workflow(target) {
        Ok(workflow) => workflow,
        Err(why) => return NextRun::NotStarted(why.into()),
    };
    let Some(git_ref) = target.dispatch_ref() else {
        return NextRun::NotStarted("this job is on no branch or tag of the repository".to_owned());
    };
    let inputs = json!({
        // By its number, so that the next run takes the files of this run and no other.
        "resume-from": format!("run:{}", target.run()),
        "chain-depth": (link.depth + 1).to_string(),
        // The branch may have moved; the next run reports at the same commit as this one.
        "sha": target.sha(),
    });
    match workflow_control::dispatch(target.api(), target.repository(), &workflow, git_ref, &inputs) {
        Ok(DispatchedRun { number, page }) => {
            NextRun::Started { number, page: page.or_else(|| Some(target.url_of(number?))) }
        }
        Err(error) => NextRun::NotStarted(said(error)),
    }
}

/// Returns the name of the workflow's file, as the runner says it, or else the server: not every runner does.
fn workflow(target: &ReportTarget) -> Result<String, Explanation> {
    if let Some(workflow) = target.workflow() {
        // act and Gitea set no `GITHUB_WORKFLOW_REF`.
        return Ok(workflow.to_owned());
    }
    let unnamed = || Explanation::new("this job does not name a workflow of this repository");
    let run = target.run().parse().map_err(|_| unnamed())?;
    let run = workflow_run::get(target.api(), target.repository(), run);
    let run = run.map_err(|error| Explanation::new(said(error)))?;
    run.workflow().map(str::to_owned).ok_or_else(unnamed)
}

fn said(error: ApiError) -> String {
    let error = error.needing("actions: write");
    let help = error.help().map_or_else(String::new, |help| format!(" ({help})"));
    one_line(&format!("{error}{help}"), 500)
}

/// Returns the state of the status that says what became of the run.
fn state(next: &NextRun) -> &'static str {
    match next {
        NextRun::Started { .. } => "pending",
        NextRun::ChainEnded { .. } => "failure",
        NextRun::NotStarted(_) => "error",
    }
}

/// Sets the status of the commit to what became of the run.
pub(super) fn tell(target: &ReportTarget, next: &NextRun) -> Result<(), ApiError> {
    let page = match next {
        NextRun::Started { page: Some(page), .. } => page,
        // Where there is no next run, this one is all that people can look at.
        NextRun::Started { page: None, .. } | NextRun::ChainEnded { .. } | NextRun::NotStarted(_) => {
            target.url()
        }
    };
    commit_status::set(target, state(next), &next.sentence(), page)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use wiremock::matchers::{method, path};
    use wiremock::{Mock, ResponseTemplate};

    use super::*;
    use crate::forge::github::api::Api;
    use crate::forge::github::http::Transport;
    use crate::forge::github::testing::{Pauses, TestServer};

    const DISPATCHES: &str = "/repos/octo/project/actions/workflows/fix.yml/dispatches";
    const FIRST: ChainLink = ChainLink { depth: 0, max: 10 };

    fn target(server: &TestServer) -> ReportTarget {
        let transport = Transport::default().pause(Pauses::none().pause());
        ReportTarget::in_test(Api::new(&server.address(), Some("ghs_x".to_owned()), transport))
    }

    fn github(answers: Vec<ResponseTemplate>) -> TestServer {
        let server = TestServer::start();
        for answer in answers {
            let asked = Mock::given(method("POST")).and(path(DISPATCHES));
            server.mount(asked.respond_with(answer).up_to_n_times(1));
        }
        server
    }

    fn body(depth: &str) -> Value {
        json!({
            "ref": "refs/heads/fix",
            "inputs": {"resume-from": "run:77", "chain-depth": depth, "sha": "2".repeat(40)},
        })
    }

    fn with_details(mut body: Value) -> Value {
        body["return_run_details"] = json!(true);
        body
    }

    #[test]
    fn the_next_run_is_told_where_to_go_on() {
        let details = json!({
            "workflow_run_id": 99,
            "run_url": "https://api.github.com/repos/octo/project/actions/runs/99",
            "html_url": "https://github.com/octo/project/actions/runs/99",
        });
        let server = github(vec![ResponseTemplate::new(200).set_body_json(details)]);
        let next = go_on(&target(&server), ChainLink { depth: 3, max: 10 });
        let page = Some("https://github.com/octo/project/actions/runs/99".to_owned());
        assert_eq!(next, NextRun::Started { number: Some(99), page });
        assert_eq!(next.sentence(), "handed off: goes on in run 99");
        assert_eq!(server.received(), [(format!("POST {DISPATCHES}"), with_details(body("4")))]);
    }

    #[test]
    fn an_older_server_is_asked_without_details() {
        for status in [400, 422] {
            let refused = json!({"message": "\"return_run_details\" is not a permitted key."});
            let refused = ResponseTemplate::new(status).set_body_json(refused);
            let server = github(vec![refused, ResponseTemplate::new(204)]);
            let next = go_on(&target(&server), FIRST);
            assert_eq!(next, NextRun::Started { number: None, page: None });
            let bodies: Vec<Value> = server.received().into_iter().map(|(_, body)| body).collect();
            assert_eq!(bodies, [with_details(body("1")), body("1")]);
        }
    }

    #[track_caller]
    fn check_not(answers: Vec<ResponseTemplate>, why: &str, requests: usize) {
        let server = github(answers);
        let next = go_on(&target(&server), FIRST);
        assert!(next.sentence().contains(why), "{}", next.sentence());
        assert_eq!(server.requests(), requests);
    }

    /// What is started where the runner does not name the workflow and the server says this of the run.
    #[track_caller]
    fn check_asked(answer: ResponseTemplate, expect: Result<(), &str>) {
        let server = github(vec![ResponseTemplate::new(204)]);
        let run = Mock::given(method("GET")).and(path("/repos/octo/project/actions/runs/77"));
        server.mount(run.respond_with(answer));
        let next = go_on(&target(&server).without_workflow(), FIRST);
        match expect {
            Ok(()) => assert_eq!(next, NextRun::Started { number: None, page: None }),
            Err(why) => assert!(next.sentence().contains(why), "{}", next.sentence()),
        }
    }

    #[test]
    fn the_workflow_is_that_of_the_run() {
        let run = |path: &str| ResponseTemplate::new(200).set_body_json(json!({"path": path}));
        check_asked(run("fix.yml@refs/heads/main"), Ok(()));
        check_asked(run(".github/workflows/fix.yml"), Ok(()));
        check_asked(run("dynamic/pages/deployment"), Err("does not name a workflow"));
        check_asked(ResponseTemplate::new(404), Err("GitHub finds nothing for GET"));
    }

    #[test]
    fn what_keeps_it_from_going_on_is_said() {
        let said = |status: u16, message: &str| {
            ResponseTemplate::new(status).set_body_json(json!({"message": message}))
        };
        let inputs = "Unexpected inputs provided: [\"sha\"]";
        check_not(vec![said(422, inputs), said(422, inputs)], "Unexpected inputs provided", 2);
        let denied = said(403, "Resource not accessible by integration");
        check_not(vec![denied], "permissions: { actions: write }", 1);
        check_not(vec![said(404, "Not Found")], "GitHub finds nothing", 1);
        // It may have been started; a second one would do the work twice.
        check_not(vec![said(502, "Bad Gateway")], "status 502", 1);
    }

    #[test]
    fn a_chain_has_an_end() {
        let server = github(vec![]);
        let next = go_on(&target(&server), ChainLink { depth: 10, max: 10 });
        assert_eq!(next, NextRun::ChainEnded { max: 10 });
        assert_eq!(go_on(&target(&server), ChainLink { depth: 0, max: 0 }), NextRun::ChainEnded { max: 0 });
        assert_eq!(server.requests(), 0);
    }

    #[track_caller]
    fn check_status(next: &NextRun, state: &str, description: &str, page: &str) {
        let server = TestServer::start();
        server.mount(Mock::given(method("POST")).respond_with(ResponseTemplate::new(201)));
        tell(&target(&server), next).unwrap();
        let body = &server.received()[0].1;
        let found = ["state", "description", "target_url"].map(|name| body[name].as_str().unwrap());
        let marked = format!("{page}#ll-loop:fix-types-20251120T234847-1f2e:1:{state}");
        assert_eq!(found, [state, description, marked.as_str()]);
    }

    #[test]
    fn the_status_of_the_commit_follows_the_work() {
        let (ours, theirs) =
            ["77", "99"].map(|n| format!("https://github.com/octo/project/actions/runs/{n}")).into();
        let next = NextRun::Started { number: Some(99), page: Some(theirs.clone()) };
        check_status(&next, "pending", "handed off: goes on in run 99", &theirs);
        let next = NextRun::Started { number: None, page: None };
        check_status(&next, "pending", "handed off: goes on in another run", &ours);
        let end = "handed off, and nothing goes on: the chain had its 10 further runs (`--max-chain`)";
        check_status(&NextRun::ChainEnded { max: 10 }, "failure", end, &ours);
        let not = "handed off, and nothing goes on: no";
        check_status(&NextRun::NotStarted("no".to_owned()), "error", not, &ours);
    }
}
