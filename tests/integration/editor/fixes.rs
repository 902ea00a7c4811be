//! Repairs: in the editor and by `validate --fix`. The finding is gone, and nothing else has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, uri};
use crate::common::Project;

/// Findings that say what to write, each with what is written.
const CASES: &[(&str, &str)] = &[
    // A key, in a comment's neighbourhood.
    (
        "name: main # here\ninitial: a\nstates:\n  a:\n    # what it does\n    acton: make   # odd\n    on_yes: b\n    on_no: c\n  b: {terminal: true}\n  c: {terminal: true, outcome: failure, description: no}\n",
        "name: main # here\ninitial: a\nstates:\n  a:\n    # what it does\n    action: make   # odd\n    on_yes: b\n    on_no: c\n  b: {terminal: true}\n  c: {terminal: true, outcome: failure, description: no}\n",
    ),
    // Names of states, truths, words of an evaluator, namespaces; several in one file, in brackets and in quotes.
    (
        "name: main\ninitial: chek\nstates:\n  check: {action: 'echo ${contxt.x}', evaluate: {type: exit_cod}, on_yes: 'doen', on_no: check}\n  done: {terminal: yes}\n",
        "name: main\ninitial: check\nstates:\n  check: {action: 'echo ${context.x}', evaluate: {type: exit_code}, on_yes: 'done', on_no: check}\n  done: {terminal: true}\n",
    ),
    (
        "name: main\ninitial: a\nstates:\n  a: {fragment: helo, with: {wat: x}, on_yes: b, on_no: b}\n  b: {terminal: \"true\"}\nfragments:\n  hello:\n    parameters: {what: {type: string}}\n    action: echo ${param.wht}\n",
        "name: main\ninitial: a\nstates:\n  a: {fragment: hello, with: {what: x}, on_yes: b, on_no: b}\n  b: {terminal: true}\nfragments:\n  hello:\n    parameters: {what: {type: string}}\n    action: echo ${param.what}\n",
    ),
    // What has no effect goes, with its line alone.
    (
        "name: main\ninitial: a\nthrottle: 3 # old\n# stays\nstates:\n  a: {action: make, effort: high, on_yes: b, on_no: b}\n  b: {terminal: true}\n",
        "name: main\ninitial: a\n# stays\nstates:\n  a: {action: make, on_yes: b, on_no: b}\n  b: {terminal: true}\n",
    ),
];

/// Changes what a run does, so it is asked for.
const UNQUOTED: &str = "name: main
description: d
initial: a
states:
  a: {action: make, capture: out, next: b}
  b: {action: 'echo ${captured.out}', on_yes: c, on_no: c}
  c: {terminal: true, outcome: success}
";

#[test]
fn what_has_one_answer_is_written_and_nothing_else() {
    for (index, (wrong, right)) in CASES.iter().enumerate() {
        for (ends, mark) in [("\n", ""), ("\r\n", "\u{feff}")] {
            let written = |text: &str| format!("{mark}{}", text.replace('\n', ends));
            let project = Project::with_loop(&written(wrong));
            let ran = project.run(&["validate", "--fix", "main"]);
            assert_eq!(project.read(".loops/main.yaml"), written(right), "case {index}: {}", ran.all());
            let again = project.run(&["validate", "--fix", "main"]);
            assert!(!again.all().contains("repaired"), "case {index}: {}", again.all());
        }
    }
}

#[test]
fn what_changes_a_run_is_repaired_only_when_asked() {
    let project = Project::with_loop(UNQUOTED);
    project.run(&["validate", "--fix", "main"]).code(0).says("template-injection");
    assert_eq!(project.read(".loops/main.yaml"), UNQUOTED);
    project.run(&["validate", "--fix", "--unsafe", "main"]).code(0).says("repaired .loops/main.yaml:6: ");
    assert_eq!(project.read(".loops/main.yaml"), UNQUOTED.replace("captured.out}", "captured.out:shell}"));
    project.run(&["validate", "--unsafe", "main"]).code(2);
}

/// Returns every loop of the catalogue and of the tests.
fn corpus() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["catalog", "tests/fixtures/loops"]
        .into_iter()
        .flat_map(|directory| fs::read_dir(root.join(directory)).unwrap().map(|entry| entry.unwrap().path()));
    let mut loops: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    loops.sort();
    // What it is about has no effect, and goes.
    loops.retain(|(name, _)| name != "compatible");
    loops
}

