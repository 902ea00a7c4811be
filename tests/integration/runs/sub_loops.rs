//! Loops that run loops.

use rustix::process::Signal;

use crate::common::{Project, Ran, git, signal};

const KID: &str = "\
name: kid
parameters:
  n: {type: integer, required: true}
  word: {type: enum, values: [a, b], default: a}
initial: c1
states:
  c1: {action: 'echo ${context.n} ${context.word} > kid.txt', capture: said, next: done}
  done: {terminal: true}
";

fn project(state: &str) -> Project {
    let text = format!(
        "name: main\ndescription: x\ninitial: pre\nstates:\n  pre: {{action: echo 7, capture: seven, next: p}}\n  p: {{{state}, on_success: good, on_failure: bad}}\n  good: {{terminal: true}}\n  bad: {{terminal: true}}\n"
    );
    Project::with_loop(&text).file(".loops/kid.yaml", KID)
}

fn ends_in(project: &Project, state: &str) {
    project.run(&["run", "main"]).code(0);
    assert_eq!(project.end()["final_state"], state);
}

#[test]
fn values_are_bound_converted_and_checked() {
    let bound = project("loop: kid, with: {n: '${captured.seven.output}', word: b}");
    ends_in(&bound, "good");
    assert_eq!(bound.read("kid.txt"), "7 b\n");
    let wrong = project("loop: kid, with: {n: 'x${captured.seven.output}'}");
    ends_in(&wrong, "bad");
    assert!(!wrong.exists("kid.txt"));
    let complete = wrong.events().into_iter().find(|event| event["event"] == "sub_loop_complete").unwrap();
    assert!(
        complete["error"].as_str().unwrap().contains("the parameter `n` must be an integer"),
        "{complete}"
    );
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    for (state, message) in [
        ("loop: kdi, with: {n: 1}", "there is no loop named `kdi`"),
        ("loop: kid, with: {n: 1, m: 2}", "the loop `kid` has no parameter `m`"),
        ("loop: kid", "the loop `kid` needs the parameter `n`"),
        ("loop: kid, with: {n: many}", "must be an integer"),
        ("loop: kid, with: {n: 1}, context_passthrough: true", "exclude each other"),
        ("loop: kid, with: {n: 1}, action: 'true'", "exclude each other"),
        ("loop: kid, with: {n: '${contxt.x}'}", "unknown namespace `contxt`"),
    ] {
        let project = project(state);
        project.run(&["validate", "main"]).code(2).says(message);
        project.run(&["run", "main"]).code(2).says(message);
        assert!(!project.exists(".loops/.running"));
    }
}

#[test]
fn the_events_of_a_sub_loop_say_how_deep_and_where() {
    let project = project("loop: kid, with: {n: 1}");
    ends_in(&project, "good");
    let events = project.events();
    let inner: Vec<_> = events.iter().filter(|event| event["depth"] == 1).collect();
    assert_eq!(inner[0]["event"], "loop_start");
    assert_eq!(inner[0]["loop"], "kid");
    assert_eq!(inner.last().unwrap()["event"], "loop_complete");
    assert!(inner.iter().all(|event| event["path"] == serde_json::json!(["main", "kid"])));
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let begin = names.iter().position(|name| *name == "sub_loop_start").unwrap();
    let end = names.iter().position(|name| *name == "sub_loop_complete").unwrap();
    assert_eq!(end - begin - 1, inner.len());
    assert_eq!(project.state()["loop"], "main");
}

#[test]
fn a_loop_that_runs_itself_is_warned_about_and_stopped() {
    let text = "name: main\ndescription: x\ninitial: a\nstates:\n  a: {loop: main, on_success: done, on_failure: done}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text);
    project.run(&["validate", "main"]).code(0).says("runs itself without a way to its end: main → main");
    project.run(&["run", "main"]).code(0);
    let events = project.events();
    assert_eq!(events.iter().filter(|event| event["event"] == "loop_start").count(), 16 + 1);
    let deepest = events.iter().find(|event| event["error"].is_string()).unwrap();
    assert!(deepest["error"].as_str().unwrap().contains("nested deeper than 16"), "{deepest}");
}

#[test]
fn a_request_to_end_reaches_the_sub_loop() {
    let project = Project::with_loop("name: main\ndescription: x\ninitial: p\nstates:\n  p: {loop: kid, next: done}\n  done: {terminal: true}\n")
        .file(".loops/kid.yaml", "name: kid\ninitial: a\nstates:\n  a: {action: touch begun; sleep 60, next: done}\n  done: {terminal: true}\n");
    let child = project.start_until(&["run", "main"], "begun");
    signal(&child, Signal::TERM);
    Ran::of(&child.wait_with_output().unwrap()).code(143);
    let state = project.state();
    assert_eq!((&state["status"], &state["current_state"]), (&"interrupted".into(), &"p".into()));
}

