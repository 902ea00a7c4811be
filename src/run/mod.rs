//! The driver: performs what the engine asks for, and makes every event durable before anybody sees it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::base::name::{LoopName, StateName};
use crate::base::time::millis;
use crate::engine::event::{Event, LoopComplete, Stamped};
use crate::engine::outcome::{Outcome, Signal, TerminatedBy};
use crate::engine::request::{Input, Next, SubLoopRequest, UnexpectedInput};
use crate::engine::{Engine, Start};
use crate::journal::files::RunFiles;
use crate::journal::snapshot::{self, Surroundings};
use crate::journal::writer::Journal;
use crate::journal::{ends, reader};
use crate::machine::Machine;
use crate::process::signal::{Cancel, EndSignal, Request};
use crate::report::Sinks;
use crate::report::digest::Digest;

mod action;
pub mod agent;
pub mod checkpoint;
pub mod clock;
mod continuation;
mod git;
mod lines;
pub mod projection;
mod query;
pub mod recording;
pub mod replay;
mod servers;
pub mod shared_file;
mod sub_loop;
mod survey;
mod tool;
mod tree;

use agent::Agents;
use checkpoint::Checkpoints;
use clock::Clock;
pub use query::{Helper, serve};
use replay::Left;
use shared_file::Content;

/// How often sinks are told that time passes.
const TICK: Duration = Duration::from_millis(100);

/// Everything around the engine.
pub struct World {
    /// Where the run's files are.
    pub files: RunFiles,
    /// The durable events.
    pub journal: Journal,
    /// Where the run is shown.
    pub sinks: Sinks,
    /// Requests to end.
    pub cancel: Cancel,
    /// Who answers prompts and questions.
    pub agents: Agents,
    /// The time.
    pub clock: Clock,
    /// The time that the run took before this process.
    pub before: Duration,
    /// The loops below the outermost one in which the run was left.
    pub left: Left,
    /// The environment that actions inherit.
    pub env: BTreeMap<String, String>,
    /// The directory in which actions run.
    pub root: PathBuf,
    /// The same, where this process is in another one; see [`directory_of_actions`].
    pub starts_in: Option<PathBuf>,
    /// Hides secrets in what actions print.
    pub redactor: crate::base::redact::Redactor,
    /// Saves the run elsewhere from time to time.
    pub checkpoints: Checkpoints,
    /// What `state.json` says beyond the engine.
    pub surroundings: Surroundings,
    /// Why `state.json` could not be written the last time, if it could not.
    pub state_failure: Option<io::Error>,
    /// The loops that are running, the outermost first.
    pub path: Vec<LoopName>,
    /// Answers queries in processes of their own.
    pub helper: Helper,
    /// Finds and prepares sub-loops: loop files are not the business of this layer.
    pub sub_loops: SubLoops,
}

/// Returns the directory that a process has to be started in to be in `root`; nothing where this process is there
/// already, for to be started in another directory takes a process longer.
pub fn directory_of_actions(root: &Path) -> Option<PathBuf> {
    let is_there = std::env::current_dir().is_ok_and(|here| here == root);
    (!is_there).then(|| root.to_owned())
}

/// Makes a sub-loop ready for a request of the run that began like this, or says why it cannot be.
pub type SubLoops = Box<dyn FnMut(&SubLoopRequest, &Start) -> Result<SubLoop, String>>;

/// A sub-loop that is ready.
pub struct SubLoop {
    /// What is run.
    pub machine: Rc<Machine>,
    /// How it begins.
    pub start: Start,
}

/// The journal could not be written, so the run was stopped: a run that cannot be saved must not go on.
#[derive(Debug, thiserror::Error)]
#[error("the run was stopped because its journal cannot be written")]
pub struct JournalError {
    source: io::Error,
    /// The event with which the run was about to begin or go on, when it could not even do that.
    opening: Option<Box<Event>>,
}

/// How a run ended.
pub struct Ended {
    /// Its end, as every report tells it.
    pub complete: LoopComplete,
    /// What became of a journal that could not be written.
    pub lost: Option<Lost>,
}

