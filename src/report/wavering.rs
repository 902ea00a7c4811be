//! Which checks of a run waver: those that earlier runs have seen fail and pass on the same inputs, with what this run adds to
//! that. Only what was said before anything but a check has acted is about the inputs with which the run began.

use indexmap::IndexMap;

use super::mends::Mends;
use super::step::{Step, StepStanding};
use crate::base::name::StateName;
use crate::engine::check_history::{CheckHistory, ChecksBefore};
use crate::evaluate::verdict::Verdict;

/// The most verdicts that are kept of a run.
const MOST_VERDICTS: usize = 1000;

/// What the checks of a run say about the inputs with which it began.
#[derive(Clone, Debug, Default)]
pub struct Wavering {
    before: ChecksBefore,
    has_acted: bool,
    said: Vec<(StateName, bool)>,
}

impl Wavering {
    /// Begins with what earlier runs have seen.
    pub fn begin(&mut self, before: &ChecksBefore) {
        *self = Self { before: before.clone(), has_acted: false, said: Vec::new() };
    }

    /// Takes the next finished step.
    pub fn step(&mut self, step: &Step) {
        if self.has_acted || step.action.is_none() {
            return;
        }
        // What is not a known check may have changed what checks look at.
        if self.before.here(&step.state).is_none() || step.closing {
            self.has_acted = true;
            return;
        }
        if let Some(passed) = passed(step).filter(|_| self.said.len() < MOST_VERDICTS) {
            self.said.push((step.state.clone(), passed));
        }
    }

    /// Returns what checks have said about the inputs with which the run began, in order.
    pub fn said(&self) -> &[(StateName, bool)] {
        &self.said
    }

    /// Tells whether nothing but checks has acted.
    pub fn is_of_checks_alone(&self) -> bool {
        !self.has_acted
    }

    /// Returns the checks that waver, with what this run has added: in its steps, and in attempts of its closing pass.
    pub fn flaky(&self, mends: &Mends, closing: &[(StateName, u64)]) -> Vec<CheckHistory> {
        let mut all: IndexMap<&StateName, CheckHistory> = IndexMap::new();
        for history in &self.before.histories {
            let mut now = history.clone();
            let own = self.said.iter().filter(|(state, _)| history.is_here && *state == history.state);
            own.for_each(|(_, passed)| now.add(*passed));
            // What was seen on these inputs counts more than what was seen on others.
            if now.is_flaky() && all.get(&history.state).is_none_or(|known| !known.is_here) {
                all.insert(&history.state, now);
            }
        }
        let mut flaky: Vec<CheckHistory> = all.into_values().collect();
        // Each time, it passed after all of its failures.
        let mut own: IndexMap<&StateName, (u64, u64)> = IndexMap::new();
        let closing = closing.iter().map(|(state, failed)| (state, *failed));
        for (state, failed) in mends.flaky_failures().chain(closing) {
            let (all_failed, passed) = own.entry(state).or_default();
            *all_failed += failed;
            *passed += 1;
        }
        for (state, (failed, passed)) in own {
            if !flaky.iter().any(|known| known.state == *state && known.is_here) {
                flaky.retain(|known| known.state != *state);
                let of = failed + passed;
                flaky.push(CheckHistory {
                    state: state.clone(),
                    failed,
                    of,
                    taken_back: failed,
                    is_here: true,
                });
            }
        }
        flaky
    }
}

/// Tells whether a check passed; nothing where it could not say. An error is no failure of what it looked at.
fn passed(step: &Step) -> Option<bool> {
    let verdict = step.verdict();
    match step.standing() {
        StepStanding::Passing => Some(true),
        StepStanding::Failing => verdict.filter(|verdict| !verdict.is_error()).map(|_| false),
        // The failure of a check in quarantine is one all the same.
        StepStanding::Open => {
            let no = Verdict::yes_if(false);
            verdict.filter(|verdict| verdict.is_quarantined() || **verdict == no).map(|_| false)
        }
    }
}
