//! Names below a namespace that no run can have: a misspelt `${loop.nme}` is an error before anything runs. A suffix
//! such as `?` does not excuse it, for it says what to do without a value that could be there.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::checked_machine::state;
use super::flow::FlowGraph;
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Severity, nearest};
use crate::base::name::{StateName, VarName};
use crate::base::path::{DocPath, Segment};
use crate::base::template::{Expression, Namespace, RESULT_FIELDS, Template, last_messages};
use crate::base::text::listed;
use crate::board;
use crate::evaluate::ANY_DETAILS;
use crate::machine::{Action, Machine, Routes, Step, SubLoopAction, Target};

/// What the result of a sub-loop tells besides its own captures and what every result tells.
const SUB_LOOP_FIELDS: [&str; 3] = ["terminated_by", "failure_terminal", "error"];

/// What the answer of a person has besides.
const OF_APPROVALS: [&str; 2] = ["edit", "reason"];

/// The details of the evaluation of a sub-loop.
const SUB_LOOP_DETAILS: [&str; 2] = ["final_state", "steps"];

/// An expression that cannot have a value.
struct UnknownName<'k> {
    /// What stands before the name.
    prefix: String,
    /// The name.
    name: String,
    /// The names that there are.
    known: Vec<&'k str>,
}

/// Returns an error for every name that cannot exist.
pub(crate) fn unknown(machine: &Machine) -> Diagnostics {
    let mut findings = Diagnostics::default();
    let results = ResultNames::new(machine);
    // Made only where a detail is named, which few loops do.
    let flow = OnceCell::new();
    for (state, key, template) in machine.templates() {
        for expression in template.expressions() {
            let of_details = || {
                detail(expression)?;
                let flow = flow.get_or_init(|| FlowGraph::of(machine));
                wrong_detail(machine, flow, state, &key, expression)
            };
            let wrong = wrong(expression).or_else(|| results.wrong(expression)).or_else(of_details);
            if let Some(wrong) = wrong {
                findings.push_with(Severity::Error, || finding(state, &key, expression, &wrong));
            }
        }
    }
    findings
}

/// Looks at the expressions of one text that are wrong wherever they stand.
pub(crate) fn unknown_in(state: &StateName, key: &str, template: &Template, findings: &mut Diagnostics) {
    for expression in template.expressions() {
        if let Some(wrong) = wrong(expression) {
            findings.push_with(Severity::Error, || finding(Some(state), key, expression, &wrong));
        }
    }
}

fn finding(
    state_name: Option<&StateName>,
    key: &str,
    expression: &Expression,
    wrong: &UnknownName<'_>,
) -> Diagnostic {
    let root = state_name.map_or_else(DocPath::root, state);
    let path = key.split('.').fold(root, |path, key| path.key(key));
    let UnknownName { prefix, name, known } = wrong;
    let message = format!("`${{{expression}}}` cannot have a value: `{prefix}` has no `{name}`");
    let place = FindingPlace::Within(path, expression.span.clone());
    let finding = Diagnostic::error("unknown-name", place, message);
    match nearest(name, known.iter().copied()) {
        Some(near) => finding.meant(&format!("{prefix}.{name}"), &format!("{prefix}.{near}")),
        None if known.is_empty() => finding.help(format!("write `${{{prefix}}}`")),
        None => finding.help(format!("`{prefix}` has {}", listed(known.iter().copied(), "and"))),
    }
}

