//! What GitHub says about an event and about artifacts, much of which strangers write: nothing that is not a commit is
//! taken for one, and no commit of a stranger for one of ours.
//!
//! The first line is the name of the event; the rest is its payload, and the answers of services too.

use std::cell::RefCell;
use std::io::{Seek as _, Write as _};

use ll_loop::internals::base::name::LoopName;
use ll_loop::internals::ci::Provider;
use ll_loop::internals::definition::vendored::LockFile;
use ll_loop::internals::forge::github::artifacts::{FoundArtifact, HeadRepository, RunsMeant, origin};
use ll_loop::internals::forge::github::code_origin::CodeOrigin;
use ll_loop::internals::forge::github::repository::RepositoryName;
use ll_loop::internals::forge::github::results::{ListedArtifact, check_name};
use ll_loop::internals::forge::github::workflow_event::{WorkflowEvent, is_sha, short};
use ll_loop::internals::report::nights::History;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::bytes::Plan;
use crate::{Target, note};

/// See above.
pub const TARGET: Target = Target {
    name: "events",
    run,
    seeds,
    words: &[
        "pull_request",
        "pull_request_target",
        "pull_request_review",
        "issue_comment",
        "issues",
        "workflow_run",
        "push",
        "merge_group",
        "schedule",
        "workflow_dispatch",
        "fork",
        "\"head\"",
        "\"base\"",
        "\"sha\"",
        "\"repo\"",
        "\"ref\"",
        "\"full_name\"",
        "\"number\"",
        "\"repository\"",
        "\"before\"",
        "\"after\"",
        "\"head_sha\"",
        "\"pull_requests\"",
        "a/b",
        "A/B",
        "mallory/b",
        "null",
        "\"\"",
        "0000000000000000000000000000000000000000",
        "1111111111111111111111111111111111111111",
        "2222222222222222222222222222222222222222",
        "3333333333333333333333333333333333333333",
        "18446744073709551615",
        "-1",
        "\"artifacts\"",
        "\"workflow_run\"",
        "\"head_repository_id\"",
        "\"repository_id\"",
        "\"expired\"",
        "ll-loop-a-r1-a2",
        "\"digest\":\"sha256:\"",
        "\n",
        "../",
        "%2e%2e",
        "\"nights\"",
    ],
};

const CHOSEN: &str = "1111111111111111111111111111111111111111";
const STRANGE: &str = "4444444444444444444444444444444444444444";

fn seeds() -> Vec<Vec<u8>> {
    let head = |repo: &str| {
        format!(
            r#"{{"number":7,"pull_request":{{"number":7,"head":{{"sha":"{}","ref":"x","repo":{repo}}},"base":{{"sha":"{}"}}}},"repository":{{"full_name":"a/b"}}}}"#,
            "2".repeat(40),
            "3".repeat(40)
        )
    };
    let mut all = Vec::new();
    for name in ["pull_request", "pull_request_target"] {
        for repo in [r#"{"full_name":"a/b"}"#, r#"{"full_name":"mallory/b"}"#, "null"] {
            all.push(format!("{name}\n{}", head(repo)));
        }
    }
    let sha = "2".repeat(40);
    all.push(format!(
        r#"workflow_run
{{"workflow_run":{{"head_sha":"{sha}","head_repository":{{"full_name":"a/b"}},"pull_requests":[{{"number":3,"base":{{"sha":"{sha}"}}}}]}}}}"#
    ));
    all.push(
        "issue_comment\n{\"issue\":{\"number\":4,\"pull_request\":{}},\"comment\":{\"body\":\"/run\"}}"
            .to_owned(),
    );
    all.push(format!("push\n{{\"before\":\"{sha}\"}}"));
    all.push(format!("merge_group\n{{\"merge_group\":{{\"base_sha\":\"{sha}\"}}}}"));
    all.push(
        r#"artifacts
{"artifacts":[{"id":5,"name":"ll-loop-a-r1-a2","size_in_bytes":3,"digest":"sha256:0","created_at":"x","expired":false,"workflow_run":{"id":1,"repository_id":1,"head_repository_id":1,"head_branch":"main","head_sha":"s"}},{"id":6,"name":"ll-loop-a-r1-a1"}]}"#
            .to_owned(),
    );
    all.push(
        r#"listed
{"artifacts":[{"workflow_run_backend_id":"a","workflow_job_run_backend_id":"b","database_id":"7","name":"n","size":"3","created_at":null,"digest":null}]}"#
            .to_owned(),
    );
    all.push(
        r#"nights
{"schema":1,"loop":"a","nights":[{"run_id":"a-1","at":"2026-01-01T00:00:00.000Z","outcome":"success","cycles":1,"fixed":["x"],"flaky":[],"left":[]}]}"#
            .to_owned(),
    );
    all.push(format!(
        r#"lock
{{"version":1,"loops":[{{"source":"github:a/b/c.yaml","server":"x","ref":"refs/tags/v1","commit":"{sha}","seen":"2026-01-01T00:00:00.000Z","files":{{"c.yaml":"{}"}}}}]}}"#,
        "0".repeat(64)
    ));
    all.into_iter().map(String::into_bytes).collect()
}

