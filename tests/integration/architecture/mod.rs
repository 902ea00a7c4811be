//! The house: which layer may name which, what each may take from other crates and from the world, and that no files
//! lead in a circle. Its rules are tested with mutants of the house, each of which breaks one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use names::{Crate, Named, circles, files};

mod names;

/// A layer, and what it may name. Every layer is pure but those that say otherwise: it knows no process, file, clock,
/// network or environment.
struct Layer {
    name: &'static str,
    /// The layers below it.
    layers: &'static [&'static str],
    /// The crates of others, beside those of every layer.
    crates: &'static [&'static str],
    is_pure: bool,
}

const fn pure(name: &'static str, layers: &'static [&'static str], crates: &'static [&'static str]) -> Layer {
    Layer { name, layers, crates, is_pure: true }
}

const fn impure(
    name: &'static str,
    layers: &'static [&'static str],
    crates: &'static [&'static str],
) -> Layer {
    Layer { name, layers, crates, is_pure: false }
}

/// From the bottom up.
const LAYERS: &[Layer] = &[
    pure(
        "base",
        &[],
        &["aho_corasick", "chrono", "console", "humantime", "percent_encoding", "sha2", "shlex", "strsim"],
    ),
    impure("files", &["base"], &["fs_err", "rustix", "tempfile", "zip"]),
    pure("board", &["base"], &[]),
    pure("criteria", &["base"], &["pulldown_cmark"]),
    pure(
        "evaluate",
        &["base", "criteria"],
        &["fancy_regex", "jaq_core", "jaq_json", "jaq_std", "jsonschema", "regex", "sha2"],
    ),
    pure(
        "definition",
        &["base", "board", "evaluate", "files"],
        &["annotate_snippets", "saphyr_parser", "sha2"],
    ),
    pure("machine", &["base", "board", "evaluate", "definition"], &[]),
    pure("engine", &["base", "board", "evaluate", "definition", "machine"], &["sha2"]),
    pure("host", &["base", "evaluate"], &["agent_client_protocol_schema", "shlex"]),
    pure(
        "report",
        &["base", "board", "evaluate", "files", "machine", "engine"],
        &["base64", "chrono", "console", "flate2", "indicatif", "quick_junit", "regex", "sha2", "shlex"],
    ),
    pure("upkeep", &["base", "definition"], &["toml"]),
    pure("delivery", &["base", "engine", "report"], &["aho_corasick", "base64", "flate2", "regex", "toml"]),
    pure("fanout", &["base", "engine"], &["serde_json_canonicalizer", "shlex"]),
    pure("lease", &["base"], &[]),
    impure("process", &["base", "evaluate", "files"], &["fs_err", "rustix", "tokio"]),
    impure(
        "journal",
        &["base", "board", "evaluate", "engine", "files"],
        &["fs_err", "rustix", "sha2", "tempfile", "uuid"],
    ),
    impure(
        "bundle",
        &["base", "engine", "files", "process", "journal"],
        &["fs_err", "sha2", "tempfile", "zip"],
    ),
    impure(
        "ci",
        &["base", "engine", "files", "report", "delivery"],
        &["base64", "chrono", "console", "fs_err", "http", "sha1", "sha2", "tempfile", "ureq", "uuid", "zip"],
    ),
    impure(
        "run",
        &[
            "base", "criteria", "evaluate", "files", "machine", "engine", "process", "host", "journal",
            "report",
        ],
        &["fs_err", "regex", "rmcp", "rustix", "sha2", "similar", "tempfile", "tokio", "uuid"],
    ),
    impure(
        "session",
        &[
            "base",
            "criteria",
            "evaluate",
            "definition",
            "files",
            "machine",
            "engine",
            "host",
            "report",
            "delivery",
            "fanout",
            "process",
            "journal",
            "bundle",
            "ci",
            "run",
            "upkeep",
            "lease",
        ],
        &["aho_corasick", "base64", "fs_err", "globset", "rustix", "similar", "tempfile", "tokio", "uuid"],
    ),
    impure(
        "cli",
        &[
            "base",
            "board",
            "criteria",
            "evaluate",
            "definition",
            "files",
            "machine",
            "engine",
            "report",
            "delivery",
            "fanout",
            "process",
            "journal",
            "bundle",
            "ci",
            "run",
            "session",
            "upkeep",
            "lease",
        ],
        &[
            "clap",
            "clap_complete",
            "clap_mangen",
            "console",
            "fs_err",
            "rustix",
            "shlex",
            "tempfile",
            "tokio",
        ],
    ),
];

