//! The seam between the engine and the world: facts that come in, work that goes out.

use std::time::Duration;

use crate::evaluate::observation::{Observation, Stop};

use super::event::LoopComplete;
use super::outcome::Signal;

/// A fact from the world.
#[derive(Clone, Debug)]
pub enum Input {
    /// The run may begin.
    Begin,
    /// The action ended.
    ActionDone(Observation),
    /// The wait is over.
    WaitDone,
    /// Somebody wants the run to end.
    Cancel(Signal),
}

/// What the world has to do.
#[derive(Clone, Copy, Debug)]
pub enum Next<'a> {
    /// Say that the run may begin.
    Begin,
    /// Run this and report.
    Run(&'a ActionRequest),
    /// Wait this long and report.
    Wait(Duration),
    /// Nothing: the run is over.
    Done(&'a LoopComplete),
}

/// An action with every template resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRequest {
    /// The words before the text.
    pub shell: Vec<String>,
    /// The text.
    pub text: String,
    /// Environment beyond that of ll-loop itself.
    pub env: Vec<(String, String)>,
    /// The directory, relative to the run's.
    pub cwd: Option<String>,
    /// The time after which it is stopped, and what that means.
    pub end: Option<(Duration, Stop)>,
    /// The silence after which it is stopped.
    pub idle: Option<Duration>,
}
