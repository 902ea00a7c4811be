//! Names across the files of a project: definition, references and rename in parents, libraries, sub-loops, tests and workflows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::{Client, uri};
use crate::common::Project;

const FILES: [(&str, &str); 8] = [
    (
        ".loops/base.yaml",
        "name: base\ninitial: check\nparameters: {limit: {type: integer, default: 3}}\nstates:\n  check: {action: make, capture: out, on_yes: done, on_no: fix}\n  done: {terminal: true}\n",
    ),
    (
        ".loops/child.yaml",
        "name: child\nfrom: base\nstates:\n  fix: {action: \"echo ${captured.out} ${context.limit}\", next: check}\n",
    ),
    // It has a state of the same name, and nothing to do with it.
    (
        ".loops/other.yaml",
        "name: other\ninitial: check\nimport: [lib/parts.yaml]\nstates:\n  check: {fragment: run, on_yes: done, on_no: done}\n  done: {terminal: true}\n",
    ),
    (
        ".loops/around.yaml",
        "name: around\ninitial: run\nstates:\n  run: {loop: child, with: {limit: 4}, on_yes: done, on_no: done}\n  done: {terminal: true}\n",
    ),
    (".loops/lib/parts.yaml", "fragments:\n  run: {action: make, on_error: check}\n"),
    (
        ".loops/tests/child.test.yaml",
        "loop: child\ncases:\n  - name: x\n    given: {params: {limit: 2}}\n    mocks: {check: {exit: 0}}\n    expect: {path: [check, done]}\nalways:\n  - enter done implies verdict of check is yes\n",
    ),
    (
        ".loops/tests/around.test.yaml",
        "loop: around\ncases:\n  - name: x\n    mocks: {run/check: {exit: 0}}\n    expect: {path: [run, done]}\n",
    ),
    (
        ".github/workflows/tidy.yml",
        "on: push\njobs:\n  a:\n    steps:\n      - uses: little-loops/ll-loop@v1\n        with: {loop: child}\n",
    ),
];

fn project() -> Project {
    FILES.iter().fold(Project::new(), |project, (path, text)| project.file(path, text))
}

fn opened(capabilities: &Value) -> (Project, Client) {
    let project = project();
    let mut client = Client::open_in(&project, capabilities);
    for (path, text) in FILES {
        client.open(&project.at(path), text);
    }
    (project, client)
}

/// Returns the parameters of a question about the first place where a text stands in a file.
fn at(project: &Project, path: &str, text: &str) -> Value {
    let (_, whole) = FILES.iter().find(|(known, _)| *known == path).unwrap();
    let byte = whole.find(text).unwrap();
    let line = whole[..byte].matches('\n').count();
    let character = byte - whole[..byte].rfind('\n').map_or(0, |end| end + 1);
    json!({"textDocument": {"uri": uri(&project.at(path))}, "position": {"line": line, "character": character}})
}

/// Returns the files of locations, with how many there are in each.
fn files(project: &Project, locations: &Value) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for location in locations.as_array().unwrap() {
        let uri = location["uri"].as_str().unwrap();
        let root = uri_of(project);
        *all.entry(uri.strip_prefix(&root).unwrap().to_owned()).or_default() += 1;
    }
    all
}

fn uri_of(project: &Project) -> String {
    format!("{}/", uri(project.path()))
}

