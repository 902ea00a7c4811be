//! Keeps what a run has verified, for later ones that find the same; and takes back what an earlier one has left, where this
//! one comes to something else.

use std::path::Path;

use crate::base::text::plural;
use crate::base::time::{Timestamp, millis};
use crate::context::Session;
use crate::engine::changes::{Changes, TreeChanges};
use crate::engine::event::LoopComplete;
use crate::engine::outcome::Outcome;
use crate::engine::reused::{ReusedRun, ReusedState};
use crate::engine::verification::JudgesStanding;
use crate::journal::reader;
use crate::process::signal::Cancel;
use crate::report::digest::Digest;
use crate::reuse::key::{KeyParts, MEANING};
use crate::reuse::origin::OriginEvent;
use crate::reuse::record::{FileTable, ReuseRecord};
use crate::reuse::verdict_table::VerdictTable;
use crate::session::prepare::reuse_decision::{PendingReuse, unreachable};

/// A run that has ended.
pub(super) struct EndedReuse<'r> {
    /// Its id.
    pub(super) id: &'r str,
    /// Its loop.
    pub(super) name: &'r crate::base::name::LoopName,
    /// How it ended.
    pub(super) complete: &'r LoopComplete,
    /// Its journal.
    pub(super) journal: &'r Path,
    /// When it ended.
    pub(super) now: Timestamp,
    /// The page of its job.
    pub(super) link: Option<String>,
}

/// Keeps the result of a run, or takes back that of the one that it was to prove right.
pub(super) async fn settle(
    pending: PendingReuse,
    run: &EndedReuse<'_>,
    cancel: &Cancel,
    session: &Session<'_>,
) {
    let after = pending.question.ask(cancel).await;
    let is_same = after.as_ref().is_ok_and(|after| after.parts.key() == pending.before.key());
    keep_verdicts(&pending, run, is_same, session);
    if let Some(verified) = verified(run.complete) {
        if let Some(why) = &pending.unkept {
            session.talk.note(&format!("the result is not kept for later runs: {why}"));
            return;
        }
        match after {
            Ok(after) => keep(&pending, &after.parts, verified, run, session),
            Err(why) => session.talk.note(&format!("the result is not kept for later runs: {why}")),
        }
    } else if let Some(known) = pending.verifies.as_ref().filter(|_| is_another_verdict(run.complete)) {
        // All records of this loop go: whatever its key leaves out is missing in each of them.
        let dropped = pending.store.drop_definition(run.name, known.sums.definition);
        let gone = match dropped {
            Ok(count) => format!(
                "{} of this loop {} removed",
                plural(count as u64, "result"),
                if count == 1 { "was" } else { "were" }
            ),
            Err(why) => unreachable(&why),
        };
        if let Some(Err(why)) =
            pending.refs.as_ref().map(|refs| refs.drop_definition(run.name, known.sums.definition))
        {
            session.talk.warning(&format!("what other jobs take of this loop cannot be removed: {why}"));
        }
        session.talk.warning(&format!(
            "run {} had verified the same inputs, and this one does not: either `inputs`, `tools` and `env` do not name all that the checks read, or a check is flaky; {gone}",
            known.run.run
        ));
    }
}

/// Keeps what the checks said about the inputs with which the run began, so that a check which wavers is known as such.
fn keep_verdicts(pending: &PendingReuse, run: &EndedReuse<'_>, is_same: bool, session: &Session<'_>) {
    if pending.unkept.is_some() {
        return;
    }
    let mut digest = Digest::without_steps(0);
    let _as_far_as_it_goes = reader::read(run.journal, |event| digest.event(&event));
    let wavering = digest.wavering();
    // Where something but checks may have changed it, its first checks were made before: in CI, nobody else works there.
    let is_as_it_began =
        is_same || (!wavering.is_of_checks_alone() && pending.origin.event != OriginEvent::Local);
    if wavering.said().is_empty() || !is_as_it_began {
        return;
    }
    let add = |table: &mut VerdictTable| {
        for (state, passed) in wavering.said() {
            let key = pending.checks.iter().find(|key| key.state == *state);
            if let Some(key) = key {
                table.add(key, *passed, run.now);
            }
        }
        table.forget(run.now, pending.question.rules().max_age);
    };
    let kept = pending.store.keep_verdicts(run.name, &pending.origin, add, run.now);
    if let Err(why) = kept {
        session.talk.warning(&format!("what the checks said is not kept: {why}"));
    }
}

