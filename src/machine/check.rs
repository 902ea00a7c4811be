//! Looks at a whole machine for what no single key shows: states nobody reaches, verdicts nobody handles, text that
//! a shell would execute.

use std::collections::BTreeSet;

use crate::base::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::base::name::{StateName, VarName, captured_variable};
use crate::base::path::{DocPath, Segment};
use crate::base::template::{Expression, Fallback, Namespace, Template};
use crate::definition::schema::Loop;
use crate::evaluate::Verdicts;

use super::{Action, Machine, Routes, Step, Target, graph};

/// Returns every warning and note about a machine; none of them blocks by itself.
pub fn check(machine: &Machine, definition: &Loop) -> Diagnostics {
    let mut findings = Diagnostics::default();
    description(definition, &mut findings);
    reachability(machine, &mut findings);
    for (_, step) in machine.steps() {
        verdicts(step, &mut findings);
        injection(step, &mut findings);
    }
    references(machine, &mut findings);
    findings
}

fn state(name: &StateName) -> DocPath {
    DocPath::root().key("states").key(name.as_str())
}

fn description(definition: &Loop, findings: &mut Diagnostics) {
    if definition.description.is_none() {
        let place = Place::Key(DocPath::root().key("name"));
        let help = "add `description: …`; `show` and the reports print it";
        findings.push(Diagnostic::note("no-description", place, "the loop has no description").help(help));
    }
}

fn reachability(machine: &Machine, findings: &mut Diagnostics) {
    let reached = graph::reachable(machine);
    let targets =
        machine.steps().map(|(id, _)| Target::Step(id)).chain(machine.ends().map(|(id, _)| Target::End(id)));
    for target in targets.filter(|target| !reached.contains(target)) {
        let name = machine.name_of(target);
        let message = format!("the state `{name}` is never reached");
        let help = "route to it from another state, or remove it";
        findings.push(Diagnostic::warning("unreachable", Place::Key(state(name)), message).help(help));
    }
    let ending = graph::can_end(machine);
    for (id, step) in machine.steps() {
        if reached.contains(&Target::Step(id)) && !ending.contains(&Target::Step(id)) {
            let message = format!("no terminal can be reached from `{}`", step.name);
            let help = "the run can only end by a limit here; add a route to a terminal state";
            findings.push(Diagnostic::warning("no-end", Place::Key(state(&step.name)), message).help(help));
        }
    }
}

fn verdicts(step: &Step, findings: &mut Diagnostics) {
    let Routes::ByVerdict { table, otherwise, .. } = &step.routes else {
        return;
    };
    let possible = match (&step.evaluate, &step.action) {
        (Some(evaluate), _) => evaluate.verdicts(),
        (None, Some(Action::SubLoop(_))) => Verdicts::Only(&["yes", "no", "blocked"]),
        (None, _) => Verdicts::Only(&["yes"]),
    };
    let Verdicts::Only(possible) = possible else {
        return;
    };
    let path = state(&step.name);
    let alias = |word: &str| step.evaluate.as_ref().and_then(|evaluate| evaluate.alias(word));
    for verdict in table.keys() {
        let by_the_action = matches!(verdict.as_str(), "error" | "timeout");
        let by_alias = possible.iter().any(|word| alias(word) == Some(verdict.as_str()));
        if !possible.contains(&verdict.as_str()) && !by_the_action && !by_alias {
            let kind = step.evaluate.as_ref().map_or("no evaluator", |evaluate| evaluate.name());
            let message = format!("`{}` never gives the verdict `{verdict}` ({kind})", step.name);
            let list = possible.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            let help = format!("it can give {list}, and `error` or `timeout` when the action fails");
            findings.push(
                Diagnostic::warning("impossible-verdict", Place::Key(path.clone()), message).help(help),
            );
        }
    }
    if otherwise.is_some() {
        return;
    }
    let is_handled = |word: &str| {
        table.keys().any(|verdict| verdict.as_str() == word || alias(word) == Some(verdict.as_str()))
    };
    for verdict in possible.iter().filter(|word| !is_handled(word)) {
        let message = format!("`{}` has no route for the verdict `{verdict}`", step.name);
        let help = format!(
            "add `on_{verdict}`, or `_` in `route` for any other; without it the run ends with an error"
        );
        findings.push(Diagnostic::warning("unhandled-verdict", Place::Key(path.clone()), message).help(help));
    }
}

