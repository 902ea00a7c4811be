//! Tools read sources although git ignores them, and no key has those.

use std::os::unix::fs::PermissionsExt;

use super::{git, made};
use crate::common::Project;

const LOOP: &str = "name: main
description: vets
initial: check
reuse: {inputs: ['**'], verify_every: 1000000000}
states:
  check: {action: 'sh check.sh', check: true, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";

/// A check that calls `go`, which reads every file of its language.
fn project() -> Project {
    let project = Project::with_loop(LOOP)
        .file(".gitignore", "gen/\nnode_modules/\n*.log\n")
        .file("check.sh", "bin/go vet ./...\n")
        .file("main.go", "package main\n")
        .file("bin/go", "#!/bin/sh\necho made >> .git/made\n! grep -rq bad --include='*.go' .\n");
    std::fs::set_permissions(project.at("bin/go"), PermissionsExt::from_mode(0o755)).unwrap();
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "start"]);
    project
}

#[test]
fn a_source_that_git_ignores_makes_no_key_where_the_check_reads_it() {
    let project = project();
    project.write("gen/deep/api.go", "package deep\n");
    let said = "`go` reads `gen/deep/api.go`, which git ignores";
    for _ in 0..2 {
        drop(project.run(&["run", "main"]).code(0).says(said));
    }
    assert_eq!(made(&project), 2);
    drop(project.run(&["reuse", "key", "main"]).code(2).says(said));
    drop(project.run(&["run", "main", "--reuse-only"]).code(2).says(said));

    // It appears after a run was kept: that run read something else.
    std::fs::remove_dir_all(project.at("gen")).unwrap();
    project.run(&["run", "main"]).code(0);
    project.run(&["run", "main", "--reuse-only"]).code(0);
    project.write("gen/deep/api.go", "bad\n");
    project.run(&["run", "main"]).code(1);
}

#[test]
fn a_source_that_is_named_is_in_the_key_although_git_ignores_it() {
    let project = project();
    project.write(".loops/main.yaml", &LOOP.replace("['**']", "['**', gen/]"));
    project.write("gen/deep/api.go", "package deep\n");
    project.run(&["run", "main"]).code(0);
    project.run(&["run", "main", "--reuse-only"]).code(0);
    project.write("gen/deep/api.go", "bad\n");
    drop(project.run(&["run", "main"]).code(1).says("gen/deep/api.go changed since run main-"));
}

#[test]
fn what_else_git_ignores_costs_no_hit() {
    let project = project();
    project.run(&["run", "main"]).code(0);
    project.write("run.log", "bad\n");
    project.write("gen/notes.txt", "bad\n");
    project.write("node_modules/x/index.js", "bad\n");
    std::os::unix::fs::symlink("..", project.at("gen/around")).unwrap();
    project.run(&["run", "main", "--reuse-only"]).code(0);
    // Reports are written by the run itself.
    project.write("node_modules/report/main.go", "bad\n");
    project.run(&["run", "main", "--reuse-only", "--report-dir", "node_modules/report"]).code(0);
    assert_eq!(made(&project), 1);
}
