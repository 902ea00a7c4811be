//! Where a run is shown: sinks that follow it live, a digest of its events, and formats made from the digest.

pub mod advice;
pub mod annotations;
pub mod board_work;
pub mod ci_log;
pub mod closing;
pub mod confined_work;
pub mod console;
pub mod delivery_fates;
pub mod detail;
pub mod dialect;
pub mod difference;
pub mod digest;
pub mod formats;
pub mod graph;
pub mod guarded_work;
pub mod html;
pub mod items;
pub mod leg_annotations;
pub mod lineage;
pub mod log_file;
mod loop_level;
pub mod markup;
pub mod mends;
pub mod metrics;
pub mod nights;
pub mod numbers;
pub mod open_question;
pub mod passes;
mod places;
pub mod reading_place;
mod recent;
pub mod run_stats;
pub mod shown_steps;
mod silence;
pub mod stages;
pub mod step;
pub mod taken_edges;
#[cfg(test)]
pub(crate) mod testing;
pub mod unbegun_run;
pub mod wavering;
pub mod why;
mod wording;
pub mod work_counts;

use std::io;
use std::time::Duration;

use crate::engine::event::{Shown, Stamped};
pub use crate::engine::outcome::Outcome;
pub use crate::evaluate::observation::Stream;

/// A line that an action printed: valid UTF-8, secrets hidden, without its line end. A line that has no end for a
/// long time comes in several pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLine<'a> {
    /// Where it was printed.
    pub stream: Stream,
    /// The text.
    pub text: &'a str,
}

/// Something that shows a run while it happens. It sees events and output, never the engine, and it sees only what
/// is already durable. Secrets are hidden before anything reaches it.
pub trait Sink {
    /// Returns the name for warnings about this sink.
    fn name(&self) -> &'static str;

    /// Takes the next event.
    fn event(&mut self, event: &Stamped) -> io::Result<()>;

    /// Takes an event of an earlier part of a run that goes on: known already, and not shown again.
    fn past(&mut self, _event: &Stamped) {}

    /// Takes a line that the running action printed.
    fn output(&mut self, _line: OutputLine<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Returns what it showed since the last call that does not follow from events. What an action could abuse while it
    /// runs is returned once `is_over`: nothing that it prints is shown any more.
    fn shown(&mut self, _is_over: bool) -> Vec<Shown> {
        Vec::new()
    }

    /// Is called before the end of the run is written: nothing runs any more.
    fn ends(&mut self) {}

    /// Shows again that something took so long without a line.
    fn still(&mut self, _took: Duration) -> io::Result<()> {
        Ok(())
    }

    /// Is called a few times a second while something runs, with the time that this piece of work has taken, for sinks
    /// that show passing time.
    fn tick(&mut self, _running: Duration) -> io::Result<()> {
        Ok(())
    }
}

/// All sinks of a run. One that fails is dropped with a warning; the run goes on.
#[derive(Default)]
pub struct Sinks {
    active: Vec<Box<dyn Sink>>,
    failures: Vec<String>,
}

impl Sinks {
    /// Adds a sink.
    pub fn add(&mut self, sink: impl Sink + 'static) {
        self.active.push(Box::new(sink));
    }

    /// Adds a sink of any kind.
    pub fn add_boxed(&mut self, sink: Box<dyn Sink>) {
        self.active.push(sink);
    }

    /// Shows an event everywhere.
    pub fn event(&mut self, event: &Stamped) {
        self.each(|sink| sink.event(event));
    }

    /// Tells every sink what happened before the run was resumed.
    pub fn past(&mut self, event: &Stamped) {
        self.active.iter_mut().for_each(|sink| sink.past(event));
    }

    /// Tells every sink that nothing runs any more.
    pub fn ends(&mut self) {
        self.active.iter_mut().for_each(|sink| sink.ends());
    }

    /// Collects what was shown that does not follow from events.
    pub fn shown(&mut self, is_over: bool) -> Vec<Shown> {
        self.active.iter_mut().flat_map(|sink| sink.shown(is_over)).collect()
    }

    /// Shows a line everywhere.
    pub fn output(&mut self, line: OutputLine<'_>) {
        self.each(|sink| sink.output(line));
    }

    /// Lets time pass everywhere.
    pub fn tick(&mut self, running: Duration) {
        self.each(|sink| sink.tick(running));
    }

    /// Returns what went wrong, once, for the warnings at the end.
    pub fn take_failures(&mut self) -> Vec<String> {
        std::mem::take(&mut self.failures)
    }

    fn each(&mut self, mut show: impl FnMut(&mut dyn Sink) -> io::Result<()>) {
        let failures = &mut self.failures;
        // A closed pipe fails for every further line as well.
        self.active.retain_mut(|sink| match show(sink.as_mut()) {
            Ok(()) => true,
            Err(error) => {
                failures.push(format!("{} stopped: {error}", sink.name()));
                false
            }
        });
    }
}
