//! The fragments that the program brings along: each can be used as its page says, and each that is a script keeps its
//! contract, whatever it is given.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::Project;

/// What a stranger writes.
const HOSTILE: &str =
    "a 'b' \"c\" $(touch pwned) `touch pwned` ; touch pwned & ${HOME} \\ é * -n\n\ntouch pwned\nEOF";

/// Where a run keeps its files.
const FILES: &str = "run files' $(touch pwned)";

/// Returns the names of the fragments of every library.
fn all() -> BTreeMap<String, Vec<String>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("catalog/lib");
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let Some((_, fragments)) = text.split_once("\nfragments:\n") else { continue };
        let keys = fragments.lines().filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
        let keys = keys.filter(|key| !key.starts_with(' ')).map(str::to_owned).collect();
        all.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), keys);
    }
    all
}

/// What a state has to add to some fragments.
fn added(fragment: &str) -> Value {
    match fragment {
        "retry_counter" => json!({"with": {"counter_key": "k"}}),
        "with_rate_limit_handling"
        | "with_throttle"
        | "parse_tagged_json"
        | "queue_track"
        | "queue_pop"
        | "shell_exit"
        | "run_benchmark"
        | "diff_stall_gate"
        | "open_question_stall_gate" => json!({"action": "make"}),
        "harness_exit" => json!({"action": "make", "on_cannot_judge": "failed"}),
        "llm_gate" => json!({"action": "look", "on_partial": "failed", "on_blocked": "failed"}),
        "numeric_gate" => json!({"action": "make", "evaluate": {"target": 3}}),
        "convergence_gate" => json!({"action": "make", "evaluate": {"target": 3},
            "route": {"target": "done", "progress": "given", "stall": "failed", "error": "failed"}, "on_yes": null, "on_no": null}),
        "score_stall_gate" => json!({"action": "make", "evaluate": {"key": "score"}}),
        "snapshot_artifact" => json!({"with": {"artifact_path": "a"}}),
        "loop_failure_diagnose" => json!({"with": {"loop_name": "x"}, "on_yes": null, "on_no": null}),
        "subloop_rate_limit_diagnostic" => json!({"with": {"operation": "x"}, "on_yes": null, "on_no": null}),
        "ll_rubric_score" => json!({"with": {"rubric": "x", "pass_threshold": 6.5}}),
        "policy_table_dispatch" => {
            json!({"route": {"done": "done", "_": "failed"}, "on_yes": null, "on_no": null})
        }
        "ll_commit" | "rubric_score" | "score_plan_quality" => {
            json!({"on_yes": null, "on_no": null, "next": "done"})
        }
        _ => json!({}),
    }
}

/// Makes a loop of one fragment, which a state precedes that gives it captures.
fn using(library: &str, fragment: &str, state: &Value, context: &Value) -> String {
    let mut check = json!({"fragment": fragment, "on_yes": "done", "on_no": "no", "on_error": "oops"});
    let given = |name: &str, next: &str| json!({"action": "printf '%s' \"$GIVEN\"", "env": {"GIVEN": "${context.given}"}, "capture": name, "next": next});
    let mut values = json!({
        "run_dir": FILES, "given": "x", "issue_id": "I-1", "issue_file": "issue.md", "commit_message": "m", "loop_name": "l",
        "file_url": "u", "screenshot_path": "p", "policy_rules": "* -> done", "frontmatter_dimensions": "a:number",
        "input": "i", "rubric": "r",
    });
    for (into, from) in [(&mut check, state), (&mut values, context)] {
        for (key, value) in from.as_object().unwrap() {
            into[key] = value.clone();
            if value.is_null() {
                drop(into.as_object_mut().unwrap().remove(key));
            }
        }
    }
    let end = |outcome: &str| json!({"terminal": true, "outcome": outcome, "description": "an end"});
    json!({
        "name": "main", "description": "d", "initial": "given", "import": [format!("lib/{library}")], "context": values,
        "states": {
            "given": given("scores", "given2"), "given2": given("run_dir", "given3"), "given3": given("plan_display", "check"),
            "check": check, "no": end("failure"), "oops": end("failure"), "failed": end("failure"), "done": end("success"),
            "other": end("success"), "rubric_route_medium": end("success"), "parse_reassess_decision": end("success"),
            "abort_composer": end("failure"),
        },
    })
    .to_string()
}

