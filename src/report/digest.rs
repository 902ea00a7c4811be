//! What happened in a run, folded from its events for people. Whatever the length of the run, its size is bounded:
//! counts are complete, rows of steps are the first and the last ones. It says nothing that the events do not show.

pub mod changed_tree;
pub mod closing_rows;
pub mod flips;
pub mod green;
mod sentence;
pub mod visits;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use flips::Otherwise;
use indexmap::IndexMap;
use visits::Fold;

use super::board_work::BoardWork;
use super::confined_work::ConfinedWork;
use super::guarded_work::GuardedWork;
use super::mends::Mends;
use super::numbers::StepNumber;
use super::passes::Passes;
use super::reading_place::Reader;
use super::step::tracker::Tracker;
use super::step::{Step, StepStanding};
use super::taken_edges::{EdgeCount, MAX_STATES, VisibleEdges, count, count_edge, has_room};
use super::unbegun_run::Unbegun;
use super::wavering::Wavering;
use super::work_counts::WorkCounts;
use crate::base::name::StateName;
use crate::base::text;
use crate::base::time::{Timestamp, millis};
use crate::engine::check_history::CheckHistory;
use crate::engine::event::{
    ClosingPassCheck, Event, HandoffReason, LoopComplete, LoopStart, RouteReason, SCHEMA, Stamped, TreeState,
};
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::engine::question::{Awaiting, GivenAnswer};
use crate::engine::reused::ReusedRun;
use crate::engine::whereabouts::Whereabouts;
use crate::evaluate::model::Usage;

/// How many steps are kept from the beginning.
pub const FIRST_STEPS: usize = 100;

/// How many steps are kept from the end.
// More from the end than from the beginning, because what decided a run stands there.
pub const LAST_STEPS: usize = 400;

/// How many warnings are kept.
pub const MAX_WARNINGS: usize = 100;

/// How many passes that are the same show that another one would be, too.
// The third is also the first that a log holds back: it shows two (`passes::SHOWN`).
const ENOUGH_PASSES: u32 = 3;

/// Bytes of each stream that the row of a failing step keeps.
// Even in a run of nothing but failures, the two streams of 500 rows then take no more than 4 MiB.
const FAILING_TAIL: usize = 4 * 1024;

/// Bytes of each stream that the row of any other step keeps.
const PASSING_TAIL: usize = 1024;

/// The exit code of a process that was killed: 128 and the number of the signal.
const KILLED: u8 = 137;

/// Where the reports of this run are written, as far as that is known; read by the formats that name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportPaths {
    /// The id of the run.
    pub run_id: String,
    /// The directory of the reports.
    pub report_dir: String,
    /// The JUnit file.
    pub junit: String,
    /// The Markdown summary.
    pub summary: String,
    /// The patch, where the run changed something.
    pub patch: String,
    /// The name under which the reports are stored; empty if they are not.
    pub artifact_name: String,
    /// The key of the run, if it was chosen or the job has a matrix.
    pub key: String,
    /// What another job resumes the run from, if the run can be resumed; empty if it cannot reach the reports.
    pub resume_from: String,
    /// The items of a merge that have a page of their own beside its reports.
    pub item_pages: BTreeSet<String>,
}

impl ReportPaths {
    /// Returns the same of reports that are stored nowhere.
    #[must_use]
    pub fn unstored(&self) -> Self {
        Self { artifact_name: String::new(), resume_from: String::new(), ..self.clone() }
    }
}

/// How often something happened in one state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateCount {
    /// Executions.
    pub visits: u64,
    /// Executions that failed.
    pub failing: u64,
    /// Executions that passed.
    pub passing: u64,
    /// Time in actions.
    pub duration: Duration,
    /// Executions by verdict.
    pub verdicts: IndexMap<String, u64>,
    /// The result of the last execution.
    pub last: Option<StepStanding>,
}

/// A warning of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The state it is about.
    pub state: Option<StateName>,
    /// The sentence.
    pub message: String,
}

/// How a run ended, for readers that know only good, bad and broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// It succeeded.
    Success,
    /// There was no reason to run.
    NotRun,
    /// It goes on in a later run.
    HandedOff,
    /// It came to its end without success.
    Failure,
    /// It did not come to its end.
    Error,
}

/// A part of a sentence, so that every format can set names in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentencePart {
    /// Words.
    Words(String),
    /// A name that a user chose.
    Name(String),
}

/// A run that was skipped, because nothing changed in the scope of its loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotRun {
    /// The loop.
    pub loop_name: String,
    /// The loop file.
    pub file: String,
    /// The paths in which nothing changed.
    pub scope: Vec<String>,
    /// The commit since which nothing changed.
    pub since: String,
}

