//! What a task of a repository calls in the end, as far as its files say it: who calls the task needs no line of a workflow
//! that calls the same.

use std::collections::BTreeSet;

use super::ci::words;
use super::found_repository::{Finding, Repository};
use super::line_purpose::script_of;
use super::tasks::{RepositoryTask, of_repository, without_changes};
use crate::base::text::after_last;
use crate::tools::{Recognised, Tool, ToolCheck, recognise, recognise_line};

/// The file of hooks, all of which are one task.
const HOOKS: &str = ".pre-commit-config.yaml";

/// Tells whether a task does what a command of a workflow does: it is that command, or it calls the same tool, task or script.
pub(super) fn does(repository: &Repository, task: &Finding, command: &Finding) -> bool {
    if words(&task.command) == words(&command.command) && task.directory == command.directory {
        return true;
    }
    if task.evidence.task.is_none() {
        return false;
    }
    let text = TaskText::of(repository, task);
    // What is called elsewhere, the task has to call there.
    if task.directory != command.directory && !text.has(after_last(&command.directory, &['/'])) {
        return false;
    }
    let Some(line) = shlex::split(&command.command) else { return false };
    let Some(found) = recognise(&line) else { return text.has_script(repository, &line) };
    // With more words, `npm test -- --ci`, it is the same task.
    let is_same_runner = words(&task.command).first() == words(&command.command).first();
    if is_same_runner
        && task.directory == command.directory
        && found.tasks.len() == 1
        && found.tasks.first() == task.evidence.task.as_ref()
    {
        return true;
    }
    if let Some(same) = is_of_same_runner(task, &found, &line) {
        return same;
    }
    if found.tasks.is_empty() {
        return text.calls(found.tool, found.check);
    }
    found.tasks.iter().all(|name| text.has_task(name)) || text.calls_all_of(repository, command)
}

/// Returns a check of a workflow without the tasks that change files of the repository, and with the checks that such a task calls
/// itself in its place; nothing where none is left.
pub(super) fn without_writers(repository: &Repository, check: Finding) -> Option<Finding> {
    let tasks = recognise_line(&check.command).map_or_else(Vec::new, |found| found.tasks);
    let words = words(&check.command);
    let Some(runner) = words.first().filter(|_| check.directory.is_empty() && !check.is_fix) else {
        return Some(check);
    };
    let kept: Vec<(&String, Vec<String>)> =
        tasks.iter().map(|name| (name, without_changes(repository, runner, name, check.purpose))).collect();
    let is_changed = kept.iter().any(|(name, kept)| *kept != [(*name).clone()]);
    if !is_changed {
        return Some(check);
    }
    let of_word = |word: &str| match kept.iter().find(|(name, _)| *name == word) {
        Some((_, kept)) => kept.clone(),
        None => vec![word.to_owned()],
    };
    // Split at blanks and not as a shell does, so that quotes stay as they were written.
    let command = check.command.split(' ').flat_map(of_word).collect::<Vec<_>>().join(" ");
    kept.iter().any(|(_, kept)| !kept.is_empty()).then_some(Finding { command, ..check })
}

/// Tells whether a call of tox or nox is one of a task by the same runner: with no environment it is all of them, and a factor,
/// `-f typing`, stands for each whose name has it. Nothing where the names say it.
fn is_of_same_runner(task: &Finding, found: &Recognised, line: &[String]) -> Option<bool> {
    if !matches!(found.tool.name.as_str(), "tox" | "nox") {
        return None;
    }
    let runner = found.tool.name.as_str();
    let is_same = words(&task.command).first() == Some(&runner);
    let name = task.evidence.task.as_deref().unwrap_or("");
    if found.environments.is_empty() {
        return Some(is_same);
    }
    let is_factor = line.iter().any(|word| word == "-f");
    let has = |factor: &String| name.split('-').any(|part| part == factor);
    Some(is_factor && found.environments.iter().all(has))
}

/// Options that name what a tool passes over.
const LEAVE_OUT: [&str; 4] = ["--ignore", "--exclude", "--skip", "--deselect"];

/// The lines that a task runs, with those of the tasks and scripts that these call, in words.
struct TaskText {
    words: BTreeSet<String>,
    has_hooks: bool,
}

impl TaskText {
    fn of(repository: &Repository, task: &Finding) -> Self {
        let has_hooks = task.evidence.file == HOOKS;
        let first = if has_hooks {
            repository.text(HOOKS).unwrap_or("").to_owned()
        } else {
            lines_of_task(repository, &task.evidence.file, task.evidence.line)
        };
        let mut text = Self { words: BTreeSet::new(), has_hooks };
        text.add(&first);
        let mut others: Vec<RepositoryTask> =
            of_repository(repository).into_iter().filter(|other| other.file == task.evidence.file).collect();
        // What is called may call others again.
        loop {
            let (called, rest): (Vec<_>, Vec<_>) =
                others.into_iter().partition(|other| text.has_task(&other.name));
            others = rest;
            if called.is_empty() {
                break;
            }
            for other in called {
                text.add(&lines_of_task(repository, &other.file, other.line));
            }
        }
        let scripts: Vec<&str> =
            text.words.iter().filter_map(|word| repository.text(word.trim_start_matches("./"))).collect();
        for script in scripts {
            text.add(script);
        }
        text
    }

