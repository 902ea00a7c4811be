//! The question that a run waits with, as its journal tells it.

use crate::engine::event::Event;
use crate::engine::outcome::Outcome;
use crate::engine::question::Awaiting;
use crate::journal::known::{KnownRun, RunStatus};
use crate::journal::reader;

/// Returns the question that a run waits for an answer to, if it does.
pub(crate) fn awaiting(run: &KnownRun) -> Option<Awaiting> {
    if run.status != RunStatus::Ended(Outcome::Handoff) {
        return None;
    }
    let mut last = None;
    let read = reader::read(&run.files.journal(), |stamped| {
        if let (Event::Handoff(handoff), 0) = (stamped.event, stamped.depth) {
            last = handoff.awaiting;
        }
    });
    read.ok().and(last).map(|awaiting| *awaiting)
}
