//! What servers that take pushes can do besides: keep pull requests, check signatures, start checks.

use crate::base::object::ObjectId;
use crate::context::Session;
use crate::context::error::Error;
use crate::forge::forge_trait::{ForgeError, NewPull, Pulls};
use crate::forge::github::gitea::GiteaPulls;
use crate::forge::gitlab;
use crate::forge::gitlab::{MergeRequests, TokenHolder};
use crate::repository::delivery_stop::DeliveryStop;
use crate::repository::workspace::Remote;

/// What a server can do besides taking pushes.
#[derive(Clone)]
pub(crate) enum DeliveryService {
    /// Nothing.
    Git,
    /// Pull requests of Gitea or Forgejo.
    Gitea(Box<GiteaPulls>),
    /// Merge requests of GitLab, with a token that keeps them.
    Gitlab(Box<MergeRequests>),
    /// Merge requests of GitLab that a push opens and changes, with a token that may not even see them.
    GitlabPush {
        /// Whose token it is.
        holder: TokenHolder,
    },
}

/// A server that takes pushes.
pub(crate) struct PushServer {
    /// The name that people know it by.
    pub(crate) name: String,
    pub(crate) remote: Remote,
    pub(crate) service: DeliveryService,
}

/// Returns the GitLab whose job this is; nothing outside of one. A token that may not see merge requests is warned of.
pub(crate) fn gitlab(session: &Session<'_>) -> Result<Option<PushServer>, Error> {
    if session.env.get("GITLAB_CI").is_none() {
        return Ok(None);
    }
    let env = &session.env.lookup();
    // A token of the user's own goes first, since that of a job may not even see merge requests.
    let own = session.env.own_token().map(|token| (TokenHolder::Other, token));
    let of_job = || session.env.get("CI_JOB_TOKEN").map(|token| (TokenHolder::Job, token));
    let Some((holder, token)) = own.or_else(of_job) else {
        return Err(Error::refused("there is no token").with_hint("give it in `LL_TOKEN`"));
    };
    let remote = gitlab::remote(env, holder, token).map_err(Error::refused)?;
    let service = match holder {
        TokenHolder::Job => None,
        TokenHolder::Other => {
            let requests = MergeRequests::from_env(env, token).map_err(Error::refused)?;
            requests.are_readable().map_err(failed)?.then(|| DeliveryService::Gitlab(Box::new(requests)))
        }
    };
    let service = service.unwrap_or_else(|| {
        session.talk.warning(
            "the token may not read merge requests: one is opened or changed by the push, and whether a person closed one, \
             or lets it merge itself, is not known; give `LL_TOKEN` a token with the scope `api`",
        );
        DeliveryService::GitlabPush { holder }
    });
    Ok(Some(PushServer { name: "GitLab".to_owned(), remote: remote.into(), service }))
}

fn failed(error: ForgeError) -> Error {
    match DeliveryStop::from(error) {
        DeliveryStop::Failed(error) => error,
        stop @ (DeliveryStop::Unchanged(_) | DeliveryStop::Refused(_) | DeliveryStop::Raced(_)) => {
            Error::refused(stop.to_string())
        }
    }
}

impl DeliveryService {
    /// Returns the pull requests; nothing where there are none, or none can be seen.
    pub(crate) fn pulls(&self) -> Option<&dyn Pulls> {
        match self {
            Self::Gitea(pulls) => Some(pulls.as_ref()),
            Self::Gitlab(requests) => Some(requests.as_ref()),
            Self::Git | Self::GitlabPush { .. } => None,
        }
    }

    /// Tells whether a push opens and changes the pull request.
    pub(crate) fn takes_pulls_with_pushes(&self) -> bool {
        matches!(self, Self::GitlabPush { .. })
    }

    /// Returns what a push says about its pull request.
    pub(crate) fn push_options(&self, pull: &NewPull) -> Vec<String> {
        match self {
            Self::GitlabPush { .. } => gitlab::push_options(pull),
            Self::Git | Self::Gitea(_) | Self::Gitlab(_) => Vec::new(),
        }
    }

    /// Tells whether a push starts checks. Where that is unknown, it is taken for one of a person, which does.
    pub(crate) fn starts_checks(&self) -> Result<bool, ForgeError> {
        match self {
            Self::Gitea(pulls) => pulls.starts_checks(),
            // A push with the token of a job starts no pipeline.
            Self::GitlabPush { holder } => Ok(*holder == TokenHolder::Other),
            Self::Git | Self::Gitlab(_) => Ok(true),
        }
    }

    /// Returns what a token has to be allowed so that it may push.
    pub(crate) fn needs(&self) -> &'static str {
        match self {
            Self::Git => "git has to get in, and be allowed to push",
            Self::Gitea(_) => {
                "give the job `permissions: { contents: write, pull-requests: write }`, or a token of a person the scopes \
                 `write:repository` and `read:issue`"
            }
            Self::GitlabPush { holder: TokenHolder::Job } => {
                "turn on \"Allow Git push requests to the repository\" in the settings of the project (CI/CD, job token \
                 permissions; GitLab 17.2), or give `LL_TOKEN` a token with the scopes `api` and `write_repository`"
            }
            Self::Gitlab(_) | Self::GitlabPush { holder: TokenHolder::Other } => {
                "give `LL_TOKEN` a token of this project with the scopes `api` and `write_repository`, and the role Developer"
            }
        }
    }

    /// Tells whether the server says that the signature of a commit is good. A commit that stands there is no less
    /// delivered because nobody can say so.
    pub(crate) fn is_signed(&self, id: &ObjectId) -> bool {
        match self {
            Self::Gitea(pulls) => pulls.is_signed(id).unwrap_or(false),
            Self::Gitlab(requests) => requests.is_signed(id).unwrap_or(false),
            Self::Git | Self::GitlabPush { .. } => false,
        }
    }
}
