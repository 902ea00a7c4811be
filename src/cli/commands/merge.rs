//! `ll-loop merge`: makes one result of what the legs of a plan have left.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::cli::flags::{self, RunFlags};
use crate::cli::inputs::{self, ActionPart};
use crate::cli::output::Output;
use crate::cli::terminal::Terminal;
use crate::context::Session;
use crate::context::error::Error;
use crate::fanout::result::MergeOptions;

/// The arguments of `merge`.
#[derive(Debug, Args)]
pub(in crate::cli) struct MergeArgs {
    /// The plan
    #[arg(long, value_name = "FILE", default_value = "plan.json")]
    plan: PathBuf,
    /// What the legs have left: report directories, directories of artifacts, or bundles
    #[arg(value_name = "DIR|BUNDLE")]
    from: Vec<PathBuf>,
    /// Where items changed files, put all changes into the checkout, and make the checks once more of the items whose scope
    /// meets the changes of others: then the whole is verified
    #[arg(long)]
    confirm: bool,
    /// With `--confirm`: set a context value, as for the legs
    #[arg(long, value_name = "KEY=VALUE", value_parser = flags::pair, action = ArgAction::Append, requires = "confirm")]
    context: Vec<(String, String)>,
    /// Read the inputs of the action that merges; its later step stores the reports
    #[arg(long, hide = true)]
    action: bool,
    #[command(flatten)]
    run: RunFlags,
}

pub(in crate::cli) fn merge(args: &MergeArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let terminal = Terminal { output, verbosity: args.run.verbosity(), in_background: false };
    let session = &session.clone().talking_to(&terminal);
    let mut flags = args.run.clone();
    if args.action {
        inputs::inputs(ActionPart::Loop, session.env, &mut flags)?;
    }
    let run = flags::run(&flags, session.env)?;
    session.merge(&MergeOptions {
        plan: args.plan.clone(),
        from: args.from.clone(),
        confirm: args.confirm,
        context: args.context.clone(),
        run,
    })
}
