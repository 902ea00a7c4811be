//! `ll-loop init`: writes a first loop for this repository, and the workflow that runs it.

use clap::{Args, ValueEnum};

use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::shelf::init;
use crate::shelf::init::{Ci, InitOptions, WantedCi};

/// The arguments of `init`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(in crate::cli) struct InitArgs {
    /// Write one JSON object
    #[arg(long)]
    json: bool,
    /// Try each check once, in a copy of the working tree, for at most 5 minutes
    #[arg(long = "try")]
    tries: bool,
    /// Let tools mend what they find, also where the repository has no task for that
    #[arg(long)]
    mend: bool,
    /// The CI system that the workflow is for; by default the one that is there, else GitHub
    #[arg(long, value_enum)]
    ci: Option<CiName>,
    /// Replace files of the same names that differ
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CiName {
    Github,
    Gitlab,
    /// No workflow
    None,
}

pub(in crate::cli) fn init(args: &InitArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let ci = match args.ci {
        None => WantedCi::Found,
        Some(CiName::Github) => WantedCi::Named(Ci::Github),
        Some(CiName::Gitlab) => WantedCi::Named(Ci::Gitlab),
        Some(CiName::None) => WantedCi::None,
    };
    let begun =
        init::init(InitOptions { tries: args.tries, mends: args.mend, ci, force: args.force }, session)?;
    if args.json {
        output.json(begun.json());
    } else {
        output.data(&begun.text());
    }
    Ok(begun.exit_code())
}
