//! Runs whose actions see what is declared, and nothing else.

use super::git;
use crate::common::Project;
use crate::confined::{give_away, possible, run_as};
use crate::sandbox::container;

const LOOP: &str = "name: main
description: checks
initial: check
sandbox: workspace
reuse: {inputs: [src/], hermetic: true, verify_every: 1000000000}
states:
  check: {action: 'sh check.sh', check: true, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";

#[test]
fn a_check_that_reads_what_is_not_declared_fails_in_a_hermetic_run() {
    for who in possible() {
        let project = Project::with_loop(LOOP)
            .file("src/a.txt", "good\n")
            .file("lib/b.txt", "good\n")
            // The name of the other file is put together, or else it would be known as one that the check reads.
            .file("check.sh", "grep -q good src/a.txt && grep -q good lib/$(printf b).txt || exit 1\n");
        std::os::unix::fs::symlink("src", project.at("latest")).unwrap();
        git(&project, &["init", "-q", "-b", "main"]);
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-q", "-m", "start"]);
        // Whoever runs it trusts the tree, whose owner may be somebody else.
        project.write(".gitconfig", "[safe]\n\tdirectory = *\n");
        give_away(&project);
        let run = |more: &[&str]| run_as(project.command(&[&["run", "main"], more].concat()), who);
        drop(run(&[]).code(1).says("lib/b.txt: No such file or directory"));
        project.write(".loops/main.yaml", &LOOP.replace("[src/]", "[src/, lib/]"));
        give_away(&project);
        run(&[]).code(0);
        run(&["--reuse-only"]).code(0);
        assert_eq!(project.read("lib/b.txt"), "good\n");
    }
}

#[test]
fn a_container_hides_what_is_not_declared_as_well() {
    if !container::is_possible() {
        return;
    }
    let text = LOOP.replace("sandbox: workspace", "sandbox: {mode: workspace, engine: container}");
    let project = Project::with_loop(&text)
        .file("src/a.txt", "good\n")
        .file("lib/b.txt", "good\n")
        .file("check.sh", "grep -q good src/a.txt && grep -q good lib/$(printf b).txt || exit 1\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "start"]);
    project.run(&["run", "main"]).code(1).says("lib/b.txt: No such file or directory");
    project.write(".loops/main.yaml", &text.replace("[src/]", "[src/, lib/]"));
    project.run(&["run", "main"]).code(0);
    project.run(&["run", "main", "--reuse-only"]).code(0);
}

#[test]
fn a_run_that_can_hide_nothing_says_so() {
    for who in possible() {
        let project =
            Project::with_loop(LOOP).file("src/a.txt", "good\n").file("check.sh", "grep -q good src/a.txt\n");
        give_away(&project);
        let ran = run_as(project.command(&["run", "main"]), who).code(0);
        ran.says("warning: this run is not hermetic: its actions see what is not declared");
    }
}

#[test]
fn without_a_sandbox_that_hides_nothing_is_hermetic() {
    for (sandbox, state) in [
        ("", ""),
        ("sandbox: off", ""),
        ("sandbox: {mode: workspace, engine: landlock}", ""),
        ("sandbox: workspace", "sandbox: off, "),
    ] {
        let text = LOOP
            .replace("sandbox: workspace", sandbox)
            .replace("check: true,", &format!("{state}check: true,"));
        let project = Project::with_loop(&text);
        drop(
            project.run(&["validate", "main"]).code(2).says("not every action of this loop is in a sandbox"),
        );
    }
}
