//! Agents and models: what a run does with what they say, and with what goes wrong.

mod accounts;
mod acp;
mod asked;
mod broker;
mod caps;
mod criteria;
mod guidance;
mod hooks;
mod hosts;
mod mcp;
mod teamwork;

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Project, Ran};
use crate::fake_host::{self, calls, prints};

const LOOP: &str = "name: main
description: an agent
initial: fix
states:
  fix: {action: '/fix it', on_yes: done, on_no: bad, on_error: oops}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure}
  oops: {terminal: true, outcome: failure}
";

/// A project with a loop and a host that answers so.
fn project(text: &str, answers: &[String]) -> Project {
    fake_host::project(&["claude"], text, answers)
}

fn result(more: &Value) -> Value {
    let mut result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "did it"});
    result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    result
}

/// A prompt that was done, at a price.
fn done() -> String {
    let usage = json!({"total_cost_usd": 0.5, "usage": {"input_tokens": 100, "output_tokens": 20}});
    prints(&[
        json!({"type": "system", "subtype": "init", "session_id": "s-1", "model": "large"}),
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "working on it"}]}}),
        result(&usage),
    ])
}

/// The answer of a judge.
fn judged(verdict: &str) -> String {
    let answer = json!({"verdict": verdict, "confidence": 0.9, "reason": "it says so"});
    prints(&[result(&json!({"structured_output": answer, "total_cost_usd": 0.25}))])
}

fn run(project: &Project) -> Ran {
    project.run(&["run", "main", "--no-ci"])
}

#[test]
fn an_agent_works_and_a_model_judges() {
    let project = project(LOOP, &[done(), judged("yes")]);
    let ran = project.run(&["run", "main", "--no-ci", "--report-dir", "report"]).code(0);
    assert_eq!(project.end()["final_state"], "done", "{}", ran.all());
    let summary = project.read("report/summary.md");
    assert!(summary.contains("2 model calls, 120 tokens, $0.75"), "{summary}");
    assert!(project.read("report/outputs.env").contains("\ncost-usd=0.7500\n"));
    let argv = "-p --output-format stream-json --verbose --setting-sources user --strict-mcp-config \
                --dangerously-skip-permissions --permission-prompts none ";
    assert_eq!(project.read("calls/1.argv").replace('\n', " "), argv);
    assert_eq!(project.read("calls/1.stdin"), "/fix it");
    assert!(project.read("calls/1.env").contains("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR=1\n"));
    let question = project.read("calls/2.argv") + &project.read("calls/2.stdin");
    for part in [
        "--tools\n\n--json-schema",
        "--no-session-persistence",
        "<action_output>\nworking on it",
        "exited with code 0",
    ] {
        assert!(question.contains(part), "{question}");
    }
    let events = project.events();
    let of = |name: &str| events.iter().find(|event| event["event"] == name).unwrap().clone();
    assert_eq!(of("loop_start")["llm"], "on");
    assert_eq!(of("action_start")["kind"], "prompt");
    let usage = json!({"calls": 1, "input_tokens": 100, "output_tokens": 20, "cost_usd": 0.5, "model": "large", "session": "s-1"});
    assert_eq!(of("action_complete")["usage"], usage);
    assert_eq!(of("judge")["usage"]["cost_usd"], 0.25);
    assert_eq!(of("evaluate")["details"]["reason"], "it says so");
    assert_eq!(project.state()["budget"]["cost_usd"], 0.75);
}

/// A loop whose prompt asks for an answer in a form.
const FORMED: &str = "name: main
description: an answer in a form
initial: work
states:
  work:
    action: do it
    action_type: prompt
    answer: {type: object, required: [status], properties: {status: {type: string}, files: {type: array}}}
    model: large
    fallback_model: small
    on_yes: tell
    on_no: bad
    on_error: $current
    max_retries: 2
    retry_delay: 10ms
    evaluate: {type: answer, field: status}
    on_retry_exhausted: oops
  tell: {action: 'echo ${captured.work.json.files.0:shell} > told', next: done}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure}
  oops: {terminal: true, outcome: failure}
";

