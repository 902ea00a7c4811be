//! What a plan is made of: loops, what somebody wants, and items that may have to run.

use std::path::PathBuf;

use super::each::Each;
use super::item_plan::{FanoutLoop, Item};
use super::partition::Partition;
use crate::base::name::VarName;
use crate::base::territory::Territory;
use crate::context::audience::Audience;
use crate::context::options::{ReuseStoreAt, ReuseUse};
use crate::definition::vendored::Copies;
use crate::session::prepare::prepared::Prepared;

/// What somebody wants planned.
#[derive(Clone, Debug)]
pub(crate) struct PlanOptions {
    /// The loops, by name or path.
    pub(crate) loops: Vec<String>,
    /// The parameters that take several values.
    pub(crate) each: Vec<Each>,
    /// The pattern of the directories of which each is an item.
    pub(crate) per_path: Option<String>,
    /// The commit since which something has to have changed.
    pub(crate) changed_since: Option<String>,
    /// Values of the context, for scopes that use them.
    pub(crate) context: Vec<(String, String)>,
    /// How many legs there may be.
    pub(crate) legs: Option<usize>,
    /// Files with the durations of earlier runs, the oldest first, or `run:latest`.
    pub(crate) weights: Vec<String>,
    /// How items come to their legs.
    pub(crate) partition: Partition,
    /// Whether an earlier run may stand for an item.
    pub(crate) reuse: ReuseUse,
    /// Where results of earlier runs are kept.
    pub(crate) reuse_store: ReuseStoreAt,
    /// Whom the runs of the items are shown to: what CI has verified holds in CI.
    pub(crate) audience: Audience,
    /// Whether the checkout may differ from its commit.
    pub(crate) dirty: bool,
    /// The files that planning writes. They are not changes of the checkout.
    pub(crate) written: Vec<PathBuf>,
    /// Whether loop files may lie outside of the repository.
    pub(crate) outside: bool,
    /// Whether copies of loops from other repositories may have been edited.
    pub(crate) copies: Copies,
}

/// A loop that is planned.
pub(super) struct LoopHere {
    pub(super) prepared: Prepared,
    pub(super) planned: FanoutLoop,
    /// Which of the loops below it cannot be known before it runs.
    pub(super) untold: Option<String>,
}

/// An item that may have to run, with what it looks at.
pub(super) struct Candidate {
    pub(super) item: Item,
    pub(super) territory: Territory,
    /// The place of its loop.
    pub(super) place: usize,
}

impl LoopHere {
    /// Tells whether it has a parameter.
    pub(super) fn declares(&self, name: &VarName) -> bool {
        self.prepared.machine.parameters.contains_key(name)
    }
}
