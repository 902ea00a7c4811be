//! Explores every possible run of a machine: every verdict that its evaluators can give, and what each
//! cap may do at any time. It ignores counters, so the graph is finite and includes
//! every real run.

use std::collections::BTreeMap;

use super::routing::{ActionEnd, Move, RouteKey, in_a_stall, is_sub_loop, moves};
use super::{EndId, Machine, Step, StepId, Target};
use crate::evaluate::verdict::{Observes, Verdict};

/// A machine with more states than this is not explored completely.
pub const BOUND: usize = 100_000;

/// A situation of a run, as far as it affects what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Situation {
    /// The state.
    pub at: Target,
    /// Whether the run is verified when it enters the state.
    pub verified: bool,
    /// Whether a cap was met and this is its handler, after which the run ends.
    pub capped: bool,
}

/// How a run comes from one node to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The node that it comes from.
    pub from: usize,
    /// The verdict for which it is taken; absent for `next`.
    pub word: Option<String>,
    /// The key of the way, for a way of the state's own or the loop's.
    pub key: Option<RouteKey>,
    /// Whether it is taken for a failing observation.
    pub is_failing: bool,
}

/// A verdict that ends the run, because it has no way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadEnd {
    /// Where.
    pub node: usize,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether it stands for every word without a route.
    pub is_any_other: bool,
}

/// The explored graph.
#[derive(Clone, Debug)]
pub struct Exploration {
    known: BTreeMap<Situation, usize>,
    nodes: Vec<Situation>,
    /// The first arrow into each node: they are walked in the order of their distance from the start.
    first: Vec<Option<Arrow>>,
    next: Vec<Vec<usize>>,
    dead_ends: Vec<DeadEnd>,
    is_complete: bool,
}

/// Walks a machine, `bound` nodes of it at most.
pub fn explore(machine: &Machine, bound: usize) -> Exploration {
    let mut walk = SituationWalk { bound, ..SituationWalk::default() };
    walk.visit(Situation { at: machine.initial, verified: false, capped: false }, None);
    // A run can be interrupted, and resumed, in any state.
    for verified in [true, false] {
        if let Some(at) = machine.on_resume {
            walk.visit(Situation { at, verified, capped: false }, None);
        }
    }
    let moves: Vec<Vec<Move>> = machine.steps().map(|(id, _)| moves(machine, id)).collect();
    let mut here = 0;
    while let Some(node) = walk.nodes.get(here).copied() {
        match node.at {
            Target::Step(id) => walk.leave(machine, here, node, id, &moves[id.0]),
            Target::End(id) => walk.finish(machine, here, node, id),
        }
        here += 1;
    }
    Exploration {
        known: walk.known,
        nodes: walk.nodes,
        first: walk.first,
        next: walk.next,
        dead_ends: walk.dead_ends,
        is_complete: !walk.is_cut,
    }
}

#[derive(Default)]
struct SituationWalk {
    known: BTreeMap<Situation, usize>,
    nodes: Vec<Situation>,
    first: Vec<Option<Arrow>>,
    next: Vec<Vec<usize>>,
    dead_ends: Vec<DeadEnd>,
    bound: usize,
    is_cut: bool,
}

impl SituationWalk {
    fn visit(&mut self, node: Situation, arrow: Option<Arrow>) {
        let from = arrow.as_ref().map(|arrow| arrow.from);
        let found = match self.known.get(&node) {
            Some(found) => *found,
            None if self.nodes.len() >= self.bound => {
                self.is_cut = true;
                return;
            }
            None => {
                let new = self.nodes.len();
                self.known.insert(node, new);
                self.nodes.push(node);
                self.first.push(arrow);
                self.next.push(Vec::new());
                new
            }
        };
        if let Some(next) = from.and_then(|from| self.next.get_mut(from)) {
            next.push(found);
        }
    }

    fn leave(&mut self, machine: &Machine, here: usize, node: Situation, id: StepId, moves: &[Move]) {
        let step = machine.step(id);
        for one in moves {
            let Some(to) = one.to else {
                let departure = &one.departure;
                self.dead_ends.push(DeadEnd {
                    node: here,
                    verdict: departure.verdict.clone(),
                    is_any_other: departure.is_any_other,
                });
                continue;
            };
            if node.capped {
                // After the handler of a cap the run ends, whatever its route.
                continue;
            }
            let observes = one.departure.observes(step);
            let (key, is_failing) =
                (one.way.as_ref().map(|way| way.key.clone()), observes == Observes::Failing);
            let key = key.filter(|_| !one.is_exhausted);
            let word = if one.is_exhausted { Some("retries exhausted".to_owned()) } else { word(one) };
            for verified in trusts(step, observes, node.verified) {
                let (word, key) = (word.clone(), key.clone());
                self.visit(
                    Situation { at: to, verified, capped: false },
                    Some(Arrow { from: here, word, key, is_failing }),
                );
                if let Some(to) = in_a_stall(machine, one) {
                    let arrow = Arrow { from: here, word: Some("stall".to_owned()), key: None, is_failing };
                    self.visit(Situation { at: to, verified, capped: false }, Some(arrow));
                }
                self.cap(machine, here, to, verified);
            }
        }
    }

