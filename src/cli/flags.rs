//! The switches that several commands share, and the options of a session that they stand for.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::misread::{Misread, count};
use crate::base::sandbox::SandboxMode;
use crate::base::time::parse_duration;
use crate::ci::chain::ChainLink;
use crate::ci::reported::ReportOptions;
use crate::ci::{Provider, is_ci};
use crate::context::audience::Audience;
use crate::context::environment::Environment;
use crate::context::error::Error;
use crate::context::options::{
    KeyOption, LlmOptions, LockOptions, ReuseStoreAt, RunOptions, Storing, Upload,
};
use crate::files::read;
use crate::forge::github::workflow_event::is_sha;
use crate::machine::notified::is_address;
use crate::machine::{BrokerUse, Budget, OnHandoff};
use crate::report::console::Verbosity;
use crate::run::recording::Mode;

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On terminals that support it
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(super) struct Global {
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(super) color: Color,
}

/// Where the files of a loop may be.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ReachFlags {
    /// Allow loop files and their imports outside of the repository
    #[arg(long)]
    pub(super) allow_outside: bool,
}

/// How a run behaves and is shown, whether it begins or is resumed.
#[derive(Clone, Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches of a command line")]
pub(super) struct RunFlags {
    /// Run as in CI: strict, grouped log, annotations, reports. On by default in CI: where `CI` is set and not `false`, or a CI system is known by its own variables
    // With `=`, or the loop behind `--ci` would be taken for its value.
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub(super) ci: Option<String>,
    /// Do not run as in CI, wherever this is
    #[arg(long, conflicts_with = "ci")]
    pub(super) no_ci: bool,
    /// Fail when a success was not verified
    #[arg(long, overrides_with = "no_strict")]
    pub(super) strict: bool,
    /// Accept a success that was not verified, with a warning
    #[arg(long)]
    pub(super) no_strict: bool,
    /// Save the run and hand it off (exit 75) after this time. On GitLab, the default is the job's timeout
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) deadline: Option<Duration>,
    /// Write the bundle this often, in case the machine is lost
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) checkpoint_every: Option<Duration>,
    /// Wait for other runs with an overlapping scope, in the order of arrival, instead of failing
    #[arg(long)]
    pub(super) queue: bool,
    #[command(flatten)]
    pub(super) lock: LockFlags,
    /// Keep the working tree as it is before each step, for `repro` and `rewind`. On by default where agents run in CI
    #[arg(long, overrides_with = "no_snapshots")]
    pub(super) snapshots: bool,
    /// Do not keep the working tree before each step
    #[arg(long)]
    pub(super) no_snapshots: bool,
    /// Write the reports to this directory
    #[arg(long, value_name = "DIR")]
    pub(super) report_dir: Option<PathBuf>,
    /// Run a loop even if the event of the job lets strangers choose what is checked out
    #[arg(long)]
    pub(super) allow_untrusted: bool,
    #[command(flatten)]
    pub(super) reach: ReachFlags,
    /// Let actions see the token of the job, such as `GITHUB_TOKEN` or `CI_JOB_TOKEN`
    #[arg(long)]
    pub(super) pass_token: bool,
    /// Post a JSON document to this address when the outcome of the loop on the branch changes; in CI alone
    #[arg(long, value_name = "URL", value_parser = address)]
    pub(super) notify: Option<String>,
    /// The environment of the job. Who approved the job for it is read from the server, and written into the journal
    #[arg(long, value_name = "NAME")]
    pub(super) environment: Option<String>,
    /// Show what actions print
    #[arg(long, short, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// Show only how the run ended
    #[arg(long, short)]
    pub(super) quiet: bool,
    // Last, because clap applies `next_help_heading` to all arguments that follow.
    #[command(flatten)]
    pub(super) llm: LlmFlags,
    #[command(flatten)]
    pub(super) report: ReportFlags,
}

/// Whether the scope is locked for other machines, too.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct LockFlags {
    /// Lock the scope for all machines, by a lease that is a ref of a git remote. The default REMOTE is `origin`
    #[arg(long, value_name = "git[=REMOTE]", value_parser = lock)]
    pub(super) lock: Option<LockedBy>,
    /// How long the lease holds without being renewed. The default is 60 s
    #[arg(long, value_name = "DURATION", value_parser = lock_ttl)]
    pub(super) lock_ttl: Option<Duration>,
}

