//! What lies before whoever decides about a comment.

use super::SteerOptions;
use crate::forge::github::answers::FoundAnswer;
use crate::forge::github::pull_comments::PullComment;
use crate::session::read::job_server::JobServer;

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
    pub(super) options: &'d SteerOptions,
}