/// What every layer may use.
const EVERYWHERE: &[&str] = &["core", "indexmap", "serde", "serde_json", "thiserror"];

/// The parts of the standard library that reach nothing outside of the program.
const PURE_STD: &[&str] = &[
    "borrow",
    "cell",
    "cmp",
    "collections",
    "convert",
    "error",
    "fmt",
    "hash",
    "iter",
    "mem",
    "num",
    "ops",
    "rc",
    "str",
    "string",
    "sync",
    "time",
];

/// What in these parts reaches out all the same.
const IMPURE_STD: &[&str] = &["std::time::Instant", "std::time::SystemTime"];

/// Methods of paths that look at files.
const IMPURE_METHODS: &[&str] = &[
    "canonicalize",
    "exists",
    "is_dir",
    "is_file",
    "is_symlink",
    "metadata",
    "read_dir",
    "read_link",
    "symlink_metadata",
    "try_exists",
];

/// Files of pure layers that reach out, and to what: the loader reads loop files, sinks write.
const EXCEPTIONS: &[(&str, &[&str])] = &[
    (
        "definition/listing.rs",
        &["files", "fs_err", "std::fs", "std::path", "is_dir", "is_file", "is_symlink"],
    ),
    ("definition/builtin.rs", &["std::path"]),
    ("definition/load.rs", &["files", "fs_err", "std::io", "std::path", "is_dir", "is_file", "exists"]),
    ("definition/resolve.rs", &["std::path"]),
    ("definition/source.rs", &["std::path"]),
    ("definition/vendored.rs", &["files", "std::io", "std::path", "is_file"]),
    // A stack that is large enough for what a stranger writes.
    ("evaluate/jq.rs", &["std::thread"]),
    ("report/annotations.rs", &["std::path"]),
    ("report/ci_log.rs", &["std::io"]),
    ("report/console.rs", &["std::io"]),
    ("report/console/screen.rs", &["std::io"]),
    // Packs in memory.
    ("report/html/blocks.rs", &["std::io"]),
    ("report/log_file.rs", &["files", "std::fs", "std::io", "std::path", "metadata"]),
    ("report/mod.rs", &["std::io"]),
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns the crates that this one depends on, as the code names them.
fn dependencies() -> BTreeSet<String> {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let of_program = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let names = of_program.lines().filter_map(|line| line.split_once(" = "));
    names.map(|(name, _)| name.replace('-', "_")).collect()
}

/// The house as it is.
static FILES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| files(&source()));
static HOUSE: LazyLock<Crate> = LazyLock::new(|| Crate::of(&FILES));

/// Returns everything that breaks a rule.
fn broken(house: &Crate) -> Vec<String> {
    let dependencies = dependencies();
    // What `lib.rs` shows to our own tests it shows whole; nobody in the house goes that way.
    let opaque = house.opaque().filter(|(file, what)| (*file, *what) != ("lib.rs", "use …::*"));
    let mut broken: Vec<String> = opaque.map(|(file, what)| format!("{file}: {what}")).collect();
    broken.extend(house.mentions("internals").map(|file| format!("{file} goes through internals")));
    let names = house.names();
    for (file, names) in &names {
        let Some(layer) = layer(file) else {
            if file.contains('/') {
                broken.push(format!("{file}: the layer has no line in the table"));
            }
            continue;
        };
        for name in names {
            match name {
                Named::File(other) => {
                    let other = other.split('/').next().unwrap_or_default();
                    let is_below = other == layer.name || other == "lib.rs" || layer.layers.contains(&other);
                    let reaches_out = layer.is_pure && !is_excepted(file, other) && is_impure(other);
                    if !is_below || reaches_out {
                        broken.push(format!("{file} names the layer {other}"));
                    }
                }
                Named::Elsewhere(path) => {
                    let first = path.split("::").next().unwrap_or_default();
                    let is_other_crate = dependencies.contains(first)
                        && !EVERYWHERE.contains(&first)
                        && !layer.crates.contains(&first);
                    let reaches_out = layer.is_pure && matches!(first, "std" | "core") && !is_pure_std(path);
                    if (is_other_crate || reaches_out) && !is_excepted(file, path) {
                        broken.push(format!("{file} names {path}"));
                    }
                }
            }
        }
    }
    for (file, method) in house.methods() {
        let is_pure = layer(file).is_some_and(|layer| layer.is_pure);
        if is_pure && IMPURE_METHODS.contains(&method) && !is_excepted(file, method) {
            broken.push(format!("{file} calls {method}()"));
        }
    }
    broken.extend(circles(&names).iter().map(|circle| format!("circle: {circle:?}")));
    broken
}

