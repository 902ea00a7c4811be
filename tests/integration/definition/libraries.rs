//! Libraries of fragments: those of a project, and those that the program brings along.

use crate::common::{Project, Ran, git};

/// A loop that needs nothing but what the program brings along.
const SHAPED: &str = "\
name: main
description: d
from: lib/apo-shape-a
initial: a
states:
  a: {action: 'echo ${context.quality_threshold} ${context.prompt_file:shell}', on_yes: done, on_no: failed}
  failed: {terminal: true, outcome: failure, description: it failed}
";

#[test]
fn a_parent_may_come_from_the_program() {
    let project = Project::with_loop(SHAPED);
    drop(project.run(&["validate", "main", "--strict"]).code(0));
    drop(project.run(&["run", "main"]).code(0).says("90 system.md"));
    drop(project.run(&["show", "main"]).code(0));
    let compiled = project.run(&["compile", "main"]).code(0);
    assert!(compiled.stdout.contains("max_steps: 20"), "{}", compiled.all());
    let mine = project.file(
        ".loops/lib/apo-shape-a.yaml",
        "context: {quality_threshold: 1, prompt_file: x}\nstates: {done: {terminal: true}}\n",
    );
    drop(mine.run(&["run", "main"]).code(0).says("1 x"));
}

#[test]
fn what_is_wrong_with_a_file_of_the_program_is_shown_by_its_name() {
    let wrong = SHAPED.replace("action: 'echo", "on_blocked: nowhere, action: 'echo");
    drop(Project::with_loop(&wrong).run(&["validate", "main"]).code(2).says("nowhere"));
    // A parent is not a loop: it lacks what its children have.
    let ran = Project::new().run(&["validate", "lib/apo-base"]).code(2);
    drop(ran.says("<built-in>/lib/apo-base.yaml"));
}

#[test]
fn a_run_on_what_the_program_brings_along_goes_on_elsewhere() {
    let text = SHAPED.replace("initial: a", "initial: a\non_handoff: pause\non_change: report").replace(
        "action: 'echo",
        "action: 'test -e sign || { touch sign; echo \"CONTEXT_HANDOFF: go on\"; }; echo",
    );
    let both = Project::new();
    let one = ["init", "-q", "one"];
    git(&both, &one);
    both.write("one/.loops/main.yaml", &text);
    let within = |directory: &str, arguments: &[&str]| git(&both, &[&["-C", directory], arguments].concat());
    within("one", &["add", "-A"]);
    within("one", &["commit", "-q", "-m", "first"]);
    git(&both, &["clone", "-q", "one", "two"]);
    let run = |directory: &str, arguments: &[&str]| {
        let mut command = both.command(arguments);
        Ran::of(&command.current_dir(both.at(directory)).output().unwrap())
    };
    drop(run("one", &["run", "main", "--report-dir", "../reports"]).code(75));
    let bundles = std::fs::read_dir(both.at("reports")).unwrap().map(|entry| entry.unwrap().path());
    let bundle = bundles.into_iter().find(|path| path.extension().is_some_and(|end| end == "llz")).unwrap();
    drop(run("two", &["resume", "--from", bundle.to_str().unwrap()]).code(0).says("90 system.md"));
    // What the run began with counts, as with a file of the project.
    drop(run("one", &["run", "main", "--report-dir", "../more"]).code(0));
}

#[test]
fn a_loop_of_the_program_is_no_stranger() {
    let project = Project::with_loop(SHAPED);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    let head = git(&project, &["rev-parse", "HEAD"]);
    let event = format!("{{\"repository\":{{\"default_branch\":\"main\"}},\"after\":\"{head}\"}}");
    let project = project
        .in_github_job()
        .env("GITHUB_EVENT_NAME", "issue_comment")
        .env("GITHUB_SHA", head)
        .file(".git/event.json", &event);
    let event = project.at(".git/event.json").to_string_lossy().into_owned();
    let project = project.env("GITHUB_EVENT_PATH", event);
    drop(project.run(&["run", "main"]).code(0).says("90 system.md"));
    // A directory of that name in the project is not the program.
    std::fs::create_dir(project.at("<built-in>")).unwrap();
    project.write("<built-in>/mine.yaml", &SHAPED.replace("name: main", "name: mine"));
    drop(project.run(&["run", "./<built-in>/mine.yaml"]).code(2).says("is not run"));
}

const LIBRARY: &str =
    "description: a library\nfragments:\n  good: {action: 'true'}\n  bad: {action: 'true', timout: 5}\n";

#[test]
fn a_library_is_checked_by_itself_and_is_no_loop() {
    let project = Project::new().file(".loops/mine.yaml", LIBRARY);
    drop(
        project.run(&["validate", ".loops/mine.yaml"]).code(2).says(".loops/mine.yaml:4:25").says("timeout"),
    );
    drop(project.run(&["validate"]).code(2).says("timout"));
    project.write(".loops/mine.yaml", "fragments:\n  good: {action: 'true'}\n");
    drop(project.run(&["validate", ".loops/mine.yaml", "--strict"]).code(0));
    drop(project.run(&["run", "mine"]).code(2).says("library of fragments, not a loop").says("import"));
    let listed = project.run(&["list", "--json"]).code(0);
    assert_eq!(listed.stdout, "");
}

#[test]
fn a_mistake_that_no_state_uses_is_a_warning_at_the_import() {
    let project = Project::with_loop(
        "name: main\ndescription: d\ninitial: a\nimport: [mine.yaml]\nstates:\n  a: {fragment: good, on_yes: done, on_no: failed}\n  done: {terminal: true}\n  failed: {terminal: true, outcome: failure, description: it failed}\n",
    )
    .file(".loops/mine.yaml", LIBRARY);
    let ran =
        project.run(&["validate", "main"]).code(0).says("broken-fragment").says(".loops/main.yaml:4:10");
    drop(ran.says("`ll-loop validate .loops/mine.yaml`"));
    drop(project.run(&["validate", "main", "--strict"]).code(2));
    project.write(
        ".loops/main.yaml",
        &project.read(".loops/main.yaml").replace("fragment: good", "fragment: bad"),
    );
    drop(project.run(&["validate", "main"]).code(2).says(".loops/mine.yaml:4:25"));
}
