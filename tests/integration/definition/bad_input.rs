//! What users get wrong: a message with what, where and what to do, the right exit code, and nothing lost.

use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::common::{CHECK_FIX, Project, Ran};

fn refused(text: &str) -> Ran {
    let project = Project::with_loop(text);
    let ran = project.run(&["run", "main"]).code(2);
    assert!(!project.exists("ran"), "something ran");
    assert!(!project.exists(".loops/.running"), "a refused run leaves nothing behind");
    ran
}

#[test]
fn a_missing_loop_is_told_with_the_nearest_name() {
    let ran = Project::with_loop(CHECK_FIX).run(&["run", "mian"]).code(2);
    assert_snapshot!(ran.stderr, @r"
    error: cannot load the loop: there is no loop named `mian`
    help: did you mean `main`?
    ");
}

#[test]
fn a_directory_is_no_loop() {
    let project = Project::new();
    fs::create_dir(project.at("tests")).unwrap();
    project.run(&["run", "tests"]).code(2).says("there is no loop named `tests`");
    project.run(&["run", "./tests"]).code(2).says("directory");
}

#[test]
fn all_problems_are_told_at_once_with_their_places() {
    let ran = refused(
        "\
name: main
initial: chek
max_iterations: many
states:
  check:
    action: touch ran
    on_sucess: done
    on_no: fixx
  fix: {action: 'echo ${contxt.x}', timeout: -5, next: check}
  done: {terminal: true}
",
    );
    let text = ran.stderr;
    for needed in
        ["main.yaml:2:", "main.yaml:3:", "main.yaml:7:", "main.yaml:9:", "on_success", "contxt", "timeout"]
    {
        assert!(text.contains(needed), "no {needed} in\n{text}");
    }
}

#[test]
fn targets_that_do_not_exist_are_told_with_the_nearest_state() {
    let ran = refused(
        "name: main\ninitial: check\nstates:\n  check: {action: touch ran, on_yes: dnoe, on_no: fix}\n  fix: {next: check}\n  done: {terminal: true}\n",
    );
    assert_snapshot!(ran.stderr, @"
    error[unknown-state]: the state `dnoe` is not defined
     --> .loops/main.yaml:4:38
      |
    4 |   check: {action: touch ran, on_yes: dnoe, on_no: fix}
      |                                      ^^^^ no state has this name
      |
      = help: did you mean `done`?

    error: .loops/main.yaml has 1 error; nothing was run
    ");
}

#[test]
fn files_that_are_no_loops() {
    for (text, message) in [
        ("", "empty"),
        ("just a text\n", "mapping"),
        ("[1, 2]\n", "mapping"),
        ("name: main\ninitial: a\n", "states"),
        ("name: main\ninitial: a\nstates: [a]\n", "states"),
        ("name: main\n\tinitial: a\n", "tab"),
        ("name: main\nname: other\ninitial: a\nstates: {a: {terminal: true}}\n", "name"),
        ("name: main\ninitial: a\nstates: {a: {terminal: true}}\nmax_iterations: 0\n", "max_iterations"),
        (
            "name: main\ninitial: a\nstates:\n  a: {action: touch ran, next: done, on_yes: 'unclosed\n",
            "quote",
        ),
    ] {
        let ran = refused(text);
        assert!(ran.stderr.contains(message), "no {message:?} in\n{}", ran.stderr);
        assert!(ran.stderr.contains("main.yaml"), "no place in\n{}", ran.stderr);
    }
}

#[test]
fn a_bomb_of_aliases_is_refused_quickly() {
    let mut text =
        String::from("name: main\ninitial: a\nstates: {a: {terminal: true}}\ncontext:\n  x0: &x0 lol\n");
    for level in 1..=9 {
        let aliases = vec![format!("*x{}", level - 1); 9].join(", ");
        writeln!(text, "  x{level}: &x{level} [{aliases}]").unwrap();
    }
    let ran = refused(&text);
    assert!(ran.stderr.contains("alias"), "{}", ran.stderr);
}

#[test]
fn a_huge_file_is_refused_before_it_is_read() {
    let project = Project::new();
    let file = fs::File::create(project.at(".loops/main.yaml")).unwrap();
    file.set_len(100 * 1024 * 1024).unwrap();
    project.run(&["run", "main"]).code(2).says("main.yaml");
}

#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let project = Project::new();
    let made = std::process::Command::new("mkfifo").arg(project.at(".loops/main.yaml")).status().unwrap();
    assert!(made.success());
    project.run(&["run", ".loops/main.yaml"]).code(2);
}

#[test]
fn a_value_that_nothing_gives_is_told_before_anything_runs() {
    let text = "name: main\ninitial: a\ncontext: {target: x}\nstates:\n  a: {action: 'touch ran; echo ${context.tagret}', next: done}\n  done: {terminal: true}\n";
    let ran = refused(text);
    assert!(ran.stderr.contains("context.tagret") && ran.stderr.contains("context.target"), "{}", ran.stderr);
}

#[test]
fn an_unwritable_loops_directory_starts_nothing() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: touch ran, next: done}\n  done: {terminal: true}\n",
    );
    project.write(".loops/.running", "a file where a directory has to be");
    project.run(&["run", "main"]).code(2).says("cannot save the run").says("make `.loops` writable");
    assert!(!project.exists("ran"));
}

