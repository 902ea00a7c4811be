//! Targets and counts that are made of `${context.…}` and `${param.…}`: worked out before the run, or refused.

use rustix::process::Signal;

use crate::common::{Project, signal};

/// A loop with these keys, a state `check` with these, and three ends.
fn project(top: &str, check: &str) -> Project {
    Project::with_loop(&format!(
        "name: main\ndescription: x\ninitial: check\n{top}\nstates:\n  check: {{action: 'echo x >> ran', {check}}}\n  other: {{action: 'true', on_yes: good, on_no: bad}}\n  good: {{terminal: true}}\n  bad: {{terminal: true, outcome: failure, description: it failed}}\n"
    ))
}

/// Runs a loop anew, and compares its last state.
#[track_caller]
fn run_ends_in(project: &Project, name: &str, arguments: &[&str], state: &str) {
    if project.exists(".loops/.history") {
        std::fs::remove_dir_all(project.at(".loops/.history")).unwrap();
    }
    let ran = project.run(&[&["run", name], arguments].concat());
    assert!(!project.run_files(".events.jsonl").is_empty(), "{}", ran.all());
    assert_eq!(project.end()["final_state"], state, "{arguments:?} {}", ran.all());
}

#[track_caller]
fn ends_in(project: &Project, arguments: &[&str], state: &str) {
    run_ends_in(project, "main", arguments, state);
}

#[test]
fn a_route_leads_where_the_variables_say() {
    let whole = project("context: {where: good, part: oth}", "on_yes: '${context.where}', on_no: bad");
    ends_in(&whole, &[], "good");
    ends_in(&whole, &["--context", "where=bad"], "bad");
    ends_in(&whole, &["--context", "where=other"], "good");
    for check in [
        "next: '${context.part}er'",
        "route: {'yes': '${context.part}er', _: bad}",
        "on_yes: '${context.none:-other}', on_no: bad",
    ] {
        ends_in(&project("context: {part: oth}", check), &[], "good");
    }
    let here = project(
        "context: {where: $current}",
        "max_retries: 2, on_retry_exhausted: good, on_yes: '${context.where}'",
    );
    ends_in(&here, &[], "good");
    assert_eq!(here.read("ran"), "x\nx\nx\n");
}

#[test]
fn the_start_the_caps_and_their_handlers_are_made_of_variables_too() {
    let start = project("context: {first: other}", "next: bad").file(
        ".loops/start.yaml",
        "name: start\ndescription: x\ninitial: '${context.first}'\ncontext: {first: b}\nstates:\n  a: {action: touch a, next: done}\n  b: {action: touch b, next: done}\n  done: {terminal: true, outcome: success}\n",
    );
    start.run(&["run", "start"]).code(0);
    start.run(&["run", "start", "--context", "first=a"]).code(0);
    assert!(start.exists("a") && start.exists("b"));

    let cap = project(
        "context: {most: 2, then: good}\nmax_iterations: '${context.most}'\non_max_iterations: '${context.then}'",
        "on_yes: $current",
    );
    ends_in(&cap, &[], "good");
    assert_eq!(cap.read("ran"), "x\nx\n");
    let retries = project(
        "context: {tries: 1}",
        "max_retries: '${context.tries}', on_retry_exhausted: good, on_yes: $current",
    );
    ends_in(&retries, &["--context", "tries=3"], "good");
    assert_eq!(retries.read("ran"), "x\nx\nx\nx\n");
}

#[test]
fn what_cannot_be_known_before_the_run_is_refused_with_the_reason() {
    for (target, why) in [
        ("${env.HOME}", "put it into `context`"),
        ("${captured.check.output}", "it is known only while the loop runs"),
        ("${result.verdict}", "it is known only while the loop runs"),
        ("${prev.output}", "it is known only while the loop runs"),
        ("${state.step}", "it is known only while the loop runs"),
        ("${WHERE}", "no shell reads it"),
    ] {
        for check in [
            format!("next: '{target}'"),
            format!("on_yes: good, on_no: '{target}'"),
            format!("route: {{'yes': good, _: '{target}'}}"),
            format!("max_retries: 1, on_retry_exhausted: '{target}', on_yes: good, on_no: bad"),
            format!("repeat: {{passes: '{target}'}}, on_yes: good, on_no: bad"),
        ] {
            let project = project("", &check);
            for command in ["validate", "run"] {
                let ran = project.run(&[command, "main"]).code(2);
                ran.says(why).says("${context.…}").says(&format!("`{target}`"));
            }
            assert!(!project.exists("ran"));
        }
    }
}

#[test]
fn a_parameter_that_is_not_given_is_an_error_of_the_file() {
    let top = "fragments:\n  f: {action: ls, on_yes: '${param.too}', on_no: bad, parameters: {to: {type: string, required: true}}}";
    let text = project(top, "on_yes: '${param.x}', on_no: bad").read(".loops/main.yaml");
    let project = Project::with_loop(&text.replace(
        "  other: {action: 'true', on_yes: good, on_no: bad}",
        "  other: {fragment: f, with: {to: good}}",
    ));
    project
        .run(&["validate", "main"])
        .code(2)
        .says("`${param.x}` has no value here")
        .says("did you mean `param.to`?");
}

