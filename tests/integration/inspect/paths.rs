//! Paths in what a job shows begin at the root of the repository, wherever the loop is and wherever it was started.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{Project, Ran, git};

/// Names a file in each of the ways in which tools do.
const LOOP: &str = r#"
name: main
initial: check
states:
  check:
    action: |
      echo "a.py:1: error: from here"
      echo "../b.py:2: error: from above"
      echo "./lib/c.py:3: error: from the root"
      echo "$PWD/a.py:4: error: absolute"
      echo "$CHECKOUT/lib/c.py:5: error: by another name"
      echo "../../outside.py:6: error: not ours"
      exit 1
    on_no: failed
  failed: {terminal: true}
"#;

/// What a run shows about the files, as annotations; JUnit says the same of the loop file.
#[track_caller]
fn check(ran: &Ran, reports: &Path) {
    let found: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("::error ")).collect();
    let places: Vec<&str> = found
        .iter()
        .map(|line| line.trim_start_matches("::error file=").split_once(",title").unwrap().0)
        .collect();
    let expected = [
        "tools/.loops/main.yaml,line=5",
        "tools/a.py,line=1",
        "b.py,line=2",
        "lib/c.py,line=3",
        "tools/a.py,line=4",
        "lib/c.py,line=5",
    ];
    assert_eq!(places, expected, "{}", ran.stdout);
    let junit = fs::read_to_string(reports.join("junit.xml")).unwrap();
    let attribute = "file=\"tools/.loops/main.yaml\" line=\"5\"";
    assert_eq!(junit.matches(attribute).count(), 2, "{junit}");
    let summary = fs::read_to_string(reports.join("summary.md")).unwrap();
    assert!(summary.contains("`tools/.loops/main.yaml:5`"), "{summary}");
}

/// Writes the files of a checkout.
fn files(project: &Project, at: &str) {
    for (path, text) in [
        ("tools/.loops/main.yaml", LOOP),
        ("tools/a.py", ""),
        ("tools/deep/x", ""),
        ("b.py", ""),
        ("lib/c.py", ""),
    ] {
        project.write(&format!("{at}/{path}"), text);
    }
    project.write("outside.py", "");
}

fn repository(project: &Project, at: &str) {
    files(project, at);
    for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "x"]] {
        git(project, &[&["-C", at][..], arguments].concat());
    }
}

/// Runs the loop in a directory of a job whose workspace is another one.
fn run(project: &Project, directory: &str, workspace: &str, checkout: &str) -> Ran {
    let mut command =
        project.command(&["run", "main", "--report-dir", &project.at("reports").to_string_lossy()]);
    command.current_dir(project.at(directory)).env("CHECKOUT", project.at(checkout));
    command.env("CI", "true").env("GITHUB_ACTIONS", "true").env("NO_COLOR", "1");
    command.env("GITHUB_WORKSPACE", project.at(workspace));
    Ran::of(&command.output().unwrap()).code(1)
}

#[test]
fn a_loop_below_the_root_names_files_from_the_root() {
    let project = Project::new();
    repository(&project, "repo");
    for directory in ["repo/tools", "repo/tools/deep"] {
        check(&run(&project, directory, "repo", "repo"), &project.at("reports"));
    }
    // A checkout below the workspace is the repository all the same.
    check(&run(&project, "repo/tools", ".", "repo"), &project.at("reports"));
}

#[test]
fn a_checkout_with_another_name_is_the_same() {
    let project = Project::new();
    repository(&project, "repo");
    symlink(project.at("repo"), project.at("link")).unwrap();
    check(&run(&project, "link/tools", "link", "link"), &project.at("reports"));
    check(&run(&project, "repo/tools", "link", "link"), &project.at("reports"));
}

#[test]
fn a_worktree_is_a_repository() {
    let project = Project::new();
    repository(&project, "repo");
    git(&project, &["-C", "repo", "worktree", "add", "-q", "../other"]);
    check(&run(&project, "other/tools", "repo", "other"), &project.at("reports"));
}

#[test]
fn without_a_repository_the_workspace_is_the_root() {
    let project = Project::new();
    files(&project, "work");
    check(&run(&project, "work/tools", "work", "work"), &project.at("reports"));
    // Nobody knows of a root: paths are as they are.
    let ran = run(&project, "work/tools", "elsewhere", "work");
    assert!(ran.stdout.contains("\n::error file=.loops/main.yaml,line=5,"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n::error file=a.py,line=1,"), "{}", ran.stdout);
}

#[test]
fn findings_in_a_loop_below_the_root_are_there_for_code_scanning() {
    let project = Project::new();
    repository(&project, "repo");
    project.write(
        "repo/tools/.loops/main.yaml",
        "name: main\ninitial: nowhere\nstates:\n  a: {terminal: true}\n",
    );
    for directory in ["repo", "repo/tools", "repo/tools/deep"] {
        let loops = project.at("repo/tools/.loops/main.yaml").display().to_string();
        let check = |name: &str, format: &str| {
            let mut command = project.command(&["validate", name, "--format", format]);
            Ran::of(&command.current_dir(project.at(directory)).output().unwrap()).code(2).stdout
        };
        let names = if directory == "repo" { vec![loops.as_str()] } else { vec![loops.as_str(), "main"] };
        for name in names {
            let found = check(name, "github");
            assert!(
                found.starts_with("::error file=tools/.loops/main.yaml,line=2,"),
                "{directory} {name}: {found}"
            );
            let found: serde_json::Value = serde_json::from_str(&check(name, "sarif")).unwrap();
            let uri = &found["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
                ["uri"];
            assert_eq!(uri, "tools/.loops/main.yaml", "{directory} {name}");
        }
    }
}
