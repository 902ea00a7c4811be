//! What a chain is made of, folded from the events of a run and of the loops that it ran. Whatever the length of the run, a
//! few steps are kept of each loop.

use std::sync::Arc;

use crate::engine::event::{Event, HandoffReason, LoopComplete, Source, Stamped};
use crate::engine::loop_stack::LoopStack;
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::evaluate::verdict::Observes;
use crate::report::numbers::{Numbering, StepNumber};
use crate::report::step::Step;
use crate::report::step::tracker::Tracker;

/// A step of the run, and what the loop came to that it ran.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) number: StepNumber,
    pub(crate) step: Step,
    pub(crate) inner: Option<Arc<LoopAccount>>,
}

/// What a loop came to, and the steps by which.
#[derive(Clone, Debug)]
pub(crate) struct LoopAccount {
    pub(crate) loop_name: String,
    pub(crate) source: Arc<Source>,
    /// Nothing if the journal stops before.
    pub(crate) end: Option<LoopComplete>,
    /// Why it was saved for a later one, if it was.
    pub(crate) saved: Option<HandoffReason>,
    /// The last step.
    pub(crate) last: Option<Arc<Visit>>,
    /// The step that decided.
    pub(crate) decided: Option<Arc<Visit>>,
}

/// A loop that runs.
#[derive(Clone, Debug, Default)]
struct VisitedLoop {
    loop_name: String,
    source: Arc<Source>,
    tracker: Tracker,
    current: Option<StepNumber>,
    inner: Option<Arc<LoopAccount>>,
    end: Option<LoopComplete>,
    saved: Option<HandoffReason>,
    last: Option<Arc<Visit>>,
    evaluated: Option<Arc<Visit>>,
    failing: Option<Arc<Visit>>,
}

/// A step that somebody asked for.
#[derive(Clone, Debug)]
struct AskedStep {
    number: StepNumber,
    found: Option<(Arc<Visit>, Arc<Source>)>,
}

/// Folds events into what a chain is made of.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    numbering: Numbering,
    levels: LoopStack<VisitedLoop>,
    asked: Option<AskedStep>,
    verdicts: u64,
}

/// Tells whether a verdict of an evaluator falls with an event.
pub fn is_verdict(event: &Event) -> bool {
    matches!(event, Event::Evaluate { .. })
}

impl Fold {
    /// Makes a fold that finds this step.
    pub fn asking(number: StepNumber) -> Self {
        Self { asked: Some(AskedStep { number, found: None }), ..Self::default() }
    }

    /// Takes the next event.
    pub fn event(&mut self, stamped: &Stamped) {
        let depth = stamped.depth;
        self.verdicts += u64::from(is_verdict(&stamped.event));
        let number = self.numbering.event(stamped);
        if let Event::LoopStart(start) = &stamped.event {
            let begun = VisitedLoop {
                loop_name: start.r#loop.to_string(),
                source: Arc::new(start.source.clone()),
                tracker: Tracker::at(depth),
                ..VisitedLoop::default()
            };
            return self.levels.begin(depth, begun);
        }
        let Some(level) = self.levels.at_mut(depth) else { return };
        if let Event::LoopResume(resume) = &stamped.event {
            (level.end, level.saved) = (None, None);
            if let Some(source) = &resume.changes.source {
                level.source = Arc::new(source.clone());
            }
        }
        if let Event::Handoff(handoff) = &stamped.event {
            level.saved = Some(handoff.reason);
        }
        // Before the event is taken: a step is finished by the one that enters the next.
        let before = level.current.clone();
        if matches!(stamped.event, Event::StateEnter { .. }) {
            level.current = number;
        }
        if let Some((step, number)) = level.tracker.event(stamped).zip(before)
            && !step.closing
        {
            let visit = Arc::new(Visit { number, step, inner: level.inner.take() });
            if let Some(asked) = self.asked.as_mut().filter(|asked| asked.number == visit.number) {
                asked.found = Some((Arc::clone(&visit), Arc::clone(&level.source)));
            }
            level.takes(visit);
        }
        if let Event::LoopComplete(end) = &stamped.event {
            level.end = Some(end.clone());
            let account = Arc::new(level.account());
            if let Some(around) = depth.checked_sub(1).and_then(|around| self.levels.at_mut(around)) {
                around.inner = Some(account);
            }
        } else if matches!(stamped.event, Event::Route { .. }) {
            // The state is left, and with it the loop that it ran.
            self.levels.leave_inner(depth);
        }
    }

