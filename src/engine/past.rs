//! A run as far as its events tell it: folded again, to be continued. It decides nothing; whether a run may go on,
//! and what the world has to give back to it first, is for others to find out.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use super::changes::{StartTree, TreeIds};
use super::event::{Event, LoopComplete, LoopResume, LoopStart, ResumeReason, SubLoopComplete};
use super::run::placed::Placement;
use super::run::{Phase, Run};
use super::state_result::StateResult;
use crate::base::name::StateName;
use crate::evaluate::observation::{StoredText, Stream};
use crate::machine::{Machine, OnChange};

/// A run that is folded from its events.
#[derive(Clone, Debug)]
pub struct Past {
    pub(super) run: Run,
    pub(super) start: LoopStart,
    pub(super) elapsed: Duration,
}

/// Where the events of a run leave it.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// It ended for good.
    Over(LoopComplete),
    /// It stands in a state that the machine does not have.
    Lost(StateName),
    /// It can go on.
    Open(Box<LoopResume>),
}

impl Past {
    /// Begins with the first event of a run, and with the captures of the run around it, where it sees those.
    pub fn new(machine: &Machine, start: LoopStart, captured: IndexMap<String, StateResult>) -> Self {
        let mut run = Run::new();
        run.inherit(captured);
        run.apply(machine, &Event::LoopStart(start.clone()));
        Self { run, start, elapsed: Duration::ZERO }
    }

    /// Puts a run where it began, in the middle.
    pub fn place_at(&mut self, machine: &Machine, placement: Placement) {
        self.run.place_at(machine, placement);
    }

    /// Takes the next event, `elapsed` after the start of the run.
    pub fn event(&mut self, machine: &Machine, event: &Event, elapsed: Duration) {
        self.elapsed = self.elapsed.max(elapsed);
        if let Event::LoopResume(resume) = event {
            self.start.change(resume);
        }
        self.run.apply(machine, event);
    }

    /// Returns how the run began, with what was changed since.
    pub fn start(&self) -> &LoopStart {
        &self.start
    }

    /// Returns what is known about the run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns how long the run has taken.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Says whether and how the run can go on.
    pub fn standing(&self, machine: &Machine) -> Standing {
        let run = &self.run;
        let outcome = run.resumable_end();
        // An outcome that can be gone on with is not over, although its last event is there.
        if let (Phase::Done(end), None) = (run.phase(), outcome) {
            return Standing::Over(end.clone());
        }
        if let Some(state) = run.lost() {
            return Standing::Lost(state.clone());
        }
        // A run that was killed before its first state begins at the beginning.
        let from = run.place(machine).unwrap_or_else(|| machine.name_of(machine.initial));
        let reason = outcome.and_then(ResumeReason::of).unwrap_or(ResumeReason::Crash);
        self.open(from, reason)
    }

    /// Says the same where a run that ended for good may be taken up again, unless it was a success.
    pub fn reopened(&self, machine: &Machine) -> Standing {
        match self.standing(machine) {
            Standing::Over(end) if end.may_be_reopened() => {
                if let Some(state) = self.run.lost() {
                    return Standing::Lost(state.clone());
                }
                let to = machine.on_resume.unwrap_or_else(|| self.run.reopening(machine));
                self.open(machine.name_of(to), ResumeReason::Failed)
            }
            standing @ (Standing::Over(_) | Standing::Lost(_) | Standing::Open(_)) => standing,
        }
    }

    /// Says how another run goes on after these events, which end in front of a step: with that step, and with everything
    /// as it was then.
    pub fn rewound(&self, machine: &Machine) -> Standing {
        match self.standing(machine) {
            Standing::Open(how) => Standing::Open(Box::new(LoopResume {
                reason: ResumeReason::Rewound,
                // What was left to say belongs to what came after that step.
                continuation: None,
                ..*how
            })),
            standing @ (Standing::Over(_) | Standing::Lost(_)) => standing,
        }
    }

    /// Returns the tree on which the run ended, where that is known.
    pub fn end_tree(&self) -> Option<&TreeIds> {
        match self.run.phase() {
            Phase::Done(end) => Some(&end.changes.as_ref()?.known()?.end),
            Phase::Pending(_) | Phase::Deciding(_) => None,
        }
    }

    fn open(&self, from: &StateName, reason: ResumeReason) -> Standing {
        let run = &self.run;
        Standing::Open(Box::new(LoopResume {
            from_state: from.clone(),
            iteration: run.iteration(),
            step: run.step(),
            reason,
            continuation: run.left_to_say().map(str::to_owned),
            keeps_sessions: false,
            tree_changed: false,
            changes: super::event::ResumeChanges::default(),
        }))
    }

    /// Says how a sub-loop ended that these are the events of, in the words of the run around it.
    pub fn tell(&self, complete: &mut SubLoopComplete, gives_back: bool) {
        if gives_back {
            complete.captured.clone_from(self.run.captured());
            complete.sub_loops.clone_from(self.run.sub_loops());
        }
        complete.output = self.run.last_output();
    }

    /// Takes back every text that later states can ask for and that stands beside the journal.
    pub fn restore<E>(
        &mut self,
        mut read: impl FnMut(StoredText, Stream) -> Result<Arc<String>, E>,
    ) -> Result<(), E> {
        // Only texts that somebody can still ask for are read back; a journal has many more.
        for (stream, text) in self.run.texts_mut() {
            if let Some(stored) = text.elsewhere() {
                text.restore(read(stored, stream)?);
            }
        }
        Ok(())
    }
}

impl LoopStart {
    /// Tells whether the run fails where it would succeed on a tree that the commit does not have.
    pub fn fails_on_change(&self) -> bool {
        self.on_change == OnChange::Fail && matches!(self.tree, Some(StartTree::Known(_)))
    }

    /// Makes the changes of a resume, so that the next one begins with them.
    pub fn change(&mut self, resume: &LoopResume) {
        let changes = resume.changes.clone();
        self.max_iterations = changes.max_iterations.unwrap_or(self.max_iterations);
        self.overrides.max_iterations = changes.max_iterations.or(self.overrides.max_iterations);
        // Kept among the options, because a further resume goes by these.
        self.overrides.timeout_ms = changes.timeout_ms.or(self.overrides.timeout_ms);
        self.strict = changes.strict.unwrap_or(self.strict);
        self.llm = changes.llm.unwrap_or(self.llm);
        if let Some(digest) = changes.definition_sha256 {
            self.definition_sha256 = digest;
        }
        if let Some(source) = changes.source {
            self.source = source;
        }
        self.place = changes.place.or(self.place.take());
        self.trace = changes.trace.or(self.trace.take());
        self.assignment = changes.assignment.or(self.assignment.take());
        if let Some(context) = changes.context {
            self.context = context;
        }
        self.policy.extend(changes.policy);
    }
}