/// Returns an error for every name that would be a capture of a sub-loop of this state, and that this loop does not
/// capture. One that takes over captures of further loops may have more than can be seen here.
pub fn unknown_below(
    machine: &Machine,
    name: &StateName,
    sub: &SubLoopAction,
    child: &Machine,
) -> Diagnostics {
    let mut findings = Diagnostics::default();
    let takes_over = |step: &Step| {
        step.action.as_ref().and_then(Action::sub_loop).is_some_and(|sub| sub.given.gives_back())
    };
    if child.steps().any(|(_, step)| takes_over(step)) {
        return findings;
    }
    // What was captured around it is handed back as well.
    let of_child = Some(child).filter(|_| sub.given.gives_back());
    let of_machine = Some(machine).filter(|_| sub.given.sees_around());
    let steps = of_child.into_iter().chain(of_machine).flat_map(Machine::steps);
    let captures = steps.filter_map(|(_, step)| step.capture.as_ref()).map(VarName::as_str);
    let known: Vec<&str> = captures.chain(RESULT_FIELDS).chain(SUB_LOOP_FIELDS).collect();
    for (state, key, template) in machine.templates() {
        for expression in template.expressions().filter(|one| one.namespace == Namespace::Captured) {
            let [first, field, ..] = expression.path.as_slice() else { continue };
            let wanted = written(field);
            if written(first) == name.as_str() && !known.contains(&wanted.as_str()) {
                let prefix = format!("captured.{name}");
                let wrong = UnknownName { prefix, name: wanted, known: known.clone() };
                findings.push_with(Severity::Error, || finding(state, &key, expression, &wrong));
            }
        }
    }
    findings
}

/// Looks at a name that is the same for every state of every loop.
fn wrong(expression: &Expression) -> Option<UnknownName<'static>> {
    let path = &expression.path;
    let word = expression.namespace.word();
    let known = match expression.namespace {
        Namespace::Messages => match path.as_slice() {
            [] => return None,
            [Segment::Key(call)] if last_messages(call).is_some() => return None,
            [first, ..] => {
                return Some(UnknownName {
                    prefix: word.into(),
                    name: written(first),
                    known: vec!["last(3)"],
                });
            }
        },
        Namespace::Prev => return wrong_field(word, path),
        Namespace::Board => board::FIELDS,
        Namespace::Result | Namespace::State | Namespace::Loop | Namespace::Criteria => {
            expression.namespace.fields()?
        }
        Namespace::Context | Namespace::Captured | Namespace::Env | Namespace::Param => return None,
    };
    let (first, below) = path.split_first()?;
    let name = written(first);
    if !known.contains(&name.as_str()) {
        return Some(UnknownName { prefix: word.into(), name, known: known.to_vec() });
    }
    // Which details there are depends on the evaluators, and is looked at in `wrong_detail`.
    let is_open = expression.namespace == Namespace::Result && name == "details";
    let below = below.first().filter(|_| !is_open)?;
    Some(UnknownName { prefix: format!("{word}.{name}"), name: written(below), known: Vec::new() })
}

/// Looks at a field of the result of a state.
fn wrong_field(prefix: &str, path: &[Segment]) -> Option<UnknownName<'static>> {
    let (first, below) = path.split_first()?;
    let name = written(first);
    if !RESULT_FIELDS.contains(&name.as_str()) {
        return Some(UnknownName { prefix: prefix.to_owned(), name, known: RESULT_FIELDS.to_vec() });
    }
    let below = below.first().filter(|_| name != "json")?;
    Some(UnknownName { prefix: format!("{prefix}.{name}"), name: written(below), known: Vec::new() })
}

/// The names under which the results of actions are kept, and of sub-loops, which bring captures of their own.
struct ResultNames<'m> {
    actions: BTreeSet<&'m str>,
    sub_loops: BTreeSet<&'m str>,
    /// Those of the actions that ask a person.
    approvals: BTreeSet<&'m str>,
}

impl<'m> ResultNames<'m> {
    fn new(machine: &'m Machine) -> Self {
        let names = |is_meant: fn(&Action) -> bool| {
            let steps = machine.steps().map(|(_, step)| step);
            let kept = steps.filter(move |step| step.action.as_ref().is_some_and(is_meant));
            kept.flat_map(super::absent_values::captured_by).collect()
        };
        Self {
            actions: names(|action| action.sub_loop().is_none()),
            sub_loops: names(|action| action.sub_loop().is_some()),
            approvals: names(|action| matches!(action, Action::Approval(_))),
        }
    }

