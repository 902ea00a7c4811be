//! Checks the test files of loops, and says which loops have none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::checked_file::{CheckedFile, UnreadableFile};
use crate::base::diagnostic::{Diagnostic, FindingPlace};
use crate::base::path::DocPath;
use crate::context::Session;
use crate::session::prepare::loop_check::Checked;
use crate::testing::suite::{self, TestPlace};

/// A test file that was checked, and the loop that it is about.
pub(super) struct CheckedTestFile {
    pub(super) file: Result<CheckedFile, UnreadableFile>,
    pub(super) tested: Option<PathBuf>,
}

/// Takes the test files out of what was named; every one of the project where nothing is named.
pub(super) fn take(named: &mut Vec<String>, session: &Session<'_>) -> Vec<TestPlace> {
    let mut places: Vec<TestPlace> = if named.is_empty() { suite::listed(session) } else { Vec::new() };
    named.retain(|name| {
        let place = suite::at_path(Path::new(name), session);
        let is_test = place.is_some();
        places.extend(place);
        !is_test
    });
    places
}

/// Checks a test file.
pub(super) fn check(place: TestPlace, session: &Session<'_>) -> CheckedTestFile {
    let (shown, path) = (place.shown.clone(), place.path.clone());
    match suite::checked(place, session) {
        Ok(checked) => {
            let (sources, tree) = (checked.drawn.sources, checked.drawn.tree);
            let file =
                Checked { name: None, is_ours: true, shown, findings: checked.findings, sources, tree };
            CheckedTestFile { file: Ok(CheckedFile { path, checked: file }), tested: checked.loop_file }
        }
        Err(error) => {
            let file = Err(UnreadableFile { asked: shown, path: Some(path), error: Box::new(error) });
            CheckedTestFile { file, tested: None }
        }
    }
}

/// Notes that a loop of a project has no tests.
pub(super) fn note(tested: &BTreeSet<PathBuf>, checked: &mut Checked, path: &Path) {
    // A library has no name.
    let is_loop = checked.tree.as_ref().is_some_and(|tree| tree.get("name").is_some());
    if !checked.is_ours || !is_loop || tested.contains(path) {
        return;
    }
    let place = FindingPlace::Key(DocPath::root().key("name"));
    let note = |message: String| Diagnostic::note("untested", place, message);
    checked.findings.push(match &checked.name {
        Some(name) => note(format!("the loop `{name}` has no tests"))
            .help(format!("`ll-loop test --generate {name}` begins them")),
        None => note("the loop has no tests".to_owned()),
    });
}
