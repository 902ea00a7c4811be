//! A machine as a graph: the ways between its states, and what can be reached.

use std::collections::{BTreeMap, BTreeSet};

use super::{Machine, StepId, Target};

/// A way from one state to another, with the words for which it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineEdge {
    /// Where it begins.
    pub from: Target,
    /// Where it leads.
    pub to: Target,
    /// The verdicts, or `next`.
    pub label: String,
}

/// Returns every way, those with the same ends joined, in the order of the file.
pub fn edges(machine: &Machine) -> Vec<MachineEdge> {
    let mut edges: Vec<MachineEdge> = Vec::new();
    let mut known: BTreeMap<(Target, Target), usize> = BTreeMap::new();
    let mut add = |from, to, word: String| {
        if let Some(found) = known.get(&(from, to)) {
            let label = &mut edges[*found].label;
            label.push_str(", ");
            label.push_str(&word);
        } else {
            known.insert((from, to), edges.len());
            edges.push(MachineEdge { from, to, label: word });
        }
    };
    for (id, step) in machine.steps() {
        for (word, to) in step.routes.ways() {
            add(Target::Step(id), to, word);
        }
        if let Some(retry) = &step.retry {
            add(Target::Step(id), retry.exhausted, "retries exhausted".to_owned());
        }
    }
    if machine.maintain.is_some() {
        for (id, end) in machine.ends() {
            add(Target::End(id), end.on_maintain.unwrap_or(machine.initial), "maintain".to_owned());
        }
    }
    edges
}

/// Returns every step, then every end, each in the order of the file.
pub fn targets(machine: &Machine) -> impl Iterator<Item = Target> {
    let steps = machine.steps().map(|(id, _)| Target::Step(id));
    steps.chain(machine.ends().map(|(id, _)| Target::End(id)))
}

/// Returns where a run may come from any step: the routes of the loop, what runs at a cap, and where a resume goes.
pub fn handlers(machine: &Machine) -> impl Iterator<Item = Target> + use<> {
    let fallback = machine.fallback;
    let all = [
        fallback.on_error,
        fallback.on_timeout,
        fallback.on_blocked,
        machine.limits.iterations.handler,
        machine.limits.steps.and_then(|cap| cap.handler),
        machine.stall.and_then(|stall| stall.to),
        machine.on_resume,
    ];
    all.into_iter().flatten()
}

/// Returns every target that something leads to, loop-level routes and handlers included, and ways for reasons that do
/// not come up.
pub fn reachable(machine: &Machine) -> BTreeSet<Target> {
    let unused =
        machine.steps().flat_map(|(id, step)| step.unused.iter().map(move |to| (Target::Step(id), *to)));
    reached(machine, unused)
}

/// Returns every target that some run can reach, loop-level routes and handlers included.
pub fn linked(machine: &Machine) -> BTreeSet<Target> {
    reached(machine, std::iter::empty())
}

fn reached(machine: &Machine, further: impl Iterator<Item = (Target, Target)>) -> BTreeSet<Target> {
    let edges = edges(machine);
    // A target that is not known yet may be any of them.
    let any = targets(machine).filter(|_| !machine.is_decided());
    let start = [machine.initial].into_iter().chain(handlers(machine)).chain(any);
    spread(start.collect(), edges.iter().map(|edge| (edge.from, edge.to)).chain(further))
}

/// Returns the steps with work that may come again without another one working in between.
pub(super) fn repeating(machine: &Machine) -> BTreeSet<StepId> {
    let works = |id: StepId| machine.step(id).action.is_some();
    let edges: Vec<(Target, Target)> = edges(machine).into_iter().map(|edge| (edge.from, edge.to)).collect();
    let next = |id: StepId| {
        let out = edges.iter().filter(move |(from, _)| *from == Target::Step(id));
        out.filter_map(|(_, to)| match to {
            Target::Step(to) => Some(*to),
            Target::End(_) => None,
        })
    };
    let comes_again = |id: &StepId| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<StepId> = next(*id).collect();
        while let Some(at) = open.pop() {
            if at == *id {
                return true;
            }
            // Only states without work are passed through: with another one in between, the first does not come again by itself.
            if !works(at) && seen.insert(at) {
                open.extend(next(at));
            }
        }
        false
    };
    machine.steps().map(|(id, _)| id).filter(|id| works(*id)).filter(comes_again).collect()
}

/// Returns every target from which an end can be reached.
pub fn can_end(machine: &Machine) -> BTreeSet<Target> {
    let edges = edges(machine);
    let ends = machine.ends().map(|(id, _)| Target::End(id));
    spread(ends.collect(), edges.iter().map(|edge| (edge.to, edge.from)))
}

/// Tells whether some run can end without entering any of these steps.
pub fn can_end_without(machine: &Machine, avoided: &BTreeSet<StepId>) -> bool {
    let is_avoided = |target: Target| matches!(target, Target::Step(id) if avoided.contains(&id));
    // Without a way out of the avoided steps, whatever is reached was reached past them.
    let edges = edges(machine).into_iter().filter(|edge| !is_avoided(edge.from));
    let starts = std::iter::once(machine.initial).chain(machine.on_resume).collect();
    let reached = spread(starts, edges.map(|edge| (edge.from, edge.to)));
    reached.iter().any(|target| matches!(target, Target::End(_)))
}

fn spread(start: Vec<Target>, pairs: impl Iterator<Item = (Target, Target)>) -> BTreeSet<Target> {
    let mut next: BTreeMap<Target, Vec<Target>> = BTreeMap::new();
    for (from, to) in pairs {
        next.entry(from).or_default().push(to);
    }
    let mut reached = BTreeSet::new();
    let mut open = start;
    while let Some(target) = open.pop() {
        if reached.insert(target) {
            open.extend(next.get(&target).into_iter().flatten());
        }
    }
    reached
}
