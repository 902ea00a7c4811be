//! `ll-loop rewind`: begins again in front of a step of a run, in a worktree with the tree as it was then.

use std::time::Duration;

use clap::{ArgAction, Args};

use crate::base::time::parse_duration;
use crate::cli::flags::{self, RunFlags, pair};
use crate::cli::misread::{Misread, count};
use crate::cli::output::Output;
use crate::cli::terminal::Terminal;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::options::{CommentOptions, ResumeOptions};
use crate::report::numbers::StepNumber;
use crate::session::start::rewound_run::RewindOptions;

/// The arguments of `rewind`. Options of the run that it comes from still hold.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("yes", |yes| yes.help(YES)))]
pub(in crate::cli) struct RewindArgs {
    /// A run by its id, a loop, whose last run is taken, or a bundle. It is not touched
    #[arg(value_name = "RUN|BUNDLE")]
    pub(super) name: Option<String>,
    /// The step that is run again first
    #[arg(long, value_name = "N")]
    pub(super) to: StepNumber,
    /// Set a capture to another text, such as `captured.plan=…`
    #[arg(long, value_name = "captured.NAME=TEXT", value_parser = capture, action = ArgAction::Append)]
    pub(super) set: Vec<(String, String)>,
    /// Go on even if the loop file has changed
    #[arg(long)]
    pub(super) accept_changes: bool,
    /// Cap the passes of the whole run, those before the step included
    #[arg(long, short = 'n', value_name = "N", value_parser = count::<u32>)]
    pub(super) max_iterations: Option<u32>,
    /// Limit the time of the whole run, that before the step included
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) timeout: Option<Duration>,
    /// Set a context value, such as a secret, which the journal does not keep
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    pub(super) context: Vec<(String, String)>,
    #[command(flatten)]
    pub(super) run: RunFlags,
}

// The option is shared with other commands, where it agrees to agents alone.
const YES: &str = "Agree that actions run once more which ran in the other run from that step on, although their states \
    are not `idempotent: true`; and that agents run without asking for permission";

pub(in crate::cli) fn rewind(args: &RewindArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let verbosity = args.run.verbosity();
    let terminal = Terminal { output, verbosity, in_background: false };
    let session = &session.clone().talking_to(&terminal);
    let rewind = RewindOptions {
        to: args.to.clone(),
        captured: args.set.iter().cloned().collect(),
        agreed: args.run.llm.yes,
    };
    let options = ResumeOptions {
        accept_changes: args.accept_changes,
        max_iterations: args.max_iterations,
        timeout: args.timeout,
        context: args.context.clone(),
        answers: Vec::new(),
        comments: CommentOptions::default(),
        run: flags::run(&args.run, session.env)?,
    };
    let ready = session.rewind(args.name.as_deref(), rewind, options, args.run.reach.allow_outside)?;
    Ok(ready.run()?.exit_code())
}

/// Reads `captured.NAME=TEXT`, with or without the `.output` of a template.
fn capture(text: &str) -> Result<(String, String), Misread> {
    const FORM: Misread = Misread("write captured.NAME=TEXT");
    let (name, value) = text.split_once('=').ok_or(FORM)?;
    let name = name.trim().strip_prefix("captured.").ok_or(FORM)?;
    let name = name.strip_suffix(".output").unwrap_or(name);
    if name.is_empty() || name.contains('.') {
        return Err(FORM);
    }
    Ok((name.to_owned(), value.to_owned()))
}