/// What locks the scope for other machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LockedBy {
    /// Refs of a git remote; without one it is `origin`.
    Git(Option<String>),
}

impl LockFlags {
    /// Refuses what has no effect.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.lock.is_none() && self.lock_ttl.is_some() {
            return Err(Error::refused("`--lock-ttl` is for a lock, and there is none")
                .with_hint("add `--lock git`, or leave it out"));
        }
        Ok(())
    }

    /// Returns the lock that is meant.
    pub(super) fn options(&self) -> Option<LockOptions> {
        let LockedBy::Git(remote) = self.lock.as_ref()?;
        Some(LockOptions { remote: remote.clone(), ttl: self.lock_ttl.unwrap_or(LockOptions::DEFAULT_TTL) })
    }
}

/// Reads what locks the scope for other machines.
pub(super) fn lock(text: &str) -> Result<LockedBy, Misread> {
    match text.split_once('=') {
        None if text == "git" => Ok(LockedBy::Git(None)),
        Some(("git", remote)) if !remote.is_empty() => Ok(LockedBy::Git(Some(remote.to_owned()))),
        Some(_) | None => Err(Misread("write `git` or `git=REMOTE`")),
    }
}

/// Reads where results of earlier runs are kept.
pub(super) fn reuse_store(text: &str) -> Result<ReuseStoreAt, Misread> {
    let LockedBy::Git(remote) = lock(text)?;
    Ok(ReuseStoreAt::Refs { remote })
}

/// Reads how long a lease holds.
pub(super) fn lock_ttl(text: &str) -> Result<Duration, String> {
    LockOptions::ttl(parse_duration(text).map_err(|error| error.to_string())?).map_err(Into::into)
}

/// Where a run is reported beside its log and its files, and how it continues.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "On GitHub")]
pub(super) struct ReportFlags {
    #[command(flatten)]
    pub(super) commit: CommitFlags,
    #[command(flatten)]
    pub(super) key: KeyFlag,
    /// Create a check run, with the summary and annotations
    #[arg(long)]
    pub(super) check: bool,
    /// Keep a comment on the pull request up to date
    #[arg(long)]
    pub(super) comment: bool,
    /// Let the status wait if a later job delivers what the run changes
    #[arg(long)]
    pub(super) delivers: bool,
    /// What to do after a hand-off, once the files of the run are uploaded
    #[arg(long = "continue", value_name = "HOW", value_enum, default_value_t = GoOn::None)]
    pub(super) go_on: GoOn,
    #[command(flatten)]
    pub(super) chain: ChainFlags,
    #[command(flatten)]
    pub(super) uploading: UploadFlags,
}

/// Whether and for how long the files of a run are uploaded as artifacts of the workflow's run.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct UploadFlags {
    /// Do not upload the files of the run, even where the runner allows it
    #[arg(long)]
    pub(super) no_upload: bool,
    /// How long to keep uploads. The default is the setting of the repository
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    pub(super) retention_days: Option<u32>,
    /// Whether a later step of the action stores them.
    #[arg(skip)]
    pub(super) stored_later: bool,
}

/// How a run is shown at its commit.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct CommitFlags {
    /// Set the status of the commit. On by default on GitHub if a token is set
    #[arg(long, overrides_with = "no_status")]
    pub(super) status: bool,
    /// Do not set the status
    #[arg(long, overrides_with = "status")]
    pub(super) no_status: bool,
    /// The name of the status and the check run. The default is `ll-loop/LOOP`
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) status_context: Option<String>,
    /// Report on this commit instead of that of the event
    #[arg(long, value_name = "SHA", value_parser = sha)]
    pub(super) sha: Option<String>,
}

/// What tells a run from others.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct KeyFlag {
    /// What tells this run from other runs of the loop in the same run of the workflow: a name, or the matrix of the
    /// job as JSON. The default is the job
    #[arg(long, value_name = "KEY")]
    pub(super) key: Option<String>,
}

/// The position of this run in a chain of runs that continue each other.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ChainFlags {
    /// How many runs this one continues
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) chain_depth: u32,
    /// How many runs may continue the first one
    #[arg(long, value_name = "N", default_value_t = Self::MAX)]
    pub(super) max_chain: u32,
}

impl ChainFlags {
    /// The default of `--max-chain`.
    pub(super) const MAX: u32 = 10;
}

/// What is done after a hand-off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum GoOn {
    /// Start another run of the workflow, which resumes the run
    Dispatch,
    /// Nothing
    #[default]
    None,
}

