//! What is reported about a run beside its log: which run, where, and with whose token.

use std::fmt::Debug;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::lookup::Lookup;
use crate::report::annotations::Annotation;
use crate::report::digest::Digest;

/// Where a run is to be reported beside its log and its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// As a status of the commit; nothing asks for it wherever it is possible.
    pub status: Option<bool>,
    /// The name of the status and of the check run, in place of the loop's own.
    pub context: Option<String>,
    /// As a check run.
    pub check: bool,
    /// As a comment on the pull request.
    pub comment: bool,
    /// The commit, in place of that of the event.
    pub sha: Option<String>,
    /// Whether a later job delivers what the run changes: until then, its status waits.
    pub delivers: bool,
}

impl ReportOptions {
    /// Tells whether anything was asked for explicitly.
    pub(crate) fn is_asked(&self) -> bool {
        self.status == Some(true) || self.check || self.comment
    }
}

/// The run that is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedRun {
    /// The loop.
    pub loop_name: String,
    /// The run.
    pub instance: String,
    /// Its key, where people have to see it.
    pub key: Option<String>,
    /// Where attempts of a CI run are not counted: what tells its place in the CI run from every other one, and is the same
    /// when that runs again.
    pub place: Option<String>,
}

/// Asks for a run to be reported beside its log.
#[derive(Clone, Copy)]
pub struct ReportRequest<'t> {
    /// The environment.
    pub env: Lookup<'t>,
    /// The token that reports it.
    pub token: Option<&'t str>,
    /// Where it is reported.
    pub options: &'t ReportOptions,
    /// Which run it is.
    pub subject: &'t ReportedRun,
    /// Whether it has only an end: it never began, or the process that began it is gone.
    pub is_over: bool,
}

/// How a run ended.
#[derive(Debug)]
pub struct FinalReport {
    /// The run.
    pub digest: Digest,
    /// All its annotations.
    pub annotations: Vec<Annotation>,
}

/// What could not be reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unreported {
    /// The token may not do it: one sentence about everything that it may not do.
    pub notice: Option<String>,
    /// What else went wrong.
    pub warnings: Vec<String>,
}

/// Reports one run beside its log.
pub trait Reporter: Debug + Send {
    /// Reports how the run ended, and returns what could not be reported within this time.
    fn end(self: Box<Self>, report: FinalReport, limit: Duration) -> Unreported;
}
