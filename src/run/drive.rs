//! The driver: performs what the engine asks for, and makes every event durable before anybody sees it.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use super::brokerage::Brokerage;
use super::rules::Rules;
use super::sub_loop::Surrounding;
use super::ticking::tick;
use super::world::World;
use super::{
    action, agent, approval, artifact_copy, continuation, learning, mcp, measure, moved_judges,
    query_process, shared_file, snapshot_moments, sub_loop, tree_survey, watched_check,
};
use crate::base::explanation::Explanation;
use crate::base::name::StateName;
use crate::base::time::millis;
use crate::engine::Engine;
use crate::engine::event::{Event, LoopComplete, Stamped};
use crate::engine::outcome::{Asker, Outcome, Signal, TerminatedBy};
use crate::engine::question::AskedAbout;
use crate::engine::request::{Input, Next, SubLoopEnd, SubLoopRequest, UnexpectedInput};
use crate::evaluate::verdict::Observes;
use crate::journal::snapshot::{self, Snapshot};
use crate::journal::writer::EventTime;
use crate::journal::{Tampered, journal_ends, reader};
use crate::process::signal::{self, EndRequest, EndSignal};
use crate::report::digest::Digest;

/// The journal could not be written, or somebody else changed it, so the run was stopped: a run that cannot be saved
/// must not go on.
#[derive(Debug, thiserror::Error)]
#[error("the run was stopped because {}", if self.is_tampered() { "somebody else changed its journal" } else { "its journal cannot be written" })]
pub struct JournalError {
    source: io::Error,
    /// The event with which the run was about to begin or go on, when it could not even do that.
    opening: Option<Box<Event>>,
}

impl JournalError {
    /// Tells whether somebody else changed the journal.
    pub fn is_tampered(&self) -> bool {
        self.source.get_ref().and_then(|source| source.downcast_ref::<Tampered>()).is_some()
    }
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
    world.rules = Rules::of(engine.start());
    if world.before.is_zero() {
        world.begin();
    } else {
        // What was there in an earlier part of the run is not known any more.
        world.doubt();
        // Git's index may have been written by an action of the earlier part.
        measure::know_index(world).await;
    }
    world.sandbox.around.clone_from(&engine.machine().sandbox);
    world.sandbox.has_prompted = engine.run().usage().calls > 0;
    if world.sandbox.has_prompted {
        world.begin_agent();
    }
    world.leftovers.stays = engine.machine().leaves_running;
    let driven = drive(engine, world).await;
    world.leftovers.end(&world.guard, world.files.instance());
    // Also after an error, as no other process knows of them.
    match driven {
        Ok(complete) => Ended { complete, lost: None },
        Err(error) => world.end_unsaved(engine, error),
    }
}

