//! Tells whether two machines do the same whatever happens: a mutant like that cannot be found by any test.

use std::collections::BTreeSet;

use super::edges::has_cycle;
use crate::base::name::StateName;
use crate::machine::routing::{Move, moves, without_model};
use crate::machine::{End, Machine, Step, StepId, Target, observations};

/// Tells whether every run of the one is a run of the other, with the same states, work and ends.
pub fn are_alike(one: &Machine, other: &Machine) -> bool {
    one == other || (have_the_same_settings(one, other) && walk(one, other))
}

fn named(machine: &Machine, target: Option<Target>) -> Option<&StateName> {
    target.map(|target| machine.name_of(target))
}

/// Compares what holds in every state. Caps on repetition do nothing where nothing comes again.
fn have_the_same_settings(one: &Machine, other: &Machine) -> bool {
    let repeats = has_cycle(one) || has_cycle(other);
    let caps = |machine: &Machine| {
        let limits = machine.limits;
        let iterations = (limits.iterations.limit, named(machine, limits.iterations.handler).cloned());
        let steps = limits.steps.map(|cap| (cap.limit, named(machine, cap.handler).cloned()));
        let stall = machine.stall.map(|stall| (stall.window, named(machine, stall.to).cloned()));
        let repeated = (iterations, limits.edge_revisits, stall);
        (repeats.then_some(repeated), steps, limits.timeout, limits.backoff, limits.cycles)
    };
    let rest = |machine: &Machine| {
        let llm = (machine.llm.clone(), machine.budget, machine.signals.clone(), machine.on_handoff);
        let tree = (machine.on_change, machine.judges.clone(), machine.makes_closing_pass);
        let ends = (machine.max_handoffs, machine.artifact.clone(), machine.board, machine.maintain);
        let values = (machine.context.clone(), machine.env.clone(), machine.required_inputs.clone());
        (llm, tree, ends, values, machine.heeds_project)
    };
    caps(one) == caps(other) && rest(one) == rest(other)
}

/// Walks both side by side through every state that a run can come to.
fn walk(one: &Machine, other: &Machine) -> bool {
    let starts = |machine: &Machine| {
        // Handlers of caps and stalls are entered from anywhere, so no move of a state need lead there.
        let limits = machine.limits;
        [
            Some(machine.initial),
            machine.on_resume,
            limits.iterations.handler,
            limits.steps.and_then(|cap| cap.handler),
            machine.stall.and_then(|stall| stall.to),
        ]
    };
    if starts(one).map(|target| named(one, target)) != starts(other).map(|target| named(other, target)) {
        return false;
    }
    // By name: the numbers of states are those of each machine alone.
    let mut open: Vec<StateName> =
        starts(one).into_iter().filter_map(|target| named(one, target).cloned()).collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let next = match (one.find(&name), other.find(&name)) {
            (Some(Target::Step(a)), Some(Target::Step(b))) => steps(one, a, other, b),
            (Some(Target::End(a)), Some(Target::End(b))) => ends(one, one.end(a), other, other.end(b)),
            (Some(_), Some(_) | None) | (None, _) => None,
        };
        match next {
            Some(next) => open.extend(next),
            None => return false,
        }
    }
    true
}

/// Compares two steps, and returns where both lead.
fn steps(one: &Machine, a: StepId, other: &Machine, b: StepId) -> Option<Vec<StateName>> {
    let (step, twin) = (one.step(a), other.step(b));
    let (ways, others) = (moves(one, a), moves(other, b));
    // Where no way can use up the tries, it makes no difference how many there are.
    let retries = ways.iter().chain(&others).any(|one| one.is_exhausted);
    let work = |step: &Step| {
        let does = (step.action.clone(), step.evaluate.clone(), step.capture.clone(), step.message.clone());
        let is = (step.repeat, step.is_idempotent, step.role.clone(), step.phase);
        (does, is, step.params.clone())
    };
    let retry = |machine: &Machine, step: &Step| {
        step.retry.as_ref().filter(|_| retries).map(|retry| {
            (retry.max, retry.delay, retry.codes.clone(), machine.name_of(retry.exhausted).clone())
        })
    };
    let checks =
        step.is_check == twin.is_check || !(check_matters(one, a, &ways) || check_matters(other, b, &others));
    // Where a state goes in a job without models is in none of its moves.
    let blocked = |machine: &Machine, step: &Step| {
        let way = without_model(machine, step).filter(|_| step.can_ask());
        way.map(|way| machine.name_of(way.to).clone())
    };
    let is_same = work(step) == work(twin)
        && retry(one, step) == retry(other, twin)
        && checks
        && blocked(one, step) == blocked(other, twin);
    let led = |machine: &Machine, ways: &[Move]| -> Vec<_> {
        let of = |one: &Move| (one.departure.clone(), one.is_exhausted, named(machine, one.to).cloned());
        ways.iter().map(of).collect()
    };
    let (one_leads, other_leads) = (led(one, &ways), led(other, &others));
    (is_same && one_leads == other_leads).then(|| one_leads.into_iter().filter_map(|(_, _, to)| to).collect())
}

/// Tells whether it can matter that a state is a check: whether anything is done between its verdict and a success.
fn check_matters(machine: &Machine, id: StepId, ways: &[Move]) -> bool {
    ways.iter().filter_map(|one| one.to).any(|to| observations::matters(machine, id, to))
}

fn ends(one: &Machine, end: &End, other: &Machine, twin: &End) -> Option<Vec<StateName>> {
    let next = |machine: &Machine, end: &End| named(machine, end.on_maintain).cloned();
    let is_same =
        (end.meaning, &end.closing, next(one, end)) == (twin.meaning, &twin.closing, next(other, twin));
    is_same.then(|| {
        next(one, end).into_iter().chain(one.maintain.map(|_| one.name_of(one.initial).clone())).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;
    use crate::machine::compile::compile;

    fn machine(text: &str) -> Machine {
        let loaded = load::decode("demo.yaml", text, String::new()).unwrap_or_else(|_| panic!("{text}"));
        compile(&loaded.definition).0.unwrap()
    }

    const HEAD: &str = "name: demo\ninitial: a\n";

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        let of = |text: &str| {
            machine(&format!(
                "{HEAD}{text}\n  done: {{terminal: true}}\n  bad: {{terminal: true, outcome: failure}}\n"
            ))
        };
        assert_eq!(are_alike(&of(one), &of(other)), expected, "{one}\n{other}");
    }

    #[test]
    fn what_no_run_can_show_makes_no_difference() {
        let a = "states:\n  a: {action: x, on_yes: done, on_no: bad, on_error: bad}";
        check(a, a, true);
        // Nothing comes again, so nothing is counted.
        check(&format!("max_iterations: 3\n{a}"), a, true);
        // Every error has a way already.
        check(&format!("on_error: done\n{a}"), a, true);
        check(
            &format!("{a}\n  b: {{action: y, next: done}}"),
            &format!("{a}\n  b: {{action: z, next: done}}"),
            true,
        );
    }

    #[test]
    fn what_a_run_can_show_makes_one() {
        let a = "states:\n  a: {action: x, on_yes: done, on_no: bad}";
        check(a, "states:\n  a: {action: x, on_yes: bad, on_no: done}", false);
        check(&format!("on_error: done\n{a}"), a, false);
        check(&format!("timeout: 5m\n{a}"), a, false);
        let again = "states:\n  a: {action: x, on_yes: done, on_no: a}";
        check(&format!("max_iterations: 3\n{again}"), again, false);
        check(a, "states:\n  a: {action: x, timeout: 3, on_yes: done, on_no: bad}", false);
    }
}
