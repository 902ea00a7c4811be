//! `ll-loop resume`: lets a run go on that was interrupted, handed off or killed.

use std::time::Duration;

use clap::{ArgAction, Args};

use crate::base::time::parse_duration;
use crate::cli::flags::{self, RunFlags, pair};
use crate::cli::output::Output;
use crate::cli::terminal::Terminal;
use crate::session::context::Session;
use crate::session::environment::Environment;
use crate::session::error::Error;
use crate::session::options::{ResumeOptions, Which};
use crate::session::resume::GoesOn;

/// Which run goes on, and what is different from now on. What the first command line said still holds.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct ResumeArgs {
    /// A loop, whose newest run that can go on is taken; or a run by its id or the beginning of it
    #[arg(value_name = "LOOP|RUN", required_unless_present = "from")]
    pub(super) name: Option<String>,
    /// Take the run over from elsewhere: the path of a bundle, `run:ID`, `run:latest` or `artifact:NAME` on GitHub
    #[arg(long, value_name = "BUNDLE")]
    pub(super) from: Option<String>,
    /// With `--from`: the repository on GitHub, when it is not that of the job
    #[arg(long, value_name = "OWNER/NAME", requires = "from")]
    pub(super) repo: Option<String>,
    /// Go on although the loop file is not what it was
    #[arg(long)]
    pub(super) accept_changes: bool,
    /// Cap the passes of the whole run, whatever was said before
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_iterations: Option<u32>,
    /// Give the whole run so much time, whatever the file says
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) timeout: Option<Duration>,
    /// Set a context value, such as a secret, which is not kept
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    pub(super) context: Vec<(String, String)>,
    #[command(flatten)]
    pub(super) run: RunFlags,
}

pub(in crate::cli) fn resume(args: &ResumeArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let (which, options) = options(args, session.env)?;
    let verbosity = args.run.verbosity();
    let terminal = Terminal { output, verbosity, in_background: false };
    let session = &session.clone().talking_to(&terminal);
    match session.resume(&which, options, args.run.reach.allow_outside)? {
        GoesOn::Ready(ready) => Ok(ready.run()?.exit_code()),
        GoesOn::Finished(complete) => Ok(complete.exit_code),
    }
}

/// Which run goes on, and how.
fn options(args: &ResumeArgs, env: &Environment) -> Result<(Which, ResumeOptions), Error> {
    let which = match &args.from {
        Some(source) => {
            let (source, name, repository) = (source.clone(), args.name.clone(), args.repo.clone());
            Which::From { source, name, repository }
        }
        None => Which::Here(args.name.clone().unwrap_or_default()),
    };
    let options = ResumeOptions {
        accept_changes: args.accept_changes,
        max_iterations: args.max_iterations,
        timeout: args.timeout,
        context: args.context.clone(),
        run: flags::run(&args.run, env)?,
    };
    Ok((which, options))
}