/// Runs a loop to its end, and returns how it ended.
async fn drive(engine: &mut Engine<'_>, world: &mut World) -> Result<LoopComplete, JournalError> {
    let begun = world.elapsed().saturating_sub(engine.elapsed());
    // Measuring copies the artifact already, and it must not be copied twice.
    let mut is_measured = false;
    let mut is_set_aside = false;
    loop {
        // Signals are heard while this waits, and not everything below waits.
        // Once in each turn: a loop of states without actions would never give the runtime its
        // turn.
        tokio::task::yield_now().await;
        let mut doubt = None;
        let next = engine.next();
        if matches!(next, Next::Prompt(_) | Next::Call(_) | Next::Learn(_) | Next::Run(_)) {
            world.written = Some(continuation::look(&world.root));
        }
        let input = match next {
            Next::Done(complete) => {
                // A run that was reused has made nothing to leave.
                if !is_measured && engine.start().reused.is_none() {
                    artifact_copy::leave(engine, world);
                }
                return Ok(complete.clone());
            }
            Next::Begin => Input::Begin,
            Next::Wait(wait) => world.wait(wait).await,
            Next::Yield => Input::Yielded,
            Next::SubLoop(request) => {
                let around = Surrounding {
                    start: engine.start(),
                    step: engine.run().step(),
                    is_tree_doubtful: engine.is_tree_doubtful(),
                };
                Input::SubLoopDone(perform(request, around, world).await?)
            }
            Next::Prompt(request) => {
                world.lets_an_agent_work();
                let (seen, usage) = agent::perform(request, world).await;
                Input::PromptDone(seen, usage)
            }
            Next::Call(request) => Input::ActionDone(mcp::call(request, world).await),
            Next::Approve(request) => Input::ActionDone(approval::perform(request, world).await),
            Next::Learn(request) => {
                let (seen, usage) = Box::pin(learning::perform(request, world)).await;
                Input::PromptDone(seen, usage)
            }
            Next::Ask(request) => Input::Answered(agent::ask(request, world).await),
            Next::ReadContinuation => Input::Continuation(world.continuation()),
            Next::Run(request) => {
                // The moment by which a check that makes its own program is told from one that was
                // given it.
                let watched = watched_check::begin(engine.check_purpose(), request, world).await;
                let is_of_the_loop = world.begin_command(request);
                let seen = action::perform(request, world).await;
                if is_of_the_loop {
                    world.end_command();
                }
                doubt = watched.and_then(|watched| watched_check::end(watched, world));
                Input::ActionDone(seen)
            }
            Next::Survey(request) => Input::Surveyed(tree_survey::look(request, world).await),
            Next::Query(request) => Input::Queried(query_process::perform(request, world).await),
            Next::SetAside(request) => {
                is_set_aside = true;
                // Whatever an action has left running could put a judge of its own where one of the start is put.
                world.leftovers.end(&world.guard, world.files.instance());
                let placed = Box::pin(measure::set_aside(request, world)).await;
                // Boxed here and below, so that the future of a step does not hold those of all
                // kinds of work.
                Input::SetAside(placed.map_err(Explanation::from))
            }
            Next::Restore(request) => {
                let restored = Box::pin(measure::restore(request, world)).await;
                Input::Restored(restored.map_err(Explanation::from))
            }
            Next::LookForQuestion => {
                let tree = Box::pin(measure::look(world)).await;
                Input::AskedAbout(AskedAbout::of(&tree, world.clock.now()))
            }
            Next::LookForJudges(request) => Box::pin(moved_judges::look(request, world)).await,
            Next::Look => Input::Looked(Box::pin(measure::look(world)).await),
            Next::Measure(request) => {
                is_measured = true;
                artifact_copy::leave(engine, world);
                Input::Measured(Box::pin(measure::end(request, world)).await)
            }
            Next::Read(path) => {
                Input::FileRead(shared_file::read(&world.root.join(path)).map_err(Explanation::from))
            }
        };
        // A signal that arrived with the end of the action counts before the next decision.
        world.cancel.catch_up().await;
        if matches!(input, Input::ActionDone(_) | Input::PromptDone(..) | Input::Answered(_)) {
            let left = world.leftovers.look(&world.guard, world.files.instance());
            world.remarks.extend(left.map(|left| world.redactor.text(&left).into_owned()));
        }
        let now = world.elapsed().saturating_sub(begun);
        let asker = world.cancel.asker().map(asker_named);
        let strangers = world.agents.broker.as_ref().and_then(Brokerage::strangers);
        world.remarks.extend(strangers);
        let state = engine.run().current().cloned();
        let said = |message| Event::Warning { state: state.clone(), message };
        let mut told: Vec<_> = world.sandbox.told.drain(..).map(Event::Sandbox).collect();
        told.extend(world.remarks.drain(..).map(said));
        let begins = matches!(input, Input::Begin);
        let mut events = Vec::new();
        // Cancelled first, so that the decision that follows the input knows it.
        events.extend(asker.into_iter().flat_map(|asker| engine.cancel(asker, now)));
        // Before the verdict of the check, which it is about.
        if let Some(why) = doubt {
            engine.doubt_check(why);
        }
        match engine.handle(input, now) {
            Ok(followed) => events.extend(followed),
            // The run ended before what it had asked for came.
            Err(UnexpectedInput) if asker.is_some() => {}
            Err(UnexpectedInput) => unreachable!("every request above has its own answer"),
        }
        // Said before the end of an action is: until then the engine decides nothing, and a warning changes nothing. But a journal
        // begins with the start of its run, by which whoever goes on with it knows it.
        let at = if begins { events.len().min(1) } else { 0 };
        events.splice(at..at, told);
        if events.iter().any(is_a_look) {
            world.doubt();
        }
        // Before the events are consumed by the journal.
        let moments = snapshot_moments::of(&events, &world.around);
        world.record(engine, events)?;
        snapshot_moments::keep(&moments, world).await;
        // Nothing runs now, so the working tree is what the journal says of it.
        // In a closing pass it may hold the judges of the start.
        // A checkpoint in the middle would save a tree that is not that of the run.
        if !is_set_aside {
            world.checkpoints.save_if_due(world.clock.elapsed());
        }
    }
}

/// Runs a sub-loop to its end. The inner error says why it could not begin.
async fn perform(
    request: &SubLoopRequest,
    around: Surrounding<'_>,
    world: &mut World,
) -> Result<Result<SubLoopEnd, Explanation>, JournalError> {
    let (mut sub, left) = match sub_loop::prepare(request, around, world) {
        Ok(prepared) => prepared,
        Err(why) => return Ok(Err(why)),
    };
    let workplace = sub.workplace.take();
    let mut engine = match sub_loop::engine(&sub, left, request, around) {
        Ok(engine) => engine,
        Err(why) => return Ok(Err(why)),
    };
    world.path.push(sub.machine.name.clone());
    world.around.push(around.step);
    let outside = workplace.as_ref().map(|workplace| world.move_to(&workplace.root));
    let around_it = world.sandbox.enter(engine.machine().sandbox.as_ref());
    let ended = Box::pin(drive(&mut engine, world)).await;
    // Also where it ended with an error: the run around it goes on with its own rules.
    world.sandbox.around = around_it;
    world.path.pop();
    world.around.pop();
    if let Some(outside) = outside {
        outside.restore(world);
    }
    let ended = ended?;
    // A sub-loop that goes on later goes on where it was.
    let left = workplace.filter(|_| !ended.is_resumable()).map(|workplace| (workplace.leave)());
    if let Some(Err(why)) = left {
        world.remarks.push(why.into());
    }
    Ok(Ok(sub_loop::end(&engine, ended)))
}

