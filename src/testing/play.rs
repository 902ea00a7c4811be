//! Plays a run: the real engine, a clock that only mocks move, a tree in memory, and whoever answers in place of the world.
//! No process is started, and no file is read but those of sub-loops.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use indexmap::IndexMap;

use super::asked::{AskedKind, AskedPlace, AskedWork, Gap, Script, SubLoopAnswer, WorkAnswer};
use super::mock::{Interruption, MockedEnd};
use super::queries;
use super::virtual_tree::VirtualTree;
use crate::base::explanation::Explanation;
use crate::base::name::{LoopName, StateName};
use crate::base::time::{Timestamp, millis};
use crate::engine::changes::{SeenTree, StartTree};
use crate::engine::event::{ClosingPassStart, Event, LoopComplete, LoopStart, Stamped};
use crate::engine::outcome::{Outcome, Signal, TerminatedBy};
use crate::engine::past::Standing;
use crate::engine::question::AskedAbout;
use crate::engine::request::{
    ActionRequest, AskRequest, Input, Next, RestoredTree, Setting, SubLoopEnd, SubLoopRequest,
};
use crate::engine::run::placed::Placement;
use crate::engine::state_result::StateResult;
use crate::engine::{Engine, Start};
use crate::evaluate::model::{ModelAnswer, Usage};
use crate::evaluate::observation::{Observation, Stop, StoredText, Stream, TIMEOUT_CODE, Text};
use crate::machine::Machine;
use crate::run::SubLoop;
use crate::run::replay::{KnownMachine, Left, Replay};
use crate::run::sub_loop::{self, DEEPEST, Surrounding};

/// Where an agent writes down what the next session has to know.
const CONTINUATION: &str = ".claude/ll-continue-prompt.md";

/// More turns than this come to no end.
// A count and not a time: a run without an end fails alike on every machine.
// A loop has 50 passes at most unless it says more.
pub(crate) const MOST_TURNS: u32 = 20_000;

/// Finds the loops that states run.
pub(crate) trait Loops {
    /// Makes a sub-loop ready for a request of the run that began like this, or says why it cannot be.
    fn start(&mut self, request: &SubLoopRequest, around: &Start) -> Result<SubLoop, Explanation>;

    /// Finds one that an earlier part of the run had begun.
    fn find(
        &mut self,
        name: &str,
        around: &LoopStart,
        start: &LoopStart,
    ) -> Result<KnownMachine, Explanation>;
}

/// What is played.
pub(crate) struct Play<'p> {
    /// The loop.
    pub(crate) machine: Rc<Machine>,
    /// How the run begins.
    pub(crate) start: Start,
    /// Where it begins, if not at the start.
    pub(crate) placement: Option<Placement>,
    /// The tree it works on.
    pub(crate) tree: VirtualTree,
    /// Its sub-loops.
    pub(crate) loops: &'p mut dyn Loops,
    /// Whoever answers.
    pub(crate) script: &'p mut dyn Script,
    /// The most turns.
    pub(crate) most_turns: u32,
}

impl<'p> Play<'p> {
    /// A run from the initial state, on a tree without files.
    pub(crate) fn from_the_start(
        machine: Rc<Machine>,
        start: Start,
        loops: &'p mut dyn Loops,
        script: &'p mut dyn Script,
        most_turns: u32,
    ) -> Self {
        let none: IndexMap<String, String> = IndexMap::new();
        Self { machine, start, placement: None, tree: VirtualTree::of(&none), loops, script, most_turns }
    }
}

/// Something that was asked for in a run, with its texts rendered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AskedRecord {
    /// The state, as tests know it.
    pub(crate) state: String,
    /// What kind of work.
    pub(crate) kind: AskedKind,
    /// What would have been run, asked or shown.
    pub(crate) text: String,
    /// The environment beyond that of the run.
    pub(crate) env: Vec<(String, String)>,
    /// Whether a check was made once more at the end.
    pub(crate) in_closing_pass: bool,
}

/// A run that was played.
pub(crate) struct Played {
    /// Everything that happened.
    pub(crate) events: Vec<Stamped>,
    /// How it ended.
    pub(crate) end: PlayedEnd,
    /// What was asked for.
    pub(crate) asked: Vec<AskedRecord>,
    /// The captures at the end.
    pub(crate) captured: IndexMap<String, StateResult>,
}

