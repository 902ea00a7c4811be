//! Records are untrusted data, wherever they come from.

use std::fs;
use std::path::PathBuf;

use super::{git, made, project};
use crate::common::Project;

/// Returns the records of a project.
fn records(project: &Project) -> Vec<PathBuf> {
    let folder = project.at(".loops/.reuse/main");
    let files = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "json")).collect()
}

#[track_caller]
fn not_taken(project: &Project, said: &str) {
    let before = made(project);
    let ran = project.run(&["run", "main", "--reuse-only"]).code(2);
    assert!(ran.all().contains(said), "{said}: {}", ran.all());
    assert_eq!(made(project), before);
}

#[test]
fn a_record_that_git_tracks_is_never_taken() {
    let project = project();
    project.run(&["run", "main"]).code(0);
    assert_eq!(records(&project).len(), 1);
    git(&project, &["add", "-f", ".loops/.reuse/main"]);
    git(&project, &["commit", "-q", "-m", "a record that is right in every part"]);
    not_taken(&project, "git tracks its file");
    // Taking it out of the index does not help.
    git(&project, &["rm", "-q", "-r", "--cached", ".loops/.reuse/main"]);
    not_taken(&project, "git tracks its file");
    // Neither does it help who ran it that nothing is written over it.
    let ran = project.run(&["run", "main"]).code(0);
    assert!(ran.all().contains("git tracks"), "{}", ran.all());
}

#[test]
fn a_record_that_an_action_writes_goes_with_its_run() {
    let project = project();
    project.run(&["run", "main"]).code(0);
    let record = records(&project).remove(0);
    let (name, text) = (record.file_name().unwrap().to_str().unwrap(), fs::read(&record).unwrap());
    fs::write(project.at(".git/kept"), text).unwrap();
    let plants = format!(
        "name: plants\ninitial: a\nstates:\n  a: {{action: 'cp .git/kept .loops/.reuse/main/{name}', next: done}}\n  done: {{terminal: true}}\n"
    );
    project.write(".git/plants.yaml", &plants);
    // One that is written over is not the one that was there; one that nobody touched is.
    project.run(&["run", ".git/plants.yaml"]).code(0).says("removed 1 record");
    assert_eq!(records(&project), Vec::<PathBuf>::new());
    not_taken(&project, "nothing was run");
    project.run(&["run", "main"]).code(0);
    project.write(".git/plants.yaml", &plants.replace("cp .git/kept", "test -e"));
    project.run(&["run", ".git/plants.yaml"]).code(0);
    assert_eq!(records(&project).len(), 1);
}

#[test]
fn a_record_that_an_action_writes_goes_also_where_it_kills_its_run() {
    let plants = |project: &Project| {
        let record = records(project).remove(0);
        fs::rename(&record, project.at(".git/kept")).unwrap();
        let name = record.file_name().unwrap().to_str().unwrap();
        let action = format!(
            "test -e .git/planted || {{ touch .git/planted; cp .git/kept .loops/.reuse/main/{name}; kill -9 $PPID; exec sleep 60; }}"
        );
        project.write(
            ".git/plants.yaml",
            &format!("name: plants\ninitial: a\nstates:\n  a: {{action: '{action}', next: done}}\n  done: {{terminal: true}}\n"),
        );
        let ran = project.run(&["run", ".git/plants.yaml"]);
        assert_eq!(ran.code, None, "{}", ran.all());
        assert_eq!(records(project), [record]);
    };
    let project = project();
    project.run(&["run", "main"]).code(0);
    plants(&project);
    not_taken(&project, "removed 1 record");
    assert_eq!(records(&project), Vec::<PathBuf>::new());
    // What a later run keeps stays.
    project.run(&["run", "main"]).code(0);
    project.run(&["run", "main", "--reuse-only"]).code(0);
    // Who goes on with such a run knows what lay there when it began.
    fs::remove_file(project.at(".git/planted")).unwrap();
    plants(&project);
    project.run(&["resume", "plants"]).code(0).says("removed 1 record");
    not_taken(&project, "nothing was run");
}

#[test]
fn where_git_cannot_read_the_commit_nothing_is_taken_and_that_is_said() {
    let project = project();
    project.run(&["run", "main"]).code(0);
    git(&project, &["add", "-f", ".loops/.reuse/main"]);
    git(&project, &["commit", "-q", "-m", "a record that is right in every part"]);
    let said = project.program("git", &["rev-parse", "HEAD:.loops/.reuse"]).output().unwrap();
    let folder = String::from_utf8(said.stdout).unwrap();
    // Out of the index, and the commit that has it cannot be read.
    git(&project, &["rm", "-q", "-r", "--cached", ".loops/.reuse/main"]);
    let (start, rest) = folder.trim().split_at(2);
    fs::remove_file(project.at(&format!(".git/objects/{start}/{rest}"))).unwrap();
    not_taken(&project, "nothing is reused or kept");
}

