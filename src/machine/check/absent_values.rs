//! Values that no run of this file can have, and values that some runs do not have yet where they are used.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::checked_machine::{CheckedLoop, state};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Severity, nearest};
use crate::base::name::{StateName, VarName};
use crate::base::path::{DocPath, Segment};
use crate::base::template::{Expression, Namespace, Template, TemplateFallback};
use crate::base::text::listed;
use crate::machine::explore::written;
use crate::machine::{Routes, Step, Target, graph, provided};

/// A machine that needs more work than this to look for unset values is not looked at.
const MAX_WORK: usize = 20_000_000;

/// Something that is there from a certain point of a run on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum TrackedValue {
    Capture(String),
    Prev,
    Result,
}

/// Where something is used.
struct Use<'m> {
    /// The state, or none for the environment of all of them.
    state: Option<&'m StateName>,
    key: String,
    expression: &'m Expression,
}

/// Values of `context` and `captured` that are never set.
pub(super) fn undefined(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    let machine = subject.machine;
    let mut known: BTreeSet<&str> = machine.context.keys().map(VarName::as_str).collect();
    known.extend(machine.parameters.keys().map(VarName::as_str));
    known.extend(machine.required_inputs.iter().map(VarName::as_str));
    known.insert(machine.input_key.as_str());
    // A run provides these to every loop that names them.
    known.extend(provided::NAMES);
    let captures: BTreeSet<&str> = machine.steps().flat_map(|(_, step)| captured_by(step)).collect();
    let silent: BTreeSet<&str> =
        graph::targets(machine).map(|target| subject.name(target).as_str()).collect();
    for one in uses(subject) {
        let expression = one.expression;
        let Some(Segment::Key(first)) = expression.path.first() else { continue };
        let place = one.place();
        if expression.namespace == Namespace::Context && !known.contains(first.as_str()) {
            let message = format!("`${{{expression}}}` is not defined in this file");
            let finding = Diagnostic::warning("undefined-context", place, message);
            findings.push(match nearest(first, known.iter().copied()) {
                Some(near) => finding.meant(&format!("context.{first}"), &format!("context.{near}")),
                None => finding.help(format!("add it to `context`, or give it with `--context {first}=…`")),
            });
        } else if expression.namespace == Namespace::Captured && !captures.contains(first.as_str()) {
            let message = format!("`${{{expression}}}` is captured by no state");
            let finding = Diagnostic::warning("undefined-capture", place, message);
            findings.push(match nearest(first, captures.iter().copied()) {
                _ if silent.contains(first.as_str()) => {
                    finding.help(format!("`{first}` runs no action, so there is nothing to capture"))
                }
                Some(near) => finding.meant(&format!("captured.{first}"), &format!("captured.{near}")),
                None => finding.help(format!("add `capture: {first}` to the state whose output it is")),
            });
        }
    }
}

/// Texts about the task board in a loop without one.
pub(super) fn board(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    if subject.machine.has_board() {
        return;
    }
    for one in uses(subject).into_iter().filter(|one| one.expression.namespace == Namespace::Board) {
        let message = format!("`${{{}}}` tells nothing in a loop without a task board", one.expression);
        let help = "add a state with `action_type: board`";
        findings.push(Diagnostic::warning("undefined-board", one.place(), message).help(help));
    }
}

/// Values that are not there on some way to where they are used, with that way.
pub(super) fn unset(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    let machine = subject.machine;
    let targets: BTreeMap<&StateName, Target> =
        graph::targets(machine).map(|target| (machine.name_of(target), target)).collect();
    let mut wanted: BTreeMap<TrackedValue, Vec<Use<'_>>> = BTreeMap::new();
    for one in uses(subject) {
        let what = match (one.expression.namespace, one.expression.path.first()) {
            (Namespace::Captured, Some(Segment::Key(name))) => TrackedValue::Capture(name.clone()),
            (Namespace::Prev, _) => TrackedValue::Prev,
            (Namespace::Result, _) => TrackedValue::Result,
            _ => continue,
        };
        wanted.entry(what).or_default().push(one);
    }
    // A warning that is missing is a lesser evil than a check that takes minutes.
    if wanted.len().saturating_mul(targets.len()) > MAX_WORK {
        return;
    }
    let numbers: BTreeMap<&TrackedValue, usize> = wanted.keys().zip(0..).collect();
    let set_by = |target: Target| match target {
        Target::Step(id) => set_by(machine.step(id)).filter_map(|what| numbers.get(&what).copied()).collect(),
        Target::End(_) => Vec::new(),
    };
    let mut setters = vec![BTreeSet::new(); wanted.len()];
    for target in targets.values().copied() {
        for number in set_by(target) {
            setters[number].insert(target);
        }
    }
    let unset = subject.flow.unset(wanted.len(), set_by);
    for ((number, sets), (what, uses)) in setters.iter().enumerate().zip(&wanted) {
        if sets.is_empty() && matches!(what, TrackedValue::Capture(_)) {
            // Nobody captures it at all, which is another finding.
            continue;
        }
        // The paths are needed only where something is found, and then for all uses of the value.
        let paths = OnceCell::new();
        for one in uses {
            let places: Vec<Target> = match one.state {
                Some(name) => targets.get(name).copied().into_iter().collect(),
                None => acting(subject),
            };
            let is_late = one.comes_after(what);
            let place = places
                .into_iter()
                .filter(|place| !(is_late && sets.contains(place)))
                .find(|place| subject.flow.may_be_unset(&unset, number, *place));
            if let Some(place) = place {
                findings.push_with(Severity::Warning, || {
                    let paths = paths.get_or_init(|| subject.flow.paths(|target| sets.contains(&target)));
                    let path = subject.flow.path_to(paths, place).unwrap_or_default();
                    finding(subject, one, what, sets, &path)
                });
            }
        }
    }
}