/// Applies the edits of an answer, from the last to the first.
fn applied(project: &Project, edit: &Value) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> =
        FILES.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let documents = edit["documentChanges"].as_array().cloned().unwrap_or_default();
    let mut edits: Vec<(String, Vec<Value>)> = Vec::new();
    for (uri, of_file) in edit["changes"].as_object().into_iter().flatten() {
        edits.push((uri.clone(), of_file.as_array().unwrap().clone()));
    }
    for change in documents.iter().filter(|change| change.get("textDocument").is_some()) {
        let uri = change["textDocument"]["uri"].as_str().unwrap().to_owned();
        edits.push((uri, change["edits"].as_array().unwrap().clone()));
    }
    for (uri, mut of_file) in edits {
        let path = uri.strip_prefix(&uri_of(project)).unwrap().to_owned();
        let text = texts.get_mut(&path).unwrap();
        of_file.sort_by_key(|edit| {
            let start = &edit["range"]["start"];
            std::cmp::Reverse((start["line"].as_u64(), start["character"].as_u64()))
        });
        for edit in of_file {
            let byte = |end: &str| {
                let place = &edit["range"][end];
                let number = |key: &str| usize::try_from(place[key].as_u64().unwrap()).unwrap();
                let lines: usize = text.split_inclusive('\n').take(number("line")).map(str::len).sum();
                lines + number("character")
            };
            let range = byte("start")..byte("end");
            text.replace_range(range, edit["newText"].as_str().unwrap());
        }
    }
    for change in documents.iter().filter(|change| change["kind"] == "rename") {
        let path =
            |key: &str| change[key].as_str().unwrap().strip_prefix(&uri_of(project)).unwrap().to_owned();
        let text = texts.remove(&path("oldUri")).unwrap();
        texts.insert(path("newUri"), text);
    }
    texts
}

/// Writes the result of a rename, and expects that the project is as good as before.
#[track_caller]
fn stays_whole(texts: &BTreeMap<String, String>) {
    let renamed = texts.iter().fold(Project::new(), |project, (path, text)| project.file(path, text));
    let (before, after) = (project().run(&["validate"]), renamed.run(&["validate"]));
    let count = |all: &str| all.lines().filter(|line| line.contains("error")).count();
    assert_eq!(count(&after.all()), count(&before.all()), "{}\n{}", before.all(), after.all());
    assert_eq!(renamed.run(&["test", "child"]).code, project().run(&["test", "child"]).code);
}

#[test]
fn a_name_is_found_where_it_is_made_and_wherever_it_is_used() {
    let (project, mut client) = opened(&json!({}));
    let definition = client.ask("textDocument/definition", &at(&project, ".loops/child.yaml", "check}"));
    assert_eq!(files(&project, &definition), [(".loops/base.yaml".to_owned(), 1)].into());
    let in_test = at(&project, ".loops/tests/around.test.yaml", "check: {exit");
    let definition = client.ask("textDocument/definition", &in_test);
    assert_eq!(files(&project, &definition), [(".loops/base.yaml".to_owned(), 1)].into());
    let workflow = at(&project, ".github/workflows/tidy.yml", "child}");
    let definition = client.ask("textDocument/definition", &workflow);
    assert_eq!(files(&project, &definition), [(".loops/child.yaml".to_owned(), 1)].into());
    let mut references = at(&project, ".loops/base.yaml", "check: {");
    references["context"] = json!({"includeDeclaration": true});
    let expected = [
        (".loops/base.yaml".to_owned(), 2),
        (".loops/child.yaml".to_owned(), 1),
        (".loops/tests/around.test.yaml".to_owned(), 1),
        (".loops/tests/child.test.yaml".to_owned(), 3),
    ];
    assert_eq!(files(&project, &client.ask("textDocument/references", &references)), expected.into());
    let mut callers = at(&project, ".loops/child.yaml", "child");
    callers["context"] = json!({"includeDeclaration": false});
    let expected = [
        (".github/workflows/tidy.yml".to_owned(), 1),
        (".loops/around.yaml".to_owned(), 1),
        (".loops/tests/child.test.yaml".to_owned(), 1),
    ];
    assert_eq!(files(&project, &client.ask("textDocument/references", &callers)), expected.into());
    client.leave();
}