/// How a run that is played ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlayedEnd {
    /// As runs do.
    Complete(Box<LoopComplete>),
    /// Its process was killed, and it was not resumed.
    Killed,
    /// There was no answer.
    Gap(Gap),
    /// It came to no end.
    Endless,
    /// It could not be resumed.
    NotResumable(String),
}

/// Why a run stopped in the middle.
enum Halted {
    Killed(String),
    Gap(Gap),
    Endless,
}

impl From<Gap> for Halted {
    fn from(gap: Gap) -> Self {
        Self::Gap(gap)
    }
}

/// The world around a run that is played.
struct Playing<'p> {
    loops: &'p mut dyn Loops,
    script: &'p mut dyn Script,
    tree: VirtualTree,
    events: Vec<Stamped>,
    asked: Vec<AskedRecord>,
    began: Timestamp,
    now: Duration,
    turns: u32,
    most_turns: u32,
    cancelled: Option<Signal>,
    /// Where the run was interrupted last.
    interrupted: Option<String>,
    left: Left,
    path: Vec<LoopName>,
    around: Vec<StateName>,
    /// The loops that states have run, by these states with those around them.
    below: BTreeMap<Vec<StateName>, LoopName>,
    /// The checks of the closing pass that goes on, and how many were made.
    closing: Option<(Vec<String>, usize)>,
}

/// Plays a run to its end, over all its resumes.
pub(crate) fn play(play: Play<'_>) -> Played {
    let Play { machine, mut start, placement, mut tree, loops, script, most_turns } = play;
    // Where it is unknown how the tree was at the start, a run cannot tell what it changed.
    start.event.tree = Some(StartTree::Known(Box::new(tree.start())));
    let mut playing = Playing {
        loops,
        script,
        tree,
        events: Vec::new(),
        asked: Vec::new(),
        began: start.at,
        now: Duration::ZERO,
        turns: 0,
        most_turns,
        cancelled: None,
        interrupted: None,
        left: Left::default(),
        path: vec![machine.name.clone()],
        around: Vec::new(),
        below: BTreeMap::new(),
        closing: None,
    };
    let mut engine = match placement.clone() {
        Some(placement) => Engine::placed(&machine, start.clone(), placement),
        None => Engine::new(&machine, start.clone()),
    };
    loop {
        let ended = playing.drive(&mut engine);
        let captured = engine.run().captured().clone();
        let end = match ended {
            Ok(complete) => PlayedEnd::Complete(Box::new(complete)),
            Err(Halted::Killed(state)) => {
                playing.interrupted = Some(state);
                PlayedEnd::Killed
            }
            Err(Halted::Gap(gap)) => PlayedEnd::Gap(gap),
            Err(Halted::Endless) => PlayedEnd::Endless,
        };
        let may_go_on = match &end {
            PlayedEnd::Complete(complete) => complete.is_resumable(),
            PlayedEnd::Killed => true,
            PlayedEnd::Gap(_) | PlayedEnd::Endless | PlayedEnd::NotResumable(_) => false,
        };
        let state = playing.interrupted.take().or_else(|| match &end {
            PlayedEnd::Complete(complete) => Some(complete.final_state.to_string()),
            PlayedEnd::Killed | PlayedEnd::Gap(_) | PlayedEnd::Endless | PlayedEnd::NotResumable(_) => None,
        });
        let goes_on = may_go_on && state.is_some_and(|state| playing.script.resumes(&state));
        if !goes_on {
            let Playing { events, asked, .. } = playing;
            return Played { events, end, asked, captured };
        }
        match playing.resumed(&machine, &start, placement.as_ref()) {
            Ok(resumed) => engine = resumed,
            Err(why) => {
                let Playing { events, asked, .. } = playing;
                return Played { events, end: PlayedEnd::NotResumable(why.into()), asked, captured };
            }
        }
    }
}