/// A prompt that was answered in a form.
fn formed(answer: &Value) -> String {
    let says =
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "working on it"}]}});
    prints(&[says, result(&json!({"structured_output": answer}))])
}

#[test]
fn an_answer_in_a_form_reaches_the_next_state() {
    let project = project(FORMED, &[formed(&json!({"status": "done", "files": ["a b.rs"]}))]);
    let ran = project.run(&["run", "main", "--no-ci", "-v", "--record", "recorded"]).code(0);
    assert_eq!(project.end()["final_state"], "done", "{}", ran.all());
    assert!(ran.stdout.contains("working on it"), "{}", ran.all());
    assert_eq!((project.read("told").as_str(), calls(&project)), ("a b.rs\n", 1));
    assert_eq!(project.read("calls/1.stdin"), "do it");
    let argv = project.read("calls/1.argv");
    assert!(argv.contains("\n--json-schema\n{\"type\":\"object\","), "{argv}");
    assert!(argv.contains("}\n--model\nlarge\n--fallback-model\nsmall\n"), "{argv}");
    let events = project.events();
    let evaluate = events.iter().find(|event| event["event"] == "evaluate").unwrap();
    assert_eq!((&evaluate["type"], &evaluate["details"]["answer"]), (&json!("answer"), &json!("done")));
    let _ran = project.run(&["run", "main", "--no-ci", "--replay", "recorded"]).code(0);
    assert_eq!(calls(&project), 1);
    let recorded = fs::read_dir(project.at("recorded")).unwrap().next().unwrap().unwrap().path();
    let recorded: Value = serde_json::from_str(&fs::read_to_string(recorded).unwrap()).unwrap();
    assert_eq!(recorded["request"]["answer"]["required"], json!(["status"]));
    assert_eq!(recorded["request"]["fallback_model"], "small");
}

#[test]
fn an_answer_that_is_none_is_asked_for_again_and_of_the_other_model() {
    let good = formed(&json!({"status": "done", "files": ["a"]}));
    for (answers, end, count) in [
        (vec![done()], "oops", 3),
        (vec![formed(&json!({"files": []}))], "oops", 3),
        (vec!["exit 3".to_owned()], "oops", 3),
        (vec![done(), good.clone()], "done", 2),
        (vec![format!("{good}exit 1"), good], "done", 2),
        (vec![formed(&json!({"status": "failed"}))], "bad", 1),
    ] {
        let project = project(FORMED, &answers);
        let ran = run(&project).code(i32::from(end != "done"));
        assert_eq!(
            (project.end()["final_state"].as_str(), calls(&project)),
            (Some(end), count),
            "{}",
            ran.all()
        );
        let waits = project.events().into_iter().filter(|event| event["event"] == "backoff");
        let waits: Vec<_> = waits.map(|event| event["duration_ms"].as_u64().unwrap()).collect();
        assert_eq!(waits, [10, 20][..count - 1]);
        if count > 1 {
            let argv = project.read("calls/2.argv");
            assert!(argv.contains("\n--model\nsmall\n") && !argv.contains("--fallback-model"), "{argv}");
        }
    }
    let project = project(FORMED, &[done()]);
    let _ran = run(&project).code(1);
    let events = project.events();
    let evaluate = events.iter().find(|event| event["event"] == "evaluate").unwrap();
    assert_eq!(evaluate["details"]["error"], "the answer is not JSON: did it");
}

#[test]
fn prompts_of_one_session_continue_each_other_until_one_fails() {
    let text = "name: main
description: prompts of one conversation
initial: a
states:
  a: {action: one, action_type: prompt, session: task, next: b}
  b: {action: two, action_type: prompt, session: task, next: c, on_error: c}
  c: {action: three, action_type: prompt, session: 'ta${context.rest}', next: d}
  d: {action: four, action_type: prompt, session: other, next: done}
  done: {terminal: true}
context: {rest: sk}
";
    for (second, third) in [(done(), Some("s-1")), ("exit 3".to_owned(), None)] {
        let project = project(text, &[done(), second, done()]);
        let ran = run(&project).code(0);
        assert_eq!(calls(&project), 4, "{}", ran.all());
        for (call, resumed) in [(1, None), (2, Some("s-1")), (3, third), (4, None)] {
            let argv = project.read(&format!("calls/{call}.argv"));
            let given =
                argv.split_once("\n--resume\n").map(|(_, rest)| rest.lines().next().unwrap_or_default());
            assert_eq!(given, resumed, "{call}: {argv}");
        }
    }
}

