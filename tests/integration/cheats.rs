//! Green means that the commit's own checks say so: every case of the corpus in `tests/cheats`, with the real program.
//!
//! A cheat makes the check of a run pass, and no run may call it verified or deliver it. An honest fix may be
//! verified and delivered, whatever it touches on its way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::common::{Project, Ran, git};

/// A project with a loop, and what an agent did to it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scene {
    /// What the project is, in a sentence.
    #[expect(dead_code, reason = "for who reads the file")]
    about: String,
    /// The start tree: the text of each file. One that begins with `#!` is executable.
    files: BTreeMap<String, String>,
    /// The loop `main`.
    r#loop: Map<String, Value>,
    /// The environment of the run.
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    cheats: BTreeMap<String, Case>,
    #[serde(default)]
    honest: BTreeMap<String, Case>,
}

/// How a case differs from its scene, and what has to come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The public history that has a fix like this one: `OWNER/NAME@COMMIT`.
    #[expect(dead_code, reason = "for who reads the file")]
    from: Option<String>,
    /// What the agent does, as a script of bash. Nothing, where the loop itself does all.
    #[serde(default = "nothing")]
    does: String,
    /// More files of the start tree; null for one that is not there.
    #[serde(default)]
    files: BTreeMap<String, Option<String>>,
    /// What is put over the loop, key by key; null takes a key away.
    #[serde(default)]
    r#loop: Map<String, Value>,
    /// What was done to the checkout before the run, as a script of bash.
    #[serde(default)]
    before: String,
    /// More environment of the run.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// More arguments of `run` and of `deliver`.
    #[serde(default)]
    run: Vec<String>,
    #[serde(default)]
    deliver: Vec<String>,
    /// Whether the check passes before the agent did anything.
    #[serde(default)]
    begins_green: bool,
    /// Of a cheat: why its success is not verified: one of `verification.reasons`, or how the run was terminated.
    held_by: Option<String>,
    /// Files that the report names among the judges or suppressions.
    #[serde(default)]
    named: BTreeSet<String>,
    /// Of an honest fix: how a check was confirmed, where that matters: `in_run` or `closing_pass`.
    confirmed: Option<String>,
    /// What the verification says of the judges.
    judges: Option<String>,
}

fn nothing() -> String {
    ":".to_owned()
}

/// The result of a case.
struct End {
    ran: Ran,
    result: Value,
    verification: Value,
    delivered: Ran,
}

#[test]
fn c() {
    play("c");
}

#[test]
fn dotnet() {
    play("dotnet");
}

#[test]
fn git_tricks() {
    play("git");
}

#[test]
fn go() {
    play("go");
}

#[test]
fn java() {
    play("java");
}

#[test]
fn javascript() {
    play("javascript");
}

#[test]
fn loops() {
    play("loops");
}

#[test]
fn php() {
    play("php");
}

#[test]
fn python() {
    play("python");
}

#[test]
fn ruby() {
    play("ruby");
}

#[test]
fn rust() {
    play("rust");
}

#[test]
fn shell() {
    play("shell");
}

#[test]
fn dart() {
    play("dart");
}

#[test]
fn documents() {
    play("documents");
}

#[test]
fn elixir() {
    play("elixir");
}

#[test]
fn haskell() {
    play("haskell");
}

#[test]
fn infrastructure() {
    play("infrastructure");
}

#[test]
fn scala() {
    play("scala");
}

#[test]
fn sql() {
    play("sql");
}

#[test]
fn swift() {
    play("swift");
}

#[test]
fn zig() {
    play("zig");
}

const PLAYED: &[&str] = &[
    "c",
    "dart",
    "documents",
    "dotnet",
    "elixir",
    "git",
    "go",
    "haskell",
    "infrastructure",
    "java",
    "javascript",
    "loops",
    "php",
    "python",
    "ruby",
    "rust",
    "scala",
    "shell",
    "sql",
    "swift",
    "zig",
];

#[test]
fn every_case_is_played() {
    let mut directories = Vec::new();
    for entry in fs::read_dir(corpus()).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() && entry.file_name() != "tools" {
            directories.push(entry.file_name().into_string().unwrap());
        }
    }
    directories.sort();
    assert_eq!(directories, PLAYED);
    let scenes = PLAYED.iter().flat_map(|directory| scenes(directory)).collect::<Vec<_>>();
    let cheats = scenes.iter().map(|(_, scene)| scene.cheats.len()).sum::<usize>();
    let honest = scenes.iter().map(|(_, scene)| scene.honest.len()).sum::<usize>();
    assert!(cheats >= 120 && honest >= 60, "{cheats} cheats, {honest} honest fixes");
    let names = scenes.iter().flat_map(|(path, scene)| {
        scene.cheats.keys().chain(scene.honest.keys()).map(move |name| format!("{path}: {name}"))
    });
    let names = names.collect::<BTreeSet<_>>();
    let gone = open().into_keys().filter(|name| !names.contains(name)).collect::<Vec<_>>();
    assert!(gone.is_empty(), "there are no such cases: {gone:?}");
}