impl Playing<'_> {
    /// Makes the run again from what happened, as another process would.
    fn resumed<'m>(
        &mut self,
        machine: &'m Rc<Machine>,
        start: &Start,
        placement: Option<&Placement>,
    ) -> Result<Engine<'m>, Explanation> {
        // What the process before had in memory is gone: the signal, the closing pass, and the sub-loops that it was in.
        self.cancelled = None;
        self.closing = None;
        self.path.truncate(1);
        self.around.clear();
        // A process that was killed in the closing pass has left files aside, and the run goes on with its work in place.
        self.tree.restore();
        let known =
            KnownMachine { machine: Rc::clone(machine), digest: start.event.definition_sha256.clone() };
        let loops = &mut *self.loops;
        let mut find = |name: &str, around: &LoopStart, start: &LoopStart| loops.find(name, around, start);
        let mut replay = Replay::new(known, &mut find).placed(placement.cloned());
        for event in &self.events {
            replay.event(event.clone())?;
        }
        // Mocks hold whole texts, and those of a journal were looked for when it was read.
        let none = |_: StoredText, _: Stream| -> std::io::Result<std::sync::Arc<String>> {
            Ok(std::sync::Arc::default())
        };
        let mut left = replay.finish(none)?;
        let level = left.take_outermost().ok_or_else(|| Explanation::new("it had not begun"))?;
        self.left = left;
        match level.standing() {
            Standing::Open(how) => {
                let event = LoopStart { tree: start.event.tree.clone(), ..level.past.start().clone() };
                let start = Start { event, ..start.clone() };
                // No time passes in between: the clock moves only by what mocks take.
                Ok(Engine::resume(machine, start, level.past, how, Duration::ZERO))
            }
            Standing::Over(end) => Ok(Engine::ended(machine, start.clone(), level.past, end)),
            Standing::Lost(state) => {
                Err(Explanation::new(format!("it was left in `{state}`, which is not there")))
            }
        }
    }

    /// Runs a loop to its end.
    fn drive(&mut self, engine: &mut Engine<'_>) -> Result<LoopComplete, Halted> {
        // A loop that goes on has time behind it, which its own clock counts from.
        let begun = self.now.saturating_sub(engine.elapsed());
        loop {
            self.turns += 1;
            if self.turns > self.most_turns {
                return Err(Halted::Endless);
            }
            let input = match engine.next() {
                Next::Done(complete) => return Ok(complete.clone()),
                Next::Begin => Input::Begin,
                Next::Yield => Input::Yielded,
                Next::Wait(wait) => {
                    self.now += wait;
                    Input::WaitDone
                }
                Next::Run(request) => Input::ActionDone(self.command(engine, request)?),
                Next::Call(request) => Input::ActionDone(self.work(engine, AskedWork::Tool(request))?.0),
                Next::Approve(request) => {
                    Input::ActionDone(self.work(engine, AskedWork::Approval(request))?.0)
                }
                Next::Prompt(request) => {
                    let (seen, usage) = self.work(engine, AskedWork::Prompt(request))?;
                    Input::PromptDone(seen, usage)
                }
                Next::Learn(request) => {
                    let (seen, usage) = self.work(engine, AskedWork::Learning(request))?;
                    Input::PromptDone(seen, usage)
                }
                Next::Ask(request) => Input::Answered(self.ask(engine, request)?),
                Next::ReadContinuation => Input::Continuation(self.continuation()),
                Next::SubLoop(request) => Input::SubLoopDone(self.sub_loop(engine, request)?),
                Next::Survey(request) => Input::Surveyed(Ok(self.tree.survey(&request.scope))),
                Next::Read(path) => Input::FileRead(Ok(self.tree.read(path))),
                Next::Query(request) => Input::Queried(queries::answer(request)),
                Next::LookForQuestion => {
                    let at = self.stamp();
                    Input::AskedAbout(AskedAbout::of(&SeenTree::Known(self.tree.look()), at))
                }
                // A world that is made up has no check that writes to its judges.
                Next::LookForJudges(_) => Input::JudgesStand,
                Next::Look => Input::Looked(SeenTree::Known(self.tree.look())),
                Next::Measure(request) => Input::Measured(self.tree.measure(request)),
                Next::SetAside(request) => {
                    self.tree.set_aside(request);
                    Input::SetAside(Ok(()))
                }
                Next::Restore(_) => {
                    self.tree.restore();
                    Input::Restored(Ok(RestoredTree::default()))
                }
            };
            let now = self.now.saturating_sub(begun);
            // The request to end goes first, as in the driver: it was made before the work ended that is answered here.
            let mut events = match self.cancelled {
                Some(signal) => engine.cancel(signal, now),
                None => Vec::new(),
            };
            match engine.handle(input, now) {
                Ok(followed) => events.extend(followed),
                // The run ended before what it had asked for came.
                Err(_) if self.cancelled.is_some() => {}
                Err(error) => unreachable!("every request above has its own answer: {error}"),
            }
            self.record(events);
        }
    }

    /// Returns the time of the play.
    fn stamp(&self) -> Timestamp {
        self.began.after(self.now)
    }

    /// Keeps what happened.
    fn record(&mut self, events: Vec<Event>) {
        let depth = self.path.len() - 1;
        for event in events {
            if let Event::ClosingPassStart(ClosingPassStart { checks, .. }) = &event {
                self.closing = Some((checks.clone(), 0));
            } else if let (Event::ClosingPassCheck(check), Some((_, made))) = (&event, &mut self.closing) {
                // One that is made again is the next one as well.
                *made += usize::from(!check.made_again);
            } else if matches!(event, Event::ClosingPassEnd(_)) {
                self.closing = None;
            }
            let mut stamped = Stamped::new(self.stamp(), self.events.len() as u64 + 1, event);
            stamped.at = self.now;
            stamped.depth = u32::try_from(depth).unwrap_or(u32::MAX);
            if depth > 0 {
                stamped.path.clone_from(&self.path);
            }
            self.events.push(stamped);
        }
    }

    /// Runs a command, which in a closing pass is that of a check.
    fn command(&mut self, engine: &Engine<'_>, request: &ActionRequest) -> Result<Observation, Halted> {
        let check = self.closing.as_ref().and_then(|(checks, made)| checks.get(*made).cloned());
        let work = AskedWork::Shell(request);
        match check {
            Some(check) => Ok(self.recheck(engine, &check, work)?.0),
            None => Ok(self.work(engine, work)?.0),
        }
    }

    /// Makes a check once more; its name says in which loops it is.
    fn recheck(
        &mut self,
        engine: &Engine<'_>,
        check: &str,
        work: AskedWork<'_>,
    ) -> Result<(Observation, Usage), Halted> {
        let names: Option<Vec<StateName>> =
            check.split('/').map(|part| StateName::parse(part.trim()).ok()).collect();
        let Some((state, around)) = names.as_deref().and_then(<[_]>::split_last) else {
            return self.work(engine, work);
        };
        let around: Vec<StateName> = self.around.iter().chain(around).cloned().collect();
        let below = (self.around.len() + 1..=around.len()).filter_map(|end| self.below.get(&around[..end]));
        let loops: Vec<LoopName> = self.path.iter().chain(below).cloned().collect();
        let place = AskedPlace {
            machine: engine.machine(),
            around: &around,
            loops: &loops,
            state,
            in_closing_pass: true,
        };
        self.answered(place, work)
    }

    fn work(&mut self, engine: &Engine<'_>, work: AskedWork<'_>) -> Result<(Observation, Usage), Halted> {
        let machine = engine.machine();
        let state = engine.run().current().unwrap_or_else(|| machine.name_of(machine.initial)).clone();
        let (around, loops) = (std::mem::take(&mut self.around), std::mem::take(&mut self.path));
        let place =
            AskedPlace { machine, around: &around, loops: &loops, state: &state, in_closing_pass: false };
        let answer = self.answered(place, work);
        (self.around, self.path) = (around, loops);
        answer
    }

    fn answered(
        &mut self,
        place: AskedPlace<'_>,
        work: AskedWork<'_>,
    ) -> Result<(Observation, Usage), Halted> {
        // The driver starts nothing for a run that is to end, so this needs no mock and is not counted as asked.
        if self.cancelled.is_some() {
            return Ok((cancelled(), Usage::default()));
        }
        self.asked.push(AskedRecord {
            state: place.key(),
            kind: work.kind(),
            text: work.text(),
            env: work.setting().env.clone(),
            in_closing_pass: place.in_closing_pass,
        });
        let answer = self.script.work(place, work)?;
        let WorkAnswer { seen, usage, effects, takes, is_late, interruption } = answer;
        let seen = bounded(seen, takes, is_late, work.setting());
        self.now += seen.duration;
        self.tree.take(&effects);
        self.interrupt(place, interruption)?;
        if self.cancelled.is_some() {
            // What was printed before the signal is kept, as a log shows it.
            return Ok((Observation { stdout: seen.stdout, duration: seen.duration, ..cancelled() }, usage));
        }
        Ok((seen, usage))
    }

    fn interrupt(&mut self, place: AskedPlace<'_>, interruption: Option<Interruption>) -> Result<(), Halted> {
        match interruption {
            None => Ok(()),
            Some(Interruption::Killed) => Err(Halted::Killed(place.key())),
            Some(Interruption::Asked(signal)) => {
                self.cancelled = Some(signal);
                self.interrupted = Some(place.key());
                Ok(())
            }
        }
    }

    fn ask(&mut self, engine: &Engine<'_>, request: &AskRequest) -> Result<ModelAnswer, Halted> {
        let machine = engine.machine();
        let state = engine.run().current().unwrap_or_else(|| machine.name_of(machine.initial)).clone();
        let (around, loops) = (self.around.clone(), self.path.clone());
        let place =
            AskedPlace { machine, around: &around, loops: &loops, state: &state, in_closing_pass: false };
        self.asked.push(AskedRecord {
            state: place.key(),
            kind: AskedKind::Judge,
            text: request.question.prompt.clone(),
            env: request.setting.env.clone(),
            in_closing_pass: false,
        });
        let (answer, takes) = self.script.judge(place, request)?;
        let (late, took) = stopped(takes, &request.setting);
        self.now += took;
        Ok(match late {
            Some(stop) => {
                ModelAnswer { reply: Err(Explanation::new("it took too long")), stop: Some(stop), ..answer }
            }
            None => answer,
        })
    }

    /// Returns what an agent has written for the session that goes on.
    fn continuation(&self) -> Option<String> {
        let bytes = self.tree.read(CONTINUATION)?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Plays a sub-loop. The inner error says why it could not begin.
    fn sub_loop(
        &mut self,
        engine: &Engine<'_>,
        request: &SubLoopRequest,
    ) -> Result<Result<SubLoopEnd, Explanation>, Halted> {
        let machine = engine.machine();
        let state = engine.run().current().unwrap_or_else(|| machine.name_of(machine.initial)).clone();
        let (around, loops) = (self.around.clone(), self.path.clone());
        let place =
            AskedPlace { machine, around: &around, loops: &loops, state: &state, in_closing_pass: false };
        let answer = self.script.sub_loop(place, request)?;
        match answer {
            SubLoopAnswer::Ends(end, takes, effects) => {
                let (late, took) = stopped_after(takes, request.limit(Duration::ZERO));
                self.now += took;
                self.tree.take(&effects);
                return Ok(Ok(sub_loop_end(&end, late, took)));
            }
            // After a signal the sub-loop begins all the same: the request to end is heard inside of it.
            SubLoopAnswer::Interrupted(interruption) => self.interrupt(place, Some(interruption))?,
            SubLoopAnswer::Played => {}
        }
        // The bound of real runs: `drive` calls itself for each level, and a loop that runs itself would end the stack.
        if self.path.len() > DEEPEST {
            let path: Vec<_> = self.path.iter().map(ToString::to_string).collect();
            return Ok(Err(Explanation::new(format!(
                "sub-loops are nested deeper than {DEEPEST}: {}",
                path.join(" → ")
            ))));
        }
        let mut sub = match self.loops.start(request, engine.start()) {
            Ok(sub) => sub,
            Err(why) => return Ok(Err(why)),
        };
        // The library has put the time of this machine there.
        sub.start.at = self.began;
        let step = engine.run().step();
        let left = self.left.take(&request.name, step);
        let surrounding =
            Surrounding { start: engine.start(), step, is_tree_doubtful: engine.is_tree_doubtful() };
        let mut inner = match sub_loop::engine(&sub, left, request, surrounding) {
            Ok(inner) => inner,
            Err(why) => return Ok(Err(why)),
        };
        self.path.push(sub.machine.name.clone());
        self.around.push(state);
        self.below.insert(self.around.clone(), sub.machine.name.clone());
        let ended = self.drive(&mut inner);
        self.path.pop();
        self.around.pop();
        Ok(Ok(sub_loop::end(&inner, ended?)))
    }
}

