//! Fan-out from one end to the other: plans, legs in clones of their own, what comes back, and what is made of it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Project, Ran, git};

mod legs;
mod merge;
mod plan;

/// Checks a file below a directory and repairs it.
const TIDY: &str = "name: main
description: d
initial: check
parameters: {path: {type: string}}
scope: ['${context.path}']
states:
  check: {action: 'test \"$(cat ${context.path:shell}/state)\" = ok', on_yes: done, on_no: fix}
  fix: {action: './fix.sh ${context.path:shell}', next: check}
  done: {terminal: true}\n";

const FIX: &str = "#!/bin/sh\necho ok > \"$1/state\"\n";

/// A repository with the loop, and these packages: each has a file that is fine or not.
fn repository(packages: &[(&str, &str)]) -> Project {
    with_fix(packages, FIX)
}

fn with_fix(packages: &[(&str, &str)], fix: &str) -> Project {
    let mut project = Project::with_loop(TIDY).file("fix.sh", fix).file(".gitignore", "plan.json\nout/\n");
    for (package, state) in packages {
        project = project.file(&format!("packages/{package}/state"), &format!("{state}\n"));
    }
    fs::set_permissions(project.at("fix.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    git(&project, &["init", "-q", "-b", "trunk"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project
}

/// Plans an item for each package.
fn plan(project: &Project, more: &[&str]) -> Value {
    let arguments = [&["plan", "main", "--per-path", "packages/*"], more].concat();
    project.run(&arguments).code(0);
    read_plan(project)
}

fn read_plan(project: &Project) -> Value {
    serde_json::from_str(&project.read("plan.json")).unwrap()
}

/// What the jobs of a fan-out share: the plan, and a place for what the legs leave.
struct Fan {
    project: Project,
    place: TempDir,
}

impl Fan {
    fn of(project: Project) -> Self {
        Self { project, place: TempDir::new().unwrap() }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        self.at(path).to_string_lossy().into_owned()
    }

    /// Runs something of the plan in a clone of its own, as a job does. Its reports go to `to`.
    fn job(&self, to: &str, arguments: &[&str]) -> Ran {
        let clone = checkout(&self.project, Project::new());
        let (plan, to) = (self.project.at("plan.json"), self.text(to));
        let plan = plan.to_string_lossy();
        let fixed = ["run", "--plan", &plan, "--ci", "--on-change", "report", "--report-dir", &to];
        clone.run(&[&fixed, arguments].concat())
    }

    fn leg(&self, key: &str) -> Ran {
        self.job(&format!("legs/{key}"), &["--leg", key])
    }

    /// Merges what lies in these directories into `to`.
    fn merge(&self, to: &str, from: &[&str]) -> Ran {
        let to = self.text(to);
        let from: Vec<String> = from.iter().map(|from| self.text(from)).collect();
        let from: Vec<&str> = from.iter().map(String::as_str).collect();
        self.project.run(&[&["merge", "--ci", "--report-dir", &to], from.as_slice()].concat())
    }

    fn result(&self, of: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.at(of).join("result.json")).unwrap()).unwrap()
    }
}

/// Makes a project a checkout of another one's commit, as a job has it.
fn checkout(of: &Project, project: Project) -> Project {
    git(&project, &["init", "-q"]);
    git(&project, &["fetch", "-q", &of.path().to_string_lossy(), "HEAD"]);
    git(&project, &["checkout", "-q", "--force", "FETCH_HEAD"]);
    project
}

/// Returns the only bundle below a directory.
fn bundle(directory: &Path) -> PathBuf {
    let mut found = Vec::new();
    below(directory, &mut found);
    found.retain(|path| path.extension().is_some_and(|end| end == "llz"));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { below(&path, found) } else { found.push(path) }
    }
}

/// Returns the id of the item of a package.
fn item(plan: &Value, package: &str) -> String {
    let all = [&plan["items"], &plan["skipped"]].into_iter().filter_map(Value::as_array).flatten();
    let named = format!("main.packages-{package}-");
    let mut ids = all.filter_map(|item| item["id"].as_str()).filter(|id| id.starts_with(&named));
    ids.next().unwrap_or_else(|| panic!("{package}: {plan}")).to_owned()
}
