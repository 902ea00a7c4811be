//! Verdicts that never come, and verdicts that no route expects.

use super::checked_machine::{CheckedLoop, state};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Repair};
use crate::base::node::{Scalar, ScalarValue};
use crate::base::text::listed;
use crate::evaluate::verdict::Verdict;
use crate::evaluate::{Evaluate, Verdicts};
use crate::machine::{Action, JudgedBy, Routes, routing};

/// A route for a verdict that the state cannot give, on the key of the route.
pub(super) fn impossible(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    for (_, step) in subject.machine.steps() {
        let Routes::ByVerdict { table, .. } = &step.routes else { continue };
        let possible = match (&step.evaluate, step.action.as_ref().map(Action::judged_by)) {
            (Some(evaluate), _) => evaluate.verdicts(),
            (None, Some(JudgedBy::Itself(words))) => Verdicts::only(words),
            (None, Some(JudgedBy::Evaluator(_)) | None) => Verdicts::only(&["yes"]),
        };
        let Verdicts::Only(possible) = possible else { continue };
        for verdict in table.keys() {
            let by_the_action = matches!(verdict.as_str(), "error" | "timeout")
                && (step.action.is_some() || step.evaluate.is_some());
            let by_alias = possible
                .iter()
                .any(|word| routing::alias(step, &Verdict::new(word.as_ref())).as_ref() == Some(verdict));
            let by_itself = possible.iter().any(|word| word == verdict.as_str());
            if by_itself || by_the_action || by_alias {
                continue;
            }
            let by_evaluator = step.evaluate.as_ref().map(Evaluate::name);
            let by_action = || step.action.as_ref().and_then(Action::verdicts_of);
            let kind = by_evaluator.or_else(by_action).unwrap_or("no evaluator");
            let message = format!("`{}` never gives the verdict `{verdict}` ({kind})", step.name);
            let list = listed(&possible, "or");
            let help = match step.action {
                Some(_) => format!("it can give {list}, and `error` or `timeout` when the action fails"),
                None => format!("it can give {list}"),
            };
            let place = FindingPlace::Key(subject.route(step, verdict));
            let finding = Diagnostic::warning("impossible-verdict", place, message).help(help);
            findings.push(finding.repair(Repair::Remove));
        }
    }
}

/// A `no` that takes the way of errors: an author may not have thought of it.
pub(super) fn no_as_error(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    for (_, step, moves) in subject.steps() {
        let no = Verdict::yes_if(false);
        let means_no =
            |verdict: &Verdict| *verdict == no || routing::alias(step, verdict).as_ref() == Some(&no);
        let taken = moves.iter().filter(|one| means_no(&one.departure.verdict));
        let taken = taken.filter_map(|one| one.way.as_ref()).find(|way| way.reason == routing::Reason::Error);
        let Some(way) = taken else { continue };
        let message = format!("`{}` takes its way of errors when the verdict is `no`", step.name);
        let help = "that is how it is meant where `on_no` is absent; write `on_no` to say so";
        let at = subject.way(step, &way.key);
        // A way of the loop is not in this state, where `on_no` would have to be written.
        let is_of_state = at.segments().len() > 2;
        let target = Scalar::plain(subject.machine.name_of(way.to).to_string());
        // A name that YAML reads as a number or a truth value would need quotes.
        let is_plain = target.value == ScalarValue::String;
        let said = Repair::Add { key: "on_no", value: target.text };
        let finding = Diagnostic::note("no-as-error", FindingPlace::Key(at), message).help(help);
        findings.push(finding.repair((is_of_state && is_plain).then_some(said)));
    }
}

/// A verdict for which neither the state nor the loop has a way. Errors and timeouts end a run as errors, which is
/// what they are, and are left to the deep check.
pub(super) fn unhandled(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    for (_, step, moves) in subject.steps() {
        let mut said_any_other = false;
        for one in moves.iter().filter(|one| one.way.is_none()) {
            let verdict = &one.departure.verdict;
            if verdict.is_error() || verdict.is_timeout() {
                continue;
            }
            let name = &step.name;
            if one.departure.is_any_other {
                if !std::mem::replace(&mut said_any_other, true) {
                    let message = format!("`{name}` has no route for a word that it does not name");
                    let help =
                        "add `_` to `route`, for any other word; without it the run ends with an error";
                    let place = FindingPlace::Key(state(name).key("evaluate"));
                    findings.push(Diagnostic::warning("unhandled-verdict", place, message).help(help));
                }
                continue;
            }
            if verdict.as_str() == "blocked" {
                // Without a way it ends the run as blocked, which is what it means.
                continue;
            }
            let message = format!("`{name}` has no route for the verdict `{verdict}`");
            let help = format!(
                "add `on_{verdict}`, or `_` in `route` for any other; without it the run ends with an error"
            );
            let place = FindingPlace::Key(state(name));
            findings.push(Diagnostic::warning("unhandled-verdict", place, message).help(help));
        }
    }
}
