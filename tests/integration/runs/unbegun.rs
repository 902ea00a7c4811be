//! Runs that cannot begin: wherever a run is reported, it says why.

use serde_json::Value;

use crate::ci::ci_mode::outputs;
use crate::ci::reported::Github;
use crate::common::{CHECK_FIX, Project, Ran};

const BROKEN: &str = "name: main
initial: a
states:
  a: {action: 'true', on_yes: done, shel: sh}
  done: {terminal: true}
";

const NEEDY: &str = "name: main
initial: a
parameters:
  one: {type: string, default: x}
  who: {type: string, required: true}
states:
  a: {action: 'echo ${context.who}', on_yes: done}
  done: {terminal: true}
";

const HANDS_OFF: &str = "name: main
initial: a
states:
  a: {action: 'echo \"CONTEXT_HANDOFF: more\"', next: done}
  done: {terminal: true}
";

/// A way of not beginning, and what is said about it.
struct Way {
    name: &'static str,
    text: &'static str,
    arguments: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// What is done before.
    before: fn(&Project),
    outcome: &'static str,
    code: i32,
    /// The place of the annotation.
    at: &'static str,
    /// A part of the reason.
    why: &'static str,
}

const USUAL: Way = Way {
    name: "",
    text: CHECK_FIX,
    arguments: &["run", "main"],
    env: &[],
    before: |_| {},
    outcome: "invalid",
    code: 2,
    at: "file=.loops/main.yaml,",
    why: "",
};

const WAYS: &[Way] = &[
    Way {
        name: "a loop file that does not load",
        text: BROKEN,
        at: "file=.loops/main.yaml,line=4,col=37,",
        why: "unknown key `shel`",
        ..USUAL
    },
    Way {
        name: "a missing parameter",
        text: NEEDY,
        at: "file=.loops/main.yaml,line=5,col=3,",
        why: "the input `who` is required",
        ..USUAL
    },
    Way {
        name: "a variable that is nowhere",
        text: "name: main\ninitial: a\nstates:\n  a: {action: 'echo ${context.who}', on_yes: done}\n  done: {terminal: true}\n",
        at: "file=.loops/main.yaml,line=4,",
        why: "`${context.who}` has no value",
        ..USUAL
    },
    Way {
        name: "an unknown loop",
        arguments: &["run", "mian"],
        at: "",
        why: "no loop named `mian`",
        ..USUAL
    },
    Way {
        name: "an option that is out of range",
        arguments: &["run", "main", "--max-iterations", "0"],
        why: "invalid value '0'",
        ..USUAL
    },
    Way {
        name: "an unknown option",
        arguments: &["--color", "never", "run", "--frob", "main"],
        why: "--frob",
        ..USUAL
    },
    Way { name: "an unknown CI system", arguments: &["run", "--ci=cvs", "main"], why: "`cvs`", ..USUAL },
    Way {
        name: "a log that can change the job",
        env: &[("ACTIONS_ALLOW_UNSECURE_COMMANDS", "true")],
        why: "ACTIONS_ALLOW_UNSECURE_COMMANDS",
        ..USUAL
    },
    Way {
        name: "a loop that strangers may have written",
        env: &[("GITHUB_EVENT_NAME", "pull_request_target")],
        arguments: &["run", "main", "--sha", crate::ci::reported::SHA],
        why: "pull_request_target",
        ..USUAL
    },
    Way {
        name: "an input of the action",
        arguments: &["action"],
        env: &[("INPUT_LOOP", "main"), ("INPUT_DEADLINE", "soon"), ("INPUT_REPORT-DIR", "reports")],
        why: "the input `deadline`",
        ..USUAL
    },
    Way {
        name: "a locked scope",
        before: |project| {
            let text = "name: holder\ninitial: a\nstates:\n  a: {action: 'touch held; while ! test -f go && test -d $PWD; do sleep 0.02; done', next: done}\n  done: {terminal: true}\n";
            project.write(".loops/holder.yaml", text);
            let mut command = project.command(&["run", "holder", "--no-ci", "-q"]);
            drop(command.spawn().unwrap());
            crate::common::wait_for(|| project.exists("held"));
        },
        outcome: "locked",
        code: 73,
        why: "of the loop `holder` holds",
        ..USUAL
    },
    Way {
        name: "a service that is missing",
        arguments: &["resume", "main", "--from", "artifact:x"],
        env: &[
            ("ACTIONS_RUNTIME_TOKEN", TOKEN),
            ("ACTIONS_RESULTS_URL", "http://127.0.0.1:1/"),
            ("LL_RETRY_WAIT", "1ms"),
        ],
        outcome: "unavailable",
        code: 69,
        why: "cannot fetch `x`",
        ..USUAL
    },
    Way {
        name: "nothing to resume",
        arguments: &["resume", "main"],
        why: "there is no run of `main`",
        ..USUAL
    },
    Way {
        name: "a loop that has changed since",
        text: HANDS_OFF,
        arguments: &["resume", "main"],
        before: |project| {
            project.run(&["run", "main", "--no-ci"]).code(75);
            project.write(".loops/main.yaml", &HANDS_OFF.replace("more", "less"));
        },
        why: "`main` is not what it was",
        ..USUAL
    },
    Way {
        name: "a bundle that is none",
        arguments: &["resume", "main", "--from", "out"],
        why: "cannot use the bundle out",
        ..USUAL
    },
];

