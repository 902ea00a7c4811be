//! What lies before whoever decides about a comment.

use crate::context::job_server::JobServer;
use crate::forge::github::answers::FoundAnswer;
use crate::forge::github::pull_comments::PullComment;

/// How a comment is followed.
#[derive(Clone, Debug)]
pub struct SteerOptions {
    /// The id of the comment; by default that of the event.
    pub comment: Option<u64>,
    /// The file of the workflow that `fix` starts.
    pub fix_workflow: String,
    /// How many runs of the repository a day may start by dispatch, whoever asks for them.
    pub max_day: Option<u64>,
}

/// What is to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryOrder {
    /// The run of the workflow that has the bundle.
    pub run: u64,
    /// The id of the run.
    pub instance: String,
    /// The branch that the fix is for.
    pub base: String,
}

/// A comment, and everything around it that a decision needs.
pub(super) struct Desk<'d> {
    pub(super) server: &'d JobServer,
    pub(super) found: &'d FoundAnswer,
    pub(super) comments: &'d [PullComment],
    /// Who had runs started by comments before this one.
    pub(super) askers: &'d [u64],
    pub(super) options: &'d SteerOptions,
}