fn cancelled() -> Observation {
    Observation { stop: Some(Stop::Cancelled), ..Observation::exited(130, "") }
}

/// Returns why work that would take so long is stopped before, and how long it goes on.
fn stopped(takes: Duration, setting: &Setting) -> (Option<Stop>, Duration) {
    match setting.end {
        Some((limit, stop)) if takes > limit => (Some(stop), limit),
        Some(_) | None => (None, takes),
    }
}

fn stopped_after(takes: Duration, limit: Option<Duration>) -> (bool, Duration) {
    match limit {
        Some(limit) if takes > limit => (true, limit),
        Some(_) | None => (false, takes),
    }
}

/// Stops work that takes too long.
fn bounded(seen: Observation, takes: Duration, is_late: bool, setting: &Setting) -> Observation {
    let late = |stop: Stop, duration: Duration| Observation {
        stop: Some(stop),
        duration,
        exit_code: TIMEOUT_CODE,
        signal: None,
        ..seen.clone()
    };
    if is_late {
        return match (setting.end, setting.idle) {
            // A mock names no time: the state's own timeout is meant, then its silence, then the end of the run around it.
            (Some((limit, stop)), _) if stop.is_own_timeout() => late(stop, limit),
            (_, Some(idle)) => late(Stop::IdleTimeout, idle),
            (Some((limit, stop)), None) => late(stop, limit),
            (None, None) => Observation { duration: takes, ..seen },
        };
    }
    match stopped(takes, setting) {
        (Some(stop), limit) => late(stop, limit),
        (None, duration) => Observation { duration, ..seen },
    }
}

