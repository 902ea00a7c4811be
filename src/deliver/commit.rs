//! A fix as one more commit on the branch of the pull request that the job is about.

use super::delivered::Done;
use super::offer::{Offered, check_changes};
use super::secrecy::check_texts;
use super::servers::DeliveryServer;
use super::texts::Texts;
use super::way::{Brought, DeliverOptions};
use crate::base::object::ObjectId;
use crate::context::Session;
use crate::forge::forge_trait::{Checks, Forge, NewCommit, PullState, RefMove};
use crate::forge::github::pull_head::PullHead;
use crate::forge::message;
use crate::forge::names::StickyNames;
use crate::forge::standing::FixStanding;
use crate::repository::delivery_stop::DeliveryStop;

/// So many commits of ours on top of each other are two bots that undo each other's work.
const MOST_IN_A_ROW: usize = 3;

/// Delivers onto the head of the pull request of this job.
pub(super) fn deliver(
    offered: &Offered<'_>,
    standing: FixStanding,
    server: &DeliveryServer,
    options: &DeliverOptions,
    session: &Session<'_>,
) -> Result<Brought, DeliveryStop> {
    let Some((api, repository)) = server.api() else {
        return Err(DeliveryStop::refused("this server has no pull requests that a commit can be added to"));
    };
    let pull = PullHead::find(&session.env.lookup(), api, repository)?;
    let number = pull.number;
    if pull.is_foreign {
        return Err(DeliveryStop::refused(format!(
            "the pull request #{number} comes from another repository, which is never written to: use `--to suggest`"
        )));
    }
    if pull.state != PullState::Open {
        return Err(DeliveryStop::refused(format!("the pull request #{number} is not open any more")));
    }
    let forge = offered.forge(server, session)?;
    let forge = forge.as_ref();
    let name = format!("refs/heads/{}", pull.branch);
    // The branch itself is asked, not the event of the job: people may have pushed since the job
    // began, and the move below starts only from what is read here.
    let found = forge.refs(&[&name])?;
    let Some(head) = found.get(&name) else {
        return Err(DeliveryStop::refused(format!(
            "the branch `{}` of the pull request #{number} is gone",
            pull.branch
        )));
    };
    let applied = offered.onto(head, &pull.branch)?;
    // Checked once more: a merge follows renames, so that on this head the fix may touch other
    // paths than in the bundle.
    check_changes(&applied.changes, options)?;
    if applied.changes.is_empty() {
        return Err(DeliveryStop::Unchanged("the pull request has the fix already".to_owned()));
    }
    if ours_in_a_row(forge, head)? >= MOST_IN_A_ROW {
        return Err(DeliveryStop::refused(format!(
            "the last {MOST_IN_A_ROW} commits of the pull request #{number} are deliveries: something undoes them, and a \
             person has to look"
        )));
    }
    let starts_checks = forge.starts_checks()?;
    if !starts_checks && !options.accept_no_checks {
        return Err(DeliveryStop::refused(
            "no checks would start on the commit, because the token is that of the job, and the pull request would wait \
             for them for ever: give the token of an app or a person, or `--accept-no-checks`",
        ));
    }
    let checks = if starts_checks { Checks::Run } else { Checks::None };
    let pull_page = Brought { url: Some(pull.url.clone()), checks, ..Brought::nothing(Done::Created) };
    let message = Texts { offered, standing, applied: &applied }.message();
    check_texts(&[("the message of the commit", &message)], session)?;
    // A rehearsal ends behind every check, so that it refuses whatever the delivery would refuse.
    if options.dry_run {
        return Ok(Brought { notes: vec![format!("branch: {}", pull.branch)], ..pull_page });
    }
    // For the temporary branch on which GitHub makes the commit.
    let names = StickyNames::new(&offered.bundle.manifest.r#loop, &pull.branch)
        .map_err(|_| DeliveryStop::refused("the names of the loop and the branch are too long together"))?;
    let commit = NewCommit {
        parent: head,
        tree: &applied.tree,
        changes: &applied.changes,
        message: &message,
        require_signed: options.require_signed,
        pull: None,
    };
    let moves = [RefMove { name, from: Some(head.clone()) }];
    let written = forge.write(&commit, &moves, &names.temporary, &offered.workspace)?;
    Ok(Brought { commit: Some(written.id), signed: Some(written.signed), ..pull_page })
}

/// Counts how many of the newest commits of a branch are ours.
fn ours_in_a_row(forge: &dyn Forge, head: &ObjectId) -> Result<usize, DeliveryStop> {
    let mut messages = Vec::new();
    let mut next = Some(head.clone());
    while let Some(id) = next.filter(|_| messages.len() < MOST_IN_A_ROW) {
        let commit = forge.commit(&id)?;
        // Along the first parents: what a merge brought in was not committed on this branch.
        next = commit.parents.first().cloned();
        messages.push(commit.message);
    }
    Ok(message::ours_in_a_row(messages.iter().map(String::as_str)))
}