/// What somebody types wrong, and how it is written.
const SLIPS: [(&str, &str); 5] = [
    ("    action: ", "    acton: "),
    ("terminal: true", "terminal: yes"),
    ("\ninitial: ", "\ninital: "),
    ("evaluate:", "evalute:"),
    ("${context.", "${contxt."),
];

#[test]
fn every_slip_in_a_good_loop_is_taken_back_to_the_letter() {
    let project = Project::new();
    let mut expected = Vec::new();
    for (name, text) in corpus() {
        for (index, (right, wrong)) in SLIPS.iter().enumerate() {
            // What a value of `context` names is resolved when a run starts, and not before.
            let is_open = name == "context" && *right == "${context.";
            if text.contains(right) && !is_open {
                let file = format!(".loops/{name}-{index}.yaml");
                project.write(&file, &text.replacen(right, wrong, 1));
                expected.push((file, text.clone()));
            }
        }
    }
    assert!(expected.len() > 100, "{}", expected.len());
    let ran = project.run(&["validate", "--fix", "--errors-only"]);
    for (file, text) in expected {
        assert_eq!(project.read(&file), text, "{file}: {}", ran.all());
    }
}

/// Returns the titles of actions: of those that a finding says, or of those among which somebody chooses.
fn titles(actions: &Value, are_answers: bool) -> Vec<&str> {
    let all = actions.as_array().unwrap().iter();
    let wanted = all.filter(|action| action["isPreferred"] == are_answers);
    wanted.map(|action| action["title"].as_str().unwrap()).collect()
}

#[test]
fn where_a_finding_has_several_answers_each_is_an_action() {
    let text = "name: main\ndescription: d\ninitial: check\nnonsense: 1\nstates:\n  check: {action: make, on_yes: elsewhere, on_no: failed}\n  \
        done: {terminal: true}\n  failed: {terminal: true, outcome: failure}\n";
    let project = Project::with_loop(text);
    let file = project.at(".loops/main.yaml");
    let mut client = Client::open_in(&project, &json!({}));
    client.open(&file, text);
    let mut at = |line: u32| {
        let here = json!({"start": {"line": line, "character": 0}, "end": {"line": line, "character": 99}});
        let params =
            json!({"textDocument": {"uri": uri(&file)}, "range": here, "context": {"diagnostics": []}});
        client.ask("textDocument/codeAction", &params)
    };
    assert_eq!(titles(&at(3), false), ["Remove this"]);
    let states = at(5);
    assert_eq!(titles(&states, true), Vec::<&str>::new());
    let mut offered = titles(&states, false);
    offered.sort_unstable();
    assert_eq!(offered, ["Write `check`", "Write `done`", "Write `failed`"]);
    client.leave();
    // On the command line nobody chooses.
    project.run(&["validate", "--fix", "--unsafe", "main"]).code(2);
    assert_eq!(project.read(".loops/main.yaml"), text);
}

#[test]
fn the_editor_offers_the_same_as_actions() {
    let wrong = CASES[1].0;
    let project = Project::with_loop(wrong);
    let file = project.at(".loops/main.yaml");
    let mut client = Client::open_in(&project, &json!({}));
    client.open(&file, wrong);
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}});
    let document = json!({"uri": uri(&file)});
    let params = json!({"textDocument": document, "range": all, "context": {"diagnostics": []}});
    let actions = client.ask("textDocument/codeAction", &params);
    assert_eq!(
        titles(&actions, true),
        ["Write `check`", "Write `context`", "Write `exit_code`", "Write `done`", "Write `true`"]
    );
    let edit = &actions[0]["edit"]["changes"][uri(&file)][0];
    assert_eq!(
        edit["range"],
        json!({"start": {"line": 1, "character": 9}, "end": {"line": 1, "character": 13}})
    );
    assert_eq!(actions[0]["diagnostics"][0]["code"], "unknown-state");
    let here = json!({"start": {"line": 4, "character": 20}, "end": {"line": 4, "character": 20}});
    let params = json!({"textDocument": document, "range": here, "context": {"diagnostics": []}});
    assert_eq!(titles(&client.ask("textDocument/codeAction", &params), true).len(), 1);
    let params =
        json!({"textDocument": document, "range": all, "context": {"diagnostics": [], "only": ["refactor"]}});
    assert_eq!(client.ask("textDocument/codeAction", &params), json!([]));
    client.leave();
}

