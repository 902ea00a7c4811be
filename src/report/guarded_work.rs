//! What kept the actions of a run in and its agents from its keys, action by action, and who approved what: the part of a
//! run that is attested beside its verdict. Every loop below counts, and so does the closing pass.

use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

use super::taken_edges::{MAX_STATES, has_room};
use crate::base::name::LoopName;
use crate::base::object::ObjectId;
use crate::base::sum::Sum;
use crate::base::time::Timestamp;
use crate::engine::event::{ActionKind, Event, ResumeReason, Stamped};
use crate::engine::question::{AnswerKind, GivenAnswer};
use crate::engine::sandbox_event::SandboxEvent;
use crate::evaluate::model::Usage;

/// Answers and parts of a run that are kept.
const MOST_KEPT: usize = 200;

/// The actions of a run by what guarded them, its answers and its parts.
#[derive(Clone, Debug, Default)]
pub struct GuardedWork {
    rows: IndexMap<GuardedPlace, GuardedState>,
    totals: GuardTotals,
    /// The action that is not over.
    open: Option<OpenAction>,
    /// How processes were confined since the last of them was counted: the journal says it before their end.
    confined: Vec<SandboxEvent>,
    has_prompted: bool,
    asked: Vec<(Sum, Option<ObjectId>)>,
    answers: Vec<GivenAnswer>,
    parts: Vec<RunPart>,
}

/// A state, with the loops on the way to it.
type GuardedPlace = (Vec<LoopName>, String);

/// What guarded the actions of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardedState {
    /// The loops on the way to it below the run, none for a state of the run itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<String>,
    /// Its name.
    pub state: String,
    /// Processes that it ran.
    pub actions: u64,
    /// How many of them a sandbox of ours held entirely.
    pub sandboxed: u64,
    /// How many the loop left open by writing `off`.
    pub off: u64,
    /// The engines that confined them.
    #[serde(skip_serializing_if = "IndexSet::is_empty")]
    pub engines: IndexSet<String>,
    /// The modes in which they did.
    #[serde(skip_serializing_if = "IndexSet::is_empty")]
    pub modes: IndexSet<String>,
    /// What was not enforced.
    #[serde(skip_serializing_if = "IndexSet::is_empty")]
    pub missing: IndexSet<String>,
    /// Actions that asked an agent or a model.
    pub asked: u64,
    /// How many of them went through the broker.
    pub brokered: u64,
}

/// The same of a whole run, as far as it matters for what is claimed of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuardTotals {
    /// Processes that a sandbox of ours held entirely.
    pub sandboxed: u64,
    /// Prompts, and commands after one, that none held, or not entirely.
    pub exposed: u64,
    /// Actions that the loop left open by writing `off`.
    pub off: u64,
    /// Actions that asked an agent or a model.
    pub asked: u64,
    /// How many of them went through the broker.
    pub brokered: u64,
}

/// Where a run went on after it had been left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPart {
    /// When.
    pub at: Timestamp,
    /// Why it had been left.
    pub after: ResumeReason,
}

#[derive(Clone, Debug)]
struct OpenAction {
    place: GuardedPlace,
    kind: ActionKind,
}

/// A process that is over, or whose end is unknown.
struct GuardedProcess<'a> {
    place: GuardedPlace,
    asks: bool,
    usage: Option<&'a Usage>,
}

