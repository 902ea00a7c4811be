//! What a run copies into the working tree at its end.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::common::{Project, Ran, git};

/// Makes a page among the files of the run, and ends as it is told.
fn making(artifact: &serde_json::Value, test: &str) -> String {
    json!({
        "name": "main", "description": "d", "initial": "make", "artifact_output": artifact,
        "context": {"word": "a 'b' $(touch pwned)"},
        "states": {
            "make": {"action": format!("mkdir -p \"$LL_RUN_DIR/out\" && echo page > \"$LL_RUN_DIR/out/page.html\" && {test}"),
                     "on_yes": "done", "on_no": "bad"},
            "done": {"terminal": true, "outcome": "success"},
            "bad": {"terminal": true, "outcome": "failure", "description": "it is bad"},
        },
    })
    .to_string()
}

fn run(artifact: &serde_json::Value, test: &str, arguments: &[&str]) -> (Project, Ran) {
    let project = Project::with_loop(&making(artifact, test));
    let ran = project.run(&[&["run", "main"], arguments].concat());
    assert!(!project.exists("pwned"));
    (project, ran)
}

#[test]
fn what_a_run_made_is_copied_at_a_good_end() {
    let to = json!({"from": "out/page.html", "to": "site/${context.word}.html"});
    let (project, ran) = run(&to, "true", &[]);
    drop(ran.code(0).says("artifact: site/a 'b' $(touch pwned).html"));
    assert_eq!(project.read("site/a 'b' $(touch pwned).html"), "page\n");
    let (project, ran) = run(&to, "exit 1", &[]);
    drop(ran.code(1));
    assert!(!project.exists("site"));
    let (project, ran) = run(&json!("out/page.html"), "true", &[]);
    drop(ran.code(0));
    let made: Vec<_> =
        fs::read_dir(project.at("artifacts")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let name = made[0].to_string_lossy();
    assert!(made.len() == 1 && name.starts_with("main-") && name.ends_with("-main.html"), "{name}");
}

#[test]
fn only_the_terminals_that_are_named_count() {
    for (on, copied) in [(json!(["done"]), true), (json!(["bad"]), false)] {
        let (project, ran) = run(&json!({"from": "out/page.html", "to": "x", "on": on}), "true", &[]);
        drop(ran.code(0));
        assert_eq!(project.exists("x"), copied);
    }
    let wrong = Project::with_loop(&making(&json!({"from": "x", "on": ["dnoe"]}), "true"));
    drop(wrong.run(&["validate", "main"]).code(2).says("did you mean `done`?"));
    let wrong = Project::with_loop(&making(&json!({"to": "x"}), "true"));
    drop(wrong.run(&["validate", "main"]).code(2).says("`from`"));
}

#[test]
fn nothing_leads_out_and_no_failure_fails_the_run() {
    for (from, to) in [
        ("out/gone.html", "x"),
        ("out", "x"),
        ("../../main.yaml", "x"),
        ("out/page.html", "../ll-left-outside"),
        ("out/page.html", "/tmp/ll-left-outside"),
        ("out/page.html", ".git/hooks/x"),
        ("out/page.html", ""),
        ("out/page.html", "outward/x"),
        ("out/page.html", "outward"),
        ("out/page.html", "inward/hooks/x"),
        ("out/secret", "x"),
    ] {
        let artifact = json!({"from": from, "to": to});
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let link = format!("ln -s {}/secret \"$LL_RUN_DIR/out/secret\"", outside.path().display());
        let project = Project::with_loop(&making(&artifact, &link));
        fs::create_dir_all(project.at(".git/hooks")).unwrap();
        symlink(outside.path(), project.at("outward")).unwrap();
        symlink(".git", project.at("inward")).unwrap();
        drop(project.run(&["run", "main"]).code(0).says("no artifact was copied"));
        assert!(
            !project.exists("x") && !project.exists("../ll-left-outside") && !project.exists(".git/hooks/x"),
            "{from} {to}"
        );
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1, "{from} {to}");
    }
}

#[test]
fn a_template_is_not_copied() {
    let text = making(&json!({"from": "out", "to": "x"}), "true");
    for with_mode in [
        text.replace("\"name\"", "\"artifact_mode\":\"template\",\"name\""),
        text.replace("\"word\"", "\"artifact_mode\":\"template\",\"word\""),
    ] {
        let project = Project::with_loop(&with_mode);
        drop(project.run(&["run", "main"]).code(0).says("`artifact_mode: template` is not supported"));
        assert!(!project.exists("x"));
    }
}

#[test]
fn a_sub_loop_leaves_nothing() {
    let outer = "name: outer\ndescription: d\ninitial: a\nstates:\n  a: {loop: main, on_yes: done, on_no: done}\n  done: {terminal: true, outcome: success}\n";
    let project = Project::with_loop(&making(&json!({"from": "out/page.html", "to": "x"}), "true"))
        .file(".loops/outer.yaml", outer);
    drop(project.run(&["run", "outer"]).code(0));
    assert!(!project.exists("x"));
}

#[test]
fn what_is_copied_is_a_change_of_the_tree() {
    let project = Project::with_loop(&making(&json!({"from": "out/page.html", "to": "page.html"}), "true"))
        .file("page.html", "old\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    let ran = project.run(&["run", "main", "--on-change", "fail"]);
    assert_ne!(ran.code, Some(0), "{}", ran.all());
    assert_eq!(project.read("page.html"), "page\n");
    assert_eq!(project.end()["terminated_by"], "uncommitted_changes");
}
