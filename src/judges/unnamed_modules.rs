//! Modules of Rust that no `mod` names any more: nothing compiles them, and their tests are not run, while their files are as they
//! were.

use std::collections::BTreeMap;

use super::command_words::joined;
use super::judge_catalog::CATALOG;
use super::judge_parts::{PartSelection, parts};
use super::source_lines::source_lines;
use super::tree::{Tree, extension};

/// Names of sources whose modules lie in their own folder.
const ROOTS: [&str; 3] = ["lib", "main", "mod"];

/// How many files below a module are looked through for tests.
const MOST: usize = 200;

/// Returns a module that a source named at the start and nothing names at the end, although a file of it with tests is
/// there: its name, and that file.
pub(super) fn unnamed(path: &str, old: &str, new: &str, end: &dyn Tree) -> Option<(String, String)> {
    let (folder, stem) = place(path)?;
    let (old, new) = (modules(path, old)?, modules(path, new)?);
    old.into_iter().find_map(|(name, conditions)| {
        if is_named(&new, &name, &conditions) {
            return None;
        }
        let below = if ROOTS.contains(&stem) { folder.to_owned() } else { joined(folder, stem) };
        let with_tests = with_tests(&below, &name, end)?;
        // Two roots of one folder may name the same module.
        let others = ROOTS.map(|root| joined(&below, &format!("{root}.rs")));
        let above = (!below.is_empty()).then(|| format!("{below}.rs"));
        let is_named_elsewhere = others.into_iter().chain(above).filter(|other| other != path).any(|other| {
            let text = text(&other, end).unwrap_or_default();
            modules(&other, &text).is_some_and(|all| is_named(&all, &name, &conditions))
        });
        (!is_named_elsewhere).then_some((name, with_tests))
    })
}

/// Returns the folder of a source of Rust, and its name without the end.
fn place(path: &str) -> Option<(&str, &str)> {
    let stem = path.strip_suffix(".rs")?;
    Some(stem.rsplit_once('/').unwrap_or(("", stem)))
}

/// Tells whether a module is named under no other conditions than it was.
fn is_named(all: &BTreeMap<String, Vec<String>>, name: &str, conditions: &[String]) -> bool {
    all.get(name).is_some_and(|found| found.iter().all(|condition| conditions.contains(condition)))
}

/// Returns the modules that a source names and that have files of their own, with the attributes that say when and where they
/// are compiled.
fn modules(path: &str, text: &str) -> Option<BTreeMap<String, Vec<String>>> {
    let language = CATALOG.language(path)?;
    let (mut found, mut conditions) = (BTreeMap::new(), Vec::new());
    for line in source_lines(text, language) {
        let code = line.code.trim();
        let (attributes, rest) = code.rsplit_once(']').unwrap_or(("", code));
        let is_condition = ["#[cfg", "#[path"].iter().any(|begin| attributes.starts_with(begin));
        if is_condition {
            conditions.push(attributes.split_whitespace().collect());
        }
        let rest = rest.trim();
        // An attribute alone, a comment, or nothing: what it stands above comes later.
        if rest.is_empty() {
            continue;
        }
        for item in rest.split_inclusive(';').filter_map(|item| item.trim().strip_suffix(';')) {
            let mut words = item.split_whitespace().rev();
            if let (Some(name), Some("mod")) = (words.next(), words.next()) {
                found.insert(name.to_owned(), conditions.clone());
            }
        }
        conditions.clear();
    }
    Some(found)
}

/// Returns a file of a module that holds tests.
fn with_tests(below: &str, name: &str, tree: &dyn Tree) -> Option<String> {
    let itself = joined(below, &format!("{name}.rs"));
    let folder = joined(below, name);
    let main = format!("{folder}/mod.rs");
    let is_there = [&itself, &main].into_iter().any(|path| tree.file(path).is_some());
    if !is_there {
        return None;
    }
    let within = format!("{folder}/");
    let inside =
        tree.seen().into_iter().filter(|path| path.starts_with(&within) && extension(path) == Some("rs"));
    std::iter::once(itself)
        .chain(inside.take(MOST))
        .find(|path| text(path, tree).is_some_and(|text| has_tests(path, &text)))
}

fn text(path: &str, tree: &dyn Tree) -> Option<String> {
    Some(String::from_utf8_lossy(&tree.file(path)?.bytes).into_owned())
}

fn has_tests(path: &str, text: &str) -> bool {
    let Some(language) = CATALOG.language(path) else { return false };
    let rows = CATALOG.inside.iter().filter(|row| row.language == language.name);
    rows.map(|row| PartSelection::of_tests(row, language))
        .any(|wanted| parts(text, &wanted).is_some_and(|found| !found.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::super::tree::FileAt;
    use super::*;
    use crate::base::file_mode::FileMode;

    const TESTED: &str = "pub fn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n";

    #[track_caller]
    fn check(path: &str, (old, new): (&str, &str), files: &[(&str, &str)], expected: Option<(&str, &str)>) {
        let file =
            |text: &str| FileAt { mode: FileMode::File, bytes: text.as_bytes().to_vec(), is_ignored: false };
        let tree: BTreeMap<String, FileAt> =
            files.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect();
        let found = unnamed(path, old, new, &tree);
        let found = found.as_ref().map(|(name, file)| (name.as_str(), file.as_str()));
        assert_eq!(found, expected, "{path}: {old:?} to {new:?}");
    }

    #[test]
    fn a_module_with_tests_has_to_be_named() {
        let calc = &[("src/calc.rs", TESTED)];
        let gone = Some(("calc", "src/calc.rs"));
        let lib = "src/lib.rs";
        for new in [
            "pub use x::add;\n",
            "// mod calc;\n",
            "/*\nmod calc;\n*/\n",
            "#[cfg(never)]\npub mod calc;\n",
            "#[path = \"other.rs\"] pub mod calc;\n",
            "pub mod calc {}\n",
        ] {
            check(lib, ("pub mod calc;\n", new), calc, gone);
        }
        for new in
            ["mod a; pub(crate) mod calc;\n", "#[allow(dead_code)]\nmod calc;\n", "/// Says.\nmod calc;\n"]
        {
            check(lib, ("pub mod calc;\n", new), calc, None);
        }
        check(lib, ("#[cfg(unix)]\nmod calc;", "#[cfg(unix)] pub mod calc; mod b;"), calc, None);
    }

    #[test]
    fn what_has_no_tests_or_is_named_elsewhere_may_go() {
        let (lib, old) = ("src/lib.rs", ("mod calc;\n", ""));
        check(lib, old, &[("src/calc.rs", "pub fn a() {}\n")], None);
        check(lib, old, &[("src/other.rs", TESTED)], None);
        check(lib, old, &[("src/calc.rs", TESTED), ("src/main.rs", "mod calc;\n")], None);
        check("calc.py", ("mod a;", ""), &[("a.py", TESTED)], None);
        let deep = &[("src/calc/mod.rs", "mod b;\n"), ("src/calc/b.rs", TESTED)];
        check(lib, old, deep, Some(("calc", "src/calc/b.rs")));
        let below = &[("src/calc.rs", ""), ("src/calc/b.rs", TESTED)];
        check("src/calc.rs", ("mod b;\n", ""), below, Some(("b", "src/calc/b.rs")));
    }
}