#[test]
fn a_rename_follows_a_name_through_every_file() {
    let (project, mut client) = opened(&json!({}));
    let renames = [
        (".loops/child.yaml", "check}", "look", 7),
        (".loops/base.yaml", "out,", "printed", 2),
        (".loops/around.yaml", "limit", "most", 4),
        (".loops/other.yaml", "run,", "build", 2),
        (".loops/lib/parts.yaml", "check}", "look", 3),
    ];
    for (path, text, to, count) in renames {
        let mut params = at(&project, path, text);
        assert!(
            client.ask("textDocument/prepareRename", &params)["placeholder"].is_string(),
            "{path} {text}"
        );
        params["newName"] = to.into();
        let edit = client.ask("textDocument/rename", &params);
        let edits = edit["changes"].as_object().unwrap().values();
        assert_eq!(edits.map(|edits| edits.as_array().unwrap().len()).sum::<usize>(), count, "{edit:#}");
        stays_whole(&applied(&project, &edit));
    }
    // A word that YAML reads as something else is put in quotes, but not within a path or a sentence.
    let mut truth = at(&project, ".loops/child.yaml", "check}");
    truth["newName"] = "true".into();
    let texts = applied(&project, &client.ask("textDocument/rename", &truth));
    assert!(texts[".loops/tests/around.test.yaml"].contains("{run/true: {exit: 0}}"), "{texts:#?}");
    assert!(texts[".loops/tests/child.test.yaml"].contains("verdict of true is yes"), "{texts:#?}");
    stays_whole(&texts);
    let mut taken = at(&project, ".loops/child.yaml", "fix:");
    taken["newName"] = "done".into();
    let refused = client.answer("textDocument/rename", &taken);
    assert_eq!(refused["error"]["message"], "`done` is there already");
    client.change(&project.at(".loops/around.yaml"), 2, &json!([{"text": "name: [check"}]));
    let mut unread = at(&project, ".loops/base.yaml", "check: {");
    unread["newName"] = "look".into();
    let refused = client.answer("textDocument/rename", &unread);
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("cannot be read as it is now"),
        "{refused}"
    );
    client.leave();
}

#[test]
fn a_loop_is_renamed_with_its_file_and_its_tests_where_the_editor_can() {
    let operations = json!({"documentChanges": true, "resourceOperations": ["create", "rename", "delete"]});
    let (project, mut client) = opened(&json!({"workspace": {"workspaceEdit": operations}}));
    let mut params = at(&project, ".loops/around.yaml", "child");
    params["newName"] = "inner".into();
    let texts = applied(&project, &client.ask("textDocument/rename", &params));
    assert!(texts.contains_key(".loops/inner.yaml") && texts.contains_key(".loops/tests/inner.test.yaml"));
    assert!(texts.values().all(|text| !text.contains("child")), "{texts:#?}");
    let renamed = texts.iter().fold(Project::new(), |project, (path, text)| project.file(path, text));
    renamed.run(&["test", "inner"]).code(0);
    params["newName"] = "base".into();
    assert_eq!(client.answer("textDocument/rename", &params)["error"]["message"], "`base` is there already");
    client.leave();
    let (project, mut client) = opened(&json!({}));
    let mut params = at(&project, ".loops/around.yaml", "child");
    params["newName"] = "inner".into();
    let refused = client.answer("textDocument/rename", &params);
    assert_eq!(refused["error"]["message"], "this editor does not rename files");
    client.leave();
}

#[test]
fn what_is_not_ours_keeps_its_names() {
    let copy = "name: copy\ninitial: check\nstates:\n  check: {action: make, on_yes: done, on_no: fix}\n  done: {terminal: true}\n";
    let own = "name: own\nfrom: vendor:o/r/copy.yaml\nstates:\n  fix: {action: make, next: check}\n";
    let project = Project::new().file(".loops/vendor/o/r/copy.yaml", copy).file(".loops/own.yaml", own);
    let mut client = Client::open_in(&project, &json!({}));
    client.open(&project.at(".loops/own.yaml"), own);
    let place = json!({"line": 3, "character": 3});
    let document = json!({"uri": uri(&project.at(".loops/own.yaml"))});
    let params = json!({"textDocument": document, "position": place, "newName": "mend"});
    let refused = client.answer("textDocument/rename", &params);
    assert!(refused["error"]["message"].as_str().unwrap().contains("is not ours to change"), "{refused}");
    client.leave();
}

