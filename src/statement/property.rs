//! The properties that a simple verdict lists, each only where it is so.

use serde::{Deserialize, Serialize};

use super::subjects;
use crate::base::sandbox::SandboxMode;
use crate::engine::event::LoopComplete;
use crate::engine::verification::{Confirmed, JudgesStanding, VerifiedExtent};
use crate::report::digest::Digest;

/// Something that is so of a verified success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Property {
    /// Its last observation passed, and what passed holds for the tree on which it ended.
    #[serde(rename = "LL_LOOP_VERIFIED")]
    Verified,
    /// What decides what its checks say is as it was at the start, or there is more of it.
    #[serde(rename = "LL_LOOP_JUDGES_UNCHANGED")]
    JudgesUnchanged,
    /// Agents, and whatever ran after one, were held by a sandbox of ours.
    #[serde(rename = "LL_LOOP_SANDBOXED")]
    Sandboxed,
    /// Agents were asked, and none of them had a key.
    #[serde(rename = "LL_LOOP_NO_KEY")]
    NoKey,
    /// A person approved the tree on which it ended.
    #[serde(rename = "LL_LOOP_APPROVED")]
    Approved,
    /// An earlier run with the same inputs stands for it, or for a part of it.
    #[serde(rename = "LL_LOOP_REUSED")]
    Reused,
}

/// Why a property is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortfall {
    /// The run is no verified success, or not all of its journal is known.
    NotVerified,
    /// The items of a plan are verified, each without the changes of the others.
    EachAlone,
    /// Judges were changed, or may have been.
    JudgesChanged,
    /// Judges were changed, and the checks pass with those of the start as well.
    JudgesConfirmed,
    /// What keeps a check from looking was added.
    Suppressions,
    /// No action was confined.
    Unconfined,
    /// An agent, or something that ran after one, was not held entirely.
    Exposed,
    /// The loop or the command line wrote `off`.
    Off,
    /// It is a merge, whose items say for themselves how they were held.
    Merge,
    /// No agent was asked.
    NobodyAsked,
    /// An agent was asked that the broker does not know of.
    KeyAtHand,
    /// Nobody approved the tree on which the run ended.
    NotApproved,
    /// Everything was run.
    NotReused,
}

impl Shortfall {
    /// Says it in a few words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::NotVerified => "it is not a verified success",
            Self::EachAlone => "the items of the plan were checked each alone, and the whole never",
            Self::JudgesChanged => "what decides what the checks say was changed, or is not known",
            Self::JudgesConfirmed => {
                "what decides what the checks say was changed, and merely confirmed by the one of the start"
            }
            Self::Suppressions => "something was added that keeps a check from looking",
            Self::Unconfined => "no action was sandboxed",
            Self::Exposed => "an agent, or what ran after it, was not held by the sandbox in every part",
            Self::Off => "the sandbox was written `off`",
            Self::Merge => "a merge does not say how the actions of its items were held",
            Self::NobodyAsked => "no agent was asked",
            Self::KeyAtHand => "an agent was asked without the broker",
            Self::NotApproved => "nobody approved this tree",
            Self::NotReused => "everything was run",
        }
    }
}

impl Property {
    /// All of them, in the order in which they are listed.
    pub(crate) const ALL: [Self; 6] =
        [Self::Verified, Self::JudgesUnchanged, Self::Sandboxed, Self::NoKey, Self::Approved, Self::Reused];

