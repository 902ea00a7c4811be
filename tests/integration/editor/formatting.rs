//! `ll-loop fmt` and formatting in an editor: one form, with the same comments and the same loop.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use super::client::{Client, uri};
use crate::common::{Project, Ran, git};

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
fn what_lies_outside_or_is_no_loop_stays_as_it_is() {
    let other = "kind:    Config\nusers:   [ {name: a} ]\n";
    let outside = tempfile::tempdir().unwrap();
    let project = Project::with_loop(FORMED).file(".loops/values.yaml", other);
    git(&project, &["init", "-q"]);
    let linked = |name: &str, text: &str| {
        let target = outside.path().join(name);
        fs::write(&target, text).unwrap();
        symlink(&target, project.at(".loops").join(name)).unwrap();
    };
    project.run(&["fmt"]).code(0);
    project.run(&["fmt", ".loops/values.yaml"]).code(0).says("it is no loop, no library and no test");
    assert_eq!(project.read(".loops/values.yaml"), other);
    linked("kube.yaml", other);
    linked("away.yaml", ODD);
    fs::write(outside.path().join("away.test.yaml"), "loop:   away\ncases: []\n").unwrap();
    symlink(outside.path(), project.at(".loops/tests")).unwrap();
    for arguments in
        [&["fmt"][..], &["fmt", "away"], &["fmt", ".loops/tests/away.test.yaml"], &["fmt", "--check"]]
    {
        project.run(arguments).code(2).says("lies outside of the repository");
    }
    for (name, text) in
        [("kube.yaml", other), ("away.yaml", ODD), ("away.test.yaml", "loop:   away\ncases: []\n")]
    {
        assert_eq!(fs::read_to_string(outside.path().join(name)).unwrap(), text);
    }
}

/// Formats what is given on standard input.
fn piped(project: &Project, arguments: &[&str], text: &[u8]) -> Ran {
    let mut child = project
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that is refused is not read to its end.
    let _refused = child.stdin.take().unwrap().write_all(text);
    Ran::of(&child.wait_with_output().unwrap())
}

#[test]
fn a_text_is_read_and_printed_where_an_editor_wants_that() {
    let project = Project::new();
    assert_eq!(piped(&project, &["fmt", "-"], ODD.as_bytes()).code(0).stdout, FORMED);
    assert_eq!(piped(&project, &["fmt", "-"], FORMED.as_bytes()).code(0).stdout, FORMED);
    assert_eq!(piped(&project, &["fmt", "--check", "-"], FORMED.as_bytes()).code(0).stdout, "");
    assert_eq!(piped(&project, &["fmt", "--check", "-"], ODD.as_bytes()).code(1).stdout, "-\n");
    let large = format!("{ODD}# {}\n", "x".repeat(2_000_000));
    for broken in [b"name: [".as_slice(), b"name: \xff\n", b"a: b\0\n", large.as_bytes()] {
        assert_eq!(piped(&project, &["fmt", "-"], broken).code(2).stdout, "");
    }
    project.run(&["fmt", "-", "main"]).code(2);
    // The log of a job would show it, and an editor would lose it.
    let hidden = project.env("MY_TOKEN", "abcdefgh12345678");
    let secret = ODD.replace("make", "curl abcdefgh12345678");
    assert_eq!(piped(&hidden, &["fmt", "-"], secret.as_bytes()).code(2).says("it holds a secret").stdout, "");
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
