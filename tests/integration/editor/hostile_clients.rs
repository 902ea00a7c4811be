//! Clients that keep to nothing, and buffers that nobody would write.

use serde_json::{Value, json};

use super::client::{Client, uri};
use crate::common::Project;

const LOOP: &str =
    "name: main\ninitial: a\nstates:\n  a: {action: make, on_yes: b, on_no: b}\n  b: {terminal: true}\n";

#[test]
fn the_order_of_the_protocol_is_kept() {
    let project = Project::with_loop(LOOP);
    let mut client = Client::silent(&project);
    assert_eq!(client.answer("textDocument/hover", &json!({}))["error"]["code"], -32002);
    client.ask("initialize", &json!({"processId": null, "capabilities": {}}));
    assert_eq!(client.answer("initialize", &json!({}))["error"]["code"], -32600);
    assert_eq!(client.answer("textDocument/nonsense", &json!({}))["error"]["code"], -32601);
    assert_eq!(client.answer("textDocument/diagnostic", &json!({"x": 1}))["error"]["code"], -32602);
    client.say("$/unknown", &json!([1]));
    client.say("textDocument/didChange", &json!({"contentChanges": "none"}));
    client.change(&project.at("never-opened.yaml"), 7, &json!([{"text": ""}]));
    client.raw(b"Content-Length: 4\r\n\r\n{{{{");
    client.ask("shutdown", &Value::Null);
    assert_eq!(client.answer("textDocument/hover", &json!({}))["error"]["code"], -32600);
    client.say("exit", &Value::Null);
    assert_eq!(client.hang_up(), Some(0));
    let vanished = Client::open_in(&project, &json!({}));
    assert_eq!(vanished.hang_up(), Some(1));
}

#[test]
fn a_request_that_was_taken_back_has_an_answer_all_the_same() {
    let project = Project::with_loop(LOOP);
    let mut client = Client::open_in(&project, &json!({}));
    let params = json!({"textDocument": {"uri": uri(&project.at(".loops/main.yaml"))}});
    let first = client.begin("textDocument/diagnostic", &params);
    client.say("$/cancelRequest", &json!({"id": first}));
    client.say("$/cancelRequest", &json!({"id": 4711}));
    let answer = client.answer_to(first);
    // It depends on how fast the server was.
    assert!(answer["error"]["code"] == -32800 || answer["result"]["kind"] == "full", "{answer}");
    client.leave();
}

/// Ten times ten times ten … of a word.
fn laughs() -> String {
    let more = (1..10).map(|level| {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("a{level}: &a{level} [{before}]\n")
    });
    format!("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n{}", more.collect::<String>())
}

/// A message says how long it is, and a server that believes it ends for want of memory.
#[test]
fn no_room_is_made_for_what_does_not_come() {
    let project = Project::with_loop(LOOP);
    let mut client = Client::open_in(&project, &json!({}));
    client.raw(b"Content-Length: 99999999999999\r\n\r\n{}");
    assert_eq!(client.hang_up(), Some(1));
    let mut client = Client::open_in(&project, &json!({}));
    client.raw(b"Content-Length: 5000\r\n\r\n{");
    assert_eq!(client.hang_up(), Some(1));
    let mut client = Client::open_in(&project, &json!({}));
    client.raw(b"Content-Length: -1\r\n\r\n");
    client.raw(&vec![b'x'; 20_000]);
    client.raw(b"\r\n\r\n");
    client.ask("shutdown", &Value::Null);
    client.say("exit", &Value::Null);
    assert_eq!(client.hang_up(), Some(0));
}

#[test]
fn a_line_of_a_thousand_templates_is_answered() {
    let text = LOOP.replace("make", &format!("'{}'", "x🐎${captured.y} ".repeat(1000)));
    let project = Project::with_loop(&text);
    let file = project.at(".loops/main.yaml");
    let mut client = Client::open_in(&project, &json!({}));
    client.open(&file, &text);
    let params = json!({"textDocument": {"uri": uri(&file)}});
    let colours = client.ask("textDocument/semanticTokens/full", &params);
    assert!(colours["data"].as_array().unwrap().len() >= 5 * 4 * 1000, "{}", text.len());
    client.published_with(&file, "template-injection");
    client.leave();
}

/// Files that lead elsewhere, or nowhere, or to no end.
#[test]
fn what_a_link_leads_to_is_read_once_and_nothing_is_waited_for() {
    let project = Project::with_loop(LOOP);
    for (to, name) in [("main.yaml", "alias"), ("self.yaml", "self"), ("/dev/zero", "zero"), ("../..", "up")]
    {
        std::os::unix::fs::symlink(to, project.at(&format!(".loops/{name}.yaml"))).unwrap();
    }
    std::os::unix::fs::symlink(project.path(), project.at(".loops/again")).unwrap();
    let mut client = Client::open_in(&project, &json!({}));
    let alias = project.at(".loops/alias.yaml");
    client.open(&alias, &LOOP.replace("initial: a", "initial: c"));
    client.published_with(&alias, "unknown-state");
    client.ask("shutdown", &Value::Null);
    // What comes behind it is not looked at, and ends nothing.
    client.change(&alias, 2, &json!([{"text": "name: ["}]));
    client.say("exit", &Value::Null);
    assert_eq!(client.hang_up(), Some(0));
}

#[test]
fn no_buffer_ends_the_server() {
    let project = Project::with_loop(LOOP);
    let file = project.at(".loops/main.yaml");
    let mut client = Client::open_in(&project, &json!({}));
    client.published(&file);
    client.open(&file, LOOP);
    client.published(&file);
    let large = format!("{LOOP}# {}\n", "x".repeat(10_000_000));
    let buffers = [
        (large, "unreadable"),
        (format!("a: {}", "[".repeat(500_000)), "yaml-limit"),
        ("- ".repeat(400_000), "yaml-limit"),
        (format!("{LOOP}\u{0}"), "yaml-character"),
        (laughs(), "yaml-limit"),
        (LOOP.replace("\ninitial", "\n\tinitial"), "yaml-syntax"),
        (format!("{LOOP}# \u{1b}[31m\u{7}"), "yaml-character"),
        ("a: &a [*a]".to_owned(), "yaml-alias"),
        ("\r\r\r\n\n: : :".to_owned(), "unknown-key"),
    ];
    for (version, (text, expected)) in buffers.into_iter().enumerate() {
        client.change(&file, i32::try_from(version).unwrap() + 2, &json!([{"text": text}]));
        client.published_with(&file, expected);
    }
    let far = json!({"line": u32::MAX, "character": u32::MAX});
    let backwards = json!({"start": far, "end": {"line": 0, "character": 0}});
    client.change(
        &file,
        99,
        &json!([{"text": LOOP.replace('\n', "\r\n")}, {"range": backwards, "text": "# 🐎"}]),
    );
    client.published_only(&file, &["no-description", "untested", "unverified-success"]);
    client.leave();
}
