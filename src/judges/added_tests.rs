//! Tests that a run has added, and what has to be as it was at the start to see whether they prove anything: one that passes
//! there would have passed without the work.
//!
//! Mostly a run begins because a test says no, which it does on the files of the start whatever was added. So the other
//! tests are out of the way meanwhile: the same command runs the added ones alone, without anybody having to know how its
//! tool is told to.

use std::sync::LazyLock;

use regex::Regex;

use super::found_judges::{AddedTest, JudgeChange, JudgesFound, JudgesState, ProofWanted};
use super::judge_catalog::{CATALOG, JudgeKind};
use super::tree::{FileAt, Tree};

/// Where there are more other tests, moving them out of the way costs more than it is worth.
const MOST_OTHERS: usize = 1000;

/// The name of a case of a test, in the languages in which a line begins one.
static CASE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"^\s*(?:(?:async\s+)?(?:def|func|fun|fn|function)\s+([Tt]est\w*|\w+_test)|(?:it|test|specify)\s*\(?\s*["'`]([^"'`]+)["'`])"#,
    )
    .expect("it is a constant")
});

/// Returns what has to be tried; nothing where no test was added, or where a file holds tests and work, so that the work
/// cannot be put back without them.
pub(super) fn wanted(
    changed: &[String],
    start: &dyn Tree,
    end: &dyn Tree,
    found: &JudgesFound,
) -> Option<ProofWanted> {
    let is_test = |path: &str| CATALOG.file(path).is_some_and(|row| row.kind == JudgeKind::Test);
    let is_mixed = |path: &str| {
        let language = CATALOG.language(path);
        let has_tests_inside =
            language.is_some_and(|language| CATALOG.inside.iter().any(|row| row.language == language.name));
        has_tests_inside && CATALOG.file(path).is_none()
    };
    if found.state == JudgesState::Unknown || found.files.iter().any(|file| is_mixed(&file.path)) {
        return None;
    }
    let added = found.files.iter().filter(|file| file.kind == JudgeChange::Added && is_test(&file.path));
    let tests: Vec<AddedTest> = added
        .map(|file| AddedTest {
            path: file.path.clone(),
            cases: new_cases(&file.path, start.file(&file.path), end.file(&file.path)),
            checks: file.checks.clone(),
        })
        .collect();
    let is_work = |path: &&String| !found.files.iter().any(|file| file.path == **path);
    let work = changed.iter().filter(is_work).cloned().collect();
    if tests.is_empty() {
        return None;
    }
    let is_added = |path: &String| tests.iter().any(|test| test.path == *path);
    let others = end.seen().into_iter().filter(|path| is_test(path) && !is_added(path));
    let others: Vec<String> = others.take(MOST_OTHERS + 1).collect();
    (others.len() <= MOST_OTHERS).then_some(ProofWanted { tests, work, others })
}

fn new_cases(path: &str, start: Option<FileAt>, end: Option<FileAt>) -> Vec<String> {
    let names = |text: &str| -> Vec<String> {
        let found = text.lines().filter_map(|line| CASE.captures(line));
        found.filter_map(|case| Some(case.get(1).or_else(|| case.get(2))?.as_str().to_owned())).collect()
    };
    let of = |file: Option<FileAt>| {
        file.map_or_else(Vec::new, |file| names(&String::from_utf8_lossy(&file.bytes)))
    };
    let (before, now) = (of(start), of(end));
    now.into_iter().filter(|name| !before.contains(name)).map(|name| format!("{path}::{name}")).collect()
}
