//! `ll-loop action`: the inputs of the GitHub Action.

use crate::common::Project;

const ECHO: &str = "\
name: main
initial: a
parameters: {p: {type: string, default: ''}}
context: {c: ''}
input_key: said
states:
  a: {action: \"printf '%s|%s|%s' ${context.p:shell} ${context.c:shell} ${context.said?:shell} > out\", next: done}
  done: {terminal: true}
";

fn action(inputs: &[(&str, &str)]) -> Project {
    inputs.iter().fold(Project::with_loop(ECHO), |project, (name, value)| {
        project.env(&format!("INPUT_{name}"), *value)
    })
}

#[test]
fn inputs_become_the_run_byte_for_byte() {
    let hostile = "a \"quoted\" $(touch pwned) `id` 'x' \\ ${context.c} --help";
    let project =
        action(&[("LOOP", "main"), ("INPUT", hostile), ("PARAMS", "p=1=2\n\n"), ("CONTEXT", "c= x ")]);
    project.run(&["action"]).code(0);
    assert_eq!(project.read("out"), format!("1=2| x |{hostile}"));
    assert!(!project.exists("pwned"));
}

#[test]
fn the_runners_names_and_a_shells_names_both_work() {
    for name in ["WORKING-DIRECTORY", "WORKING_DIRECTORY"] {
        let project = action(&[("LOOP", "main"), (name, "sub")]).file("sub/.loops/main.yaml", ECHO);
        project.run(&["action"]).code(0);
        assert!(project.exists("sub/out"));
    }
}

#[test]
fn args_are_split_like_a_shell_does_but_by_no_shell() {
    let project = action(&[("LOOP", "main"), ("ARGS", "--context 'c=a b' --max-iterations 3")]);
    project.run(&["action"]).code(0);
    assert_eq!(project.read("out"), "|a b|");
    assert_eq!(project.state()["overrides"]["max_iterations"], 3);
    action(&[("LOOP", "main"), ("ARGS", "--context 'c")]).run(&["action"]).code(2).says("open quote");
}

#[test]
fn wrong_inputs_name_themselves() {
    action(&[]).run(&["action"]).code(2).says("the input `loop` is missing");
    action(&[("LOOP", "main"), ("STRICT", "maybe")])
        .run(&["action"])
        .code(2)
        .says("the input `strict` is `maybe`");
    action(&[("LOOP", "main"), ("DEADLINE", "soon")]).run(&["action"]).code(2).says("`deadline`");
    action(&[("LOOP", "main"), ("PARAMS", "novalue")]).run(&["action"]).code(2).says("KEY=VALUE");
    action(&[("LOOP", "--help")]).run(&["action"]).code(2).says("no loop named `--help`");
}