/// A run as people see it.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    /// Where the reports are, for the formats that name them. This and the next field come from no event.
    pub places: ReportPaths,
    /// Where people can read about the run.
    pub reader: Reader,
    /// What would have been with another verdict, where somebody asked; from the machine, and from no event either.
    pub otherwise: Otherwise,
    /// Whether somebody else shows its annotations: the leg that it is an item of.
    pub is_annotated_by_leg: bool,
    not_run: Option<NotRun>,
    unbegun: Option<Box<Unbegun>>,
    began: Option<Timestamp>,
    seen_until: Option<Timestamp>,
    /// Why its journal cannot be read any further.
    broken_off: Option<String>,
    took: Duration,
    start: Option<LoopStart>,
    first: Vec<Step>,
    last: VecDeque<Step>,
    omitted: u64,
    without_steps: bool,
    states: IndexMap<StateName, StateCount>,
    edges: IndexMap<(StateName, StateName), EdgeCount>,
    way: VisibleEdges,
    warnings: Vec<Warning>,
    more_warnings: u64,
    handoff: Option<(StateName, String)>,
    handoff_reason: Option<HandoffReason>,
    continuation: Option<String>,
    awaiting: Option<Box<Awaiting>>,
    approvals: Vec<GivenAnswer>,
    usage: Usage,
    confined: ConfinedWork,
    guarded: GuardedWork,
    trees: IndexMap<StateName, (TreeState, bool)>,
    mends: Mends,
    wavering: Wavering,
    work: Option<Box<BoardWork>>,
    restarts: u32,
    tracker: Tracker,
    passes: Passes,
    end: Option<LoopComplete>,
    closing_pass: Vec<ClosingPassCheck>,
    place: Whereabouts,
    reused: Option<Box<ReusedRun>>,
    fold: Fold,
    counts: WorkCounts,
    /// The loop by the name of its files; empty where they are not known.
    named: String,
}

impl Digest {
    /// Returns the earlier run that stands for this one, if one does.
    pub fn reused(&self) -> Option<&ReusedRun> {
        self.reused.as_deref()
    }

    /// Returns the checks that were made once more at the end.
    pub fn closing_pass(&self) -> &[ClosingPassCheck] {
        &self.closing_pass
    }

