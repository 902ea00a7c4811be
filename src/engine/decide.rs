//! From where a run stands to the next thing that happens in it. One decision is one event.

use super::Engine;
use super::bounds::Overflow;
use super::event::{ActionComplete, Event, Handoff};
use super::outcome::Outcome;
use super::run::{Deciding, Phase};
use super::waiting::{Decision, TurnEvidence};
use crate::base::composed::Composed;
use crate::base::name::StateName;
use crate::base::template::{RenderError, Room, Template};
use crate::evaluate::model::Usage;
use crate::evaluate::observation::Observation;
use crate::machine::{Step, StepId, Target};

impl Engine<'_> {
    /// Makes the decision that is due, with what the world gave to the judgement that is going on.
    pub(super) fn decide(&self, deciding: Deciding, evidence: &TurnEvidence) -> Decision {
        // One event at a time: the warning moves the fold, and the decision that was due is made
        // after it.
        if let Some(warning) = self.due_warning() {
            return Decision::Happens(warning);
        }
        if let Some(id) = self.weighed_now(&deciding) {
            let step = self.machine.step(id);
            // What ends the run around a state comes before its own signals, and both before the
            // judgement.
            let first = self.ended_around(step, evidence).map(Ok).or_else(|| self.signal(step, evidence));
            match first {
                Some(Ok(event)) => return Decision::Happens(event),
                Some(Err(missing)) => return Decision::Lacks(id, missing),
                None => {}
            }
            match self.lacking(step, id, evidence) {
                Ok(None) => {}
                Ok(Some(missing)) => return Decision::Lacks(id, missing),
                Err(event) => return Decision::Happens(*event),
            }
        }
        Decision::Happens(match deciding {
            Deciding::Arrive { to, waited } => return self.arrive(to, waited),
            Deciding::Act(id) => return self.act(id, evidence),
            Deciding::Again(id) => self.enter_again(id),
            Deciding::Judge(id) => self.judge(id, evidence),
            Deciding::Leave(id, verdict) => self.leave(id, &verdict),
            Deciding::Closed(id) => self.closed(id),
            Deciding::Finish(id) => self.finish(id),
            Deciding::End(ending) => self.complete(ending),
        })
    }

    /// Returns what is to be said before anything else is decided.
    fn due_warning(&self) -> Option<Event> {
        if let Some(message) = self.start.event.warnings.get(self.run.warned()) {
            return Some(Event::Warning { state: None, message: message.clone() });
        }
        let state = self.run.current()?;
        let of_bound = self.run.unsaid().map(Overflow::sentence);
        let message = of_bound.or_else(|| self.run.warning().map(str::to_owned))?;
        Some(Event::Warning { state: Some(state.clone()), message })
    }

    /// A request to end that comes before the last event wins over every other end of the run. What would have ended
    /// it otherwise is decided again when the run is resumed. An end that is already in the journal stays.
    pub(super) fn unless_asked_to_end(&self, event: Event) -> Event {
        // What is already decided stands in the journal, and a resume would read it back.
        let is_decided = matches!(self.run.phase(), Phase::Deciding(Deciding::End(_)));
        let state = match &event {
            Event::LoopComplete(end)
                if !matches!(end.outcome, Outcome::Interrupted | Outcome::LeaseLost | Outcome::Cancelled) =>
            {
                &end.final_state
            }
            Event::Signal { state, .. }
            | Event::Stall { state, .. }
            | Event::LoopError { state, .. }
            | Event::LoopTimeout { state, .. }
            | Event::Handoff(Handoff { state, .. }) => state,
            Event::LoopStart(_)
            | Event::LoopResume(_)
            | Event::Approval(_)
            | Event::StateEnter { .. }
            | Event::ActionStart { .. }
            | Event::ActionComplete(_)
            | Event::ActionError { .. }
            | Event::CallFailed(_)
            | Event::Evaluate { .. }
            | Event::VerdictTree { .. }
            | Event::ClosingPassStart(_)
            | Event::ClosingPassCheck(_)
            | Event::ClosingPassProof(_)
            | Event::Reused(_)
            | Event::ClosingPassEnd(_)
            | Event::SubLoopStart { .. }
            | Event::SubLoopComplete(_)
            | Event::Route { .. }
            | Event::Retry { .. }
            | Event::Message { .. }
            | Event::Backoff { .. }
            | Event::Warning { .. }
            | Event::Judge { .. }
            | Event::Sandbox(_)
            | Event::Board(_)
            | Event::LoopComplete(_) => return event,
        };
        self.interrupted(state).filter(|_| !is_decided).unwrap_or(event)
    }

    /// Returns the step whose work is about to be weighed.
    fn weighed_now(&self, deciding: &Deciding) -> Option<StepId> {
        match deciding {
            Deciding::Judge(id) => Some(*id),
            // A state without an action is judged as soon as it is entered.
            Deciding::Act(id) if self.machine.step(*id).action.is_none() => Some(*id),
            Deciding::Arrive { .. }
            | Deciding::Again(_)
            | Deciding::Act(_)
            | Deciding::Leave(..)
            | Deciding::Closed(_)
            | Deciding::Finish(_)
            | Deciding::End(_) => None,
        }
    }

    /// The end of an action as an event.
    pub(super) fn completed(&self, seen: Observation, usage: Option<Usage>) -> Event {
        Event::ActionComplete(ActionComplete { step: self.run.step(), seen, usage })
    }

    pub(super) fn step_of(&self, state: &StateName) -> Option<&Step> {
        match self.machine.find(state)? {
            Target::Step(id) => Some(self.machine.step(id)),
            Target::End(_) => None,
        }
    }

    pub(super) fn render(&self, template: &Template) -> Result<String, RenderError> {
        template.render(&self.scope())
    }

    pub(super) fn render_within(&self, room: &mut Room, template: &Template) -> Result<String, RenderError> {
        template.render_within(room, &self.scope())
    }

    /// Renders a text for an agent, in which what others printed is bounded.
    pub(super) fn compose_within(
        &self,
        room: &mut Room,
        template: &Template,
    ) -> Result<Composed, RenderError> {
        template.compose_within(room, &self.scope())
    }
}
