//! Lines that build a target of `CMake`, `cmake --build build --target lint`: with what configures their directory they are one check.

use super::ci::{CiCommand, CiContents};
use super::ci_checks::ComposedCheck;
use super::found_repository::Finding;
use super::script_lines::raw_words;
use crate::tools::{Purpose, is_other, is_some_check, is_some_test, task_kind};

/// How a command calls `CMake` to build.
struct BuildCall<'c> {
    directory: &'c str,
    targets: Vec<&'c str>,
    words: Vec<&'c str>,
}

impl<'c> BuildCall<'c> {
    fn of(command: &'c str) -> Option<Self> {
        let words = raw_words(command)?;
        let ["cmake", "--build", directory, rest @ ..] = words.as_slice() else { return None };
        let mut targets = Vec::new();
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            match *word {
                "--target" | "-t" => targets.extend(rest.next()),
                word => targets.extend(word.strip_prefix("--target=")),
            }
        }
        Some(Self { directory: plain(directory), targets, words })
    }
}

fn plain(directory: &str) -> &str {
    directory.trim_matches(['"', '\'']).trim_start_matches("./").trim_end_matches('/')
}

/// Returns the checks that build a target.
pub(super) fn target_checks(contents: &CiContents) -> Vec<ComposedCheck> {
    let of_line = |at: usize| Some(ComposedCheck { finding: of_target(contents, at)?, lines: vec![at] });
    (0..contents.commands.len()).filter_map(of_line).collect()
}

/// Returns the check that a line is: all that configures and builds before it in its job, in a directory of its own.
fn of_target(contents: &CiContents, at: usize) -> Option<Finding> {
    let line = contents.commands.get(at).filter(|line| line.stands_by_itself())?;
    let call = BuildCall::of(&line.command).filter(|call| !call.targets.is_empty())?;
    let purpose = purpose(&call.targets)?;
    let before: Vec<&CiCommand> =
        contents.commands.iter().take(at).filter(|other| other.job == line.job).collect();
    let is_here = |other: &&&CiCommand| other.directory == line.directory && other.stands_by_itself();
    let configured =
        before.iter().rev().filter(is_here).find_map(|other| configured(&other.command, call.directory))?;
    let builds = before.iter().filter(is_here).filter_map(|other| BuildCall::of(&other.command));
    let builds = builds.filter(|build| build.targets.is_empty() && build.directory == call.directory);
    let mut commands = vec!["build=$(mktemp -d)".to_owned(), configured];
    commands.extend(builds.map(|build| built(&build)));
    commands.push(built(&call));
    Some(Finding {
        purpose: Some(purpose),
        is_fix: false,
        command: commands.join(" && "),
        directory: line.directory.clone(),
        evidence: line.evidence.clone(),
    })
}

/// Tells whether a check builds the targets of a line.
pub(super) fn builds_same(check: &str, line: &str) -> bool {
    let Some(call) = BuildCall::of(line) else { return false };
    let mut calls = check.split(" && ").filter_map(BuildCall::of);
    calls.any(|known| known.targets == call.targets)
}

/// Tells whether a command builds a target by its name.
pub(super) fn names_target(command: &str) -> bool {
    BuildCall::of(command).is_some_and(|call| !call.targets.is_empty())
}

/// Returns a command that configures a directory, with another in its place.
fn configured(command: &str, directory: &str) -> Option<String> {
    let words = raw_words(command)?;
    let ["cmake", rest @ ..] = words.as_slice() else { return None };
    let mut all = vec!["cmake".to_owned()];
    let (mut rest, mut is_meant) = (rest.iter(), false);
    while let Some(word) = rest.next() {
        let named = if *word == "-B" { rest.next().copied() } else { word.strip_prefix("-B") };
        match named {
            Some(named) => {
                is_meant = plain(named) == directory;
                all.extend(["-B".to_owned(), PLACE.to_owned()]);
            }
            None => all.push((*word).to_owned()),
        }
    }
    is_meant.then(|| all.join(" "))
}

/// The directory that a check builds in.
const PLACE: &str = "\"$build\"";

fn built(call: &BuildCall<'_>) -> String {
    let place = |(at, word): (usize, &&str)| if at == 2 { PLACE.to_owned() } else { (*word).to_owned() };
    call.words.iter().enumerate().map(place).collect::<Vec<_>>().join(" ")
}

/// Returns what targets are about; nothing for what writes, installs or packs.
fn purpose(targets: &[&str]) -> Option<Purpose> {
    let is_plain = |name: &&str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
            && !is_other(name)
            && !name.split(['_', '-']).any(|word| matches!(word, "package" | "dist" | "upload" | "run"))
    };
    let kinds: Vec<_> = targets.iter().map(|name| task_kind(name, "")).collect();
    if !targets.iter().all(is_plain) || kinds.iter().flatten().any(|kind| kind.mends) {
        return None;
    }
    let of_kind = kinds.iter().flatten().find_map(|kind| kind.purpose);
    let by_name = || match () {
        () if targets.iter().any(|name| is_some_test(name)) => Purpose::Test,
        () if targets.iter().any(|name| is_some_check(name)) => Purpose::Lint,
        () => Purpose::Build,
    };
    Some(of_kind.unwrap_or_else(by_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_configured_in_another_place() {
        for (command, expected) in [
            ("cmake -S . -B build -DA=ON", Some("cmake -S . -B \"$build\" -DA=ON")),
            ("cmake -Bbuild/ -G Ninja", Some("cmake -B \"$build\" -G Ninja")),
            ("cmake -S . -B other", None),
            ("cmake ..", None),
            ("make", None),
        ] {
            assert_eq!(configured(command, "build").as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn the_name_of_a_target_says_what_it_is_about() {
        for (name, expected) in [
            ("ci_cpplint", Some(Purpose::Lint)),
            ("check", Some(Purpose::Lint)),
            ("ci_offline_tests", Some(Purpose::Test)),
            ("fuzzers", Some(Purpose::Build)),
            ("install", None),
            ("format-fix", None),
            ("package", None),
        ] {
            assert_eq!(purpose(&[name]), expected, "{name}");
        }
        assert!(builds_same(
            "build=$(mktemp -d) && cmake --build \"$build\" --target a",
            "cmake --build x -t a"
        ));
        assert!(!builds_same("cmake --build \"$build\" --target a", "cmake --build x -t b"));
    }
}
