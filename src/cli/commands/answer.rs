//! `ll-loop answer`: answers the question that a run waits with, and goes on with it.

use clap::{ArgAction, Args};

use crate::cli::flags::{self, RunFlags, pair};
use crate::cli::output::Output;
use crate::cli::terminal::Terminal;
use crate::cli::unbegun;
use crate::context::Session;
use crate::context::environment::Environment;
use crate::context::error::Error;
use crate::context::options::{AnswerOptions, CommentOptions, ResumeOptions, Which};
use crate::engine::question::{AnswerKind, AnswerWay};
use crate::session::start::resume::Resumption;

/// The arguments of `answer`. Options of the first command line still hold.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct AnswerArgs {
    /// A loop, whose newest run is taken; or a run by its id or the beginning of its id
    #[arg(value_name = "LOOP|RUN")]
    pub(super) name: String,
    /// `approve`, `reject` with a reason if you like, or a text, with which the run goes on as well
    #[arg(value_name = "approve|reject|TEXT", required = true)]
    pub(super) words: Vec<String>,
    /// The code of the question, to be sure that it is this one
    #[arg(long, value_name = "CODE")]
    pub(super) code: Option<String>,
    /// Take the run over from another machine: the path of a bundle, `run:ID`, `run:latest` or `artifact:NAME` on
    /// GitHub
    #[arg(long, value_name = "BUNDLE")]
    pub(super) from: Option<String>,
    /// With `--from`: the repository on GitHub, if it is not that of the job
    #[arg(long, value_name = "OWNER/NAME", requires = "from")]
    pub(super) repo: Option<String>,
    /// Continue even if the loop file has changed
    #[arg(long)]
    pub(super) accept_changes: bool,
    /// Set a context value, such as a secret, which the journal does not keep
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    pub(super) context: Vec<(String, String)>,
    #[command(flatten)]
    pub(super) run: RunFlags,
}

pub(in crate::cli) fn answer(args: &AnswerArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let terminal = Terminal { output, verbosity: args.run.verbosity(), in_background: false };
    let session = &session.clone().talking_to(&terminal);
    let told = flags::told_of_answer(&args.run, session.env);
    let resumed = options(args, session.env)
        .and_then(|(which, options)| session.resume(&which, options, args.run.reach.allow_outside));
    match unbegun::told(resumed, Some(&args.name), &told, session)? {
        Resumption::Ready(ready) => Ok(ready.run()?.exit_code()),
        Resumption::Finished(_) => Err(Error::refused(
            "the run does not wait for an answer: it was over already, and is reported now",
        )),
    }
}

fn options(args: &AnswerArgs, env: &Environment) -> Result<(Which, ResumeOptions), Error> {
    let which = Which::of(args.from.as_deref(), Some(&args.name), args.repo.as_deref());
    let (verdict, text) = meant(&args.words)?;
    // A name to show, and no proof: the command line asks for none.
    let who = ["USER", "LOGNAME"].iter().find_map(|name| env.get(name)).unwrap_or("somebody").to_owned();
    let code = args.code.clone();
    let by = AnswerWay::CommandLine;
    let answer = AnswerOptions { who, id: None, comment: None, verdict, text, code, by };
    let options = ResumeOptions {
        accept_changes: args.accept_changes,
        max_iterations: None,
        timeout: None,
        context: args.context.clone(),
        answers: vec![answer],
        comments: CommentOptions::default(),
        run: flags::run(&args.run, env)?,
    };
    Ok((which, options))
}

/// Returns what the words say.
fn meant(words: &[String]) -> Result<(AnswerKind, Option<String>), Error> {
    let text = |words: &[String]| Some(words.join(" ")).filter(|text| !text.trim().is_empty());
    let (first, rest) = words.split_first().map_or(("", words), |(first, rest)| (first.as_str(), rest));
    if first == AnswerKind::Reject.word() {
        return Ok((AnswerKind::Reject, text(rest)));
    }
    if first != AnswerKind::Approve.word() {
        return Ok((AnswerKind::Answer, text(words)));
    }
    if text(rest).is_some() {
        let help = "say `approve` alone, or the text alone, with which the run goes on as well";
        return Err(Error::refused("`approve` takes no text").with_hint(help));
    }
    Ok((AnswerKind::Approve, None))
}
