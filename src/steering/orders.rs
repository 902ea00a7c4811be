//! Does what a command means, after it was found that it may be done.

use serde_json::Value;

use super::desk::{DeliveryOrder, Desk};
use super::refusal::{NotDone, SteeringRefusal};
use crate::ci::github::standing_runs::StandingRun;
use crate::context::job_server::JobServer;
use crate::forge::github::api::ApiError;
use crate::forge::github::pull_list;
use crate::forge::github::workflow_control::{self, DispatchedRun};
use crate::people::command::WrittenCommand;
use crate::people::command_log::{CommandLog, HeardCommand};
use crate::process::clock::Clock;

/// What is to be done.
#[derive(Debug)]
pub(super) enum Order {
    /// A workflow is started on the branch of the pull request.
    Start { workflow: String, inputs: Value, says: &'static str },
    /// The failed jobs of a run are run again, or else its workflow is started.
    Repeat { run: u64, or_start: Option<String> },
    /// A run is cancelled, and its statuses end. Where it asks something, a job ends it in its journal.
    Stop { run: u64, statuses: Vec<StandingRun>, ending: Option<WorkflowStart> },
    /// A later job delivers what a run has fixed.
    Deliver { run: u64, instance: String },
    /// Something is said, and nothing is done.
    Tell(String),
    /// What can be said is told.
    Help,
}

/// A workflow that is to be started, with its inputs.
#[derive(Debug)]
pub(super) struct WorkflowStart {
    pub(super) workflow: String,
    pub(super) inputs: Value,
}

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) result: String,
    pub(super) delivery: Option<DeliveryOrder>,
    pub(super) is_help: bool,
}

impl Followed {
    fn so(result: impl Into<String>) -> Self {
        Self { result: result.into(), ..Self::default() }
    }
}

impl Desk<'_> {
    /// Follows a command, unless it was followed already or there were too many.
    pub(super) fn follow(
        &self,
        written: &WrittenCommand,
        log: &CommandLog,
        heard: &HeardCommand,
    ) -> Result<Followed, NotDone> {
        let order = self.plan(written)?;
        log.admits(heard)?;
        match order {
            Order::Start { workflow, inputs, says } => self.start(&workflow, &inputs, says),
            Order::Repeat { run, or_start } => self.repeat(run, or_start.as_deref()),
            Order::Stop { run, statuses, ending } => self.stopped(run, &statuses, ending),
            Order::Deliver { run, instance } => {
                let base = self.found.branches.first().cloned().unwrap_or_default();
                let result = format!("a job delivers what the run `{instance}` has fixed");
                Ok(Followed { delivery: Some(DeliveryOrder { run, instance, base }), ..Followed::so(result) })
            }
            Order::Tell(result) => Ok(Followed::so(result)),
            Order::Help => Ok(Followed { is_help: true, ..Followed::so("see below") }),
        }
    }

    fn start(&self, workflow: &str, inputs: &Value, says: &str) -> Result<Followed, NotDone> {
        let JobServer { api, repository, .. } = self.server;
        if let Some(max) = self.options.max_day {
            let today = Clock::start().now().day();
            if pull_list::dispatched_since(api, repository, &today)? >= max {
                return Err(SteeringRefusal::DayIsOver(max).into());
            }
        }
        let git_ref = format!("refs/heads/{}", self.found.head_branch);
        match workflow_control::dispatch(api, repository, workflow, &git_ref, inputs) {
            Ok(DispatchedRun { page: Some(page), .. }) => Ok(Followed::so(format!("{says}: {page}"))),
            Ok(DispatchedRun { page: None, .. }) => Ok(Followed::so(format!("{says} in `{workflow}`"))),
            // This says nothing about the workflow; every other error is a reason that the author can do something about.
            Err(error) if error.is_unavailable() => Err(error.into()),
            Err(reason) => {
                let inputs =
                    inputs.as_object().into_iter().flat_map(|inputs| inputs.keys().cloned()).collect();
                Err(SteeringRefusal::NotStarted { workflow: workflow.to_owned(), inputs, reason }.into())
            }
        }
    }

    fn repeat(&self, run: u64, or_start: Option<&str>) -> Result<Followed, NotDone> {
        let JobServer { api, repository, .. } = self.server;
        match workflow_control::rerun_failed(api, repository, run) {
            Ok(()) => Ok(Followed::so(format!("the failed jobs of the run {run} run again"))),
            // One that is too old, or a server that repeats nothing.
            Err(
                ApiError::Denied { .. }
                | ApiError::NotFound { .. }
                | ApiError::Refused { .. }
                | ApiError::Gone { .. },
            ) if let Some(workflow) = or_start => {
                self.start(workflow, &serde_json::json!({}), "it runs again")
            }
            Err(error) => Err(error.into()),
        }
    }

    fn stopped(
        &self,
        run: u64,
        statuses: &[StandingRun],
        ending: Option<WorkflowStart>,
    ) -> Result<Followed, NotDone> {
        let JobServer { api, repository, .. } = self.server;
        let why = format!("stopped by {}", self.found.comment.author.name);
        // A run that waits is over already for the server.
        let is_on = statuses.iter().any(|status| status.wait.is_none());
        match is_on.then(|| workflow_control::cancel(api, repository, run)) {
            // With 409 the server says that the run has ended meanwhile.
            None | Some(Ok(()) | Err(ApiError::Refused { status: 409, .. })) => {}
            Some(Err(error)) => return Err(error.into()),
        }
        for status in statuses {
            status.end(api, repository, &self.found.pull.head, &why)?;
        }
        let what = if is_on { "is cancelled" } else { "waits no more" };
        let stopped = format!("the run {run} {what}, and its status has ended");
        let Some(WorkflowStart { workflow, inputs }) = ending else { return Ok(Followed::so(stopped)) };
        // What could be stopped is: nobody answers a question whose status has ended.
        Ok(match self.start(&workflow, &inputs, "its journal ends as well") {
            Ok(started) => Followed::so(format!("{stopped}; {}", started.result)),
            Err(NotDone::Refused(why)) => {
                Followed::so(format!("{stopped}; its journal does not say so: {why}"))
            }
            Err(NotDone::Unavailable(why)) => {
                Followed::so(format!("{stopped}; its journal does not say so: {why}"))
            }
        })
    }
}