    fn add(&mut self, text: &str) {
        // What a runner of tasks computes calls nothing: `{{default "." .PATTERN}}`.
        let computed = text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
        let without = |text: String, (inner, _): (&str, &str)| text.replace(&format!("{{{{{inner}}}}}"), "");
        let plain = computed.fold(text.to_owned(), without);
        // JSON writes a quote within a text with a backslash.
        let is_between = |c: char| c.is_whitespace() || "\\\"'`;,()[]{}&|$<>=@".contains(c);
        // What a task leaves out it does not call: `--ignore=tools/`.
        let leaves_out = |word: &&str| {
            word.contains('=')
                && LEAVE_OUT.iter().any(|option| word.trim_start_matches(['"', '\'']).starts_with(option))
        };
        let called = plain.split_whitespace().filter(|word| !leaves_out(word));
        let found = called.flat_map(|word| word.split(is_between)).filter(|word| !word.is_empty());
        // concurrently says of a name in this way that it is a script.
        let found = found.map(|word| word.strip_prefix("npm:").unwrap_or(word));
        // Variables of a Makefile name programs in capitals.
        self.words.extend(found.map(str::to_ascii_lowercase));
    }

    /// Tells whether a word stands there: by itself, at the end of a path, or as a variable, `$(GOLANGCI_LINT)`.
    fn has(&self, word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        self.words.iter().any(|known| {
            let name = known.rsplit('/').next().unwrap_or(known);
            *known == word || name == word || name.replace('_', "-") == word
        })
    }

    /// Tells whether a task is called, by its name or with others: `lint:*`.
    fn has_task(&self, name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        let is_meant = |known: &String| {
            *known == lower
                || known.strip_suffix('*').is_some_and(|begin| !begin.is_empty() && lower.starts_with(begin))
        };
        self.words.iter().any(is_meant)
    }

    fn has_script(&self, repository: &Repository, line: &[String]) -> bool {
        let script = line.iter().map(|word| word.trim_start_matches("./")).find(|word| repository.has(word));
        script.is_some_and(|script| self.has(script.rsplit('/').next().unwrap_or(script)))
    }

    fn calls(&self, tool: &Tool, check: &ToolCheck) -> bool {
        if self.has_hooks {
            // A hook is named after its tool, with what else it says behind that.
            let of_tool = |word: &&String, program: &String| {
                let name = word.rsplit('/').next().unwrap_or(word);
                name == program
                    || name.strip_prefix(program.as_str()).is_some_and(|rest| rest.starts_with('-'))
            };
            let mut hooks = tool
                .programs()
                .iter()
                .flat_map(|program| self.words.iter().filter(move |word| of_tool(word, program)))
                .peekable();
            let usual = |word: &String| matches!(word.as_str(), "check" | "run" | "lint");
            let is_there = hooks.peek().is_some();
            return is_there
                && (check.words.iter().all(usual)
                    || hooks.any(|hook| check.words.iter().any(|word| hook.contains(word.as_str()))));
        }
        tool.programs().iter().any(|program| self.has(program))
            && check.words.iter().all(|word| self.has(word))
    }

    /// Tells whether all that the task of a command calls is called here as well.
    fn calls_all_of(&self, repository: &Repository, command: &Finding) -> bool {
        let is_it = |task: &RepositoryTask| words(&task.call) == words(&command.command);
        let Some(task) = of_repository(repository).into_iter().find(is_it) else { return false };
        let mut parts =
            task.body.split(['\n', ';', '&']).map(str::trim).filter(|part| !part.is_empty()).peekable();
        let is_called = |part: &str| {
            let Some(words) = shlex::split(part) else { return false };
            // With other options, `-tags=acceptance`, the same tool does something else.
            let are_there = words.iter().flat_map(|word| word.split('=')).all(|word| self.has(word));
            recognise(&words).is_some_and(|found| {
                are_there && found.tasks.is_empty() && self.calls(found.tool, found.check)
            })
        };
        parts.peek().is_some() && parts.all(is_called)
    }
}

/// Returns the scripts of the repository that a task calls, by their paths from the top.
pub(super) fn scripts_of_task(repository: &Repository, task: &Finding) -> BTreeSet<String> {
    let is_it = |other: &RepositoryTask| {
        other.file == task.evidence.file && Some(&other.name) == task.evidence.task.as_ref()
    };
    let body = of_repository(repository).into_iter().find(is_it).map_or_else(String::new, |task| task.body);
    let commands = body.split(['\n', ';', '&', '|']);
    commands.filter_map(|command| script_of(repository, &task.directory, command.trim())).collect()
}

/// Returns the lines of a task: the one with its name, and those further in below it; or those of its section.
pub(super) fn lines_of_task(repository: &Repository, file: &str, line: usize) -> String {
    let text = repository.text(file).unwrap_or("");
    let mut lines = text.lines().skip(line.saturating_sub(1));
    let depth = |line: &str| line.len() - line.trim_start().len();
    let Some(first) = lines.next() else { return String::new() };
    let is_section = first.starts_with('[');
    let body = lines.take_while(|line| {
        if is_section { !line.starts_with('[') } else { line.trim().is_empty() || depth(line) > depth(first) }
    });
    std::iter::once(first).chain(body).collect::<Vec<_>>().join("\n")
}
