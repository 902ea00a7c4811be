//! Performs a sub-loop: a run of its own inside a step, with the same journal, sinks and requests to end.

use std::time::Duration;

use crate::base::redact;
use crate::engine::event::LoopStart;
use crate::engine::past::Standing;
use crate::engine::request::{SubLoopEnd, SubLoopRequest};
use crate::engine::{Engine, Start};

use super::replay::Level;
use super::{JournalError, SubLoop, World, drive};

/// Loops that call each other deeper than this do so by mistake.
const DEEPEST: usize = 16;

/// Runs a loop to its end. The inner error says why it could not begin.
pub(super) async fn perform(
    request: &SubLoopRequest,
    (around, step): (&Start, u32),
    world: &mut World,
) -> Result<Result<SubLoopEnd, String>, JournalError> {
    if world.path.len() > DEEPEST {
        let path: Vec<_> = world.path.iter().map(ToString::to_string).collect();
        return Ok(Err(format!("sub-loops are nested deeper than {DEEPEST}: {}", path.join(" → "))));
    }
    let mut sub = match (world.sub_loops)(request, around) {
        Ok(sub) => sub,
        Err(why) => return Ok(Err(why)),
    };
    let left = world.left.take(&request.name, step);
    world.path.push(sub.machine.name.clone());
    let mut engine = if let Some(level) = left {
        match again(level, &sub, request) {
            Ok(engine) => engine,
            Err(why) => {
                world.path.pop();
                return Ok(Err(why));
            }
        }
    } else {
        sub.start.at = world.clock.now();
        Engine::new(&sub.machine, sub.start)
    };
    let ended = Box::pin(drive(&mut engine, world)).await;
    world.path.pop();
    let complete = ended?;
    let output = engine.run().prev().map(|prev| prev.seen.stdout.clone()).unwrap_or_default();
    let run = engine.run();
    let (captured, handoff, usage) = (run.captured().clone(), run.handoff().cloned(), run.usage().clone());
    Ok(Ok(SubLoopEnd { complete, captured, output, handoff, usage }))
}

/// Makes a sub-loop that goes on where it was left, or says why it cannot. What it began with is what it goes on with,
/// but for what the run around it was told anew.
fn again<'s>(level: Level, sub: &'s SubLoop, request: &SubLoopRequest) -> Result<Engine<'s>, String> {
    let standing = level.standing();
    let before = level.past.elapsed();
    let told = &sub.start.event;
    let event = LoopStart { llm: told.llm, strict: told.strict, ..level.past.start().clone() };
    let start = Start {
        context: redact::filled(&level.past.start().context, &sub.start.context),
        event,
        at: level.at,
        timeout: request.limit(before),
        deadline: request.deadline.map(|deadline| before + deadline),
        ..sub.start.clone()
    };
    match standing {
        Standing::Open(how) => Ok(Engine::resume(&sub.machine, start, level.past, how, Duration::ZERO)),
        Standing::Over(end) => Ok(Engine::ended(&sub.machine, start, level.past, end)),
        Standing::Lost(state) => Err(format!("it was left in `{state}`, which it does not have any more")),
    }
}
