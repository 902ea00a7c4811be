//! Who approved the jobs of a run of a workflow as a reviewer of an environment: GitHub lets nobody begin such a job before.

use serde::Deserialize;

use super::api::{Api, ApiError};
use super::repository::RepositoryName;
use crate::people::ruling::Account;

/// The most reviews that are read.
const MOST: usize = 100;

/// A reviewer who approved the jobs of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentReview {
    /// Who it was.
    pub reviewer: Account,
    /// What the reviewer wrote.
    pub comment: Option<String>,
}

#[derive(Deserialize)]
struct ListedReview {
    state: String,
    comment: Option<String>,
    #[serde(default)]
    environments: Vec<ReviewedEnvironment>,
    user: Option<ReviewingUser>,
}

#[derive(Deserialize)]
struct ReviewedEnvironment {
    name: String,
}

#[derive(Deserialize)]
struct ReviewingUser {
    id: u64,
    login: String,
    #[serde(rename = "type", default)]
    kind: String,
}

/// Returns who approved the jobs of a run for an environment, in any attempt.
///
/// # Errors
/// The server does not answer, or the token may not ask.
pub fn approved(
    api: &Api,
    repository: &RepositoryName,
    run: u64,
    environment: &str,
) -> Result<Vec<EnvironmentReview>, ApiError> {
    let path = repository.path(&format!("/actions/runs/{run}/approvals"));
    let listed: Vec<ListedReview> = api.get(&path, &[]).map_err(|error| error.needing("actions: read"))?;
    // Names of environments are the same in any case.
    let is_of = |review: &ListedReview| {
        let named = |known: &ReviewedEnvironment| known.name.eq_ignore_ascii_case(environment);
        review.state == "approved" && review.environments.iter().any(named)
    };
    let reviews = listed.into_iter().filter(is_of).filter_map(|review| {
        let user = review.user?;
        let reviewer = Account { id: user.id, is_bot: user.kind == "Bot", name: user.login };
        let comment = review.comment.filter(|comment| !comment.trim().is_empty());
        Some(EnvironmentReview { reviewer, comment })
    });
    Ok(reviews.take(MOST).collect())
}
