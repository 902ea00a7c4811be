//! What a beginner does wrong, and what is said then.

use crate::common::Project;

/// The states behind a check.
const ENDS: &str = "  done: {terminal: true}\n  failed: {terminal: true}\n";

/// A mistake in a state: what is written, the exit code, and what has to be said.
const MISTAKES: [(&str, i32, &str); 9] = [
    ("action: make\n    on_ok: done", 2, "did you mean `on_yes`?"),
    ("run: make\n    next: done", 2, "did you mean `action`?"),
    ("command: make\n    next: done", 2, "did you mean `action`?"),
    (
        "action: sleep 5\n    timeout: 1\n    on_yes: done\n    on_no: failed",
        4,
        "add `on_timeout`, or raise the `timeout`",
    ),
    (
        "action: pytset -q\n    on_yes: done\n    on_no: failed",
        4,
        "install what it calls, or correct the name",
    ),
    (
        "action: Fix all the errors\n    on_yes: done\n    on_no: failed",
        4,
        "if it is a prompt, write `action_type: prompt`",
    ),
    ("action: read -r x\n    on_yes: done\n    on_no: failed", 1, "actions have no standard input"),
    (
        "action: sleep 60 > /dev/null 2>&1 &\n    on_yes: done\n    on_no: failed",
        0,
        "left a process in the background",
    ),
    ("action: 'false'\n    on_yes: done\n    on_no: failed", 1, "warning[no-description]"),
];

#[test]
fn a_mistake_in_a_state_is_told_with_what_to_write() {
    for (written, code, said) in MISTAKES {
        let text = format!("name: main\ninitial: check\nstates:\n  check:\n    {written}\n{ENDS}");
        let ran = Project::new().file(".loops/main.yaml", &text).run(&["run", "main"]).code(code);
        assert!(ran.all().contains(said), "{written}: {said} in\n{}", ran.all());
        assert!(
            code != 2 || !ran.all().contains("note["),
            "{written}: only what keeps it from running:\n{}",
            ran.all()
        );
    }
}

#[test]
fn states_as_a_list_and_unknown_parameters_are_explained() {
    let list = "name: main\ninitial: check\nstates:\n  - name: check\n";
    Project::new().file(".loops/main.yaml", list).run(&["run", "main"]).code(2).says("without the dash");
    let text = format!(
        "name: main\ninitial: check\nstates:\n  check: {{action: 'true', on_yes: done, on_no: failed}}\n{ENDS}"
    );
    let project = Project::new().file(".loops/main.yaml", &text);
    project.run(&["run", "main", "--param", "path=x"]).code(2).says("`--context path=…` sets a variable");
    project.run(&["run", "main", "-n", "3"]).code(0).says("`-n` counts passes");
}

#[test]
fn where_no_loop_is_the_first_command_is_named() {
    let project = Project::new();
    for arguments in [&["run", "main"][..], &["list"], &["validate"]] {
        let ran = project.run(arguments);
        assert!(ran.all().contains("`ll-loop init`"), "{arguments:?}: {}", ran.all());
    }
}

#[test]
fn what_little_loops_has_is_told_in_the_words_of_this_program() {
    let project = Project::new();
    project
        .run(&["simulate", "main"])
        .code(2)
        .says("is a command of little-loops")
        .says("validate --deep NAME");
    project.run(&["run", "main", "--delay", "3"]).code(2).says("`backoff` is a key of the loop");
    project.run(&["r", "main", "--show-diagrams=full"]).code(2).says("`ll-loop show NAME` draws a loop");
}

#[test]
fn help_is_in_groups() {
    let help = Project::new().run(&["help"]).code(0).stdout.clone();
    let mut from = 0;
    for title in ["Start:", "Look:", "Go on:", "Share:", "CI:", "Agents:", "Options:", "Exit codes:"] {
        let at = help[from..].find(title);
        assert!(at.is_some(), "{title} behind the one before it in\n{help}");
        from += at.unwrap_or_default();
    }
}

#[test]
fn an_error_is_not_cut_where_there_is_no_window() {
    let long = "x".repeat(300);
    let text = format!(
        "name: main\ninitial: check\nstates:\n  check: {{action: 'echo {long} >&2; exit 9', on_yes: done, on_no: failed}}\n{ENDS}"
    );
    let ran = Project::new().file(".loops/main.yaml", &text).run(&["run", "main"]).code(4);
    let said = ran.stdout.lines().find(|line| line.contains("no route for the verdict"));
    assert!(said.is_some_and(|line| line.ends_with("is an answer of this tool")), "{}", ran.stdout);
    assert!(ran.stdout.contains(&format!("│ {long}\n")), "{}", ran.stdout);
}

/// A command line that lacks something or says too much, its exit code, and what has to be said.
const COMMAND_LINES: [(&[&str], &str); 16] = [
    (&["run"], "the loops are `main`"),
    (&["show"], "the loops are `main`"),
    (&["resume"], "`ll-loop history` lists the runs"),
    (&["answer"], "`ll-loop history` lists the runs"),
    (&["answer", "main"], "answer with `approve`, `reject` or a text"),
    (&["deliver"], "`ll-loop history` lists the runs"),
    (&["rewind", "main"], "`ll-loop history RUN` numbers the steps"),
    (&["catalog", "show"], "`ll-loop catalog` lists the ready loops"),
    (&["run", "main", "-n", "zero"], "write a whole number from 1, such as 10"),
    (&["run", "main", "-n", "0"], "write a whole number from 1, such as 10"),
    (&["run", "main", "--deadline", "soon"], "`90s`, `30m`, `1h30m`"),
    (&["run", "main", "--timeout", "5m"], "`timeout: 30m` in the loop file limits a run"),
    (&["run", "main", "two", "words"], "an input of several words needs quotes"),
    (&["report", "nope-1"], "no run and no loop is named `nope-1`"),
    (&["logs", "mian"], "did you mean `main`?; `ll-loop history` lists the runs"),
    (&["run", "./main"], "a loop in `.loops` goes by its name alone"),
];

#[test]
fn a_command_line_that_lacks_something_is_told_with_what_to_write() {
    let text = format!(
        "name: main\ninitial: check\nstates:\n  check: {{action: 'true', on_yes: done, on_no: failed}}\n{ENDS}"
    );
    let project = Project::new().file(".loops/main.yaml", &text);
    for (arguments, said) in COMMAND_LINES {
        let ran = project.run(arguments).code(2);
        assert!(ran.stderr.contains(said), "{arguments:?}: {said} in\n{}", ran.stderr);
        assert!(!ran.stderr.contains("use '-- "), "{arguments:?}: {}", ran.stderr);
    }
    Project::new().run(&["run"]).code(2).says("`ll-loop init` writes a first one");
}
