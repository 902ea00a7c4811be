//! `ll-loop replay`: prints the log of a run again, as it was printed.

use std::io;

use clap::Args;

use crate::ci::Provider;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::report::numbers::StepNumber;

/// The arguments of `replay`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ReplayArgs {
    /// A run by its id or the beginning of it, a loop, whose last run is taken, or a bundle; the last run without
    #[arg(value_name = "RUN|BUNDLE")]
    pub(super) name: Option<String>,
    /// End with the verdict of this step: `12`, or `2.1` for the first step of the sub-loop that step 2 ran
    #[arg(long, value_name = "N")]
    pub(super) until: Option<StepNumber>,
    /// Print the log as this CI system shows it, and not as the run's own did
    #[arg(long, value_name = "PROVIDER", require_equals = true)]
    pub(super) ci: Option<String>,
}

pub(in crate::cli) fn replay(args: &ReplayArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let lookup = session.env.lookup();
    let provider = match args.ci.as_deref() {
        Some("auto") => Some(Provider::detect(&lookup)),
        Some(name) => Some(Provider::by_name(name, &lookup).ok_or_else(|| {
            let names: Vec<_> = Provider::names().collect();
            Error::refused(format!("unknown CI provider `{name}`"))
                .with_hint(format!("write one of {}", names.join(", ")))
        })?),
        None => None,
    };
    let mut sink = |part: &_| output.replayed(part, provider.as_ref());
    let name = args.name.as_deref();
    match session.replay(name, args.until.as_ref(), &mut sink)? {
        Ok(()) => Ok(0),
        // The reader closed the pipe, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(Error::failed("cannot show the run again".to_owned(), &error)),
    }
}
