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

/// Options of git itself whose value is the next word.
const WITH_A_VALUE: [&str; 8] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--super-prefix",
    "--config-env",
    "--attr-source",
];

/// Letters of sed and perl behind which a word goes on with a value.
const OF_SED: &str = "efl";
const OF_PERL: &str = "eEIMmxFDdCV";

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
        ["git", rest @ ..] => git_subcommand(rest).is_some_and(|word| OF_GIT.contains(&word)),
        ["sed", rest @ ..] => {
            rest.iter().any(|word| word.starts_with("--in-place") || has_switch(word, 'i', OF_SED))
        }
        ["perl", rest @ ..] => rest.iter().any(|word| has_switch(word, 'i', OF_PERL)),
        [program, ..] => WRITERS.contains(program),
        [] => false,
    }
}

/// Returns the subcommand of a call of git: the first word that is neither an option nor the value of one.
fn git_subcommand<'w>(words: &[&'w str]) -> Option<&'w str> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return Some(word);
        }
        if WITH_A_VALUE.contains(word) {
            words.next();
        }
    }
    None
}

/// Tells whether a word has a switch of one letter, alone or behind others: `-i`, `-i.bak`, `-pi`. What follows a letter
/// that takes a value is that value.
fn has_switch(word: &str, switch: char, with_a_value: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or("");
    letters.chars().take_while(|letter| !with_a_value.contains(*letter)).any(|letter| letter == switch)
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
            "sed -Ei s/a/b/ x",
            "sed -ni.bak p x",
            "perl -pi -e s/a/b/ x",
            "perl -0777pi.bak -e s/a/b/ x",
            "git -C sub stash",
            "git -C \"$DIR\" checkout .",
            "git -c user.name=a --no-pager commit -qm b",
            "git --git-dir .git --work-tree=. reset --hard",
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
            "sed -nf print.sed x",
            "sed -es/i/j/ x",
            "perl -ne 'print if /i/' x",
            "perl -Mstrict -MFile::Find -Ilib x.pl",
            "git -C stash status",
            "git -c core.pager=clean log",
            "git log stash",
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
