//! Plans leave out the items for which an earlier run stands, and merges count them as what they are.

use std::fs;

use serde_json::Value;

use super::{git, made};
use crate::common::Project;

/// A loop for each package, which counts how often its check is made, in a file that is no input.
const LOOP: &str = "name: main
description: checks
initial: check
parameters: {path: {type: string}}
scope: ['${context.path}']
reuse: {inputs: ['${param.path}/'], verify_every: 1000000000}
states:
  check: {action: 'sh check.sh ${context.path:shell}', check: true, on_yes: done, on_no: fix}
  fix: {action: 'sh fix.sh ${context.path:shell}', next: again}
  again: {action: 'sh check.sh ${context.path:shell}', check: true, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";

/// The package `web` does not work with what the fixer of another one leaves in it.
const CHECK: &str = "echo made >> .git/made
[ \"$1\" = packages/web ] && [ -e packages/web/left ] && exit 1
grep -q good \"$1/a.txt\"
";

const FIX: &str = "[ -e \"$1/broken\" ] || { echo good > \"$1/a.txt\"; touch packages/web/left; }\n";

fn packages(text: &str) -> Project {
    let project = Project::with_loop(text)
        .file("packages/api/a.txt", "good\n")
        .file("packages/web/a.txt", "good\n")
        .file("check.sh", CHECK)
        .file("fix.sh", FIX)
        .file(".gitignore", "plan.json\nout/\n");
    git(&project, &["init", "-q", "-b", "main"]);
    commit(&project);
    project
}

fn commit(project: &Project) {
    git(project, &["add", "-A"]);
    git(project, &["commit", "-q", "-m", "work"]);
}

fn json(project: &Project, file: &str) -> Value {
    serde_json::from_str(&project.read(file)).unwrap()
}

fn plan(project: &Project, more: &[&str]) -> Value {
    let fixed = ["plan", "main", "--per-path", "packages/*", "--legs", "1"];
    project.run(&[&fixed, more].concat()).code(0);
    json(project, "plan.json")
}

fn count(plan: &Value, of: &str) -> usize {
    plan[of].as_array().map_or(0, Vec::len)
}

/// Runs the only leg of the plan, and merges what it leaves. Returns how that ended.
fn run_and_merge(project: &Project, more: &[&str], code: i32) -> (String, Value) {
    let _absent = fs::remove_dir_all(project.at("out"));
    if count(&json(project, "plan.json"), "items") > 0 {
        drop(project.run(&[
            "run",
            "--plan",
            "plan.json",
            "--on-change",
            "report",
            "--report-dir",
            "out/legs",
        ]));
        git(project, &["checkout", "-q", "."]);
        git(project, &["clean", "-q", "-f", "-d"]);
    }
    fs::create_dir_all(project.at("out/legs")).unwrap();
    let fixed = ["merge", "--plan", "plan.json", "--report-dir", "out/merged", "out/legs"];
    let merged = project.run(&[&fixed, more].concat()).code(code);
    (merged.all(), json(project, "out/merged/result.json"))
}

#[test]
fn an_item_that_was_verified_before_is_on_no_leg_and_counts_as_verified() {
    let project = packages(LOOP);
    let first = plan(&project, &[]);
    assert_eq!((count(&first, "items"), count(&first, "reused")), (2, 0));
    run_and_merge(&project, &[], 0);
    assert_eq!(made(&project), 2);

    let again = plan(&project, &[]);
    assert_eq!((count(&again, "items"), count(&again, "legs"), count(&again, "reused")), (0, 0, 2));
    let said = project.run(&["plan", "main", "--per-path", "packages/*"]).code(0);
    drop(said.says("earlier runs have verified 2 items, same inputs, which saves "));
    let (said, result) = run_and_merge(&project, &[], 0);
    assert_eq!(made(&project), 2);
    assert!(said.contains("2 of 2 items verified, 2 of them by earlier runs"), "{said}");
    assert_eq!(result["verified"], true);
    assert_eq!(result["verification"]["checks"][1]["confirmed"], "reused");
    let item = &result["items"][0];
    let proof = &again["reused"][0]["proof"];
    assert_eq!((&item["standing"], &item["verified"]), (&Value::from("reused"), &Value::from(true)));
    assert_eq!((&item["reused"]["run"], &item["reused"]["key"]), (&proof["run"], &proof["key"]));
    let junit = project.read("out/merged/junit.xml");
    assert!(junit.contains("ll.reused_from") && !junit.contains("<skipped"), "{junit}");
    assert!(project.read("out/merged/summary.md").contains("same inputs, by run"));

    // What a plan has saved is counted where the result of its merge is.
    let stats = project.run(&["stats", "--from", "out/merged", "--json"]).code(0);
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!(
        (&stats["loops"][0]["loop"], &stats["loops"][0]["reused"]["items"]),
        (&"main".into(), &2.into())
    );

    // Only what changed is run, and one that fails is red whatever stands beside it.
    project.write("packages/api/b.txt", "x\n");
    commit(&project);
    let changed = plan(&project, &[]);
    assert_eq!((count(&changed, "items"), count(&changed, "reused")), (1, 1));
    let (said, _) = run_and_merge(&project, &[], 0);
    assert!(said.contains("2 of 2 items verified, 1 of them by earlier runs"), "{said}");
    project.write("packages/api/a.txt", "bad\n");
    project.write("packages/api/broken", "");
    commit(&project);
    plan(&project, &[]);
    let (said, result) = run_and_merge(&project, &[], 1);
    assert!(said.contains("1 of 2 items verified, 1 of them by earlier runs"), "{said}");
    assert_eq!(result["verified"], false);
    assert_eq!(count(&plan(&project, &["--no-reuse"]), "items"), 2);
}

#[test]
fn an_item_that_is_to_prove_an_earlier_run_is_run() {
    let project = packages(&LOOP.replace("verify_every: 1000000000", "verify_every: 1"));
    plan(&project, &[]);
    run_and_merge(&project, &[], 0);
    let again = plan(&project, &[]);
    assert_eq!((count(&again, "items"), count(&again, "reused")), (2, 0));
    assert!(again["items"][0]["proves"].as_str().unwrap().starts_with("main-"), "{again}");
    // The leg does not leave it to chance again.
    project.write(".loops/main.yaml", LOOP);
    commit(&project);
    plan(&project, &["--no-reuse"]);
    run_and_merge(&project, &[], 0);
    let before = made(&project);
    let mut plan = json(&project, "plan.json");
    plan["items"][0]["proves"] = Value::from("main-1");
    project.write("plan.json", &plan.to_string());
    let edited = project.run(&["run", "--plan", "plan.json", "--report-dir", "out/edited"]).code(2);
    drop(edited.says("the plan was edited"));
    assert_eq!(made(&project), before);
}

#[test]
fn what_no_other_item_changes_is_confirmed_by_the_earlier_run() {
    let project = packages(LOOP);
    plan(&project, &[]);
    run_and_merge(&project, &[], 0);
    // The fixer of `api` leaves something with which `web` does not work. It is outside of its scope, and comes along nowhere.
    project.write("packages/api/a.txt", "bad\n");
    commit(&project);
    assert_eq!(count(&plan(&project, &[]), "reused"), 1);
    let (said, result) = run_and_merge(&project, &[], 0);
    assert!(said.contains("nobody has checked their changes together"), "{said}");
    assert_eq!(result["verified"], "each alone");
    let (said, _) = run_and_merge(&project, &["--confirm"], 0);
    assert!(said.contains("no item works on what another one changed"), "{said}");
}

/// A file with a level, of which `web` needs the first one, and the fixer of `api` takes the next one.
fn levelled(text: &str, level: &str) -> Project {
    let project = packages(text);
    project.write(level, "1\n");
    let check = CHECK.replace(
        "grep -q good",
        &format!("[ \"$1\" = packages/web ] && {{ grep -q 1 {level} || exit 1; }}\ngrep -q good"),
    );
    project.write(
        "check.sh",
        &check.replace("[ \"$1\" = packages/web ] && [ -e packages/web/left ] && exit 1\n", ""),
    );
    project.write("fix.sh", &format!("echo good > \"$1/a.txt\"; echo 2 > {level}\n"));
    commit(&project);
    project
}

/// The scopes of both items hold what one of them changes.
#[test]
fn what_another_item_changes_is_confirmed_although_an_earlier_run_verified_it() {
    let shared = LOOP
        .replace("['${param.path}/']", "['${param.path}/', shared/]")
        .replace("scope: ['${context.path}']", "scope: ['${context.path}', shared]");
    let project = levelled(&shared, "shared/level");
    // With `--per-path`, the path alone would be the scope.
    let plan = || {
        project.run(&["plan", "main", "--each", "path=packages/api,packages/web", "--legs", "1"]).code(0);
        json(&project, "plan.json")
    };
    plan();
    run_and_merge(&project, &[], 0);
    project.write("packages/api/a.txt", "bad\n");
    commit(&project);
    let again = plan();
    assert_eq!((count(&again, "items"), count(&again, "reused")), (1, 1), "{again}");
    let (said, result) = run_and_merge(&project, &["--confirm"], 1);
    assert!(said.contains("web"), "{said}");
    assert_eq!(result["verified"], false);
}

/// Each item works on its path alone, and one reads what lies in the other's.
#[test]
fn inputs_that_another_item_changes_are_confirmed_outside_of_the_scope_too() {
    let reading = LOOP.replace("['${param.path}/']", "['${param.path}/', packages/api/level]");
    let project = levelled(&reading, "packages/api/level");
    plan(&project, &[]);
    run_and_merge(&project, &[], 0);
    project.write("packages/api/a.txt", "bad\n");
    commit(&project);
    let again = plan(&project, &[]);
    assert_eq!((count(&again, "items"), count(&again, "reused")), (1, 1), "{again}");
    let (said, result) = run_and_merge(&project, &["--confirm"], 1);
    assert!(said.contains("not confirmed") && said.contains("web"), "{said}");
    assert_eq!(result["verified"], false);
}

#[test]
fn a_plan_whose_proof_proves_nothing_is_refused() {
    let project = packages(LOOP);
    plan(&project, &[]);
    run_and_merge(&project, &[], 0);
    let mut plan = plan(&project, &[]);
    plan["reused"][0]["proof"]["checks"] = Value::Array(Vec::new());
    project.write("plan.json", &plan.to_string());
    drop(
        project.run(&["merge", "--plan", "plan.json", "out/legs"]).code(2).says("no run stands for the item"),
    );
}
