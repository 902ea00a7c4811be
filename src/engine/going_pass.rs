//! A closing pass that goes on: what it has to do, and what it came to so far.

use std::collections::{BTreeMap, VecDeque};

use super::changes::TreeIds;
use super::event::LoopComplete;
use super::request::{AsideRequest, Recheck};
use super::verification::Verification;
use crate::base::name::StateName;
use crate::evaluate::observation::Stop;
use crate::judges::found_judges::AddedTest;

/// A closing pass that goes on.
pub(super) struct GoingPass {
    /// The end that the run has come to, with what it did to the tree.
    pub(super) end: LoopComplete,
    pub(super) verification: Verification,
    /// The tree that has to be there afterwards.
    pub(super) tree: TreeIds,
    /// The judges that have to be as they were at the start first; none where they are.
    pub(super) aside: Option<AsideRequest>,
    /// What is made again as things stand.
    pub(super) left: VecDeque<Recheck>,
    /// What is made again with the judges of the start.
    pub(super) with_judges: VecDeque<Recheck>,
    /// What is put aside for those that say no, which are then made again: tests that the run has added may need what
    /// was put aside before. None where that is of no use, or was done.
    pub(super) again: Option<AsideRequest>,
    /// The tests that were added and are still to be run without the work of the run.
    pub(super) proofs: VecDeque<ProofRun>,
    /// Those that are run so now, with what was seen so far.
    pub(super) proving: Option<ProofRun>,
    /// The tests that pass without the work.
    pub(super) proves_nothing: Vec<String>,
    /// Whether the judges of the start are in their places.
    pub(super) is_aside: bool,
    /// Whether the tests that the run has added are put aside.
    pub(super) without_added: bool,
    /// The states whose checks were made.
    pub(super) made: Vec<StateName>,
    /// How often each check was made again that failed and is known to waver, by its name.
    pub(super) made_again: BTreeMap<String, u32>,
    /// The states whose checks failed while people excuse that.
    pub(super) excused: Vec<StateName>,
    /// The checks that said no.
    pub(super) refused: Vec<RefusedCheck>,
    /// Why the judges of the start could not be put in their places.
    pub(super) failed: Option<String>,
    /// What ended it early.
    pub(super) cut: Option<Stop>,
    pub(super) has_restored: bool,
}

impl GoingPass {
    /// Returns what has to be put aside next, and goes on with the checks that are made then.
    pub(super) fn next_aside(&mut self) -> Option<AsideRequest> {
        // With other files in place, each check has its attempts anew.
        self.made_again.clear();
        // Refused as things stand, it is refused whatever is put aside, and nothing more is asked.
        if let Some(aside) = self.aside.take().filter(|_| self.refused.is_empty()) {
            self.left = std::mem::take(&mut self.with_judges);
            self.is_aside = true;
            return Some(aside);
        }
        // One that says no on the tree as it is says so whatever is put aside.
        self.with_judges.clear();
        // Only after the judges of the start were in place can the added tests have missed
        // something.
        if let Some(again) = self.again.take().filter(|_| !self.refused.is_empty() && self.is_aside) {
            self.without_added = true;
            self.left = self.refused.drain(..).map(|refused| refused.check).collect();
            return Some(again);
        }
        self.conclude_proof();
        // Who says no already has more to say than that.
        let next = self.proofs.pop_front().filter(|_| self.refused.is_empty())?;
        self.left = next.checks.iter().cloned().collect();
        let aside = next.start.clone();
        self.proving = Some(next);
        Some(aside)
    }

    /// Returns how often a check was made again in this stage of the pass.
    pub(super) fn attempts_before(&self, check: &str) -> u32 {
        self.made_again.get(check).copied().unwrap_or_default()
    }

    /// Takes what the checks said without the work. Where tests of several files together say no, each file is asked alone.
    fn conclude_proof(&mut self) {
        let Some(proof) = self.proving.take() else { return };
        // All of them passed without the work, so none of these tests needs it.
        if proof.passed == proof.checks.len() {
            self.proves_nothing.extend(proof.tests.iter().flat_map(AddedTest::names));
        } else if proof.is_answered && proof.tests.len() > 1 && proof.tests.len() <= MOST_ALONE {
            self.proofs.extend(proof.alone());
        }
    }

    /// Leaves the proofs that are still to be made.
    pub(super) fn leave_proofs(&mut self) {
        self.proofs.clear();
        if self.proving.take().is_some() {
            self.left.clear();
        }
    }
}

/// At most so many files with added tests are run one by one: each costs as much as its checks.
const MOST_ALONE: usize = 8;

/// Tests that a run has added, run without its work: those that pass prove nothing.
#[derive(Clone)]
pub(super) struct ProofRun {
    pub(super) tests: Vec<AddedTest>,
    /// The work, which is as it was at the start meanwhile, and the other tests, which are out of the way.
    pub(super) start: AsideRequest,
    pub(super) checks: Vec<Recheck>,
    /// How many of the checks passed.
    pub(super) passed: usize,
    /// Whether none of them was ended from outside.
    pub(super) is_answered: bool,
}

impl ProofRun {
    /// Returns a proof for each of the files, in which the others are out of the way, too.
    fn alone(&self) -> Vec<Self> {
        let one = |test: &AddedTest| {
            let mut proof = Self { tests: vec![test.clone()], passed: 0, is_answered: true, ..self.clone() };
            let others = self.tests.iter().filter(|other| *other != test);
            proof.start.hide.extend(others.map(|other| other.path.clone()));
            proof
                .checks
                .retain(|check| test.checks.iter().any(|state| state.as_str() == check.state.as_str()));
            proof
        };
        self.tests.iter().map(one).collect()
    }
}

/// A check that said no in a closing pass.
pub(super) struct RefusedCheck {
    pub(super) check: Recheck,
    /// What it said.
    pub(super) said: String,
}
