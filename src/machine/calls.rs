//! How many calls of agents a loop with a task board can take at most.

use crate::board::{Bound, Calls};

use super::{Action, Machine, Step};

/// The variable by which a state says which call it makes.
const PHASE: &str = "LL_AGENT_PHASE";

/// Works it out from the limits of the board and from the states that ask agents; none for a loop without a board.
pub fn bound(machine: &Machine) -> Option<Bound> {
    if !machine.has_board() {
        return None;
    }
    let asks = |phase: &str| machine.steps().any(|(_, step)| asks_for(step, phase));
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
