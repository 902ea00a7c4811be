//! Why a run ended, in one word and one exit code that the process, the last event and every report share.

use serde::{Deserialize, Serialize};

/// The exit code of what a later job goes on with: that of sysexits.h for what may well succeed then.
pub const GOES_ON: u8 = 75;

/// The one way in which a run ended. The exit codes are part of the contract with users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A success terminal, verified or declared.
    Success,
    /// A failure terminal, or an unverified success in strict mode.
    Failure,
    /// A cap was met: iterations, steps, revisits of an edge, no change.
    Exhausted,
    /// The loop asked to be stopped.
    Stopped,
    /// A state errored with no route, or a template had no value.
    Error,
    /// A person is needed.
    Blocked,
    /// The budget was met.
    OverBudget,
    /// A required service or tool is missing.
    Unavailable,
    /// Saved, to be continued by a later run.
    Handoff,
    /// The loop's own timeout.
    Timeout,
    /// Somebody ended it; saved, to be continued.
    Interrupted,
    /// The lease of its scope was lost, so another machine may have it; saved, to be continued.
    LeaseLost,
    /// The answer that it waited for is not needed any more.
    Cancelled,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Success,
        Self::Failure,
        Self::Exhausted,
        Self::Stopped,
        Self::Error,
        Self::Blocked,
        Self::OverBudget,
        Self::Unavailable,
        Self::Handoff,
        Self::Timeout,
        Self::Interrupted,
        Self::LeaseLost,
        Self::Cancelled,
    ];

    /// Returns the word that is written everywhere.
    pub fn word(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Exhausted => "exhausted",
            Self::Stopped => "stopped",
            Self::Error => "error",
            Self::Blocked => "blocked",
            Self::OverBudget => "over_budget",
            Self::Unavailable => "unavailable",
            Self::Handoff => "handoff",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
            Self::LeaseLost => "lease_lost",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the exit code; an interruption takes 128 + the signal.
    pub fn exit_code(self, signal: Option<Signal>) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Exhausted | Self::Stopped | Self::Cancelled => 3,
            Self::Error => 4,
            Self::Blocked => 5,
            Self::OverBudget => 6,
            // 69 and 73 are those of sysexits.h; 124 is what timeout(1) uses.
            Self::Unavailable => 69,
            Self::LeaseLost => 73,
            Self::Handoff => GOES_ON,
            Self::Timeout => 124,
            Self::Interrupted => signal.unwrap_or(Signal::Int).exit_code(),
        }
    }

    /// Tells whether a later run can continue where this one stopped.
    pub fn is_resumable(self) -> bool {
        matches!(
            self,
            Self::Handoff
                | Self::Timeout
                | Self::Interrupted
                | Self::OverBudget
                | Self::Unavailable
                | Self::LeaseLost
        )
    }
}

/// What asks a run to end before its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A signal.
    Signal(Signal),
    /// The lease of its scope, which was lost.
    Lease,
    /// The pull request that its question was asked on, which was closed.
    ClosedPull,
    /// Whoever stopped its question, as its journal says.
    StoppedQuestion,
}

impl From<Signal> for Asker {
    fn from(signal: Signal) -> Self {
        Self::Signal(signal)
    }
}

/// A signal that asks a run to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// Interrupt, from the keyboard or the runner.
    Int,
    /// Terminate.
    Term,
    /// The terminal went away.
    Hup,
    /// Quit, from the keyboard.
    Quit,
    /// A file became larger than the limit of this process allows.
    Xfsz,
}

impl Signal {
    /// Returns 128 + the signal's number.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Hup => 129,
            Self::Int => 130,
            Self::Quit => 131,
            Self::Term => 143,
            Self::Xfsz => 153,
        }
    }

    /// Returns the name with its prefix.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "SIGINT",
            Self::Term => "SIGTERM",
            Self::Hup => "SIGHUP",
            Self::Quit => "SIGQUIT",
            Self::Xfsz => "SIGXFSZ",
        }
    }
}

/// What ended a run, more exactly than its outcome: the `terminated_by` of the last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminatedBy {
    /// A terminal state.
    Terminal,
    /// A success on a tree that the commit does not have.
    UncommittedChanges,
    /// A check that was made once more at the end, and did not pass.
    NotConfirmed,
    /// `max_iterations`.
    MaxIterations,
    /// `max_steps`.
    MaxSteps,
    /// `max_edge_revisits`.
    MaxEdgeRevisits,
    /// An error without a route.
    Error,
    /// A verdict of `blocked` without a route.
    Blocked,
    /// The loop's timeout.
    Timeout,
    /// The deadline of the job, or a request for a hand-off.
    Handoff,
    /// A signal.
    Interrupted,
    /// The lease of the scope could not be renewed in time, or somebody else has it.
    LeaseLost,
    /// The pull request was closed on which a person was asked, or somebody has stopped the question.
    Cancelled,
    /// Nothing changed for too many visits of a state.
    Stall,
    /// An action printed `FATAL_ERROR:`.
    FatalError,
    /// An action printed `LOOP_STOP:`.
    LoopStop,
    /// The budget for models.
    Budget,
    /// A host or a service that is missing or down.
    Unavailable,
    /// An answer that was to be recorded, and could not be.
    NotRecorded,
    /// The journal could not be written, or somebody else changed it. The run can go on from its last event.
    JournalLost,
    /// The process was killed. No journal says so; the reports that are made of it afterwards do.
    Killed,
}

impl TerminatedBy {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::Terminal,
        Self::UncommittedChanges,
        Self::NotConfirmed,
        Self::MaxIterations,
        Self::MaxSteps,
        Self::MaxEdgeRevisits,
        Self::Error,
        Self::Blocked,
        Self::Timeout,
        Self::Handoff,
        Self::Interrupted,
        Self::LeaseLost,
        Self::Cancelled,
        Self::Stall,
        Self::FatalError,
        Self::LoopStop,
        Self::Budget,
        Self::Unavailable,
        Self::NotRecorded,
        Self::JournalLost,
        Self::Killed,
    ];
}
