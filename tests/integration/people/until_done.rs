//! `ll-loop until-done`: what was handed off goes on, in a job of a clock that asks nobody.

use serde_json::{Value, json};
use wiremock::matchers::{method, path, path_regex, query_param};
use wiremock::{Mock, ResponseTemplate};

use super::steering::{question, status};
use crate::ci::reported::{Github, SHA};
use crate::common::{Project, Ran};

const OPEN: &str = "2222222222222222222222222222222222222222";
const CLOSED: &str = "3333333333333333333333333333333333333333";
const FORK: &str = "4444444444444444444444444444444444444444";

fn handed_off(id: u64, run: u64, reason: &str) -> Value {
    status(id, "main", run, "main-20251120T234847-70", &format!("@h-{reason}:pending"))
}

/// Lets the program go on with what waits at the branch of the job, and at three pull requests.
fn until_done(statuses: &[(&str, Vec<Value>)], run: &Value, arguments: &[&str]) -> (Ran, Github) {
    let github = Github::silent();
    let below = "/repos/octo/project";
    let answer = |body: &Value| ResponseTemplate::new(200).set_body_json(body);
    let get = |at: &str| Mock::given(method("GET")).and(path(format!("{below}{at}")));
    for sha in [SHA, OPEN, CLOSED, FORK] {
        let of_sha: Vec<&Value> =
            statuses.iter().filter(|(of, _)| *of == sha).flat_map(|(_, all)| all).collect();
        github.mount(get(&format!("/commits/{sha}/statuses")).respond_with(answer(&json!(of_sha))));
    }
    let pull = |number: u64, sha: &str, repository: &str| json!({"number": number, "head": {"ref": "change", "sha": sha, "repo": {"full_name": repository}}});
    let open = json!([pull(3, OPEN, "Octo/project"), pull(4, FORK, "mallory/project")]);
    github.mount(get("/pulls").and(query_param("state", "open")).respond_with(answer(&open)));
    let closed = json!([pull(2, CLOSED, "octo/project")]);
    github.mount(get("/pulls").and(query_param("state", "closed")).respond_with(answer(&closed)));
    github.mount(get("/actions/runs").respond_with(answer(&json!({"total_count": 5, "workflow_runs": []}))));
    let of_run = Mock::given(method("GET")).and(path_regex(r"/actions/runs/\d+$"));
    github.mount(of_run.respond_with(answer(run)));
    let started =
        json!({"workflow_run_id": 80, "html_url": "https://github.com/octo/project/actions/runs/80"});
    github.mount(Mock::given(method("POST")).and(path_regex("/dispatches$")).respond_with(answer(&started)));
    let rerun = Mock::given(method("POST")).and(path_regex("/rerun-failed-jobs$"));
    github.mount(rerun.respond_with(ResponseTemplate::new(201)));
    let set = Mock::given(method("POST")).and(path_regex("/statuses/"));
    github.mount(set.respond_with(ResponseTemplate::new(201).set_body_json(json!({"id": 1}))));
    let comment = Mock::given(method("POST")).and(path_regex("/comments$"));
    github.mount(comment.respond_with(ResponseTemplate::new(201).set_body_json(json!({"id": 2}))));
    let project =
        github.job(Project::new()).env("GITHUB_EVENT_NAME", "schedule").env("LL_TOKEN", "ghs_0123456789");
    let ran = project.run(&[&["until-done"], arguments].concat());
    (ran, github)
}

fn of_own_code() -> Value {
    json!({
        "id": 70, "event": "push", "path": ".github/workflows/chain.yml", "head_sha": SHA,
        "actor": {"id": 9}, "repository": {"id": 1}, "head_repository": {"id": 1},
    })
}

fn requests(github: &Github) -> Vec<String> {
    github.changes().into_iter().map(|(request, _)| request).collect()
}

const DISPATCH: &str = "POST /repos/octo/project/actions/workflows/chain.yml/dispatches";

