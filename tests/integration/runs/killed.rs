//! A run whose process was killed with SIGKILL: whoever comes next tells how it ended.

use rustix::process::Signal;
use serde_json::Value;

use crate::ci::ci_mode::outputs;
use crate::ci::reported::Github;
use crate::common::{Project, signal};

const LOOP: &str = "name: main
initial: a
states:
  a: {action: 'echo one', on_yes: b}
  b: {action: 'touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done', on_yes: done}
  done: {terminal: true}
";

/// A run in a job that was killed while it was in `b`.
fn killed(github: &Github, arguments: &[&str]) -> Project {
    let project = github.project(LOOP);
    let before = github.statuses().len();
    let mut child = project.start_until(arguments, "begun");
    crate::common::wait_for(|| github.statuses().len() == before + 1);
    // A runner that kills a whole tree of processes leaves nobody who could tell it.
    #[cfg(target_os = "linux")]
    for guard in crate::runs::guard::guards(child.id()) {
        let guard = rustix::process::Pid::from_raw(guard.parse().unwrap()).unwrap();
        rustix::process::kill_process(guard, Signal::KILL).unwrap();
    }
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    project.write("go", "");
    project
}

#[track_caller]
fn check_reports(project: &Project, reports: &str) {
    let result: Value = serde_json::from_str(&project.read(&format!("{reports}/result.json"))).unwrap();
    assert_eq!(
        (&result["outputs"]["outcome"], &result["terminated_by"]),
        (&"interrupted".into(), &"killed".into())
    );
    assert_eq!(
        (&result["outputs"]["exit-code"], &result["outputs"]["final-state"]),
        (&"137".into(), &"b".into())
    );
    let warnings = result["warnings"].to_string();
    assert!(
        warnings.contains("how `b` (step 2) ended, and what it printed last, is not known"),
        "{warnings}"
    );
    let junit = project.read(&format!("{reports}/junit.xml"));
    assert!(junit.contains("type=\"interrupted\"") && junit.contains("killed in state `b`"), "{junit}");
    let summary = project.read(&format!("{reports}/summary.md"));
    assert!(summary.contains("killed in state `b`") && summary.contains("exit code 137"), "{summary}");
    for file in ["outputs.env", "summary.txt", "events.jsonl", "output.log"] {
        assert!(project.exists(&format!("{reports}/{file}")), "{file}");
    }
}

#[test]
fn the_step_after_it_tells_everything_that_the_run_would_have_told() {
    let github = Github::willing();
    let project = killed(&github, &["run", "main", "--ci", "--status-context", "quality"]);
    let early = outputs(&project.read("out"));
    assert!(!early.contains_key("outcome"));
    // The next step has files of its own.
    project.write("out", "");
    let project = project
        .env("INPUT_RUN", early["run-id"].as_str())
        .env("INPUT_REPORT-DIR", early["report-dir"].as_str());
    let ran = project.run(&["action", "save"]).code(0);
    let annotated: Vec<_> = ran.stdout.lines().filter(|line| line.starts_with("::error ")).collect();
    assert!(annotated.len() == 1 && annotated[0].contains("file=.loops/main.yaml,line=5,"), "{}", ran.all());
    let told = outputs(&project.read("out"));
    for (name, value) in
        [("outcome", "interrupted"), ("exit-code", "137"), ("final-state", "b"), ("steps", "2")]
    {
        assert_eq!(told[name], value, "{name}");
    }
    assert_eq!((&told["run-id"], &told["report-dir"]), (&early["run-id"], &early["report-dir"]));
    check_reports(&project, &told["report-dir"]);
    assert!(project.exists(&format!("{}/{}.llz", told["report-dir"], told["run-id"])));
    assert!(project.read("summary").contains("killed in state `b`"));
    assert_eq!(github.statuses(), ["pending: running", "error: killed in state `b`"]);
    let contexts: Vec<Value> = github.changes().iter().map(|(_, body)| body["context"].clone()).collect();
    assert_eq!(contexts, ["quality", "quality"]);

    // Once: neither the same step nor another command says it again.
    project.write("out", "");
    project.run(&["action", "save"]).code(0);
    project.run(&["report", "main"]).code(0);
    assert_eq!((github.statuses().len(), project.read("out").as_str()), (2, ""));
    // And it goes on as if nobody had looked.
    project.run(&["resume", "main", "--status-context", "quality"]).code(0).says("which was killed, in b");
    assert_eq!((github.statuses()[2].as_str(), github.statuses().len()), ("pending: running", 4));
}

