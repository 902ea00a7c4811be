//! The variables that a loop has without declaring them.

use crate::common::{Project, git};

/// A loop that prints an expression into `shown`, with these keys.
fn project(top: &str, expression: &str) -> Project {
    Project::with_loop(&format!(
        "name: main\ndescription: x\ninitial: show\n{top}\nstates:\n  show: {{action: \"printf '%s' {expression} > shown\", next: done}}\n  done: {{terminal: true, outcome: success}}\n"
    ))
}

fn shown(top: &str, expression: &str, arguments: &[&str]) -> String {
    let project = project(top, expression);
    project.run(&["validate", "main", "--strict"]).code(0);
    project.run(&[&["run", "main"], arguments].concat()).code(0);
    project.read("shown")
}

#[test]
fn the_directory_of_the_run_is_absolute_and_the_one_of_the_environment() {
    let project = Project::with_loop(
        "name: main\ndescription: x\ninitial: show\ncontext: {file: '${context.run_dir}list'}\nstates:\n  show: {action: 'echo ${context.run_dir} $LL_RUN_DIR ${context.file} > shown; touch ${context.run_dir}x', next: done}\n  done: {terminal: true, outcome: success}\n",
    );
    project.run(&["run", "main"]).code(0);
    let shown = project.read("shown");
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(words[0].starts_with('/') && words[0].ends_with(".dir/"), "{shown}");
    assert_eq!(words[0], format!("{}/", words[1]));
    assert_eq!(words[2], format!("{}list", words[0]));
    assert_eq!(project.run_files(".dir/x").len(), 1);
}

#[test]
fn what_the_file_or_the_command_line_says_counts() {
    assert_eq!(shown("context: {run_dir: /mine/}", "${context.run_dir}", &[]), "/mine/");
    assert_eq!(shown("", "${context.run_dir}", &["--context", "run_dir=/theirs/"]), "/theirs/");
    // One that is declared empty would lead into the root of the file system.
    assert!(shown("context: {run_dir: ''}", "${context.run_dir:shell}", &[]).ends_with(".dir/"));
    assert!(
        shown("parameters: {run_dir: {type: path, required: true}}", "${context.run_dir:shell}", &[])
            .ends_with(".dir/")
    );
}

#[test]
fn the_other_names_have_their_values() {
    for (top, expression, arguments, expected) in [
        ("", "${context.input_hash}", &["hello"][..], "2cf24dba5fb0"),
        ("context: {input: hello}", "${context.input_hash}", &[], "2cf24dba5fb0"),
        ("", "${context.input_hash:default=none}", &[], "none"),
        ("context: {input_hash: mine}", "${context.input_hash}", &["hello"], "mine"),
        ("max_steps: 7", "${context.max_steps}", &[], "7"),
        ("max_iterations: 9", "${context.max_steps}", &[], "9"),
        ("", "${context.max_iterations}", &["--max-iterations", "3"], "3"),
        ("", "${context.readiness_threshold}", &[], "85"),
        ("", "${context.outcome_threshold}", &[], "65"),
        ("", "${context.design_tokens_context}", &[], ""),
        ("context: {design_tokens_context: mine}", "${context.design_tokens_context}", &[], "mine"),
    ] {
        let shown = shown(top, expression, arguments);
        assert_eq!(shown, expected, "{top} {expression}");
    }
}

#[test]
fn what_a_loop_does_not_name_is_not_there() {
    let project = project("", "x");
    project.run(&["run", "main"]).code(0);
    let start = &project.events()[0];
    assert!(start["context"].as_object().is_none_or(serde_json::Map::is_empty), "{start}");
}

#[test]
fn a_sub_loop_has_the_directory_of_the_loop_around_it() {
    let kid = "name: kid\ndescription: x\nparameters: {run_dir: {type: path, required: true}}\ninitial: k\nstates:\n  k: {action: 'echo ${context.run_dir} >> dirs', next: done}\n  done: {terminal: true, outcome: success}\n";
    for given in ["", "with: {run_dir: '${context.run_dir}'},", "context_passthrough: true,"] {
        let text = format!(
            "name: main\ndescription: x\ninitial: a\nstates:\n  a: {{action: 'echo ${{context.run_dir}} >> dirs', next: p}}\n  p: {{loop: kid, {given} on_success: done, on_failure: bad}}\n  done: {{terminal: true, outcome: success}}\n  bad: {{terminal: true, outcome: failure}}\n"
        );
        let project = Project::with_loop(&text).file(".loops/kid.yaml", kid);
        project.run(&["run", "main"]).code(0);
        let dirs = project.read("dirs");
        let lines: Vec<&str> = dirs.lines().collect();
        assert!(lines.len() == 2 && lines[0] == lines[1] && lines[0].starts_with('/'), "{given} {dirs}");
    }
}

#[test]
fn a_run_that_goes_on_elsewhere_has_its_directory_there() {
    let text = "name: main\ndescription: x\ninitial: a\ncontext: {list: '${context.run_dir}list'}\nstates:\n  a: {action: 'echo one > ${context.list:shell}; test -e go || echo CONTEXT_HANDOFF: later', on_yes: b, on_no: bad}\n  b: {action: 'cat ${context.list:shell} ${context.run_dir:shell}list > shown; printf %s ${context.run_dir:shell} > dir', on_yes: done, on_no: bad}\n  done: {terminal: true}\n  bad: {terminal: true, outcome: failure, description: it failed}\n";
    let first = Project::with_loop(text).file(".gitignore", ".loops/.running\n.loops/.history\n");
    git(&first, &["init", "-q"]);
    git(&first, &["add", "."]);
    git(&first, &["commit", "-qm", "x"]);
    let second = Project::new();
    git(&second, &["init", "-q"]);
    git(&second, &["pull", "-q", first.path().to_str().unwrap(), "HEAD"]);
    first.run(&["run", "main"]).code(75);
    first.run(&["bundle", "main", "--output", "run.zip"]).code(0);
    std::fs::copy(first.at("run.zip"), second.at("run.zip")).unwrap();
    second.write("go", "");
    second.run(&["resume", "--from", "run.zip", "--accept-changes"]).code(0);
    assert_eq!(second.read("shown"), "one\none\n");
    let home = std::fs::canonicalize(second.path()).unwrap();
    assert!(second.read("dir").starts_with(home.to_str().unwrap()), "{}", second.read("dir"));
}
