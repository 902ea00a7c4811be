//! What a file brings with it that another one takes over, shown beside the name: what a fragment does, what an `import` and a
//! `from` bring, and which tests visit a state.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::outline::{NameKind, entries, items};
use super::project_names::{NamedFile, ProjectNames};
use crate::base::node::Node;
use crate::base::text::one_line;

/// The longest hint, in characters.
const LONGEST: usize = 80;

/// The keys of a fragment that are shown with their values.
const SHOWN: [&str; 4] = ["action", "loop", "evaluate", "capture"];

/// A remark behind a name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BroughtHint {
    /// The byte behind which it stands.
    pub(super) at: usize,
    pub(super) text: String,
}

/// A state or a loop with the tests that are about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestsOfName {
    /// The byte where the name stands.
    pub(super) at: usize,
    /// The name.
    pub(super) name: String,
    /// How many cases visit it.
    pub(super) cases: usize,
    /// Whether it is the loop itself.
    pub(super) is_loop: bool,
}

/// Returns what the names of a file bring, in the order of the text.
pub(super) fn hints(names: &ProjectNames, path: &Path) -> Vec<BroughtHint> {
    let Some(file) = names.files.get(path) else { return Vec::new() };
    let mut all = Vec::new();
    for name in file.outline.names.iter().filter(|name| !name.is_definition) {
        let text = match name.kind {
            NameKind::Fragment => fragment(names, path, &name.name),
            NameKind::Library => brought(names, file, &name.name, "fragments"),
            NameKind::Loop if name.keys == ["from"] => brought(names, file, &name.name, "states"),
            NameKind::Loop | NameKind::State | NameKind::Capture | NameKind::Variable => None,
        };
        all.extend(text.map(|text| BroughtHint { at: name.range.end, text: one_line(&text, LONGEST) }));
    }
    all
}

/// Says what a fragment does that another file has: this one shows its own.
fn fragment(names: &ProjectNames, path: &Path, name: &str) -> Option<String> {
    let mut family = names.family(path).into_iter().filter(|file| file != path);
    let found = family.find_map(|file| names.files.get(&file)?.outline.tree.get("fragments")?.get(name))?;
    let shown = SHOWN.iter().filter_map(|key| Some((*key, found.get(key)?)));
    let mut parts: Vec<String> = shown.map(|(key, value)| format!("{key}: {}", short(value))).collect();
    let ways = entries(found).iter().filter(|entry| entry.key.starts_with("on_") || entry.key == "next");
    parts.extend(ways.map(|way| format!("{} → {}", way.key, short(&way.value))));
    Some(parts.join(", "))
}

fn short(value: &Node) -> String {
    let kind = || value.get("type").and_then(Node::as_scalar).map(|kind| kind.text.clone());
    let text = value.as_scalar().map(|scalar| scalar.text.clone()).or_else(kind);
    one_line(text.unwrap_or_default().trim(), 40)
}

/// Lists what a file has under a key that another one takes over.
fn brought(names: &ProjectNames, file: &NamedFile, from: &str, key: &str) -> Option<String> {
    let library = names.files.get(file.named.get(from)?)?;
    let all: Vec<&str> =
        entries(library.outline.tree.get(key)?).iter().map(|entry| entry.key.as_str()).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Counts the cases of tests that are about a loop, and those that visit each of its states.
pub(super) fn tests_of(names: &ProjectNames, path: &Path) -> Vec<TestsOfName> {
    let Some(file) = names.files.get(path).filter(|file| !file.is_test) else { return Vec::new() };
    let cases = cases(names, path);
    let count = |state: &str| cases.iter().filter(|case| case.contains(state)).count();
    let made = file.outline.names.iter().filter(|name| name.is_definition);
    made.filter_map(|name| {
        let (cases, is_loop) = match name.kind {
            NameKind::Loop => (cases.len(), true),
            NameKind::State => (count(&name.name), false),
            NameKind::Capture | NameKind::Variable | NameKind::Fragment | NameKind::Library => return None,
        };
        Some(TestsOfName { at: name.range.start, name: name.name.clone(), cases, is_loop })
    })
    .collect()
}

/// Returns the states that each case of the tests of a loop visits: those that it mocks, unless it expects that they are never
/// entered, and those on its path.
fn cases<'n>(names: &'n ProjectNames, path: &Path) -> Vec<BTreeSet<&'n str>> {
    let tests = tests_about(names, path);
    let cases = tests.filter_map(|(_, file)| file.outline.tree.get("cases")).flat_map(items);
    cases.map(visited).collect()
}

/// Returns the files with tests of a loop.
pub(super) fn tests_about<'n>(
    names: &'n ProjectNames,
    path: &Path,
) -> impl Iterator<Item = (&'n PathBuf, &'n NamedFile)> {
    let is_about = move |(_, file): &(&PathBuf, &NamedFile)| {
        // Compared by its file: a test may name its loop in several ways.
        let subject = file.outline.tree.get("loop").and_then(Node::as_scalar);
        subject.is_some_and(|subject| file.named.get(&subject.text).is_some_and(|found| found == path))
    };
    names.files.iter().filter(|(_, file)| file.is_test).filter(is_about)
}

fn visited(case: &Node) -> BTreeSet<&str> {
    let mocks = case.get("mocks").into_iter().flat_map(entries).map(|entry| entry.key.as_str());
    let listed = |key| {
        let list = case.get("expect").and_then(|expected| expected.get(key)).into_iter().flat_map(items);
        list.filter_map(Node::as_scalar).map(|scalar| scalar.text.as_str())
    };
    let never: BTreeSet<&str> = listed("never").collect();
    mocks.chain(listed("path")).filter(|state| !never.contains(state)).collect()
}
