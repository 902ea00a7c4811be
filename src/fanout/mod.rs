//! Fan-out: which items a plan has, on which leg each runs, and what the runs that came back prove together. The jobs
//! are the CI system's; nothing here starts one.
//!
//! Plans, legs and merges are worked out in pure files; [`planning`], [`leg`] and [`collect`] read the loops here, run
//! the items of a leg, and find what jobs have left.

pub(crate) mod candidates;
mod collect;
mod confirm;
pub mod each;
pub mod item;
pub mod item_plan;
pub(crate) mod leg;
mod leg_tree;
pub mod lock;
pub mod matrix;
pub mod merged_runs;
mod merged_tree;
pub mod partition;
pub(crate) mod planning;
pub mod put_off;
pub(crate) mod result;
mod reused_items;
pub mod severity;
mod since;
pub mod spread;
mod story;
mod values;
mod verified;
pub mod weights;
mod whole_tree;

/// The file with the plan, beside the result of a merge.
pub(crate) const PLAN: &str = "plan.json";

/// The directory with the bundles and the pages of the items, in what a merge leaves. The bundles are not called so, so that
/// the one of the merge is the only one.
pub(crate) const ITEMS: &str = crate::report::items::DIRECTORY;

/// The most items of a plan.
// Planning so many takes less than half a second; more are refused.
pub const MOST_ITEMS: usize = 10_000;

/// The exit code of a leg whose items were verified as far as they were begun, where somebody ended it.
pub const NOT_BEGUN: u8 = 4;

#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod testing;
