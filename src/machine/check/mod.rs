//! Looks at a whole machine for what no single key shows. One file a family of rules; this one is their list.

use super::Machine;
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::path::DocPath;
use crate::definition::schema::Loop;

mod absent_values;
mod captures;
mod checked_machine;
mod counts;
mod cycles;
mod deep;
mod ends;
mod flow;
pub mod injection;
mod masked;
pub(crate) mod models;
mod reach;
pub mod unknown_names;
mod verdicts;

use checked_machine::CheckedLoop;
pub use checked_machine::place_of_way;
pub use models::fate;

/// A rule: it looks at a machine and says what it finds.
type Rule = fn(&CheckedLoop<'_>, &mut Diagnostics);

/// The rules, in the order in which they speak.
const RULES: [Rule; 17] = [
    description,
    reach::unreachable,
    reach::no_end,
    cycles::cycles,
    verdicts::impossible,
    verdicts::unhandled,
    verdicts::no_as_error,
    ends::unverified_success,
    ends::silent_failure,
    injection::injection,
    masked::masked,
    counts::doubled,
    models::needed,
    absent_values::undefined,
    absent_values::board,
    absent_values::unset,
    captures::same_variable,
];

/// Rules whose findings the walk through every run says better.
const SUPERSEDED: [&str; 2] = ["no-end", "unhandled-verdict"];

/// Returns every warning and note about a machine; none of them blocks by itself.
pub fn check(machine: &Machine, definition: &Loop) -> Diagnostics {
    apply(&CheckedLoop::new(machine, definition))
}

/// The same, and what a walk through everything that can happen shows.
pub fn check_deeply(machine: &Machine, definition: &Loop) -> Diagnostics {
    let subject = CheckedLoop::new(machine, definition);
    let mut findings = apply(&subject).filtered(|finding| !SUPERSEDED.contains(&finding.code));
    deep::walk(&subject, &mut findings);
    findings
}

fn apply(subject: &CheckedLoop<'_>) -> Diagnostics {
    let mut findings = Diagnostics::default();
    for rule in RULES {
        rule(subject, &mut findings);
    }
    findings
}

fn description(subject: &CheckedLoop<'_>, findings: &mut Diagnostics) {
    if subject.definition.description.is_none() {
        let place = FindingPlace::Key(DocPath::root().key("name"));
        let help = "add `description: …`; `show` and the reports print it";
        findings.push(Diagnostic::warning("no-description", place, "the loop has no description").help(help));
    }
}

#[cfg(test)]
mod tests;
