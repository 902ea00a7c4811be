//! When the working tree of a run is kept: before each step, while nothing runs, and at the end.

use std::cell::RefCell;

use super::ticking::while_ticking;
use super::tree_snapshots::{KeptTree, LIMIT, Moment};
use super::world::World;
use crate::base::text::one_line;
use crate::engine::event::Event;
use crate::git::in_run::GitCalls;
use crate::process::signal::EndRequest;
use crate::report::numbers::StepNumber;

/// Returns the moments that some events are about to bring.
pub(super) fn of(events: &[Event], around: &[u32]) -> Vec<Moment> {
    let moment = |event: &Event| {
        if let Event::StateEnter { step, .. } = event {
            return Some(Moment::Before(StepNumber::inside(around, *step)));
        }
        // The end of a sub-loop is followed by another step of the run.
        let is_end = matches!(event, Event::LoopComplete(_)) && around.is_empty();
        is_end.then_some(Moment::End)
    };
    events.iter().filter_map(moment).collect()
}

/// Keeps the working tree as it is now for these moments, if somebody wants that. A tree that cannot be kept is a
/// warning.
pub(super) async fn keep(moments: &[Moment], world: &mut World) {
    if moments.is_empty() {
        return;
    }
    // Taken out meanwhile, since the sinks and the clock are borrowed from the same world.
    let Some(mut snapshots) = world.snapshots.take() else { return };
    let (root, area) = (world.root.clone(), world.area.clone());
    let git = || GitCalls::new(world.own_env.clone(), world.cancel.clone(), LIMIT);
    let mut tree = snapshots.trees.remove(&root).unwrap_or_else(|| KeptTree::new(git()));
    let sinks = RefCell::new(&mut world.sinks);
    let taken = while_ticking(&sinks, tree.take(&root, &area)).await;
    let kept = match taken {
        Ok(commit) => {
            let refs = snapshots.lines(moments, &commit);
            while_ticking(&sinks, tree.refer(&root, refs)).await
        }
        Err(why) => Err(why),
    };
    let mut warnings: Vec<String> = tree.left_out.drain(..).collect();
    if let Err(why) = kept
        // A run that is to end does not wait for a snapshot.
        && world.cancel.request() == EndRequest::None
    {
        warnings.push(format!("the working tree could not be kept: {}", one_line(&why.to_string(), 300)));
    }
    // A large file is left out of each of them, and said once.
    warnings.retain(|warning| snapshots.said.insert(warning.clone()));
    world.remarks.extend(warnings);
    snapshots.trees.insert(root, tree);
    world.snapshots = Some(snapshots);
}