/// The cases that do not hold yet, each with the reason. One that begins to hold has to be taken from the list.
fn open() -> BTreeMap<String, String> {
    let text = fs::read_to_string(corpus().join("open.yaml")).unwrap();
    let by_reason: BTreeMap<String, Vec<String>> = serde_yaml::from_str(&text).unwrap();
    let entries = by_reason.into_iter().flat_map(|(reason, names)| {
        names.into_iter().map(move |name| (name, reason.clone())).collect::<Vec<_>>()
    });
    entries.collect()
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cheats")
}

/// Reads the scenes of a directory, each with its name.
fn scenes(directory: &str) -> Vec<(String, Scene)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(corpus().join(directory)).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let text = fs::read_to_string(&path).unwrap();
        let scene = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        found.push((format!("{directory}/{stem}"), scene));
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// Says what should have been otherwise.
type Judged = fn(&End, &Case) -> Vec<String>;

/// Plays every case of a directory. `CHEAT=TEXT` plays those alone whose name has the text, and shows what they print.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "it is asked for by who plays one case by hand")]
fn play(directory: &str) {
    let wanted = std::env::var("CHEAT").unwrap_or_default();
    let open = open();
    let mut wrong = Vec::new();
    for (path, scene) in scenes(directory) {
        let cheats = scene.cheats.iter().map(|(name, case)| (name, case, caught as Judged));
        let honest = scene.honest.iter().map(|(name, case)| (name, case, accepted as Judged));
        for (name, case, judged) in cheats.chain(honest) {
            let name = format!("{path}: {name}");
            if !name.contains(&wanted) {
                continue;
            }
            let end = run(&scene, case);
            let mut found = took(&end, case);
            found.extend(judged(&end, case));
            wrong.extend(complaint(&name, &end, &found, open.get(&name), !wanted.is_empty()));
        }
    }
    assert!(wrong.is_empty(), "{} cases\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// What is wrong with a case, unless it is known not to hold. One that is wanted is always shown.
fn complaint(
    name: &str,
    end: &End,
    found: &[String],
    open: Option<&String>,
    is_wanted: bool,
) -> Option<String> {
    let said = match (open, found.is_empty()) {
        (Some(reason), true) => format!("it holds by now, and open.yaml says: {reason}"),
        (None, true) | (Some(_), false) if !is_wanted => return None,
        (_, true) => "it holds".to_owned(),
        (_, false) => found.join("\n  "),
    };
    let printed = format!("{}{}", end.ran.all(), end.delivered.all()).trim_end().replace('\n', "\n  | ");
    Some(format!("{name}\n  {said}\n  verification: {}\n  | {printed}", end.verification))
}

/// Makes the project of a case, runs its loop there, and delivers what it left.
fn run(scene: &Scene, case: &Case) -> End {
    let project = made(scene, case);
    let reports = TempDir::with_prefix("ll-cheat-").unwrap();
    let directory = reports.path().to_string_lossy().into_owned();
    let more = |given: &[&str], more: &[String]| {
        let all = given.iter().copied().chain(more.iter().map(String::as_str));
        project.run(&all.collect::<Vec<_>>())
    };
    let ran =
        more(&["run", "main", "--strict", "--on-change", "report", "--report-dir", &directory], &case.run);
    let result = fs::read_to_string(reports.path().join("result.json")).unwrap_or_default();
    let result: Value = serde_json::from_str(&result).unwrap_or_default();
    let run_id = result["outputs"]["run-id"].as_str().unwrap_or("main");
    let delivered = more(&["deliver", run_id, "--to", "patch"], &case.deliver);
    let verification = result["verification"].clone();
    End { ran, result, verification, delivered }
}

fn made(scene: &Scene, case: &Case) -> Project {
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", corpus().join("tools").display());
    let mut project = Project::new().env("PATH", path).env("CASE_AGENT_DOES", &case.does);
    for (name, value) in scene.env.iter().chain(&case.env) {
        project = project.env(name, value);
    }
    let mut definition = scene.r#loop.clone();
    definition.insert("name".to_owned(), json!("main"));
    put_over(&mut definition, &case.r#loop);
    project.write(".loops/main.yaml", &serde_yaml::to_string(&definition).unwrap());
    let own = scene.files.iter().map(|(path, text)| (path, Some(text)));
    let files = own.chain(case.files.iter().map(|(path, text)| (path, text.as_ref())));
    for (path, text) in files.collect::<BTreeMap<_, _>>() {
        if let Some(text) = text {
            project.write(path, text);
            if text.starts_with("#!") {
                fs::set_permissions(project.at(path), Permissions::from_mode(0o755)).unwrap();
            }
        }
    }
    git(&project, &["init", "-q", "-b", "main", "--template="]);
    let config = project.read(".git/config");
    project.write(".git/config", &format!("{config}{GIT_CONFIG}"));
    project.write(".git/info/exclude", "");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "start"]);
    if !case.before.is_empty() {
        let done = project.program("bash", &["-euc", &case.before]).output().unwrap();
        assert!(done.status.success(), "{}", Ran::of(&done).all());
    }
    project
}

/// Of every repository: who commits, and that nothing is tidied up in the background.
const GIT_CONFIG: &str = "\
[user]
\tname = agent
\temail = agent@example.org
[gc]
\tauto = 0
[maintenance]
\tauto = false
";

/// Puts the keys of a map over those of another, map by map; null takes a key away.
fn put_over(under: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => put_over(under, over),
            (_, Value::Null) => drop(under.remove(key)),
            (_, value) => drop(under.insert(key.clone(), value.clone())),
        }
    }
}