#[test]
fn a_full_disk_stops_the_run_and_loses_nothing() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nmax_iterations: 500\nstates:\n  a: {action: \"head -c 6000 /dev/zero | tr '\\\\0' x; echo y >> ../count\", on_yes: a}\n",
    );
    let disk = project.at("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "none"])
        .arg(&disk)
        .output();
    if !mounted.is_ok_and(|mounted| mounted.status.success()) {
        // Only root can make a small disk; the container of CI is root.
        eprintln!("SKIPPED: cannot mount a small file system here");
        return;
    }
    fs::create_dir(disk.join(".loops")).unwrap();
    fs::copy(project.at(".loops/main.yaml"), disk.join(".loops/main.yaml")).unwrap();
    let ran = Ran::of(&project.command(&["run", "main"]).current_dir(&disk).output().unwrap());
    let journal: Vec<_> =
        fs::read_dir(disk.join(".loops/.running")).unwrap().map(|e| e.unwrap().path()).collect();
    let journal = journal.iter().find(|path| path.to_string_lossy().ends_with(".events.jsonl")).cloned();
    let events = journal.map(|path| crate::common::events(&path));
    let unmounted = std::process::Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    ran.code(4).says("journal cannot be written").says("free some space");
    // Every line of the journal is whole, and it tells of every action that ran but the one that did not fit.
    let completed = events.unwrap().iter().filter(|event| event["event"] == "action_complete").count();
    let executed = project.read("count").lines().count();
    assert!(completed >= 5 && executed - completed <= 1, "{completed} of {executed}");
}

#[test]
fn a_closed_output_ends_nothing() {
    let project = Project::with_loop(CHECK_FIX);
    let mut child =
        project.command(&["run", "main"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(project.exists("flag"));
    assert_eq!(project.end()["outcome"], "success");
}

#[test]
fn a_closed_pipe_is_no_panic_for_any_command() {
    let project = Project::with_loop(CHECK_FIX);
    for arguments in [&["schema"][..], &["show", "main"], &["validate"], &["--help"], &["version"], &["list"]]
    {
        let mut child =
            project.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{arguments:?}");
    }
}

#[test]
fn commands_that_let_output_command_the_runner_are_refused() {
    Project::with_loop(CHECK_FIX)
        .env("GITHUB_ACTIONS", "true")
        .env("CI", "true")
        .env("ACTIONS_ALLOW_UNSECURE_COMMANDS", "true")
        .run(&["run", "main"])
        .code(2)
        .says("ACTIONS_ALLOW_UNSECURE_COMMANDS");
}

#[test]
fn usage_errors_exit_with_2() {
    let project = Project::with_loop(CHECK_FIX);
    for arguments in [
        &["run"][..],
        &["run", "main", "--max-iterations", "0"],
        &["fly"],
        &["run", "main", "--context", "novalue"],
        &["run", "--ci=nobody", "main"],
    ] {
        project.run(arguments).code(2);
    }
}
