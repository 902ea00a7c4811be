//! States that no run enters, and states from which no run ends.

use super::checked_machine::{CheckedLoop, state};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::machine::{Target, graph};

pub(super) fn unreachable(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    let machine = subject.machine;
    let reached = graph::reachable(machine);
    for target in graph::targets(machine).filter(|target| !reached.contains(target)) {
        let name = machine.name_of(target);
        let message = format!("the state `{name}` is never reached");
        let help = "route to it from another state, or remove it";
        findings.push(Diagnostic::warning("unreachable", FindingPlace::Key(state(name)), message).help(help));
    }
}

pub(super) fn no_end(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    let machine = subject.machine;
    let reached = graph::reachable(machine);
    let ending = graph::can_end(machine);
    for (id, step) in machine.steps() {
        if reached.contains(&Target::Step(id)) && !ending.contains(&Target::Step(id)) {
            let message = format!("no terminal can be reached from `{}`", step.name);
            let help = "the run can only end by a limit here; add a route to a terminal state";
            findings.push(
                Diagnostic::warning("no-end", FindingPlace::Key(state(&step.name)), message).help(help),
            );
        }
    }
}