/// What shows that a case is none: a check that was red at first has to be green in the run.
fn took(end: &End, case: &Case) -> Vec<String> {
    let mut wrong = Vec::new();
    let first = &end.result["steps"][0]["verdict"];
    let is_green = first == "yes" || first == "success";
    if is_green != case.begins_green {
        wrong.push(format!("expected the check to be red before the agent came; its verdict was {first}"));
    }
    let last = &end.result["outputs"]["final-state"];
    if last != "done" {
        wrong.push(format!("expected the run to reach `done`, as its check would say; it ended in {last}"));
    }
    wrong
}

fn caught(end: &End, case: &Case) -> Vec<String> {
    let mut wrong = Vec::new();
    wrong.extend(ended(end, "false", 1, 5));
    let mut reasons = list(&end.verification["reasons"]);
    reasons.extend(end.result["terminated_by"].as_str().map(str::to_owned));
    let held_by = case.held_by.as_ref().expect("a cheat says what holds it");
    if !reasons.contains(held_by) {
        wrong.push(format!("expected the reason `{held_by}`; there are {reasons:?}"));
    }
    wrong.extend(named(end, case));
    wrong
}

fn accepted(end: &End, case: &Case) -> Vec<String> {
    let mut wrong = Vec::new();
    wrong.extend(ended(end, "true", 0, 0));
    let checks = end.verification["checks"].as_array().into_iter().flatten();
    let confirmed = checks.filter_map(|check| check["confirmed"].as_str()).collect::<BTreeSet<_>>();
    let is_as_said = case.confirmed.as_ref().is_none_or(|expected| confirmed.contains(expected.as_str()));
    if confirmed.is_empty() || confirmed.contains("no") || !is_as_said {
        wrong.push(format!(
            "expected the checks to be confirmed {:?}; they are {confirmed:?}",
            case.confirmed
        ));
    }
    wrong.extend(named(end, case));
    wrong
}

/// Compares `verified`, and the exit codes of `run` and `deliver`.
fn ended(end: &End, verified: &str, ran: i32, delivered: i32) -> Option<String> {
    let expected = (verified, Some(ran), Some(delivered));
    let was =
        (end.result["outputs"]["verified"].as_str().unwrap_or("none"), end.ran.code, end.delivered.code);
    (was != expected).then(|| {
        format!("expected `verified` and the exit codes of `run` and `deliver` to be {expected:?}; they are {was:?}")
    })
}

/// Compares what the report says of the judges.
fn named(end: &End, case: &Case) -> Vec<String> {
    let mut wrong = Vec::new();
    let judges = &end.verification["judges"];
    let listed = [&judges["files"], &end.verification["suppressions"]];
    let listed = listed.into_iter().filter_map(Value::as_array).flatten();
    let files = listed.filter_map(|file| file["path"].as_str()).collect::<BTreeSet<_>>();
    for path in case.named.iter().filter(|path| !files.contains(path.as_str())) {
        wrong.push(format!("expected `{path}` among the judges and suppressions; they are {files:?}"));
    }
    if case.judges.as_ref().is_some_and(|expected| judges["state"] != expected.as_str()) {
        wrong.push(format!("expected the judges to be {:?}; they are {}", case.judges, judges["state"]));
    }
    wrong
}

fn list(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
