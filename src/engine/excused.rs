//! What the failure of a check means that is known to waver, or that people have put into quarantine.

use serde_json::{Map, Value};

use super::Engine;
use super::check_history::QuarantinedCheck;
use crate::evaluate::verdict::{Observes, Verdict};
use crate::machine::routing::{self, WayOut};
use crate::machine::{Step, StepId};

/// What a state has said, with what that says about the work.
pub(super) struct Said {
    pub(super) verdict: Verdict,
    pub(super) observes: Observes,
    pub(super) details: Map<String, Value>,
}

impl Engine<'_> {
    /// Weighs a verdict: the failure of a check in quarantine says nothing about the work, whoever would rely on it. An error
    /// or a timeout is not a failure of the check, and is never excused.
    pub(super) fn said(
        &self,
        step: &Step,
        id: StepId,
        verdict: Verdict,
        mut details: Map<String, Value>,
    ) -> Said {
        let Some(quarantine) = self.excuse(step, &verdict) else {
            return Said { observes: step.observes(&verdict), verdict, details };
        };
        let observes = Observes::Nothing;
        if self.made_again(step, id, &verdict).is_some() {
            return Said { verdict, observes, details };
        }
        details.insert("said".to_owned(), verdict.as_str().into());
        details.insert("quarantine".to_owned(), quarantine.words().into());
        Said { verdict: Verdict::quarantined(), observes, details }
    }

    /// Returns the way back into a check that failed and is made again.
    pub(super) fn made_again(&self, step: &Step, id: StepId, verdict: &Verdict) -> Option<WayOut> {
        let is_known = self.start.event.checks.is_flaky(&step.name);
        routing::made_again(step, id, verdict, self.run.rounds().failures, is_known)
    }

    /// Tells whether a check of the closing pass that failed is made again, as it would be in its state.
    pub(super) fn is_made_again(&self, step: &Step, verdict: &Verdict, before: u32) -> bool {
        let is_known = self.start.event.checks.is_flaky(&step.name);
        routing::is_made_again(step, verdict, before, is_known)
    }

    /// Returns the quarantine by which people excuse that a check says this.
    pub(super) fn excuse(&self, step: &Step, verdict: &Verdict) -> Option<&QuarantinedCheck> {
        let is_failure =
            step.is_check && step.observes(verdict) == Observes::Failing && routing::is_no(step, verdict);
        self.start.event.checks.quarantine(&step.name).filter(|_| is_failure)
    }

    /// Tells whether this verdict is that of a check whose failure was excused.
    pub(super) fn is_excused(&self, step: &Step, verdict: &Verdict) -> bool {
        verdict.is_quarantined() && self.start.event.checks.quarantine(&step.name).is_some()
    }
}
