//! Agents that speak the Agent Client Protocol, played by a program that does what a test says.

use serde_json::{Value, json};

use crate::common::{Project, Ran, signal};
use crate::fake_host;

/// An agent. `scenario.py` may replace each of its answers; what it reads is kept in `heard`.
const AGENT: &str = r#"#!/usr/bin/env python3
import json, os, sys, time

heard = open("heard", "a")

def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()

def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    heard.write(line)
    heard.flush()
    return json.loads(line)

def result(message, **result):
    send({"id": message["id"], "result": result})

def fails(message, code, text, **more):
    send({"id": message["id"], "error": {"code": code, "message": text, **more}})

def update(name, **more):
    send({"method": "session/update", "params": {"sessionId": "s-1", "update": {"sessionUpdate": name, **more}}})

def say(text, **more):
    update("agent_message_chunk", content={"type": "text", "text": text}, **more)

def spent(amount, used=1, currency="USD"):
    update("usage_update", used=used, size=200000, cost={"amount": amount, "currency": currency})

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "auto", "name": "Once, and never ask again", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]

def answer_to(id, method, params):
    send({"id": id, "method": method, "params": params})
    while True:
        message = read()
        if "method" not in message and message["id"] == id:
            return message

def ask(kind, title="rm -rf", id=0, options=OPTIONS, **call):
    call = {"toolCallId": "t-1", "title": title, **({"kind": kind} if kind else {}), **call}
    params = {"sessionId": "s-1", "toolCall": call, "options": options}
    return answer_to(id, "session/request_permission", params)["result"]["outcome"].get("optionId", "cancelled")

def initialize(message):
    result(message, protocolVersion=1, agentCapabilities={"loadSession": True}, agentInfo={"name": "player", "version": "7"},
           authMethods=[{"id": "key", "name": "Use a key"}])

MODES = {"currentModeId": "auto", "availableModes": [{"id": id, "name": id} for id in ["auto", "yolo", "default"]]}

def new(message):
    result(message, sessionId="s-1", modes=MODES)

def load(message):
    result(message, modes=MODES)

def set_mode(message):
    result(message)

def prompt(message):
    say("did it")
    result(message, stopReason="end_turn")

exec(open("scenario.py").read())

on = {"initialize": initialize, "session/new": new, "session/load": load, "session/set_mode": set_mode, "session/prompt": prompt}
while True:
    message = read()
    if message.get("method") in on:
        on[message["method"]](message)
"#;

const LOOP: &str = "name: main
description: an agent
initial: fix
states:
  fix:
    action: '/fix it'
    evaluate: {type: exit_code}
    route: {yes: done, no: bad, error: oops, timeout: late}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure}
  late: {terminal: true, outcome: failure}
  oops: {terminal: true, outcome: failure}
";

/// A project with an agent that plays a scenario.
fn project(text: &str, scenario: &str) -> Project {
    let project = Project::with_loop(text).file("scenario.py", scenario);
    fake_host::program(&project, "bin/player", AGENT);
    fake_host::found(project)
}

/// The loop with more keys in its state.
fn with(keys: &str) -> String {
    LOOP.replace("    route:", &format!("    {keys}\n    route:"))
}

fn run(project: &Project) -> Ran {
    project.run(&["run", "main", "--no-ci", "-v", "--host", "acp:player --acp"])
}

/// Runs a loop and asserts where it ends.
#[track_caller]
fn ends(project: &Project, state: &str) -> Ran {
    let ran = run(project);
    assert_eq!(project.end()["final_state"], state, "{}", ran.all());
    ran
}

/// What was shown and kept of a run.
fn told(project: &Project, ran: &Ran) -> String {
    format!("{}{:?}", ran.all(), complete(project)["error"])
}

