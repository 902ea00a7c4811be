//! `ll-loop bundle`: puts a run into one file, for another machine.

use std::path::PathBuf;

use clap::Args;

use crate::cli::output::Output;
use crate::session::context::Session;
use crate::session::error::Error;

/// Which run is put into a file, and where to.
#[derive(Debug, Args)]
pub(in crate::cli) struct BundleArgs {
    /// A loop, whose newest run that can go on is taken; or a run by its id or the beginning of it
    #[arg(value_name = "LOOP|RUN")]
    pub(super) name: String,
    /// Write it here instead of to `<run>.llz`
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

pub(in crate::cli) fn bundle(args: &BundleArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let target = session.bundle(&args.name, args.output.as_deref())?;
    output.data(&format!("{}\n", target.display()));
    Ok(0)
}