#[test]
fn nothing_is_taken_through_a_link_or_from_elsewhere() {
    let project = project();
    project.run(&["run", "main"]).code(0);
    let record = records(&project).remove(0);
    // A link in the place of the record.
    let elsewhere = project.at(".git/record");
    fs::rename(&record, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &record).unwrap();
    not_taken(&project, "no earlier run");
    // One in the place of the store.
    fs::remove_file(&record).unwrap();
    fs::rename(&elsewhere, &record).unwrap();
    project.run(&["run", "main", "--reuse-only"]).code(0);
    fs::rename(project.at(".loops/.reuse"), project.at(".git/reuse")).unwrap();
    std::os::unix::fs::symlink(project.at(".git/reuse"), project.at(".loops/.reuse")).unwrap();
    not_taken(&project, "is a link");
    fs::remove_file(project.at(".loops/.reuse")).unwrap();
    // The record of another repository.
    let other = super::project();
    git(&other, &["commit", "-q", "--amend", "-m", "another beginning"]);
    fs::rename(project.at(".git/reuse"), other.at(".loops/.reuse")).unwrap();
    not_taken(&other, "in another repository");
    // A pipe waits for nobody.
    let pipe = records(&other).remove(0);
    fs::remove_file(&pipe).unwrap();
    let made = other.program("mkfifo", &[pipe.to_str().unwrap()]).output().unwrap();
    assert!(made.status.success());
    not_taken(&other, "no earlier run");
}

#[test]
fn a_damaged_record_is_a_miss_and_is_said() {
    let project = project();
    project.run(&["run", "main"]).code(0);
    let record = records(&project).remove(0);
    let whole = fs::read_to_string(&record).unwrap();
    for damaged in
        [&whole[..whole.len() / 2], "", "{}", &whole.replace("\"duration_ms\":", "\"duration_ms\":1")]
    {
        fs::write(&record, damaged).unwrap();
        let ran = project.run(&["run", "main", "--reuse-only"]).code(2);
        assert!(ran.all().contains("a record of the same key is not taken: it is damaged"), "{}", ran.all());
    }
    assert!(project.run(&["reuse", "list"]).code(0).stdout.contains("not taken: it is damaged"));
    project.run(&["reuse", "prune"]).code(0);
    assert!(records(&project).is_empty());
}

fn in_job(project: Project, event: &str, head: &str) -> Project {
    let payload = format!(
        r#"{{"repository": {{"full_name": "o/r"}}, "pull_request": {{"number": 7, "head": {{"sha": "{0}", "ref": "topic", "repo": {{"full_name": "{head}"}}}}, "base": {{"sha": "{0}", "ref": "main"}}}}}}"#,
        "a".repeat(40)
    );
    let root = project.path().to_string_lossy().into_owned();
    project
        .in_github_job()
        .file(".git/event.json", &payload)
        .env("GITHUB_EVENT_NAME", event)
        .env("GITHUB_EVENT_PATH", format!("{root}/.git/event.json"))
        .env("GITHUB_OUTPUT", format!("{root}/.git/out"))
        .env("GITHUB_STEP_SUMMARY", format!("{root}/.git/summary"))
        .env("GITHUB_REPOSITORY", "o/r")
        .env("GITHUB_SERVER_URL", "https://github.invalid")
        .env("GITHUB_REF", "refs/heads/main")
}

#[test]
fn a_branch_takes_nothing_of_a_pull_request_and_strangers_keep_nothing() {
    let own = in_job(project(), "pull_request", "o/r");
    own.run(&["run", "main", "--no-status", "--report-dir", ".git/reports"]).code(0);
    assert_eq!(records(&own).len(), 1);
    own.run(&["run", "main", "--no-status", "--reuse-only", "--report-dir", ".git/reports"]).code(0);
    let main = own.env("GITHUB_EVENT_NAME", "push");
    not_taken(&main, "where this run takes nothing from");
    main.run(&["run", "main", "--no-status", "--report-dir", ".git/reports"]).code(0);
    main.run(&["run", "main", "--no-status", "--reuse-only", "--report-dir", ".git/reports"]).code(0);
    assert_eq!(records(&main).len(), 2);
    let fork = in_job(project(), "pull_request", "stranger/r");
    let ran = fork.run(&["run", "main", "--no-status", "--report-dir", ".git/reports"]).code(0);
    assert!(ran.all().contains("strangers"), "{}", ran.all());
    assert!(records(&fork).is_empty());
}
