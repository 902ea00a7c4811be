//! Where a state leads: the one place that knows in which order the ways of a state and of its loop are tried. A run
//! asks it what happens next, the checks ask it what can happen.

use super::{Action, JudgedBy, Machine, Routes, Step, StepId, Target};
use crate::evaluate::verdict::{Observes, Verdict};
use crate::evaluate::{Evaluate, Verdicts};

/// How the action of a state ended, as far as the way depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionEnd {
    /// There was none, or it did what it was asked to.
    Well,
    /// It exited with another code than zero, or could not be started.
    Badly,
    /// It took too long.
    Late,
}

/// Why a way is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is the way of the verdict.
    Verdict,
    /// It is the way whatever happened.
    Next,
    /// It is the way of errors.
    Error,
    /// The check could not judge, and the state is entered once more.
    Unjudged,
    /// It has to pass more often.
    Repeat,
    /// It failed, and is known to waver.
    Flaky,
}

/// The key of a loop file that holds a way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteKey {
    /// `next` of the state.
    Next,
    /// The state's route for this verdict.
    On(Verdict),
    /// `_error` of the state.
    AnyError,
    /// `_` of the state.
    AnyOther,
    /// `on_error`, `on_timeout` or `on_blocked` of the loop.
    Loop(&'static str),
    /// `repeat` of the state.
    Repeat,
    /// `flaky` of the state.
    Flaky,
    /// None: a judge that cannot judge is asked again.
    Unjudged,
}

/// A way out of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WayOut {
    /// Where it leads.
    pub to: Target,
    /// The verdict for which it is taken; absent for `next`.
    pub verdict: Option<Verdict>,
    /// Why it is taken.
    pub reason: Reason,
    /// Where it is written.
    pub key: RouteKey,
}

/// Finds the way out of a state, the state's own ways before the loop's. The verdict counts where ways depend on it,
/// the end of the action where they do not. None: nothing fits.
pub fn way(machine: &Machine, step: &Step, verdict: &Verdict, ended: ActionEnd) -> Option<WayOut> {
    match &step.routes {
        Routes::Always { next, on_error, on_timeout, .. } => {
            let (to, key) = match (ended, on_timeout, on_error) {
                (ActionEnd::Late, Some(to), _) => (to, Some(Verdict::timeout())),
                // An action that took too long has failed, too, so without a way for that it takes the way of errors.
                (ActionEnd::Late | ActionEnd::Badly, _, Some(to)) => (to, Some(Verdict::error())),
                _ => (next, None),
            };
            Some(match key {
                Some(verdict) => WayOut {
                    to: *to,
                    key: RouteKey::On(verdict.clone()),
                    verdict: Some(verdict),
                    reason: Reason::Error,
                },
                None => WayOut { to: *to, verdict: None, reason: Reason::Next, key: RouteKey::Next },
            })
        }
        Routes::ByVerdict { .. } => by_verdict(machine, step, verdict),
    }
}

/// How often in a row a state is entered again because its check could not judge.
// As often as little-loops enters the state again.
const MOST_UNJUDGED: u32 = 2;

/// Returns the way back into a state whose check could not judge, and that names no way for that. It is taken a few times in a
/// row before the ways of errors are.
pub fn unjudged(step: &Step, id: StepId, verdict: &Verdict, times: u32) -> Option<WayOut> {
    let Routes::ByVerdict { table, .. } = &step.routes else { return None };
    let is_unnamed = verdict.is_unjudged() && !table.contains_key(verdict);
    (is_unnamed && times < MOST_UNJUDGED).then(|| WayOut {
        to: Target::Step(id),
        verdict: Some(verdict.clone()),
        reason: Reason::Unjudged,
        key: RouteKey::Unjudged,
    })
}

/// Returns the way back into a state that passed, and has to pass more often in a row.
pub fn repeated(step: &Step, id: StepId, verdict: &Verdict, before: u32) -> Option<WayOut> {
    let wanted = step.repeat?;
    let passed = step.observes(verdict) == Observes::Passing;
    (passed && before.saturating_add(1) < wanted).then(|| WayOut {
        to: Target::Step(id),
        verdict: Some(verdict.clone()),
        reason: Reason::Repeat,
        key: RouteKey::Repeat,
    })
}

/// Returns the way back into a check that failed and is made again, because it is known to waver or is always made again.
pub fn made_again(step: &Step, id: StepId, verdict: &Verdict, before: u32, is_known: bool) -> Option<WayOut> {
    is_made_again(step, verdict, before, is_known).then(|| WayOut {
        to: Target::Step(id),
        verdict: Some(verdict.clone()),
        reason: Reason::Flaky,
        key: RouteKey::Flaky,
    })
}