/// A journal that could not be written.
pub struct Lost {
    /// Why.
    pub error: JournalError,
    /// The end of the run, when not even that could be written.
    pub unwritten: Option<Stamped>,
    /// Whether the journal says that the run began, so that it can go on.
    pub has_begun: bool,
}

/// Runs to the end, which is an error when the journal cannot be written.
pub async fn conduct(engine: &mut Engine<'_>, world: &mut World) -> Ended {
    match drive(engine, world).await {
        Ok(complete) => Ended { complete, lost: None },
        Err(error) => world.end_unsaved(engine, error),
    }
}

/// Runs a loop to its end, and returns how it ended.
async fn drive(engine: &mut Engine<'_>, world: &mut World) -> Result<LoopComplete, JournalError> {
    let begun = world.elapsed().saturating_sub(engine.elapsed());
    loop {
        // Signals are heard while this waits, and not everything below waits.
        tokio::task::yield_now().await;
        let input = match engine.next() {
            Next::Done(complete) => return Ok(complete.clone()),
            Next::Begin => Input::Begin,
            Next::Wait(wait) => world.wait(wait).await,
            Next::Yield => Input::Yielded,
            Next::SubLoop(request) => {
                let step = engine.run().step();
                Input::SubLoopDone(sub_loop::perform(request, (engine.start(), step), world).await?)
            }
            Next::Prompt(request) => {
                let (seen, usage) = agent::perform(request, world).await;
                Input::PromptDone(seen, usage)
            }
            Next::Call(request) => Input::ActionDone(tool::call(request, world).await),
            Next::Ask(request) => Input::Answered(agent::ask(request, world).await),
            Next::ReadContinuation => Input::Continuation(continuation::read(&world.root)),
            Next::Run(request) => Input::ActionDone(action::perform(request, world).await),
            Next::Survey(request) => Input::Surveyed(survey::look(request, world).await),
            Next::Query(request) => Input::Queried(query::perform(request, world).await),
            Next::Read(path) => Input::FileRead(match shared_file::read(&world.root.join(path)) {
                Content::Absent => Ok(None),
                Content::Bytes(bytes) => Ok(Some(bytes)),
                Content::Unreadable(error) => Err(error.to_string()),
            }),
        };
        world.cancel.catch_up().await;
        let now = world.elapsed().saturating_sub(begun);
        let signal = world.cancel.signal().map(named);
        let mut events = signal.map(|signal| engine.cancel(signal, now)).unwrap_or_default();
        match engine.handle(input, now) {
            Ok(followed) => events.extend(followed),
            // The run ended before what it had asked for came.
            Err(UnexpectedInput) if signal.is_some() => {}
            Err(UnexpectedInput) => unreachable!("every request above has its own answer"),
        }
        world.record(engine, events)?;
        // Nothing runs now, so the working tree is what the journal says of it.
        world.checkpoints.save_if_due(world.clock.elapsed());
    }
}

impl World {
    /// Returns how long the run has taken, without the pauses between its parts.
    fn elapsed(&self) -> Duration {
        self.before + self.clock.elapsed()
    }

    /// State first, then talk.
    fn record(&mut self, engine: &Engine<'_>, events: Vec<Event>) -> Result<(), JournalError> {
        if events.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let opening = match events.first() {
            Some(event @ (Event::LoopStart(_) | Event::LoopResume(_))) if self.path.len() == 1 => {
                Some(Box::new(event.clone()))
            }
            _ => None,
        };
        let written = self.journal.append(events, (now, self.elapsed()), &self.path);
        let written = written.map_err(|source| JournalError { source, opening })?;
        if self.path.len() == 1 {
            // A sub-loop is work of a state of the run; where the run stands does not change with it.
            self.keep_state(engine);
        }
        for event in &written {
            self.sinks.event(event);
        }
        Ok(())
    }

