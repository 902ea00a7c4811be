//! Which states failed and passed later, and what stood between: the work of a state, or nothing at all. Only what
//! passed on the tree on which it had failed, with nobody at work in between, is flaky.

use std::collections::BTreeSet;

use indexmap::{IndexMap, IndexSet};

use super::step::{Step, StepStanding};
use crate::base::name::StateName;
use crate::engine::event::{RouteReason, TreeState};

/// How many states that failed are followed; the first ones.
pub const MAX_STATES: usize = 32;

/// How many states are named that may have mended another, the first ones.
// Without a bound, a journal of invented names would make the list of each failure as long as itself.
const MAX_MENDERS: usize = 200;

/// How many flaky steps of a state are named.
const MAX_FLAKY: usize = 100;

/// The states that failed, and whether they were mended.
#[derive(Clone, Debug, Default)]
pub struct Mends {
    states: IndexMap<StateName, Mend>,
}

#[derive(Clone, Debug, Default)]
struct Mend {
    /// The states whose work stood between a failure and a pass.
    by: IndexSet<StateName>,
    /// The steps that failed, and passed although nothing had been done.
    flaky: BTreeSet<u32>,
    failed: Option<OpenFailure>,
}

/// A failure after which nothing has passed yet.
#[derive(Clone, Debug)]
struct OpenFailure {
    /// The failing steps in a row, on one tree.
    steps: Vec<u32>,
    /// The tree on which they failed, where it is known.
    tree: Option<TreeState>,
    /// Whether the loop has the check made again at once, by `flaky`: nobody works in between, whatever the tree.
    is_made_again: bool,
    /// The other states that have acted since.
    by: IndexSet<StateName>,
}

impl Mends {
    /// Takes the next finished step. A step that the end of the run cut off is not finished.
    pub fn step(&mut self, step: &Step) {
        if step.closing {
            return;
        }
        // An operation on the board touches nothing that a state could look at.
        if step.action.is_some() && !step.is_operation() {
            let others = self.states.iter_mut().filter(|(state, _)| **state != step.state);
            let failures = others.filter_map(|(_, mend)| mend.failed.as_mut());
            failures.filter(|failure| failure.by.len() < MAX_MENDERS).for_each(|failure| {
                failure.by.insert(step.state.clone());
            });
        }
        match step.standing() {
            StepStanding::Failing => {
                if self.states.len() < MAX_STATES || self.states.contains_key(&step.state) {
                    self.states.entry(step.state.clone()).or_default().fail(step);
                }
            }
            StepStanding::Passing => {
                if let Some(mend) = self.states.get_mut(&step.state) {
                    mend.pass(step);
                }
            }
            StepStanding::Open => {}
        }
    }

    /// Tells whether nothing failed.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the states that failed, and passed after something had been done.
    pub fn fixed(&self) -> Vec<StateName> {
        self.those(|mend| !mend.by.is_empty())
    }

    /// Returns the states that mended this one, which is among them if it changed the tree itself.
    pub fn mended_by(&self, state: &StateName) -> impl Iterator<Item = &StateName> {
        self.states.get(state).into_iter().flat_map(|mend| &mend.by)
    }

    /// Tells whether a step failed and passed later although nothing had been done.
    pub fn is_flaky(&self, step: &Step) -> bool {
        self.states.get(&step.state).is_some_and(|mend| mend.flaky.contains(&step.number))
    }

    /// Returns the states that failed, and passed although nothing had been done.
    pub fn flaky(&self) -> Vec<StateName> {
        self.those(|mend| !mend.flaky.is_empty())
    }

    /// Returns the states that failed, and passed although nothing had been done, with how often they failed.
    pub fn flaky_failures(&self) -> impl Iterator<Item = (&StateName, u64)> {
        let flaky = self.states.iter().filter(|(_, mend)| !mend.flaky.is_empty());
        flaky.map(|(state, mend)| (state, mend.flaky.len() as u64))
    }

    /// Returns the states that failed last.
    pub fn left(&self) -> Vec<StateName> {
        self.those(|mend| mend.failed.is_some())
    }

    fn those(&self, is_meant: impl Fn(&Mend) -> bool) -> Vec<StateName> {
        self.states.iter().filter(|(_, mend)| is_meant(mend)).map(|(state, _)| state.clone()).collect()
    }
}

impl Mend {
    fn fail(&mut self, step: &Step) {
        // A failure after work, or on another tree, begins anew: to pass later says nothing about those before it.
        let earlier = self.failed.take().filter(|failure| failure.by.is_empty() && is_same(failure, step));
        let mut steps = earlier.map_or_else(Vec::new, |failure| failure.steps);
        if steps.len() < MAX_FLAKY {
            steps.push(step.number);
        }
        let is_made_again = step.route.as_ref().is_some_and(|route| route.reason == RouteReason::Flaky);
        self.failed =
            Some(OpenFailure { steps, tree: step.tree.clone(), is_made_again, by: IndexSet::new() });
    }

    fn pass(&mut self, step: &Step) {
        let Some(failure) = self.failed.take() else { return };
        if failure.by.is_empty() && is_same(&failure, step) {
            self.flaky.extend(failure.steps);
        } else if failure.by.is_empty() {
            self.by.insert(step.state.clone());
        } else {
            self.by.extend(failure.by);
            self.by.truncate(MAX_MENDERS);
        }
    }
}

