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
    let works: Vec<bool> = machine.steps().map(|(_, step)| step.action.is_some()).collect();
    let mut next = vec![Vec::new(); works.len()];
    for edge in edges(machine) {
        if let (Target::Step(StepId(from)), Target::Step(StepId(to))) = (edge.from, edge.to) {
            next[from].push(to);
        }
    }
    come_again(&next, &works).into_iter().map(StepId).collect()
}

/// Returns the nodes that work and that a way leads back to on which no other one works.
fn come_again(next: &[Vec<usize>], works: &[bool]) -> BTreeSet<usize> {
    let idle = |from: usize| next[from].iter().copied().filter(|to| !works[*to]);
    let between: Vec<Vec<usize>> =
        (0..next.len()).map(|node| if works[node] { Vec::new() } else { idle(node).collect() }).collect();
    let parts = parts(&between);
    // What an idle node leads to is known before the node itself: later parts come first.
    let mut idle_nodes: Vec<usize> = (0..next.len()).filter(|node| !works[*node]).collect();
    idle_nodes.sort_by_key(|node| std::cmp::Reverse(parts[*node]));
    let working: Vec<usize> = (0..next.len()).filter(|node| works[*node]).collect();
    let mut found = BTreeSet::new();
    // One walk over all idle nodes is for as many of those that work as a number has bits.
    for some in working.chunks(64) {
        // Which of them come next to work after a node of a part, or are the part themselves.
        let mut ahead = vec![0_u64; next.len()];
        for (bit, node) in some.iter().enumerate() {
            ahead[parts[*node]] = 1 << bit;
        }
        for node in &idle_nodes {
            ahead[parts[*node]] |= all_ahead(&next[*node], &parts, &ahead);
        }
        let again = some.iter().enumerate();
        let again = again.filter(|(bit, node)| all_ahead(&next[**node], &parts, &ahead) & (1 << bit) != 0);
        found.extend(again.map(|(_, node)| *node));
    }
    found
}

fn all_ahead(next: &[usize], parts: &[usize], ahead: &[u64]) -> u64 {
    next.iter().fold(0, |all, to| all | ahead[parts[*to]])
}

/// Tells for each node the strongly connected part that it is in. Ways from one part to another lead to a later one.
pub(super) fn parts(next: &[Vec<usize>]) -> Vec<usize> {
    // Kosaraju's two walks, with stacks of our own: recursion would be as deep as the loop has
    // states.
    let mut order = Vec::with_capacity(next.len());
    let mut seen = vec![false; next.len()];
    for start in 0..next.len() {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut open = vec![(start, 0)];
        while let Some((node, at)) = open.pop() {
            match next[node].get(at) {
                Some(to) => {
                    open.push((node, at + 1));
                    if !std::mem::replace(&mut seen[*to], true) {
                        open.push((*to, 0));
                    }
                }
                None => order.push(node),
            }
        }
    }
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); next.len()];
    for (from, next) in next.iter().enumerate() {
        for to in next {
            before[*to].push(from);
        }
    }
    let mut parts = vec![usize::MAX; next.len()];
    for (part, root) in order.into_iter().rev().enumerate() {
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if parts[node] == usize::MAX {
                parts[node] = part;
                open.extend(before[node].iter().filter(|node| parts[**node] == usize::MAX));
            }
        }
    }
    parts
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Walks from every node that works by itself.
    fn walked(next: &[Vec<usize>], works: &[bool]) -> BTreeSet<usize> {
        let comes_again = |node: &usize| {
            let mut seen = BTreeSet::new();
            let mut open = next[*node].clone();
            while let Some(at) = open.pop() {
                if at == *node {
                    return true;
                }
                if !works[at] && seen.insert(at) {
                    open.extend(&next[at]);
                }
            }
            false
        };
        (0..next.len()).filter(|node| works[*node]).filter(comes_again).collect()
    }

    proptest! {
        #[test]
        fn what_comes_again_is_what_a_walk_from_each_node_finds(
            works in prop::collection::vec(prop::bool::weighted(0.4), 1..12),
            ways in prop::collection::vec((0_usize..12, 0_usize..12), 0..24),
        ) {
            let mut next = vec![Vec::new(); works.len()];
            for (from, to) in ways {
                next[from % works.len()].push(to % works.len());
            }
            prop_assert_eq!(come_again(&next, &works), walked(&next, &works));
        }
    }

    #[test]
    fn more_nodes_come_again_than_a_number_has_bits() {
        // 150 that work lead into a chain, the end of which leads back to every third of them.
        let works: Vec<bool> = (0..300).map(|node| node < 150).collect();
        let mut next: Vec<Vec<usize>> =
            (0..300).map(|node| vec![if node < 150 { 150 } else { node + 1 }]).collect();
        next[299] = (0..150).step_by(3).collect();
        let found = come_again(&next, &works);
        assert!(found.iter().copied().eq((0..150).step_by(3)), "{found:?}");
        assert_eq!(found, walked(&next, &works));
    }
}