#[test]
fn the_next_report_or_bundle_of_the_job_does_the_same() {
    for command in [&["report", "main", "--format", "junit"][..], &["bundle", "main"]] {
        let github = Github::willing();
        let project = killed(&github, &["run", "main", "--ci", "--report-dir", "reports"]);
        let ran = project.run(command).code(0);
        assert!(!ran.stdout.contains("::error") && ran.stdout.starts_with(['<', 'm']), "{}", ran.stdout);
        check_reports(&project, "reports");
        assert_eq!(outputs(&project.read("out"))["outcome"], "interrupted");
        assert_eq!(github.statuses(), ["pending: running", "error: killed in state `b`"]);
    }
}

#[test]
fn elsewhere_nothing_is_posted() {
    let github = Github::willing();
    for (name, value) in [
        ("GITHUB_RUN_ID", "78"),
        ("GITHUB_RUN_ATTEMPT", "2"),
        ("GITHUB_JOB", "other"),
        ("GITHUB_ACTIONS", ""),
    ] {
        let project = killed(&github, &["run", "main", "--report-dir", "reports"]);
        project.write("out", "");
        let before = github.statuses().len();
        let project = project.env(name, value).env("CI", if name == "GITHUB_JOB" { "" } else { "true" });
        let ran = project.run(&["report", "main"]).code(0);
        assert!(ran.stdout.contains("interrupted: killed in state `b`"), "{}", ran.all());
        check_reports(&project, "reports");
        assert_eq!((github.statuses().len(), project.read("out").as_str()), (before, ""), "{name}");
    }
}

#[test]
fn a_run_that_goes_on_leaves_the_reports_of_what_was_where_they_were_to_be() {
    let github = Github::willing();
    let project = killed(&github, &["run", "main", "--ci", "--report-dir", "first"]);
    project.run(&["resume", "main", "--report-dir", "second"]).code(0);
    check_reports(&project, "first");
    assert!(project.read("second/result.json").contains("\"outcome\": \"success\""));
    assert_eq!(github.statuses()[..2], ["pending: running", "pending: running"]);
    assert_eq!(github.statuses().len(), 3);
}

#[test]
fn a_person_who_asked_for_no_reports_gets_none_and_is_told_all_the_same() {
    let project = Project::with_loop(LOOP);
    let mut child = project.start_until(&["run", "main"], "begun");
    assert!(project.run(&["report", "main"]).code(0).stdout.contains("was killed or is still running"));
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    project.write("go", "");
    let ran = project.run(&["report", "main"]).code(0);
    assert!(ran.stdout.contains("interrupted: killed in state `b`"), "{}", ran.all());
    assert!(project.run_files(".report").is_empty() && project.run_files("result.json").is_empty());
    project.run(&["resume", "main"]).code(0);
}

#[test]
fn a_run_that_was_killed_at_any_point_has_reports() {
    for point in (1..60).step_by(3) {
        let text =
            LOOP.replace("touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done", "true");
        let project = Project::with_loop(&text);
        let mut command = project.command(&["run", "main", "--ci=plain", "--report-dir", "reports", "-q"]);
        if command.env("LL_FAULT", point.to_string()).output().unwrap().status.code().is_some() {
            assert!(point > 20, "{point}");
            break;
        }
        let began = project
            .run_files(".events.jsonl")
            .first()
            .is_some_and(|path| std::fs::metadata(path).unwrap().len() > 0);
        let ran = project.run(&["report", "main"]);
        let is_said = ran.stdout.contains("interrupted: killed ") || ran.stdout.contains("success: ");
        assert!(!began || (is_said && project.exists("reports/result.json")), "{point}: {}", ran.all());
    }
}