fn layer(file: &str) -> Option<&'static Layer> {
    let name = file.split_once('/')?.0;
    LAYERS.iter().find(|layer| layer.name == name)
}

fn is_impure(name: &str) -> bool {
    LAYERS.iter().any(|layer| layer.name == name && !layer.is_pure)
}

fn is_pure_std(path: &str) -> bool {
    let part = path.split("::").nth(1);
    part.is_none_or(|part| PURE_STD.contains(&part) || part.starts_with(char::is_uppercase))
        && !IMPURE_STD.iter().any(|impure| path.starts_with(impure))
}

fn is_excepted(file: &str, what: &str) -> bool {
    let excepted = EXCEPTIONS.iter().filter(|(of, _)| *of == file).flat_map(|(_, excepted)| *excepted);
    excepted.into_iter().any(|excepted| what == *excepted || what.starts_with(&format!("{excepted}::")))
}

#[test]
fn the_house_keeps_its_rules() {
    let broken = broken(&HOUSE);
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_layer_is_there_and_is_pure_unless_it_says_otherwise() {
    let directories = fs::read_dir(source()).unwrap().map(|entry| entry.unwrap().path());
    let there: BTreeSet<String> = directories
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let listed: BTreeSet<String> = LAYERS.iter().map(|layer| layer.name.to_owned()).collect();
    assert_eq!(there, listed);
    // Each layer names only such as stand before it in the table.
    for (at, layer) in LAYERS.iter().enumerate() {
        let below: Vec<&str> = LAYERS[..at].iter().map(|layer| layer.name).collect();
        assert!(layer.layers.iter().all(|name| below.contains(name)), "{}", layer.name);
    }
}

/// Adds a line to a file of the house, and expects that this is found.
#[track_caller]
fn mutant(file: &str, line: &str, found: &str) {
    let mut house = HOUSE.clone();
    house.read(file, &format!("{}{line}", FILES[file]));
    let broken = broken(&house);
    assert!(broken.iter().any(|broken| broken.contains(found)), "{line} in {file}: {broken:#?}");
}

#[test]
fn what_a_layer_may_not_name_is_found_however_it_is_written() {
    mutant("board/task.rs", "use std::fs;", "board/task.rs names std::fs");
    mutant("engine/mod.rs", "use std::process::{Command};", "engine/mod.rs names std::process::Command");
    mutant("engine/mod.rs", "fn f() { ureq::get(\"x\"); }", "engine/mod.rs names ureq::get");
    mutant("base/name.rs", "use super::super::engine::Engine;", "base/name.rs names the layer engine");
    mutant("host/mod.rs", "use tokio::spawn;", "host/mod.rs names tokio::spawn");
    mutant("engine/mod.rs", "use std as s; fn f() { s::fs::read(\"x\"); }", "names std::fs::read");
    mutant("engine/mod.rs", "use std::time::{Duration as D, Instant as I};", "names std::time::Instant");
    mutant("machine/mod.rs", "fn f() { vec![std::env::var(\"X\")]; }", "names std::env::var");
    mutant("machine/mod.rs", "fn f(p: &X) -> bool { assert!(p.exists()); true }", "calls exists()");
    mutant("evaluate/mod.rs", "fn f(p: &X) -> bool { p.is_file() }", "evaluate/mod.rs calls is_file()");
    mutant("criteria/mod.rs", "use crate::*;", "criteria/mod.rs: use …::*");
    mutant("criteria/mod.rs", "use crate::internals::process::spawn;", "goes through internals");
    mutant("run/mod.rs", "use crate::cli::main;", "run/mod.rs names the layer cli");
    mutant("run/mod.rs", "fn f() { crate::ci::Provider::detect(); }", "run/mod.rs names the layer ci");
    mutant("cli/mod.rs", "use ureq::get;", "cli/mod.rs names ureq::get");
    mutant("definition/source.rs", "use std::fs::read;", "definition/source.rs names std::fs::read");
    mutant("board/mod.rs", "#[path = \"../x.rs\"] mod x;", "board/mod.rs: #[path]");
}

#[test]
fn a_name_is_followed_through_reexports() {
    let mut house = HOUSE.clone();
    house.read("base/mod.rs", &format!("{}pub use crate::process::spawn as started;", FILES["base/mod.rs"]));
    house.read("board/task.rs", &format!("{}use crate::base::started::run;", FILES["board/task.rs"]));
    let broken = broken(&house);
    for expected in ["base/mod.rs names the layer process", "board/task.rs names the layer process"] {
        assert!(broken.iter().any(|broken| broken == expected), "{expected}: {broken:#?}");
    }
}

#[test]
fn a_circle_of_files_is_found() {
    mutant("base/text.rs", "use super::redact::Redactor;", "circle: {\"base/");
    let mut house = HOUSE.clone();
    for (file, next) in [("a", "b"), ("b", "c"), ("c", "a")] {
        house.read(&format!("base/{file}.rs"), &format!("use super::{next}::X;"));
    }
    let found = broken(&house);
    let circle = "circle: {\"base/a.rs\", \"base/b.rs\", \"base/c.rs\"}";
    assert!(found.iter().any(|broken| broken == circle), "{found:#?}");
}

#[test]
fn one_place_puts_calls_of_git_together() {
    let naming: Vec<_> = FILES.iter().filter(|(_, text)| code(text).contains("\"git\"")).collect();
    let naming: Vec<_> = naming.iter().map(|(file, _)| file.as_str()).collect();
    // `--lock git` names the kind of a lock, and starts nothing.
    assert_eq!(naming, ["cli/flags.rs", "process/git.rs"]);
}

/// Returns the code of a file without its tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
}

