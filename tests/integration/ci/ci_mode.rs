//! `--ci`: the log of a CI system, and what it is told.

use std::fs;

use insta::assert_snapshot;

use crate::common::{CHECK_FIX, Project};

pub(crate) fn timeless(text: &str) -> String {
    let text = regex::Regex::new(r"\b\d+(\.\d+)?(ms|s)\b").unwrap().replace_all(text, "TIME");
    let text = regex::Regex::new(r"-\d{8}T\d{6}-[0-9a-f]{6}").unwrap().replace_all(&text, "-ID");
    regex::Regex::new(r"\b[0-9a-f]{32}\b").unwrap().replace_all(&text, "TOKEN").into_owned()
}

fn on_github(text: &str) -> Project {
    Project::with_loop(text).in_github_job().env("GITHUB_RUN_ID", "77").env("GITHUB_RUN_ATTEMPT", "2")
}

/// Reads a file of heredocs as the runner does; of two values the later one counts.
pub(crate) fn outputs(text: &str) -> std::collections::BTreeMap<String, String> {
    let mut all = std::collections::BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (name, delimiter) = line.split_once("<<").expect("a heredoc");
        let value: Vec<_> = lines.by_ref().take_while(|line| *line != delimiter).collect();
        all.insert(name.to_owned(), value.join("\n"));
    }
    all
}

