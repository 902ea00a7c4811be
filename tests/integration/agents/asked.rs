//! States that ask somebody: a person who approves, and an agent that finds out what is not known.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Project, Ran};

/// Asks, and shows the result in the state that follows.
const APPROVAL: &str = "\
name: main
description: d
initial: ask
context: {what: 'it''s $(touch pwned)'}
states:
  ask: {action_type: human_approval, action: 'Deploy ${context.what}?', capture: answer, on_yes: yes, on_no: no}
  yes: {action: 'printf \"%s|%s|%s|%s\" ${captured.answer.output:shell} ${captured.ask.verdict:shell} ${captured.answer.edit:shell} ${captured.answer.reason:shell} > came', next: done}
  no: {action: 'printf \"%s|%s|%s|%s\" ${captured.answer.output:shell} ${captured.ask.verdict:shell} ${captured.answer.edit:shell} ${captured.answer.reason:shell} > came', next: stopped}
  done: {terminal: true, outcome: success}
  stopped: {terminal: true, outcome: blocked, description: nobody approved}
";

fn verdict(project: &Project) -> (String, String) {
    let events = project.events();
    let route = events.iter().find(|event| event["event"] == "route").unwrap();
    let text = |key: &str| route[key].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("to"))
}

#[test]
fn without_a_terminal_nobody_is_waited_for() {
    let project = Project::with_loop(APPROVAL);
    drop(project.run(&["validate", "main", "--strict"]).code(0));
    drop(project.run(&["run", "main"]).code(2 + 3));
    assert_eq!(verdict(&project), ("timeout".to_owned(), "no".to_owned()));
    assert_eq!(project.read("came"), "|timeout||headless");
    let own = APPROVAL.replace("on_no: no}", "on_no: no, route: {timeout: later}}")
        + "  later: {terminal: true, outcome: success}\n";
    let project = Project::with_loop(&own);
    drop(project.run(&["run", "main"]).code(0));
    assert_eq!(verdict(&project).1, "later");
}

/// Runs the loop on a terminal at which somebody types.
fn typed(project: &Project, typed: &str) -> Ran {
    let program = project.command(&["run", "main"]);
    let line = format!("{} run main", program.get_program().to_string_lossy());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(project.path()).env_clear();
    for (name, value) in program.get_envs() {
        script.env(name, value.unwrap());
    }
    let script =
        script.env("TERM", "dumb").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(typed.as_bytes()).unwrap();
    stdin.flush().unwrap();
    let ran = Ran::of(&child.wait_with_output().unwrap());
    drop(stdin);
    ran
}

