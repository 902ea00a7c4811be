//! The rules on small loops: every finding as `line:column code: message`.

use insta::assert_snapshot;

use super::*;
use crate::definition::{load, render};
use crate::machine::compile::compile;

type Check = fn(&Machine, &Loop) -> Diagnostics;

/// Checks the states of a loop that begins with the first of them. `top` is one line.
fn found_by(check: Check, top: &str, states: &str) -> String {
    let first = states.trim_start().split(':').next().unwrap_or_default();
    let text = format!("name: demo\ndescription: d\ninitial: {first}\n{top}\nstates:\n{states}");
    let loaded = load::decode("demo.yaml", &text, String::new())
        .unwrap_or_else(|rejected| panic!("{:#?}", rejected.findings));
    let (machine, problems) = compile(&loaded.definition);
    let machine = machine.unwrap_or_else(|| panic!("{problems:#?}"));
    let findings = check(&machine, &loaded.definition);
    let objects = render::to_json(&findings, &loaded.sources, Some(&loaded.tree));
    let word = |object: &serde_json::Value, key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let lines = objects.iter().map(|object| {
        let place = format!("{}:{}", object["line"], object["column"]);
        format!("{place} {}[{}]: {}", word(object, "severity"), word(object, "code"), word(object, "message"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn found(states: &str) -> String {
    found_by(super::check, "", states)
}

fn found_deeply(states: &str) -> String {
    found_by(check_deeply, "", states)
}

#[test]
fn a_loop_that_is_right_is_left_alone() {
    let states = "  check: {action: test, on_yes: done, on_no: fix}\n  fix: {action: repair, next: check}\n  done: {terminal: true}\n";
    assert_eq!(found(states), "");
    assert_snapshot!(found_deeply(states), @"6:3 note[dead-end]: an error in `check` ends the run: check");
}

#[test]
fn findings_about_verdicts_stand_on_their_keys() {
    let states = "
  a: {action: x, on_yes: b, on_no: b, on_progress: b}
  b: {action: x, route: {'yes': c, 'no': done, stuck: done}}
  c: {on_yes: d, on_no: d}
  d: {action: x, evaluate: {type: classify}, on_go: done}
  done: {terminal: true}
";
    assert_snapshot!(found(states), @"
    7:39 warning[impossible-verdict]: `a` never gives the verdict `progress` (exit_code)
    8:36 warning[unverified-success]: the failing verdict `no` of `b` leads to `done`, which is a success
    8:48 warning[impossible-verdict]: `b` never gives the verdict `stuck` (exit_code)
    9:18 warning[impossible-verdict]: `c` never gives the verdict `no` (no evaluator)
    10:18 warning[unhandled-verdict]: `d` has no route for a word that it does not name
    ");
}

#[test]
fn a_failing_verdict_is_no_success() {
    let states = "
  a: {action: x, on_yes: b, on_no: done}
  b: {action: x, on_yes: c, on_no: fine, on_error: c}
  c: {action: x, next: done, on_error: done}
  done: {terminal: true}
  fine: {terminal: true, outcome: success}
";
    assert_snapshot!(found(states), @"
    7:29 warning[unverified-success]: the failing verdict `no` of `a` leads to `done`, which is a success
    9:30 warning[unverified-success]: the failing verdict `error` of `c` leads to `done`, which is a success
    ");
}

#[test]
fn a_failure_explains_itself() {
    let states = "
  a: {action: x, on_yes: b, on_no: mute, on_error: failed}
  b: {action: x, on_yes: done, on_no: tell, on_error: error_told}
  tell: {action: say, next: told_failure}
  done: {terminal: true}
  mute: {terminal: true, outcome: failure}
  failed: {terminal: true, action: say}
  told_failure: {terminal: true}
  error_told: {terminal: true, outcome: failure, description: b cannot run}
";
    assert_snapshot!(found(states), @"11:3 note[silent-failure]: a run that ends in `mute` says nothing about why");
}

#[test]
fn a_capture_that_a_path_goes_around_is_shown_with_that_path() {
    let states = "
  a: {action: 'x ${prev.output:shell}', on_yes: b, on_no: c}
  b: {action: x, capture: x, next: d}
  c: {action: 'y ${captured.a:shell} ${captured.x?:shell}', next: d}
  d: {action: 'z ${captured.x:shell} ${captured.b.exit_code} ${captured.x.output:-none}', next: e}
  e: {action: q, evaluate: {type: output_contains, pattern: p, source: '${captured.e.output}'}, on_yes: done, on_no: e}
  done: {terminal: true, action: 'say ${result.verdict} ${captured.e:shell}'}
";
    assert_snapshot!(found(states), @"
    7:18 warning[maybe-unset]: `${prev.output}` may not be set: the run begins in `a`
    10:18 warning[maybe-unset]: `${captured.x}` may not be set: a → c reaches `d` without `b`
    10:38 warning[maybe-unset]: `${captured.b.exit_code}` may not be set: a → c reaches `d` without `b`
    10:62 warning[template-injection]: `${captured.x.output}` is pasted into a shell command unquoted
    ");
}

#[test]
fn a_word_within_an_answer_is_foreign_whatever_it_is_called() {
    let states = "
  a: {action: x, capture: out, next: b}
  b: {action: 'y ${captured.out.exit_code} ${prev.state}', next: c}
  c: {action: 'z ${captured.out.json.state} ${prev.json.exit_code}', next: done}
  done: {terminal: true}
";
    assert_snapshot!(found(states), @"
    9:18 warning[template-injection]: `${captured.out.json.state}` is pasted into a shell command unquoted
    9:45 warning[template-injection]: `${prev.json.exit_code}` is pasted into a shell command unquoted
    ");
}

#[test]
fn a_parameter_that_brings_foreign_text_into_a_command_is_seen() {
    let states = "
  a: {action: x, capture: out, next: b}
  b: {action: 'say ${param.what} ${param.what:shell} ${param.safe}', param: {what: 'it is ${captured.out}', safe: '${captured.out:shell}'}, next: done}
  done: {terminal: true}
";
    assert_snapshot!(found(states), @"8:20 warning[template-injection]: `${param.what}` brings `${captured.out}` into a shell command unquoted");
}

#[test]
fn the_handler_of_a_cap_is_come_to_from_where_the_cap_is_met() {
    let states = "
  a: {action: x, next: b}
  b: {action: x, capture: way, on_yes: done, on_no: c, on_error: d}
  c: {action: x, next: b}
  d: {action: x, next: b}
  report: {action: 'say ${captured.way:shell} ${captured.c:shell}', next: last}
  last: {action: 'say ${captured.nobody?}', next: done}
  done: {terminal: true}
";
    assert_snapshot!(found_by(super::check, "on_max_iterations: report", states), @"
    11:47 warning[maybe-unset]: `${captured.c}` may not be set: a → b reaches `report` without `c`
    12:23 warning[template-injection]: `${captured.nobody}` is pasted into a shell command unquoted
    ");
}

#[test]
fn the_handler_of_a_stall_is_come_to_from_where_a_loop_stalls() {
    let states = "
  a: {action: x, next: b}
  b: {action: x, on_yes: done, on_no: c, on_error: d}
  c: {action: x, next: b}
  d: {action: x, next: b}
  help: {action: 'say ${captured.b:shell} ${captured.c:shell}', next: done}
  done: {terminal: true}
";
    let stall = "stall: {window: 2, action: help}";
    assert_snapshot!(found_by(super::check, stall, states), @"11:43 warning[maybe-unset]: `${captured.c}` may not be set: a → b reaches `help` without `c`");
    let always = states.replace(", on_error: d}\n", "}\n").replace("  d: {action: x, next: b}\n", "");
    assert_snapshot!(found_by(super::check, stall, &always), @"");
    let deeply = found_by(super::check_deeply, stall, states);
    assert!(!deeply.contains("never-entered"), "{deeply}");
}

#[test]
fn a_capture_of_nobody_is_told_apart() {
    let states = "
  a: {action: 'x ${captured.outt:shell}', capture: out, next: b}
  b: {next: c}
  c: {action: 'x ${captured.b:shell} ${context.nothing}', next: done}
  done: {terminal: true}
";
    assert_snapshot!(found(states), @"
    7:18 warning[undefined-capture]: `${captured.outt}` is captured by no state
    9:18 warning[undefined-capture]: `${captured.b}` is captured by no state
    9:38 warning[undefined-context]: `${context.nothing}` is not defined in this file
    ");
}

#[test]
fn cycles_that_nothing_but_a_limit_ends() {
    let states = "
  a: {action: x, on_yes: b, on_no: d}
  b: {action: x, next: c}
  c: {action: x, next: b}
  d: {evaluate: {type: output_contains, pattern: p, source: '${captured.a.output}'}, on_yes: e, on_no: f}
  e: {next: d}
  f: {action: pop, next: g, on_error: done}
  g: {action: work, next: f}
  done: {terminal: true}
";
    assert_snapshot!(found(states), @"
    8:3 warning[no-end]: no terminal can be reached from `b`
    9:3 warning[no-end]: no terminal can be reached from `c`
    9:18 warning[cycle-without-evaluation]: the cycle b → c → b judges nothing
    10:3 warning[cycle-without-work]: the cycle d → e → d runs nothing
    12:29 warning[unverified-success]: the failing verdict `error` of `f` leads to `done`, which is a success
    ");
}

#[test]
fn an_evaluation_that_cannot_work_leads_forward() {
    let states = "
  generate: {action: x, next: evaluate}
  evaluate: {action: y, on_yes: done, on_no: generate, on_error: generate}
  done: {terminal: true}
";
    assert_snapshot!(found(states), @"8:56 warning[cycle-without-progress]: when `evaluate` cannot judge, it leads back to `generate`: generate → evaluate → generate goes round with nothing learnt");
    assert_eq!(found_by(super::check, "max_edge_revisits: 3", states), "");
    let forward = states.replace("on_error: generate", "on_error: fallback")
        + "  fallback: {action: z, on_yes: done, on_no: generate}\n";
    assert_eq!(found(&forward), "");
    let check_first = "
  check: {action: y, on_yes: done, on_no: fix, on_error: fix}
  fix: {action: x, next: check}
  done: {terminal: true}
";
    assert_eq!(found(check_first), "");
}

#[test]
fn every_bad_end_is_shown_with_the_shortest_way_there() {
    let states = "
  a: {action: x, on_yes: b, on_no: trap, on_error: b}
  b: {action: x, timeout: 5, on_yes: c, on_no: fix, on_blocked: never_failed}
  fix: {action: y, next: done}
  c: {action: y, evaluate: {type: classify}, on_go: done}
  trap: {action: z, on_yes: trap, on_no: deeper, on_error: trap}
  deeper: {action: z, on_yes: trap, on_no: trap, on_blocked: done, on_error: deeper}
  done: {terminal: true}
  never_failed: {terminal: true}
";
    assert_snapshot!(found_deeply(states), @"
    8:3 note[dead-end]: an error in `b` ends the run: a (yes) → b
    8:53 warning[impossible-verdict]: `b` never gives the verdict `blocked` (exit_code)
    10:3 warning[dead-end]: `blocked` in `c` ends the run before any state can react: a (yes) → b (yes) → c
    10:3 warning[dead-end]: a word that `c` does not name ends the run with an error: a (yes) → b (yes) → c
    10:3 note[dead-end]: an error in `c` ends the run: a (yes) → b (yes) → c
    11:3 warning[endless]: from `trap` on, only a limit ends the run: a (no) → trap
    12:50 warning[impossible-verdict]: `deeper` never gives the verdict `blocked` (exit_code)
    13:3 warning[unverified-path]: a run can end in `done` with nothing verified: a (yes) → b (no) → fix → done
    14:3 warning[never-entered]: no run can end in `never_failed`, so nothing ever counts as this failure
    ");
}

#[test]
fn retries_and_caps_are_walked_too() {
    let states = "
  a: {action: x, on_yes: done, on_no: a, on_error: a, max_retries: 3, on_retry_exhausted: gone}
  gone: {action: y, next: done}
  report: {action: y, next: done}
  done: {terminal: true, outcome: success}
";
    assert_snapshot!(found_by(check_deeply, "on_max_iterations: report", states), @"");
}
