//! What people see of the steps of a run: all of them, but for those that only keep a task board. Those are in the
//! journal, in the log file and in `result.json`; in a summary they would hide the work that they are about.

use super::digest::Digest;
use super::passes::SHOWN;
use super::step::Step;
use crate::base::name::StateName;
use crate::base::text::plural;

/// A step, and where it led, past the steps that people do not see.
pub struct ShownStep<'d> {
    /// The step.
    pub step: &'d Step,
    /// The next state.
    pub next: Option<&'d StateName>,
}

/// Returns the kept steps that people see, and how many others there are between them.
pub fn steps(digest: &Digest) -> (Vec<ShownStep<'_>>, u64) {
    let all: Vec<&Step> = digest.steps().collect();
    let is_shown = |at: &usize| !is_bookkeeping(digest, all[*at]);
    let shown: Vec<ShownStep<'_>> = (0..all.len())
        .filter(is_shown)
        .map(|at| ShownStep { step: all[at], next: next(digest, &all[at..]) })
        .collect();
    let left_out = (all.len() - shown.len()) as u64;
    (shown, left_out)
}

/// Says how many steps are left out: `14 steps that only keep the task board are not shown`.
pub fn left_out(count: u64) -> Option<String> {
    let (keep, are) = if count == 1 { ("keeps", "is") } else { ("keep", "are") };
    let steps = plural(count, "step");
    (count > 0).then(|| format!("{steps} that only {keep} the task board {are} not shown"))
}

/// Returns where the first of these steps led. Steps in the middle of a long run are not kept, so the way ends there.
fn next<'d>(digest: &Digest, steps: &[&'d Step]) -> Option<&'d StateName> {
    let goes_on = |pair: &&[&Step]| {
        pair[1].number == pair[0].number.saturating_add(1) && is_bookkeeping(digest, pair[1])
    };
    let last = steps.windows(2).take_while(goes_on).last().map_or(steps[0], |pair| pair[1]);
    last.route.as_ref().map(|route| &route.to)
}

/// Tells whether a step only keeps the task board: an operation on it, and, in a loop that names roles, also a step
/// without one. A step that failed or was cut off is always of interest.
pub fn is_bookkeeping(digest: &Digest, step: &Step) -> bool {
    let names_roles = || digest.work().is_some_and(|work| !work.roles().is_empty());
    step.keeps_the_board() && digest.work().is_some() && (step.is_operation() || names_roles())
}

/// A row in a table of steps.
pub enum StepRow<'d> {
    /// A step.
    Step(&'d ShownStep<'d>),
    /// Passes like the one before.
    Like {
        /// How many.
        passes: u64,
        /// Their steps.
        steps: u64,
    },
}

impl StepRow<'_> {
    /// Returns how many steps it stands for.
    pub fn steps(&self) -> u64 {
        match self {
            Self::Step(_) => 1,
            Self::Like { steps, .. } => *steps,
        }
    }
}

/// Returns the rows for some steps: with `once`, passes that are the same have those of the first two of them.
pub fn rows<'d>(steps: &'d [ShownStep<'d>], once: bool) -> Vec<StepRow<'d>> {
    let passes: Vec<_> = steps.chunk_by(|one, next| one.step.iteration == next.step.iteration).collect();
    let mut rows = Vec::new();
    for row in passes.chunk_by(|one, next| once && are_alike(one, next)) {
        let shown = if row.len() > SHOWN as usize { SHOWN as usize } else { row.len() };
        rows.extend(row[..shown].iter().flat_map(|pass| pass.iter()).map(StepRow::Step));
        let left_out = &row[shown..];
        if !left_out.is_empty() {
            let steps = left_out.iter().map(|pass| pass.len() as u64).sum();
            rows.push(StepRow::Like { passes: left_out.len() as u64, steps });
        }
    }
    rows
}

/// Tells whether two passes that follow each other look the same.
fn are_alike(one: &[ShownStep<'_>], next: &[ShownStep<'_>]) -> bool {
    let seen = |shown: &ShownStep<'_>| {
        let step = shown.step;
        let result = step.result.as_ref();
        let printed = result.map(|result| (result.exit_code, result.stdout.clone(), result.stderr.clone()));
        let route = step.route.as_ref().map(|route| route.to.clone());
        (step.state.clone(), step.verdict().cloned(), printed, step.error.clone(), step.closing, route)
    };
    let follows = |shown: &ShownStep<'_>| shown.step.number;
    // Steps in the middle of a long run are not kept, and those may have been different.
    let is_next = matches!((one.last(), next.first()), (Some(one), Some(next)) if follows(next) == follows(one).saturating_add(1));
    // The last pass leads elsewhere, into the end.
    is_next && one.len() == next.len() && one.iter().zip(next).all(|(one, next)| seen(one) == seen(next))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::outcome::{Outcome, TerminatedBy};
    use crate::report::taken_edges::EdgeCount;
    use crate::report::testing::{Journal, plan, succeeding};

    /// A run on a board in which `look` is work that nobody is named for, and exits with `code`.
    fn on_board(code: i32) -> Digest {
        let mut journal = Journal::on_board();
        journal.stage("plan", "planner", "yes", &json!({})).to("load");
        journal.operate("load", "load", &plan(&[("Add it", &[])])).to("approve");
        journal.operate("approve", "approve", &json!({"because": "85"})).to("next");
        journal.operate("next", "next", &json!({})).to("look");
        journal.next("look", 1, "git status", code, "work");
        journal.stage("work", "coder", "yes", &json!({})).to("pass");
        journal.operate("pass", "pass", &json!({})).to("done");
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true).digest()
    }

    fn rows(digest: &Digest) -> Vec<String> {
        let row = |shown: &ShownStep<'_>| format!("{} → {}", shown.step.state, shown.next.unwrap());
        steps(digest).0.iter().map(row).collect()
    }

    fn edges(digest: &Digest) -> Vec<String> {
        let edge = |((from, to), count): (&(StateName, StateName), &EdgeCount)| {
            format!("{from} → {to}: {:?}", count.verdicts)
        };
        digest.shown_edges().iter().map(edge).collect()
    }

    #[test]
    fn what_only_keeps_the_board_is_part_of_the_way() {
        let digest = on_board(0);
        assert_eq!(rows(&digest), ["plan → work", "work → done"]);
        assert_eq!(edges(&digest), [r#"plan → work: {"yes": 1}"#, r#"work → done: {"yes": 1}"#]);
        let sentence = left_out(steps(&digest).1).unwrap();
        assert_eq!(sentence, "5 steps that only keep the task board are not shown");
        assert_eq!(digest.steps().count(), 7, "they are there for programs");
    }

    #[test]
    fn what_failed_is_shown() {
        assert_eq!(rows(&on_board(1)), ["plan → look", "look → work", "work → done"]);
        assert_eq!(edges(&on_board(1))[0], r#"plan → look: {"yes": 1}"#);
    }

    #[test]
    fn without_a_board_every_step_is_shown() {
        let digest = succeeding().digest();
        assert_eq!(rows(&digest), ["check → fix", "fix → check", "check → done"]);
        assert_eq!(left_out(steps(&digest).1), None);
        assert_eq!(digest.shown_edges(), digest.edges());
    }
}
