//! Which states are checks, and after which of their verdicts the working tree has to be looked at. A look costs as much
//! as a `git status`, so it is made only where the answer can matter.

use std::collections::BTreeSet;

use super::known_checks::is_pure;
use super::{Action, Machine, Meaning, Routes, ShellAction, Step, StepId, Target, graph};
use crate::evaluate::Evaluate;

/// Returns the command of a state whose observation can be made again by itself, or why it cannot.
pub(super) fn repeatable<'a>(
    action: Option<&'a Action>,
    evaluate: Option<&Evaluate>,
) -> Result<&'a ShellAction, &'static str> {
    let Some(Action::Shell(shell)) = action else {
        return Err("the state runs no shell command");
    };
    let Some(evaluate) = evaluate else {
        return Err("nothing judges what the command does");
    };
    if evaluate.asks() {
        return Err("a model judges it, and a check is run again without one");
    }
    if evaluate.survey().is_some() || evaluate.file().is_some() {
        return Err("it is judged by more than what the command does");
    }
    match evaluate {
        Evaluate::ExitCode(_)
        | Evaluate::OutputNumeric(_)
        | Evaluate::OutputJson(_)
        | Evaluate::OutputContains(_)
        | Evaluate::Convergence(_)
        | Evaluate::Classify(_)
        | Evaluate::HarborScorer(_) => Ok(shell),
        Evaluate::DiffStall(_)
        | Evaluate::ScoreStall(_)
        | Evaluate::OpenQuestionStall(_)
        | Evaluate::ActionStall(_)
        | Evaluate::McpResult(_)
        | Evaluate::Criteria(_)
        | Evaluate::Answer(_)
        | Evaluate::Score(_)
        | Evaluate::LlmStructured(_) => Err("its evaluator does not judge the command alone"),
    }
}

/// Tells whether a command is known to look and to change nothing. A text that is put together in the run is not known.
pub(super) fn is_known_check(shell: &ShellAction) -> bool {
    shell.text.as_literal().is_some_and(|text| is_pure(&text))
}

/// Tells whether some way from a verdict of `of` that leads to `to` comes to a success past an action, and past no
/// further observation of the same state: only then does it matter on which tree the verdict fell.
pub fn matters(machine: &Machine, of: StepId, to: Target) -> bool {
    // With open targets any way is possible.
    if !machine.is_decided() {
        return true;
    }
    let edges = graph::edges(machine);
    let anywhere: Vec<Target> = graph::handlers(machine).collect();
    let (mut seen, mut open) = (BTreeSet::new(), vec![(to, false)]);
    while let Some((at, has_acted)) = open.pop() {
        if !seen.insert((at, has_acted)) {
            continue;
        }
        let has_acted = match at {
            // The state looks again before anything else counts, so this verdict decides nothing
            // any more.
            Target::Step(id) if id == of => continue,
            Target::Step(id) => has_acted || acts(machine.step(id)),
            Target::End(id) => {
                let end = machine.end(id);
                let is_success = matches!(end.meaning, Meaning::Success | Meaning::DeclaredSuccess);
                // The action of an end runs after the last observation.
                if is_success && (has_acted || end.closing.is_some()) {
                    return true;
                }
                has_acted || end.closing.is_some()
            }
        };
        open.extend(edges.iter().filter(|edge| edge.from == at).map(|edge| (edge.to, has_acted)));
        // From an end a run only begins again, and the step that it begins with leads to the handlers.
        if matches!(at, Target::Step(_)) {
            open.extend(anywhere.iter().map(|to| (*to, has_acted)));
        }
    }
    false
}

/// Tells whether a step does something that can change files. The task board is in the journal.
pub fn acts(step: &Step) -> bool {
    match step.action {
        Some(
            Action::Shell(_)
            | Action::SubLoop(_)
            | Action::Prompt(_)
            | Action::Tool(_)
            | Action::Approval(_)
            | Action::Learning(_),
        ) => true,
        Some(Action::Board(_)) | None => false,
    }
}

/// Tells whether the verdict of a step says something about a tree: it is judged, and not by the task board.
pub fn observes_tree(step: &Step) -> bool {
    match &step.action {
        Some(Action::Board(_)) => false,
        Some(Action::SubLoop(_)) => true,
        Some(
            Action::Shell(_)
            | Action::Prompt(_)
            | Action::Tool(_)
            | Action::Approval(_)
            | Action::Learning(_),
        )
        | None => matches!(step.routes, Routes::ByVerdict { .. }),
    }
}