/// How actions can be confined from outside of a loop.
pub(super) const SANDBOX_MODES: [&str; 3] = ["off", "workspace", "strict"];

/// Whether and how models are asked.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Agents and models")]
#[expect(clippy::struct_excessive_bools, reason = "they are switches of a command line")]
pub(super) struct LlmFlags {
    /// Let states ask agents and models. On by default except in CI
    #[arg(long, overrides_with = "no_llm")]
    pub(super) llm: bool,
    /// Do not ask agents or models, whatever the file says. On by default in CI
    #[arg(long)]
    pub(super) no_llm: bool,
    /// The CLI of the agent. The default is `LL_HOST_CLI`, or else the first one on PATH
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<String>,
    /// Agree that agents run without asking for permission
    #[arg(long, short = 'y')]
    pub(super) yes: bool,
    /// Spend at most so many US dollars on models, over all resumes
    #[arg(long, value_name = "USD", value_parser = positive)]
    pub(super) max_cost: Option<f64>,
    /// Use at most so many tokens, over all resumes
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    pub(super) max_tokens: Option<u64>,
    /// Make at most so many calls of models, over all resumes
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    pub(super) max_llm_calls: Option<u32>,
    /// Let agents and models be asked in CI although nothing caps what they cost
    #[arg(long)]
    pub(super) no_budget: bool,
    /// Record every answer of an agent or model in this directory, with the changes that an agent made; with the broker, also
    /// what went to its service and back
    #[arg(long, value_name = "DIR", conflicts_with_all = ["no_llm", "replay"])]
    pub(super) record: Option<PathBuf>,
    /// Replay recorded answers from this directory instead of asking agents or models
    #[arg(long, value_name = "DIR", conflicts_with = "llm")]
    pub(super) replay: Option<PathBuf>,
    /// How the run continues after a hand-off signal, whatever the file says
    #[arg(long, value_name = "WHO", value_parser = clap::builder::PossibleValuesParser::new(OnHandoff::WORDS))]
    pub(super) on_handoff: Option<String>,
    /// Whether ll-loop holds the key of the service that agents ask, whatever the file says. On by default in CI
    #[arg(long, value_name = "WHEN", value_parser = clap::builder::PossibleValuesParser::new(BrokerUse::WORDS))]
    pub(super) broker: Option<String>,
    /// Confine every action of which the loop says nothing; refuse to run where that cannot be done. By default, agents
    /// are confined in CI where that can be done
    #[arg(long, value_name = "MODE", value_parser = SANDBOX_MODES)]
    pub(super) sandbox: Option<String>,
}

/// Reads the name of a commit.
pub(super) fn sha(text: &str) -> Result<String, Misread> {
    let text = text.trim();
    is_sha(text).then(|| text.to_ascii_lowercase()).ok_or(Misread("write the full name of a commit"))
}

/// Reads an address that something is posted to.
pub(super) fn address(text: &str) -> Result<String, Misread> {
    let text = text.trim();
    is_address(text).then(|| text.to_owned()).ok_or(Misread("write an address, https://…"))
}

/// Reads an amount of money.
pub(super) fn positive(text: &str) -> Result<f64, Misread> {
    match text.trim_start_matches('$').parse::<f64>() {
        // `inf` is a number for the parser, and would be no cap.
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(Misread("write an amount of more than zero, such as 2.50")),
    }
}

pub(super) fn pair(text: &str) -> Result<(String, String), Misread> {
    match text.split_once('=') {
        // The value is kept as it is: its blanks and further `=` belong to it.
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err(Misread("write KEY=VALUE")),
    }
}

/// How a run behaves and is reported.
pub(super) fn run(flags: &RunFlags, env: &Environment) -> Result<RunOptions, Error> {
    flags.lock.check()?;
    // Before the run: that reports cannot be written would otherwise be found out when it is over.
    if let Some(directory) = &flags.report_dir
        && let Some(kind) = read::no_directory(directory)
    {
        let why = format!("`{}` is {kind}, not a directory", directory.display());
        return Err(Error::refused(why).with_hint("name a directory for the reports"));
    }
    Ok(RunOptions { audience: audience(flags, env)?, ..told(flags, env) })
}

