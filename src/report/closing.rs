//! The last words about a run: one line that says how it ended, and what to do where something can be done.

use std::time::Duration;

use super::advice::{Advice, answer, resume, resume_with_budget, resume_with_time};
use super::digest::Digest;
use crate::base::advised_command::CommandLine;
use crate::base::text::{one_line, plural};
use crate::base::time::human;
use crate::engine::changes::TreeChanges;
use crate::engine::event::LoopComplete;
use crate::engine::outcome::{Outcome, TerminatedBy};

/// Returns the last line about a run: `Loop completed: done (3 iterations, 2m 34s)`.
pub fn headline(end: &LoopComplete) -> String {
    let place = one_line(end.final_state.as_str(), 120);
    let what = match end.outcome {
        Outcome::Success if end.verified => format!("completed: {place}"),
        Outcome::Success => format!("completed, unverified: {place}"),
        Outcome::Failure => format!("failed: {place}"),
        Outcome::Exhausted => format!("exhausted in {place}"),
        Outcome::Stopped => format!("stopped in {place}"),
        Outcome::Error => format!("ended by an error in {place}"),
        Outcome::Blocked => format!("blocked in {place}"),
        Outcome::OverBudget => format!("over its budget in {place}"),
        Outcome::Unavailable => format!("unable to go on in {place}"),
        Outcome::Handoff => format!("saved in {place}"),
        Outcome::Timeout => format!("timed out in {place}"),
        Outcome::LeaseLost => format!("lost its lease in {place}"),
        Outcome::Cancelled => format!("cancelled in {place}"),
        Outcome::Interrupted if end.terminated_by == TerminatedBy::Killed => {
            let pass = end.killed_in_pass.as_deref().map(|pass| one_line(pass, 200));
            format!("killed in {}", pass.unwrap_or(place))
        }
        Outcome::Interrupted => {
            format!("interrupted by {} in {place}", end.signal.map_or("request", |signal| signal.name()))
        }
    };
    let took = human(Duration::from_millis(end.duration_ms));
    format!("Loop {what} ({}, {took})", plural(end.iterations, "iteration"))
}

/// The state of a merge for a file that cannot be read, and that nothing says of which item it is. No item has a blank.
pub const UNREADABLE: &str = "unreadable file";

/// The state of a merge for changes that do not fit each other.
pub const CONFLICTING: &str = "conflicting changes";

/// The step of a merge for checks that say no where all changes are together.
pub const REFUSING: &str = "not confirmed";

/// Returns what helps where items of a plan are not verified, or something else makes the merge red.
fn again(digest: &Digest) -> Option<Advice> {
    let is_there = |name: &str| digest.states().keys().any(|state| state.as_str() == name);
    let is_item = |state: &str| ![UNREADABLE, CONFLICTING, REFUSING].contains(&state);
    let is_left = digest.states().iter().any(|(state, count)| is_item(state.as_str()) && count.passing == 0);
    // To run items again would not help: all of them have passed.
    if !is_left && is_there(UNREADABLE) {
        return Some("take away what cannot be read, or get it again, and merge once more".into());
    }
    if !is_left && is_there(CONFLICTING) {
        return Some(
            "give the items scopes that overlap, so that one leg runs them in order, and plan again".into(),
        );
    }
    if !is_left && is_there(REFUSING) {
        return Some(
            "look at what the check says of all changes together: nothing of them is delivered".into(),
        );
    }
    let directory = Some(digest.places.report_dir.as_str()).filter(|directory| !directory.is_empty());
    let (directory, false) = (directory?, digest.is_success()) else { return None };
    let command = CommandLine::of("run")
        .option("--plan", &format!("{directory}/plan.json"))
        .option("--rerun", directory);
    Some(Advice {
        words: "run again what is not verified, in a checkout of the commit:".to_owned(),
        command: Some(command),
    })
}