#[test]
fn a_value_that_leads_nowhere_is_an_error_of_the_file_and_of_the_run() {
    let ghost = project("context: {where: ghost}", "on_yes: '${context.where}', on_no: bad");
    let message = "the state `ghost`, which `${context.where}` becomes, is not defined";
    ghost.run(&["validate", "main"]).code(2).says(message);
    ghost.run(&["run", "main"]).code(2).says(message);
    ghost.run(&["run", "main", "--dry-run"]).code(2).says(message);
    assert!(!ghost.exists("ran") && !ghost.exists(".loops/.running"));
    // What the command line says counts.
    ends_in(&ghost, &["--context", "where=good"], "good");

    let many =
        project("context: {most: many}", "repeat: {passes: '${context.most}'}, on_yes: good, on_no: bad");
    let message = "`${context.most}` becomes `many`, which is not a whole number from 1 to 1,000,000,000";
    many.run(&["validate", "main"]).code(2).says(message);
    many.run(&["run", "main"]).code(2).says(message);
    let long =
        project("context: {most: 51}", "repeat: {passes: '${context.most}'}, on_yes: good, on_no: bad");
    long.run(&["run", "main"]).code(2).says("`passes: 51` cannot be reached: `max_iterations` allows 50");
    let missing = project("context: {where: good}", "on_yes: '${context.wher}', on_no: bad");
    missing.run(&["run", "main"]).code(2).says("`${context.wher}` has no value");
}

#[test]
fn a_value_known_only_at_the_start_is_a_note_and_every_state_counts_as_reachable() {
    let open = project("required_inputs: [where]", "on_yes: '${context.where}', on_no: bad");
    for arguments in [&["validate", "main", "--strict"][..], &["validate", "main", "--strict", "--deep"]] {
        let ran = open.run(arguments).code(0);
        let ran = ran.says("`${context.where}` is known only when a run begins");
        assert!(!ran.all().contains("never reached") && !ran.all().contains("no run"), "{}", ran.all());
    }
    open.run(&["show", "main"]).code(0).says("yes → ‹context.where›");
    ends_in(&open, &["--context", "where=good"], "good");
}

#[test]
fn a_fragment_leads_where_its_parameters_say() {
    let text = "name: main\ndescription: x\ninitial: a\ncontext: {where: good}\nfragments:\n  f:\n    parameters: {to: {type: string, required: true}, times: {type: integer, default: 2}}\n    action: 'echo x >> ran'\n    repeat: {passes: '${param.times}'}\n    on_yes: '${param.to}'\n    on_no: bad\nstates:\n  a: {fragment: f, with: {to: b}}\n  b: {fragment: f, with: {to: '${context.where}', times: 3}}\n  good: {terminal: true}\n  bad: {terminal: true}\n";
    let project = Project::with_loop(text);
    ends_in(&project, &[], "good");
    assert_eq!(project.read("ran").lines().count(), 5);
    project.run(&["validate", "main"]).code(0);
}

#[test]
fn a_sub_loop_leads_where_its_parameters_say() {
    let kid = "name: kid\ndescription: x\nparameters: {to: {type: string, required: true}}\ninitial: k\nstates:\n  k: {action: 'true', on_yes: '${context.to}', on_no: bad}\n  fine: {terminal: true}\n  bad: {terminal: true, outcome: failure, description: it failed}\n";
    let main = project("context: {to: fine}", "next: p").file(".loops/kid.yaml", kid).file(
        ".loops/around.yaml",
        "name: around\ndescription: x\ninitial: p\ncontext: {to: fine}\nstates:\n  p: {loop: kid, with: {to: '${context.to}'}, on_success: good, on_failure: bad, on_error: wrong}\n  good: {terminal: true}\n  bad: {terminal: true}\n  wrong: {terminal: true}\n",
    );
    for (to, end) in [("fine", "good"), ("bad", "bad"), ("ghost", "wrong")] {
        run_ends_in(&main, "around", &["--context", &format!("to={to}")], end);
    }
}

#[test]
fn a_run_that_goes_on_leads_where_it_did() {
    let slow = "name: main\ndescription: x\ninitial: a\ncontext: {where: bad}\nstates:\n  a: {action: 'echo $$ > pid; test -e go || sleep 60', on_yes: '${context.where}', on_no: bad, on_error: bad}\n  good: {terminal: true}\n  bad: {terminal: true}\n";
    let project = Project::with_loop(slow);
    let mut run = project.start_until(&["run", "main", "--context", "where=good"], "pid");
    signal(&run, Signal::TERM);
    assert_eq!(run.wait().unwrap().code(), Some(143));
    project.write("go", "");
    project.run(&["resume", "main"]).code(0);
    assert_eq!(project.end()["final_state"], "good");
}