#[test]
fn what_was_handed_off_by_a_deadline_or_a_quota_goes_on() {
    for (sha, git_ref, reason) in [(SHA, "refs/heads/main", "deadline"), (OPEN, "refs/heads/change", "quota")]
    {
        let (ran, github) = until_done(&[(sha, vec![handed_off(9, 70, reason)])], &of_own_code(), &[]);
        drop(ran.code(0).says("main (main-20251120T234847-70): goes on: https://github.com"));
        let changes = github.changes();
        assert_eq!(changes[0].0, DISPATCH);
        let inputs = json!({"resume-from": "run:70", "sha": sha, "chain-depth": "1"});
        assert_eq!((&changes[0].1["ref"], &changes[0].1["inputs"]), (&json!(git_ref), &inputs));
        // Its status leads to the next run, so that nobody starts it twice.
        let body = &changes[1].1;
        assert_eq!((&body["state"], &body["context"]), (&json!("pending"), &json!("ll-loop/main")));
        let link = body["target_url"].as_str().unwrap();
        let expected = "https://github.com/octo/project/actions/runs/80#ll-loop:main-20251120T234847-70:1@job@commit:pending";
        assert_eq!(link, expected);
        let told = status(12, "main", 80, "main-20251120T234847-70", ":pending");
        let (ran, github) = until_done(&[(sha, vec![told, handed_off(9, 70, reason)])], &of_own_code(), &[]);
        drop(ran.code(0).says("nothing waits"));
        assert_eq!(requests(&github), Vec::<String>::new());
    }
}

#[test]
fn legs_that_were_handed_off_run_again_in_the_same_run() {
    let waits = |id: u64| status(id, "plan", 70, "merge-20251120T234847-70", "@l-again:pending");
    let (ran, github) = until_done(&[(SHA, vec![waits(9)])], &of_own_code(), &[]);
    drop(ran.code(0).says("its legs go on in the same run"));
    let rerun = "POST /repos/octo/project/actions/runs/70/rerun-failed-jobs".to_owned();
    assert_eq!(requests(&github), [rerun, format!("POST /repos/octo/project/statuses/{SHA}")]);
    let body = &github.changes()[1].1;
    assert_eq!(body["description"], "handed off: goes on in run 70");
    let (ran, github) = until_done(&[(SHA, vec![waits(9), waits(8)])], &of_own_code(), &["--max-chain", "1"]);
    drop(ran.code(0).says("nothing goes on"));
    assert_eq!(requests(&github), [format!("POST /repos/octo/project/statuses/{SHA}")]);
}

#[test]
fn what_needs_a_person_or_an_agent_waits() {
    for waits in [
        handed_off(9, 70, "signal"),
        handed_off(9, 70, "llm"),
        handed_off(9, 70, "unheard"),
        question(9, "main", 70, "0123abcd"),
        status(9, "main", 70, "main-20251120T234847-70", ":failure"),
        status(9, "main", 70, "main-20251120T234847-70", ":success"),
    ] {
        let (ran, github) = until_done(&[(SHA, vec![waits])], &of_own_code(), &[]);
        drop(ran.code(0).says("nothing waits"));
        assert_eq!(requests(&github), Vec::<String>::new());
    }
}

#[test]
fn a_question_that_nobody_answered_takes_its_verdict() {
    let mut over = question(9, "main", 70, "0123abcd");
    over["target_url"] = json!(over["target_url"].as_str().unwrap().replace("4000000000000", "1000"));
    let (ran, github) = until_done(&[(OPEN, vec![over])], &of_own_code(), &[]);
    drop(ran.code(0).says("#3: main").says("takes `timeout`"));
    assert_eq!(github.changes()[0].1["inputs"], json!({"resume-from": "run:70", "sha": OPEN}));
}

/// A question and a hand-off by a deadline, of two loops.
fn two_wait() -> Vec<Value> {
    let waits = vec![question(9, "main", 70, "0123abcd"), handed_off(8, 71, "deadline")];
    let named = |(at, mut status): (usize, Value)| {
        status["context"] = json!(format!("ll-loop/main-{at}"));
        status
    };
    waits.into_iter().enumerate().map(named).collect()
}

