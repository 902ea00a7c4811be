//! Numbers that may not be exceeded, seen from outside.

use crate::common::Project;

fn steps(project: &Project) -> u64 {
    project.end()["steps"].as_u64().unwrap()
}

#[test]
fn the_option_binds_whatever_the_file_says() {
    let text = "name: main\ninitial: a\nmax_iterations: 100\nstates:\n  a: {action: 'false', on_yes: done, on_no: a}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text);
    project.run(&["run", "main", "--max-iterations", "4"]).code(3);
    assert_eq!(steps(&project), 4);
    assert_eq!(project.end()["terminated_by"], "max_iterations");
    assert_eq!(project.state()["overrides"]["max_iterations"], 4);
}

#[test]
fn a_deadline_saves_and_hands_over() {
    let text = "name: main\ninitial: a\nstates:\n  a: {action: echo x >> n; sleep 30, next: done}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text);
    project.run(&["run", "main", "--deadline", "1"]).code(75);
    let state = project.state();
    assert_eq!((&state["status"], &state["current_state"]), (&"awaiting_continuation".into(), &"a".into()));
    assert!(
        project.run_files(".state.json")[0].to_string_lossy().contains(".running"),
        "it can be continued"
    );
}
