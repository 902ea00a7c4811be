//! A policy from above: it refuses by name and place, and nothing that a repository, an option or an action does loosens it.

mod days;
mod loosening;

use std::fs::{self, File};

use serde_json::{Value, json};

use crate::common::{Project, Ran, git};
use crate::fake_host;

const CHECK: &str = "\
name: main
initial: check
states:
  check: {action: echo fine, on_yes: done, on_no: done}
  done: {terminal: true}
";

/// A loop that asks an agent, with more keys of the loop and of the state.
fn asking(of_loop: &str, of_state: &str) -> String {
    format!(
        "name: main\ninitial: ask\n{of_loop}\nstates:\n  ask: {{action_type: prompt, action: do it, {of_state} next: done}}\n  \
         done: {{terminal: true}}\n"
    )
}

/// A loop in which a step finds out which model is asked.
fn late(model: &str) -> String {
    let text = asking("", &format!("model: '{model}',")).replace("initial: ask", "initial: find");
    text.replace("states:\n", "states:\n  find: {action: echo haiku, capture: m, next: ask}\n")
}

fn answer() -> Vec<String> {
    vec![fake_host::prints(&[
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "done",
        "session_id": "s", "total_cost_usd": 0.01, "usage": {"input_tokens": 5, "output_tokens": 5}}),
    ])]
}

/// Runs a loop under a policy.
fn under(project: Project, policy: &str, arguments: &[&str]) -> (Project, Ran) {
    let project = project.env("LL_LOOP_POLICY", policy);
    let ran = project.run(arguments);
    (project, ran)
}

#[track_caller]
fn refused(loop_file: &str, policy: &str, more: &[&str], rule: &str) {
    let project = fake_host::project(&["claude", "codex"], loop_file, &answer());
    let arguments: Vec<&str> = ["run", "main", "--llm", "--yes"].iter().chain(more).copied().collect();
    let (project, ran) = under(project, policy, &arguments);
    ran.code(2).says(&format!("`{rule}` (LL_LOOP_POLICY:")).says("a repository cannot change that");
    assert_eq!(fake_host::calls(&project), 0);
    assert!(project.run_files(".events.jsonl").is_empty());
}

#[test]
fn nothing_is_loosened_by_a_repository_or_an_option() {
    let plain = asking("", "");
    for (loop_file, policy, more, rule) in [
        (plain.as_str(), "hosts: [codex]", &[][..], "hosts"),
        (&plain, "hosts: []", &["--host", "codex"], "hosts"),
        (&plain, "hosts: [claude]", &["--host", "acp:claude"], "hosts"),
        (&plain, "models: [haiku]", &[], "models"),
        (&plain, "models: [haiku]", &["--model", "opus"], "models"),
        (&asking("", "model: opus,"), "models: [haiku]", &["--model", "haiku"], "models"),
        (&asking("", "model: haiku, fallback_model: opus,"), "models: [haiku]", &[], "models"),
        (&late("${captured.m.output}"), "models: [haiku]", &[], "models"),
        (&late("${captured.m.output:-haiku}"), "models: [haiku]", &[], "models"),
        (&late("${prev.output}"), "models: ['*']", &[], "models"),
        (&plain, "sandbox: workspace", &["--sandbox", "off"], "sandbox"),
        (&asking("sandbox: off", ""), "sandbox: workspace", &["--sandbox", "strict"], "sandbox"),
        (&asking("", "sandbox: off,"), "sandbox: workspace", &[], "sandbox"),
        (&asking("", "sandbox: {net: any},"), "sandbox: workspace", &[], "sandbox"),
        (&asking("", "sandbox: {write: [/]},"), "sandbox: workspace", &[], "sandbox"),
        (&asking("", "sandbox: workspace,"), "sandbox: strict", &[], "sandbox"),
        (&plain, "broker: required", &["--broker", "off"], "broker"),
        (&asking("broker: off", ""), "broker: required", &[], "broker"),
        (
            &asking("budget: {cost_usd: 1, unpriced: allow}", ""),
            "caps: {run: {cost_usd: 1}}",
            &[],
            "caps.run.cost_usd",
        ),
        (
            &asking("llm: {prices: {opus: {input: 0, output: 0}}}", ""),
            "caps: {run: {cost_usd: 1}}",
            &[],
            "caps.run.cost_usd",
        ),
        (&plain, "allow_untrusted: false", &["--allow-untrusted"], "allow_untrusted"),
        (&plain, "pass_token: false", &["--pass-token"], "pass_token"),
        (&plain, "notify: [example.com]", &["--notify", "https://example.org/x"], "notify"),
        (&plain, "notify: [example.com]", &["--notify", "http://example.com/x"], "notify"),
        (&plain, "notify: [example.com]", &["--notify", "https://example.com@example.org/x"], "notify"),
        (&asking("notify: {command: cat}", ""), "notify: [example.com]", &[], "notify"),
        (&plain, "versions: '<0'", &[], "versions"),
    ] {
        refused(loop_file, policy, more, rule);
    }
}

