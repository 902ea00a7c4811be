//! The driver: performs what the engine asks for, and makes every event durable before anybody sees it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crate::base::name::LoopName;
use crate::engine::event::{Event, LoopComplete};
use crate::engine::outcome::Signal;
use crate::engine::request::{Input, Next, SubLoopRequest};
use crate::engine::{Engine, Start};
use crate::journal::files::RunFiles;
use crate::journal::snapshot::{self, Surroundings};
use crate::journal::writer::Journal;
use crate::machine::Machine;
use crate::process::signal::{Cancel, EndSignal, Request};
use crate::report::Sinks;

mod action;
pub mod agent;
pub mod checkpoint;
pub mod clock;
mod continuation;
mod git;
mod lines;
pub mod projection;
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
    /// The directory in which actions run, which is the working directory of this process.
    pub root: PathBuf,
    /// Hides secrets in what actions print.
    pub redactor: crate::base::redact::Redactor,
    /// Saves the run elsewhere from time to time.
    pub checkpoints: Checkpoints,
    /// What `state.json` says beyond the engine.
    pub surroundings: Surroundings,
    /// The loops that are running, the outermost first.
    pub path: Vec<LoopName>,
    /// Finds and prepares sub-loops: loop files are not the business of this layer.
    pub sub_loops: SubLoops,
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
pub struct JournalError(#[from] io::Error);

/// Runs to the end, and returns how the run ended.
pub async fn drive(engine: &mut Engine<'_>, world: &mut World) -> Result<LoopComplete, JournalError> {
    let begun = world.elapsed().saturating_sub(engine.elapsed());
    loop {
        let input = match engine.next() {
            Next::Done(complete) => {
                let complete = complete.clone();
                world.journal.sync()?;
                return Ok(complete);
            }
            Next::Begin => Input::Begin,
            Next::Wait(wait) => world.wait(wait).await,
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
            Next::Read(path) => Input::FileRead(match shared_file::read(&world.root.join(path)) {
                Content::Absent => Ok(None),
                Content::Bytes(bytes) => Ok(Some(bytes)),
                Content::Unreadable(error) => Err(error.to_string()),
            }),
        };
        let now = world.elapsed().saturating_sub(begun);
        let mut events = match (world.cancel.signal(), &input) {
            (
                Some(signal),
                Input::ActionDone(_)
                | Input::PromptDone(..)
                | Input::Answered(_)
                | Input::SubLoopDone(_)
                | Input::Surveyed(_),
            ) => engine.handle(Input::Cancel(named(signal)), now),
            (Some(_) | None, _) => Vec::new(),
        };
        events.extend(engine.handle(input, now));
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
        let written = self.journal.append(events, (now, self.elapsed()), &self.path)?;
        if self.path.len() == 1 {
            // A sub-loop is work of a state of the run; where the run stands does not change with it.
            let (redactor, last) = (self.journal.redactor(), self.journal.last_seq());
            let content = snapshot::snapshot(engine, &self.surroundings, now, last, redactor);
            snapshot::write(&self.files, &content)?;
        }
        for event in &written {
            self.sinks.event(event);
        }
        Ok(())
    }

    /// Waits, unless somebody wants the run to end first.
    async fn wait(&mut self, wait: Duration) -> Input {
        if let Some(signal) = self.cancel.signal() {
            return Input::Cancel(named(signal));
        }
        let sinks = RefCell::new(&mut self.sinks);
        tokio::select! {
            () = tokio::time::sleep(wait) => Input::WaitDone,
            _ = self.cancel.differs_from(Request::None) => match self.cancel.signal() {
                Some(signal) => Input::Cancel(named(signal)),
                None => Input::WaitDone,
            },
            never = tick(&sinks) => match never {},
        }
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
    }
}
