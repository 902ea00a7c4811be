//! What a loop says of reuse, where everything is known that its checks read: only then can an earlier run stand for a later one.
//! A task, a program of somebody's own, a tool that asks what is installed, or a lock file that is not there: nothing is said.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::chosen_commands::Check;
use super::found_repository::Repository;
use super::yaml_style::quoted;
use crate::tools::{Ecosystem, Manner, Recognised, recognise};

/// Signs with which a shell does more than to call one program.
const SIGNS: [char; 17] =
    [';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '*', '?', '[', '~', '\n', '#'];

/// All files that git does not ignore.
const ALL: &str = "**";

/// The key `reuse` of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoopReuse {
    reads: BTreeSet<&'static str>,
    tools: BTreeSet<&'static str>,
    env: BTreeSet<&'static str>,
}

impl LoopReuse {
    /// Finds out what the checks of a loop read; nothing where that is not known of each.
    pub(super) fn of<'c>(
        checks: impl IntoIterator<Item = &'c Check>,
        packages: &[String],
        repository: &Repository,
    ) -> Option<Self> {
        let mut all = Self { reads: BTreeSet::new(), tools: BTreeSet::new(), env: BTreeSet::new() };
        for check in checks {
            let found = plainly_called(&check.finding.command)?;
            let ecosystem = found.tool.ecosystem();
            let reads = found.check.reads.iter().map(String::as_str);
            // Where it cannot be asked for its version, results of another version would have the same key.
            let version = found.tool.version.as_deref()?;
            if found.check.reads.is_empty() {
                return None;
            }
            let is_of_all = found.check.reads.iter().any(|read| read == ALL);
            if hides_some(ecosystem, repository) {
                return None;
            }
            let is_locked = |lock: &String| is_in_each(lock, &check.finding.directory, packages, repository);
            // Without a lock file, the same files can be checked with other dependencies tomorrow.
            if is_of_all && !ecosystem.locks.is_empty() && !ecosystem.locks.iter().any(is_locked) {
                return None;
            }
            all.reads.extend(reads);
            all.tools.insert(version);
            all.env.extend(ecosystem.env.iter().map(String::as_str));
        }
        (!all.reads.is_empty()).then_some(all)
    }

    /// Writes the key. What is read is one pattern: each pattern has to hold some file, and what is not there yet counts as
    /// soon as it is.
    pub(super) fn text(&self) -> String {
        let reads: Vec<&str> = self.reads.iter().copied().collect();
        let inputs = match reads.as_slice() {
            all if all.contains(&ALL) => ALL.to_owned(),
            [one] => (*one).to_owned(),
            several => format!("{{{}}}", several.join(",")),
        };
        let mut out = format!("reuse:\n  inputs:\n    - {}\n", quoted(&inputs));
        for (key, values) in [("tools", &self.tools), ("env", &self.env)] {
            if !values.is_empty() {
                let _ = writeln!(out, "  {key}:");
                for value in values {
                    let _ = writeln!(out, "    - {}", quoted(value));
                }
            }
        }
        out
    }
}

/// Returns the tool that a command calls itself, by its own name, and does nothing else.
fn plainly_called(command: &str) -> Option<Recognised> {
    if command.contains(SIGNS) {
        return None;
    }
    let words = shlex::split(command)?;
    let found = recognise(&words)?;
    // `+nightly` is another program than the one whose version is asked for.
    // A variable that is set there is in the key, as the command is.
    let is_assigned = |word: &&String| !word.starts_with('-') && word.contains('=');
    let program = words.iter().find(|word| !is_assigned(word));
    let is_plain = program == Some(&found.tool.name) && !words.iter().any(|word| word.starts_with('+'));
    (is_plain && !found.is_started_by_others() && found.manner == Manner::Pure).then_some(found)
}

