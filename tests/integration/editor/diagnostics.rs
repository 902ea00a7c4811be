//! What is published is what `validate` says, as typed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, uri};
use crate::common::Project;

/// A loop with findings of several kinds, and characters of every width.
const WRONG: &str = "name: wrong
description: \"é 🐎\"
initial: check
states:
  check:
    action: \"echo 🐎 ${contxt.x}\"
    on_sucess: done
    on_no: dne
  done:
    terminal: yes
    terminal: true
";

const RIGHT: &str = "name: right
description: fine
initial: check
states:
  check: {action: make, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure, description: it failed}
";

/// Copies every loop of the repository into a project: those of tests, of the catalogue and of the documents.
fn every_loop(project: &Project) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (from, to) in [("catalog", "catalog"), ("tests/fixtures/loops", "fixtures")] {
        for entry in fs::read_dir(root.join(from)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "yaml") {
                let name = path.file_name().unwrap().to_string_lossy();
                project.write(&format!(".loops/{to}/{name}"), &fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut count = 0;
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for block in text.split("```yaml").skip(1) {
            let Some((_, block)) = block.split("```").next().and_then(|block| block.split_once('\n')) else {
                continue;
            };
            count += 1;
            project.write(&format!(".loops/docs/block-{count}.yaml"), block);
        }
    }
}

/// Returns what `validate` finds, by the files that it is about. What several loops are told of one place counts once.
fn by_validate(project: &Project, arguments: &[&str]) -> BTreeMap<String, Vec<String>> {
    let ran = project.run(&[&["validate", "--format", "json"], arguments].concat());
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in ran.stdout.lines() {
        let finding: Value = serde_json::from_str(line).unwrap();
        let file = finding["file"].as_str().unwrap().to_owned();
        if file.starts_with('$') || file.starts_with("builtin") {
            continue;
        }
        let of_file = all.entry(file).or_default();
        if !of_file.contains(&line.to_owned()) {
            of_file.push(line.to_owned());
        }
    }
    for of_file in all.values_mut() {
        of_file.sort();
    }
    all
}

fn letters(diagnostics: &[Value]) -> Vec<String> {
    let mut all: Vec<String> = diagnostics.iter().map(|diagnostic| diagnostic["data"].to_string()).collect();
    all.sort();
    all
}

/// Expects that what was published of each file is what `validate` says of it, to the letter.
#[track_caller]
fn agrees(client: &mut Client, project: &Project, expected: &BTreeMap<String, Vec<String>>) {
    for (file, expected) in expected {
        let published = client.published(&project.at(file));
        assert_eq!(&letters(&published), expected, "{file}");
        for diagnostic in published {
            let code = diagnostic["code"].as_str().unwrap();
            assert_eq!(diagnostic["data"]["code"], code);
            if code != "more" {
                let href = diagnostic["codeDescription"]["href"].as_str().unwrap();
                assert!(href.ends_with(&format!("docs/diagnostics.md#{code}")), "{href}");
            }
        }
    }
}

#[test]
fn every_loop_of_the_repository_has_the_findings_of_validate() {
    let project = Project::new().file(".loops/wrong.yaml", WRONG);
    every_loop(&project);
    let expected = by_validate(&project, &[]);
    assert!(expected.len() > 100, "{}", expected.len());
    let mut client = Client::open_in(&project, &json!({}));
    agrees(&mut client, &project, &expected);
    client.leave();
}

#[test]
fn a_place_is_what_the_client_counts_and_what_explains_it_is_there() {
    let project = Project::new().file(".loops/wrong.yaml", WRONG);
    let file = project.at(".loops/wrong.yaml");
    let mut client = Client::open_in(&project, &json!({}));
    let published = client.published(&file);
    let of = |code: &str| published.iter().find(|diagnostic| diagnostic["code"] == code).unwrap().clone();
    let template = of("template");
    assert_eq!(template["message"], "unknown namespace `contxt`\nhelp: did you mean `context`?");
    assert_eq!(template["severity"], 1);
    // The horse is two units of UTF-16.
    assert_eq!(template["range"]["start"], json!({"line": 5, "character": 21}));
    let related = &of("duplicate-key")["relatedInformation"][0];
    assert_eq!(related["message"], "it stands here first");
    assert_eq!(related["location"]["uri"], uri(&file));
    assert_eq!(related["location"]["range"]["start"], json!({"line": 9, "character": 4}));
    client.leave();
    let bytes = json!({"general": {"positionEncodings": ["utf-16", "utf-8"]}});
    let mut client = Client::open_in(&project, &bytes);
    let published = client.published(&file);
    let template = published.iter().find(|diagnostic| diagnostic["code"] == "template").unwrap();
    assert_eq!(template["range"]["start"], json!({"line": 5, "character": 23}));
    client.leave();
}

#[test]
fn what_is_typed_stands_above_the_file_until_the_document_is_closed() {
    let project = Project::new()
        .file(".loops/right.yaml", RIGHT)
        .file(".loops/around.yaml", &RIGHT.replace("right", "around").replace("action: make", "loop: right"));
    let (right, around) = (project.at(".loops/right.yaml"), project.at(".loops/around.yaml"));
    let mut client = Client::open_in(&project, &json!({}));
    client.published_only(&around, &["untested"]);
    client.published_only(&right, &["untested"]);
    client.open(&right, &RIGHT.replace("initial: check", "initial: chek"));
    client.published_with(&right, "unknown-state");
    // The loop around it cannot run it as it is now.
    client.published_with(&around, "sub-loop");
    let typed = json!([{
        "range": {"start": {"line": 2, "character": 12}, "end": {"line": 2, "character": 12}}, "text": "c"
    }]);
    client.change(&right, 2, &typed);
    client.published_only(&right, &["untested"]);
    client.published_only(&around, &["untested"]);
    client.change(&right, 3, &json!([{"text": "name: ["}]));
    client.published_with(&right, "yaml-syntax");
    client.say("textDocument/didClose", &json!({"textDocument": {"uri": uri(&right)}}));
    client.published_only(&right, &["untested"]);
    client.leave();
}

#[test]
fn a_file_that_changes_on_disk_is_read_again() {
    let project = Project::new().file(".loops/right.yaml", RIGHT);
    let right = project.at(".loops/right.yaml");
    let watches = json!({"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}});
    let mut client = Client::open_in(&project, &watches);
    client.wait(|message| message["method"] == "client/registerCapability");
    client.published(&right);
    project.write(".loops/right.yaml", &RIGHT.replace("action", "actoin"));
    client.say("workspace/didChangeWatchedFiles", &json!({"changes": [{"uri": uri(&right), "type": 2}]}));
    client.published_with(&right, "unknown-key");
    fs::remove_file(&right).unwrap();
    client.say("workspace/didChangeWatchedFiles", &json!({"changes": [{"uri": uri(&right), "type": 3}]}));
    client.published_only(&right, &[]);
    client.leave();
}

#[test]
fn a_client_that_asks_is_told_nothing_unasked() {
    let project = Project::new().file(".loops/wrong.yaml", WRONG);
    let file = project.at(".loops/wrong.yaml");
    let pulls =
        json!({"textDocument": {"diagnostic": {}}, "workspace": {"diagnostics": {"refreshSupport": true}}});
    let mut client = Client::open_in(&project, &pulls);
    client.open(&file, WRONG);
    let params = json!({"textDocument": {"uri": uri(&file)}});
    let report = client.ask("textDocument/diagnostic", &params);
    assert_eq!(report["kind"], "full");
    assert_eq!(letters(report["items"].as_array().unwrap()), by_validate(&project, &[])[".loops/wrong.yaml"]);
    client.change(&file, 2, &json!([{"text": RIGHT.replace("right", "wrong")}]));
    assert_eq!(client.ask("textDocument/diagnostic", &params)["items"].as_array().unwrap().len(), 1);
    assert!(!client.has_heard("textDocument/publishDiagnostics"));
    client.leave();
}

#[test]
fn files_elsewhere_and_files_that_are_not_there_yet_are_checked_when_they_are_open() {
    let project =
        Project::new().file("examples/wrong.yaml", WRONG).file("k8s/deploy.yaml", "kind: Deployment\n");
    let mut client = Client::open_in(&project, &json!({}));
    let elsewhere = project.at("examples/wrong.yaml");
    client.open(&elsewhere, WRONG);
    let expected = by_validate(&project, &["examples/wrong.yaml"]);
    assert_eq!(letters(&client.published(&elsewhere)), expected["examples/wrong.yaml"]);
    let new = project.at(".loops/new.yaml");
    client.open(&new, &RIGHT.replace("on_no: failed", "on_no: faild"));
    client.published_with(&new, "unknown-state");
    // What is no loop is nothing of ours.
    client.open(&project.at("k8s/deploy.yaml"), "kind: [");
    client.say("textDocument/didClose", &json!({"textDocument": {"uri": uri(&elsewhere)}}));
    client.published_only(&elsewhere, &[]);
    assert!(!client.has_heard("textDocument/publishDiagnostics"));
    client.leave();
}

#[test]
fn what_the_schema_says_is_left_out_where_it_is_named_and_that_is_asked() {
    let named = format!("# yaml-language-server: $schema=x.json\n{}", RIGHT.replace("action", "actoin"));
    let project = Project::new()
        .file(".loops/right.yaml", &named)
        .file(".loops/plain.yaml", &RIGHT.replace("right", "plain").replace("action", "actoin"));
    let mut client = Client::silent(&project);
    let folder = json!({"uri": uri(project.path()), "name": "project"});
    let mute = json!({"mute": "schema"});
    let params = json!({"processId": null, "capabilities": {}, "workspaceFolders": [folder], "initializationOptions": mute});
    client.ask("initialize", &params);
    client.say("initialized", &json!({}));
    client.published_with(&project.at(".loops/plain.yaml"), "unknown-key");
    let left = client.published(&project.at(".loops/right.yaml"));
    assert!(!left.is_empty() && left.iter().all(|finding| finding["code"] != "unknown-key"), "{left:?}");
    client.leave();
}
