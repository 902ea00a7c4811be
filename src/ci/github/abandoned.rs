//! Statuses that were left pending: Gitea and Forgejo take a job's token away as soon as somebody cancels the job, and what was
//! pending would stay so for ever. The next run of the loop ends them.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::commit_status;
use super::reporter::Channel;
use super::target::{Elsewhere, ReportTarget};
use crate::ci::reported::FinalReport;
use crate::forge::github::api::ApiError;
use crate::forge::github::other_run::OtherRun;

/// How many of the newest cancelled runs are looked at. Each costs a request, and the next run of the loop looks again.
const MOST: &str = "10";

/// What the statuses say from then on.
const CANCELLED: &str = "cancelled";

/// Ends the statuses of cancelled jobs, and says nothing of the run itself.
pub(super) struct AbandonedChannel;

impl Channel for AbandonedChannel {
    fn name(&self) -> &'static str {
        "status of a cancelled run"
    }

    fn permission(&self) -> &'static str {
        "statuses: write"
    }

    /// A token that may not read runs or set statuses is not a fault of this run, which was not asked for it.
    fn begin(&mut self, target: &ReportTarget) -> Result<(), ApiError> {
        let _unknown = end_cancelled(target);
        Ok(())
    }

    fn end(&mut self, _target: &ReportTarget, _report: &FinalReport) -> Result<Option<String>, ApiError> {
        Ok(None)
    }
}

/// The cancelled runs of a repository, the newest first.
#[derive(Deserialize)]
struct CancelledRuns {
    workflow_runs: Vec<OtherRun>,
}

fn end_cancelled(target: &ReportTarget) -> Result<(), ApiError> {
    // `limit` is what Gitea and Forgejo call `per_page`.
    let query = [("status", "cancelled"), ("limit", MOST)];
    let runs: CancelledRuns = target.api().get(&target.path("/actions/runs"), &query)?;
    let mut seen = BTreeSet::new();
    for run in runs.workflow_runs {
        // A run that was tried again is listed once for each attempt.
        if !seen.insert(run.id) || run.id.to_string() == target.run() {
            continue;
        }
        let attempt = run.attempt();
        let (url, sha) = (run.html_url, run.head_sha);
        // GitHub does not say which of its jobs was cancelled; and a cancelled job has not failed.
        let there = Elsewhere { run: run.id, attempt, url, sha, origin: None };
        commit_status::end_pending(&target.at(there), CANCELLED)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wiremock::matchers::{method, path};
    use wiremock::{Mock, ResponseTemplate};

    use super::*;
    use crate::forge::github::api::Api;
    use crate::forge::github::http::Transport;
    use crate::forge::github::testing::{Pauses, TestServer};

    const SHA: &str = "3333333333333333333333333333333333333333";

    fn ended(statuses: &Value) -> Vec<Value> {
        let server = TestServer::start();
        let run = json!({"id": 6, "head_sha": SHA, "conclusion": "cancelled", "html_url": "https://h/octo/project/actions/runs/6"});
        let runs = ResponseTemplate::new(200).set_body_json(json!({"workflow_runs": [run]}));
        server.mount(
            Mock::given(method("GET")).and(path("/repos/octo/project/actions/runs")).respond_with(runs),
        );
        let listed = ResponseTemplate::new(200).set_body_json(statuses);
        let of_commit = format!("/repos/octo/project/commits/{SHA}/statuses");
        server.mount(Mock::given(method("GET")).and(path(of_commit)).respond_with(listed));
        server.mount(
            Mock::given(method("POST")).respond_with(ResponseTemplate::new(201).set_body_json(json!({}))),
        );
        let transport = Transport::default().pause(Pauses::default().pause());
        let target = ReportTarget::in_test(Api::new(&server.address(), Some("x".to_owned()), transport));
        AbandonedChannel.begin(&target).unwrap();
        let sent = server.received().into_iter().filter(|(request, _)| request.starts_with("POST"));
        sent.map(|(request, body)| json!([request, body["state"], body["description"]])).collect()
    }

    fn status(id: u64, state: &str, context: &str, run: &str) -> Value {
        let url = format!("https://h/octo/project/actions/runs/{run}#ll-loop:fix-types-1:1:pending");
        json!({"id": id, "context": context, "status": state, "description": "running", "target_url": url})
    }

    #[test]
    fn what_a_cancelled_run_left_pending_is_ended_and_nothing_else() {
        let context = "ll-loop/fix-types";
        let post = format!("POST /repos/octo/project/statuses/{SHA}");
        let pending = json!([status(4, "pending", context, "6")]);
        assert_eq!(ended(&pending), [json!([post, "error", "cancelled"])]);
        for others in [
            json!([]),
            json!([status(4, "pending", "ll-loop/other", "6")]),
            // Another run reports there, or has ended it.
            json!([status(4, "pending", context, "7")]),
            json!([status(4, "pending", context, "6"), status(5, "success", context, "7")]),
            json!([status(4, "pending", context, "6"), status(5, "error", context, "6")]),
        ] {
            assert_eq!(ended(&others), Vec::<Value>::new(), "{others}");
        }
    }
}
