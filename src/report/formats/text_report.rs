//! A run as plain text, for a terminal.

use std::fmt::Write as _;

use crate::base::text::{one_line, plural};
use crate::report::board_work::BoardWork;
use crate::report::closing::{advice, headline};
use crate::report::digest::{Digest, changed_tree};
use crate::report::items::{Items, printed, why};
use crate::report::shown_steps::{self, ShownStep};
use crate::report::step::Step;
use crate::report::{stages, wording};

const SHOWN_STEPS: usize = 50;
const SHOWN_TASKS: usize = 100;
const SHOWN_LINES: usize = 15;

/// Writes the run.
pub fn render(digest: &Digest) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}: {}", one_line(digest.loop_name(), 120), digest.sentence());
    if !digest.run_id().is_empty() {
        let of =
            if digest.is_merge() { String::new() } else { format!(" of {}", one_line(digest.file(), 300)) };
        let _ = writeln!(out, "run {}{of}", one_line(digest.run_id(), 200));
    }
    if let Some(work) = digest.work() {
        tasks(work, &mut out);
    }
    if digest.is_merge() {
        items(&Items::of(digest), &mut out);
        warnings(digest, &mut out);
    } else {
        steps(digest, &mut out);
        warnings(digest, &mut out);
        deciding(digest, &mut out);
    }
    confined(digest, &mut out);
    if let Some(unbegun) = digest.unbegun() {
        let _ = writeln!(out, "{}", unbegun.details());
    }
    match digest.end() {
        // The first line says what the items are worth.
        Some(_) if digest.is_merge() => out.push('\n'),
        Some(end) => {
            let _ = writeln!(out, "\n{}", headline(end));
        }
        None => {}
    }
    for line in changed_tree::closing(digest) {
        let _ = writeln!(out, "{line}");
    }
    if let Some(advice) = advice(digest) {
        let _ = writeln!(out, "{advice}");
    }
    out
}

/// Says what confined the actions.
fn confined(digest: &Digest, out: &mut String) {
    for row in digest.confined().rows() {
        let _ = writeln!(out, "\n{}", one_line(&row.sentence(), 300));
        for remark in row.remarks() {
            let _ = writeln!(out, "  {}", one_line(&remark, 1000));
        }
    }
}

fn tasks(work: &BoardWork, out: &mut String) {
    let Some(progress) = stages::progress(work) else { return };
    let _ = writeln!(out, "\n{progress}");
    for line in stages::tree(work, SHOWN_TASKS) {
        let _ = writeln!(out, "  {line}");
    }
    for (role, usage) in work.roles() {
        if let Some(spent) = usage.sentence() {
            let _ = writeln!(out, "  {}: {spent}", one_line(role, 60));
        }
    }
}

fn steps(digest: &Digest, out: &mut String) {
    let (all, bookkeeping) = shown_steps::steps(digest);
    let shown = &all[all.len().saturating_sub(SHOWN_STEPS)..];
    let left_out = digest.omitted() + (all.len() - shown.len()) as u64;
    if !shown.is_empty() {
        out.push('\n');
    }
    if left_out > 0 {
        let _ = writeln!(out, "  … {} before these", plural(left_out, "step"));
    }
    for ShownStep { step, next } in shown {
        let action = step.action_line(60).map_or_else(String::new, |action| format!(" → {action}"));
        let to = next.map_or_else(String::new, |next| format!(" → {}", one_line(next.as_str(), 120)));
        let (number, state) = (step.number, one_line(step.state.as_str(), 120));
        let _ = writeln!(out, "  {number:>3} {state}{action}: {} {}{to}", step.mark(), step.verdict_line());
    }
    if let Some(sentence) = shown_steps::left_out(bookkeeping) {
        let _ = writeln!(out, "  {sentence}");
    }
}

/// Lists the items of a merge that are not verified, with what the first of them printed, and counts the others.
fn items(items: &Items<'_>, out: &mut String) {
    out.push('\n');
    for item in items.unverified.iter().take(SHOWN_STEPS) {
        let id = one_line(item.state.as_str(), 120);
        let run = item.action_line(120).map_or_else(String::new, |run| format!(" ({run})"));
        let _ = writeln!(out, "  {} {id}{run}: {}", item.mark(), why(item));
    }
    let more = items.unverified.len().saturating_sub(SHOWN_STEPS) as u64 + items.omitted;
    if more > 0 {
        let _ = writeln!(out, "  … {}", plural(more, "more item"));
    }
    if !items.verified.is_empty() {
        let _ = writeln!(out, "  ✓ {}", plural(items.verified.len() as u64, "verified item"));
    }
    if let Some((item, text)) = items.unverified.iter().find_map(|item| Some((item, printed(item)?))) {
        last_lines(item, &text, out);
    }
}

fn warnings(digest: &Digest, out: &mut String) {
    for warning in digest.warnings() {
        let line = wording::warning(warning.state.as_ref(), &warning.message);
        let (sign, text) = (line.sign, line.alone());
        let _ = writeln!(out, "  {sign} {text}");
    }
    if digest.more_warnings() > 0 {
        let _ = writeln!(out, "  ! and {}", plural(digest.more_warnings(), "more warning"));
    }
}

fn deciding(digest: &Digest, out: &mut String) {
    let Some(step) = digest.deciding_step() else {
        return;
    };
    last_lines(step, &step.output(), out);
}

fn last_lines(step: &Step, output: &str, out: &mut String) {
    let lines: Vec<&str> = output.lines().collect();
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nThe last lines of {}:", one_line(step.state.as_str(), 120));
    for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
        let _ = writeln!(out, "  │ {line}");
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::report::testing::{failing, working};

    #[test]
    fn a_run_on_a_board_begins_with_its_tasks() {
        let text = render(&working().digest());
        assert_snapshot!(text.split("\n\n").nth(1).unwrap(), @"
        2 of 4 tasks completed, 1 failed, 1 unreachable
          ✓ 1 Add the login form (completed)
          ▾ 2 Store sessions (split)
            ✓ 2.1 Pick a store (completed)
            ✗ 2.2 Write to it (failed)
          · 3 Document it (unreachable, waits for task 2)
          planner: 3 model calls, 3060 tokens, $1.50
          supervisor: 5 model calls, 5100 tokens, $2.50
          coder: 7 model calls, 7140 tokens, $3.50
          tester: 2 model calls, 2040 tokens, $1.00
        ");
    }

    #[test]
    fn a_failing_run_reads_as_it_went() {
        assert_snapshot!(render(&failing().digest()), @r#"
        fix-types: failure: `check` said no in 3 of 3 iterations
        run fix-types-20251120T234847-1f2e of .loops/fix-types.yaml

            1 check → mypy src/: ✗ no (exit 1, 2.3s) → fix
            2 fix → ruff check --fix src/: ✓ exit 0 (2.3s) → check
            3 check → mypy src/: ✗ no (exit 1, 2.3s) → fix
            4 fix → ruff check --fix src/: ✓ exit 0 (2.3s) → check
            5 check → mypy src/: ✗ no (exit 1, 2.3s) → failed

        The last lines of check:
          │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
          │ src/app.py:9:5: error: Missing return statement  [return]
          │ Found 2 errors in 1 file (checked 4 source files)

        Loop failed: failed (3 iterations, 11.8s)
        "#);
    }
}
