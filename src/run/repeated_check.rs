//! Makes the check of a state once more after the run is over, on the tree that it has left.

use super::action;
use super::world::World;
use crate::base::name::StateName;
use crate::engine::Engine;

/// Makes it, and tells whether it passed; nothing where it cannot be made once more, or something kept it from saying either.
pub async fn pass(engine: &Engine<'_>, state: &StateName, world: &mut World) -> Option<bool> {
    let checks = engine.second_look(state);
    let mut said = None;
    for check in checks {
        let seen = action::perform(&check.request, world).await;
        said = Some(engine.second_verdict(&check, &seen)?);
        if said == Some(false) {
            break;
        }
    }
    world.leftovers.end(&world.guard, world.files.instance());
    said
}
