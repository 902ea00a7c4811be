//! Which ways out of its states a loop has, and which of them runs have taken.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::name::StateName;
use crate::base::path::DocPath;
use crate::board::OperationKind;
use crate::definition::schema::Loop;
use crate::engine::event::{Event, RouteReason, Stamped};
use crate::engine::outcome::TerminatedBy;
use crate::evaluate::Evaluate;
use crate::evaluate::verdict::Verdict;
use crate::machine::check::place_of_way;
use crate::machine::explore::{BOUND, Exploration, Situation, explore};
use crate::machine::routing::{ActionEnd, Move, Reason, RouteKey, moves};
use crate::machine::{Action, EndId, Machine, Step, StepId, Target, routing};

/// What stands in place of a state where any of them can be left.
const ANYWHERE: &str = "(any state)";

/// The words for ways that no verdict has.
const NEXT: &str = "next";
const ANY_OTHER: &str = "_";
const EXHAUSTED: &str = "retries exhausted";
const REPEAT: &str = "repeat";

/// The way back into a check that failed and is known to waver.
const FLAKY: &str = "flaky";
const STALL: &str = "stall";
const MAINTAIN: &str = "maintain";
const MAX_ITERATIONS: &str = "max_iterations";
const MAX_STEPS: &str = "max_steps";

/// A way out of a state, by the state and the word for which it is taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId {
    /// The state.
    pub from: String,
    /// The verdict, or what else leads this way.
    pub word: String,
}

impl EdgeId {
    fn new(from: impl Into<String>, word: impl Into<String>) -> Self {
        Self { from: from.into(), word: word.into() }
    }
}

/// A way out of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopEdge {
    /// Which.
    pub id: EdgeId,
    /// Where it leads.
    pub to: StateName,
    /// Where in the loop file it is written.
    pub key: DocPath,
    /// Whether some run can take it.
    pub is_reachable: bool,
}

/// The ways of a loop, and how often each was taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coverage {
    /// The ways, in the order of the file.
    pub edges: Vec<LoopEdge>,
    /// How often each was taken.
    pub taken: BTreeMap<EdgeId, u64>,
    /// How often each state was entered for the first time in a run, and again.
    pub visits: BTreeMap<String, StateVisits>,
}

/// How often a state was entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateVisits {
    /// For the first time in a run.
    pub first: u64,
    /// Again in the same run.
    pub again: u64,
    /// As the last step before a cap that is written, and small.
    pub before_cap: u64,
}

/// A cap above this is never met in tests.
const SMALL_CAP: u32 = 20;

/// Returns every way of a machine.
pub fn edges(machine: &Machine, definition: &Loop) -> Vec<LoopEdge> {
    let all = explore(machine, BOUND);
    let mut edges = Vec::new();
    let mut seen = BTreeSet::new();
    let mut add = |edge: LoopEdge| {
        // Moves that differ only in how the action ended fall under one word, and are one way.
        if seen.insert(edge.id.clone()) {
            edges.push(edge);
        }
    };
    for (id, step) in machine.steps() {
        let is_reachable = is_left(&all, Target::Step(id));
        for one in moves(machine, id) {
            let (Some(word), Some(to)) = (word(step, &one), one.to) else { continue };
            let key = match &one.way {
                _ if one.is_exhausted => state(&step.name).key("on_retry_exhausted"),
                Some(way) => place_of_way(definition, step, &way.key),
                None => state(&step.name),
            };
            let to = machine.name_of(to).clone();
            let is_never = is_never_answered(machine, step, &word) || is_read_otherwise(step, &one, &word);
            let is_reachable = is_reachable && !is_never;
            add(LoopEdge { id: EdgeId::new(step.name.as_str(), word), to, key, is_reachable });
        }
    }
    for (id, end) in machine.ends() {
        if machine.maintain.is_some() {
            add(restart(machine, id, &end.name, is_left(&all, Target::End(id))));
        }
    }
    handlers(machine, &all).into_iter().for_each(add);
    edges
}

