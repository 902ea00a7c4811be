//! What a run would have come to with another verdict. Only the machine is asked: where the world would have had to do
//! something first, nothing is claimed but the state that would have been entered.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::common::unjudged_verdict;
use super::event::{ActionComplete, Event, LoopComplete, LoopStart, SubLoopComplete, TreeState};
use super::outcome::{Outcome, TerminatedBy};
use super::past::Past;
use super::run::{Deciding, METRICS, Pending, Phase};
use super::sub_loop_result::sub_loop_verdict;
use super::waiting::{Decision, TurnEvidence};
use super::{Engine, Start, TURN};
use crate::base::name::StateName;
use crate::base::time::Timestamp;
use crate::evaluate::Verdicts;
use crate::evaluate::observation::Observation;
use crate::evaluate::verdict::{Observes, Verdict};
use crate::machine::{Action, JudgedBy, Machine, Routes, Step, StepId, Target, routing};

/// What the machine alone makes of a verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Course {
    /// The run ends.
    Ends(Box<LoopComplete>),
    /// This state is entered, and what comes then is for the world to say.
    Enters(StateName),
}

impl Course {
    /// Returns where it leads.
    pub fn place(&self) -> &StateName {
        match self {
            Self::Ends(end) => &end.final_state,
            Self::Enters(state) => state,
        }
    }

    /// Tells whether both come to the same for people.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ends(one), Self::Ends(other)) => {
                (one.outcome, &one.final_state) == (other.outcome, &other.final_state)
            }
            (Self::Enters(one), Self::Enters(other)) => one == other,
            (Self::Ends(_), Self::Enters(_)) | (Self::Enters(_), Self::Ends(_)) => false,
        }
    }
}

/// A moment of a run at which a verdict fell.
#[derive(Clone, Debug)]
pub struct VerdictMoment {
    past: Past,
    id: StepId,
    verdict: Verdict,
    details: Map<String, Value>,
    tree: Option<TreeState>,
}

impl VerdictMoment {
    /// Recognizes one: the run as it was before the event, and the event. Nothing where no evaluator, no person and no
    /// sub-loop could have said anything else.
    pub fn of(past: &Past, machine: &Machine, event: &Event) -> Option<Self> {
        let Event::Evaluate { verdict, details, tree, .. } = event else { return None };
        let Phase::Deciding(Deciding::Judge(id) | Deciding::Act(id)) = *past.run.phase() else { return None };
        can_differ(machine, id, verdict).then(|| Self {
            past: past.clone(),
            id,
            verdict: verdict.clone(),
            details: details.clone(),
            tree: tree.clone(),
        })
    }

    /// Recognizes the end of an action that could not be judged, because it took too long or could not be started; with
    /// another end it could have been judged.
    pub fn unjudged(past: &Past, machine: &Machine, complete: &ActionComplete) -> Option<Self> {
        let verdict = unjudged_verdict(&complete.seen)?;
        let Phase::Pending(Pending::Action(id)) = *past.run.phase() else { return None };
        // A stall detector would have looked at the tree.
        if machine.stall.is_some() || !can_differ(machine, id, &verdict) {
            return None;
        }
        let mut past = past.clone();
        let seen = Observation { duration: complete.seen.duration, ..Observation::exited(0, "") };
        let (elapsed, complete) = (past.elapsed, ActionComplete { seen, ..complete.clone() });
        past.event(machine, &Event::ActionComplete(complete), elapsed);
        Some(Self { past, id, verdict, details: Map::new(), tree: None })
    }

