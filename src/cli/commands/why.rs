//! `ll-loop why`: says why a run ended as it did, from its outcome back to what an action printed.

use clap::Args;

use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::report::numbers::StepNumber;
use crate::report::why::chain_text;

/// The arguments of `why`.
#[derive(Debug, Args)]
pub(in crate::cli) struct WhyArgs {
    /// A run, a loop (whose last run is taken), or a bundle; the last run without
    #[arg(value_name = "RUN|BUNDLE")]
    pub(super) name: Option<String>,
    /// Say it of this step: `12`, or `2.1` for the first step of the sub-loop that step 2 ran
    #[arg(long, value_name = "N")]
    pub(super) step: Option<StepNumber>,
    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(in crate::cli) fn why(args: &WhyArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let why = session.why(args.name.as_deref(), args.step.as_ref())?;
    if args.json {
        output.pretty_json(chain_text::json(&why));
    } else {
        output.data(&chain_text::text(&why));
    }
    Ok(0)
}