/// Tells whether the board never answers this: it always finds what comes next, splits no task where none may be, and
/// aborts only what a supervisor judges.
fn is_never_answered(machine: &Machine, step: &Step, word: &str) -> bool {
    let Some(Action::Board(board)) = &step.action else { return false };
    match board.kind {
        OperationKind::Next | OperationKind::Recover => word == Verdict::error().as_str(),
        OperationKind::Fail if word == "replan" => machine.board.depth == 0,
        OperationKind::Fail | OperationKind::Tick => word == "abort" && !board.params.contains_key("level"),
        OperationKind::Load
        | OperationKind::Approve
        | OperationKind::Pass
        | OperationKind::Split
        | OperationKind::GiveUp => false,
    }
}

/// Tells whether a word that stands for any other never falls, because answers with it are read as `yes` or `no`.
fn is_read_otherwise(step: &Step, one: &Move, word: &str) -> bool {
    let Some(Evaluate::Answer(answered)) = &step.evaluate else { return false };
    let is_any_other = one.way.as_ref().is_some_and(|way| matches!(way.key, RouteKey::AnyOther));
    is_any_other && answered.reads(word)
}

fn state(name: &StateName) -> DocPath {
    DocPath::root().key("states").key(name.as_str())
}

/// Tells whether a run leaves a state by its routes: after the handler of a cap it does not.
fn is_left(all: &Exploration, at: Target) -> bool {
    [true, false].iter().any(|verified| all.contains(Situation { at, verified: *verified, capped: false }))
}

fn restart(machine: &Machine, id: EndId, name: &StateName, is_reachable: bool) -> LoopEdge {
    let to = machine.end(id).on_maintain;
    let key = match to {
        Some(_) => state(name).key("on_maintain"),
        None => DocPath::root().key("maintain"),
    };
    let to = machine.name_of(to.unwrap_or(machine.initial)).clone();
    LoopEdge { id: EdgeId::new(name.as_str(), MAINTAIN), to, key, is_reachable }
}

/// Returns the ways that can be taken from any state.
fn handlers(machine: &Machine, all: &Exploration) -> Vec<LoopEdge> {
    let limits = machine.limits;
    // Where nothing comes again there is one pass: neither a cap on passes nor a stall can be met.
    let comes_again = has_cycle(machine);
    let steps = limits.steps.and_then(|cap| cap.handler).map(|to| (MAX_STEPS, "on_max_steps", to, true));
    let iterations = limits.iterations.handler;
    let iterations = iterations.map(|to| (MAX_ITERATIONS, "on_max_iterations", to, comes_again));
    let caps = iterations.into_iter().chain(steps).map(|(word, key, to, can_be_met)| {
        let capped = |verified| Situation { at: to, verified, capped: true };
        LoopEdge {
            id: EdgeId::new(ANYWHERE, word),
            to: machine.name_of(to).clone(),
            key: DocPath::root().key(key),
            is_reachable: can_be_met && (all.contains(capped(true)) || all.contains(capped(false))),
        }
    });
    let stall = machine.stall.and_then(|stall| stall.to).map(|to| LoopEdge {
        id: EdgeId::new(ANYWHERE, STALL),
        to: machine.name_of(to).clone(),
        key: DocPath::root().key("stall").key("action"),
        is_reachable: comes_again && all.reaches(to),
    });
    caps.chain(stall).collect()
}

/// Tells whether a run can enter a state again.
pub fn has_cycle(machine: &Machine) -> bool {
    let mut next: BTreeMap<StepId, BTreeSet<StepId>> = BTreeMap::new();
    for (id, _) in machine.steps() {
        let targets = moves(machine, id).into_iter().filter_map(|one| one.to);
        let steps = targets.filter_map(|to| match to {
            Target::Step(to) => Some(to),
            Target::End(_) => None,
        });
        next.entry(id).or_default().extend(steps);
    }
    if machine.maintain.is_some() {
        return true;
    }
    // What leads nowhere is taken away until nothing is left, or only circles.
    loop {
        let (left, before): (BTreeSet<StepId>, usize) = (next.keys().copied().collect(), next.len());
        next.retain(|_, to| to.iter().any(|to| left.contains(to)));
        match next.len() {
            0 => return false,
            after if after == before => return true,
            _ => {}
        }
    }
}

