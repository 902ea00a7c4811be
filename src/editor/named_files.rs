//! Reads the files of a project for their names: loops, libraries, tests, and the workflows that run loops.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::names_of_tests;
use super::outline::{LoopOutline, NameKind};
use super::project_names::{FileKeeper, LoopHome, NamedFile, ProjectNames};
use super::text_document::TextDocument;
use crate::context::Session;
use crate::definition::builtin::Builtin;
use crate::definition::load::{self, DIRECTORY};
use crate::definition::vendored::CopiedFile;
use crate::definition::yaml::MAX_SIZE;
use crate::files::place::resolved;
use crate::testing::suite;

/// Where GitHub looks for workflows.
const WORKFLOWS: &str = ".github/workflows";

/// Reads every file of the project of a session, and these, which are open.
pub(super) fn of_project(session: &Session<'_>, open: impl Iterator<Item = PathBuf>) -> ProjectNames {
    let loops = load::list(&session.cwd).into_iter().map(|listed| listed.path);
    let tests = suite::listed(session).into_iter().map(|place| place.path);
    let all: BTreeSet<PathBuf> = loops.chain(tests).chain(workflows(&session.cwd)).chain(open).collect();
    // A link to one of the files is that file, and is not written a second time.
    let is_own = |path: &&PathBuf| {
        let meant = resolved(path);
        meant == **path || !all.contains(&meant)
    };
    read(all.iter().filter(is_own).cloned(), session)
}

/// Reads a file, its tests, and all that they take over and run.
pub(super) fn around(path: &Path, session: &Session<'_>) -> ProjectNames {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let tests = suite::listed(session).into_iter().map(|place| place.path);
    // Most tests are about other loops, and need not be parsed to know it.
    let tests = tests.filter(|test| {
        let names_it = |text: &str| stem.as_ref().is_none_or(|stem| text.contains(stem));
        session.unsaved.text(test, MAX_SIZE as u64).is_ok_and(|text| names_it(&text))
    });
    read(std::iter::once(path.to_owned()).chain(tests), session)
}

/// Reads files, and those that they name.
fn read(files: impl Iterator<Item = PathBuf>, session: &Session<'_>) -> ProjectNames {
    let mut names = ProjectNames::default();
    let mut open: Vec<PathBuf> = files.collect();
    while let Some(path) = open.pop() {
        if names.files.contains_key(&path) || names.unread.contains_key(&path) {
            continue;
        }
        let Some(text) = text_of(&path, session) else { continue };
        match file(&path, &text, session) {
            Some(file) => {
                open.extend(file.named.values().cloned());
                names.files.insert(path, file);
            }
            // Kept with its text: a rename is refused where the name may stand in it.
            None => drop(names.unread.insert(path, text)),
        }
    }
    names
}

/// Returns the text of a file without a byte order mark, which no editor counts in a file that it opens for a change.
fn text_of(path: &Path, session: &Session<'_>) -> Option<String> {
    if let Some(builtin) = Builtin::at(path) {
        return Some(builtin.text().to_owned());
    }
    let text = session.unsaved.text(path, MAX_SIZE as u64).ok()?;
    Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn file(path: &Path, text: &str, session: &Session<'_>) -> Option<NamedFile> {
    let is_test = suite::is_test_file(path);
    let is_workflow = path.parent().is_some_and(|directory| directory.ends_with(WORKFLOWS));
    let outline = match (is_test, is_workflow) {
        (true, _) => names_of_tests::of_tests(text)?,
        (_, true) => names_of_tests::of_workflow(text)?,
        (false, false) => LoopOutline::of(text)?,
    };
    let mut named = BTreeMap::new();
    let mut parents = Vec::new();
    for name in outline.names.iter().filter(|name| !name.is_definition) {
        let found = match name.kind {
            NameKind::Loop if is_test || is_workflow => subject(&name.name, path, is_test, session),
            NameKind::Loop => load::find_beside(&name.name, &session.cwd, path).ok().map(|found| found.path),
            NameKind::Library => library(path, &name.name),
            NameKind::State | NameKind::Capture | NameKind::Variable | NameKind::Fragment => None,
        };
        let Some(found) = found else { continue };
        if name.kind == NameKind::Library || name.keys == ["from"] {
            parents.push(found.clone());
        }
        named.insert(name.name.clone(), found);
    }
    let keeper = match (Builtin::at(path), CopiedFile::at(path)) {
        (Some(_), _) => FileKeeper::Program,
        (None, Some(_)) => FileKeeper::Copy,
        (None, None) => FileKeeper::Project,
    };
    let document = TextDocument::new(text.to_owned());
    let home = home(path).filter(|_| !is_test && !is_workflow);
    Some(NamedFile { document, outline, keeper, home, is_test, parents, named })
}

fn home(path: &Path) -> Option<LoopHome> {
    let loops = path.ancestors().find(|above| above.file_name().is_some_and(|name| name == DIRECTORY))?;
    let name = path.strip_prefix(loops).ok()?.with_extension("").to_str()?.to_owned();
    Some(LoopHome { loops: loops.to_owned(), name })
}

/// Returns the file of the loop that a test or a workflow is about.
fn subject(named: &str, path: &Path, is_test: bool, session: &Session<'_>) -> Option<PathBuf> {
    let (session, named) = if is_test {
        suite::located(named, &suite::placed(path, session), session)
    } else {
        (session.clone(), named.to_owned())
    };
    session.find(&named, false).ok().map(|located| located.path)
}

/// Returns the file of a library that is imported, with the extension that it may be named without.
pub(super) fn library(importer: &Path, name: &str) -> Option<PathBuf> {
    if let Some(builtin) = Builtin::at(importer) {
        return builtin.beside(name).map(Builtin::place);
    }
    let file = crate::files::place::named(&importer.parent()?.join(name));
    let file = if load::is_loop_file(&file) { file } else { file.with_extension("yaml") };
    if file.is_file() { Some(file) } else { Builtin::named(name).map(Builtin::place) }
}

fn workflows(root: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(root.join(WORKFLOWS)).into_iter().flatten().filter_map(Result::ok);
    let files = entries.map(|entry| entry.path()).filter(|path| load::is_loop_file(path));
    files.collect()
}
