//! Why a cassette has no answer to a request, or does not keep one.

use crate::base::explanation::Explanation;

/// A request that a cassette has no answer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireMiss {
    /// Why.
    pub why: String,
    /// How it differs from the nearest one.
    pub lines: Vec<String>,
}

/// Why an answer was not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// A secret stands in it in pieces, which cannot be masked one by one.
    #[error("an answer at the wire holds a secret in several pieces")]
    Secret,
    /// It could not be written, or what was there could not be read.
    #[error("an answer at the wire could not be kept: {0}")]
    File(Explanation),
}
