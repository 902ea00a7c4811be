//! `ll-loop publish`: sets the status of a pull request whose own job may not, from what its run left.

use clap::Args;

use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::deliver::relayed_report::RelayOptions;

/// The arguments of `publish`.
#[derive(Debug, Args)]
pub(in crate::cli) struct PublishArgs {
    /// A loop whose status may be set; give it once for each
    #[arg(long = "loop", value_name = "LOOP", required = true)]
    pub(super) loops: Vec<String>,
    /// The run of a workflow that is reported. The default is the one that set off this job (`on: workflow_run`)
    #[arg(long, value_name = "ID")]
    pub(super) run: Option<u64>,
    /// Keep a comment on the pull request up to date as well
    #[arg(long)]
    pub(super) comment: bool,
}

pub(in crate::cli) fn publish(
    args: &PublishArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let options = RelayOptions { loops: args.loops.clone(), run: args.run, comment: args.comment };
    for line in session.relay(&options)? {
        output.data(&format!("{line}\n"));
    }
    Ok(0)
}
