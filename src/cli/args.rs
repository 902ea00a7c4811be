//! The command line as types.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::base::time::parse_duration;
use crate::ci::github::event::is_sha;
use crate::criteria::edit::Criterion;
use crate::machine::OnHandoff;

/// Runs loops: YAML finite-state machines that check, fix and verify until it is clean, a limit is met, or a person
/// is needed.
#[derive(Debug, Parser)]
#[command(name = "ll-loop", version, disable_version_flag = false, propagate_version = true, after_help = EXIT_CODES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  success                   69   a service is not there
  1  failure                   73   another run has the scope
  2  nothing was run           75   handed off, to be continued
  3  a limit was met           124  timeout
  4  error                     130  interrupted (SIGINT)
  5  a person is needed        143  interrupted (SIGTERM)
  6  a budget was met          129, 131, 153  interrupted (SIGHUP, SIGQUIT, SIGXFSZ)";

/// Which step of the action this is.
#[derive(Debug, ClapArgs)]
pub(super) struct ActionArgs {
    /// Run the loop, or go on elsewhere with the run that was handed off
    #[arg(value_enum, default_value_t = ActionStep::Run)]
    pub(super) step: ActionStep,
}

/// A step of the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ActionStep {
    /// Run the loop; later steps upload its files and go on elsewhere
    Run,
    /// Run the loop, upload its files, and go on elsewhere
    All,
    /// Put a run that was killed into a bundle, for a later step to upload
    Save,
    /// Go on elsewhere
    Continue,
}

/// What every command takes.
#[derive(Debug, ClapArgs)]
pub(super) struct Global {
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(super) color: Color,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// Where it can be seen
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a loop
    Run(Box<RunArgs>),
    /// Continue a run that was interrupted, handed off or killed
    Resume(Box<ResumeArgs>),
    /// Put a run into one file, for another machine to go on with
    Bundle(BundleArgs),
    /// Check loop files without running anything
    Validate(ValidateArgs),
    /// Explain a finding by its code
    Explain(ExplainArgs),
    /// Show a loop as a graph
    Show(ShowArgs),
    /// Print a loop as a plain state machine, with everything worked in that it takes from elsewhere
    Compile(CompileArgs),
    /// List the loops of this repository, or its runs
    List(ListArgs),
    /// Show how runs stand
    Status(StatusArgs),
    /// End a run, and everything it started
    Stop(StopArgs),
    /// Show the runs there were
    History(HistoryArgs),
    /// Show what the actions of a run printed
    Logs(LogsArgs),
    /// Show what a run looked like, as one of its reports
    Report(RenderArgs),
    /// Store files with a run of GitHub Actions, or fetch what a run stored
    #[command(subcommand)]
    Artifact(ArtifactArgs),
    /// Keep the criteria of a piece of work in `.loop/state.json`
    Criteria(CriteriaArgs),
    /// Answer the hooks of an agent's session, and set them up
    #[command(subcommand)]
    Hook(HookArgs),
    /// Print the JSON Schema of loop files
    Schema,
    /// Print the version
    Version,
    /// Start the run of the workflow that goes on with a run that was handed off
    #[command(hide = true)]
    Continue(ContinueArgs),
    /// Run the loop that the inputs of the GitHub Action name
    #[command(hide = true)]
    Action(ActionArgs),
    /// Answer a query about JSON, for a run that asks for it
    #[command(hide = true)]
    AnswerQuery,
}

/// How a loop is run.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct RunArgs {
    /// The name of a loop in `.loops/`, or the path of a loop file
    #[arg(value_name = "LOOP")]
    pub(super) name: String,
    /// The input of the loop, stored under its `input_key`
    pub(super) input: Option<String>,
    /// Come back when the run has begun, and let it go on in the background
    #[arg(long, short)]
    pub(super) background: bool,
    /// Run in a fresh git worktree, on a branch of its own
    #[arg(long)]
    pub(super) worktree: bool,
    /// Run nothing when nothing in the scope of the loop changed since this commit; `auto`: since the base of the event
    #[arg(long, value_name = "BASE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) changed_since: Option<String>,
    /// Show what would be run, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Cap the passes, whatever the file says
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// Let a maintain loop do so many cycles; it then ends as its last terminal says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_cycles: Option<u32>,
    /// Where the nights before this one are told: a `nights.json`, or a report directory, bundle or artifact with one.
    /// For maintain loops in CI; without it, what this machine kept
    #[arg(long, value_name = "FROM")]
    pub(super) previous: Option<String>,
    /// How often a night is due, so that one that did not happen is reported; 24h in a scheduled job
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) every: Option<Duration>,
    /// Set a context value
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    pub(super) context: Vec<(String, String)>,
    /// Set a declared parameter
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    pub(super) param: Vec<(String, String)>,
    #[command(flatten)]
    pub(super) manner: Manner,
}

