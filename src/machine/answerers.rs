//! Who may answer the questions that a loop asks people, and whether what it says of them can be kept.

use super::Approvers;
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::name::StateName;
use crate::base::path::DocPath;
use crate::base::text::{one_line, plural};
use crate::definition::schema::{self, ActionType, Loop, State};

/// Returns the same for a machine.
pub(super) fn approvers(written: &schema::Approvers) -> Approvers {
    let schema::Approvers { users, teams, min, not_author } = written.clone();
    Approvers { users, teams, min: min.get(), not_author }
}

/// Who may answer the question of a state.
#[derive(Clone, Debug)]
pub struct Answerers {
    /// Whom the loop names; where it names nobody, whoever may write to the repository.
    pub named: Option<Approvers>,
}

/// Returns who may answer the question of a state, as its file says it; nothing where no state of this name asks.
pub fn of_state(definition: &Loop, name: &StateName) -> Option<Answerers> {
    let state = definition.states.get(name)?;
    let asks = state.action_type == Some(ActionType::HumanApproval);
    let named = || state.approvers.as_ref().or(definition.approvers.as_ref()).map(approvers);
    asks.then(|| Answerers { named: named() })
}

/// Looks whether a state that says who answers it asks anybody: a gate that is not there must not look like one.
pub(super) fn check_state(state: &State, path: &DocPath, problems: &mut Diagnostics) {
    if let Some(written) = &state.approvers {
        check(written, &path.key("approvers"), problems);
    }
    // A terminal cannot ask, since its action cannot be a question.
    if state.action_type == Some(ActionType::HumanApproval) && !state.terminal {
        return;
    }
    for (key, given) in [("approvers", state.approvers.is_some()), ("stays_open", state.stays_open.is_some())]
    {
        if given {
            let place = FindingPlace::Key(path.key(key));
            let message = format!("`{key}` is for a question, and this state asks nobody");
            let help = "add `action_type: human_approval` with routes for `yes` and `no`, or remove the key";
            problems.push(Diagnostic::error("approvers", place, message).help(help));
        }
    }
}

/// Looks at what the loop says for all of its questions.
pub(super) fn check_loop(definition: &Loop, is_whole: bool, problems: &mut Diagnostics) {
    let Some(written) = &definition.approvers else { return };
    let path = DocPath::root().key("approvers");
    check(written, &path, problems);
    let asks = |state: &State| state.action_type == Some(ActionType::HumanApproval);
    // In a file that was not read whole, the state that asks may be what is missing.
    if is_whole && !definition.states.values().any(asks) {
        let place = FindingPlace::Key(path);
        let message = "`approvers` is for questions, and no state of this loop asks anybody";
        let help = "add a state with `action_type: human_approval`; a loop that a state runs has its own `approvers`";
        problems.push(Diagnostic::error("approvers", place, message).help(help));
    }
}

fn check(written: &schema::Approvers, path: &DocPath, problems: &mut Diagnostics) {
    let mut wrong = |key: &str, message: String, help: &str| {
        let place = FindingPlace::Value(path.key(key));
        problems.push(Diagnostic::error("approvers", place, message).help(help));
    };
    for user in written.users.iter().filter(|user| !is_account(user)) {
        let message = format!("`{}` is not the name of an account", one_line(user, 60));
        wrong("users", message, "write the name alone, without `@`: `users: [ada]`");
    }
    for team in written.teams.iter().filter(|team| !is_team(team)) {
        let message = format!("`{}` is not a team", one_line(team, 60));
        wrong("teams", message, "write the organisation and the team: `teams: [acme/release]`");
    }
    // Servers ignore case in the names of accounts, so `Ada` and `ada` are one.
    let mut users: Vec<String> = written.users.iter().map(|user| user.to_lowercase()).collect();
    users.sort();
    users.dedup();
    let known = u32::try_from(users.len()).unwrap_or(u32::MAX);
    if known > 0 && written.teams.is_empty() && written.min.get() > known {
        let message =
            format!("`min: {}` can never be met by {}", written.min.get(), plural(known, "account"));
        wrong("min", message, "name more accounts or a team, or ask for fewer");
    }
}

/// Tells whether a text can be the name of an account on GitHub, Gitea, Forgejo or GitLab.
fn is_account(name: &str) -> bool {
    // Apps on GitHub act by accounts with this ending.
    let name = name.strip_suffix("[bot]").unwrap_or(name);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= 255
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn is_team(name: &str) -> bool {
    name.split_once('/').is_some_and(|(organisation, team)| is_account(organisation) && is_account(team))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_accounts_and_teams_have_no_decoration() {
        for good in ["ada", "Ada-Lovelace", "a.b_c", "dependabot[bot]", "0x"] {
            assert!(is_account(good), "{good}");
        }
        for bad in ["", "@ada", "-ada", "ada lovelace", "ada/x", "ad\u{430}", "[bot]", "ada[bot]x"] {
            assert!(!is_account(bad), "{bad}");
        }
        assert!(is_team("acme/release"));
        for bad in ["acme", "@acme/release", "acme/", "/release", "acme/a/b"] {
            assert!(!is_team(bad), "{bad}");
        }
    }
}
