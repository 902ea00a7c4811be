//! Where a fix goes, what is asked of its delivery, and its result.

use std::path::PathBuf;

use super::delivered::Done;
use super::leaks::LeakPlace;
use crate::base::object::ObjectId;
use crate::context::options::LockOptions;
use crate::forge::forge_trait::Checks;
use crate::policy::DeliveryMode;

/// What is delivered, and how.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches of a command line")]
pub struct DeliverOptions {
    /// A bundle, an artifact, or a run of this machine.
    pub what: String,
    /// Where it goes.
    pub way: DeliveryMode,
    /// The branch that is to have it.
    pub base: Option<String>,
    /// The remote that a branch is pushed to with the user's own git.
    pub remote: Option<String>,
    /// Whether a commit without a good signature is refused.
    pub require_signed: bool,
    /// Whether a run that was not verified is delivered as a draft.
    pub unverified: bool,
    /// Whether a run is delivered that changed its judges, as a draft that names them.
    pub allow_judges: bool,
    /// Whether a commit may be pushed on which no checks start.
    pub accept_no_checks: bool,
    /// Protected paths that may be changed.
    pub allow_paths: Vec<String>,
    /// Places where something may look like a secret.
    pub allow_secrets: Vec<LeakPlace>,
    /// The directory of `changes.patch`.
    pub report_dir: Option<PathBuf>,
    /// Whether nothing is written to the server.
    pub dry_run: bool,
    /// How what it changes is locked for other machines while it is written, if it is.
    pub lock: Option<LockOptions>,
    /// Whether it waits for the lock.
    pub queue: bool,
}

/// What a way has done.
pub(crate) struct Brought {
    pub(crate) done: Done,
    pub(crate) url: Option<String>,
    pub(crate) commit: Option<ObjectId>,
    pub(crate) signed: Option<bool>,
    pub(crate) checks: Checks,
    pub(crate) notes: Vec<String>,
}

impl Brought {
    /// Nothing was written.
    pub(crate) fn nothing(done: Done) -> Self {
        Self { done, url: None, commit: None, signed: None, checks: Checks::None, notes: Vec::new() }
    }
}
