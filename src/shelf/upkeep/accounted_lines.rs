//! Accounts for everything that the CI of a repository runs, and for its tasks: what no check of a loop stands for is named with the
//! reason, unless it is plainly no check.

use std::collections::BTreeSet;

use super::ci::{CALL_OF_ACTION, words};
use super::cmake_targets::{builds_same, names_target};
use super::found_repository::{Evidence, Finding, Repository};
use super::hooks::OF_OTHERS;
use super::lined_yaml;
use super::no_checks::{is_plain_action, is_plainly_none};
use super::script_lines::logical_lines;
use super::task_texts::does;
use super::unused::{Reason, UnusedCommand};
use crate::base::node::Node;
use crate::base::text::{first_word, up_to};

/// Returns those that no check stands for and that may check something, each once.
pub(super) fn accounted(
    repository: &Repository,
    all: Vec<UnusedCommand>,
    checks: &[&Finding],
) -> Vec<UnusedCommand> {
    let mut known = BTreeSet::new();
    let mut all = all;
    // Of one command in several places, the place counts that says most of it here.
    all.sort_by_key(|one| is_of_others(one.why));
    let mut kept: Vec<UnusedCommand> = all
        .into_iter()
        .filter(|one| !is_none(repository, one))
        .filter(|one| is_variant(one.why) || !is_done(repository, one, checks))
        .filter(|one| known.insert((one.command.clone(), one.directory.clone())))
        .collect();
    kept.sort_by(|one, other| place(&one.evidence).cmp(&place(&other.evidence)));
    kept
}

/// Tells whether a reason is about the place where a command stands alone: on another machine, or where nobody looks.
fn is_of_others(why: Reason) -> bool {
    matches!(
        why,
        Reason::NeedsMacos
            | Reason::NeedsWindows
            | Reason::MayFail
            | Reason::OfPublishing
            | Reason::OfScanners
            | Reason::OtherShell
            | Reason::InStatement
    )
}

/// Tells whether a reason says that a check stands for most of it: what is left, no check does.
fn is_variant(why: Reason) -> bool {
    matches!(why, Reason::OnlyMeasures | Reason::OtherInstalls)
}

fn place(evidence: &Evidence) -> (&str, usize) {
    (&evidence.file, evidence.line)
}

/// Returns the files of systems that are not read.
pub(super) fn of_other_systems(repository: &Repository) -> impl Iterator<Item = UnusedCommand> {
    let is_one = |path: &&str| OF_OTHERS.iter().any(|begin| path.starts_with(begin));
    repository.paths().filter(is_one).map(|path| UnusedCommand {
        command: path.to_owned(),
        directory: String::new(),
        evidence: Evidence { file: path.to_owned(), line: 1, task: None },
        why: Reason::OtherCi,
    })
}

/// Tells whether a line, or an action, is plainly no check.
fn is_none(repository: &Repository, one: &UnusedCommand) -> bool {
    if one.why == Reason::OtherCi {
        return false;
    }
    let Some(action) = one.command.strip_prefix(CALL_OF_ACTION) else { return is_plainly_none(&one.command) };
    let name = up_to(action, &['@']);
    is_plain_action(name) || name.strip_prefix("./").is_some_and(|place| only_sets_up(repository, place))
}

/// Tells whether all steps of an action of the repository are plainly no checks.
fn only_sets_up(repository: &Repository, place: &str) -> bool {
    let place = place.trim_end_matches('/');
    let files = ["action.yml", "action.yaml"].map(|name| match place {
        "" => name.to_owned(),
        place => format!("{place}/{name}"),
    });
    let text = files.iter().find_map(|file| repository.text(file));
    let Some(root) = text.and_then(lined_yaml::parse) else { return false };
    let steps = lined_yaml::items(root.get("runs").and_then(|runs| runs.get("steps")));
    let is_line_plain = |step| {
        let lines = lined_yaml::text(Node::get(step, "run")).map(logical_lines);
        lines.iter().flatten().all(|(_, line)| is_plainly_none(line))
    };
    let is_call_plain = |step| {
        lined_yaml::text(Node::get(step, "uses")).is_none_or(|uses| is_plain_action(up_to(uses, &['@'])))
    };
    !steps.is_empty() && steps.iter().all(|step| is_line_plain(step) && is_call_plain(step))
}

/// Tells whether a check of a loop does what a line does.
fn is_done(repository: &Repository, one: &UnusedCommand, checks: &[&Finding]) -> bool {
    // What an action does, no words of a task say.
    if one.command.starts_with(CALL_OF_ACTION) {
        return checks.iter().any(|check| check.evidence == one.evidence);
    }
    let line = words(&one.command);
    let is_toolchain = |word: &str| word.starts_with('+');
    let finding = Finding {
        purpose: None,
        is_fix: false,
        command: one.command.clone(),
        directory: one.directory.clone(),
        evidence: one.evidence.clone(),
    };
    let stands_for = |check: &Finding| {
        let of_check = words(&check.command);
        // Of a line, a check may have got a toolchain and lost what only measures.
        let is_same_line = check.evidence == one.evidence
            && line.iter().filter(|word| !is_toolchain(word)).all(|word| of_check.contains(word));
        let plain = |words: &[&str]| -> Vec<String> {
            words.iter().filter(|word| !is_toolchain(word)).map(|word| (*word).to_owned()).collect()
        };
        let is_same = check.directory == one.directory && plain(&of_check) == plain(&line);
        // It configures and builds by itself what it tests.
        let is_of_cmake =
            check.command.contains("cmake --build") && matches!(first_word(&one.command), "cmake" | "ctest");
        let is_of_target =
            builds_same(&check.command, &one.command) && check.evidence.file == one.evidence.file;
        let is_configured = is_of_cmake && !names_target(&one.command);
        is_same_line || is_same || is_of_target || is_configured || does(repository, check, &finding)
    };
    checks.iter().any(|check| stands_for(check))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unused(command: &str) -> UnusedCommand {
        UnusedCommand {
            command: command.to_owned(),
            directory: String::new(),
            evidence: Evidence { file: "ci.yml".to_owned(), line: 3, task: None },
            why: Reason::Unknown,
        }
    }

    #[test]
    fn what_a_check_does_or_nothing_is_looked_at_by_is_not_named() {
        let files = [
            ("Makefile", "test:\n\tpytest -q\n"),
            (".travis.yml", ""),
            (
                "a/action.yml",
                "runs:\n  using: composite\n  steps:\n    - run: npm ci\n    - uses: actions/cache@v4\n",
            ),
            ("b/action.yml", "runs:\n  using: composite\n  steps:\n    - run: npm test\n"),
        ];
        let repository = Repository::new(files.map(|(path, text)| (path.to_owned(), text.to_owned())));
        let check = Finding {
            purpose: None,
            is_fix: false,
            command: "make test".to_owned(),
            directory: String::new(),
            evidence: Evidence { file: "Makefile".to_owned(), line: 1, task: Some("test".to_owned()) },
        };
        let lines = [
            "make test",
            "pytest",
            "echo x",
            "./check",
            "./check",
            "uses: actions/checkout@v4",
            "uses: ./a",
            "uses: ./b",
        ];
        let named = accounted(&repository, lines.map(unused).to_vec(), &[&check]);
        let named: Vec<&str> = named.iter().map(|one| one.command.as_str()).collect();
        assert_eq!(named, ["./check", "uses: ./b"]);
        assert_eq!(of_other_systems(&repository).count(), 1);
    }
}