/// Of an artifact service, for two jobs that do not exist.
const TOKEN: &str = "e30.eyJzY3AiOiJBY3Rpb25zLlJlc3VsdHM6YTpiIn0.x";

fn annotations(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().filter(|line| line.starts_with("::error ")).collect()
}

#[track_caller]
fn check(way: &Way, directory: bool) {
    let github = Github::willing();
    let mut project = github.project(way.text);
    for (name, value) in way.env {
        project = project.env(name, *value);
    }
    (way.before)(&project);
    let more: &[&str] =
        if directory && way.arguments[0] != "action" { &["--report-dir", "reports"] } else { &[] };
    let ran = project.run(&[way.arguments, more].concat());
    project.write("go", "");
    crate::common::wait_for(|| way.outcome != "locked" || project.run_files(".pid").is_empty());
    let name = way.name;
    assert_eq!(ran.code, Some(way.code), "{name}: {}", ran.all());
    let annotated = annotations(&ran);
    let place = if way.at.is_empty() { "::error title=" } else { way.at };
    assert!(annotated.len() == 1 && annotated[0].contains(place), "{name}: {annotated:?}");
    assert!(annotated[0].replace("%3A", ":").contains(way.why), "{name}: {annotated:?}");
    let outputs = outputs(&project.read("out"));
    assert_eq!(outputs["outcome"], way.outcome, "{name}");
    assert_eq!(outputs["exit-code"], way.code.to_string(), "{name}");
    assert_eq!((&*outputs["verified"], &*outputs["handoff"]), ("false", "false"), "{name}");
    assert_eq!((&*outputs["resume-from"], &*outputs["run-id"]), ("", ""), "{name}");
    let summary = project.read("summary");
    assert!(summary.contains(way.outcome) && summary.contains("Nothing was run"), "{name}: {summary}");
    let reports = &outputs["report-dir"];
    if directory || way.arguments[0] == "action" {
        check_reports(way, &project, reports);
    } else {
        assert_eq!((reports.as_str(), &*outputs["junit"]), ("", ""), "{name}");
        assert!(!project.exists(".loops/.history"), "{name}");
    }
    let bodies = github.received().into_iter().filter(|(request, _)| request.contains("/statuses/"));
    let bodies: Vec<Value> = bodies.map(|(_, body)| body).collect();
    assert_eq!(bodies.len(), 1, "{name}: {bodies:?}");
    assert_eq!(bodies[0]["state"], "error", "{name}");
    let of = if way.why.contains("mian") { "mian" } else { "main" };
    assert_eq!(bodies[0]["context"], format!("ll-loop/{of}"), "{name}");
    let sentence = bodies[0]["description"].as_str().unwrap();
    assert!(sentence.starts_with(&format!("{}: ", way.outcome)), "{name}: {sentence}");
}

#[track_caller]
fn check_reports(way: &Way, project: &Project, reports: &str) {
    let name = way.name;
    assert_eq!(reports, "reports", "{name}");
    let result: Value = serde_json::from_str(&project.read(&format!("{reports}/result.json"))).unwrap();
    assert_eq!(result["outputs"]["outcome"], way.outcome, "{name}");
    assert_eq!(result["outputs"]["exit-code"], way.code.to_string(), "{name}");
    let junit = project.read("reports/junit.xml");
    assert_eq!(
        (junit.matches("<testcase").count(), junit.matches("<error").count()),
        (1, 1),
        "{name}: {junit}"
    );
    assert!(junit.contains("errors=\"1\"") && junit.contains("loop outcome"), "{name}: {junit}");
}

