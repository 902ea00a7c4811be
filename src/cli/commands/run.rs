//! `ll-loop run`: begins a run and drives it to its end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::base::time::parse_duration;
use crate::cli::flags::{self, RunFlags, pair};
use crate::cli::misread::count;
use crate::cli::output::Output;
use crate::cli::terminal::Terminal;
use crate::cli::{background, exit, unbegun};
use crate::context::Session;
use crate::context::audience::Audience;
use crate::context::environment::Environment;
use crate::context::error::Error;
use crate::context::options::{BeginOptions, ReuseStoreAt, ReuseUse};
use crate::definition::vendored::Copies;
use crate::fanout::leg::{LegOptions, LoopReach};
use crate::machine::OnChange;
use crate::report::console::Verbosity;
use crate::session::start::begin::{Begun, BoundLoop, SkippedRun};

/// What is run of other repositories.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct CopyFlags {
    /// Run copies of loops from other repositories as they are, also those that were edited or that
    /// `.loops/lock.json` does not name
    #[arg(long)]
    accept_changes: bool,
}

/// Whether an earlier run may stand for one.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ReuseFlags {
    /// Run the loop even where an earlier run has verified the same
    #[arg(long, conflicts_with = "reuse_only")]
    no_reuse: bool,
    /// Keep results of runs in refs of a git remote, too, so that other jobs take them. The default REMOTE is `origin`
    #[arg(long, value_name = "git[=REMOTE]", value_parser = flags::reuse_store)]
    reuse_store: Option<ReuseStoreAt>,
    /// Run nothing: succeed where an earlier run has verified the same, and exit with 2 otherwise
    // Nothing is run, so a worktree would be for nothing.
    #[arg(long, conflicts_with = "worktree")]
    reuse_only: bool,
}

impl ReuseFlags {
    fn wanted(&self) -> ReuseUse {
        match (self.no_reuse, self.reuse_only) {
            (true, _) => ReuseUse::Never,
            (false, true) => ReuseUse::Only,
            (false, false) => ReuseUse::Allowed,
        }
    }
}

/// Which items of a plan are run.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct LegFlags {
    /// Run the items of a leg of this plan, one after the other, in place of one loop
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "input", "background", "dry_run", "changed_since"])]
    plan: Option<PathBuf>,
    /// Which leg of the plan: its key, or `index:` and its place from 0. A plan with one leg needs none
    #[arg(long, value_name = "KEY", requires = "plan", conflicts_with = "name")]
    leg: Option<String>,
    /// Run only what is not verified in this report directory of `merge`, on the leg or on all of them
    #[arg(long, value_name = "MERGED", requires = "plan", conflicts_with = "name")]
    rerun: Option<PathBuf>,
    /// Which attempt at the items this is, where the CI system does not count. The default is one above what the report
    /// directory has
    #[arg(long, value_name = "N", requires = "plan", conflicts_with = "name", value_parser = count::<u32>)]
    attempt: Option<u32>,
}

/// The arguments of `run`.
#[derive(Clone, Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(in crate::cli) struct RunArgs {
    /// The name of a loop in `.loops/`, or the path of a loop file
    #[arg(
        value_name = "LOOP",
        required_unless_present = "plan",
        default_value = "",
        hide_default_value = true
    )]
    pub(in crate::cli) name: String,
    /// The input of the loop, stored under its `input_key`
    pub(super) input: Option<String>,
    /// Return as soon as the run has begun; it goes on in the background
    #[arg(long, short)]
    pub(super) background: bool,
    /// Run in a fresh git worktree, on a branch of its own
    #[arg(long)]
    pub(super) worktree: bool,
    /// Skip the run if nothing in the scope of the loop changed since this commit; `auto`: since the base of the
    /// event
    #[arg(long, value_name = "BASE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) changed_since: Option<String>,
    #[command(flatten)]
    pub(super) leg: LegFlags,
    /// Show what would be run, without running it
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Cap the passes, whatever the file says
    #[arg(long, short = 'n', value_name = "N", value_parser = count::<u32>)]
    pub(super) max_iterations: Option<u32>,
    /// Stop a maintain loop after so many cycles; it then ends as its last terminal says
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    pub(super) max_cycles: Option<u32>,
    /// The history of earlier nights: a `nights.json`, or a report directory, bundle or artifact that contains one.
    /// For maintain loops in CI. The default is the history on this machine
    #[arg(long, value_name = "FROM")]
    pub(super) previous: Option<String>,
    /// How often a night is due, so that missed ones are reported. The default in a scheduled job is 24h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) every: Option<Duration>,
    /// What it means if the run would succeed, but changed tracked files or made commits, whatever the file says
    #[arg(long, value_name = "WHAT", value_parser = clap::builder::PossibleValuesParser::new(OnChange::WORDS))]
    pub(super) on_change: Option<String>,
    /// Never make checks once more at the end, whatever the file says: where that would be needed, the run is not verified
    #[arg(long)]
    pub(super) no_closing_pass: bool,
    #[command(flatten)]
    pub(super) reuse: ReuseFlags,
    #[command(flatten)]
    pub(super) copies: CopyFlags,
    /// The model for prompts of states that name none, also in loops that this one runs
    #[arg(long, value_name = "MODEL", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Agents and models")]
    pub(super) model: Option<String>,
    /// The model that judges where an evaluator names none, whatever `llm.model` says
    #[arg(long, value_name = "MODEL", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Agents and models")]
    pub(super) llm_model: Option<String>,
    /// Set a context value
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    pub(super) context: Vec<(String, String)>,
    /// Set a declared parameter
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    pub(super) param: Vec<(String, String)>,
    #[command(flatten)]
    pub(in crate::cli) run: RunFlags,
}