thread_local! {
    static FILE: RefCell<NamedTempFile> = RefCell::new(NamedTempFile::new().expect("a file can be made"));
}

fn run(data: &[u8]) {
    let mut plan = Plan::new(data);
    let name = String::from_utf8_lossy(plan.line()).into_owned();
    let payload = plan.rest();
    FILE.with_borrow_mut(|file| {
        let written =
            file.as_file().set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(payload));
        written.expect("the file can be written");
        event(&name, payload, &file.path().display().to_string());
    });
    if let Ok(value) = serde_json::from_slice::<Value>(payload) {
        let list = value.get("artifacts").cloned().unwrap_or(value);
        artifacts(&list);
    }
    if let Ok(text) = std::str::from_utf8(payload) {
        drop(check_name(text));
        if let Ok(lock) = LockFile::parse(text) {
            note(("lock", lock.loops.len().min(3)));
            assert_eq!(LockFile::parse(&lock.text()).as_ref(), Ok(&lock));
            for shared in lock.loops.iter().map(|one| one.name().expect("a loop in a lock file has a name")) {
                let has_names = shared.as_str().split('/').all(|part| !matches!(part, "" | "." | ".."));
                assert!(has_names && !shared.as_str().contains(['\\', '#', '\n']), "{shared}");
            }
        }
        if let Some(repository) = RepositoryName::parse(&name) {
            let shown = repository.to_string();
            assert_eq!(shown.matches('/').count(), 1, "{shown}");
            assert!(shown.split('/').all(|part| !matches!(part, "" | "." | "..")), "{shown}");
            assert!(!shown.contains(['?', '#', '%', ' ', '\\']), "{shown}");
        }
    }
    let a = LoopName::parse("a").expect("it is a name");
    if let Ok(history) = History::read(payload, &a) {
        note(("history", history.nights().len().min(5)));
        let again = History::read(history.to_json().as_bytes(), &a).expect("what was written can be read");
        assert_eq!(again, history);
        drop(history.recurring());
    }
}

fn event(name: &str, payload: &[u8], path: &str) {
    let env = |variable: &str| {
        let value = match variable {
            "GITHUB_ACTIONS" => "true",
            "GITHUB_EVENT_NAME" => name,
            "GITHUB_EVENT_PATH" => path,
            "GITHUB_SHA" => CHOSEN,
            "GITHUB_REPOSITORY" => "a/b",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let event = WorkflowEvent::read(&env);
    for sha in [&event.sha, &event.base].into_iter().flatten() {
        assert!(is_sha(sha) && short(sha).len() == 7, "{sha} is not a commit");
    }
    if let Some(target) = &event.dispatch_ref {
        assert!(target.starts_with("refs/heads/") || target.starts_with("refs/tags/"), "{target}");
    }
    note((
        event.sha.is_some(),
        event.base.is_some(),
        event.pull_request.is_some(),
        event.dispatch_ref.is_some(),
    ));
    let doubt = event.doubt(STRANGE);
    note((event.is_open_to_outsiders(), doubt.is_some()));
    let names_it = payload.windows(8).any(|bytes| bytes == b"44444444") || payload.contains(&b'\\');
    if event.is_open_to_outsiders() && !names_it {
        assert!(doubt.is_some(), "a commit that nobody names is trusted");
    }
    assert_eq!(event.doubt(CHOSEN), None, "the commit that the runner chose is trusted");
    let provider = Provider::detect(&env);
    drop(provider.job());
    drop(provider.refusal(&env));
}

fn artifacts(list: &Value) {
    if let Ok(found) = serde_json::from_value::<Vec<FoundArtifact>>(list.clone()) {
        note(("found", found.len().min(4)));
        if let Ok(latest) = RunsMeant::of_loop(None, None).choose(&found, true) {
            assert!(!latest.expired && latest.name.starts_with("ll-loop-"));
        }
        for artifact in &found {
            let origin = origin(artifact, Some(1));
            note((origin == CodeOrigin::Own, origin == CodeOrigin::Foreign));
            let of_another = !matches!(artifact.head, HeadRepository::Is(1));
            assert!(!(of_another && origin == CodeOrigin::Own), "{artifact:?} is taken for our own");
        }
    }
    if let Ok(listed) = serde_json::from_value::<Vec<ListedArtifact>>(list.clone()) {
        note(("listed", listed.len().min(4)));
        for listed in listed {
            drop(FoundArtifact::from(listed));
        }
    }
}
