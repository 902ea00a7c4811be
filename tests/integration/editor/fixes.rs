//! Repairs: in the editor and by `validate --fix`. The finding is gone, and nothing else has changed.

use std::fs;
use std::path::Path;

use serde_json::json;

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
    let titles: Vec<_> =
        actions.as_array().unwrap().iter().map(|action| action["title"].as_str().unwrap()).collect();
    assert_eq!(
        titles,
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
    assert_eq!(client.ask("textDocument/codeAction", &params).as_array().unwrap().len(), 1);
    let params =
        json!({"textDocument": document, "range": all, "context": {"diagnostics": [], "only": ["refactor"]}});
    assert_eq!(client.ask("textDocument/codeAction", &params), json!([]));
    client.leave();
}
