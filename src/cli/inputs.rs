//! Reads the inputs of the GitHub Action, which the runner passes as variables.

use std::time::Duration;

use clap::ValueEnum as _;

use super::flags::{self, ChainFlags, CommitFlags, GoOn, LockedBy, RunFlags, UploadFlags};
use crate::base::text::listed;
use crate::base::time::parse_duration;
use crate::context::environment::Environment;
use crate::context::error::Error;
use crate::forge::github::results::is_offered;
use crate::machine::OnChange;

/// How much of the action this step does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionPart {
    /// Only the run: later steps upload its files and start the next run of the workflow.
    Loop,
    /// Everything.
    All,
}

/// Builds the command line from `loop`, `input`, `resume-from`, `plan`, `leg` and `args`. Each but `args` stays one word,
/// whatever it contains.
pub(super) fn words(env: &Environment, from: Option<&str>) -> Result<Vec<String>, Error> {
    let command = if from.is_some() { "resume" } else { "run" };
    let mut words: Vec<String> = ["ll-loop", command, "--ci"].map(str::to_owned).into();
    // In front of the rest, as behind `--` nothing is an option any more.
    words.extend(extra(env)?);
    if let Some(plan) = input(env, "plan") {
        let others = ["loop", "input", "resume-from", "changed-since"];
        if let Some(other) = others.into_iter().find(|name| input(env, name).is_some()) {
            return Err(Error::refused(format!("the inputs `plan` and `{other}` do not go together"))
                .with_hint("the plan says which loops are run, and with which values"));
        }
        // With `=`, so that a value that begins with a hyphen is not taken for an option.
        words.push(format!("--plan={plan}"));
        words.extend(input(env, "leg").map(|leg| format!("--leg={leg}")));
        return Ok(words);
    }
    let name = input(env, "loop").ok_or_else(|| {
        Error::refused("the input `loop` is missing")
            .with_hint("name a loop of `.loops/`, or the path of a loop file")
    })?;
    words.extend(from.map(|from| format!("--from={from}")));
    // Behind `--` no value of an input is an option, whatever it begins with.
    words.extend(["--".to_owned(), name]);
    // A run that is resumed has its input in its journal.
    if from.is_none() {
        words.extend(input(env, "input"));
    }
    Ok(words)
}

/// Returns the words of the input `args`, split as a shell splits them.
pub(super) fn extra(env: &Environment) -> Result<Vec<String>, Error> {
    let Some(extra) = input(env, "args") else { return Ok(Vec::new()) };
    // As a shell splits words, and without one: nothing in them is expanded or run.
    shlex::split(&extra).ok_or_else(|| {
        Error::refused("the input `args` has an open quote").with_hint("close it, or escape it")
    })
}

/// Applies the inputs that are not words of the command line.
pub(super) fn inputs(part: ActionPart, env: &Environment, run: &mut RunFlags) -> Result<(), Error> {
    let wanted = |name: &str| input(env, name).map(|value| boolean(name, &value)).transpose();
    // First what a refusal of the others is reported with.
    if let Some(directory) = input(env, "report-dir") {
        run.report_dir = Some(directory.into());
    }
    storing(part, env, &mut run.report.uploading)?;
    commit(env, &mut run.report.commit)?;
    run.report.key.key = input(env, "key").or_else(|| run.report.key.key.take());
    run.report.check = wanted("check")?.unwrap_or(run.report.check);
    run.report.comment = wanted("comment")?.unwrap_or(run.report.comment);
    run.report.delivers = wanted("delivers")?.unwrap_or(run.report.delivers);
    if let Some(strict) = wanted("strict")? {
        (run.strict, run.no_strict) = (strict, !strict);
    }
    if let Some(llm) = wanted("llm")? {
        (run.llm.llm, run.llm.no_llm) = (llm, !llm);
    }
    let cost = given(
        env,
        "max-cost",
        |text| flags::positive(text).ok(),
        "an amount of more than zero, such as `2.50`",
    )?;
    let count = |name| {
        given(env, name, |text| text.parse().ok().filter(|count| *count > 0), "a number of more than zero")
    };
    let (tokens, calls) = (count("max-tokens")?, count("max-llm-calls")?);
    // An input of its own wins over the same option in `args`, here as above and below.
    run.llm.max_cost = cost.or(run.llm.max_cost);
    run.llm.max_tokens = tokens.or(run.llm.max_tokens);
    run.llm.max_llm_calls =
        calls.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)).or(run.llm.max_llm_calls);
    if let Some(mode) = input(env, "sandbox") {
        let mode = mode.trim().to_owned();
        if !flags::SANDBOX_MODES.contains(&mode.as_str()) {
            return Err(Error::refused(format!("the input `sandbox` is `{mode}`"))
                .with_hint(format!("write {}", listed(flags::SANDBOX_MODES, "or"))));
        }
        run.llm.sandbox = Some(mode);
    }
    run.notify = given(env, "notify", |text| flags::address(text).ok(), "an address, `https://…`")?
        .or_else(|| run.notify.take());
    run.environment = input(env, "environment").or_else(|| run.environment.take());
    run.allow_untrusted = wanted("allow-untrusted")?.unwrap_or(run.allow_untrusted);
    run.deadline = duration(env, "deadline")?.or(run.deadline);
    run.checkpoint_every = duration(env, "checkpoint-every")?.or(run.checkpoint_every);
    run.lock.lock = lock(env)?.or(run.lock.lock.take());
    // Only a later step may use these, but a mistake in them is reported before the run and not after it.
    let (chain, go_on) = (chain(env)?, on_handoff(env)?);
    match part {
        ActionPart::Loop => {}
        ActionPart::All => {
            run.report.chain = chain;
            run.report.go_on = go_on;
        }
    }
    Ok(())
}

