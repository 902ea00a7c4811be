//! The command line as types: global options and the commands.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use super::commands::action::ActionArgs;
use super::commands::add::AddArgs;
use super::commands::answer::AnswerArgs;
use super::commands::artifact::ArtifactArgs;
use super::commands::board::BoardArgs;
use super::commands::bundle::BundleArgs;
use super::commands::catalog::CatalogArgs;
use super::commands::compile::CompileArgs;
use super::commands::completions::{CompleteLineArgs, CompletionsArgs};
use super::commands::criteria::CriteriaArgs;
use super::commands::deliver::DeliverArgs;
use super::commands::deliveries::DeliveriesArgs;
use super::commands::diff::DiffArgs;
use super::commands::doctor::DoctorArgs;
use super::commands::explain::ExplainArgs;
use super::commands::export::ExportArgs;
use super::commands::fmt::FmtArgs;
use super::commands::go_on::ContinueArgs;
use super::commands::history::HistoryArgs;
use super::commands::hook::HookArgs;
use super::commands::init::InitArgs;
use super::commands::ledger::LedgerArgs;
use super::commands::list::ListArgs;
use super::commands::logs::LogsArgs;
use super::commands::lsp::LspArgs;
use super::commands::man::ManArgs;
use super::commands::merge::MergeArgs;
use super::commands::plan::PlanArgs;
use super::commands::publish::PublishArgs;
use super::commands::quarantine::QuarantineArgs;
use super::commands::replay::ReplayArgs;
use super::commands::report::ReportArgs;
use super::commands::repro::ReproArgs;
use super::commands::resume::ResumeArgs;
use super::commands::reuse::ReuseArgs;
use super::commands::rewind::RewindArgs;
use super::commands::run::RunArgs;
use super::commands::schema::SchemaArgs;
use super::commands::show::ShowArgs;
use super::commands::stats::StatsArgs;
use super::commands::status::StatusArgs;
use super::commands::steer::SteerArgs;
use super::commands::stop::StopArgs;
use super::commands::test::TestArgs;
use super::commands::until_done::UntilDoneArgs;
use super::commands::update::UpdateArgs;
use super::commands::validate::ValidateArgs;
use super::commands::verify::VerifyArgs;
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
    /// Run a loop. The word `run` may be left out before a name that is not a command
    #[command(visible_alias = "r")]
    Run(Box<RunArgs>),
    /// Continue a run that was interrupted, handed off or killed
    #[command(visible_alias = "res")]
    Resume(Box<ResumeArgs>),
    /// Answer the question that a run waits with, and continue it
    Answer(Box<AnswerArgs>),
    /// Write a run into one file, from which another machine can resume it
    Bundle(BundleArgs),
    /// Check loop files without running anything
    #[command(visible_alias = "val")]
    Validate(ValidateArgs),
    /// Write loop files in one form, with their comments
    Fmt(FmtArgs),
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
    /// Show what a run need not do again: its key, and the results that are kept by their keys
    #[command(subcommand)]
    Reuse(ReuseArgs),
    /// Excuse the failures of a flaky check for a time, and see which are excused
    #[command(subcommand)]
    Quarantine(QuarantineArgs),
    /// Show how the day stands that a policy caps, or begin the ledger in which it is counted
    Ledger(LedgerArgs),
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
    /// Show what became of what runs delivered, and what each fix that was kept has cost
    Deliveries(DeliveriesArgs),
    /// Show the loops of many repositories on one page
    Board(BoardArgs),
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
    /// Write a run for the tools in which others look at traces and metrics
    Export(ExportArgs),
    /// Stand where a step of a run stood: a shell in its tree, or a script that makes it again
    Repro(ReproArgs),
    /// Begin again in front of a step of a run: a new run, in a worktree with the tree as it was then
    Rewind(Box<RewindArgs>),
    /// Upload files to a run of GitHub Actions, or download what a run uploaded
    #[command(subcommand)]
    Artifact(ArtifactArgs),
    /// Set the status of a pull request whose own job may not, from what its run left
    Publish(PublishArgs),
    /// Follow the command in a comment on a pull request: approve, answer, retry, stop and others
    #[command(name = "command")]
    Steer(SteerArgs),
    /// Go on with runs that were handed off, until they are over or a person is needed
    UntilDone(UntilDoneArgs),
    /// Bring what a run has fixed to people: as a pull request, a commit, suggestions or a patch
    Deliver(DeliverArgs),
    /// Check what is claimed of a run, a commit or a tree, by whom, and whether that is enough
    Verify(VerifyArgs),
    /// Keep the criteria of a piece of work in `.loop/state.json`
    Criteria(CriteriaArgs),
    /// Answer the hooks of an agent's session, and set them up
    #[command(subcommand)]
    Hook(HookArgs),
    /// Show what works on this machine, what the loops here need of it, and how to mend the rest
    Doctor(DoctorArgs),
    /// Print the JSON Schema of loop files, of their tests, or of policies
    Schema(SchemaArgs),
    /// Print the script that completes commands, loops and runs in a shell
    Completions(CompletionsArgs),
    /// Serve an editor: what `validate` says, as you type
    Lsp(LspArgs),
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

/// The commands by what somebody wants, in the order in which they are needed.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Start",
        &[
            "init", "catalog", "add", "update", "list", "show", "validate", "fmt", "test", "explain",
            "compile", "run", "doctor",
        ],
    ),
    (
        "Look",
        &[
            "status",
            "logs",
            "history",
            "why",
            "report",
            "diff",
            "stats",
            "deliveries",
            "board",
            "replay",
            "export",
        ],
    ),
    ("Go on", &["stop", "resume", "answer", "rewind", "repro"]),
    ("Share", &["bundle", "deliver", "publish", "artifact", "verify"]),
    ("CI", &["plan", "merge", "reuse", "quarantine", "ledger", "command", "until-done"]),
    ("Agents", &["criteria", "hook"]),
    ("The program", &["lsp", "completions", "man", "schema", "version", "help"]),
];

