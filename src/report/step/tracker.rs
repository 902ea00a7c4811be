//! The fold of events into steps, which the digest and every live sink share.

use super::{ActionResult, AnnouncedAction, MAX_ACTION, Routed, Step, StepJudgement, short};
use crate::base::name::StateName;
use crate::base::text;
use crate::engine::event::{ActionKind, Event, LoopComplete, Stamped, TAIL};
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::evaluate::verdict::Observes;

/// The fold of events into steps.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    current: Option<Step>,
    passing: Option<Step>,
    failing: Option<Step>,
    last: Option<Step>,
    suspended: Option<Step>,
    trouble: Option<(StateName, String)>,
    steps: u64,
    iteration: u32,
    depth: u32,
    inner: Option<Box<Self>>,
}

impl Tracker {
    /// Makes the fold of a loop at this depth.
    pub fn at(depth: u32) -> Self {
        Self { depth, ..Self::default() }
    }

    /// Returns how deep the loop is that this is about, 0 for the run itself.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Takes the next event; returns the step that it finished, if it finished one.
    pub fn event(&mut self, stamped: &Stamped) -> Option<Step> {
        if stamped.depth > self.depth {
            let depth = self.depth + 1;
            self.inner.get_or_insert_with(|| Box::new(Self::at(depth))).event(stamped);
            return None;
        }
        // Any event of this loop itself ends the one inside, but for the three that put it back.
        let inner = self.inner.take();
        match &stamped.event {
            Event::LoopResume(_) => {
                // A step that the end of the run cut off goes on, and so does a sub-loop.
                self.current = self.suspended.take().or_else(|| self.current.take());
                self.with_current(|step| step.cut = None);
                self.inner = inner;
                None
            }
            Event::StateEnter { state, iteration, step, attempt } => {
                let is_again = self.current.as_ref().is_some_and(|current| current.number == *step);
                if is_again {
                    // It was not finished, and is the same step: what it came to counts once.
                    self.current = None;
                    self.inner = inner;
                }
                let finished = self.finish();
                (self.steps, self.iteration) = (u64::from(*step), *iteration);
                let entered = Step { attempt: *attempt, ..Step::new(*step, state, *iteration, stamped.ts) };
                self.current = Some(entered);
                finished
            }
            Event::ActionStart { state, action, kind, role, session: _, tree } => {
                let finished = self.closes(state).then(|| self.finish()).flatten();
                let (number, iteration) = (u32::try_from(self.steps).unwrap_or(u32::MAX), self.iteration);
                let closing = || Step { closing: true, ..Step::new(number, state, iteration, stamped.ts) };
                let text = text::head(action, MAX_ACTION).to_owned();
                let step = self.current.get_or_insert_with(closing);
                // The action of a terminal that was stopped begins once more.
                step.result = None;
                step.tree.clone_from(tree);
                step.action = Some(AnnouncedAction { text, kind: *kind, role: role.clone() });
                finished
            }
            Event::ActionComplete(complete) => {
                self.with_current(|step| step.result = Some(ActionResult::of(&complete.seen)))
            }
            Event::Evaluate { r#type, verdict, observes, details, .. } => self.with_current(|step| {
                let observes = observes.unwrap_or_else(|| verdict.observes());
                let (evaluator, verdict) = (r#type.clone(), verdict.clone());
                step.judged = Some(StepJudgement { evaluator, verdict, observes, details: short(details) });
            }),
            Event::SubLoopStart { r#loop, .. } => {
                self.inner = inner;
                self.with_current(|step| {
                    let text = format!("loop {}", text::head(r#loop, MAX_ACTION));
                    step.action = Some(AnnouncedAction { text, kind: ActionKind::SubLoop, role: None });
                })
            }
            Event::Board(event) => self.with_current(|step| {
                let text = text::head(&event.operation, MAX_ACTION).to_owned();
                step.action = Some(AnnouncedAction { text, kind: ActionKind::Board, role: None });
                step.judged = Some(StepJudgement::of_operation(event));
            }),
            Event::SubLoopComplete(complete) => self.with_current(|step| {
                step.result =
                    Some(ActionResult::of_sub_loop(complete, inner.as_deref().and_then(Self::failing)));
            }),
            Event::Route { from, to, verdict, reason } => self.with_current(|step| {
                // A maintain loop leaves a terminal, which is a step only when it has an action.
                if step.state == *from {
                    step.route = Some(Routed { to: to.clone(), verdict: verdict.clone(), reason: *reason });
                }
            }),
            Event::ActionError { state, error } | Event::LoopError { state, error } => {
                let error = text::head(error, TAIL).to_owned();
                if matches!(stamped.event, Event::LoopError { .. }) {
                    self.trouble = Some((state.clone(), error.clone()));
                }
                self.with_current(|step| {
                    if step.state == *state {
                        step.error = Some(error);
                    }
                })
            }
            Event::LoopComplete(end) => {
                self.with_current(|step| {
                    step.closing |= end.terminated_by == TerminatedBy::Terminal
                        && step.state == end.final_state
                        && step.route.is_none();
                });
                // Only now that it is known whether the step is a closing action, by which `is_cut_by` decides.
                self.with_current(|step| step.cut = step.is_cut_by(end).then_some(end.outcome));
                let goes_on = |step: &&Step| step.cut.is_some() && end.is_resumable();
                self.suspended = self.current.as_ref().filter(goes_on).cloned();
                self.finish()
            }
            Event::LoopStart(_)
            | Event::Approval(_)
            | Event::Message { .. }
            | Event::Retry { .. }
            | Event::VerdictTree { .. }
            | Event::ClosingPassStart(_)
            | Event::ClosingPassCheck(_)
            | Event::ClosingPassProof(_)
            | Event::Reused(_)
            | Event::ClosingPassEnd(_)
            | Event::Backoff { .. }
            | Event::Warning { .. }
            | Event::CallFailed(_)
            | Event::Judge { .. }
            | Event::Sandbox(_)
            | Event::Signal { .. }
            | Event::Handoff(_)
            | Event::Stall { .. }
            | Event::LoopTimeout { .. } => None,
        }
    }

    /// Returns the step that is not finished.
    pub fn current(&self) -> Option<&Step> {
        self.current.as_ref()
    }

    /// Returns the step that the end of the run cut off, if it did and the run can go on.
    pub fn suspended(&self) -> Option<&Step> {
        self.suspended.as_ref()
    }

    /// Returns the last finished step that failed.
    pub fn failing(&self) -> Option<&Step> {
        self.failing.as_ref()
    }

    /// Returns the last finished step that passed.
    pub fn passing(&self) -> Option<&Step> {
        self.passing.as_ref()
    }

    /// Returns the state and the text of the error that ended the run.
    pub fn trouble(&self) -> Option<(&StateName, &str)> {
        self.trouble.as_ref().map(|(state, error)| (state, error.as_str()))
    }

    /// Returns how many states were entered.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the pass.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Returns the step that decided a run that ended like this, if a step did.
    pub fn deciding(&self, end: &LoopComplete) -> Option<&Step> {
        match end.outcome {
            Outcome::Success
            | Outcome::Handoff
            | Outcome::Interrupted
            | Outcome::LeaseLost
            | Outcome::Cancelled => None,
            // It is the tree that failed, and no step.
            Outcome::Failure if end.terminated_by == TerminatedBy::UncommittedChanges || end.is_refuted() => {
                None
            }
            Outcome::Failure | Outcome::Blocked if end.verified => self.last.as_ref(),
            Outcome::Failure | Outcome::Blocked | Outcome::Error => self.failing.as_ref(),
            Outcome::Exhausted
            | Outcome::Stopped
            | Outcome::OverBudget
            | Outcome::Unavailable
            | Outcome::Timeout => self.failing.as_ref().filter(|_| !end.verified),
        }
    }

    fn with_current(&mut self, change: impl FnOnce(&mut Step)) -> Option<Step> {
        self.current.as_mut().map(change);
        None
    }

    fn closes(&self, state: &StateName) -> bool {
        self.current.as_ref().is_some_and(|step| step.state != *state || step.route.is_some())
    }

    fn finish(&mut self) -> Option<Step> {
        let step = self.current.take()?;
        match step.observes() {
            // What a passing step printed is never quoted, and there may be one for every step of a
            // long run.
            Observes::Passing => self.passing = Some(step.with_tails(0)),
            Observes::Failing => self.failing = Some(step.clone()),
            Observes::Nothing => {}
        }
        if !step.closing {
            self.last = Some(step.clone());
        }
        Some(step)
    }
}