#[cfg(target_os = "linux")]
#[test]
fn a_person_on_a_terminal_approves_rejects_or_edits() {
    for (keys, word, to, came) in [
        ("y\n", "yes", "yes", "|approve||"),
        ("what\nn: not now $(touch pwned)\n", "no", "no", "|reject||not now $(touch pwned)"),
        (
            "e\nother 'text'\n$(touch pwned)\n.\n",
            "edit",
            "yes",
            "other 'text'\n$(touch pwned)|edit|other 'text'\n$(touch pwned)|",
        ),
    ] {
        let project = Project::with_loop(APPROVAL);
        let ran = typed(&project, keys);
        assert!(ran.all().contains("Deploy it's $(touch pwned)?"), "{}", ran.all());
        assert_eq!(verdict(&project), (word.to_owned(), to.to_owned()), "{keys}");
        assert_eq!(project.read("came"), came, "{keys}");
        assert!(!project.exists("pwned"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_person_who_does_not_answer_is_waited_for_no_longer_than_the_state_says() {
    let project = Project::with_loop(&APPROVAL.replace("capture: answer", "capture: answer, timeout: 0.3"));
    drop(typed(&project, "what?\n"));
    assert_eq!(verdict(&project), ("timeout".to_owned(), "no".to_owned()));
    assert_eq!(project.read("came"), "|timeout||no answer");
}

#[test]
fn a_question_needs_words_and_both_ways() {
    for (from, to, code) in [
        ("action: 'Deploy ${context.what}?', ", "", "empty-action"),
        (", on_no: no", "", "missing-route"),
        ("on_yes: yes, ", "", "missing-route"),
        ("on_yes: yes, on_no: no", "next: done", "missing-route"),
        ("on_no: no", "on_no: no, on_edti: no", "unknown-key"),
    ] {
        let text = APPROVAL.replace(from, to);
        assert_ne!(text, APPROVAL);
        let ran = Project::with_loop(&text).run(&["validate", "main", "--format", "json"]).code(2);
        assert!(ran.stdout.contains(&format!("\"code\":\"{code}\"")), "{to}: {}", ran.all());
    }
}

/// Has to know two things.
const LEARNING: &str = "\
name: main
description: d
initial: know
context: {names: 'Some API,  Stripe: v2 ', tries: 1}
states:
  know: {type: learning, learning: {targets_csv: '${context.names}', max_retries_expr: '${context.tries}'}, on_yes: done, on_blocked: stuck}
  done: {terminal: true, outcome: success}
  stuck: {terminal: true, outcome: blocked, description: something is not known}
";

fn record(status: &str) -> String {
    format!("---\ntarget: x\nstatus: {status}\n---\nstatus: proven\n")
}

fn reason(project: &Project) -> String {
    let events = project.events();
    let judged = events.iter().rfind(|event| event["event"] == "evaluate").unwrap();
    judged["details"]["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_is_proven_is_known_without_an_agent() {
    let project = Project::with_loop(LEARNING)
        .file(".ll/learning-tests/some-api.md", &record("proven"))
        .file(".ll/learning-tests/stripe-v2.md", &record("proven"));
    drop(project.run(&["validate", "main", "--strict"]).code(0));
    drop(project.run(&["run", "main", "--no-llm"]).code(0));
    project.write(".ll/learning-tests/stripe-v2.md", &record("stale"));
    let two = Project::with_loop(LEARNING).file(".ll/learning-tests/some-api.md", &record("refuted"));
    drop(two.run(&["run", "main", "--no-llm"]).code(5));
    assert_eq!(reason(&two), "`Some API` is refuted");
    let three = Project::with_loop(LEARNING).file(".ll/learning-tests/some-api.md", &record("proven"));
    drop(three.run(&["run", "main", "--no-llm"]).code(5));
    assert_eq!(reason(&three), "`Stripe: v2` is not known: no agent may be asked here");
    let four = Project::with_loop(LEARNING);
    drop(four.run(&["run", "main"]).code(5));
    assert_eq!(reason(&four), "`Some API` is not known: there is no agent on PATH");
}

#[test]
fn without_a_way_of_its_own_what_is_not_known_is_a_no() {
    let project = Project::with_loop(&LEARNING.replace("on_blocked", "on_no"));
    drop(project.run(&["validate", "main", "--strict"]).code(0));
    drop(project.run(&["run", "main", "--no-llm"]).code(5));
}

#[test]
fn hostile_targets_name_no_other_file() {
    for (target, code) in [("../../x", 0), ("$(touch pwned)", 5), ("../..", 5), ("a\\nb", 5)] {
        let text = LEARNING.replace("'Some API,  Stripe: v2 '", &format!("\"{target}\""));
        let project = Project::with_loop(&text)
            .file("x.md", &record("proven"))
            .file(".ll/learning-tests/x.md", &record(if code == 0 { "proven" } else { "refuted" }))
            .file(".ll/learning-tests/.md", &record("proven"));
        drop(project.run(&["run", "main", "--no-llm"]).code(code));
        assert!(!project.exists("pwned"));
    }
}

#[test]
fn an_agent_is_asked_and_its_record_counts() {
    let fake = |text: &str| {
        let project = Project::with_loop(LEARNING).file(".ll/learning-tests/stripe-v2.md", &record("proven"));
        project.write("bin/claude", &format!("#!/bin/sh\n{text}\n"));
        let chmod = Command::new("chmod").arg("+x").arg(project.at("bin/claude")).status();
        assert!(chmod.unwrap().success());
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", project.at("bin").display());
        project.env("PATH", path)
    };
    let answer = r#"cat > "asked-$$"; printf '%s' "$*" >> "asked-$$"; echo '{"type":"result","subtype":"success","is_error":false,"result":"it is proven","session_id":"s","total_cost_usd":0.1,"usage":{"input_tokens":1,"output_tokens":1}}'"#;
    let asked = |project: &Project| -> Vec<String> {
        let entries = std::fs::read_dir(project.path()).unwrap().map(|entry| entry.unwrap());
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("asked-")).collect()
    };
    let learns = fake(&format!(
        "{}; {answer}",
        "printf -- '---\\nstatus: proven\\n---\\n' > .ll/learning-tests/some-api.md"
    ));
    drop(learns.run(&["run", "main", "--yes"]).code(0));
    let calls = asked(&learns);
    assert_eq!(calls.len(), 1);
    assert!(learns.read(&calls[0]).contains("/ll:explore-api Some API"), "{}", learns.read(&calls[0]));
    // That it says so is not enough.
    let talks = fake(answer);
    drop(talks.run(&["run", "main", "--yes"]).code(5));
    assert_eq!(asked(&talks).len(), 1, "once, as `max_retries_expr` says");
    assert_eq!(reason(&talks), "`Some API` is not known: its record is still missing or stale");
}

#[test]
fn learning_needs_targets_and_a_way_for_each_end() {
    for (from, to, code) in [
        ("targets_csv: '${context.names}', ", "", "missing-value"),
        (", on_blocked: stuck", "", "missing-route"),
        ("on_yes: done, ", "", "missing-route"),
        ("targets_csv", "target_csv", "unknown-key"),
    ] {
        let text = LEARNING.replace(from, to);
        assert_ne!(text, LEARNING);
        let ran = Project::with_loop(&text).run(&["validate", "main", "--format", "json"]).code(2);
        assert!(ran.stdout.contains(&format!("\"code\":\"{code}\"")), "{to}: {}", ran.all());
    }
    let other = LEARNING.replace("type: learning", "type: task, action: 'true'");
    let ran = Project::with_loop(&other).run(&["validate", "main", "--format", "json"]).code(0);
    let notes = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(notes.into_iter().any(|note| note["code"] == "no-effect"), "{}", ran.all());
}

#[test]
fn a_count_that_is_none_takes_the_way_of_errors() {
    let text = LEARNING.replace("on_blocked: stuck", "on_blocked: stuck, on_error: done");
    let project = Project::with_loop(&text);
    project.run(&["run", "main", "--context", "tries=many"]).code(0);
    let failed = project.events().into_iter().find(|event| event["event"] == "action_error").unwrap();
    assert_eq!(failed["error"], "in `learning.max_retries_expr`: `many` is not a count");
}
