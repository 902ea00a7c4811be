//! Runs that are not made, because earlier ones have found the same.

mod flaky_checks;
mod git_store;
#[cfg(target_os = "linux")]
mod hermetic;
mod hits;
mod ignored_sources;
mod plans;
mod quarantine;
mod records;

use crate::common::Project;

/// A loop whose check counts how often it is made, in a file that is no input.
pub(crate) const LOOP: &str = "name: main
description: checks
initial: check
parameters: {level: {type: integer, default: 1}}
reuse: {inputs: [src/, local.env], tools: [./tool -V], env: [MODE], verify_every: 1000000000}
states:
  check: {action: 'sh check.sh', check: true, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true, outcome: failure}
";

pub(crate) const CHECK: &str = "echo made >> .git/made\ngrep -q good src/a.txt\n";

/// Runs git in a project.
pub(crate) fn git(project: &Project, arguments: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let done = project.program("git", &[&identity, arguments].concat()).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A repository with a loop that can be reused.
pub(crate) fn project() -> Project {
    let project = Project::with_loop(LOOP)
        .file("src/a.txt", "good\n")
        .file("src/b.txt", "b\n")
        .file("local.env", "A=1\n")
        .file(".gitignore", "local.env\n")
        .file("check.sh", CHECK)
        .file("other.md", "x\n")
        .file("tool", "#!/bin/sh\ncat tool.version\n")
        .file("tool.version", "1\n");
    std::fs::set_permissions(project.at("tool"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "start"]);
    project
}

/// Tells how often the check was made.
pub(crate) fn made(project: &Project) -> usize {
    if project.exists(".git/made") { project.read(".git/made").lines().count() } else { 0 }
}
