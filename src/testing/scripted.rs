//! Answers a run from the mocks of a case, and fails closed: what has no mock stops the run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::asked::{AskedPlace, AskedWork, Gap, GapReason, Script, SubLoopAnswer, WorkAnswer};
use super::mock::{Mock, MockedJudgement, MockedWork};
use crate::engine::request::{AskRequest, SubLoopRequest};
use crate::evaluate::model::{ModelAnswer, Usage};
use crate::evaluate::observation::Observation;

/// The mocks of a state, in their types.
#[derive(Clone, Debug, PartialEq)]
pub struct StateMocks {
    /// The visits.
    pub visits: MockedTurns,
    /// What its check comes to in the closing pass; that of its last visit without.
    pub closing_pass: Option<Mock>,
}

/// The visits of a state.
#[derive(Clone, Debug, PartialEq)]
pub enum MockedTurns {
    /// All alike.
    Every(Box<Mock>),
    /// One after the other.
    Listed(Vec<Mock>),
}

/// Answers from mocks.
pub struct MockScript<'c> {
    mocks: &'c BTreeMap<String, StateMocks>,
    /// How often each state was asked for work.
    turns: BTreeMap<String, usize>,
    /// The mocks that have let the run go on.
    resumed: BTreeSet<(String, usize)>,
}

impl<'c> MockScript<'c> {
    /// Answers from these mocks, by the names of the states.
    pub fn new(mocks: &'c BTreeMap<String, StateMocks>) -> Self {
        Self { mocks, turns: BTreeMap::new(), resumed: BTreeSet::new() }
    }

    fn find(&self, place: &AskedPlace<'_>) -> Option<(String, &'c StateMocks)> {
        // The state comes first, as it is more exact: two states may run the same loop.
        let keys = std::iter::once(place.key()).chain(place.key_by_loop());
        keys.into_iter().find_map(|key| self.mocks.get(&key).map(|mocks| (key, mocks)))
    }

    /// Takes the mock of the next visit.
    fn next(&mut self, place: &AskedPlace<'_>, text: &str) -> Result<&'c Mock, Gap> {
        let gap = |why| Gap { state: place.key(), text: text.to_owned(), why };
        let Some((key, mocks)) = self.find(place) else { return Err(gap(GapReason::NoMock)) };
        let turn = self.turns.entry(key).or_default();
        *turn += 1;
        match &mocks.visits {
            MockedTurns::Every(mock) => Ok(mock),
            MockedTurns::Listed(listed) => {
                listed.get(*turn - 1).ok_or_else(|| gap(GapReason::UsedUp(listed.len())))
            }
        }
    }

    /// Returns when the mock of the visit was recorded that goes on, where it says so.
    pub fn origin(&self, place: &AskedPlace<'_>) -> Option<String> {
        self.current(place)?.from.clone()
    }

    /// Returns the mock of the visit that goes on.
    fn current(&self, place: &AskedPlace<'_>) -> Option<&'c Mock> {
        let (key, mocks) = self.find(place)?;
        let turn = self.turns.get(&key).copied().unwrap_or(0);
        match &mocks.visits {
            MockedTurns::Every(mock) => Some(mock),
            MockedTurns::Listed(listed) => listed.get(turn.saturating_sub(1)).or(listed.last()),
        }
    }
}

impl Script for MockScript<'_> {
    fn work(&mut self, place: AskedPlace<'_>, work: AskedWork<'_>) -> Result<WorkAnswer, Gap> {
        let text = work.text();
        let mock = if place.in_closing_pass {
            let closing = self.find(&place).and_then(|(_, mocks)| mocks.closing_pass.as_ref());
            let gap = Gap { state: place.key(), text: text.clone(), why: GapReason::NoMock };
            closing.or_else(|| self.current(&place)).ok_or(gap)?
        } else {
            self.next(&place, &text)?
        };
        let (seen, usage) = match &mock.work {
            MockedWork::Ends(seen, usage) => (Observation::clone(seen), usage.clone()),
            // The run ends before it hears how the work ended, so the mock need not say.
            MockedWork::Nothing if mock.interruption.is_some() => {
                (Observation::exited(0, ""), Usage::default())
            }
            MockedWork::Nothing | MockedWork::SubLoop(_) => {
                return Err(Gap { state: place.key(), text, why: GapReason::NoWork });
            }
        };
        Ok(WorkAnswer {
            seen,
            usage,
            effects: mock.effects.clone(),
            takes: mock.takes,
            is_late: mock.is_late,
            interruption: mock.interruption,
        })
    }

    fn judge(&mut self, place: AskedPlace<'_>, request: &AskRequest) -> Result<(ModelAnswer, Duration), Gap> {
        let text = &request.question.prompt;
        let is_of_work = matches!(place.machine.find(place.state), Some(crate::machine::Target::Step(id))
            if place.machine.step(id).action.is_some());
        // A judge of work belongs to the visit that the work has begun; one alone is a visit itself.
        let mock = if is_of_work { self.current(&place) } else { Some(self.next(&place, text)?) };
        let judgement = mock.and_then(|mock| mock.judgement.as_ref());
        let why = GapReason::NoJudgement;
        let gap = || Gap { state: place.key(), text: text.clone(), why };
        let MockedJudgement { reply, stop, usage } = judgement.ok_or_else(gap)?.clone();
        // What the mock takes was spent by the work already.
        let takes = if is_of_work { Duration::ZERO } else { mock.map_or(Duration::ZERO, |mock| mock.takes) };
        Ok((ModelAnswer { reply, stop, usage }, takes))
    }

    fn sub_loop(&mut self, place: AskedPlace<'_>, request: &SubLoopRequest) -> Result<SubLoopAnswer, Gap> {
        // Without a mock of its own, its states are played.
        if self.find(&place).is_none() {
            return Ok(SubLoopAnswer::Played);
        }
        let mock = self.next(&place, &request.name)?;
        Ok(match (&mock.work, mock.interruption) {
            (_, Some(interruption)) => SubLoopAnswer::Interrupted(interruption),
            (MockedWork::SubLoop(end), None) => {
                SubLoopAnswer::Ends(Box::new(end.clone()), mock.takes, mock.effects.clone())
            }
            (MockedWork::Nothing | MockedWork::Ends(..), None) => SubLoopAnswer::Played,
        })
    }

    /// A run goes on where the mock says so that interrupted it, or the one after it. Each says so for one time.
    fn resumes(&mut self, state: &str) -> bool {
        let Some(mocks) = self.mocks.get(state) else { return false };
        let turn = self.turns.get(state).copied().unwrap_or(0);
        // A mock that serves every visit would let the run go on without end.
        let MockedTurns::Listed(listed) = &mocks.visits else { return false };
        let says = |at: usize| listed.get(at).is_some_and(|mock| mock.resumes);
        let mut around = turn.checked_sub(1).into_iter().chain([turn]).filter(|at| says(*at));
        around.any(|at| self.resumed.insert((state.to_owned(), at)))
    }
}
