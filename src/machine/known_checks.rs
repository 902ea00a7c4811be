//! Command lines that are known to look at the work and to leave it as it is: the table of tools says which.

use crate::shell::command::{SimpleCommand, joined_by_and};
use crate::tools::pure_check;

/// Tells whether a text is one such command, or several that are joined by `&&`.
pub(super) fn is_pure(text: &str) -> bool {
    // A redirection writes, whatever the command does.
    let redirects = text.contains(['<', '>']);
    let only_looks = |command: &SimpleCommand| {
        let values: Option<Vec<String>> = command.words.iter().map(|word| word.value.clone()).collect();
        values.is_some_and(|words| pure_check(&words).is_some())
    };
    let commands = joined_by_and(text).filter(|commands| !commands.is_empty() && !redirects);
    commands.is_some_and(|commands| commands.iter().all(only_looks))
}

#[cfg(test)]
mod tests {
    use super::is_pure;

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