/// Tells whether git ignores files that a check of this language may read, such as those that a generator makes: they are in no
/// key. A lock file among them locks nothing.
fn hides_some(ecosystem: &Ecosystem, repository: &Repository) -> bool {
    let sources = ecosystem.inputs.iter().filter_map(|input| input.rsplit_once('*').map(|(_, end)| end));
    let locks = ecosystem.locks.iter().map(String::as_str);
    let ends: Vec<&str> = sources.filter(|end| end.starts_with('.')).chain(locks).collect();
    let is_one = |line: &str| {
        let line = line.trim_end();
        let is_source = ends.iter().any(|end| line.ends_with(end));
        !line.starts_with(['#', '!']) && (is_source || line.contains("generated") || line.contains(".env"))
    };
    let files = repository.paths().filter(|path| path.rsplit('/').next() == Some(".gitignore"));
    files.filter_map(|path| repository.text(path)).any(|text| text.lines().any(is_one))
}

/// Tells whether a file is where a check is made, or above it, for each package.
fn is_in_each(name: &str, below: &str, packages: &[String], repository: &Repository) -> bool {
    let is_above = |folder: &str| {
        let mut folder = folder.trim_matches('/');
        loop {
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            if repository.has(&path) {
                return true;
            }
            if folder.is_empty() {
                return false;
            }
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        }
    };
    match packages {
        [] => is_above(below),
        packages => packages.iter().all(|package| is_above(&format!("{package}/{below}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::found_repository::{Evidence, Finding};
    use super::*;

    fn check(command: &str) -> Check {
        let evidence = Evidence { file: "ci.yml".to_owned(), line: 1, task: None };
        let finding = Finding {
            purpose: None,
            is_fix: false,
            command: command.to_owned(),
            directory: String::new(),
            evidence,
        };
        Check { name: "check".to_owned(), finding, fix: None, needs_build: false }
    }

    fn text(commands: &[&str], files: &[&str]) -> Option<String> {
        let repository = Repository::new(files.iter().map(|file| ((*file).to_owned(), String::new())));
        let checks: Vec<Check> = commands.iter().map(|command| check(command)).collect();
        LoopReuse::of(&checks, &[], &repository).map(|reuse| reuse.text())
    }

    #[test]
    fn what_is_known_of_each_check_is_said() {
        insta::assert_snapshot!(text(&["gofmt -l ."], &[]).unwrap(), @r#"
        reuse:
          inputs:
            - "*.go"
          tools:
            - go version
          env:
            - CGO_ENABLED
            - GO111MODULE
            - GOARCH
            - GOEXPERIMENT
            - GOFLAGS
            - GOOS
            - GOTOOLCHAIN
            - GOWORK
        "#);
        let formats = text(&["cargo fmt --check"], &["Cargo.toml"]).unwrap();
        assert!(formats.contains("- \"{*.rs,.rustfmt.toml,Cargo.toml,"), "{formats}");
        let all = text(&["cargo fmt --check", "cargo test"], &["Cargo.lock"]).unwrap();
        assert!(all.contains("- \"**\"\n") && all.contains("- cargo --version --verbose\n"), "{all}");
    }

    #[test]
    fn nothing_is_said_where_git_ignores_what_a_check_may_read() {
        let with = |ignored: &str| {
            let files = [("Cargo.lock", ""), (".gitignore", ignored)];
            let repository = Repository::new(files.map(|(path, text)| (path.to_owned(), text.to_owned())));
            LoopReuse::of(&[check("cargo test")], &[], &repository).is_some()
        };
        assert!(with("/target\n# *.rs\n**/*.rs.bk\n"));
        for ignored in ["*.pb.rs\n", "/Cargo.lock\n", "src/generated/\n", ".env\n"] {
            assert!(!with(ignored), "{ignored}");
        }
    }

    #[test]
    fn nothing_is_said_where_something_is_not_known_of_one_check() {
        for (commands, files) in [
            (&["cargo fmt --check", "cargo test"][..], &["Cargo.toml"][..]),
            (&["cargo +nightly fmt --check"], &["Cargo.lock"]),
            (&["cargo audit"], &["Cargo.lock"]),
            (&["cargo fmt --check", "./scripts/check"], &["Cargo.lock"]),
            (&["cargo test && ./scripts/check"], &["Cargo.lock"]),
            (&["npm test"], &["package-lock.json"]),
            (&["uv run ruff format --check"], &["uv.lock"]),
            (&["goimports -l ."], &["go.sum"]),
            (&["pytest"], &["uv.lock"]),
            (&["make lint"], &[]),
            (&[], &[]),
        ] {
            assert_eq!(text(commands, files), None, "{commands:?}");
        }
    }
}