impl GuardedWork {
    /// Takes the next event of the run or of a loop below it.
    pub fn event(&mut self, stamped: &Stamped) {
        match &stamped.event {
            Event::ActionStart { state, kind, .. } => {
                self.abandon();
                self.confined.clear();
                self.open =
                    Some(OpenAction { place: (stamped.path.clone(), state.to_string()), kind: *kind });
            }
            Event::Sandbox(event) => self.confined.push(event.clone()),
            Event::ActionComplete(complete) => {
                if let Some(open) = self.open.take() {
                    self.acted(open, complete.usage.as_ref());
                }
                self.confined.clear();
            }
            Event::Judge { state, usage, .. } => {
                let place = (stamped.path.clone(), state.to_string());
                if usage.calls > 0 {
                    self.count(&GuardedProcess { place, asks: true, usage: Some(usage) });
                }
                self.confined.clear();
            }
            Event::ClosingPassCheck(check) => {
                let place = (stamped.path.clone(), check.state.to_string());
                self.count(&GuardedProcess { place, asks: false, usage: None });
                self.confined.clear();
            }
            Event::ClosingPassProof(proof) => {
                let place = (stamped.path.clone(), proof.check.clone());
                self.count(&GuardedProcess { place, asks: false, usage: None });
                self.confined.clear();
            }
            Event::Handoff(handoff) => {
                if let Some(awaiting) = handoff.awaiting.as_deref().filter(|_| self.asked.len() < MOST_KEPT) {
                    self.asked.push((awaiting.digest, awaiting.tree.clone()));
                }
            }
            // An answer to the run that this one was rewound from does not answer this one.
            Event::Approval(answer) if !stamped.inherited && self.answers.len() < MOST_KEPT => {
                self.answers.push(answer.clone());
            }
            Event::LoopResume(resume) if stamped.depth == 0 => {
                self.abandon();
                if self.parts.len() < MOST_KEPT {
                    self.parts.push(RunPart { at: stamped.ts, after: resume.reason });
                }
            }
            Event::LoopComplete(_) if stamped.depth == 0 => self.abandon(),
            Event::LoopStart(_)
            | Event::Reused(_)
            | Event::LoopResume(_)
            | Event::Approval(_)
            | Event::StateEnter { .. }
            | Event::Evaluate { .. }
            | Event::VerdictTree { .. }
            | Event::ClosingPassStart(_)
            | Event::ClosingPassEnd(_)
            | Event::Stall { .. }
            | Event::SubLoopStart { .. }
            | Event::SubLoopComplete(_)
            | Event::Route { .. }
            | Event::Retry { .. }
            | Event::Message { .. }
            | Event::Backoff { .. }
            | Event::Warning { .. }
            | Event::Signal { .. }
            | Event::Board(_)
            | Event::ActionError { .. }
            | Event::CallFailed(_)
            | Event::LoopError { .. }
            | Event::LoopTimeout { .. }
            | Event::LoopComplete(_) => {}
        }
    }