#[test]
fn the_timeout_of_the_state_ends_the_sub_loop_alone() {
    let project = Project::with_loop("name: main\ndescription: x\ninitial: p\nstates:\n  p: {loop: kid, timeout: 0.5, on_success: bad, on_failure: bad, on_timeout: good}\n  good: {terminal: true}\n  bad: {terminal: true}\n")
        .file(".loops/kid.yaml", "name: kid\ninitial: a\nstates:\n  a: {action: sleep 60, next: done}\n  done: {terminal: true}\n");
    ends_in(&project, "good");
}

const SAYING: &str = "\
name: kid
description: says things
parameters: {n: {type: string, default: a}}
initial: say
states:
  say: {action: 'echo from-kid-${context.n}', capture: kv, on_yes: done, on_no: failed}
  done: {terminal: true, action: 'true'}
  failed: {terminal: true, outcome: failure, description: it failed}
";

/// A loop that runs `kid` with these keys, and shows an expression afterwards.
fn shows(given: &str, kid: &str, expression: &str) -> String {
    let text = format!(
        "name: main\ndescription: x\ninitial: p\nstates:\n  p: {{loop: kid, {given} next: show}}\n  show: {{action: \"printf '%s' {expression} > shown\", next: done}}\n  done: {{terminal: true, outcome: success}}\n"
    );
    let project = Project::with_loop(&text).file(".loops/kid.yaml", kid);
    project.run(&["run", "main"]).code(0);
    project.read("shown")
}

#[test]
fn captures_of_a_sub_loop_are_there_afterwards_under_both_names() {
    for given in ["with: {n: b},", "context_passthrough: true,"] {
        let n = if given.starts_with("with") { "b" } else { "a" };
        for expression in
            ["${captured.p.kv.output:shell}", "${captured.p.kv:shell}", "${captured.kv.output:shell}"]
        {
            assert_eq!(shows(given, SAYING, expression), format!("from-kid-{n}"), "{given} {expression}");
        }
        assert_eq!(shows(given, SAYING, "${captured.p.kv.exit_code}"), "0");
    }
    assert_eq!(shows("", SAYING, "${captured.kv.output?}"), "");
}

#[test]
fn captures_of_a_sub_loop_in_a_sub_loop_are_there_below_the_states_that_ran_them() {
    for (capture, expression) in [
        ("", "${captured.p.k2.kv.output:shell}"),
        ("capture: got,", "${captured.p.k2.kv.output:shell}"),
        ("capture: got,", "${captured.p.got.kv.output:shell}"),
        ("capture: got,", "${captured.p.got.exit_code} ${captured.p.k2.terminated_by}"),
    ] {
        let wanted = if expression.contains("exit_code") { "0 terminal" } else { "from-kid-a" };
        let between = format!(
            "name: between\ndescription: x\ninitial: k2\nstates:\n  k2: {{loop: kid, context_passthrough: true, {capture} next: done}}\n  done: {{terminal: true, outcome: success}}\n"
        );
        let text = format!(
            "name: main\ndescription: x\ncontext: {{n: a}}\ninitial: p\nstates:\n  p: {{loop: between, context_passthrough: true, next: show}}\n  show: {{action: 'test -e go || {{ touch go; kill -9 $PPID; sleep 9; }}; echo -n {expression} > shown', next: done}}\n  done: {{terminal: true, outcome: success}}\n"
        );
        let project = Project::with_loop(&text).file(".loops/kid.yaml", SAYING);
        let project = project.file(".loops/between.yaml", &between);
        project.run(&["validate", "main"]).code(0);
        // A run that was resumed knows the same of them.
        drop(project.run(&["run", "main"]));
        project.run(&["resume", "main"]).code(0);
        assert_eq!(project.read("shown"), wanted, "{capture} {expression}");
    }
}

#[test]
fn the_end_of_a_sub_loop_can_be_looked_at() {
    assert_eq!(shows("", SAYING, "${captured.p.terminated_by}"), "terminal");
    assert_eq!(shows("", SAYING, "${captured.p.failure_terminal:default=none}"), "none");
    let failing = SAYING.replace("echo from-kid-${context.n}", "false");
    assert_eq!(shows("", &failing, "${captured.p.failure_terminal}"), "true");
    let broken = SAYING.replace("echo from-kid-${context.n}", "exit 9");
    assert_eq!(shows("", &broken, "${captured.p.terminated_by}"), "error");
    assert!(shows("", &broken, "${captured.p.error:shell}").contains("no route for the verdict `error`"));
}

#[test]
fn a_capture_around_a_sub_loop_is_a_variable_in_it() {
    let kid = "name: kid\ndescription: x\nrequired_inputs: [seven]\ninitial: k\nstates:\n  k: {action: 'echo ${context.seven} ${context.eight:default=none} > kid.txt', on_yes: done, on_no: done, on_error: done}\n  done: {terminal: true, outcome: success}\n";
    let text = "name: main\ndescription: x\ncontext: {eight: own}\ninitial: pre\nstates:\n  pre: {action: echo 7, capture: seven, next: other}\n  other: {action: echo 8, capture: eight, next: p}\n  p: {loop: kid, context_passthrough: true, on_success: good, on_failure: bad}\n  good: {terminal: true}\n  bad: {terminal: true}\n";
    let project = Project::with_loop(text).file(".loops/kid.yaml", kid);
    ends_in(&project, "good");
    assert_eq!(project.read("kid.txt"), "7 own\n");
}