    /// Returns how many verdicts of evaluators fell, also in the loops that it ran.
    pub fn verdicts(&self) -> u64 {
        self.verdicts
    }

    /// Returns what the run came to.
    pub(crate) fn account(&self) -> Option<LoopAccount> {
        let (inner, outer) = self.levels.levels().split_last()?;
        // Where the journal stops in the middle of a loop that a step ran, that is where it stops.
        let mut account = inner.account();
        for level in outer.iter().rev() {
            let inner = level.end.is_none().then(|| Arc::new(account));
            account = level.clone_with(inner).account();
        }
        Some(account)
    }

    /// Returns the step that was asked for, and where its loop is written.
    pub(crate) fn found(&self) -> Option<(Arc<Visit>, Arc<Source>)> {
        let asked = self.asked.as_ref()?;
        let unfinished = || {
            let level = self.levels.levels().get(asked.number.depth())?;
            let visit = level.unfinished().filter(|visit| visit.number == asked.number)?;
            Some((Arc::new(visit), Arc::clone(&level.source)))
        };
        asked.found.clone().or_else(unfinished)
    }

    /// Tells whether a step was asked for.
    pub(crate) fn is_of_step(&self) -> bool {
        self.asked.is_some()
    }
}

impl VisitedLoop {
    fn takes(&mut self, visit: Arc<Visit>) {
        let judged = visit.step.judged.as_ref();
        let observes = visit.step.observes();
        // What comes next in a plan decides nothing.
        if judged.is_some_and(|judged| judged.evaluator != "board") || observes == Observes::Failing {
            self.evaluated = Some(Arc::clone(&visit));
        }
        if observes == Observes::Failing {
            self.failing = Some(Arc::clone(&visit));
        }
        self.last = Some(visit);
    }

    fn clone_with(&self, inner: Option<Arc<LoopAccount>>) -> Self {
        Self { inner: inner.or_else(|| self.inner.clone()), ..self.clone() }
    }

    fn unfinished(&self) -> Option<Visit> {
        let (step, number) = (self.tracker.current()?.clone(), self.current.clone()?);
        (!step.closing).then(|| Visit { number, step, inner: self.inner.clone() })
    }

    fn account(&self) -> LoopAccount {
        let last = self.unfinished().map(Arc::new).or_else(|| self.last.clone());
        let any = || self.evaluated.clone().or_else(|| last.clone());
        let decided = match &self.end {
            None => last.clone(),
            Some(end) => match end.outcome {
                // It is the tree that failed.
                Outcome::Failure
                    if end.terminated_by == TerminatedBy::UncommittedChanges || end.is_refuted() =>
                {
                    any()
                }
                Outcome::Failure | Outcome::Blocked if end.verified => last.clone(),
                Outcome::Failure | Outcome::Blocked | Outcome::Error => self.failing.clone().or_else(any),
                // Of these, what was said last decided: a success passed by it, and a cap was met after it.
                Outcome::Success | Outcome::Exhausted => any(),
                Outcome::Stopped
                | Outcome::OverBudget
                | Outcome::Unavailable
                | Outcome::Handoff
                | Outcome::Timeout
                | Outcome::LeaseLost
                | Outcome::Cancelled
                | Outcome::Interrupted => last.clone(),
            },
        };
        let (loop_name, source, end) = (self.loop_name.clone(), Arc::clone(&self.source), self.end.clone());
        LoopAccount { loop_name, source, end, saved: self.saved, last, decided }
    }
}
