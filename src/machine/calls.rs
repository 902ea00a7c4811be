//! How many calls of agents a loop with a task board can take at most.

use crate::board::{Bound, Calls};
use crate::definition::paradigm::agents::{PHASE, phases};

use super::{Action, Machine, Step};

/// Works it out from the limits of the board and from the states that ask agents. None where the loop has no board, or
/// makes calls of its own, which nothing here bounds.
pub fn bound(machine: &Machine) -> Option<Bound> {
    let asks = |phase: &str| machine.steps().any(|(_, step)| asks_for(step, phase));
    let is_bounded = |step: &Step| phases().any(|phase| asks_for(step, phase));
    let mut asking = machine.steps().filter(|(_, step)| step.needs_model());
    if !machine.has_board() || !asks("plan") || !asking.all(|(_, step)| is_bounded(step)) {
        return None;
    }
    let tries =
        machine.steps().filter(|(_, step)| step.needs_model()).filter_map(|(_, step)| step.retry.as_ref());
    let calls = Calls {
        reviews: asks("verify_plan"),
        tests: asks("test"),
        verifies: asks("verify_step"),
        retries: tries.map(|retry| retry.max).max().unwrap_or_default(),
    };
    Some(Bound::of(&machine.board, calls))
}

fn asks_for(step: &Step, phase: &str) -> bool {
    let Some(Action::Prompt(prompt)) = &step.action else { return false };
    prompt.setting.env.get(PHASE).is_some_and(|said| said.as_literal().as_deref() == Some(phase))
}
