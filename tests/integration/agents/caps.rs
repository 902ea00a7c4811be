//! Agents in CI need a cap on what they may cost.

use serde_json::json;

use crate::common::Project;
use crate::fake_host::{self, calls, prints};

const LOOP: &str = "name: main
description: an agent
initial: fix
states:
  fix: {action: '/fix it', evaluate: {type: exit_code}, on_yes: done, on_no: bad}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure}
";

/// A loop that runs `kid`.
const OUTER: &str = "name: main
description: around another one
initial: work
states:
  work: {loop: kid, on_yes: done, on_no: done}
  done: {terminal: true}
";

fn project(text: &str) -> Project {
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "did it", "total_cost_usd": 0.5});
    fake_host::project(&["claude"], text, &[prints(&[result])])
}

fn with_budget(text: &str, budget: &str) -> String {
    format!("budget: {{{budget}}}\n{text}")
}

/// Runs a loop with agents in CI.
fn run(project: &Project, more: &[&str]) -> crate::common::Ran {
    project.run(&[&["run", "main", "--ci=plain", "--llm", "--no-strict"], more].concat())
}

#[track_caller]
fn assert_refused(ran: crate::common::Ran, who: &str) {
    let ran = ran.code(2);
    for part in [who, "nothing caps what that costs", "`--max-llm-calls N`", "`budget:`", "`--no-budget`"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.all());
    }
}

#[test]
fn an_agent_in_ci_needs_a_cap() {
    let uncapped = project(LOOP);
    assert_refused(run(&uncapped, &[]), "`fix` may ask an agent");
    assert_eq!(calls(&uncapped), 0);
    for cap in ["--max-cost=2", "--max-tokens=1000", "--max-llm-calls=5", "--no-budget"] {
        let project = project(LOOP);
        run(&project, &[cap]).code(0);
        assert_eq!(calls(&project), 1, "{cap}");
    }
    for cap in ["cost_usd: 2", "tokens: 1000", "llm_calls: 5"] {
        run(&project(&with_budget(LOOP, cap)), &[]).code(0);
    }
    assert_refused(run(&project(&with_budget(LOOP, "unpriced: allow")), &[]), "`fix`");
}

#[test]
fn nobody_else_needs_one() {
    project(LOOP).run(&["run", "main", "--no-ci", "--llm"]).code(0);
    project(LOOP).run(&["run", "main", "--ci=plain"]).code(75);
    let shell = LOOP.replace("'/fix it'", "'true'");
    run(&project(&shell), &[]).code(0);
    let forbidden = format!("llm: {{enabled: false}}\n{LOOP}");
    run(&project(&forbidden), &[]).code(75);
    let recorded = project(LOOP);
    recorded.run(&["run", "main", "--no-ci", "--record", "kept"]).code(0);
    recorded.run(&["run", "main", "--ci=plain", "--no-strict", "--replay", "kept"]).code(0);
}

#[test]
fn judges_and_recordings_need_one() {
    let judged = LOOP.replace(
        "'/fix it', evaluate: {type: exit_code}",
        "'true', evaluate: {type: llm_structured, prompt: ok}",
    );
    assert_refused(run(&project(&judged), &[]), "`fix` may ask");
    assert_refused(run(&project(LOOP), &["--record", "kept"]), "`fix` may ask");
}

#[test]
fn a_sub_loop_is_under_the_cap_of_the_loop_around_it() {
    let kid = LOOP.replace("name: main", "name: kid");
    let family = |outer: &str, kid: &str| project(outer).file(".loops/kid.yaml", kid);
    assert_refused(run(&family(OUTER, &kid), &[]), "`fix` of the loop `kid` may ask");
    run(&family(OUTER, &kid), &["--max-llm-calls", "5"]).code(0);
    run(&family(&with_budget(OUTER, "llm_calls: 5"), &kid), &[]).code(0);
    run(&family(OUTER, &with_budget(&kid, "llm_calls: 5")), &[]).code(0);
    let unknown = OUTER
        .replace("loop: kid", "loop: '${context.next}'")
        .replace("states:", "context: {next: kid}\nstates:");
    assert_refused(run(&family(&unknown, &kid), &[]), "`work` may ask");
}

#[test]
fn the_cap_of_a_run_goes_on_with_it() {
    let began = |more: &[&str]| {
        let project = project(LOOP);
        project.run(&[&["run", "main", "--ci=plain"], more].concat()).code(75);
        project
    };
    let resume = |project: &Project, more: &[&str]| {
        project.run(&[&["resume", "main", "--ci=plain", "--llm", "--no-strict"], more].concat())
    };
    resume(&began(&["--max-cost", "2"]), &[]).code(0);
    let uncapped = began(&[]);
    assert_refused(resume(&uncapped, &[]), "`fix`");
    resume(&uncapped, &["--max-tokens", "1000"]).code(0);
    // What was agreed to for the first job was not agreed to for the one with the key.
    assert_refused(resume(&began(&["--no-budget"]), &[]), "`fix`");
}

#[test]
fn the_action_has_inputs_for_it() {
    let action = |name: &str, value: &str| {
        let project =
            project(LOOP).env("INPUT_LOOP", "main").env("INPUT_LLM", "true").env("INPUT_STRICT", "false");
        project.env(&format!("INPUT_{name}"), value).run(&["action"])
    };
    for (name, value) in
        [("MAX_COST", "2.50"), ("MAX-TOKENS", "1000"), ("MAX_LLM_CALLS", "5"), ("ARGS", "--no-budget")]
    {
        action(name, value).code(0);
    }
    assert_refused(action("MAX_COST", ""), "`fix`");
    for (name, value) in
        [("MAX_COST", "-1"), ("MAX_COST", "NaN"), ("MAX_TOKENS", "0"), ("MAX_LLM_CALLS", "many")]
    {
        action(name, value).code(2).says(&format!("` is `{value}`"));
    }
}