    /// Returns the verdict that fell.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns the state that was left by it.
    pub fn state<'m>(&self, machine: &'m Machine) -> &'m StateName {
        &machine.step(self.id).name
    }

    /// Returns every other verdict that would have made a difference, and which.
    pub fn otherwise(&self, machine: &Machine) -> Vec<(Verdict, Course)> {
        let actual = self.course(machine, &self.verdict);
        let others = alternatives(machine, self.id).into_iter().filter(|word| *word != self.verdict);
        let courses = others.filter_map(|word| self.course(machine, &word).map(|course| (word, course)));
        courses.filter(|(_, course)| actual.as_ref().is_none_or(|actual| !actual.is_like(course))).collect()
    }

    /// Returns what a verdict leads to, as far as that follows.
    pub fn course(&self, machine: &Machine, verdict: &Verdict) -> Option<Course> {
        let step = machine.step(self.id);
        let observes = match verdict.as_str() {
            // Whether it would have been verified is not known.
            "success" if routing::is_sub_loop(step) => vec![Observes::Passing, Observes::Nothing],
            _ => vec![step.observes(verdict)],
        };
        let mut course: Option<Course> = None;
        for observes in observes {
            for details in self.details(machine, verdict) {
                let another = self.follow(machine, verdict, observes, details);
                course = Some(match course {
                    None => another,
                    Some(known) if known.is_like(&another) => known,
                    // They part after they have come to the same state.
                    Some(known) if known.place() == another.place() => Course::Enters(known.place().clone()),
                    Some(_) => return None,
                });
            }
        }
        course
    }

    /// Returns what the judgement may have rested on. Where a stall detector compares a value, it may have been the one of the
    /// last visit, or another.
    fn details(&self, machine: &Machine, verdict: &Verdict) -> Vec<Map<String, Value>> {
        let is_compared =
            machine.stall.is_some() && METRICS.iter().any(|key| self.details.contains_key(*key));
        if !is_compared || *verdict == self.verdict {
            return vec![self.details.clone()];
        }
        let with = |value: Value| {
            let rest = self.details.iter().filter(|(key, _)| !METRICS.contains(&key.as_str()));
            let mut details: Map<_, _> = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
            details.insert("value".to_owned(), value);
            details
        };
        let before = self.past.run.streak(self.id).and_then(|streak| streak.seen.metric.clone());
        before.into_iter().map(&with).chain([with(json!({"another": true}))]).collect()
    }

    fn follow(
        &self,
        machine: &Machine,
        verdict: &Verdict,
        observes: Observes,
        details: Map<String, Value>,
    ) -> Course {
        let mut past = self.past.clone();
        let (elapsed, tree) = (past.elapsed, self.tree.clone());
        let evaluated = Event::evaluated("", verdict.clone(), Some(observes), details, tree);
        past.event(machine, &evaluated, elapsed);
        course(past, machine, self.id)
    }
}

/// Returns what follows in the run around a sub-loop that would have ended like this. `past` is that run while the
/// sub-loop runs.
pub fn around(past: &Past, machine: &Machine, end: &LoopComplete) -> Option<Course> {
    let Phase::Pending(Pending::SubLoop(id)) = *past.run.phase() else { return None };
    let is_halt = match end.terminated_by {
        TerminatedBy::Terminal
        | TerminatedBy::UncommittedChanges
        | TerminatedBy::NotConfirmed
        | TerminatedBy::MaxIterations
        | TerminatedBy::MaxSteps
        | TerminatedBy::MaxEdgeRevisits
        | TerminatedBy::Error
        | TerminatedBy::Blocked
        | TerminatedBy::Stall => false,
        TerminatedBy::Timeout
        | TerminatedBy::Handoff
        | TerminatedBy::Interrupted
        | TerminatedBy::LeaseLost
        | TerminatedBy::Cancelled
        | TerminatedBy::FatalError
        | TerminatedBy::LoopStop
        | TerminatedBy::Budget
        | TerminatedBy::Unavailable
        | TerminatedBy::NotRecorded
        | TerminatedBy::JournalLost
        | TerminatedBy::Killed => true,
    };
    // A look at the tree would have been due.
    if is_halt || machine.stall.is_some() {
        return None;
    }
    let mut past = past.clone();
    let elapsed = past.elapsed;
    let verdict = sub_loop_verdict(end.outcome);
    let complete = SubLoopComplete {
        state: machine.step(id).name.clone(),
        r#loop: String::new(),
        verdict: verdict.clone(),
        exit_code: end.exit_code.into(),
        outcome: Some(end.outcome),
        final_state: Some(end.final_state.clone()),
        verified: end.verified,
        steps: end.steps,
        duration_ms: end.duration_ms,
        terminated_by: Some(end.terminated_by),
        reason: end.reason.clone(),
        error: None,
        halt: None,
        usage: crate::evaluate::model::Usage::default(),
        captured: indexmap::IndexMap::new(),
        sub_loops: indexmap::IndexMap::new(),
        output: crate::evaluate::observation::Text::default(),
    };
    let observes = Some(complete.observes());
    past.event(machine, &Event::SubLoopComplete(complete), elapsed);
    past.event(machine, &Event::evaluated("sub_loop", verdict, observes, Map::new(), None), elapsed);
    Some(course(past, machine, id))
}

