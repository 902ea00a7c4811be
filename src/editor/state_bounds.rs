//! What the machine says of a state, whatever its evaluators answer: whether a run can come there, and how often at most.

use std::collections::BTreeSet;

use crate::base::name::StateName;
use crate::machine::{Machine, Target, graph};

/// Says whether a run can come to a state, and how often at most. Nothing is said of one that the machine does not have.
pub(super) fn said(machine: &Machine, name: &StateName) -> Option<String> {
    let target = machine.find(name)?;
    if !graph::linked(machine).contains(&target) {
        return Some("no run comes here".to_owned());
    }
    let Target::Step(_) = target else { return Some("a run can end here".to_owned()) };
    // A target that only a run knows may be this very state.
    if !comes_again(machine, target) && machine.is_decided() {
        return Some("a run comes here once at most".to_owned());
    }
    let limits = &machine.limits;
    let steps = limits.steps.map_or(u32::MAX, |cap| cap.limit);
    Some(format!("a run comes here {} times at most", limits.iterations.limit.min(steps)))
}

/// Tells whether some way leads from a target back to it.
fn comes_again(machine: &Machine, target: Target) -> bool {
    let edges = graph::edges(machine);
    let next = |from: Target| edges.iter().filter(move |edge| edge.from == from).map(|edge| edge.to);
    let mut seen = BTreeSet::new();
    let mut open: Vec<Target> = next(target).collect();
    while let Some(at) = open.pop() {
        if at == target {
            return true;
        }
        if seen.insert(at) {
            open.extend(next(at));
        }
    }
    // A maintain loop starts again after its end, and may begin with the state.
    machine.maintain.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;
    use crate::machine::compile;

    fn of(state: &str) -> String {
        let text = "name: x\ninitial: a\nmax_iterations: 7\nstates:\n  a: {action: make, on_yes: b, on_no: a}\n  b: {action: make, next: c}\n  c: {terminal: true}\n  d: {action: make, next: c}\n";
        let loaded = load::decode("x.yaml", text, String::new()).unwrap();
        let machine = compile::compile(&loaded.definition).0.unwrap();
        said(&machine, &StateName::parse(state).unwrap()).unwrap()
    }

    #[test]
    fn a_state_is_visited_as_often_as_its_ways_allow() {
        assert_eq!(of("a"), "a run comes here 7 times at most");
        assert_eq!(of("b"), "a run comes here once at most");
        assert_eq!(of("c"), "a run can end here");
        assert_eq!(of("d"), "no run comes here");
    }
}
