//! Compiles the states that ask somebody before the run goes on: a person, or an agent that finds out what is not known.

use super::{Action, ActionSetting, ApprovalAction, LearningAction, Routes, answerers};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Repair};
use crate::base::path::DocPath;
use crate::base::template::Template;
use crate::definition::schema::{self, ActionType, Learning, State};
use crate::evaluate::verdict::Verdict;

/// Makes a question for a person.
pub(super) fn approval(
    text: Template,
    setting: ActionSetting,
    state: &State,
    of_loop: Option<&schema::Approvers>,
) -> Action {
    let approvers = state.approvers.as_ref().or(of_loop).map(answerers::approvers);
    Action::Approval(ApprovalAction { text, setting, stays_open: state.stays_open, approvers })
}

/// Says that a question for a person says nothing.
pub(super) fn without_question(state: &State, path: &DocPath, problems: &mut Diagnostics) {
    if state.action_type == Some(ActionType::HumanApproval) {
        let place = FindingPlace::Value(path.key("action_type"));
        let message = "a question for a person needs an `action`";
        let help = "write what is to be approved, such as `action: Deploy ${context.version}?`";
        problems.push(Diagnostic::error("empty-action", place, message).help(help));
    }
}

/// Returns what a state has to learn, if it is of that kind.
pub(super) fn learning<'s>(
    state: &'s State,
    path: &DocPath,
    problems: &mut Diagnostics,
) -> Option<&'s Learning> {
    let kind = state.kind.as_deref();
    let is_learning = kind == Some("learning");
    let idle = match (kind, &state.learning) {
        (Some(_), _) if !is_learning => Some(("type", "only `type: learning` means something")),
        (Some(_), None) => Some(("type", "write what has to be known under `learning`")),
        (None, Some(_)) => Some(("learning", "add `type: learning`")),
        (Some(_), Some(_)) | (None, None) => None,
    };
    if let Some((key, help)) = idle {
        let place = FindingPlace::Key(path.key(key));
        let message = format!("`{key}` has no effect here");
        let finding = Diagnostic::note("no-effect", place, message).help(help);
        let repair = Repair::Add { key: "type", value: "learning".to_owned() };
        problems.push(finding.repair((key == "learning").then_some(repair)));
    }
    let learning = state.learning.as_ref().filter(|_| is_learning)?;
    for (key, given) in [("action", state.action.is_some()), ("loop", state.r#loop.is_some())] {
        if given {
            let place = FindingPlace::Key(path.key(key));
            let message = format!("`{key}` has no effect beside `learning`");
            let help = "what an agent is asked is known; use another state for it";
            problems.push(Diagnostic::warning("no-effect", place, message).help(help));
        }
    }
    Some(learning)
}

/// Makes the work of a state that has to learn something.
pub(super) fn learn(
    learning: &Learning,
    setting: ActionSetting,
    path: &DocPath,
    problems: &mut Diagnostics,
) -> Action {
    if learning.targets.is_empty() && learning.targets_csv.is_none() {
        let place = FindingPlace::Value(path.key("learning"));
        let message = "`learning` has no targets";
        let help = "add `targets: [NAME]`, or `targets_csv` with a text";
        problems.push(Diagnostic::error("missing-value", place, message).help(help));
    }
    let names = learning.targets.iter().chain(&learning.targets_csv).map(Template::source);
    let shown = names.collect::<Vec<_>>().join(", ");
    Action::Learning(LearningAction {
        shown: Template::parse(&shown).unwrap_or_else(|_| Template::literal("learning")),
        targets: learning.targets.clone(),
        listed: learning.targets_csv.clone(),
        tries: learning.max_retries.0,
        tries_by: learning.max_retries_expr.clone(),
        setting,
    })
}

/// Looks whether an action that asks somebody has the routes that its answers need.
pub(super) fn routes(
    action: Option<&Action>,
    routes: Option<&Routes>,
    path: &DocPath,
    problems: &mut Diagnostics,
) {
    let (what, needed): (_, &[&[&str]]) = match action {
        Some(Action::Approval(_)) => ("a question for a person", &[&["yes"], &["no"]]),
        Some(Action::Learning(_)) => ("`learning`", &[&["yes"], &["blocked", "no"]]),
        Some(
            Action::Shell(_) | Action::Prompt(_) | Action::Tool(_) | Action::SubLoop(_) | Action::Board(_),
        )
        | None => return,
    };
    // That a state has no way out at all is said already.
    let Some(routes) = routes else { return };
    let has = |word: &&str| match routes {
        Routes::ByVerdict { table, .. } => table.contains_key(&Verdict::new(*word)),
        Routes::Always { .. } => false,
    };
    for words in needed.iter().filter(|words| !words.iter().any(has)) {
        let word = words[0];
        let message = format!("{what} needs a route for `{word}`");
        let help = match words {
            [_, other, ..] => format!("add `on_{word}` or `on_{other}`"),
            _ => format!("add `on_{word}`"),
        };
        problems
            .push(Diagnostic::error("missing-route", FindingPlace::Key(path.clone()), message).help(help));
    }
}
