//! Makes of a machine one that makes its checks and nothing else, one after the other: it tells whether a tree passes, and
//! mends nothing where it does not.

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, End, EndId, Fallback, Machine, Meaning, OnChange, Routes, Step, StepId, Target};
use crate::base::name::StateName;
use crate::evaluate::verdict::{Observes, Verdict};

/// The ends of such a machine.
const PASSED: Target = Target::End(EndId(0));
const REFUSED: Target = Target::End(EndId(1));

impl Machine {
    /// Returns a machine that makes the checks of these states, in the order of the file; none where one of them is not a
    /// shell command that may be made again, or there are none.
    pub fn checks_alone(&self, states: &BTreeSet<StateName>) -> Option<Self> {
        let may_be_made = |step: &&Step| {
            step.is_check && matches!(step.action, Some(Action::Shell(_))) && step.evaluate.is_some()
        };
        let checks: Vec<&Step> = self.steps.iter().filter(|step| states.contains(&step.name)).collect();
        // A name that no step has, because it is an end or is gone, cannot be asked.
        if checks.is_empty() || checks.len() != states.len() || !checks.iter().all(may_be_made) {
            return None;
        }
        let last = checks.len() - 1;
        let steps = checks.iter().enumerate().map(|(index, step)| {
            let next = if index == last { PASSED } else { Target::Step(StepId(index + 1)) };
            asked_once(step, next)
        });
        let end = |name: &str, meaning: Meaning| End {
            name: self.unused_name(name),
            description: None,
            meaning,
            closing: None,
            on_maintain: None,
            is_idempotent: true,
        };
        Some(Self {
            initial: Target::Step(StepId(0)),
            steps: steps.collect(),
            ends: vec![end("passed", Meaning::Success), end("refused", Meaning::Failure)],
            // Whatever could lead away from the checks or begin them again is left out.
            maintain: None,
            fallback: Fallback::default(),
            stall: None,
            signals: Vec::new(),
            on_change: Some(OnChange::Report),
            artifact: None,
            on_resume: None,
            depends: false,
            undecided: BTreeSet::new(),
            repeating: BTreeSet::new(),
            ..self.clone()
        })
    }

    /// Returns this name, or a longer one, that no state has.
    fn unused_name(&self, name: &str) -> StateName {
        let mut name = name.to_owned();
        loop {
            let free = StateName::parse(&name).expect("it is a word");
            if self.find(&free).is_none() {
                return free;
            }
            name.push('_');
        }
    }
}

/// Returns the step with nowhere to go but on, where it passes, and to the end, where it does not.
fn asked_once(step: &Step, next: Target) -> Step {
    let known = match &step.routes {
        Routes::ByVerdict { table, .. } => table.keys().cloned().collect(),
        Routes::Always { .. } => Vec::new(),
    };
    let verdicts = known.into_iter().chain([true, false].map(Verdict::yes_if));
    let leads = |verdict: &Verdict| if step.observes(verdict) == Observes::Passing { next } else { REFUSED };
    let table: BTreeMap<Verdict, Target> =
        verdicts.map(|verdict| (verdict.clone(), leads(&verdict))).collect();
    Step {
        routes: Routes::ByVerdict { table, error: Some(REFUSED), otherwise: Some(REFUSED) },
        // One answer is asked for: trying again until a check passes would prove nothing.
        retry: None,
        message: None,
        unused: Vec::new(),
        ..step.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;
    use crate::machine::compile::compile;

    fn machine(text: &str) -> Machine {
        let loaded = load::decode("a.yaml", text, String::new()).map_err(|it| it.findings).unwrap();
        compile(&loaded.definition).0.unwrap()
    }

    const TEXT: &str = "name: a\ninitial: fix\nstates:
  fix: {action: 'true', next: passed}
  passed: {action: 'true', check: true, on_yes: tests, on_no: fix}
  tests: {action: 'true', check: true, on_yes: done, on_no: fix}
  other: {action: 'true', on_yes: done, on_no: failed}
  done: {terminal: true, action: 'touch x'}
  failed: {terminal: true}\n";

    fn named(names: &[&str]) -> BTreeSet<StateName> {
        names.iter().map(|name| StateName::parse(name).unwrap()).collect()
    }

    #[test]
    fn checks_are_made_one_after_the_other_and_nothing_else_is() {
        let whole = machine(TEXT);
        let alone = whole.checks_alone(&named(&["tests", "passed"])).unwrap();
        let steps: Vec<&str> = alone.steps().map(|(_, step)| step.name.as_str()).collect();
        assert_eq!((steps.as_slice(), alone.initial), (&["passed", "tests"][..], Target::Step(StepId(0))));
        let ends: Vec<&str> = alone.ends().map(|(_, end)| end.name.as_str()).collect();
        assert_eq!(ends, ["passed_", "refused"], "a state has the other name");
        let to = |index: usize, verdict: Verdict| match &alone.steps[index].routes {
            Routes::ByVerdict { table, .. } => table[&verdict],
            Routes::Always { .. } => panic!("it is judged"),
        };
        assert_eq!(to(0, Verdict::yes_if(true)), Target::Step(StepId(1)));
        assert_eq!(to(1, Verdict::yes_if(true)), PASSED);
        assert_eq!((to(0, Verdict::yes_if(false)), to(1, Verdict::yes_if(false))), (REFUSED, REFUSED));
    }

    #[test]
    fn what_is_no_check_is_not_made_alone() {
        let whole = machine(TEXT);
        for states in [&[][..], &["other"], &["tests", "other"], &["absent"], &["done"]] {
            assert!(whole.checks_alone(&named(states)).is_none(), "{states:?}");
        }
    }
}