/// What the agent read.
fn heard(project: &Project) -> Vec<Value> {
    project.read("heard").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The methods of what the agent read; an answer has none.
fn methods(project: &Project) -> Vec<String> {
    let method = |message: Value| message["method"].as_str().unwrap_or("answer").to_owned();
    heard(project).into_iter().map(method).collect()
}

/// The event of the prompt.
fn complete(project: &Project) -> Value {
    project.events().into_iter().find(|event| event["event"] == "action_complete").unwrap()
}

#[test]
fn a_prompt_is_answered() {
    let project = project(LOOP, "");
    let ran = ends(&project, "done").code(0);
    assert!(ran.stdout.contains("did it"), "{}", ran.all());
    assert_eq!(methods(&project), ["initialize", "session/new", "session/set_mode", "session/prompt"]);
    let heard = heard(&project);
    assert_eq!(heard[0]["params"]["protocolVersion"], 1);
    let offered = &heard[0]["params"]["clientCapabilities"];
    assert_eq!(offered["fs"], json!({"readTextFile": false, "writeTextFile": false}), "{offered}");
    assert_eq!(offered["terminal"], false);
    let root = project.path().canonicalize().unwrap();
    assert_eq!(heard[1]["params"], json!({"cwd": root, "mcpServers": []}));
    assert_eq!(heard[2]["params"], json!({"sessionId": "s-1", "modeId": "default"}));
    assert_eq!(heard[3]["params"]["prompt"], json!([{"type": "text", "text": "/fix it"}]));
    let complete = complete(&project);
    assert_eq!(complete["output_tail"], "did it\n");
    assert_eq!((&complete["usage"]["calls"], &complete["usage"]["session"]), (&json!(1), &json!("s-1")));
}

#[test]
fn the_host_can_come_from_the_environment() {
    let project = project(LOOP, "").env("LL_HOST_CLI", "acp:player 'two words'");
    project.run(&["run", "main", "--no-ci"]).code(0);
    for (host, why) in
        [("acp:", "unknown host `acp:`"), ("acp:play 'er", "unknown host"), ("acp:absent", "no such program")]
    {
        let ran = project.run(&["run", "main", "--no-ci", "--host", host]);
        assert!(ran.all().contains(why) && ran.code != Some(0), "{}", ran.all());
    }
}

/// A loop whose prompt asks for an answer in a form.
const FORM: &str = "name: main
description: an agent
initial: fix
states:
  fix:
    action: '/fix it'
    answer: {type: object, required: [status], properties: {status: {type: string}}}
    evaluate: {type: answer, field: status}
    on_yes: done
    on_no: oops
    on_error: oops
  done: {terminal: true}
  oops: {terminal: true, outcome: failure}
";

#[test]
fn an_answer_in_a_form_is_the_last_message() {
    let good = r#"
def prompt(message):
    say("I look.", messageId="1")
    update("tool_call", toolCallId="t", title="ls", kind="search")
    say('{"status": ', messageId="2")
    say('"done"}', messageId="2")
    result(message, stopReason="end_turn")
"#;
    let project = project(FORM, good);
    ends(&project, "done");
    let asked = heard(&project).pop().unwrap()["params"]["prompt"][0]["text"].as_str().unwrap().to_owned();
    assert!(asked.starts_with("/fix it\n") && asked.contains("\"required\":[\"status\"]"), "{asked}");
    let wrong = good.replace("\"done\"}", "7}");
    let wrong = self::project(FORM, &wrong);
    ends(&wrong, "oops");
}

#[test]
fn a_judge_may_do_nothing() {
    let text = "name: main\ndescription: d\ninitial: look\nstates:\n  look:\n    action: echo fine\n    evaluate: {type: llm_structured, prompt: 'Is it?'}\n    on_yes: done\n    on_no: bad\n    on_error: oops\n  done: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n  oops: {terminal: true, outcome: failure}\n";
    let scenario = r#"
def prompt(message):
    open("chosen", "w").write(ask("read"))
    say(json.dumps({"verdict": "yes", "confidence": 0.9, "reason": "it says so"}))
    result(message, stopReason="end_turn", usage={"totalTokens": 12, "inputTokens": 4, "outputTokens": 3})
"#;
    let project = project(text, scenario);
    ends(&project, "done");
    assert_eq!(project.read("chosen"), "no");
    let judge = project.events().into_iter().find(|event| event["event"] == "judge").unwrap();
    assert_eq!((&judge["usage"]["input_tokens"], &judge["usage"]["output_tokens"]), (&json!(9), &json!(3)));
}

#[test]
fn permissions_are_answered_by_kind_and_by_the_tools_of_the_state() {
    let scenario = r#"
def prompt(message):
    update("tool_call", toolCallId="t-2", title="cat", kind="read")
    odd = [{"optionId": "x", "kind": "maybe"}, {"optionId": "always", "kind": "allow_always"}, {"optionId": "never", "kind": "reject_always"}]
    chosen = [ask("execute"), ask("read", id="a"), ask(None, toolCallId="t-2"), ask(None), ask("edit", options=odd),
              ask("other", _meta={"claudeCode": {"toolName": "Read"}}), ask("read", options=[])]
    open("chosen", "w").write(" ".join(chosen))
    say("did it")
    result(message, stopReason="end_turn")
"#;
    let all = project(LOOP, scenario);
    ends(&all, "done");
    assert_eq!(all.read("chosen"), "once once once once always once cancelled");
    let some = project(&with("tools: [Read, 'Bash(git *)']"), scenario);
    let ran = ends(&some, "oops");
    assert_eq!(some.read("chosen"), "no once once no never once cancelled");
    for part in ["`tools` of `fix` decides", "not allowed: rm -rf", "was not allowed to do all"] {
        assert!(told(&some, &ran).contains(part), "{}", ran.all());
    }
}

#[test]
fn requests_of_its_own_are_not_known_here() {
    let scenario = r#"
def prompt(message):
    for method in ["_x", "craft/ask", "fs/read_text_file", "terminal/create"]:
        # The id is that of our own request, which is not answered by this.
        error = answer_to(message["id"], method, {})["error"]
        assert error["code"] == -32601, error
    for id in [None, 1.5, "x", -3]:
        assert answer_to(id, "_x", None)["error"]["code"] == -32601
    assert answer_to(0, "session/request_permission", {"toolCall": 7})["error"]["code"] == -32602
    say("did it")
    result(message, stopReason="end_turn")
"#;
    ends(&project(LOOP, scenario), "done");
}

#[test]
fn odd_updates_are_skipped_and_may_follow_the_answer() {
    let scenario = r#"
def prompt(message):
    print("this is no JSON")
    print("[1, 2]")
    print('{"jsonrpc": "2.0", "id": 99, "result": {"stopReason": "refusal"}}')
    sys.stderr.write("a complaint\n")
    update("_dance", steps=3)
    update("agent_message_chunk", content=7)
    update("usage_update", used=-1, size="much", cost=[])
    send({"method": "session/update", "params": 5})
    send({"method": "_note"})
    say("did ")
    result(message, stopReason="end_turn")
    say("it late")
    spent(0.25)
"#;
    let project = project(LOOP, scenario);
    let ran = ends(&project, "done");
    assert_eq!(complete(&project)["usage"]["cost_usd"], 0.25);
    for part in ["a complaint", "this is no JSON", "it late"] {
        assert!(ran.all().contains(part), "{part}: {}", ran.all());
    }
}

#[test]
fn what_a_session_has_cost_is_counted_once() {
    let scenario = r#"
def prompt(message):
    say("did it")
    spent(0.10, used=90000)
    spent(0.10, used=90000)
    spent(0.25, used=90000)
    spent(99, currency="EUR")
    result(message, stopReason="end_turn", usage={"totalTokens": 150, "inputTokens": 20, "outputTokens": 30, "cachedReadTokens": 100})
"#;
    let project = project(LOOP, scenario);
    project
        .run(&["run", "main", "--no-ci", "--host", "acp:player", "--max-tokens", "1000", "--max-cost", "1"])
        .code(0);
    let usage = complete(&project)["usage"].clone();
    assert_eq!(
        (&usage["cost_usd"], &usage["input_tokens"], &usage["output_tokens"]),
        (&json!(0.25), &json!(120), &json!(30))
    );
}

/// Two prompts of one conversation.
const TALK: &str = "name: main
description: an agent
initial: one
states:
  one: {action: '/one', session: it, evaluate: {type: exit_code}, on_yes: two, on_no: oops}
  two: {action: '/two', session: it, evaluate: {type: exit_code}, on_yes: done, on_no: oops}
  done: {terminal: true}
  oops: {terminal: true, outcome: failure}
";

#[test]
fn a_conversation_goes_on_where_the_agent_can() {
    let goes_on = r#"
def load(message):
    say("what was said before")
    spent(0.50)
    result(message, modes=MODES)
def prompt(message):
    text = message["params"]["prompt"][0]["text"]
    say("did " + text)
    spent(0.50 if text == "/one" else 0.75)
    result(message, stopReason="end_turn")
"#;
    let project = project(TALK, goes_on);
    ends(&project, "done");
    let costs: Vec<_> = project
        .events()
        .into_iter()
        .filter(|event| event["event"] == "action_complete")
        .map(|event| (event["usage"]["cost_usd"].clone(), event["output_tail"].clone()))
        .collect();
    assert_eq!(costs, [(json!(0.5), json!("did /one\n")), (json!(0.25), json!("did /two\n"))]);
    assert!(methods(&project).contains(&"session/load".to_owned()));
    let gone = self::project(TALK, "def load(message):\n    fails(message, -32002, 'no such session')\n");
    assert!(ends(&gone, "done").all().contains("a new one begins"));
    let cannot = self::project(TALK, "def initialize(message):\n    result(message, protocolVersion=1)\n");
    ends(&cannot, "done");
    assert!(!methods(&cannot).contains(&"session/load".to_owned()));
}

#[test]
fn who_is_not_set_up_is_unavailable() {
    for (scenario, why) in [
        (
            "def new(message):\n    fails(message, -32000, 'no key')\n",
            "player 7 is not logged in: no key; log in",
        ),
        ("def prompt(message):\n    fails(message, -32000, 'no key')\n", "its ways to log in: `Use a key`"),
        (
            "def prompt(message):\n    fails(message, 401, 'wrong key')\n",
            "`session/prompt` failed: wrong key (401)",
        ),
        ("def prompt(message):\n    fails(message, 529, 'overloaded')\n", "tried 4 times"),
        (
            "def initialize(message):\n    result(message, protocolVersion=2)\n",
            "speaks version 2 of the Agent Client Protocol, and ll-loop speaks version 1",
        ),
        (
            "def initialize(message):\n    print('usage: player')\n    sys.exit(1)\n",
            "it printed: usage: player",
        ),
    ] {
        let project = project(LOOP, scenario);
        let ran = run(&project).code(69);
        assert!(ran.all().contains(why), "{}", ran.all());
    }
}

#[test]
fn any_other_end_is_an_error_with_its_reason() {
    for (scenario, why) in [
        (
            "def prompt(message):\n    fails(message, -32603, 'Internal error', data={'details': 'quota met'})\n",
            "`session/prompt` failed: Internal error: quota met (-32603)",
        ),
        (
            "def set_mode(message):\n    fails(message, -32602, 'no such mode')\n",
            "`session/set_mode` failed: no such mode (-32602)",
        ),
        ("def new(message):\n    result(message)\n", "has no `sessionId`"),
        ("def prompt(message):\n    result(message, stopReason='end_turn')\n", "its result is empty"),
        (
            "def prompt(message):\n    say('half')\n    result(message, stopReason='refusal')\n",
            "it refused to go on",
        ),
        (
            "def prompt(message):\n    say('half')\n    result(message, stopReason='max_tokens')\n",
            "its own limit of tokens",
        ),
        (
            "def prompt(message):\n    say('half')\n    result(message, stopReason='bored')\n",
            "for a reason that ll-loop does not know",
        ),
        (
            "def prompt(message):\n    say('half')\n    result(message, stopReason='cancelled')\n",
            "was cancelled",
        ),
        (
            "def prompt(message):\n    say('half')\n    os._exit(0)\n",
            "it ended before it answered `session/prompt` (exit 0)",
        ),
        (
            "def prompt(message):\n    sys.stdout.write('{\"jsonrpc\": \"2.0\", \"id\"')\n    sys.stdout.flush()\n    os._exit(3)\n",
            "(exit 3)",
        ),
    ] {
        let project = project(LOOP, scenario);
        let ran = ends(&project, "oops");
        assert!(told(&project, &ran).contains(why), "{why}: {}", complete(&project));
    }
}

/// An agent that works until it is told to stop, and then asks once more.
const WORKS: &str = r#"
def prompt(message):
    say("working\n")
    open("working", "w").write("x")
    while read().get("method") != "session/cancel":
        pass
    open("chosen", "w").write(ask("edit"))
    say("stopped")
    spent(0.5)
    result(message, stopReason="cancelled")
"#;

#[test]
fn an_agent_is_told_when_its_time_is_over() {
    for keys in ["timeout: 2s", "idle_timeout: 2s"] {
        let project = project(&with(keys), WORKS);
        ends(&project, "late");
        assert_eq!(project.read("chosen"), "cancelled");
        let complete = complete(&project);
        assert_eq!((&complete["exit_code"], &complete["timed_out"]), (&json!(124), &json!(true)));
        assert_eq!(complete["usage"]["cost_usd"], 0.5);
    }
}

#[test]
fn an_agent_is_told_when_the_run_is_ended() {
    let project = project(LOOP, WORKS);
    let child = project.start_until(&["run", "main", "--no-ci", "--host", "acp:player"], "working");
    signal(&child, rustix::process::Signal::TERM);
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(143), "{}", ran.all());
    assert_eq!(project.end()["outcome"], "interrupted");
    assert_eq!(project.read("chosen"), "cancelled");
}