    /// Folds a whole journal.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Stamped>) -> Self {
        let mut digest = Self::default();
        events.into_iter().for_each(|event| digest.event(event));
        digest
    }

    /// Makes the digest of a run that was skipped.
    pub fn of_none(not_run: NotRun) -> Self {
        Self { not_run: Some(not_run), ..Self::default() }
    }

    /// Makes the digest of a run that could not begin.
    pub fn of_unbegun(unbegun: Unbegun) -> Self {
        Self { unbegun: Some(Box::new(unbegun)), ..Self::default() }
    }

    /// Names the loop of a journal that could not say it, by the name of its files.
    pub fn of_files(&mut self, stem: &str) {
        stem.clone_into(&mut self.named);
    }

    /// Says that the journal goes on with something that cannot be read: how the run ended is not known, rather than that
    /// it did not.
    pub fn breaks_off(&mut self, why: String) {
        self.broken_off = Some(why);
    }

    /// Tells whether the journal goes on with something that cannot be read.
    pub fn is_broken_off(&self) -> bool {
        self.broken_off.is_some()
    }

    /// Ends the digest of a run whose process was killed, as the process could not. What the journal lacks becomes a
    /// warning. A run that has an end keeps it.
    pub fn was_killed(&mut self) {
        let (Some(at), None) = (self.seen_until, &self.end) else { return };
        let first = || self.start.as_ref()?.source.lines.keys().next();
        let last = self.steps().last().map(|step| step.route.as_ref().map_or(&step.state, |route| &route.to));
        let Some(final_state) = self.place.state().or(last).or_else(first).cloned() else { return };
        let pass = self.place.in_pass();
        // Of the action of a terminal, the end is all that there is to know.
        let is_over = |step: &&Step| step.route.is_some() || (step.closing && step.result.is_some());
        let unknown = match self.unfinished().filter(|step| !is_over(step)) {
            _ if pass.is_some() => "what the closing pass came to".to_owned(),
            Some(step) => {
                format!("how `{}` (step {}) ended, and what it printed last", step.state, step.number)
            }
            None => "what came after its last event".to_owned(),
        };
        let ends = if self.broken_off.is_some() { "can be read until" } else { "ends at" };
        let message = format!("the process was killed, and the journal {ends} {at}: {unknown}, is not known");
        self.warn(None, &message);
        // Nobody looked at the tree that was left, so nothing is verified.
        let end = LoopComplete {
            iterations: self.iterations(),
            steps: u32::try_from(self.step_count()).unwrap_or(u32::MAX),
            cycles: self.cycles(),
            duration_ms: millis(self.duration()),
            exit_code: KILLED,
            reason: match &pass {
                Some(pass) => format!("the process was killed in {pass}"),
                None => "the process was killed".to_owned(),
            },
            killed_in_pass: pass,
            ..LoopComplete::new(Outcome::Interrupted, TerminatedBy::Killed, final_state)
        };
        // The number 0, which no event of a journal has: this end is in the reports alone.
        self.event(&Stamped { at: self.took, ..Stamped::new(at, 0, Event::LoopComplete(end)) });
    }

    /// Tells whether the process of the run was killed, so that its end is not its own.
    pub fn is_killed(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.terminated_by == TerminatedBy::Killed)
    }

    /// Makes a digest that counts and knows the step that decides, but keeps no rows: for the live sinks. `depth` is
    /// that of the loop it is about, 0 for the run itself.
    pub fn without_steps(depth: u32) -> Self {
        Self {
            without_steps: true,
            tracker: Tracker::at(depth),
            passes: Passes::at(depth),
            ..Self::default()
        }
    }

    /// Makes a digest that says of this step why it did what it did.
    pub fn asking(step: StepNumber) -> Self {
        Self { fold: Fold::asking(step), ..Self::default() }
    }

    /// Returns what the chain of the run is made of; nothing for the live sinks, which do not keep it.
    pub(super) fn fold(&self) -> Option<&Fold> {
        (!self.without_steps).then_some(&self.fold)
    }

    /// Returns how many verdicts of evaluators fell, also in the loops that the run ran.
    pub fn verdicts(&self) -> u64 {
        self.fold.verdicts()
    }

    /// Takes the next event.
    pub fn event(&mut self, stamped: &Stamped) {
        let _counted = self.finished(stamped);
    }

    /// Takes the next event; returns the step that it finished, if it finished one.
    pub fn finished(&mut self, stamped: &Stamped) -> Option<Step> {
        self.began.get_or_insert(stamped.ts);
        self.seen_until = Some(stamped.ts);
        self.took = self.took.max(stamped.at);
        if stamped.depth == 0 {
            self.place.event(&stamped.event);
        }
        // The live sinks read none of these, and would fold every event three more times.
        if !self.without_steps {
            self.fold.event(stamped);
            self.guarded.event(stamped);
            self.counts.event(stamped);
        }
        // Before the tracker takes the event, which forgets the step that was suspended.
        if matches!(stamped.event, Event::LoopResume(_)) && stamped.depth == self.tracker.depth() {
            self.resume();
        }
        let finished = self.tracker.event(stamped);
        if let Some(step) = &finished {
            self.keep(step);
            // A suspended step may still pass. Its row and its counts are taken
            // back by `resume`, which these two cannot do.
            if self.tracker.suspended().is_none() {
                self.mends.step(step);
                self.wavering.step(step);
            }
        }
        let _ended = self.passes.event(stamped);
        if let Event::Sandbox(event) = &stamped.event {
            // Also within sub-loops: what was open there was open.
            self.confined.acted(event);
        }
        if stamped.depth > self.tracker.depth() {
            // What happens inside of a sub-loop is the business of the step that runs it.
            return finished;
        }
        match &stamped.event {
            Event::LoopStart(start) => {
                self.wavering.begin(&start.checks);
                self.work = start.board.as_deref().map(|limits| Box::new(BoardWork::within(*limits)));
                self.start = Some(start.clone());
                if let Some(schema) = self.newer_schema() {
                    let message = format!(
                        "a newer version of ll-loop wrote the journal (schema {schema}; this one knows {SCHEMA}), and \
                         what this one does not know is left out"
                    );
                    self.warn(None, &message);
                }
            }
            Event::Reused(reused) => self.reused = Some(reused.clone()),
            Event::Approval(approval) => self.approvals.push(approval.clone()),
            Event::LoopResume(resume) => {
                if let Some(start) = &mut self.start {
                    start.change(resume);
                }
            }
            Event::Route { from, to, verdict, reason } => {
                self.restarts += u32::from(*reason == RouteReason::Maintain);
                let word = verdict.as_ref().map_or("next", |verdict| verdict.as_str());
                if !self.is_merge() {
                    count_edge(&mut self.edges, from, to, word);
                }
                if self.work.is_some() {
                    self.way.route(from, word, self.tracker.current());
                }
            }
            Event::Evaluate { tree: Some(tree), .. } => self.compare(tree),
            Event::Warning { state, message } => self.warn(state.as_ref(), message),
            Event::Handoff(handoff) => {
                self.handoff = Some((handoff.state.clone(), handoff.message.clone()));
                self.handoff_reason = Some(handoff.reason);
                self.continuation.clone_from(&handoff.continuation);
                self.awaiting.clone_from(&handoff.awaiting);
            }
            Event::LoopComplete(end) => {
                self.way.reach(&end.final_state);
                self.end = Some(end.clone());
            }
            Event::ActionStart { role, .. } => self.at_work(|work| work.began(role.as_ref())),
            Event::ActionComplete(complete) => {
                complete.usage.iter().for_each(|usage| self.usage.add(usage));
                self.at_work(|work| work.acted(complete.usage.as_ref(), complete.seen.duration));
            }
            Event::Judge { usage, .. } => {
                self.usage.add(usage);
                self.at_work(|work| work.spent(usage, Duration::ZERO));
            }
            // The calls of a sub-loop are in this sum alone: its own events went no further than above.
            Event::SubLoopComplete(complete) => {
                self.usage.add(&complete.usage);
                let duration = Duration::from_millis(complete.duration_ms);
                self.at_work(|work| work.spent(&complete.usage, duration));
            }
            Event::Board(event) => self.at_work(|work| work.operated(event)),
            // A closing pass that was cut off is made anew after a resume, from its first check on.
            Event::ClosingPassStart(_) => self.closing_pass.clear(),
            Event::ClosingPassCheck(check) => {
                // What was said with the added tests counts for nothing where it was asked without them.
                let is_replaced = |known: &ClosingPassCheck| {
                    check.without_added && !known.without_added && known.is_same_check(check)
                };
                self.closing_pass.retain(|known| !is_replaced(known));
                self.closing_pass.push(ClosingPassCheck::clone(check));
            }
            Event::StateEnter { .. }
            | Event::Sandbox(_)
            | Event::ClosingPassProof(_)
            | Event::ClosingPassEnd(_)
            | Event::Evaluate { .. }
            | Event::Message { .. }
            | Event::Signal { .. }
            | Event::Retry { .. }
            | Event::VerdictTree { .. }
            | Event::Backoff { .. }
            | Event::SubLoopStart { .. }
            | Event::Stall { .. }
            | Event::ActionError { .. }
            | Event::CallFailed(_)
            | Event::LoopError { .. }
            | Event::LoopTimeout { .. } => {}
        }
        finished
    }

    /// Returns the kind of end that the run came to.
    pub fn end_kind(&self) -> EndKind {
        match self.end().map(|end| end.outcome) {
            Some(Outcome::Success) => EndKind::Success,
            Some(Outcome::Handoff) => EndKind::HandedOff,
            None if self.not_run().is_some() => EndKind::NotRun,
            Some(Outcome::Failure | Outcome::Exhausted | Outcome::Stopped | Outcome::Blocked) => {
                EndKind::Failure
            }
            Some(
                Outcome::Error
                | Outcome::OverBudget
                | Outcome::Unavailable
                | Outcome::Timeout
                | Outcome::Interrupted
                | Outcome::LeaseLost
                | Outcome::Cancelled,
            )
            | None => EndKind::Error,
        }
    }

    /// Returns what confined actions, those of sub-loops included.
    pub fn confined(&self) -> &ConfinedWork {
        &self.confined
    }

    /// Returns what guarded its actions, who approved what, and in which parts it ran; of the loops below, too.
    pub fn guarded(&self) -> &GuardedWork {
        &self.guarded
    }

    /// Returns when the last event was.
    pub fn seen_until(&self) -> Option<Timestamp> {
        self.seen_until
    }

    /// Returns what agents and models cost.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns which states failed, and whether they were mended.
    pub fn mends(&self) -> &Mends {
        &self.mends
    }

    /// Returns what the checks of the run say about the inputs with which it began.
    pub fn wavering(&self) -> &Wavering {
        &self.wavering
    }

    /// Returns the checks that waver, as far as this run and earlier ones have seen it.
    pub fn flaky_checks(&self) -> Vec<CheckHistory> {
        self.wavering.flaky(&self.mends, &self.closing_failures())
    }

    /// Returns the work on the task board, for a loop that has one.
    pub fn work(&self) -> Option<&BoardWork> {
        self.work.as_deref()
    }

    /// Tells whether the run has done anything.
    pub fn has_begun(&self) -> bool {
        self.tracker.steps() > 0
    }

    fn at_work(&mut self, tell: impl FnOnce(&mut BoardWork)) {
        if let Some(work) = &mut self.work {
            tell(work);
        }
    }

    /// Returns how many passes at the end were the same, where that is enough to say that nothing changes.
    pub fn same_passes(&self) -> Option<u32> {
        Some(self.passes.same()).filter(|same| *same >= ENOUGH_PASSES)
    }

    /// Returns how many cycles of a maintain loop began.
    pub fn cycles(&self) -> u32 {
        self.restarts + 1
    }

    /// Returns how deep the loop is that this is about, 0 for the run itself.
    pub fn depth(&self) -> u32 {
        self.tracker.depth()
    }

    /// Returns what the work left to say when the run was handed off.
    pub fn continuation(&self) -> Option<&str> {
        self.continuation.as_deref()
    }

    /// Returns why the run was handed off, if it was.
    pub fn handoff_reason(&self) -> Option<HandoffReason> {
        self.handoff_reason
    }

    /// Returns the question that the run waits for an answer to.
    pub fn awaiting(&self) -> Option<&Awaiting> {
        self.awaiting.as_deref()
    }

    /// Returns how people answered its questions.
    pub fn approvals(&self) -> &[GivenAnswer] {
        &self.approvals
    }

    /// Returns why nothing was run, where there was no reason to.
    pub fn not_run(&self) -> Option<&NotRun> {
        self.not_run.as_ref()
    }

    /// Returns why the run could not begin, where it could not.
    pub fn unbegun(&self) -> Option<&Unbegun> {
        self.unbegun.as_deref()
    }

    /// Tells whether it is not a run of a loop, but what the runs of a plan are worth together: its steps are items, and
    /// none leads to the next.
    pub fn is_merge(&self) -> bool {
        self.start.as_ref().is_some_and(|start| start.merges.is_some())
    }

    /// Returns how the run began, if the journal says so.
    pub fn start(&self) -> Option<&LoopStart> {
        self.start.as_ref()
    }

    /// Returns when the first event was.
    pub fn began(&self) -> Option<Timestamp> {
        self.began
    }

    /// Returns the verdicts that fell and the models that were called, by name; nothing for the live sinks.
    pub fn counts(&self) -> &WorkCounts {
        &self.counts
    }

    /// Returns how the run ended; nothing when the journal stops before that.
    pub fn end(&self) -> Option<&LoopComplete> {
        self.end.as_ref()
    }

    /// Returns the name of the loop.
    pub fn loop_name(&self) -> &str {
        match (&self.start, &self.not_run, &self.unbegun) {
            (Some(start), ..) => start.r#loop.as_str(),
            (None, Some(not_run), _) => &not_run.loop_name,
            (None, None, Some(unbegun)) => &unbegun.loop_name,
            (None, None, None) if self.named.is_empty() => "unknown",
            (None, None, None) => &self.named,
        }
    }

    /// Returns the instance id.
    pub fn run_id(&self) -> &str {
        self.start.as_ref().map_or("", |start| &start.run_id)
    }

    /// Returns the loop file.
    pub fn file(&self) -> &str {
        let unbegun = || self.unbegun.as_ref().map_or("", |unbegun| &unbegun.file);
        let of_none = || self.not_run.as_ref().map_or_else(unbegun, |not_run| &not_run.file);
        self.start.as_ref().map_or_else(of_none, |start| &start.source.file)
    }

    /// Returns the loop file as seen from the root of the repository.
    pub fn file_in_repository(&self) -> String {
        self.reader.in_repository(self.file())
    }

    /// Returns the version of the format of the journal, where a newer version of ll-loop wrote it than this one knows.
    pub fn newer_schema(&self) -> Option<u32> {
        self.start.as_ref().map(|start| start.schema).filter(|schema| *schema > SCHEMA)
    }

    /// Returns the line of the loop file on which a state is written down.
    pub fn line(&self, state: &StateName) -> Option<u32> {
        self.start.as_ref()?.source.lines.get(state).copied().filter(|line| *line > 0)
    }

    /// Returns the kept steps in order, the one that was not finished last.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.first.iter().chain(&self.last).chain(self.unfinished())
    }

    /// Returns how many steps between the first and the last kept ones are not kept.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Returns the step that runs, or was running when the journal stopped.
    pub fn unfinished(&self) -> Option<&Step> {
        self.tracker.current()
    }

    /// Returns the counts of every state, in the order of the first visits.
    pub fn states(&self) -> &IndexMap<StateName, StateCount> {
        &self.states
    }

    /// Returns the counts of every edge, in the order in which they were first taken.
    pub fn edges(&self) -> &IndexMap<(StateName, StateName), EdgeCount> {
        &self.edges
    }

    /// Returns the same of the steps that people see: what only keeps a task board is part of the edge around it.
    pub fn shown_edges(&self) -> &IndexMap<(StateName, StateName), EdgeCount> {
        let names_roles = self.work().is_some_and(|work| !work.roles().is_empty());
        if names_roles { self.way.edges() } else { &self.edges }
    }

    /// Returns the first warnings.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns how many warnings there were beyond the kept ones.
    pub fn more_warnings(&self) -> u64 {
        self.more_warnings
    }

    /// Returns how many state executions there were.
    pub fn step_count(&self) -> u64 {
        self.end.as_ref().map_or_else(|| self.tracker.steps(), |end| u64::from(end.steps))
    }

    /// Returns the number of the pass in which the run is or was.
    pub fn iterations(&self) -> u32 {
        self.end.as_ref().map_or_else(|| self.tracker.iteration(), |end| end.iterations)
    }

    /// Returns how long the run took, or how far its events reach.
    pub fn duration(&self) -> Duration {
        match (&self.end, self.began, self.seen_until) {
            (Some(end), ..) => Duration::from_millis(end.duration_ms),
            // Journals of earlier versions have no time of the run in their events, so that the pauses count as well.
            (None, Some(began), Some(until)) if self.took.is_zero() => until.since(began),
            (None, ..) => self.took,
        }
    }

    /// Returns the word for the outcome; `incomplete` when the journal stops before the end.
    pub fn outcome_word(&self) -> &'static str {
        let without_end = match (&self.not_run, &self.unbegun) {
            (Some(_), _) => Outcome::Success.word(),
            (None, Some(unbegun)) => unbegun.hindrance.word(),
            (None, None) => "incomplete",
        };
        self.end.as_ref().map_or(without_end, |end| end.outcome.word())
    }

    /// Tells whether the run ended well.
    pub fn is_success(&self) -> bool {
        self.not_run.is_some() || self.end.as_ref().is_some_and(|end| end.outcome == Outcome::Success)
    }

    /// Returns the step that decided a failed run: the last failing observation before the end, or the one that
    /// led to the end when everything had passed since.
    pub fn deciding_step(&self) -> Option<&Step> {
        self.end.as_ref().and_then(|end| self.tracker.deciding(end))
    }

    /// Returns the last step so far that failed.
    pub fn last_failing(&self) -> Option<&Step> {
        self.tracker.failing()
    }

    /// Takes the working tree that the evaluation of the current step saw.
    fn compare(&mut self, tree: &TreeState) {
        if let Some(step) = self.tracker.current() {
            let is_same = self.trees.get(&step.state).is_some_and(|(last, _)| last == tree);
            // Two trees that could not be looked at are not known to be the same.
            let was_seen = matches!(tree, TreeState::Seen(_));
            if has_room(&self.trees, &step.state, MAX_STATES) {
                self.trees.insert(step.state.clone(), (tree.clone(), is_same && was_seen));
            }
        }
    }

    /// Tells whether the run is known to have left files or commits that were not there before: passes that look the same
    /// may then be passes of work, each of which mended something.
    pub fn has_changed_the_tree(&self) -> bool {
        let changes = self.end.as_ref().and_then(|end| end.changes.as_ref()?.known());
        changes.is_some_and(|changes| changes.start.tree != changes.end.tree || !changes.files.is_empty())
            && !self.changed_nothing()
    }

    /// Tells whether the last two visits of the state that decided saw the same working tree.
    fn changed_nothing(&self) -> bool {
        self.deciding_step().and_then(|step| self.trees.get(&step.state)).is_some_and(|(_, is_same)| *is_same)
    }

    /// The run continues: it has not ended after all, and a step that was cut off is not finished.
    fn resume(&mut self) {
        (self.end, self.handoff, self.continuation) = (None, None, None);
        self.handoff_reason = None;
        self.awaiting = None;
        let Some(step) = self.tracker.suspended() else { return };
        let (number, state, standing) = (step.number, step.state.clone(), step.standing());
        let (duration, verdict) = (step.duration(), step.verdict().cloned());
        let is_it = |row: &Step| row.number == number && row.state == state;
        // In a short run the last row is one of the first ones.
        if self.last.pop_back_if(|row| is_it(row)).is_none() {
            self.first.pop_if(|row| is_it(row));
        }
        let Some(count) = self.states.get_mut(&state) else { return };
        count.visits = count.visits.saturating_sub(1);
        count.duration = count.duration.saturating_sub(duration);
        match standing {
            StepStanding::Failing => count.failing = count.failing.saturating_sub(1),
            StepStanding::Passing => count.passing = count.passing.saturating_sub(1),
            StepStanding::Open => {}
        }
        if let Some(times) = verdict.and_then(|verdict| count.verdicts.get_mut(verdict.as_str())) {
            *times = times.saturating_sub(1);
        }
        if count.visits == 0 {
            // The other states keep the order of their first visits, in which reports list them.
            self.states.shift_remove(&state);
        }
    }

    fn keep(&mut self, step: &Step) {
        self.count(step);
        if self.without_steps {
            return;
        }
        let limit = if step.standing() == StepStanding::Failing { FAILING_TAIL } else { PASSING_TAIL };
        let row = step.with_tails(limit);
        if self.first.len() < FIRST_STEPS {
            self.first.push(row);
            return;
        }
        if self.last.len() == LAST_STEPS {
            self.last.pop_front();
            self.omitted += 1;
        }
        self.last.push_back(row);
    }

    fn count(&mut self, step: &Step) {
        if step.closing || !has_room(&self.states, &step.state, MAX_STATES) {
            return;
        }
        let state = self.states.entry(step.state.clone()).or_default();
        state.visits += 1;
        state.duration += step.duration();
        state.last = Some(step.standing());
        match step.standing() {
            StepStanding::Failing => state.failing += 1,
            StepStanding::Passing => state.passing += 1,
            StepStanding::Open => {}
        }
        if let Some(verdict) = step.verdict() {
            count(&mut state.verdicts, verdict.as_str());
        }
    }

    fn warn(&mut self, state: Option<&StateName>, message: &str) {
        if self.warnings.len() == MAX_WARNINGS {
            self.more_warnings += 1;
            return;
        }
        // As long as an annotation, the longest text for people that shows it.
        let message = text::head(message, 4096).to_owned();
        self.warnings.push(Warning { state: state.cloned(), message });
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::super::testing::{Journal, failing, succeeding};
    use super::*;
    use crate::engine::event::ClosingPassStart;
    use crate::engine::event::TAIL;
    use crate::engine::outcome::TerminatedBy;
    use crate::evaluate::observation::{Observation, Stop};

    #[test]
    fn the_sentence_says_what_the_events_show() {
        let mut said = Vec::new();
        let mut check = |journal: &Journal| said.push(journal.digest().sentence());
        check(&failing());
        check(&succeeding());

        let mut journal = Journal::start();
        journal.step(("test", 1), "cargo test", (1, ""), "no", "done");
        check(journal.end(Outcome::Success, TerminatedBy::Terminal, "done", false));

        let mut journal = Journal::start();
        check(journal.end(Outcome::Success, TerminatedBy::Terminal, "done", false));

        let mut journal = Journal::start();
        journal.step(("test", 1), "cargo test", (0, ""), "yes", "failed");
        check(journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", true));

        let mut journal = Journal::of("fix", 2);
        journal.step(("check", 1), "make", (2, ""), "error", "fix").next("fix", 1, "fix", 0, "check");
        journal.step(("check", 2), "make", (1, ""), "no", "fix").next("fix", 2, "fix", 0, "check");
        check(journal.end(Outcome::Exhausted, TerminatedBy::MaxIterations, "check", false));

        let mut journal = Journal::start();
        journal
            .enter("fix", 1)
            .act("sleep 9")
            .seen(Observation { stop: Some(Stop::Cancelled), ..Observation::exited(143, "") });
        check(journal.end(Outcome::Interrupted, TerminatedBy::Interrupted, "fix", false));

        let mut journal = Journal::start();
        journal.step(("check", 1), "make", (0, ""), "yes", "fix").enter("fix", 1);
        let error = "`${captured.x.output}` has no value\nmore".to_owned();
        journal.push(Event::LoopError { state: super::super::testing::state("fix"), error });
        check(journal.end(Outcome::Error, TerminatedBy::Error, "fix", false));

        let mut journal = Journal::start();
        journal.next("build", 1, "make", 2, "failed");
        check(journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false));

        let mut journal = Journal::start();
        check(journal.step(("check", 1), "mypy", (1, ""), "no", "fix").enter("fix", 1).act("ruff"));
        check(&Journal::start());
        assert_snapshot!(said.join("\n"), @r"
        failure: `check` said no in 3 of 3 iterations
        success: `check` said yes
        success (unverified): `test` said no and nothing passed after it
        success (unverified): ended at `done` and nothing was checked
        failure: `test` said yes
        exhausted: met the cap of 2 iterations; `check` said no in 1 of 2 iterations
        interrupted: SIGTERM in `fix`
        error: `fix`: `${captured.x.output}` has no value…
        failure: `build` exited 2
        incomplete: the journal ends in `fix` (step 2), so the run was killed or is still running
        incomplete: the journal ends before the first step, so the run was killed or is still running
        ");
    }

    #[test]
    fn a_journal_that_cannot_be_read_on_says_nothing_about_the_process() {
        let broken = |journal: &Journal| {
            let mut digest = journal.digest();
            digest.breaks_off("line 7 of the journal is not an event".to_owned());
            digest.sentence()
        };
        let begun = "incomplete: line 7 of the journal is not an event; how the run went on after ";
        let mut journal = Journal::start();
        assert_eq!(broken(&journal), format!("{begun}its beginning is not known"));
        journal.enter("check", 1).act("mypy");
        assert_eq!(broken(&journal), format!("{begun}`check` (step 1) is not known"));
    }

    #[test]
    fn a_killed_run_ends_where_its_journal_does() {
        let killed = |journal: &Journal| {
            let mut digest = journal.digest();
            digest.was_killed();
            let said = digest.sentence();
            let warned = digest.warnings().last().map(|warning| warning.message.clone()).unwrap_or_default();
            (digest.end().cloned(), said, warned)
        };
        let mut journal = Journal::start();
        journal.step(("check", 1), "mypy", (0, ""), "yes", "fix");
        let (end, said, warned) = killed(&journal);
        let end = end.unwrap();
        assert_eq!((end.final_state.as_str(), end.exit_code, end.verified), ("fix", 137, false));
        assert_eq!((end.outcome, end.terminated_by), (Outcome::Interrupted, TerminatedBy::Killed));
        assert_eq!(said, "interrupted: killed in state `fix`");
        assert!(warned.ends_with("what came after its last event, is not known"), "{warned}");

        journal.step(("fix", 1), "ruff", (1, ""), "no", "check").enter("check", 2).act("mypy");
        let (end, _, warned) = killed(&journal);
        assert!(!end.unwrap().verified);
        assert!(warned.contains("how `check` (step 3) ended"), "{warned}");

        let mut late = Journal::start();
        late.step(("check", 1), "mypy", (0, ""), "yes", "done");
        late.push(Event::ClosingPassStart(ClosingPassStart {
            checks: vec!["check".to_owned()],
            reasons: Vec::new(),
            put_back: Vec::new(),
            hidden: Vec::new(),
            to_prove: Vec::new(),
        }));
        let (end, said, warned) = killed(&late);
        assert_eq!(end.unwrap().final_state.as_str(), "done");
        assert_eq!(said, "interrupted: killed in the closing pass, in `check`");
        assert!(warned.ends_with("what the closing pass came to, is not known"), "{warned}");

        let (_, said, _) = killed(&Journal::start());
        assert_eq!(said, "interrupted: killed before the first step");
        journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
        assert_eq!(killed(&journal).0.unwrap().outcome, Outcome::Failure);
    }

    #[test]
    fn a_closing_action_decides_nothing() {
        let mut journal = Journal::start();
        journal.step(("check", 1), "mypy", (1, "bad\n"), "no", "failed");
        let state = super::super::testing::state("failed");
        let kind = crate::engine::event::ActionKind::Shell;
        journal
            .push(Event::ActionStart {
                state,
                action: "notify".into(),
                kind,
                role: None,
                session: None,
                tree: None,
            })
            .done(7, "", "");
        let digest = journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false).digest();
        assert_eq!(digest.deciding_step().unwrap().state.as_str(), "check");
        assert!(!digest.states().keys().any(|state| state.as_str() == "failed"));
        assert!(digest.steps().last().unwrap().closing);
    }

    #[test]
    fn a_run_without_a_journal_is_known_by_its_files() {
        let mut digest = Digest::default();
        assert_eq!(digest.loop_name(), "unknown");
        digest.of_files("tidy");
        assert_eq!(digest.loop_name(), "tidy");
        Journal::start().events.iter().for_each(|event| digest.event(event));
        assert_ne!(digest.loop_name(), "tidy");
    }

    #[test]
    fn a_journal_that_names_more_states_than_a_loop_has_is_not_counted_without_end() {
        let mut journal = Journal::start();
        let mut digest = Digest::default();
        for index in 0..2 * MAX_STATES {
            journal.step((&format!("s{index}"), 1), "x", (1, ""), "no", "b");
            journal.events.drain(..).for_each(|event| digest.event(&event));
        }
        assert_eq!(digest.states().len(), MAX_STATES);
        for index in 0..2 * MAX_STATES {
            for end in ["x", "y", "z"] {
                journal.step((&format!("s{index}"), 1), "x", (1, ""), "no", end);
            }
            journal.events.drain(..).for_each(|event| digest.event(&event));
        }
        assert_eq!((digest.states()[0].visits, digest.edges().len()), (4, 4 * MAX_STATES));
    }

    #[test]
    fn a_long_run_is_counted_in_full_and_kept_in_part() {
        let mut journal = Journal::of("long", 100_000);
        let mut digest = Digest::default();
        let output = "x".repeat(2 * TAIL);
        for iteration in 1..=50_000 {
            journal.step(("check", iteration), "c", (1, &output), "no", "fix");
            journal.next("fix", iteration, "f", 0, "check");
            journal.events.drain(..).for_each(|event| digest.event(&event));
        }
        journal.end(Outcome::Exhausted, TerminatedBy::MaxIterations, "check", false);
        journal.events.drain(..).for_each(|event| digest.event(&event));
        assert_eq!(digest.steps().count(), FIRST_STEPS + LAST_STEPS);
        assert_eq!(digest.omitted(), 100_000 - 500);
        assert_eq!(digest.states()[0].failing, 50_000);
        assert_eq!(digest.edges().values().map(|edge| edge.count).collect::<Vec<_>>(), [50_000, 50_000]);
        let kept: usize =
            digest.steps().filter_map(|step| step.result.as_ref()).map(|r| r.stdout.text.len()).sum();
        assert!(kept <= (FIRST_STEPS + LAST_STEPS) * FAILING_TAIL, "{kept}");
        assert_eq!(digest.deciding_step().unwrap().result.as_ref().unwrap().stdout.text.len(), TAIL);
        assert_eq!(
            digest.sentence(),
            "exhausted: met the cap of 100000 iterations; `check` said no in 50000 of 50000 iterations; all passes had the same verdicts and outputs"
        );
    }
}
