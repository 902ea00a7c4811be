//! A survey of the working tree: enough to tell whether anything changed since an earlier one, and nothing more.

use serde::{Deserialize, Serialize};

use crate::base::explanation::Explanation;

/// What the working tree was like at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// The commit that is checked out; none before the first one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<String>,
    /// Digest of everything that differs from that commit: what is staged, changed, deleted and untracked.
    pub digest: String,
}

/// A survey, or why there is none.
pub type Surveyed = Result<Survey, Explanation>;