/// Reads a command line: arguments without the program's name first.
pub(super) fn parse(arguments: &[OsString]) -> Result<Args, clap::Error> {
    let mut command = grouped();
    // The name that help shows, whatever the program was started as.
    let words = std::iter::once("ll-loop".into()).chain(arguments.iter().cloned());
    let matches = command.try_get_matches_from_mut(words)?;
    Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Returns the command line with its commands in groups, where it explains itself.
fn grouped() -> clap::Command {
    let command = Args::command();
    let groups = groups(&command);
    // The parser can put options under headings, but not commands.
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{options}}{{after-help}}"
    ))
}

/// Writes the groups, and the heading of what follows them.
fn groups(command: &clap::Command) -> String {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut out = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(out, "{header}{title}:{header:#}");
        for name in names {
            let about = match command.find_subcommand(name) {
                Some(known) => known.get_about().map_or_else(String::new, ToString::to_string),
                // `help` is added by the parser, and only when it parses.
                None => "Print this, or the help of a command".to_owned(),
            };
            let _ = writeln!(out, "  {literal}{name:<11}{literal:#}  {about}");
        }
        out.push('\n');
    }
    let _ = writeln!(out, "{header}Options:{header:#}");
    out
}

/// Returns the words that name commands, with their short forms.
pub(super) fn commands() -> Vec<String> {
    let command = Args::command();
    let names = command
        .get_subcommands()
        // Short forms as well: one that is typed alone never means a loop.
        .flat_map(|command| std::iter::once(command.get_name()).chain(command.get_all_aliases()));
    names.chain(["help"]).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use serde_yaml::Value;

    use super::*;

    /// Each action, the command that it is, and its inputs that are not options of that command: what is run, by which
    /// program, where, and what the command takes from the environment.
    const ACTIONS: [(&str, &str, &[&str]); 5] = [
        (
            "action.yml",
            "run",
            &[
                "answer",
                "args",
                "command",
                "env",
                "image",
                "input",
                "loop",
                "network",
                "params",
                "resume-from",
                "reuse",
                "team-token",
                "token",
                "upload",
                "version",
                "working-directory",
            ],
        ),
        (
            "docker/action.yml",
            "run",
            &[
                "answer",
                "args",
                "command",
                "input",
                "loop",
                "params",
                "resume-from",
                "team-token",
                "token",
                "upload",
                "working-directory",
            ],
        ),
        ("deliver/action.yml", "deliver", &["bundle", "run-id", "token", "version"]),
        (
            "plan/action.yml",
            "plan",
            &["args", "loop", "retention-days", "token", "version", "working-directory"],
        ),
        ("merge/action.yml", "merge", &["from", "token", "upload", "version"]),
    ];

    fn read(file: &str) -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        serde_yaml::from_str(&fs_err::read_to_string(path).unwrap()).unwrap()
    }

    fn keys(of: &Value) -> BTreeSet<String> {
        let map = of.as_mapping().into_iter().flatten();
        map.map(|(key, _)| key.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_command_line_is_consistent() {
        grouped().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group_and_every_group_in_the_readme() {
        let command = Args::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut known: Vec<&str> = shown.map(clap::Command::get_name).chain(["help"]).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
        let readme = include_str!("../../README.md");
        for (title, names) in GROUPS {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            let line = format!("| {title} | {} |", names.join(" "));
            assert!(readme.contains(&line), "README.md has no line {line}");
        }
    }

    #[test]
    fn every_input_of_an_action_is_an_option_of_its_command() {
        let program = Args::command();
        for (file, command, others) in ACTIONS {
            let command = program.find_subcommand(command).unwrap();
            let options: BTreeSet<&str> =
                command.get_arguments().filter_map(|option| option.get_long()).collect();
            let inputs = keys(&read(file)["inputs"]);
            let no_options: Vec<&str> =
                inputs.iter().map(String::as_str).filter(|input| !options.contains(input)).collect();
            assert_eq!(no_options, others, "{file}");
        }
    }

    #[test]
    fn workflows_give_our_actions_only_inputs_that_these_have() {
        let inputs: BTreeMap<&str, BTreeSet<String>> =
            ACTIONS.iter().map(|(file, ..)| (*file, keys(&read(file)["inputs"]))).collect();
        let workflows = Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/workflows");
        let mut seen = 0;
        for entry in fs_err::read_dir(workflows).unwrap() {
            let file = format!(".github/workflows/{}", entry.unwrap().file_name().to_string_lossy());
            let workflow = read(&file);
            let jobs = workflow["jobs"].as_mapping().into_iter().flatten().map(|(_, job)| job);
            for step in jobs.flat_map(|job| job["steps"].as_sequence().into_iter().flatten()) {
                let Some(used) = step["uses"].as_str().map(|used| used.split('@').next().unwrap()) else {
                    continue;
                };
                let place = used.strip_prefix("./").or_else(|| used.strip_prefix("little-loops/ll-loop"));
                let Some(place) = place else { continue };
                let action = format!("{place}/action.yml").trim_start_matches('/').to_owned();
                let Some(known) = inputs.get(action.as_str()) else { continue };
                let given = keys(&step["with"]);
                assert!(given.is_subset(known), "{file}: {action}: {:?}", given.difference(known));
                seen += 1;
            }
        }
        assert!(seen > 0, "no workflow uses an action of ours any more");
    }
}
