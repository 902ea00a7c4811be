//! Deletes old runs from the history: a pure function plans it from the runs and the time, another carries it out.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use super::known::{KnownRun, RunStatus};
use crate::base::time::Timestamp;

/// The limits of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// The age above which a run is deleted.
    pub age: Duration,
    /// How many runs of each loop are kept.
    pub count: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { age: Duration::from_hours(90 * 24), count: 500 }
    }
}

/// The facts about a run that decide whether it is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DeletionCandidate<'r> {
    name: &'r str,
    status: RunStatus,
    last: Option<Timestamp>,
}

/// Returns the runs to delete, oldest first. Runs that are alive, can be resumed or cannot be read are kept.
pub fn plan(runs: &[KnownRun], limits: HistoryLimits, now: Timestamp) -> Vec<&KnownRun> {
    let readable = runs.iter().filter(|run| run.unreadable.is_none());
    let candidates = readable.map(|run| {
        let last = run.ends.last.map(|(at, _)| at);
        (DeletionCandidate { name: &run.name, status: run.status, last }, run)
    });
    due(candidates.collect(), limits, now)
}

/// Decides about candidates in the order in which they began.
fn due<R>(candidates: Vec<(DeletionCandidate<'_>, R)>, limits: HistoryLimits, now: Timestamp) -> Vec<R> {
    let mut kept: BTreeMap<String, usize> = BTreeMap::new();
    let mut due = Vec::new();
    // The newest first, so that the count keeps these.
    for (candidate, run) in candidates.into_iter().rev() {
        let is_over = !candidate.status.is_live() && !candidate.status.is_resumable();
        // Of one without events, the age is unknown, so it stays.
        let Some(last) = candidate.last.filter(|_| is_over) else { continue };
        let kept = kept.entry(candidate.name.to_owned()).or_default();
        if *kept >= limits.count || now.since(last) > limits.age {
            due.push(run);
        } else {
            *kept += 1;
        }
    }
    due.reverse();
    due
}

/// Deletes a run. Its journal goes last, so that an interrupted deletion can be repeated.
pub fn forget(run: &KnownRun) -> io::Result<()> {
    let files = &run.files;
    for directory in [files.streams(), files.scratch(), files.report(), files.objects()] {
        present(fs_err::remove_dir_all(directory))?;
    }
    for file in [
        files.log(),
        files.session(),
        files.patch(),
        files.state(),
        files.spare_state(),
        files.pid(),
        files.unreported(),
        files.journal(),
    ] {
        present(fs_err::remove_file(file))?;
    }
    Ok(())
}

fn present(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::outcome::Outcome;

    const DAY: i64 = 24 * 3600 * 1000;

    fn candidate(name: &'static str, status: RunStatus, day: i64) -> DeletionCandidate<'static> {
        DeletionCandidate { name, status, last: Some(Timestamp::from_millis(day * DAY)) }
    }

    fn check(days: u64, count: usize, runs: &[(&'static str, RunStatus, i64)], expected: &[usize]) {
        let limits = HistoryLimits { age: Duration::from_hours(days * 24), count };
        let runs =
            runs.iter().enumerate().map(|(at, (name, status, day))| (candidate(name, *status, *day), at));
        assert_eq!(due(runs.collect(), limits, Timestamp::from_millis(100 * DAY)), expected);
    }

    const OK: RunStatus = RunStatus::Ended(Outcome::Success);

    #[test]
    fn old_runs_and_too_many_runs_are_forgotten() {
        check(30, 10, &[("a", OK, 10), ("a", OK, 69), ("a", OK, 70), ("a", OK, 99)], &[0, 1]);
        check(99, 2, &[("a", OK, 90), ("b", OK, 91), ("a", OK, 92), ("a", OK, 93)], &[0]);
        check(99, 0, &[("a", OK, 90)], &[0]);
        check(1, 1, &[("a", OK, 100), ("a", OK, 101)], &[0]);
    }

    #[test]
    fn what_lives_or_can_be_continued_is_never_forgotten() {
        let safe = [
            RunStatus::Running,
            RunStatus::Queued,
            RunStatus::Crashed,
            RunStatus::Ended(Outcome::Interrupted),
            RunStatus::Ended(Outcome::Timeout),
            RunStatus::Ended(Outcome::Handoff),
            RunStatus::Ended(Outcome::OverBudget),
            RunStatus::Ended(Outcome::Unavailable),
        ];
        for status in safe {
            check(1, 0, &[("a", status, 1)], &[]);
        }
        check(1, 1, &[("a", OK, 99), ("a", RunStatus::Crashed, 100)], &[]);
    }

    proptest! {
        #[test]
        fn never_more_is_kept_than_may_be_and_the_newest_is_kept_first(
            runs in prop::collection::vec((0..3_usize, 0..100_i64), 0..40), count in 0..5_usize, age in 1..100_u64,
        ) {
            let mut days: Vec<i64> = runs.iter().map(|(_, day)| *day).collect();
            days.sort_unstable();
            let names = ["a", "b", "c"];
            let all: Vec<_> = runs.iter().zip(&days).map(|((name, _), day)| (names[*name], *day)).collect();
            let limits = HistoryLimits { age: Duration::from_hours(age * 24), count };
            let candidates = all.iter().enumerate().map(|(at, (name, day))| (candidate(name, OK, *day), at));
            let gone = due(candidates.collect(), limits, Timestamp::from_millis(100 * DAY));
            for name in names {
                let of: Vec<usize> = (0..all.len()).filter(|at| all[*at].0 == name).collect();
                let kept: Vec<usize> = of.iter().copied().filter(|at| !gone.contains(at)).collect();
                prop_assert!(kept.len() <= count);
                prop_assert!(kept.iter().all(|at| of.iter().filter(|other| *other > at).all(|other| kept.contains(other))));
                let young = of.iter().filter(|at| 100 - all[**at].1 <= i64::try_from(age).unwrap()).count();
                prop_assert_eq!(kept.len(), young.min(count));
            }
        }
    }
}