    /// Returns the word that stands in a statement.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Verified => "LL_LOOP_VERIFIED",
            Self::JudgesUnchanged => "LL_LOOP_JUDGES_UNCHANGED",
            Self::Sandboxed => "LL_LOOP_SANDBOXED",
            Self::NoKey => "LL_LOOP_NO_KEY",
            Self::Approved => "LL_LOOP_APPROVED",
            Self::Reused => "LL_LOOP_REUSED",
        }
    }

    /// Tells whether it is so of a run, and why not.
    ///
    /// # Errors
    /// Why it is not so.
    pub(crate) fn check(self, digest: &Digest) -> Result<(), Shortfall> {
        match self {
            Self::Verified => verified(digest),
            Self::JudgesUnchanged => judges(digest),
            Self::Sandboxed => sandboxed(digest),
            Self::NoKey => no_key(digest),
            Self::Approved => approved(digest),
            Self::Reused => reused(digest),
        }
    }

    /// Returns those that are so of a run: none where it is not a verified success.
    pub(crate) fn of(digest: &Digest) -> Vec<Self> {
        if verified(digest).is_err() {
            return Vec::new();
        }
        Self::ALL.into_iter().filter(|property| property.check(digest).is_ok()).collect()
    }
}

fn verified(digest: &Digest) -> Result<(), Shortfall> {
    // What cannot be read, or what only a newer version understands, might take the success back.
    let is_known = !digest.is_broken_off() && digest.newer_schema().is_none();
    let is_success = digest.end().is_some_and(LoopComplete::is_verified_success);
    let verification = digest.verification().filter(|found| is_known && is_success && found.holds());
    match verification.ok_or(Shortfall::NotVerified)?.extent {
        VerifiedExtent::Whole => Ok(()),
        VerifiedExtent::EachAlone => Err(Shortfall::EachAlone),
    }
}

fn judges(digest: &Digest) -> Result<(), Shortfall> {
    let verification = digest.verification().ok_or(Shortfall::JudgesChanged)?;
    // A suppression may stand in a source, where it changes no judge and still keeps a check from looking.
    if !verification.suppressions.is_empty() {
        return Err(Shortfall::Suppressions);
    }
    match verification.judges.state {
        JudgesStanding::Unchanged | JudgesStanding::Added => Ok(()),
        JudgesStanding::Confirmed => Err(Shortfall::JudgesConfirmed),
        JudgesStanding::Changed | JudgesStanding::Unknown => Err(Shortfall::JudgesChanged),
    }
}

fn sandboxed(digest: &Digest) -> Result<(), Shortfall> {
    if digest.is_merge() {
        return Err(Shortfall::Merge);
    }
    let asked_off = digest
        .start()
        .is_some_and(|start| start.overrides.sandbox.as_deref() == Some(SandboxMode::Off.word()));
    let totals = digest.guarded().totals();
    // Before `exposed`, which an action that was left open by `off` mostly is as well.
    if asked_off || totals.off > 0 {
        Err(Shortfall::Off)
    } else if totals.exposed > 0 {
        Err(Shortfall::Exposed)
    } else if totals.sandboxed == 0 {
        Err(Shortfall::Unconfined)
    } else {
        Ok(())
    }
}

fn no_key(digest: &Digest) -> Result<(), Shortfall> {
    if digest.is_merge() {
        return Err(Shortfall::Merge);
    }
    let totals = digest.guarded().totals();
    match (totals.asked, totals.asked == totals.brokered) {
        (0, _) => Err(Shortfall::NobodyAsked),
        (_, false) => Err(Shortfall::KeyAtHand),
        (_, true) => Ok(()),
    }
}

fn approved(digest: &Digest) -> Result<(), Shortfall> {
    let is_approved =
        subjects::tree(digest).is_some_and(|tree| digest.guarded().approvals_of(tree).next().is_some());
    if is_approved { Ok(()) } else { Err(Shortfall::NotApproved) }
}