/// Tells whether a check that failed is made again, after so many failures in a row before.
pub fn is_made_again(step: &Step, verdict: &Verdict, before: u32, is_known: bool) -> bool {
    let is_due = step.flaky.is_some_and(|flaky| (is_known || flaky.always) && before < flaky.again);
    // What could not be judged has entries of its own and says nothing about wavering.
    is_due && step.observes(verdict) == Observes::Failing && !verdict.is_unjudged()
}

/// Finds the way out of a check whose failure people have excused: that of `yes`.
pub fn excused(machine: &Machine, step: &Step, verdict: &Verdict) -> Option<WayOut> {
    let way = by_verdict(machine, step, &Verdict::yes_if(true))?;
    Some(WayOut { verdict: Some(verdict.clone()), ..way })
}

fn by_verdict(machine: &Machine, step: &Step, verdict: &Verdict) -> Option<WayOut> {
    let Routes::ByVerdict { table, error, otherwise } = &step.routes else { return None };
    let fallback = machine.fallback;
    let own = |verdict: &Verdict| table.get(verdict).map(|to| (*to, RouteKey::On(verdict.clone())));
    let as_said = |(to, key): (Target, RouteKey)| WayOut {
        to,
        verdict: Some(verdict.clone()),
        reason: Reason::Verdict,
        key,
    };
    let as_error = |(to, key): (Target, RouteKey)| WayOut {
        to,
        verdict: Some(Verdict::error()),
        reason: Reason::Error,
        key,
    };
    // Of any other evaluator `not_found` is a word as good as others.
    let is_missing_tool = verdict.as_str() == "not_found" && calls_tool(step);
    let is_failure = verdict.is_error() || verdict.is_timeout() || verdict.is_unjudged() || is_missing_tool;
    let named = |verdict: &Verdict| own(verdict).or_else(|| own(&alias(step, verdict)?));
    // `no_uncertain` goes where `no` does, unless it has a way of its own.
    if let Some(found) = named(verdict).or_else(|| named(&verdict.certain()?)) {
        return Some(as_said(found));
    }
    let any_error = || error.map(|to| (to, RouteKey::AnyError)).or_else(|| own(&Verdict::error()));
    if is_failure && let Some(found) = any_error() {
        return Some(as_error(found));
    }
    // A sub-loop that did not succeed failed, whatever stopped it.
    let failed = own(&Verdict::yes_if(false)).filter(|_| is_sub_loop(step) && verdict.is_failing());
    if let Some(found) = failed {
        return Some(as_said(found));
    }
    if is_failure {
        if let Some(to) = fallback.on_timeout.filter(|_| verdict.is_timeout()) {
            return Some(WayOut { reason: Reason::Error, ..as_said((to, RouteKey::Loop("on_timeout"))) });
        }
        if let Some(to) = fallback.on_error {
            return Some(as_error((to, RouteKey::Loop("on_error"))));
        }
    }
    // `_` is for words that were said, and none was.
    if let Some(to) = otherwise.filter(|_| !verdict.is_unjudged()) {
        return Some(as_said((to, RouteKey::AnyOther)));
    }
    // An author who wrote only `on_yes` and `on_error` means everything else by the second.
    if is_no(step, verdict)
        && let Some((to, key)) = any_error()
    {
        return Some(WayOut { reason: Reason::Error, ..as_said((to, key)) });
    }
    // Unlike an error, `blocked` is a word that was said, so `_` of the state comes before the way of the loop.
    let blocked = fallback.on_blocked.filter(|_| verdict.as_str() == "blocked");
    blocked.map(|to| as_said((to, RouteKey::Loop("on_blocked"))))
}

/// Finds the way out of a state whose work cannot be made: that of errors, also where another one is taken whatever the
/// result, because there is none.
pub fn unmade(machine: &Machine, step: &Step) -> Option<WayOut> {
    let verdict = Verdict::error();
    let Routes::Always { on_error, .. } = &step.routes else { return by_verdict(machine, step, &verdict) };
    let own = on_error.map(|to| (to, RouteKey::On(verdict.clone())));
    let (to, key) = own.or(machine.fallback.on_error.map(|to| (to, RouteKey::Loop("on_error"))))?;
    Some(WayOut { to, verdict: Some(verdict), reason: Reason::Error, key })
}

