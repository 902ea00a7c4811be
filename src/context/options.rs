//! The options of a run, as values that the command line and embedding programs fill in.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::audience::Audience;
use crate::base::explanation::Explanation;
use crate::base::run_key::RunKey;
use crate::base::sandbox::SandboxMode;
use crate::base::time::human;
use crate::ci::chain::ChainLink;
use crate::ci::reported::ReportOptions;
use crate::engine::event::Assignment;
use crate::engine::question::{AnswerKind, AnswerWay};
use crate::lease::lease_record::{LONGEST, SHORTEST};
use crate::machine::{BrokerUse, Budget, OnChange, OnHandoff};
use crate::process::clock::Clock;
use crate::report::leg_annotations::LegAnnotations;
use crate::run::leg_start::ItemStart;
use crate::run::recording::Mode;

/// How a run behaves and is reported, whether it begins or goes on.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The audience that it is shown to.
    pub audience: Audience,
    /// Whether a success that was not verified is a failure. By default, it is in CI.
    pub strict: Option<bool>,
    /// The time after which it is saved and handed off. The default is that of the job, if the CI system names it.
    pub deadline: Option<Duration>,
    /// How often its bundle is written while it goes on.
    pub checkpoint_every: Option<Duration>,
    /// Whether it waits for other runs with an overlapping scope.
    pub queue: bool,
    /// How its scope is locked for other machines, if it is.
    pub lock: Option<LockOptions>,
    /// Whether the working tree is kept as it is before each step. By default, it is where agents run in CI.
    pub snapshots: Option<bool>,
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
    /// What tells it from the other runs of its loop in the same CI run.
    pub key: KeyOption,
    /// Who stores its files where other jobs find them. By default, nobody does.
    pub storing: Storing,
    /// The item of a plan that it works on.
    pub assignment: Option<Assignment>,
    /// Where the item begins, after others in the same checkout.
    pub item_start: Option<ItemStart>,
    /// The annotations of the leg, where it is one of the items of one.
    pub annotations: Option<LegAnnotations>,
    /// Files that are not work of it, wherever they lie, such as the plan.
    pub beside: Vec<PathBuf>,
    /// An address that is told when the outcome of the loop on the branch changes.
    pub notify: Option<String>,
    /// The environment of its job, whose reviewers have approved that.
    pub environment: Option<String>,
    /// Its position in a chain of runs, if another run of the workflow continues after a hand-off.
    pub chain: Option<ChainLink>,
}

/// A lock across machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOptions {
    /// The remote whose refs are the leases: a name or an address. The default is `origin`.
    pub remote: Option<String>,
    /// For how long a lease holds without being renewed: whole seconds, from 1 s to 24 h.
    pub ttl: Duration,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self { remote: None, ttl: Self::DEFAULT_TTL }
    }
}

impl LockOptions {
    /// For how long a lease holds without being renewed, where nobody says it.
    pub(crate) const DEFAULT_TTL: Duration = Duration::from_mins(1);

    /// Reads for how long a lease holds.
    ///
    /// # Errors
    /// It is not a whole number of seconds, too short, or too long.
    pub fn ttl(duration: Duration) -> Result<Duration, Explanation> {
        // The record of a lease counts in seconds.
        if duration.subsec_nanos() == 0 && (SHORTEST..=LONGEST).contains(&duration) {
            return Ok(duration);
        }
        Err(Explanation::new(format!("write whole seconds, from {} to {}", human(SHORTEST), human(LONGEST))))
    }
}

/// What tells a run from the other runs of its loop in the same CI run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOption {
    /// The matrix of the job as JSON, or a key that somebody chose. Without one, it is the job.
    Given(Option<String>),
    /// The key that it had before, when it is reported once more.
    Known(RunKey),
}

impl Default for KeyOption {
    fn default() -> Self {
        Self::Given(None)
    }
}

/// Who stores the files of a run where other jobs find them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storing {
    /// This process, as an artifact of the workflow's run.
    Ours(Upload),
    /// A later step of the job, under the name that the outputs say.
    LaterStep,
    /// Nobody.
    #[default]
    Nobody,
}

/// How the files of a run are uploaded as artifacts of the workflow's run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The days that they are kept. The default is the setting of the repository.
    pub retention_days: Option<u32>,
}

/// Whether and how models are asked.
#[derive(Clone, Debug, Default)]
pub struct LlmOptions {
    /// Whether they may be asked at all. By default, they may except in CI.
    pub allowed: Option<bool>,
    /// The CLI of the agent. The default is the first one on PATH.
    pub host: Option<String>,
    /// Whether the user has agreed that agents work without asking for permission.
    pub agreed: bool,
    /// What they may cost, over all resumes.
    pub budget: Budget,
    /// Whether they may be asked in CI although nothing caps what they cost.
    pub uncapped: bool,
    /// The directory that answers are recorded to or replayed from.
    pub recording: Option<(PathBuf, Mode)>,
    /// How the run continues after a hand-off; overrides the file.
    pub on_handoff: Option<OnHandoff>,
    /// Who holds the key of the service that agents ask; overrides the file. By default, it is us in CI.
    pub broker: Option<BrokerUse>,
    /// How actions are confined where the loop says nothing. By default, agents are in CI.
    pub sandbox: Option<SandboxMode>,
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
    /// The model of prompts that name none.
    pub model: Option<String>,
    /// The model of judges that name none, whatever the loop says.
    pub llm_model: Option<String>,
    /// A cap on its passes; overrides the file.
    pub max_iterations: Option<u32>,
    /// How many cycles a maintain loop does.
    pub max_cycles: Option<u32>,
    /// Whether it runs in a git worktree of its own.
    pub worktree: bool,
    /// Skips the run if nothing in the scope of the loop changed since this commit; `auto` is the base of the event.
    pub changed_since: Option<String>,
    /// The file of the earlier nights: a path, or an artifact on GitHub.
    pub previous: Option<String>,
    /// How often a night is due.
    pub every: Option<Duration>,
    /// Whether it may succeed on a tree that the commit does not have. The default is what the loop says, or what it is
    /// for.
    pub on_change: Option<OnChange>,
    /// Whether checks are never made once more at the end, whatever the loop says.
    pub no_closing_pass: bool,
    /// The paths that it claims, instead of those that the loop says.
    pub scope: Option<Vec<String>>,
    /// Whether an earlier run may stand for it.
    pub reuse: ReuseUse,
    /// Where results of earlier runs are kept.
    pub reuse_store: ReuseStoreAt,
    /// How it behaves.
    pub run: RunOptions,
}

