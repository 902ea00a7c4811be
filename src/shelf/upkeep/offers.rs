//! Tools that a repository has only the configuration of. As far as it says, they are not run there: they are offered, never added.

use super::found_repository::{Evidence, Finding, Repository, line_of};
use super::{ci, tasks};
use crate::tools::{TOOLS, Tool, recognise_line};

/// A command that somebody may add to a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedCommand {
    /// The command.
    pub command: String,
    /// What speaks for it.
    pub evidence: Evidence,
    /// Why it was not added.
    pub why: &'static str,
}

/// Returns the tools that are configured and that no check is known to call.
pub(super) fn configured(
    repository: &Repository,
    runs: &[ci::CiCommand],
    checks: &[&Finding],
) -> Vec<OfferedCommand> {
    let is_called = |tool: &Tool| {
        checks.iter().any(|check| {
            recognise_line(&check.command).is_some_and(|found| {
                found.tool.name == tool.name || found.tool.reads_config_of.contains(&tool.name)
            })
        })
    };
    let scripts: Vec<&str> = checks
        .iter()
        .map(|check| check.command.as_str())
        .chain(runs.iter().map(|line| line.command.as_str()))
        .flat_map(|command| command.split(' '))
        .filter_map(|word| repository.text(word.trim_start_matches("./")))
        .collect();
    let in_scripts = |program: &str| {
        scripts.iter().any(|text| text.split([' ', '/', '\n', '}']).any(|word| word == program))
    };
    // A tool that a task or a script calls is there already.
    let is_run = |tool: &Tool| {
        tool.programs().iter().any(|program| {
            tasks::call(repository, program)
                || in_scripts(program)
                || runs.iter().any(|line| line.command.split([' ', '/']).any(|word| word == program))
        })
    };
    let offer = |tool: &Tool| {
        let command = on_files(tool.offer.as_deref()?, &tool.offer_files);
        let evidence = evidence(tool, repository)?;
        let is_named = || tool.programs().iter().any(|program| ci::mention(repository, program));
        (!is_called(tool) && !is_run(tool)).then(|| OfferedCommand {
            command,
            evidence,
            why: if is_named() {
                "a workflow names it, in no line that is a check by itself"
            } else {
                "only its configuration is there"
            },
        })
    };
    TOOLS.tools.iter().filter_map(offer).collect()
}

/// Returns a command with the files that it is to look at. Without any, a formatter waits for a text on its standard input.
fn on_files(command: &str, patterns: &[String]) -> String {
    if patterns.is_empty() {
        return command.to_owned();
    }
    let patterns: Vec<String> = patterns.iter().map(|pattern| format!("'{pattern}'")).collect();
    format!("git ls-files -z {} | xargs -0 -r {command}", patterns.join(" "))
}

fn evidence(tool: &Tool, repository: &Repository) -> Option<Evidence> {
    if let Some(file) = tool.config.iter().find(|file| repository.has(file)) {
        return Some(Evidence { file: file.clone(), line: 1, task: None });
    }
    tool.sections.iter().find_map(|(file, sign)| {
        let text = repository.text(file)?;
        let has = |line: &str| line.trim_start().starts_with(sign.as_str());
        text.lines().any(has).then(|| Evidence { file: file.clone(), line: line_of(text, has), task: None })
    })
}