#[test]
fn the_step_after_it_leaves_the_reports_where_the_job_was_told_they_are() {
    let text = LOOP.replace("touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done", "true");
    let github = Github::willing();
    let mut told_and_over = 0;
    for point in 1.. {
        let project = github.project(&text);
        let mut command = project.command(&["run", "main", "--ci", "-q"]);
        if command.env("LL_FAULT", point.to_string()).output().unwrap().status.code().is_some() {
            break;
        }
        // Without an outcome the step after it is to do what the run could not; the upload takes the directory of the
        // run's own step.
        let early = outputs(&std::fs::read_to_string(project.at("out")).unwrap_or_default());
        if !early.contains_key("run-id") || early.contains_key("outcome") {
            continue;
        }
        let journal = std::fs::read_to_string(project.run_files(".events.jsonl").first().unwrap()).unwrap();
        if !journal.contains("state_enter") {
            continue;
        }
        told_and_over += usize::from(journal.contains("loop_complete"));
        let project = project
            .env("INPUT_RUN", early["run-id"].as_str())
            .env("INPUT_REPORT-DIR", early["report-dir"].as_str());
        let ran = project.run(&["action", "save"]).code(0);
        for file in ["result.json", "report.html", "junit.xml", "summary.md", "events.jsonl"] {
            let path = format!("{}/{file}", early["report-dir"]);
            assert!(project.exists(&path), "{point}: {path}: {}", ran.all());
        }
        assert!(project.exists(&format!("{}/{}.llz", early["report-dir"], early["run-id"])), "{point}");
    }
    assert!(told_and_over > 3, "{told_and_over}");
}

#[test]
fn the_step_after_a_hand_off_that_was_killed_tells_the_job_of_it() {
    let text = LOOP.replace(
        "touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done",
        "echo \"CONTEXT_HANDOFF: later\"",
    );
    let github = Github::willing();
    let mut handed_off = 0;
    for point in 1.. {
        let project = github.project(&text);
        let mut command = project.command(&["run", "main", "--ci", "-q"]);
        if command.env("LL_FAULT", point.to_string()).output().unwrap().status.code().is_some() {
            break;
        }
        let early = outputs(&std::fs::read_to_string(project.at("out")).unwrap_or_default());
        let journal = project.run_files(".events.jsonl");
        // A line that a kill has torn is none.
        let has_ended = journal.first().is_some_and(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.ends_with('\n') && text.contains("\"loop_complete\"")
        });
        if !has_ended || !early.contains_key("run-id") || early.contains_key("outcome") {
            continue;
        }
        handed_off += 1;
        let project = project
            .env("INPUT_RUN", early["run-id"].as_str())
            .env("INPUT_REPORT-DIR", early["report-dir"].as_str());
        let ran = project.run(&["action", "save"]).code(0);
        let told = outputs(&project.read("out"));
        assert_eq!(
            (told["outcome"].as_str(), told["handoff"].as_str()),
            ("handoff", "true"),
            "{}",
            ran.all()
        );
        assert!(project.read("summary").contains("saved in"), "{point}: {}", project.read("summary"));
        let status = github.statuses().pop().unwrap();
        assert!(status.starts_with("pending: ") && status != "pending: running", "{point}: {status}");
    }
    assert!(handed_off > 0);
}

#[test]
fn a_run_that_was_killed_after_it_was_resumed_is_told_from_its_last_part() {
    let github = Github::willing();
    let project = github.project(LOOP);
    let child = project.start_until(&["run", "main", "--report-dir", "reports"], "begun");
    signal(&child, Signal::TERM);
    child.wait_with_output().unwrap();
    std::fs::remove_file(project.at("begun")).unwrap();
    let mut child = project.start_until(&["resume", "main", "--report-dir", "reports"], "begun");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    project.write("go", "");
    let ran = project.run(&["report", "main"]).code(0);
    assert!(ran.stdout.contains("interrupted: killed in state `b`"), "{}", ran.all());
    check_reports(&project, "reports");
}
