//! The rows of a board: one for each loop of each repository, folded from its runs. Everything in a run is a claim of whoever
//! wrote it, so every text is cut, and counts are bounded.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::text::one_line;
use crate::base::time::Timestamp;
use crate::report::digest::{Digest, EndKind};
use crate::report::nights;
use crate::report::work_counts::WorkCounts;

/// The longest text of a run on a board, in characters.
const LONGEST: usize = 200;

/// The most days whose cost is kept.
const MOST_DAYS: usize = 60;

/// The most flaky states that are named of a loop.
const MOST_FLAKY: usize = 12;

/// The most characters of the id of a tree that are shown.
const TREE: usize = 12;

/// What a board knows of a run.
#[derive(Clone, Debug)]
pub struct FleetRun {
    /// The repository.
    pub repository: String,
    /// The loop.
    pub loop_name: String,
    /// Its id.
    pub run_id: String,
    /// When its last event was.
    pub at: Timestamp,
    /// What came of it.
    pub outcome: &'static str,
    /// Whether that is good, where it says so.
    pub kind: EndKind,
    /// Whether it was verified; none where that is not known.
    pub is_verified: Option<bool>,
    tree: Option<String>,
    cost: Option<f64>,
    calls: u32,
    flaky: Vec<String>,
    question: Option<String>,
    is_reused: bool,
    clean_nights: Option<usize>,
    page: Option<String>,
}

impl FleetRun {
    /// Takes what a board shows of a run; nothing where its journal has no beginning. What a run copied from the one that it
    /// was rewound from has cost something there, and is not among its counts.
    pub fn of(digest: &Digest, counts: &WorkCounts, repository: &str) -> Option<Self> {
        let start = digest.start()?;
        let origin = start.trace.as_deref();
        let usage = counts.usage();
        let history = nights::of(digest);
        // Only an address is made a link of.
        let page = origin.and_then(|origin| origin.page.as_ref()).map(ToString::to_string);
        let is_verified = digest.end().map(|end| end.verified);
        // That of another end is one that nothing was verified of.
        let verification = digest.verification().filter(|_| is_verified == Some(true));
        let tree = verification.and_then(|verification| verification.tree.as_ref());
        Some(Self {
            repository: one_line(repository, LONGEST),
            loop_name: one_line(digest.loop_name(), LONGEST),
            run_id: one_line(digest.run_id(), LONGEST),
            at: digest.seen_until()?,
            outcome: digest.outcome_word(),
            kind: digest.end_kind(),
            is_verified,
            tree: tree.map(|tree| tree.to_string().chars().take(TREE).collect()),
            cost: usage.cost_usd.filter(|_| usage.calls > 0),
            calls: usage.calls,
            flaky: digest.mends().flaky().iter().map(|state| one_line(state.as_str(), LONGEST)).collect(),
            question: digest.awaiting().map(|awaiting| one_line(&awaiting.question, LONGEST)),
            is_reused: digest.reused().is_some(),
            clean_nights: history.map(|history| history.clean_in_a_row()),
            page: page.filter(|page| page.starts_with("https://") || page.starts_with("http://")),
        })
    }
}

/// Adds a price. Infinity cannot be written as JSON.
pub(super) fn added(one: f64, other: f64) -> f64 {
    (one + other).min(f64::MAX)
}

/// A loop of a repository.
#[derive(Clone, Debug)]
pub struct FleetRow {
    /// The last run.
    pub last: FleetRun,
    /// How many runs there are.
    pub runs: u64,
    /// How many of them were verified successes.
    pub verified: u64,
    /// How many an earlier run stood for.
    pub reused: u64,
    /// The states that were flaky in some run.
    pub flaky: BTreeSet<String>,
    /// What was paid on each day, as far as it is known.
    pub cost_by_day: BTreeMap<String, f64>,
    /// Whether some run asked models and does not say what they cost.
    pub has_unknown_cost: bool,
}

impl FleetRow {
    fn of(run: FleetRun) -> Self {
        let mut row = Self {
            last: run.clone(),
            runs: 0,
            verified: 0,
            reused: 0,
            flaky: BTreeSet::new(),
            cost_by_day: BTreeMap::new(),
            has_unknown_cost: false,
        };
        row.add(run);
        row
    }

    fn add(&mut self, run: FleetRun) {
        self.runs += 1;
        self.verified += u64::from(run.kind == EndKind::Success && run.is_verified == Some(true));
        self.reused += u64::from(run.is_reused);
        for state in &run.flaky {
            if self.flaky.len() < MOST_FLAKY {
                self.flaky.insert(state.clone());
            }
        }
        self.has_unknown_cost |= run.calls > 0 && run.cost.is_none();
        if let Some(cost) = run.cost {
            let day = run.at.to_string().chars().take(10).collect();
            let paid = self.cost_by_day.entry(day).or_default();
            *paid = added(*paid, cost);
            if self.cost_by_day.len() > MOST_DAYS {
                self.cost_by_day.pop_first();
            }
        }
        if run.at >= self.last.at {
            self.last = run;
        }
    }

    /// Returns what is known to have been paid.
    pub fn cost(&self) -> f64 {
        self.cost_by_day.values().copied().fold(0.0, added)
    }

    /// Returns the verified tree of the last run.
    pub fn tree(&self) -> Option<&str> {
        self.last.tree.as_deref()
    }

    /// Returns the question that the last run waits for an answer to.
    pub fn question(&self) -> Option<&str> {
        self.last.question.as_deref()
    }

    /// Returns how many nights in a row were clean; none for a loop that is no nightly one.
    pub fn clean_nights(&self) -> Option<usize> {
        self.last.clean_nights
    }

    /// Returns the page of the job of the last run.
    pub fn page(&self) -> Option<&str> {
        self.last.page.as_deref()
    }
}

/// All rows, by repository and loop.
#[derive(Clone, Debug, Default)]
pub struct FleetBoard {
    rows: BTreeMap<(String, String), FleetRow>,
}

impl FleetBoard {
    /// Adds a run.
    pub fn add(&mut self, run: FleetRun) {
        let key = (run.repository.clone(), run.loop_name.clone());
        if let Some(row) = self.rows.get_mut(&key) {
            row.add(run);
        } else {
            self.rows.insert(key, FleetRow::of(run));
        }
    }

    /// Returns the rows in the order of their names.
    pub fn rows(&self) -> impl Iterator<Item = &FleetRow> {
        self.rows.values()
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }
}
