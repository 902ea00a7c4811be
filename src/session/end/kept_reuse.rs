//! Keeps what a run has verified, for later ones that find the same; and takes back what an earlier one has left, where this
//! one comes to something else.

use std::path::Path;

use crate::base::name::{LoopName, StateName};
use crate::base::text::plural;
use crate::base::time::{Timestamp, millis};
use crate::context::Session;
use crate::engine::Engine;
use crate::engine::changes::{Changes, TreeChanges};
use crate::engine::event::LoopComplete;
use crate::engine::outcome::Outcome;
use crate::engine::reused::{ReusedRun, ReusedState};
use crate::engine::verification::JudgesStanding;
use crate::journal::reader;
use crate::report::digest::Digest;
use crate::reuse::key::MEANING;
use crate::reuse::origin::OriginEvent;
use crate::reuse::record::{FileTable, ReuseRecord};
use crate::reuse::verdict_table::VerdictTable;
use crate::run::repeated_check;
use crate::run::world::World;
use crate::session::prepare::reuse_decision::{PendingReuse, unreachable};
use crate::session::prepare::reuse_key::FoundKey;

/// A run that has ended.
pub(super) struct EndedReuse<'r> {
    /// Its id.
    pub(super) id: &'r str,
    /// Its loop.
    pub(super) name: &'r LoopName,
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
    engine: &Engine<'_>,
    world: &mut World,
    session: &Session<'_>,
) {
    let after = pending.question.ask(&world.cancel).await;
    let is_same = after.as_ref().is_ok_and(|after| after.parts.key() == pending.before.key());
    let mut digest = Digest::without_steps(0);
    let _as_far_as_it_goes = reader::read(run.journal, |event| digest.event(&event));
    let verified = verified(run.complete);
    let refuted =
        pending.verifies.as_ref().filter(|_| verified.is_none() && is_another_verdict(run.complete));
    let second = match refuted {
        // On anything else, the check would find something else.
        Some(_) if is_same => second_verdict(&digest, engine, world, session).await,
        Some(_) | None => None,
    };
    keep_verdicts(&pending, run, SaidByChecks { digest: &digest, second: second.as_ref(), is_same }, session);
    if let Some(known) = refuted {
        let why = RefutedBecause::of(&pending, second);
        take_back(&pending, known, &why, run.name, session);
    }
    let Some(verified) = verified else { return };
    let unkept = |why: &str| session.talk.note(&format!("the result is not kept for later runs: {why}"));
    match (after, &pending.unkept) {
        (_, Some(why)) => unkept(why),
        (Err(why), None) => unkept(&why.to_string()),
        // Its inputs are what they were, and the check had said no of them: what made it say yes is not among them, and need not be
        // there when a later run is left out.
        (Ok(_), None) if !digest.mends().fixed().is_empty() => {
            unkept("a check said no of the same inputs until something else had worked");
        }
        (Ok(after), None) => keep(&pending, &after, verified, run, &digest, session),
    }
}

/// What a check said that was made once more.
struct SecondVerdict {
    state: StateName,
    passed: bool,
}

/// Makes the check once more that failed on the inputs of the record.
async fn second_verdict(
    digest: &Digest,
    engine: &Engine<'_>,
    world: &mut World,
    session: &Session<'_>,
) -> Option<SecondVerdict> {
    let said = digest.wavering().said().iter().find(|(_, passed)| !passed).map(|(state, _)| state.clone());
    let state = said.or_else(|| digest.mends().left().into_iter().next_back())?;
    session
        .talk
        .note(&format!("`{state}` is made once more, to tell why an earlier run had another verdict"));
    let passed = repeated_check::pass(engine, &state, world).await?;
    Some(SecondVerdict { state, passed })
}

/// Why a run came to another verdict than the one that it was to prove right.
enum RefutedBecause {
    /// The check wavers.
    Flaky(StateName),
    /// The check reads what the loop does not name.
    Undeclared(StateName),
    /// One of both.
    Unknown,
}

impl RefutedBecause {
    fn of(pending: &PendingReuse, second: Option<SecondVerdict>) -> Self {
        let Some(SecondVerdict { state, passed }) = second else { return Self::Unknown };
        let is_known = pending.histories.iter().any(|known| known.state == state && known.is_flaky());
        if passed || is_known { Self::Flaky(state) } else { Self::Undeclared(state) }
    }

