//! The hosts beside Claude Code, each played by a program that prints what its documentation says.

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

const VERDICT: &str = r#"{"verdict": "yes", "confidence": 0.9, "reason": "it says so"}"#;

/// A host, how it is called, and what it prints.
struct Cli {
    name: &'static str,
    prompt: &'static str,
    judge: &'static str,
    model: &'static str,
    /// What it prints when the agent said a text.
    says: fn(&str) -> Vec<Value>,
    /// What it prints when the call failed.
    failed: fn() -> Vec<Value>,
}

const ALL: [Cli; 3] = [
    Cli {
        name: "codex",
        prompt: "exec --json --skip-git-repo-check --ignore-user-config --ignore-rules -c project_doc_max_bytes=0 -c features.plugins=false -s workspace-write -c sandbox_workspace_write.network_access=true -",
        judge: "exec --json --skip-git-repo-check --ignore-user-config --ignore-rules -c project_doc_max_bytes=0 -c features.plugins=false -s read-only --ephemeral -",
        model: "",
        says: |text| {
            vec![
                json!({"type": "thread.started", "thread_id": "s-1"}),
                json!({"type": "turn.started"}),
                json!({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": text}}),
                json!({"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 10, "output_tokens": 20}}),
            ]
        },
        failed: || {
            vec![
                json!({"type": "thread.started", "thread_id": "s-1"}),
                json!({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "half"}}),
                json!({"type": "turn.failed", "error": {"message": "boom"}}),
            ]
        },
    },
    Cli {
        name: "gemini",
        prompt: "--output-format stream-json --skip-trust --allowed-mcp-server-names none --approval-mode yolo",
        judge: "--output-format stream-json --skip-trust --allowed-mcp-server-names none --policy FILE",
        model: "large",
        says: |text| {
            let (start, end) = text.split_at(text.len() / 2);
            let piece =
                |text: &str| json!({"type": "message", "role": "assistant", "content": text, "delta": true});
            let stats = json!({"total_tokens": 120, "input_tokens": 100, "output_tokens": 20});
            vec![
                json!({"type": "init", "session_id": "s-1", "model": "large"}),
                json!({"type": "message", "role": "user", "content": "a prompt"}),
                piece(start),
                piece(end),
                json!({"type": "result", "status": "success", "stats": stats}),
            ]
        },
        failed: || {
            vec![
                json!({"type": "init", "session_id": "s-1", "model": "large"}),
                json!({"type": "message", "role": "assistant", "content": "half", "delta": true}),
                json!({"type": "result", "status": "error", "error": {"type": "Error", "message": "boom"}}),
            ]
        },
    },
    Cli {
        name: "qwen",
        prompt: "--output-format stream-json --include-partial-messages --bare --yolo",
        judge: "--output-format stream-json --include-partial-messages --bare --chat-recording=false --exclude-tools agent,edit,notebook_edit,run_shell_command,skill,write_file --json-schema",
        model: "large",
        says: |text| {
            let usage = json!({"input_tokens": 100, "output_tokens": 20});
            vec![
                json!({"type": "system", "subtype": "session_start", "session_id": "s-1", "model": "large"}),
                json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}),
                json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "usage": usage}),
            ]
        },
        failed: || {
            vec![
                json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "half"}]}}),
                json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "error": {"message": "boom"}}),
            ]
        },
    },
];

impl Cli {
    fn project(&self, text: &str, answers: &[String]) -> Project {
        fake_host::project(&[self.name], text, answers)
    }

    /// A prompt that was done, and the judge that liked it.
    fn good(&self) -> [String; 2] {
        [prints(&(self.says)("working on it")), prints(&(self.says)(VERDICT))]
    }
}

fn run(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&["run", "main", "--no-ci"], more].concat())
}

