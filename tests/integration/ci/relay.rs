//! `ll-loop publish`: what a run for a pull request from a fork left becomes the status of its commit, and no lie in it does.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, ResponseTemplate};

use crate::ci::reported::{Github, committed};
use crate::common::{CHECK_FIX, Project, Ran, git};

/// What a job of a pull request left: the files of its artifact, and the commit that it was at.
pub(crate) struct Left {
    pub(crate) zip: Vec<u8>,
    pub(crate) sha: String,
}

/// Runs a loop in the job 77 of a pull request from a fork, which has no token.
pub(crate) fn left(text: &str, more: &[(&str, &str)], arguments: &[&str]) -> Left {
    left_by("main", text, more, arguments)
}

fn left_by(name: &str, text: &str, more: &[(&str, &str)], arguments: &[&str]) -> Left {
    let project = Project::new().file(&format!(".loops/{name}.yaml"), text);
    let (project, sha) = committed(Github::silent().job(project));
    let project = project.env("GITHUB_EVENT_NAME", "pull_request");
    let project = more.iter().fold(project, |project, (name, value)| project.env(name, *value));
    let _ended = project.run(&[&["run", name, "--report-dir", "reports"], arguments].concat());
    zipped(&project, sha)
}

fn zipped(project: &Project, sha: String) -> Left {
    let reports: Vec<String> = fs::read_dir(project.at("reports"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let zip = project.at("artifact.zip");
    let packed = Command::new("python3")
        .args(["-m", "zipfile", "-c", zip.to_str().unwrap()])
        .args(reports)
        .current_dir(project.at("reports"))
        .status();
    assert!(packed.unwrap().success());
    Left { zip: fs::read(zip).unwrap(), sha }
}

/// A server that has these artifacts of the run 77.
pub(crate) fn github(artifacts: &[(&str, &Left)]) -> Github {
    let github = Github::silent();
    let answer = |body: Value| ResponseTemplate::new(200).set_body_json(body);
    let get = |at: String| Mock::given(method("GET")).and(path(format!("/repos/octo/project/{at}")));
    let mut rows = Vec::new();
    for (id, (name, left)) in artifacts.iter().enumerate() {
        let of = json!({"id": 77, "repository_id": 1, "head_repository_id": 2});
        rows.push(json!({"id": id, "name": name, "expired": false, "workflow_run": of}));
        let moved =
            ResponseTemplate::new(302).insert_header("location", format!("{}/blob/{id}", github.address()));
        github.mount(get(format!("actions/artifacts/{id}/zip")).respond_with(moved));
        let blob = ResponseTemplate::new(200).set_body_bytes(left.zip.clone());
        github.mount(Mock::given(method("GET")).and(path(format!("/blob/{id}"))).respond_with(blob));
    }
    github
        .mount(get("actions/runs/77/artifacts".to_owned()).respond_with(answer(json!({"artifacts": rows}))));
    let head = |sha: &str| json!({"number": 9, "head": {"sha": sha}, "base": {"ref": "release/1"}});
    let shas: Vec<&str> = artifacts.iter().map(|(_, left)| left.sha.as_str()).collect();
    let pulls: Vec<Value> = std::iter::once("0").chain(shas).map(head).collect();
    github.mount(get("pulls".to_owned()).respond_with(answer(json!(pulls))));
    github.mount(get("issues/9/comments".to_owned()).respond_with(answer(json!([]))));
    github.mount(Mock::given(method("GET")).and(path("/user")).respond_with(answer(json!({"login": "ann"}))));
    github.mount(Mock::given(method("POST")).respond_with(answer(json!({"id": 1}))));
    github
}

/// Publishes what the run 77 left, in a job that it set off.
fn publish(github: &Github, run: &Value, arguments: &[&str]) -> Ran {
    publishing(github, run).run(&[&["publish"], arguments].concat())
}

/// A job that the run 77 set off.
pub(crate) fn publishing(github: &Github, run: &Value) -> Project {
    let project = github.job(Project::with_loop(CHECK_FIX));
    let payload = project.at("event.json").to_string_lossy().into_owned();
    project
        .file("event.json", &json!({"workflow_run": run}).to_string())
        .env("GITHUB_EVENT_NAME", "workflow_run")
        .env("GITHUB_EVENT_PATH", payload)
        .env("GITHUB_RUN_ID", "88")
        .env("LL_TOKEN", "ghs_geheim")
        .env("LL_RETRY_WAIT", "1ms")
}

pub(crate) fn run(sha: &str, conclusion: &str) -> Value {
    json!({
        "id": 77, "head_sha": sha, "conclusion": conclusion, "run_attempt": 1,
        "html_url": "https://github.com/octo/project/actions/runs/77",
        "head_branch": "fix", "head_repository": {"full_name": "fork/project"},
    })
}

pub(crate) const PASSING: &str = "name: main\ninitial: check\nstates:\n  check: {action: 'true', on_yes: done, on_no: failed}\n  done: {terminal: true}\n  failed: {terminal: true}\n";

/// Returns the statuses that were set: commit, context, and what they say.
fn set(github: &Github) -> Vec<(String, String, String)> {
    let text = |body: &Value, name: &str| body[name].as_str().unwrap().to_owned();
    let changes = github.changes().into_iter().filter(|(request, _)| request.contains("/statuses/"));
    changes
        .map(|(request, body)| {
            let sha = request.rsplit('/').next().unwrap().to_owned();
            let page = text(&body, "target_url");
            assert!(page.starts_with("https://github.com/octo/project/actions/runs/77#"), "{page}");
            (sha, text(&body, "context"), format!("{}: {}", text(&body, "state"), text(&body, "description")))
        })
        .collect()
}

#[test]
fn the_run_of_a_fork_gets_its_status_and_its_comment() {
    let of_fork = left(PASSING, &[], &[]);
    let github = github(&[("ll-loop-main-test-r77-a1", &of_fork)]);
    let ran = publish(&github, &run(&of_fork.sha, "success"), &["--loop", "main", "--comment"]).code(0);
    assert_eq!(ran.stdout, "main: success: success: `check` said yes\n");
    let expected =
        (of_fork.sha.clone(), "ll-loop/main".to_owned(), "success: success: `check` said yes".to_owned());
    assert_eq!(set(&github), [expected]);
    let comments: Vec<_> =
        github.changes().into_iter().filter(|(request, _)| request.ends_with("/issues/9/comments")).collect();
    assert_eq!(comments.len(), 1);
    assert!(comments[0].1["body"].as_str().unwrap().starts_with("<!-- ll-loop/main -->\n## ✅"));
}

#[test]
fn each_leg_has_a_status_and_the_worst_of_several_stands() {
    let (green, red) = (
        left(PASSING, &[], &["--key", "a"]),
        left(&PASSING.replace("'true'", "'false'"), &[], &["--key", "b"]),
    );
    let legs = [("ll-loop-main-a-r77-a1", &green), ("ll-loop-main-b-r77-a1", &red)];
    let github = github(&legs);
    // Both began at commits of their own repositories, so only one of them is at this one.
    publish(&github, &run(&green.sha, "failure"), &["--loop", "main"]).code(0);
    let said: Vec<_> = set(&github).into_iter().map(|(_, context, said)| (context, said)).collect();
    let contradiction = "error: the report says success, and the run of the workflow ended with failure";
    assert_eq!(said[0], ("ll-loop/main (a)".to_owned(), contradiction.to_owned()));
    assert_eq!(said[1].0, "ll-loop/main");
    assert!(
        said[1].1.starts_with("error: the report `ll-loop-main-b-r77-a1` is refused: it is of the commit")
    );
}

#[track_caller]
fn check_refused(of_fork: &Left, name: &str, sha: &str, why: &str) {
    let github = github(&[(name, of_fork)]);
    let ran = publish(&github, &run(sha, "success"), &["--loop", "main"]).code(0);
    let said = set(&github);
    assert_eq!(
        (said.len(), said[0].0.as_str(), said[0].1.as_str()),
        (1, sha, "ll-loop/main"),
        "{}",
        ran.all()
    );
    assert!(said[0].2.starts_with("error: ") && said[0].2.contains(why), "{said:?}");
}

#[test]
fn no_lie_of_a_bundle_is_repeated() {
    const NAME: &str = "ll-loop-main-test-r77-a1";
    let elsewhere = left(PASSING, &[("GITHUB_REPOSITORY", "evil/project")], &[]);
    check_refused(&elsewhere, NAME, &elsewhere.sha, "of the repository github.com/evil/project");
    let of_fork = left(PASSING, &[("GITHUB_REPOSITORY", "fork/project")], &[]);
    check_refused(&of_fork, NAME, &of_fork.sha, "of another run of a workflow");
    let another = left(PASSING, &[("GITHUB_RUN_ID", "7")], &[]);
    check_refused(&another, NAME, &another.sha, "of another run of a workflow");
    let longer = left(PASSING, &[("GITHUB_RUN_ID", "777")], &[]);
    check_refused(&longer, NAME, &longer.sha, "of another run of a workflow");
    let other = left(PASSING, &[], &[]);
    check_refused(&other, NAME, &"4".repeat(40), "of the commit");
    let renamed = left_by("other", PASSING, &[], &[]);
    check_refused(&renamed, NAME, &renamed.sha, "about the loop `other`");
    let leg = left(PASSING, &[], &["--key", "b"]);
    check_refused(&leg, "ll-loop-main-a-r77-a1", &leg.sha, "names a key under which nothing is stored");
    let earlier = left(PASSING, &[("GITHUB_RUN_ATTEMPT", "2")], &[]);
    check_refused(&earlier, "ll-loop-main-test-r77-a2", &earlier.sha, "left no report of this loop");
    let garbage = Left { zip: b"PK\x03\x04 not a zip".to_vec(), sha: other.sha.clone() };
    check_refused(&garbage, NAME, &garbage.sha, "is refused");
    // Of a loop that is not asked for, nothing is said but that the one that is asked for is missing.
    check_refused(&other, "ll-loop-deploy-test-r77-a1", &other.sha, "left no report of this loop");
}

#[test]
fn the_merge_of_a_pull_request_stands_for_its_head() {
    let of_fork = left(PASSING, &[], &[]);
    let (head, base, other) = ("5".repeat(40), "6".repeat(40), "7".repeat(40));
    let on_branch = json!({"total_commits": 0});
    for (parents, compared, state) in [
        (vec![&base, &head], &on_branch, "success"),
        (vec![&head], &on_branch, "error"),
        (vec![&base, &other], &on_branch, "error"),
        // None of these is a merge that the server has made.
        (vec![&head, &base], &on_branch, "error"),
        (vec![&base, &head, &other], &on_branch, "error"),
        (vec![&base, &head], &json!({"total_commits": 1}), "error"),
        (vec![&base, &head], &json!({}), "error"),
    ] {
        let github = github(&[("ll-loop-main-test-r77-a1", &of_fork)]);
        let get = |at: String, body: &Value| {
            let answer = ResponseTemplate::new(200).set_body_json(body);
            let at = path(format!("/repos/octo/project/{at}"));
            github.mount(Mock::given(method("GET")).and(at).respond_with(answer));
        };
        let listed: Vec<Value> = parents.iter().map(|sha| json!({ "sha": sha })).collect();
        get(format!("git/commits/{}", of_fork.sha), &json!({ "parents": listed }));
        get(format!("compare/release%2F1...{base}"), compared);
        let _ran = publish(&github, &run(&head, "success"), &["--loop", "main"]);
        let said = set(&github);
        let is_known = compared.get("total_commits").is_some();
        assert_eq!(said.len(), usize::from(is_known), "what the server does not say is not guessed");
        for (sha, _, words) in said {
            assert!(sha == head && words.starts_with(state), "{parents:?}: {words}");
        }
    }
}

#[test]
fn only_a_run_that_is_over_and_set_off_the_job_is_published() {
    let github = github(&[]);
    let open = publish(&github, &run(&"1".repeat(40), ""), &["--loop", "main"]).code(0);
    assert!(open.stdout.contains("left no report"), "{}", open.all());
    let mut going_on = run(&"1".repeat(40), "");
    going_on["conclusion"] = Value::Null;
    publish(&github, &going_on, &["--loop", "main"]).code(2).says("the run 77 is not over");
    publish(&github, &json!({"id": 77, "head_sha": "../x"}), &["--loop", "main"])
        .code(2)
        .says("set off this job");
    publish(&github, &run(&"1".repeat(40), "success"), &[]).code(2);
    let project = github.project(CHECK_FIX);
    project.run(&["publish", "--loop", "main"]).code(2).says("on: workflow_run");
    git(&project, &["init", "-q"]);
}

#[test]
fn a_token_that_may_not_is_told_which_permission_helps() {
    let of_fork = left(PASSING, &[], &[]);
    let github = Github::silent();
    let denied = json!({"message": "Resource not accessible by integration"});
    github.mount(Mock::given(method("GET")).respond_with(ResponseTemplate::new(403).set_body_json(denied)));
    let ran = publish(&github, &run(&of_fork.sha, "success"), &["--loop", "main"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("actions: read"), "{}", ran.all());
}