#[test]
fn a_step_is_a_group_and_a_verdict() {
    let ran = on_github(CHECK_FIX).run(&["run", "main"]).code(0);
    assert_snapshot!(timeless(&ran.stdout), @"
    ▶ main: at most 20 iterations, run main-ID
    ! warning: what the run changes in the working tree will not be known: there is no git repository
    ::group::[1/20] check → echo looking; test -f flag
    ::stop-commands::TOKEN
    │ looking
    ::TOKEN::
    ::endgroup::
    ✗ no (exit 1, TIME) → fix
    ::group::[1/20] fix → touch flag
    ::endgroup::
    ✓ exit 0 (TIME) → check
    ::group::[2/20] check → echo looking; test -f flag
    ::stop-commands::TOKEN
    │ looking
    ::TOKEN::
    ::endgroup::
    ✓ yes (exit 0, TIME) → done
    ✓ Loop completed: done (2 iterations, TIME)
    · success: `check` said yes
    ::warning title=main%3A warning::what the run changes in the working tree will not be known: there is no git repository
    · reports: .loops/.history/main/main-ID.report
    · run main-ID: `ll-loop report .loops/.history/main/main-ID.report` shows it where they are kept
    ");
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_failure_is_annotated_where_it_was_decided() {
    let text = "\
name: main
description: x
initial: check
max_iterations: 2
states:
  check:
    action: 'echo \"src/a.py:3:7: error: bad thing\"; exit 1'
    on_yes: done
    on_no: check
  done: {terminal: true}
";
    let project = on_github(text).file("src/a.py", "1\n2\n3\n");
    let ran = project.run(&["run", "main"]).code(3);
    assert_snapshot!(timeless(&ran.stdout), @r#"
    ▶ main: at most 2 iterations, run main-ID
    ! warning: what the run changes in the working tree will not be known: there is no git repository
    ::group::[1/2] check → echo "src/a.py:3:7: error: bad thing"; exit 1
    ::stop-commands::TOKEN
    │ src/a.py:3:7: error: bad thing
    ::TOKEN::
    ::endgroup::
    ✗ no (exit 1, TIME) → check
    ::group::[2/2] check → echo "src/a.py:3:7: error: bad thing"; exit 1
    ::stop-commands::TOKEN
    │ src/a.py:3:7: error: bad thing
    ::TOKEN::
    ::endgroup::
    ✗ no (exit 1, TIME) → check
    ── the step that decided: [2/2] check → echo "src/a.py:3:7: error: bad thing"; exit 1
    ::stop-commands::TOKEN
    │ src/a.py:3:7: error: bad thing
    ::TOKEN::
    ── ✗ no (exit 1, TIME)
    ✗ Loop exhausted in check (2 iterations, TIME)
    · exhausted: met the cap of 2 iterations; `check` said no in 2 of 2 iterations
    · raise `max_iterations`, or look at why the check never passes
    ::error file=.loops/main.yaml,line=6,title=main%3A exhausted::exhausted: met the cap of 2 iterations; `check` said no in 2 of 2 iterations%0Asrc/a.py:3:7: error: bad thing
    ::error file=src/a.py,line=3,col=7,title=check::error: bad thing
    ::warning title=main%3A warning::what the run changes in the working tree will not be known: there is no git repository
    · reports: .loops/.history/main/main-ID.report
    · run main-ID: `ll-loop report .loops/.history/main/main-ID.report` shows it where they are kept
    "#);
}

#[test]
fn outputs_and_summary_are_where_the_runner_looks() {
    let project = on_github(CHECK_FIX);
    project.run(&["run", "main"]).code(0);
    let outputs = outputs(&project.read("out"));
    for (name, value) in [
        ("outcome", "success"),
        ("exit-code", "0"),
        ("verified", "true"),
        ("final-state", "done"),
        ("iterations", "2"),
        ("steps", "3"),
        ("handoff", "false"),
        // This step has no access to artifacts.
        ("artifact-name", ""),
        ("resume-from", ""),
    ] {
        assert_eq!(outputs.get(name).map(String::as_str), Some(value), "{name}");
    }
    let directory = &outputs["report-dir"];
    assert!(directory.starts_with(".loops/.history/main/main-"), "{directory}");
    for file in ["summary.md", "junit.xml", "result.json", "events.jsonl", "state.json", "output.log"] {
        assert!(project.exists(&format!("{directory}/{file}")), "{file}");
    }
    assert_eq!(outputs["junit"], format!("{directory}/junit.xml"));
    let summary = project.read("summary");
    assert!(summary.contains("mermaid") && summary.contains("main"), "{summary}");
}

#[test]
fn the_reports_are_announced_before_the_first_action() {
    let project = on_github(
        "name: main\ninitial: a\nstates:\n  a: {action: cp out seen, on_yes: done}\n  done: {terminal: true}\n",
    );
    project.run(&["run", "main"]).code(0);
    let early = outputs(&project.read("seen"));
    assert!(early["report-dir"].starts_with(".loops/.running/main-"), "{early:?}");
    assert_eq!(early["artifact-name"], "");
}

#[test]
fn actions_see_neither_tokens_nor_the_runners_files() {
    let project = on_github(
        "name: main\ninitial: a\nstates:\n  a: {action: env > seen, on_yes: done}\n  done: {terminal: true}\n",
    )
    .env("GITHUB_TOKEN", "ghs_0123456789")
    .env("ACTIONS_RUNTIME_TOKEN", "runtime-0123")
    .env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "oidc-0123")
    .env("INPUT_LOOP", "main");
    project.run(&["run", "main"]).code(0);
    let seen = project.read("seen");
    for hidden in
        ["ghs_0123456789", "runtime-0123", "oidc-0123", "INPUT_LOOP", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"]
    {
        assert!(!seen.contains(hidden), "{hidden}");
    }
    assert!(seen.contains("GITHUB_RUN_ID=77") && seen.contains("LL_LOOP_RUN=main-"));
    project.run(&["run", "main", "--pass-token"]).code(0);
    assert!(project.read("seen").contains("ghs_0123456789"));
}

/// What the runner would do with a line of a log; enough to tell a command from a text.
fn commands(log: &str) -> Vec<String> {
    let mut stopped: Option<String> = None;
    let mut found = Vec::new();
    for line in log.split(['\r', '\n']) {
        let start = line.trim_start();
        if let Some(token) = &stopped {
            if start == format!("::{token}::") {
                stopped = None;
            }
            continue;
        }
        if let Some(token) = start.strip_prefix("::stop-commands::") {
            stopped = Some(token.to_owned());
        } else if start.starts_with("::") || line.contains("##[") {
            found.push(line.to_owned());
        }
    }
    assert_eq!(stopped, None, "commands stay stopped");
    found
}

#[test]
fn no_output_of_an_action_commands_the_runner() {
    let hostile = "::error::pwned\n  ::warning::pwned\n\u{a0}::add-mask::a\nx ##[group]pwned\n##[add-mask]b\na\r::set-output name=x::y\n::stop-commands::zz\n::endgroup::\n\u{1b}[31m::error::pwned\n";
    let project = on_github(
        "name: main\ninitial: a\nstates:\n  a: {action: cat hostile; cat hostile >&2; exit 1, on_yes: done, on_no: failed}\n  done: {terminal: true}\n  failed: {terminal: true}\n",
    );
    project.write("hostile", hostile);
    let ran = project.run(&["run", "main"]).code(1);
    for command in commands(&ran.stdout) {
        let ours = ["::group::", "::endgroup::", "::error ", "::warning ", "::notice "];
        assert!(ours.iter().any(|start| command.starts_with(start)), "{command:?}\n{}", ran.stdout);
        assert!(!command.starts_with("::error ") || command.contains("title="), "{command:?}");
    }
    assert!(ran.stdout.contains("pwned"), "it is shown all the same");
}

#[test]
fn reports_go_where_they_are_asked_for_and_survive_an_interruption() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: touch begun; sleep 60, next: done}\n  done: {terminal: true}\n",
    );
    let child = project.start_until(&["run", "--ci=plain", "main", "--report-dir", "reports/here"], "begun");
    crate::common::signal(&child, rustix::process::Signal::TERM);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
    for file in ["summary.md", "junit.xml", "result.json", "outputs.env", "state.json", "events.jsonl"] {
        assert!(project.exists(&format!("reports/here/{file}")), "{file}");
    }
    assert!(project.read("reports/here/summary.md").contains("interrupted"));
}

