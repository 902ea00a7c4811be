//! Tells what the runs of a plan are worth as a run does: a step for each item, and one end. So every report, the status
//! of a commit and a delivery know it without knowing of plans.

use std::time::Duration;

use serde_json::json;

use crate::base::name::{LoopName, StateName};
use crate::base::text::one_line;
use crate::engine::changes::{Changes, KnownStart, StartTree};
use crate::engine::event::{ActionComplete, ActionKind, Event, LoopComplete, LoopStart};
use crate::engine::outcome::{Outcome, Signal, TerminatedBy};
use crate::engine::verification::Verification;
use crate::evaluate::model::Usage;
use crate::evaluate::observation::{Observation, Text};
use crate::evaluate::verdict::{Observes, Verdict};
use crate::fanout::item_plan::{Plan, SEVERAL};
use crate::machine::OnChange;

/// What is told of an item.
pub(super) struct ToldItem {
    /// Its id.
    pub(super) id: String,
    /// The leg and the attempt, for people.
    pub(super) place: String,
    /// How it ended.
    pub(super) sentence: String,
    /// What it printed last; empty if it was not looked at.
    pub(super) printed: String,
    /// The exit code that it counts with.
    pub(super) exit_code: u8,
    /// Whether there is a run of it.
    pub(super) is_there: bool,
    /// How long it took.
    pub(super) took: Duration,
    /// What its models cost.
    pub(super) usage: Usage,
}

/// How all of it ended.
pub(super) struct StoryEnding {
    /// The exit code.
    pub(super) exit_code: u8,
    /// In a sentence.
    pub(super) reason: String,
    /// What the items changed together.
    pub(super) changes: Changes,
    /// What verified them.
    pub(super) verification: Verification,
}

/// The name under which a plan is reported: its loop, or `plan` for several.
pub(super) fn name(plan: &Plan) -> LoopName {
    match plan.loops.as_slice() {
        [one] => one.name.clone(),
        _ => LoopName::parse(SEVERAL).expect("it is a name"),
    }
}

/// Returns the events, in order, each with the time since the beginning.
pub(super) fn events(
    plan: &Plan,
    instance: &str,
    start: Option<KnownStart>,
    items: &[ToldItem],
    warnings: Vec<String>,
    ending: StoryEnding,
) -> Vec<(Duration, Event)> {
    let mut events = vec![(Duration::ZERO, Event::LoopStart(beginning(plan, instance, start)))];
    events.extend(
        warnings.into_iter().map(|message| (Duration::ZERO, Event::Warning { state: None, message })),
    );
    let mut at = Duration::ZERO;
    let mut worst: Option<&ToldItem> = None;
    for (index, item) in items.iter().enumerate() {
        let step = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        let Some(state) = state(&item.id) else { continue };
        events.push((at, Event::StateEnter { state: state.clone(), iteration: 1, step, attempt: 1 }));
        at += item.took;
        events.extend(work(item, step, &state).into_iter().map(|event| (at, event)));
        // The run ends in the first step that has the exit code of the whole: that one decided it.
        if item.exit_code != 0 && worst.is_none_or(|worst| worst.exit_code != ending.exit_code) {
            worst = Some(item);
        }
    }
    let (outcome, terminated_by) = outcome(ending.exit_code);
    let final_state = worst.and_then(|worst| self::state(&worst.id)).unwrap_or_else(end);
    let steps = u32::try_from(items.len()).unwrap_or(u32::MAX);
    events.push((
        at,
        Event::LoopComplete(LoopComplete {
            iterations: 1,
            steps,
            cycles: 1,
            duration_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            verified: ending.exit_code == 0,
            exit_code: ending.exit_code,
            signal: signal(ending.exit_code),
            reason: ending.reason,
            changes: Some(ending.changes),
            verification: Some(Box::new(ending.verification)),
            ..LoopComplete::new(outcome, terminated_by, final_state)
        }),
    ));
    events
}

fn beginning(plan: &Plan, instance: &str, start: Option<KnownStart>) -> LoopStart {
    let unknown = || StartTree::Unknown { unknown: "the runs of a plan have a tree each".to_owned() };
    LoopStart {
        // Several loops have no one digest; the id of the plan covers those of all.
        definition_sha256: plan.plan_id.to_string(),
        strict: true,
        merges: Some(plan.plan_id),
        commit: Some(plan.commit.to_string()),
        tree: Some(start.map_or_else(unknown, |start| StartTree::Known(Box::new(start)))),
        // The run of each item has judged its changes by its own rule.
        on_change: OnChange::Report,
        ..LoopStart::new(name(plan), instance)
    }
}

/// Returns what happens in the step of an item.
fn work(item: &ToldItem, step: u32, state: &StateName) -> Vec<Event> {
    let ToldItem { sentence, printed, exit_code, took, usage, .. } = item;
    let verdict = if item.is_there { Verdict::yes_if(*exit_code == 0) } else { Verdict::error() };
    if !item.is_there {
        return vec![Event::ActionError { state: state.clone(), error: sentence.clone() }];
    }
    let observes = if *exit_code == 0 { Observes::Passing } else { Observes::Failing };
    let seen = Observation {
        stderr: Text::whole(printed),
        duration: *took,
        ..Observation::exited(i32::from(*exit_code), format!("{sentence}\n"))
    };
    vec![
        Event::ActionStart {
            state: state.clone(),
            action: one_line(&item.place, 300),
            // The run of an item is to the merge what a sub-loop is to a run.
            kind: ActionKind::SubLoop,
            role: None,
            session: None,
            tree: None,
        },
        Event::ActionComplete(ActionComplete {
            step,
            seen,
            usage: (!usage.is_nothing()).then(|| usage.clone()),
        }),
        Event::Evaluate {
            r#type: "exit_code".to_owned(),
            verdict,
            observes: Some(observes),
            confidence: None,
            details: [("exit_code".to_owned(), json!(exit_code))].into_iter().collect(),
            warnings: Vec::new(),
            memory: None,
            tree: None,
        },
    ]
}

fn state(id: &str) -> Option<StateName> {
    StateName::parse(id).ok()
}

fn end() -> StateName {
    StateName::parse("merged").expect("it is a name")
}

/// Returns the outcome that has this exit code.
fn outcome(code: u8) -> (Outcome, TerminatedBy) {
    match code {
        0 => (Outcome::Success, TerminatedBy::Terminal),
        1 => (Outcome::Failure, TerminatedBy::Terminal),
        3 => (Outcome::Exhausted, TerminatedBy::MaxIterations),
        5 => (Outcome::Blocked, TerminatedBy::Blocked),
        6 => (Outcome::OverBudget, TerminatedBy::Budget),
        // A run that did not get its lock has done nothing, like one without a service that it needs.
        69 | 73 => (Outcome::Unavailable, TerminatedBy::Unavailable),
        75 => (Outcome::Handoff, TerminatedBy::Handoff),
        124 => (Outcome::Timeout, TerminatedBy::Timeout),
        130 | 143 => (Outcome::Interrupted, TerminatedBy::Interrupted),
        _ => (Outcome::Error, TerminatedBy::Error),
    }
}

fn signal(code: u8) -> Option<Signal> {
    match code {
        130 => Some(Signal::Int),
        143 => Some(Signal::Term),
        _ => None,
    }
}