pub(in crate::cli) fn run(args: &RunArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    // A dry run is over at once, so nothing of it could go on.
    let in_background = args.background && !args.dry_run;
    if in_background && !background::is_here(session.env) {
        return background::start(session, output);
    }
    if in_background {
        background::leave_session();
    }
    let terminal = Terminal { output, verbosity: args.run.verbosity(), in_background };
    let session = &session.clone().talking_to(&terminal);
    if args.dry_run {
        output.data(&bound(args, session)?.plan());
        return Ok(0);
    }
    let told = flags::told(&args.run, session.env);
    if let Some(plan) = &args.leg.plan {
        let code = leg(args, plan, session);
        return unbegun::told(code, None, &told, session);
    }
    let begun = bound(args, session).and_then(|bound| Ok((bound.audience().clone(), bound.begin()?)));
    let (audience, begun) = unbegun::told(begun, Some(&args.name), &told, session)?;
    match begun {
        Begun::Ready(ready) => {
            let is_told = args.run.verbosity() > Verbosity::Quiet && !in_background;
            // In little-loops `-n` counts steps: who means that would find out only when the run ends.
            if let (Some(passes), Audience::Person, true) = (args.max_iterations, &audience, is_told) {
                session.talk.note(&format!("at most {passes} passes: `-n` counts passes, and not steps"));
            }
            Ok(ready.run()?.exit_code())
        }
        Begun::Skipped(none) => {
            say(&none, &audience, output);
            none.report();
            Ok(0)
        }
    }
}

/// Runs the items of a leg.
fn leg(args: &RunArgs, plan: &Path, session: &Session<'_>) -> Result<u8, Error> {
    let CopyFlags { accept_changes } = args.copies;
    session.run_leg(&LegOptions {
        plan: plan.to_owned(),
        leg: args.leg.leg.clone(),
        rerun: args.leg.rerun.clone(),
        attempt: args.leg.attempt,
        begin: options(args, session.env)?,
        reach: LoopReach {
            outside: args.run.reach.allow_outside,
            copies: Copies::accepted_if(accept_changes),
        },
        code_of: exit::of,
    })
}

/// Finds and checks the loop, and binds it to the arguments.
fn bound<'s>(args: &RunArgs, session: &'s Session<'s>) -> Result<BoundLoop<'s>, Error> {
    let options = options(args, session.env)?;
    let located = session.find(&args.name, args.run.reach.allow_outside)?;
    session.prepare(located.taking(Copies::accepted_if(args.copies.accept_changes)))?.bind(options, session)
}

/// Converts the arguments.
fn options(args: &RunArgs, env: &Environment) -> Result<BeginOptions, Error> {
    Ok(BeginOptions {
        input: args.input.clone(),
        context: args.context.clone(),
        params: args.param.clone(),
        model: args.model.clone(),
        llm_model: args.llm_model.clone(),
        max_iterations: args.max_iterations,
        max_cycles: args.max_cycles,
        worktree: args.worktree,
        changed_since: args.changed_since.clone(),
        previous: args.previous.clone(),
        every: args.every,
        on_change: args.on_change.as_deref().and_then(OnChange::by_word),
        no_closing_pass: args.no_closing_pass,
        scope: None,
        reuse: args.reuse.wanted(),
        reuse_store: args.reuse.reuse_store.clone().unwrap_or_default(),
        run: flags::run(&args.run, env)?,
    })
}

fn say(none: &SkippedRun<'_>, audience: &Audience, output: &Output) {
    let said = format!("✓ {}: {}", none.loop_name(), none.sentence());
    let said = match audience {
        Audience::Ci(provider) => provider.dialect().untrusted(&said).into_owned(),
        Audience::Person => said,
    };
    output.data(&format!("{said}\n"));
}
