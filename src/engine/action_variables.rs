//! What the environment tells an action about its run, so that no loop has to paste output into a command line.

use super::Engine;
use super::state_result::StateResult;
use crate::base::name::captured_variable;
use crate::base::text::tail;

/// Where an action stands in the trace of its run, for whatever it calls.
const TRACEPARENT: &str = "TRACEPARENT";

/// The most of one result that goes into a variable: the system bounds each one, and all of them together.
const ONE: usize = 32 * 1024;

/// The most of all results together.
const ALL: usize = 256 * 1024;

/// Returns the `LL_*` variables for the next action.
pub(super) fn variables(engine: &Engine<'_>) -> Vec<(String, String)> {
    let (run, start) = (engine.run(), engine.start());
    let state = run.current().map_or_else(String::new, ToString::to_string);
    let fixed = [
        ("LL_LOOP_RUN", start.event.run_id.clone()),
        ("LL_LOOP_NAME", start.event.r#loop.to_string()),
        ("LL_RUN_DIR", start.run_dir.clone()),
        ("LL_STATE", state),
        ("LL_ITERATION", run.iteration().to_string()),
        ("LL_ATTEMPT", run.attempt().to_string()),
        ("LL_STEP_KEY", key(engine)),
        ("LL_STEP", run.step().to_string()),
        (TRACEPARENT, start.event.trace_origin().told(&key(engine), run.part()).to_string()),
    ];
    let step = run.current().and_then(|state| engine.step_of(state));
    let role = step.and_then(|step| step.role.as_ref()).map(ToString::to_string);
    let phase = step.and_then(|step| step.phase).map(|phase| phase.word().to_owned());
    let agent = [("LL_AGENT_ROLE", role), ("LL_AGENT_PHASE", phase)];
    let agent = agent.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let mut all: Vec<_> =
        fixed.into_iter().chain(agent).map(|(name, value)| (name.to_owned(), value)).collect();
    let mut left = ALL;
    let prev = run.prev().map(|prev| ("LL_PREV_OUTPUT".to_owned(), prev));
    let captured = run.captured().iter().map(|(name, result)| (captured_variable(name), result));
    for (name, result) in prev.into_iter().chain(captured) {
        let value = variable(result);
        // A value that does not fit is left out, not cut: an action that reads it would take a part
        // for the whole.
        if value.len() <= left && !all.iter().any(|(known, _)| *known == name) {
            left -= value.len();
            all.push((name, value));
        }
    }
    all
}

/// Returns a name for the current step that no other step of any run has: a step of a sub-loop has the name of the step
/// that runs it in front.
pub(super) fn key(engine: &Engine<'_>) -> String {
    format!("{}/{}", engine.start().key, engine.run().step())
}

fn variable(result: &StateResult) -> String {
    // The end is kept, because that is where tools say what happened.
    value(tail(result.seen.stdout.without_line_end(), ONE))
}

/// Makes of what somebody printed or answered what a variable can hold, which is anything but a NUL.
pub(super) fn value(text: &str) -> String {
    // A NUL would end the variable for whoever reads it; the kernel takes none.
    text.replace('\0', "")
}
