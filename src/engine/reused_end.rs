//! Ends a run that was not made: with what the earlier one verified, on the tree that there is now.

use super::Engine;
use super::changes::{Changes, KnownStart, StartTree, TreeChanges};
use super::event::{Event, LoopComplete};
use super::outcome::{Outcome, TerminatedBy};
use super::reused::ReusedRun;
use super::verification::{CheckRecord, Confirmed, JudgesRecord, Verification, VerifiedExtent};
use crate::base::time::millis;

impl Engine<'_> {
    /// Ends a run for which an earlier one stands, if one does: with it, the start is also the end.
    pub(super) fn stand_in(&mut self, events: &mut Vec<Event>) {
        let Some(reused) = self.start.reused.clone() else { return };
        // No step follows that they could be said before.
        for message in self.start.event.warnings.clone() {
            self.record(Event::Warning { state: None, message }, events);
        }
        let end = self.reused_end(&reused);
        self.record(Event::Reused(reused), events);
        self.record(Event::LoopComplete(end), events);
    }

    fn reused_end(&self, reused: &ReusedRun) -> LoopComplete {
        let start = match &self.start.event.tree {
            Some(StartTree::Known(start)) => Some(&**start),
            Some(StartTree::Unknown { .. }) | None => None,
        };
        let confirmed = |check: &CheckRecord| CheckRecord { confirmed: Confirmed::Reused, ..check.clone() };
        let verification = Verification {
            tree: start.map(|start| start.ids.tree.clone()),
            checks: reused.checks.iter().map(confirmed).collect(),
            judges: JudgesRecord::unchanged(),
            suppressions: Vec::new(),
            proves_nothing: Vec::new(),
            reasons: Vec::new(),
            stale: Vec::new(),
            unknown: None,
            dirty_start: None,
            extent: VerifiedExtent::Whole,
            spoils_success: false,
        };
        LoopComplete {
            duration_ms: millis(self.now),
            verified: true,
            reason: reused.words(),
            changes: start.map(|start| Changes::Known(Box::new(unchanged(start, reused.has_uncommitted)))),
            verification: Some(Box::new(verification)),
            ..LoopComplete::new(Outcome::Success, TerminatedBy::Terminal, reused.final_state.clone())
        }
    }
}

/// Returns what a run changes that does nothing.
fn unchanged(start: &KnownStart, has_uncommitted: bool) -> TreeChanges {
    let mut unseen = start.unseen.clone();
    if has_uncommitted {
        unseen.push("some of the inputs are in no commit".to_owned());
    }
    TreeChanges {
        before: start.before.clone(),
        // Untracked files are in no commit, so they are no difference to it.
        as_committed: start.entries.iter().all(|entry| !entry.tracked),
        unseen,
        ..TreeChanges::none(start.ids.clone())
    }
}