#[test]
fn what_an_agent_says_is_shown_as_it_comes() {
    let project = project(LOOP, &[done(), judged("yes")]);
    let ran = project.run(&["run", "main", "--no-ci", "-v"]).code(0);
    assert!(ran.stdout.contains("working on it"), "{}", ran.all());
    assert!(!ran.stdout.contains("\"type\""), "{}", ran.all());
}

#[test]
fn a_long_prompt_goes_through_standard_input() {
    let text = LOOP.replace("/fix it", "/fix ${context.input}").replace("on_yes: done", "next: done");
    let project = project(&text, &[done()]);
    let long = "x".repeat(101_000);
    let _ran = project.run(&["run", "main", "--no-ci", &long]).code(0);
    assert_eq!(project.read("calls/1.stdin"), format!("/fix {long}"));
    assert!(!project.read("calls/1.argv").contains("xxx"));
}

#[test]
fn the_first_run_says_once_that_agents_ask_nobody() {
    let project = project(LOOP, &[done(), judged("yes")]);
    let said = |ran: &Ran| ran.stderr.contains("without asking for permission");
    assert!(said(&run(&project).code(0)));
    assert!(!said(&run(&project)));
    // Who agreed to that did not agree to this.
    project.write(".loops/main.yaml", &LOOP.replace("/fix it", "/fix everything"));
    assert!(said(&run(&project)));
    assert!(!said(&run(&project)));
    // Nor to a loop of the same name and content in another repository.
    project.write("other/.git/HEAD", "ref: refs/heads/main\n");
    project.write("other/.loops/main.yaml", LOOP);
    let elsewhere =
        || Ran::of(&project.command(&["run", "main"]).current_dir(project.at("other")).output().unwrap());
    assert!(said(&elsewhere()));
    assert!(!said(&elsewhere()));
}

/// What a host can do wrong, none of which is a success, hangs or goes without a reason.
#[test]
fn a_broken_host_is_never_a_success() {
    let bad = [
        ("exit 0", "without a result"),
        ("exit 3", "exit 3"),
        ("echo garbage", "claude 9.9 (fake)"),
        ("printf '{\"type\": \"result\", \"sub'", "claude 9.9 (fake)"),
        ("kill -9 $$", "without a result (exit 137)"),
        ("head -c 100000000 /dev/zero | tr '\\0' x; exit 4", "exit 4"),
        ("yes '{\"type\": \"assistant\"}' | head -c 20000000; exit 4", "exit 4"),
        ("head -c 100000000 /dev/zero | tr '\\0' x >&2; exit 4", "exit 4"),
        ("yes complaint | head -c 20000000 >&2; kill -TERM $$", "exit 143"),
        (&format!("{}exit 1", prints(&[result(&json!({}))])), "exited with 1, after a good result"),
        (&prints(&[result(&json!({"is_error": true, "result": "boom"}))]), "boom"),
        (&prints(&[result(&json!({"result": ""}))]), "its result is empty"),
        (
            &prints(&[result(&json!({"permission_denials": [{"tool_name": "Bash"}]}))]),
            "permission to use Bash",
        ),
        (&prints(&[json!({"kind": "finished", "ok": true})]), "claude 9.9 (fake)"),
    ];
    for (answer, why) in bad {
        let project = project(LOOP, &[(*answer).to_owned(), judged("yes")]);
        let ran = run(&project).code(1);
        assert_eq!(project.end()["final_state"], "oops", "{answer}: {}", ran.all());
        let events = project.events();
        let complete = events.iter().find(|event| event["event"] == "action_complete").unwrap();
        assert!(complete["error"].as_str().unwrap_or_default().contains(why), "{answer}: {complete}");
        assert!(calls(&project) == 1, "nobody is asked about a prompt that failed");
    }
}