fn lock(env: &Environment) -> Result<Option<LockedBy>, Error> {
    let Some(text) = input(env, "lock") else { return Ok(None) };
    flags::lock(text.trim())
        .map(Some)
        .map_err(|help| Error::refused(format!("the input `lock` is `{text}`")).with_hint(help.to_string()))
}

/// Reads an input that is an amount.
fn given<T>(
    env: &Environment,
    name: &str,
    read: impl Fn(&str) -> Option<T>,
    what: &str,
) -> Result<Option<T>, Error> {
    let Some(text) = input(env, name) else { return Ok(None) };
    let amount = read(text.trim()).ok_or_else(|| {
        Error::refused(format!("the input `{name}` is `{text}`")).with_hint(format!("write {what}"))
    });
    amount.map(Some)
}

/// Applies the inputs about the artifact. Where the runner gives this step no access to artifacts, a later one uploads.
fn storing(part: ActionPart, env: &Environment, uploading: &mut UploadFlags) -> Result<(), Error> {
    uploading.retention_days = days(env)?.or(uploading.retention_days);
    if let Some(upload) = input(env, "upload") {
        uploading.no_upload = !boolean("upload", &upload)?;
    }
    uploading.stored_later = part == ActionPart::Loop && !uploading.no_upload && !is_offered(&env.lookup());
    Ok(())
}

/// Returns what the inputs say about reports, as far as they can be read: of a run that is refused because of another
/// input.
pub(super) fn told(part: ActionPart, env: &Environment) -> RunFlags {
    let mut flags = RunFlags { ci: Some("auto".to_owned()), ..RunFlags::default() };
    // What cannot be read is what the run is refused for.
    let _refused = inputs(part, env, &mut flags);
    flags
}

pub(super) fn on_handoff(env: &Environment) -> Result<GoOn, Error> {
    let Some(how) = input(env, "on-handoff") else { return Ok(GoOn::None) };
    GoOn::from_str(how.trim(), false).map_err(|_| {
        Error::refused(format!("the input `on-handoff` is `{how}`")).with_hint("write `dispatch` or `none`")
    })
}

pub(super) fn on_change(env: &Environment) -> Result<Option<String>, Error> {
    let Some(what) = input(env, "on-change") else { return Ok(None) };
    match OnChange::by_word(what.trim()) {
        Some(what) => Ok(Some(what.word().to_owned())),
        None => Err(Error::refused(format!("the input `on-change` is `{what}`"))
            .with_hint("write `fail` or `report`")),
    }
}

pub(super) fn duration(env: &Environment, name: &str) -> Result<Option<Duration>, Error> {
    let Some(text) = input(env, name) else { return Ok(None) };
    parse_duration(&text).map(Some).map_err(|error| {
        Error::refused(format!("the input `{name}`: {error}"))
            .with_hint("write `5h45m` or a number of seconds")
    })
}

pub(super) fn days(env: &Environment) -> Result<Option<u32>, Error> {
    let Some(text) = input(env, "retention-days") else { return Ok(None) };
    match text.trim().parse() {
        Ok(days) if days > 0 => Ok(Some(days)),
        _ => Err(Error::refused(format!("the input `retention-days` is `{text}`"))
            .with_hint("write a number of days")),
    }
}

/// Applies the inputs about the status of the commit.
pub(super) fn commit(env: &Environment, args: &mut CommitFlags) -> Result<(), Error> {
    args.status_context = input(env, "status-context").or_else(|| args.status_context.take());
    if let Some(status) = input(env, "status") {
        let status = boolean("status", &status)?;
        (args.status, args.no_status) = (status, !status);
    }
    if let Some(sha) = input(env, "sha") {
        let sha = flags::sha(&sha).map_err(|help| {
            Error::refused(format!("the input `sha` is `{sha}`")).with_hint(help.to_string())
        })?;
        args.sha = Some(sha);
    }
    Ok(())
}

/// Applies the inputs about the chain of runs.
pub(super) fn chain(env: &Environment) -> Result<ChainFlags, Error> {
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

/// Finds an input. Shells cannot export names with hyphens, as the runner sets them, so underscores work as well.
pub(super) fn input(env: &Environment, name: &str) -> Option<String> {
    let name = format!("INPUT_{}", name.to_uppercase());
    let value = env.get(&name).or_else(|| env.get(&name.replace('-', "_")))?;
    // The runner sets every input that the action declares: one that was not given is empty.
    Some(value.to_owned()).filter(|value| !value.trim().is_empty())
}

pub(super) fn pairs(env: &Environment, name: &str) -> Result<Vec<(String, String)>, Error> {
    let text = input(env, name);
    let lines = text.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty());
    lines
        .map(|line| match line.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
            _ => Err(Error::refused(format!("the input `{name}` has the line `{line}`"))
                .with_hint("write KEY=VALUE lines")),
        })
        .collect()
}

pub(super) fn boolean(name: &str, value: &str) -> Result<bool, Error> {
    match value.trim() {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => {
            Err(Error::refused(format!("the input `{name}` is `{value}`"))
                .with_hint("write `true` or `false`"))
        }
    }
}
