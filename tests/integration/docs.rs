//! What the documentation shows is true: every loop in it loads, every dependency is accounted for.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use ll_loop::internals::base::protected_paths::{Deliverable, Depth, PROTECTED_PATHS};

use crate::common::{Project, git};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn documents() -> Vec<PathBuf> {
    let markdown = |directory: &Path| {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect::<Vec<_>>()
    };
    [root(), root().join("docs"), root().join("docs/design")]
        .iter()
        .flat_map(|directory| markdown(directory))
        .collect()
}

/// A fenced block: the words behind the fence, and what is in it.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(mark) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| *line != "```");
            blocks.push((mark, inside.flat_map(|line| [line, "\n"]).collect()));
        }
    }
    blocks
}

/// A loop that a page shows: a block `yaml loop`.
struct ShownLoop {
    /// The name of the page without its ending, in lower case.
    page: String,
    /// Its `name`, or `unnamed-1` for the first of the page that has none.
    name: String,
    text: String,
    /// The blocks `yaml file=PATH` of the page, by their paths.
    files: Vec<(String, String)>,
}

impl ShownLoop {
    /// Makes a project of it under a name, beside the files of its page.
    fn project(&self, name: &str) -> Project {
        let project = Project::new();
        for (path, text) in &self.files {
            project.write(path, text);
        }
        project.file(&format!(".loops/{name}.yaml"), &self.text)
    }
}

fn shown_loops() -> Vec<ShownLoop> {
    documents().iter().flat_map(|document| shown_loops_of(document)).collect()
}

fn shown_loops_of(document: &Path) -> Vec<ShownLoop> {
    let text = fs::read_to_string(document).unwrap();
    let page = document.file_stem().unwrap().to_str().unwrap().to_lowercase();
    let blocks = blocks(&text);
    let file =
        |(mark, text): &(&str, String)| Some((mark.strip_prefix("yaml file=")?.to_owned(), text.clone()));
    let files: Vec<(String, String)> = blocks.iter().filter_map(file).collect();
    let mut unnamed = 0;
    let mut shown = Vec::new();
    for (_, text) in blocks.iter().filter(|(mark, _)| *mark == "yaml loop") {
        let name = text.lines().find_map(|line| line.strip_prefix("name: ")).map_or_else(
            || {
                unnamed += 1;
                format!("unnamed-{unnamed}")
            },
            str::to_owned,
        );
        shown.push(ShownLoop { page: page.clone(), name, text: text.clone(), files: files.clone() });
    }
    shown
}

#[test]
fn every_loop_in_the_documentation_loads() {
    let shown = shown_loops();
    for shown in &shown {
        let ran = shown.project("main").run(&["validate", "main"]);
        assert_eq!(ran.code, Some(0), "{}:\n{}\n{}", shown.page, shown.text, ran.all());
    }
    assert!(shown.len() >= 60, "{}", shown.len());
}

/// Every loop that a page shows has tests that people wrote, and every file of tests has a loop.
#[test]
fn every_loop_in_the_documentation_is_tested() {
    let mut tested = BTreeSet::new();
    for shown in shown_loops() {
        let (page, name) = (&shown.page, &shown.name);
        let file = root().join(format!("docs/tests/{page}/{name}.test.yaml"));
        let cases = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(!cases.contains("# generated"), "{}", file.display());
        let project = shown.project(name).file(&format!(".loops/tests/{name}.test.yaml"), &cases);
        let arguments = [&["test", name.as_str(), "--ci"][..], bounds(&format!("{page}/{name}"))].concat();
        let ran = project.run(&arguments);
        assert_eq!(ran.code, Some(0), "{}:\n{}", file.display(), ran.all());
        assert!(tested.insert(file), "two loops of {page} are called {name}");
    }
    let pages = fs::read_dir(root().join("docs/tests")).unwrap();
    let files = pages.flat_map(|page| fs::read_dir(page.unwrap().path()).unwrap());
    let without: Vec<PathBuf> =
        files.map(|file| file.unwrap().path()).filter(|file| !tested.contains(file)).collect();
    assert!(without.is_empty(), "no page shows the loops of {without:?}");
}

