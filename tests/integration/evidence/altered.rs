//! Statements, bundles, subjects and policies that somebody altered: none of them passes.

use serde_json::Value;

use super::{bundle, json, verified};
use crate::common::Project;

/// Returns every way to alter one value below a document: each leaf is another one, each entry is gone.
fn alterations(value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                for altered in alterations(inner) {
                    let mut copy = map.clone();
                    copy.insert(key.clone(), altered);
                    all.push(Value::Object(copy));
                }
                let mut copy = map.clone();
                copy.remove(key);
                all.push(Value::Object(copy));
            }
            let mut copy = map.clone();
            copy.insert("added".into(), Value::Bool(true));
            all.push(Value::Object(copy));
        }
        Value::Array(list) => {
            for (at, inner) in list.iter().enumerate() {
                for altered in alterations(inner) {
                    let mut copy = list.clone();
                    copy[at] = altered;
                    all.push(Value::Array(copy));
                }
                let mut copy = list.clone();
                copy.remove(at);
                all.push(Value::Array(copy));
            }
        }
        Value::String(text) => {
            all.push(Value::String(format!("{text}0")));
            let turned: String = text.chars().rev().collect();
            all.extend((turned != *text).then_some(Value::String(turned)));
        }
        Value::Number(number) => all.push((number.as_f64().unwrap() + 1.0).into()),
        Value::Bool(is) => all.push(Value::Bool(!is)),
        Value::Null => all.push(Value::String("x".into())),
    }
    all
}

#[track_caller]
fn refused(project: &Project, arguments: &[&str], what: &str) {
    let ran = project.run(arguments);
    assert!(matches!(ran.code, Some(1 | 2)), "{what} passes:\n{}", ran.all());
}

#[test]
fn no_altered_statement_passes() {
    let project = verified();
    let mut count = 0;
    for file in ["report/verdict.intoto.json", "report/verdict-details.intoto.json"] {
        let original = project.read(file);
        for altered in alterations(&json(&project, file)) {
            project.write(file, &(serde_json::to_string_pretty(&altered).unwrap() + "\n"));
            refused(&project, &["verify", file, "--unsigned"], &altered.to_string());
            count += 1;
        }
        project.write(file, &original);
        project.run(&["verify", file, "--unsigned"]).code(0);
    }
    assert!(count >= 200, "{count}");
}

#[test]
fn no_altered_bundle_passes() {
    let project = verified();
    let path = bundle(&project);
    let original = std::fs::read(&path).unwrap();
    for step in 0..40 {
        let mut altered = original.clone();
        let at = step * altered.len() / 40;
        altered[at] ^= 0x20;
        std::fs::write(&path, &altered).unwrap();
        refused(&project, &["verify", "report", "--unsigned"], &format!("byte {at}"));
    }
    let longer = [original.as_slice(), b"\0"].concat();
    for altered in [&original[..original.len() - 1], &longer, &[]] {
        std::fs::write(&path, altered).unwrap();
        refused(&project, &["verify", "report", "--unsigned"], "another length");
    }
    std::fs::write(&path, &original).unwrap();
    project.run(&["verify", "report", "--unsigned"]).code(0);
}

#[test]
fn no_other_subject_and_no_altered_policy_passes() {
    let project = verified();
    let zeros = "0".repeat(40);
    for subject in [zeros.as_str(), &"a".repeat(64), "main2", "HEAD"] {
        refused(&project, &["verify", subject, "--attestations", "report", "--unsigned"], subject);
    }
    for policy in [
        "loop: [main]",
        "loops: [Main]",
        "loops: [main, x]",
        "loops: [main]\n loops: []",
        "judges: []",
        "judges: [confirmed]",
        "sandbox: []",
        "sandbox: [strict]",
        "sandbox: [none]",
        "no-key: true",
        "no_key: yes please",
        "approvals: 1",
        "approvals: -1",
        "approvals: 0.5",
        "max_age: 0s",
        "max_age: x",
        "max-age: 1d",
        "signer: {}",
        "signer: {workflow: x}",
        "signer: x",
        "signer: {ref: x}",
        "signer: {workflow: x, Ref: y}",
        "[]",
        "",
        "- loops",
        "loops: main: x",
        "no_key: true\nno_key: false",
        "approvals: 1\napprovals: 0",
        "loops: [\"main \"]",
        "\u{0}loops: [main]",
    ] {
        project.write("p.yaml.policy", policy);
        refused(&project, &["verify", "report", "--unsigned", "--policy", "p.yaml.policy"], policy);
    }
}
