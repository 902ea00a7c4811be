//! What people have to know of the question that a run waits with, and of the answers that it got.

use crate::base::text::listed;
use crate::engine::question::{Awaiting, GivenAnswer};
use crate::machine::Approvers;

/// Returns what a question is about, who may answer it and how long, by the names of these facts.
pub fn facts(awaiting: &Awaiting) -> Vec<(&'static str, String)> {
    let about = awaiting.sha.as_ref().map(|sha| ("commit", sha.to_string()));
    let tree = awaiting.tree.as_ref().map(|tree| ("working tree", tree.to_string()));
    let rest = [
        ("asked in", awaiting.state.to_string()),
        ("asked at", awaiting.asked_at.to_string()),
        ("open until", awaiting.until.to_string()),
        ("who may answer", who(awaiting.approvers.as_ref())),
        ("code", awaiting.code.clone()),
        (
            "in a comment",
            format!("/ll-loop approve {0}, /ll-loop reject {0}, /ll-loop answer {0} TEXT", awaiting.code),
        ),
    ];
    about.into_iter().chain(tree).chain(rest).collect()
}

/// Says who may answer.
fn who(approvers: Option<&Approvers>) -> String {
    let Some(Approvers { users, teams, min, not_author }) = approvers else {
        return "whoever has write access".to_owned();
    };
    let mut who = match (users.is_empty(), teams.is_empty()) {
        (true, true) => "whoever has write access".to_owned(),
        (false, true) => listed(users, "or"),
        (true, false) => format!("the members of {}", listed(teams, "or")),
        (false, false) => format!("{}, or the members of {}", listed(users, "or"), listed(teams, "or")),
    };
    if *not_author {
        who.push_str(", but not the author of the change");
    }
    let how_many = if *min > 1 { format!("; {min} different people have to approve") } else { String::new() };
    who + &how_many
}

/// Says how the questions of a run were answered, a line for each.
pub fn answers(approvals: &[GivenAnswer]) -> Vec<String> {
    let line = |given: &GivenAnswer| format!("{} at {}", given.sentence(), given.at);
    approvals.iter().map(line).collect()
}
