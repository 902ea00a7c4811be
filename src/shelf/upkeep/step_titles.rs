//! What the name of a step says of the one command that it runs, where the command itself does not say what it checks.

use super::ci::{CiAction, CiCommand, CiContents, is_of_set_up, joined};
use super::found_repository::{Finding, Repository};
use super::install_lines::{is_install, makes_ready};
use super::line_purpose::{has_makefile, script_of};
use super::no_checks::is_plainly_none;
use super::script_lines::{logical_lines, without_assignments};
use super::unused::Reason;
use crate::base::text::after_last;
use crate::tools::{Manner, Purpose, recognise_line};

/// Words by which a name says that its step checks nothing, or more than a loop may do.
const OTHERS: [&str; 37] = [
    "artifact",
    "artifacts",
    "bench",
    "benchmark",
    "benchmarks",
    "cache",
    "comment",
    "commit",
    "coverage",
    "deploy",
    "disk",
    "download",
    "downgrade",
    "environment",
    "fetch",
    "fix",
    "fuzz",
    "if",
    "info",
    "install",
    "out",
    "prepare",
    "publish",
    "push",
    "release",
    "report",
    "restore",
    "results",
    "save",
    "server",
    "setup",
    "space",
    "status",
    "sync",
    "update",
    "upload",
    "whether",
];

/// Words that say that what stands behind them is looked at.
const LOOKS: [&str; 10] =
    ["assert", "check", "checks", "confirm", "ensure", "lint", "validate", "verify", "verifies", "validates"];

/// Programs that every machine of a CI has, by which files are looked at.
const OF_MACHINE: [&str; 10] = ["bash", "cmp", "diff", "egrep", "fgrep", "grep", "jq", "sh", "test", "["];

/// Reads what a name says: `Verify the generated files`, `7. Run the native tests`.
pub(super) fn said_purpose(name: &str) -> Option<Purpose> {
    // What stands in parentheses says how: `Lint (release)`.
    let plain = name.split(" (").next().unwrap_or("");
    if plain.contains("${{") {
        return None;
    }
    let lower = plain.to_ascii_lowercase();
    let is_word = |word: &&str| word.bytes().any(|byte| byte.is_ascii_alphabetic());
    let signs = |c: char| c.is_whitespace() || matches!(c, ',' | ':' | ';' | '/' | '"' | '`' | '\'');
    let words: Vec<&str> = lower.split(signs).filter(is_word).collect();
    if words.iter().any(|word| OTHERS.contains(word)) {
        return None;
    }
    let is_test = |word: &&&str| matches!(**word, "test" | "tests" | "testing" | "testsuite");
    let (first, last) = (words.first()?, words.last()?);
    let begins = |word: &str| words.windows(2).any(|pair| pair[0] == "and" && pair[1] == word);
    let looks = LOOKS.contains(first)
        || matches!(*last, "lint" | "linter" | "linters" | "check" | "checks")
        || LOOKS.iter().any(|word| begins(word));
    let tests =
        is_test(&first) || is_test(&last) || (*first == "run" && words.iter().any(|word| is_test(&word)));
    match () {
        () if tests => Some(Purpose::Test),
        () if looks => Some(Purpose::Lint),
        () => None,
    }
}

/// Tells whether a script of a step does one thing, beside what makes ready for it and what is plainly no check.
pub(super) fn does_one_thing(script: &str) -> bool {
    let does = |line: &str| {
        let line = line.trim();
        !(line.starts_with('#') || line.starts_with("cd ") || makes_ready(line) || is_plainly_none(line))
    };
    logical_lines(script).iter().filter(|(_, line)| does(line)).count() == 1
}

/// Returns the check that a line is by the name of its step, though by itself it is none for a reason. `has_checks` says whether another
/// line of its job is one: then the job that it needs is made ready anyway.
pub(super) fn check_by_title(
    repository: &Repository,
    contents: &CiContents,
    line: &CiCommand,
    why: Reason,
    has_checks: bool,
) -> Option<Finding> {
    // Of other reasons, each says what is missing, and a name does not bring that.
    let is_open = matches!(
        why,
        Reason::Unknown
            | Reason::UnknownScript
            | Reason::NotACheckOfTool
            | Reason::NamesSayNothing
            | Reason::Prepares
    );
    let by_option = || asks_only(&line.command).then_some(Purpose::Lint);
    let said = line.title.as_deref().and_then(said_purpose).or_else(by_option).filter(|_| is_open)?;
    let is_free = line.stands_by_itself() && line.condition.is_none() && !line.is_prepared_or_secret();
    let is_ready = has_checks || has_usual_set_up(contents, &line.job);
    if !(is_free && is_ready && looks(repository, line) && is_at_hand(repository, contents, line)) {
        return None;
    }
    // Behind the tests of its job, it may look at what those have left.
    let is_test = |other: &CiCommand| {
        other.job == line.job
            && other.evidence.line < line.evidence.line
            && recognise_line(&other.command).is_some_and(|found| found.purpose == Some(Purpose::Test))
    };
    let purpose = if contents.commands.iter().any(is_test) { Purpose::Test } else { said };
    Some(Finding { purpose: Some(purpose), ..line.as_test() })
}

/// Tells whether a command says by an option that it writes nothing of what it could.
fn asks_only(command: &str) -> bool {
    command.split_whitespace().any(|word| matches!(word, "--check" | "--check-only" | "--verify"))
}