/// Returns the word for a move that is a way of its own, if it is one.
fn word(step: &Step, one: &Move) -> Option<String> {
    if one.is_exhausted {
        return Some(EXHAUSTED.to_owned());
    }
    let way = one.way.as_ref()?;
    let verdict = &one.departure.verdict;
    let is_failure = verdict.is_error() || verdict.is_timeout();
    match &way.key {
        RouteKey::Unjudged => None,
        RouteKey::Repeat => Some(REPEAT.to_owned()),
        RouteKey::Flaky => Some(FLAKY.to_owned()),
        // `next` is one way, however the action ended.
        RouteKey::Next => (one.departure.ended == ActionEnd::Well).then(|| NEXT.to_owned()),
        // A sub-loop that is stopped takes the way of one that failed, unless there is a way for that.
        RouteKey::On(key) if is_failure && routing::is_sub_loop(step) && way.reason == Reason::Verdict => {
            (key == verdict).then(|| verdict.to_string())
        }
        // A timeout that goes the way of errors is one in the journal.
        RouteKey::AnyError if verdict.is_timeout() && !routing::is_sub_loop(step) => {
            Some(Verdict::error().to_string())
        }
        RouteKey::On(key) if verdict.is_timeout() && key.is_error() && !routing::is_sub_loop(step) => {
            Some(key.to_string())
        }
        RouteKey::AnyOther if one.departure.is_any_other => Some(ANY_OTHER.to_owned()),
        RouteKey::On(_) | RouteKey::AnyError | RouteKey::AnyOther | RouteKey::Loop(_) => {
            Some(verdict.to_string())
        }
    }
}

impl Coverage {
    /// Begins with the ways of a loop, none of them taken.
    pub fn of(machine: &Machine, definition: &Loop) -> Self {
        Self { edges: edges(machine, definition), ..Self::default() }
    }

    /// Adds what the runs of another file have taken, of the same loop.
    pub fn add(&mut self, other: Self) {
        for (id, count) in other.taken {
            *self.taken.entry(id).or_default() += count;
        }
    }

    /// Returns how many of the ways that a run can take were taken, and how many there are: those of a state, or all.
    pub fn counts(&self, state: Option<&str>) -> (usize, usize) {
        let of = |edge: &&LoopEdge| state.is_none_or(|state| edge.id.from == state);
        let taken = self.reachable().filter(of).filter(|edge| self.taken.contains_key(&edge.id));
        (taken.count(), self.reachable().filter(of).count())
    }

    /// Counts what a run has taken.
    pub fn take(&mut self, machine: &Machine, events: &[Stamped]) {
        let ended = events.iter().rev().find_map(|stamped| {
            let Event::LoopComplete(end) = &stamped.event else { return None };
            (stamped.depth == 0).then_some(end.terminated_by)
        });
        let mut said: Option<String> = None;
        let mut entered: BTreeSet<String> = BTreeSet::new();
        let mut last = None;
        // The ways are those of this machine; a sub-loop has its own, and tests of its own.
        for stamped in events.iter().filter(|stamped| stamped.depth == 0) {
            if let Event::StateEnter { state, .. } = &stamped.event {
                said = None;
                self.enter(state, entered.insert(state.to_string()));
                last = Some(state.to_string());
            } else if let Event::Evaluate { verdict, .. } = &stamped.event {
                said = Some(verdict.to_string());
            } else if let Event::Board(board) = &stamped.event {
                said = Some(board.verdict.to_string());
            } else if let Event::Route { from, reason, verdict, .. } = &stamped.event {
                let said = said.take().or_else(|| verdict.as_ref().map(ToString::to_string));
                let id = self.id(from, *reason, said, ended);
                if let Some(id) = id {
                    *self.taken.entry(id).or_default() += 1;
                }
            }
        }
        let small = |limit: Option<u32>| limit.is_some_and(|limit| limit <= SMALL_CAP);
        let by_cap = match ended {
            Some(TerminatedBy::MaxIterations) => small(Some(machine.limits.iterations.limit)),
            Some(TerminatedBy::MaxSteps) => small(machine.limits.steps.map(|cap| cap.limit)),
            Some(_) | None => false,
        };
        if let (true, Some(last)) = (by_cap, last) {
            self.visits.entry(last).or_default().before_cap += 1;
        }
    }

