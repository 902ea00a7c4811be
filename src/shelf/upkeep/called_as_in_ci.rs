//! How the workflows call what a loop checks: with which variables and which toolchain, and on a terminal.

use std::collections::BTreeSet;

use super::ci::{Caveat, CiCommand, CiContents, is_call, is_commit};
use super::found_repository::{Finding, Repository};
use super::line_purpose::{MACHINES, script_of};
use super::rust_toolchain;
use super::task_texts::scripts_of_task;
use super::terminal::TerminalCall;
use crate::tools::{TOOLS, recognise_line};

/// Returns the command of a check with what each line of the workflows has around it that calls the same.
pub(super) fn as_in_ci(
    repository: &Repository,
    contents: &CiContents,
    check: &Finding,
    own: &[(String, String)],
) -> String {
    let set = |(name, value): &(String, String)| Some(format!("{name}={} ", shlex::try_quote(value).ok()?));
    // Before several commands, a variable would hold for the first of them alone.
    let is_one = !check.command.contains(['|', ';', '&']);
    // What stands in the command was put in there.
    let lines = contents.commands.iter().filter(|line| line.makes(check));
    let named: Vec<&String> = lines.flat_map(|line| &line.named).collect();
    let is_in =
        |name: &str, value: &str| named.iter().any(|known| *known == name) && check.command.contains(value);
    let of_check = own
        .iter()
        .filter(|(name, value)| !is_in(name, value) && !check.command.contains(&format!("{name}=")));
    let own: String = of_check.filter_map(set).collect();
    let own = if is_one || own.is_empty() { own } else { format!("export {own}&& ") };
    let command = format!("{own}{}{}", steering(repository, contents, check), check.command);
    let on_terminal = on_terminal_alone(repository, contents, check).and_then(|call| call.with(&command));
    on_terminal.unwrap_or(command)
}

/// The most variables that stand before a command.
const MOST_VARIABLES: usize = 6;

/// What the jobs have around a check that call it.
struct Surroundings {
    /// The variables that all of them have, with one value.
    variables: Vec<(String, String)>,
    /// Those of them that their steps say, and not the whole jobs.
    of_steps: Vec<(String, String)>,
    /// Those of the first of them that has a service, which is reached by variables of the whole job.
    of_services: Option<Vec<(String, String)>>,
}

impl Surroundings {
    fn of(contents: &CiContents, check: &Finding) -> Option<Self> {
        let is_meant = |line: &&CiCommand| !line.is_second_choice() && line.makes(check);
        let lines: Vec<&CiCommand> = contents.commands.iter().filter(is_meant).collect();
        let says = |line: &CiCommand, one: &(String, String)| {
            line.variables.iter().find(|(known, _)| *known == one.0) == Some(one)
        };
        let is_everywhere = |one: &&(String, String)| lines.iter().all(|line| says(line, one));
        let first = lines.first()?;
        let variables = first.variables.iter().filter(is_everywhere).cloned().collect();
        let is_of_step =
            |one: &&(String, String)| lines.iter().all(|line| line.variables[..line.of_step].contains(one));
        let of_steps = first.variables.iter().filter(is_everywhere).filter(is_of_step).cloned().collect();
        let is_of_lines = |job: &str| lines.iter().any(|line| line.job == job);
        let services = contents.services.iter().find(|known| is_of_lines(&known.job));
        let of_services = services.map(|services| services.variables.clone());
        Some(Self { variables, of_steps, of_services })
    }
}

/// Returns of each check the variables of the steps that call it, and not of all others: they stand before its command.
pub(super) fn own_variables(contents: &CiContents, checks: &[&Finding]) -> Vec<Vec<(String, String)>> {
    let all: Vec<Option<Surroundings>> =
        checks.iter().map(|check| Surroundings::of(contents, check)).collect();
    let is_shared = |one: &(String, String)| all.iter().flatten().all(|known| known.variables.contains(one));
    let own = |found: &Surroundings| {
        let is_plain = |one: &&(String, String)| {
            !one.1.contains("${{") && !matches!(one.0.as_str(), "CI" | "HOME" | "PATH" | "TERM")
        };
        let all = found.of_services.as_ref().unwrap_or(&found.of_steps).iter().filter(is_plain);
        // The nearest is the first, and hides those behind it also where the whole job has it.
        let mut names = BTreeSet::new();
        let nearest = all.filter(|(name, _)| names.insert(name.as_str()));
        let own: Vec<(String, String)> =
            nearest.filter(|one| !is_shared(one) && is_of_checks(contents, one)).cloned().collect();
        let most = if found.of_services.is_some() { 2 * MOST_VARIABLES } else { MOST_VARIABLES };
        (own.len() <= most).then_some(own)
    };
    all.iter().map(|found| found.as_ref().and_then(own).unwrap_or_default()).collect()
}

/// Tells whether a variable of a job is about what its checks do. What steers a tool stands before its command anyway; what a workflow
/// puts into its own lines is for those, and other variables are about what is installed, or how a log looks.
pub(super) fn is_of_checks(contents: &CiContents, one: &(String, String)) -> bool {
    let name = one.0.as_str();
    let is_steering = TOOLS.ecosystems.iter().any(|known| known.env.iter().any(|other| other == name));
    let is_own = contents.put_in.contains(name) || one.1.is_empty();
    let is_of_machine = matches!(name, "HOME" | "PATH" | "USER" | "SHELL" | "TMPDIR" | "ImageOS")
        || ["RUNNER", "GITHUB"].iter().any(|begin| name.split('_').next() == Some(begin));
    // The version of a tool that is installed, or of another action, is for that.
    let is_action = is_call_of_action(&one.1);
    !(is_own
        || is_of_machine
        || is_action
        || MACHINES.contains(&name)
        || is_steering
        || matches!(name, "NODE_ENV" | "TOXENV" | "TOX_ENV" | "NOXSESSION")
        || name.contains("COLOR"))
}

/// Tells whether a value names an action with its version, `actions/checkout@v6`.
fn is_call_of_action(value: &str) -> bool {
    let is_version = |version: &str| {
        let number = version.strip_prefix('v').unwrap_or("");
        number.starts_with(|c: char| c.is_ascii_digit()) || is_commit(version)
    };
    value.split_once('@').is_some_and(|(name, version)| {
        name.contains('/') && !name.contains([' ', ':']) && is_version(version)
    })
}

/// Returns the variables by which the tools behind a task come to another verdict, and the toolchain of Rust, as they stand before a
/// command: those on which all lines agree that call it. What a tool heeds that is called itself stands there already.
fn steering(repository: &Repository, contents: &CiContents, check: &Finding) -> String {
    let calls_tasks = recognise_line(&check.command).is_some_and(|found| !found.tasks.is_empty());
    let is_usual = |line: &&CiCommand| !line.is_second_choice() && line.is_call_of(check);
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
    let mut calls = in_ci.iter().filter(|line| line.is_call_of(check)).peekable();
    calls.peek().is_some() && calls.all(|line| line.has(Caveat::LacksService))
}
