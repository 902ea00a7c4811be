//! Lines of a job that make something anew, and the question to git behind them whether that changed a file: together they are one check.

use super::called_as_in_ci::is_of_checks;
use super::ci::{CiCommand, CiContents};
use super::ci_checks::ComposedCheck;
use super::found_repository::{Finding, Repository};
use super::install_lines::makes_ready;
use super::line_purpose::{has_makefile, script_of};
use super::no_checks::is_plainly_none;
use super::script_lines::{asks_git, without_assignments};
use super::step_titles::RUNNERS;
use crate::tools::{Manner, Purpose, recognise_line};

/// The most lines that make something before one question.
const MOST: usize = 4;

/// Returns these checks.
pub(super) fn drift_checks(repository: &Repository, contents: &CiContents) -> Vec<ComposedCheck> {
    let lines = &contents.commands;
    let asked = lines.iter().enumerate().filter(|(_, line)| asks_git(&line.command));
    asked.filter_map(|(at, line)| of_question(repository, contents, at, line)).collect()
}

fn of_question(
    repository: &Repository,
    contents: &CiContents,
    at: usize,
    question: &CiCommand,
) -> Option<ComposedCheck> {
    let lines = &contents.commands;
    let mut own = vec![at];
    for (before, line) in lines.iter().enumerate().take(at).rev() {
        if line.job != question.job || line.evidence.file != question.evidence.file {
            break;
        }
        // Where lines of its own script make something, git is asked of that.
        let has_own = own.iter().skip(1).any(|at| lines[*at].step == question.step);
        let is_behind_own = has_own && line.step != question.step;
        // It installs nothing, and writes the files that say what is needed.
        let settles = line.command.starts_with("go mod tidy") || line.command.starts_with("go mod vendor");
        let is_none = makes_ready(&line.command) || is_plainly_none(&line.command);
        if is_behind_own || is_none && !settles || is_check(line) {
            break;
        }
        // What only its job can make is not made elsewhere.
        if line.directory != question.directory || !makes(repository, line) || own.len() > MOST {
            return None;
        }
        own.push(before);
    }
    own.reverse();
    let made: Vec<&CiCommand> = own.iter().filter_map(|at| lines.get(*at)).collect();
    let first = made.first().filter(|_| made.len() > 1)?;
    // A line between them that was not understood may make a part of it.
    let is_between = |line: usize| first.evidence.line <= line && line <= question.evidence.line;
    let is_whole = !contents.unused.iter().any(|one| {
        one.evidence.file == question.evidence.file
            && is_between(one.evidence.line)
            && !is_plainly_none(&one.command)
    });
    let is_free = made.iter().all(|line| line.stands_by_itself());
    if !is_whole || !is_free {
        return None;
    }
    let command = made.iter().map(|line| with_variables(contents, line)).collect::<Option<Vec<_>>>()?;
    let finding = Finding {
        purpose: Some(purpose(&made)),
        is_fix: false,
        command: command.join(" && "),
        directory: question.directory.clone(),
        evidence: first.evidence.clone(),
    };
    Some(ComposedCheck { finding, lines: own })
}

/// Tells whether a line is a check by itself.
fn is_check(line: &CiCommand) -> bool {
    recognise_line(&line.command)
        .is_some_and(|found| found.manner == Manner::Pure && found.purpose != Some(Purpose::Build))
}

/// Tells whether a line may make files of the repository anew, by something that is there wherever its job is made ready.
fn makes(repository: &Repository, line: &CiCommand) -> bool {
    let program = without_assignments(&line.command).split(' ').next().unwrap_or("");
    let publishes = ["publish", "deploy", "release", "upload", "push"];
    let is_harmless = !publishes.iter().any(|word| line.command.contains(word));
    let is_known = RUNNERS.contains(&program)
        || recognise_line(&line.command).is_some_and(|found| found.manner != Manner::Other)
        || script_of(repository, &line.directory, &line.command).is_some();
    // A Makefile may be one that only the job makes.
    let is_there = program != "make" || has_makefile(repository, line);
    is_harmless && is_known && is_there
}

/// Returns a command with the variables of its step before it; nothing where they cannot stand there.
fn with_variables(contents: &CiContents, line: &CiCommand) -> Option<String> {
    let own = line.variables[..line.of_step].iter().filter(|one| is_of_checks(contents, one));
    let mut set = String::new();
    for (name, value) in own {
        if value.contains("${{") {
            return None;
        }
        let quoted = shlex::try_quote(value).ok()?;
        set.extend([name.as_str(), "=", &quoted, " "]);
    }
    Some(format!("{set}{}", line.command))
}

/// Returns what is looked at: the format where nothing but formatters is called.
fn purpose(made: &[&CiCommand]) -> Purpose {
    let mut formats = made.iter().filter(|line| !asks_git(&line.command));
    let is_format = |line: &&&CiCommand| {
        recognise_line(&line.command)
            .is_some_and(|found| found.manner == Manner::Mends && found.purpose == Some(Purpose::Format))
    };
    if formats.all(|line| is_format(&line)) { Purpose::Format } else { Purpose::Lint }
}
