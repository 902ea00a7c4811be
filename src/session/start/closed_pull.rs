//! Whether a question has ended with its pull request: nobody needs the answer of one that was closed.

use crate::base::object::ObjectId;
use crate::ci::github::standing_runs::StandingRuns;
use crate::context::Session;
use crate::context::job_server::JobServer;
use crate::engine::question::OpenQuestion;
use crate::forge::github::api::ApiError;
use crate::forge::github::pull_list::{self, WatchedPull};
use crate::forge::github::workflow_run;

/// The most closed pull requests that are looked at, the last ones.
const MOST_CLOSED: usize = 100;

/// Tells whether the pull request was closed whose head the question of this run is about. What the server does not say has not
/// happened, and no input of a job is believed.
pub(super) fn has_ended(question: Option<&OpenQuestion>, instance: &str, session: &Session<'_>) -> bool {
    let Some(sha) = question.and_then(|question| question.awaiting.sha.as_ref()) else { return false };
    // On a machine of a person, and without a token, nobody is asked.
    let server = JobServer::of_job(session, "pull requests are looked at", "pull-requests: read");
    let Ok(server) = server else { return false };
    let found = is_closed(sha, &server).and_then(|closed| Ok(closed && is_of_pull(sha, instance, &server)?));
    found.unwrap_or_else(|error| {
        session.talk.note(&format!("whether the pull request of the question is open is not known: {error}"));
        false
    })
}

fn is_closed(sha: &ObjectId, server: &JobServer) -> Result<bool, ApiError> {
    let JobServer { api, repository, .. } = server;
    let is_of_it = |pull: WatchedPull| pull.is_own && pull.sha == sha.as_str();
    // The same commit may be proposed again.
    if pull_list::list(api, repository, true, usize::MAX)?.into_iter().any(is_of_it) {
        return Ok(false);
    }
    Ok(pull_list::list(api, repository, false, MOST_CLOSED)?.into_iter().any(is_of_it))
}

/// Tells whether a pull request has set off the run. What was merged is the head of a branch as well, and a run for that asks on.
fn is_of_pull(sha: &ObjectId, instance: &str, server: &JobServer) -> Result<bool, ApiError> {
    let JobServer { api, repository, .. } = server;
    let chain = StandingRuns::at(api, repository, sha.as_str())?.chain_of(instance);
    let Some(first) = chain.first() else { return Ok(false) };
    let event = workflow_run::get(api, repository, *first)?.event;
    Ok(event.is_some_and(|event| event.starts_with("pull_request")))
}
