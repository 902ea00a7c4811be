//! The rows of a board: one for each loop of each repository, folded from its runs. Everything in a run is a claim of whoever
//! wrote it, so every text is cut, and counts are bounded.

use std::collections::{BTreeMap, BTreeSet};

use super::loop_deliveries::LoopDeliveries;
use crate::base::text::one_line;
use crate::base::time::Timestamp;
use crate::report::delivery_fates::DeliveryList;
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
    /// Its result.
    pub outcome: &'static str,
    /// Whether that is good, where it says so.
    pub kind: EndKind,
    /// Whether it was verified; none where that is not known.
    pub is_verified: Option<bool>,
    tree: Option<String>,
    cost: Option<f64>,
    calls: u32,
    model: Option<String>,
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
            // Without a call there is nothing to pay, and no day on which it was paid.
            cost: usage.cost_usd.filter(|_| usage.calls > 0),
            calls: usage.calls,
            model: usage.model.map(|model| one_line(&model, LONGEST)),
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
    /// When the first run was.
    pub first: Timestamp,
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
    /// What became of what it delivered; nothing where nobody has asked.
    pub deliveries: Option<LoopDeliveries>,
}

impl FleetRow {
    fn of(run: FleetRun) -> Self {
        let mut row = Self {
            first: run.at,
            last: run.clone(),
            runs: 0,
            verified: 0,
            reused: 0,
            flaky: BTreeSet::new(),
            cost_by_day: BTreeMap::new(),
            has_unknown_cost: false,
            deliveries: None,
        };
        row.add(run);
        row
    }

    fn add(&mut self, run: FleetRun) {
        self.runs += 1;
        self.verified += u64::from(run.kind == EndKind::Success && run.is_verified == Some(true));
        self.reused += u64::from(run.is_reused);
        for state in &run.flaky {
            // A run names its states as it likes: without a bound, one loop could fill the page.
            if self.flaky.len() < MOST_FLAKY {
                self.flaky.insert(state.clone());
            }
        }
        self.has_unknown_cost |= run.calls > 0 && run.cost.is_none();
        if let Some(cost) = run.cost {
            // A time begins with its date, which has ten characters.
            let day = run.at.to_string().chars().take(10).collect();
            let paid = self.cost_by_day.entry(day).or_default();
            *paid = added(*paid, cost);
            if self.cost_by_day.len() > MOST_DAYS {
                // Days are sorted by their text, so the first one is the oldest.
                self.cost_by_day.pop_first();
            }
        }
        self.first = self.first.min(run.at);
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

/// What a run has cost, for its delivery.
#[derive(Clone, Debug)]
struct RunCost {
    /// US dollars; nothing where a call had no price.
    usd: Option<f64>,
    model: Option<String>,
    loop_name: String,
}

/// All rows, by repository and loop.
#[derive(Clone, Debug, Default)]
pub struct FleetBoard {
    rows: BTreeMap<(String, String), FleetRow>,
    /// By repository and run.
    costs: BTreeMap<(String, String), RunCost>,
}

impl FleetBoard {
    /// Adds a run.
    pub fn add(&mut self, run: FleetRun) {
        let cost = RunCost {
            // A run that asked no model has cost nothing, and that is known.
            usd: if run.calls == 0 { Some(0.0) } else { run.cost },
            model: run.model.clone(),
            loop_name: run.loop_name.clone(),
        };
        self.costs.insert((run.repository.clone(), run.run_id.clone()), cost);
        let key = (run.repository.clone(), run.loop_name.clone());
        if let Some(row) = self.rows.get_mut(&key) {
            row.add(run);
        } else {
            self.rows.insert(key, FleetRow::of(run));
        }
    }

    /// Adds what became of the deliveries of a repository, with what their runs have cost as far as they are known here. Returns how
    /// many of them are of loops without a run here, and are left out.
    pub fn know(&mut self, list: &DeliveryList) -> usize {
        let own = |repository: &str| is_named(repository, &list.repository);
        let repositories: BTreeSet<String> =
            self.rows.keys().filter(|(repository, _)| own(repository)).map(|key| key.0.clone()).collect();
        // A name without its server may be that of several repositories: it is unknown which one is meant.
        let [repository] = &repositories.into_iter().collect::<Vec<_>>()[..] else {
            return list.deliveries.len();
        };
        for (_, row) in self.rows.iter_mut().filter(|(key, _)| key.0 == *repository) {
            // For loops without any as well: now it is known that they delivered nothing.
            row.deliveries = Some(LoopDeliveries::none(!list.is_cut));
        }
        let mut left_out = 0;
        for delivery in &list.deliveries {
            let mut delivery = delivery.clone();
            if let Some(cost) = self.costs.get(&(repository.clone(), delivery.run.clone())) {
                (delivery.cost_usd, delivery.model) = (cost.usd, cost.model.clone());
                delivery.loop_name = Some(cost.loop_name.clone());
            }
            // No loop has an empty name, so a delivery of an unknown one is left out.
            let key = (repository.clone(), delivery.loop_name.clone().unwrap_or_default());
            match self.rows.get_mut(&key).and_then(|row| row.deliveries.as_mut()) {
                Some(deliveries) => deliveries.add(delivery),
                None => left_out += 1,
            }
        }
        left_out
    }

    /// Returns the repositories, and when the first run of each was.
    pub fn repositories(&self) -> BTreeMap<&str, Timestamp> {
        let mut all: BTreeMap<&str, Timestamp> = BTreeMap::new();
        for row in self.rows() {
            let first = all.entry(&row.last.repository).or_insert(row.first);
            *first = row.first.min(*first);
        }
        all
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

/// Tells whether a repository of a board is the one that a list of deliveries names: `github.com/octo/site` and `octo/site`.
fn is_named(repository: &str, name: &str) -> bool {
    // Cut with `get`: the place may be within a letter of several bytes, and then the names differ anyway.
    let at = repository.len().checked_sub(name.len());
    at.and_then(|at| Some((repository.get(..at)?, repository.get(at..)?))).is_some_and(|(server, end)| {
        end.eq_ignore_ascii_case(name) && (server.is_empty() || server.ends_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_named_with_and_without_its_server() {
        assert!(is_named("github.com/octo/site", "octo/site"));
        assert!(is_named("octo/Site", "octo/site"));
        for other in ["octo/site2", "github.com/an-octo/site", "site", "github.com/octo/site/more", "ö/site"]
        {
            assert!(!is_named(other, "octo/site"), "{other}");
        }
    }
}
