//! The key `judges` of a loop: what it takes, and what a wrong one is told.

use crate::common::Project;

fn with(judges: &str) -> Project {
    Project::with_loop(&format!(
        "name: main\ndescription: d\ninitial: a\n{judges}\nstates:\n  a: {{action: 'true', on_yes: done, on_no: bad}}\n  bad: {{terminal: true, outcome: failure, description: d}}\n  done: {{terminal: true}}\n"
    ))
}

#[test]
fn every_form_of_judges_is_taken() {
    for judges in [
        "judges: []",
        "judges: [contracts/, '*.golden', /check.sh]",
        "judges: {files: [a], may: none}",
        "judges: {may: change, suppressions: report, prove_added: true}",
        "tamper_guard: off",
        "tamper_guard: fail\nprepatch_check: allow",
    ] {
        drop(with(judges).run(&["validate", "main", "--strict"]).code(0));
    }
}

#[test]
fn what_is_wrong_has_a_place_and_an_advice() {
    for (judges, place, said) in [
        ("judges: [ok, 'a[']", "4:14", "invalid pattern"),
        ("judges: ['../x']", "4:10", "cannot lead out of the repository"),
        ("judges: {files: ['!x']}", "4:18", "`!` has no meaning here"),
        ("judges: tests", "4:9", "must be a list of patterns, or a mapping"),
        ("judges: {may: everything}", "4:15", "everything"),
        ("judges: {file: [a]}", "4:10", "files"),
        ("tamper_guard: maybe", "4:15", "maybe"),
    ] {
        let ran = with(judges).run(&["validate", "main"]).code(2);
        drop(ran.says(&format!("main.yaml:{place}")).says(said));
    }
}
