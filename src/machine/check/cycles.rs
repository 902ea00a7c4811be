//! Cycles that nothing but a limit ends: those that judge nothing, those that do nothing, and those in which an
//! evaluation that fails leads back to what it cannot judge.

use super::checked_machine::{CheckedLoop, state};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::machine::routing::Move;
use crate::machine::{Machine, Routes, Step, StepId, Target, explore};

pub(super) fn cycles(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    without_evaluation(subject, findings);
    without_work(subject, findings);
    without_use(subject, findings);
}

/// `next` alone leads around. A way out for a failing action makes it a loop that runs until something fails.
fn without_evaluation(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    let machine = subject.machine;
    for cycle in next_cycles(machine) {
        let steps = || cycle.iter().map(|id| machine.step(*id));
        let can_leave = steps().any(|step| {
            // A judgement cannot be part of such a cycle, so it counts as a way out.
            let Routes::Always { on_error, on_timeout, .. } = &step.routes else { return true };
            let out = [*on_error, *on_timeout].into_iter().flatten().any(|to| !is_in(&cycle, to));
            // `max_retries` ends a state that leads back to itself.
            (out && step.action.is_some()) || (step.retry.is_some() && cycle.len() == 1)
        });
        // The rule for cycles that run nothing says it better.
        if can_leave || steps().all(|step| step.action.is_none()) {
            continue;
        }
        let message = format!("the cycle {} judges nothing", written(subject, &cycle));
        let help = "it ends by a limit only; let one of its states decide with `on_yes` and `on_no`";
        let place = last_next(machine, &cycle);
        findings.push(Diagnostic::warning("cycle-without-evaluation", place, message).help(help));
    }
}

/// States that only decide, one after another: what they look at stays as it is.
fn without_work(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    let machine = subject.machine;
    let is_idle = |id: StepId| machine.step(id).action.is_none();
    let mut said = vec![false; machine.steps().len()];
    for (start, step) in machine.steps().filter(|(id, _)| is_idle(*id)) {
        // Its cycle was reported already, and would be found again from each of its states.
        if said[start.0] {
            continue;
        }
        let Some(cycle) = shortest_cycle(subject, start, &is_idle, &said) else { continue };
        if cycle.iter().any(|id| said[id.0]) || (step.retry.is_some() && cycle.len() == 1) {
            continue;
        }
        for id in &cycle {
            said[id.0] = true;
        }
        let message = format!("the cycle {} runs nothing", written(subject, &cycle));
        let help = "what its states look at cannot change, so the run goes round until a limit is met";
        let place = FindingPlace::Key(state(&step.name));
        findings.push(Diagnostic::warning("cycle-without-work", place, message).help(help));
    }
}

/// Generate → evaluate → generate: when the evaluation itself does not work, generating anew mends nothing.
fn without_use(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    let machine = subject.machine;
    // Either limit ends such a cycle soon enough.
    if machine.limits.edge_revisits.is_some() || machine.limits.steps.is_some() {
        return;
    }
    for (id, step, moves) in subject.steps() {
        let Some(error) = back(moves, "error") else { continue };
        let same_for_no = back(moves, "no").is_some_and(|no| no.to == error.to);
        let Some(Target::Step(generator)) = error.to else { continue };
        if !same_for_no || generator == id || step.retry.is_some() {
            continue;
        }
        let Some(cycle) = chain(machine, generator, id) else { continue };
        // Where the evaluation can be reached without the generator, it may judge something else.
        let comes_first = {
            let paths = subject.flow.paths(|target| target == Target::Step(generator));
            subject.flow.path_to(&paths, Target::Step(id)).is_none()
        };
        if !comes_first {
            continue;
        }
        let name = &machine.step(generator).name;
        let message = format!(
            "when `{}` cannot judge, it leads back to `{name}`: {} goes round with nothing learnt",
            step.name,
            written(subject, &cycle)
        );
        let help = "lead `error` forward, to another evaluation or to a failure, or bound it with `max_edge_revisits`";
        let place = subject.place_of(step, error);
        findings.push(Diagnostic::warning("cycle-without-progress", place, message).help(help));
    }
}

fn back<'a>(moves: &'a [Move], verdict: &str) -> Option<&'a Move> {
    moves.iter().find(|one| one.departure.verdict.as_str() == verdict && !one.is_exhausted)
}

/// Follows `next` from one step to another; the steps on the way, both ends included.
fn chain(machine: &Machine, from: StepId, to: StepId) -> Option<Vec<StepId>> {
    let mut steps = vec![from];
    let mut here = from;
    while here != to {
        here = next_of(machine.step(here))?;
        if steps.contains(&here) || steps.len() > 32 {
            return None;
        }
        steps.push(here);
    }
    Some(steps)
}

fn next_of(step: &Step) -> Option<StepId> {
    match step.routes {
        Routes::Always { next: Target::Step(id), .. } => Some(id),
        Routes::Always { next: Target::End(_), .. } | Routes::ByVerdict { .. } => None,
    }
}

/// Every cycle of `next` alone, each once, from its first state in the file on.
fn next_cycles(machine: &Machine) -> Vec<Vec<StepId>> {
    let mut walked: Vec<Option<StepId>> = vec![None; machine.steps().len()];
    let mut cycles = Vec::new();
    for (start, _) in machine.steps() {
        let mut path = Vec::new();
        let mut here = Some(start);
        while let Some(id) = here.filter(|id| walked[id.0].is_none()) {
            walked[id.0] = Some(start);
            path.push(id);
            here = next_of(machine.step(id));
        }
        if let Some(met) = here.filter(|id| walked[id.0] == Some(start))
            && let Some(at) = path.iter().position(|id| *id == met)
        {
            let mut cycle = path.split_off(at);
            let first = cycle.iter().enumerate().min_by_key(|(_, id)| **id).map_or(0, |(index, _)| index);
            cycle.rotate_left(first);
            cycles.push(cycle);
        }
    }
    cycles
}

/// Finds the shortest way from a step back to itself through steps of a kind.
fn shortest_cycle(
    subject: &CheckedLoop<'_>,
    start: StepId,
    is_kind: &impl Fn(StepId) -> bool,
    said: &[bool],
) -> Option<Vec<StepId>> {
    let mut before: Vec<Option<StepId>> = vec![None; said.len()];
    let mut open = std::collections::VecDeque::from([start]);
    while let Some(here) = open.pop_front() {
        for to in subject.flow.steps_after(here).filter(|to| is_kind(*to) && !said[to.0]) {
            if to == start {
                let mut cycle = vec![here];
                while let Some(previous) = before[cycle[cycle.len() - 1].0] {
                    cycle.push(previous);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if before[to.0].is_none() {
                before[to.0] = Some(here);
                open.push_back(to);
            }
        }
    }
    None
}

fn is_in(cycle: &[StepId], target: Target) -> bool {
    matches!(target, Target::Step(id) if cycle.contains(&id))
}

fn last_next(machine: &Machine, cycle: &[StepId]) -> FindingPlace {
    FindingPlace::Key(
        cycle.last().map_or_else(Default::default, |id| state(&machine.step(*id).name).key("next")),
    )
}

/// Writes a cycle with its beginning once more at the end.
fn written(subject: &CheckedLoop<'_>, cycle: &[StepId]) -> String {
    let round: Vec<_> = cycle.iter().chain(cycle.first()).collect();
    explore::written(&round, |id| subject.name(Target::Step(**id)).to_string())
}
