//! `ll-loop compile`: what is printed is a loop that runs as the one it was made from.

use serde_json::Value;

use crate::common::Project;

const GOAL: &str = "\
paradigm: goal
goal: The flag exists
tools: ['test -f flag', {tool: 'touch flag; echo done', timeout: 10}]
max_iterations: 4
";

/// The states and routes of a run.
fn path(project: &Project) -> Vec<(Value, Value)> {
    let routes = project.events().into_iter().filter(|event| event["event"] == "route");
    routes.map(|event| (event["from"].clone(), event["to"].clone())).collect()
}

#[test]
fn what_is_compiled_runs_the_same_way() {
    let project = Project::with_loop(GOAL);
    let ran = project.run(&["compile", "main", "--output", "plain.yaml"]).code(0);
    assert_eq!(ran.stdout, "");
    let printed = project.run(&["compile", "main"]).code(0).stdout;
    assert_eq!(printed, project.read("plain.yaml"));
    assert_eq!(project.run(&["compile", "plain.yaml"]).code(0).stdout, printed);
    drop(project.run(&["run", "main"]).code(0));
    let plain = Project::with_loop(&printed);
    drop(plain.run(&["run", "main"]).code(0));
    assert_eq!(path(&project), path(&plain));
    assert_eq!(path(&plain).len(), 3);
}

#[test]
fn the_loop_itself_is_not_overwritten() {
    let project = Project::with_loop(GOAL);
    let ran = project.run(&["compile", "main", "--output", ".loops/../.loops/main.yaml"]).code(2);
    drop(ran.says("would be overwritten"));
    assert_eq!(project.read(".loops/main.yaml"), GOAL);
    drop(project.run(&["compile", "main", "-o", "no/such/directory.yaml"]).code(4));
}

#[test]
fn what_cannot_be_compiled_is_drawn() {
    let project = Project::with_loop("paradigm: goal\ngoal: g\n");
    let ran = project.run(&["compile", "main"]).code(2);
    assert_eq!(ran.stdout, "");
    drop(ran.says("`tools` is missing").says("a loop of this form needs `goal` and `tools`"));
}

#[test]
fn exit_codes_that_mean_no_are_printed_so_that_every_reader_of_yaml_reads_them() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: exit 101, evaluate: {type: exit_code, no: [1, 3-9, 101]}, on_yes: b, on_no: done}\n  b: {terminal: true, outcome: failure}\n  done: {terminal: true}\n",
    );
    let printed = project.run(&["compile", "main"]).code(0).stdout;
    assert!(printed.contains("'no':\n        - 1\n        - '3-9'\n        - 101\n"), "{printed}");
    let again = Project::with_loop(&printed);
    drop(again.run(&["run", "main", "--no-ci"]).code(0));
    assert_eq!(path(&again).len(), 1);
}
