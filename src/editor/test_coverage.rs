//! Which ways of a loop its tests take, for whoever is writing it. Cases are played with their mocks, so nothing is started.

use std::path::PathBuf;
use std::time::Duration;

use crate::context::Session;
use crate::testing::edges::Coverage;
use crate::testing::suite::{self, TestedFile};

/// Somebody waits for the answer: tests that take longer are left to `ll-loop test`.
const LONGEST: Duration = Duration::from_millis(300);

/// Plays the tests in these files, which are all about one loop. Nothing is said where one of them cannot be read, or where that
/// takes too long.
pub(super) fn of_tests(files: &[PathBuf], session: &Session<'_>) -> Option<Coverage> {
    let mut goes_on = suite::while_within(LONGEST);
    let mut all: Option<Coverage> = None;
    for file in files {
        let mut tested = TestedFile::read(suite::placed(file, session), session).ok()?;
        let covered = suite::covered(&mut tested, &mut goes_on)?;
        match &mut all {
            Some(all) => all.add(covered),
            None => all = Some(covered),
        }
    }
    all
}