#[test]
fn a_cap_holds_below_a_larger_budget() {
    let text = "name: main\ninitial: ask\nbudget: {llm_calls: 50}\nmax_iterations: 40\nstates:\n  \
                ask: {action_type: prompt, action: do it, next: ask}\n";
    let project = fake_host::project(&["claude"], text, &answer());
    let arguments = ["run", "main", "--llm", "--yes", "--max-llm-calls", "30"];
    let (project, ran) = under(project, "caps: {run: {calls: 2}}", &arguments);
    ran.code(6);
    assert_eq!(fake_host::calls(&project), 2);
}

#[test]
fn a_policy_that_cannot_be_read_is_no_absence() {
    let project = Project::with_loop(CHECK);
    fs::create_dir(project.at("directory")).unwrap();
    File::create(project.at("large")).unwrap().set_len(1 << 30).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, project.at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    fs::write(project.at("binary"), b"hosts: [\xff]\n").unwrap();
    fs::write(project.at("empty"), "").unwrap();
    for policy in [
        "gone",
        "directory",
        "large",
        "fifo",
        "binary",
        "empty",
        "host: [x]",
        "hosts: [a]\nhosts: [b]",
        "hosts:",
        "hosts: claude",
        "caps: {run: {tokens: many}}",
        "a: &a [*a]",
        "{",
        "sandbox: off",
    ] {
        let here = |arguments: &[&str]| {
            let project = Project::with_loop(CHECK).env("LL_LOOP_POLICY", policy);
            project.run(arguments).code(2).says("cannot be read");
        };
        here(&["run", "main"]);
        here(&["validate"]);
        here(&["doctor"]);
    }
    for policy in ["gone", "directory", "large", "fifo", "binary", "empty"] {
        let mut command = project.command(&["run", "main"]);
        let ran = Ran::of(&command.env("LL_LOOP_POLICY", policy).output().unwrap());
        ran.code(2).says("cannot be read").says("LL_LOOP_POLICY");
    }
    Ran::of(&project.command(&["run", "main"]).env("LL_LOOP_POLICY", " ").output().unwrap()).code(0);
}

#[test]
fn doctor_and_validate_show_what_is_in_force() {
    let text = CHECK.replace("{action: echo fine,", "{action: echo fine, sandbox: off,");
    let project =
        Project::with_loop(&text).file("rules.yaml", "# by us\nsandbox: workspace\nhosts: [claude]\n");
    let project = project.env("LL_LOOP_POLICY", "rules.yaml");
    let place = "rules.yaml (LL_LOOP_POLICY)";
    project.run(&["doctor"]).says(&format!("\"workspace\" ({place}:2)"));
    let found = project.run(&["validate"]).code(2);
    found.says(&format!("policy in force: hosts: [\"claude\"] ({place}:3)")).says("[policy]");
    let found: Vec<Value> = project
        .run(&["validate", "--format", "json"])
        .code(2)
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_policy = found.iter().filter(|finding| finding["code"] == "policy").count();
    assert_eq!(of_policy, 1, "{found:?}");
    Project::with_loop(CHECK).run(&["doctor"]).says("none is in force here");
}

#[test]
fn doctor_shows_what_binds_the_run_around_it() {
    let program = crate::common::LL_LOOP.as_str();
    let text = format!(
        "name: main\ninitial: check\nstates:\n  check:\n    action: |\n      env -u LL_LOOP_POLICY {program} doctor > seen || true\n    \
         on_yes: done\n    on_no: failed\n  done: {{terminal: true}}\n  failed: {{terminal: true}}\n"
    );
    let project = Project::with_loop(&text).env("LL_LOOP_POLICY", "deliver: [pr]");
    project.run(&["run", "main"]).code(0);
    let seen = project.read("seen");
    assert!(seen.contains("LL_LOOP_POLICY:1") && !seen.contains("none is in force here"), "{seen}");
}

#[test]
fn a_run_inside_of_a_run_keeps_the_policy_whatever_its_environment_says() {
    let inner = CHECK
        .replace("name: main", "name: inner")
        .replace("{action: echo fine,", "{action: echo fine, sandbox: off,");
    let program = crate::common::LL_LOOP.as_str();
    for how in [
        format!("env -u LL_LOOP_POLICY {program} run inner"),
        format!("LL_LOOP_POLICY= {program} run inner"),
        format!("LL_LOOP_POLICY='hosts: [claude]' {program} run inner"),
        format!("env -i PATH=$PATH HOME=$HOME {program} run inner"),
        format!(
            "mkdir else && cp -r .loops else && cd else && env -i PATH=$PATH HOME=$HOME {program} run inner"
        ),
        format!(
            "env -u LL_LOOP_POLICY -u LL_LOOP_PARENT {program} validate; env -u LL_LOOP_POLICY {program} run inner"
        ),
    ] {
        let outer = format!(
            "name: main\nscope: [out]\ninitial: check\nstates:\n  check:\n    action: |\n      {how}\n    evaluate: {{type: exit_code, \"no\": [2]}}\n    \
             on_yes: done\n    on_no: kept\n  done: {{terminal: true}}\n  kept: {{terminal: true, outcome: failure}}\n"
        );
        let project = Project::with_loop(&outer).file(".loops/inner.yaml", &inner);
        let (_, ran) = under(project, "sandbox: workspace", &["run", "main"]);
        ran.code(1).says("the policy forbids");
    }
}

