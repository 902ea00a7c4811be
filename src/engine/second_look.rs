//! A check that is made once more after the run is over, on the same tree: what it says then decides nothing, and tells a check that
//! wavers from one that reads what nobody has named.

use super::Engine;
use super::request::Recheck;
use crate::base::name::StateName;
use crate::evaluate::observation::Observation;
use crate::evaluate::verdict::Observes;

impl Engine<'_> {
    /// Returns the check of a state, or those of the loop that it runs, to be made once more; none where that cannot be done
    /// without harm.
    pub fn second_look(&self, state: &StateName) -> Vec<Recheck> {
        self.rechecks_of(state).unwrap_or_default()
    }

    /// Tells whether a check passed that was made once more; nothing where something kept it from saying either.
    pub fn second_verdict(&self, check: &Recheck, seen: &Observation) -> Option<bool> {
        if seen.stop.is_some() {
            return None;
        }
        let judged = self.judged_again(check, seen);
        match check.step.observes(&judged.verdict) {
            Observes::Passing => Some(true),
            Observes::Failing if !judged.verdict.is_error() => Some(false),
            Observes::Failing | Observes::Nothing => None,
        }
    }
}
