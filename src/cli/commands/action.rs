//! `ll-loop action`: the inputs of the GitHub Action as a run. The runner gives them as `INPUT_*` variables.

use clap::{Parser, ValueEnum as _};

use crate::cli::args::{ActionStep, Args, ChainArgs, Command, CommitArgs, ContinueArgs, GoOn, RunArgs};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::output::Output;

pub(in crate::cli) fn action(step: ActionStep, env: &Env, output: &Output) -> Result<u8, CliError> {
    match step {
        ActionStep::Run => run(env, output),
        ActionStep::Continue => go_on(env, output),
    }
}

fn run(env: &Env, output: &Output) -> Result<u8, CliError> {
    let words = words(env)?;
    let parsed = Args::try_parse_from(words).map_err(|error| {
        CliError::invalid(error.to_string().trim_start_matches("error: ").trim_end().to_owned())
            .help("check the inputs of the action")
    })?;
    let Command::Run(mut args) = parsed.command else {
        return Err(CliError::invalid("the input `args` holds another command than `run`"));
    };
    move_there(env)?;
    inputs(env, &mut args)?;
    super::run::run(&args, env, output)
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

/// The command line that `loop`, `input` and `args` stand for. Everything but `args` is one word, whatever is in it.
fn words(env: &Env) -> Result<Vec<String>, CliError> {
    let mut words: Vec<String> = ["ll-loop", "run", "--ci"].map(str::to_owned).into();
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
    words.extend(["--".to_owned(), name]);
    words.extend(input(env, "input"));
    Ok(words)
}

/// The inputs that are not words of the command line.
fn inputs(env: &Env, args: &mut RunArgs) -> Result<(), CliError> {
    args.param.extend(pairs(env, "params")?);
    args.context.extend(pairs(env, "context")?);
    if let Some(strict) = input(env, "strict") {
        let strict = boolean("strict", &strict)?;
        (args.manner.strict, args.manner.no_strict) = (strict, !strict);
    }
    if let Some(allowed) = input(env, "allow-untrusted") {
        args.manner.allow_untrusted = boolean("allow-untrusted", &allowed)?;
    }
    if let Some(deadline) = input(env, "deadline") {
        let deadline = crate::base::time::parse_duration(&deadline).map_err(|error| {
            CliError::invalid(format!("the input `deadline`: {error}"))
                .help("write `5h45m` or a number of seconds")
        })?;
        args.manner.deadline = Some(deadline);
    }
    commit(env, &mut args.manner.report.commit)?;
    for (name, wanted) in
        [("check", &mut args.manner.report.check), ("comment", &mut args.manner.report.comment)]
    {
        if let Some(value) = input(env, name) {
            *wanted = boolean(name, &value)?;
        }
    }
    // A later step of the action obeys these; here they are only read, before anything is run for nothing.
    chain(env)?;
    if let Some(how) = input(env, "on-handoff")
        && GoOn::from_str(how.trim(), false).is_err()
    {
        return Err(CliError::invalid(format!("the input `on-handoff` is `{how}`"))
            .help("write `dispatch` or `none`"));
    }
    args.changed_since = input(env, "changed-since").or_else(|| args.changed_since.take());
    if let Some(directory) = input(env, "report-dir") {
        args.manner.report_dir = Some(directory.into());
    }
    Ok(())
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
