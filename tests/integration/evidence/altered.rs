//! Statements, bundles, subjects and policies that somebody altered: none of them passes.

use serde_json::Value;

use super::{bundle, json, verified};
use crate::common::{Project, git};

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

fn head(project: &Project) -> String {
    git(project, &["rev-parse", "HEAD"])
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

/// Returns ways to write a statement otherwise that alter no value, or that a lenient reader would take for the same.
fn rewritten(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let value: Value = serde_json::from_str(text).unwrap();
    let swapped = |key: &str| {
        let mut value = value.clone();
        value[key].as_array_mut().unwrap().reverse();
        serde_json::to_string_pretty(&value).unwrap() + "\n"
    };
    let with_subject = |subject: Value| {
        let mut value = value.clone();
        value["subject"].as_array_mut().unwrap().push(subject);
        serde_json::to_string_pretty(&value).unwrap() + "\n"
    };
    let first = value["subject"][0].clone();
    let other = serde_json::json!({"name": "other", "digest": {"gitCommit": "0".repeat(40)}});
    let twice = |key: &str, doubled: &str| text.replacen(key, &format!("{doubled}\n  {key}"), 1);
    vec![
        ("a byte order mark", [b"\xef\xbb\xbf".as_slice(), text.as_bytes()].concat()),
        ("UTF-16", utf16(text)),
        ("ends of lines", text.replace('\n', "\r\n").into_bytes()),
        ("no end of a line", text.trim_end().into()),
        ("more at the end", format!("{text}{{}}\n").into_bytes()),
        ("a NUL at the end", format!("{text}\0").into_bytes()),
        ("one line", (value.to_string() + "\n").into_bytes()),
        ("a comment", format!("// verified\n{text}").into_bytes()),
        ("escapes of letters", text.replacen("_type", "\\u005ftype", 1).into_bytes()),
        ("no UTF-8", text.replacen("svr", "sv\u{ff}", 1).chars().map(|c| c as u8).collect()),
        ("another letter that looks the same", text.replacen("in-toto", "in-t\u{43e}to", 1).into_bytes()),
        ("an unseen character", text.replacen("sha256", "sha256\u{200b}", 1).into_bytes()),
        ("wide digits", text.replacen("/v1", "/v\u{ff11}", 1).into_bytes()),
        ("the order of subjects", swapped("subject").into_bytes()),
        ("a subject twice", with_subject(first).into_bytes()),
        ("one more subject", with_subject(other).into_bytes()),
        ("no subject", text.replacen("\"subject\"", "\"subjects\"", 1).into_bytes()),
        (
            "a type twice",
            twice("\"_type\"", "\"_type\": \"https://in-toto.io/Statement/v0.1\",").into_bytes(),
        ),
        ("subjects twice, ours last", twice("\"subject\"", "\"subject\": [],").into_bytes()),
        ("a predicate twice", twice("\"predicate\"", "\"predicate\": {},").into_bytes()),
        (
            "another version of the predicate",
            text.replacen("/v0.2", "/v0.1", 1).replacen("verdict/v1", "verdict/v2", 1).into_bytes(),
        ),
        ("a type of a file for a type", text.replacen("predicateType", "PredicateType", 1).into_bytes()),
    ]
}

#[test]
fn a_statement_that_is_written_otherwise_does_not_pass() {
    let project = verified();
    for file in ["report/verdict.intoto.json", "report/verdict-details.intoto.json"] {
        let original = project.read(file);
        for (what, altered) in rewritten(&original) {
            if altered == original.as_bytes() {
                // The two differ in what can be done to them.
                assert!(matches!(what, "no UTF-8"), "{what} alters nothing of {file}");
                continue;
            }
            std::fs::write(project.at(file), &altered).unwrap();
            refused(&project, &["verify", file, "--unsigned"], &format!("{file}: {what}"));
            refused(
                &project,
                &["verify", "report", "--unsigned"],
                &format!("the directory with {file}: {what}"),
            );
        }
        project.write(file, &original);
    }
    project.run(&["verify", "report", "--unsigned"]).code(0);
}

#[test]
fn what_another_run_has_left_stands_for_this_one_in_no_way() {
    let (project, other) = (verified(), verified());
    let commit = head(&project);
    // The commits of the two differ, or each would rightly stand for the other.
    other.write("more", "x");
    git(&other, &["add", "more"]);
    git(&other, &["commit", "-q", "-m", "more"]);
    std::fs::remove_dir_all(other.at("report")).unwrap();
    other.run(&["run", "main", "--report-dir", "report"]).code(0);
    assert_ne!(commit, head(&other));
    let (own, theirs) = (bundle(&project), bundle(&other));
    let kept = std::fs::read(&own).unwrap();
    for file in ["report/verdict.intoto.json", "report/verdict-details.intoto.json"] {
        let original = project.read(file);
        project.write(file, &other.read(file));
        refused(&project, &["verify", file, "--unsigned"], &format!("{file} of another run"));
        refused(
            &project,
            &["verify", "report", "--unsigned"],
            &format!("a directory with {file} of another run"),
        );
        project.write(file, &original);
    }
    std::fs::write(&own, std::fs::read(&theirs).unwrap()).unwrap();
    refused(&project, &["verify", "report", "--unsigned"], "the bundle of another run");
    std::fs::write(&own, kept).unwrap();
    let theirs = other.at("report").display().to_string();
    refused(
        &project,
        &["verify", &commit, "--attestations", &theirs, "--unsigned"],
        "a replay for this commit",
    );
    refused(&project, &["verify", &theirs, "--commit", &commit, "--unsigned"], "a bundle of another commit");
    project.run(&["verify", &commit, "--attestations", "report", "--unsigned"]).code(0);
}
