//! The examples of the two documents that the language comes from: all of them load, and those that need no model run
//! to the end that their text promises, with tools that pretend.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::Project;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/seeds")
}

fn read(name: &str) -> String {
    fs::read_to_string(directory().join(name)).unwrap()
}

/// What is wrong with an example as it stands in its document; every other one loads.
fn faults(name: &str) -> &'static [&'static str] {
    match name {
        // The document writes two keys twice.
        "current-04-fix-all-types.yaml" => &[
            "the key `backoff` stands twice in one mapping",
            "the key `max_iterations` stands twice in one mapping",
        ],
        "current-06-quality-then-commit.yaml" => &[
            "the loop `fix-quality-and-tests` cannot be run: there is no loop named `fix-quality-and-tests`",
            "the loop `issue-refinement-git` cannot be run: there is no loop named `issue-refinement-git`",
        ],
        _ => &[],
    }
}

#[test]
fn every_example_loads_but_for_faults_of_its_own() {
    let mut names: Vec<_> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| Path::new(name).extension().is_some())
        .collect();
    names.sort();
    assert_eq!(names.len(), 29);
    for name in names {
        let project = Project::new()
            .file(".loops/lib/apo-base.yaml", &read("lib/apo-base.yaml"))
            .file(&format!(".loops/{name}"), &read(&name));
        let path = format!(".loops/{name}");
        let ran = project.run(&["validate", &path, "--format", "json"]);
        let findings = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let errors: BTreeSet<_> = findings
            .filter(|finding| finding["severity"] == "error")
            .map(|finding| finding["message"].as_str().unwrap().to_owned())
            .collect();
        assert!(errors.iter().map(String::as_str).eq(faults(&name).iter().copied()), "{name}: {}", ran.all());
        if errors.is_empty() {
            drop(project.run(&["compile", &path]).code(0));
        }
    }
}

/// A project with an example and tools that exit as they are told: in turn, then with 0.
fn with_tools(example: &str, tools: &[(&str, &[i32])]) -> Project {
    let project = Project::new()
        .file(".loops/lib/apo-base.yaml", &read("lib/apo-base.yaml"))
        .file(".loops/main.yaml", &read(example));
    for (tool, codes) in tools {
        let path = if tool.contains('/') { (*tool).to_owned() } else { format!("bin/{tool}") };
        let answers = format!("{path}.answers");
        let lines = codes.iter().map(|code| format!("{code}\n")).collect::<Vec<_>>().concat();
        project.write(&answers, &lines);
        let answers = project.at(&answers).display().to_string();
        let script = format!(
            "#!/bin/sh\necho \"{tool} $*\" >> calls\ncode=$(head -n 1 {answers})\nsed -i 1d {answers}\nexit ${{code:-0}}\n"
        );
        project.write(&path, &script);
        fs::set_permissions(project.at(&path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", project.at("bin").display());
    project.env("PATH", path)
}

#[track_caller]
fn check(project: &Project, code: i32, state: &str, calls: &str) {
    let ran = project.run(&["run", "main", "--no-ci"]).code(code);
    assert_eq!(project.end()["final_state"], state, "{}", ran.all());
    // Looking at the working tree is ours, and these are the calls of the loop.
    let all = project.read("calls");
    let of_loop: Vec<&str> = all.lines().filter(|line| !line.contains("core.hooksPath")).collect();
    assert_eq!(of_loop, calls.lines().collect::<Vec<_>>());
}

#[test]
fn tests_are_run_until_they_pass() {
    let project = with_tools("current-09-test-until-pass.yaml", &[("pytest", &[1, 1]), ("git", &[])]);
    check(&project, 0, "done", "pytest \ngit stash pop\npytest \ngit stash pop\npytest \n");
    let never = with_tools("current-09-test-until-pass.yaml", &[("pytest", &[1; 9]), ("git", &[])]);
    check(&never, 3, "fix", &"pytest \ngit stash pop\n".repeat(5));
}

#[test]
fn checks_run_one_after_the_other() {
    let project = with_tools("current-13-ci-checks.yaml", &[("ruff", &[1]), ("mypy", &[]), ("pytest", &[])]);
    let calls = "ruff check src/\nruff check src/ --fix\nruff check src/\nmypy src/\npytest --tb=short\n";
    check(&project, 0, "done", calls);
}

#[test]
fn a_deployment_goes_through_or_is_rolled_back() {
    const TOOLS: [&str; 6] = [
        "pytest",
        "npm",
        "slack-notify",
        "scripts/deploy.sh",
        "scripts/smoke-test.sh",
        "scripts/rollback.sh",
    ];
    let fine = with_tools("classic-16-safe-deploy.yaml", &TOOLS.map(|tool| (tool, &[] as &[i32])));
    let through = "pytest \nnpm run build\nscripts/deploy.sh staging\nscripts/smoke-test.sh \nscripts/deploy.sh prod\nslack-notify \n";
    check(&fine, 0, "done", through);
    let tools = TOOLS.map(|tool| (tool, if tool.contains("smoke") { &[1][..] } else { &[] }));
    let smoking = with_tools("classic-16-safe-deploy.yaml", &tools);
    let back = "pytest \nnpm run build\nscripts/deploy.sh staging\nscripts/smoke-test.sh \nscripts/rollback.sh \nslack-notify \n";
    check(&smoking, 1, "notify_fail", back);
}

#[test]
fn a_loop_can_tell_that_it_is_in_ci() {
    let project = with_tools("classic-12-ci-aware-loop.yaml", &[("pytest", &[1])]).env("CI", "true");
    check(&project, 0, "done", "pytest \npytest \n");
}

#[test]
fn a_loop_is_laid_over_its_template() {
    let project = with_tools("current-08-apo-beam.yaml", &[("make", &[])]);
    let ran = project.run(&["run", "main", "--no-ci"]).code(0);
    assert_eq!(project.end()["final_state"], "done", "{}", ran.all());
    let plain = project.run(&["compile", "main"]).code(0).stdout;
    for line in ["category: apo", "max_iterations: 20", "  beam_width: 4", "  prompt_file: system.md"] {
        assert!(plain.lines().any(|other| other == line), "{line} in {plain}");
    }
}