/// A repository with the branch `topic`, and a loop that runs `kid` on the branch that a variable names.
fn on_branch(work: &str) -> Project {
    let kid = format!(
        "name: kid\ndescription: x\ninitial: k\nstates:\n  k: {{action: '{work}', capture: where, on_yes: done, on_no: failed}}\n  done: {{terminal: true}}\n  failed: {{terminal: true, description: it failed}}\n"
    );
    let text = "name: main\ndescription: x\ninitial: p\ncontext: {branch: topic}\nstates:\n  p: {loop: kid, context_passthrough: true, worktree: '${context.branch}', on_success: good, on_failure: bad, on_error: oops}\n  good: {terminal: true}\n  bad: {terminal: true, outcome: failure, description: x}\n  oops: {terminal: true, action: 'echo ${captured.p.error:shell} > why', outcome: failure}\n";
    let project = Project::with_loop(text).file(".loops/kid.yaml", &kid).file("a", "1\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["config", "user.name", "t"]);
    git(&project, &["config", "user.email", "t@example.org"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "x"]);
    git(&project, &["branch", "topic"]);
    project
}

#[test]
fn a_sub_loop_works_on_a_branch_of_its_own() {
    let work = "pwd; git branch --show-current; echo 2 > a; git commit -qam two";
    let project = on_branch(work);
    ends_in(&project, "good");
    assert_eq!(project.read("a"), "1\n");
    assert_eq!(git(&project, &["show", "topic:a"]), "2");
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1);
    let events = project.events();
    let said = events.iter().find(|event| event["event"] == "action_complete").unwrap().to_string();
    assert!(said.contains("\\ntopic\\n") && said.contains("/.loops/.worktrees/"), "{said}");
}

#[test]
fn without_a_branch_a_sub_loop_works_where_the_loop_around_it_does() {
    let project = on_branch("git branch --show-current > branch");
    project.run(&["run", "main", "--context", "branch="]).code(0);
    assert_eq!(project.read("branch"), "main\n");
}

#[test]
fn a_branch_that_cannot_be_checked_out_is_an_error() {
    for (branch, why) in [
        ("nowhere", "there is no such branch"),
        ("--detach", "there is no such branch"),
        ("HEAD", "there is no such branch"),
        ("refs/heads/topic", "there is no such branch"),
        ("main", "main"),
    ] {
        let project = on_branch("touch ran");
        project.run(&["run", "main", "--context", &format!("branch={branch}")]).code(1);
        assert!(project.read("why").contains(why), "{branch}: {}", project.read("why"));
        assert!(!project.exists("ran"));
        assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1);
    }
}

#[test]
fn a_worktree_with_work_that_is_nowhere_else_stays() {
    let project = on_branch("echo lost > b");
    project.run(&["run", "main"]).code(0).says("stays");
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_sub_loop_that_goes_on_goes_on_in_its_worktree() {
    let work = "test -e half && echo whole > a && git commit -qam two || { touch half; echo CONTEXT_HANDOFF: more; }; rm -f gone";
    let project = on_branch(work);
    project.run(&["run", "main"]).code(75);
    project.run(&["resume", "main"]).code(0);
    assert_eq!(git(&project, &["show", "topic:a"]), "whole");
}

#[test]
fn a_worktree_needs_a_loop() {
    let text = "name: main\ndescription: x\ninitial: a\nstates:\n  a: {action: 'true', worktree: topic, next: done}\n  done: {terminal: true}\n";
    Project::with_loop(text).run(&["validate", "main"]).code(2).says("`worktree` needs `loop`");
}

#[test]
fn a_capture_that_a_sub_loop_never_makes_is_an_error() {
    for (given, expression, wrong) in [
        ("with: {n: b},", "${captured.p.kvv.output?}", "`captured.p` has no `kvv`"),
        ("context_passthrough: true,", "${captured.p.kvv}", "did you mean `captured.p.kv`?"),
        ("", "${captured.p.kv?}", "`captured.p` has no `kv`"),
    ] {
        let text = format!(
            "name: main\ndescription: x\ninitial: p\nstates:\n  p: {{loop: kid, {given} next: show}}\n  show: {{action: 'echo {expression} > shown', next: done}}\n  done: {{terminal: true, outcome: success}}\n"
        );
        let project = Project::with_loop(&text).file(".loops/kid.yaml", SAYING);
        project.run(&["validate", "main"]).code(2).says(wrong);
        project.run(&["run", "main"]).code(2).says(wrong);
    }
}
