//! The codes of the links of a chain. They stay the same from version to version, and `explain` knows each of them.

use crate::engine::event::{HandoffReason, RouteReason};
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::engine::verification::Reason;
use crate::evaluate::Evaluate;
use crate::evaluate::verdict::Observes;

/// Words for who judges beside the evaluators.
const OTHERS: [&str; 4] = ["board", "human_approval", "learning", "sub_loop"];

/// What kind of link it is, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The run, or a loop that it ran, had this outcome.
    Outcome(Outcome),
    /// It succeeded, and nothing verified that.
    Unverified,
    /// Its journal stops before its end.
    Incomplete,
    /// This ended it.
    End(TerminatedBy),
    /// It was saved for a later one, for this reason.
    Saved(HandoffReason),
    /// A success that was not verified counts as a failure.
    Strict,
    /// This rule chose the next state.
    Route(RouteReason),
    /// No way fits the verdict.
    NoRoute,
    /// A verdict fell, which says this about the work.
    Verdict(Observes),
    /// No verdict fell.
    NoVerdict,
    /// This evaluator, by its word.
    Evaluator(&'static str),
    /// An evaluator that this version does not know.
    AnotherEvaluator,
    /// The action was not judged.
    NoEvaluator,
    /// The last lines of what was printed.
    Output,
    /// What was wrong, or the reason that was given.
    Reason,
    /// The tasks that are not done.
    Tasks,
    /// What changed in the working tree.
    Changes,
    /// Why it is not verified.
    Verification(Reason),
}

impl Code {
    /// Returns the code of an evaluator.
    pub(super) fn of_evaluator(name: &str) -> Self {
        // Each code has an explanation, so that only a word that this version knows makes one: a journal may hold any name.
        let known = Evaluate::NAMES.iter().chain(&OTHERS).find(|known| **known == name);
        known.map_or(Self::AnotherEvaluator, |known| Self::Evaluator(known))
    }

    /// Returns the kind of link.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Outcome(_) | Self::Unverified | Self::Incomplete => "outcome",
            Self::End(_) | Self::Saved(_) | Self::Strict => "terminal",
            Self::Route(_) | Self::NoRoute => "route",
            Self::Verdict(_) | Self::NoVerdict => "verdict",
            Self::Evaluator(_) | Self::AnotherEvaluator | Self::NoEvaluator => "evaluator",
            Self::Output | Self::Reason | Self::Tasks | Self::Changes => "evidence",
            Self::Verification(_) => "verification",
        }
    }

    /// Returns the code as it is written.
    pub fn word(self) -> String {
        let which = match self {
            Self::Outcome(outcome) => outcome.word().to_owned(),
            Self::Unverified | Self::Strict => "unverified".to_owned(),
            Self::Incomplete => "incomplete".to_owned(),
            Self::End(by) => end(by).to_owned(),
            Self::Saved(reason) => saved(reason).to_owned(),
            Self::Route(reason) => route(reason).to_owned(),
            Self::NoRoute | Self::NoVerdict | Self::NoEvaluator => "none".to_owned(),
            Self::Verdict(observes) => observed(observes).to_owned(),
            Self::Evaluator(name) => name.to_owned(),
            Self::AnotherEvaluator => "other".to_owned(),
            Self::Output => "output".to_owned(),
            Self::Reason => "reason".to_owned(),
            Self::Tasks => "tasks".to_owned(),
            Self::Changes => "changes".to_owned(),
            Self::Verification(reason) => reason.word().to_owned(),
        };
        format!("{}-{}", self.kind(), which.replace('_', "-"))
    }

    /// Returns every code there is: each of them is explained.
    #[cfg(test)]
    pub fn all() -> impl Iterator<Item = Self> {
        let outcomes =
            Outcome::ALL.into_iter().map(Self::Outcome).chain([Self::Unverified, Self::Incomplete]);
        let ends = TerminatedBy::ALL.into_iter().map(Self::End).chain([Self::Strict]);
        // That of a signal is the word of its end.
        let saved = HandoffReason::ALL.into_iter().filter(|reason| *reason != HandoffReason::Signal);
        let ends = ends.chain(saved.map(Self::Saved));
        let routes = RouteReason::ALL.into_iter().map(Self::Route).chain([Self::NoRoute]);
        let observed = [Observes::Passing, Observes::Failing, Observes::Nothing];
        let verdicts = observed.into_iter().map(Self::Verdict).chain([Self::NoVerdict]);
        let names = Evaluate::NAMES.iter().copied().chain(OTHERS);
        let evaluators = names.map(Self::Evaluator).chain([Self::AnotherEvaluator, Self::NoEvaluator]);
        let evidence = [Self::Output, Self::Reason, Self::Tasks, Self::Changes];
        let reasons = Reason::ALL.into_iter().map(Self::Verification);
        let all = outcomes.chain(ends).chain(routes).chain(verdicts).chain(evaluators);
        all.chain(evidence).chain(reasons)
    }
}

fn end(by: TerminatedBy) -> &'static str {
    match by {
        TerminatedBy::Terminal => "reached",
        TerminatedBy::UncommittedChanges => "uncommitted-changes",
        TerminatedBy::NotConfirmed => "not-confirmed",
        TerminatedBy::MaxIterations => "max-iterations",
        TerminatedBy::MaxSteps => "max-steps",
        TerminatedBy::MaxEdgeRevisits => "max-edge-revisits",
        TerminatedBy::Error => "error",
        TerminatedBy::Blocked => "blocked",
        TerminatedBy::Timeout => "timeout",
        TerminatedBy::Handoff => "handoff",
        TerminatedBy::Interrupted => "interrupted",
        TerminatedBy::LeaseLost => "lease-lost",
        TerminatedBy::Cancelled => "cancelled",
        TerminatedBy::Stall => "stall",
        TerminatedBy::FatalError => "fatal-error",
        TerminatedBy::LoopStop => "loop-stop",
        TerminatedBy::Budget => "budget",
        TerminatedBy::Unavailable => "unavailable",
        TerminatedBy::NotRecorded => "not-recorded",
        TerminatedBy::JournalLost => "journal-lost",
        TerminatedBy::Killed => "killed",
    }
}

/// A hand-off that an action asked for is the usual one, and has the word of its end.
fn saved(reason: HandoffReason) -> &'static str {
    match reason {
        HandoffReason::Signal => end(TerminatedBy::Handoff),
        HandoffReason::Deadline => "deadline",
        HandoffReason::LlmDisabled => "llm-disabled",
        HandoffReason::Quota => "quota",
        HandoffReason::Question => "question",
    }
}

fn route(reason: RouteReason) -> &'static str {
    match reason {
        RouteReason::Verdict => "verdict",
        RouteReason::Next => "next",
        RouteReason::Error => "error",
        RouteReason::RetryExhausted => "retry-exhausted",
        RouteReason::Maintain => "maintain",
        RouteReason::Cap => "cap",
        RouteReason::Stall => "stall",
        RouteReason::Unjudged => "unjudged",
        RouteReason::Repeat => "repeat",
        RouteReason::Flaky => "flaky",
    }
}

fn observed(observes: Observes) -> &'static str {
    match observes {
        Observes::Passing => "passing",
        Observes::Failing => "failing",
        Observes::Nothing => "neutral",
    }
}
