//! `ll-loop diff`: shows what tells two runs apart.

use clap::Args;

use crate::cli::output::Output;
use crate::report::difference;
use crate::session::context::Session;
use crate::session::error::Error;

/// The arguments of `diff`.
#[derive(Debug, Args)]
pub(in crate::cli) struct DiffArgs {
    /// A run, a loop (whose last run is taken), or a bundle
    #[arg(value_name = "RUN|BUNDLE")]
    pub(super) run: String,
    /// The run that it is compared with
    #[arg(value_name = "RUN|BUNDLE")]
    pub(super) other: String,
    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(in crate::cli) fn diff(args: &DiffArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let (run, other) = (session.compared(&args.run)?, session.compared(&args.other)?);
    let both = [&run, &other];
    if args.json {
        output.pretty_json(difference::json(both));
    } else {
        output.data(&difference::text(both));
    }
    Ok(0)
}
