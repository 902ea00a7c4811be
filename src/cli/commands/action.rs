//! `ll-loop action`: the inputs of the GitHub Action as a run. The runner gives them as `INPUT_*` variables.

use crate::cli::flags::{ChainFlags, CommitFlags, Global, GoOn, RunFlags};
use std::path::Path;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::bundle::BundleArgs;
use super::go_on::ContinueArgs;
use super::resume::ResumeArgs;
use super::run::RunArgs;

use crate::base::time::parse_duration;
use crate::bundle::EXTENSION;
use crate::cli::output::Output;
use crate::session::context::Session;
use crate::session::environment::Environment;
use crate::session::error::{Error, Kind};

/// Which step of the action this is.
#[derive(Debug, Args)]
pub(in crate::cli) struct ActionArgs {
    /// Run the loop, or go on elsewhere with the run that was handed off
    #[arg(value_enum, default_value_t = ActionStep::Run)]
    pub(super) step: ActionStep,
}

/// A step of the action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ActionStep {
    /// Run the loop; later steps upload its files and go on elsewhere
    Run,
    /// Run the loop, upload its files, and go on elsewhere
    All,
    /// Put a run that was killed into a bundle, for a later step to upload
    Save,
    /// Go on elsewhere
    Continue,
}

pub(in crate::cli) fn action(args: &ActionArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    match args.step {
        ActionStep::Run => run(Part::Loop, session, output),
        ActionStep::All => run(Part::All, session, output),
        ActionStep::Save => save(session, output),
        ActionStep::Continue => go_on(session),
    }
}

/// How much of the action this step is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The run: later steps upload its files and go on elsewhere.
    Loop,
    /// Everything.
    All,
}

/// The command line that the inputs stand for.
#[derive(Parser)]
#[command(name = "ll-loop")]
struct Line {
    #[command(flatten)]
    _global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<RunArgs>),
    Resume(Box<ResumeArgs>),
}

fn run(part: Part, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let env = session.env;
    let from = input(env, "resume-from");
    let parsed = Line::try_parse_from(words(env, from.as_deref())?).map_err(|error| {
        Error::refused(error.to_string().trim_start_matches("error: ").trim_end().to_owned())
            .with_hint("check the inputs of the action")
    })?;
    let session = &there(session)?;
    match parsed.command {
        Command::Run(mut args) => {
            args.param.extend(pairs(env, "params")?);
            args.context.extend(pairs(env, "context")?);
            args.changed_since = input(env, "changed-since").or_else(|| args.changed_since.take());
            inputs(part, env, &mut args.run)?;
            super::run::run(&args, session, output)
        }
        Command::Resume(mut args) => {
            // What the first run was given still holds; only secrets have to come again.
            args.context.extend(pairs(env, "context")?);
            inputs(part, env, &mut args.run)?;
            super::resume::resume(&args, session, output)
        }
    }
}

/// The run of an earlier step was killed, and what it left is put among its reports.
fn save(session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let env = session.env;
    let needed =
        |name: &str| input(env, name).ok_or_else(|| Error::refused(format!("the input `{name}` is missing")));
    let (name, reports) = (needed("run")?, needed("report-dir")?);
    let reports = Path::new(env.get("GITHUB_WORKSPACE").unwrap_or_default()).join(reports);
    let target = reports.join(format!("{name}.{EXTENSION}"));
    super::bundle::bundle(&BundleArgs { name, output: Some(target) }, &there(session)?, output)
}

/// The run that an earlier step of the action handed off goes on elsewhere.
fn go_on(session: &Session<'_>) -> Result<u8, Error> {
    let env = session.env;
    let name = input(env, "run").ok_or_else(|| Error::refused("the input `run` is missing"))?;
    let session = &there(session)?;
    let mut args = ContinueArgs {
        name,
        chain: chain(env)?,
        upload: input(env, "upload-outcome").unwrap_or_default(),
        ..ContinueArgs::default()
    };
    commit(env, &mut args.commit)?;
    super::go_on::go_on(&args, session)
}

/// Returns the session in the directory that the input names.
fn there<'s>(session: &Session<'s>) -> Result<Session<'s>, Error> {
    let Some(directory) = input(session.env, "working-directory") else { return Ok(session.clone()) };
    let there = session.path(Path::new(&directory));
    fs_err::read_dir(&there).map_err(|error| {
        Error::failed(format!("cannot work in the input `working-directory` ({directory})"), &error)
            .of_kind(Kind::Refused)
    })?;
    Ok(session.at(&there))
}

/// The command line that `loop`, `input`, `resume-from` and `args` stand for. Everything but `args` is one word, whatever
/// is in it.
fn words(env: &Environment, from: Option<&str>) -> Result<Vec<String>, Error> {
    let command = if from.is_some() { "resume" } else { "run" };
    let mut words: Vec<String> = ["ll-loop", command, "--ci"].map(str::to_owned).into();
    if let Some(extra) = input(env, "args") {
        let extra = shlex::split(&extra).ok_or_else(|| {
            Error::refused("the input `args` has an open quote").with_hint("close it, or escape it")
        })?;
        words.extend(extra);
    }
    let name = input(env, "loop").ok_or_else(|| {
        Error::refused("the input `loop` is missing")
            .with_hint("name a loop of `.loops/`, or the path of a loop file")
    })?;
    words.extend(from.map(|from| format!("--from={from}")));
    words.extend(["--".to_owned(), name]);
    if from.is_none() {
        words.extend(input(env, "input"));
    }
    Ok(words)
}

