//! What GitHub is told about a run: the real program, and a server in the place of GitHub's.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use wiremock::matchers::{method, path_regex};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::common::{CHECK_FIX, Project, Ran, git, signal, wait_for};

/// A server that GitHub's requests go to, with a thread of its own.
pub(crate) struct Github {
    runtime: Runtime,
    server: MockServer,
}

impl Github {
    /// Makes one that does everything it is asked for.
    pub(crate) fn willing() -> Self {
        let github = Self::silent();
        let fine = |body: Value| ResponseTemplate::new(200).set_body_json(body);
        github.mount(
            Mock::given(method("GET")).and(path_regex("/user$")).respond_with(fine(json!({"login": "ann"}))),
        );
        github.mount(Mock::given(method("GET")).respond_with(fine(json!([]))));
        github.mount(Mock::given(path_regex(".*")).respond_with(fine(json!({"id": 5}))));
        github
    }

    /// Makes one that knows nothing.
    pub(crate) fn silent() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(MockServer::start());
        Self { runtime, server }
    }

    pub(crate) fn address(&self) -> String {
        self.server.uri()
    }

    pub(crate) fn mount(&self, mock: Mock) {
        self.runtime.block_on(mock.mount(&self.server));
    }

    /// Returns the requests there were: method and path, and the body.
    pub(crate) fn received(&self) -> Vec<(String, Value)> {
        let requests = self.runtime.block_on(self.server.received_requests()).unwrap();
        let body = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or(Value::Null);
        requests.iter().map(|r| (format!("{} {}", r.method, r.url.path()), body(&r.body))).collect()
    }

    /// Returns those that were to change something.
    pub(crate) fn changes(&self) -> Vec<(String, Value)> {
        self.received().into_iter().filter(|(request, _)| !request.starts_with("GET ")).collect()
    }

    /// Returns the statuses that were set, each as its state and description.
    pub(crate) fn statuses(&self) -> Vec<String> {
        let received = self.received();
        let set = received
            .iter()
            .filter(|(request, _)| request.starts_with("POST ") && request.contains("/statuses/"));
        set.map(|(_, body)| {
            format!("{}: {}", body["state"].as_str().unwrap(), body["description"].as_str().unwrap())
        })
        .collect()
    }

    /// Puts a project into a job of this GitHub.
    pub(crate) fn job(&self, project: Project) -> Project {
        project
            .in_github_job()
            .env("GITHUB_API_URL", self.server.uri())
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_REPOSITORY", "octo/project")
            .env("GITHUB_EVENT_NAME", "push")
            .env("GITHUB_SHA", SHA)
            .env("GITHUB_REF", "refs/heads/main")
            .env("GITHUB_WORKFLOW_REF", "octo/project/.github/workflows/fix.yml@refs/heads/main")
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_RUN_ATTEMPT", "1")
    }

    /// Makes a project with the loop `main` in a job that has a token.
    pub(crate) fn project(&self, text: &str) -> Project {
        self.job(Project::with_loop(text)).env("GITHUB_TOKEN", "ghs_0123456789")
    }
}

/// Commits the files of a project, and lets the job be about this commit.
pub(crate) fn committed(project: Project) -> (Project, String) {
    git(&project, &["init", "-q", "-b", "main"]);
    // What the runner keeps elsewhere.
    project.write(".git/info/exclude", "/out\n/summary\n/event.json\n/reports\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    let sha = git(&project, &["rev-parse", "HEAD"]).trim_end().to_owned();
    (project.env("GITHUB_SHA", sha.clone()), sha)
}

pub(crate) const SHA: &str = "1111111111111111111111111111111111111111";
const HEAD: &str = "2222222222222222222222222222222222222222";

const PULL_REQUEST: &str = r#"{
  "pull_request": {
    "number": 7,
    "head": {"ref": "fix", "sha": "2222222222222222222222222222222222222222", "repo": {"full_name": "octo/project"}},
    "base": {"ref": "main", "sha": "3333333333333333333333333333333333333333"}
  }
}"#;

fn on_pull_request(project: Project) -> Project {
    let path = project.at("event.json").to_string_lossy().into_owned();
    project
        .file("event.json", PULL_REQUEST)
        .env("GITHUB_EVENT_NAME", "pull_request")
        .env("GITHUB_EVENT_PATH", path)
}

