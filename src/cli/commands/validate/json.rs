//! Writes findings for programs: one JSON object per line, for each finding or for each loop.

use serde_json::{Value, json};

use super::found::{Reports, objects};
use crate::cli::output::Output;
use crate::definition::render;
use crate::editor::checked_file::UnreadableFile;
use crate::session::prepare::loop_check::Checked;

/// Writes an object for each finding.
pub(super) fn write(reports: &Reports, output: &Output) {
    reports.files.iter().flat_map(objects).for_each(|object| output.json(object));
}

/// Writes an object for each loop, with what is wrong with it.
pub(super) fn write_loops(reports: &Reports, output: &Output) {
    let checked = reports.files.iter().map(|checked| of_loop(checked, reports.is_valid(checked)));
    checked.chain(reports.unread.iter().map(of_unread)).for_each(|object| output.json(object));
}

fn of_loop(checked: &Checked, is_valid: bool) -> Value {
    let found = render::with_paths(&checked.findings, &checked.sources, checked.tree.as_ref());
    let violations: Vec<Value> =
        found.into_iter().map(|(path, finding)| violation(&path, finding, &checked.shown)).collect();
    json!({"loop": checked.name, "file": checked.shown, "valid": is_valid, "violations": violations})
}

/// Returns a finding with the path of its keys; in a file that the loop takes over, also with that file.
fn violation(path: &str, mut finding: Value, file: &str) -> Value {
    let mut violation = json!({
        "severity": finding["severity"].take(),
        "code": finding["code"].take(),
        "path": path,
        "message": finding["message"].take(),
        "line": finding["line"].take(),
        "column": finding["column"].take(),
    });
    let elsewhere = Some(finding["file"].take()).filter(|found| !found.is_null() && found != file);
    for (key, value) in [("file", elsewhere), ("help", Some(finding["help"].take()))] {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            violation[key] = value;
        }
    }
    violation
}

fn of_unread(unread: &UnreadableFile) -> Value {
    let violation = json!({
        "severity": "error",
        "code": "unreadable",
        "path": "",
        "message": unread.error.message(),
        "line": Value::Null,
        "column": Value::Null,
    });
    json!({"loop": unread.asked, "file": Value::Null, "valid": false, "violations": [violation]})
}