    fn finish(&mut self, machine: &Machine, here: usize, node: Situation, id: EndId) {
        if machine.maintain.is_none() || node.capped {
            return;
        }
        let to = machine.end(id).on_maintain.unwrap_or(machine.initial);
        let word = Some("maintain".to_owned());
        let arrow = Arrow { from: here, word, key: None, is_failing: false };
        self.visit(Situation { at: to, verified: node.verified, capped: false }, Some(arrow));
        self.cap(machine, here, to, node.verified);
    }

    /// A run checks its caps before it enters a step, but not before an end.
    fn cap(&mut self, machine: &Machine, here: usize, to: Target, verified: bool) {
        let Target::Step(_) = to else { return };
        let limits = machine.limits;
        let steps = limits.steps.and_then(|cap| cap.handler).map(|at| (at, "max_steps"));
        for (at, word) in limits.iterations.handler.map(|at| (at, "max_iterations")).into_iter().chain(steps)
        {
            let arrow = Arrow { from: here, word: Some(word.to_owned()), key: None, is_failing: false };
            self.visit(Situation { at, verified, capped: true }, Some(arrow));
        }
    }
}

/// Returns what can be known of the work after an observation, as the run does: whether it is verified. A sub-loop
/// that succeeds may have verified nothing.
fn trusts(step: &Step, observes: Observes, before: bool) -> Vec<bool> {
    match observes {
        Observes::Passing if is_sub_loop(step) && !before => vec![true, false],
        Observes::Passing => vec![true],
        Observes::Failing => vec![false],
        Observes::Nothing => vec![before],
    }
}

fn word(one: &Move) -> Option<String> {
    let way = one.way.as_ref()?;
    match (&way.key, one.departure.ended) {
        (RouteKey::Next, ActionEnd::Well) => None,
        (RouteKey::Next, ActionEnd::Badly) => Some("fails".to_owned()),
        (RouteKey::Next, ActionEnd::Late) => Some("too late".to_owned()),
        _ => Some(one.departure.verdict.to_string()),
    }
}

impl Exploration {
    /// Tells whether everything was walked.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns every node in the order of its distance from the start.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (usize, Situation)> + '_ {
        self.nodes.iter().copied().enumerate()
    }

    /// Returns every verdict that ends a run for want of a way.
    pub fn dead_ends(&self) -> &[DeadEnd] {
        &self.dead_ends
    }

    /// Tells whether a run can come to this place.
    pub fn contains(&self, node: Situation) -> bool {
        self.known.contains_key(&node)
    }

    /// Tells whether a run can come to a state.
    pub fn reaches(&self, target: Target) -> bool {
        [(false, false), (false, true), (true, false), (true, true)]
            .into_iter()
            .any(|(verified, capped)| self.contains(Situation { at: target, verified, capped }))
    }

    /// Returns how a node was first come to.
    pub fn arrow_to(&self, node: usize) -> Option<&Arrow> {
        self.first.get(node)?.as_ref()
    }

    /// Returns whether each node can still come to one of the kind that `is_goal` tells.
    pub fn can_reach(&self, is_goal: impl Fn(usize, Situation) -> bool) -> Vec<bool> {
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (from, next) in self.next.iter().enumerate() {
            for to in next {
                before[*to].push(from);
            }
        }
        let mut can = vec![false; self.nodes.len()];
        let mut open: Vec<usize> =
            self.nodes().filter(|(index, node)| is_goal(*index, *node)).map(|(index, _)| index).collect();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut can[node], true) {
                open.extend(&before[node]);
            }
        }
        can
    }

    /// Writes the shortest way to a node: `check (no) → fix → done`.
    pub fn path(&self, machine: &Machine, node: usize) -> String {
        let mut way = vec![(node, None)];
        let mut here = node;
        while let Some(arrow) = self.arrow_to(here) {
            here = arrow.from;
            way.push((here, arrow.word.as_deref()));
        }
        way.reverse();
        written(&way, |(node, word)| {
            let name = machine.name_of(self.nodes[*node].at);
            word.map_or_else(|| name.to_string(), |word| format!("{name} ({word})"))
        })
    }
}

/// Writes a path, without its middle if it is too long to read.
pub(super) fn written<T>(way: &[T], write: impl Fn(&T) -> String) -> String {
    const ENDS: usize = 6;
    let all = |part: &[T]| part.iter().map(&write).collect::<Vec<_>>();
    let parts = if way.len() > 2 * ENDS {
        let (head, tail) = (&way[..ENDS - 1], &way[way.len() - ENDS..]);
        let left_out = way.len() - head.len() - tail.len();
        [all(head), vec![format!("… {left_out} more …")], all(tail)].concat()
    } else {
        all(way)
    };
    parts.join(" → ")
}
