//! A run that begins in the middle: with what an author says that earlier states have left.

use super::{Run, Trust};
use crate::base::name::StateName;
use crate::board::BoardChange;
use crate::engine::state_result::StateResult;
use crate::machine::{Machine, Target};

/// Where a run begins that does not begin at the start, and what it knows then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    /// The state that is entered next; the initial one without.
    pub state: Option<StateName>,
    /// The pass, from 1.
    pub iteration: u32,
    /// How many states ran before.
    pub steps: u32,
    /// How often the state was entered in a row already.
    pub retries: u32,
    /// Whether the work was verified last.
    pub is_verified: bool,
    /// The captures, by name.
    pub captures: Vec<(String, StateResult)>,
    /// The result of the state before.
    pub prev: Option<StateResult>,
    /// What was done on the task board.
    pub board: Vec<BoardChange>,
}

impl Run {
    /// Puts the run where it is to begin. A state that the machine does not have changes nothing.
    pub(in crate::engine) fn place_at(&mut self, machine: &Machine, placement: Placement) {
        let Placement { state, iteration, steps, retries, is_verified, captures, prev, board } = placement;
        let to = state.as_ref().and_then(|state| machine.find(state)).unwrap_or(machine.initial);
        // Passes count from 1, and an author may leave it out.
        self.iteration = iteration.max(1);
        self.step = steps;
        self.trust = Trust { is_verified, is_doubted: false };
        // As if the state had been entered so often already.
        if let (Target::Step(id), true) = (to, retries > 0) {
            (self.last_entered, self.attempt) = (Some(id), retries);
        }
        self.captured.extend(captures);
        self.prev = prev;
        for change in &board {
            self.board.take(change);
        }
        self.arrive(to);
    }
}
