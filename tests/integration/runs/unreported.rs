//! A run that ended, and whose process died before everything that follows from the end: the next command that meets it
//! makes up for that.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Project, Ran, events};

/// Ends as a failure, which is exit code 1.
const LOOP: &str = "name: main\ninitial: a\nstates:
  a: {action: 'echo x >> ran; false', on_yes: done, on_no: failed}
  failed: {terminal: true}
  done: {terminal: true}\n";

/// What the run is begun with, and where its reports have to be in the end.
const WAYS: [(&[&str], Option<&str>); 3] =
    [(&["--ci=plain"], None), (&["--report-dir", "reports"], Some("reports")), (&[], Some("nowhere"))];

fn run_killed_at(point: usize, more: &[&str]) -> (Project, Option<i32>) {
    let project = Project::with_loop(LOOP);
    let mut command = project.command(&[&["run", "main", "-q"], more].concat());
    let code = command.env("LL_FAULT", point.to_string()).output().unwrap().status.code();
    (project, code)
}

fn has_ended(project: &Project) -> bool {
    let journals = project.run_files(".events.jsonl");
    let text = journals.first().map(|path| fs::read_to_string(path).unwrap()).unwrap_or_default();
    text.ends_with('\n') && text.lines().last().is_some_and(|line| line.contains("loop_complete"))
}

fn reports(project: &Project, directory: Option<&str>) -> PathBuf {
    directory.map_or_else(
        || {
            let all = fs::read_dir(project.at(".loops/.history/main")).unwrap();
            let mut all = all.map(|entry| entry.unwrap().path());
            all.find(|path| path.extension().is_some_and(|end| end == "report")).unwrap()
        },
        |directory| project.at(directory),
    )
}

/// Asserts that nothing is missing of what a run leaves.
#[track_caller]
fn check(project: &Project, directory: Option<&str>, bundles: bool, why: &str) {
    let journals = project.run_files(".events.jsonl");
    assert!(journals[0].to_string_lossy().contains(".history"), "{why}: {journals:?}");
    let left = fs::read_dir(project.at(".loops/.running")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| !name.to_string_lossy().starts_with('.')).collect();
    assert!(left.is_empty(), "{why}: {left:?}");
    assert_eq!(events(&journals[0]).iter().filter(|event| event["event"] == "loop_complete").count(), 1);
    assert_eq!(project.read("ran"), "x\n", "{why}: nothing is run again");
    if directory == Some("nowhere") {
        return;
    }
    let reports = reports(project, directory);
    let result = fs::read_to_string(reports.join("result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["outputs"]["outcome"], "failure", "{why}");
    for file in ["summary.md", "junit.xml", "outputs.env", "events.jsonl", "state.json", "output.log"] {
        assert!(reports.join(file).exists(), "{why}: {file}");
    }
    let llz = fs::read_dir(&reports).unwrap().map(|entry| entry.unwrap().path());
    let llz = llz.filter(|path| path.extension().is_some_and(|end| end == "llz")).count();
    assert!(llz == 1 || !bundles, "{why}: {llz} bundles");
}

#[test]
fn a_run_that_ended_gets_its_reports_from_the_next_command() {
    for (more, directory) in WAYS {
        let mut met = 0;
        for point in 1.. {
            let (project, code) = run_killed_at(point, more);
            if code.is_some() {
                assert_eq!(code, Some(1));
                break;
            }
            if !has_ended(&project) {
                continue;
            }
            let why = format!("{more:?}, killed at {point}");
            // What is there already is not done again.
            let is_whole = project.run_files(".unreported").is_empty()
                && project.run_files(".events.jsonl")[0].to_string_lossy().contains(".history");
            met += usize::from(!is_whole);
            match met % 4 {
                // It is over, and was not a success: it is taken up again.
                _ if is_whole => drop(project.run(&["resume", "main"]).code(1).says("did not succeed")),
                0 => {
                    let ran = project.run(&["resume", "main", "--no-ci"]).code(1);
                    drop(ran.says("had ended (failure)"));
                }
                1 => {
                    let ran = project.run(&["report", "main"]).code(0);
                    assert!(ran.stdout.contains("failure: "), "{}", ran.all());
                }
                2 => drop(project.run(&["bundle", "main"]).code(0).says(".llz")),
                _ => {
                    // Another run tidies up first.
                    project.write(".loops/other.yaml", "name: other\ninitial: a\nstates:\n  a: {action: 'true', on_yes: done, on_no: done}\n  done: {terminal: true}\n");
                    project.run(&["run", "other", "-q"]).code(0);
                    for path in
                        project.run_files("").iter().filter(|path| path.to_string_lossy().contains("/other"))
                    {
                        fs::remove_file(path).or_else(|_| fs::remove_dir_all(path)).unwrap();
                    }
                    let _ran = project.run(&["resume", "main", "--no-ci"]);
                }
            }
            check(&project, directory, !is_whole, &why);
            project.run(&["resume", "main"]).code(1).says("which did not succeed");
        }
        assert!(met >= 4, "{more:?}: {met} points");
    }
}

#[test]
fn a_run_that_ended_and_can_go_on_is_reported_and_still_goes_on() {
    let text = "name: main\ninitial: a\nstates:\n  a: {action: 'test -f go || { echo \"CONTEXT_HANDOFF: more\"; }', next: done}\n  done: {terminal: true}\n";
    let mut met = 0;
    for point in 1.. {
        let project = Project::with_loop(text);
        let mut command = project.command(&["run", "main", "-q", "--report-dir", "reports"]);
        if command.env("LL_FAULT", point.to_string()).output().unwrap().status.code().is_some() {
            break;
        }
        if !has_ended(&project) {
            continue;
        }
        met += 1;
        project.run(&["report", "main"]).code(0).says("handoff");
        let result: Value = serde_json::from_str(&project.read("reports/result.json")).unwrap();
        assert_eq!(result["outputs"]["outcome"], "handoff");
        project.write("go", "");
        let _ran: Ran = project.run(&["resume", "main", "-q"]).code(0);
    }
    assert!(met >= 4, "{met} points");
}

#[test]
fn the_job_that_makes_up_for_it_tells_what_its_step_is_asked_for() {
    let project = Project::with_loop(LOOP).in_github_job();
    let mut point = 1;
    loop {
        let mut command = project.command(&["run", "main"]);
        let code = command.env("LL_FAULT", point.to_string()).output().unwrap().status.code();
        assert_eq!(code, None, "it ended before it could be killed after its end");
        if has_ended(&project) {
            break;
        }
        // The guard of the killed run may still be at work there.
        crate::common::wait_for(|| fs::remove_dir_all(project.at(".loops/.running")).is_ok());
        point += 1;
    }
    project.write("out", "");
    project.run(&["resume", "main"]).code(1).says("had ended (failure)");
    let outputs = project.read("out");
    assert!(outputs.contains("\nfailure\n") && outputs.contains("exit-code<<"), "{outputs}");
    assert!(project.read("summary").contains("failure"));
}
