//! Texts that hide failures: a command whose exit code nobody sees, in an action that its exit code judges.

use super::checked_machine::{CheckedLoop, state};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::text::{after_last, one_line};
use crate::evaluate::Evaluate;
use crate::machine::{Action, Routes, Step};
use crate::shell::lexer;

mod masked_commands;

use masked_commands::{MaskReason, Masked, Options};

/// The shells whose texts are understood here.
const SHELLS: [&str; 6] = ["bash", "sh", "dash", "ash", "ksh", "zsh"];

/// The commands that can fail unseen, one finding for each action, and one more for an end that always succeeds.
pub(super) fn masked(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    for (_, step) in subject.machine.steps() {
        let Some(Action::Shell(action)) = step.action.as_ref().filter(|_| is_judged_by_code(step)) else {
            continue;
        };
        let text = action.text.source();
        let all = in_text(text, &action.shell);
        let is_replaced = |masked: &&Masked| masked.why == MaskReason::Replaced;
        let first = all.iter().find(|masked| !is_replaced(masked));
        for masked in first.into_iter().chain(all.iter().find(is_replaced)) {
            let command = one_line(text.get(masked.range.clone()).unwrap_or(""), 60);
            let place = FindingPlace::Within(state(&step.name).key("action"), masked.range.clone());
            let (message, help) = explained(masked.why, &command);
            findings.push(Diagnostic::warning("masked-failure", place, message).help(help));
        }
    }
}

/// Tells whether the exit code of a step's action decides where the run goes.
fn is_judged_by_code(step: &Step) -> bool {
    match (&step.routes, &step.evaluate) {
        (Routes::Always { on_error, .. }, _) => on_error.is_some(),
        // With a `source`, the code that is judged is not that of the command.
        (Routes::ByVerdict { .. }, Some(Evaluate::ExitCode(by))) => by.source.is_none(),
        (Routes::ByVerdict { .. }, _) => false,
    }
}

/// Returns what is masked in a text that these words run.
fn in_text(text: &str, shell: &[String]) -> Vec<Masked> {
    let mut words = shell.iter().map(String::as_str);
    let is_shell = |word: &str| SHELLS.contains(&after_last(word, &['/']));
    // Another program may read the text by other rules.
    if !words.by_ref().any(is_shell) {
        return Vec::new();
    }
    // Words after the shell, such as `-euo pipefail`, set options before the text begins.
    let options = Options::default().after(&words.collect::<Vec<_>>());
    let Some(tokens) = lexer::tokens(text) else { return Vec::new() };
    masked_commands::masked(text, &tokens, options)
}

fn explained(why: MaskReason, command: &str) -> (String, &'static str) {
    const STRICT: &str = "write `shell: [bash, -euo, pipefail, -c]`, or begin with `set -e`";
    match why {
        MaskReason::Sequence => {
            (format!("`{command}` can fail unseen: only the last command decides the exit code"), STRICT)
        }
        MaskReason::Background => (
            format!("`{command}` can fail unseen: nobody waits for its exit code"),
            "keep its number (`pid=$!`) and `wait \"$pid\"`, or run it in the foreground",
        ),
        MaskReason::Pipeline => (
            format!("`{command}` can fail unseen: the last command of a pipeline decides its exit code"),
            "write `shell: [bash, -euo, pipefail, -c]`, or begin with `set -o pipefail`",
        ),
        MaskReason::Replaced => (
            format!("when `{command}` fails, a command after `||` succeeds in its place"),
            "let the failure be the exit code (`|| exit 1`), or write `next` if it does not matter",
        ),
    }
}

#[cfg(test)]
mod tests;
