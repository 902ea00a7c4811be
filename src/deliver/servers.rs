//! Which server takes a delivery, as the environment and the checkout say it. A new kind of server is one arm of
//! [`ServerKind`] and what makes its [`Forge`].

use super::push_service::{self, DeliveryService, PushServer};
use super::pushed::{PushForge, identity};
use super::way::DeliverOptions;
use crate::base::repository_address;
use crate::base::text::{one_line, up_to};
use crate::ci::base_branch::{DefaultBase, default_base};
use crate::context::Session;
use crate::context::error::Error;
use crate::forge::forge_trait::{Forge, ForgeError};
use crate::forge::git_remote::GitRemote;
use crate::forge::github::api::Api;
use crate::forge::github::deliver::GithubForge;
use crate::forge::github::gitea::GiteaPulls;
use crate::forge::github::github_server::Flavour;
use crate::forge::github::pull_head::PullHead;
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::forge::names::BranchName;
use crate::git::call::Call;
use crate::policy::DeliveryMode;
use crate::process::address::without_credential;
use crate::repository;
use crate::repository::delivery_stop::DeliveryStop;
use crate::repository::workspace::{Remote, Workspace};
use crate::session::end::bundler::here;

/// A server that takes deliveries, or none.
pub(crate) struct DeliveryServer {
    kind: ServerKind,
    remote: Option<Remote>,
    /// `host/owner/name`.
    repository: Option<String>,
}

enum ServerKind {
    /// There is none: a patch needs none.
    Nowhere,
    /// A repository that takes pushes, the name that people know it by, and what it can do besides.
    Pushed(String, DeliveryService),
    /// GitHub.
    Github(Box<Api>, RepositoryName),
}

/// Finds the server.
pub(crate) fn find(options: &DeliverOptions, session: &Session<'_>) -> Result<DeliveryServer, Error> {
    let checkout = repository::at(&session.cwd, session);
    if let Some(remote) = &options.remote {
        let url = checkout.line(&Call::new("remote").with(&["get-url", "--push"]).named(remote, ""));
        // What git does not know as the name of a remote is taken as an address.
        let url = url.unwrap_or_else(|_| remote.clone());
        // Git would take it for an option, of which some run programs, such as `--receive-pack`.
        if url.starts_with('-') {
            return Err(Error::refused(format!("invalid remote `{}`", one_line(remote, 100))));
        }
        let repository = repository_address::repository(&url);
        // git is called elsewhere; `HOST:PATH` is not a path.
        let is_path = !url.contains("://") && !up_to(&url, &['/']).contains(':');
        let url = if is_path { session.cwd.join(url).display().to_string() } else { url };
        return Ok(DeliveryServer {
            kind: ServerKind::Pushed(
                format!("the remote {}", one_line(&without_credential(&url), 200)),
                DeliveryService::Git,
            ),
            remote: Some(Remote { url, header: None }),
            repository,
        });
    }
    let repository = here(&checkout, session);
    // A patch needs no server, and no token for one.
    if options.way != DeliveryMode::Patch
        && let Some(PushServer { name, remote, service }) = push_service::gitlab(session)?
    {
        return Ok(DeliveryServer {
            kind: ServerKind::Pushed(name, service),
            remote: Some(remote),
            repository,
        });
    }
    let token = session.env.token();
    let named = WorkflowJob::read(&session.env.lookup()).repository;
    // Outside of a job, the API is that of github.com, and no other server is meant.
    let of_github = || repository.as_ref()?.strip_prefix("github.com/").map(str::to_owned);
    let named = named.or_else(of_github).and_then(|name| RepositoryName::parse(&name));
    let (Some(name), Some(token)) = (named, token) else {
        if options.way == DeliveryMode::Patch {
            return Ok(DeliveryServer { kind: ServerKind::Nowhere, remote: None, repository });
        }
        return Err(Error::refused("no server for the delivery is named, or there is no token for it").with_hint(
            "in a job, give the token in `LL_TOKEN` or `GITHUB_TOKEN`; elsewhere, push a branch with `--to branch --remote \
             REMOTE`, or keep the patch with `--to patch`",
        ));
    };
    let api = Api::from_env(&session.env.lookup(), Some(token.to_owned()))
        .map_err(|error| Error::failed("cannot reach the server", &error))?;
    let remote = GitRemote::with_token(&api, &name, &session.env.lookup());
    let remote = remote.map(Remote::from);
    let kind = match api.server().flavour() {
        Flavour::Github => ServerKind::Github(Box::new(api), name),
        // They have no API that makes commits of objects, so these are pushed.
        Flavour::Gitea | Flavour::Forgejo => ServerKind::Pushed(
            api.server().to_string(),
            DeliveryService::Gitea(Box::new(GiteaPulls::new(api, name))),
        ),
    };
    Ok(DeliveryServer { kind, remote, repository })
}