#[test]
fn the_status_of_the_commit_is_set_where_there_is_a_token() {
    let github = Github::willing();
    let (project, sha) = committed(github.project(CHECK_FIX).file(".gitignore", "flag\n"));
    project.run(&["run", "main"]).code(0);
    let mut changes = github.changes();
    for (_, body) in &mut changes {
        let page = body.as_object_mut().unwrap().remove("target_url").unwrap();
        assert!(
            page.as_str()
                .unwrap()
                .starts_with("https://github.com/octo/project/actions/runs/77#ll-loop:main-")
        );
    }
    let of = |state: &str, description: &str| {
        let body = json!({"state": state, "context": "ll-loop/main", "description": description});
        (format!("POST /repos/octo/project/statuses/{sha}"), body)
    };
    assert_eq!(changes, [of("pending", "running"), of("success", "success: `check` said yes")]);
}

#[test]
fn the_status_is_there_while_the_run_goes_on() {
    let github = Github::willing();
    let project = github.project(
        "name: main\ninitial: a\nstates:\n  a: {action: touch begun; sleep 60, next: done}\n  done: {terminal: true}\n",
    );
    let child = project.start_until(&["run", "main"], "begun");
    wait_for(|| github.statuses() == ["pending: running"]);
    crate::common::signal(&child, rustix::process::Signal::INT);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(github.statuses()[1], "error: interrupted: SIGINT in `a`");
}

#[test]
fn who_stops_a_run_that_waits_for_an_answer_at_its_end_is_heard() {
    let github = Github::silent();
    let later = || ResponseTemplate::new(200).set_body_json(json!([])).set_delay(Duration::from_mins(2));
    github.mount(Mock::given(path_regex("/statuses|/status$")).respond_with(later()));
    let (project, _) = committed(github.project(CHECK_FIX).file(".gitignore", "flag\n"));
    let child = project.start_until(&["run", "main", "--on-change", "report"], ".loops/.history/main");
    signal(&child, Signal::INT);
    let ran = Ran::of(&child.wait_with_output().unwrap()).code(0);
    assert!(ran.all().contains("it was not waited for any longer"), "{}", ran.all());
}

#[test]
fn without_a_token_or_a_word_nobody_is_told() {
    let github = Github::willing();
    let ran = github.job(Project::with_loop(CHECK_FIX)).run(&["run", "main"]).code(0);
    assert_eq!(ran.stderr, "");
    github.project(CHECK_FIX).run(&["run", "main", "--status", "--no-status"]).code(0);
    github.project(CHECK_FIX).run(&["run", "main", "--no-ci"]).code(0);
    assert_eq!(github.received(), []);
}

#[test]
fn what_was_asked_for_and_cannot_be_is_said_and_changes_nothing() {
    let github = Github::willing();
    let without_token = github.job(Project::with_loop(CHECK_FIX));
    let ran = without_token.run(&["run", "main", "--status"]).code(0);
    let _ran = ran.says("warning: github gets no report of the run: there is no token");
    let ran = github.project(CHECK_FIX).run(&["run", "--ci=plain", "main", "--comment"]).code(0);
    let _ran = ran.says("warning: this job has no GitHub to report the run to");
    let ran = Project::with_loop(CHECK_FIX).run(&["run", "main", "--check"]).code(0);
    let _ran = ran.says("warning: the run will not be reported at its commit");
    assert_eq!(github.received(), []);
    let ran = github.project(CHECK_FIX).env("GITEA_ACTIONS", "true").run(&["run", "main", "--check"]).code(0);
    let _ran = ran.says("warning: there will be no check run: gitea does not support them");
    assert_eq!(github.statuses().len(), 2);
}

