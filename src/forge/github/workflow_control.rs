//! Starts, repeats and ends runs of workflows.

use serde_json::{Value, json};

use super::api::{Api, ApiError};
use super::repository::RepositoryName;
use crate::base::text::percent_encoded;

/// The permission that all of it needs.
const NEEDS: &str = "actions: write";

/// A run that was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DispatchedRun {
    /// Its number, where the server says it.
    pub number: Option<u64>,
    /// Its page, where the server says it.
    pub page: Option<String>,
}

/// Starts a workflow on a branch or tag with these inputs.
///
/// # Errors
/// There is no such workflow, it cannot be started so or lacks an input, or the token may not.
pub fn dispatch(
    api: &Api,
    repository: &RepositoryName,
    workflow: &str,
    git_ref: &str,
    inputs: &Value,
) -> Result<DispatchedRun, ApiError> {
    let path = repository.path(&format!("/actions/workflows/{}/dispatches", percent_encoded(workflow)));
    let plain = json!({"ref": git_ref, "inputs": inputs});
    let mut detailed = plain.clone();
    detailed["return_run_details"] = json!(true);
    // Without the details there is no number, and nobody could be shown where it goes on.
    let answer = match api.post::<Value>(&path, &detailed) {
        // Older servers do not know the last field. What else they refuse, they refuse again.
        Err(ApiError::Refused { status: 400 | 422, .. }) => api.post::<Value>(&path, &plain),
        answer => answer,
    };
    let answer = answer.map_err(|error| error.needing(NEEDS))?;
    let number = answer.get("workflow_run_id").and_then(Value::as_u64);
    let page = answer.get("html_url").and_then(Value::as_str).map(str::to_owned);
    Ok(DispatchedRun { number, page })
}

/// Runs the jobs of a run again that failed, with the rights that the run had.
///
/// # Errors
/// It is not over, too old, or the token may not.
pub fn rerun_failed(api: &Api, repository: &RepositoryName, run: u64) -> Result<(), ApiError> {
    order(api, repository, run, "rerun-failed-jobs")
}

/// Cancels a run.
///
/// # Errors
/// It is over, or the token may not.
pub fn cancel(api: &Api, repository: &RepositoryName, run: u64) -> Result<(), ApiError> {
    order(api, repository, run, "cancel")
}

fn order(api: &Api, repository: &RepositoryName, run: u64, order: &str) -> Result<(), ApiError> {
    let path = repository.path(&format!("/actions/runs/{run}/{order}"));
    api.post::<Value>(&path, &json!({})).map(drop).map_err(|error| error.needing(NEEDS))
}
