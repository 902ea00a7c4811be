//! The house: which room may name which, what each may take from other crates and from the world, which files know
//! nothing of the world, and that neither files nor folders lead in a circle. Its rules are tested with mutants of the house, each of which breaks one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use names::{Crate, Named, circles, files, folder_circles};

mod names;

/// A room, which is a folder of `src`, and what it may name.
struct Room {
    name: &'static str,
    /// The rooms below it that it names.
    rooms: &'static [&'static str],
    /// The crates of others, beside those of every room.
    crates: &'static [&'static str],
    /// What of it knows no process, file, clock, network or environment: files and, with a slash at the end, folders.
    pure: &'static [&'static str],
}

/// Everything in a room is pure.
const ALL: &[&str] = &[""];

const fn pure(name: &'static str, rooms: &'static [&'static str], crates: &'static [&'static str]) -> Room {
    Room { name, rooms, crates, pure: ALL }
}

const fn impure(name: &'static str, rooms: &'static [&'static str], crates: &'static [&'static str]) -> Room {
    Room { name, rooms, crates, pure: &[] }
}

/// A room that does something, with rules, plans or texts that are pure.
const fn mixed(
    name: &'static str,
    rooms: &'static [&'static str],
    crates: &'static [&'static str],
    pure: &'static [&'static str],
) -> Room {
    Room { name, rooms, crates, pure }
}

/// From the bottom up. A new room is one line.
const ROOMS: &[Room] = &[
    pure(
        "base",
        &[],
        &[
            "aho_corasick",
            "chrono",
            "console",
            "humantime",
            "percent_encoding",
            "sha1",
            "sha2",
            "shlex",
            "similar",
            "strsim",
        ],
    ),
    pure("tools", &["base"], &["regex", "shlex", "toml"]),
    impure("files", &["base"], &["fs_err", "rustix", "sha2", "tempfile", "zip"]),
    pure("lease", &["base"], &[]),
    pure("criteria", &["base"], &["pulldown_cmark"]),
    pure("board", &["base"], &[]),
    pure(
        "evaluate",
        &["base", "criteria", "tools"],
        &["fancy_regex", "jaq_core", "jaq_json", "jaq_std", "jsonschema", "regex", "sha2"],
    ),
    impure("process", &["base", "evaluate", "files"], &["fs_err", "rustix", "tokio"]),
    mixed(
        "sandbox",
        &["base", "files", "process"],
        &["fs_err", "landlock", "libc", "rustix", "seccompiler", "tempfile", "tokio"],
        &["container_flags.rs", "household.rs", "landlock_rules.rs", "order.rs", "plan.rs"],
    ),
    pure("host", &["base", "evaluate"], &["agent_client_protocol_schema", "shlex"]),
    pure("guidance", &["base"], &["shlex"]),
    pure("shell", &["base"], &[]),
    pure("judges", &["base", "shell"], &["globset", "regex", "toml"]),
    pure(
        "definition",
        &["base", "board", "evaluate", "files", "judges"],
        &["annotate_snippets", "saphyr_parser", "sha2"],
    ),
    pure("machine", &["base", "board", "evaluate", "shell", "tools", "judges", "definition"], &[]),
    pure("engine", &["base", "board", "evaluate", "judges", "definition", "machine"], &["sha2"]),
    mixed(
        "policy",
        &["base", "files", "process", "definition"],
        &["fs_err", "rustix", "tempfile"],
        &[
            "in_force.rs",
            "ledger_place.rs",
            "policy_document.rs",
            "policy_rules.rs",
            "policy_refusal.rs",
            "sandbox_floor.rs",
            "version_range.rs",
        ],
    ),
    pure(
        "report",
        &["base", "board", "evaluate", "files", "machine", "engine"],
        &["base64", "chrono", "console", "flate2", "indicatif", "quick_junit", "regex", "sha2", "shlex"],
    ),
    pure("people", &["base", "definition", "engine", "machine", "report"], &[]),
    pure("statement", &["base", "evaluate", "judges", "machine", "engine", "report"], &[]),
    impure(
        "journal",
        &["base", "board", "evaluate", "engine", "files"],
        &["fs_err", "rustix", "sha2", "tempfile", "uuid"],
    ),
    mixed(
        "git",
        &["base", "evaluate", "files", "engine", "process"],
        &["fs_err", "rustix", "tempfile", "tokio"],
        &["call.rs", "raw_diff.rs", "error.rs", "status.rs"],
    ),
    mixed(
        "reuse",
        &[
            "base",
            "tools",
            "files",
            "evaluate",
            "judges",
            "definition",
            "machine",
            "engine",
            "process",
            "git",
            "shell",
        ],
        &["fs_err", "sha2", "shlex"],
        &[
            "chosen_files.rs",
            "eviction.rs",
            "flaky_checks.rs",
            "ignored_sources.rs",
            "input_patterns.rs",
            "key.rs",
            "no_key.rs",
            "origin.rs",
            "quarantine.rs",
            "record.rs",
            "record_difference.rs",
            "run_values.rs",
            "verdict_table.rs",
            "verifying.rs",
        ],
    ),
    mixed(
        "forge",
        &["base", "files", "engine", "report", "people"],
        &["base64", "chrono", "console", "fs_err", "http", "sha2", "tempfile", "ureq", "uuid", "zip"],
        &[
            "change.rs",
            "forge_trait.rs",
            "marker.rs",
            "message.rs",
            "names.rs",
            "review_text.rs",
            "standing.rs",
            "suggestion.rs",
        ],
    ),
    mixed(
        "telemetry",
        &["base", "files", "evaluate", "process", "engine", "report", "forge", "journal"],
        &["http"],
        &[
            "exporter_settings.rs",
            "otlp_export.rs",
            "otlp_request.rs",
            "perfetto.rs",
            "run_spans.rs",
            "span_words.rs",
            "trace_span.rs",
            "wire_message.rs",
        ],
    ),
    mixed(
        "broker",
        &["base", "evaluate", "policy", "files", "forge"],
        &["fs_err", "http", "hyper", "hyper_util", "sha2", "shlex", "tokio", "toml", "uuid"],
        &[
            "asked.rs",
            "cassette_faults.rs",
            "conversation.rs",
            "count.rs",
            "dollars.rs",
            "host_row.rs",
            "key_mask.rs",
            "ledger.rs",
            "meter.rs",
            "prices.rs",
            "model_service.rs",
            "tokens.rs",
            "wire_report.rs",
        ],
    ),
    impure(
        "bundle",
        &["base", "engine", "files", "git", "journal", "report", "statement"],
        &["fs_err", "sha2", "tempfile", "zip"],
    ),
    impure(
        "run",
        &[
            "base", "criteria", "evaluate", "files", "guidance", "judges", "shell", "machine", "engine",
            "process", "sandbox", "host", "git", "journal", "report", "policy", "broker",
        ],
        &["base64", "fs_err", "regex", "rmcp", "rustix", "sha2", "similar", "tempfile", "tokio", "uuid"],
    ),
    impure(
        "ci",
        &["base", "engine", "files", "report", "people", "forge"],
        &["chrono", "console", "fs_err", "http", "sha2", "uuid"],
    ),
    impure(
        "context",
        &[
            "base",
            "policy",
            "files",
            "lease",
            "process",
            "definition",
            "machine",
            "engine",
            "report",
            "journal",
            "forge",
            "broker",
            "run",
            "ci",
        ],
        &["fs_err", "http", "tokio", "uuid"],
    ),
    impure(
        "repository",
        &["base", "files", "engine", "journal", "git", "forge", "bundle", "run", "context"],
        &["fs_err", "tempfile"],
    ),
    impure(
        "lock",
        &["base", "lease", "process", "journal", "git", "forge", "run", "ci", "context", "repository"],
        &["base64", "tokio", "uuid"],
    ),
    mixed(
        "spending",
        &["base", "files", "process", "policy", "git", "forge", "broker", "context", "repository", "lock"],
        &["http", "sha2", "tempfile", "uuid"],
        &["day_ledger.rs"],
    ),
    impure("reuse_refs", &["base", "git", "lock", "context", "repository", "reuse"], &[]),
    impure(
        "session",
        &[
            "reuse_refs",
            "context",
            "repository",
            "spending",
            "lock",
            "base",
            "files",
            "lease",
            "criteria",
            "evaluate",
            "process",
            "sandbox",
            "guidance",
            "host",
            "definition",
            "machine",
            "engine",
            "report",
            "statement",
            "people",
            "journal",
            "git",
            "forge",
            "broker",
            "bundle",
            "policy",
            "reuse",
            "shell",
            "telemetry",
            "run",
            "ci",
        ],
        &[
            "aho_corasick",
            "base64",
            "fs_err",
            "globset",
            "http",
            "rustix",
            "similar",
            "tempfile",
            "tokio",
            "uuid",
        ],
    ),
    mixed(
        "deliver",
        &[
            "base",
            "files",
            "lease",
            "process",
            "judges",
            "definition",
            "engine",
            "report",
            "journal",
            "git",
            "forge",
            "bundle",
            "run",
            "ci",
            "policy",
            "context",
            "repository",
            "lock",
            "session",
        ],
        &["aho_corasick", "base64", "flate2", "fs_err", "regex", "tempfile", "toml", "uuid"],
        &["body.rs", "caveats.rs", "leaks/", "delivery_plan.rs", "policy.rs"],
    ),
    impure(
        "steering",
        &["base", "files", "engine", "machine", "process", "people", "forge", "ci", "context", "session"],
        &[],
    ),
    mixed(
        "shelf",
        &[
            "base",
            "files",
            "evaluate",
            "judges",
            "process",
            "definition",
            "machine",
            "git",
            "forge",
            "run",
            "ci",
            "context",
            "repository",
            "session",
            "tools",
        ],
        &["fs_err", "rustix", "shlex", "similar", "tempfile", "tokio", "toml"],
        &["upkeep/"],
    ),
    mixed(
        "fanout",
        &[
            "base",
            "files",
            "evaluate",
            "process",
            "definition",
            "machine",
            "engine",
            "report",
            "journal",
            "git",
            "forge",
            "bundle",
            "run",
            "ci",
            "context",
            "repository",
            "session",
        ],
        &["fs_err", "globset", "serde_json_canonicalizer", "shlex", "tempfile", "tokio", "uuid"],
        &[
            "each.rs",
            "item.rs",
            "lock.rs",
            "matrix/",
            "merged_runs.rs",
            "mod.rs",
            "partition.rs",
            "item_plan.rs",
            "put_off.rs",
            "severity.rs",
            "spread.rs",
            "verified.rs",
            "weights.rs",
        ],
    ),
    impure(
        "inspect",
        &[
            "base",
            "files",
            "evaluate",
            "process",
            "definition",
            "engine",
            "report",
            "journal",
            "git",
            "forge",
            "bundle",
            "run",
            "ci",
            "context",
            "repository",
            "telemetry",
            "session",
        ],
        &["base64", "fs_err", "tempfile"],
    ),
    mixed(
        "fleet",
        &["base", "files", "process", "engine", "report", "journal", "forge", "bundle", "context", "inspect"],
        &["fs_err"],
        &["board_json.rs", "board_page.rs", "board_rows.rs", "loop_deliveries.rs"],
    ),
    impure(
        "doctor",
        &[
            "base",
            "files",
            "evaluate",
            "process",
            "sandbox",
            "shell",
            "tools",
            "host",
            "definition",
            "machine",
            "git",
            "ci",
            "context",
            "policy",
            "repository",
        ],
        &["fs_err", "rustix", "tokio"],
    ),
    mixed(
        "evidence",
        &[
            "base",
            "files",
            "evaluate",
            "definition",
            "engine",
            "process",
            "report",
            "statement",
            "git",
            "forge",
            "bundle",
            "ci",
            "context",
            "repository",
            "session",
            "deliver",
        ],
        &["base64", "fs_err", "tokio"],
        &["claimed_statement.rs", "policy_check.rs", "signature_tools.rs", "verdict_policy.rs"],
    ),
    mixed(
        "testing",
        &[
            "base",
            "board",
            "files",
            "judges",
            "evaluate",
            "process",
            "host",
            "definition",
            "machine",
            "engine",
            "report",
            "journal",
            "git",
            "forge",
            "bundle",
            "run",
            "context",
            "repository",
            "session",
            "deliver",
        ],
        &["fs_err", "globset", "similar", "tempfile"],
        &[
            "always.rs",
            "asked.rs",
            "case_report.rs",
            "case_text.rs",
            "choices.rs",
            "edges.rs",
            "expected.rs",
            "facts.rs",
            "file_report.rs",
            "from_run.rs",
            "fuzz_report.rs",
            "likeness.rs",
            "mock.rs",
            "mutant_report.rs",
            "mutants.rs",
            "old_run_report.rs",
            "prepare.rs",
            "proof.rs",
            "real_report.rs",
            "recorded_run.rs",
            "results_ci.rs",
            "results_json.rs",
            "results_text.rs",
            "scripted.rs",
            "snapshot_file.rs",
            "test_file.rs",
            "virtual_tree.rs",
            "ways.rs",
            "mock_witness.rs",
            "written.rs",
        ],
    ),
    mixed(
        "editor",
        &[
            "base",
            "files",
            "shell",
            "definition",
            "machine",
            "journal",
            "report",
            "policy",
            "context",
            "session",
            "testing",
        ],
        &["console", "fs_err", "ls_types", "lsp_server"],
        &[
            "completion.rs",
            "cursor_place.rs",
            "folding.rs",
            "format/",
            "key_meanings.rs",
            "names_of_tests.rs",
            "navigation.rs",
            "outline.rs",
            "repair_edit.rs",
            "semantic_tokens.rs",
            "state_bounds.rs",
            "text_document.rs",
        ],
    ),
    impure(
        "cli",
        &[
            "base",
            "files",
            "fleet",
            "criteria",
            "board",
            "evaluate",
            "process",
            "sandbox",
            "definition",
            "machine",
            "engine",
            "report",
            "journal",
            "forge",
            "bundle",
            "run",
            "ci",
            "context",
            "session",
            "deliver",
            "steering",
            "shelf",
            "fanout",
            "inspect",
            "doctor",
            "evidence",
            "testing",
            "editor",
            "policy",
            "reuse",
            "spending",
        ],
        &[
            "clap",
            "clap_complete",
            "clap_mangen",
            "console",
            "fs_err",
            "globset",
            "rustix",
            "shlex",
            "tempfile",
            "tokio",
        ],
    ),
];

/// What every room may use.
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
    "slice",
    "str",
    "string",
    "sync",
    "time",
    "vec",
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

/// Pure files that reach out all the same, and to what: the loader reads loop files, sinks write.
const EXCEPTIONS: &[(&str, &[&str])] = &[
    (
        "definition/listing.rs",
        &["files", "fs_err", "std::fs", "std::path", "is_dir", "is_file", "is_symlink"],
    ),
    ("definition/builtin.rs", &["std::path"]),
    ("definition/load.rs", &["files", "fs_err", "std::io", "std::path", "is_dir", "is_file", "exists"]),
    ("definition/resolve.rs", &["std::path"]),
    ("definition/source_text.rs", &["std::path"]),
    ("definition/vendored.rs", &["files", "std::io", "std::path", "is_file"]),
    // Errors of files become errors of the calls that need them.
    ("git/error.rs", &["std::io"]),
    // An address is read as one, and nobody is asked.
    ("broker/host_row.rs", &["std::net::IpAddr"]),
    ("reuse/no_key.rs", &["std::io"]),
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
        let Some(room) = room(file) else {
            if file.contains('/') {
                broken.push(format!("{file}: the room has no line in the table"));
            }
            continue;
        };
        for name in names {
            match name {
                Named::File(other) => {
                    let of = other.split('/').next().unwrap_or_default();
                    let is_below = of == room.name || other == "lib.rs" || room.rooms.contains(&of);
                    if !is_below {
                        broken.push(format!("{file} names the room {of}"));
                    }
                    if is_pure(file) && !is_pure(other) && other != "lib.rs" && !is_excepted(file, of) {
                        broken.push(format!("{file} is pure and names {other}"));
                    }
                }
                Named::Elsewhere(path) => {
                    let first = path.split("::").next().unwrap_or_default();
                    let is_other_crate = dependencies.contains(first)
                        && !EVERYWHERE.contains(&first)
                        && !room.crates.contains(&first);
                    let reaches_out = is_pure(file) && matches!(first, "std" | "core") && !is_pure_std(path);
                    if (is_other_crate || reaches_out) && !is_excepted(file, path) {
                        broken.push(format!("{file} names {path}"));
                    }
                }
            }
        }
    }
    for (file, method) in house.methods() {
        if is_pure(file) && IMPURE_METHODS.contains(&method) && !is_excepted(file, method) {
            broken.push(format!("{file} calls {method}()"));
        }
    }
    broken.extend(circles(&names).iter().map(|circle| format!("circle: {circle:?}")));
    broken.extend(folder_circles(&names).iter().map(|circle| format!("circle of folders: {circle:?}")));
    broken
}