#[test]
fn a_run_that_goes_on_is_bound_by_what_bound_it_and_by_what_binds_there() {
    let project = fake_host::project(&["claude"], &asking("", ""), &answer());
    let run = |arguments: &[&str], policy: &str| {
        Ran::of(&project.command(arguments).env("LL_LOOP_POLICY", policy).output().unwrap())
    };
    // Nobody is asked, so the rule refuses nothing yet.
    run(&["run", "main", "--no-llm"], "hosts: [codex]\n").code(75);
    let began = &project.events()[0];
    assert_eq!(began["policy"], json!([{"origin": "LL_LOOP_POLICY", "text": "hosts: [codex]"}]), "{began}");
    run(&["resume", "main", "--llm", "--yes"], "").code(2).says("`hosts` (LL_LOOP_POLICY:1) allows `codex`");
    run(&["resume", "main", "--llm", "--yes"], "hosts: [claude]").code(2).says("allows `codex`");
    run(&["rewind", "main", "--to", "ask", "--llm", "--yes"], "").code(2);
    assert_eq!(fake_host::calls(&project), 0);
    let project = fake_host::project(&["claude"], &asking("", ""), &answer());
    let run = |arguments: &[&str], policy: &str| {
        Ran::of(&project.command(arguments).env("LL_LOOP_POLICY", policy).output().unwrap())
    };
    run(&["run", "main", "--no-llm"], "hosts: [claude]").code(75);
    run(&["resume", "main", "--llm", "--yes"], "hosts: [codex]").code(2).says("allows `codex`");
    run(&["resume", "main", "--llm", "--yes"], "").code(0);
    assert_eq!(fake_host::calls(&project), 1);
}

#[test]
fn a_sub_loop_that_only_the_run_knows_is_looked_at_in_its_turn() {
    let outer = "name: main\ninitial: check\ncontext: {which: inner}\nstates:\n  \
                 check: {loop: '${context.which}', on_yes: done, on_no: done, on_error: bad}\n  \
                 done: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n";
    let inner = CHECK
        .replace("name: main", "name: inner")
        .replace("{action: echo fine,", "{action: 'touch ran', sandbox: off,");
    let project = Project::with_loop(outer).file(".loops/inner.yaml", &inner);
    let (project, ran) = under(project, "sandbox: workspace", &["run", "main"]);
    ran.code(1).says("the policy forbids");
    assert!(!project.exists("ran"));
}

#[test]
fn deliveries_are_asked_too() {
    let text = "name: main\ninitial: fix\nstates:\n  fix: {action: 'echo b >a', next: check}\n  \
                check: {action: grep -q b a, on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text).file("a", "a\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "a", ".loops/main.yaml"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project.run(&["run", "main", "--report-dir", "report"]).code(0);
    let deliver = |policy: &str| {
        let arguments = ["deliver", "main", "--to", "patch", "--report-dir", "kept"];
        Ran::of(&project.command(&arguments).env("LL_LOOP_POLICY", policy).output().unwrap())
    };
    deliver("deliver: [pr]").code(2).says("`deliver` (LL_LOOP_POLICY:1) allows `pr`");
    deliver("deliver: []").code(2).says("allows none");
    deliver("approvals: 1").code(2).says("`approvals` (LL_LOOP_POLICY:1) asks for 1");
    // What else keeps a fix from being delivered is another question.
    assert_ne!(deliver("deliver: [patch]\napprovals: 0").code, Some(2));
}

#[test]
fn loops_of_other_repositories_are_asked_before_anybody_is_reached() {
    let (_, ran) =
        under(Project::new(), "sources: [octo-org/*]", &["add", "github:someone/loops/tidy.yaml@v1"]);
    ran.code(2).says("`sources` (LL_LOOP_POLICY:1) allows `octo-org/*`");
}

#[test]
fn without_a_policy_nothing_is_written_down() {
    let project = Project::with_loop(CHECK);
    project.run(&["run", "main"]).code(0);
    assert!(project.events()[0].get("policy").is_none());
}

#[test]
fn the_policies_and_the_table_of_the_documentation_are_those_of_the_program() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/policy.md")).unwrap();
    let mut count = 0;
    for block in page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let (_, ran) = under(Project::with_loop(CHECK), block, &["validate"]);
        ran.code(0).says("policy in force: ");
        count += 1;
    }
    assert_eq!(count, 3);
    let schema: Value =
        serde_json::from_str(&Project::new().run(&["schema", "--policy"]).code(0).stdout).unwrap();
    let described = |rule: &String| page.contains(&format!("| `{rule}:"));
    let missing: Vec<_> =
        schema["properties"].as_object().unwrap().keys().filter(|rule| !described(rule)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
