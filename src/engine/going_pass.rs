//! A closing pass that goes on: what it has to do, and what it came to so far.

use std::collections::VecDeque;

use super::changes::TreeIds;
use super::event::LoopComplete;
use super::request::{AsideRequest, Recheck};
use super::verification::Verification;
use crate::base::name::StateName;
use crate::evaluate::observation::Stop;

/// A closing pass that goes on.
pub(super) struct Pass {
    /// The end that the run has come to, with what it did to the tree.
    pub(super) end: LoopComplete,
    pub(super) verification: Verification,
    /// The tree that has to be there afterwards.
    pub(super) tree: TreeIds,
    /// The judges that have to be as they were at the start first; none where they are.
    pub(super) aside: Option<AsideRequest>,
    pub(super) left: VecDeque<Recheck>,
    /// The states of which a check said no, with what it said.
    pub(super) refused: Vec<(StateName, String)>,
    /// Why the judges of the start could not be put in their places.
    pub(super) failed: Option<String>,
    /// What ended it early.
    pub(super) cut: Option<Stop>,
    pub(super) has_restored: bool,
}
