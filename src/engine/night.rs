//! The result of one night of a maintain loop, for the reports of the next ones: names and counts, no output.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use crate::base::name::StateName;
use crate::base::time::Timestamp;

/// A run of a maintain loop that ends with its first clean cycle, over all its resumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Night {
    /// The id of the run.
    pub run_id: String,
    /// When it began.
    pub at: Timestamp,
    /// How it ended; nothing when it was killed before that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<Outcome>,
    /// Whether something passed since the last failing observation.
    pub verified: bool,
    /// Whether it left the tree as it was; nothing where that is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unchanged: Option<bool>,
    /// How many cycles it took.
    pub cycles: u32,
    /// States that failed, and passed after another state had acted.
    pub fixed: Vec<StateName>,
    /// States that failed, and passed although nothing had been done.
    pub flaky: Vec<StateName>,
    /// States that failed last.
    pub left: Vec<StateName>,
}
