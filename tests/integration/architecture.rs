//! The direction of dependencies, kept by reading the `use` lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which layers a layer may name. What is not listed here may name nobody.
fn allowed() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("base", &[] as &[&str]),
        ("board", &["base"]),
        ("criteria", &["base"]),
        ("evaluate", &["base", "criteria"]),
        ("definition", &["base", "board", "evaluate"]),
        ("machine", &["base", "board", "evaluate", "definition"]),
        ("engine", &["base", "board", "evaluate", "machine"]),
        ("host", &["base", "evaluate"]),
        ("process", &["base", "evaluate"]),
        ("journal", &["base", "board", "evaluate", "engine"]),
        ("bundle", &["base", "engine", "process", "journal"]),
        ("report", &["base", "board", "evaluate", "engine"]),
        ("ci", &["base", "report"]),
        (
            "run",
            &["base", "criteria", "evaluate", "machine", "engine", "process", "host", "journal", "report"],
        ),
    ])
}

/// What the pure part must not know. The loader of definitions and the log file are the exceptions.
const IMPURE: &[&str] =
    &["tokio", "std::fs", "fs_err", "std::process::Command", "std::env", "Instant::now", "SystemTime"];

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let below = directories.iter().flat_map(|directory| rust_files(directory));
    files.into_iter().chain(below).filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

/// Returns the code of a file without its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned()
}

fn is_test(path: &Path) -> bool {
    let is_below = path.parent().is_some_and(|directory| directory.ends_with("tests"));
    is_below
        || path
            .file_name()
            .is_some_and(|name| name == "tests.rs" || name == "testing.rs" || name == "log_tests.rs")
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn layers_name_only_layers_below_them() {
    let allowed = allowed();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for layer in
        fs::read_dir(source()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        let name = layer.file_name().unwrap().to_string_lossy().into_owned();
        if name == "cli" {
            continue;
        }
        let may = allowed.get(name.as_str()).unwrap_or_else(|| panic!("`{name}` has no line in the table"));
        seen.insert(name.clone());
        for path in rust_files(&layer).into_iter().filter(|path| !is_test(path)) {
            let code = code(&path);
            for other in code.split("crate::").skip(1) {
                let other =
                    other.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
                let is_layer = source().join(other).is_dir();
                if is_layer && other != name && !may.contains(&other) {
                    wrong.push(format!("{} names `{other}`", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(seen.len(), allowed.len(), "a line of the table names a layer that does not exist");
}

#[test]
fn the_pure_part_knows_no_process_file_clock_or_network() {
    let exceptions = ["definition/load.rs"];
    let mut wrong = Vec::new();
    for layer in ["base", "criteria", "evaluate", "definition", "machine", "engine", "report/formats"] {
        for path in rust_files(&source().join(layer)).into_iter().filter(|path| !is_test(path)) {
            let shown = path.strip_prefix(source()).unwrap().to_string_lossy().into_owned();
            let code = code(&path);
            let impure = IMPURE.iter().filter(|word| code.contains(**word));
            wrong.extend(
                impure
                    .filter(|_| !exceptions.contains(&shown.as_str()))
                    .map(|word| format!("{shown}: {word}")),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_module_says_why_it_exists() {
    let silent: Vec<_> = rust_files(&source())
        .into_iter()
        .filter(|path| !fs::read_to_string(path).unwrap().starts_with("//! "))
        .collect();
    assert!(silent.is_empty(), "{silent:#?}");
}