    /// Writes `state.json`. It is a copy for others: that it cannot be written is no reason to end the run.
    fn keep_state(&mut self, engine: &Engine<'_>) {
        let (now, last) = (self.clock.now(), self.journal.last_seq());
        let content = snapshot::snapshot(engine, &self.surroundings, now, last, self.journal.redactor());
        self.state_failure = snapshot::write(&self.files, &content).err();
    }

    /// Removes a `state.json` that is not true any more, and returns why it is not.
    pub fn drop_stale_state(&mut self) -> Option<io::Error> {
        let failure = self.state_failure.take()?;
        for path in [self.files.state(), self.files.spare_state()] {
            let _absent = fs_err::remove_file(path);
        }
        Some(failure)
    }

    /// Ends a run whose journal cannot take what happened: with an error, in the state that the journal tells last.
    fn end_unsaved(&mut self, engine: &mut Engine<'_>, error: JournalError) -> Ended {
        let journal = self.files.journal();
        let place = ends::ends(&journal).ok().and_then(|ends| ends.place);
        let mut told = Digest::without_steps(0);
        let _as_far_as_it_goes = reader::read(&journal, |event| told.event(&event));
        let machine = engine.machine();
        let state = place.as_ref().and_then(|place| StateName::parse(&place.state).ok());
        let complete = LoopComplete {
            outcome: Outcome::Error,
            terminated_by: TerminatedBy::JournalLost,
            final_state: state.unwrap_or_else(|| machine.name_of(machine.initial).clone()),
            iterations: place.as_ref().map_or(0, |place| place.iteration),
            steps: place.as_ref().map_or(0, |place| place.step),
            cycles: told.cycles(),
            duration_ms: millis(self.elapsed()),
            // What passed since is not known.
            verified: false,
            exit_code: Outcome::Error.exit_code(None),
            signal: None,
            reason: format!("the journal cannot be written: {}", error.source),
        };
        engine.end_unsaved(complete.clone());
        let (now, at) = (self.clock.now(), self.elapsed());
        let opening = error.opening.iter().map(|event| Event::clone(event));
        let events: Vec<Event> = opening.chain([Event::LoopComplete(complete.clone())]).collect();
        let written = self.journal.append_last_words(events, (now, at), &self.path[..1]);
        let is_written = written.is_ok();
        let events = written.unwrap_or_else(|_| {
            let event = Event::LoopComplete(complete.clone());
            vec![Stamped { at, ..Stamped::new(now, self.journal.last_seq() + 1, event) }]
        });
        for event in &events {
            self.sinks.event(event);
        }
        let unwritten = events.into_iter().last().filter(|_| !is_written);
        self.keep_state(engine);
        let has_begun = self.journal.last_seq() > 0;
        Ended { complete, lost: Some(Lost { error, unwritten, has_begun }) }
    }

    /// Waits, but no longer when somebody wants the run to end.
    async fn wait(&mut self, wait: Duration) -> Input {
        if self.cancel.signal().is_some() || wait.is_zero() {
            return Input::WaitDone;
        }
        let sinks = RefCell::new(&mut self.sinks);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = self.cancel.differs_from(Request::None) => {}
            never = tick(&sinks) => match never {},
        }
        Input::WaitDone
    }
}

/// Does some work, and tells the sinks meanwhile that time passes.
async fn while_ticking<T>(sinks: &RefCell<&mut Sinks>, work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        never = tick(sinks) => match never {},
    }
}

/// Tells the sinks that time passes, for ever.
async fn tick(sinks: &RefCell<&mut Sinks>) -> Infallible {
    let mut interval = tokio::time::interval(TICK);
    loop {
        interval.tick().await;
        sinks.borrow_mut().tick();
    }
}

/// Returns the same signal in the words of the engine, which knows no process.
pub fn named(signal: EndSignal) -> Signal {
    match signal {
        EndSignal::Int => Signal::Int,
        EndSignal::Term => Signal::Term,
        EndSignal::Hup => Signal::Hup,
        EndSignal::Quit => Signal::Quit,
        EndSignal::Xfsz => Signal::Xfsz,
    }
}
