//! Runs tests again when a file changes that they depend on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::suite::{TestPlace, TestedFile, find_tests};
use crate::context::Session;
use crate::context::error::Error;
use crate::context::talk::Silence;

/// How often is looked whether a file has changed.
// A change is to be answered within 100 ms, the tests included.
const LOOK: Duration = Duration::from_millis(40);

/// Runs tests, and again those that a change touches, until the program is ended.
///
/// # Errors
/// There are no tests at the beginning. Later, files may go and come again: editors replace them like that.
pub(crate) fn watch(
    names: &[String],
    session: &Session<'_>,
    run: &mut dyn FnMut(&[String]) -> Result<(), Error>,
) -> Result<u8, Error> {
    let mut known: BTreeMap<PathBuf, WatchedTest> = BTreeMap::new();
    let mut found = find_tests(names, session)?;
    loop {
        let mut touched = Vec::new();
        for place in &found {
            let path = place.path.display().to_string();
            match known.get_mut(&place.path).map(WatchedTest::changed) {
                Some(None) => {}
                Some(Some(file)) => touched.push((path, Some(file))),
                None => touched.push((path, None)),
            }
        }
        if !touched.is_empty() {
            let mut files: Vec<String> =
                touched.iter().filter_map(|(_, file)| Some(shown(file.as_ref()?, session))).collect();
            files.dedup();
            if !files.is_empty() {
                session.talk.note(&format!("{} changed", files.join(", ")));
            }
            // What it depends on is looked at first: a change while the tests run is one more.
            for place in &found {
                known.insert(place.path.clone(), WatchedTest::of(place, session));
            }
            let tests: Vec<String> = touched.into_iter().map(|(test, _)| test).collect();
            // A file may be broken for a moment while it is edited; the watch goes on.
            if let Err(error) = run(&tests) {
                session.talk.warning(error.message());
            }
        }
        std::thread::sleep(LOOK);
        let were_there = !found.is_empty();
        found = find_tests(names, session).unwrap_or_default();
        if were_there && found.is_empty() {
            session.talk.note("there are no tests any more: waiting for some");
        }
        // A file that comes back is a new one, and is run.
        known.retain(|path, _| found.iter().any(|place| place.path == *path));
    }
}

fn shown(file: &Path, session: &Session<'_>) -> String {
    file.strip_prefix(&session.cwd).unwrap_or(file).display().to_string()
}

/// When a file was changed last, and its size; nothing where it is not there.
type Stamp = Option<(SystemTime, u64)>;

/// The files that a test depends on, as they were when it ran.
struct WatchedTest {
    files: Vec<(PathBuf, Stamp)>,
}

impl WatchedTest {
    fn of(place: &TestPlace, session: &Session<'_>) -> Self {
        // What is wrong with the loop is said when its tests are run.
        let quiet = session.clone().talking_to(&Silence);
        let files = match TestedFile::read(place.clone(), &quiet) {
            Ok(mut tests) => tests.depends_on(),
            Err(_) => vec![place.path.clone()],
        };
        Self { files: files.into_iter().map(|path| (path.clone(), stamp(&path))).collect() }
    }

    /// Returns a file that has changed, if one has.
    fn changed(&mut self) -> Option<PathBuf> {
        self.files.iter().find(|(path, known)| stamp(path) != *known).map(|(path, _)| path.clone())
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs_err::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