#[test]
fn what_waits_on_a_closed_pull_request_ends() {
    let (ran, github) = until_done(&[(CLOSED, two_wait())], &of_own_code(), &[]);
    drop(
        ran.code(0).says("#2: main").says("ends, as the pull request is closed: https://").says("cancelled"),
    );
    // The run that asks ends in a job of its own, which has its journal.
    let status = format!("POST /repos/octo/project/statuses/{CLOSED}");
    assert_eq!(requests(&github), [DISPATCH.to_owned(), status.clone(), status]);
    let changes = github.changes();
    assert_eq!(changes[0].1["inputs"], json!({"resume-from": "run:70", "sha": CLOSED}));
    assert_eq!((&changes[1].1["state"], &changes[2].1["state"]), (&json!("pending"), &json!("error")));
}

/// Its branch is gone, or its code was never ours: then only the status and a comment can say it.
#[test]
fn a_question_that_no_job_can_end_is_cancelled_on_the_pull_request() {
    let mut foreign = of_own_code();
    foreign["head_repository"]["id"] = json!(2);
    let (ran, github) = until_done(&[(CLOSED, two_wait())], &foreign, &[]);
    drop(ran.code(0).says("cancelled").says("its journal does not say so: its workflow does not run"));
    let ended = format!("POST /repos/octo/project/statuses/{CLOSED}");
    let said = "POST /repos/octo/project/issues/2/comments".to_owned();
    assert_eq!(requests(&github), [ended.clone(), said, ended]);
    let changes = github.changes();
    assert_eq!((&changes[0].1["state"], &changes[2].1["state"]), (&json!("error"), &json!("error")));
    assert!(changes[1].1["body"].as_str().unwrap().contains("`0123abcd` of"), "{changes:?}");
}

#[test]
fn a_chain_a_day_and_a_call_have_an_end() {
    let waits =
        || vec![handed_off(9, 72, "deadline"), handed_off(8, 71, "deadline"), handed_off(7, 70, "deadline")];
    let (ran, github) = until_done(&[(SHA, waits())], &of_own_code(), &["--max-chain", "2"]);
    drop(ran.code(0).says("the chain had its 2 further runs"));
    assert_eq!(requests(&github), [format!("POST /repos/octo/project/statuses/{SHA}")]);
    for few in [["--max-day", "5"], ["--max-starts", "0"]] {
        let (ran, github) = until_done(&[(SHA, waits())], &of_own_code(), &few);
        drop(ran.code(0).says("as many runs were started as may be"));
        assert_eq!(requests(&github), Vec::<String>::new());
    }
    let (ran, _) = until_done(&[(SHA, waits())], &of_own_code(), &["--max-day", "6"]);
    drop(ran.code(0).says("goes on"));
    let (ran, _) = until_done(&[(SHA, waits())], &of_own_code(), &["--loop", "other"]);
    drop(ran.code(0).says("nothing waits"));
}

#[test]
fn what_a_stranger_proposes_goes_on_nowhere() {
    let (ran, github) = until_done(&[(FORK, vec![handed_off(9, 70, "deadline")])], &of_own_code(), &[]);
    drop(ran.code(0).says("nothing waits"));
    assert_eq!(requests(&github), Vec::<String>::new());
    let mut foreign = of_own_code();
    foreign["head_repository"]["id"] = json!(2);
    let (ran, github) = until_done(&[(OPEN, vec![handed_off(9, 70, "deadline")])], &foreign, &[]);
    drop(ran.code(0).says("not run this repository's own code"));
    assert_eq!(requests(&github), Vec::<String>::new());
}

#[test]
fn a_chain_that_cannot_be_counted_waits() {
    // More statuses than are read: how often the run went on before is not among them.
    let mut statuses = vec![handed_off(5000, 70, "deadline")];
    statuses.extend((1..=2000).map(|id| status(id, "other", 71, "other-20251120T234847-71", ":success")));
    let (ran, github) = until_done(&[(SHA, statuses)], &of_own_code(), &["--max-chain", "1"]);
    let ran = ran.code(0);
    assert!(ran.all().contains("waits: ") && ran.all().contains("more than 2000 statuses"), "{}", ran.all());
    assert_eq!(requests(&github), Vec::<String>::new());
}
