//! What a run leaves for others to check, and what `verify` makes of it.

mod altered;
mod signed;

use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Project, Ran, git};

/// Checks a file, and fixes nothing.
pub(crate) const CHECK: &str = "name: main\ninitial: check\nstates:\n  check: {action: 'test -f good', check: true, on_yes: done, on_no: failed}\n  \
                     done: {terminal: true}\n  failed: {terminal: true}\n";

/// A repository with a clean commit in which the check passes.
pub(crate) fn repository() -> Project {
    let project = Project::with_loop(CHECK)
        .file("good", "")
        .file(".gitignore", "report*/\n*.yaml.policy\nout\nsummary\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "first"]);
    project
}

/// The same after a run, whose reports are in `report`.
pub(crate) fn verified() -> Project {
    let project = repository();
    project.run(&["run", "main", "--report-dir", "report"]).code(0);
    project
}

pub(crate) fn bundle(project: &Project) -> PathBuf {
    let mut all = std::fs::read_dir(project.at("report")).unwrap().map(|entry| entry.unwrap().path());
    all.find(|path| path.extension().is_some_and(|ending| ending == "llz")).unwrap()
}

pub(crate) fn json(project: &Project, path: &str) -> Value {
    serde_json::from_str(&project.read(path)).unwrap()
}

#[test]
fn a_verified_run_leaves_two_statements_and_its_bundle_holds_neither() {
    let project = verified();
    let verdict = json(&project, "report/verdict.intoto.json");
    let details = json(&project, "report/verdict-details.intoto.json");
    let (commit, tree) =
        (git(&project, &["rev-parse", "HEAD"]), git(&project, &["rev-parse", "HEAD^{tree}"]));
    for statement in [&verdict, &details] {
        let digests: Vec<&Value> =
            statement["subject"].as_array().unwrap().iter().map(|one| &one["digest"]).collect();
        assert_eq!(digests[0]["gitCommit"], *commit);
        assert_eq!(digests[1]["gitTree"], *tree);
        let sum =
            project.program("sha256sum", &[bundle(&project).to_str().unwrap()]).output().unwrap().stdout;
        assert!(String::from_utf8(sum).unwrap().starts_with(digests[2]["sha256"].as_str().unwrap()));
    }
    assert_eq!(
        verdict["predicate"]["properties"],
        serde_json::json!(["LL_LOOP_VERIFIED", "LL_LOOP_JUDGES_UNCHANGED"])
    );
    assert_eq!(details["predicate"]["commit"], *commit);
    let file = std::fs::File::open(bundle(&project)).unwrap();
    let archive = zip::ZipArchive::new(file).unwrap();
    assert!(archive.file_names().all(|name| !name.unwrap().contains("intoto")));
}

/// Runs the loop of the package `sub`.
#[track_caller]
fn verified_in_package(project: &Project) {
    let mut command = project.command(&["run", "main", "--report-dir", "../report"]);
    Ran::of(&command.current_dir(project.at("sub")).output().unwrap()).code(0);
}

/// Verifies the commit of a repository by the verdicts in `report`, with a policy that asks for these loops.
#[track_caller]
fn verify_commit(project: &Project, loops: &str, code: i32) {
    project.write("a.yaml.policy", &format!("loops: [{loops}]\n"));
    let commit = git(project, &["rev-parse", "HEAD"]);
    let arguments =
        ["verify", &commit, "--unsigned", "--attestations", "report", "--policy", "a.yaml.policy"];
    project.run(&arguments).code(code);
}

#[test]
fn a_loop_of_a_package_does_not_speak_for_the_one_of_the_repository() {
    let project = repository();
    project.write("sub/.loops/main.yaml", CHECK);
    project.write("sub/good", "");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "a package"]);
    verified_in_package(&project);
    verify_commit(&project, "main", 1);
    verify_commit(&project, "sub/.loops/main.yaml", 0);
    project.run(&["run", "main", "--report-dir", "report"]).code(0);
    verify_commit(&project, "main", 0);
}