#[test]
fn a_run_that_cannot_begin_says_why_wherever_runs_are_reported() {
    for way in WAYS {
        check(way, true);
    }
}

#[test]
fn without_a_directory_nothing_is_left_in_the_checkout() {
    for way in WAYS.iter().filter(|way| ["an unknown loop", "a missing parameter"].contains(&way.name)) {
        check(way, false);
    }
}

#[test]
fn locally_there_is_only_the_message_or_the_directory_that_was_asked_for() {
    let github = Github::willing();
    let project = github.project(BROKEN);
    let ran = project.run(&["run", "main", "--no-ci"]).code(2).says("unknown key `shel`");
    assert_eq!((ran.stdout.as_str(), &*project.read("out"), &*project.read("summary")), ("", "", ""));
    assert!(!project.exists(".loops/.history") && !project.exists(".loops/.running"));
    let ran = project.run(&["run", "main", "--no-ci", "--report-dir", "reports"]).code(2);
    assert!(project.read("reports/result.json").contains("unknown key `shel`"), "{}", ran.all());
    assert_eq!((&*project.read("out"), github.received().len()), ("", 0));
}

#[test]
fn a_plan_and_a_question_are_no_runs() {
    let github = Github::willing();
    let project = github.project(BROKEN);
    for arguments in [
        &["run", "main", "--dry-run"][..],
        &["run", "main", "--dry-run", "--frob"],
        &["run", "--help"],
        &["list", "run", "--frob"],
        &["--frob"],
    ] {
        let ran = project.run(arguments);
        assert_eq!(annotations(&ran), Vec::<&str>::new(), "{arguments:?}");
    }
    assert_eq!((&*project.read("out"), github.received().len()), ("", 0));
}

#[test]
fn a_status_is_set_only_where_one_of_the_run_would_be() {
    let github = Github::willing();
    let project = github.project(BROKEN);
    project.run(&["run", "main", "--no-status"]).code(2);
    project.run(&["run", "main", "--no-status", "--frob"]).code(2);
    github.job(Project::with_loop(BROKEN)).run(&["run", "main"]).code(2);
    assert_eq!(github.received(), []);
    project.run(&["run", "main", "--check", "--status-context", "quality"]).code(2);
    let received = github.changes();
    let names: Vec<_> =
        received.iter().map(|(request, body)| (request.as_str(), &body["conclusion"])).collect();
    assert_eq!(received[0].1["context"], "quality");
    assert_eq!(names[1].0, "POST /repos/octo/project/check-runs", "{names:?}");
}

#[test]
fn who_comes_too_late_for_a_run_leaves_its_status_to_the_one_who_has_it() {
    let github = Github::willing();
    let project = github.project("name: main\ninitial: a\nstates:\n  a: {action: 'touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done', on_yes: done}\n  done: {terminal: true}\n");
    let child = project.start_until(&["run", "main"], "begun");
    crate::common::wait_for(|| github.statuses().len() == 1);
    project.run(&["resume", "main"]).code(73);
    assert_eq!(github.statuses(), ["pending: running"]);
    assert!(project.read("out").contains("\nlocked\n"));
    project.write("go", "");
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(github.statuses().len(), 2);
}

#[test]
fn who_resumes_a_run_that_is_over_leaves_its_reports_and_its_status() {
    let github = Github::willing();
    let project = github.project(CHECK_FIX);
    project.run(&["run", "main", "--report-dir", "reports"]).code(0);
    project.write("out", "");
    let ran = project.run(&["resume", "main", "--report-dir", "reports"]).code(2);
    assert_eq!((annotations(&ran).len(), &*outputs(&project.read("out"))["outcome"]), (1, "invalid"));
    assert!(project.read("reports/result.json").contains("\"outcome\": \"success\""));
    assert_eq!(github.statuses().len(), 2);
}