/// Whether an earlier run may stand for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReuseUse {
    /// Where the loop says what its checks read.
    #[default]
    Allowed,
    /// It is run to prove the earlier one right or wrong, where there is one.
    Proved,
    /// Never: it is run.
    Never,
    /// Without one, nothing is run.
    Only,
}

/// Where results of earlier runs are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReuseStoreAt {
    /// In the folder beside the loops.
    #[default]
    Folder,
    /// There, and in refs of a git repository.
    Refs {
        /// A remote, by its name or address. The default is `origin`.
        remote: Option<String>,
    },
}

/// How a run is resumed. The options of its beginning still hold.
#[derive(Clone, Debug, Default)]
pub struct ResumeOptions {
    /// Whether the loop file may have changed since the run began.
    pub accept_changes: bool,
    /// A cap on the passes of the whole run.
    pub max_iterations: Option<u32>,
    /// The time that the whole run may take.
    pub timeout: Option<Duration>,
    /// Values of its context, such as secrets, which the journal does not hold.
    pub context: Vec<(String, String)>,
    /// The answers to the question that it waits with; it waits on where there is none.
    pub answers: Vec<AnswerOptions>,
    /// Comments that answer it, which are read when the question is known.
    pub comments: CommentOptions,
    /// How it behaves.
    pub run: RunOptions,
}

/// Comments on a server that answer the question of a run.
#[derive(Clone, Debug, Default)]
pub struct CommentOptions {
    /// Their ids.
    pub ids: Vec<u64>,
    /// The run of the workflow that asks, where it is known.
    pub run: Option<u64>,
}

/// An answer to the question of a run.
#[derive(Clone, Debug)]
pub struct AnswerOptions {
    /// The name of the person.
    pub who: String,
    /// The id of the account, where a server knows it.
    pub id: Option<u64>,
    /// The comment, where it is one.
    pub comment: Option<u64>,
    /// What it says.
    pub verdict: AnswerKind,
    /// With which words.
    pub text: Option<String>,
    /// The code of the question, where it was named.
    pub code: Option<String>,
    /// How it came.
    pub by: AnswerWay,
}

/// Which run is resumed.
#[derive(Clone, Debug)]
pub enum Which {
    /// An unfinished run on this machine: the newest one of a loop, or a run by its id or the beginning of its id.
    Here(String),
    /// A run from another machine.
    From {
        /// The path of a bundle, `run:ID`, `run:latest` or `artifact:NAME` on GitHub.
        source: String,
        /// The name of the loop or run that is expected.
        name: Option<String>,
        /// The repository on GitHub, if it is not that of the job.
        repository: Option<String>,
    },
}

impl Which {
    /// Understands the options of a command line: without a place that it comes `from`, the run is of this machine.
    pub fn of(from: Option<&str>, name: Option<&str>, repository: Option<&str>) -> Self {
        match from {
            Some(source) => Self::From {
                source: source.to_owned(),
                name: name.map(str::to_owned),
                repository: repository.map(str::to_owned),
            },
            None => Self::Here(name.unwrap_or_default().to_owned()),
        }
    }
}

impl RunOptions {
    /// Tells whether reports are made.
    pub(crate) fn is_published(&self) -> bool {
        self.audience.is_ci() || self.report_dir.is_some()
    }

    /// Tells whether the caller asked for a report at the commit.
    pub(crate) fn is_report_asked(&self) -> bool {
        self.commit.is_asked()
    }

    /// Adds the deadline of the job, if the CI system names it and the caller did not.
    pub(crate) fn settled(&self) -> Self {
        let of_job = match &self.audience {
            Audience::Ci(provider) => provider.job().time_left(Clock::start().now()),
            Audience::Person => None,
        };
        Self { deadline: self.deadline.or(of_job), ..self.clone() }
    }

    /// Leaves time to stop an action and to write the reports before the deadline itself.
    pub(crate) fn before_the_end(deadline: Duration) -> Duration {
        // Five seconds of it are the grace of an action between the two signals that end it.
        const ROOM: Duration = Duration::from_secs(15);
        // Of a short time a part is kept: without all of this room, hardly any of it would be left for the work.
        if deadline > 4 * ROOM { deadline.saturating_sub(ROOM) } else { deadline * 3 / 4 }
    }
}
