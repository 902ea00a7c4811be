//! The loops of many repositories on one page.

mod collected;
mod delivered;

use serde_json::{Value, json};

use crate::common::{CHECK_FIX, Project};

#[test]
fn a_folder_of_reports_is_a_board() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main", "--report-dir", "all/web/one"]).code(0);
    project.run(&["run", "main", "--report-dir", "all/web/two"]).code(0);
    project.run(&["run", "main", "--report-dir", "all/api"]).code(0);
    let shown = project.run(&["board", "all", "--json"]).code(0);
    let board: Value = serde_json::from_str(&shown.stdout).unwrap();
    let found: Vec<Value> = board["loops"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            json!([row["repository"], row["loop"], row["runs"], row["last"]["outcome"], row["verified"]])
        })
        .collect();
    assert_eq!(found, [json!(["api", "main", 1, "success", 1]), json!(["web", "main", 2, "success", 2])]);
    let named = project.run(&["board", "--repo", "acme/web=all/web", "--json"]).code(0);
    assert!(named.stdout.contains("\"acme/web\""), "{}", named.stdout);
    project.run(&["board", "all", "-o", "board.html"]).code(0);
    let page = project.read("board.html");
    assert!(page.contains("default-src &#39;none&#39;") && page.contains("2 of 2"), "{page}");
}

#[test]
fn what_a_run_says_is_text_on_a_board() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main", "--report-dir", "all/one"]).code(0);
    let evil = "<script>alert(1)</script>=all";
    project.run(&["board", "--repo", evil, "-o", "board.html"]).code(0);
    let page = project.read("board.html");
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"), "{page}");
}

#[test]
fn what_cannot_be_read_is_a_warning_and_nothing_at_all_is_an_error() {
    let project = Project::with_loop(CHECK_FIX).file("all/x.llz", "no bundle");
    project.run(&["board", "all"]).code(2).says("there is no run that can be read");
    project.run(&["run", "main", "--report-dir", "all/one"]).code(0);
    project.run(&["board", "all", "--json"]).code(0).says("x.llz is left out");
    project.run(&["board", "nowhere"]).code(2);
}