#[test]
fn a_hand_off_that_nobody_can_go_on_with_does_not_stay_pending() {
    let github = Github::willing();
    let project = github.project(HANDS_OFF);
    project.run(&["run", "main", "--status-context", "quality"]).code(75);
    assert!(github.statuses()[1].starts_with("pending: handed off"));
    project.write(".loops/main.yaml", BROKEN);
    project.run(&["resume", "main", "--status-context", "quality"]).code(2);
    let received = github.changes();
    let (_, last) = received.last().unwrap();
    assert_eq!((&last["state"], &last["context"]), (&"error".into(), &"quality".into()));
    assert!(last["description"].as_str().unwrap().contains("main.yaml has 1 error"), "{last}");
}

#[test]
fn a_secret_in_a_reason_stays_one() {
    let github = Github::willing();
    let project = github.project(CHECK_FIX).env("MY_TOKEN", "s3cr3t-value");
    let ran = project.run(&["run", "s3cr3t-value", "--report-dir", "reports"]).code(2);
    let mut all = vec![ran.all(), project.read("out"), project.read("summary")];
    all.extend(["result.json", "junit.xml"].map(|file| project.read(&format!("reports/{file}"))));
    all.extend(github.received().iter().map(|(_, body)| body.to_string()));
    for text in all {
        assert!(!text.contains("s3cr3t-value"), "{text}");
    }
}

#[test]
fn what_a_loop_file_says_is_no_command_and_no_markup() {
    let github = Github::willing();
    let hostile = "\"x\\n::add-mask::a\\r::stop-commands::b ##[error]c <img src=x> ]]> ` ``` </error>\"";
    let text = format!("name: main\ninitial: a\n{hostile}: 1\nstates:\n  a: {{terminal: true}}\n");
    let project = github.project(&text);
    let ran = project.run(&["run", "main", "--report-dir", "reports"]).code(2);
    let commands: Vec<_> = ran
        .stdout
        .split(['\r', '\n'])
        .filter(|line| line.contains("##[") || line.trim().starts_with("::"))
        .collect();
    assert!(commands.len() == 1 && commands[0].starts_with("::error file="), "{commands:?}");
    let junit = project.read("reports/junit.xml");
    assert_eq!((junit.matches("</error>").count(), junit.matches("<img").count()), (1, 0), "{junit}");
    let summary = project.read("summary");
    let fence = summary.lines().find(|line| line.starts_with("```")).unwrap();
    let ticks = fence.trim_end_matches("text");
    assert_eq!(summary.lines().filter(|line| line.starts_with(ticks)).count(), 2, "{summary}");
    assert_eq!(outputs(&project.read("out"))["outcome"], "invalid");
}

#[test]
fn an_action_that_cannot_be_started_leaves_what_was_before() {
    for (key, why) in [
        ("cwd: nosuch", "`cwd: nosuch` does not exist"),
        ("shell: [nosuchshell, -c]", "cannot start `nosuchshell`: no such program on PATH"),
    ] {
        let text = format!(
            "name: main\ninitial: one\nstates:\n  one: {{action: 'echo first', capture: x, on_yes: two}}\n  two:\n    action: echo hi\n    capture: x\n    {key}\n    on_yes: done\n    on_error: three\n  three: {{action: \"echo '${{prev.state}}' '${{prev.output}}' '${{captured.x.output}}' > said\", on_yes: done}}\n  done: {{terminal: true}}\n"
        );
        let project = Project::with_loop(&text);
        let ran = project.run(&["run", "main", "--ci"]);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        assert_eq!(project.read("said"), "one first first\n");
        drop(ran.says(&format!("error in two: in `action`: {why}")));
    }
}

#[test]
fn a_start_in_a_directory_that_is_gone_is_told_to_the_job() {
    let project = Project::with_loop(CHECK_FIX).file("out", "").file("summary", "");
    let gone = project.at("gone").display().to_string();
    std::fs::create_dir(&gone).unwrap();
    let start = format!("cd '{gone}' && rmdir '{gone}' && exec {} run main", crate::common::LL_LOOP.as_str());
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &start]).env("CI", "true").env("GITHUB_ACTIONS", "true");
    command.env("GITHUB_OUTPUT", project.at("out")).env("GITHUB_STEP_SUMMARY", project.at("summary"));
    let ran = Ran::of(&command.output().unwrap()).code(4);
    assert!(ran.stdout.contains("::error") && ran.stderr.contains("which may be gone"), "{}", ran.all());
    let told = outputs(&project.read("out"));
    assert_eq!((told["outcome"].as_str(), told["exit-code"].as_str()), ("error", "4"));
    assert!(project.read("summary").contains("cannot tell the working directory"));
}