fn finding(
    subject: &CheckedLoop<'_>,
    one: &Use<'_>,
    what: &TrackedValue,
    sets: &BTreeSet<Target>,
    path: &[Target],
) -> Diagnostic {
    let expression = one.expression;
    let name = |target: &Target| subject.name(*target).to_string();
    let setters = || listed(sets.iter().take(4).map(|target| subject.name(*target).as_str()), "or");
    let without = match what {
        TrackedValue::Capture(_) => format!("without {}", setters()),
        TrackedValue::Prev => "without an action before".to_owned(),
        TrackedValue::Result => "without an evaluation before".to_owned(),
    };
    let message = match path.split_last() {
        Some((here, before)) if !before.is_empty() => {
            let (way, here) = (written(before, name), name(here));
            format!("`${{{expression}}}` may not be set: {way} reaches `{here}` {without}")
        }
        _ => format!(
            "`${{{expression}}}` may not be set: the run begins in `{}`",
            path.last().map_or_else(String::new, name)
        ),
    };
    let help = match what {
        TrackedValue::Capture(_) => {
            format!(
                "write `${{{expression}?}}` or `${{{expression}:-default}}`, or lead every way through {}",
                setters()
            )
        }
        TrackedValue::Prev | TrackedValue::Result => {
            format!("write `${{{expression}?}}` or `${{{expression}:-default}}`")
        }
    };
    Diagnostic::warning("maybe-unset", one.place(), message).help(help)
}

/// Returns what is there once a step was executed.
fn set_by(step: &Step) -> impl Iterator<Item = TrackedValue> {
    let captures = captured_by(step).map(|name| TrackedValue::Capture(name.to_owned()));
    let prev = step.action.is_some().then_some(TrackedValue::Prev);
    let is_judged = step.evaluate.is_some() && matches!(step.routes, Routes::ByVerdict { .. });
    captures.chain(prev).chain(is_judged.then_some(TrackedValue::Result))
}

impl Use<'_> {
    fn place(&self) -> FindingPlace {
        let root = self.state.map_or_else(DocPath::root, state);
        let path = self.key.split('.').fold(root, |path, key| path.key(key));
        FindingPlace::Within(path, self.expression.span.clone())
    }

    /// Tells whether it is used when the state itself has already set what is wanted: captures are there for its
    /// evaluation, and its evaluation for its message.
    fn comes_after(&self, what: &TrackedValue) -> bool {
        let is_message = self.key == "append_to_messages";
        match what {
            TrackedValue::Capture(_) => is_message || self.key.starts_with("evaluate."),
            TrackedValue::Prev => false,
            TrackedValue::Result => is_message,
        }
    }
}

/// Returns the names under which the result of a step is found.
pub(super) fn captured_by(step: &Step) -> impl Iterator<Item = &str> {
    let own = step.action.is_some().then_some(step.name.as_str());
    let named = step.capture.as_ref().filter(|_| step.action.is_some()).map(VarName::as_str);
    own.into_iter().chain(named)
}

/// Returns every state that runs something.
fn acting(subject: &CheckedLoop<'_>) -> Vec<Target> {
    let machine = subject.machine;
    let steps = machine.steps().filter(|(_, step)| step.action.is_some()).map(|(id, _)| Target::Step(id));
    let ends = machine.ends().filter(|(_, end)| end.closing.is_some()).map(|(id, _)| Target::End(id));
    steps.chain(ends).collect()
}

/// Returns every use of a value that has no default.
fn uses<'m>(subject: &CheckedLoop<'m>) -> Vec<Use<'m>> {
    let templates = subject.machine.templates().into_iter();
    templates
        .flat_map(|(state, key, template): (Option<&StateName>, String, &Template)| {
            let needed =
                template.expressions().filter(|expression| expression.fallback == TemplateFallback::Required);
            needed.map(move |expression| Use { state, key: key.clone(), expression })
        })
        .collect()
}