/// Tells whether a step began on the tree on which the state had failed. What is not known is not the same.
fn is_same(failure: &OpenFailure, step: &Step) -> bool {
    failure.is_made_again
        || matches!((&failure.tree, &step.tree), (Some(TreeState::Seen(one)), Some(TreeState::Seen(other))) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event::{ActionKind, Event, LoopResume, ResumeReason};
    use crate::engine::outcome::{Outcome, TerminatedBy};
    use crate::evaluate::observation::{Observation, Stop};
    use crate::report::testing::{Journal, state};

    fn names(states: &[StateName]) -> String {
        states.iter().map(StateName::as_str).collect::<Vec<_>>().join(" ")
    }

    fn told(journal: &Journal) -> String {
        let digest = journal.digest();
        let mends = digest.mends();
        format!("{} | {} | {}", names(&mends.fixed()), names(&mends.flaky()), names(&mends.left()))
    }

    /// Each word is a step: `a+` is judged to pass, `a-` to fail, `a` acts and is left by `next`.
    #[track_caller]
    fn check(steps: &str, expected: &str) {
        let mut journal = Journal::start();
        for word in steps.split_whitespace() {
            match word.split_at(1) {
                // Whoever acted before changed the tree.
                ("!", _) => {
                    journal.tree = "changed";
                    &mut journal
                }
                (name, "+") => journal.step((name, 1), "x", (0, ""), "yes", "b"),
                (name, "-") => journal.step((name, 1), "x", (1, ""), "no", "b"),
                (name, "0") => journal.enter(name, 1).route(None, "b"),
                (name, _) => journal.next(name, 1, "x", 0, "b"),
            };
        }
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
        assert_eq!(told(&journal), expected, "{steps}");
    }

    #[test]
    fn what_stands_between_a_failure_and_a_pass_tells_a_fix_from_a_flake() {
        check("a+ a+", " |  | ");
        check("a- f a+", "a |  | ");
        check("a- a+", " | a | ");
        check("a-", " |  | a");
        // A check that repairs what it finds.
        check("a- ! a+", "a |  | ");
        check("a- ! a- a+", " | a | ");
        check("a- a- ! a+", "a |  | ");
        // A state without an action does nothing.
        check("a- n0 a+", " | a | ");
        // What counts is what was done since the last failure.
        check("a- f a- a+", " | a | ");
        check("a- f a+ a- a+ a-", "a | a | a");
        check("a- b- f b+ a+", "a b |  | ");
        check("a- b+ a+", "a |  | ");
    }

    #[test]
    fn a_closing_action_mends_nothing() {
        let mut journal = Journal::start();
        journal.step(("a", 1), "x", (1, ""), "no", "done");
        let closing = Event::ActionStart {
            state: state("done"),
            action: "x".into(),
            kind: ActionKind::Shell,
            role: None,
            session: None,
            tree: None,
        };
        journal.push(closing).done(0, "", "");
        journal.step(("a", 2), "x", (0, ""), "yes", "done");
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
        assert_eq!(told(&journal), " | a | ");
    }

    #[test]
    fn a_step_that_was_cut_off_has_not_failed() {
        let mut journal = Journal::start();
        let late = Observation { stop: Some(Stop::LoopTimeout), ..Observation::exited(124, "") };
        journal.enter("a", 1).act("x").seen(late);
        journal.end(Outcome::Timeout, TerminatedBy::Timeout, "a", true);
        assert_eq!(told(&journal), " |  | ");
        journal.push(Event::LoopResume(LoopResume {
            from_state: state("a"),
            iteration: 1,
            step: 1,
            reason: ResumeReason::Timeout,
            continuation: None,
            keeps_sessions: false,
            tree_changed: false,
            changes: crate::engine::event::ResumeChanges::default(),
        }));
        journal.push(Event::StateEnter { state: state("a"), iteration: 1, step: 1, attempt: 1 });
        journal.act("x").done(0, "", "").judge("yes").route(Some("yes"), "done");
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
        assert_eq!(told(&journal), " |  | ");
    }

    #[test]
    fn only_so_many_states_are_said_to_have_mended_another() {
        let mut journal = Journal::of("long", 1000);
        for _ in 0..2 {
            journal.step(("a", 1), "x", (1, ""), "no", "b");
            for index in 0..2 * MAX_MENDERS {
                journal.next(&format!("s{}", journal.events.len() + index), 1, "x", 0, "b");
            }
            journal.step(("a", 1), "x", (0, ""), "yes", "b");
        }
        assert_eq!(journal.digest().mends().mended_by(&state("a")).count(), MAX_MENDERS);
        assert!(journal.digest().mends().flaky().is_empty());
    }

    #[test]
    fn only_so_many_states_are_followed() {
        let mut journal = Journal::of("long", 1000);
        for index in 0..100 {
            journal.step((&format!("s{index}"), 1), "x", (1, ""), "no", "b");
        }
        assert_eq!(journal.digest().mends().left().len(), MAX_STATES);
    }
}
