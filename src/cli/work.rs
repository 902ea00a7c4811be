//! Formats a piece of work and its criteria for people.

use std::collections::HashMap;

use crate::base::redact::Redactor;
use crate::base::text::{one_line, plain, tail};
use crate::base::time::human;
use crate::criteria::decision::STUCK_AFTER;
use crate::criteria::{CriteriaState, Progress, decide};
use crate::evaluate::observation::Observation;

/// The most characters of a line that are shown.
pub(super) const LINE: usize = 100;

/// How many of the last lines of a failing command are shown.
const LAST_LINES: usize = 10;

/// The last bytes of an output, from which these lines are taken.
const LAST_BYTES: usize = 16 * 1024;

pub(super) fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let quoted: Vec<_> = names.map(|name| format!("`{}`", one_line(name, LINE))).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}

/// Formats the result of a check, and the last lines of one that failed. `is_told`: its exit code means that the criterion
/// is not met.
pub(super) fn result(name: &str, seen: &Observation, is_told: bool, redactor: &Redactor) -> String {
    let name = one_line(name, LINE);
    if seen.succeeded() {
        return format!("✓ {name}\n");
    }
    let why = match &seen.failure {
        Some(why) => why.clone(),
        None if seen.timed_out() => format!("timed out after {}", human(seen.duration)),
        None if is_told => format!("exit {}", seen.exit_code),
        None => format!("exit {}, which says neither yes nor no", seen.exit_code),
    };
    let mut text = format!("✗ {name} ({why})\n");
    // Complaints come last, as the last lines are shown. How the two were mixed is not kept.
    let printed = format!("{}{}", seen.stdout.as_str(), seen.stderr.as_str());
    // Ten lines are near the end: an output of many MiB is not cut into lines for them.
    let lines: Vec<_> = tail(&printed, LAST_BYTES).lines().collect();
    for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
        text.push_str("  │ ");
        // Secrets are hidden first: escaping could change their letters, and they would not be found.
        text.push_str(&plain(&redactor.text(line)));
        text.push('\n');
    }
    text
}

pub(super) fn shown(state: &CriteriaState) -> String {
    let mut lines = vec![format!(
        "{}: {}",
        one_line(state.status(), LINE),
        one_line(state.spec().unwrap_or("unknown"), LINE)
    )];
    let commands: HashMap<_, _> = state.checks().map(|check| (check.name, check.command)).collect();
    lines.extend(state.criteria().map(|(name, is_met)| {
        let check =
            commands.get(name).map_or_else(String::new, |check| format!(": {}", one_line(check, LINE)));
        format!("  {} {}{check}", if is_met { '✓' } else { '✗' }, one_line(name, LINE))
    }));
    let (done, all) = (state.list("completedSteps").len(), state.list("steps").len());
    let next =
        state.next_step().map_or_else(String::new, |step| format!(", next: {}", one_line(&step, LINE)));
    lines.push(format!("round {}, {done}/{all} steps{next}", state.iteration()));
    let decision = decide(state, STUCK_AFTER);
    lines.extend(match decision.reason {
        Some(reason) => Some(one_line(&reason, LINE)),
        None if decision.progress == Progress::Done => Some("all criteria are met".to_owned()),
        None => None,
    });
    lines.push(String::new());
    lines.join("\n")
}
