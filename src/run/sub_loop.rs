//! Performs a sub-loop: a run of its own inside a step, with the same journal, sinks and requests to end.

use crate::engine::request::{SubLoopEnd, SubLoopRequest};
use crate::engine::{Engine, Start};

use super::{JournalError, World, drive};

/// Loops that call each other deeper than this do so by mistake.
const DEEPEST: usize = 16;

/// Runs a loop to its end. The inner error says why it could not begin.
pub(super) async fn perform(
    request: &SubLoopRequest,
    around: &Start,
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
    sub.start.at = world.clock.now();
    world.path.push(sub.machine.name.clone());
    let mut engine = Engine::new(&sub.machine, sub.start);
    let ended = Box::pin(drive(&mut engine, world)).await;
    world.path.pop();
    let complete = ended?;
    let output = engine.run().prev().map(|prev| prev.seen.stdout.clone()).unwrap_or_default();
    let run = engine.run();
    let (captured, handoff, usage) = (run.captured().clone(), run.handoff().cloned(), run.usage().clone());
    Ok(Ok(SubLoopEnd { complete, captured, output, handoff, usage }))
}
