//! The server that is asked about the comments which answer a run, and whether anybody needs the answer still: that of GitHub's
//! family which the job is of, or GitLab.

use crate::base::name::StateName;
use crate::base::object::ObjectId;
use crate::ci::github::standing_runs::StandingRuns;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::job_server::{JobServer, unanswered};
use crate::engine::question::OpenQuestion;
use crate::forge::github::answers::{self, FoundAnswer};
use crate::forge::github::api::ApiError;
use crate::forge::github::pull_comments::{self, PullComment};
use crate::forge::github::pull_list::{self, WatchedPull};
use crate::forge::github::workflow_run::{self, RunStarters};
use crate::forge::gitlab::MergeRequests;
use crate::forge::merge_request_notes::MergeRequestJob;
use crate::machine::Approvers;
use crate::people::command_starts::askers;
use crate::people::reply;
use crate::people::ruling::{CommentFacts, PermissionFacts, PullFacts, TeamMembership};
use crate::session::read::approver_facts::{BranchApprovers, on_branch};

/// The most closed pull requests that are looked at, the last ones.
// GitHub lists as many in one request.
const MOST_CLOSED: usize = 100;

/// What to do where GitLab does not take the token.
const TOKEN_OF_GITLAB: &str =
    "give `LL_TOKEN` one of this project with the scope `read_api` and at least the role Reporter";

/// The server of the job that goes on with a run.
pub(super) enum AnswerServer {
    /// GitHub, or one of its family.
    Github(Box<JobServer>),
    /// GitLab, and the job.
    Gitlab(Box<MergeRequests>, MergeRequestJob),
}

impl AnswerServer {
    /// Reads it from the environment.
    ///
    /// # Errors
    /// This is no job that could ask, or it has no token.
    pub(super) fn of_job(session: &Session<'_>) -> Result<Self, Error> {
        if session.env.get("GITLAB_CI").is_none() {
            let server = JobServer::of_job(session, "a comment answers", "pull-requests: read")?;
            return Ok(Self::Github(Box::new(server)));
        }
        let token = session.env.own_token().ok_or_else(|| {
            Error::refused("there is no token to ask GitLab about notes with").with_hint(TOKEN_OF_GITLAB)
        })?;
        let number = |name: &str| session.env.get(name)?.parse::<u64>().ok();
        let (request, pipeline) = (number("CI_MERGE_REQUEST_IID"), number("CI_PIPELINE_ID"));
        let (Some(request), Some(pipeline)) = (request, pipeline) else {
            return Err(Error::refused("notes answer in pipelines of merge requests alone").with_hint(
                "run the jobs with `rules: [{if: $CI_PIPELINE_SOURCE == \"merge_request_event\"}]`",
            ));
        };
        let requests = MergeRequests::from_env(&session.env.lookup(), token).map_err(Error::refused)?;
        let name = session.env.get("CI_JOB_NAME").unwrap_or_default().to_owned();
        Ok(Self::Gitlab(Box::new(requests), MergeRequestJob { request, pipeline, name }))
    }

    /// Says that the server could not be asked.
    pub(super) fn unanswered(&self, error: &ApiError) -> Error {
        match self {
            Self::Github(_) => unanswered(error),
            // The help of the client names variables and pages of GitHub.
            Self::Gitlab(..) => {
                let failed = Error::failed("cannot ask the server", error).of_kind(Kind::Unavailable);
                let is_of_token = matches!(
                    error,
                    ApiError::Unauthorized { .. } | ApiError::Denied { .. } | ApiError::NotFound { .. }
                );
                if is_of_token { failed.with_hint(TOKEN_OF_GITLAB) } else { failed }
            }
        }
    }

    /// Asks for a comment with what is around it.
    pub(super) fn find(&self, id: u64) -> Result<FoundAnswer, ApiError> {
        match self {
            Self::Github(server) => answers::find(&server.api, &server.repository, id),
            Self::Gitlab(requests, job) => requests.note(job.request, id),
        }
    }

    /// Returns what the statuses of a commit tell of runs; nothing where the server has no statuses of ours, and a comment has to
    /// name the code of its question.
    pub(super) fn standing(&self, sha: &str) -> Result<Option<StandingRuns>, ApiError> {
        match self {
            Self::Github(server) => StandingRuns::at(&server.api, &server.repository, sha).map(Some),
            Self::Gitlab(..) => Ok(None),
        }
    }

    /// Asks a branch who may answer the question of a state.
    pub(super) fn on_branch(
        &self,
        file: &str,
        branch: &str,
        state: &StateName,
    ) -> Result<BranchApprovers, ApiError> {
        match self {
            Self::Github(server) => on_branch(&server.api, &server.repository, file, branch, state),
            Self::Gitlab(requests, _) => {
                Ok(BranchApprovers::of(file, requests.file_at(file, branch)?, state))
            }
        }
    }

    /// Returns who started these runs: whom the server names, and who asked for one by a comment before this one. On GitLab, the
    /// run is in the pipeline of the job.
    pub(super) fn starters(
        &self,
        runs: &[u64],
        pull: &PullFacts,
        comment: u64,
    ) -> Result<Vec<u64>, ApiError> {
        match self {
            Self::Github(server) => starters_on_github(server, runs, pull, comment),
            Self::Gitlab(requests, job) => requests.pipeline_starters(job, &pull.head),
        }
    }

    /// Tells whether the author of a comment is in one of the teams that may answer.
    pub(super) fn membership(
        &self,
        comment: &CommentFacts,
        permission: Option<&PermissionFacts>,
        approvers: Option<&Approvers>,
    ) -> Result<TeamMembership, ApiError> {
        match self {
            Self::Github(server) => server.membership(comment, permission, approvers),
            // A group of GitLab is named in another way than a team of GitHub.
            Self::Gitlab(..) => Ok(TeamMembership::Outsider),
        }
    }
}

fn starters_on_github(
    server: &JobServer,
    runs: &[u64],
    pull: &PullFacts,
    comment: u64,
) -> Result<Vec<u64>, ApiError> {
    let JobServer { api, repository, .. } = server;
    let RunStarters { mut accounts, is_by_request } = answers::starters(api, repository, runs)?;
    if is_by_request {
        let comments = pull_comments::list(api, repository, pull.number)?;
        let reply = pull_comments::own(api, &comments, reply::is_reply)?;
        let log = reply.map(|reply| reply::log_of(reply.body())).unwrap_or_default();
        let commands = comments.iter().filter_map(PullComment::possible_command);
        accounts.extend(askers(commands, &log, comment));
    }
    Ok(accounts)
}

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
