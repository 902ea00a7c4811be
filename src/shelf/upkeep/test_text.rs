//! Writes the tests of a loop that was planned: every way that it can go, without running a command. As in the loop, no braces:
//! Prettier and yamllint do not agree about them.

use std::fmt::Write as _;

use super::chosen_commands::{Check, Plan};
use super::trial::{Trials, Tried};
use super::yaml_style::quoted;
use crate::tools::could_not_run_text;

/// What a state comes to: its name and its exit code.
type ReachedEnd = (String, u8);

/// Returns an exit code by which a command says no: of make every failure is 2, and of some tools that means that they did not run.
fn code_of_no(command: &str) -> u8 {
    let says_no = |code: &u8| could_not_run_text(command, i32::from(*code), "").is_none();
    [2, 1].into_iter().chain(3..=120).find(says_no).unwrap_or(1)
}

/// Writes the test file of a loop that was planned.
pub fn test_text(name: &str, plan: &Plan, packages: &[String], trials: &Trials) -> String {
    let is_check = |check: &&Check| !matches!(trials.of(&check.finding), Some(Tried::Changed { .. }));
    let checks: Vec<&Check> = plan.checks.iter().filter(is_check).collect();
    let given =
        packages.first().map(|path| format!("    given:\n      params:\n        path: {}\n", quoted(path)));
    let given = given.unwrap_or_default();
    let mut out = format!(
        "# The tests of this loop: no command is run. Look at them with: ll-loop test {}\nloop: {}\ncases:\n",
        quoted(name),
        quoted(name)
    );
    let mut case = |what: &str, way: &[ReachedEnd], end: &str| {
        let outcome = if end == "done" { "success" } else { "failure" };
        let path: Vec<&str> = way.iter().map(|(state, _)| state.as_str()).chain([end]).collect();
        let _ = writeln!(out, "  - name: {}\n{given}    mocks:", quoted(what));
        for (state, exit) in way {
            let _ = writeln!(out, "      {state}:\n        exit: {exit}");
        }
        let _ = writeln!(out, "    expect:\n      outcome: {outcome}\n      path:");
        for state in path {
            let _ = writeln!(out, "        - {state}");
        }
    };
    let passes =
        |checks: &[&Check]| checks.iter().map(|check| (check.name.clone(), 0)).collect::<Vec<ReachedEnd>>();
    case("every check passes", &passes(&checks), "done");
    for (at, check) in checks.iter().enumerate() {
        let (before, after) = (passes(&checks[..at]), passes(&checks[at + 1..]));
        let of =
            |own: &[ReachedEnd], rest: &[ReachedEnd]| [before.clone(), own.to_vec(), rest.to_vec()].concat();
        let name = &check.name;
        let no = code_of_no(&check.finding.command);
        let (first, again) = ((name.clone(), no), format!("{name}_again"));
        let fix = check.fix.as_ref().map(|_| format!("fix_{name}"));
        match (fix, check.mends_itself()) {
            (None, false) => case(&format!("{name} fails"), &of(&[first], &[]), "failed"),
            (None, true) => {
                let mended = of(&[first.clone(), (again.clone(), 0)], &after);
                case(&format!("{name} mends what it finds"), &mended, "done");
                case(&format!("{name} fails twice"), &of(&[first, (again, no)], &[]), "failed");
            }
            (Some(fix), _) => {
                let mended = |code: u8| of(&[first.clone(), (fix.clone(), code), (again.clone(), 0)], &after);
                case(&format!("{fix} mends what {name} finds"), &mended(0), "done");
                let complains = check.fix.as_ref().map_or(1, |fix| code_of_no(&fix.command));
                case(&format!("{fix} may complain, and {name} judges"), &mended(complains), "done");
                let left = of(&[first.clone(), (fix.clone(), 0), (again.clone(), no)], &[]);
                case(&format!("{fix} does not mend what {name} finds"), &left, "failed");
            }
        }
    }
    if let Some(first) = checks.first() {
        // This is more than the time after which the loop ends.
        let hours = plan.allowed_hours() + 1;
        let _ = write!(
            out,
            "  - name: a check that could not be run\n{given}    mocks:\n      {name}:\n        exit: 127\n        \
             stderr: \"make: not found\"\n    expect:\n      outcome: error\n  \
             - name: a check that takes longer than the loop may\n{given}    mocks:\n      {name}:\n        takes: {hours}h\n    \
             expect:\n      outcome: timeout\n",
            name = first.name
        );
        out.push_str("always:\n  - enter done implies verified\n");
    }
    out
}
