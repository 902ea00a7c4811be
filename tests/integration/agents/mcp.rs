//! Calls of MCP tools against a server of the official SDK, on its standard input and output.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::common::Project;

/// The server. `cargo test` builds it with everything else; who runs only these tests gets it here.
fn server() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let profile = Path::new(env!("CARGO_BIN_EXE_ll-loop")).parent().unwrap();
        let server = profile.join("examples/mcp-server");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mcp_server.rs");
        if !is_newer(&server, &source) {
            build_server(profile);
        }
        server
    });
    built.clone()
}

fn is_newer(file: &Path, than: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified());
    changed(file).is_ok_and(|time| time > changed(than).unwrap())
}

#[expect(clippy::disallowed_methods, reason = "what has to be taken out has no fixed names")]
fn build_server(profile: &Path) {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--locked", "--quiet", "--example", "mcp-server", "--target-dir"]);
    build.arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
    match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") => {}
        Some(other) => drop(build.args(["--profile", other])),
        None => unreachable!("a program is in a directory"),
    }
    // What cargo tells a test of its package would go on to the build scripts, and some of them run again wherever it is not
    // what it was: half of all crates are compiled once more then, here and by the next command.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            build.env_remove(name);
        }
    }
    assert!(build.status().unwrap().success());
}

fn project(action: &str, more: &str) -> Project {
    let text = format!(
        "name: main\ndescription: d\ninitial: call\ncontext: {{n: 5}}\nstates:\n  call:\n    action: {action}\n    action_type: mcp_tool\n{more}    route: {{success: done, tool_error: bad, not_found: gone, timeout: late, error: oops}}\n  done: {{terminal: true}}\n  bad: {{terminal: true}}\n  gone: {{terminal: true}}\n  late: {{terminal: true}}\n  oops: {{terminal: true}}\n"
    );
    let servers = json!({"mcpServers": {
        "local": {"command": server(), "env": {"GREETING": "${WHO:-nobody}"}},
        "absent": {"command": "no-such-server"},
        "mute": {"command": "sleep", "args": ["60"]},
        "garbage": {"command": "echo", "args": ["this is no JSON"]},
        "remote": {"type": "http", "url": "https://example.org"},
    }});
    Project::with_loop(&text).file(".mcp.json", &servers.to_string())
}

#[track_caller]
fn ends(project: &Project, state: &str) -> Value {
    let ran = project.run(&["run", "main", "--no-ci"]);
    assert_eq!(project.end()["final_state"], state, "{}", ran.all());
    project.events().into_iter().find(|event| event["event"] == "action_complete").unwrap()
}

#[test]
fn a_tool_answers_with_its_envelope() {
    let params =
        "    params: {text: \"n is ${context.n}\", list: [1, {deep: \"${context.n}\"}], flag: true}\n";
    let project = project("local/echo", params);
    let complete = ends(&project, "done");
    let envelope: Value = serde_json::from_str(complete["output_tail"].as_str().unwrap()).unwrap();
    let said: Value = serde_json::from_str(envelope["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(said, json!({"text": "n is 5", "list": [1, {"deep": "5"}], "flag": true}));
    assert_eq!((&envelope["isError"], &complete["exit_code"]), (&json!(false), &json!(0)));
    let events = project.events();
    let start = events.iter().find(|event| event["event"] == "action_start").unwrap();
    assert_eq!(start["kind"], "mcp");
}

#[test]
fn what_goes_wrong_has_a_verdict_and_a_reason() {
    for (action, state, why) in [
        ("local/fail", "bad", "it broke"),
        ("local/refuse", "bad", "refused"),
        ("local/crash", "bad", "exit status: 3"),
        ("local/ecko", "gone", "did you mean `echo`?"),
        ("locall/echo", "gone", "did you mean `local`?"),
        ("garbage/echo", "bad", "no conversation with the server"),
        ("absent/echo", "oops", "no such program on PATH"),
        ("remote/echo", "oops", "is not started by a `command`"),
    ] {
        let complete = ends(&project(action, ""), state);
        assert!(complete.to_string().contains(why), "{action}: {complete}");
    }
    let none = project("local/echo", "");
    std::fs::remove_file(none.at(".mcp.json")).unwrap();
    assert!(ends(&none, "gone").to_string().contains("there is no .mcp.json"));
}

#[test]
fn a_tool_that_takes_too_long_is_ended_with_its_server() {
    for (action, more) in [
        ("local/slow", "    timeout: 1s\n"),
        ("local/slow", "    idle_timeout: 1s\n"),
        ("mute/echo", "    timeout: 500ms\n"),
    ] {
        let project = project(action, more);
        let complete = ends(&project, "late");
        assert_eq!((&complete["exit_code"], &complete["timed_out"]), (&json!(124), &json!(true)));
        if let Ok(pid) = std::fs::read_to_string(project.at("server.pid")) {
            assert!(!Path::new("/proc").join(pid.trim()).exists(), "the server is still there");
        }
    }
}

#[test]
fn a_call_is_ended_when_the_run_is() {
    let project = project("local/slow", "");
    let child = project.start_until(&["run", "main", "--no-ci"], "server.pid");
    crate::common::signal(&child, rustix::process::Signal::TERM);
    let ran = crate::common::Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(143), "{}", ran.all());
    assert_eq!(project.end()["outcome"], "interrupted");
}

#[test]
fn what_a_server_complains_about_is_shown() {
    let project = project("local/noise", "");
    let ran = project.run(&["run", "main", "--no-ci", "-v"]).code(0);
    assert!(ran.stdout.contains("a complaint"), "{}", ran.all());
}

#[test]
fn a_closing_action_with_a_wrong_name_is_a_warning() {
    let text = "name: main
description: d
initial: check
context: {tool: nowhere}
states:
  check: {action: 'true', on_yes: done, on_no: done}
  done: {terminal: true, action_type: mcp_tool, action: '${context.tool}'}
";
    let project = Project::with_loop(text);
    let ran = project.run(&["run", "main"]).code(0);
    let _ran = ran.says("the closing action was not run: `nowhere` is not SERVER/TOOL");
}