#[test]
fn a_host_that_hangs_after_its_result_is_done() {
    let project = project(LOOP, &[format!("{}exec sleep 60", done()), judged("yes")]);
    let _ran = run(&project).code(0);
    assert!(project.end()["duration_ms"].as_u64().unwrap() < 30_000);
}

#[test]
fn a_host_that_hangs_runs_into_its_timeout() {
    let text = LOOP.replace("action: '/fix it'", "action: '/fix it', timeout: 500ms, on_timeout: bad");
    let project = project(&text, &["sleep 60".to_owned()]);
    let _ran = run(&project).code(1);
    assert_eq!(project.end()["final_state"], "bad");
}

#[test]
fn a_judge_that_says_nothing_useful_is_an_error() {
    for (answer, why) in [
        ("exit 0".to_owned(), "without a result (exit 0)"),
        ("echo nonsense".to_owned(), "not a stream of JSON lines"),
        ("echo '{}'; exit 7".to_owned(), "no text"),
        (prints(&[result(&json!({"result": "perhaps"}))]), "perhaps"),
        (judged("sideways"), "does not fit"),
    ] {
        let project = project(LOOP, &[done(), answer]);
        let ran = run(&project).code(1);
        assert_eq!(project.end()["final_state"], "oops", "{}", ran.all());
        let events = project.events();
        let evaluate = events.iter().find(|event| event["event"] == "evaluate").unwrap();
        assert!(evaluate["details"]["error"].as_str().unwrap().contains(why), "{evaluate}");
    }
}

#[test]
fn a_service_that_is_overloaded_is_tried_again() {
    let busy = prints(&[result(&json!({"is_error": true, "api_error_status": 529}))]) + "exit 1";
    let project = project(LOOP, &[busy.clone(), busy.clone(), done(), judged("yes")]);
    let _ran = run(&project).code(0);
    assert_eq!(calls(&project), 4);
    let down = self::project(LOOP, &[busy]);
    let ran = run(&down).code(69);
    assert_eq!(calls(&down), 4, "{}", ran.all());
    assert!(ran.stdout.contains("tried 4 times"), "{}", ran.all());
}

#[test]
fn a_host_that_is_not_set_up_ends_the_run_as_unavailable() {
    let failed = json!({"type": "assistant", "error": "authentication_failed", "message": {"content": []}});
    let answer = prints(&[failed, result(&json!({"is_error": true, "result": "Invalid API key"}))]);
    let project = project(LOOP, &[answer]);
    let ran = run(&project).code(69);
    assert!(ran.stdout.contains("Invalid API key"), "{}", ran.all());
    let missing = Project::with_loop(&LOOP.replace(", on_error: oops", ""));
    let ran = run(&missing).code(69);
    assert!(ran.stdout.contains("no agent on PATH"), "{}", ran.all());
    let routed = Project::with_loop(LOOP);
    let ran = run(&routed).code(1);
    assert!(ran.stdout.contains("no agent on PATH"), "{}", ran.all());
    assert_eq!(routed.end()["final_state"], "oops");
}

#[test]
fn a_quota_that_comes_back_too_late_saves_the_run() {
    let met = json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 4_000_000_000_i64}});
    let failed = json!({"type": "assistant", "error": "rate_limit", "message": {"content": []}});
    let answer = prints(&[met, failed, result(&json!({"is_error": true, "result": "limit"}))]);
    let project = project(LOOP, &[answer]);
    let ran = run(&project).code(75);
    let events = project.events();
    let handoff = events.iter().find(|event| event["event"] == "handoff").unwrap();
    assert_eq!(handoff["reason"], "quota", "{}", ran.all());
}

