//! How long items are expected to take: the median of their last verified runs.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::item_plan::{Item, WeightFrom};

/// The weight of an item where no item has a run, in milliseconds.
// Any number does, because all items then have it, and only the ratio decides.
const UNKNOWN: u64 = 1000;

/// How many verified runs of an item count, the newest ones.
// The median of five is hardly moved by two runs on a slow machine, and follows a lasting change after three.
const COUNTED: usize = 5;

/// What earlier runs of items took: the `result.json` of a merge, or a file of the same form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Durations {
    /// The items.
    pub items: Vec<ItemRuns>,
}

/// The runs of one item.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ItemRuns {
    /// The item, by its id.
    pub id: String,
    /// Its runs, the oldest first.
    #[serde(default)]
    pub runs: Vec<Duration>,
}

/// One run of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Duration {
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Whether it ended with a verified success.
    pub verified: bool,
}

/// Sets the weights of items from what their runs took. Several files count in the given order, the oldest first.
pub fn weigh(items: &mut [Item], files: &[Durations]) {
    let mut taken: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for runs in files.iter().flat_map(|file| &file.items) {
        // A run that failed early does not say how long the work takes.
        let verified = runs.runs.iter().filter(|run| run.verified).map(|run| run.duration_ms);
        taken.entry(runs.id.as_str()).or_default().extend(verified);
    }
    let known = |item: &Item| {
        let runs = taken.get(item.id.as_str())?;
        median(runs[runs.len().saturating_sub(COUNTED)..].to_vec())
    };
    let measured: Vec<Option<u64>> = items.iter().map(known).collect();
    let (rest, from) = match median(measured.iter().flatten().copied().collect()) {
        Some(median) => (median, WeightFrom::Median),
        None => (UNKNOWN, WeightFrom::Default),
    };
    for (item, measured) in items.iter_mut().zip(measured) {
        let (weight, from) = measured.map_or((rest, from), |measured| (measured, WeightFrom::Runs));
        // A run that takes no time still costs a turn; without a weight, one leg would get all of them.
        (item.weight_ms, item.weight_from) = (weight.max(1), from);
    }
}

/// Returns the middle value; of an even number the lower one of the middle two.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::LoopName;
    use crate::fanout::item::ItemId;

    fn weights(files: &[&str]) -> Vec<(u64, WeightFrom)> {
        let named = |id: &str| Item {
            id: ItemId::parse(id).unwrap(),
            r#loop: LoopName::parse("tidy").unwrap(),
            params: BTreeMap::new(),
            scope: Vec::new(),
            weight_ms: 0,
            weight_from: WeightFrom::Default,
            proves: None,
        };
        let mut items = ["a", "b", "c"].map(named);
        let files: Vec<Durations> = files.iter().map(|file| serde_json::from_str(file).unwrap()).collect();
        weigh(&mut items, &files);
        items.iter().map(|item| (item.weight_ms, item.weight_from)).collect()
    }

    #[test]
    fn an_item_weighs_what_its_last_verified_runs_took() {
        use WeightFrom::{Default, Median, Runs};
        assert_eq!(weights(&[]), [(1000, Default); 3]);
        let run = |ms: u64, verified: bool| format!(r#"{{"duration_ms": {ms}, "verified": {verified}}}"#);
        let file = |id: &str, runs: &[String]| {
            format!(r#"{{"items": [{{"id": "{id}", "runs": [{}]}}]}}"#, runs.join(","))
        };
        let unverified = file("a", &[run(7, false)]);
        assert_eq!(weights(&[&unverified]), [(1000, Default); 3]);
        let six = file("a", &[900, 10, 20, 30, 40, 50].map(|ms| run(ms, true)));
        assert_eq!(weights(&[&six]), [(30, Runs), (30, Median), (30, Median)]);
        let newer = file("a", &[run(5, true), run(5, true), run(5, true)]);
        let other = file("c", &[run(0, true)]);
        assert_eq!(
            weights(&[&six, &newer, &other]),
            [(5, Runs), (0, Median), (0, Runs)].map(|(ms, from)| (ms.max(1), from))
        );
    }

    #[test]
    fn what_else_a_result_says_is_ignored() {
        assert_eq!(weights(&[r#"{"schema": 1, "items": [{"id": "x", "outcome": "success"}]}"#])[0].0, 1000);
    }
}
