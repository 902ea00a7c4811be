//! Explores every possible run of a machine: every verdict that its evaluators can give, and what each
//! cap may do at any time. It ignores counters, so the graph is finite and includes
//! every real run.

use std::collections::BTreeMap;

use super::routing::{ActionEnd, Departure, Move, RouteKey, in_a_stall, is_sub_loop, moves};
use super::{Action, EndId, Machine, Step, StepId, Target};
use crate::base::template::Template;
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
    // Whether something was verified before the interruption is not known here, so both are
    // followed.
    for verified in [true, false] {
        if let Some(at) = machine.on_resume {
            walk.visit(Situation { at, verified, capped: false }, None);
        }
    }
    // Made once for each step, to which the walk comes in several situations.
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
        for one in moves.iter().filter(|one| one.to.is_none()) {
            let Departure { verdict, is_any_other, .. } = one.departure.clone();
            self.dead_ends.push(DeadEnd { node: here, verdict, is_any_other });
        }
        for passage in passages(machine, id, moves, node) {
            self.visit(passage.to, Some(passage.arrow(machine.step(id), here)));
        }
    }

    fn finish(&mut self, machine: &Machine, here: usize, node: Situation, id: EndId) {
        for (to, word) in restarts(machine, id, node) {
            let arrow = Arrow { from: here, word: Some(word.to_owned()), key: None, is_failing: false };
            self.visit(to, Some(arrow));
        }
    }
}

/// A way that a run can take from one situation to the next.
#[derive(Clone, Debug)]
pub struct Passage<'m> {
    /// Where it comes to.
    pub to: Situation,
    /// How the state is left.
    pub by: &'m Move,
    /// What comes in between, if something does.
    pub detour: Option<PassageDetour>,
}

/// Why a run comes elsewhere than its route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassageDetour {
    /// It has been there too often without a change.
    Stall,
    /// A cap is met, and has a handler: `max_iterations` or `max_steps`.
    Cap(&'static str),
}

impl Passage<'_> {
    fn arrow(&self, step: &Step, from: usize) -> Arrow {
        let is_failing = self.by.departure.observes(step) == Observes::Failing;
        let plain = |word: &str| Arrow { from, word: Some(word.to_owned()), key: None, is_failing };
        match self.detour {
            Some(PassageDetour::Cap(word)) => Arrow { is_failing: false, ..plain(word) },
            Some(PassageDetour::Stall) => plain("stall"),
            None if self.by.is_exhausted => plain("retries exhausted"),
            None => {
                let key = self.by.way.as_ref().map(|way| way.key.clone());
                Arrow { from, word: word(self.by), key, is_failing }
            }
        }
    }
}

/// Returns every way that a run can take after a step that was entered like this; `moves` are those of the step. After the
/// handler of a cap the run ends, whatever its route.
pub fn passages<'m>(machine: &Machine, id: StepId, moves: &'m [Move], from: Situation) -> Vec<Passage<'m>> {
    let step = machine.step(id);
    let mut all = Vec::new();
    for by in moves.iter().filter(|_| !from.capped) {
        let Some(at) = by.to else { continue };
        for verified in trusts(step, by.departure.observes(step), from.verified) {
            let to = |at: Target| Situation { at, verified, capped: false };
            all.push(Passage { to: to(at), by, detour: None });
            let stall = in_a_stall(machine, by);
            all.extend(stall.map(|at| Passage { to: to(at), by, detour: Some(PassageDetour::Stall) }));
            let caps = caps_before(machine, at, verified);
            all.extend(caps.map(|(to, cap)| Passage { to, by, detour: Some(PassageDetour::Cap(cap)) }));
        }
    }
    all
}

/// Returns where a maintain loop starts again after an end, each with the word for that.
pub fn restarts(machine: &Machine, id: EndId, from: Situation) -> Vec<(Situation, &'static str)> {
    if machine.maintain.is_none() || from.capped {
        return Vec::new();
    }
    let at = machine.end(id).on_maintain.unwrap_or(machine.initial);
    let again = Situation { at, verified: from.verified, capped: false };
    std::iter::once((again, "maintain")).chain(caps_before(machine, at, from.verified)).collect()
}

/// Returns the handlers of the caps that may be met before a target: before a step, but not before an end.
fn caps_before(
    machine: &Machine,
    to: Target,
    verified: bool,
) -> impl Iterator<Item = (Situation, &'static str)> {
    let limits = machine.limits;
    let iterations = limits.iterations.handler.map(|at| (at, "max_iterations"));
    let steps = limits.steps.and_then(|cap| cap.handler).map(|at| (at, "max_steps"));
    // An end costs no pass, so no cap can stand before it.
    let is_step = matches!(to, Target::Step(_));
    let handlers = iterations.into_iter().chain(steps).filter(move |_| is_step);
    handlers.map(move |(at, word)| (Situation { at, verified, capped: true }, word))
}

/// Returns what can be known of the work after an observation, as the run does: whether it is verified. A sub-loop
/// that succeeds may have verified nothing.
fn trusts(step: &Step, observes: Observes, before: bool) -> Vec<bool> {
    match observes {
        // What passed on a branch of its own says nothing about the tree of this run.
        Observes::Passing if works_elsewhere(step) => vec![before],
        Observes::Passing if is_sub_loop(step) && !before => vec![true, false],
        Observes::Passing => vec![true],
        Observes::Failing => vec![false],
        Observes::Nothing => vec![before],
    }
}

/// Tells whether a step runs a loop in a worktree of its own. A branch whose name only the run knows may be empty, which means that
/// there is none.
fn works_elsewhere(step: &Step) -> bool {
    let Some(Action::SubLoop(sub)) = &step.action else { return false };
    let branch = sub.worktree.as_ref().and_then(Template::as_literal);
    branch.is_some_and(|branch| !branch.trim().is_empty())
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