#[test]
fn no_agent_is_asked_in_ci_and_the_run_says_so_first() {
    let text = LOOP.replace(", on_error: oops", "");
    let project = project(&text, &[done(), judged("yes")]);
    let ran = project.run(&["run", "main", "--ci=plain"]).code(75);
    assert!(ran.stderr.contains("`fix` needs an agent, and none may be asked here"), "{}", ran.all());
    assert_eq!(calls(&project), 0);
    let events = project.events();
    let handoff = events.iter().find(|event| event["event"] == "handoff").unwrap();
    assert_eq!((&handoff["reason"], &handoff["state"]), (&json!("llm_disabled"), &json!("fix")));
    assert_eq!(project.state()["status"], "awaiting_continuation");
    let allowed = self::project(&text, &[done(), judged("yes")]);
    let _ran = allowed.run(&["run", "main", "--ci=plain", "--llm", "--max-llm-calls", "9"]).code(0);
    assert_eq!(calls(&allowed), 2);
}

#[test]
fn no_llm_takes_the_routes_of_the_state_first() {
    for (routes, end) in [("on_blocked: bad, on_error: oops", "bad"), ("on_error: oops", "oops")] {
        let text = LOOP.replace("on_error: oops", routes);
        let project = project(&text, &[done()]);
        let _ran = project.run(&["run", "main", "--no-ci", "--no-llm"]).code(1);
        assert_eq!(project.end()["final_state"], end);
        let events = project.events();
        let evaluate = events.iter().find(|event| event["event"] == "evaluate").unwrap();
        assert_eq!(
            (&evaluate["verdict"], &evaluate["details"]["reason"]),
            (&json!("blocked"), &json!("llm_disabled"))
        );
        assert_eq!(calls(&project), 0);
    }
}

#[test]
fn a_loop_that_forbids_models_cannot_be_overruled() {
    let project = project(&format!("llm: {{enabled: false}}\n{LOOP}"), &[done(), judged("yes")]);
    let _ran = project.run(&["run", "main", "--no-ci", "--llm"]).code(1);
    assert_eq!((calls(&project), &project.end()["final_state"]), (0, &json!("oops")));
}

#[test]
fn a_budget_stops_before_the_call_that_would_not_fit() {
    let text = LOOP.replace("on_no: bad", "on_no: fix");
    let project = project(&text, &[done(), judged("no"), done(), judged("no"), done()]);
    let ran = project.run(&["run", "main", "--no-ci", "--max-cost", "1.80"]).code(6);
    assert!(
        ran.stdout.contains("stopped at $1.50 of $1.80, because a call took up to $0.50"),
        "{}",
        ran.all()
    );
    assert_eq!(project.end()["outcome"], "over_budget");
    let few = self::project(&text, &[done(), judged("no")]);
    let ran = few.run(&["run", "main", "--no-ci", "--max-llm-calls", "1"]).code(6);
    assert!(ran.stdout.contains("stopped at 1 of 1 model calls"), "{}", ran.all());
}

#[test]
fn a_call_that_goes_over_the_budget_is_stopped_while_it_runs() {
    let message = json!({"type": "assistant", "message": {"usage": {"input_tokens": 900, "output_tokens": 200}, "content": []}});
    let answer = format!("touch wrote-this\n{}exec sleep 60", prints(&[message]));
    let project = project(LOOP, &[answer]);
    let ran = project.run(&["run", "main", "--no-ci", "--max-tokens", "1000"]).code(6);
    assert!(ran.stdout.contains("budget"), "{}", ran.all());
    assert!(project.end()["duration_ms"].as_u64().unwrap() < 30_000);
    assert!(project.exists("wrote-this"), "the work is kept");
}

#[test]
fn a_signal_is_obeyed_in_what_an_agent_says() {
    let says = json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "enough\nCONTEXT_HANDOFF: item 7"}]}});
    let project = project(LOOP, &[prints(&[says, result(&json!({}))])]);
    let _ran = run(&project).code(75);
    assert_eq!(project.state()["continuation_prompt"], "item 7");
}

#[test]
fn a_new_session_is_started_once_and_told_how_to_go_on() {
    let text = "name: main\ndescription: d\ninitial: work\non_handoff: spawn\nstates:\n  work: {action: \"echo 'CONTEXT_HANDOFF: item 7'\", next: done}\n  done: {terminal: true}\n";
    let project = project(text, &["exit 0".to_owned()]);
    let _ran = run(&project).code(75);
    crate::common::wait_for(|| project.exists("calls/1.stdin") && !project.read("calls/1.stdin").is_empty());
    let told = project.read("calls/1.stdin");
    let expected = "Continue loop execution. Run: ll-loop resume main-";
    assert!(told.contains(expected) && told.contains("item 7"), "{told}");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(calls(&project), 1);
    let in_ci = self::project(text, &["exit 0".to_owned()]);
    let ran = in_ci.run(&["run", "main", "--ci=plain"]).code(75);
    assert!(ran.stderr.contains("pauses in CI"), "{}", ran.all());
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(calls(&in_ci), 0);
}