#[test]
fn every_fragment_can_be_used() {
    let project = Project::new();
    let mut count = 0;
    for (library, fragments) in all() {
        drop(project.run(&["validate", &format!("lib/{library}"), "--strict"]).code(0));
        for fragment in fragments {
            project.write(".loops/main.yaml", &using(&library, &fragment, &added(&fragment), &json!({})));
            let ran = project.run(&["validate", "main", "--format", "json"]);
            let findings: Vec<Value> =
                ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            // The ends that another fragment needs are no fault of this one.
            let is_about =
                |finding: &&Value| finding["code"] != "unreachable" && finding["severity"] != "note";
            let found: Vec<&Value> = findings.iter().filter(is_about).collect();
            assert!(found.is_empty(), "{library} {fragment}: {found:#?}");
            count += 1;
        }
    }
    assert_eq!(count, 50);
}

/// The result of a fragment: its exit code, what it printed, and the state that followed.
#[derive(Debug, PartialEq)]
struct Came {
    exit: i64,
    printed: String,
    next: String,
}

fn came(exit: i64, printed: &str, next: &str) -> Came {
    Came { exit, printed: printed.to_owned(), next: next.to_owned() }
}

/// Runs the loop of one fragment in a project.
#[track_caller]
fn run(project: &Project, library: &str, fragment: &str, state: &Value, context: &Value) -> Came {
    project.write(".loops/main.yaml", &using(library, fragment, state, context));
    let history = project.at(".loops/.history");
    if history.exists() {
        fs::remove_dir_all(history).unwrap();
    }
    let ran = project.run(&["run", "main", "--no-llm"]);
    assert!(ran.code.is_some_and(|code| code < 5), "{}", ran.all());
    assert!(!project.exists("pwned"), "{fragment} ran what it was given");
    let events = project.events();
    let last = |event: &str| events.iter().rfind(|found| found["event"] == event);
    let complete = last("action_complete").unwrap_or_else(|| panic!("{}", ran.all()));
    Came {
        exit: complete["exit_code"].as_i64().unwrap(),
        printed: complete["output_tail"].as_str().unwrap().trim_end().to_owned(),
        next: last("route").unwrap()["to"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn retry_counter_counts_and_passes_below_its_bound() {
    for key in ["k", "a b/c 'd'", "$(touch pwned)", "-n", "line\nline"] {
        let project = Project::new();
        let with = json!({"with": {"counter_key": key, "max_retries": 2}});
        let go = || run(&project, "common.yaml", "retry_counter", &with, &json!({}));
        assert_eq!(go(), came(0, "1", "done"), "{key}");
        assert_eq!(go(), came(0, "2", "no"), "{key}");
        assert_eq!(project.read(&format!(".loops/tmp/{key}")), "2\n");
        project.write(&format!(".loops/tmp/{key}"), "08\n");
        assert_eq!(go(), came(0, "9", "no"), "{key}");
        project.write(&format!(".loops/tmp/{key}"), "x; touch pwned\n");
        assert_eq!(go(), came(0, "1", "done"), "{key}");
    }
    let project = Project::new();
    for key in ["../../outside", "..", "a/../../b"] {
        let with = json!({"with": {"counter_key": key}});
        assert_eq!(
            run(&project, "common.yaml", "retry_counter", &with, &json!({})),
            came(2, "", "oops"),
            "{key}"
        );
    }
    assert!(!project.exists("outside"));
}

#[test]
fn snapshot_artifact_keeps_each_pass() {
    let project = Project::new();
    let go = |path: &str, directory: &str| {
        let with = json!({"with": {"artifact_path": path, "run_dir": directory}});
        run(&project, "common.yaml", "snapshot_artifact", &with, &json!({}))
    };
    project.write("-page $(x).html", "one");
    assert_eq!(go("-page $(x).html", "out dir/"), came(0, "out dir/iter-1", "done"));
    assert_eq!(project.read("out dir/iter-1/-page $(x).html"), "one");
    project.write("out dir/screenshot.png", "png");
    assert_eq!(go(HOSTILE, "out dir"), came(0, "out dir/iter-2", "done"));
    assert_eq!(project.read("out dir/iter-2/screenshot.png"), "png");
    assert_eq!(fs::read_dir(project.at("out dir/iter-2")).unwrap().count(), 1);
    // Without `with`, the directory is that of the run.
    let with = json!({"with": {"artifact_path": "x"}});
    let came_here = run(&project, "common.yaml", "snapshot_artifact", &with, &json!({}));
    assert_eq!(came_here.printed, format!("{FILES}/iter-1"));
}

#[test]
fn the_checks_of_ll_auto_look_for_what_it_says() {
    const AUTH: &str = "ll_auto_auth_check";
    const GATE: &str = "ll_auto_learning_gate_check";
    const INFRA: &str = "ll_auto_learning_gate_infra_check";
    const START: &str = "ll_auto_not_started_check";
    for (fragment, log, printed, next) in [
        (AUTH, None, "OK", "no"),
        (AUTH, Some("all is well"), "OK", "no"),
        (AUTH, Some("HTTP 401"), "AUTH_FAILED", "done"),
        (AUTH, Some("it is FORBIDDEN"), "AUTH_FAILED", "done"),
        (AUTH, Some("x\nCould not resolve authentication method"), "AUTH_FAILED", "done"),
        (GATE, None, "OK", "no"),
        (GATE, Some("LEARNING_GATE_BLOCKED"), "GATE_BLOCKED", "done"),
        (GATE, Some("LEARNING_GATE_BLOCKED GATE_INFRA_FAILED"), "GATE_INFRA", "no"),
        (GATE, Some("learning_gate_blocked"), "OK", "no"),
        (INFRA, Some("GATE_INFRA_FAILED"), "GATE_INFRA", "done"),
        (INFRA, Some("LEARNING_GATE_BLOCKED"), "OK", "no"),
        (START, Some("a PHASE1_NOT_STARTED b"), "NOT_STARTED", "done"),
        (START, Some("$(touch pwned)"), "OK", "no"),
    ] {
        let project = Project::new();
        if let Some(log) = log {
            project.write(&format!("{FILES}/ll_auto_last.txt"), log);
        }
        let came_here = run(&project, "common.yaml", fragment, &json!({}), &json!({}));
        assert_eq!(came_here, came(0, printed, next), "{fragment} {log:?}");
    }
}

#[test]
fn subloop_rate_limit_diagnostic_leaves_its_word() {
    let project = Project::new();
    for (issue, file, token) in
        [("I-1", "I-1", "RATE_LIMITED"), ("a/b $(touch pwned)", "a_b $(touch pwned)", "OTHER 'x'")]
    {
        let mut with = json!({"with": {"operation": HOSTILE}, "on_yes": null, "on_no": null});
        if token != "RATE_LIMITED" {
            with["with"]["outcome_token"] = token.into();
        }
        let context = json!({"issue_id": issue});
        let came_here = run(&project, "common.yaml", "subloop_rate_limit_diagnostic", &with, &context);
        assert_eq!((came_here.exit, &*came_here.next, came_here.printed.lines().count()), (0, "failed", 1));
        assert!(came_here.printed.starts_with(token), "{came_here:?}");
        assert_eq!(project.read(&format!("{FILES}/subloop_outcome_{file}.txt")), format!("{token}\n"));
    }
}

/// Puts a program on the path.
fn tool(project: &Project, name: &str, text: &str) {
    project.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(project.at(&format!("bin/{name}")), fs::Permissions::from_mode(0o755)).unwrap();
}

fn with_tools() -> Project {
    let project = Project::new();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", project.at("bin").display());
    project.env("PATH", path)
}

#[test]
fn tools_are_called_as_their_fragments_say() {
    let project = with_tools();
    for (fragment, program, arguments) in [
        ("ll_auto", "ll-auto", ""),
        ("ll_issues_list", "ll-issues", "list --json"),
        ("ll_issues_next", "ll-issues", "next-action"),
        ("ll_issues_next_issue", "ll-issues", "next-issue"),
        ("ll_history_summary", "ll-history", "summary"),
        ("ll_check_links", "ll-check-links", ""),
        ("ll_messages", "ll-messages", "--stdout"),
        ("ll_deps", "ll-deps", "validate"),
        ("ll_sprint_list", "ll-sprint", "list"),
        ("ll_parallel", "ll-parallel", ""),
        ("ll_workflows", "ll-workflows", ""),
        ("ll_loop_run", "ll-loop", "run $(touch pwned) 'x'"),
    ] {
        let context = json!({"loop_name": "$(touch pwned) 'x'"});
        for (exit, next) in [(0, "done"), (1, "no"), (2, "oops")] {
            tool(&project, program, &format!("printf '%s' \"$*\"; exit {exit}"));
            let came_here = run(&project, "cli.yaml", fragment, &json!({}), &context);
            assert_eq!(came_here, came(exit, arguments, next), "{fragment}");
        }
    }
    tool(&project, "ll-check-links", "echo broken >&2; exit 1");
    assert_eq!(run(&project, "cli.yaml", "ll_check_links", &json!({}), &json!({})), came(1, "broken", "no"));
}

#[test]
fn playwright_screenshot_says_that_it_has_one() {
    let project = with_tools();
    let context = json!({"file_url": "file:///a b'$(touch pwned).html", "screenshot_path": "-out 'x'.png"});
    let go = || run(&project, "harness.yaml", "playwright_screenshot", &json!({}), &context);
    tool(&project, "playwright", "printf '%s\\n' \"$@\" > called; echo warned >&2");
    assert_eq!(go(), came(0, "warned\nCAPTURED", "done"));
    let called = "screenshot\n--full-page\n--\nfile:///a b'$(touch pwned).html\n-out 'x'.png\n";
    assert_eq!(project.read("called"), called);
    tool(&project, "playwright", "echo no browser >&2; exit 1");
    assert_eq!(go(), came(1, "no browser", "no"));
    fs::remove_file(project.at("bin/playwright")).unwrap();
    tool(&project, "npx", "printf '%s' \"$*\"; exit 2");
    let came_here = go();
    assert_eq!((came_here.exit, &*came_here.next), (2, "oops"));
    assert!(came_here.printed.starts_with("--no-install playwright screenshot"), "{came_here:?}");
}

#[test]
fn a_state_with_an_action_of_its_own_is_asked_for_no_context_of_the_other() {
    for (library, fragment, with) in [
        ("harness.yaml", "playwright_screenshot", ""),
        ("common.yaml", "subloop_rate_limit_diagnostic", "with: {operation: x}, "),
    ] {
        let project = Project::with_loop(&format!(
            "name: main\ndescription: d\nimport: [lib/{library}]\ninitial: a\nstates:\n  a: {{fragment: {fragment}, {with}action: echo CAPTURED, on_yes: done, next: done}}\n  done: {{terminal: true}}\n  failed: {{terminal: true, outcome: failure}}\n"
        ));
        let said = project.run(&["validate", "main"]).all();
        assert!(!said.contains("undefined-context"), "{fragment}: {said}");
    }
}

#[test]
fn scores_are_read_out_of_what_an_agent_prints() {
    let go = |project: &Project, given: &str| {
        run(project, "policy-router.yaml", "policy_parse_scores", &json!({}), &json!({"given": given}))
    };
    let project = Project::new();
    project.write(&format!("{FILES}/rubric-dim-old.txt"), "1");
    project.write(&format!("{FILES}/rubric-aggregate.txt"), "1");
    let given = "Here:\n  dimension:  Code Quality : 87.5 \nDIMENSION: a/../b: -3\nDIMENSION: none: x\nAGGREGATE: 12 of 100\nDimension: $(touch pwned): 4\n";
    assert_eq!(go(&project, given), came(0, "scores=3", "done"));
    assert_eq!(project.read(&format!("{FILES}/rubric-dim-code-quality.txt")), "87.5\n");
    assert_eq!(project.read(&format!("{FILES}/rubric-dim-a-..-b.txt")), "-3\n");
    assert!(!project.exists(&format!("{FILES}/rubric-dim-old.txt")));
    assert!(!project.exists(&format!("{FILES}/rubric-aggregate.txt")));
    assert_eq!(go(&project, "aggregate: 71"), came(0, "scores=1", "done"));
    assert_eq!(project.read(&format!("{FILES}/rubric-aggregate.txt")), "71\n");
    for nothing in ["x", HOSTILE, "AGGREGATE: high"] {
        assert_eq!(go(&project, nothing), came(1, "", "no"), "{nothing}");
    }
}

#[test]
fn scores_are_read_out_of_frontmatter() {
    let issue =
        "---\ntitle: \"a: 'b' $(touch pwned)\"\npriority: 3\nready:  true \nscore: high\n---\nlater: 5\n";
    for (dimensions, exit, files) in [
        ("priority:number|ready:boolean", 0, &[("priority", "3\n"), ("ready", "true\n")][..]),
        ("title:string", 0, &[("title", "a: 'b' $(touch pwned)\n")]),
        ("score:number|later:number", 1, &[]),
        ("", 1, &[]),
    ] {
        let project = Project::new().file("issue 'x'.md", issue);
        let context = json!({"issue_file": "issue 'x'.md", "frontmatter_dimensions": dimensions});
        let came_here = run(&project, "policy-router.yaml", "frontmatter_scores", &json!({}), &context);
        assert_eq!(came_here.exit, exit, "{dimensions}");
        for (name, text) in files {
            assert_eq!(project.read(&format!("{FILES}/rubric-dim-{name}.txt")), *text);
        }
        let there = fs::read_dir(project.at(FILES)).unwrap().count();
        assert_eq!(there, files.len(), "{dimensions}");
    }
    let project = Project::new().file("issue.md", "no frontmatter\n---\npriority: 3\n---\n");
    let context = json!({"frontmatter_dimensions": "priority:number"});
    let came_here = run(&project, "policy-router.yaml", "frontmatter_scores", &json!({}), &context);
    assert_eq!(came_here.exit, 1);
}

#[test]
fn the_first_rule_that_matches_chooses() {
    let project = Project::new();
    for (name, value) in [
        ("dim-code-quality", "87.5"),
        ("dim-kind", "bug fix"),
        ("dim-small", "9"),
        ("aggregate", "70"),
        ("dim-odd", "$(touch pwned)"),
    ] {
        project.write(&format!("{FILES}/rubric-{name}.txt"), &format!("{value}\n"));
    }
    for (rules, expected) in [
        ("* -> done", "done"),
        ("# a comment\n\n  code quality:>=85 & kind:==bug fix -> other # here\n* -> done", "other"),
        ("small:>10 -> other\n* -> done", "done"),
        ("small:<10 -> other\n* -> done", "other"),
        ("small:==9.0 -> other\n* -> done", "other"),
        ("kind:>=5 -> other\n* -> done", "done"),
        ("kind:!=bug -> other\n* -> done", "other"),
        ("aggregate:<=70 & missing:>=0 -> other\naggregate:>=70 -> done", "done"),
        ("missing:!=x -> other\n* -> done", "done"),
        ("odd:==$(touch pwned) -> done", "done"),
    ] {
        let state = json!({"route": {"done": "done", "other": "other", "_": "failed"}, "on_yes": null, "on_no": null});
        let context = json!({"policy_rules": rules});
        let came_here = run(&project, "policy-router.yaml", "policy_table_dispatch", &state, &context);
        assert_eq!(came_here, came(0, expected, expected), "{rules}");
        assert_eq!(project.read(&format!("{FILES}/policy-action.txt")), format!("{expected}\n"));
    }
    for (rules, exit) in [("small:>100 -> done", 0), (HOSTILE, 2), ("small>=5 -> done", 2), ("", 0)] {
        let state = json!({"route": {"done": "done", "_": "failed"}, "on_yes": null, "on_no": null});
        let came_here = run(
            &project,
            "policy-router.yaml",
            "policy_table_dispatch",
            &state,
            &json!({"policy_rules": rules}),
        );
        assert_eq!((came_here.exit, &*came_here.printed), (exit, ""), "{rules}");
        assert_ne!(came_here.next, "done", "{rules}");
    }
}

#[test]
fn a_score_has_a_tier() {
    for (given, thresholds, printed, high, medium) in [
        ("AGGREGATE: 85", json!({}), "aggregate=85 tier=high", "done", "no"),
        ("x\naggregate: 84.9\n", json!({}), "aggregate=84.9 tier=medium", "rubric_route_medium", "done"),
        ("AGGREGATE: 64", json!({}), "aggregate=64 tier=low", "rubric_route_medium", "no"),
        (HOSTILE, json!({}), "aggregate=0 tier=low", "rubric_route_medium", "no"),
        ("AGGREGATE: 50", json!({"threshold_high": 50}), "aggregate=50 tier=high", "done", "no"),
    ] {
        let project = Project::new();
        let mut context = thresholds;
        context["given"] = given.into();
        let go =
            |fragment: &str, state: Value| run(&project, "rubric-router.yaml", fragment, &state, &context);
        assert_eq!(go("rubric_parse_scores", json!({})), came(0, printed, "done"), "{given}");
        let tier = printed.rsplit('=').next().unwrap();
        assert_eq!(project.read(&format!("{FILES}/rubric-tier.txt")), format!("{tier}\n"));
        assert_eq!(go("rubric_route_high", json!({"on_no": null})).next, high, "{given}");
        assert_eq!(go("rubric_route_medium", json!({})).next, medium, "{given}");
    }
}

const LISTED: &str = r#"
cat << 'END'
[{"name": "one", "category": "code", "description": "it's $(touch pwned)"}, {"name": "rn-build"}, {"name": "loop-composer"},
 {"name": "hidden", "visibility": "internal"}]
{"name": "two/three", "category": null, "description": null, "built_in": true}
END
"#;

#[test]
fn discover_loops_makes_a_catalogue() {
    let project = with_tools();
    tool(&project, "ll-loop", LISTED);
    let one = json!({"name": "one", "description": "it's $(touch pwned)", "category": "code"});
    let two = json!({"name": "two/three", "description": "", "category": ""});
    for (include, exclude, in_project, built_in) in [
        ("", "", vec![&one], vec![&two]),
        ("builtin:*", "", vec![], vec![&two]),
        ("category:code, nothing", "", vec![&one], vec![]),
        ("", "project:*,x", vec![], vec![&two]),
        ("one, two/three", "two/three", vec![&one], vec![]),
        (HOSTILE, "", vec![], vec![]),
    ] {
        let context = json!({"include": include, "exclude": exclude});
        let came_here = run(&project, "composer.yaml", "discover_loops", &json!({}), &context);
        let printed: Value = serde_json::from_str(&came_here.printed).unwrap();
        assert_eq!(printed, json!({"project": in_project, "builtin": built_in}), "{include} {exclude}");
        let kept = project.read(&format!("{FILES}/composer-catalog.json"));
        assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), printed);
    }
    tool(&project, "ll-loop", "exit 4");
    assert_eq!(run(&project, "composer.yaml", "discover_loops", &json!({}), &json!({})).next, "oops");
}

#[test]
fn validate_plan_orders_a_plan_or_says_what_is_wrong() {
    let project = with_tools();
    let catalog =
        json!({"project": [{"name": "one"}], "builtin": [{"name": "two/three"}, {"name": HOSTILE}]});
    project.write(&format!("{FILES}/composer-catalog.json"), &catalog.to_string());
    let step = |id: &str, name: &str, needs: &[&str]| json!({"step_id": id, "loop_name": name, "input": "i", "depends_on": needs});
    let many: Vec<Value> = (0..9).map(|n| step(&format!("s{n}"), "one", &[])).collect();
    let order = |ids: &[&str]| Ok(ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
    for (plan, expected) in [
        (json!([step("b", "one", &["a"]), step("a", "two/three", &[])]), order(&["a", "b"])),
        (json!([{"step_id": "a", "loop_name": "one"}]), order(&["a"])),
        (json!([step(HOSTILE, HOSTILE, &[])]), order(&[HOSTILE])),
        (json!([step("a", "none", &[])]), Err("step `a`: there is no loop `none`")),
        (
            json!([step("a", "one", &["b"]), step("b", "one", &["a"])]),
            Err("the steps wait for each other: a, b"),
        ),
        (json!([step("a", "one", &["a"])]), Err("the steps wait for each other: a")),
        (json!([step("a", "one", &["x"])]), Err("step `a` depends on `x`, which is not a step")),
        (json!([step("a", "one", &[]), step("a", "one", &[])]), Err("two steps have the id `a`")),
        (json!(many), Err("the plan has 9 steps, and may have 8")),
        (json!([]), Err("the plan has no steps")),
        (json!({"a": 1}), Err("the plan is not a list of steps")),
        (json!([1]), Err("each step needs a `step_id` and a `loop_name`, and `depends_on` is a list")),
        (Value::Null, Err("the plan is not a list of steps")),
    ] {
        project.write(&format!("{FILES}/composer-plan.json"), &plan.to_string());
        let came_here = run(&project, "composer.yaml", "validate_plan", &json!({}), &json!({}));
        match expected {
            Ok(order) => {
                assert_eq!(came_here, came(0, "PLAN_VALID", "done"), "{plan}");
                let kept = project.read(&format!("{FILES}/topo-order.json"));
                assert_eq!(serde_json::from_str::<Vec<String>>(&kept).unwrap(), order);
            }
            Err(why) => {
                assert_eq!(came_here, came(1, why, "no"), "{plan}");
                assert_eq!(project.read(&format!("{FILES}/validation-errors.txt")), format!("{why}\n"));
                assert!(!project.exists(&format!("{FILES}/topo-order.json")));
            }
        }
    }
    let ten = json!({"max_plan_nodes": 9});
    project.write(&format!("{FILES}/composer-plan.json"), &json!(many).to_string());
    assert_eq!(run(&project, "composer.yaml", "validate_plan", &json!({}), &ten).printed, "PLAN_VALID");
    for broken in ["", "{", "[] []"] {
        project.write(&format!("{FILES}/composer-plan.json"), broken);
        let came_here = run(&project, "composer.yaml", "validate_plan", &json!({}), &json!({}));
        assert_eq!(came_here, came(1, "composer-plan.json is missing, or is not JSON", "no"), "{broken}");
    }
}
