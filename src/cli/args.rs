//! The command line as types: global options and the commands.

use clap::{CommandFactory as _, Parser, Subcommand};

use super::commands::action::ActionArgs;
use super::commands::add::AddArgs;
use super::commands::artifact::ArtifactArgs;
use super::commands::bundle::BundleArgs;
use super::commands::catalog::CatalogArgs;
use super::commands::compile::CompileArgs;
use super::commands::completions::{CompleteLineArgs, CompletionsArgs};
use super::commands::criteria::CriteriaArgs;
use super::commands::deliver::DeliverArgs;
use super::commands::diff::DiffArgs;
use super::commands::doctor::DoctorArgs;
use super::commands::explain::ExplainArgs;
use super::commands::go_on::ContinueArgs;
use super::commands::history::HistoryArgs;
use super::commands::hook::HookArgs;
use super::commands::init::InitArgs;
use super::commands::list::ListArgs;
use super::commands::logs::LogsArgs;
use super::commands::man::ManArgs;
use super::commands::merge::MergeArgs;
use super::commands::plan::PlanArgs;
use super::commands::publish::PublishArgs;
use super::commands::replay::ReplayArgs;
use super::commands::report::ReportArgs;
use super::commands::repro::ReproArgs;
use super::commands::resume::ResumeArgs;
use super::commands::rewind::RewindArgs;
use super::commands::run::RunArgs;
use super::commands::schema::SchemaArgs;
use super::commands::show::ShowArgs;
use super::commands::stats::StatsArgs;
use super::commands::status::StatusArgs;
use super::commands::stop::StopArgs;
use super::commands::test::TestArgs;
use super::commands::update::UpdateArgs;
use super::commands::validate::ValidateArgs;
use super::commands::why::WhyArgs;
use super::flags::Global;

/// Runs loops: YAML finite-state machines that check, fix and verify until the work is clean, a limit is reached,
/// or a person is needed.
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

/// The command.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a loop. The word `run` may be left out before a name that is no command
    #[command(visible_alias = "r")]
    Run(Box<RunArgs>),
    /// Continue a run that was interrupted, handed off or killed
    #[command(visible_alias = "res")]
    Resume(Box<ResumeArgs>),
    /// Write a run into one file, from which another machine can resume it
    Bundle(BundleArgs),
    /// Check loop files without running anything
    #[command(visible_alias = "val")]
    Validate(ValidateArgs),
    /// Test loops: play the cases of test files, with mocks in place of all commands and agents
    Test(Box<TestArgs>),
    /// Explain a finding by its code
    Explain(ExplainArgs),
    /// Show a loop as a graph
    #[command(visible_alias = "s")]
    Show(ShowArgs),
    /// Print a loop as a plain state machine, with all imports, fragments and paradigms expanded
    Compile(CompileArgs),
    /// List the loops of this repository, or its runs
    #[command(visible_alias = "l")]
    List(ListArgs),
    /// Plan the items of loops over many jobs, such as one for each package of a repository
    Plan(PlanArgs),
    /// Make one result of what the legs of a plan have left
    Merge(Box<MergeArgs>),
    /// Write a first loop for this repository, from its own checks, and the workflow that runs it
    Init(InitArgs),
    /// List the ready loops that the program brings along, or show one
    Catalog(CatalogArgs),
    /// Copy a loop of the catalogue, or of another repository, into this one
    Add(AddArgs),
    /// Take newer versions of the loops that were copied from other repositories
    Update(UpdateArgs),
    /// Show the status of runs
    #[command(visible_alias = "st")]
    Status(StatusArgs),
    /// Stop a run, and everything that it started
    Stop(StopArgs),
    /// Show past runs
    #[command(visible_alias = "h")]
    History(HistoryArgs),
    /// Show what many runs have in common: outcomes, durations, flaky states, cost
    Stats(StatsArgs),
    /// Show what tells two runs apart: the first step where they part, verdicts, durations, captures
    Diff(DiffArgs),
    /// Show what the actions of a run printed
    Logs(LogsArgs),
    /// Show a run in one of the report formats
    Report(ReportArgs),
    /// Say why a run ended as it did, and what another verdict would have changed
    Why(WhyArgs),
    /// Show the log of a run again, as it was printed
    Replay(ReplayArgs),
    /// Stand where a step of a run stood: a shell in its tree, or a script that makes it again
    Repro(ReproArgs),
    /// Begin again in front of a step of a run: a new run, in a worktree with the tree as it was then
    Rewind(Box<RewindArgs>),
    /// Upload files to a run of GitHub Actions, or download what a run uploaded
    #[command(subcommand)]
    Artifact(ArtifactArgs),
    /// Set the status of a pull request whose own job may not, from what its run left
    Publish(PublishArgs),
    /// Bring what a run has fixed to people: as a pull request, a commit, suggestions or a patch
    Deliver(DeliverArgs),
    /// Keep the criteria of a piece of work in `.loop/state.json`
    Criteria(CriteriaArgs),
    /// Answer the hooks of an agent's session, and set them up
    #[command(subcommand)]
    Hook(HookArgs),
    /// Show what works on this machine, what the loops here need of it, and how to mend the rest
    Doctor(DoctorArgs),
    /// Print the JSON Schema of loop files, or of their tests
    Schema(SchemaArgs),
    /// Print the script that completes commands, loops and runs in a shell
    Completions(CompletionsArgs),
    /// Write the manual pages
    Man(ManArgs),
    /// Print the version
    Version,
    /// Start another run of the workflow, which resumes a run that was handed off
    #[command(hide = true)]
    Continue(ContinueArgs),
    /// Run the loop that the inputs of the GitHub Action name
    #[command(hide = true)]
    Action(ActionArgs),
    /// Answer the script of a shell that completes a line
    #[command(hide = true)]
    CompleteLine(CompleteLineArgs),
    /// Answer a query about JSON on behalf of a run
    #[command(hide = true)]
    AnswerQuery,
    /// Do what is left when the process of a run is killed
    #[command(hide = true)]
    Guard,
}

/// Returns the words that name commands, with their short forms.
pub(super) fn commands() -> Vec<String> {
    let command = Args::command();
    let names = command
        .get_subcommands()
        .flat_map(|command| std::iter::once(command.get_name()).chain(command.get_all_aliases()));
    names.chain(["help"]).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
