//! Finds the bundles to which the statuses of a commit on GitHub lead.

use serde::Deserialize;

use crate::base::name::LoopName;
use crate::base::object::ObjectId;
use crate::base::text::first_word;
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::forge::github::api::Api;
use crate::forge::github::artifacts::RunsMeant;
use crate::forge::github::repository::RepositoryName;
use crate::session::read::fetch::{ArtifactRequest, fault};
use crate::session::start::incoming::unusable;

/// What the names of our statuses begin with.
const CONTEXT: &str = "ll-loop/";

/// The most statuses that are read.
// GitHub keeps up to 1,000 statuses for each context of a commit.
const MOST: usize = 1_000;

/// The most runs whose artifacts are fetched.
// Each of them is downloaded.
const MOST_RUNS: usize = 20;

#[derive(Deserialize)]
struct ReadStatus {
    context: String,
    #[serde(alias = "status")]
    state: String,
    target_url: Option<String>,
}

/// A run of a workflow to which a status leads, and the loop that it is about.
struct LinkedRun {
    name: String,
    run: u64,
}

/// Fetches the bundle of every loop that is green at a commit, or of the one that is meant.
pub(super) fn fetch(
    object: &ObjectId,
    only: Option<&str>,
    session: &Session<'_>,
) -> Result<Vec<(OpenedBundle, String)>, Error> {
    let (api, repository) = request("", None, session).remote().map_err(|_| {
        Error::refused(format!("nothing here says anything about {object}")).of_kind(Kind::Absent).with_hint(
            "give the directory of bundles and attestations with `--attestations`, or set `GITHUB_REPOSITORY` and a token",
        )
    })?;
    let mut bundles = Vec::new();
    for LinkedRun { name, run } in linked(&api, &repository, object, only)? {
        let what = format!("run:{run}");
        let stem = LoopName::parse(&name).ok().map(|name| name.file_stem());
        let local = request(&what, stem.as_deref(), session).local()?;
        let bundle = OpenedBundle::open(&local.path).map_err(|error| unusable(&local.shown, &error))?;
        bundles.push((bundle, local.shown.clone()));
    }
    Ok(bundles)
}

/// Asks for the artifact of a loop, made by the repository's own code.
fn request<'a>(what: &'a str, stem: Option<&str>, session: &'a Session<'a>) -> ArtifactRequest<'a> {
    let runs = RunsMeant::of_loop(stem, None);
    ArtifactRequest { what, run: None, repository: None, runs, allow_untrusted: false, session }
}

/// Returns the newest run behind each green status of ours.
fn linked(
    api: &Api,
    repository: &RepositoryName,
    object: &ObjectId,
    only: Option<&str>,
) -> Result<Vec<LinkedRun>, Error> {
    let path = repository.path(&format!("/commits/{object}/statuses"));
    let mut seen = std::collections::BTreeSet::new();
    let mut found = Vec::new();
    for status in api.list::<Vec<ReadStatus>>(&path, &[]).take(MOST) {
        let status =
            status.map_err(|error| fault(format!("cannot read the statuses of {object}"), &error.into()))?;
        let Some(name) = status.context.strip_prefix(CONTEXT) else { continue };
        // Behind the name of the loop, a context may have the key of the run in brackets.
        let name = first_word(name).to_owned();
        // The newest comes first, and is the one that counts.
        if !seen.insert(status.context.clone()) || only.is_some_and(|only| only != name) {
            continue;
        }
        // Only the number is taken from the link: the repository is the one that was asked, wherever the link leads.
        let run = status.target_url.as_deref().and_then(run_of_link);
        if let (Some(run), "success", true) = (run, status.state.as_str(), found.len() < MOST_RUNS) {
            found.push(LinkedRun { name, run });
        }
    }
    Ok(found)
}

/// Returns the run that a link leads to: `https://github.com/OWNER/NAME/actions/runs/ID`.
fn run_of_link(link: &str) -> Option<u64> {
    let rest = link.split_once("/actions/runs/")?.1;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_names_the_run_behind_a_status() {
        assert_eq!(run_of_link("https://github.com/o/r/actions/runs/77#ll-loop:x:1"), Some(77));
        assert_eq!(run_of_link("https://github.com/o/r/actions/runs/77/job/3"), Some(77));
        assert_eq!(run_of_link("https://example.org/77"), None);
    }
}
