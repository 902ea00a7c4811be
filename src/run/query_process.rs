//! Answers queries: a jq expression of a loop file may run for ever and take any memory, so it is executed in a process
//! of its own, which is bounded and ended like an action.

use std::cell::RefCell;

use serde_json::Value;

use super::helper;
use super::ticking::while_ticking;
use super::world::World;
use crate::base::explanation::Explanation;
use crate::base::time::human;
use crate::engine::request::QueryRequest;
use crate::evaluate::jq_question::{LONGEST_VALUE, Queried};
use crate::evaluate::observation::{Observation, Stop, Stream};
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

/// A longer answer was not written by the helper, which bounds what it answers.
const LONGEST_ANSWER: usize = 2 * LONGEST_VALUE;

/// Answers a query, or says why there is no answer.
pub(super) async fn perform(request: &QueryRequest, world: &mut World) -> Queried {
    if world.cancel.is_asked() {
        return Queried { result: Err(Explanation::new("the run is to end")), stop: Some(Stop::Cancelled) };
    }
    let program = Program {
        argv: world.helper.argv.clone(),
        // Expressions can read the environment, which is nobody's business here.
        env: Vec::new(),
        cwd: None,
        stdin: Some(helper::written(&request.query).into_bytes()),
        guard: world.guard.clone(),
    };
    let limits = ProcessLimits { end: request.end, idle: None, first: None };
    let mut answer = Vec::new();
    // Not shown, and not kept as an observation: the answer may be long, and is JSON for us alone.
    let mut keep = |stream: Stream, bytes: &[u8]| {
        if stream == Stream::Stdout {
            answer.extend_from_slice(bytes);
        }
        // A process that writes without end is stopped like one that runs without end.
        if answer.len() > LONGEST_ANSWER { Heard::Stop(Stop::Timeout) } else { Heard::More }
    };
    let sinks = RefCell::new(&mut world.sinks);
    let seen = while_ticking(&sinks, spawn::run(&program, limits, &mut world.cancel, &mut keep)).await;
    // A limit of the query itself is its answer; one of the run ends the run.
    let stop = seen.stop.filter(|stop| stop.is_end_of_run());
    Queried { result: read(&seen, &answer, request), stop }
}

/// Says how a query ended, by what the helper did.
fn read(seen: &Observation, answer: &[u8], request: &QueryRequest) -> Result<Value, Explanation> {
    let filter = crate::base::text::one_line(&request.query.filter, 60);
    let failed = |why: &str| Err(Explanation::new(format!("`{filter}` {why}")));
    if let Some(why) = &seen.failure {
        return failed(&format!("was not answered: {why}"));
    }
    // Before the stop, which is only how it came to an end.
    if answer.len() > LONGEST_ANSWER {
        return failed("was answered at too great length");
    }
    if seen.stop.is_some() {
        let limit = request.end.map_or_else(String::new, |(limit, _)| human(limit));
        return failed(&format!("was stopped after {limit}"));
    }
    // An answer counts even if the process was ended after it.
    if let Ok(answer) = serde_json::from_slice::<Result<Value, Explanation>>(answer) {
        return answer;
    }
    match seen.signal {
        // An allocation that fails and a stack that is full both end so.
        Some(signal) => failed(&format!(
            "was ended by signal {signal}: it needs more than {} MiB of memory, or calls itself too deeply",
            helper::MEMORY / 1024 / 1024
        )),
        None => failed(&format!("was not answered (exit {})", seen.exit_code)),
    }
}
