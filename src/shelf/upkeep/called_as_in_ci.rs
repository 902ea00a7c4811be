//! How the workflows call what a loop checks: with which variables and which toolchain, and on a terminal.

use super::ci::{Caveat, CiCommand, CiContents, MACHINES, script_of, words};
use super::found_repository::{Finding, Repository};
use super::rust_toolchain;
use super::task_texts::scripts_of_task;
use super::terminal::TerminalCall;
use crate::tools::{TOOLS, recognise_line};

/// Returns the command of a check with what each line of the workflows has around it that calls the same.
pub(super) fn as_in_ci(repository: &Repository, contents: &CiContents, check: &Finding) -> String {
    let command = format!("{}{}", steering(repository, contents, check), check.command);
    let on_terminal = on_terminal_alone(repository, contents, check).and_then(|call| call.with(&command));
    on_terminal.unwrap_or(command)
}

/// Returns the variables by which the tools behind a task come to another verdict, and the toolchain of Rust, as they stand before a
/// command: those on which all lines agree that call it. What a tool heeds that is called itself stands there already.
fn steering(repository: &Repository, contents: &CiContents, check: &Finding) -> String {
    let calls_tasks = recognise_line(&check.command).is_some_and(|found| !found.tasks.is_empty());
    let is_usual =
        |line: &&CiCommand| !line.has(Caveat::SecondChoice) && is_call(&line.directory, &line.command, check);
    let lines: Vec<&CiCommand> = contents.commands.iter().filter(is_usual).collect();
    let Some(first) = lines.first().filter(|_| calls_tasks) else { return String::new() };
    let value = |line: &CiCommand, name: &str| {
        let known = line.variables.iter().find(|(known, _)| known == name)?;
        Some(known.1.clone()).filter(|value| !value.contains("${{"))
    };
    let is_here = |files: &[String]| files.iter().any(|file| repository.has(file));
    let names =
        TOOLS.ecosystems.iter().filter(|known| is_here(&known.manifests)).flat_map(|known| &known.env);
    let of_name = |name: &String| {
        let said = value(first, name)
            .filter(|said| lines.iter().all(|line| value(line, name).as_ref() == Some(said)))?;
        let is_set = check.command.contains(&format!("{name}="));
        let quoted = shlex::try_quote(&said).ok()?;
        (!MACHINES.contains(&name.as_str()) && !is_set).then(|| format!("{name}={quoted} "))
    };
    let toolchain = toolchain(repository, contents, &lines);
    let of_rust = toolchain.map(|name| format!("{}{name} ", rust_toolchain::VARIABLE));
    names.filter_map(of_name).chain(of_rust).collect()
}

/// Returns the toolchain of Rust with which all of these lines are called, where it is not the one of a runner, nor that of all others.
fn toolchain<'c>(repository: &Repository, contents: &CiContents, lines: &[&'c CiCommand]) -> Option<&'c str> {
    let has_file = ["rust-toolchain.toml", "rust-toolchain"].iter().any(|file| repository.has(file));
    let name = lines.first()?.toolchain.name()?;
    let is_of_it = |line: &CiCommand| line.toolchain.name() == Some(name);
    let calls_rust = |line: &&CiCommand| {
        recognise_line(&line.command)
            .is_some_and(|found| found.tool.ecosystem == "rust" || !found.tasks.is_empty())
    };
    let is_of_some = || contents.commands.iter().filter(calls_rust).any(|line| !is_of_it(line));
    (!has_file && name != "stable" && lines.iter().all(|line| is_of_it(line)) && is_of_some()).then_some(name)
}

/// Returns how the workflows call a check or the script behind it on a terminal, if they never do without one.
fn on_terminal_alone<'c>(
    repository: &Repository,
    contents: &'c CiContents,
    check: &Finding,
) -> Option<&'c TerminalCall> {
    if contents.on_terminal.is_empty() {
        return None;
    }
    let scripts = scripts_of_task(repository, check);
    let calls = |directory: &str, command: &str| {
        is_call(directory, command, check)
            || script_of(repository, directory, command).is_some_and(|script| scripts.contains(&script))
    };
    let is_plain = contents.commands.iter().any(|line| calls(&line.directory, &line.command));
    let call = contents.on_terminal.iter().find(|call| calls(&call.directory, &call.command))?;
    (!is_plain).then_some(call)
}

/// Tells whether only jobs call a check that have a service of which only they know all.
pub(super) fn only_with_services(in_ci: &[CiCommand], check: &Finding) -> bool {
    let mut calls = in_ci.iter().filter(|line| is_call(&line.directory, &line.command, check)).peekable();
    calls.peek().is_some() && calls.all(|line| line.has(Caveat::LacksService))
}

/// Tells whether a command that is called in a directory is a check.
fn is_call(directory: &str, command: &str, check: &Finding) -> bool {
    directory == check.directory && words(command) == words(&check.command)
}
