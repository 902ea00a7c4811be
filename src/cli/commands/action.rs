//! `ll-loop action`: the inputs of the GitHub Action as a run. The runner gives them as `INPUT_*` variables.

use std::path::Path;
use std::time::Duration;

use clap::{Parser, ValueEnum as _};

use crate::base::time::parse_duration;
use crate::bundle::EXTENSION;
use crate::cli::args::{
    ActionStep, Args, BundleArgs, ChainArgs, Command, CommitArgs, ContinueArgs, GoOn, Manner,
};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::output::Output;

pub(in crate::cli) fn action(step: ActionStep, env: &Env, output: &Output) -> Result<u8, CliError> {
    match step {
        ActionStep::Run => run(Part::Loop, env, output),
        ActionStep::All => run(Part::All, env, output),
        ActionStep::Save => save(env, output),
        ActionStep::Continue => go_on(env, output),
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

fn run(part: Part, env: &Env, output: &Output) -> Result<u8, CliError> {
    let from = input(env, "resume-from");
    let parsed = Args::try_parse_from(words(env, from.as_deref())?).map_err(|error| {
        CliError::invalid(error.to_string().trim_start_matches("error: ").trim_end().to_owned())
            .help("check the inputs of the action")
    })?;
    if let Command::Resume(mut args) = parsed.command {
        move_there(env)?;
        // What the first run was given still holds; only secrets have to come again.
        args.context.extend(pairs(env, "context")?);
        inputs(part, env, &mut args.manner)?;
        return super::resume::resume(&args, env, output);
    }
    let Command::Run(mut args) = parsed.command else {
        return Err(CliError::invalid("the input `args` holds another command"));
    };
    move_there(env)?;
    args.param.extend(pairs(env, "params")?);
    args.context.extend(pairs(env, "context")?);
    args.changed_since = input(env, "changed-since").or_else(|| args.changed_since.take());
    inputs(part, env, &mut args.manner)?;
    super::run::run(&args, env, output)
}

/// The run of an earlier step was killed, and what it left is put among its reports.
fn save(env: &Env, output: &Output) -> Result<u8, CliError> {
    let needed = |name: &str| {
        input(env, name).ok_or_else(|| CliError::invalid(format!("the input `{name}` is missing")))
    };
    let (name, reports) = (needed("run")?, needed("report-dir")?);
    let reports = Path::new(env.get("GITHUB_WORKSPACE").unwrap_or_default()).join(reports);
    move_there(env)?;
    let target = reports.join(format!("{name}.{EXTENSION}"));
    super::bundle::bundle(&BundleArgs { name, output: Some(target) }, env, output)
}

/// The run that an earlier step of the action handed off goes on elsewhere.
fn go_on(env: &Env, output: &Output) -> Result<u8, CliError> {
    let name = input(env, "run").ok_or_else(|| CliError::invalid("the input `run` is missing"))?;
    move_there(env)?;
    let mut args = ContinueArgs {
        name,
        chain: chain(env)?,
        upload: input(env, "upload-outcome").unwrap_or_default(),
        ..ContinueArgs::default()
    };
    commit(env, &mut args.commit)?;
    super::go_on::go_on(&args, env, output)
}

fn move_there(env: &Env) -> Result<(), CliError> {
    let Some(directory) = input(env, "working-directory") else { return Ok(()) };
    std::env::set_current_dir(&directory).map_err(|error| {
        CliError::failed(format!("cannot work in the input `working-directory` ({directory})"), &error)
            .before_the_run()
    })
}

/// The command line that `loop`, `input`, `resume-from` and `args` stand for. Everything but `args` is one word, whatever
/// is in it.
fn words(env: &Env, from: Option<&str>) -> Result<Vec<String>, CliError> {
    let command = if from.is_some() { "resume" } else { "run" };
    let mut words: Vec<String> = ["ll-loop", command, "--ci"].map(str::to_owned).into();
    if let Some(extra) = input(env, "args") {
        let extra = shlex::split(&extra).ok_or_else(|| {
            CliError::invalid("the input `args` has an open quote").help("close it, or escape it")
        })?;
        words.extend(extra);
    }
    let name = input(env, "loop").ok_or_else(|| {
        CliError::invalid("the input `loop` is missing")
            .help("name a loop of `.loops/`, or the path of a loop file")
    })?;
    words.extend(from.map(|from| format!("--from={from}")));
    words.extend(["--".to_owned(), name]);
    if from.is_none() {
        words.extend(input(env, "input"));
    }
    Ok(words)
}

/// The inputs that are not words of the command line.
fn inputs(part: Part, env: &Env, manner: &mut Manner) -> Result<(), CliError> {
    let wanted = |name: &str| input(env, name).map(|value| boolean(name, &value)).transpose();
    if let Some(strict) = wanted("strict")? {
        (manner.strict, manner.no_strict) = (strict, !strict);
    }
    if let Some(llm) = wanted("llm")? {
        (manner.llm.llm, manner.llm.no_llm) = (llm, !llm);
    }
    manner.allow_untrusted = wanted("allow-untrusted")?.unwrap_or(manner.allow_untrusted);
    manner.deadline = duration(env, "deadline")?.or(manner.deadline);
    manner.checkpoint_every = duration(env, "checkpoint-every")?.or(manner.checkpoint_every);
    commit(env, &mut manner.report.commit)?;
    manner.report.check = wanted("check")?.unwrap_or(manner.report.check);
    manner.report.comment = wanted("comment")?.unwrap_or(manner.report.comment);
    // A later step of the action may obey these; they are read before anything is run for nothing.
    let (chain, go_on) = (chain(env)?, on_handoff(env)?);
    let uploading = &mut manner.report.uploading;
    match part {
        Part::Loop => uploading.no_upload = true,
        Part::All => {
            uploading.no_upload = !wanted("upload")?.unwrap_or(!uploading.no_upload);
            uploading.retention_days = days(env)?.or(uploading.retention_days);
            manner.report.chain = chain;
            manner.report.go_on = go_on;
        }
    }
    if let Some(directory) = input(env, "report-dir") {
        manner.report_dir = Some(directory.into());
    }
    Ok(())
}

fn on_handoff(env: &Env) -> Result<GoOn, CliError> {
    let Some(how) = input(env, "on-handoff") else { return Ok(GoOn::None) };
    GoOn::from_str(how.trim(), false).map_err(|_| {
        CliError::invalid(format!("the input `on-handoff` is `{how}`")).help("write `dispatch` or `none`")
    })
}

fn duration(env: &Env, name: &str) -> Result<Option<Duration>, CliError> {
    let Some(text) = input(env, name) else { return Ok(None) };
    parse_duration(&text).map(Some).map_err(|error| {
        CliError::invalid(format!("the input `{name}`: {error}")).help("write `5h45m` or a number of seconds")
    })
}

fn days(env: &Env) -> Result<Option<u32>, CliError> {
    let Some(text) = input(env, "retention-days") else { return Ok(None) };
    match text.trim().parse() {
        Ok(days) if days > 0 => Ok(Some(days)),
        _ => Err(CliError::invalid(format!("the input `retention-days` is `{text}`"))
            .help("write a number of days")),
    }
}

/// The inputs about the status of the commit.
fn commit(env: &Env, args: &mut CommitArgs) -> Result<(), CliError> {
    if let Some(status) = input(env, "status") {
        let status = boolean("status", &status)?;
        (args.status, args.no_status) = (status, !status);
    }
    args.status_context = input(env, "status-context").or_else(|| args.status_context.take());
    if let Some(sha) = input(env, "sha") {
        let sha = crate::cli::args::sha(&sha)
            .map_err(|help| CliError::invalid(format!("the input `sha` is `{sha}`")).help(help))?;
        args.sha = Some(sha);
    }
    Ok(())
}

/// The inputs about the chain of runs.
fn chain(env: &Env) -> Result<ChainArgs, CliError> {
    let number = |name: &str, otherwise: u32| {
        let Some(value) = input(env, name) else { return Ok(otherwise) };
        value.trim().parse().map_err(|_| {
            CliError::invalid(format!("the input `{name}` is `{value}`")).help("write a number of runs")
        })
    };
    Ok(ChainArgs { chain_depth: number("chain-depth", 0)?, max_chain: number("max-chain", ChainArgs::MAX)? })
}

/// Finds an input. Shells cannot export the hyphens of the runner's names, so an underscore does as well.
fn input(env: &Env, name: &str) -> Option<String> {
    let name = format!("INPUT_{}", name.to_uppercase());
    let value = env.get(&name).or_else(|| env.get(&name.replace('-', "_")))?;
    Some(value.to_owned()).filter(|value| !value.trim().is_empty())
}

fn pairs(env: &Env, name: &str) -> Result<Vec<(String, String)>, CliError> {
    let text = input(env, name).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| match line.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
            _ => Err(CliError::invalid(format!("the input `{name}` has the line `{line}`"))
                .help("write KEY=VALUE lines")),
        })
        .collect()
}

fn boolean(name: &str, value: &str) -> Result<bool, CliError> {
    match value.trim() {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => {
            Err(CliError::invalid(format!("the input `{name}` is `{value}`")).help("write `true` or `false`"))
        }
    }
}
