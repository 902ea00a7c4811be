//! What can follow what in a machine, as far as its evaluators can bring it about, and shortest paths in it.

use std::collections::{BTreeSet, VecDeque};

use crate::machine::graph::{parts, targets};
use crate::machine::routing::{Move, in_a_stall, moves};
use crate::machine::{EndId, Machine, StepId, Target};

/// A graph whose nodes are the steps, then the ends, then the handlers of caps, after which a run ends, and of stalls.
pub(super) struct FlowGraph {
    nodes: Vec<Target>,
    next: Vec<Vec<usize>>,
    /// Handlers that take the place of entering a state once more, which was therefore entered before.
    again: Vec<Vec<Reentry>>,
    steps: usize,
    /// Where runs begin, and where they go on that were left.
    starts: Vec<usize>,
}

/// A way to a handler in place of a state.
#[derive(Clone, Copy)]
struct Reentry {
    state: usize,
    handler: usize,
}

/// The shortest paths from the start.
pub(super) struct Paths {
    /// For every node that is reached the one before it; the start comes from itself.
    before: Vec<Option<usize>>,
}

/// What may not be set at each node.
pub(super) struct Unset(Vec<ValueSet>);

/// Some of the values that are tracked, a bit for each, so that one walk does for all values of a large loop.
#[derive(Clone)]
struct ValueSet(Vec<u64>);

impl ValueSet {
    fn none(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn all(count: usize) -> Self {
        // The bits behind the last value are never asked for.
        Self(vec![u64::MAX; count.div_ceil(64)])
    }

    fn has(&self, value: usize) -> bool {
        self.0[value / 64] & (1 << (value % 64)) != 0
    }

    fn without(&self, values: &[usize]) -> Self {
        let mut left = self.clone();
        for value in values {
            left.0[value / 64] &= !(1 << (value % 64));
        }
        left
    }

    /// Adds others; tells whether there was a new one.
    fn add(&mut self, others: &Self) -> bool {
        let mut is_more = false;
        for (here, other) in self.0.iter_mut().zip(&others.0) {
            is_more |= other & !*here != 0;
            *here |= other;
        }
        is_more
    }
}

impl FlowGraph {
    /// Makes the graph of a machine.
    pub(super) fn of(machine: &Machine) -> Self {
        let moves: Vec<_> = machine.steps().map(|(id, _)| moves(machine, id)).collect();
        Self::new(machine, &moves)
    }

    pub(super) fn new(machine: &Machine, moves: &[Vec<Move>]) -> Self {
        let steps = machine.steps().len();
        let mut nodes: Vec<Target> = targets(machine).collect();
        let index = |target: Target| match target {
            Target::Step(StepId(id)) => id,
            Target::End(EndId(id)) => steps + id,
        };
        let mut next: Vec<Vec<usize>> =
            // A move without a target ends the run, so nothing follows.
            moves.iter().map(|moves| moves.iter().filter_map(|one| one.to.map(index)).collect()).collect();
        next.extend(machine.ends().map(|(_, end)| {
            let again = machine.maintain.map(|_| end.on_maintain.unwrap_or(machine.initial));
            again.map(index).into_iter().collect::<Vec<_>>()
        }));
        let parts = parts(&next);
        let limits = machine.limits;
        let mut again = vec![Vec::new(); steps];
        if let Some(handler) = limits.iterations.handler {
            let handler = copy(&mut nodes, &mut next, handler, Vec::new());
            for (from, again) in again.iter_mut().enumerate() {
                // A new pass begins where a state is entered again, which is somewhere in a cycle.
                let states = next[from].iter().filter(|to| **to < steps && parts[**to] == parts[from]);
                again.extend(states.map(|state| Reentry { state: *state, handler }));
            }
        }
        if let Some(handler) = machine.stall.and_then(|stall| stall.to) {
            // The way out of a stall is there once, so it is part of no cycle: a node of its own leads back.
            let after = next[index(handler)].clone();
            let handler = copy(&mut nodes, &mut next, handler, after);
            for (from, moves) in moves.iter().enumerate() {
                let stalling = moves.iter().filter(|one| in_a_stall(machine, one).is_some());
                let states = stalling.filter_map(|one| one.to.map(index));
                again[from].extend(states.map(|state| Reentry { state, handler }));
            }
        }
        if let Some(handler) = limits.steps.and_then(|cap| cap.handler) {
            let handler = copy(&mut nodes, &mut next, handler, Vec::new());
            for next in &mut next[..steps] {
                // A cap is met before a step and never before an end.
                if next.iter().any(|to| *to < steps) {
                    next.push(handler);
                }
            }
        }
        let starts = std::iter::once(machine.initial).chain(machine.on_resume).map(index).collect();
        Self { nodes, next, again, steps, starts }
    }

    pub(super) fn target(&self, node: usize) -> Target {
        self.nodes[node]
    }