    fn sentence(&self) -> String {
        match self {
            Self::Flaky(state) => {
                format!("`{state}` is flaky, for it has failed and passed on these inputs")
            }
            Self::Undeclared(state) => format!(
                "`{state}` failed once more, so that `inputs`, `tools` and `env` do not name all that it reads"
            ),
            Self::Unknown => {
                "either `inputs`, `tools` and `env` do not name all that the checks read, or a check is flaky"
                    .to_owned()
            }
        }
    }
}

/// Removes all records of the loop: whatever its key leaves out is missing in each of them.
fn take_back(
    pending: &PendingReuse,
    known: &ReuseRecord,
    why: &RefutedBecause,
    name: &LoopName,
    session: &Session<'_>,
) {
    let gone = match pending.store.drop_definition(name, known.sums.definition) {
        Ok(count) => format!(
            "{} of this loop {} removed",
            plural(count as u64, "result"),
            if count == 1 { "was" } else { "were" }
        ),
        Err(why) => unreachable(&why),
    };
    let dropped = pending.refs.as_ref().map(|refs| refs.drop_definition(name, known.sums.definition));
    if let Some(Err(why)) = dropped {
        session.talk.warning(&format!("what other jobs take of this loop cannot be removed: {why}"));
    }
    session.talk.warning(&format!(
        "run {} had verified the same inputs, and this one does not: {}; {gone}",
        known.run.run,
        why.sentence()
    ));
}

/// What the checks of a run have said.
#[derive(Clone, Copy)]
struct SaidByChecks<'d> {
    digest: &'d Digest,
    /// What one of them said after the run.
    second: Option<&'d SecondVerdict>,
    /// Whether the inputs are those with which the run began.
    is_same: bool,
}

/// Keeps what the checks said about the inputs with which the run began, so that a check which wavers is known as such.
fn keep_verdicts(
    pending: &PendingReuse,
    run: &EndedReuse<'_>,
    checks: SaidByChecks<'_>,
    session: &Session<'_>,
) {
    if pending.unkept.is_some() {
        return;
    }
    let SaidByChecks { digest, second, is_same } = checks;
    let wavering = digest.wavering();
    // Where something but checks may have changed it, its first checks were made before: in CI, nobody else works there.
    let is_as_it_began =
        is_same || (!wavering.is_of_checks_alone() && pending.origin.event != OriginEvent::Local);
    if wavering.said().is_empty() || !is_as_it_began {
        return;
    }
    let add = |table: &mut VerdictTable| {
        let second =
            second.filter(|_| !wavering.said().is_empty()).map(|second| (&second.state, second.passed));
        for (state, passed) in wavering.said().iter().map(|(state, passed)| (state, *passed)).chain(second) {
            let key = pending.checks.iter().find(|key| key.state == *state);
            if let Some(key) = key {
                table.add(key, passed, run.now);
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
    // What it changed would be missing where a later run is not made: only a run that changed nothing can stand for it.
    (changes.is_nothing() && changes.files.is_empty() && changes.unseen.is_empty()).then_some(changes)
}

/// Tells whether a run came to another verdict, and was not only kept from coming to one.
fn is_another_verdict(complete: &LoopComplete) -> bool {
    match complete.outcome {
        // A success is among them, because the callers ask only about runs that have verified nothing.
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
    after: &FoundKey,
    changes: &TreeChanges,
    run: &EndedReuse<'_>,
    digest: &Digest,
    session: &Session<'_>,
) {
    // Asked once more: the run itself may have changed what its key is made of, or somebody beside
    // it.
    if after.parts.key() != pending.before.key() {
        session
            .talk
            .note("the result is not kept for later runs: what its checks read has changed meanwhile");
        return;
    }
    let record = record(pending, after, changes, run, digest);
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
    FoundKey { parts, has_uncommitted, .. }: &FoundKey,
    changes: &TreeChanges,
    run: &EndedReuse<'_>,
    digest: &Digest,
) -> ReuseRecord {
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
            // Untracked files are no difference to the commit, but those that were read are not in it.
            is_dirty: !changes.as_committed || *has_uncommitted,
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