/// What opens a file by its name, whatever lies there, and what makes a temporary one that nobody finds again.
const OPENING: &[&str] = &[
    "File::open",
    "File::options",
    "OpenOptions::new",
    "fs::copy",
    "fs::read",
    "fs::read_to_string",
    "fs_err::copy",
    "fs_err::read",
    "fs_err::read_to_string",
    "tempfile::tempdir",
    "TempDir::new",
    "TempDir::with_prefix",
    "NamedTempFile::new",
    "NamedTempFile::new_in",
];

/// Where this is the task, or what is named is of the system or was just made.
const OPENERS: &[&str] = &[
    "bundle/tree.rs",
    "ci/archive.rs",
    "cli/advised.rs",
    "cli/background.rs",
    "files/read.rs",
    "journal/claim/mod.rs",
    "journal/files.rs",
    "journal/inherit.rs",
    "journal/snapshot.rs",
    "journal/witness.rs",
    "journal/writer.rs",
    "files/replace.rs",
    "process/git.rs",
    "process/owner.rs",
    "process/signal.rs",
    "process/spawn.rs",
    "process/table.rs",
    "session/doctor/machine.rs",
];

/// Returns the files that open files in another way than `files::read` does.
fn openers(house: &Crate) -> BTreeSet<String> {
    let names = house.names();
    let opens = |name: &Named| match name {
        Named::Elsewhere(path) => OPENING.iter().any(|opening| path.ends_with(opening)),
        Named::File(_) => false,
    };
    let found = names.iter().filter(|(file, names)| file.contains('/') && names.iter().any(opens));
    found.map(|(file, _)| (*file).to_owned()).collect()
}

#[test]
fn one_place_opens_files_that_somebody_names() {
    let others: Vec<_> =
        openers(&HOUSE).into_iter().filter(|file| !OPENERS.contains(&file.as_str())).collect();
    assert!(others.is_empty(), "open with `files::read`, make with `files::transient`: {others:#?}");
    for line in ["fn f() { fs_err::File::open(\"x\"); }", "use std::fs as s; fn f() { s::read(\"x\"); }"] {
        let mut house = HOUSE.clone();
        house.read("session/stop.rs", &format!("{}{line}", FILES["session/stop.rs"]));
        assert!(openers(&house).contains("session/stop.rs"), "{line}");
    }
}

#[test]
fn every_module_says_why_it_exists() {
    let silent: Vec<_> = FILES.iter().filter(|(_, text)| !text.starts_with("//! ")).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}
