//! The seam between the engine and the world: facts that come in, work that goes out.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::evaluate::observation::{Observation, Stop, Text};
use crate::evaluate::survey::Surveyed;

use super::event::LoopComplete;
use super::outcome::Signal;
use super::run::StateResult;

/// A fact from the world.
#[derive(Clone, Debug)]
pub enum Input {
    /// The run may begin.
    Begin,
    /// The action ended.
    ActionDone(Observation),
    /// The sub-loop ended, or could not begin.
    SubLoopDone(Result<SubLoopEnd, String>),
    /// The working tree was looked at, or why it could not be.
    Surveyed(Surveyed),
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
    /// Run this loop to its end and report.
    SubLoop(&'a SubLoopRequest),
    /// Look at the working tree and report.
    Survey(&'a SurveyRequest),
    /// Wait this long and report.
    Wait(Duration),
    /// Nothing: the run is over.
    Done(&'a LoopComplete),
}

/// A sub-loop with every template resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct SubLoopRequest {
    /// Its name.
    pub name: String,
    /// Values for its parameters.
    pub params: Map<String, Value>,
    /// The context and the captures that it sees, where it sees those of the loop around it.
    pub around: Option<Around>,
    /// The longest time.
    pub timeout: Option<Duration>,
    /// The time after which it hands itself over.
    pub deadline: Option<Duration>,
}

/// What a sub-loop sees of the loop around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Around {
    /// The variables.
    pub context: Map<String, Value>,
    /// The captures.
    pub captured: IndexMap<String, StateResult>,
}

/// How a sub-loop ended.
#[derive(Clone, Debug, PartialEq)]
pub struct SubLoopEnd {
    /// Its last event.
    pub complete: LoopComplete,
    /// Its captures.
    pub captured: IndexMap<String, StateResult>,
    /// What its last action printed.
    pub output: Text,
}

/// What part of the working tree is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyRequest {
    /// Files and directories, relative to the directory of the run; the whole repository when there are none.
    pub scope: Vec<String>,
    /// How much time the run has left, if it is bounded.
    pub limit: Option<Duration>,
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
