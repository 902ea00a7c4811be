//! `ll-loop doctor`: what it finds, what it asks for, and what programs on PATH cannot do to it.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::common::{Project, Ran};

const PLAIN: &str = "name: main\ninitial: check\nstates:\n  check: {action: 'true', on_yes: done}\n  done: {terminal: true}\n";
const ASKING: &str = "name: main\ninitial: fix\nstates:\n  fix: {action: mend it, action_type: prompt, next: done}\n  done: {terminal: true}\n";

/// A project with programs of its own in front of PATH, and no agent but these.
fn project(text: &str, programs: &[(&str, &str)]) -> Project {
    let project = Project::with_loop(text);
    for (name, script) in programs {
        let path = format!("bin/{name}");
        project.write(&path, &format!("#!/bin/sh\n{script}\n"));
        fs_err::set_permissions(project.at(&path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", project.at("bin").display());
    project.env("PATH", path)
}

fn rows(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Returns the row of this name.
fn row(ran: &Ran, name: &str) -> Value {
    let all = rows(ran);
    all["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
}

#[test]
fn loops_that_need_nothing_miss_nothing() {
    let project = project(PLAIN, &[]);
    let ran = project
        .run(&["doctor"])
        .code(0)
        .says("the loops here have what they need")
        .says("1 loop\n")
        .says(".loops can be written");
    for name in [
        "kernel", "landlock", "seccomp", "bwrap", "docker", "git", "claude", "qwen", "tokens", "provider",
        "state", "disk",
    ] {
        assert!(ran.stdout.contains(name) || cfg!(not(target_os = "linux")), "{name}");
    }
    let ran = project.run(&["doctor", "--json"]).code(0);
    assert_eq!(rows(&ran)["ready"], true);
    assert_eq!(row(&ran, "claude")["state"], "absent");
    assert_eq!(row(&ran, "claude")["fix"], "npm install -g @anthropic-ai/claude-code@latest");
    assert_eq!(row(&ran, "repository")["state"], "absent");
}

#[test]
fn an_agent_that_a_loop_asks_is_missed() {
    let bare = project(ASKING, &[]);
    bare.run(&["doctor"])
        .code(69)
        .says("needed: the loop `main` may ask an agent")
        .says("the loops here need what does not work: claude");
    // In CI, no agent is asked.
    project(ASKING, &[]).env("CI", "true").run(&["doctor"]).code(0);
    let with = |script: &str| project(ASKING, &[("codex", script)]).run(&["doctor", "--json"]);
    let ran = with("echo codex-cli 99.0.0").code(0);
    assert_eq!(row(&ran, "codex")["needed"], "the loop `main` may ask an agent");
    assert_eq!(row(&ran, "claude")["needed"], Value::Null);
    let ran = with("echo codex-cli 0.1.0").code(69);
    assert!(row(&ran, "codex")["said"].as_str().unwrap().contains("0.1.0 is too old"));
    let ran = with("echo no >&2; exit 3").code(69);
    assert_eq!(row(&ran, "codex")["said"], "exit 3: no");
    let ran =
        project(ASKING, &[]).env("LL_HOST_CLI", "acp:nowhere --acp").run(&["doctor", "--json"]).code(69);
    assert_eq!(row(&ran, "acp:nowhere --acp")["state"], "absent");
    project(ASKING, &[])
        .env("LL_HOST_CLI", "cluade")
        .run(&["doctor"])
        .code(69)
        .says("set it to one of `claude`,");
}

#[test]
fn what_a_program_says_of_itself_is_one_clean_line() {
    let claude = r"printf '\033[31mred\033[0m \033]0;title\007 \342\200\256 x\nsecond\n'; head -c 3000000 /dev/zero | tr '\0' y";
    let project = project(PLAIN, &[("claude", claude)]);
    let ran = project.run(&["doctor", "--color", "always"]).code(0);
    assert!(!ran.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{}", ran.stdout);
    let ran = project.run(&["doctor", "--json"]).code(0);
    let said = row(&ran, "claude")["said"].as_str().unwrap().to_owned();
    assert!(!said.contains('\n') && said.len() < 300, "{said}");
}

#[test]
fn a_program_that_hangs_is_given_up() {
    let hangs = "trap '' TERM; while :; do sleep 1; done";
    let project = project(PLAIN, &[("claude", hangs), ("gemini", hangs), ("docker", "sleep 1000 & wait")]);
    let ran = project.run(&["doctor", "--json"]).code(0);
    for name in ["claude", "gemini", "docker"] {
        assert_eq!(row(&ran, name)["said"], "it did not answer within 10 s");
    }
}

#[test]
fn tokens_are_named_and_never_shown() {
    let project = project(PLAIN, &[("claude", "env; echo $GITHUB_TOKEN")])
        .env("GITHUB_TOKEN", "ghp_0123456789abcdefghij0123456789abcdef")
        .env("ANTHROPIC_API_KEY", "hunter2-hunter2");
    for arguments in [&["doctor"] as &[_], &["doctor", "--json"]] {
        let ran = project.run(arguments).code(0).says("set: GITHUB_TOKEN, ANTHROPIC_API_KEY");
        assert!(!ran.all().contains("ghp_0123") && !ran.all().contains("hunter2"), "{}", ran.all());
    }
}

#[test]
fn a_directory_says_what_is_wrong_with_it() {
    let broken = project("name: main\ninitial: nowhere\nstates: {}\n", &[]);
    broken
        .run(&["doctor"])
        .code(0)
        .says("0 loops, and 1 with errors, such as `main`")
        .says("ll-loop validate");
    let empty = Project::new();
    empty.run(&["doctor"]).says("none here").says("`ll-loop init`");
}

#[test]
fn a_tool_that_a_check_calls_is_missed_with_what_installs_it() {
    let text = PLAIN.replace("'true'", "tflint --recursive");
    let ran = project(&text, &[]).run(&["doctor", "--json"]).code(69);
    let row = row(&ran, "tflint");
    assert_eq!((row["area"].as_str(), row["state"].as_str()), (Some("checks"), Some("absent")), "{row}");
    assert!(row["fix"].as_str().unwrap().starts_with("go install"), "{row}");
}

/// On Gitea the token of a job may not ask who may write, and a comment would be refused when it is too late.
#[test]
fn a_loop_that_asks_people_on_gitea_needs_the_token_of_a_person() {
    const ASKS: &str = "name: main\ninitial: ask\nstates:\n  ask: {action_type: human_approval, action: 'Deploy?', on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    let has_row = |project: &Project| {
        let ran = project.run(&["doctor", "--json"]);
        rows(&ran)["rows"].as_array().unwrap().iter().any(|row| row["name"] == "token for comments")
    };
    assert!(has_row(&project(ASKS, &[]).file(".gitea/workflows/a.yml", "")));
    assert!(has_row(&project(ASKS, &[]).env("GITEA_ACTIONS", "true")));
    assert!(!has_row(&project(ASKS, &[])));
    assert!(!has_row(&project(PLAIN, &[]).file(".gitea/workflows/a.yml", "")));
}