/// Where the files of a loop may lie.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct ReachArgs {
    /// Read loop files, and what they take over, also outside of the repository
    #[arg(long)]
    pub(super) allow_outside: bool,
}

/// How a run behaves and shows itself, whether it begins or goes on.
#[derive(Clone, Debug, Default, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches of a command line")]
pub(super) struct Manner {
    /// Run as in CI: strict, grouped log, annotations, reports. On by default where `CI` is set
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub(super) ci: Option<String>,
    /// Do not run as in CI, even where `CI` is set
    #[arg(long, conflicts_with = "ci")]
    pub(super) no_ci: bool,
    /// Fail when a success was not verified
    #[arg(long, overrides_with = "no_strict")]
    pub(super) strict: bool,
    /// Accept a success that was not verified, with a warning
    #[arg(long)]
    pub(super) no_strict: bool,
    /// Save and hand off (exit 75) when the run would last longer. On GitLab, the time of the job when absent
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) deadline: Option<Duration>,
    /// Write the bundle this often, for the case that the machine is lost
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) checkpoint_every: Option<Duration>,
    /// Wait for the runs that have the scope, in the order of arrival, instead of failing
    #[arg(long)]
    pub(super) queue: bool,
    /// Write the reports here
    #[arg(long, value_name = "DIR")]
    pub(super) report_dir: Option<PathBuf>,
    /// Run a loop although the event of the job lets strangers choose what is checked out
    #[arg(long)]
    pub(super) allow_untrusted: bool,
    #[command(flatten)]
    pub(super) reach: ReachArgs,
    /// Let actions see the token of the job, such as `GITHUB_TOKEN` or `CI_JOB_TOKEN`
    #[arg(long)]
    pub(super) pass_token: bool,
    /// Show what actions print
    #[arg(long, short, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// Show the last words only
    #[arg(long, short)]
    pub(super) quiet: bool,
    // Last, because their headings hold for everything that follows.
    #[command(flatten)]
    pub(super) llm: LlmArgs,
    #[command(flatten)]
    pub(super) report: ReportArgs,
}

/// Where a run is reported beside its log and its files, and what becomes of it.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "On GitHub")]
pub(super) struct ReportArgs {
    #[command(flatten)]
    pub(super) commit: CommitArgs,
    /// Make a check run, with the summary and annotations
    #[arg(long)]
    pub(super) check: bool,
    /// Keep a comment on the pull request up to date
    #[arg(long)]
    pub(super) comment: bool,
    /// What to do after a hand-off, when the files of the run are where the next one finds them
    #[arg(long = "continue", value_name = "HOW", value_enum, default_value_t = GoOn::None)]
    pub(super) go_on: GoOn,
    #[command(flatten)]
    pub(super) chain: ChainArgs,
    #[command(flatten)]
    pub(super) uploading: UploadingArgs,
}

/// Whether and for how long the files of a run are stored with the run of the workflow.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct UploadingArgs {
    /// Do not upload the files of the run, even where the runner lets us
    #[arg(long)]
    pub(super) no_upload: bool,
    /// Keep what is uploaded so long; the setting of the repository when absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) retention_days: Option<u32>,
}

/// How a run is shown at its commit.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct CommitArgs {
    /// Set the status of the commit. On by default in CI on GitHub where there is a token
    #[arg(long, overrides_with = "no_status")]
    pub(super) status: bool,
    /// Set no status
    #[arg(long, overrides_with = "status")]
    pub(super) no_status: bool,
    /// The name of the status and the check run; `ll-loop/LOOP` when absent
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) status_context: Option<String>,
    /// The commit that is reported on, in place of that of the event
    #[arg(long, value_name = "SHA", value_parser = sha)]
    pub(super) sha: Option<String>,
}

/// Where in a chain of runs that continue each other this one stands.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct ChainArgs {
    /// How many runs this one continues
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) chain_depth: u32,
    /// How many runs may continue the first one
    #[arg(long, value_name = "N", default_value_t = Self::MAX)]
    pub(super) max_chain: u32,
}

impl ChainArgs {
    /// How many runs may continue the first one, where nothing is said.
    pub(super) const MAX: u32 = 10;
}

/// What is done after a hand-off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum GoOn {
    /// Start another run of the workflow, which goes on
    Dispatch,
    /// Nothing
    #[default]
    None,
}

