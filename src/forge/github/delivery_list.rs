//! The pull requests that deliveries have opened in a repository, and what people did with them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::api::{Api, ApiError};
use super::repository::RepositoryName;
use crate::base::time::Timestamp;
use crate::forge::marker::Marker;
use crate::forge::message::Trailers;
use crate::report::delivery_fates::{DeliveryFate, DeliveryList, KnownDelivery, REVERTED_WITHIN, SCHEMA};

/// The most pull requests that are looked through, the latest first.
const MOST_PULLS: usize = 1000;

/// The most commits of a pull request, and of a branch after a merge, that are looked through.
const MOST_COMMITS: usize = 1000;

#[derive(Deserialize)]
struct DeliveredPullRow {
    number: u64,
    html_url: String,
    state: String,
    #[serde(default)]
    body: Option<String>,
    created_at: Timestamp,
    #[serde(default)]
    closed_at: Option<Timestamp>,
    #[serde(default)]
    merged_at: Option<Timestamp>,
    #[serde(default)]
    merge_commit_sha: Option<String>,
    base: BaseRow,
    #[serde(default)]
    head: Option<HeadRow>,
}

impl DeliveredPullRow {
    /// Tells whether it is from another repository: a delivery never is, and anybody can copy its mark.
    fn is_foreign(&self, repository: &RepositoryName) -> bool {
        let own = repository.to_string();
        let is_own = |repo: &HeadRepositoryRow| repo.full_name.eq_ignore_ascii_case(&own);
        // Of a fork that was deleted, the server names no repository.
        self.head.as_ref().is_some_and(|head| !head.repo.as_ref().is_some_and(is_own))
    }
}

#[derive(Deserialize)]
struct HeadRow {
    repo: Option<HeadRepositoryRow>,
}

#[derive(Deserialize)]
struct HeadRepositoryRow {
    full_name: String,
}

#[derive(Deserialize)]
struct BaseRow {
    #[serde(rename = "ref")]
    branch: String,
}

#[derive(Deserialize)]
struct CommitRow {
    commit: CommitText,
    #[serde(default)]
    parents: Vec<ParentRow>,
}

#[derive(Deserialize)]
struct CommitText {
    message: String,
}

#[derive(Deserialize)]
struct ParentRow {}

/// Asks for the deliveries of a repository that were opened since a moment.
///
/// # Errors
/// The server does not answer.
pub fn list(
    api: &Api,
    repository: &RepositoryName,
    since: Option<Timestamp>,
    now: Timestamp,
) -> Result<DeliveryList, ApiError> {
    let query = [("state", "all"), ("sort", "created"), ("direction", "desc")];
    let path = repository.path("/pulls");
    let rows = api.list::<Vec<DeliveredPullRow>>(&path, &query);
    let mut list = DeliveryList {
        schema: SCHEMA,
        repository: repository.to_string(),
        at: now,
        is_cut: false,
        deliveries: Vec::new(),
    };
    let mut branches = BaseBranches { api, repository, known: BTreeMap::new() };
    for (index, row) in rows.enumerate() {
        let row = row.map_err(|error| error.needing("pull-requests: read"))?;
        if since.is_some_and(|since| row.created_at < since) {
            break;
        }
        if index == MOST_PULLS {
            list.is_cut = true;
            break;
        }
        let marker = row.body.as_deref().filter(|_| !row.is_foreign(repository)).and_then(Marker::find);
        if let Some(marker) = marker {
            let delivery = delivery(&row, &marker, &mut branches, now)?;
            list.deliveries.push(delivery);
        }
    }
    Ok(list)
}

fn delivery(
    row: &DeliveredPullRow,
    marker: &Marker,
    branches: &mut BaseBranches<'_>,
    now: Timestamp,
) -> Result<KnownDelivery, ApiError> {
    let (fate, of_loop) = match (row.state.as_str(), row.merged_at) {
        ("open", _) => (DeliveryFate::Open, None),
        (_, None) => (DeliveryFate::Closed, None),
        (_, Some(merged)) => {
            let commits = branches.commits_of(row.number)?;
            let of_loop = commits.iter().find_map(|commit| Trailers::of(&commit.commit.message).of_loop);
            (fate_of_merged(row, merged, &commits, branches, now)?, of_loop)
        }
    };
    let of_loop = of_loop.and_then(|of_loop| Some(of_loop.rsplit_once('@')?.0.to_owned()));
    Ok(KnownDelivery {
        number: row.number,
        url: row.html_url.clone(),
        run: marker.run.to_string(),
        loop_name: of_loop.or_else(|| loop_of(marker.run.as_str())),
        opened: row.created_at,
        ended: row.merged_at.or(row.closed_at),
        fate,
        cost_usd: None,
        model: None,
    })
}

