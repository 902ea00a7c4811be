//! Whatever a run does, the walk through everything that can happen has seen it: loops and answers at random.

use super::generated::{answer_commands, any_loop_of, chosen};
use super::*;
use crate::machine::explore::{BOUND, Situation, explore};
use crate::machine::{Action, Target};

/// A loop of a few states with every kind of route.
pub(super) fn any_loop() -> impl Strategy<Value = String> {
    let shapes = vec![
        "action: x, next: @",
        "action: x, next: @, on_error: @, timeout: 9, on_timeout: @",
        "next: @",
        "action: x, on_yes: @, on_no: @",
        "action: x, on_yes: @, on_no: @, on_error: @, timeout: 9",
        "action: x, on_yes: @, on_no: $current, on_error: $current, max_retries: 2, on_retry_exhausted: @, retryable_exit_codes: [2]",
        "action: x, evaluate: {type: classify}, route: {go: @, back: @, blocked: @, _: @, _error: @}",
        "action: x, evaluate: {type: classify}, route: {go: @, back: @}",
    ];
    any_loop_of(shapes, top, "  done: {terminal: true}\n  failed: {terminal: true}\n")
}

fn top(switches: [bool; 6], target: &str) -> String {
    // Counted over all cycles, so that cycles without any action come to an end.
    let maintain = if switches[3] { "maintain: true" } else { "maintain: true\nmax_steps: 20" };
    let lines = [
        format!("on_error: {target}"),
        format!("on_blocked: {target}"),
        format!("on_max_iterations: {target}"),
        format!("max_steps: 9\non_max_steps: {target}"),
        maintain.to_owned(),
        format!("stall: {{window: 2, action: {target}}}"),
    ];
    format!("max_iterations: 4\n{}", chosen(switches, lines))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_run_does_nothing_that_was_not_explored(
        text in any_loop(),
        answers in prop::collection::vec(answer(), 1..30),
        is_night in any::<bool>(),
    ) {
        let machine = machine(&text);
        let all = explore(&machine, BOUND);
        prop_assert!(all.is_complete());
        let mut engine = Engine::new(&machine, night_runs::start_of(is_night));
        engine.handle(Input::Begin, Duration::ZERO).unwrap();
        let mut answers = answers.iter().cycle();
        for _ in 0..60 {
            let mut at = machine.initial;
            if let Next::Run(_) = engine.next() {
                at = engine.run().current().and_then(|name| machine.find(name)).unwrap();
                let (verified, capped) = (engine.run().is_verified(), engine.run().capped().is_some());
                let node = Situation { at, verified, capped };
                prop_assert!(all.contains(node), "{node:?} of\n{text}");
            }
            let command = || {
                let seen = answers.next().unwrap();
                // Only an action that has a timeout can run into it.
                let is_late = seen.stop.is_some() && !has_timeout(&machine, at);
                if is_late { Observation::exited(1, "") } else { seen.clone() }
            };
            let Some(input) = answer_commands(&engine, || tree('a'), command) else { break };
            let events = engine.handle(input, Duration::from_secs(1)).unwrap();
            for event in &events {
                if let Event::StateEnter { state, .. } = event {
                    prop_assert!(all.reaches(machine.find(state).unwrap()), "{state} of\n{text}");
                }
            }
        }
        let Next::Done(end) = engine.next() else { return Ok(()) };
        let at = machine.find(&end.final_state).unwrap();
        prop_assert!(all.reaches(at), "{end:?} of\n{text}");
        if end.terminated_by == super::super::outcome::TerminatedBy::Terminal {
            prop_assert!(all.contains(Situation { at, verified: end.verified, capped: false }), "{end:?} of\n{text}");
        }
        if matches!(end.outcome, Outcome::Error | Outcome::Blocked) && matches!(at, Target::Step(_)) {
            let nodes: Vec<Situation> = all.nodes().map(|(_, node)| node).collect();
            let is_known = all.dead_ends().iter().any(|dead| nodes[dead.node].at == at);
            prop_assert!(is_known, "{end:?} of\n{text}");
        }
    }
}

fn has_timeout(machine: &Machine, at: Target) -> bool {
    match at {
        Target::Step(id) => machine.step(id).action.as_ref().is_some_and(Action::can_be_late),
        Target::End(_) => false,
    }
}

#[test]
fn what_a_loop_verifies_in_a_worktree_of_its_own_verifies_nothing_here() {
    for (branch, can_verify) in [("fix", false), ("''", true)] {
        let text = format!(
            "states:\n  a: {{loop: kid, worktree: {branch}, on_success: done, on_failure: bad}}\n  done: {{terminal: true}}\n  bad: {{terminal: true, outcome: failure}}\n"
        );
        let machine = machine(&text);
        let all = explore(&machine, BOUND);
        assert_eq!(all.nodes().any(|(_, node)| node.verified), can_verify, "{branch}");
    }
}