/// Which run goes on elsewhere.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct ContinueArgs {
    /// A loop, whose last run is taken, or a run
    #[arg(value_name = "LOOP|RUN")]
    pub(super) name: String,
    #[command(flatten)]
    pub(super) commit: CommitArgs,
    #[command(flatten)]
    pub(super) chain: ChainArgs,
    /// How the step ended that uploaded the files of the run
    #[arg(long, value_name = "OUTCOME", default_value = "success")]
    pub(super) upload: String,
}

impl ReportArgs {
    /// Tells whether a report was asked for in words.
    pub(super) fn is_asked(&self) -> bool {
        self.commit.status || self.check || self.comment
    }
}

/// Reads the name of a commit.
pub(super) fn sha(text: &str) -> Result<String, String> {
    let text = text.trim();
    is_sha(text)
        .then(|| text.to_ascii_lowercase())
        .ok_or_else(|| "write the full name of a commit".to_owned())
}

/// Whether and how models are asked.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Agents and models")]
pub(super) struct LlmArgs {
    /// Let states ask agents and models. On by default, but not in CI
    #[arg(long, overrides_with = "no_llm")]
    pub(super) llm: bool,
    /// Ask no agent and no model, whatever the file says. On by default in CI
    #[arg(long)]
    pub(super) no_llm: bool,
    /// The CLI of the agent; `LL_HOST_CLI`, or the first one on PATH, when absent
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<String>,
    /// Agree that agents run without asking for permission
    #[arg(long, short = 'y')]
    pub(super) yes: bool,
    /// Spend no more US dollars on models, over all resumes
    #[arg(long, value_name = "USD", value_parser = positive)]
    pub(super) max_cost: Option<f64>,
    /// Use no more tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_tokens: Option<u64>,
    /// Make no more calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_llm_calls: Option<u32>,
    /// Keep every answer of an agent or a model here, with what an agent changed
    #[arg(long, value_name = "DIR", conflicts_with_all = ["no_llm", "replay"])]
    pub(super) record: Option<PathBuf>,
    /// Give the answers that were kept here, and ask nobody
    #[arg(long, value_name = "DIR", conflicts_with = "llm")]
    pub(super) replay: Option<PathBuf>,
    /// Who continues after a hand-off signal, whatever the file says
    #[arg(long, value_name = "WHO", value_parser = clap::builder::PossibleValuesParser::new(OnHandoff::WORDS))]
    pub(super) on_handoff: Option<String>,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("write an amount of more than zero, such as 2.50".to_owned()),
    }
}

/// Which run goes on, and what is different from now on. What the first command line said still holds.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct ResumeArgs {
    /// A loop, whose newest run that can go on is taken; or a run by its id or the beginning of it
    #[arg(value_name = "LOOP|RUN", required_unless_present = "from")]
    pub(super) name: Option<String>,
    /// Take the run over from elsewhere: the path of a bundle, `run:ID`, `run:latest` or `artifact:NAME` on GitHub
    #[arg(long, value_name = "BUNDLE")]
    pub(super) from: Option<String>,
    /// With `--from`: the repository on GitHub, when it is not that of the job
    #[arg(long, value_name = "OWNER/NAME", requires = "from")]
    pub(super) repo: Option<String>,
    /// Go on although the loop file is not what it was
    #[arg(long)]
    pub(super) accept_changes: bool,
    /// Cap the passes of the whole run, whatever was said before
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// Give the whole run so much time, whatever the file says
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) timeout: Option<Duration>,
    /// Set a context value, such as a secret, which is not kept
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    pub(super) context: Vec<(String, String)>,
    #[command(flatten)]
    pub(super) manner: Manner,
}

/// Which run is put into a file, and where to.
#[derive(Debug, ClapArgs)]
pub(super) struct BundleArgs {
    /// A loop, whose newest run that can go on is taken; or a run by its id or the beginning of it
    #[arg(value_name = "LOOP|RUN")]
    pub(super) name: String,
    /// Write it here instead of to `<run>.llz`
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

/// Whose report is shown, and how.
#[derive(Debug, ClapArgs)]
pub(super) struct RenderArgs {
    /// A run, a loop, whose last run is taken, or a bundle
    #[arg(value_name = "LOOP|RUN|BUNDLE")]
    pub(super) name: String,
    /// How it is written
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = super::commands::report::parser())]
    pub(super) format: String,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

