//! Signatures that `gh` and `cosign` have checked, played by programs that print what those print.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::{bundle, json, verified};
use crate::common::Project;

const WORKFLOW: &str = "little-loops/ll-loop/.github/workflows/attest.yml";

/// Puts a program on the PATH that prints this and exits so.
fn tool(project: Project, name: &str, printed: &str, code: i32) -> Project {
    project.write("bin/printed", printed);
    let root = project.path().display().to_string();
    project.write(
        &format!("bin/{name}"),
        &format!("#!/bin/sh\necho \"$@\" >> {root}/bin/asked\ncat {root}/bin/printed\nexit {code}\n"),
    );
    let path = project.at(&format!("bin/{name}"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    project.env("PATH", format!("{root}/bin:/usr/bin:/bin"))
}

/// What `gh` prints about an attestation of the run.
fn attested(project: &Project, change: impl FnOnce(&mut Value)) -> String {
    let details = json(project, "report/verdict-details.intoto.json");
    let subject = details["subject"].as_array().unwrap().last().unwrap().clone();
    let mut answer = json!([{"attestation": {}, "verificationResult": {
        "mediaType": "application/vnd.dev.sigstore.verificationresult+json;version=0.1",
        "statement": {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [subject],
            "predicateType": "https://little-loops.github.io/ll-loop/verdict/v1",
            "predicate": details["predicate"],
        },
        "signature": {"certificate": {
            "issuer": "https://token.actions.githubusercontent.com",
            "buildSignerURI": format!("https://github.com/{WORKFLOW}@refs/tags/v1"),
            "sourceRepositoryURI": "https://github.com/octo/project",
            "runInvocationURI": "https://github.com/octo/project/actions/runs/7/attempts/1",
        }},
    }}]);
    change(&mut answer[0]["verificationResult"]);
    answer.to_string()
}

fn verify(project: &Project, more: &[&str]) -> crate::common::Ran {
    let bundle = bundle(project).display().to_string();
    let arguments = [&["verify", &bundle, "--repo", "octo/project"], more].concat();
    project.run(&arguments)
}

fn policy(git_ref: &str) -> String {
    format!("signer: {{workflow: {WORKFLOW}, ref: {git_ref}}}\n")
}

#[test]
fn who_signed_is_said_and_held_against_the_policy() {
    let project = verified();
    let printed = attested(&project, |_| {});
    let project = tool(project, "gh", &printed, 0);
    verify(&project, &[]).code(0).says(&format!("by {WORKFLOW}@refs/tags/v1")).says("for octo/project");
    let asked = project.read("bin/asked");
    for word in
        ["attestation verify", "--repo octo/project", "--predicate-type", "/verdict/v1", "--format json"]
    {
        assert!(asked.contains(word), "{asked}");
    }
    project.write("p.yaml.policy", &policy("refs/tags/v1"));
    verify(&project, &["--policy", "p.yaml.policy"]).code(0).says("it holds");
    project.write("p.yaml.policy", &policy("refs/heads/main"));
    verify(&project, &["--policy", "p.yaml.policy"]).code(1).says("signed by");
}

#[test]
fn what_was_signed_has_to_be_what_the_bundle_says() {
    let check = |change: fn(&mut Value)| {
        let project = verified();
        let printed = attested(&project, change);
        let project = tool(project, "gh", &printed, 0);
        verify(&project, &[]).code(1).says("unsigned:");
    };
    check(|answer| answer["statement"]["predicate"]["properties"] = json!(["LL_LOOP_SANDBOXED"]));
    check(|answer| answer["statement"]["predicate"]["run"]["id"] = "another".into());
    check(|answer| answer["statement"]["subject"][0]["digest"]["sha256"] = "0".repeat(64).into());
    check(|answer| answer["statement"]["predicateType"] = "https://slsa.dev/provenance/v1".into());
    check(|answer| answer["statement"]["subject"] = json!([]));
    check(|answer| answer["signature"]["certificate"]["issuer"] = "https://accounts.example".into());
    check(|answer| {
        answer["signature"]["certificate"]["sourceRepositoryURI"] =
            "https://github.com/mallory/project".into();
    });
    check(|answer| answer["signature"]["certificate"]["buildSignerURI"] = "x".into());
}

#[test]
fn a_tool_that_says_no_or_nothing_that_can_be_read_is_no_signature() {
    for (printed, code) in [("", 0), ("[]", 0), ("{}", 0), ("[{}]", 0), ("not json", 0), ("", 1)] {
        let project = tool(verified(), "gh", printed, code);
        verify(&project, &[]).code(1).says("unsigned:");
        verify(&project, &["--unsigned"]).code(0);
    }
}

#[test]
fn cosign_is_told_who_must_have_signed_and_checks_files() {
    let project = verified();
    let statement: Value = serde_json::from_str(&attested(&project, |_| {})).unwrap();
    let payload = statement[0]["verificationResult"]["statement"].to_string();
    let envelope = json!({"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": {
        "payloadType": "application/vnd.in-toto+json",
        "payload": base64::Engine::encode(&base64::engine::general_purpose::STANDARD, payload),
        "signatures": [],
    }});
    project.write("report-signed/one.sigstore.json", &envelope.to_string());
    let project = tool(project, "cosign", "Verified OK", 0);
    verify(&project, &["--attestations", "report-signed"])
        .code(1)
        .says("has to be told who must have signed");
    project.write("p.yaml.policy", &policy("refs/tags/v1"));
    let arguments = ["--attestations", "report-signed", "--policy", "p.yaml.policy"];
    verify(&project, &arguments).code(0).says("(cosign)");
    assert!(project.read("bin/asked").contains(&format!("https://github.com/{WORKFLOW}@refs/tags/v1")));
    let project = tool(project, "cosign", "", 1);
    verify(&project, &arguments).code(1).says("unsigned:");
    verify(&project, &["--policy", "p.yaml.policy"]).code(1).says("needs the attestation as a file");
}