fn fate_of_merged(
    row: &DeliveredPullRow,
    merged: Timestamp,
    commits: &[CommitRow],
    branches: &mut BaseBranches<'_>,
    now: Timestamp,
) -> Result<DeliveryFate, ApiError> {
    if branches.is_reverted(row, merged, now)? {
        return Ok(DeliveryFate::Reverted);
    }
    // Bringing the branch up to date changes nothing of the fix.
    let own = || commits.iter().filter(|commit| commit.parents.len() < 2);
    let is_ours = |commit: &CommitRow| Trailers::of(&commit.commit.message).patch.is_some();
    Ok(if own().any(|commit| !is_ours(commit)) {
        DeliveryFate::Edited
    } else if own().any(is_ours) {
        DeliveryFate::Merged
    } else {
        DeliveryFate::Unknown
    })
}

/// Returns the loop of a run, by the run's id: its name, the time, and a word that tells it from others.
fn loop_of(run: &str) -> Option<String> {
    let (rest, _word) = run.rsplit_once('-')?;
    let (name, _time) = rest.rsplit_once('-')?;
    Some(name.to_owned())
}

/// The commits of branches, asked for once each.
struct BaseBranches<'a> {
    api: &'a Api,
    repository: &'a RepositoryName,
    /// The messages of commits that were made on a branch since a moment.
    known: BTreeMap<(String, String), Vec<String>>,
}

impl BaseBranches<'_> {
    fn commits_of(&self, number: u64) -> Result<Vec<CommitRow>, ApiError> {
        let path = self.repository.path(&format!("/pulls/{number}/commits"));
        self.api.list::<Vec<CommitRow>>(&path, &[]).take(MOST_COMMITS).collect()
    }

    /// Tells whether a commit that came within two weeks says that it puts a merge back.
    fn is_reverted(
        &mut self,
        row: &DeliveredPullRow,
        merged: Timestamp,
        now: Timestamp,
    ) -> Result<bool, ApiError> {
        let until = merged.after(REVERTED_WITHIN).min(now);
        let (since, until) = (merged.to_string(), until.to_string());
        let key = (row.base.branch.clone(), since.clone());
        if !self.known.contains_key(&key) {
            let query = [("sha", row.base.branch.as_str()), ("since", &since), ("until", &until)];
            let path = self.repository.path("/commits");
            let commits = self.api.list::<Vec<CommitRow>>(&path, &query).take(MOST_COMMITS);
            let messages = commits.map(|commit| Ok(commit?.commit.message)).collect::<Result<_, ApiError>>();
            // The branch may be gone.
            let messages = match messages {
                Err(error) if error.is_absent() => Vec::new(),
                other => other?,
            };
            self.known.insert(key.clone(), messages);
        }
        Ok(self.known[&key].iter().any(|message| puts_back(message, row, self.repository)))
    }
}

/// Tells whether a message says that it puts back a merge: by the commit, as git writes it, or by the pull request, as the server
/// does.
fn puts_back(message: &str, row: &DeliveredPullRow, repository: &RepositoryName) -> bool {
    let by_commit = row.merge_commit_sha.as_deref().is_some_and(|sha| {
        !sha.is_empty() && message.to_ascii_lowercase().contains(&format!("this reverts commit {sha}"))
    });
    let of_pull = format!("reverts {repository}#{}", row.number).to_ascii_lowercase();
    let by_pull = message.lines().any(|line| {
        line.trim()
            .to_ascii_lowercase()
            .strip_prefix(&of_pull)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    by_commit || by_pull
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, sha: &str) -> DeliveredPullRow {
        let row = serde_json::json!({
            "number": number, "html_url": "u", "state": "closed", "created_at": "2026-01-01T00:00:00Z",
            "merge_commit_sha": sha, "base": {"ref": "main"},
        });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn a_revert_names_the_commit_or_the_pull_request() {
        let repository = RepositoryName::parse("octo/site").unwrap();
        for (message, expected) in [
            ("Revert \"Fix\"\n\nThis reverts commit abc123.", true),
            ("Revert \"Fix\"\n\nReverts octo/site#7", true),
            ("Revert \"Fix\"\n\nReverts octo/site#77", false),
            ("Revert \"Fix\"\n\nThis reverts commit def456.", false),
            ("Fix", false),
        ] {
            assert_eq!(puts_back(message, &row(7, "abc123"), &repository), expected, "{message}");
        }
        assert!(!puts_back("This reverts commit .", &row(7, ""), &repository));
    }

    #[test]
    fn a_run_has_the_name_of_its_loop() {
        assert_eq!(loop_of("fix-types-20260101T000000-abcdef"), Some("fix-types".to_owned()));
        assert_eq!(loop_of("x"), None);
    }
}
