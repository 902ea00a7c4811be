//! Ends that say more than was seen, and ends that say nothing.

use super::checked_machine::{CheckedLoop, state};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::evaluate::verdict::Observes;
use crate::machine::routing::RouteKey;
use crate::machine::{Meaning, Routes, Target};

/// A success terminal that a failing verdict leads to: under `--strict` the run is a failure.
pub(super) fn unverified_success(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    for (_, step, moves) in subject.steps() {
        let mut said: Vec<FindingPlace> = Vec::new();
        for one in moves {
            let Some(Target::End(end)) = one.to else { continue };
            let end = subject.machine.end(end);
            let by_next = one.way.as_ref().is_some_and(|way| way.key == RouteKey::Next);
            let is_failing = one.departure.observes(step) == Observes::Failing;
            let place = subject.place_of(step, one);
            if end.meaning != Meaning::Success || by_next || !is_failing || said.contains(&place) {
                continue;
            }
            // One key, such as `_`, may be the way of several verdicts.
            said.push(place.clone());
            let verdict = &one.departure.verdict;
            let message = format!(
                "the failing verdict `{verdict}` of `{}` leads to `{}`, which is a success",
                step.name, end.name
            );
            let help = format!(
                "nothing verified it, and under `--strict` it fails; route it elsewhere, or write `outcome: success` in `{}` if it is fine",
                end.name
            );
            findings.push(Diagnostic::warning("unverified-success", place, message).help(help));
        }
    }
}

/// A failure terminal that explains nothing beyond its name.
pub(super) fn silent_failure(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    for (id, end) in subject.machine.ends() {
        if end.meaning != Meaning::Failure || end.closing.is_some() || end.description.is_some() {
            continue;
        }
        let mut before = subject
            .steps()
            .filter(|(_, _, moves)| moves.iter().any(|one| one.to == Some(Target::End(id))))
            .map(|(_, step, _)| step)
            .peekable();
        let is_reached = before.peek().is_some();
        let explained =
            before.any(|step| step.action.is_some() && matches!(step.routes, Routes::Always { .. }));
        if is_reached && !explained {
            let message = format!("a run that ends in `{}` says nothing about why", end.name);
            let help =
                "give it an `action` or a `description`, or go there through a state that says what failed";
            let place = FindingPlace::Key(state(&end.name));
            findings.push(Diagnostic::note("silent-failure", place, message).help(help));
        }
    }
}
