//! `ll-loop diff`: shows what tells two runs apart.

use clap::Args;

use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::report::difference;

/// The arguments of `diff`.
#[derive(Debug, Args)]
pub(in crate::cli) struct DiffArgs {
    /// A run, a loop (whose last run is taken), or a bundle; without both, the last run is compared with the one before it
    #[arg(value_name = "RUN|BUNDLE", requires = "other")]
    pub(super) run: Option<String>,
    /// The run that it is compared with
    #[arg(value_name = "RUN|BUNDLE")]
    pub(super) other: Option<String>,
    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(in crate::cli) fn diff(args: &DiffArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let [run, other] = match (&args.run, &args.other) {
        (Some(run), Some(other)) => [session.compared(Some(run))?, session.compared(Some(other))?],
        (None, _) | (_, None) => session.last_two()?,
    };
    let both = [&run, &other];
    if args.json {
        output.pretty_json(difference::json(both));
    } else {
        output.data(&difference::text(both));
    }
    Ok(0)
}
