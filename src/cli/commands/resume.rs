//! `ll-loop resume`: continues a run that was interrupted, handed off or killed, or that failed.

use std::time::Duration;

use clap::{ArgAction, Args};

use crate::base::time::parse_duration;
use crate::cli::flags::{self, RunFlags, pair};
use crate::cli::misread::count;
use crate::cli::output::Output;
use crate::cli::terminal::Terminal;
use crate::cli::unbegun;
use crate::context::Session;
use crate::context::environment::Environment;
use crate::context::error::Error;
use crate::context::options::{CommentOptions, ResumeOptions, Which};
use crate::session::start::resume::Resumption;

/// The arguments of `resume`. Options of the first command line still hold.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct ResumeArgs {
    /// A loop, whose newest run is taken; or a run by its id or the beginning of its id
    #[arg(value_name = "LOOP|RUN", required_unless_present = "from")]
    pub(super) name: Option<String>,
    /// Take the run over from another machine: the path of a bundle, `run:ID`, `run:latest` or `artifact:NAME` on
    /// GitHub
    #[arg(long, value_name = "BUNDLE")]
    pub(super) from: Option<String>,
    /// With `--from`: the repository on GitHub, if it is not that of the job
    #[arg(long, value_name = "OWNER/NAME", requires = "from")]
    pub(super) repo: Option<String>,
    /// Take the comment with this id, on the pull request, for an answer to the question that the run waits with; once for
    /// each person who has to answer
    #[arg(long = "answer", value_name = "COMMENT", action = ArgAction::Append)]
    pub(super) answers: Vec<u64>,
    /// Continue even if the loop file has changed
    #[arg(long)]
    pub(super) accept_changes: bool,
    /// Cap the passes of the whole run, whatever the first command line or the file says
    #[arg(long, short = 'n', value_name = "N", value_parser = count::<u32>)]
    pub(super) max_iterations: Option<u32>,
    /// Limit the time of the whole run, whatever the file says
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) timeout: Option<Duration>,
    /// Set a context value, such as a secret, which the journal does not keep
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    pub(super) context: Vec<(String, String)>,
    #[command(flatten)]
    pub(super) run: RunFlags,
}

pub(in crate::cli) fn resume(args: &ResumeArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let verbosity = args.run.verbosity();
    let terminal = Terminal { output, verbosity, in_background: false };
    let session = &session.clone().talking_to(&terminal);
    let told = if args.answers.is_empty() { flags::told } else { flags::told_of_answer };
    let told = told(&args.run, session.env);
    let resumed = options(args, session.env)
        .and_then(|(which, options)| session.resume(&which, options, args.run.reach.allow_outside));
    match unbegun::told(resumed, args.name.as_deref(), &told, session)? {
        Resumption::Ready(ready) => Ok(ready.run()?.exit_code()),
        // It was over already, and had only not been reported.
        Resumption::Finished(complete) => Ok(complete.exit_code),
    }
}

/// Converts the arguments.
fn options(args: &ResumeArgs, env: &Environment) -> Result<(Which, ResumeOptions), Error> {
    let which = Which::of(args.from.as_deref(), args.name.as_deref(), args.repo.as_deref());
    let options = ResumeOptions {
        accept_changes: args.accept_changes,
        max_iterations: args.max_iterations,
        timeout: args.timeout,
        context: args.context.clone(),
        answers: Vec::new(),
        comments: CommentOptions {
            ids: args.answers.clone(),
            run: args.from.as_deref().and_then(number_of_run),
        },
        run: flags::run(&args.run, env)?,
    };
    Ok((which, options))
}

/// Returns the number of the run that `run:ID` names.
fn number_of_run(source: &str) -> Option<u64> {
    source.strip_prefix("run:")?.parse().ok()
}