impl DeliveryServer {
    /// Returns what stands for a server that cannot be reached: with it, what a run has left can still be read.
    pub(crate) fn nowhere() -> Self {
        Self { kind: ServerKind::Nowhere, remote: None, repository: None }
    }

    /// Returns where git reaches it.
    pub(crate) fn remote(&self) -> Option<Remote> {
        self.remote.clone()
    }

    /// Returns its repository, as `host/owner/name`.
    pub(crate) fn repository(&self) -> Option<&str> {
        self.repository.as_deref()
    }

    /// Returns its API, where that is GitHub's.
    pub(crate) fn api(&self) -> Option<(&Api, &RepositoryName)> {
        match &self.kind {
            ServerKind::Github(api, repository) => Some((api, repository)),
            ServerKind::Nowhere | ServerKind::Pushed(..) => None,
        }
    }

    /// Returns its API, where that tells pull requests as GitHub's does.
    fn pulls_api(&self) -> Option<(&Api, &RepositoryName)> {
        match &self.kind {
            ServerKind::Pushed(_, DeliveryService::Gitea(pulls)) => Some(pulls.api()),
            ServerKind::Nowhere | ServerKind::Pushed(..) | ServerKind::Github(..) => self.api(),
        }
    }

    /// Returns the branch that is to have a fix.
    pub(crate) fn base(
        &self,
        asked: Option<&str>,
        session: &Session<'_>,
    ) -> Result<BranchName, DeliveryStop> {
        if let Some(name) = asked {
            return BranchName::parse(name).map_err(|error| {
                DeliveryStop::Failed(Error::refused(format!("`{}`: {error}", one_line(name, 100))))
            });
        }
        let unknown = |why: String| {
            DeliveryStop::Failed(Error::refused(why).with_hint("name the branch with `--base`"))
        };
        let pull = match default_base(&session.env.lookup()).map_err(|why| unknown(why.to_string()))? {
            DefaultBase::Branch(name) => return Ok(name),
            DefaultBase::OfPull(number) => {
                self.pulls_api().map(|(api, name)| PullHead::get(api, name, number).map_err(ForgeError::from))
            }
            DefaultBase::OfRun(run) => self.pulls_api().map(|(api, name)| PullHead::of_run(&run, api, name)),
            DefaultBase::Unknown => None,
        };
        if let Some(pull) = pull {
            return Ok(pull?.base);
        }
        let head = Call::new("symbolic-ref").with(&["--quiet", "--short"]).revision("HEAD");
        let here = repository::at(&session.cwd, session).line(&head).ok();
        here.and_then(|name| BranchName::parse(&name).ok())
            .ok_or_else(|| unknown("it is not known which branch is to have the fix".to_owned()))
    }

    /// Returns what takes the delivery.
    pub(crate) fn forge<'w>(
        &'w self,
        workspace: &'w Workspace,
        session: &Session<'_>,
    ) -> Result<Box<dyn Forge + 'w>, DeliveryStop> {
        match (&self.kind, &self.remote) {
            (ServerKind::Github(api, repository), _) => Ok(Box::new(GithubForge::new(api, repository))),
            (ServerKind::Pushed(name, service), Some(remote)) => Ok(Box::new(PushForge {
                name: name.clone(),
                workspace,
                remote: remote.clone(),
                who: identity(session),
                service: service.clone(),
            })),
            (ServerKind::Pushed(..), None) => Err(DeliveryStop::Failed(
                Error::refused("it is not known where git reaches the server")
                    .with_hint("set `GITHUB_SERVER_URL` to its address, without a password"),
            )),
            (ServerKind::Nowhere, _) => {
                Err(DeliveryStop::Failed(Error::refused("there is no server to deliver to")))
            }
        }
    }
}
