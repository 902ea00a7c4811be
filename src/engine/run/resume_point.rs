//! Where a run that was left goes on, and what it needs for that.

use std::time::Duration;

use super::{ContinuationReader, Deciding, Detour, Pending, Phase, Rounds, Run};
use crate::base::name::StateName;
use crate::engine::calls::Calls;
use crate::engine::event::{LoopComplete, LoopResume, ResumeReason, SubLoopComplete};
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::engine::state_result::StateResult;
use crate::evaluate::model::Usage;
use crate::evaluate::observation::{Observation, Stream, Text};
use crate::machine::{Action, Machine, Step, StepId, Target};

impl Run {
    /// Returns the text that a hand-off left for this part of the run.
    pub fn continuation(&self) -> Option<&str> {
        self.continuation.as_deref()
    }

    /// Returns that text for the current prompt, if this is the one that receives it.
    pub(in crate::engine) fn own_continuation(&self) -> Option<&str> {
        let is_reader = match self.continuation_reader {
            ContinuationReader::Nobody => false,
            ContinuationReader::Step(step) => step == self.step,
            ContinuationReader::NextPrompt => true,
        };
        self.continuation.as_deref().filter(|_| is_reader)
    }

    /// Ends a wait: it ran to its end, or the run is to end.
    pub(in crate::engine) fn waited(&mut self) {
        if let Phase::Pending(Pending::Backoff { to, .. }) = self.phase {
            self.phase = Phase::Deciding(Deciding::Arrive { to, waited: true });
        }
    }

    /// Shortens a pending wait by the time between two parts of the run.
    pub(in crate::engine) fn rest(&mut self, rested: Duration) {
        if let Phase::Pending(Pending::Backoff { wait, .. }) = &mut self.phase {
            *wait = wait.saturating_sub(rested);
        }
    }

    /// Keeps what is due, for when a run that ends here goes on.
    pub(super) fn suspend(&mut self) {
        self.due = match &self.phase {
            // The end was announced before, and what was due then is kept already.
            Phase::Deciding(Deciding::End(_)) | Phase::Done(_) => return,
            Phase::Deciding(due) => Some(due.clone()),
            Phase::Pending(Pending::Backoff { to, .. }) => Some(Deciding::Arrive { to: *to, waited: true }),
            // The work itself asked to be continued: it is not finished.
            Phase::Pending(Pending::Continuation(..)) => self.last_entered.map(Deciding::Again),
            // The events of its end could not be written.
            Phase::Pending(Pending::Action(id) | Pending::SubLoop(id)) => Some(Deciding::Again(*id)),
            Phase::Pending(Pending::Closing(id)) => {
                // Waited already: the action of a terminal needs no wait of its own.
                Some(Deciding::Arrive { to: Target::End(*id), waited: true })
            }
            Phase::Pending(Pending::Start) => None,
        };
    }

    /// The same for the last event. One that only says that nothing could be written decides no end that was due.
    pub(super) fn suspend_at(&mut self, complete: &LoopComplete) {
        match &self.phase {
            Phase::Deciding(due @ Deciding::End(ending))
                if complete.terminated_by == TerminatedBy::JournalLost && !ending.outcome.is_resumable() =>
            {
                self.due = Some(due.clone());
            }
            Phase::Pending(_) | Phase::Deciding(_) | Phase::Done(_) => self.suspend(),
        }
    }

    /// Tells whether an agent was at work when the run was left: whatever ended in an orderly way has said how.
    fn was_killed_in_a_call(&self, machine: &Machine) -> bool {
        let Phase::Pending(Pending::Action(id)) = &self.phase else { return false };
        matches!(machine.step(*id).action, Some(Action::Prompt(_) | Action::Learning(_)))
    }

    fn charge_cut_off_call(&mut self) {
        self.cut_off.add(&Usage {
            calls: 1,
            input_tokens: self.dearest.tokens(),
            // Of a call without a price nothing is known, and a cap on cost would let nobody go on after a kill.
            cost_usd: Some(self.dearest.cost_usd.unwrap_or(0.0)),
            ..Usage::default()
        });
    }