    fn enter(&mut self, state: &StateName, is_first: bool) {
        let visits = self.visits.entry(state.to_string()).or_default();
        if is_first {
            visits.first += 1;
        } else {
            visits.again += 1;
        }
    }

    /// Returns the way that a run took from a state.
    fn id(
        &self,
        from: &StateName,
        reason: RouteReason,
        said: Option<String>,
        ended: Option<TerminatedBy>,
    ) -> Option<EdgeId> {
        let from = from.as_str();
        match reason {
            RouteReason::Next => Some(EdgeId::new(from, NEXT)),
            RouteReason::RetryExhausted => Some(EdgeId::new(from, EXHAUSTED)),
            RouteReason::Repeat => Some(EdgeId::new(from, REPEAT)),
            RouteReason::Flaky => Some(EdgeId::new(from, FLAKY)),
            RouteReason::Maintain => Some(EdgeId::new(from, MAINTAIN)),
            RouteReason::Stall => Some(EdgeId::new(ANYWHERE, STALL)),
            RouteReason::Unjudged => None,
            RouteReason::Cap => {
                // The event does not say which cap it was. A run meets one at most, and its end names it.
                let word = if ended == Some(TerminatedBy::MaxSteps) { MAX_STEPS } else { MAX_ITERATIONS };
                Some(EdgeId::new(ANYWHERE, word))
            }
            RouteReason::Verdict | RouteReason::Error => {
                let exact = EdgeId::new(from, said.unwrap_or_else(|| "error".to_owned()));
                // A verdict without a way of its own took that of any other word.
                let is_known = self.edges.iter().any(|edge| edge.id == exact);
                Some(if is_known { exact } else { EdgeId::new(from, ANY_OTHER) })
            }
        }
    }

    /// Returns the ways that some run can take.
    pub fn reachable(&self) -> impl Iterator<Item = &LoopEdge> {
        self.edges.iter().filter(|edge| edge.is_reachable)
    }

    /// Returns those that no run has taken.
    pub fn uncovered(&self) -> impl Iterator<Item = &LoopEdge> {
        self.reachable().filter(|edge| self.count(edge) == 0)
    }

    /// Returns how often a way was taken.
    pub fn count(&self, edge: &LoopEdge) -> u64 {
        self.taken.get(&edge.id).copied().unwrap_or(0)
    }

    /// Returns the share of the ways that were taken, in percent; 100 where there are none.
    pub fn percent(&self) -> f64 {
        let all = self.reachable().count();
        let taken = all - self.uncovered().count();
        share(taken, all)
    }

    /// Says which ways no run has taken, each at its place in the loop file.
    pub fn findings(&self) -> Diagnostics {
        let mut findings = Diagnostics::default();
        for edge in self.uncovered() {
            let message = format!("no test takes the way of {} to `{}`", edge.id.words(), edge.to);
            let place = FindingPlace::Key(edge.key.clone());
            findings.push(Diagnostic::note("uncovered", place, message));
        }
        findings
    }
}

/// Returns a share in percent; 100 of nothing.
pub fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 100.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 of anything here")]
    let (part, whole) = (part as f64, whole as f64);
    100.0 * part / whole
}

impl EdgeId {
    /// Says which way it is.
    pub fn words(&self) -> String {
        if self.from == ANYWHERE {
            format!("`{}`", self.word)
        } else {
            format!("`{}` of `{}`", self.word, self.from)
        }
    }
}
