//! What a state came to, as later states and the run around a sub-loop can refer to it.

use crate::base::name::StateName;
use crate::evaluate::observation::{Observation, Stream, Text};
use crate::evaluate::verdict::Verdict;

/// The result of a state, for later states to refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct StateResult {
    /// The state.
    pub state: StateName,
    /// What its action did.
    pub seen: Observation,
    /// How that was judged, if it was.
    pub verdict: Option<Verdict>,
}

impl StateResult {
    /// Returns how much of its streams is kept, here or elsewhere.
    pub(super) fn length(&self) -> u64 {
        self.seen.stdout.length() + self.seen.stderr.length()
    }

    pub(super) fn texts_mut(&mut self) -> [(Stream, &mut Text); 2] {
        [(Stream::Stdout, &mut self.seen.stdout), (Stream::Stderr, &mut self.seen.stderr)]
    }
}
