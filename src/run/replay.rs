//! A run from its journal: every loop that it was in, folded again, the outermost first.

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use indexmap::IndexMap;

use crate::base::explanation::Explanation;
use crate::base::name::StateName;
use crate::base::time::Timestamp;
use crate::engine::event::{Event, LoopStart, Stamped};
use crate::engine::loop_stack::LoopStack;
use crate::engine::past::{Past, Standing};
use crate::engine::run::placed::Placement;
use crate::evaluate::observation::{StoredText, Stream};
use crate::machine::{Action, Machine, SubLoopInput, Target};

/// A machine that a journal names, with the digest of its definition as it is now.
#[derive(Clone, Debug)]
pub struct KnownMachine {
    /// The machine.
    pub machine: Rc<Machine>,
    /// The digest.
    pub digest: String,
}

/// Finds a loop by the name that a state gives it, in the loop that began like the first of the two, with the variables with
/// which the second one began.
pub type Find<'f> = dyn FnMut(&str, &LoopStart, &LoopStart) -> Result<KnownMachine, Explanation> + 'f;

/// Why a journal is not that of a run of these loops.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A loop that was run as the work of a state is not there any more.
    #[error("the loop `{name}`, which the run had begun, cannot be run: {why}")]
    SubLoop {
        /// Its name.
        name: String,
        /// Why.
        why: Explanation,
    },
    /// An event of a loop that did not begin.
    #[error("event {seq} of the journal belongs to a loop that did not begin")]
    Nowhere {
        /// Its number.
        seq: u64,
    },
}

/// Folds a journal.
pub struct Replay<'f> {
    outermost: KnownMachine,
    find: &'f mut Find<'f>,
    levels: LoopStack<LeftLoop>,
    changed: Vec<String>,
    placement: Option<Placement>,
}

/// One loop of a run that was left, and how far it was.
#[derive(Debug)]
pub struct LeftLoop {
    /// The machine.
    pub machine: Rc<Machine>,
    /// What is known about it.
    pub past: Past,
    /// When it began.
    pub at: Timestamp,
    /// The step of the loop around it that runs it, and the name that it is run by.
    step: u32,
    name: String,
    began: Duration,
    runs: Option<Runs>,
}

/// A sub-loop that a state runs.
#[derive(Clone, Debug)]
struct Runs {
    name: String,
    given: SubLoopInput,
}

impl<'f> Replay<'f> {
    /// Begins with the machine of the run itself.
    pub fn new(outermost: KnownMachine, find: &'f mut Find<'f>) -> Self {
        Self { outermost, find, levels: LoopStack::default(), changed: Vec::new(), placement: None }
    }

    /// Begins where the run began that was placed in the middle, if it was.
    #[must_use]
    pub fn placed(self, placement: Option<Placement>) -> Self {
        Self { placement, ..self }
    }

