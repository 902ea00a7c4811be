//! Hover, completion, names and symbols, as an editor asks for them.

use serde_json::{Value, json};

use super::client::{Client, uri};
use crate::common::Project;

const LOOP: &str = "name: main
initial: check
context: {limit: 3}
states:
  check:
    action: echo ${captured.check} ${context.limit}
    on_yes: below
    on_no: check
  below: {loop: tidy, on_yes: done, on_no: check}
  done: {terminal: true}
";

/// Returns the parameters of a question about the nth place where a text stands.
fn at(project: &Project, text: &str, nth: usize) -> Value {
    let byte = LOOP.match_indices(text).nth(nth).unwrap().0;
    let line = LOOP[..byte].matches('\n').count();
    let character = byte - LOOP[..byte].rfind('\n').map_or(0, |end| end + 1);
    json!({
        "textDocument": {"uri": uri(&project.at(".loops/main.yaml"))},
        "position": {"line": line, "character": character},
    })
}

fn opened() -> (Project, Client) {
    let project = Project::with_loop(LOOP).file(".loops/tidy.yaml", &LOOP.replace("main", "tidy"));
    let mut client = Client::open_in(&project, &json!({}));
    client.open(&project.at(".loops/main.yaml"), LOOP);
    (project, client)
}

fn lines(locations: &Value) -> Vec<u64> {
    let all = locations.as_array().unwrap().iter();
    all.map(|location| location["range"]["start"]["line"].as_u64().unwrap() + 1).collect()
}

#[test]
fn the_name_under_the_cursor_is_explained_found_and_renamed() {
    let (project, mut client) = opened();
    let hover = client.ask("textDocument/hover", &at(&project, "initial", 0));
    assert_eq!(hover["contents"]["value"], "**initial**: The state where a run starts.");
    let hover = client.ask("textDocument/hover", &at(&project, "check", 0));
    assert!(hover["contents"]["value"].as_str().unwrap().starts_with("state **check**"), "{hover}");
    assert_eq!(client.ask("textDocument/hover", &at(&project, "echo", 0)), Value::Null);
    let definition = client.ask("textDocument/definition", &at(&project, "check}", 0));
    assert_eq!(lines(&definition), [5]);
    let file = client.ask("textDocument/definition", &at(&project, "tidy", 0));
    assert_eq!(file[0]["uri"], uri(&project.at(".loops/tidy.yaml")));
    let mut references = at(&project, "check:", 0);
    references["context"] = json!({"includeDeclaration": true});
    assert_eq!(lines(&client.ask("textDocument/references", &references)), [2, 5, 6, 8, 9]);
    let name = client.ask("textDocument/prepareRename", &at(&project, "below", 0));
    assert_eq!(name["placeholder"], "below");
    let mut rename = at(&project, "below", 0);
    rename["newName"] = "under".into();
    let edit = client.ask("textDocument/rename", &rename);
    assert_eq!(edit["changes"][uri(&project.at(".loops/main.yaml"))].as_array().unwrap().len(), 2);
    rename["newName"] = "done".into();
    let refused = client.answer("textDocument/rename", &rename);
    assert_eq!(refused["error"]["message"], "`done` is there already");
    client.leave();
}

#[test]
fn states_are_symbols_and_are_offered_while_the_text_is_broken() {
    let (project, mut client) = opened();
    let document = json!({"textDocument": {"uri": uri(&project.at(".loops/main.yaml"))}});
    let symbols = client.ask("textDocument/documentSymbol", &document);
    let names = |of: &Value| -> Vec<String> {
        of.as_array().unwrap().iter().map(|symbol| symbol["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&symbols), ["context", "states"]);
    assert_eq!(names(&symbols[1]["children"]), ["check", "below", "done"]);
    let labels = |items: &Value| -> Vec<String> {
        items.as_array().unwrap().iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    };
    let offered = client.ask("textDocument/completion", &at(&project, "tidy", 0));
    assert_eq!(labels(&offered), ["main", "tidy"]);
    let broken = LOOP.replace("on_yes: below", "on_yes: [");
    client.change(&project.at(".loops/main.yaml"), 2, &json!([{"text": broken}]));
    let mut place = at(&project, "below", 0);
    let offered = client.ask("textDocument/completion", &place);
    assert_eq!(labels(&offered), ["check", "below", "done", "$current"]);
    place["position"]["character"] = 0.into();
    place["position"]["line"] = 99.into();
    assert!(labels(&client.ask("textDocument/completion", &place)).contains(&"max_iterations".to_owned()));
    assert_eq!(client.ask("textDocument/hover", &place), Value::Null);
    client.leave();
}

#[test]
fn a_test_file_has_keys_of_its_own() {
    let (project, mut client) = opened();
    let file = project.at(".loops/tests/main.test.yaml");
    client.open(&file, "loop: main\n");
    let place = json!({"textDocument": {"uri": uri(&file)}, "position": {"line": 1, "character": 0}});
    let offered = client.ask("textDocument/completion", &place);
    let labels: Vec<_> =
        offered.as_array().unwrap().iter().map(|item| item["label"].as_str().unwrap()).collect();
    assert!(labels.contains(&"cases") && !labels.contains(&"max_iterations"), "{labels:?}");
    client.leave();
}
