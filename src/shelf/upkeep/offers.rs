//! Tools that a repository has only the configuration of. As far as it says, they are not run there: they are offered, never added.

use super::found_repository::{Evidence, Finding, Repository, line_of};
use super::unused::{Reason, UnusedCommand};
use super::{ci, ci_files, tasks};
use crate::tools::{TOOLS, Tool, recognise_line};

/// Returns the tools that are configured and that no check is known to call.
pub(super) fn configured(
    repository: &Repository,
    runs: &[ci::CiCommand],
    checks: &[&Finding],
) -> Vec<UnusedCommand> {
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
    // A hook is named after its tool, with what else it says behind that.
    let in_hooks = |program: &str| {
        let hooks = repository.text(".pre-commit-config.yaml").unwrap_or("");
        let names = hooks.lines().filter_map(|line| line.split_once("id:")).map(|(_, name)| name.trim());
        let is_of = |name: &str| {
            name.strip_prefix(program).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        names.into_iter().any(is_of)
    };
    // A tool that a task or a script calls is there already.
    let is_run = |tool: &Tool| {
        tool.programs().iter().any(|program| {
            tasks::call(repository, program)
                || in_scripts(program)
                || in_hooks(program)
                || is_named_by_script(repository, program)
                || runs.iter().any(|line| line.command.split([' ', '/']).any(|word| word == program))
        })
    };
    let offer = |tool: &Tool| {
        let command = on_files(tool.offer.as_deref()?, &tool.offer_files);
        let evidence = evidence(tool, repository)?;
        let is_named = || tool.programs().iter().any(|program| ci_files::mention(repository, program));
        (!is_called(tool) && !is_run(tool)).then(|| UnusedCommand {
            command,
            directory: String::new(),
            evidence,
            why: if is_named() { Reason::OnlyNamed } else { Reason::OnlyConfigured },
        })
    };
    TOOLS.tools.iter().filter_map(offer).collect()
}

/// Tells whether one of the repository's own scripts names a program: a Rakefile, or what lies among scripts.
fn is_named_by_script(repository: &Repository, program: &str) -> bool {
    let is_script = |path: &&str| {
        ["script/", "scripts/", "ci/", ".ci/", "Rakefile", "rakefile"]
            .iter()
            .any(|place| path.starts_with(place))
    };
    let is_word = |text: &str| {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)));
        words.into_iter().any(|word| word.eq_ignore_ascii_case(program))
    };
    repository.paths().filter(is_script).any(|path| repository.text(path).is_some_and(is_word))
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
