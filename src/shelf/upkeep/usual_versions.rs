//! The version of a language with which the CI makes most of its checks: a loop makes all of them with one.

use std::collections::{BTreeMap, BTreeSet};

use super::ci::{CiAction, CiCommand, CiContents, UsualVersion, words};
use super::found_repository::Repository;
use super::line_purpose::check_of;
use super::when_jobs_run::version_parts;

/// The inputs that name a version, by their actions.
const INPUTS: [(&str, &str); 7] = [
    ("actions/setup-python", "python-version"),
    ("astral-sh/setup-uv", "python-version"),
    ("actions/setup-node", "node-version"),
    ("actions/setup-go", "go-version"),
    ("actions/setup-java", "java-version"),
    ("ruby/setup-ruby", "ruby-version"),
    ("shivammathur/setup-php", "php-version"),
];

/// Returns the versions with which more checks are made than with the newest one. Where there are none, the newest is as good.
pub(super) fn usual_versions(repository: &Repository, contents: &CiContents) -> Vec<UsualVersion> {
    let is_check = |line: &&CiCommand| {
        !line.needs_others() && line.condition.is_none() && check_of(repository, line).is_ok()
    };
    let lines: Vec<&CiCommand> = contents.commands.iter().filter(is_check).collect();
    INPUTS.iter().filter_map(|(action, input)| usual_version(contents, &lines, action, input)).collect()
}

fn usual_version(
    contents: &CiContents,
    lines: &[&CiCommand],
    action: &str,
    input: &str,
) -> Option<UsualVersion> {
    // A check that several jobs make is tried with the versions of all of them.
    let mut tried: BTreeMap<(&str, Vec<&str>), BTreeSet<&str>> = BTreeMap::new();
    for line in lines {
        let calls = contents.actions.iter().filter(|known| known.job == line.job && known.name == action);
        let of_line = calls.flat_map(|call| versions(call, input));
        tried.entry((&line.directory, words(&line.command))).or_default().extend(of_line);
    }
    let count = |version: &str| tried.values().filter(|of_check| of_check.contains(version)).count();
    let all: BTreeSet<&str> = tried.values().flatten().copied().collect();
    let rank = |version: &&&str| (**version == "stable", version_parts(version));
    let newest = all.iter().max_by_key(rank)?;
    let usual = all.iter().max_by_key(|version| (count(version), rank(version)))?;
    (count(usual) > count(newest)).then(|| UsualVersion {
        action: action.to_owned(),
        input: input.to_owned(),
        version: (*usual).to_owned(),
    })
}

/// Returns the versions that a call of an action has in the jobs of a matrix, or that it names. Of several in a list none is tried alone.
fn versions<'c>(call: &'c CiAction, input: &str) -> impl Iterator<Item = &'c str> {
    let inputs = call.of_rows.iter().chain(&call.with).chain(&call.of_variables);
    let named: Vec<&str> = inputs.filter(|(key, _)| key == input).map(|(_, value)| value.trim()).collect();
    named.into_iter().filter(|value| !value.is_empty() && !value.contains(['\n', ',']))
}
