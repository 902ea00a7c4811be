//! The server that a job is of, and the repository there: for what a job asks beside its run.

use crate::base::lookup::Lookup;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::forge::github::api::{Api, ApiError};
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::workflow_job::WorkflowJob;

/// A server and the repository that a job is of.
pub(crate) struct JobServer {
    /// The server.
    pub(crate) api: Api,
    /// The repository.
    pub(crate) repository: RepositoryName,
    /// The same server, asked with the token that may read teams, where there is one.
    pub(crate) teams: Option<Api>,
}

impl JobServer {
    /// Reads them from the environment. `what` is what only such a job can do, and `permission` what that needs.
    ///
    /// # Errors
    /// This is no such job, or it has no token.
    pub(crate) fn of_job(session: &Session<'_>, what: &str, permission: &str) -> Result<Self, Error> {
        let env = &session.env.lookup();
        let repository = WorkflowJob::read(env).repository.as_deref().and_then(RepositoryName::parse);
        let repository = repository.ok_or_else(|| {
            Error::refused(format!("{what} in a job of GitHub Actions, Gitea or Forgejo alone"))
                .with_hint("elsewhere, `ll-loop answer RUN TEXT` answers a run")
        })?;
        let token = session.env.token().ok_or_else(|| {
            Error::refused("there is no token to ask the server with")
                .with_hint(format!("give it in `LL_TOKEN` or `GITHUB_TOKEN`; it needs `{permission}`"))
        })?;
        let api = Api::from_env(env, Some(token.to_owned())).map_err(|error| unanswered(&error))?;
        let teams = session.env.team_token().map(|token| Api::from_env(env, Some(token.to_owned())));
        let teams = teams.transpose().map_err(|error| unanswered(&error))?;
        Ok(Self { api, repository, teams })
    }

    /// Reads them from an environment that has no token, and takes this one; nothing where that is no such job.
    pub(crate) fn with_token(env: Lookup<'_>, token: Option<&str>) -> Option<Self> {
        let repository = WorkflowJob::read(env).repository.as_deref().and_then(RepositoryName::parse)?;
        let api = Api::from_env(env, Some(token?.to_owned())).ok()?;
        Some(Self { api, repository, teams: None })
    }
}

/// Says that the server could not be asked.
pub(crate) fn unanswered(error: &ApiError) -> Error {
    let failed = Error::failed("cannot ask the server", error).of_kind(Kind::Unavailable);
    match error.help() {
        Some(help) => failed.with_hint(help),
        None => failed,
    }
}