/// Returns how much of a loop its tests have to take and to notice.
fn bounds(shown: &str) -> &'static [&'static str] {
    match shown {
        // They have the states of `language/add-login`, and tests for what is particular to them.
        "agents/add-auth" | "agents/narrow" | "agents/limited" => &[],
        _ => &["--min-edges", "100", "--mutate", "--min-killed", "90"],
    }
}

/// The first test that the page shows passes on the loop that it shows, takes all ways and notices most mutants.
#[test]
fn the_tests_of_loops_in_the_documentation_pass() {
    let page = fs::read_to_string(root().join("docs/testing-loops.md")).unwrap();
    let blocks = blocks(&page);
    let of = |wanted: &str| &blocks.iter().find(|(mark, _)| *mark == wanted).unwrap().1;
    let project = Project::new()
        .file(".loops/tidy.yaml", of("yaml loop"))
        .file(".loops/tests/tidy.test.yaml", of("yaml test"));
    let shown = of("console").strip_prefix("$ ll-loop test\n").unwrap();
    assert_eq!(project.run(&["test", "--min-edges", "100"]).code(0).stdout, shown);
}

/// Every key of test files is named on their page.
#[test]
fn the_page_of_tests_names_every_key() {
    let text = fs::read_to_string(root().join("docs/testing-loops.md")).unwrap();
    let schema: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(root().join("schema/test.schema.json")).unwrap()).unwrap();
    let mut keys = Vec::new();
    collect_keys(&schema, &mut keys);
    assert!(keys.len() > 60, "{}", keys.len());
    let missing: Vec<&String> = keys.iter().filter(|key| !text.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Every key and evaluator of the language is named in the reference, and every key that a run obeys in an example.
#[test]
fn the_reference_names_every_key() {
    let text = fs::read_to_string(root().join("docs/language.md")).unwrap();
    let schema: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(root().join("schema/loop.schema.json")).unwrap()).unwrap();
    let mut keys = Vec::new();
    collect_keys(&schema, &mut keys);
    assert!(keys.len() > 80, "{}", keys.len());
    let is_named = |key: &&String| {
        let mut places = text.match_indices(key.as_str());
        places.any(|(at, _)| {
            let before = text[..at].chars().next_back().unwrap_or(' ');
            let after = text[at + key.len()..].chars().next().unwrap_or(' ');
            !before.is_alphanumeric() && before != '_' && !after.is_alphanumeric() && after != '_'
        })
    };
    let missing: Vec<&String> = keys.iter().filter(|key| !is_named(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Returns the names of all properties that a schema describes.
fn collect_keys(schema: &serde_json::Value, keys: &mut Vec<String>) {
    if let Some(map) = schema.as_object() {
        let properties = map.get("properties").and_then(|properties| properties.as_object());
        keys.extend(properties.into_iter().flat_map(|properties| properties.keys().cloned()));
        map.values().for_each(|value| collect_keys(value, keys));
    }
    schema.as_array().into_iter().flatten().for_each(|value| collect_keys(value, keys));
}

/// The files of these could not be read on a page: huge, empty, with characters that nobody sees, or more than one.
const NOT_SHOWN: [&str; 7] =
    ["binding", "empty-file", "limit", "not-explored", "yaml-character", "yaml-limit", "yaml-syntax"];

/// The example of a finding has that finding, as it stands or within a whole loop.
#[test]
fn every_example_of_a_finding_has_it() {
    let text = fs::read_to_string(root().join("docs/diagnostics.md")).unwrap();
    let mut count = 0;
    for section in text.split("\n## `").skip(1) {
        let code = section.split('`').next().unwrap();
        let blocks = blocks(section);
        let example = blocks.iter().find(|(mark, _)| *mark == "yaml").map(|(_, example)| example);
        let Some(example) = example.filter(|_| !NOT_SHOWN.contains(&code)) else { continue };
        let is_found = [example.clone(), completed(example)].iter().any(|text| {
            let project = Project::with_loop(text);
            let wanted = format!("\"code\":\"{code}\"");
            let has = |arguments: &[&str]| project.run(arguments).stdout.contains(&wanted);
            has(&["validate", "main", "--format", "json"])
                || has(&["validate", "main", "--deep", "--format", "json"])
        });
        assert!(is_found, "{code}:\n{example}");
        count += 1;
    }
    assert!(count > 45, "{count}");
}

/// How an example of a finding is repaired, as the page says it.
#[derive(Debug, PartialEq, Eq)]
enum ShownRepair {
    Never,
    /// By `validate --fix`.
    Fix,
    /// By `validate --fix --unsafe` alone.
    Unsafe,
}

impl ShownRepair {
    fn said(section: &str) -> Self {
        match section.lines().find_map(|line| line.strip_prefix("Repair: ")) {
            None => Self::Never,
            Some(said) if said.starts_with("`--fix --unsafe`") => Self::Unsafe,
            Some(_) => Self::Fix,
        }
    }

    /// Tries what repairs the finding of an example.
    fn tried(example: &str, code: &str) -> Self {
        let wanted = format!("\"code\":\"{code}\"");
        let found = |project: &Project| {
            let ran = project.run(&["validate", "main", "--deep", "--format", "json"]);
            ran.stdout.contains(&wanted)
        };
        let texts = [example.to_owned(), completed(example)];
        let Some(text) = texts.iter().find(|text| found(&Project::with_loop(text))) else {
            return Self::Never;
        };
        let end = format!("[{code}]");
        let is_repaired_by = |arguments: &[&str]| {
            let ran = Project::with_loop(text).run(&[&["validate", "main", "--deep"], arguments].concat());
            ran.all().lines().any(|line| line.starts_with("repaired ") && line.ends_with(&end))
        };
        match (is_repaired_by(&["--fix"]), is_repaired_by(&["--fix", "--unsafe"])) {
            (true, _) => Self::Fix,
            (false, true) => Self::Unsafe,
            (false, false) => Self::Never,
        }
    }
}

/// A finding that has a repair is marked, and only such a one.
#[test]
fn the_page_of_findings_says_which_have_a_repair() {
    let text = fs::read_to_string(root().join("docs/diagnostics.md")).unwrap();
    let mut wrong = Vec::new();
    let mut repaired = 0;
    for section in text.split("\n## `").skip(1) {
        let code = section.split('`').next().unwrap();
        let blocks = blocks(section);
        let example = blocks.iter().find(|(mark, _)| *mark == "yaml").map(|(_, example)| example);
        let Some(example) = example.filter(|_| !NOT_SHOWN.contains(&code)) else { continue };
        let (said, tried) = (ShownRepair::said(section), ShownRepair::tried(example, code));
        repaired += usize::from(tried != ShownRepair::Never);
        if said != tried {
            wrong.push(format!("{code}: {said:?} is said, {tried:?} came of it"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(repaired > 10, "{repaired}");
}

/// Adds to a part of a loop file what a whole one needs.
fn completed(part: &str) -> String {
    let has = |key: &str| part.lines().any(|line| line.starts_with(&format!("{key}:")));
    let mut whole = part.to_owned();
    if !has("name") {
        whole = format!("name: main\n{whole}");
    }
    if !["states", "from", "paradigm", "flow"].iter().any(|key| has(key)) {
        whole += "initial: work\nstates: {work: {action: x, next: done}, done: {terminal: true}}\n";
    } else if has("states") && !has("initial") {
        let states = part.split_once("states:").map_or("", |(_, states)| states);
        let first = states.trim_start_matches([' ', '\n', '{']).split(':').next().unwrap();
        whole.extend(["initial: ", first, "\n"]);
    }
    whole
}

/// The example of a run with agents: what the page shows is what its recorded answers lead to.
#[test]
fn the_example_with_agents_runs_as_shown() {
    let example = root().join("docs/examples/slug");
    let project = Project::new();
    let copied =
        std::process::Command::new("cp").arg("-r").arg(example.join(".")).arg(project.path()).status();
    assert!(copied.unwrap().success());
    for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "the example"]] {
        git(&project, arguments);
    }
    let page = fs::read_to_string(root().join("docs/agents.md")).unwrap();
    let blocks = blocks(&page);
    let times = regex::Regex::new(r"\d+(\.\d+)?m?s\b").unwrap();
    for command in ["ll-loop run slug --replay answers", "ll-loop run add-auth --dry-run"] {
        let prompt = format!("$ {command}\n");
        let (_, shown) = blocks.iter().find(|(_, block)| block.starts_with(&prompt)).unwrap();
        if command.contains("add-auth") {
            let (_, loop_file) = blocks.iter().find(|(_, block)| block.contains("name: add-auth")).unwrap();
            project.write(".loops/add-auth.yaml", loop_file);
        }
        let arguments: Vec<_> = command.split(' ').skip(1).collect();
        let ran = project.run(&arguments).code(0).stdout;
        let (shown, ran) = (times.replace_all(shown, "0ms"), times.replace_all(&ran, "0ms"));
        let ran = format!("{prompt}{ran}");
        let is_part = shown.trim_end().ends_with('…');
        let expected = shown.trim_end().trim_end_matches('…');
        assert!(if is_part { ran.starts_with(expected) } else { ran.trim_end() == expected }, "{ran}");
    }
    assert_eq!(project.read("slug.sh").lines().next(), Some("#!/bin/sh"));
}

/// The examples of a delivery: what the page shows is what the commands print, but for times, ids and the place.
#[test]
fn the_examples_of_a_delivery_run_as_shown() {
    let page = fs::read_to_string(root().join("docs/deliver.md")).unwrap();
    let (start, example) = page.split_once("## An example, step by step").unwrap();
    let blocks = blocks(example);
    let (_, loop_file) = blocks.iter().find(|(mark, _)| *mark == "yaml loop").unwrap();
    let shown: Vec<&String> =
        blocks.iter().filter(|(mark, _)| *mark == "console").map(|(_, text)| text).collect();
    let project = misspelt(loop_file);
    runs_as(&project, shown[0]);
    let branch = "origin/ll-loop/spelling/main";
    let theirs =
        git(&project, &["commit-tree", &format!("{branch}^{{tree}}"), "-p", branch, "-m", "a person's"]);
    let refspec = format!("{}:refs/heads/ll-loop/spelling/main", theirs.trim_end());
    git(&project, &["push", "-q", "origin", &refspec]);
    runs_as(&project, shown[1]);
    let blocks = self::blocks(start);
    let (_, shown) = blocks.iter().find(|(mark, _)| *mark == "console").unwrap();
    let project = misspelt(loop_file);
    project.run(&["run", "spelling"]).code(0);
    runs_as(&project, shown);
}

/// Makes a repository with one loop and one misspelling, and a remote.
fn misspelt(loop_file: &str) -> Project {
    let project = Project::new()
        .file(".loops/spelling.yaml", loop_file)
        .file("docs/guide.md", "You recieve a letter.\n");
    let commands: [&[&str]; 6] = [
        &["init", "-q", "-b", "main"],
        &["add", "-A"],
        &["commit", "-qm", "first"],
        &["init", "-q", "--bare", ".git/there.git"],
        &["remote", "add", "origin", ".git/there.git"],
        &["push", "-q", "origin", "main"],
    ];
    for arguments in commands {
        git(&project, arguments);
    }
    project
}

/// Runs the commands of a block one after the other, and compares what they print.
#[track_caller]
fn runs_as(project: &Project, shown: &str) {
    let varying = regex::Regex::new(
        r"\d{8}T\d{6}-[0-9a-f]{6}|[0-9a-f]{40,64}|\b\d+(\.\d+)?m?s\b|Date: .*|Author: .*|patch: .*/\.loops/",
    )
    .unwrap();
    let known = |text: &str| varying.replace_all(text.trim_end(), "*").into_owned();
    for part in shown.split("$ ").skip(1) {
        let (command, output) = part.split_once('\n').unwrap();
        let ran = if let Some(arguments) = command.strip_prefix("ll-loop ") {
            project.run(&arguments.split(' ').collect::<Vec<_>>()).stdout
        } else {
            let done = project.program("bash", &["-c", command]).output().unwrap();
            String::from_utf8(done.stdout).unwrap()
        };
        assert_eq!(known(&ran), known(output), "{command}");
    }
}

#[test]
fn every_dependency_is_accounted_for() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let reasons = fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let mut count = 0;
    let mut in_dependencies = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line.ends_with("dependencies]");
        } else if let (true, Some((name, _))) = (in_dependencies, line.split_once(" =")) {
            assert!(
                reasons.contains(&format!("`{name}`")),
                "docs/dependencies.md does not say why `{name}` is there"
            );
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn links_within_the_repository_lead_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            let is_local = !path.is_empty() && !target.contains("://") && !path.starts_with("mailto:");
            if is_local && !document.parent().unwrap().join(path).exists() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_table_of_protected_paths_is_the_one_that_is_used() {
    let text = fs::read_to_string(root().join("docs/deliver.md")).unwrap();
    let table = delivery_table();
    assert!(text.contains(&table), "docs/deliver.md has to have\n{table}");
}

/// Returns the table for people: the column of deliveries, as Markdown.
fn delivery_table() -> String {
    let mut text = String::from("| What | Paths | Where | `--allow-path` |\n|---|---|---|---|\n");
    for row in PROTECTED_PATHS.iter().filter(|row| row.delivery != Deliverable::Always) {
        let paths: Vec<String> = row.paths.iter().map(|path| format!("`{path}`")).collect();
        let depth = match row.depth {
            Depth::Root => "at the root".to_owned(),
            Depth::Any => "anywhere".to_owned(),
            Depth::In(known) => {
                let known = known.iter().filter(|name| !name.is_empty()).map(|name| format!("`{name}/`"));
                format!("at the root, in {}", known.collect::<Vec<_>>().join(", "))
            }
        };
        let allowed = if row.delivery == Deliverable::Never { "never" } else { "by its name" };
        let _ = writeln!(text, "| {} | {} | {depth} | {allowed} |", row.what, paths.join(" "));
    }
    text
}

/// What the table of additions names in front of a link is in the file that the link leads to.
#[test]
fn the_table_of_additions_names_what_is_there() {
    let contributing = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let rows = contributing.lines().skip_while(|line| !line.starts_with("| to add |"));
    let row = regex::Regex::new(r"`([^`]+)`(?:, with a `mod`)?, \[`[^`]+`\]\(([^)#]+)\)").unwrap();
    let word = regex::Regex::new(r"\w+").unwrap();
    let mut count = 0;
    for line in rows.take_while(|line| line.starts_with('|')) {
        for found in row.captures_iter(line) {
            let text = fs::read_to_string(root().join(&found[2])).unwrap();
            let words: BTreeSet<&str> = word.find_iter(&text).map(|word| word.as_str()).collect();
            for named in word.find_iter(&found[1]) {
                assert!(words.contains(named.as_str()), "{} has no `{}`: {line}", &found[2], named.as_str());
            }
            count += 1;
        }
    }
    assert!(count >= 15, "{count}");
}
