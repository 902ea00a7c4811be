//! `ll-loop validate`: findings with places, and an exit code that means something.

use insta::assert_snapshot;

use crate::common::{CHECK_FIX, Project};

#[test]
fn a_good_file_is_good() {
    let ran = Project::with_loop(CHECK_FIX).run(&["validate", "main"]).code(0);
    assert_eq!(ran.stdout, "✓ .loops/main.yaml\n");
}

#[test]
fn warnings_fail_only_when_asked() {
    let text = "\
name: main
description: d
initial: a
states:
  a: {action: echo x, capture: out, next: b}
  b: {action: 'echo ${captured.out.output}', on_yes: done, on_progress: done}
  island: {next: done}
  done: {terminal: true}
";
    let project = Project::with_loop(text);
    let ran = project.run(&["validate", "main"]).code(0);
    assert_snapshot!(ran.stdout, @r#"
    warning[impossible-verdict]: `b` never gives the verdict `progress` (exit_code)
     --> .loops/main.yaml:6:3
      |
    6 |   b: {action: 'echo ${captured.out.output}', on_yes: done, on_progress: done}
      |   ^
      |
      = help: it can give `yes`, `no`, and `error` or `timeout` when the action fails

    warning[unhandled-verdict]: `b` has no route for the verdict `no`
     --> .loops/main.yaml:6:3
      |
    6 |   b: {action: 'echo ${captured.out.output}', on_yes: done, on_progress: done}
      |   ^
      |
      = help: add `on_no`, or `_` in `route` for any other; without it the run ends with an error

    warning[template-injection]: `${captured.out.output}` is pasted into a shell command unquoted
     --> .loops/main.yaml:6:21
      |
    6 |   b: {action: 'echo ${captured.out.output}', on_yes: done, on_progress: done}
      |                     ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write `${captured.out.output:shell}`, or read "$LL_CAPTURED_OUT" in the command

    warning[unreachable]: the state `island` is never reached
     --> .loops/main.yaml:7:3
      |
    7 |   island: {next: done}
      |   ^^^^^^
      |
      = help: route to it from another state, or remove it

    ✓ .loops/main.yaml: 4 warnings
    "#);
    project.run(&["validate", "main", "--strict"]).code(2);
}

#[test]
fn all_loops_are_validated_when_none_is_named() {
    let project = Project::with_loop(CHECK_FIX)
        .file(".loops/bad.yaml", "name: bad\ninitial: a\nstates: {a: {next: b}}\n");
    let ran = project.run(&["validate"]).code(2);
    assert!(
        ran.stdout.contains("✓ .loops/main.yaml") && ran.stdout.contains("✗ .loops/bad.yaml"),
        "{}",
        ran.stdout
    );
}

#[test]
fn findings_are_data_when_asked() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: x, on_sucess: b}\n  b: {terminal: true}\n",
    );
    let ran = project.run(&["validate", "main", "--format", "json"]).code(2);
    let findings: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let unknown = findings.iter().find(|finding| finding["code"] == "unknown-key").unwrap();
    assert_eq!((&unknown["line"], &unknown["column"]), (&4.into(), &18.into()), "{unknown}");
    assert_eq!(unknown["severity"], "error");
}