    /// Returns what guarded the actions, by state.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &GuardedState> {
        self.rows.values()
    }

    /// Returns the same of all of them together.
    pub fn totals(&self) -> GuardTotals {
        self.totals
    }

    /// Returns how people answered questions of this run, in any of its loops.
    pub fn answers(&self) -> &[GivenAnswer] {
        &self.answers
    }

    /// Returns the answers to questions about this tree.
    pub fn answers_about<'w>(&'w self, tree: &'w ObjectId) -> impl Iterator<Item = &'w GivenAnswer> {
        let is_about = |answer: &&GivenAnswer| {
            self.asked
                .iter()
                .any(|(digest, asked)| Some(*digest) == answer.digest && asked.as_ref() == Some(tree))
        };
        self.answers.iter().filter(is_about)
    }

    /// Returns the approvals of this tree; none where the last word on it is another one.
    pub fn approvals_of<'w>(&'w self, tree: &'w ObjectId) -> impl Iterator<Item = &'w GivenAnswer> {
        let is_approval = |answer: &&GivenAnswer| answer.verdict == AnswerKind::Approve;
        let stands = self.answers_about(tree).last().is_some_and(|last| is_approval(&last));
        self.answers_about(tree).filter(move |answer| stands && is_approval(answer))
    }

    /// Returns where the run went on after it had been left.
    pub fn parts(&self) -> &[RunPart] {
        &self.parts
    }

    /// Counts an action of which it is unknown how it was held: what ran then died with its process.
    fn abandon(&mut self) {
        if let Some(open) = self.open.take() {
            self.confined.clear();
            self.acted(open, None);
        }
    }

    fn acted(&mut self, open: OpenAction, usage: Option<&Usage>) {
        let calls = usage.is_some_and(|usage| usage.calls > 0);
        let is_process = match open.kind {
            ActionKind::Shell | ActionKind::Prompt | ActionKind::Mcp => true,
            ActionKind::Learning => calls,
            ActionKind::SubLoop | ActionKind::Board | ActionKind::HumanApproval => false,
        };
        if is_process {
            let asks = open.kind.asks_agent() || calls;
            self.count(&GuardedProcess { place: open.place, asks, usage });
        }
        // From the next action on: this one has been counted as one that asks.
        self.has_prompted |= open.kind.asks_agent();
    }

    fn count(&mut self, process: &GuardedProcess<'_>) {
        let confined = std::mem::take(&mut self.confined);
        // Without a word of a sandbox in the journal it is unknown how the process was held, and that counts as not held.
        let is_held = !confined.is_empty() && confined.iter().all(SandboxEvent::is_whole);
        let is_off = confined.iter().any(SandboxEvent::is_off);
        // What the sandbox is for by default: agents, and whatever runs what one may have written.
        let is_meant = process.asks || self.has_prompted;
        let is_brokered = process.usage.is_some_and(|usage| usage.wire.is_some());
        let of = |is: bool| u64::from(is);
        // Before it is known whether there is room for a row: what is claimed of the run counts every action.
        self.totals.sandboxed += of(is_held);
        self.totals.exposed += of(is_meant && !is_held);
        self.totals.off += of(is_off);
        self.totals.asked += of(process.asks);
        self.totals.brokered += of(process.asks && is_brokered);
        if !has_room(&self.rows, &process.place, MAX_STATES) {
            return;
        }
        let row = self.rows.entry(process.place.clone()).or_insert_with(|| GuardedState {
            // The first one is the run itself, which holds every row.
            loops: process.place.0.iter().skip(1).map(ToString::to_string).collect(),
            state: process.place.1.clone(),
            ..GuardedState::default()
        });
        row.actions += 1;
        row.sandboxed += of(is_held);
        row.off += of(is_off);
        row.asked += of(process.asks);
        row.brokered += of(process.asks && is_brokered);
        for event in confined.iter().filter(|event| !event.is_off()) {
            row.engines.insert(event.engine.clone());
            row.modes.insert(event.mode.clone());
            row.missing.extend(event.missing.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event::ActionComplete;
    use crate::engine::outcome::{Outcome, TerminatedBy};
    use crate::evaluate::model::WireUsage;
    use crate::evaluate::observation::Observation;
    use crate::report::testing::Journal;

    fn whole(engine: &str) -> Event {
        let (engine, mode) = (engine.to_owned(), "workspace".to_owned());
        Event::Sandbox(SandboxEvent { engine, mode, ..SandboxEvent::default() })
    }

    fn prompt(journal: &mut Journal, before: Vec<Event>, wire: Option<WireUsage>) {
        journal.begin("ask", "coder");
        for event in before {
            journal.push(event);
        }
        let usage = Usage { calls: 1, wire, ..Usage::default() };
        let seen = Observation::exited(0, "");
        journal.push(Event::ActionComplete(ActionComplete { step: 1, seen, usage: Some(usage) }));
    }

    fn totals(journal: &Journal) -> GuardTotals {
        let mut work = GuardedWork::default();
        journal.events.iter().for_each(|event| work.event(event));
        work.totals()
    }

    #[test]
    fn commands_are_meant_after_a_prompt_and_not_before() {
        let mut journal = Journal::start();
        journal.step(("check", 1), "make", (1, ""), "no", "ask");
        assert_eq!(totals(&journal).exposed, 0);
        prompt(&mut journal, vec![whole("bwrap")], Some(WireUsage::default()));
        assert_eq!(
            totals(&journal),
            GuardTotals { sandboxed: 1, asked: 1, brokered: 1, ..GuardTotals::default() }
        );
        journal.step(("check", 2), "make", (0, ""), "yes", "done");
        assert_eq!(totals(&journal).exposed, 1);
    }

    #[test]
    fn what_lacks_something_or_is_left_to_its_host_is_exposed() {
        for event in [
            whole("host"),
            whole("none"),
            Event::Sandbox(SandboxEvent { missing: vec!["network".into()], ..SandboxEvent::default() }),
            Event::Sandbox(SandboxEvent::off()),
        ] {
            let mut journal = Journal::start();
            prompt(&mut journal, vec![whole("bwrap"), event], None);
            let found = totals(&journal);
            assert_eq!((found.sandboxed, found.exposed, found.brokered), (0, 1, 0), "{found:?}");
        }
    }

    #[test]
    fn an_action_whose_end_nobody_saw_is_exposed() {
        let mut journal = Journal::start();
        journal.begin("ask", "coder");
        journal.push(whole("bwrap"));
        journal.end(Outcome::Interrupted, TerminatedBy::Interrupted, "ask", false);
        let found = totals(&journal);
        assert_eq!((found.exposed, found.asked, found.brokered), (1, 1, 0));
    }

    #[test]
    fn loops_below_and_the_closing_pass_count() {
        let mut journal = Journal::start();
        prompt(&mut journal, vec![whole("bwrap")], Some(WireUsage::default()));
        let proof = crate::engine::event::ClosingPassProof {
            tests: vec![],
            check: "check".into(),
            verdict: crate::evaluate::verdict::Verdict::new("yes"),
            passed: true,
            exit_code: 0,
            duration_ms: 1,
        };
        journal.push(Event::ClosingPassProof(proof));
        assert_eq!(totals(&journal).exposed, 1);

        let mut journal = Journal::start();
        prompt(&mut journal, vec![], None);
        for event in &mut journal.events[1..] {
            event.depth = 1;
            event.path = ["fix-types", "inner"].map(|name| LoopName::parse(name).unwrap()).into();
        }
        let mut work = GuardedWork::default();
        journal.events.iter().for_each(|event| work.event(event));
        assert_eq!(work.totals().exposed, 1);
        assert_eq!(work.rows().next().unwrap().loops, ["inner"]);
    }
}
