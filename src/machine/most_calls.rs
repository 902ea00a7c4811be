//! Computes the most calls of agents that a loop with a task board can take.

use super::{Machine, Phase, Step};
use crate::board::{AgentCalls, CallBound};

/// Works it out from the limits of the board and from the states that ask agents. None where the loop has no board,
/// or has a prompt that is not a phase of the work, which nothing here bounds.
pub fn bound(machine: &Machine) -> Option<CallBound> {
    let asking: Vec<&Step> =
        machine.steps().map(|(_, step)| step).filter(|step| step.needs_model()).collect();
    let asks = |phase: Phase| asking.iter().any(|step| step.phase == Some(phase));
    if !machine.has_board() || !asks(Phase::Plan) || asking.iter().any(|step| step.phase.is_none()) {
        return None;
    }
    // The largest number counts for all of them: the bound may be too high, but never too low.
    let retries = asking.iter().filter_map(|step| step.retry.as_ref()).map(|retry| retry.max);
    let calls = AgentCalls {
        reviews: asks(Phase::VerifyPlan),
        tests: asks(Phase::Test),
        verifies: asks(Phase::VerifyStep),
        retries: retries.max().unwrap_or(0),
    };
    Some(CallBound::of(&machine.board, calls))
}

#[cfg(test)]
mod tests {
    use super::bound;
    use crate::definition::load;
    use crate::machine::compile::compile;

    /// The parts of which the form is put together fit in every combination.
    #[test]
    fn every_agents_loop_compiles_and_bounds_its_calls() {
        let checks = ["", "check: 'true'", "check: 'true', check_is: in_front"];
        let rejected = ["skip_and_continue", "lower_threshold", "abort"];
        for (plan, steps, retries) in [(true, true, 3), (true, false, 0), (false, true, 0), (false, false, 3)]
        {
            for (check, rejected) in
                checks.iter().flat_map(|check| rejected.map(|rejected| (check, rejected)))
            {
                let text = format!(
                    "name: a\nparadigm: agents\ngoal: g\nroles: {{tester: {{{check}}}}}\nlimits: {{call_retries: {retries}}}\n\
                     review: {{plan: {plan}, steps: {steps}, on_plan_rejected: {rejected}}}\n"
                );
                let loaded = load::decode("a.yaml", &text, String::new()).map_err(|it| it.findings).unwrap();
                let (machine, problems) = compile(&loaded.definition);
                assert!(!problems.has_errors(), "{text}{problems:?}");
                assert!(bound(&machine.unwrap()).is_some(), "{text}");
            }
        }
    }
}