/// What is validated, and how it is said.
#[derive(Debug, ClapArgs)]
pub(super) struct ValidateArgs {
    /// Names or files of loops; all loops of the repository when there are none
    #[arg(value_name = "LOOP")]
    pub(super) loops: Vec<String>,
    /// Let warnings fail, too
    #[arg(long)]
    pub(super) strict: bool,
    /// Walk everything that can happen, and show the shortest way to each bad end
    #[arg(long)]
    pub(super) deep: bool,
    /// How findings are written
    #[arg(long, value_enum, default_value_t = Findings::Text)]
    pub(super) format: Findings,
    #[command(flatten)]
    pub(super) reach: ReachArgs,
}

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Findings {
    /// For people
    Text,
    /// One object per line
    Json,
    /// For code scanning: SARIF 2.1.0
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

/// What is explained.
#[derive(Debug, ClapArgs)]
pub(super) struct ExplainArgs {
    /// The code of a finding, such as `unknown-key`; all codes are listed when there is none
    pub(super) code: Option<String>,
}

/// What is shown, and how.
#[derive(Debug, ClapArgs)]
pub(super) struct ShowArgs {
    /// The name of a loop in `.loops/`, or the path of a loop file
    #[arg(value_name = "LOOP")]
    pub(super) name: String,
    /// How the graph is drawn
    #[arg(long, value_enum, default_value_t = Graph::Text)]
    pub(super) format: Graph,
    #[command(flatten)]
    pub(super) reach: ReachArgs,
}

/// What is compiled, and where to.
#[derive(Debug, ClapArgs)]
pub(super) struct CompileArgs {
    /// The name of a loop in `.loops/`, or the path of a loop file
    #[arg(value_name = "LOOP")]
    pub(super) name: String,
    /// Write the loop here instead of printing it
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) reach: ReachArgs,
}

/// What is listed.
#[derive(Debug, ClapArgs)]
pub(super) struct ListArgs {
    /// List the runs that are alive instead of the loops
    #[arg(long, conflicts_with = "label")]
    pub(super) running: bool,
    /// List the loops that have this label; given several times, all of them
    #[arg(long, short, value_name = "LABEL", action = ArgAction::Append)]
    pub(super) label: Vec<String>,
    #[command(flatten)]
    pub(super) reach: ReachArgs,
    /// Write one JSON object per line
    #[arg(long)]
    pub(super) json: bool,
}

/// Whose standing is shown.
#[derive(Debug, ClapArgs)]
pub(super) struct StatusArgs {
    /// A loop or a run; everything that was not ended when there is none
    #[arg(value_name = "NAME|INSTANCE")]
    pub(super) name: Option<String>,
    /// Write one JSON object per line
    #[arg(long)]
    pub(super) json: bool,
    /// Show every change until nothing of it runs any more
    #[arg(long, short)]
    pub(super) watch: bool,
}

/// Who is stopped.
#[derive(Debug, ClapArgs)]
pub(super) struct StopArgs {
    /// A loop that runs once, or a run
    #[arg(value_name = "NAME|INSTANCE")]
    pub(super) name: String,
}

/// Which runs are shown, or forgotten.
#[derive(Debug, ClapArgs)]
pub(super) struct HistoryArgs {
    /// A loop or a run
    #[arg(value_name = "NAME|INSTANCE")]
    pub(super) name: Option<String>,
    /// A run of that loop
    #[arg(value_name = "RUN")]
    pub(super) run: Option<String>,
    /// Write one JSON object per line: a run each, or for one run an event each
    #[arg(long)]
    pub(super) json: bool,
    /// Forget old runs. Those that are alive or can be continued stay
    #[arg(long)]
    pub(super) prune: bool,
    /// With `--prune`: forget what ended longer ago; 90 days by default
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "prune")]
    pub(super) older_than: Option<Duration>,
    /// With `--prune`: keep so many runs of each loop; 500 by default
    #[arg(long, value_name = "N", requires = "prune")]
    pub(super) keep: Option<usize>,
    /// With `--prune`: say what would be forgotten, and forget nothing
    #[arg(long, requires = "prune")]
    pub(super) dry_run: bool,
}

/// Whose log is shown.
#[derive(Debug, ClapArgs)]
pub(super) struct LogsArgs {
    /// A loop or a run; of a loop, the run that is alive, or the last one
    #[arg(value_name = "NAME|INSTANCE")]
    pub(super) name: Option<String>,
    /// Show what comes until the run ends
    #[arg(long, short)]
    pub(super) follow: bool,
}

/// What is done with artifacts.
#[derive(Debug, Subcommand)]
pub(super) enum ArtifactArgs {
    /// Store files and directories with the run that is going on
    Upload(UploadArgs),
    /// Fetch what this run or another one stored
    Download(DownloadArgs),
}

