//! Text from outside in command lines: pasting what somebody else printed into one lets them write the command.

use crate::base::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::base::name::captured_variable;
use crate::base::path::Segment;
use crate::base::template::{Expression, Namespace};
use crate::machine::{Action, Step};

use super::subject::{CheckedLoop, state};

pub(super) fn injection(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    for (_, step) in subject.machine.steps() {
        let Some(text) = step.action.as_ref().and_then(Action::shell_text) else { continue };
        for expression in text.expressions().filter(|expression| !expression.shell_quoted) {
            let place = Place::Within(state(&step.name).key("action"), expression.span.clone());
            let (message, variable) = if is_foreign(expression) {
                let message = format!("`${{{expression}}}` is pasted into a shell command unquoted");
                (message, environment_name(expression))
            } else if let Some(brought) = brought(step, expression) {
                let message =
                    format!("`${{{expression}}}` brings `${{{brought}}}` into a shell command unquoted");
                (message, String::new())
            } else {
                continue;
            };
            let help = format!("write `${{{expression}:shell}}`{variable}");
            findings.push(Diagnostic::warning("template-injection", place, message).help(help));
        }
    }
}

/// Returns the text from outside that a parameter of a fragment stands for, if it stands for one.
fn brought<'s>(step: &'s Step, expression: &Expression) -> Option<&'s Expression> {
    let (Namespace::Param, Some(Segment::Key(name))) = (expression.namespace, expression.path.first()) else {
        return None;
    };
    let (_, value) = step.params.iter().find(|(known, _)| known.as_str() == name)?;
    value.as_template()?.expressions().find(|inner| !inner.shell_quoted && is_foreign(inner))
}

fn is_foreign(expression: &Expression) -> bool {
    match expression.namespace {
        Namespace::Captured | Namespace::Prev => {
            // Codes, times and names are made by the engine, and the same words within an answer are not.
            let depth = usize::from(expression.namespace == Namespace::Captured);
            let is_made = |key: &str| matches!(key, "exit_code" | "duration_ms" | "state");
            !matches!(expression.path.get(depth..), Some([Segment::Key(key)]) if is_made(key))
        }
        Namespace::Result => expression.path.first() == Some(&Segment::Key("details".to_owned())),
        // Messages are made of what states printed, tasks of what agents answered.
        Namespace::Env | Namespace::Messages | Namespace::Board => true,
        Namespace::Context | Namespace::State | Namespace::Loop | Namespace::Param | Namespace::Criteria => {
            false
        }
    }
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
