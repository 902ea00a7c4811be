//! `ll-loop bundle`: writes a run into one file, for another machine.

use std::path::PathBuf;

use clap::Args;

use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;

/// The arguments of `bundle`.
#[derive(Debug, Args)]
pub(in crate::cli) struct BundleArgs {
    /// A loop, whose newest unfinished run is taken; or a run by its id or the beginning of its id
    #[arg(value_name = "LOOP|RUN")]
    pub(super) name: String,
    /// Write it to this file instead of `<run>.llz`
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

pub(in crate::cli) fn bundle(args: &BundleArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let target = session.bundle(&args.name, args.output.as_deref())?;
    output.data(&format!("{}\n", target.display()));
    Ok(0)
}
