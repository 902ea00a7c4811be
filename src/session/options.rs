//! What a caller says about a run, as values: whether it begins or goes on, how it behaves, and where it is reported.

use std::path::PathBuf;
use std::time::Duration;

use crate::ci::github::dispatch::ChainLink;
use crate::ci::reported::ReportOptions;
use crate::machine::{Budget, OnHandoff};
use crate::run::clock::Clock;
use crate::run::recording::Mode;

use super::audience::Audience;

/// How a run behaves and is reported, whether it begins or goes on.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Whom it is shown to.
    pub audience: Audience,
    /// Whether a success that was not verified is a failure; in CI, where nothing is said.
    pub strict: Option<bool>,
    /// The time after which it is saved and handed off; that of the job, where a CI system tells it.
    pub deadline: Option<Duration>,
    /// How often its bundle is written while it goes on.
    pub checkpoint_every: Option<Duration>,
    /// Whether it waits for the runs that have its scope.
    pub queue: bool,
    /// Where its reports are written, also outside of CI.
    pub report_dir: Option<PathBuf>,
    /// Whether it may run where the event of the job lets strangers choose what is checked out.
    pub allow_untrusted: bool,
    /// Whether actions see the token of the job.
    pub pass_token: bool,
    /// Whether and how models are asked.
    pub llm: LlmOptions,
    /// How it is shown at its commit.
    pub commit: ReportOptions,
    /// How its files are stored with the run of the workflow; they are not, where nothing is said.
    pub upload: Option<Upload>,
    /// Where in a chain of runs it stands, when another run of the workflow is to go on after a hand-off.
    pub chain: Option<ChainLink>,
}

/// How the files of a run are stored with the run of the workflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Upload {
    /// For so many days; as the repository is set, where nothing is said.
    pub retention_days: Option<u32>,
}

/// Whether and how models are asked.
#[derive(Clone, Debug, Default)]
pub struct LlmOptions {
    /// Whether they may be asked at all; not in CI, where nothing is said.
    pub allowed: Option<bool>,
    /// The CLI of the agent; the first one on PATH, where nothing is said.
    pub host: Option<String>,
    /// Whether the user has agreed that agents work without asking for permission.
    pub agreed: bool,
    /// What they may cost, over all resumes.
    pub budget: Budget,
    /// Where answers are kept or come from.
    pub recording: Option<(PathBuf, Mode)>,
    /// Who continues after a hand-off signal, whatever the file says.
    pub on_handoff: Option<OnHandoff>,
}

/// How a run begins.
#[derive(Clone, Debug, Default)]
pub struct BeginOptions {
    /// The input of the loop.
    pub input: Option<String>,
    /// Values of its context.
    pub context: Vec<(String, String)>,
    /// Values of its parameters.
    pub params: Vec<(String, String)>,
    /// A cap on its passes, whatever the file says.
    pub max_iterations: Option<u32>,
    /// How many cycles a maintain loop does.
    pub max_cycles: Option<u32>,
    /// Whether it runs in a git worktree of its own.
    pub worktree: bool,
    /// Nothing is run when nothing in the scope of the loop changed since this commit; `auto` is the base of the event.
    pub changed_since: Option<String>,
    /// Where the nights before this one are kept: a path, or an artifact on GitHub.
    pub previous: Option<String>,
    /// How often a night is due.
    pub every: Option<Duration>,
    /// How it behaves.
    pub run: RunOptions,
}

/// How a run goes on. What its beginning said still holds.
#[derive(Clone, Debug, Default)]
pub struct ResumeOptions {
    /// Whether the loop file may be another one than it was.
    pub accept_changes: bool,
    /// A cap on the passes of the whole run.
    pub max_iterations: Option<u32>,
    /// The time that the whole run may take.
    pub timeout: Option<Duration>,
    /// Values of its context, such as secrets, which are not kept.
    pub context: Vec<(String, String)>,
    /// How it behaves.
    pub run: RunOptions,
}

/// Which run goes on.
#[derive(Clone, Debug)]
pub enum Which {
    /// A run that was left here: the newest one of a loop, or a run by its id or the beginning of it.
    Here(String),
    /// A run that comes from elsewhere.
    From {
        /// The path of a bundle, `run:ID`, `run:latest` or `artifact:NAME` on GitHub.
        source: String,
        /// The loop or run that it is expected to be.
        name: Option<String>,
        /// The repository on GitHub, when it is not that of the job.
        repository: Option<String>,
    },
}

impl RunOptions {
    /// Tells whether there will be reports.
    pub(super) fn is_published(&self) -> bool {
        self.audience.is_ci() || self.report_dir.is_some()
    }

    /// Tells whether a report at the commit was asked for in words.
    pub(super) fn is_report_asked(&self) -> bool {
        self.commit.is_asked()
    }

    /// Adds the deadline of the job, where the CI system tells it and nobody else did.
    pub(super) fn settled(&self) -> Self {
        let of_job = match &self.audience {
            Audience::Ci(provider) => provider.job().time_left(Clock::start().now()),
            Audience::Person => None,
        };
        Self { deadline: self.deadline.or(of_job), ..self.clone() }
    }

    /// Leaves time to stop an action and to write the reports before the deadline itself.
    pub(super) fn before_the_end(deadline: Duration) -> Duration {
        const ROOM: Duration = Duration::from_secs(15);
        if deadline > 4 * ROOM { deadline.saturating_sub(ROOM) } else { deadline * 3 / 4 }
    }
}