/// Finds the way out of a state that needs a model where none may be asked: the one that the state itself has for
/// `blocked`, or else for errors. A route back into the same state is another try, which would fail again. None: the
/// run has to be continued where one may be asked.
pub fn without_model(machine: &Machine, step: &Step) -> Option<WayOut> {
    let blocked = Verdict::blocked();
    let (blocked_way, error_way) = match &step.routes {
        Routes::Always { on_blocked, on_error, .. } => {
            (*on_blocked, on_error.map(|to| (to, RouteKey::On(Verdict::error()))))
        }
        Routes::ByVerdict { table, error, .. } => {
            let any = error.map(|to| (to, RouteKey::AnyError));
            let own = table.get(&Verdict::error()).map(|to| (*to, RouteKey::On(Verdict::error())));
            (table.get(&blocked).copied(), any.or(own))
        }
    };
    let verdict = Some(blocked.clone());
    let leads_on = |to: &Target| machine.name_of(*to) != &step.name;
    match (blocked_way.filter(leads_on), error_way.filter(|(to, _)| leads_on(to))) {
        (Some(to), _) => Some(WayOut { to, verdict, reason: Reason::Verdict, key: RouteKey::On(blocked) }),
        (None, Some((to, key))) => Some(WayOut { to, verdict, reason: Reason::Error, key }),
        (None, None) => None,
    }
}

/// Returns another word by which a route knows a verdict of this state: the answers of tools and the ends of
/// sub-loops have names of their own.
pub(super) fn alias(step: &Step, verdict: &Verdict) -> Option<Verdict> {
    if is_sub_loop(step) {
        return Some(Verdict::canonical(verdict.as_str())).filter(|other| other != verdict);
    }
    if let Some(other) = step.action.as_ref().and_then(|action| action.alias(verdict.as_str())) {
        return Some(Verdict::new(other));
    }
    step.evaluate.as_ref()?.alias(verdict.as_str()).map(Verdict::new)
}

/// Tells whether a state is judged by the answer of a tool, which may not be there.
fn calls_tool(step: &Step) -> bool {
    matches!(step.evaluate, Some(Evaluate::McpResult(_)))
}

/// Tells whether a verdict means `no` for this state.
pub fn is_no(step: &Step, verdict: &Verdict) -> bool {
    let no = Verdict::yes_if(false);
    *verdict == no || alias(step, verdict) == Some(no)
}

/// Tells whether a state runs another loop.
pub fn is_sub_loop(step: &Step) -> bool {
    step.action.as_ref().is_some_and(|action| action.sub_loop().is_some())
}

/// Returns where a state leads whose tries are used up: another entry into the same state after enough of them, or an
/// error with a code that is not worth another try.
pub fn exhausted(
    machine: &Machine,
    step: &Step,
    way: &WayOut,
    attempt: u32,
    exit_code: i32,
) -> Option<Target> {
    let retry = step.retry.as_ref()?;
    let again = is_again(machine, step, way) && attempt > retry.max;
    let hopeless = is_bounded_error(step, way) && !retry.codes.contains(&exit_code);
    (again || hopeless).then_some(retry.exhausted)
}

/// Returns where a way may lead in its place, after enough tries or with some exit code.
pub fn may_exhaust(machine: &Machine, step: &Step, way: &WayOut) -> Option<Target> {
    let retry = step.retry.as_ref()?;
    (is_again(machine, step, way) || is_bounded_error(step, way)).then_some(retry.exhausted)
}

fn is_again(machine: &Machine, step: &Step, way: &WayOut) -> bool {
    // They have counts of their own, which `max_retries` must not use up.
    let is_by_itself = matches!(way.key, RouteKey::Repeat | RouteKey::Flaky | RouteKey::Unjudged);
    !is_by_itself && machine.name_of(way.to) == &step.name
}

fn is_bounded_error(step: &Step, way: &WayOut) -> bool {
    let is_error = way.verdict.as_ref().is_some_and(Verdict::is_error);
    is_error && step.retry.as_ref().is_some_and(|retry| !retry.codes.is_empty())
}

/// How a state that was entered can be left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The verdict.
    pub verdict: Verdict,
    /// How its action ended.
    pub ended: ActionEnd,
    /// Whether the verdict stands for every word that the state has no route for.
    pub is_any_other: bool,
}

impl Departure {
    fn of(verdict: &str, ended: ActionEnd) -> Self {
        Self { verdict: Verdict::new(verdict), ended, is_any_other: false }
    }

    /// Returns what this says about the work. A state with `next` says nothing when it goes well.
    pub fn observes(&self, step: &Step) -> Observes {
        match (&step.routes, self.ended) {
            (Routes::Always { .. }, ActionEnd::Well) => Observes::Nothing,
            (Routes::Always { .. }, ActionEnd::Badly | ActionEnd::Late) => Observes::Failing,
            (Routes::ByVerdict { .. }, _) => step.observes(&self.verdict),
        }
    }
}

