//! Writes findings as SARIF 2.1.0, for code scanning: one run with all files, and columns that count characters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::found::{Reports, objects, word};
use crate::base::text::first_line;
use crate::cli::commands::explain;
use crate::cli::output::Output;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const HOME: &str = "https://github.com/little-loops/ll-loop";

pub(super) fn write(reports: &Reports, output: &Output) {
    let objects: Vec<Value> = reports.files.iter().flat_map(objects).collect();
    let mut ids: Vec<&str> = objects.iter().filter_map(|object| word(object, "code")).collect();
    // Sorted, so that the same findings make the same file.
    ids.sort_unstable();
    ids.dedup();
    let numbers: BTreeMap<&str, usize> = ids.iter().enumerate().map(|(index, id)| (*id, index)).collect();
    let results: Vec<Value> = objects.iter().map(|object| result(object, &numbers, reports)).collect();
    let unread: Vec<Value> = reports
        .unread
        .iter()
        .map(|unread| json!({"level": "error", "message": {"text": unread.error.message()}}))
        .collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "ll-loop",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": HOME,
                "rules": ids.iter().map(|id| rule(id)).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "executionSuccessful": unread.is_empty(),
                "toolConfigurationNotifications": unread,
            }],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    output.pretty_json(log);
}

fn rule(id: &str) -> Value {
    let mut rule = json!({"id": id, "helpUri": format!("{HOME}/blob/main/docs/diagnostics.md#{id}")});
    if let Some(paragraph) = explain::paragraph(id) {
        let first = first_line(paragraph);
        rule["shortDescription"] = json!({"text": explain::first_sentence(first)});
        rule["fullDescription"] = json!({"text": first});
        rule["help"] = json!({"text": paragraph, "markdown": paragraph});
    }
    rule
}

fn result(object: &Value, numbers: &BTreeMap<&str, usize>, reports: &Reports) -> Value {
    let id = word(object, "code").unwrap_or("");
    let mut text = word(object, "message").unwrap_or("").to_owned();
    // A result has one text, so the help is a part of it.
    if let Some(help) = word(object, "help") {
        let _ = write!(text, "\nhelp: {help}");
    }
    let mut result = json!({
        "ruleId": id,
        "level": word(object, "severity").unwrap_or("none"),
        "message": {"text": text},
        "locations": location(object, reports).into_iter().collect::<Vec<_>>(),
    });
    if let Some(number) = numbers.get(id) {
        result["ruleIndex"] = (*number).into();
    }
    if let Some(related) = object.get("related")
        && let Some(mut place) = location(related, reports)
    {
        place["message"] = json!({"text": word(related, "message").unwrap_or("")});
        result["relatedLocations"] = json!([place]);
    }
    result
}

fn location(object: &Value, reports: &Reports) -> Option<Value> {
    let file = word(object, "file")?;
    // SARIF counts from 1, and a finding about a whole file needs a region as well.
    let number = |key: &str| object.get(key).cloned().unwrap_or_else(|| 1.into());
    Some(json!({"physicalLocation": {
        "artifactLocation": {"uri": uri(&reports.in_repository(file))},
        "region": {
            "startLine": number("line"),
            "startColumn": number("column"),
            "endLine": number("end_line"),
            "endColumn": number("end_column"),
        },
    }}))
}

/// Writes a path as a relative URI reference, percent-encoded (RFC 3986).
fn uri(path: &str) -> String {
    path.bytes().fold(String::new(), |mut out, byte| {
        // Not the colon: in front of the first slash it would end the name of a scheme.
        if byte.is_ascii_alphanumeric() || b"/.-_~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_are_written_as_uris_hold_them() {
        assert_eq!(uri(".loops/a b#é.yaml"), ".loops/a%20b%23%C3%A9.yaml");
    }
}
