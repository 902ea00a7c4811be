//! Command lines that are known to look at the work and to leave it as it is.

/// Programs that look, with the first arguments that make them do so; none where they always do.
const KNOWN: [(&str, &[&str]); 24] = [
    ("cargo", &["test", "clippy", "check", "nextest", "deny", "audit"]),
    ("pytest", &[]),
    ("mypy", &[]),
    ("pyright", &[]),
    ("flake8", &[]),
    ("pylint", &[]),
    ("ruff", &["check"]),
    ("eslint", &[]),
    ("tsc", &["--noEmit", "-noEmit"]),
    ("jest", &[]),
    ("go", &["vet", "test"]),
    ("golangci-lint", &["run"]),
    ("staticcheck", &[]),
    ("make", &["test", "check", "lint"]),
    ("npm", &["test", "t"]),
    ("pnpm", &["test"]),
    ("yarn", &["test"]),
    ("shellcheck", &[]),
    ("hadolint", &[]),
    ("yamllint", &[]),
    ("rspec", &[]),
    ("rubocop", &[]),
    ("ctest", &[]),
    ("tox", &[]),
];

/// Flags with which such a program writes, whatever else is said.
const WRITING: [&str; 16] = [
    "--fix",
    "--fix-only",
    "--unsafe-fixes",
    "--add-noqa",
    "--write",
    "-u",
    "--updateSnapshot",
    "--update-snapshots",
    "--snapshot-update",
    "--force-regen",
    "-a",
    "-A",
    "--autocorrect",
    "--auto-correct",
    "--autocorrect-all",
    "--bless",
];

/// Tells whether a text is one such command, or several that are joined by `&&`.
pub(super) fn is_pure(text: &str) -> bool {
    let text = text.trim();
    // Whatever redirects, substitutes or goes on in another line is not one command.
    let is_plain = !text.contains(['\n', ';', '|', '<', '>', '$', '`', '\\', '(', ')', '{', '}', '#', '!'])
        && !text.replace("&&", "").contains('&');
    is_plain && !text.is_empty() && text.split("&&").all(is_pure_command)
}

fn is_pure_command(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let Some((program, arguments)) = words.split_first() else { return false };
    if arguments.iter().any(|word| WRITING.contains(&word.split('=').next().unwrap_or(word))) {
        return false;
    }
    let first = arguments.iter().find(|word| !word.starts_with('+')).copied();
    match (*program, first) {
        ("cargo", Some("fmt")) => arguments.contains(&"--check"),
        ("tsc", _) => arguments.iter().any(|word| ["--noEmit", "-noEmit"].contains(word)),
        ("ruff", Some("format")) | ("black" | "isort" | "prettier", _) => {
            arguments.iter().any(|word| ["--check", "--check-only", "-c", "--diff"].contains(word))
        }
        (program, first) => KNOWN.iter().any(|(known, of)| {
            *known == program && (of.is_empty() || first.is_some_and(|first| of.contains(&first)))
        }),
    }
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