/// Returns every way in which a state can be left, the good first: each verdict its evaluator can give, and the
/// errors and the timeouts of its action.
pub fn departures(step: &Step) -> Vec<Departure> {
    let can_be_late = step.action.as_ref().is_some_and(Action::can_be_late);
    let late = can_be_late.then(|| Departure::of("timeout", ActionEnd::Late));
    let Routes::ByVerdict { table, .. } = &step.routes else {
        let badly = step.action.as_ref().map(|_| Departure::of("error", ActionEnd::Badly));
        return std::iter::once(Departure::of("yes", ActionEnd::Well)).chain(badly).chain(late).collect();
    };
    if is_sub_loop(step) {
        let ends =
            [("success", ActionEnd::Well), ("failure", ActionEnd::Badly), ("blocked", ActionEnd::Badly)];
        let stopped = [("error", ActionEnd::Badly), ("timeout", ActionEnd::Badly)];
        return ends.iter().chain(&stopped).map(|(word, ended)| Departure::of(word, *ended)).collect();
    }
    if let Some(JudgedBy::Itself(words)) = step.action.as_ref().map(Action::judged_by) {
        let words = words.iter().map(|word| Departure::of(word, ActionEnd::Well));
        return words.chain([Departure::of("error", ActionEnd::Badly)]).chain(late).collect();
    }
    let Some(evaluate) = &step.evaluate else {
        return vec![Departure::of("yes", ActionEnd::Well)];
    };
    let mut departures: Vec<Departure> = match evaluate.verdicts() {
        Verdicts::Only(words) => words.iter().map(|word| Departure::of(word, ActionEnd::Well)).collect(),
        Verdicts::Any => any_word(table.keys()),
    };
    departures.push(Departure::of("error", ActionEnd::Badly));
    departures.extend(late);
    departures
}

/// Returns what stands for every word: those that have a route, `blocked`, which may have one in the loop, and one
/// that fails and one that passes for all others.
fn any_word<'v>(named: impl Iterator<Item = &'v Verdict>) -> Vec<Departure> {
    // These two come with every judged state, whether it names them or not.
    let named = named.filter(|verdict| !verdict.is_error() && !verdict.is_timeout());
    let mut departures: Vec<_> =
        named.map(|verdict| Departure::of(verdict.as_str(), ActionEnd::Well)).collect();
    let is_new = |known: &[Departure], word: &str| !known.iter().any(|other| other.verdict.as_str() == word);
    if is_new(&departures, "blocked") {
        departures.push(Departure::of("blocked", ActionEnd::Well));
    }
    for others in [&["any other word"][..], &["no", "partial", "stall", "tool_error"]] {
        if let Some(word) = others.iter().find(|word| is_new(&departures, word)) {
            departures.push(Departure { is_any_other: true, ..Departure::of(word, ActionEnd::Well) });
        }
    }
    departures
}

/// What can come after a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// How the state is left.
    pub departure: Departure,
    /// The way that is taken; absent if none matches and the run ends.
    pub way: Option<WayOut>,
    /// Whether the tries are used up, so that `on_retry_exhausted` is taken in place of the way.
    pub is_exhausted: bool,
    /// What comes next.
    pub to: Option<Target>,
}

/// Returns where a state is left to in place of this move, when it has been left so too often without a change.
pub fn in_a_stall(machine: &Machine, one: &Move) -> Option<Target> {
    let to = machine.stall?.to?;
    let is_judged = one.way.as_ref().is_some_and(|way| way.key != RouteKey::Next);
    // A stall never keeps a run from an end, and only visits that judge something count for it.
    (is_judged && !one.is_exhausted && matches!(one.to, Some(Target::Step(_)))).then_some(to)
}

/// Returns everything that can come after a state.
pub fn moves(machine: &Machine, id: StepId) -> Vec<Move> {
    let step = machine.step(id);
    let mut moves = Vec::new();
    for departure in departures(step) {
        // Counts are not followed, so each way back is taken as at its first time, and each check as one that wavers.
        let again = unjudged(step, id, &departure.verdict, 0);
        if let Some(way) = again
            .or_else(|| repeated(step, id, &departure.verdict, 0))
            .or_else(|| made_again(step, id, &departure.verdict, 0, true))
        {
            let to = Some(way.to);
            moves.push(Move { departure: departure.clone(), way: Some(way), is_exhausted: false, to });
        }
        let way = way(machine, step, &departure.verdict, departure.ended);
        let in_its_place = way.as_ref().and_then(|way| may_exhaust(machine, step, way));
        let to = way.as_ref().map(|way| way.to);
        let usual = Move { departure, way, is_exhausted: false, to };
        let exhausted = in_its_place.map(|to| Move { is_exhausted: true, to: Some(to), ..usual.clone() });
        moves.push(usual);
        moves.extend(exhausted);
    }
    moves
}
