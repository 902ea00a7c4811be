//! What a leg says of the items for which it had no time left: without it, a merge could not tell them from items whose
//! job was lost. It makes nothing green, whoever wrote it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::item_plan::Plan;
use super::merged_runs::{Absence, ItemStanding, MergeContent, MergeInput, Merged};
use crate::base::sum::Sum;

/// The name of the file in the report directory of the leg.
pub const FILE: &str = "not-begun.json";

/// The most bytes of such a file.
// The ids of the largest plan, of 100 bytes each, take about 1 MiB.
pub const MAX_FILE: u64 = 4 << 20;

/// The items that a leg did not begin because its deadline had come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutOff {
    /// The plan.
    pub plan_id: Sum,
    /// The attempt of the leg.
    pub attempt: u32,
    /// The ids of the items.
    pub items: BTreeSet<String>,
}

impl Merged {
    /// Takes items of which nothing came back for such as go on later, where the last attempt at their leg says so.
    #[must_use]
    pub fn with_put_off(mut self, put_off: &[PutOff], plan: &Plan, readings: &[MergeInput]) -> Self {
        let last_attempt = |leg: &str| {
            let of_leg = readings.iter().filter_map(|reading| match &reading.found {
                MergeContent::Run(run) => run.assignment.as_ref().filter(|one| one.leg.as_str() == leg),
                MergeContent::Unreadable { .. } | MergeContent::Foreign { .. } => None,
            });
            of_leg.map(|assignment| assignment.attempt).max().unwrap_or(0)
        };
        for item in &mut self.items {
            // What came back and cannot be used stays an error, whatever a leg says of it.
            let ItemStanding::Missing { why, absence: absence @ Absence::Lost } = &mut item.standing else {
                continue;
            };
            let leg = item.leg.as_ref().map_or("", |leg| leg.as_str());
            let says_so = |put_off: &&PutOff| {
                put_off.plan_id == plan.plan_id
                    && put_off.items.contains(item.id.as_str())
                    // A later attempt may have begun the item, and lost it.
                    && put_off.attempt >= last_attempt(leg)
            };
            if let Some(put_off) = put_off.iter().filter(says_so).max_by_key(|put_off| put_off.attempt) {
                *absence = Absence::PutOff;
                *why = format!("attempt {} had no time left for it", put_off.attempt);
            }
        }
        self.count();
        self
    }
}