impl World {
    /// Returns how long the run has taken, without the pauses between its parts.
    fn elapsed(&self) -> Duration {
        self.before + self.clock.elapsed()
    }

    /// Returns what the action that has just ended wrote down for the next session.
    fn continuation(&self) -> Option<String> {
        continuation::written_since(self.written.as_ref(), &self.root)
    }

    /// Remembers that an agent is about to work: whatever programs appear from here on, it may have put there, and what a
    /// command runs, it may have written.
    pub(super) fn lets_an_agent_work(&mut self) {
        self.begin_agent();
        self.sandbox.has_prompted = true;
    }

    /// State first, then talk.
    fn record(&mut self, engine: &Engine<'_>, events: Vec<Event>) -> Result<(), JournalError> {
        if events.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let opening = match events.first() {
            Some(event @ (Event::LoopStart(_) | Event::LoopResume(_))) if self.path.len() == 1 => {
                // Kept for the case that the journal cannot take it: the last word then comes after
                // a beginning.
                Some(Box::new(event.clone()))
            }
            _ => None,
        };
        let is_over =
            events.iter().any(|event| matches!(event, Event::ActionComplete(_) | Event::LoopComplete(_)));
        if self.path.len() == 1 && events.iter().any(|event| matches!(event, Event::LoopComplete(_))) {
            self.sinks.ends();
        }
        self.journal.remember(self.sinks.shown(is_over));
        // The journal has it before any sink shows it: nothing is shown that a kill could take back.
        let written = self.journal.append(events, EventTime { now, elapsed: self.elapsed() }, &self.path);
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
        let content = Snapshot::of(engine, &self.surroundings, now, last, self.journal.redactor());
        self.state_failure = content.and_then(|content| snapshot::write(&self.files, &content)).err();
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
        // What was half written is cut off first, so that the last word can be read.
        let _best_effort = self.journal.restore();
        // The engine has gone on in memory; the journal says how far the run is known.
        let place = journal_ends::ends(&journal).ok().and_then(|ends| ends.place);
        let mut digest = Digest::without_steps(0);
        let _as_far_as_it_goes = reader::read(&journal, |event| digest.event(&event));
        let machine = engine.machine();
        let state = place.as_ref().and_then(|place| StateName::parse(&place.state).ok());
        let final_state = state.unwrap_or_else(|| machine.name_of(machine.initial).clone());
        // What passed since is not known, so nothing is verified.
        let complete = LoopComplete {
            // The next run goes on from what is written, so the end must not claim more.
            iterations: place.as_ref().map_or(0, |place| place.iteration),
            steps: place.as_ref().map_or(0, |place| place.step),
            cycles: digest.cycles(),
            duration_ms: millis(self.elapsed()),
            reason: if error.is_tampered() {
                error.source.to_string()
            } else {
                format!("the journal cannot be written: {}", error.source)
            },
            ..LoopComplete::new(Outcome::Error, TerminatedBy::JournalLost, final_state)
        };
        engine.end_unsaved(complete.clone());
        let (now, at) = (self.clock.now(), self.elapsed());
        let opening = error.opening.iter().map(|event| Event::clone(event));
        let events: Vec<Event> = opening.chain([Event::LoopComplete(complete.clone())]).collect();
        let written = self.journal.append_last_words(events, EventTime { now, elapsed: at }, &self.path[..1]);
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
        if self.cancel.is_asked() || wait.is_zero() {
            return Input::WaitDone;
        }
        let sinks = RefCell::new(&mut self.sinks);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = self.cancel.differs_from(EndRequest::None) => {}
            never = tick(&sinks) => match never {},
        }
        Input::WaitDone
    }
}

/// Tells whether a state has looked at the work.
fn is_a_look(event: &Event) -> bool {
    matches!(event, Event::Evaluate { observes: Some(Observes::Passing | Observes::Failing), .. })
}

/// Returns the same in the words of the engine, which knows no process.
fn asker_named(asker: signal::StopAsker) -> Asker {
    match asker {
        signal::StopAsker::Signal(signal) => Asker::Signal(named(signal)),
        signal::StopAsker::Lease => Asker::Lease,
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