#[test]
fn what_is_brought_and_what_is_tested_stands_beside_the_names() {
    let (project, mut client) = opened(&json!({}));
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}});
    let of = |path: &str| json!({"textDocument": {"uri": uri(&project.at(path))}, "range": all});
    let labels = |hints: &Value| -> Vec<String> {
        hints.as_array().unwrap().iter().map(|hint| hint["label"].as_str().unwrap().to_owned()).collect()
    };
    let hints = client.ask("textDocument/inlayHint", &of(".loops/other.yaml"));
    assert_eq!(labels(&hints), ["run", "action: make, on_error → check"]);
    let hints = client.ask("textDocument/inlayHint", &of(".loops/child.yaml"));
    assert_eq!(labels(&hints), ["check, done"]);
    let lenses = client.ask("textDocument/codeLens", &of(".loops/child.yaml"));
    let titles: Vec<_> =
        lenses.as_array().unwrap().iter().map(|lens| lens["command"]["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["1 test, 1 of 3 ways", "no test, 0 of 1 ways"]);
    let folds = client.ask("textDocument/foldingRange", &of(".loops/tests/child.test.yaml"));
    assert_eq!(folds[0], json!({"startLine": 1, "endLine": 5}));
    let colours = client.ask("textDocument/semanticTokens/full", &of(".loops/child.yaml"));
    assert_eq!(colours["data"].as_array().unwrap().len() % 5, 0);
    assert!(!colours["data"].as_array().unwrap().is_empty());
    client.leave();
}

#[test]
fn a_client_that_asks_is_told_of_files_that_are_not_open() {
    let project = Project::with_loop("name: main\ninitial: a\nstates:\n  a: {acton: make}\n");
    let mut client = Client::open_in(&project, &json!({"textDocument": {"diagnostic": {}}}));
    let report = client.ask("workspace/diagnostic", &json!({"previousResultIds": []}));
    assert_eq!(report["items"][0]["uri"], uri(&project.at(".loops/main.yaml")));
    let found = report["items"][0]["items"].as_array().unwrap();
    assert!(found.iter().any(|finding| finding["code"] == "unknown-key"), "{report}");
    client.leave();
}

#[test]
fn a_state_says_how_often_it_is_visited_and_what_the_last_runs_said() {
    let (project, mut client) = opened(&json!({}));
    let hover = client.ask("textDocument/hover", &at(&project, ".loops/child.yaml", "check}"));
    let said = hover["contents"]["value"].as_str().unwrap();
    assert!(said.starts_with("state **check**\n\n```sh\nmake\n```"), "{said}");
    assert!(said.ends_with("\n\n- a run comes here 50 times at most"), "{said}");
    client.leave();
    let text = "name: main\ninitial: check\nstates:\n  check: {action: exit 1, on_yes: done, on_no: failed}\n  done: {terminal: true}\n  failed: {terminal: true, outcome: failure}\n";
    let project = Project::with_loop(text);
    project.run(&["run", "main"]).code(1);
    let mut client = Client::open_in(&project, &json!({}));
    let file = project.at(".loops/main.yaml");
    client.open(&file, text);
    let place = json!({"textDocument": {"uri": uri(&file)}, "position": {"line": 3, "character": 3}});
    let hover = client.ask("textDocument/hover", &place);
    let said = hover["contents"]["value"].as_str().unwrap();
    assert!(
        said.contains("- a run comes here once at most\n- `main-") && said.ends_with("` said `no`"),
        "{said}"
    );
    client.leave();
}
