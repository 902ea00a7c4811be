//! What is reported about a run beside its log: which run, where, and with whose token.

use super::job::Lookup;

/// Where a run is to be reported beside its log and its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// As a status of the commit; without a word, wherever that is possible.
    pub status: Option<bool>,
    /// The name of the status and of the check run, in place of the loop's own.
    pub context: Option<String>,
    /// As a check run.
    pub check: bool,
    /// As a comment on the pull request.
    pub comment: bool,
    /// The commit, in place of that of the event.
    pub sha: Option<String>,
}

impl Wanted {
    /// Tells whether something was asked for in words.
    pub(super) fn is_asked(&self) -> bool {
        self.status == Some(true) || self.check || self.comment
    }
}

/// What is reported: which run of which loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The loop.
    pub loop_name: String,
    /// The run.
    pub instance: String,
    /// Where the loop is at home, as seen from the root of the repository; nothing for the root itself.
    pub directory: String,
}

/// A run that people are to be told about beside its log: where, by whom, and what has to be known for that.
#[derive(Clone, Copy)]
pub struct Telling<'t> {
    /// The environment.
    pub env: Lookup<'t>,
    /// The token that may tell.
    pub token: Option<&'t str>,
    /// Where it is told.
    pub wanted: &'t Wanted,
    /// Which run it is.
    pub subject: &'t Subject,
}