#[test]
fn a_pull_request_gets_its_check_run_and_its_comment() {
    let github = Github::willing();
    let text = "\
name: main
initial: check
states:
  check: {action: 'echo \"src/a.py:3:7: error: bad\"; exit 1', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";
    let project = on_pull_request(github.project(text).file("src/a.py", "1\n2\n3\n"));
    project.run(&["run", "main", "--check", "--comment", "--status-context", "quality"]).code(1);
    let received = github.changes();
    let requests: Vec<&str> = received.iter().map(|(request, _)| request.as_str()).collect();
    assert_eq!(
        requests,
        [
            &format!("POST /repos/octo/project/statuses/{HEAD}"),
            "POST /repos/octo/project/check-runs",
            &format!("POST /repos/octo/project/statuses/{HEAD}"),
            "PATCH /repos/octo/project/check-runs/5",
            "POST /repos/octo/project/issues/7/comments",
        ]
    );
    assert_eq!((&received[1].1["name"], &received[1].1["head_sha"]), (&json!("quality"), &json!(HEAD)));
    assert_eq!(received[2].1["description"], "failure: `check` said no");
    let annotations = received[3].1["output"]["annotations"].as_array().unwrap();
    let places: Vec<_> =
        annotations.iter().map(|one| (one["path"].as_str().unwrap(), &one["start_line"])).collect();
    assert_eq!(places, [(".loops/main.yaml", &json!(4)), ("src/a.py", &json!(3))]);
    let comment = received[4].1["body"].as_str().unwrap();
    assert!(comment.starts_with("<!-- ll-loop/main -->\n## ❌ `main`"), "{comment}");
    let (_, mark) = comment.trim_end().rsplit_once(":1@").unwrap_or_else(|| panic!("{comment}"));
    assert!(mark.ends_with(&format!("@{}:failure)", &HEAD[..12])), "{comment}");
}

#[test]
fn the_pull_request_of_a_fork_costs_one_notice() {
    let github = Github::silent();
    let denied = json!({"message": "Resource not accessible by integration"});
    github
        .mount(Mock::given(path_regex(".*")).respond_with(ResponseTemplate::new(403).set_body_json(denied)));
    let project = on_pull_request(github.project(CHECK_FIX));
    let ran = project.run(&["run", "main", "--check", "--comment"]).code(0);
    let notices: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("::notice")).collect();
    assert_eq!(
        notices,
        [
            "::notice title=github::not reported, because the token may not: the commit status (`statuses: write`), the check run (`checks: write`), the comment (`pull-requests: write`). Give the job these `permissions`, or do not ask for it; on a pull request from a fork nothing can give them"
        ]
    );
    assert_eq!(ran.stderr, "");
    assert!(project.read("out").contains("outcome<<") && project.read("summary").contains("main"));
}

#[test]
fn an_answer_that_is_none_costs_a_warning() {
    let github = Github::silent();
    github.mount(
        Mock::given(path_regex(".*")).respond_with(ResponseTemplate::new(200).set_body_string("<html>")),
    );
    let ran = github.project(CHECK_FIX).run(&["run", "main"]).code(0);
    let _ran =
        ran.says("warning: the commit status is not up to date: the answer to POST /repos/octo/project");
}

#[test]
fn no_action_and_no_template_sees_the_token() {
    let github = Github::willing();
    let text = "\
name: main
initial: a
states:
  a: {action: 'env > seen; echo \"[${env.LL_TOKEN:default=none}]\" >> seen', next: b}
  b: {action: echo secret-of-the-job, on_yes: done}
  done: {terminal: true}
";
    let project = github.job(Project::with_loop(text)).env("LL_TOKEN", "secret-of-the-job");
    let ran = project.run(&["run", "main", "--pass-token"]).code(0);
    assert!(!project.read("seen").contains("secret-of-the-job"));
    assert!(project.read("seen").contains("[none]"));
    assert!(!ran.all().contains("secret-of-the-job"), "{}", ran.all());
    assert_eq!(github.statuses().len(), 2, "and yet it was used");
}

#[test]
fn a_run_within_a_run_reports_only_when_asked() {
    let github = Github::willing();
    let outer = format!(
        "name: outer\ninitial: a\nstates:\n  a: {{action: '{} run main', on_yes: done, on_no: failed}}\n  done: {{terminal: true}}\n  failed: {{terminal: true}}\n",
        crate::common::LL_LOOP.as_str()
    );
    let project = github.project(CHECK_FIX).file(".loops/outer.yaml", &outer);
    project.run(&["run", "outer", "--pass-token"]).code(0);
    let received = github.changes();
    let contexts: Vec<_> = received.iter().map(|(_, body)| &body["context"]).collect();
    assert_eq!(contexts, ["ll-loop/outer", "ll-loop/outer"]);
}