const HANDS_OFF: &str = "name: main
initial: a
states:
  a: {action: 'echo \"CONTEXT_HANDOFF: more\"', next: done}
  done: {terminal: true}
";

#[test]
fn what_is_stored_nowhere_has_no_name_and_a_run_that_could_go_on_is_missed() {
    // No access to artifacts, and a service that does not answer.
    let down = [
        ("ACTIONS_RUNTIME_TOKEN", "e30.eyJzY3AiOiJBY3Rpb25zLlJlc3VsdHM6YTpiIn0.x"),
        ("ACTIONS_RESULTS_URL", "http://127.0.0.1:1/"),
        ("LL_RETRY_WAIT", "1ms"),
    ];
    let failed =
        "::error title=main::the reports of the run are not stored: creating the artifact failed".to_owned();
    for (env, code, why) in
        [(&[][..], 75, "are not stored, because this step has no access to artifacts"), (&down, 4, &failed)]
    {
        let mut project = on_github(HANDS_OFF);
        for (name, value) in env {
            project = project.env(name, *value);
        }
        let ran = project.run(&["run", "main", "--report-dir", "reports"]).code(code).says(why);
        let told = outputs(&project.read("out"));
        assert_eq!((&*told["artifact-name"], &*told["resume-from"]), ("", ""), "{}", ran.all());
        assert_eq!(told["exit-code"], code.to_string());
        let result: serde_json::Value = serde_json::from_str(&project.read("reports/result.json")).unwrap();
        assert_eq!(
            (&result["outputs"]["artifact-name"], &result["outputs"]["resume-from"]),
            (&"".into(), &"".into())
        );
        assert!(!project.read("reports/gitlab.env").contains("ARTIFACT_NAME"));
    }
    let ran = on_github(HANDS_OFF).run(&["run", "main", "--no-upload"]).code(75);
    assert!(!ran.stderr.contains("stored"), "who wants no upload misses none: {}", ran.stderr);
}

#[test]
fn where_a_later_step_stores_the_run_the_next_job_is_told_its_name() {
    let project = on_github(HANDS_OFF).env("INPUT_LOOP", "main");
    project.run(&["action"]).code(75);
    let told = outputs(&project.read("out"));
    assert_eq!(told["artifact-name"], "ll-loop-main-check-r77-a2");
    assert_eq!(told["resume-from"], "artifact:ll-loop-main-check-r77-a2");
    // What is over is not gone on with.
    let project = on_github(CHECK_FIX).env("INPUT_LOOP", "main");
    project.run(&["action"]).code(0);
    let told = outputs(&project.read("out"));
    assert_eq!((&*told["artifact-name"], &*told["resume-from"]), ("ll-loop-main-check-r77-a2", ""));
}

#[test]
fn elsewhere_a_later_job_goes_on_from_the_report_directory() {
    let project =
        Project::with_loop(HANDS_OFF).env("GITLAB_CI", "true").env("CI", "true").env("CI_PIPELINE_ID", "5");
    project.run(&["run", "main", "--report-dir", "reports"]).code(75);
    assert!(project.read("reports/gitlab.env").contains("LL_LOOP_RESUME_FROM=reports\n"));
    let from = project.at("reports").to_string_lossy().into_owned();
    fs::remove_dir_all(project.at(".loops/.running")).unwrap();
    project.write(".loops/main.yaml", &HANDS_OFF.replace("more", "less"));
    project.run(&["resume", "--from", &from, "--accept-changes"]).code(75);
}
