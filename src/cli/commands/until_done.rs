//! `ll-loop until-done`: goes on with runs that were handed off, until they are over or a person is needed.

use clap::Args;

use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::steering::until_done::UntilDoneOptions;

/// The arguments of `until-done`.
#[derive(Debug, Args)]
pub(in crate::cli) struct UntilDoneArgs {
    /// A loop that is meant; give it once for each. Without any, all are
    #[arg(long = "loop", value_name = "LOOP")]
    pub(super) loops: Vec<String>,
    /// How many runs of a workflow may continue the first one
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) max_chain: u32,
    /// How many are started at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) max_starts: u32,
    /// How many runs of workflows may be started by a dispatch in a day, whoever starts them
    #[arg(long, value_name = "N")]
    pub(super) max_day: Option<u64>,
}

pub(in crate::cli) fn until_done(
    args: &UntilDoneArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let UntilDoneArgs { loops, max_chain, max_starts, max_day } = args;
    let options = UntilDoneOptions {
        loops: loops.clone(),
        max_chain: *max_chain,
        max_starts: *max_starts,
        max_day: *max_day,
    };
    let lines = session.until_done(&options)?;
    if lines.is_empty() {
        output.talk("nothing waits that could go on by itself\n");
    }
    for line in lines {
        output.data(&format!("{line}\n"));
    }
    Ok(0)
}