fn reused(digest: &Digest) -> Result<(), Shortfall> {
    let checks = digest.verification().map(|verification| verification.checks.iter());
    let is_in_part = checks.into_iter().flatten().any(|check| check.confirmed == Confirmed::Reused);
    if digest.reused().is_some() || is_in_part { Ok(()) } else { Err(Shortfall::NotReused) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{begun, checked, ended, id, succeed, verification, verified};
    use super::*;
    use crate::base::sum::Sum;
    use crate::base::time::Timestamp;
    use crate::engine::event::{ActionComplete, Event, Handoff, HandoffReason, LoopResume, ResumeReason};
    use crate::engine::outcome::Outcome;
    use crate::engine::question::{AnswerKind, AnswerWay, Awaiting, GivenAnswer};
    use crate::engine::reused::ReusedRun;
    use crate::engine::sandbox_event::SandboxEvent;
    use crate::evaluate::model::{Usage, WireUsage};
    use crate::evaluate::observation::Observation;
    use crate::judges::found_judges::Suppression;
    use crate::report::testing::{Journal, state};

    #[track_caller]
    fn is_so(property: Property, journal: &Journal) {
        assert_eq!(property.check(&journal.digest()), Ok(()));
        assert!(Property::of(&journal.digest()).contains(&property));
    }

    #[track_caller]
    fn is_not(property: Property, journal: &Journal, why: Shortfall) {
        assert_eq!(property.check(&journal.digest()), Err(why));
        assert!(!Property::of(&journal.digest()).contains(&property));
    }

    /// A run in which an agent was asked before its check.
    fn with_agent(confined: &[SandboxEvent], wire: Option<WireUsage>) -> Journal {
        let mut journal = checked();
        prompt(&mut journal, confined, wire);
        journal
    }

    fn prompt(journal: &mut Journal, confined: &[SandboxEvent], wire: Option<WireUsage>) {
        journal.begin("fix", "coder");
        for event in confined {
            journal.push(Event::Sandbox(event.clone()));
        }
        let usage = Usage { calls: 1, wire, ..Usage::default() };
        let seen = Observation::exited(0, "");
        journal.push(Event::ActionComplete(ActionComplete { step: 2, seen, usage: Some(usage) }));
    }

    /// The check after the agent.
    fn check_again(journal: &mut Journal, confined: &[SandboxEvent]) {
        journal.enter("check", 2).act("make");
        for event in confined {
            journal.push(Event::Sandbox(event.clone()));
        }
        journal.done(0, "", "");
    }

    fn held() -> SandboxEvent {
        SandboxEvent { engine: "bwrap".into(), mode: "workspace".into(), ..SandboxEvent::default() }
    }

    #[test]
    fn verified_is_a_success_whose_verdicts_hold_for_the_whole() {
        is_so(Property::Verified, &verified());
        let changed = |change: fn(&mut Journal), why| {
            let mut journal = verified();
            change(&mut journal);
            is_not(Property::Verified, &journal, why);
            assert_eq!(Property::of(&journal.digest()), []);
        };
        changed(|journal| ended(journal).verified = false, Shortfall::NotVerified);
        changed(|journal| ended(journal).outcome = Outcome::Failure, Shortfall::NotVerified);
        changed(|journal| ended(journal).verification = None, Shortfall::NotVerified);
        changed(|journal| begun(journal).schema += 1, Shortfall::NotVerified);
        changed(
            |journal| verification(journal).reasons.push(crate::engine::verification::Reason::Stale),
            Shortfall::NotVerified,
        );
        changed(|journal| verification(journal).extent = VerifiedExtent::EachAlone, Shortfall::EachAlone);
        let mut broken = verified().digest();
        broken.breaks_off("line 9".into());
        assert_eq!(Property::Verified.check(&broken), Err(Shortfall::NotVerified));
        is_not(Property::Verified, &checked(), Shortfall::NotVerified);
    }

    #[test]
    fn judges_that_were_merely_confirmed_are_not_unchanged() {
        is_so(Property::JudgesUnchanged, &verified());
        let with = |standing| {
            let mut journal = verified();
            verification(&mut journal).judges.state = standing;
            journal
        };
        is_so(Property::JudgesUnchanged, &with(JudgesStanding::Added));
        is_not(Property::JudgesUnchanged, &with(JudgesStanding::Confirmed), Shortfall::JudgesConfirmed);
        is_not(Property::JudgesUnchanged, &with(JudgesStanding::Changed), Shortfall::JudgesChanged);
        is_not(Property::JudgesUnchanged, &with(JudgesStanding::Unknown), Shortfall::JudgesChanged);
        let mut journal = verified();
        let suppression = Suppression { path: "a.py".into(), line: 1, text: "# noqa".into() };
        verification(&mut journal).suppressions.push(suppression);
        is_not(Property::JudgesUnchanged, &journal, Shortfall::Suppressions);
    }

    #[test]
    fn sandboxed_is_an_agent_and_all_after_it() {
        let mut journal = with_agent(&[held()], None);
        check_again(&mut journal, &[held()]);
        succeed(&mut journal);
        is_so(Property::Sandboxed, &journal);
        begun(&mut journal).overrides.sandbox = Some("off".into());
        is_not(Property::Sandboxed, &journal, Shortfall::Off);

        is_not(Property::Sandboxed, &verified(), Shortfall::Unconfined);

        let mut journal = with_agent(&[held()], None);
        check_again(&mut journal, &[]);
        succeed(&mut journal);
        is_not(Property::Sandboxed, &journal, Shortfall::Exposed);

        for open in ["host", "none"] {
            let mut journal = with_agent(&[SandboxEvent { engine: open.into(), ..held() }], None);
            succeed(&mut journal);
            is_not(Property::Sandboxed, &journal, Shortfall::Exposed);
        }
        let mut journal = with_agent(&[SandboxEvent { missing: vec!["network".into()], ..held() }], None);
        succeed(&mut journal);
        is_not(Property::Sandboxed, &journal, Shortfall::Exposed);

        let mut journal = checked();
        check_again(&mut journal, &[SandboxEvent::off()]);
        prompt(&mut journal, &[held()], None);
        succeed(&mut journal);
        is_not(Property::Sandboxed, &journal, Shortfall::Off);

        let mut journal = with_agent(&[held()], None);
        succeed(&mut journal);
        begun(&mut journal).merges = Some(Sum::of(b"plan"));
        is_not(Property::Sandboxed, &journal, Shortfall::Merge);
        is_not(Property::NoKey, &journal, Shortfall::Merge);
    }

    #[test]
    fn loops_below_the_closing_pass_and_earlier_parts_are_held_too() {
        let mut journal = with_agent(&[held()], None);
        check_again(&mut journal, &[]);
        let inner = journal.events.len() - 4..journal.events.len();
        for event in &mut journal.events[inner] {
            event.depth = 1;
        }
        succeed(&mut journal);
        is_not(Property::Sandboxed, &journal, Shortfall::Exposed);

        let mut journal = with_agent(&[held()], None);
        let proof = crate::engine::event::ClosingPassProof {
            tests: vec!["t".into()],
            check: "check".into(),
            verdict: crate::evaluate::verdict::Verdict::new("yes"),
            passed: true,
            exit_code: 0,
            duration_ms: 1,
        };
        journal.push(Event::ClosingPassProof(proof));
        succeed(&mut journal);
        is_not(Property::Sandboxed, &journal, Shortfall::Exposed);

        // An agent that was asked in an earlier part, without a sandbox and a broker.
        let mut journal = with_agent(&[], None);
        resume(&mut journal);
        prompt(&mut journal, &[held()], Some(WireUsage::default()));
        succeed(&mut journal);
        is_not(Property::Sandboxed, &journal, Shortfall::Exposed);
        is_not(Property::NoKey, &journal, Shortfall::KeyAtHand);
    }

    fn resume(journal: &mut Journal) {
        journal.push(Event::LoopResume(LoopResume {
            from_state: state("fix"),
            iteration: 2,
            step: 2,
            reason: ResumeReason::Handoff,
            continuation: None,
            keeps_sessions: false,
            tree_changed: false,
            changes: crate::engine::event::ResumeChanges::default(),
        }));
    }

    #[test]
    fn no_key_is_every_agent_through_the_broker() {
        let wire = Some(WireUsage::default());
        let mut journal = with_agent(&[], wire);
        succeed(&mut journal);
        is_so(Property::NoKey, &journal);
        is_not(Property::NoKey, &verified(), Shortfall::NobodyAsked);

        let mut journal = with_agent(&[], wire);
        prompt(&mut journal, &[], None);
        succeed(&mut journal);
        is_not(Property::NoKey, &journal, Shortfall::KeyAtHand);

        let mut journal = with_agent(&[], wire);
        let usage = Usage { calls: 1, ..Usage::default() };
        journal.push(Event::Judge { state: state("check"), usage, error: None });
        succeed(&mut journal);
        is_not(Property::NoKey, &journal, Shortfall::KeyAtHand);
    }

    fn ask(journal: &mut Journal, tree: char) -> Sum {
        let digest = Sum::of(&[u8::try_from(tree).unwrap()]);
        let awaiting = Awaiting {
            question: "ship it?".into(),
            options: AnswerKind::OFFERED.to_vec(),
            asked_at: Timestamp::from_millis(0),
            state: state("ask"),
            tree: Some(id(tree)),
            sha: Some(id('c')),
            digest,
            code: "12345678".into(),
            approvers: None,
            until: Timestamp::from_millis(0),
            asked_in: None,
            asked_anew: false,
        };
        journal.push(Event::Handoff(Handoff {
            state: state("ask"),
            reason: HandoffReason::Question,
            message: "a person is asked".into(),
            continuation: None,
            behavior: crate::machine::OnHandoff::Pause,
            awaiting: Some(Box::new(awaiting)),
        }));
        digest
    }

    fn answer(journal: &mut Journal, digest: Sum, verdict: AnswerKind) {
        journal.push(Event::Approval(GivenAnswer {
            who: "mona".into(),
            id: Some(1),
            comment: Some(2),
            at: Timestamp::from_millis(0),
            sha: Some(id('c')),
            verdict,
            text: None,
            digest: Some(digest),
            by: AnswerWay::Comment,
            environment: None,
        }));
    }

    #[test]
    fn approved_is_the_last_word_about_the_final_tree() {
        let of = |tree, verdicts: &[AnswerKind]| {
            let mut journal = checked();
            let digest = ask(&mut journal, tree);
            for verdict in verdicts {
                answer(&mut journal, digest, *verdict);
            }
            succeed(&mut journal);
            journal
        };
        is_so(Property::Approved, &of('d', &[AnswerKind::Approve]));
        is_not(Property::Approved, &of('e', &[AnswerKind::Approve]), Shortfall::NotApproved);
        is_not(Property::Approved, &of('d', &[AnswerKind::Reject]), Shortfall::NotApproved);
        is_not(Property::Approved, &of('d', &[AnswerKind::Answer]), Shortfall::NotApproved);
        is_not(
            Property::Approved,
            &of('d', &[AnswerKind::Approve, AnswerKind::Reject]),
            Shortfall::NotApproved,
        );
        is_not(Property::Approved, &verified(), Shortfall::NotApproved);
        // An answer to the run that this one was rewound from.
        let mut rewound = of('d', &[AnswerKind::Approve]);
        rewound.events.iter_mut().for_each(|event| event.inherited = true);
        is_not(Property::Approved, &rewound, Shortfall::NotApproved);
    }

    #[test]
    fn reused_is_a_run_or_a_check_of_an_earlier_one() {
        let mut journal = verified();
        verification(&mut journal).checks[0].confirmed = Confirmed::Reused;
        is_so(Property::Reused, &journal);
        is_not(Property::Reused, &verified(), Shortfall::NotReused);

        let mut journal = checked();
        journal.push(Event::Reused(Box::new(ReusedRun {
            key: Sum::of(b"key"),
            run: "main-1".into(),
            commit: id('c'),
            tree: id('d'),
            is_dirty: false,
            when: Timestamp::from_millis(0),
            duration_ms: 1,
            link: None,
            final_state: state("done"),
            checks: Vec::new(),
            states: Vec::new(),
            has_uncommitted: false,
        })));
        succeed(&mut journal);
        is_so(Property::Reused, &journal);
        is_not(Property::Sandboxed, &journal, Shortfall::Unconfined);
    }
}