/// What is stored.
#[derive(Debug, ClapArgs)]
pub(super) struct UploadArgs {
    /// The name of the artifact, unlike any other of this run
    pub(super) name: String,
    /// Files and directories
    #[arg(value_name = "PATH", required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// Keep it so many days, or as long as the repository keeps artifacts where that is less
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=400))]
    pub(super) retention_days: Option<u32>,
}

/// What is fetched.
#[derive(Debug, ClapArgs)]
pub(super) struct DownloadArgs {
    /// The name of an artifact, or a run: of the artifacts that begin with `ll-loop-`, the one of its last attempt
    #[arg(value_name = "NAME|run:ID|run:latest")]
    pub(super) what: String,
    /// The directory it is unpacked into
    #[arg(long, value_name = "DIR")]
    pub(super) to: PathBuf,
    /// Look in this repository, and not in that of `GITHUB_REPOSITORY`
    #[arg(long, value_name = "OWNER/NAME")]
    pub(super) repo: Option<String>,
    /// Look for the name in this run alone
    #[arg(long, value_name = "ID")]
    pub(super) run: Option<u64>,
}

/// What is done to a piece of work, and where its state is.
#[derive(Debug, ClapArgs)]
pub(super) struct CriteriaArgs {
    /// The state file; `.loop/state.json` when absent
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) state: Option<PathBuf>,
    #[command(subcommand)]
    pub(super) command: CriteriaCommand,
}

/// What is done to a piece of work.
#[derive(Debug, Subcommand)]
pub(super) enum CriteriaCommand {
    /// Begin, with nothing met
    Start(CriteriaStart),
    /// Run the commands of the criteria, and count the round. Exit code 0: all are met; 1: not all; 3: nothing moves
    Check {
        /// The longest time for each command
        #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10m")]
        timeout: Duration,
    },
    /// Say whether a criterion is met
    Set {
        /// The criterion
        name: String,
        /// Whether it is met
        #[arg(value_name = "true|false", action = ArgAction::Set)]
        is_met: bool,
    },
    /// Say that the work is done, as far as whoever works can tell
    Signal,
    /// End the work, when all criteria are met; with a step, end that
    Done {
        /// The step
        step: Option<String>,
    },
    /// End the work as it is
    Cancel,
    /// Show how the work stands
    Status,
}

/// The work that begins.
#[derive(Debug, ClapArgs)]
pub(super) struct CriteriaStart {
    /// What is to be done
    pub(super) spec: String,
    /// A criterion, and the command that tells whether it is met; without one, `set` says it
    #[arg(long = "criterion", value_name = "NAME[=COMMAND]", required = true, value_parser = criterion)]
    pub(super) criteria: Vec<Criterion>,
    /// A step of the work
    #[arg(long = "step", value_name = "STEP")]
    pub(super) steps: Vec<String>,
}

fn criterion(text: &str) -> Result<Criterion, String> {
    let (name, check) = match text.split_once('=') {
        Some((name, check)) => (name.trim(), Some(check.trim().to_owned())),
        None => (text.trim(), None),
    };
    if name.is_empty() || check.as_deref() == Some("") {
        return Err("write NAME or NAME=COMMAND".to_owned());
    }
    Ok(Criterion { name: name.to_owned(), check })
}

/// What a hook asks.
#[derive(Debug, Subcommand)]
pub(super) enum HookArgs {
    /// Say whether the session may stop, by the criteria in `.loop/state.json`
    StopCheck(HookQuery),
    /// Say how the work stands, to a session that begins
    SessionResume(HookQuery),
    /// Add both hooks to `.claude/settings.json`
    Install(HookSettings),
    /// Take them out again
    Uninstall(HookSettings),
}

/// What becomes of the settings.
#[derive(Debug, ClapArgs)]
pub(super) struct HookSettings {
    /// Print the settings as they would be, and write nothing
    #[arg(long)]
    pub(super) print: bool,
}

/// About which file a hook asks, and how it is answered.
#[derive(Debug, ClapArgs)]
pub(super) struct HookQuery {
    /// The state file; `.loop/state.json` of the session's directory or else of the project when absent
    #[arg(long, value_name = "PATH")]
    pub(super) state: Option<PathBuf>,
    /// Whose answers to give
    #[arg(long, value_enum, default_value_t = HookFormat::Seed)]
    pub(super) format: HookFormat,
}

/// Whose answers a hook gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HookFormat {
    /// `{"ok": …}`
    Seed,
    /// Those of Claude Code
    Claude,
}

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Graph {
    /// For a terminal
    Text,
    /// For GitHub, GitLab and others that draw Mermaid
    Mermaid,
    /// For Graphviz
    Dot,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
