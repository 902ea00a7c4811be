//! A run that was not made, because an earlier one had found the same: what that one verified holds for this one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::verification::CheckRecord;
use crate::base::name::StateName;
use crate::base::object::ObjectId;
use crate::base::sum::Sum;
use crate::base::text::one_line;
use crate::base::time::{Timestamp, human};

/// What an earlier run has verified, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReusedRun {
    /// The key that both runs have.
    pub key: Sum,
    /// The id of the earlier run.
    pub run: String,
    /// The commit that it began at.
    pub commit: ObjectId,
    /// The tree that it verified.
    pub tree: ObjectId,
    /// Whether that tree is not the commit's, or some of what the run read is in no commit.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_dirty: bool,
    /// When it ended.
    pub when: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The page of its job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link: Option<String>,
    /// The terminal in which it ended.
    pub final_state: StateName,
    /// Its checks, with what they said last.
    pub checks: Vec<CheckRecord>,
    /// The states that it visited.
    pub states: Vec<ReusedState>,
    /// Whether some of what this run would read is in no commit, so that no commit is green by it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub has_uncommitted: bool,
}

/// A state of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReusedState {
    /// Its name.
    pub state: StateName,
    /// How long its actions took, in milliseconds.
    pub duration_ms: u64,
}

impl ReusedRun {
    /// Says it in a few words: `verified at a1b2c3d4e5f6, same inputs`.
    pub fn words(&self) -> String {
        let short = |id: &ObjectId| id.as_str().get(..12).unwrap_or(id.as_str()).to_owned();
        // A clone of the commit would find something else.
        if self.has_uncommitted {
            return format!("verified on tree {}, same inputs, some in no commit", short(&self.tree));
        }
        if self.is_dirty {
            return format!("verified on tree {}, same inputs", short(&self.tree));
        }
        format!("verified at {}, same inputs", short(&self.commit))
    }

    /// Says it with the run and how long that took: `verified at a1b2c3d4e5f6, same inputs, by run 812 (took 3m)`.
    pub fn words_by_run(&self) -> String {
        let took = human(Duration::from_millis(self.duration_ms));
        format!("{}, by run {} (took {took})", self.words(), one_line(&self.run, 200))
    }
}
