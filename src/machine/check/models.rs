//! States that need a model, and what becomes of them where none may be asked.

use super::checked_machine::{CheckedLoop, state};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::machine::{Machine, Step, routing};

pub(super) fn needed(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    for (_, step) in subject.machine.steps().filter(|(_, step)| step.needs_model()) {
        let place = FindingPlace::Key(state(&step.name));
        let message = format!("`{}` needs an agent", step.name);
        let help = format!(
            "where none may be asked (`--no-llm`, the default in CI), {}",
            fate(subject.machine, step)
        );
        findings.push(Diagnostic::note("needs-agent", place, message).help(help));
    }
}

/// Says what becomes of a state that needs a model where none may be asked.
pub fn fate(machine: &Machine, step: &Step) -> String {
    match routing::without_model(machine, step) {
        Some(way) => format!("it goes to `{}` as `blocked`", machine.name_of(way.to)),
        // Whoever goes on with it finds the same.
        None if machine.llm.is_forbidden => {
            "the run stops there (exit 75), and cannot go on while the loop says `llm: {enabled: false}`"
                .to_owned()
        }
        None => "the run is saved there (exit 75) for `resume --llm`".to_owned(),
    }
}
