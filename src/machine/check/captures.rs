//! Captures that later actions find in one variable.

use std::collections::BTreeMap;

use super::checked_machine::{CheckedLoop, state};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::name::captured_variable;

/// Captures whose names differ in signs that no variable of a shell has, or in capitals.
pub(super) fn same_variable(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for (_, step) in subject.machine.steps() {
        let Some(capture) = step.capture.as_ref().filter(|_| step.action.is_some()) else { continue };
        let (capture, variable) = (capture.as_str(), captured_variable(capture.as_str()));
        let first = *known.entry(variable.clone()).or_insert(capture);
        if first == capture {
            continue;
        }
        let message =
            format!("`{first}` and `{capture}` share the variable `{variable}`, which has one of them");
        let help = "give one of them another name, or read them as `${captured.NAME:shell}`";
        let place = FindingPlace::Key(state(&step.name).key("capture"));
        findings.push(Diagnostic::warning("same-variable", place, message).help(help));
    }
}
