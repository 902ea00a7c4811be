//! Every loop of `tests/fixtures/loops`, whole and damaged: what is wrong is said at its own line, and nothing is fatal.

use std::fs;
use std::path::Path;

use ll_loop::internals::base::diagnostic::{Diagnostics, Severity};
use ll_loop::internals::base::node::Node;
use ll_loop::internals::definition::source_text::Sources;
use ll_loop::internals::definition::{json_schema, load, render};
use ll_loop::internals::machine::{check, compile};
use serde_json::Value;

/// The loops, by the names of their files.
fn corpus() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/loops");
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// What `validate --deep` finds in a text, as objects.
fn findings(text: &str) -> Vec<Value> {
    let (findings, sources, tree): (Diagnostics, Sources, Option<Node>) =
        match load::decode("loop.yaml", text, String::new()) {
            Ok(loaded) => {
                let mut findings = loaded.findings;
                let (machine, problems) = compile::compile(&loaded.definition);
                findings.extend(problems);
                if let Some(machine) = machine {
                    findings.extend(check::check_deeply(&machine, &loaded.definition));
                }
                (findings, loaded.sources, Some(loaded.tree))
            }
            Err(rejected) => {
                assert!(rejected.findings.has_errors(), "{text}");
                (rejected.findings, rejected.sources, rejected.tree)
            }
        };
    if findings.count(Severity::Note) < 5 {
        drop(render::to_text(&findings, &sources, tree.as_ref(), true));
    }
    render::to_json(&findings, &sources, tree.as_ref())
}

/// Everything that is found must be about a place that exists.
#[track_caller]
fn found_within(text: &str) -> Vec<Value> {
    let lines: Vec<&str> = text.lines().collect();
    let found = findings(text);
    for object in &found {
        for place in [Some(object), object.get("related")].into_iter().flatten() {
            let number = |key: &str| usize::try_from(place[key].as_u64().unwrap()).unwrap();
            let (line, end) = (number("line"), number("end_line"));
            assert!((1..=lines.len().max(1)).contains(&line) && end == line, "{object} in\n{text}");
            let length = lines.get(line - 1).map_or(0, |line| line.chars().count());
            assert!(
                number("column") <= length + 1 && number("end_column") <= length + 1,
                "{object} in\n{text}"
            );
        }
    }
    found
}

/// A key of a block mapping: its line, the columns of its name, and the end of what belongs to it.
struct Key {
    line: usize,
    name: std::ops::Range<usize>,
    end: usize,
}

/// Finds the keys of block mappings by their looks; lines of block scalars look different enough, or are keys of
/// nobody, and are damaged all the same.
fn keys(lines: &[&str]) -> Vec<Key> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_blank = |line: &str| line.trim().is_empty();
    lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| {
            let start = indent(line);
            let length = line[start..].find(':')?;
            let name = &line[start..start + length];
            let is_name =
                name.chars().all(|c| c.is_alphanumeric() || "_-'\" $".contains(c)) && !name.is_empty();
            let follows = line[start + length + 1..].chars().next().is_none_or(|c| c == ' ');
            let below = lines[at + 1..].iter().take_while(|next| is_blank(next) || indent(next) > start);
            let end = at + 1 + below.count();
            (is_name && follows && !line[start..].starts_with("- ")).then_some(Key {
                line: at,
                name: start..start + length,
                end,
            })
        })
        .collect()
}

fn joined(lines: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    lines.into_iter().fold(String::new(), |text, line| text + line.as_ref() + "\n")
}

#[test]
fn the_corpus_is_good() {
    let corpus = corpus();
    assert!(corpus.len() >= 25, "{}", corpus.len());
    let schema = jsonschema::validator_for(&json_schema::json_schema()).unwrap();
    for (name, text) in corpus {
        let bad: Vec<_> =
            found_within(&text).into_iter().filter(|object| object["severity"] == "error").collect();
        assert!(bad.is_empty(), "{name}: {bad:#?}");
        let value: Value = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let errors: Vec<_> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
        // Merge keys are applied by the loader, not by editors.
        assert!(errors.is_empty() || text.contains("<<:"), "{name}: {errors:?}");
    }
}

#[test]
fn a_key_that_is_gone_or_there_twice_is_no_riddle() {
    for (name, text) in corpus() {
        let lines: Vec<&str> = text.lines().collect();
        for key in keys(&lines) {
            let without = lines[..key.line].iter().chain(&lines[key.end..]);
            found_within(&joined(without));
            let twice = lines[..key.end].iter().chain(&lines[key.line..key.end]).chain(&lines[key.end..]);
            let found = found_within(&joined(twice));
            let in_a_text = findings(&text) == found;
            let said = found
                .iter()
                .any(|object| object["code"] == "duplicate-key" || object["code"] == "yaml-anchor");
            let is_an_error = found.iter().any(|object| object["severity"] == "error");
            assert!(
                said || is_an_error || in_a_text || is_in_block(&lines, key.line),
                "{name}:{}: {found:#?}",
                key.line + 1
            );
        }
    }
}

/// Tells whether a line belongs to a block scalar.
fn is_in_block(lines: &[&str], at: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let here = indent(lines[at]);
    let parent = lines[..at].iter().rev().find(|line| !line.trim().is_empty() && indent(line) < here);
    parent.is_some_and(|line| line.ends_with('|') || line.ends_with('>') || line.ends_with(">-"))
}

