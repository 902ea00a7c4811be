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
    /// What is made again as things stand.
    pub(super) left: VecDeque<Recheck>,
    /// What is made again with the judges of the start.
    pub(super) with_judges: VecDeque<Recheck>,
    /// What is put aside for those that say no, which are then made again: tests that the run has added may need what
    /// was put aside before. None where that is of no use, or was done.
    pub(super) again: Option<AsideRequest>,
    /// Whether the judges of the start are in their places.
    pub(super) is_aside: bool,
    /// Whether the tests that the run has added are put aside.
    pub(super) without_added: bool,
    /// The states whose checks were made.
    pub(super) made: Vec<StateName>,
    /// The checks that said no.
    pub(super) refused: Vec<RefusedCheck>,
    /// Why the judges of the start could not be put in their places.
    pub(super) failed: Option<String>,
    /// What ended it early.
    pub(super) cut: Option<Stop>,
    pub(super) has_restored: bool,
}

impl Pass {
    /// Returns what has to be put aside next, and goes on with the checks that are made then.
    pub(super) fn next_aside(&mut self) -> Option<AsideRequest> {
        if let Some(aside) = self.aside.take().filter(|_| self.refused.is_empty()) {
            self.left = std::mem::take(&mut self.with_judges);
            self.is_aside = true;
            return Some(aside);
        }
        // One that says no on the tree as it is says so whatever is put aside.
        self.with_judges.clear();
        let again = self.again.take().filter(|_| !self.refused.is_empty() && self.is_aside)?;
        self.without_added = true;
        self.left = self.refused.drain(..).map(|refused| refused.check).collect();
        Some(again)
    }
}

/// A check that said no in a closing pass.
pub(super) struct RefusedCheck {
    pub(super) check: Recheck,
    /// What it said.
    pub(super) said: String,
}