/// Ends a sub-loop as its mock says.
fn sub_loop_end(end: &MockedEnd, is_late: bool, took: Duration) -> SubLoopEnd {
    let outcome = if is_late { Outcome::Timeout } else { end.outcome };
    // A mock may leave out the terminal, but every end names a state.
    let unnamed = || StateName::parse("end").expect("it is a name");
    let final_state = end.final_state.clone().unwrap_or_else(unnamed);
    let captured = end.captures.iter().map(|(name, text)| {
        let seen = Observation::exited(0, text.clone());
        (name.to_string(), StateResult { state: final_state.clone(), seen, verdict: None })
    });
    SubLoopEnd {
        complete: LoopComplete {
            iterations: 1,
            steps: 1,
            cycles: 1,
            duration_ms: millis(took),
            verified: end.verified && outcome == Outcome::Success,
            reason: format!("the mock says `{}`", outcome.word()),
            ..LoopComplete::new(outcome, terminated_by(outcome), final_state.clone())
        },
        captured: captured.collect(),
        sub_loops: IndexMap::new(),
        output: Text::whole(end.stdout.clone()),
        handoff: None,
        usage: end.usage.clone(),
        // Nothing was checked in it that could be checked again; `None` would say that a check cannot be repeated.
        rechecks: Some(Vec::new()),
        had_ended: false,
    }
}

fn terminated_by(outcome: Outcome) -> TerminatedBy {
    match outcome {
        Outcome::Success | Outcome::Failure => TerminatedBy::Terminal,
        // A mock says the outcome alone. Where several causes have the same one, the most usual stands for them.
        Outcome::Exhausted => TerminatedBy::MaxIterations,
        Outcome::Stopped => TerminatedBy::LoopStop,
        Outcome::Error => TerminatedBy::Error,
        Outcome::Blocked => TerminatedBy::Blocked,
        Outcome::OverBudget => TerminatedBy::Budget,
        Outcome::Unavailable => TerminatedBy::Unavailable,
        Outcome::Handoff => TerminatedBy::Handoff,
        Outcome::Timeout => TerminatedBy::Timeout,
        Outcome::Interrupted => TerminatedBy::Interrupted,
        Outcome::LeaseLost => TerminatedBy::LeaseLost,
        Outcome::Cancelled => TerminatedBy::Cancelled,
    }
}
