//! What a walk through everything that can happen shows, each with the shortest way there.

use std::collections::BTreeSet;

use super::checked_machine::{CheckedLoop, state};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::path::DocPath;
use crate::machine::explore::{BOUND, Exploration, Situation, explore};
use crate::machine::{Meaning, Target, graph};

/// Walks the machine and says every bad end of it.
pub(super) fn walk(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    let all = explore(subject.machine, BOUND);
    if !all.is_complete() {
        let message = format!(
            "not everything that can happen was looked at: {BOUND} situations were, from the start on"
        );
        let place = FindingPlace::Key(DocPath::root().key("states"));
        findings.push(Diagnostic::note("not-explored", place, message));
    }
    endless(subject, &all, findings);
    dead_ends(subject, &all, findings);
    unverified(subject, &all, findings);
    // With targets that are known only when a run begins, any state may be entered.
    if all.is_complete() && subject.machine.is_decided() {
        never_entered(subject, &all, findings);
    }
}

/// Where a run gets to and can end by a limit only.
fn endless(subject: &CheckedLoop<'_>, all: &Exploration, findings: &mut Diagnostics) {
    // What was not looked at may be the way to an end.
    if !all.is_complete() {
        return;
    }
    let can_end = all.can_reach(|_, node| matches!(node.at, Target::End(_)) && !node.capped);
    let stops: BTreeSet<usize> = all.dead_ends().iter().map(|end| end.node).collect();
    let can_stop = all.can_reach(|index, _| stops.contains(&index));
    let mut said: BTreeSet<Target> = BTreeSet::new();
    for (index, node) in all.nodes() {
        // Only where a run comes in from outside: inside, every further state would be reported as well.
        let is_entry = all.arrow_to(index).is_none_or(|arrow| can_end[arrow.from]);
        if can_end[index] || node.capped || !is_entry || !said.insert(node.at) {
            continue;
        }
        let name = subject.name(node.at);
        let how = if can_stop[index] { "an error or a limit" } else { "a limit" };
        let path = all.path(subject.machine, index);
        let message = format!("from `{name}` on, only {how} ends the run: {path}");
        let help = "add a way from here to a terminal, for a verdict that can come";
        findings.push(Diagnostic::warning("endless", FindingPlace::Key(state(name)), message).help(help));
    }
}

/// Verdicts that end the run, because neither the state nor the loop has a way for them.
fn dead_ends(subject: &CheckedLoop<'_>, all: &Exploration, findings: &mut Diagnostics) {
    let mut said: BTreeSet<(Target, &'static str)> = BTreeSet::new();
    for end in all.dead_ends() {
        let Some((_, node)) = all.nodes().nth(end.node) else { continue };
        let name = subject.name(node.at);
        let path = all.path(subject.machine, end.node);
        let verdict = end.verdict.as_str();
        let place = FindingPlace::Key(state(name));
        let (kind, finding) = match verdict {
            _ if end.is_any_other => {
                let message =
                    format!("a word that `{name}` does not name ends the run with an error: {path}");
                let help = "add `_` to `route`, for any other word";
                ("any other", Diagnostic::warning("dead-end", place, message).help(help))
            }
            // An outcome of its own, and often what is meant; therefore a note.
            "error" | "timeout" => {
                let message = format!("an error in `{name}` ends the run: {path}");
                let help = "that is an outcome of its own (exit 4); add `on_error` if there is more to do";
                ("error", Diagnostic::note("dead-end", place, message).help(help))
            }
            "blocked" => {
                let message =
                    format!("`blocked` in `{name}` ends the run before any state can react: {path}");
                let help = "add `on_blocked` to the state or to the loop, to say who is needed for what";
                ("blocked", Diagnostic::warning("dead-end", place, message).help(help))
            }
            verdict => {
                let message =
                    format!("the verdict `{verdict}` of `{name}` ends the run with an error: {path}");
                let help = format!("add `on_{verdict}`, or `_` in `route` for any other");
                findings.push(Diagnostic::warning("dead-end", place, message).help(help));
                continue;
            }
        };
        if said.insert((node.at, kind)) {
            findings.push(finding);
        }
    }
}

/// Successes that nothing verified: no observation passes before the end, or none after a failing one.
fn unverified(subject: &CheckedLoop<'_>, all: &Exploration, findings: &mut Diagnostics) {
    for (index, node) in all.nodes() {
        let Target::End(id) = node.at else { continue };
        let Situation { verified: false, capped: false, .. } = node else { continue };
        let end = subject.machine.end(id);
        // With `outcome: success` the author has said that this end is fine, verified or not.
        if end.meaning == Meaning::Success {
            let path = all.path(subject.machine, index);
            let message = format!("a run can end in `{}` with nothing verified: {path}", end.name);
            let help = "under `--strict` that is a failure; judge once more before the end, or write `outcome: success`";
            let place = FindingPlace::Key(state(&end.name));
            findings.push(Diagnostic::warning("unverified-path", place, message).help(help));
        }
    }
}

/// States that have a way in, but none that a verdict takes.
fn never_entered(subject: &CheckedLoop<'_>, all: &Exploration, findings: &mut Diagnostics) {
    let machine = subject.machine;
    let linked = graph::linked(machine);
    for target in graph::targets(machine).filter(|target| linked.contains(target) && !all.reaches(*target)) {
        let name = subject.name(target);
        let is_failure = matches!(target, Target::End(id) if machine.end(id).meaning == Meaning::Failure);
        let message = if is_failure {
            format!("no run can end in `{name}`, so nothing ever counts as this failure")
        } else {
            format!("no run enters `{name}`")
        };
        let help = "the ways that lead here are for verdicts that cannot come";
        findings
            .push(Diagnostic::warning("never-entered", FindingPlace::Key(state(name)), message).help(help));
    }
}