    /// Goes on where the run was left: with what was due, or with the step that was not finished.
    pub(super) fn resume(&mut self, machine: &Machine, resume: &LoopResume) {
        self.resumes = self.resumes.saturating_add(1);
        if let Some(cap) = resume.changes.max_iterations {
            self.iteration_cap = cap;
        }
        // What a part of the run was told when it began still holds for a step of that part.
        let is_rewound = resume.reason == ResumeReason::Rewound;
        // A rewind puts the tree back as it was.
        // What happened to the tree meanwhile is unknown, so no verdict may count for it unseen.
        let is_doubtful = resume.tree_changed || !self.ended_on_known_tree();
        if !is_rewound && is_doubtful {
            self.lose_sight(resume.changes.place.is_some());
        }
        if !is_rewound {
            self.is_tree_doubtful = is_doubtful;
            self.continuation.clone_from(&resume.continuation);
            self.left_to_say = None;
            self.is_tree_changed = resume.tree_changed;
        }
        self.not_carried.extend(resume.changes.not_carried.iter().cloned());
        // The host of another machine does not know them.
        if !resume.keeps_sessions {
            self.sessions.clear();
        }
        if !is_rewound && self.was_killed_in_a_call(machine) {
            self.charge_cut_off_call();
        }
        // A resume is a new try at whatever did not answer.
        self.calls = Calls::default();
        for (name, text) in &resume.changes.captured {
            self.set(machine, name, text);
        }
        let is_reopened = matches!(&self.phase, Phase::Done(end) if end.may_be_reopened());
        let outcome = self.resumable_end();
        if let Some(stood) = self.stood.take() {
            self.current = Some(stood);
        }
        let due = match &self.phase {
            Phase::Done(_) if is_reopened => Some(self.reopen(machine)),
            Phase::Done(_) | Phase::Deciding(Deciding::End(_)) if outcome.is_some() => self.due.take(),
            Phase::Pending(Pending::Action(id) | Pending::SubLoop(id)) => Some(Deciding::Again(*id)),
            Phase::Pending(Pending::Continuation(..)) => self.last_entered.map(Deciding::Again),
            Phase::Pending(Pending::Closing(id)) => {
                Some(Deciding::Arrive { to: Target::End(*id), waited: true })
            }
            Phase::Deciding(due) => Some(due.clone()),
            // Where it goes on elsewhere, nothing is left to wait for.
            Phase::Pending(Pending::Backoff { to, .. }) if machine.on_resume.is_some() && !is_rewound => {
                Some(Deciding::Arrive { to: *to, waited: true })
            }
            Phase::Pending(Pending::Start | Pending::Backoff { .. }) | Phase::Done(_) => None,
        };
        let asked = due.as_ref().and_then(|due| Self::call_to_repeat(machine, due, outcome));
        let due = match due {
            // The same call, as if it had not been made.
            Some(_) if let Some(id) = asked => {
                // As no entry of it, so that the call is not one more try.
                self.last_entered = None;
                Some(Deciding::Arrive { to: Target::Step(id), waited: true })
            }
            Some(Deciding::Act(id)) => Some(Deciding::Again(id)),
            Some(Deciding::Judge(id)) if self.was_cut_short(outcome) => Some(Deciding::Again(id)),
            Some(Deciding::Closed(id)) if self.seen().is_some_and(Observation::was_cut_short) => {
                Some(Deciding::Arrive { to: Target::End(id), waited: true })
            }
            due => due,
        };
        // An end that was reached stays one.
        let is_over = matches!(
            due,
            Some(Deciding::Arrive { to: Target::End(_), .. } | Deciding::Closed(_) | Deciding::Finish(_))
        );
        // A call that is repeated and a board that waits go on where they were, whatever
        // `on_resume` says.
        let goes_on_there = asked.is_some() && self.board.is_only_waiting();
        let is_elsewhere = due.is_some() && !is_over && !goes_on_there && !is_rewound;
        let entry = machine.on_resume.filter(|_| is_elsewhere);
        let due = entry.map(|to| Deciding::Arrive { to, waited: true }).or(due);
        if let Some(due) = due {
            self.continuation_reader = match (entry, &due) {
                (None, _) if is_rewound => self.continuation_reader,
                (Some(_), _) => ContinuationReader::NextPrompt,
                (None, Deciding::Again(_)) => ContinuationReader::Step(self.step),
                (None, _) => ContinuationReader::Nobody,
            };
            self.phase = Phase::Deciding(due);
        }
    }

    /// Tells whether the last part of the run said on which tree it ended. A sub-loop leaves that to the run around it.
    fn ended_on_known_tree(&self) -> bool {
        match &self.phase {
            // Its last words are about the journal, and nobody looked at the tree for them.
            Phase::Done(end) if end.terminated_by == TerminatedBy::JournalLost => false,
            Phase::Done(end) => end.changes.as_ref().is_none_or(|changes| changes.known().is_some()),
            Phase::Pending(_) | Phase::Deciding(_) => false,
        }
    }

    /// Returns the state that a capture of this name is of, or would be of; the name of a state is one as well.
    pub fn state_of_capture<'r>(&'r self, machine: &'r Machine, name: &str) -> Option<&'r StateName> {
        let known = || self.capture(name).map(|result| &result.state);
        let named = || machine.steps().map(|(_, step)| step).find(|step| step.name.as_str() == name);
        let captures = || capturing(machine, name).or_else(named).map(|step| &step.name);
        known().or_else(captures)
    }

    /// Sets the text of a capture. What is known beside the text stays.
    fn set(&mut self, machine: &Machine, name: &str, text: &str) {
        let Some(state) = self.state_of_capture(machine, name).cloned() else { return };
        let known = self.capture(name).cloned();
        let seen = known.as_ref().map_or_else(|| Observation::exited(0, ""), |result| result.seen.clone());
        let seen = Observation { stdout: Text::whole(text), ..seen };
        let result = StateResult { verdict: known.and_then(|result| result.verdict), seen, state };
        // A capture goes before the result of a state with the same name, as it does where it is
        // read.
        if self.captured.contains_key(name) || capturing(machine, name).is_some() {
            self.captured.insert(name.to_owned(), result);
        } else {
            self.results.insert(result.state.clone(), result);
        }
    }