    /// Returns the steps that can come directly after a step.
    pub(super) fn steps_after(&self, step: StepId) -> impl Iterator<Item = StepId> {
        self.next[step.0].iter().filter(|to| **to < self.steps).map(|to| StepId(*to))
    }

    /// Finds the shortest paths that lead through no state of which `ends_here` is true.
    pub(super) fn paths(&self, ends_here: impl Fn(Target) -> bool) -> Paths {
        let mut before = vec![None; self.nodes.len()];
        for start in &self.starts {
            before[*start] = Some(*start);
        }
        let mut open: VecDeque<_> = self.starts.iter().copied().collect();
        while let Some(node) = open.pop_front() {
            if ends_here(self.nodes[node]) {
                continue;
            }
            let again = self.again.get(node).into_iter().flatten();
            // The state whose place a handler takes was entered before, and no path here leads through one that ends it.
            let handlers = again.filter(|again| !ends_here(self.nodes[again.state]));
            for to in self.next[node].iter().copied().chain(handlers.map(|again| again.handler)) {
                if before[to].is_none() {
                    before[to] = Some(node);
                    open.push_back(to);
                }
            }
        }
        Paths { before }
    }

    /// Finds which of `count` values may be unset at each node, because some path to it sets none of them. `set_by`
    /// returns the values that a state sets.
    pub(super) fn unset(&self, count: usize, set_by: impl Fn(Target) -> Vec<usize>) -> Unset {
        let set_by: Vec<Vec<usize>> = self.nodes.iter().map(|node| set_by(*node)).collect();
        let mut unset = vec![ValueSet::none(count); self.nodes.len()];
        let mut open: VecDeque<usize> = self.starts.iter().copied().collect();
        for start in &self.starts {
            unset[*start] = ValueSet::all(count);
        }
        let mut is_open = vec![false; self.nodes.len()];
        while let Some(node) = open.pop_front() {
            // A node comes up again whenever more may be unset there. That ends, because nothing is ever taken away from it.
            is_open[node] = false;
            let after = unset[node].without(&set_by[node]);
            let mut lead = |to: usize, unset_there: &ValueSet| {
                if unset[to].add(unset_there) && !std::mem::replace(&mut is_open[to], true) {
                    open.push_back(to);
                }
            };
            self.next[node].iter().for_each(|to| lead(*to, &after));
            for again in self.again.get(node).into_iter().flatten() {
                // The state was entered before, so what it sets was set.
                lead(again.handler, &after.without(&set_by[again.state]));
            }
        }
        Unset(unset)
    }

    /// Finds the steps of which `counts` is true that can be the last such ones before a state is entered.
    pub(super) fn last_before(&self, target: Target, counts: impl Fn(Target) -> bool) -> BTreeSet<StepId> {
        let mut before = vec![Vec::new(); self.nodes.len()];
        for (from, next) in self.next.iter().enumerate() {
            for to in next {
                before[*to].push(from);
            }
        }
        for (from, again) in self.again.iter().enumerate() {
            for again in again {
                before[again.handler].push(from);
            }
        }
        let mut seen = vec![false; self.nodes.len()];
        let mut open: Vec<usize> = self.nodes_of(target).collect();
        let mut found = BTreeSet::new();
        while let Some(node) = open.pop() {
            for from in before[node].iter().copied() {
                if std::mem::replace(&mut seen[from], true) {
                    continue;
                }
                match self.nodes[from] {
                    Target::Step(id) if counts(Target::Step(id)) => {
                        found.insert(id);
                    }
                    Target::Step(_) | Target::End(_) => open.push(from),
                }
            }
        }
        found
    }

    /// Tells whether some way to a state leaves a value unset.
    pub(super) fn may_be_unset(&self, unset: &Unset, value: usize, target: Target) -> bool {
        self.nodes_of(target).any(|node| unset.0[node].has(value))
    }

    /// Returns the nodes that stand for a state.
    fn nodes_of(&self, target: Target) -> impl Iterator<Item = usize> {
        let copies = (self.steps..self.nodes.len()).filter(move |node| self.nodes[*node] == target);
        let own = match target {
            Target::Step(StepId(id)) => Some(id),
            Target::End(_) => None,
        };
        own.into_iter().chain(copies)
    }

    /// Returns the path to a state, the state itself last.
    pub(super) fn path_to(&self, paths: &Paths, target: Target) -> Option<Vec<Target>> {
        let mut node = self.nodes_of(target).find(|node| paths.before[*node].is_some())?;
        let mut path = vec![self.target(node)];
        while let Some(before) = paths.before[node].filter(|before| *before != node) {
            path.push(self.target(before));
            node = before;
        }
        path.reverse();
        Some(path)
    }
}

/// Adds a further node for a target, and returns it.
fn copy(nodes: &mut Vec<Target>, next: &mut Vec<Vec<usize>>, target: Target, after: Vec<usize>) -> usize {
    nodes.push(target);
    next.push(after);
    nodes.len() - 1
}