/// Tells whether a command may look at the files of the repository: it installs, writes and publishes nothing, and names nothing that is
/// not there.
fn looks(repository: &Repository, line: &CiCommand) -> bool {
    let command = line.command.as_str();
    // Without a threshold, what changes the code to see whether a test notices only measures.
    let does_more = [
        "publish", "deploy", "upload", "push", "docker ", "kubectl ", "sudo ", "cover", "pitest", "mutation",
        "mutants", "stryker",
    ];
    let writes = recognise_line(command).is_some_and(|found| found.manner == Manner::Mends);
    let is_none = is_install(command) || is_plainly_none(command) || writes;
    let is_there = |word: &str| {
        !word.starts_with("./") || word.contains('*') || repository.has_place(&joined(&line.directory, word))
    };
    !is_none
        && !does_more.iter().any(|word| command.contains(word))
        && without_assignments(command).split_whitespace().all(is_there)
}

/// Tells whether a job sets nothing up but what other jobs do in the same versions: the checks of those and of this one need one machine.
fn has_usual_set_up(contents: &CiContents, job: &str) -> bool {
    let versions = |action: &CiAction| {
        let inputs = action.inputs().chain(&action.of_variables);
        let mut found: Vec<(String, String)> =
            inputs.filter(|(name, _)| name.contains("version")).cloned().collect();
        found.sort();
        found
    };
    let is_same = |one: &CiAction, other: &CiAction| {
        other.job != job && other.name == one.name && versions(other) == versions(one)
    };
    let mut own = contents.actions.iter().filter(|action| action.job == job && is_of_set_up(&action.name));
    own.all(|action| contents.actions.iter().any(|other| is_same(action, other)))
}

/// Tells whether the program of a line is there wherever its job is made ready: it is of the repository or the machine, brought along by
/// what sets a language up, or installed by a line or an action of its job.
fn is_at_hand(repository: &Repository, contents: &CiContents, line: &CiCommand) -> bool {
    let words: Vec<&str> = without_assignments(&line.command).split_whitespace().collect();
    let Some(program) = words.first() else { return false };
    match words.as_slice() {
        ["make", ..] => has_makefile(repository, line),
        // What cargo is called with may be a program of its own.
        ["cargo", name, ..] if recognise_line(&line.command).is_none() && !is_of_cargo(name) => {
            is_installed(contents, line, &format!("cargo-{name}"))
        }
        _ if RUNNERS.contains(program) || OF_MACHINE.contains(program) => true,
        _ if recognise_line(&line.command).is_some() => true,
        _ if program.starts_with("vendor/bin/") => repository.has("composer.json"),
        _ if program.contains('/') => script_of(repository, &line.directory, &line.command).is_some(),
        _ => is_installed(contents, line, program),
    }
}

/// Tells whether cargo itself has a subcommand.
fn is_of_cargo(name: &str) -> bool {
    name.starts_with('+')
        || matches!(
            name,
            "bench"
                | "build"
                | "check"
                | "doc"
                | "metadata"
                | "package"
                | "run"
                | "rustc"
                | "rustdoc"
                | "test"
                | "tree"
                | "update"
                | "verify-project"
                | "xtask"
        )
}

/// Tells whether a line or an action of a job installs a program, by its name.
fn is_installed(contents: &CiContents, line: &CiCommand, program: &str) -> bool {
    let is_name = |word: &str| {
        let plain = word.trim_matches(['"', '\'']);
        let name = plain.split(['@', '=', '<', '>', '~', '[']).next().unwrap_or("");
        after_last(name, &['/']) == program
    };
    let mut of_job = contents.commands.iter().filter(|other| other.job == line.job);
    let mut actions = contents.actions.iter().filter(|action| action.job == line.job);
    of_job.any(|other| is_install(&other.command) && other.command.split_whitespace().any(is_name))
        || actions.any(|action| {
            let is_input = |value: &str| value.split([',', '\n', ' ']).any(|word| is_name(word.trim()));
            action.inputs().any(|(_, value)| is_input(value))
        })
}

/// Runners of tasks and languages, whose programs the set-up of a job brings along.
pub(super) const RUNNERS: [&str; 29] = [
    "make",
    "just",
    "task",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "npx",
    "node",
    "deno",
    "cargo",
    "go",
    "python",
    "python3",
    "uv",
    "poetry",
    "pdm",
    "hatch",
    "tox",
    "nox",
    "bundle",
    "rake",
    "composer",
    "php",
    "mvn",
    "./mvnw",
    "gradle",
    "./gradlew",
    "mix",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whether_its_step_checks() {
        for name in [
            "Check imports",
            "Validate manual schema",
            "7. Verify Generated Config File",
            "check-external-types check",
            "Rebuild Wasm and verify it hasn't changed",
            "Lint (release)",
            "Shell lint",
        ] {
            assert_eq!(said_purpose(name), Some(Purpose::Lint), "{name}");
        }
        for name in [
            "UI Tests",
            "Run native tests with metadata",
            "Test External Adapters",
            "Tests",
            "Test install.sh",
        ] {
            assert_eq!(said_purpose(name), Some(Purpose::Test), "{name}");
        }
        for name in [
            "Check out the code",
            "Check if there is a release",
            "Check disk space",
            "Install test dependencies",
            "Setup tests",
            "Upload test results",
            "Generate coverage report",
            "Build the documents",
            "Check ${{ matrix.what }}",
            "Run the linter's server",
            "",
        ] {
            assert_eq!(said_purpose(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_is_about_a_script_that_does_one_thing() {
        for script in ["./verify", "# why\nmkdir -p out\n./verify out\n", "cd docs\n./verify a \\\n  b\n"] {
            assert!(does_one_thing(script), "{script}");
        }
        for script in ["", "echo a", "./configure\n./verify"] {
            assert!(!does_one_thing(script), "{script}");
        }
    }
}
