//! Command lines that are known to look at the work and to leave it as it is: the table of tools says which.

use crate::shell::command::{SimpleCommand, commands, joined_by_and};
use crate::shell::lexer::tokens;
use crate::shell::token::TokenKind;
use crate::tools::pure_check;

/// Tells whether a text is one such command, or several that are joined by `&&`.
pub(super) fn is_pure(text: &str) -> bool {
    // A redirection writes, whatever the command does.
    let redirects = text.contains(['<', '>']);
    let only_looks = |command: &SimpleCommand| {
        // A word with an expansion in it has no value, and the command could then be anything.
        let values: Option<Vec<String>> = command.words.iter().map(|word| word.value.clone()).collect();
        values.is_some_and(|words| pure_check(&words).is_some())
    };
    let commands = joined_by_and(text).filter(|commands| !commands.is_empty() && !redirects);
    commands.is_some_and(|commands| commands.iter().all(only_looks))
}

/// Programs that write files whatever they are told.
const WRITERS: [&str; 11] =
    ["rm", "mv", "cp", "ln", "tee", "touch", "truncate", "dd", "patch", "install", "rsync"];

/// Subcommands of git after which other files stand in the working tree.
const OF_GIT: [&str; 16] = [
    "stash",
    "checkout",
    "reset",
    "restore",
    "clean",
    "switch",
    "commit",
    "apply",
    "am",
    "pull",
    "merge",
    "rebase",
    "rm",
    "mv",
    "cherry-pick",
    "revert",
];

/// Tells whether a text itself says that it writes files, whatever the programs do that it runs: what it says may then be
/// about a tree that is not there any more when it ends.
pub fn writes(text: &str) -> bool {
    let redirects = tokens(text).into_iter().flatten().any(|token| {
        // The number of a file descriptor may stand before the sign: `2>errors`.
        let target = text[token.range.clone()].trim_start_matches(|sign: char| sign.is_ascii_digit());
        let target = target.strip_prefix("&>").or_else(|| target.strip_prefix('>'));
        // `>>` and `>|` write as well.
        let target = target.map(|target| target.trim_start_matches(['>', '|']).trim_start());
        matches!(token.kind, TokenKind::Redirection { .. })
            // Another descriptor, or a device, is not a file of the tree.
            && target.is_some_and(|target| !target.starts_with('&') && !target.starts_with("/dev/"))
    });
    redirects || commands(text).iter().any(command_writes)
}

fn command_writes(command: &SimpleCommand) -> bool {
    // A word that is put together in the run has no value here, and an empty one matches no program.
    let words: Vec<&str> = command.values().iter().map(|value| value.unwrap_or("")).collect();
    match words.as_slice() {
        ["git", rest @ ..] => {
            rest.iter().find(|word| !word.starts_with('-')).is_some_and(|word| OF_GIT.contains(word))
        }
        ["sed" | "perl", rest @ ..] => {
            // `-i` may have a suffix for a backup behind it.
            rest.iter().any(|word| word.starts_with("-i") || word.starts_with("--in-place"))
        }
        [program, ..] => WRITERS.contains(program),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_pure, writes};

    #[test]
    fn a_text_says_that_it_writes() {
        for text in [
            "sh check.sh && echo bad > work.txt",
            "make test; git stash -q",
            "pytest >out.txt 2>&1",
            "a | tee log",
            "sed -i s/a/b/ x",
            "(cd x && rm -r y)",
            "a &>> log",
        ] {
            assert!(writes(text), "{text}");
        }
        for text in [
            "pytest -q",
            "make test 2>&1 | tail",
            "a > /dev/null",
            "a 2>/dev/null",
            "git diff --exit-code",
            "echo 'a > b'",
            "sed s/a/b/ x",
            "[ 1 -gt 0 ]",
            "a >&2",
        ] {
            assert!(!writes(text), "{text}");
        }
    }

    #[test]
    fn commands_that_only_look_are_known() {
        for text in [
            "cargo test",
            "cargo fmt --check && cargo clippy",
            "pytest -q",
            "ruff check .",
            "make test",
            "npm test",
            "mvn -q test",
            "bundle exec rspec",
            "dotnet test",
        ] {
            assert!(is_pure(text), "{text}");
        }
    }

    #[test]
    fn what_writes_or_is_more_than_a_command_is_not() {
        for text in [
            "cargo fmt",
            "ruff check --fix .",
            "eslint --fix=true src",
            "pytest; git stash",
            "pytest || true",
            "pytest > out.txt",
            "make all",
            "pytest &",
            "cargo test && rm -rf x",
            "jest -u",
            "",
        ] {
            assert!(!is_pure(text), "{text}");
        }
    }
}