/// A loop with two prompts that change files, in a repository.
const TWO_PROMPTS: &str = "name: main
description: two prompts
initial: draft
on_change: report
states:
  draft: {action: '/draft the notes', next: review}
  review: {action: '/review the notes', on_yes: done, on_no: draft}
  done: {terminal: true}
";

fn git(project: &Project, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let output =
        std::process::Command::new("git").args(identity).args(arguments).current_dir(project.path()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// The tree of everything but what runs write.
fn tree(project: &Project) -> String {
    git(project, &["add", "-A", "--", ".", ":!recorded"]);
    git(project, &["write-tree"])
}

fn way(project: &Project) -> Vec<(Value, Value, Value)> {
    let routes = project.events().into_iter().filter(|event| event["event"] == "route");
    routes.map(|event| (event["from"].clone(), event["verdict"].clone(), event["to"].clone())).collect()
}

/// A repository with the loop, and only with that.
fn repository(answers: &[String]) -> Project {
    let project = project(TWO_PROMPTS, answers);
    project.write(".gitignore", "/calls\n/answers\n/bin\n/.local\n");
    project.write("notes.md", "nothing yet\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "begin"]);
    project
}

fn recorded() -> Project {
    let drafts = format!("echo draft > notes.md; printf '\\0\\1binary' > picture.bin\n{}", done());
    let rewrites = format!("echo final > notes.md; chmod +x notes.md; rm picture.bin\n{}", done());
    let answers = [drafts, done(), judged("no"), rewrites, done(), judged("yes")];
    let project = repository(&answers);
    let _ran = project.run(&["run", "main", "--no-ci", "--record", "recorded"]).code(0);
    assert_eq!(calls(&project), 6);
    project
}

/// A fresh clone of the same commit with the recording, and with no host on PATH.
fn replayed(from: &Project) -> Project {
    let clone = repository(&[]);
    fs::remove_file(clone.at("bin/claude")).unwrap();
    let copy = std::process::Command::new("cp")
        .arg("-r")
        .arg(from.at("recorded"))
        .arg(clone.at("recorded"))
        .status();
    assert!(copy.unwrap().success());
    clone
}

#[test]
fn a_recorded_run_is_replayed_without_a_host() {
    let project = recorded();
    let clone = replayed(&project);
    let ran = clone.run(&["run", "main", "--ci=plain", "--replay", "recorded"]).code(0);
    assert_eq!(way(&clone), way(&project), "{}", ran.all());
    assert_eq!(tree(&clone), tree(&project));
    assert_eq!(clone.read("notes.md"), "final\n");
    assert_eq!(clone.state()["budget"], project.state()["budget"]);
    assert_eq!(clone.events()[0]["llm"], "replay");
}

#[test]
fn a_resumed_run_adds_to_what_it_recorded_before() {
    let text = "name: main
description: the same prompt twice
initial: first
states:
  first: {action: '/draft the notes', next: wait}
  wait: {action: 'test -e .git/later || { touch .git/later; kill -9 $PPID; sleep 9; }', next: again}
  again: {action: '/draft the notes', next: done}
  done: {terminal: true}
";
    let project = project(text, &[done(), done()]);
    project.write(".gitignore", "/calls\n/answers\n/bin\n/.local\n/recorded\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "begin"]);
    let answers = || {
        let files = fs::read_dir(project.at("recorded")).unwrap().map(|file| file.unwrap().path());
        let files: Vec<Value> =
            files.map(|file| serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0]["answers"].as_array().unwrap().len()
    };
    drop(project.run(&["run", "main", "--no-ci", "--record", "recorded"]));
    assert_eq!(answers(), 1);
    project.run(&["resume", "main", "--no-ci", "--record", "recorded"]).code(0);
    assert_eq!((calls(&project), answers()), (2, 2));
    let _ran = project.run(&["run", "main", "--no-ci", "--replay", "recorded"]).code(0);
    assert_eq!(calls(&project), 2);
}

#[test]
fn a_recording_can_be_a_part_of_the_repository() {
    let clone = replayed(&recorded());
    git(&clone, &["add", "-A"]);
    git(&clone, &["commit", "-q", "-m", "answers"]);
    let _ran = clone.run(&["run", "main", "--ci=plain", "--replay", "recorded"]).code(0);
    assert_eq!(git(&clone, &["status", "--porcelain", "recorded"]), "");
}

#[test]
fn a_recording_in_an_ignored_directory_has_the_changes() {
    let ignored = "/calls\n/answers\n/bin\n/.local\n/target\n";
    let prepared = |answers: &[String]| {
        let project = repository(answers);
        project.write(".gitignore", ignored);
        git(&project, &["commit", "-q", "-a", "-m", "ignore"]);
        project
    };
    let project = prepared(&[format!("echo draft > notes.md\n{}", done()), done(), judged("yes")]);
    let record = ["run", "main", "--no-ci", "--record", "target/recorded"];
    let _ran = project.run(&record).code(0);
    let clone = prepared(&[]);
    fs::remove_file(clone.at("bin/claude")).unwrap();
    fs::create_dir(clone.at("target")).unwrap();
    fs::rename(project.at("target/recorded"), clone.at("target/recorded")).unwrap();
    let ran = clone.run(&["run", "main", "--ci=plain", "--replay", "target/recorded"]).code(0);
    assert_eq!(clone.read("notes.md"), "draft\n", "{}", ran.all());
}

#[test]
fn an_answer_that_cannot_be_recorded_ends_the_run() {
    // The agent takes the directory of the recording away.
    let answer = format!("rm -r recorded; touch recorded\n{}", done());
    let project = repository(&[answer, done(), judged("yes")]);
    let ran = project.run(&["run", "main", "--no-ci", "--record", "recorded"]).code(4);
    assert!(ran.stdout.contains("the answer was not recorded"), "{}", ran.all());
    let end = project.end();
    assert_eq!((&end["outcome"], &end["final_state"]), (&json!("error"), &json!("draft")));
    assert!(end["reason"].as_str().unwrap().contains("not recorded"), "{end}");
    assert_eq!(project.state()["budget"]["calls"], 1, "what was spent counts");
    assert_eq!(calls(&project), 1);
    // No route of the loop makes it go on.
    let text = LOOP.replace("fix it', on_yes", "fix it', next").replace(", on_no: bad", "");
    let project = self::project(&text, &[format!("rm -r recorded; touch recorded\n{}", done())]);
    let _ran = project.run(&["run", "main", "--no-ci", "--record", "recorded"]).code(4);
    // Nor does the answer of a judge get lost.
    let project =
        self::project(LOOP, &[done(), format!("rm -r recorded; touch recorded\n{}", judged("yes"))]);
    let ran = project.run(&["run", "main", "--no-ci", "--record", "recorded"]).code(4);
    assert!(ran.stdout.contains("the answer was not recorded"), "{}", ran.all());
}

#[test]
fn nobody_is_asked_while_the_working_tree_cannot_be_recorded() {
    let project = repository(&[done()]);
    project.write(".git/index", "no index");
    let ran = project.run(&["run", "main", "--no-ci", "--record", "recorded"]).code(4);
    assert!(ran.stdout.contains("cannot be recorded"), "{}", ran.all());
    assert_eq!(calls(&project), 0);
}

#[test]
fn what_was_not_recorded_is_not_answered() {
    let project = recorded();
    let changed = replayed(&project);
    changed.write(".loops/main.yaml", &TWO_PROMPTS.replace("/draft the notes", "/draft other notes"));
    let ran = changed.run(&["run", "main", "--no-ci", "-v", "--replay", "recorded"]).code(69);
    for part in
        ["no recorded answer", "- recorded prompt: /draft the notes", "+ asked    prompt: /draft other notes"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.all());
    }
    let other_files = replayed(&project);
    other_files.write("more.txt", "more\n");
    let ran = other_files.run(&["run", "main", "--no-ci", "-v", "--replay", "recorded"]).code(69);
    assert!(ran.stdout.contains("the files in the scope are not what they were"), "{}", ran.all());
    let ran = other_files.run(&["run", "main", "--no-ci", "--replay", "nowhere"]).code(2);
    assert!(ran.stderr.contains("cannot use the recording"), "{}", ran.all());
}

#[test]
fn a_recording_leaves_the_repository_as_it_is() {
    let project = recorded();
    let status = git(&project, &["status", "--porcelain"]);
    assert_eq!(status.lines().collect::<Vec<_>>(), [" M notes.md", "?? recorded/"], "{status}");
    let untouched = repository(&[]);
    assert_eq!(git(&project, &["count-objects"]), git(&untouched, &["count-objects"]));
}

#[test]
fn a_trusted_job_goes_on_where_no_agent_could_be_asked() {
    let text = LOOP.replace(", on_error: oops", "");
    let project = project(&text, &[done(), judged("yes")]);
    let _ran = project.run(&["run", "main", "--ci=plain"]).code(75);
    let again = project.run(&["resume", "main", "--ci=plain"]).code(75);
    assert_eq!(calls(&project), 0, "{}", again.all());
    let ran = project.run(&["resume", "main", "--ci=plain", "--llm", "--max-llm-calls", "9"]).code(0);
    assert_eq!((calls(&project), &project.end()["steps"]), (2, &json!(1)), "{}", ran.all());
}

#[test]
fn a_fresh_session_is_told_what_the_last_one_left_to_say() {
    let says = json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "CONTEXT_HANDOFF: item 7"}]}});
    let hands_off = prints(&[says, result(&json!({}))]);
    for (action, prompt) in [
        ("'/fix it'", "/fix it\n\nitem 7"),
        ("fix it, action_type: prompt", "item 7\n\nfix it"),
        ("'fix from ${loop.continuation:-the start}', action_type: prompt", "fix from item 7"),
    ] {
        let text = LOOP.replace("'/fix it'", action);
        let project = project(&text, &[hands_off.clone(), done(), judged("yes")]);
        let _ran = run(&project).code(75);
        let ran = project.run(&["resume", "main", "--no-ci"]).code(0);
        assert!(ran.stderr.contains("item 7"), "{}", ran.all());
        assert_eq!(project.read("calls/2.stdin"), prompt);
    }
}