/// Returns the tree of a run whose success holds for later ones: it is verified, and has changed nothing.
fn verified(complete: &LoopComplete) -> Option<&TreeChanges> {
    let is_verified = complete.outcome == Outcome::Success && complete.verified;
    let verification = complete.verification.as_deref().filter(|_| is_verified)?;
    let is_of_judges = verification.judges.state == JudgesStanding::Unchanged;
    let is_plain = verification.holds() && is_of_judges && verification.suppressions.is_empty();
    let changes = complete.changes.as_ref().and_then(Changes::known).filter(|_| is_plain)?;
    (changes.is_nothing() && changes.files.is_empty() && changes.unseen.is_empty()).then_some(changes)
}

/// Tells whether a run came to another verdict, and was not only kept from coming to one.
fn is_another_verdict(complete: &LoopComplete) -> bool {
    match complete.outcome {
        Outcome::Failure | Outcome::Exhausted | Outcome::Blocked | Outcome::Success => true,
        Outcome::Error
        | Outcome::Stopped
        | Outcome::OverBudget
        | Outcome::Unavailable
        | Outcome::Timeout
        | Outcome::Interrupted
        | Outcome::LeaseLost
        | Outcome::Cancelled
        | Outcome::Handoff => false,
    }
}

fn keep(
    pending: &PendingReuse,
    after: &KeyParts,
    changes: &TreeChanges,
    run: &EndedReuse<'_>,
    session: &Session<'_>,
) {
    // Asked once more: the run itself may have changed what its key is made of, or somebody beside
    // it.
    if after.key() != pending.before.key() {
        session
            .talk
            .note("the result is not kept for later runs: what its checks read has changed meanwhile");
        return;
    }
    let record = record(pending, after, changes, run);
    if let Err(why) = pending.store.keep(&record) {
        session.talk.warning(&format!("the result is not kept for later runs: {why}"));
    }
    // What a person has found at their machine is for that machine.
    let refs = pending.refs.as_ref().filter(|_| pending.origin.event != OriginEvent::Local);
    let pushed = refs.map(|refs| refs.push(&record, run.now, pending.question.rules().max_age));
    if let Some(Err(why)) = pushed {
        session.talk.warning(&format!("the result is not kept for other jobs: {why}"));
    }
}

fn record(
    pending: &PendingReuse,
    parts: &KeyParts,
    changes: &TreeChanges,
    run: &EndedReuse<'_>,
) -> ReuseRecord {
    let mut digest = Digest::without_steps(0);
    let _as_far_as_it_goes = reader::read(run.journal, |event| digest.event(&event));
    let states = digest
        .states()
        .iter()
        .map(|(state, count)| ReusedState { state: state.clone(), duration_ms: millis(count.duration) });
    let checks = run.complete.verification.as_deref().map(|verification| verification.checks.clone());
    ReuseRecord {
        meaning: MEANING,
        sums: parts.sums(),
        origin: pending.origin.clone(),
        r#loop: run.name.to_string(),
        files: FileTable::of(parts),
        tools: parts.tools.clone(),
        run: ReusedRun {
            key: parts.key().sum(),
            run: run.id.to_owned(),
            commit: changes.start.commit.clone(),
            tree: changes.end.tree.clone(),
            is_dirty: !changes.as_committed,
            when: run.now,
            duration_ms: run.complete.duration_ms,
            // Later runs show the link, so it may not be of any other kind.
            link: run.link.clone().filter(|link| link.starts_with("https://")),
            final_state: run.complete.final_state.clone(),
            checks: checks.unwrap_or_default(),
            states: states.collect(),
            has_uncommitted: false,
        },
    }
}
