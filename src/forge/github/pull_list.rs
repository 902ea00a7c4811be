//! The pull requests of a repository, and how many runs a day has started: what somebody asks who looks after all of them.

use serde::Deserialize;
use serde_json::Value;

use super::api::{Api, ApiError};
use super::repository::RepositoryName;
use super::workflow_event::is_sha;

/// A pull request of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedPull {
    /// Its number.
    pub number: u64,
    /// The branch that it proposes.
    pub branch: String,
    /// The commit that it proposes.
    pub sha: String,
    /// Whether that is one of the repository itself.
    pub is_own: bool,
}

#[derive(Deserialize)]
struct PullRow {
    number: u64,
    head: RowHead,
}

#[derive(Deserialize)]
struct RowHead {
    #[serde(rename = "ref")]
    branch: String,
    sha: String,
    repo: Option<RowRepository>,
}

#[derive(Deserialize)]
struct RowRepository {
    full_name: String,
}

/// Returns so many of the pull requests that are open, or else of those that are closed, the last that were updated first.
///
/// # Errors
/// The server does not answer.
pub fn list(
    api: &Api,
    repository: &RepositoryName,
    are_open: bool,
    most: usize,
) -> Result<Vec<WatchedPull>, ApiError> {
    let state = if are_open { "open" } else { "closed" };
    let query = [("state", state), ("sort", "updated"), ("direction", "desc")];
    let path = repository.path("/pulls");
    let rows = api.list::<Vec<PullRow>>(&path, &query).take(most);
    let rows: Vec<PullRow> =
        rows.collect::<Result<_, _>>().map_err(|error| error.needing("pull-requests: read"))?;
    let home = repository.to_string();
    let listed = rows.into_iter().filter(|row| is_sha(&row.head.sha)).map(|row| WatchedPull {
        number: row.number,
        is_own: row.head.repo.is_some_and(|repo| repo.full_name.eq_ignore_ascii_case(&home)),
        branch: row.head.branch,
        sha: row.head.sha,
    });
    Ok(listed.collect())
}

/// Returns how many runs of workflows were started by a dispatch since a day began, `2026-11-20`.
///
/// # Errors
/// The server does not answer, or not with a number.
pub fn dispatched_since(api: &Api, repository: &RepositoryName, day: &str) -> Result<u64, ApiError> {
    let path = repository.path("/actions/runs");
    let since = format!(">={day}");
    // One item, because only the number of all is wanted.
    let query = [("event", "workflow_dispatch"), ("created", since.as_str()), ("per_page", "1")];
    let answer: Value = api.get(&path, &query).map_err(|error| error.needing("actions: read"))?;
    let reason = || "it does not say how many runs there are".to_owned();
    answer
        .get("total_count")
        .and_then(Value::as_u64)
        .ok_or_else(|| ApiError::Unreadable { request: format!("GET {path}"), reason: reason() })
}
