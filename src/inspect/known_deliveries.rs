//! What became of what runs have delivered: asked of the server, with what is known here of the runs.

use std::collections::BTreeMap;

use super::stats_sources::RunsAsked;
use crate::base::text::one_line;
use crate::base::time::Since;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::job_server::unanswered;
use crate::forge::github::api::Api;
use crate::forge::github::delivery_list;
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::process::clock::Clock;
use crate::report::delivery_fates::DeliveryList;
use crate::report::run_stats::RunNumbers;
use crate::repository;
use crate::session::end::bundler;

/// Which deliveries are meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveriesAsked {
    /// Those of this loop.
    pub(crate) name: Option<String>,
    /// Those that were opened since then.
    pub(crate) since: Option<Since>,
    /// Where the runs are that say what they have cost; without it, in this checkout.
    pub(crate) from: Option<String>,
    /// The repository; without it, that of the job or of the checkout.
    pub(crate) repository: Option<String>,
}

impl Session<'_> {
    /// Asks what became of deliveries.
    ///
    /// # Errors
    /// No repository is known, or its server does not answer.
    pub(crate) fn delivery_list(&self, asked: &DeliveriesAsked) -> Result<DeliveryList, Error> {
        let env = &self.env.lookup();
        let named = asked.repository.clone().or_else(|| WorkflowJob::read(env).repository);
        let named = named.or_else(|| {
            let here = bundler::here(&repository::at(&self.cwd, self), self)?;
            here.strip_prefix("github.com/").map(str::to_owned)
        });
        let named = named.ok_or_else(|| {
            Error::refused("no repository is known whose deliveries could be looked at")
                .with_hint("`--repo OWNER/NAME` names one; a checkout of one of GitHub has its name")
        })?;
        let repository = RepositoryName::parse(&named).ok_or_else(|| {
            Error::refused(format!("`{}` is not a repository", one_line(&named, 100)))
                .with_hint("write `OWNER/NAME`")
        })?;
        let api = self.delivery_api()?;
        let now = Clock::start().now();
        let since = asked.since.map(|since| since.from(now));
        let mut list =
            delivery_list::list(&api, &repository, since, now).map_err(|error| unanswered(&error))?;
        self.add_costs(&mut list, asked)?;
        // Only now: the name of a loop that lies in a directory is not in the id of its run.
        if let Some(name) = &asked.name {
            list.deliveries.retain(|delivery| delivery.loop_name.as_deref() == Some(name));
        }
        Ok(list)
    }

    /// Returns the server that is asked for deliveries.
    ///
    /// # Errors
    /// There is no token.
    pub(crate) fn delivery_api(&self) -> Result<Api, Error> {
        let token = self.env.token().ok_or_else(|| {
            Error::refused("there is no token to ask the server with")
                .with_hint("give it in `LL_TOKEN` or `GITHUB_TOKEN`; it needs `pull-requests: read` and `contents: read`")
        })?;
        Api::from_env(&self.env.lookup(), Some(token.to_owned())).map_err(|error| unanswered(&error))
    }

    /// Adds what is known of the runs: what they have cost, and what their loops are called.
    fn add_costs(&self, list: &mut DeliveryList, asked: &DeliveriesAsked) -> Result<(), Error> {
        let mut known: BTreeMap<String, RunNumbers> = BTreeMap::new();
        // All runs, not those of one loop: a run says its loop where the delivery does not.
        let runs = RunsAsked {
            from: asked.from.clone(),
            repository: asked.repository.clone(),
            ..RunsAsked::default()
        };
        self.each_run(&runs, &mut |run| {
            known.insert(run.run_id.clone(), run.clone());
        })?;
        for delivery in &mut list.deliveries {
            if let Some(run) = known.get(&delivery.run) {
                delivery.cost_usd = run.usage().known_cost();
                delivery.model.clone_from(&run.usage().model);
                delivery.loop_name = Some(run.loop_name.clone());
            }
        }
        Ok(())
    }
}