#[test]
fn a_budget_counts_over_resumes() {
    let text = LOOP.replace("on_no: bad", "on_no: fix");
    let project = project(&text, &[done(), judged("no")]);
    let ran = project.run(&["run", "main", "--no-ci", "--max-llm-calls", "3"]).code(6);
    assert_eq!(calls(&project), 3, "{}", ran.all());
    let ran = project.run(&["resume", "main", "--no-ci"]).code(6);
    assert_eq!(calls(&project), 3, "{}", ran.all());
    let ran = project.run(&["resume", "main", "--no-ci", "--max-llm-calls", "5"]).code(6);
    assert_eq!(calls(&project), 5, "{}", ran.all());
    assert!(ran.stdout.contains("stopped at 5 of 5 model calls"), "{}", ran.all());
}

#[test]
fn agents_of_inner_loops_are_known_before_the_run() {
    let outer = "name: main\ndescription: d\ninitial: work\nstates:\n  work: {loop: kid, on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    let kid = LOOP.replace("name: main", "name: kid").replace(", on_error: oops", "");
    let project = project(outer, &[done(), judged("yes")]).file(".loops/kid.yaml", &kid);
    let ran = project.run(&["run", "main", "--ci=plain"]).code(75);
    assert!(ran.stderr.contains("`fix` of the loop `kid` needs an agent"), "{}", ran.all());
    let ran = project.run(&["resume", "main", "--ci=plain", "--llm", "--max-llm-calls", "9"]).code(0);
    assert_eq!(calls(&project), 2, "{}", ran.all());
}
