//! `ll-loop completions` prints the script that a shell loads, and the hidden `complete-line` answers it: with commands,
//! options and their values, and with the names of the loops and runs that are here.

use std::ffi::{OsStr, OsString};

use clap::{Command, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};

use super::commands::completions::{CompleteLineArgs, CompletionShell, CompletionsArgs};
use super::output::Output;
use super::shorthand;
use crate::base::text::one_line;
use crate::context::Session;
use crate::definition::load;
use crate::session::read::listed_runs::Places;

/// The longest help in a line of what is offered.
const MAX_HELP: usize = 120;

/// The most runs that are offered: the newest.
const MAX_RUNS: usize = 200;

/// Returns the script of a shell. It holds nothing of this machine, and asks for names when it completes.
fn script(shell: CompletionShell) -> &'static str {
    match shell {
        CompletionShell::Bash => include_str!("ll-loop.bash"),
        CompletionShell::Zsh => include_str!("ll-loop.zsh"),
        CompletionShell::Fish => include_str!("ll-loop.fish"),
        CompletionShell::Power => include_str!("ll-loop.ps1"),
    }
}

pub(super) fn completions(args: &CompletionsArgs, output: &Output) -> u8 {
    output.data(script(args.shell));
    0
}

/// Prints what may stand at a place of a command line: a value, a tab and its help in each line.
pub(super) fn complete_line(
    args: &CompleteLineArgs,
    command: Command,
    session: &Session<'_>,
    output: &Output,
) -> u8 {
    let mut words = args.words.clone();
    words.truncate(args.at + 1);
    // Some shells leave out the empty word that is being begun.
    if words.len() <= args.at {
        words.push(OsString::new());
    }
    let lines = offered(&words, command, session);
    output.data(&lines.into_iter().map(|line| line + "\n").collect::<String>());
    0
}

fn offered(words: &[OsString], command: Command, session: &Session<'_>) -> Vec<String> {
    let Some((current, before)) = words.split_last().filter(|(_, before)| !before.is_empty()) else {
        return Vec::new();
    };
    let names = Names { loops: load::names(&session.cwd), runs: runs(session) };
    // `ll-loop NAME` is short for `ll-loop run NAME`, and its options are those of `run`.
    let mut given = before[1..].to_vec();
    given = shorthand::expanded(given.clone(), &session.cwd).unwrap_or(given);
    let is_first = given.is_empty();
    for word in &mut given {
        if let Some(command) = word.to_str().and_then(|word| command.find_subcommand(word)) {
            *word = command.get_name().into();
            break;
        }
    }
    let line: Vec<OsString> = [before[0].clone()].into_iter().chain(given).chain([current.clone()]).collect();
    let at = line.len() - 1;
    // The engine would offer a short form in place of its command.
    let command = command.mut_subcommands(|command| command.visible_alias(None));
    // What cannot be completed offers nothing: a message would end up on the command line.
    let completed = complete(&mut names.known_to(command), line, at, None);
    let mut candidates: Vec<_> = completed.into_iter().flatten().collect();
    // A loop may stand where a command does, as `run` may be left out.
    if is_first {
        candidates.extend(starting(current, &names.loops, "a loop"));
    }
    candidates.retain(|candidate| !candidate.is_hide_set());
    let is_option =
        |candidate: &CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(b"-");
    // Whoever looks for options begins with a dash.
    if !candidates.iter().all(is_option) {
        candidates.retain(|candidate| !is_option(candidate) || current.as_encoded_bytes().starts_with(b"-"));
    }
    candidates.iter().filter_map(line_of).collect()
}

/// The newest runs first. Journals that cannot be read offer nothing.
fn runs(session: &Session<'_>) -> Vec<String> {
    let Ok(runs) = Places::of(session).all() else { return Vec::new() };
    runs.iter().rev().take(MAX_RUNS).map(|run| run.files.instance().to_string()).collect()
}

/// The names that depend on the directory.
#[derive(Clone)]
struct Names {
    loops: Vec<String>,
    runs: Vec<String>,
}

impl Names {
    /// Adds the names to each argument that takes one, which its placeholder says: `LOOP|RUN`. Files are left to the
    /// shell, which knows how to quote them.
    fn known_to(&self, command: Command) -> Command {
        let command = command.mut_args(|argument| {
            let placeholders = argument.get_value_names().unwrap_or(&[]).join("|");
            let kinds: Vec<&str> = placeholders.split('|').collect();
            let takes = |names: &[&str]| names.iter().any(|name| kinds.contains(name));
            // `NAME` alone means other things, too, such as a loop of the catalogue.
            let loops = takes(&["LOOP"]) || (takes(&["NAME"]) && takes(&["INSTANCE"]));
            let runs = takes(&["RUN", "INSTANCE"]);
            if !argument.get_action().takes_values() {
                return argument;
            }
            let argument = argument.value_hint(ValueHint::Other);
            if !loops && !runs {
                return argument;
            }
            // The parser keeps what completes an argument, and borrows nothing.
            let names = self.clone();
            argument.add(ArgValueCompleter::new(move |current: &OsStr| {
                let mut found = Vec::new();
                if loops {
                    found.extend(starting(current, &names.loops, "a loop"));
                }
                if runs {
                    found.extend(starting(current, &names.runs, "a run"));
                }
                found
            }))
        });
        command.mut_subcommands(|subcommand| self.known_to(subcommand))
    }
}

fn starting(current: &OsStr, names: &[String], what: &'static str) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let names = names.iter().filter(|name| name.starts_with(current));
    names.map(|name| CompletionCandidate::new(name).help(Some(what.into()))).collect()
}

/// Returns the line of a candidate; nothing where a shell would read its value as anything but one plain word. Names come
/// from files that others may have written, and not every shell quotes what it inserts.
fn line_of(candidate: &CompletionCandidate) -> Option<String> {
    let value = candidate.get_value().to_str().filter(|value| is_plain(value))?;
    let help = candidate.get_help().map_or_else(String::new, |help| one_line(&help.to_string(), MAX_HELP));
    Some(format!("{value}\t{help}"))
}

fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_are_offered() {
        for value in ["tidy", "web/tidy", "über", "a-b_c.1", "--color", "--ci=github"] {
            assert!(is_plain(value), "{value}");
        }
        for value in [
            "",
            "a b",
            "$(touch x)",
            "`x`",
            "a;b",
            "a&b",
            "a|b",
            "~",
            "*",
            "a'b",
            "a\"b",
            "a\nb",
            "a:b",
            "!x",
            "\u{202e}x",
            "a\\b",
            "<x",
            "#x",
            "[x]",
            "{x}",
            "(x)",
            "%x",
            "^x",
        ] {
            assert!(!is_plain(value), "{value:?}");
        }
    }
}