    /// Returns the state whose call was not answered, so that the run ended around it.
    fn call_to_repeat(machine: &Machine, due: &Deciding, end: Option<Outcome>) -> Option<StepId> {
        let (Deciding::Judge(id) | Deciding::Leave(id, _)) = due else { return None };
        let is_call = end == Some(Outcome::Unavailable) && machine.step(*id).call().is_some();
        is_call.then_some(*id)
    }

    /// Returns where a run is taken up again that had ended for good: in the state that could not be entered any more, or
    /// else in the last one that was.
    pub(in crate::engine) fn reopening(&self, machine: &Machine) -> Target {
        match &self.due {
            Some(Deciding::Arrive { to: to @ Target::Step(_), .. }) => *to,
            Some(_) | None => self.last_entered.map_or(machine.initial, Target::Step),
        }
    }

    /// Takes the run up again. What counted towards its end counts afresh, but for the caps of the loop.
    fn reopen(&mut self, machine: &Machine) -> Deciding {
        let to = self.reopening(machine);
        // What was due then led to the end that is taken back.
        self.due = None;
        self.last_entered = None;
        self.capped = None;
        self.rounds = Rounds::default();
        self.streaks.clear();
        self.detour = Detour::Unused;
        Deciding::Arrive { to, waited: true }
    }

    /// Returns the outcome of a run that ended, or is about to, and can go on.
    pub(in crate::engine) fn resumable_end(&self) -> Option<Outcome> {
        let outcome = match &self.phase {
            Phase::Done(end) => return Some(end.outcome).filter(|_| end.is_resumable()),
            Phase::Deciding(Deciding::End(ending)) => ending.outcome,
            Phase::Pending(_) | Phase::Deciding(_) => return None,
        };
        Some(outcome).filter(|outcome| outcome.is_resumable())
    }

    /// Tells whether the work of the current state came to no result because the run ended around it.
    pub(super) fn was_cut_short(&self, end: Option<Outcome>) -> bool {
        match (&self.sub_loop, &self.seen) {
            // A timeout of both is the one of the run around it, which ended the sub-loop as well.
            (Some(sub), _) => sub.is_cut_short() || (sub.outcome == end && end == Some(Outcome::Timeout)),
            (None, Some(result)) => result.seen.was_cut_short(),
            (None, None) => false,
        }
    }

    /// Returns where the run goes on when it is resumed: the state or terminal that comes next, or the current one.
    pub(in crate::engine) fn place<'r>(&'r self, machine: &'r Machine) -> Option<&'r StateName> {
        let due = match &self.phase {
            Phase::Deciding(due) => Some(due),
            Phase::Pending(Pending::Backoff { to, .. }) => return Some(machine.name_of(*to)),
            Phase::Pending(Pending::Closing(id)) => return Some(&machine.end(*id).name),
            Phase::Pending(
                Pending::Start | Pending::Action(_) | Pending::SubLoop(_) | Pending::Continuation(..),
            ) => None,
            Phase::Done(_) => self.due.as_ref(),
        };
        match due {
            Some(Deciding::Arrive { to, .. }) => Some(machine.name_of(*to)),
            Some(Deciding::End(_)) => match &self.due {
                Some(Deciding::Arrive { to, .. }) => Some(machine.name_of(*to)),
                Some(_) | None => self.current.as_ref(),
            },
            Some(Deciding::Closed(id) | Deciding::Finish(id)) => Some(&machine.end(*id).name),
            Some(Deciding::Again(id) | Deciding::Act(id) | Deciding::Judge(id) | Deciding::Leave(id, _)) => {
                Some(&machine.step(*id).name)
            }
            None => self.current.as_ref(),
        }
    }

    /// Returns the text that a hand-off left for the next part of the run.
    pub(in crate::engine) fn left_to_say(&self) -> Option<&str> {
        self.left_to_say.as_deref()
    }

    /// Returns every text that may be asked for later.
    pub(in crate::engine) fn texts_mut(&mut self) -> impl Iterator<Item = (Stream, &mut Text)> {
        let sub = self.sub_loop.iter_mut().flat_map(|sub| {
            let below = sub.sub_loops.values_mut().flat_map(SubLoopComplete::results_mut);
            let results = sub.captured.values_mut().chain(below).flat_map(StateResult::texts_mut);
            results.chain([(Stream::Stdout, &mut sub.output)])
        });
        let nested = self.sub_loops.values_mut().flat_map(SubLoopComplete::results_mut);
        let named = self.captured.values_mut().chain(nested).chain(self.results.values_mut());
        named.chain(&mut self.prev).chain(&mut self.seen).flat_map(StateResult::texts_mut).chain(sub)
    }
}

/// Finds a step that stores its result under a name.
fn capturing<'m>(machine: &'m Machine, name: &str) -> Option<&'m Step> {
    let captures = |step: &&Step| step.capture.as_ref().is_some_and(|capture| capture.as_str() == name);
    machine.steps().map(|(_, step)| step).find(captures)
}
