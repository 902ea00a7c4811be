//! Every key that loop files of the predecessor can have: each loads, with effect or with a word about it, or is refused
//! with what to write in its place.

use serde_json::Value;

use crate::common::Project;

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// It means something.
    Works,
    /// It loads with a note.
    Noted,
    /// It loads with a warning.
    Warned,
    /// It is an error, with an advice that holds this.
    Refused(&'static str),
}

use Fate::{Noted, Refused, Warned, Works};

/// What `validate` finds in a loop file.
fn findings(text: &str) -> Vec<Value> {
    let project = Project::with_loop(text).file(
        ".loops/kid.yaml",
        "name: kid\ndescription: x\ninitial: a\nstates:\n  a: {action: 'true', next: done}\n  done: {terminal: true}\n",
    );
    let project = project
        .file(".loops/lib.yaml", "fragments:\n  runs: {action: 'true'}\n")
        .file(".loops/base.yaml", "description: x\nmax_steps: 9\n");
    let output = project.command(&["validate", "--format", "json", ".loops/main.yaml"]).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Compares what is found about a key, and that nothing is an error besides.
#[track_caller]
fn check(key: &str, fate: Fate, text: &str) {
    let findings = findings(text);
    let errors: Vec<_> = findings.iter().filter(|finding| finding["severity"] == "error").collect();
    let about = |code: &str| {
        let marked = format!("`{key}`");
        let is_about = |finding: &&Value| {
            finding["code"] == code && finding["message"].as_str().unwrap().contains(&marked)
        };
        findings.iter().find(is_about)
    };
    let severity = about("no-effect").map(|finding| finding["severity"].as_str().unwrap());
    match fate {
        Works => assert_eq!((severity, errors.len()), (None, 0), "{key}: {findings:#?}\n{text}"),
        Noted => assert_eq!((severity, errors.len()), (Some("note"), 0), "{key}: {findings:#?}\n{text}"),
        Warned => assert_eq!((severity, errors.len()), (Some("warning"), 0), "{key}: {findings:#?}\n{text}"),
        Refused(advice) => {
            let help = about("unsupported").and_then(|finding| finding["help"].as_str());
            assert!(help.is_some_and(|help| help.contains(advice)), "{key}: {findings:#?}\n{text}");
            assert_eq!(errors.len(), 1, "{key}: {findings:#?}\n{text}");
        }
    }
}

fn with_top(keys: &str) -> String {
    format!(
        "name: main\ndescription: x\ninitial: work\n{keys}\nstates:\n  work: {{action: 'true', on_yes: done, on_no: other}}\n  other: {{action: 'true', next: done}}\n  done: {{terminal: true}}\n"
    )
}

fn with_state(state: &str) -> String {
    format!(
        "name: main\ndescription: x\ninitial: work\nstates:\n  work: {{{state}}}\n  other: {{action: 'true', next: done}}\n  done: {{terminal: true}}\n"
    )
}

#[test]
fn keys_of_a_loop() {
    for (keys, fate) in [
        ("context: {a: 1}", Works),
        ("parameters: {p: {type: string, required: false, default: a, description: b}}", Works),
        ("parameters: {p: {type: enum, values: [a, b]}}", Works),
        ("scope: [src, '${context.a:-lib}']", Works),
        ("singleton: true", Noted),
        ("max_steps: 12", Works),
        ("on_max_steps: other\nmax_steps: 12", Works),
        ("max_iterations: 4", Works),
        ("on_max_iterations: other", Works),
        ("max_edge_revisits: 7", Works),
        ("backoff: 0.5", Works),
        ("timeout: 600", Works),
        ("default_timeout: 60", Works),
        ("default_idle_timeout: 60", Works),
        ("maintain: true", Works),
        ("on_handoff: spawn", Works),
        ("input_key: topic", Works),
        ("required_inputs: [input]", Works),
        ("config: {handoff_threshold: 60}", Noted),
        ("config: {automation: {max_continuations: 3}}", Noted),
        ("category: checks", Works),
        ("labels: [a, b]", Works),
        ("visibility: internal", Works),
        ("artifact_output: report.md", Works),
        ("commands: [{cmd: make, comment: builds}]", Works),
        ("targets: [{file: a.md, states: [{name: work}]}]", Noted),
        ("import: [lib.yaml]", Works),
        ("fragments: {f: {action: 'true'}}", Works),
        ("from: base", Works),
        ("circuit: {repeated_failure: {window: 3, on_repeated_failure: other, progress_paths: [a]}}", Noted),
        ("host_guard: {enabled: true, warn_pct: 75, pressure_state: other}", Noted),
        ("prompt_size_guard: {warn_chars: 5}", Noted),
        ("pruning_profile: {enabled: false}", Noted),
        ("tamper_guard: revert", Works),
        ("prepatch_check: warn", Works),
        ("session_mode: fresh", Noted),
        ("artifact_versioning: true", Noted),
        ("artifact_mode: file", Noted),
        ("context: {artifact_mode: template}", Works),
        ("llm: {enabled: true, model: small, max_tokens: 256, timeout: 60}", Works),
        ("on_error: other", Works),
        ("on_timeout: other", Works),
        ("maintain_delay: 5", Works),
        ("signals: [stop]", Works),
        ("stall: {window: 4}", Works),
    ] {
        let key = keys.split(':').next().unwrap();
        check(key, fate, &with_top(keys));
    }
    check("effort", Noted, &with_top("llm: {effort: high}"));
    for suppressor in [
        "meta_self_eval",
        "shared_state",
        "partial_route",
        "artifact_versioning",
        "generator_fix",
        "bash_default",
        "evidence_contract",
        "shell_pid",
        "parse_swallow",
        "policy_dims_scored",
        "unsafe_context_interpolation",
        "pruning_profile",
        "tamper_guard",
        "prepatch_check",
        "session_mode",
        "haiku_generator",
        "capture_reachability",
        "terminal_action",
        "abandonment_verdict",
        "evaluate_unknown_keys",
    ] {
        let key = format!("{suppressor}_ok");
        check(&key, Noted, &with_top(&format!("{key}: true")));
    }
    let flow = "name: main\ndescription: x\nflow: [one, 'two?done:one', done]\nstate_defs: {one: {action: 'true'}, two: {action: 'true'}}\n";
    check("flow", Works, flow);
    check("state_defs", Works, flow);
}

#[test]
fn keys_of_a_state() {
    let ways = "on_yes: done, on_no: other";
    for (keys, fate) in [
        ("action_type: shell", Works),
        ("evaluate: {type: exit_code}", Works),
        ("on_error: other", Works),
        ("on_partial: other", Works),
        ("on_blocked: other", Works),
        ("on_cannot_judge: other", Works),
        ("on_unheard_of: other", Works),
        ("capture: found", Works),
        ("append_to_messages: 'saw ${prev.output}'", Works),
        ("timeout: 60", Works),
        ("idle_timeout: 60", Works),
        ("max_retries: 2, on_retry_exhausted: other", Works),
        ("on_retry_exhausted: other, max_retries: 2", Works),
        ("retryable_exit_codes: [2, 75], max_retries: 2, on_retry_exhausted: other", Works),
        ("max_rate_limit_retries: 3, on_rate_limit_exhausted: other", Noted),
        ("on_rate_limit_exhausted: other, max_rate_limit_retries: 3", Noted),
        ("rate_limit_backoff_base_seconds: 30", Noted),
        ("rate_limit_max_wait_seconds: 600", Noted),
        ("rate_limit_long_wait_ladder: [300, 900]", Noted),
        ("throttle: {normal_max: 3, warn_max: 8, hard_max: 12}", Noted),
        ("on_throttle_hard: other", Noted),
        ("effort: low", Noted),
        ("model_hint: coding", Noted),
        ("type: task", Noted),
        ("request_path: cli", Noted),
        ("cost_ceiling: {cost_warn_at: 1}", Noted),
        ("pruning_profile: {enabled: false}", Noted),
        ("session_mode: continue", Noted),
        ("tamper_guard: fail", Noted),
        ("prepatch_check: fail", Noted),
        ("shell_pid_ok: true", Noted),
        ("description: it works", Works),
        ("output: result.md", Warned),
        ("comparator: {baseline_path: a}", Refused("llm_structured")),
        ("contract: {pairs: []}", Refused("llm_structured")),
        ("advisor_consult: {question: 'is it good?'}", Refused("action_type: prompt")),
        ("scopes: [github]", Refused("environment")),
    ] {
        let key = keys.split(':').next().unwrap();
        check(key, fate, &with_state(&format!("action: 'true', {ways}, {keys}")));
    }
    for (key, state) in [
        ("route", "action: 'true', route: {'yes': done, _: other, _error: other}"),
        ("next", "action: 'true', next: done"),
        ("on_success", "action: 'true', on_success: done, on_failure: other"),
        (
            "on_target",
            "action: echo 1, evaluate: {type: convergence, target: 0}, on_target: done, on_progress: work, on_stall: other",
        ),
        ("on_timeout", "action: 'true', timeout: 5, on_timeout: other, on_yes: done, on_no: other"),
        (
            "params",
            "action: a/b, action_type: mcp_tool, params: {a: ['${context.b:-c}', null]}, on_yes: done, on_no: other",
        ),
        ("agent", "action: Do it., action_type: prompt, agent: a, tools: [Read], model: m, next: done"),
        ("action_type", "action: '/do it', action_type: slash_command, next: done"),
        ("loop", "loop: kid, on_yes: done, on_no: other"),
        ("with", "loop: kid, with: {a: 1}, on_yes: done, on_no: other"),
        ("context_passthrough", "loop: kid, context_passthrough: true, on_yes: done, on_no: other"),
    ] {
        check(key, Works, &with_state(state));
    }
    check(
        "contract",
        Refused("llm_structured"),
        &with_state(&format!("action: 'true', action_type: contract, {ways}")),
    );
    let ends = |keys: &str| {
        format!(
            "{}  end: {{terminal: true, {keys}}}\n",
            with_state("action: 'true', on_yes: done, on_no: end")
        )
    };
    for (keys, fate) in [
        ("failure: true", Works),
        ("on_maintain: work", Works),
        ("action: echo end", Works),
        ("next: done", Warned),
        ("output: result.md", Warned),
    ] {
        check(keys.split(':').next().unwrap(), fate, &ends(keys));
    }
}

#[test]
fn keys_of_an_evaluator() {
    for (key, evaluate, fate) in [
        ("abstain_on_exit_3", "type: exit_code, abstain_on_exit_3: true", Works),
        ("target", "type: exit_code, target: 2", Works),
        ("operator", "type: output_numeric, operator: ge, target: '3'", Works),
        ("target", "type: output_numeric, target: '${context.n:-3}'", Works),
        ("key", "type: output_numeric, target: 3, key: score", Works),
        ("path", "type: output_json, path: .a, operator: eq, target: 1", Works),
        ("pattern", "type: output_contains, pattern: a, negate: true, error_patterns: [b]", Works),
        ("tolerance", "type: convergence, target: '3', tolerance: '1', direction: maximize", Works),
        ("previous", "type: convergence, target: 3, previous: '${prev.output:-}'", Works),
        ("reference", "type: convergence, target: 3, reference: 4", Works),
        ("reference", "type: convergence, target: 3, reference: '${context.n:-4}'", Works),
        ("line", "type: classify, line: first", Works),
        ("scope", "type: diff_stall, scope: [src], max_stall: 2", Works),
        ("epsilon", "type: score_stall, epsilon: 0.5, max_stall: 2", Works),
        ("history_file", "type: score_stall, history_file: h", Works),
        ("history_file", "type: open_question_stall, history_file: h, epsilon: 0.5, max_stall: 2", Works),
        ("track", "type: action_stall, track: [action], max_repeat: 3", Works),
        ("type", "type: harbor_scorer", Works),
        ("type", "type: mcp_result", Works),
        ("source", "type: output_numeric, target: 3, source: '${prev.output:-3}'", Works),
        ("prompt", "type: llm_structured, prompt: ok?, min_confidence: 0.7, uncertain_suffix: true", Works),
        ("schema", "type: llm_structured, schema: {type: object, properties: {verdict: {enum: [a]}}}", Works),
        ("path", "type: output_numeric, target: 3, path: .a", Warned),
        ("history_file", "type: diff_stall, history_file: h", Warned),
        ("pattern", "type: exit_code, pattern: x", Warned),
        ("baseline_path", "type: exit_code, baseline_path: a", Warned),
        ("auto_promote", "type: exit_code, auto_promote: true", Warned),
        ("min_pairs", "type: exit_code, min_pairs: 2", Warned),
        ("pairs", "type: exit_code, pairs: []", Warned),
        ("comparator", "type: comparator, baseline_path: a, min_pairs: 1", Refused("llm_structured")),
        ("contract", "type: contract, pairs: []", Refused("llm_structured")),
    ] {
        let routes = match evaluate.split(',').next() {
            Some("type: convergence") => "on_target: done, on_progress: other, on_stall: other",
            _ => "on_yes: done, on_no: other, on_error: other",
        };
        check(key, fate, &with_state(&format!("action: 'true', {routes}, evaluate: {{{evaluate}}}")));
    }
    let unknown = findings(&with_state("action: 'true', next: done, evaluate: {type: exit_code, tagret: 1}"));
    let codes: Vec<_> = unknown.iter().map(|finding| finding["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"unknown-key"), "{unknown:?}");
}

#[test]
fn states_of_the_predecessors_own_ways_have_to_be_there_and_count_as_reached() {
    let ways = "action: 'true', on_yes: done, on_no: done";
    for keys in ["on_rate_limit_exhausted", "on_throttle_hard"] {
        let codes = |target: &str| -> Vec<String> {
            let found = findings(&with_state(&format!("{ways}, {keys}: {target}")));
            found.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
        };
        assert!(!codes("other").contains(&"unreachable".to_owned()), "{keys}");
        assert!(codes("done").contains(&"unreachable".to_owned()), "{keys}");
        assert!(codes("othre").contains(&"unknown-state".to_owned()), "{keys}");
    }
    let circuit = |target: &str| {
        let text = with_state(ways).replacen(
            "states:",
            &format!("circuit: {{repeated_failure: {{on_repeated_failure: {target}}}}}\nstates:"),
            1,
        );
        let found = findings(&text);
        found.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(!circuit("other").contains(&"unreachable".to_owned()));
    assert!(circuit("abort").contains(&"unreachable".to_owned()));
    assert!(circuit("othre").contains(&"unknown-state".to_owned()));
}

/// Every key in every place with a `null`: the same as without it.
#[test]
fn null_is_not_given_wherever_a_key_can_stand() {
    let text = "name: main\ndescription: null\nfrom: null\nimport: null\nfragments: null\nflow: null\nstate_defs: null\n\
                paradigm: null\ncontext: {empty: null}\nparameters: null\nmax_steps: null\nmax_iterations: null\n\
                timeout: null\nscope: null\nllm: null\nbudget: null\nstall: null\ncircuit: null\nconfig: null\n\
                on_error: null\nshell: null\nsignals: null\nenv: {EMPTY: null}\ninitial: a\nstates:\n\
                \x20 a:\n    action: 'echo \"[${context.empty}][$EMPTY]\" > out'\n    evaluate: null\n    condition: null\n\
                \x20   fragment: null\n    loop: null\n    with: null\n    check_condition: null\n    next: null\n\
                \x20   on_yes: null\n    on_success: done\n    on_no: failed\n    route: null\n    timeout: null\n\
                \x20   max_retries: null\n    on_retry_exhausted: null\n    capture: null\n    env: null\n\
                \x20 b: {action: 'true', evaluate: {type: exit_code, target: null, \"no\": null, source: null}, route: {'yes': null, _: done}}\n\
                \x20 done: {terminal: true, action: null, outcome: null}\n  failed: {terminal: true}\n";
    let project = Project::with_loop(text);
    project.run(&["run", "main"]).code(0);
    assert_eq!(project.read("out"), "[][]\n");
}

#[test]
fn what_a_loop_without_parameters_is_given_is_its_context() {
    let project = Project::with_loop(
        "name: main\ndescription: x\ninitial: a\ncontext: {who: you}\nstates:\n  a: {loop: kid, with: {own: '${context.who}', further: {deep: [1]}, nothing: null}, on_yes: done, on_no: failed}\n  done: {terminal: true}\n  failed: {terminal: true}\n",
    )
    .file(
        ".loops/kid.yaml",
        "name: kid\ndescription: x\ninitial: a\ncontext: {own: me, made: '${context.own}!'}\nstates:\n  a: {action: 'echo \"${context.own} ${context.made} ${context.further.deep} [${context.nothing}]\" > out', next: done}\n  done: {terminal: true, outcome: success}\n",
    );
    project
        .run(&["validate", "main"])
        .code(0)
        .says("warning[binding]")
        .says("the loop `kid` declares no `parameters`");
    project.run(&["run", "main"]).code(0);
    assert_eq!(project.read("out"), "you you! [1] []\n");
}

#[test]
fn null_is_an_empty_text_for_a_parameter() {
    let project = Project::with_loop(
        "name: main\ndescription: x\ninitial: a\nfragments:\n  told: {parameters: {p: {type: string, default: d}}, action: 'echo \"[${param.p}]\" >> out'}\nstates:\n  a: {fragment: told, with: {p: null}, next: b}\n  b: {loop: kid, with: {p: null}, next: done}\n  done: {terminal: true, outcome: success}\n",
    )
    .file(
        ".loops/kid.yaml",
        "name: kid\ndescription: x\ninitial: a\nparameters: {p: {type: string, default: d}}\nstates:\n  a: {action: 'echo \"[${context.p}]\" >> out', next: done}\n  done: {terminal: true, outcome: success}\n",
    );
    project.run(&["run", "main"]).code(0);
    assert_eq!(project.read("out"), "[]\n[]\n");
}

#[test]
fn a_hand_off_that_says_nothing_is_none() {
    let text = |printed: &str| {
        format!(
            "name: main\ndescription: x\ninitial: a\nstates:\n  a: {{action: \"printf '{printed}'\", next: done}}\n  done: {{terminal: true, outcome: success}}\n"
        )
    };
    for (printed, code) in [
        ("CONTEXT_HANDOFF:\\n", 0),
        ("CONTEXT_HANDOFF:  \\n", 0),
        ("CONTEXT_HANDOFF: \\nLOOP_STOP: enough\\n", 3),
        ("CONTEXT_HANDOFF: \\nCONTEXT_HANDOFF: item 7\\n", 75),
        ("CONTEXT_HANDOFF: Ready for fresh session\\n", 75),
    ] {
        Project::with_loop(&text(printed)).run(&["run", "main"]).code(code);
    }
    let earlier = Project::with_loop(&text("CONTEXT_HANDOFF:\\n"))
        .file(".claude/ll-continue-prompt.md", "go on with item 7\n");
    // Somebody else wrote it down for a session that is over.
    earlier.run(&["run", "main"]).code(0);
    let writes = "mkdir -p .claude; echo go on with item 8 > .claude/ll-continue-prompt.md; printf";
    let written = Project::with_loop(&text("CONTEXT_HANDOFF:\\n").replace("printf", writes))
        .file(".claude/ll-continue-prompt.md", "go on with item 7\n");
    written.run(&["run", "main"]).code(75).says("go on with item 8");
}

#[test]
fn a_missing_host_is_an_error_of_the_state_where_it_has_a_route_for_that() {
    for (top, ways, code) in [
        ("", "on_yes: done, on_no: failed, on_error: done", 0),
        ("", "route: {'yes': failed, _error: done}", 0),
        ("", "next: failed, on_error: done", 0),
        ("", "on_yes: done, on_no: failed", 69),
        ("", "next: done", 69),
        ("on_error: done", "on_yes: done, on_no: failed", 69),
    ] {
        let text = format!(
            "name: main\ndescription: x\ninitial: a\n{top}\nstates:\n  a: {{action: Do it., action_type: prompt, {ways}}}\n  done: {{terminal: true, outcome: success}}\n  failed: {{terminal: true}}\n"
        );
        let project = Project::with_loop(&text).env("PATH", "/usr/bin:/bin");
        project.run(&["run", "main", "--llm", "--yes"]).code(code);
    }
}

#[test]
fn a_previous_that_is_no_number_is_a_warning_of_the_run() {
    let project = Project::with_loop(
        "name: main\ndescription: x\ninitial: a\nstates:\n  a: {action: \"cat n 2>/dev/null || echo 5\", evaluate: {type: convergence, target: 0, previous: 'about ${state.attempt}'}, on_target: done, on_progress: b, on_stall: failed}\n  b: {action: echo 0 > n, next: a}\n  done: {terminal: true}\n  failed: {terminal: true}\n",
    );
    project.run(&["run", "main"]).code(0);
    let events = project.events();
    let warnings: Vec<_> = events.iter().filter(|event| event["event"] == "warning").collect();
    assert_eq!(warnings.len(), 2, "{events:#?}");
    assert_eq!(warnings[0]["state"], "a");
    let message = warnings[0]["message"].as_str().unwrap();
    assert!(message.contains("`previous` is `about 1`, which is not a number"), "{message}");
}

#[test]
fn numbers_out_of_their_ranges_are_refused_by_both() {
    let evaluate = |keys: &str| {
        with_state(&format!("action: 'touch ran', on_yes: done, on_no: other, evaluate: {{{keys}}}"))
    };
    let state = |keys: &str| with_state(&format!("action: 'touch ran', on_yes: done, on_no: other, {keys}"));
    let count = "a whole number from 1 to 1,000,000,000";
    let (percent, share) = ("a number from 0 to 100", "a number from 0 to 1");
    for (key, text, range) in [
        ("max_stall", evaluate("type: diff_stall, max_stall: 0"), count),
        ("max_stall", evaluate("type: score_stall, max_stall: '0'"), count),
        ("max_stall", evaluate("type: open_question_stall, max_stall: -1"), count),
        ("max_repeat", evaluate("type: action_stall, max_repeat: 0"), count),
        ("stuck_after", evaluate("type: criteria, stuck_after: 0"), count),
        ("epsilon", evaluate("type: score_stall, epsilon: -0.5"), "a number of at least 0"),
        ("tolerance", evaluate("type: convergence, target: 1, tolerance: -1"), "a number of at least 0"),
        ("min_confidence", evaluate("type: llm_structured, min_confidence: 7"), share),
        ("min_confidence", evaluate("type: llm_structured, min_confidence: '-0.1'"), share),
        ("approve", evaluate("type: score, approve: 101"), percent),
        ("target", evaluate("type: exit_code, target: 300"), "a whole number from 0 to 255"),
        ("target", evaluate("type: exit_code, target: -1"), "a whole number from 0 to 255"),
        ("max_retries", state("max_retries: 0, on_retry_exhausted: other"), count),
        (
            "retryable_exit_codes[0]",
            state("max_retries: 1, on_retry_exhausted: other, retryable_exit_codes: [0]"),
            "a whole number from 1 to 255",
        ),
        ("max_iterations", with_top("max_iterations: 0"), count),
        ("max_steps", with_top("max_steps: '2000000000'"), count),
        ("max_edge_revisits", with_top("max_edge_revisits: -1"), count),
        ("max_handoffs", with_top("max_handoffs: 0"), count),
        ("window", with_top("stall: {window: 1}"), "a whole number from 2 to 1,000,000,000"),
        ("cost_usd", with_top("budget: {cost_usd: 0}"), "a number of more than 0"),
        ("tokens", with_top("budget: {tokens: 0}"), count),
        ("abort_failed_ratio", with_top("board: {abort_failed_ratio: 1.5}"), share),
    ] {
        let project = Project::with_loop(&text);
        let said = format!("`{key}` must be ");
        let checked = project.run(&["validate", "main"]).code(2).says("error[range]").says(&said);
        assert!(checked.all().contains(range), "{key}: {}", checked.all());
        project.run(&["run", "main"]).code(2).says(&said);
        assert!(!project.exists("ran"), "{key}");
    }
}
