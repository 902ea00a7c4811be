//! Checks the test files of loops, and says which loops have none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::base::diagnostic::{Diagnostic, FindingPlace};
use crate::base::path::DocPath;
use crate::session::context::Session;
use crate::session::error::Error;
use crate::session::prepare::loop_check::Checked;
use crate::testing::suite::{self, TestPlace};

/// The test files that are checked beside loops.
pub(super) struct CheckedTestFiles {
    /// What was found in each, or why it cannot be read.
    pub(super) files: Vec<Result<Checked, (String, Error)>>,
    /// The loops that have tests; none where not all loops of the project are checked.
    tested: Option<BTreeSet<PathBuf>>,
}

/// Takes the test files out of what was named, and checks them; every one of the project where nothing is named.
pub(super) fn check(named: &mut Vec<String>, session: &Session<'_>) -> CheckedTestFiles {
    let is_all = named.is_empty();
    let mut places: Vec<TestPlace> = if is_all { suite::listed(session) } else { Vec::new() };
    named.retain(|name| {
        let place = suite::at_path(Path::new(name), session);
        let is_test = place.is_some();
        places.extend(place);
        !is_test
    });
    let mut all = CheckedTestFiles { files: Vec::new(), tested: is_all.then(BTreeSet::new) };
    for place in places {
        let shown = place.shown.clone();
        let file = match suite::checked(place, session) {
            Ok(checked) => {
                if let (Some(tested), Some(file)) = (&mut all.tested, checked.loop_file) {
                    tested.insert(file);
                }
                let (sources, tree) = (checked.drawn.sources, checked.drawn.tree);
                Ok(Checked { name: None, is_ours: true, shown, findings: checked.findings, sources, tree })
            }
            Err(error) => Err((shown, error)),
        };
        all.files.push(file);
    }
    all
}

impl CheckedTestFiles {
    /// Notes that a loop of a project has no tests.
    pub(super) fn note(&self, checked: &mut Checked, path: &Path) {
        let Some(tested) = &self.tested else { return };
        let is_loop = checked.tree.as_ref().is_some_and(|tree| tree.get("name").is_some());
        if !checked.is_ours || !is_loop || tested.contains(path) {
            return;
        }
        let name = checked.name.clone().unwrap_or_default();
        let message = format!("the loop `{name}` has no tests");
        let help = format!("`ll-loop test --generate {name}` begins them");
        let place = FindingPlace::Key(DocPath::root().key("name"));
        checked.findings.push(Diagnostic::note("untested", place, message).help(help));
    }
}
