//! What verified the merge of a plan: its items, each on the tree on which it ended, and whether anybody has checked all of
//! their changes together.

use super::item::ItemId;
use crate::base::name::StateName;
use crate::base::object::ObjectId;
use crate::engine::verification::{
    CheckRecord, Confirmed, JudgesRecord, JudgesStanding, Reason, Verification, VerifiedExtent,
};
use crate::evaluate::verdict::Verdict;

/// An item that ran, or for which an earlier run stands, as a merge counts it.
pub(super) struct CountedItem<'m> {
    pub(super) id: &'m ItemId,
    /// What its run says; an earlier one that stands for it has left no more than its tree.
    pub(super) verification: Option<&'m Verification>,
    /// The tree on which it was verified, where that is known.
    pub(super) tree: Option<ObjectId>,
    /// What says that it is verified.
    pub(super) confirmed: Confirmed,
}

/// Says what verified all of it. `tree` is the merged one.
pub(super) fn of_merge(
    items: &[CountedItem<'_>],
    tree: Option<ObjectId>,
    extent: VerifiedExtent,
    reasons: Vec<Reason>,
) -> Verification {
    let known = || items.iter().filter_map(|item| item.verification);
    let checks = items.iter().filter_map(|item| {
        Some(CheckRecord {
            state: StateName::parse(item.id.as_str()).ok()?,
            verdict: Verdict::yes_if(item.confirmed != Confirmed::No),
            tree: item.tree.clone(),
            confirmed: item.confirmed,
        })
    });
    let worst = known().map(|verification| verification.judges.state).max_by_key(|state| severity(*state));
    Verification {
        tree,
        checks: checks.collect(),
        judges: JudgesRecord {
            // Without a run, there are no judges that it could have changed.
            state: worst.unwrap_or(JudgesStanding::Unchanged),
            files: known().flat_map(|verification| verification.judges.files.iter().cloned()).collect(),
        },
        suppressions: known().flat_map(|verification| verification.suppressions.iter().cloned()).collect(),
        reasons,
        stale: Vec::new(),
        unknown: None,
        dirty_start: None,
        extent,
        proves_nothing: known()
            .flat_map(|verification| verification.proves_nothing.iter().cloned())
            .collect(),
        spoils_success: false,
    }
}

/// Returns how much people have to look at judges in this state.
fn severity(state: JudgesStanding) -> u8 {
    match state {
        JudgesStanding::Unchanged => 0,
        JudgesStanding::Added => 1,
        JudgesStanding::Changed => 2,
        JudgesStanding::Confirmed => 3,
        JudgesStanding::Unknown => 4,
    }
}