/// The inputs that are not words of the command line.
fn inputs(part: Part, env: &Environment, run: &mut RunFlags) -> Result<(), Error> {
    let wanted = |name: &str| input(env, name).map(|value| boolean(name, &value)).transpose();
    if let Some(strict) = wanted("strict")? {
        (run.strict, run.no_strict) = (strict, !strict);
    }
    if let Some(llm) = wanted("llm")? {
        (run.llm.llm, run.llm.no_llm) = (llm, !llm);
    }
    run.allow_untrusted = wanted("allow-untrusted")?.unwrap_or(run.allow_untrusted);
    run.deadline = duration(env, "deadline")?.or(run.deadline);
    run.checkpoint_every = duration(env, "checkpoint-every")?.or(run.checkpoint_every);
    commit(env, &mut run.report.commit)?;
    run.report.check = wanted("check")?.unwrap_or(run.report.check);
    run.report.comment = wanted("comment")?.unwrap_or(run.report.comment);
    // A later step of the action may obey these; they are read before anything is run for nothing.
    let (chain, go_on) = (chain(env)?, on_handoff(env)?);
    let uploading = &mut run.report.uploading;
    match part {
        Part::Loop => uploading.no_upload = true,
        Part::All => {
            uploading.no_upload = !wanted("upload")?.unwrap_or(!uploading.no_upload);
            uploading.retention_days = days(env)?.or(uploading.retention_days);
            run.report.chain = chain;
            run.report.go_on = go_on;
        }
    }
    if let Some(directory) = input(env, "report-dir") {
        run.report_dir = Some(directory.into());
    }
    Ok(())
}

fn on_handoff(env: &Environment) -> Result<GoOn, Error> {
    let Some(how) = input(env, "on-handoff") else { return Ok(GoOn::None) };
    GoOn::from_str(how.trim(), false).map_err(|_| {
        Error::refused(format!("the input `on-handoff` is `{how}`")).with_hint("write `dispatch` or `none`")
    })
}

fn duration(env: &Environment, name: &str) -> Result<Option<Duration>, Error> {
    let Some(text) = input(env, name) else { return Ok(None) };
    parse_duration(&text).map(Some).map_err(|error| {
        Error::refused(format!("the input `{name}`: {error}"))
            .with_hint("write `5h45m` or a number of seconds")
    })
}

fn days(env: &Environment) -> Result<Option<u32>, Error> {
    let Some(text) = input(env, "retention-days") else { return Ok(None) };
    match text.trim().parse() {
        Ok(days) if days > 0 => Ok(Some(days)),
        _ => Err(Error::refused(format!("the input `retention-days` is `{text}`"))
            .with_hint("write a number of days")),
    }
}

/// The inputs about the status of the commit.
fn commit(env: &Environment, args: &mut CommitFlags) -> Result<(), Error> {
    if let Some(status) = input(env, "status") {
        let status = boolean("status", &status)?;
        (args.status, args.no_status) = (status, !status);
    }
    args.status_context = input(env, "status-context").or_else(|| args.status_context.take());
    if let Some(sha) = input(env, "sha") {
        let sha = crate::cli::flags::sha(&sha)
            .map_err(|help| Error::refused(format!("the input `sha` is `{sha}`")).with_hint(help))?;
        args.sha = Some(sha);
    }
    Ok(())
}

/// The inputs about the chain of runs.
fn chain(env: &Environment) -> Result<ChainFlags, Error> {
    let number = |name: &str, otherwise: u32| {
        let Some(value) = input(env, name) else { return Ok(otherwise) };
        value.trim().parse().map_err(|_| {
            Error::refused(format!("the input `{name}` is `{value}`")).with_hint("write a number of runs")
        })
    };
    Ok(ChainFlags {
        chain_depth: number("chain-depth", 0)?,
        max_chain: number("max-chain", ChainFlags::MAX)?,
    })
}

/// Finds an input. Shells cannot export the hyphens of the runner's names, so an underscore does as well.
fn input(env: &Environment, name: &str) -> Option<String> {
    let name = format!("INPUT_{}", name.to_uppercase());
    let value = env.get(&name).or_else(|| env.get(&name.replace('-', "_")))?;
    Some(value.to_owned()).filter(|value| !value.trim().is_empty())
}

fn pairs(env: &Environment, name: &str) -> Result<Vec<(String, String)>, Error> {
    let text = input(env, name).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| match line.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
            _ => Err(Error::refused(format!("the input `{name}` has the line `{line}`"))
                .with_hint("write KEY=VALUE lines")),
        })
        .collect()
}

fn boolean(name: &str, value: &str) -> Result<bool, Error> {
    match value.trim() {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => {
            Err(Error::refused(format!("the input `{name}` is `{value}`"))
                .with_hint("write `true` or `false`"))
        }
    }
}
