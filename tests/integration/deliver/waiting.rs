//! The status of a run that a later job delivers: it waits for that job, and ends with it, never as a success.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, Request, Respond, ResponseTemplate};

use crate::ci::reported::{Github, committed};
use crate::common::{Project, git};

/// Keeps the statuses of commits, the newest first.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Value>>>);

impl Respond for Kept {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut kept = self.0.lock().unwrap();
        if request.method.as_str() == "POST" {
            let mut status: Value = serde_json::from_slice(&request.body).unwrap();
            status["id"] = json!(kept.len() + 1);
            kept.insert(0, status);
            return ResponseTemplate::new(201).set_body_json(json!({}));
        }
        let is_list = request.url.path().ends_with("/statuses");
        ResponseTemplate::new(200).set_body_json(if is_list { json!(*kept) } else { json!({}) })
    }
}

struct Job {
    github: Github,
    project: Project,
    kept: Kept,
}

impl Job {
    fn new(action: &str) -> Self {
        let text = format!(
            "name: main\ninitial: work\nstates:\n  work: {{action: '{action}', on_yes: done, on_no: failed}}\n  \
             done: {{terminal: true}}\n  failed: {{terminal: true, outcome: failure}}\n"
        );
        let (github, kept) = (Github::silent(), Kept::default());
        github.mount(Mock::given(any()).respond_with(kept.clone()));
        let (project, _) = committed(github.project(&text).file("a.txt", "one\n"));
        Self { github, project, kept }
    }

    /// Runs the loop; returns the id of the run.
    fn run(&self, arguments: &[&str], code: i32) -> String {
        let ran = self.project.run(&[&["run", "main", "--report-dir", "reports"], arguments].concat());
        ran.code(code);
        let result: Value = serde_json::from_str(&self.project.read("reports/result.json")).unwrap();
        result["outputs"]["run-id"].as_str().unwrap().to_owned()
    }

    fn last(&self) -> String {
        self.github.statuses().last().unwrap().clone()
    }

    /// Delivers the bundle of a run; returns what the status says then.
    fn deliver(&self, run: &str, arguments: &[&str], code: i32) -> String {
        let bundle = format!("reports/{run}.llz");
        self.project.run(&[&["deliver", &bundle], arguments].concat()).code(code);
        self.last()
    }

    fn undelivered(&self, run: &str) -> String {
        let mut command = self.project.command(&["action", "undelivered"]);
        assert!(command.env("INPUT_RUN", run).status().unwrap().success());
        self.last()
    }
}

const DELIVERS: &[&str] = &["--on-change", "report", "--delivers"];
const WAITS: &str = "pending: waits for the delivery of changes to 1 file";

#[test]
fn a_success_with_changes_waits_and_nothing_else_does() {
    for (action, arguments, code, status) in [
        ("echo x > a.txt", DELIVERS, 0, WAITS),
        ("true", DELIVERS, 0, "success: success: `work` said yes"),
        ("echo x > a.txt; false", DELIVERS, 1, "failure: failure: `work` said no"),
        (
            "echo x > a.txt",
            &["--delivers"],
            1,
            "failure: failure: the check passes only with changes to 1 file",
        ),
        ("echo x > a.txt", &["--on-change", "report"], 0, "failure: success with changes to 1 file"),
        (
            "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m x",
            DELIVERS,
            0,
            "failure: success with changes to 1 new commit",
        ),
    ] {
        let job = Job::new(action);
        job.run(arguments, code);
        assert!(job.last().starts_with(status), "{action} {arguments:?}: {}", job.last());
    }
}

#[test]
fn a_delivery_ends_the_status_and_never_as_a_success() {
    let job = Job::new("echo x > a.txt");
    let run = job.run(DELIVERS, 0);
    let bare = Project::new();
    git(&bare, &["init", "-q", "--bare"]);
    let url = bare.path().to_string_lossy().into_owned();
    git(&job.project, &["push", "-q", &url, "main"]);
    let to_branch = ["--to", "branch", "--remote", &url];
    assert_eq!(job.deliver(&run, &[&to_branch[..], &["--dry-run"]].concat(), 0), WAITS);
    let said = job.deliver(&run, &to_branch, 0);
    assert!(said.starts_with("failure: delivered in commit "), "{said}");
    let tip = git(&bare, &["rev-parse", "ll-loop/main/main"]);
    assert!(said.contains(tip.trim_end()), "{said}");
    // Once more, there is nothing to say.
    let count = job.github.statuses().len();
    job.deliver(&run, &to_branch, 0);
    job.undelivered(&run);
    assert_eq!(job.github.statuses().len(), count);
}

#[test]
fn what_was_not_delivered_is_a_failure_until_it_is() {
    let job = Job::new("echo x > a.txt");
    let run = job.run(DELIVERS, 0);
    assert_eq!(job.undelivered("main-20250101T000000-000000"), WAITS, "the status of another run");
    assert_eq!(job.undelivered(&run), "failure: not delivered: the log of the job says why");
    // The reason that came first stands.
    job.deliver(&run, &["--to", "patch"], 0);
    assert_eq!(job.undelivered(&run), "failure: not delivered: the log of the job says why");
    let bare = Project::new();
    git(&bare, &["init", "-q", "--bare"]);
    let url = bare.path().to_string_lossy().into_owned();
    let to_branch = ["--to", "branch", "--remote", &url];
    // There is no base.
    job.deliver(&run, &to_branch, 5);
    git(&job.project, &["push", "-q", &url, "main"]);
    let said = job.deliver(&run, &to_branch, 0);
    assert!(said.starts_with("failure: delivered in commit "), "{said}");
}

#[test]
fn a_refusal_is_said_in_the_status() {
    let job = Job::new("echo x > Cargo.lock; git add Cargo.lock");
    let run = job.run(DELIVERS, 0);
    let said = job.deliver(&run, &["--to", "patch"], 5);
    assert!(
        said.starts_with("failure: not delivered: files that people have to change themselves"),
        "{said}"
    );
    let kept = job.kept.0.lock().unwrap();
    assert!(kept.iter().all(|status| status["state"] != "success"), "{kept:?}");
}

#[test]
fn a_run_that_is_handed_off_waits_for_its_next_part() {
    let job = Job::new("echo x > a.txt; echo CONTEXT_HANDOFF: later");
    let run = job.run(DELIVERS, 75);
    let said = job.last();
    assert!(said.starts_with("pending: handed off"), "{said}");
    job.deliver(&run, &["--to", "patch"], 5);
    assert_eq!(job.undelivered(&run), said);
}
