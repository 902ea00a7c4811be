//! `ll-loop action`: the inputs of the GitHub Action.

use rustix::process::Signal;

use crate::common::{Project, signal};

const ECHO: &str = "\
name: main
initial: a
parameters: {p: {type: string, default: ''}}
context: {c: ''}
input_key: said
states:
  a: {action: \"printf '%s|%s|%s' ${context.p:shell} ${context.c:shell} ${context.said?:shell} > out\", on_yes: done}
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
    action(&[("LOOP", "main"), ("ON_CHANGE", "maybe")])
        .run(&["action"])
        .code(2)
        .says("write `fail` or `report`");
    action(&[("LOOP", "main"), ("DEADLINE", "soon")]).run(&["action"]).code(2).says("`deadline`");
    action(&[("LOOP", "main"), ("PARAMS", "novalue")]).run(&["action"]).code(2).says("KEY=VALUE");
    action(&[("LOOP", "main"), ("LOCK", "svn")]).run(&["action"]).code(2).says("write `git` or `git=REMOTE`");
    action(&[("LOOP", "main"), ("LOCK", "git")]).run(&["action"]).code(69).says("needs a git repository");
    action(&[("LOOP", "--help")]).run(&["action"]).code(2).says("no loop named `--help`");
}

#[test]
fn a_run_that_was_killed_is_saved_by_a_later_step_and_gone_on_with() {
    let text = "\
name: main
initial: a
context: {c: ''}
states:
  a: {action: 'touch begun; while ! test -f go && test -d $PWD; do sleep 0.02; done; echo ${context.c:shell} > out', on_yes: done}
  done: {terminal: true}
";
    let project = Project::with_loop(text);
    let root = project.path().to_string_lossy().into_owned();
    let project = project
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_WORKSPACE", root.as_str())
        .env("GITHUB_OUTPUT", format!("{root}/outputs"))
        .env("INPUT_LOOP", "main")
        .env("INPUT_CONTEXT", "c=kept");
    let mut child = project.start_until(&["action"], "begun");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    project.write("go", "");
    let outputs = project.read("outputs");
    let announced = |name: &str| {
        let mut lines = outputs.lines().skip_while(|line| !line.starts_with(&format!("{name}<<")));
        lines.nth(1).unwrap().to_owned()
    };
    assert!(!outputs.contains("outcome<<"));
    let (run, reports) = (announced("run-id"), announced("report-dir"));
    let project = project.env("INPUT_RUN", run.as_str()).env("INPUT_REPORT-DIR", reports.as_str());
    project.run(&["action", "save"]).code(0);
    assert!(project.exists(&format!("{reports}/{run}.llz")));
    let resumed = project.env("INPUT_RESUME-FROM", reports).env("INPUT_REPORT-DIR", "");
    resumed.run(&["action"]).code(0).says("which was killed, in a");
    assert_eq!(resumed.read("out"), "kept\n");
}

#[test]
fn inputs_that_are_not_what_they_should_be_are_named() {
    for (name, value) in
        [("LLM", "maybe"), ("CHECKPOINT-EVERY", "often"), ("ON-HANDOFF", "x"), ("RETENTION-DAYS", "0")]
    {
        let project = action(&[("LOOP", "main"), (name, value)]);
        project.run(&["action", "all"]).code(2).says(&format!("`{}`", name.to_lowercase()));
        assert!(!project.exists("out"));
    }
}