#[test]
fn every_host_works_and_judges() {
    for cli in ALL {
        let project = cli.project(LOOP, &cli.good());
        let ran = run(&project, &["-v"]).code(0);
        assert!(ran.stdout.contains("working on it"), "{}", ran.all());
        assert_eq!(project.end()["final_state"], "done", "{}", ran.all());
        let argv = |call: &str| {
            let argv = project.read(&format!("calls/{call}.argv"));
            let shown =
                argv.lines().map(|argument| if argument.starts_with('/') { "FILE" } else { argument });
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(argv("1"), cli.prompt);
        assert!(argv("2").starts_with(cli.judge), "{}", argv("2"));
        assert_eq!(project.read("calls/1.stdin"), "/fix it");
        let question = project.read("calls/2.stdin");
        let asked = question + &argv("2");
        for part in ["<action_output>\nworking on it\n", "exited with code 0", r#""required":["verdict""#] {
            assert!(asked.contains(part), "{asked}");
        }
        let events = project.events();
        let of = |name: &str| events.iter().find(|event| event["event"] == name).unwrap().clone();
        let mut usage = json!({"calls": 1, "input_tokens": 100, "output_tokens": 20, "session": "s-1"});
        if !cli.model.is_empty() {
            usage["model"] = cli.model.into();
        }
        assert_eq!(of("action_complete")["usage"], usage, "{}", cli.name);
        assert_eq!(of("judge")["usage"]["calls"], 1);
        assert_eq!(of("evaluate")["details"]["reason"], "it says so");
    }
}

/// What every host can do wrong, none of which is a success, hangs or goes without a reason.
#[test]
fn a_broken_host_is_never_a_success() {
    for cli in ALL {
        let good = prints(&(cli.says)("done"));
        let version = format!("{} 9.9 (fake)", cli.name);
        let unfinished = prints(&(cli.says)("done")[..2]);
        let bad = [
            ("exit 0".to_owned(), version.as_str()),
            ("exit 3".to_owned(), "without a result (exit 3)"),
            ("echo garbage".to_owned(), version.as_str()),
            ("echo oops >&2; exit 1".to_owned(), "without a result (exit 1)"),
            (format!("{unfinished}printf '{{\"type\": \"turn.comp'"), version.as_str()),
            (format!("{unfinished}kill -9 $$"), "without a result (exit 137)"),
            (format!("{good}exit 1"), "exited with 1, after a good result"),
            (format!("{}exit 1", prints(&(cli.failed)())), "it failed: boom"),
            (prints(&(cli.failed)()), "it failed: boom"),
            (prints(&(cli.says)("")), "its result is empty"),
            (prints(&[json!({"kind": "finished", "ok": true})]), version.as_str()),
        ];
        for (answer, why) in bad {
            let project = cli.project(LOOP, &[answer.clone(), prints(&(cli.says)(VERDICT))]);
            let ran = run(&project, &[]).code(1);
            assert_eq!(project.end()["final_state"], "oops", "{answer}: {}", ran.all());
            let events = project.events();
            let complete = events.iter().find(|event| event["event"] == "action_complete").unwrap();
            let error = complete["error"].as_str().unwrap_or_default();
            assert!(error.contains(why) && error.starts_with(cli.name), "{answer}: {complete}");
            assert_eq!(calls(&project), 1, "nobody is asked about a prompt that failed");
        }
    }
}

#[test]
fn a_judge_that_says_nothing_useful_is_an_error() {
    for cli in ALL {
        for (answer, why) in [
            ("exit 0".to_owned(), "without a result"),
            (prints(&(cli.failed)()), "boom"),
            (prints(&(cli.says)("perhaps")), "not a JSON object: perhaps"),
            (prints(&(cli.says)("{\"verdict\": \"sideways\"}")), "does not fit"),
        ] {
            let project = cli.project(LOOP, &[prints(&(cli.says)("done")), answer]);
            let ran = run(&project, &[]).code(1);
            assert_eq!(project.end()["final_state"], "oops", "{}", ran.all());
            let events = project.events();
            let evaluate = events.iter().find(|event| event["event"] == "evaluate").unwrap();
            assert!(evaluate["details"]["error"].as_str().unwrap().contains(why), "{evaluate}");
        }
    }
}

#[test]
fn a_host_that_is_not_set_up_ends_the_run_as_unavailable() {
    for cli in &ALL[1..] {
        let project = cli.project(LOOP, &["echo 'no account' >&2; exit 41".to_owned()]);
        let ran = run(&project, &[]).code(69);
        assert!(ran.stdout.contains("(exit 41)"), "{}", ran.all());
    }
}

#[test]
fn a_long_prompt_arrives_whole() {
    let text = LOOP.replace("/fix it", "/fix ${context.input}").replace("on_yes: done", "next: done");
    let long = "x".repeat(101_000);
    for cli in ALL {
        let project = cli.project(&text, &cli.good());
        let _ran = run(&project, &[&long]).code(0);
        assert_eq!(project.read("calls/1.stdin"), format!("/fix {long}"));
    }
}

#[test]
fn a_host_may_answer_without_reading_its_prompt() {
    let text = LOOP.replace("/fix it", "/fix ${context.input}").replace("on_yes: done", "next: done");
    for cli in ALL {
        let project = cli.project(&text, &[]);
        project.write(&format!("bin/{}", cli.name), &format!("#!/bin/bash\nexec <&-\n{}", cli.good()[0]));
        let _ran = run(&project, &[&"x".repeat(101_000)]).code(0);
    }
}

#[test]
fn the_first_host_on_path_is_taken_unless_one_is_named() {
    let codex = &ALL[0];
    let with = |hosts: &[&str]| fake_host::project(hosts, LOOP, &codex.good());
    let taken = |project: &Project| project.read("calls/1.host").trim_end().to_owned();
    for (hosts, first) in
        [(&["qwen", "gemini"][..], "gemini"), (&["qwen", "codex", "gemini"], "codex"), (&["qwen"], "qwen")]
    {
        let project = with(hosts);
        let _ran = run(&project, &[]);
        assert_eq!(taken(&project), first);
    }
    let all = ["claude", "codex", "gemini", "qwen"];
    let project = with(&all);
    let _ran = run(&project, &["--host", "codex"]).code(0);
    assert_eq!(taken(&project), "codex");
    let project = with(&all).env("LL_HOST_CLI", "codex");
    let _ran = run(&project, &[]).code(0);
    assert_eq!(taken(&project), "codex");
    let project = with(&all).env("LL_HOST_CLI", "gemini");
    let _ran = run(&project, &["--host", "codex"]).code(0);
    assert_eq!(taken(&project), "codex");
    // The order of the hosts counts, not that of the directories.
    let project = with(&["qwen"]);
    fake_host::install(&project, "later", "codex");
    let path = format!("{}:{}:/usr/bin:/bin", project.at("bin").display(), project.at("later").display());
    let project = project.env("PATH", path);
    let _ran = run(&project, &[]).code(0);
    assert_eq!(taken(&project), "codex");
}

#[test]
fn a_host_that_is_unknown_or_missing_is_said_to_be() {
    let project = fake_host::project(&["claude"], &LOOP.replace(", on_error: oops", ""), &[]);
    let ran = run(&project, &["--host", "copilot"]).code(2);
    assert!(ran.stderr.contains("`copilot`"), "{}", ran.all());
    assert!(ran.stderr.contains("claude, codex, gemini, qwen"), "{}", ran.all());
    assert!(project.run_files(".events.jsonl").is_empty());
    let project = project.env("LL_HOST_CLI", "copilot");
    let _ran = run(&project, &[]).code(2);
    let ran = run(&project, &["--host", "codex"]).code(69);
    assert!(ran.stdout.contains("codex"), "{}", ran.all());
    assert_eq!(calls(&project), 0);
}

#[test]
fn a_cap_on_cost_needs_a_host_that_names_its_price() {
    for cli in ALL {
        let project = cli.project(LOOP, &cli.good());
        let ran = run(&project, &["--max-cost", "3"]).code(2);
        let why = format!("`{}` does not say what a call costs", cli.name);
        assert!(ran.stderr.contains(&why) && ran.stderr.contains("unpriced: allow"), "{}", ran.all());
        assert!(calls(&project) == 0 && project.run_files(".events.jsonl").is_empty());
        let _ran = run(&project, &["--max-tokens", "1000"]).code(0);
        let capped = format!("budget: {{cost_usd: 3}}\n{LOOP}");
        let project = cli.project(&capped, &cli.good());
        let _ran = run(&project, &[]).code(2);
        let project = cli.project(&capped.replace("3}", "3, unpriced: allow}"), &cli.good());
        let _ran = run(&project, &[]).code(0);
        assert_eq!(calls(&project), 2);
    }
}

#[test]
fn what_a_host_cannot_be_told_is_said_first() {
    let asks = "action: '/fix it', agent: fixer, model: small";
    let text = format!("llm: {{max_tokens: 9}}\n{}", LOOP.replace("action: '/fix it'", asks));
    let about = |ran: &Ran| ran.stderr.lines().filter(|line| line.contains("does not support")).count();
    for cli in ALL {
        let project = cli.project(&text, &cli.good());
        let ran = run(&project, &[]).code(0);
        let of = |keys: &str, place: &str| {
            let line = format!("`{}` does not support {keys}; what `{place}` says", cli.name);
            assert!(ran.stderr.contains(&line), "{}", ran.all());
        };
        of("`agent`", "fix");
        of("`max_tokens`", "llm");
        assert!(project.read("calls/1.argv").contains("--model\nsmall\n"));
        let plain = cli.project(LOOP, &cli.good());
        assert_eq!(about(&run(&plain, &[]).code(0)), 0);
        assert_eq!(about(&run(&project, &["--no-llm"]).code(1)), 0);
    }
    let claude = fake_host::project(&["claude"], &text, &["exit 1".to_owned()]);
    assert_eq!(about(&run(&claude, &[])), 0);
}

#[test]
fn many_states_that_ask_for_too_much_share_a_warning() {
    let asks = |count: usize| {
        let state = |index: usize| {
            let key = if index == 0 { "fallback_model: small, agent: x" } else { "agent: x" };
            let next = if index + 1 == count { "done".to_owned() } else { format!("s{}", index + 1) };
            format!("  s{index}: {{action: go, action_type: prompt, {key}, next: {next}}}\n")
        };
        let states: Vec<_> = (0..count).map(state).collect();
        let states = states.concat();
        format!("name: main\ndescription: d\ninitial: s0\nstates:\n  done: {{terminal: true}}\n{states}")
    };
    let warned = |cli: &Cli, count: usize| {
        let project = cli.project(&asks(count), &cli.good());
        let ran = run(&project, &[]).code(0);
        let lines = ran.stderr.lines().filter(|line| line.contains("does not support"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    // The third one takes a second model.
    for cli in &ALL[..2] {
        let few = warned(cli, 3);
        assert!(
            few[0].ends_with(
                "does not support `agent` and `fallback_model`; what `s0` says there has no effect"
            )
        );
        assert!(few.len() == 3 && few[2].contains("support `agent`; what `s2` says"), "{few:?}");
        let many = warned(cli, 4);
        let expected = "does not support `agent` and `fallback_model`; what `s0`, `s1`, `s2` and `s3` say there has no effect";
        assert!(many.len() == 1 && many[0].ends_with(expected), "{many:?}");
    }
}

#[test]
fn every_host_answers_in_a_form() {
    let form = "answer: {type: object, required: [status]}";
    let text = LOOP.replace("action: '/fix it'", &format!("action: '/fix it', {form}"));
    for cli in ALL {
        let project = cli.project(&text, &[prints(&(cli.says)("{\"status\": \"fixed\"}"))]);
        let ran = run(&project, &[]).code(0);
        assert_eq!(
            (project.end()["final_state"].as_str(), calls(&project)),
            (Some("done"), 1),
            "{}",
            ran.all()
        );
        let asked = project.read("calls/1.stdin");
        assert!(asked.starts_with("/fix it"), "{asked}");
        let asked = asked + &project.read("calls/1.argv");
        assert!(asked.contains(r#""required":["status"]"#), "{asked}");
        let prose = cli.project(&text, &[prints(&(cli.says)("I fixed it."))]);
        let _ran = run(&prose, &[]).code(1);
        assert_eq!(prose.end()["final_state"], "oops");
    }
}

#[test]
fn an_agent_that_may_do_more_than_the_loop_says_is_not_asked() {
    let text = LOOP.replace("action: '/fix it'", "action: '/fix it', tools: [Read]");
    for cli in ALL {
        let project = cli.project(&text, &cli.good());
        let ran = run(&project, &[]).code(2);
        assert!(ran.stderr.contains("`fix` narrows the `tools`"), "{}", ran.all());
        assert_eq!(calls(&project), 0);
        let _ran = run(&project, &["--no-llm"]).code(1);
    }
}

/// Hooks and servers of a checkout ran before the first call of the model, with the key in their environment.
#[test]
fn settings_of_the_repository_count_where_a_loop_says_so_and_nobody_else_set_it_off() {
    let text = format!("host_settings: project\n{LOOP}");
    for cli in ALL {
        let project = cli.project(&text, &cli.good());
        let ran = run(&project, &[]).code(0);
        assert!(ran.stderr.contains("`host_settings: project`"), "{}", ran.all());
        let argv = project.read("calls/1.argv") + &project.read("calls/1.env");
        for shelter in
            ["--bare", "--ignore-user-config", "--allowed-mcp-server-names", "TRUST_WORKSPACE=false"]
        {
            assert!(!argv.contains(shelter), "{argv}");
        }
        let open = cli.project(&text, &cli.good()).env("GITHUB_EVENT_NAME", "pull_request");
        let ran = run(&open, &[]).code(2);
        assert!(ran.stderr.contains("strangers can set off the event `pull_request`"), "{}", ran.all());
        assert_eq!(calls(&open), 0);
        let _ran = run(&open, &["--no-llm"]).code(1);
        let plain = cli.project(LOOP, &cli.good()).env("GITHUB_EVENT_NAME", "pull_request");
        if cli.name == "gemini" {
            let _ran = run(&plain, &[])
                .code(2)
                .says("cannot be told to leave the `.env` files of the checkout alone");
            assert_eq!(calls(&plain), 0);
            continue;
        }
        let ran = run(&plain, &[]).code(0);
        assert!(!ran.stderr.contains("host_settings"), "{}", ran.all());
    }
    let claude =
        fake_host::project(&["claude"], &LOOP.replace("on_yes: done", "next: done"), &["exit 1".to_owned()]);
    let _ran = run(&claude, &[]);
    let argv = claude.read("calls/1.argv");
    assert!(argv.contains("--setting-sources\nuser\n--strict-mcp-config\n"), "{argv}");
}

/// A host that answers `--version` in its own way.
fn of_version(cli: &Cli, said: &str) -> Project {
    let project = cli.project(LOOP, &cli.good());
    let host = project.read(&format!("bin/{}", cli.name)).replace("9.9 (fake)", said);
    project.write(&format!("bin/{}", cli.name), &host);
    project
}

#[test]
fn a_version_that_is_too_old_is_not_asked() {
    for (cli, old, new) in [
        (&ALL[0], "codex-cli 0.100.0", "codex-cli 0.200.1"),
        (&ALL[1], "0.60.9", "1.0.0"),
        (&ALL[2], "0.15.9", "0.24.4"),
    ] {
        let project = of_version(cli, old);
        let ran = run(&project, &[]).code(69);
        assert!(ran.stdout.contains("is too old") && ran.stdout.contains("npm install -g"), "{}", ran.all());
        assert_eq!(calls(&project), 0);
        for fine in [new, "", "no version at all"] {
            let _ran = run(&of_version(cli, fine), &[]).code(0);
        }
    }
}

#[test]
fn a_version_is_asked_for_once_and_outside_of_the_checkout() {
    let project = ALL[2].project(LOOP, &ALL[2].good());
    let script = project.read("bin/qwen");
    let asked = project.at("asked");
    let note = format!("#!/bin/bash\n[ \"$1\" = --version ] && pwd >> {}\n", asked.display());
    project.write("bin/qwen", &script.replace("#!/bin/bash\n", &note));
    let _ran = run(&project, &[]).code(0);
    let asked = project.read("asked");
    assert_eq!(asked.lines().count(), 1, "{asked}");
    assert!(!std::path::Path::new(asked.trim()).starts_with(project.at("")), "{asked}");
}

#[test]
fn a_host_that_has_no_account_is_not_asked() {
    let codex = &ALL[0];
    let project = codex.project(LOOP, &codex.good());
    let host = project.read("bin/codex");
    let denied = host.replace("&& exit 0\nn=", "&& { echo 'Not logged in' >&2; exit 1; }\nn=");
    assert_ne!(host, denied);
    project.write("bin/codex", &denied);
    let ran = run(&project, &[]).code(69);
    assert!(ran.stdout.contains("`codex login`"), "{}", ran.all());
    assert_eq!(calls(&project), 0);
    let _ran = run(&project.env("OPENAI_API_KEY", "a-key"), &[]).code(0);
}

/// Some hosts try to reach a service for ever. What is silent at work is left alone.
#[test]
fn a_service_that_is_not_reached_is_unavailable() {
    let says = |cli: &Cli, lines: usize| prints(&(cli.says)("x")[..lines]);
    let hangs = "sleep 60";
    let retrying = json!({"type": "error", "message": "Reconnecting... waiting for network"});
    let [codex, gemini, qwen] = &ALL;
    let cases = [
        (codex, hangs.to_owned(), "has not reached its service"),
        (codex, format!("{}{}{hangs}", says(codex, 2), prints(&[retrying])), "waiting for network"),
        (
            gemini,
            format!("{}echo 'Attempt 1 failed. Retrying' >&2; {hangs}", says(gemini, 2)),
            "Attempt 1 failed",
        ),
        (qwen, format!("{}{hangs}", says(qwen, 1)), "has not reached its service"),
    ];
    let unavailable = |(cli, answer, why): &(&Cli, String, &str)| {
        let project = cli.project(LOOP, std::slice::from_ref(answer)).env("LL_HOST_PATIENCE", PATIENCE);
        let ran = run(&project, &[]).code(69);
        assert!(ran.stdout.contains(why) && ran.stdout.contains(cli.name), "{}", ran.all());
        assert_eq!(calls(&project), 1);
    };
    let left_alone = || {
        let started = json!({"type": "item.started", "item": {"id": "i", "type": "command_execution"}});
        let begins = format!("{}{}", says(codex, 2), prints(&[started]));
        let works = format!("{begins}sleep {LONGER}; {}", prints(&(codex.says)("x")));
        let project = codex.project(LOOP, &[works, codex.good()[1].clone()]);
        let project = project.env("LL_HOST_PATIENCE", PATIENCE).env("LL_HOST_SILENCE", PATIENCE);
        let _ran = run(&project, &[]).code(0);
    };
    let silent = || {
        let project = codex.project(LOOP, &[format!("{}{hangs}", says(codex, 2))]);
        let project = project.env("LL_HOST_SILENCE", PATIENCE);
        let ran = run(&project, &[]).code(1);
        assert_eq!(project.end()["final_state"], "oops", "{}", ran.all());
        assert!(ran.stdout.contains("said nothing for"), "{}", ran.all());
    };
    // At the same time: each waits for its patience to end, and that has to be long enough for a busy machine to start a
    // shell and read what it says.
    std::thread::scope(|scope| {
        for case in &cases {
            scope.spawn(move || unavailable(case));
        }
        scope.spawn(left_alone);
        scope.spawn(silent);
    });
}

/// How long a host is waited for, and more than that in seconds.
const PATIENCE: &str = "5s";
const LONGER: u64 = 6;

/// What a conversation took before was counted again with each of its calls.
#[test]
fn a_call_costs_what_it_adds_to_its_conversation() {
    let text = "name: main
description: d
initial: one
states:
  one: {action: first, action_type: prompt, session: s, next: two}
  two: {action: second, action_type: prompt, session: s, next: three}
  three: {action: third, action_type: prompt, session: s, next: done}
  done: {terminal: true}
";
    let usage = |input: u64| json!({"input_tokens": input, "output_tokens": input / 10});
    let codex = |input: u64| {
        prints(&[
            json!({"type": "thread.started", "thread_id": "t"}),
            json!({"type": "item.completed", "item": {"type": "agent_message", "text": "x"}}),
            json!({"type": "turn.completed", "usage": usage(input)}),
        ])
    };
    let qwen = |input: u64| {
        prints(&[json!({"type": "result", "session_id": "t", "result": "x", "usage": usage(input)})])
    };
    let claude = |input: u64| {
        let models = json!({"m": {"inputTokens": input, "outputTokens": input / 10}});
        prints(&[
            json!({"type": "system", "subtype": "init", "session_id": "t", "claude_code_version": "2.1.300"}),
            json!({"type": "result", "result": "x", "total_cost_usd": 0.5, "modelUsage": models, "usage": usage(100)}),
        ])
    };
    let hosts: [(&str, &dyn Fn(u64) -> String); 3] =
        [("codex", &codex), ("qwen", &qwen), ("claude", &claude)];
    for (host, answer) in hosts {
        let project = fake_host::project(&[host], text, &[answer(100), answer(200), answer(300)]);
        let ran = run(&project, &[]).code(0);
        let events = project.events();
        let input = |event: &Value| event["usage"]["input_tokens"].as_u64();
        let counted: Vec<_> =
            events.iter().filter(|event| event["event"] == "action_complete").filter_map(input).collect();
        assert_eq!(counted, [100, 100, 100], "{host}: {}", ran.all());
        let second = project.read("calls/2.argv");
        assert!(second.contains("resume\nt\n"), "{second}");
    }
}

/// An agent that may not spend more than is left, and an answer that was complete when it was spent.
#[test]
fn what_is_left_of_the_cap_is_that_of_the_agent() {
    let text = LOOP.replace("on_yes: done", "next: done");
    let spent = |last: &[Value]| {
        let result = json!({
            "type": "result", "subtype": "error_max_budget_usd", "is_error": true, "total_cost_usd": 0.6,
            "errors": ["Reached maximum budget"],
        });
        format!("{}exit 1", prints(&[last, &[result]].concat()))
    };
    let project = fake_host::project(&["claude"], &text, &[spent(&[])]);
    let ran = run(&project, &["--max-cost", "0.5"]).code(6);
    assert!(ran.stdout.contains("error_max_budget_usd"), "{}", ran.all());
    let argv = project.read("calls/1.argv");
    assert!(argv.contains("--max-budget-usd\n0.5\n"), "{argv}");
    let said =
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "all is done"}]}});
    let project = fake_host::project(&["claude"], &text, &[spent(&[said])]);
    let _ran = run(&project, &["--max-cost", "0.7"]).code(0);
}

#[test]
fn a_new_session_gets_its_prompt() {
    let text = "name: main\ndescription: d\ninitial: work\non_handoff: spawn\nstates:\n  work: {action: \"echo 'CONTEXT_HANDOFF: item 7'\", next: done}\n  done: {terminal: true}\n";
    for cli in ALL {
        let project = cli.project(text, &["touch started".to_owned()]);
        let _ran = run(&project, &[]).code(75);
        crate::common::wait_for(|| project.exists("started"));
        let told = project.read("calls/1.stdin");
        assert!(told.contains("Run: ll-loop resume main-") && told.ends_with("item 7"), "{told}");
    }
}

/// The loop and the program that `docs/agents-in-ci.md` shows do what it says.
#[test]
fn the_documented_host_of_a_test_works() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/agents-in-ci.md");
    let document = std::fs::read_to_string(document).unwrap();
    let block = |mark: &str| document.split(mark).nth(1).unwrap().split("```").next().unwrap().to_owned();
    let project =
        fake_host::project(&["claude"], &block("```yaml loop\n"), &[]).file("NOTES.md", "# Notes\n");
    project.write("bin/claude", &block("```sh\n"));
    let _ran = run(&project, &[]).code(0);
    assert_eq!(project.read("NOTES.md"), "# Notes\n## Unreleased\n");
    let judged = fake_host::project(&["claude"], LOOP, &[]).file("NOTES.md", "");
    judged.write("bin/claude", &block("```sh\n"));
    let _ran = run(&judged, &[]).code(0);
}