    /// Takes the next event of the journal.
    pub fn event(&mut self, stamped: Stamped) -> Result<(), ReplayError> {
        let Stamped { ts, seq, at, depth, event, .. } = stamped;
        if let Event::LoopStart(start) = event {
            return self.begin(start, depth, ts, seq, at);
        }
        let Some((level, inner)) = self.levels.with_inner(depth) else {
            return Err(ReplayError::Nowhere { seq });
        };
        let event = if let Event::ActionComplete(complete) = event {
            // The number of the event names the files that hold its longer streams.
            Event::ActionComplete(complete.numbered(seq))
        } else if let Event::SubLoopComplete(mut complete) = event {
            let gives_back = level.runs.as_ref().is_some_and(|runs| runs.given.gives_back());
            // What a sub-loop gave back is not written; its own events say it.
            if let (Some(inner), Some(_)) = (inner, complete.outcome) {
                inner.past.tell(&mut complete, gives_back);
            }
            Event::SubLoopComplete(complete)
        } else {
            event
        };
        if let Event::SubLoopStart { state, r#loop } = &event {
            level.runs = level.given(state).map(|given| Runs { name: r#loop.clone(), given });
        }
        level.take(&event, at);
        if matches!(event, Event::Route { .. }) {
            // The state is left, and with it whatever loop it ran.
            self.levels.leave_inner(depth);
        }
        Ok(())
    }

    fn begin(
        &mut self,
        start: LoopStart,
        depth: u32,
        ts: Timestamp,
        seq: u64,
        at: Duration,
    ) -> Result<(), ReplayError> {
        let (known, captured, step, name) = match self.levels.around(depth).next() {
            None if depth == 0 => (self.outermost.clone(), IndexMap::new(), 0, String::new()),
            Some(LeftLoop { past, runs: Some(runs), .. }) => {
                let known = (self.find)(&runs.name, past.start(), &start);
                let known = known.map_err(|why| ReplayError::SubLoop { name: runs.name.clone(), why })?;
                let captured =
                    if runs.given.sees_around() { past.run().captured().clone() } else { IndexMap::new() };
                (known, captured, past.run().step(), runs.name.clone())
            }
            _ => return Err(ReplayError::Nowhere { seq }),
        };
        // Named once, however often it was run.
        if depth > 0 && start.definition_sha256 != known.digest && !self.changed.contains(&name) {
            self.changed.push(name.clone());
        }
        let mut past = Past::new(&known.machine, start, captured);
        if let Some(placement) = self.placement.take() {
            past.place_at(&known.machine, placement);
        }
        let begun = LeftLoop { machine: known.machine, past, at: ts, step, name, began: at, runs: None };
        self.levels.begin(depth, begun);
        Ok(())
    }

    /// Returns the names of sub-loops whose definitions are not what they were.
    pub fn changed(&self) -> &[String] {
        &self.changed
    }

    /// Returns the loops that the run was in, with every text that they may still be asked for.
    pub fn finish<R>(self, mut read: R) -> io::Result<Left>
    where
        R: FnMut(StoredText, Stream) -> io::Result<std::sync::Arc<String>>,
    {
        let mut levels = VecDeque::from(self.levels.into_levels());
        for level in &mut levels {
            // Only at the end, as later events replace most of what is stored.
            level.past.restore(&mut read)?;
        }
        Ok(Left(levels))
    }
}

impl LeftLoop {
    fn take(&mut self, event: &Event, at: Duration) {
        self.past.event(&self.machine, event, at.saturating_sub(self.began));
    }

    /// Returns what the sub-loop of a state is given.
    fn given(&self, state: &StateName) -> Option<SubLoopInput> {
        let Some(Target::Step(id)) = self.machine.find(state) else { return None };
        let sub = self.machine.step(id).action.as_ref().and_then(Action::sub_loop);
        sub.map(|sub| sub.given.clone())
    }

    /// Says whether and how it can go on.
    pub fn standing(&self) -> Standing {
        self.past.standing(&self.machine)
    }

    /// Says the same where it may be taken up again after an end that was not a success.
    pub fn reopened(&self) -> Standing {
        self.past.reopened(&self.machine)
    }

    /// Says how another run goes on after these events, which end in front of a step.
    pub fn rewound(&self) -> Standing {
        self.past.rewound(&self.machine)
    }
}

/// The loops that a run was in when it was left, the outermost first.
#[derive(Debug, Default)]
pub struct Left(VecDeque<LeftLoop>);

impl Left {
    /// Returns all of them.
    pub fn iter(&self) -> impl Iterator<Item = &LeftLoop> {
        self.0.iter()
    }

    /// Takes the outermost one out.
    pub fn take_outermost(&mut self) -> Option<LeftLoop> {
        self.0.pop_front()
    }

    /// Takes out the loop that this step was running, if it was; nothing of another step is continued.
    pub fn take(&mut self, name: &str, step: u32) -> Option<LeftLoop> {
        let is_it = |level: &mut LeftLoop| level.step == step && level.name == name;
        let found = self.0.pop_front_if(is_it);
        if found.is_none() {
            self.0.clear();
        }
        found
    }
}