    fn wrong(&self, expression: &Expression) -> Option<UnknownName<'static>> {
        if expression.namespace != Namespace::Captured {
            return None;
        }
        let (first, path) = expression.path.split_first()?;
        let name = written(first);
        let prefix = format!("captured.{name}");
        if self.sub_loops.contains(name.as_str()) {
            let (first, below) = path.split_first()?;
            let field = written(first);
            let is_own = SUB_LOOP_FIELDS.contains(&field.as_str()) && !below.is_empty();
            let is_capture = !is_own && !RESULT_FIELDS.contains(&field.as_str());
            // What is below the name of a capture of a capture is for the loop in the loop to say.
            let is_of_sub_loop = |below: &Segment| SUB_LOOP_FIELDS.contains(&written(below).as_str());
            return if is_capture && below.len() == 1 && !is_of_sub_loop(&below[0]) {
                wrong_field(&format!("{prefix}.{field}"), below)
            } else if is_own {
                Some(UnknownName {
                    prefix: format!("{prefix}.{field}"),
                    name: written(&below[0]),
                    known: Vec::new(),
                })
            } else {
                None
            };
        }
        let is_answer = |field: &Segment| OF_APPROVALS.contains(&written(field).as_str());
        if self.approvals.contains(name.as_str()) && path.len() == 1 && is_answer(&path[0]) {
            return None;
        }
        // A name that nothing here keeps may come from the loop around this one.
        self.actions.contains(name.as_str()).then(|| wrong_field(&prefix, path)).flatten()
    }
}

/// Returns the detail that an expression names, if it names one.
fn detail(expression: &Expression) -> Option<&Segment> {
    match (expression.namespace, expression.path.as_slice()) {
        (Namespace::Result, [Segment::Key(details), detail, ..]) if details == "details" => Some(detail),
        _ => None,
    }
}

/// Looks at a detail of the last evaluation, which is one of those that can come before.
fn wrong_detail(
    machine: &Machine,
    flow: &FlowGraph,
    state: Option<&StateName>,
    key: &str,
    expression: &Expression,
) -> Option<UnknownName<'static>> {
    let here = state.and_then(|name| machine.find(name));
    let judges = |target: Target| matches!(target, Target::Step(id) if is_judged(machine.step(id)));
    let before: Vec<&Step> = match here {
        // The message of a state is written when the state was evaluated.
        Some(Target::Step(id)) if key == "append_to_messages" && judges(Target::Step(id)) => {
            vec![machine.step(id)]
        }
        Some(here) if machine.on_resume.is_none() => {
            flow.last_before(here, judges).into_iter().map(|id| machine.step(id)).collect()
        }
        // A run is resumed wherever it was left.
        Some(_) | None => machine.steps().map(|(_, step)| step).filter(|step| is_judged(step)).collect(),
    };
    let mut known: Vec<&'static str> = Vec::new();
    for step in before {
        let own: &[&'static str] = match (&step.action, &step.evaluate) {
            (Some(Action::SubLoop(_)), _) => &SUB_LOOP_DETAILS,
            (_, Some(evaluate)) => evaluate.details()?,
            // What a state tells that nothing else judges is for it to say.
            (_, None) => return None,
        };
        known.extend(own);
    }
    known.extend(ANY_DETAILS);
    known.sort_unstable();
    known.dedup();
    let name = written(detail(expression)?);
    let is_known = known.contains(&name.as_str());
    (!is_known).then(|| UnknownName { prefix: "result.details".to_owned(), name, known })
}

/// Tells whether a state leaves an evaluation behind.
pub(super) fn is_judged(step: &Step) -> bool {
    matches!(step.routes, Routes::ByVerdict { .. })
}

fn written(segment: &Segment) -> String {
    match segment {
        Segment::Key(key) => key.clone(),
        Segment::Index(index) => index.to_string(),
    }
}
