//! The hooks of a session: one JSON answer and exit code 0, whatever they find.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::{Project, Ran, git};

const STATE: &str = ".loop/state.json";

/// A state that goes on, with one criterion unmet.
const OPEN: &str = r#"{"spec": "add validation", "criteriaStatus": {"tests pass": false, "lint": true},
    "steps": ["a", "b"], "completedSteps": ["a"], "remainingSteps": ["b"], "iteration": 2, "status": "in_progress"}"#;

/// Runs a hook, which always ends well, and returns its one answer.
#[track_caller]
fn ask(project: &Project, arguments: &[&str]) -> Value {
    answer(project.run(&[&["hook"], arguments].concat()))
}

#[track_caller]
fn answer(ran: Ran) -> Value {
    let ran = ran.code(0);
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

/// Runs a hook that can read this on standard input.
#[track_caller]
fn told(project: &Project, directory: &str, arguments: &[&str], words: &str) -> Value {
    let mut command = project.command(&[&["hook"], arguments].concat());
    // All of it is there when the hook starts: on a busy machine it would not wait long enough for what comes later.
    let (mut caller, stdin) = (tempfile::tempfile().unwrap(), words.as_bytes());
    caller.write_all(stdin).unwrap();
    caller.rewind().unwrap();
    command.current_dir(project.at(directory)).stdin(caller);
    answer(Ran::of(&command.output().unwrap()))
}

fn invalid() -> Value {
    json!({"ok": true, "reason": "invalid state file"})
}

fn unmet() -> Value {
    json!({"ok": false, "reason": format!("unmet criteria: tests pass{ADVICE}")})
}

/// What stands behind the fixed words, where no criterion has a command.
const ADVICE: &str = "\nRun `ll-loop criteria check` when they are met; `ll-loop criteria set NAME true` sets one that has no command.";

#[test]
fn a_session_stops_when_the_criteria_are_met() {
    let project = Project::new();
    assert_eq!(ask(&project, &["stop-check"]), json!({"ok": true}));
    project.write(STATE, OPEN);
    assert_eq!(ask(&project, &["stop-check"]), unmet());
    let blocked = ask(&project, &["stop-check", "--format", "claude"]);
    assert_eq!(blocked["decision"], "block");
    let reason = blocked["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("unmet criteria: tests pass\n") && reason.contains("`ll-loop criteria check`"),
        "{reason}"
    );
    project.write(STATE, r#"{"criteriaStatus": {"a": true}, "exit_signal": true}"#);
    assert_eq!(ask(&project, &["stop-check"]), json!({"ok": true}));
    assert_eq!(ask(&project, &["stop-check", "--format", "claude"]), json!({}));
    project.write("other.json", OPEN);
    let named = ask(&project, &["stop-check", "--state", "other.json"]);
    let reason = named["reason"].as_str().unwrap();
    let check = format!("Run `ll-loop criteria check --state {}", project.at("other.json").display());
    assert!(reason.starts_with(&format!("unmet criteria: tests pass\n{check}")), "{reason}");
    assert_eq!(ask(&project, &["stop-check", "--state", "absent.json"]), json!({"ok": true}));
}

#[test]
fn a_session_that_begins_is_told_how_the_work_stands() {
    let project = Project::new().file(STATE, OPEN);
    let message = "[LOOP RESUME] Active loop detected\nSpec: add validation\nProgress: 1/2 steps | Iteration: 2\n\
        Unmet criteria: tests pass\nNext: b";
    assert_eq!(ask(&project, &["session-resume"]), json!({"ok": true, "message": message}));
    let context = json!({"hookEventName": "SessionStart", "additionalContext": message});
    assert_eq!(
        ask(&project, &["session-resume", "--format", "claude"]),
        json!({"hookSpecificOutput": context})
    );
    for state in ["{\"status\": \"completed\"}", "[]", ""] {
        project.write(STATE, state);
        assert_eq!(ask(&project, &["session-resume"]), json!({"ok": true, "message": ""}), "{state}");
        assert_eq!(ask(&project, &["session-resume", "--format", "claude"]), json!({}), "{state}");
    }
}

#[test]
fn a_broken_file_holds_nobody_up_and_stays_as_it_is() {
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    let huge = format!("{{\"x\": \"{}\", \"criteriaStatus\": {{\"a\": false}}}}", "x".repeat(10_000_000));
    for text in ["", " \n", "null", "[]", "{}{}", "{\"status\": ", "\u{feff}", "{\"a\":1}\r\n]", &deep, &huge]
    {
        let project = Project::new().file(STATE, text);
        assert_eq!(ask(&project, &["stop-check"]), invalid(), "{}", &text[..text.len().min(50)]);
        assert_eq!(ask(&project, &["session-resume"]), json!({"ok": true, "message": ""}));
        assert_eq!(project.read(STATE), text);
    }
    let project = Project::new().file(STATE, "");
    fs::write(project.at(STATE), b"{\"status\": \"\xff\"}").unwrap();
    assert_eq!(ask(&project, &["stop-check"]), invalid());
    project.write(STATE, &format!("\u{feff}{}", OPEN.replace('\n', "\r\n")));
    assert_eq!(ask(&project, &["stop-check"]), unmet());
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let project = Project::new();
    fs::create_dir_all(project.at(STATE)).unwrap();
    assert_eq!(ask(&project, &["stop-check"]), invalid());
    let made = Command::new("mkfifo").arg(project.at("pipe")).status().unwrap();
    assert!(made.success());
    assert_eq!(ask(&project, &["stop-check", "--state", "pipe"]), invalid());
    assert_eq!(ask(&project, &["session-resume", "--state", "pipe"]), json!({"ok": true, "message": ""}));
    assert_eq!(ask(&project, &["stop-check", "--state", "/dev/zero"]), invalid());
    std::os::unix::fs::symlink("circle", project.at("circle")).unwrap();
    assert_eq!(ask(&project, &["stop-check", "--state", "circle"]), invalid());
    // A file in the place of the directory: there is no state below it.
    project.write("sub/.loop", "");
    assert_eq!(told(&project, "sub", &["stop-check"], ""), json!({"ok": true}));
}

#[test]
fn names_come_out_as_they_are() {
    for name in ["say \"hi\"", "a\nb\t\u{0}\u{1b}[0m", "é 日本 🦀 \u{202e}", "\\", "a, b"] {
        let state = json!({"status": "in_progress", "criteriaStatus": {name: "true"}});
        let project = Project::new().file(STATE, &state.to_string());
        let reason = format!("unmet criteria: {name}{ADVICE}");
        assert_eq!(ask(&project, &["stop-check"]), json!({"ok": false, "reason": reason}));
        let message = ask(&project, &["session-resume"])["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("Unmet criteria: {name}\nNext")), "{message:?}");
    }
}

#[test]
fn the_directory_is_that_of_the_session_or_of_the_project() {
    let project = Project::new().file("work/.loop/state.json", OPEN).file("other/x", "");
    let cwd =
        |path: &str| json!({"session_id": "1", "cwd": project.at(path), "nested": {"cwd": "/"}}).to_string();
    assert_eq!(told(&project, "other", &["stop-check"], &cwd("work")), unmet());
    assert_eq!(told(&project, "other", &["stop-check"], &cwd("other")), json!({"ok": true}));
    assert_eq!(told(&project, "work", &["stop-check"], &cwd("other")), json!({"ok": true}));
    let work = project.at("work").to_string_lossy().into_owned();
    let project = project.env("CLAUDE_PROJECT_DIR", work);
    let cwd = json!({"cwd": project.at("absent")}).to_string();
    assert_eq!(told(&project, "other", &["stop-check"], &cwd), unmet());
    assert_eq!(told(&project, "other", &["stop-check"], ""), unmet());
    project.write("other/.loop/state.json", r#"{"status": "completed"}"#);
    assert_eq!(told(&project, "other", &["stop-check"], ""), json!({"ok": true}));
}

#[test]
fn what_the_caller_says_never_matters_when_it_is_bad() {
    let project = Project::new().file(STATE, OPEN);
    let deep = "[".repeat(200_000);
    for words in ["", "}", "no", "[]", "{\"cwd\": 7}", "{\"cwd\": null}", "{\"cwd\": \"\"}", "{}", &deep] {
        assert_eq!(told(&project, ".", &["stop-check"], words), unmet(), "{}", &words[..words.len().min(20)]);
    }
    // One that says nothing and stays, and one that never stops.
    for words in ["sleep 60", "yes", "printf '{'; sleep 60"] {
        let mut caller = Command::new("sh")
            .args(["-c", &format!("exec 2>&-; {words}")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut hook = project.command(&["hook", "stop-check"]);
        hook.stdin(caller.stdout.take().unwrap());
        let said = answer(Ran::of(&hook.output().unwrap()));
        assert_eq!(said, unmet(), "{words}");
        assert!(words == "yes" || caller.try_wait().unwrap().is_none(), "the caller was waited for");
        caller.kill().ok();
        caller.wait().unwrap();
    }
}

/// Asks ten times in one session, and returns how often it was blocked before it was let go.
#[track_caller]
fn blocks(project: &Project, session: &str) -> usize {
    let words = json!({"session_id": session, "stop_hook_active": false}).to_string();
    let answers: Vec<_> =
        (0..8).map(|_| told(project, ".", &["stop-check", "--format", "claude"], &words)).collect();
    let blocked = answers.iter().take_while(|answer| answer["decision"] == "block").count();
    for answer in &answers[blocked..] {
        assert!(answer["systemMessage"].as_str().unwrap().contains("unmet criteria: tests pass"), "{answer}");
        assert_eq!(answer.get("decision"), None);
    }
    blocked
}

/// The files in which the blocks of sessions are counted.
fn counts(directory: &std::path::Path) -> usize {
    fs::read_dir(directory).map(Iterator::count).unwrap_or_default()
}

#[test]
fn the_sixth_stop_at_the_same_criterion_goes_through() {
    let project = Project::new().file(STATE, OPEN);
    git(&project, &["init", "-q"]);
    assert_eq!(blocks(&project, "one"), 5);
    assert_eq!(blocks(&project, "two /../\n"), 5);
    assert_eq!(counts(&project.at(".git/ll-loop/stops")), 2);
    assert_eq!(project.read(STATE), OPEN);
    let seed = told(&project, ".", &["stop-check"], r#"{"session_id": "one"}"#);
    assert_eq!((&seed["ok"], seed["reason"].is_string()), (&json!(true), true));
    // Another first criterion, and other work, are counted anew; nobody is let go who is not known.
    project.write(STATE, &OPEN.replace("add validation", "other work"));
    assert_eq!(blocks(&project, "one"), 5);
    for words in ["", "{}", r#"{"session_id": ""}"#, r#"{"session_id": 7}"#, r#"{"session_id": null}"#] {
        for _ in 0..7 {
            assert_eq!(told(&project, ".", &["stop-check"], words), unmet(), "{words}");
        }
    }
    project.write(STATE, r#"{"status": "in_progress", "criteriaStatus": {"a": true}}"#);
    let words = r#"{"session_id": "one"}"#;
    for _ in 0..5 {
        let said = told(&project, ".", &["stop-check", "--format", "claude"], words);
        assert!(said["reason"].as_str().unwrap().contains("ll-loop criteria check --signal"), "{said}");
    }
    assert!(told(&project, ".", &["stop-check", "--format", "claude"], words)["systemMessage"].is_string());
}

#[test]
fn blocks_are_counted_beside_the_repository_where_git_is_not() {
    let project = Project::new().file(STATE, OPEN);
    let home = project.at("home").to_string_lossy().into_owned();
    let project = project.env("XDG_STATE_HOME", home);
    assert_eq!(blocks(&project, "one"), 5);
    assert_eq!(counts(&project.at("home/ll-loop/stops")), 1);
    // Where nothing can be counted, the session is blocked as ever.
    let project = project.env("XDG_STATE_HOME", "/dev/null");
    assert_eq!(blocks(&project, "one"), 8);
}

#[test]
fn what_comes_late_or_in_pieces_counts() {
    let project = Project::new().file("work/.loop/state.json", OPEN).file("other/x", "");
    let words = json!({"text": "x".repeat(1_500_000), "cwd": project.at("work")}).to_string();
    assert_eq!(told(&project, "other", &["stop-check"], &words), unmet());
    // More than a pipe holds: it can be written only while the hook reads, and the pipe stays open after it.
    let mut hook = project.command(&["hook", "stop-check"]);
    let hook = hook.current_dir(project.at("other")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut hook = hook.spawn().unwrap();
    let mut stdin = hook.stdin.take().unwrap();
    stdin.write_all(&words.as_bytes()[..200_000]).unwrap();
    stdin.write_all(&words.as_bytes()[200_000..]).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut hook.stdout.take().unwrap(), &mut said).unwrap();
    assert!(hook.wait().unwrap().success());
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), unmet());
    drop(stdin);
}

#[test]
fn the_file_is_looked_for_up_to_the_root_of_the_repository() {
    let project = Project::new().file(STATE, OPEN).file("a/b/x", "").file("a/.git/HEAD", "");
    let cwd = json!({"cwd": project.at("a/b")}).to_string();
    assert_eq!(told(&project, ".", &["stop-check"], &cwd), json!({"ok": true}));
    fs::remove_dir_all(project.at("a/.git")).unwrap();
    project.write(".git/HEAD", "");
    assert_eq!(told(&project, ".", &["stop-check"], &cwd), unmet());
    assert_eq!(told(&project, "a/b", &["stop-check"], ""), unmet());
    let message = told(&project, "a", &["session-resume"], "");
    assert!(message["message"].as_str().unwrap().contains("Unmet criteria: tests pass"), "{message}");
}

#[test]
fn inside_of_a_run_the_run_decides() {
    let project = Project::new().file(STATE, OPEN).env("LL_LOOP_RUN", "main-1");
    assert_eq!(ask(&project, &["stop-check"]), json!({"ok": true}));
    assert_eq!(ask(&project, &["stop-check", "--state", STATE, "--format", "claude"]), json!({}));
    assert_eq!(ask(&project, &["session-resume"]), json!({"ok": true, "message": ""}));
}

#[test]
fn a_wrong_command_line_holds_nobody_up_either() {
    let project = Project::new().file(STATE, OPEN);
    let wrong = json!({"ok": true, "reason": "the hook is called with wrong arguments"});
    assert_eq!(ask(&project, &["stop-check", "--fromat", "seed"]), wrong);
    assert_eq!(ask(&project, &["stop-check", "extra"]), wrong);
    assert_eq!(ask(&project, &["stop-check", "--format", "claude", "extra"]), json!({}));
    assert_eq!(ask(&project, &["session-resume", "--format"]), json!({"ok": true, "message": ""}));
    project.run(&["hook", "stop-chek"]).code(2);
    project.run(&["hook"]).code(2);
    project.run(&["hook", "stop-check", "--help"]).code(0).says("--format");
}

const SETTINGS: &str = ".claude/settings.json";

#[test]
fn the_hooks_are_installed_once_and_taken_out_again() {
    let before = "{\n  \"model\": \"x\",\n  \"permissions\": {\n    \"allow\": []\n  }\n}\n";
    let project = Project::new().file(SETTINGS, before);
    let shown = project.run(&["hook", "install", "--print"]).code(0).stdout;
    assert_eq!(project.read(SETTINGS), before);
    project.run(&["hook", "install"]).code(0).says("both hooks were added");
    let after = project.read(SETTINGS);
    assert_eq!(after, shown);
    assert!(after.starts_with(before.trim_end_matches("\n}\n")), "{after}");
    project.run(&["hook", "install"]).code(0).says("has both hooks already");
    assert_eq!(project.read(SETTINGS), after);
    project.run(&["hook", "uninstall"]).code(0).says("removed");
    assert_eq!(project.read(SETTINGS), before);
    project.run(&["hook", "uninstall"]).code(0).says("has none of the hooks already");
}

#[test]
fn what_is_installed_is_what_answers() {
    let project = Project::new().file(STATE, OPEN);
    project.run(&["hook", "install"]).code(0);
    let settings: Value = serde_json::from_str(&project.read(SETTINGS)).unwrap();
    for (event, key) in [("Stop", "decision"), ("SessionStart", "hookSpecificOutput")] {
        let command = settings["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(words[0], "ll-loop");
        assert!(answer(project.run(&words[1..])).get(key).is_some(), "{command}");
    }
}

#[test]
fn settings_that_are_none_are_refused_and_stay() {
    for text in ["", "// mine\n{}", "[]", "{\"hooks\": 1}", "{\"hooks\": {\"Stop\": {}}}", "{} {}"] {
        let project = Project::new().file(SETTINGS, text);
        project.run(&["hook", "install"]).code(2).says("is left as it is").says("help:");
        assert_eq!(project.read(SETTINGS), text);
    }
    let project = Project::new();
    fs::create_dir_all(project.at(SETTINGS)).unwrap();
    project.run(&["hook", "install"]).code(2).says("it is a directory, not a file");
}
