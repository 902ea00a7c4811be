//! The rules on small loops: every finding as `line:column code: message`.

use insta::assert_snapshot;

use super::*;
use crate::base::text::up_to;
use crate::definition::{load, render};
use crate::machine::compile::compile;

type Check = fn(&Machine, &Loop) -> Diagnostics;

/// Checks the states of a loop that begins with the first of them. `top` is one line.
fn found_by(check: Check, top: &str, states: &str) -> String {
    let first = up_to(states.trim_start(), &[':']);
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

/// What is said about names in the action of a second state, or in a terminal.
fn names_in(action: &str) -> Vec<String> {
    let states = format!(
        "  a: {{action: x, capture: c, on_yes: b, on_no: done}}\n  b: {{action: \"{action}\", next: done}}\n  \
         kid: {{loop: k, on_success: done, on_failure: done}}\n  done: {{terminal: true, action: \"{action}\"}}\n"
    );
    let text = format!("name: demo\ndescription: d\ninitial: a\nstates:\n{states}");
    let loaded = load::decode("demo.yaml", &text, String::new()).unwrap();
    let (_, problems) = compile(&loaded.definition);
    let said =
        |found: &Diagnostic| format!("{}; {}", found.message, found.help.as_deref().unwrap_or_default());
    problems.iter().filter(|found| found.code == "unknown-name").map(said).collect()
}

#[test]
fn a_name_that_cannot_exist_is_an_error_wherever_it_stands() {
    for (expression, expected) in [
        ("captured.c.outptu", "`captured.c` has no `outptu`; did you mean `captured.c.output`?"),
        ("captured.a.exit_cod", "`captured.a` has no `exit_cod`; did you mean `captured.a.exit_code`?"),
        ("captured.c.output.x", "`captured.c.output` has no `x`; write `${captured.c.output}`"),
        (
            "captured.c.0",
            "`captured.c` has no `0`; `captured.c` has `output`, `json`, `stderr`, `exit_code`, \
          `duration_ms`, `verdict`, `state`, `failure_type` and `timeout_kind`",
        ),
        ("captured.kid.x.outptu", "`captured.kid.x` has no `outptu`; did you mean `captured.kid.x.output`?"),
        ("prev.outptu", "`prev` has no `outptu`; did you mean `prev.output`?"),
        (
            "prev.x?",
            "`prev` has no `x`; `prev` has `output`, `json`, `stderr`, `exit_code`, `duration_ms`, \
          `verdict`, `state`, `failure_type` and `timeout_kind`",
        ),
        ("result.verdct", "`result` has no `verdct`; did you mean `result.verdict`?"),
        (
            "result.details.exitcode",
            "`result.details` has no `exitcode`; did you mean `result.details.exit_code`?",
        ),
        ("loop.nme:-none", "`loop` has no `nme`; did you mean `loop.name`?"),
        ("loop.name.x", "`loop.name` has no `x`; write `${loop.name}`"),
        ("state.x", "`state` has no `x`; `state` has `name`, `iteration`, `step` and `attempt`"),
        ("messages.lst(3)", "`messages` has no `lst(3)`; did you mean `messages.last(3)`?"),
        ("messages.last(many)", "`messages` has no `last(many)`; did you mean `messages.last(3)`?"),
        ("criteria.unmt", "`criteria` has no `unmt`; did you mean `criteria.unmet`?"),
        ("board.taks", "`board` has no `taks`; did you mean `board.task`?"),
    ] {
        let found = names_in(&format!("x ${{{expression}}}"));
        // In the state and in the terminal.
        assert_eq!(found.len(), 2, "{expression}: {found:?}");
        assert!(found[0].ends_with(&format!(" cannot have a value: {expected}")), "{expression}: {found:?}");
    }
}

#[test]
fn a_name_that_some_run_can_have_is_left_alone() {
    for expression in [
        "captured.c",
        "captured.c.json.a.b",
        "captured.c.verdict",
        "captured.elsewhere.outptu",
        "captured.kid.terminated_by",
        "captured.kid.failure_terminal?",
        "captured.kid.error:-none",
        "captured.kid.report",
        "captured.kid.report.output",
        "captured.kid.report.json.x",
        "captured.kid.grandchild.terminated_by",
        "captured.kid.grandchild.report.output",
        "prev.json.a.0",
        "result.details",
        "result.details.error",
        "result.details.exit_code",
        "messages",
        "messages.last(12)",
        "env.X",
        "context.x.y",
        "board.task",
        "criteria.next_step",
    ] {
        assert_eq!(names_in(&format!("x ${{{expression}}}")), [""; 0], "{expression}");
    }
}

#[test]
fn the_details_are_those_of_the_evaluations_that_can_come_before() {
    let found = |states: &str| {
        let text =
            format!("name: demo\ndescription: d\ninitial: a\nstates:\n{states}  done: {{terminal: true}}\n");
        let loaded = load::decode("demo.yaml", &text, String::new()).unwrap();
        let (_, problems) = compile(&loaded.definition);
        problems.iter().filter(|found| found.code == "unknown-name").count()
    };
    let number = "{type: output_numeric, target: 1}";
    let form = "{type: llm_structured, schema: {type: object, properties: {verdict: {type: string}}}}";
    let a = format!("  a: {{action: x, evaluate: {number}, on_yes: b, on_no: c}}\n");
    let use_of = |state: &str, name: &str, next: &str| {
        format!("  {state}: {{action: 'echo ${{result.details.{name}}}', {next}}}\n")
    };
    let c = "  c: {action: x, on_yes: d, on_no: d}\n";
    let all = |b: &str, d: &str| {
        found(&format!("{a}{}{c}{}", use_of("b", b, "next: done"), use_of("d", d, "next: done")))
    };
    assert_eq!(all("value", "exit_code"), 0);
    assert_eq!(all("operator", "value"), 1, "the exit code was looked at last");
    assert_eq!(all("pattern", "exit_code"), 1);
    // A model's answer in a form of the loop's own may have anything.
    let asked = format!("  a: {{action: x, evaluate: {form}, on_yes: b, on_no: b}}\n");
    assert_eq!(found(&format!("{asked}{}", use_of("b", "whatever", "next: done"))), 0);
    // The message is about the state itself.
    let message = |name: &str| {
        let message = format!("append_to_messages: '${{result.details.{name}}}'");
        found(&format!(
            "  a: {{action: x, evaluate: {number}, on_yes: b, on_no: b}}\n  b: {{action: x, {message}, on_yes: done, on_no: done}}\n"
        ))
    };
    assert_eq!((message("exit_code"), message("value")), (0, 1));
}

/// The findings of the check against injection, for the action of a state, with what stands at the top of the file.
fn pasted(top: &str, action: &str) -> Vec<String> {
    let indented = action.replace('\n', "\n      ");
    let text = format!(
        "name: demo\ndescription: d\ninitial: a\n{top}\nstates:\n  a: {{action: x, capture: c, evaluate: {{type: classify}}, \
         route: {{fine: b, _: b}}}}\n  b:\n    action: |\n      {indented}\n    next: done\n  done: {{terminal: true}}\n"
    );
    let loaded = load::decode("demo.yaml", &text, String::new())
        .unwrap_or_else(|rejected| panic!("{text}{:#?}", rejected.findings));
    let (machine, problems) = compile(&loaded.definition);
    let machine = machine.unwrap_or_else(|| panic!("{problems:#?}"));
    let findings = super::check(&machine, &loaded.definition);
    let injections = findings.iter().filter(|finding| finding.code == injection::CODE);
    injections.map(|finding| finding.message.clone()).collect()
}

#[test]
fn what_others_wrote_is_seen_in_every_shell_text() {
    for text in [
        "echo ${captured.c}",
        "echo ${captured.c:default=none}",
        "echo ${captured.c:-none}",
        "echo ${captured.c?}",
        "echo '${captured.c}'",
        "echo \"${captured.c}\"",
        "echo \"$(cat <<EOF\n${captured.c}\nEOF\n)\"",
        "cat <<'EOF'\n${captured.c}\nEOF",
        "# ${captured.c}",
        "eval ${captured.c}",
        "echo ${prev.stderr}",
        "echo ${prev.verdict}",
        "echo ${captured.c.verdict}",
        "echo ${result.verdict}",
        "echo ${result.details.line}",
        "echo ${loop.continuation}",
        "echo ${messages}",
        "echo ${messages.last(2)}",
        "echo ${board.task}",
        "echo ${criteria.unmet}",
        "echo ${env.TITLE}",
        "echo ${context.title}",
        "echo ${context.again}",
        "echo ${context.deep}",
        "echo ${context}",
        "echo ${context.one_of_two}",
        "echo ${context.preset}",
        // Quoted, where quoting does not help.
        "echo '${captured.c:shell}'",
        "echo \"${captured.c:shell}\"",
        "echo `echo ${captured.c:shell}`",
        "cat <<EOF\n${captured.c:shell}\nEOF",
        "echo $((${captured.c:shell}))",
        "echo x # ${captured.c:shell}",
        "eval echo ${captured.c:shell}",
        "echo \\${captured.c:shell}",
        "echo \"${context.quoted}\"",
    ] {
        let top = "parameters: {preset: {type: string, default: '${env.P}'}}\ncontext: {title: 'a ${env.TITLE}', again: '${context.title}', deep: [{x: '${context.again}'}], quoted: '${env.TITLE:shell}', one_of_two: '${context.quoted} ${context.title}'}";
        assert_eq!(pasted(top, text).len(), 1, "{text}");
    }
}

#[test]
fn what_the_author_or_the_engine_wrote_is_pasted_as_it_likes() {
    for text in [
        "echo ${captured.c:shell} ${prev.output:shell} ${result.verdict:shell} ${messages:shell}",
        "echo ${captured.c.exit_code} ${captured.c.duration_ms} ${prev.exit_code} ${prev.state}",
        "echo ${state.name} ${state.attempt} ${loop.name} ${loop.run_id} ${loop.run_dir} ${loop.elapsed}",
        "echo \"$(echo ${captured.c:shell})\"",
        "echo \"${context.own}\" ${context.number}",
        "echo ${context.quoted}",
        "echo $${captured}",
        "echo \"$LL_CAPTURED_C\"",
    ] {
        let top = "context: {own: 'a b', number: 4, quoted: '${env.TITLE:shell}'}";
        assert_eq!(pasted(top, text), [""; 0], "{text}");
    }
    // A word that an evaluator chooses among its own is not text from outside.
    let states = "  a: {action: x, on_yes: b, on_no: b}\n  b: {action: 'echo ${result.verdict} ${prev.verdict} ${captured.a.verdict}', next: done}\n  done: {terminal: true}\n";
    assert_eq!(found(states), "");
}

#[test]
fn captures_that_share_a_variable_are_told() {
    let states = |one: &str, other: &str| {
        format!(
            "  a: {{action: x, capture: {one}, next: b}}\n  b: {{action: y, capture: {other}, next: done}}\n  done: {{terminal: true}}\n"
        )
    };
    let said = found(&states("my-cap", "my_cap"));
    assert!(said.contains("7:18 warning[same-variable]: `my-cap` and `my_cap` share"), "{said}");
    let said = found(&states("cap", "cap"));
    assert!(!said.contains("same-variable"), "{said}");
}

#[test]
fn what_a_run_is_given_is_foreign_when_the_caller_says_so() {
    let text = "name: demo\ninitial: a\nstates: {a: {action: 'echo ${context.title} ${context.number} \"${context.title:shell}\"', next: done}, done: {terminal: true}}\n";
    let loaded = load::decode("demo.yaml", text, String::new()).unwrap();
    let machine = compile(&loaded.definition).0.unwrap();
    let found = |names: &[&str]| {
        let outside = names.iter().map(|name| (*name).to_owned()).collect();
        injection::injections(&machine, &outside).total()
    };
    assert_eq!((found(&[]), found(&["title"]), found(&["title", "number"])), (0, 2, 3));
}

#[test]
fn quoting_for_a_shell_is_no_quoting_for_another_language() {
    let found = |shell: &str| {
        let states = format!(
            "  a: {{action: 'print(${{env.X:shell}})', shell: {shell}, next: done}}\n  done: {{terminal: true}}\n"
        );
        found(&states)
    };
    assert_eq!(found("[bash, -euo, pipefail, -c]"), "");
    assert_eq!(found("[sudo, -E, /bin/dash, -c]"), "");
    assert_snapshot!(found("[/usr/bin/python3.12, -c]"), @"6:22 warning[template-injection]: `${env.X}` is pasted into a program for `/usr/bin/python3.12`");
    assert!(found("[env, node, -e]").contains("a program for `node`"));
}

#[test]
fn the_action_of_a_terminal_is_a_command_as_well() {
    let states =
        "  a: {action: x, capture: c, next: done}\n  done: {terminal: true, action: 'echo ${captured.c}'}\n";
    assert_snapshot!(found(states), @"7:40 warning[template-injection]: `${captured.c}` is pasted into a shell command unquoted");
}

#[test]
fn directories_and_variables_are_no_commands() {
    let states = "  a: {action: x, capture: c, next: b}\n  b: {action: 'echo \"$C\"', cwd: '${captured.c}', env: {C: '${captured.c}'}, next: done}\n  done: {terminal: true}\n";
    assert_eq!(found(states), "");
}