#[test]
fn an_agent_is_told_when_its_budget_is_spent() {
    let scenario = "def prompt(message):\n    spent(3)\n    while read().get('method') != 'session/cancel':\n        pass\n    open('chosen', 'w').write('told')\n    result(message, stopReason='cancelled')\n";
    let project = project(LOOP, scenario);
    let ran = project.run(&["run", "main", "--no-ci", "--host", "acp:player", "--max-cost", "2"]).code(6);
    assert_eq!(project.read("chosen"), "told", "{}", ran.all());
}

#[test]
fn an_agent_that_does_not_listen_is_ended() {
    for scenario in [
        // It never answers.
        "def initialize(message):\n    time.sleep(60)\n",
        "def prompt(message):\n    time.sleep(60)\n",
        // It asks without end, and reads no answer.
        "def prompt(message):\n    while True:\n        send({'id': 7, 'method': '_x', 'params': 'x' * 1000})\n",
        // It asks without end, and reads every answer.
        "def prompt(message):\n    while True:\n        ask('edit')\n",
    ] {
        let project = project(&with("timeout: 1s"), scenario);
        ends(&project, "late");
    }
}

#[test]
fn much_is_no_harm() {
    let scenario = r#"
def prompt(message):
    assert len(message["params"]["prompt"][0]["text"]) > 200000
    say("x" * 10000000 + "\n")
    print("y" * 10000000)
    print('{"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "refusal", "x": "' + "z" * 20000000 + '"}}')
    say("the end")
    result(message, stopReason="end_turn")
"#;
    let project =
        project(&LOOP.replace("'/fix it'", &format!("'/fix {}'", "word ".repeat(40_000))), scenario);
    ends(&project, "done");
    assert!(complete(&project)["output_tail"].as_str().unwrap().ends_with("the end\n"));
}