/// Pasting what somebody else printed into a command line lets them write the command.
fn injection(step: &Step, findings: &mut Diagnostics) {
    let Some(Action::Shell(shell)) = &step.action else {
        return;
    };
    for expression in shell.text.expressions().filter(|expression| is_foreign(expression)) {
        let place = Place::Within(state(&step.name).key("action"), expression.span.clone());
        let message = format!("`${{{expression}}}` is pasted into a shell command unquoted");
        let variable = environment_name(expression);
        let help = format!("write `${{{expression}:shell}}`{variable}");
        findings.push(Diagnostic::warning("template-injection", place, message).help(help));
    }
}

fn is_foreign(expression: &Expression) -> bool {
    let untrusted = match expression.namespace {
        Namespace::Captured | Namespace::Prev => {
            // Codes, times and names are made by the engine.
            !matches!(expression.path.last(), Some(Segment::Key(key)) if matches!(key.as_str(), "exit_code" | "duration_ms" | "state"))
        }
        Namespace::Result => expression.path.first() == Some(&Segment::Key("details".to_owned())),
        Namespace::Env => true,
        Namespace::Context | Namespace::State | Namespace::Loop | Namespace::Param | Namespace::Messages => {
            false
        }
    };
    untrusted && !expression.shell_quoted
}

fn environment_name(expression: &Expression) -> String {
    match (expression.namespace, expression.path.first()) {
        (Namespace::Captured, Some(Segment::Key(name))) => {
            format!(", or read \"${}\" in the command", captured_variable(name))
        }
        (Namespace::Prev, Some(Segment::Key(key))) if key == "output" => {
            ", or read \"$LL_PREV_OUTPUT\" in the command".to_owned()
        }
        (Namespace::Env, Some(Segment::Key(name))) => format!(", or read \"${name}\" in the command"),
        _ => String::new(),
    }
}

/// Looks for values that no run of this file alone can have.
fn references(machine: &Machine, findings: &mut Diagnostics) {
    let mut known: BTreeSet<&str> = machine.context.keys().map(VarName::as_str).collect();
    known.extend(machine.parameters.keys().map(VarName::as_str));
    known.extend(machine.required_inputs.iter().map(VarName::as_str));
    known.insert(machine.input_key.as_str());
    let captures: BTreeSet<&str> = machine
        .steps()
        .flat_map(|(_, step)| {
            step.capture.as_ref().map(VarName::as_str).into_iter().chain([step.name.as_str()])
        })
        .collect();
    for (name, key, template) in machine.templates() {
        let path = match name {
            Some(name) => key.split('.').fold(state(name), |path, key| path.key(key)),
            None => key.split('.').fold(DocPath::root(), |path, key| path.key(key)),
        };
        for expression in needed(template) {
            let Some(Segment::Key(first)) = expression.path.first() else { continue };
            let place = Place::Within(path.clone(), expression.span.clone());
            match expression.namespace {
                Namespace::Context if !known.contains(first.as_str()) => {
                    let near = crate::base::diagnostic::nearest(first, known.iter().copied());
                    let help = match near {
                        Some(near) => format!("did you mean `context.{near}`?"),
                        None => format!("add it to `context`, or give it with `--context {first}=…`"),
                    };
                    let message = format!("`${{{expression}}}` is not defined in this file");
                    findings.push(Diagnostic::warning("undefined-context", place, message).help(help));
                }
                Namespace::Captured if !captures.contains(first.as_str()) => {
                    let near = crate::base::diagnostic::nearest(first, captures.iter().copied());
                    let help = match near {
                        Some(near) => format!("did you mean `captured.{near}`?"),
                        None => format!("add `capture: {first}` to the state whose output it is"),
                    };
                    let message = format!("`${{{expression}}}` is captured by no state");
                    findings.push(Diagnostic::warning("undefined-capture", place, message).help(help));
                }
                Namespace::Context
                | Namespace::Captured
                | Namespace::Prev
                | Namespace::Result
                | Namespace::State
                | Namespace::Loop
                | Namespace::Env
                | Namespace::Param
                | Namespace::Messages => {}
            }
        }
    }
}

fn needed(template: &Template) -> impl Iterator<Item = &Expression> {
    template.expressions().filter(|expression| expression.fallback == Fallback::Required)
}
