//! What the rules look at: a machine with the definition it was made from, and the places of what they find.

use super::flow::FlowGraph;
use crate::base::diagnostic::FindingPlace;
use crate::base::name::StateName;
use crate::base::path::DocPath;
use crate::definition::schema::Loop;
use crate::evaluate::verdict::Verdict;
use crate::machine::routing::{Move, RouteKey, moves};
use crate::machine::{Machine, Step, StepId, Target};

/// A machine, the definition it was made from, and what can follow what in it.
pub(super) struct CheckedLoop<'m> {
    pub(super) machine: &'m Machine,
    pub(super) definition: &'m Loop,
    moves: Vec<Vec<Move>>,
    pub(super) flow: FlowGraph,
}

impl<'m> CheckedLoop<'m> {
    pub(super) fn new(machine: &'m Machine, definition: &'m Loop) -> Self {
        let moves: Vec<_> = machine.steps().map(|(id, _)| moves(machine, id)).collect();
        let flow = FlowGraph::new(machine, &moves);
        Self { machine, definition, moves, flow }
    }

    /// Returns what can come after a step.
    pub(super) fn moves(&self, id: StepId) -> &[Move] {
        &self.moves[id.0]
    }

    /// Returns every step with what can come after it.
    pub(super) fn steps(&self) -> impl Iterator<Item = (StepId, &'m Step, &[Move])> {
        self.machine.steps().map(|(id, step)| (id, step, self.moves(id)))
    }

    pub(super) fn name(&self, target: Target) -> &'m StateName {
        self.machine.name_of(target)
    }

    /// Returns the place of the key that holds the route of a verdict: `route` comes before `on_…`.
    pub(super) fn route(&self, step: &Step, verdict: &Verdict) -> DocPath {
        place_of_route(self.definition, step, verdict)
    }

    /// Returns the place of the key of a way.
    pub(super) fn way(&self, step: &Step, key: &RouteKey) -> DocPath {
        place_of_way(self.definition, step, key)
    }

    /// Returns the place of the key by which a move leads where it does.
    pub(super) fn place_of(&self, step: &Step, one: &Move) -> FindingPlace {
        FindingPlace::Key(match &one.way {
            _ if one.is_exhausted => state(&step.name).key("on_retry_exhausted"),
            Some(way) => self.way(step, &way.key),
            None => state(&step.name),
        })
    }
}

/// Returns the place of the key that holds the route of a verdict: `route` comes before `on_…`.
fn place_of_route(definition: &Loop, step: &Step, verdict: &Verdict) -> DocPath {
    let path = state(&step.name);
    let Some(written) = definition.states.get(&step.name) else { return path };
    let is_meant = |word: &&String| Verdict::canonical(word) == *verdict;
    if let Some(word) = written.route.keys().find(is_meant) {
        return path.key("route").key(word);
    }
    match written.on.keys().find(is_meant) {
        Some(word) => path.key(format!("on_{word}")),
        None => path,
    }
}

/// Returns the place of the key of a way.
pub fn place_of_way(definition: &Loop, step: &Step, key: &RouteKey) -> DocPath {
    let path = state(&step.name);
    match key {
        RouteKey::Next => path.key("next"),
        RouteKey::On(verdict) => place_of_route(definition, step, verdict),
        RouteKey::AnyError => path.key("route").key("_error"),
        RouteKey::AnyOther => path.key("route").key("_"),
        RouteKey::Loop(key) => DocPath::root().key(*key),
        RouteKey::Repeat => path.key("repeat"),
        RouteKey::Flaky => path.key("flaky"),
        RouteKey::Unjudged => path,
    }
}

pub(super) fn state(name: &StateName) -> DocPath {
    DocPath::root().key("states").key(name.as_str())
}
