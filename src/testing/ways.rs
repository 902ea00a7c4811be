//! Finds the shortest way through the model that takes a route and comes to an end.

use std::collections::{BTreeMap, VecDeque};

use super::proof::WalkStep;
use crate::machine::explore::{BOUND, Situation, passages};
use crate::machine::routing::{Departure, Move, moves};
use crate::machine::{Machine, StepId, Target};

/// How a walk came to a node: from where, and how that was left.
type Arrival = Option<(usize, Departure)>;

/// Walks through the model, without the handlers of caps and stalls: no mock leads there at once.
struct ModelWalk<'m> {
    machine: &'m Machine,
    moves: BTreeMap<StepId, Vec<Move>>,
}

impl ModelWalk<'_> {
    /// Returns the shortest walk from a situation to one that is a goal; the last step is that one.
    fn shortest(&self, from: Situation, is_goal: impl Fn(Situation) -> bool) -> Option<Vec<WalkStep>> {
        let mut nodes: Vec<(Situation, Arrival)> = vec![(from, None)];
        let mut known = BTreeMap::from([(from, 0_usize)]);
        // A queue and not a stack: the first goal that is found is then the nearest.
        let mut open = VecDeque::from([0_usize]);
        while let Some(here) = open.pop_front() {
            let node = nodes[here].0;
            if is_goal(node) {
                return Some(self.way(&nodes, here));
            }
            let Target::Step(id) = node.at else { continue };
            for passage in passages(self.machine, id, &self.moves[&id], node) {
                let is_plain = passage.detour.is_none() && !passage.by.is_exhausted;
                if !is_plain || known.contains_key(&passage.to) || nodes.len() >= BOUND {
                    continue;
                }
                known.insert(passage.to, nodes.len());
                open.push_back(nodes.len());
                nodes.push((passage.to, Some((here, passage.by.departure.clone()))));
            }
        }
        None
    }

    fn way(&self, nodes: &[(Situation, Arrival)], to: usize) -> Vec<WalkStep> {
        let mut way = Vec::new();
        let (mut at, mut departure) = (to, None);
        loop {
            let (node, came) = &nodes[at];
            way.push(WalkStep { state: self.machine.name_of(node.at).clone(), departure });
            let Some((before, by)) = came else { break };
            (at, departure) = (*before, Some(by.clone()));
        }
        way.reverse();
        way
    }
}

/// Returns the shortest walk from the start over this move of a step to an end, or as near as there is a way.
pub fn over(machine: &Machine, id: StepId, one: &Move) -> Option<Vec<WalkStep>> {
    let all = machine.steps().map(|(id, _)| (id, moves(machine, id))).collect();
    let walk = ModelWalk { machine, moves: all };
    let start = Situation { at: machine.initial, verified: false, capped: false };
    let mut way = walk.shortest(start, |node| node.at == Target::Step(id))?;
    way.last_mut()?.departure = Some(one.departure.clone());
    let after = Situation { at: one.to?, verified: false, capped: false };
    let rest = walk.shortest(after, |node| matches!(node.at, Target::End(_)));
    way.extend(rest.unwrap_or_default());
    Some(way)
}
