//! Prepares a sub-loop: a run of its own inside a step, with the same journal, sinks and requests to end.

use std::time::Duration;

use super::replay::LeftLoop;
use super::world::{SubLoop, World};
use crate::base::explanation::Explanation;
use crate::base::redact;
use crate::engine::event::{LoopComplete, LoopResume, LoopStart};
use crate::engine::past::Standing;
use crate::engine::request::{SubLoopEnd, SubLoopRequest};
use crate::engine::{Engine, Start};
use crate::machine::provided;

/// Loops that call each other deeper than this do so by mistake.
pub const DEEPEST: usize = 16;

/// The run around a sub-loop, as far as the sub-loop has to know it.
#[derive(Clone, Copy)]
pub struct Surrounding<'r> {
    /// How it began.
    pub start: &'r Start,
    /// The step that runs the sub-loop.
    pub step: u32,
    /// Whether somebody may have changed the working tree before this part of the run.
    pub is_tree_doubtful: bool,
}

/// Finds and prepares the loop that a step runs, or says why it cannot begin. Where the step was left in the middle of
/// it, it comes with how far it was.
pub(super) fn prepare(
    request: &SubLoopRequest,
    around: Surrounding<'_>,
    world: &mut World,
) -> Result<(SubLoop, Option<LeftLoop>), Explanation> {
    if world.path.len() > DEEPEST {
        let path: Vec<_> = world.path.iter().map(ToString::to_string).collect();
        return Err(Explanation::new(format!(
            "sub-loops are nested deeper than {DEEPEST}: {}",
            path.join(" → ")
        )));
    }
    let mut sub = (world.sub_loops)(request, around.start)?;
    sub.start.at = world.clock.now();
    // Only the loop that this very step was running is gone on with.
    Ok((sub, world.left.take(&request.name, around.step)))
}

/// Makes the engine of a loop that was prepared.
pub fn engine<'s>(
    sub: &'s SubLoop,
    left: Option<LeftLoop>,
    request: &SubLoopRequest,
    around: Surrounding<'_>,
) -> Result<Engine<'s>, Explanation> {
    match left {
        Some(level) => again(level, sub, request, around),
        None => Ok(Engine::new(&sub.machine, sub.start.clone())),
    }
}

/// Returns what the step that ran a loop knows of its end.
pub fn end(engine: &Engine<'_>, complete: LoopComplete) -> SubLoopEnd {
    let run = engine.run();
    SubLoopEnd {
        complete,
        captured: run.captured().clone(),
        sub_loops: run.sub_loops().clone(),
        output: run.last_output(),
        handoff: run.handoff().cloned(),
        usage: run.usage().clone(),
        rechecks: engine.rechecks(),
        had_ended: engine.had_ended(),
    }
}

/// Makes a sub-loop that goes on where it was left, or says why it cannot. What it began with is what it goes on with, but for what the run
/// around it was given on resume.
fn again<'s>(
    level: LeftLoop,
    sub: &'s SubLoop,
    request: &SubLoopRequest,
    around: Surrounding<'_>,
) -> Result<Engine<'s>, Explanation> {
    let standing = level.standing();
    let before = level.past.elapsed();
    let now = &sub.start.event;
    // What may be asked and what counts as verified follows the run around it.
    let event = LoopStart {
        llm: now.llm,
        strict: now.strict,
        trace: now.trace.clone(),
        ..level.past.start().clone()
    };
    let mut context = redact::filled(&level.past.start().context, &sub.start.context);
    // The directory of a run may be another one where it goes on.
    provided::rebase(&mut context, &sub.start.run_dir);
    let start = Start {
        context,
        event,
        at: level.at,
        // Its time goes on from what it had taken.
        timeout: request.limit(before),
        deadline: request.deadline.map(|deadline| before + deadline),
        ..sub.start.clone()
    };
    match standing {
        Standing::Open(how) => {
            let how =
                // It may have ended in good order, and the run around it been killed before it could say on which tree.
                Box::new(LoopResume { tree_changed: how.tree_changed || around.is_tree_doubtful, ..*how });
            let answers = request.answer.iter().cloned().collect();
            Ok(Engine::resume(&sub.machine, start, level.past, how, Duration::ZERO).answered(answers))
        }
        // It ended, and the run was killed before it heard of it.
        Standing::Over(end) => Ok(Engine::ended(&sub.machine, start, level.past, end)),
        Standing::Lost(state) => {
            Err(Explanation::new(format!("it was left in `{state}`, which it does not have any more")))
        }
    }
}
