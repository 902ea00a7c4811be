//! The worst files: what a loop file may hold is counted, so that checking it costs little, whatever it holds.

use std::fmt::Write as _;

use crate::common::Project;

const HEAD: &str = "name: main\ndescription: d\ninitial: s0\n";

/// Writes `count` lines.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{}", line(number));
        text
    })
}

#[track_caller]
fn refused(text: &str, why: &str) {
    let project = Project::with_loop(text);
    let ran = project.run(&["validate", "main"]).code(2).says(why);
    assert!(ran.all().len() < 1 << 20, "{} bytes were said", ran.all().len());
}

#[test]
fn a_file_is_refused_for_its_size_its_values_and_its_expressions() {
    let one = "states:\n  s0: {action: t, next: done}\n  done: {terminal: true}\n";
    refused(&format!("{HEAD}{one}{}", "#".repeat(1 << 20)), "is larger than 1 MiB");
    let keys = lines(13_000, |number| format!("  k{number}: 1"));
    refused(&format!("{HEAD}{one}context:\n{keys}"), "holds too much");
    let expressions = "${context.a:-".repeat(26_000);
    refused(&format!("{HEAD}{one}context:\n  x: '{expressions}'\n"), "holds too much");
    let aliases = "*a, ".repeat(20_000);
    refused(&format!("{HEAD}{one}context:\n  a: &a [x, x]\n  b: [{aliases}]\n"), "holds too much");
}

#[test]
fn a_loop_has_so_many_states_however_they_are_written() {
    let states = lines(2_001, |number| format!("  s{number}: {{terminal: true}}"));
    refused(&format!("{HEAD}states:\n{states}"), "has 2001 states, and may have 2000");
    let steps = lines(2_001, |_| "  - t".to_owned());
    refused(
        &format!("name: main\nparadigm: imperative\nsteps:\n{steps}until: {{check: c}}\n"),
        "2001 entries",
    );
    let checks = lines(1_500, |number| format!("  - {{name: c{number}, check: t, fix: f}}"));
    refused(
        &format!("name: main\nparadigm: invariants\nconstraints:\n{checks}"),
        "states, and may have 2000",
    );
    let flow = lines(2_001, |number| format!("  - s{number}"));
    refused(&format!("name: main\nflow:\n{flow}"), "2001 entries");
}

#[test]
fn a_loop_imports_so_many_libraries() {
    let names = lines(51, |number| format!("  - lib{number}.yaml"));
    let states = "states:\n  s0: {action: t, next: done}\n  done: {terminal: true}\n";
    refused(&format!("{HEAD}import:\n{names}{states}"), "imports 51 libraries, and may import 50");
}

#[test]
fn of_many_findings_the_first_are_shown_and_all_are_counted() {
    let keys = lines(10_000, |number| format!("k{number}: 1"));
    let text = format!("{HEAD}states:\n  s0: {{action: t, next: done}}\n  done: {{terminal: true}}\n{keys}");
    let project = Project::with_loop(&text);
    project.run(&["validate", "main"]).code(2).says("… and 9900 more").says("10000 errors");
    let objects = project.run(&["validate", "main", "--format", "json"]).code(2).stdout;
    assert_eq!(objects.lines().count(), 1_001);
}

#[test]
fn what_there_is_in_place_of_a_wrong_name_is_named_in_part() {
    let fragments = lines(1_990, |number| format!("  f{number}: {{action: t}}"));
    let states =
        lines(1_900, |number| format!("  s{number}: {{fragment: wrong{number}, next: elsewhere{number}}}"));
    refused(&format!("{HEAD}fragments:\n{fragments}states:\n{states}"), "and 1970 more");
}