#[test]
fn a_misspelt_key_is_reported_at_its_own_line() {
    let mut count = 0;
    for (name, text) in corpus() {
        let lines: Vec<&str> = text.lines().collect();
        for key in keys(&lines).into_iter().filter(|key| !is_in_block(&lines, key.line)) {
            let word = &lines[key.line][key.name.clone()];
            let Some(wrong) = misspelt(word) else { continue };
            let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            changed[key.line].replace_range(key.name.clone(), &wrong);
            let found = found_within(&joined(&changed));
            let at_its_line = |object: &Value| {
                object["line"] == key.line + 1 && object["message"].as_str().unwrap().contains(&wrong)
            };
            assert!(found.iter().any(at_its_line), "{name}:{}: `{wrong}`: {found:#?}", key.line + 1);
            count += 1;
        }
    }
    assert!(count > 200, "{count}");
}

/// Misspells a word that only a key of the language can be; names of states and variables are free.
fn misspelt(word: &str) -> Option<String> {
    const KEYS: &[&str] = &[
        "name",
        "description",
        "initial",
        "states",
        "max_iterations",
        "max_steps",
        "max_edge_revisits",
        "timeout",
        "default_timeout",
        "backoff",
        "maintain",
        "maintain_delay",
        "on_max_iterations",
        "on_max_steps",
        "parameters",
        "input_key",
        "required_inputs",
        "action",
        "evaluate",
        "route",
        "next",
        "terminal",
        "outcome",
        "capture",
        "append_to_messages",
        "max_retries",
        "on_retry_exhausted",
        "on_yes",
        "on_no",
        "on_success",
        "on_failure",
        "pattern",
        "operator",
        "tolerance",
        "direction",
    ];
    let at = word.len() / 2;
    KEYS.contains(&word).then(|| format!("{}x{}", &word[..at], &word[at..]))
}

#[test]
fn a_value_of_another_type_is_never_fatal() {
    const VALUES: &[&str] =
        &["[1, 2]", "{a: b}", "-1", "1.5", "true", "~", "'text'", "|", "&x *x", "\"", "${x.y}", "*no"];
    for (_, text) in corpus() {
        let lines: Vec<&str> = text.lines().collect();
        for key in keys(&lines) {
            for value in VALUES {
                let changed = format!("{}: {value}", &lines[key.line][..key.name.end]);
                let before = lines[..key.line].iter().copied();
                let all = before.chain([changed.as_str()]).chain(lines[key.end..].iter().copied());
                found_within(&joined(all));
            }
        }
    }
}

#[test]
fn half_a_file_is_never_fatal() {
    for (_, text) in corpus() {
        let lines: Vec<&str> = text.lines().collect();
        for cut in 0..=lines.len() {
            found_within(&joined(&lines[..cut]));
            found_within(&joined(&lines[cut..]));
        }
        for (cut, _) in text.char_indices().step_by(7) {
            found_within(&text[..cut]);
        }
    }
}

/// Bad files, one a file of the corpus: a word, and what it is replaced by.
const BAD: &[(&str, &str, &str)] = &[
    ("check-fix.yaml", "max_iterations: 5", "max_iterations: 0"),
    ("check-fix.yaml", "outcome: failure", "outcome: sad"),
    ("check-fix.yaml", "on_yes: done", "on_yes: [done]"),
    ("check-fix.yaml", "initial: check", "initial: {a: b}"),
    ("limits.yaml", "timeout: 1h30m", "timeout: 1x"),
    ("limits.yaml", "backoff: 0.5", "backoff: -1"),
    ("limits.yaml", "max_steps: 30", "max_steps: many"),
    ("retries.yaml", "[6, 7, 28]", "[six]"),
    ("parameters.yaml", "type: enum", "type: colour"),
    ("parameters.yaml", "required: true", "required: 'yes'"),
    ("numbers.yaml", "operator: lt", "operator: less"),
    ("numbers.yaml", "type: output_numeric", "type: output_number"),
    ("convergence.yaml", "direction: minimize", "direction: down"),
    ("environment.yaml", "shell: sh", "shell: zsh"),
    ("listed.yaml", "labels: [ci, nightly]", "labels: ci"),
    ("listed.yaml", "on_handoff: pause", "on_handoff: explode"),
    ("maintain.yaml", "maintain: true", "maintain: perhaps"),
    ("maintain.yaml", "terminal: true", "terminl: true"),
    ("json.yaml", "path: .summary.failed", "pathh: .summary.failed"),
    ("captures.yaml", "capture_exit: true", "capture_exit: 1"),
];

#[test]
fn the_loader_and_the_schema_agree_on_what_is_bad() {
    let schema = jsonschema::validator_for(&json_schema::json_schema()).unwrap();
    let corpus = corpus();
    for (file, good, bad) in BAD {
        let (_, text) = corpus.iter().find(|(name, _)| name == file).unwrap();
        let changed = text.replacen(good, bad, 1);
        assert_ne!(&changed, text, "{file}: {good}");
        let refused = load::decode(file, &changed, String::new()).is_err();
        let value: Value = serde_yaml::from_str(&changed).unwrap();
        assert!(refused && !schema.is_valid(&value), "{file}: {bad}: the loader refuses it: {refused}");
    }
}