fn room(file: &str) -> Option<&'static Room> {
    let name = file.split_once('/')?.0;
    ROOMS.iter().find(|room| room.name == name)
}

/// Tells whether the table says that a file is pure, by itself or with its folder.
fn is_pure(file: &str) -> bool {
    let within = file.split_once('/').map_or("", |(_, within)| within);
    let says = |pure: &&str| {
        within == *pure || ((pure.is_empty() || pure.ends_with('/')) && within.starts_with(pure))
    };
    room(file).is_some_and(|room| room.pure.iter().any(says))
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
fn every_room_is_there_and_stands_above_what_it_names() {
    let directories = fs::read_dir(source()).unwrap().map(|entry| entry.unwrap().path());
    let there: BTreeSet<String> = directories
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let listed: BTreeSet<String> = ROOMS.iter().map(|room| room.name.to_owned()).collect();
    assert_eq!(there, listed);
    // Each room names only such as stand before it in the table.
    for (at, room) in ROOMS.iter().enumerate() {
        let below: Vec<&str> = ROOMS[..at].iter().map(|room| room.name).collect();
        assert!(room.rooms.iter().all(|name| below.contains(name)), "{}", room.name);
        for pure in room.pure {
            let path = source().join(room.name).join(pure);
            assert!(path.exists(), "what the table says to be pure is not there: {}", path.display());
        }
    }
}

/// Tests that name a room above theirs: evaluators are told in the words of a loop file, and what is written out is proved by
/// the machine that it makes.
const TESTS_ABOVE: &[(&str, &str)] = &[
    ("definition/emit.rs", "machine"),
    ("evaluate/exit_codes.rs", "definition"),
    ("evaluate/form.rs", "definition"),
    ("evaluate/testing.rs", "definition"),
];

#[test]
fn no_test_names_a_room_above_its_own() {
    let above = every_file(&source()).into_iter().flat_map(|(file, text)| {
        let below = ROOMS.iter().position(|room| file.starts_with(&format!("{}/", room.name)));
        let rooms = ROOMS.iter().skip(below.map_or(ROOMS.len(), |at| at + 1));
        let named = rooms.filter(move |room| text.contains(&format!("crate::{}::", room.name)));
        named.map(move |room| (file.clone(), room.name)).collect::<Vec<_>>()
    });
    let above: BTreeSet<(String, &str)> = above.collect();
    let known = TESTS_ABOVE.iter().map(|(file, room)| ((*file).to_owned(), *room)).collect();
    assert_eq!(above, known);
}

/// Returns every file of a directory, those of tests among them, with its path.
fn every_file(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(directory).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// Adds lines to files of the house, each with what is to be found then. All of them at once, for looking at the whole house
/// takes seconds; so what is found names the file.
#[track_caller]
fn mutants(added: &[(&str, &str, &str)]) {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    for (file, line, _) in added {
        let text = texts.entry(file).or_insert_with(|| FILES[*file].clone());
        text.push_str(line);
        text.push('\n');
    }
    let mut house = HOUSE.clone();
    for (file, text) in &texts {
        house.read(file, text);
    }
    let broken = broken(&house);
    for (file, line, found) in added {
        assert!(broken.iter().any(|broken| broken.contains(found)), "{line} in {file}: {broken:#?}");
    }
}

#[test]
fn what_a_room_may_not_name_is_found_however_it_is_written() {
    mutants(&[
        ("board/task.rs", "use std::fs;", "board/task.rs names std::fs"),
        ("engine/mod.rs", "use std::process::{Command};", "engine/mod.rs names std::process::Command"),
        ("engine/mod.rs", "fn f() { ureq::get(\"x\"); }", "engine/mod.rs names ureq::get"),
        ("base/name.rs", "use super::super::engine::Engine;", "base/name.rs names the room engine"),
        ("host/mod.rs", "use tokio::spawn;", "host/mod.rs names tokio::spawn"),
        (
            "engine/mod.rs",
            "use std as s; fn f() { s::fs::read(\"x\"); }",
            "engine/mod.rs names std::fs::read",
        ),
        (
            "engine/mod.rs",
            "use std::time::{Duration as D, Instant as I};",
            "engine/mod.rs names std::time::Instant",
        ),
        ("machine/mod.rs", "fn f() { vec![std::env::var(\"X\")]; }", "machine/mod.rs names std::env::var"),
        (
            "machine/mod.rs",
            "fn f(p: &X) -> bool { assert!(p.exists()); true }",
            "machine/mod.rs calls exists()",
        ),
        ("evaluate/mod.rs", "fn f(p: &X) -> bool { p.is_file() }", "evaluate/mod.rs calls is_file()"),
        ("criteria/mod.rs", "use crate::*;", "criteria/mod.rs: use …::*"),
        (
            "criteria/mod.rs",
            "use crate::internals::process::spawn;",
            "criteria/mod.rs goes through internals",
        ),
        ("run/mod.rs", "use crate::cli::main;", "run/mod.rs names the room cli"),
        ("run/mod.rs", "fn f() { crate::ci::Provider::detect(); }", "run/mod.rs names the room ci"),
        ("cli/mod.rs", "use ureq::get;", "cli/mod.rs names ureq::get"),
        ("definition/source_text.rs", "use std::fs::read;", "definition/source_text.rs names std::fs::read"),
        (
            "deliver/policy.rs",
            "use crate::git::runner::Git;",
            "deliver/policy.rs is pure and names git/runner.rs",
        ),
        (
            "fanout/item_plan.rs",
            "use super::collect::X;",
            "fanout/item_plan.rs is pure and names fanout/collect.rs",
        ),
        ("fanout/weights.rs", "use std::fs;", "fanout/weights.rs names std::fs"),
        ("board/mod.rs", "#[path = \"../x.rs\"] mod x;", "board/mod.rs: #[path]"),
    ]);
}

#[test]
fn a_name_is_followed_through_reexports() {
    let mut house = HOUSE.clone();
    house.read("base/mod.rs", &format!("{}pub use crate::process::spawn as started;", FILES["base/mod.rs"]));
    house.read("board/task.rs", &format!("{}use crate::base::started::run;", FILES["board/task.rs"]));
    let broken = broken(&house);
    for expected in ["base/mod.rs names the room process", "board/task.rs names the room process"] {
        assert!(broken.iter().any(|broken| broken == expected), "{expected}: {broken:#?}");
    }
}

#[test]
fn a_circle_of_files_is_found() {
    let mut house = HOUSE.clone();
    for (file, next) in [("a", "b"), ("b", "c"), ("c", "a")] {
        house.read(&format!("base/{file}.rs"), &format!("use super::{next}::X;"));
    }
    house.read("base/text.rs", &format!("{}use super::redact::Redactor;", FILES["base/text.rs"]));
    let found = broken(&house);
    let circle = "circle: {\"base/a.rs\", \"base/b.rs\", \"base/c.rs\"}";
    assert!(found.iter().any(|broken| broken == circle), "{found:#?}");
    let is_other = |broken: &String| broken.starts_with("circle: ") && broken.contains("\"base/text.rs\"");
    assert!(found.iter().any(is_other), "{found:#?}");
}

#[test]
fn a_circle_of_folders_is_found_on_every_level() {
    // One after the other: together they would be one circle.
    for mutant in [
        (
            "session/read/listed_runs.rs",
            "use crate::session::end::run_guard::X;",
            "circle of folders: {\"session/end\", \"session/read\"}",
        ),
        ("ci/service.rs", "use super::github::log_gate::X;", "\"ci/github\""),
        ("files/read.rs", "use crate::base::text::X;\nuse crate::git::raw_diff::X;", "\"files\", \"git\""),
    ] {
        mutants(&[mutant]);
    }
}

#[test]
fn one_place_puts_calls_of_git_together() {
    let naming: Vec<_> = FILES.iter().filter(|(_, text)| code(text).contains("\"git\"")).collect();
    let naming: Vec<_> = naming.iter().map(|(file, _)| file.as_str()).collect();
    // `--lock git` names the kind of a lock, known checks the git of a loop's commands, and what alters a checkout that of a job's
    // steps: they start nothing.
    // What a check calls is told by its words, and so is what a line of a job does.
    // An address may begin with `git:`, which is a protocol, and `ledger: git` names where a day's spending is kept.
    assert_eq!(
        naming,
        [
            "cli/flags.rs",
            "git/call.rs",
            "judges/command_words.rs",
            "judges/instructions.rs",
            "judges/read_words.rs",
            "machine/known_checks.rs",
            "policy/ledger_place.rs",
            "shelf/copies/git_address.rs",
            "shelf/upkeep/altered_checkout.rs",
            "shelf/upkeep/no_checks.rs",
            "shelf/upkeep/script_lines.rs"
        ]
    );
}

/// Where the variables of GitHub's runner are read, and where people are told of them or look whether one is set.
const OF_GITHUB: &[&str] = &[
    "ci/",
    "cli/advised.rs",
    "doctor/tools.rs",
    "forge/github/workflow_job.rs",
    "report/advice.rs",
    "sandbox/household.rs",
    // Names them in steps that it writes.
    "shelf/upkeep/install_steps.rs",
];

#[test]
fn one_place_reads_the_variables_of_githubs_runner() {
    let is_of_tests =
        |file: &str| file.ends_with("tests.rs") || file.ends_with("testing.rs") || file.contains("/tests/");
    let naming = FILES.iter().filter(|(file, text)| !is_of_tests(file) && code(text).contains("\"GITHUB_"));
    let others: Vec<_> =
        naming.filter(|(file, _)| !OF_GITHUB.iter().any(|place| file.starts_with(place))).collect();
    let others: Vec<_> = others.iter().map(|(file, _)| file.as_str()).collect();
    assert!(others.is_empty(), "ask `WorkflowJob` instead: {others:?}");
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
    "fs::write",
    "fs_err::copy",
    "fs_err::read",
    "fs_err::read_to_string",
    "fs_err::write",
    "tempfile::tempdir",
    "TempDir::new",
    "TempDir::with_prefix",
    "NamedTempFile::new",
    "NamedTempFile::new_in",
];

/// Where this is the task, or what is named is of the system or was just made.
const OPENERS: &[&str] = &[
    "bundle/pack.rs",
    "bundle/tree.rs",
    "cli/advised.rs",
    "cli/background.rs",
    "doctor/machine.rs",
    "files/aside.rs",
    "files/read.rs",
    "files/replace.rs",
    "forge/archive.rs",
    "git/own_index.rs",
    "journal/claim/mod.rs",
    "journal/files.rs",
    "journal/inherit.rs",
    "journal/snapshot.rs",
    "journal/witness.rs",
    "journal/writer.rs",
    "process/owner.rs",
    "process/private.rs",
    "process/signal.rs",
    "process/spawn.rs",
    "process/proc_table.rs",
    "run/put_back.rs",
    "run/tree_digest.rs",
    "repository/workspace.rs",
    "shelf/copies/merged_edits.rs",
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
        house.read("session/stop_run.rs", &format!("{}{line}", FILES["session/stop_run.rs"]));
        assert!(openers(&house).contains("session/stop_run.rs"), "{line}");
    }
}

#[test]
fn every_module_says_why_it_exists() {
    let silent: Vec<_> = FILES.iter().filter(|(_, text)| !text.starts_with("//! ")).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}
