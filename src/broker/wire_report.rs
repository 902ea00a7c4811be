//! What a call did at the wire, once it is over.

use std::collections::BTreeSet;

use http::StatusCode;

use super::cassette_faults::{NotKept, WireMiss};
use super::dollars::Dollars;
use super::ledger::Shortage;
use super::meter::WireOddity;
use super::tokens::TokenCounts;
use crate::base::text::plural;
use crate::evaluate::model::WireUsage;

/// What a call did at the wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WireReport {
    /// Requests for words of a model that were answered, or may have been.
    pub requests: u32,
    /// Requests that were not let through.
    pub refused: u32,
    /// Requests that the service did not answer, or answered with an error of its own.
    pub failed: u32,
    /// What those took that were answered.
    pub counts: TokenCounts,
    /// What they cost; none where the price of one is not known.
    pub cost: Option<Dollars>,
    /// What those cost whose price is known.
    pub priced: Dollars,
    /// The model that answered last.
    pub model: Option<String>,
    /// Why a request was not let through first.
    pub shortage: Option<Shortage>,
    /// What the service failed with when no more was asked of it.
    pub gave_up: Option<ServiceFailure>,
    /// The first request that a recording had no answer to.
    pub missed: Option<WireMiss>,
    /// Why an answer first was not kept.
    pub not_kept: Option<NotKept>,
    /// What was odd about what the service said.
    pub oddities: BTreeSet<WireOddity>,
}

/// How a service failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceFailure {
    /// It answered with an error.
    #[error("the service answered with {}", .0.as_u16())]
    Status(StatusCode),
    /// It could not be reached.
    #[error("the service could not be reached")]
    Unreached,
    /// It did not answer.
    #[error("the service did not answer")]
    Unanswered,
}

impl ServiceFailure {
    /// Tells whether the CLI has nothing of the service to go by.
    pub fn has_no_answer(self) -> bool {
        matches!(self, Self::Unreached | Self::Unanswered)
    }
}

impl WireReport {
    /// Returns what the journal keeps of it.
    pub fn usage(&self) -> WireUsage {
        WireUsage { requests: self.requests, refused: self.refused, failed: self.failed }
    }

    /// Returns what people should know of it, as warnings.
    pub fn warnings(&self) -> Vec<String> {
        let oddity = |oddity: &WireOddity| {
            match oddity {
                WireOddity::Unsaid => {
                    "the service did not say what an answer took, so the most that it can have taken counts"
                }
                WireOddity::Beyond => "the service says that an answer took more than its request allows",
            }
            .to_owned()
        };
        let refused = self
            .shortage
            .as_ref()
            .map(|why| format!("{} not let through: {why}", plural(self.refused, "request")));
        self.oddities.iter().map(oddity).chain(refused).collect()
    }
}