/// Returns what can be done about changes that are no part of the commit, or of which nobody knows whether there are any.
fn with_the_changes(digest: &Digest) -> String {
    if digest.changes_unknown().is_some() {
        return "mend what keeps git from looking at the working tree, and run it again: what the run changed there is not known"
            .to_owned();
    }
    let of_patch = if digest.changes().is_some_and(TreeChanges::are_in_patch) {
        ", which `changes.patch` among the reports has"
    } else {
        ""
    };
    format!("commit the changes{of_patch}, or run it with `--on-change report` where they are delivered")
}

/// Returns what can be done about an end like this, or why it came to it where nothing can.
pub fn advice(digest: &Digest) -> Option<Advice> {
    let end = digest.end()?;
    if digest.is_merge() {
        return again(digest);
    }
    let go_on = |command| Some(Advice { words: "continue with".to_owned(), command: Some(command) });
    match end.outcome {
        Outcome::Success if end.verified => None,
        // Where that was asked, it is one that needs no proof.
        Outcome::Success if digest.start().is_some_and(|start| start.strict) => None,
        Outcome::Success => Some("with --strict an unverified success is a failure".into()),
        Outcome::Exhausted if end.terminated_by != TerminatedBy::Stall && digest.same_passes().is_some() => {
            if digest.has_changed_the_tree() {
                return Some(
                    "check whether the passes make progress, for the working tree changed; if they do, raise `max_iterations`"
                        .into(),
                );
            }
            Some(
                "look at why nothing changes from pass to pass; `stall: {window: 3}` ends such a run sooner"
                    .into(),
            )
        }
        Outcome::Exhausted => Some(match end.terminated_by {
            TerminatedBy::MaxSteps => "raise `max_steps`, or look at why it needs so many".into(),
            TerminatedBy::MaxEdgeRevisits => {
                "raise `max_edge_revisits`, or look at why it goes in circles".into()
            }
            TerminatedBy::Stall => "look at why nothing changes, or raise the `window` of `stall`".into(),
            TerminatedBy::MaxIterations
            | TerminatedBy::Terminal
            | TerminatedBy::UncommittedChanges
            | TerminatedBy::NotConfirmed
            | TerminatedBy::Error
            | TerminatedBy::Blocked
            | TerminatedBy::Timeout
            | TerminatedBy::Handoff
            | TerminatedBy::Interrupted
            | TerminatedBy::LeaseLost
            | TerminatedBy::Cancelled
            | TerminatedBy::FatalError
            | TerminatedBy::LoopStop
            | TerminatedBy::Budget
            | TerminatedBy::Unavailable
            | TerminatedBy::NotRecorded
            | TerminatedBy::JournalLost
            | TerminatedBy::Killed => "raise `max_iterations`, or look at why the check never passes".into(),
        }),
        Outcome::Blocked => Some("a person has to look at it".into()),
        Outcome::Timeout => go_on(resume_with_time(digest)),
        Outcome::Handoff if let Some(awaiting) = digest.awaiting() => Some(Advice {
            words: "answer with `approve`, `reject` or a text:".to_owned(),
            command: Some(answer(digest, awaiting)),
        }),
        Outcome::Handoff | Outcome::Interrupted | Outcome::Unavailable | Outcome::LeaseLost => {
            go_on(resume(digest))
        }
        Outcome::OverBudget => Some(match resume_with_budget(digest) {
            Some(command) => {
                Advice { words: "continue with twice of it:".to_owned(), command: Some(command) }
            }
            None => Advice {
                words: "raise the `budget` of the loop, and continue with".to_owned(),
                // The loop file is another one then, which a resume refuses to go on with unless it
                // is told to.
                command: Some(resume(digest).flag("--accept-changes")),
            },
        }),
        Outcome::Error if end.terminated_by == TerminatedBy::JournalLost => go_on(resume(digest)),
        // The sentence about the run says it already, or it is not needed any more.
        Outcome::Error | Outcome::Cancelled => None,
        Outcome::Failure if end.terminated_by == TerminatedBy::UncommittedChanges => {
            Some(with_the_changes(digest).into())
        }
        Outcome::Failure | Outcome::Stopped => {
            let reason = one_line(&end.reason, 300);
            (!reason.is_empty()).then(|| reason.into())
        }
    }
}