/// The same for a run that is refused: whom to tell, also where the audience itself is what is wrong.
pub(super) fn told(flags: &RunFlags, env: &Environment) -> RunOptions {
    let report = &flags.report;
    let lookup = env.lookup();
    let provider = match flags.ci.as_deref() {
        Some(name) => Some(Provider::by_name(name, &lookup).unwrap_or_else(|| Provider::detect(&lookup))),
        None => (is_ci(&lookup) && !flags.no_ci).then(|| Provider::detect(&lookup)),
    };
    RunOptions {
        audience: provider.map_or(Audience::Person, Audience::Ci),
        strict: either(flags.strict, flags.no_strict),
        deadline: flags.deadline,
        checkpoint_every: flags.checkpoint_every,
        queue: flags.queue,
        lock: flags.lock.options(),
        snapshots: either(flags.snapshots, flags.no_snapshots),
        report_dir: flags.report_dir.clone(),
        allow_untrusted: flags.allow_untrusted,
        pass_token: flags.pass_token,
        llm: llm(&flags.llm),
        commit: ReportOptions {
            check: report.check,
            comment: report.comment,
            delivers: report.delivers,
            ..commit(&report.commit)
        },
        key: KeyOption::Given(report.key.key.clone()),
        storing: match &report.uploading {
            UploadFlags { stored_later: true, .. } => Storing::LaterStep,
            UploadFlags { no_upload: true, .. } => Storing::Nobody,
            UploadFlags { retention_days, .. } => Storing::Ours(Upload { retention_days: *retention_days }),
        },
        // Only the legs of a plan fill these in, for each item.
        assignment: None,
        item_start: None,
        annotations: None,
        beside: Vec::new(),
        notify: flags.notify.clone(),
        environment: flags.environment.clone(),
        chain: (report.go_on == GoOn::Dispatch).then(|| link(&report.chain)),
    }
}

/// The same for an answer that is refused: its run waits on, and what is said of that at the commit stays.
pub(super) fn told_of_answer(flags: &RunFlags, env: &Environment) -> RunOptions {
    let commit = ReportOptions { status: Some(false), ..ReportOptions::default() };
    RunOptions { commit, ..told(flags, env) }
}

/// Combines two opposite switches, of which the parser keeps only the last one.
fn either(yes: bool, no: bool) -> Option<bool> {
    (yes || no).then_some(yes)
}

fn audience(flags: &RunFlags, env: &Environment) -> Result<Audience, Error> {
    let lookup = env.lookup();
    let provider = match flags.ci.as_deref() {
        Some("auto") => Provider::detect(&lookup),
        Some(name) => Provider::by_name(name, &lookup).ok_or_else(|| {
            let names: Vec<_> = Provider::names().collect();
            Error::refused(format!("unknown CI provider `{name}`"))
                .with_hint(format!("write one of {}", names.join(", ")))
        })?,
        None if is_ci(&lookup) && !flags.no_ci => Provider::detect(&lookup),
        None => return Ok(Audience::Person),
    };
    // Some jobs let a line of output change what later steps do; no action may run there.
    match provider.refusal(&lookup) {
        Some(why) => Err(Error::refused(why)),
        None => Ok(Audience::Ci(provider)),
    }
}

fn llm(args: &LlmFlags) -> LlmOptions {
    let kept = args.record.clone().map(|directory| (directory, Mode::Record));
    let given = args.replay.clone().map(|directory| (directory, Mode::Replay));
    LlmOptions {
        allowed: either(args.llm, args.no_llm),
        host: args.host.clone(),
        agreed: args.yes,
        budget: Budget {
            cost_usd: args.max_cost,
            tokens: args.max_tokens,
            calls: args.max_llm_calls,
            allows_unpriced: false,
        },
        uncapped: args.no_budget,
        recording: kept.or(given),
        on_handoff: args.on_handoff.as_deref().and_then(OnHandoff::by_word),
        broker: args.broker.as_deref().and_then(BrokerUse::by_word),
        sandbox: args.sandbox.as_deref().and_then(SandboxMode::by_word),
    }
}

/// How a run is shown at its commit.
pub(super) fn commit(args: &CommitFlags) -> ReportOptions {
    ReportOptions {
        status: either(args.status, args.no_status),
        context: args.status_context.clone(),
        sha: args.sha.clone(),
        ..ReportOptions::default()
    }
}

/// Returns the position of this run in its chain.
pub(super) fn link(args: &ChainFlags) -> ChainLink {
    ChainLink { depth: args.chain_depth, max: args.max_chain }
}

impl RunFlags {
    /// Returns how much is shown.
    pub(super) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }
}