#[test]
fn a_loop_that_git_ignores_says_nothing_of_a_commit() {
    let project = repository();
    project.write(".git/info/exclude", "sub/.loops/\n");
    project.write("sub/.loops/main.yaml", CHECK);
    project.write("sub/good", "");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "a package"]);
    verified_in_package(&project);
    verify_commit(&project, "sub/.loops/main.yaml", 1);
    let details = json(&project, "report/verdict-details.intoto.json");
    assert_eq!(
        (&details["predicate"]["commit"], &details["predicate"]["tree"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn the_details_are_as_their_schema_says() {
    let project = verified();
    let schema: Value = serde_json::from_str(&project.run(&["schema", "--verdict"]).code(0).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let details = &json(&project, "report/verdict-details.intoto.json")["predicate"];
    let errors: Vec<String> = validator.iter_errors(details).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let known = schema["properties"].as_object().unwrap();
    assert!(
        details.as_object().unwrap().keys().eq(known.keys())
            || details.as_object().unwrap().keys().all(|key| known.contains_key(key))
    );
}

#[test]
fn a_run_that_is_no_verified_success_leaves_details_alone() {
    let project = verified();
    std::fs::remove_file(project.at("good")).unwrap();
    project.run(&["run", "main", "--report-dir", "report"]).code(1);
    assert!(!project.exists("report/verdict.intoto.json"), "that of the run before is gone");
    let details = json(&project, "report/verdict-details.intoto.json");
    assert_eq!(details["predicate"]["properties"], serde_json::json!([]));
    assert_eq!(details["predicate"]["shortfalls"]["LL_LOOP_VERIFIED"], "it is not a verified success");
}

#[test]
fn a_run_whose_tree_is_not_that_of_its_commit_is_not_about_the_commit() {
    let project = repository().file("good", "changed");
    project.run(&["run", "main", "--report-dir", "report"]).code(0);
    let details = json(&project, "report/verdict-details.intoto.json");
    assert_eq!(details["predicate"]["commit"], Value::Null);
    let commit = git(&project, &["rev-parse", "HEAD"]);
    project
        .run(&["verify", &commit, "--attestations", "report", "--unsigned"])
        .code(1)
        .says("there is no verdict");
    let tree = details["predicate"]["tree"].as_str().unwrap().to_owned();
    project.run(&["verify", &tree, "--attestations", "report", "--unsigned"]).code(0).says("it holds");
}

#[test]
fn a_verdict_is_verified_by_bundle_statement_directory_commit_and_tree() {
    let project = verified();
    let (commit, tree) =
        (git(&project, &["rev-parse", "HEAD"]), git(&project, &["rev-parse", "HEAD^{tree}"]));
    let bundle = bundle(&project).display().to_string();
    for what in [
        bundle.as_str(),
        "report",
        "report/verdict.intoto.json",
        "report/verdict-details.intoto.json",
        "main",
    ] {
        project.run(&["verify", what, "--unsigned"]).code(0).says("LL_LOOP_VERIFIED").says("it holds");
        project.run(&["verify", what]).code(1).says("unsigned:");
    }
    for what in [&commit, &tree] {
        project.run(&["verify", what, "--attestations", "report", "--unsigned"]).code(0).says("it holds");
        project.run(&["verify", what, "--unsigned"]).code(2);
    }
    let said = project.run(&["verify", &bundle, "--unsigned", "--format", "json"]).code(0).stdout;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&said["holds"], &said["claims"][0]["details"]["commit"]),
        (&Value::Bool(true), &Value::from(commit))
    );
}

#[test]
fn a_policy_says_what_has_to_be_so() {
    let project = verified();
    let check = |policy: &str, code: i32, says: &str| {
        project.write("p.yaml.policy", policy);
        project.run(&["verify", "report", "--unsigned", "--policy", "p.yaml.policy"]).code(code).says(says);
    };
    check("loops: [main]\njudges: [unchanged]\nno_key: true\nmax_age: 1d\n", 0, "it holds");
    check("loops: [main, other]\n", 1, "`other` has not verified it");
    check("judges: [added]\n", 1, "the judges are unchanged");
    check("sandbox: [workspace]\n", 1, "no action was sandboxed");
    check("approvals: 1\n", 1, "0 persons");
    check("signer: {workflow: o/r/.github/workflows/x.yml}\n", 1, "unsigned");
    check("loops: [main]\nloops: [main]\n", 2, "p.yaml.policy");
    check("lops: [main]\n", 2, "lops");
    project.run(&["verify", "report", "--unsigned", "--policy", "absent"]).code(2);
    project.run(&["verify", "absent", "--unsigned"]).code(2);
    project.run(&["verify", "report", "--unsigned", "--loop", "other"]).code(1).says("`other`");
}

#[test]
fn what_is_to_be_signed_is_made_anew_for_the_commit_of_the_job() {
    let project = verified().file("out", "").env("GITHUB_ACTIONS", "true");
    let out = project.at("out").display().to_string();
    let project = project.env("GITHUB_OUTPUT", out);
    let (commit, bundle) = (git(&project, &["rev-parse", "HEAD"]), bundle(&project).display().to_string());
    let sign = |commit: &str| {
        project.run(&[
            "verify",
            &bundle,
            "--unsigned",
            "--commit",
            commit,
            "--predicate",
            "report/predicate.json",
        ])
    };
    let _signed = sign(&commit).code(0);
    let predicate = json(&project, "report/predicate.json");
    assert_eq!(predicate, json(&project, "report/verdict-details.intoto.json")["predicate"]);
    let named = PathBuf::from(&bundle).file_name().unwrap().display().to_string();
    assert!(
        project.read("out").contains("subject-digest") && project.read("out").contains(&named),
        "{named}"
    );
    std::fs::remove_file(project.at("report/predicate.json")).unwrap();
    let _refused = sign(&"0".repeat(40)).code(1).says("the run began at");
    assert!(!project.exists("report/predicate.json"));
}