fn can_differ(machine: &Machine, id: StepId, verdict: &Verdict) -> bool {
    alternatives(machine, id).iter().any(|word| word != verdict)
}

fn is_operation(action: &Action) -> bool {
    matches!(action, Action::Board(_))
}

/// Returns the verdicts that whoever judges a step can give. What says that an action or an evaluation failed is none of
/// them.
fn alternatives(machine: &Machine, id: StepId) -> Vec<Verdict> {
    let step = machine.step(id);
    let Routes::ByVerdict { table, .. } = &step.routes else { return Vec::new() };
    let of_action = step.action.as_ref().map(Action::judged_by);
    let words: Vec<Verdict> = match (of_action, &step.evaluate) {
        // The board only says what is on it.
        (Some(JudgedBy::Itself(_)), _) if step.action.as_ref().is_some_and(is_operation) => Vec::new(),
        (Some(JudgedBy::Itself(words)), _) => words.iter().copied().map(Verdict::new).collect(),
        (Some(JudgedBy::Evaluator(_)) | None, Some(evaluate)) => match evaluate.verdicts() {
            Verdicts::Only(words) => words.iter().map(|word| Verdict::new(word.as_ref())).collect(),
            // Of all the words there are, those that have a way.
            Verdicts::Any => {
                let blocked = machine.fallback.on_blocked.map(|_| Verdict::blocked());
                table.keys().cloned().chain(blocked.filter(|word| !table.contains_key(word))).collect()
            }
        },
        (Some(JudgedBy::Evaluator(_)) | None, None) => Vec::new(),
    };
    words.into_iter().filter(|word| !word.is_error() && !word.is_timeout()).collect()
}

/// Follows a run from a verdict that has fallen, as far as nothing is needed from the world and no text of the loop is
/// made of what the world gave.
fn course(past: Past, machine: &Machine, id: StepId) -> Course {
    let Past { run, start, elapsed } = past;
    let supposed = Start::of(LoopStart { tree: None, ..start.clone() }, Timestamp::from_millis(0), "");
    let mut engine = Engine::suppose(machine, supposed, run, elapsed);
    if machine.step(id).message.is_some() && !engine.run.is_noted() {
        // What it would have said leads nowhere.
        let state = machine.step(id).name.clone();
        engine.run.apply(machine, &Event::Message { state, text: String::new() });
    }
    // States without work can lead back to each other for ever, and a real run would be ended from outside.
    for _ in 0..TURN {
        let event = match engine.run.phase().clone() {
            Phase::Done(end) => return Course::Ends(Box::new(end)),
            Phase::Pending(Pending::Backoff { wait, .. }) => {
                engine.now = engine.now.saturating_add(engine.bounded(wait).max(Duration::ZERO));
                engine.run.waited();
                continue;
            }
            Phase::Deciding(Deciding::Act(id)) if depends_on_world(machine.step(id)) => break,
            // The action of a terminal decides nothing.
            Phase::Deciding(Deciding::Arrive { to: Target::End(id), .. }) => engine.finish(id),
            Phase::Deciding(deciding) => match engine.decide(deciding, &TurnEvidence::default()) {
                Decision::Happens(event) => event,
                Decision::Begins(..) | Decision::Lacks(..) => break,
            },
            Phase::Pending(_) => break,
        };
        if let Event::LoopComplete(end) = &event
            && end.outcome == Outcome::Success
            && start.fails_on_change()
        {
            // The tree decides.
            return Course::Enters(end.final_state.clone());
        }
        engine.run.apply(machine, &event);
    }
    Course::Enters(engine.run.current().unwrap_or_else(|| machine.name_of(machine.initial)).clone())
}

fn depends_on_world(step: &Step) -> bool {
    step.action.is_some() || step.evaluate.is_some() || step.message.is_some()
}
