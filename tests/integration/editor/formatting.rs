//! `ll-loop fmt` and formatting in an editor: one form, with the same comments and the same loop.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::client::{Client, uri};
use crate::common::Project;

const ODD: &str = "# a loop\nname:   main\ninitial: check\n\n\n\nstates:\n    # looks\n    check: {action: 'make',on_yes: done , on_no: check}   # why\n    done:\n        terminal: true\n";
const FORMED: &str = "# a loop\nname: main\ninitial: check\n\nstates:\n  # looks\n  check: { action: \"make\", on_yes: done, on_no: check } # why\n  done:\n    terminal: true\n";

#[test]
fn files_are_written_in_one_form_and_stay_in_it() {
    let project = Project::with_loop(ODD)
        .file(".loops/lib/parts.yaml", "fragments:\n    run:   {action: x}\n")
        .file(".loops/tests/main.test.yaml", "loop:   main\ncases: []\n")
        .file(".loops/vendor/o/r/x.yaml", ODD);
    project.run(&["fmt", "--check"]).code(1).says(".loops/main.yaml\n");
    assert_eq!(project.read(".loops/main.yaml"), ODD);
    let written = project.run(&["fmt"]).code(0);
    assert_eq!(written.stdout, ".loops/lib/parts.yaml\n.loops/main.yaml\n.loops/tests/main.test.yaml\n");
    assert_eq!(project.read(".loops/main.yaml"), FORMED);
    assert_eq!(project.read(".loops/lib/parts.yaml"), "fragments:\n  run: { action: x }\n");
    assert_eq!(project.read(".loops/vendor/o/r/x.yaml"), ODD);
    assert_eq!(project.run(&["fmt", "--check"]).code(0).stdout, "");
    project.write(".loops/broken.yaml", "name: [");
    project.run(&["fmt", "--check", "broken"]).code(2).says("`.loops/broken.yaml` is left as it is");
    project.run(&["fmt", "nowhere"]).code(2);
}

#[test]
fn every_loop_of_the_repository_compiles_to_the_same_in_its_form() {
    let project = Project::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = Vec::new();
    for directory in ["catalog", "tests/fixtures/loops"] {
        for entry in fs::read_dir(root.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "yaml") {
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                project.write(&format!(".loops/{name}.yaml"), &fs::read_to_string(&path).unwrap());
                names.push(name);
            }
        }
    }
    let compiled = |name: &String| project.run(&["compile", name]).stdout;
    let comments = |name: &String| -> Vec<String> {
        let text = project.read(&format!(".loops/{name}.yaml"));
        let all = text.lines().filter_map(|line| line.split_once('#'));
        all.map(|(_, comment)| comment.trim().to_owned()).collect()
    };
    let before: Vec<_> = names.iter().map(|name| (compiled(name), comments(name))).collect();
    project.run(&["fmt"]).code(0);
    for (name, (machine, noted)) in names.iter().zip(before) {
        assert_eq!(compiled(name), machine, "{name}");
        assert_eq!(comments(name), noted, "{name}");
    }
    project.run(&["fmt", "--check"]).code(0);
}

#[test]
fn an_editor_gets_the_difference_alone() {
    let project = Project::with_loop(ODD);
    let file = project.at(".loops/main.yaml");
    let mut client = Client::open_in(&project, &json!({}));
    client.open(&file, ODD);
    let document = json!({"uri": uri(&file)});
    let params = json!({"textDocument": document, "options": {"tabSize": 8, "insertSpaces": false}});
    let edits = client.ask("textDocument/formatting", &params);
    assert_eq!(edits[0]["range"]["start"], json!({"line": 1, "character": 6}));
    client.change(&file, 2, &json!([{"text": FORMED}]));
    assert_eq!(client.ask("textDocument/formatting", &params), json!([]));
    client.change(&file, 3, &json!([{"text": "name: ["}]));
    assert_eq!(client.ask("textDocument/formatting", &params), json!(null));
    client.leave();
}