/// Returns the examples of the page of findings, and good loops with a slip in them: whatever can be found is found in one of them.
fn broken() -> Vec<(String, String)> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/diagnostics.md")).unwrap();
    let mut all = Vec::new();
    for section in page.split("\n## `").skip(1) {
        let code = section.split('`').next().unwrap();
        let Some(example) = section.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next())
        else {
            continue;
        };
        let whole = format!("name: x # kept\ndescription: d\ninitial: work\n{example}");
        all.push((format!("whole-{code}"), example.to_owned()));
        all.push((format!("part-{code}"), whole));
    }
    for (name, text) in corpus() {
        for (index, (right, wrong)) in
            SLIPS.iter().enumerate().filter(|(_, (right, _))| text.contains(*right))
        {
            all.push((format!("{name}-{index}"), text.replacen(right, wrong, 1)));
        }
    }
    all
}

/// Returns what `validate` finds in each file, and how often.
fn found(project: &Project) -> BTreeMap<(String, String), usize> {
    let mut all = BTreeMap::new();
    for line in project.run(&["validate", "--format", "json"]).stdout.lines() {
        let finding: Value = serde_json::from_str(line).unwrap();
        let file = finding["file"].as_str().unwrap_or_default().to_owned();
        *all.entry((file, format!("{} {}", finding["code"], finding["message"]))).or_default() += 1;
    }
    all
}

fn comments(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once(" #")).map(|(_, comment)| comment).collect()
}

/// Applies the first edit of an action.
fn edited(text: &str, edit: &Value) -> String {
    let byte = |place: &Value| {
        let number = |key: &str| usize::try_from(place[key].as_u64().unwrap()).unwrap();
        text.split_inclusive('\n').take(number("line")).map(str::len).sum::<usize>() + number("character")
    };
    let range = byte(&edit["range"]["start"])..byte(&edit["range"]["end"]);
    let mut changed = text.to_owned();
    changed.replace_range(range, edit["newText"].as_str().unwrap());
    changed
}

#[test]
fn every_action_of_every_finding_takes_it_away_and_leaves_the_rest() {
    let project = Project::new();
    let repaired = Project::new();
    let texts = broken();
    for (name, text) in &texts {
        project.write(&format!(".loops/{name}.yaml"), text);
    }
    let bytes = json!({"general": {"positionEncodings": ["utf-8"]}});
    let mut client = Client::open_in(&project, &bytes);
    let mut tried = Vec::new();
    for (name, text) in &texts {
        let file = project.at(&format!(".loops/{name}.yaml"));
        client.open(&file, text);
        let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}});
        let params =
            json!({"textDocument": {"uri": uri(&file)}, "range": all, "context": {"diagnostics": []}});
        for (index, action) in
            client.ask("textDocument/codeAction", &params).as_array().unwrap().iter().enumerate()
        {
            let changed = edited(text, &action["edit"]["changes"][uri(&file)][0]);
            let (kept, before) = (comments(&changed), comments(text));
            if action["isPreferred"] == true {
                assert_eq!(kept, before, "{name}: {action}");
            } else {
                // What is removed goes with the comments in it.
                assert!(kept.iter().all(|comment| before.contains(comment)), "{name}: {action}");
            }
            let finding = &action["diagnostics"][0]["data"];
            let what = format!("{} {}", finding["code"], finding["message"]);
            let path = format!(".loops/{name}-{index}.yaml");
            repaired.write(&path, &changed);
            tried.push((path, format!(".loops/{name}.yaml"), what, changed));
        }
    }
    client.leave();
    let (before, after) = (found(&project), found(&repaired));
    let mut codes = BTreeSet::new();
    for (path, original, what, changed) in &tried {
        let count = |all: &BTreeMap<_, usize>, file: &str| {
            all.get(&(file.to_owned(), what.clone())).copied().unwrap_or_default()
        };
        // What is no loop is looked at only where it is open.
        let is_listed = before.keys().any(|(file, _)| file == original);
        assert!(!is_listed || count(&after, path) < count(&before, original), "{what}\n{changed}");
        let broke = after.keys().any(|(file, found)| file == path && found.contains("yaml-"));
        assert!(
            !broke || before.keys().any(|(file, found)| file == original && found.contains("yaml-")),
            "{changed}"
        );
        codes.insert(what.split(' ').next().unwrap_or_default().to_owned());
    }
    assert!(tried.len() > 150 && codes.len() > 12, "{} of {codes:?}", tried.len());
}
