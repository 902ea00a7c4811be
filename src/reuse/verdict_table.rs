//! What the checks of a loop have said, by what they found: the same check that failed and passed on the same inputs wavers. Like
//! a record, a table is untrusted data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::{MEANING, PartSums, of_texts};
use super::origin::RunOrigin;
use super::record::{AHEAD, LARGEST, LONGEST, NotTaken, opened, sealed};
use crate::base::name::StateName;
use crate::base::sum::Sum;
use crate::base::time::Timestamp;
use crate::engine::check_history::CheckHistory;

/// The most checks and inputs of a table; those that were made longest ago go first.
const MOST_ROWS: usize = 5000;

/// The verdicts of the checks of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictTable {
    /// What the parts of the keys mean.
    meaning: u32,
    /// Where it was made.
    pub origin: RunOrigin,
    /// The loop.
    pub r#loop: String,
    rows: Vec<VerdictRow>,
}

/// What a check has said on the same inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VerdictRow {
    key: CheckKey,
    failed: u64,
    of: u64,
    taken_back: u64,
    last: Timestamp,
}

/// What two runs of a check have in common that may be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckKey {
    /// The state.
    pub state: StateName,
    /// Its command.
    pub command: Sum,
    /// All that it reads.
    pub inputs: Sum,
}

impl CheckKey {
    /// Makes the key of a check, whose command is this, in a run with such a key. Other states of the loop and its options
    /// are no part of it.
    pub fn of(state: &StateName, command: Sum, sums: &PartSums) -> Self {
        let parts = sums.named().into_iter().filter(|(name, _)| !matches!(*name, "loop" | "options"));
        let parts: Vec<String> = parts.map(|(name, sum)| format!("{name} {sum}")).collect();
        let inputs = of_texts(parts.iter().map(String::as_str));
        Self { state: state.clone(), command, inputs }
    }
}

impl VerdictTable {
    /// Makes one without verdicts.
    pub fn new(origin: RunOrigin, name: &str) -> Self {
        Self { meaning: MEANING, origin, r#loop: name.to_owned(), rows: Vec::new() }
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is invalid, or contradicts itself.
    pub fn parse(bytes: &[u8], now: Timestamp) -> Result<Self, NotTaken> {
        let table: Self = serde_json::from_slice(opened(bytes)?)
            .map_err(|error| NotTaken::Unreadable(error.to_string()))?;
        if table.meaning != MEANING {
            return Err(NotTaken::OtherMeaning);
        }
        let is_possible =
            |row: &VerdictRow| row.taken_back <= row.failed && row.failed <= row.of && row.of > 0;
        if table.rows.len() > MOST_ROWS || table.r#loop.len() > LONGEST || !table.rows.iter().all(is_possible)
        {
            return Err(NotTaken::Impossible("its numbers"));
        }
        if table.rows.iter().any(|row| row.last.since(now) > AHEAD) {
            return Err(NotTaken::Future);
        }
        Ok(table)
    }

    /// Writes it as [`VerdictTable::parse`] reads it; nothing where it would be larger than what is read.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn to_bytes(&self) -> Result<Option<Vec<u8>>, serde_json::Error> {
        let bytes = sealed(&serde_json::to_vec(self)?);
        Ok((bytes.len() as u64 <= LARGEST).then_some(bytes))
    }

    /// Adds what a check has said.
    pub fn add(&mut self, key: &CheckKey, passed: bool, now: Timestamp) {
        let known = self.rows.iter().position(|row| row.key == *key);
        let mut row = match known {
            Some(at) => self.rows.remove(at),
            None => VerdictRow { key: key.clone(), failed: 0, of: 0, taken_back: 0, last: now },
        };
        let mut history = row.history(true);
        history.add(passed);
        (row.failed, row.of, row.taken_back) = (history.failed, history.of, history.taken_back);
        row.last = now;
        // In the order of their last verdicts, so that the first has to go first.
        self.rows.push(row);
        let excess = self.rows.len().saturating_sub(MOST_ROWS);
        self.rows.drain(..excess);
    }

    /// Leaves out checks that have not been made for so long.
    pub fn forget(&mut self, now: Timestamp, max_age: Duration) {
        self.rows.retain(|row| now.since(row.last) <= max_age);
    }
}

impl VerdictRow {
    fn history(&self, is_here: bool) -> CheckHistory {
        let Self { key, failed, of, taken_back, .. } = self;
        CheckHistory { state: key.state.clone(), failed: *failed, of: *of, taken_back: *taken_back, is_here }
    }
}

/// Returns what checks said on the inputs of these keys, and on others where they wavered there: the newest of those.
pub fn histories(keys: &[CheckKey], tables: &[VerdictTable]) -> Vec<CheckHistory> {
    let rows = || tables.iter().flat_map(|table| &table.rows);
    let of_key = |key: &CheckKey| {
        let state = key.state.clone();
        let mut here = CheckHistory { state, failed: 0, of: 0, taken_back: 0, is_here: true };
        for row in rows().filter(|row| row.key == *key) {
            here.failed = here.failed.saturating_add(row.failed);
            here.of = here.of.saturating_add(row.of);
            here.taken_back = here.taken_back.saturating_add(row.taken_back);
        }
        let is_elsewhere = |row: &&VerdictRow| {
            row.key.state == key.state && row.key.command == key.command && row.key.inputs != key.inputs
        };
        let wavered = rows().filter(is_elsewhere).filter(|row| row.taken_back > 0);
        let elsewhere = wavered.max_by_key(|row| row.last).map(|row| row.history(false));
        std::iter::once(here).chain(elsewhere)
    };
    keys.iter().flat_map(of_key).collect()
}

/// A check that wavers, or that has failed on inputs on which it had passed, as `stats --flaky` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveringRow {
    /// What it said.
    pub history: CheckHistory,
    /// When it was made last.
    pub last: Timestamp,
}

impl VerdictTable {
    /// Returns the checks that wavered, and those of which it is not known yet whether they waver or are broken: they passed, and
    /// failed later on the same inputs.
    pub fn wavering(&self) -> impl Iterator<Item = WaveringRow> {
        let both = self.rows.iter().filter(|row| row.failed > 0 && row.failed < row.of);
        both.map(|row| WaveringRow { history: row.history(false), last: row.last })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::origin::OriginEvent;
    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    fn origin() -> RunOrigin {
        RunOrigin { repository: "o/r".to_owned(), event: OriginEvent::Push, branch: None }
    }

    fn key(command: &str, inputs: &str) -> CheckKey {
        let state = StateName::parse("check").unwrap();
        CheckKey { state, command: of_texts([command]), inputs: of_texts([inputs]) }
    }

    fn now() -> Timestamp {
        Timestamp::from_millis(NOW)
    }

    fn table(said: &[(&str, &str, bool)]) -> VerdictTable {
        let mut table = VerdictTable::new(origin(), "main");
        for (command, inputs, passed) in said {
            table.add(&key(command, inputs), *passed, now());
        }
        table
    }

    #[test]
    fn verdicts_are_of_one_command_and_of_the_same_inputs() {
        let table = table(&[("a", "x", false), ("a", "y", true), ("b", "x", true)]);
        let known = histories(&[key("a", "x")], std::slice::from_ref(&table));
        assert!(known.iter().all(|history| !history.is_flaky()), "{known:?}");
        let mut table = table;
        table.add(&key("a", "x"), true, now());
        let tables = [table];
        let flaky = |command, inputs| {
            let known = histories(&[key(command, inputs)], &tables);
            known.iter().map(|one| (one.is_here, one.is_flaky())).collect::<Vec<_>>()
        };
        assert_eq!(flaky("a", "x"), [(true, true)]);
        assert_eq!(flaky("a", "z"), [(true, false), (false, true)]);
        assert_eq!(flaky("b", "z"), [(true, false)]);
    }

    #[test]
    fn a_table_has_no_more_than_so_many_rows_and_forgets() {
        let mut table = VerdictTable::new(origin(), "main");
        for number in 0..MOST_ROWS + 3 {
            table.add(&key("a", &number.to_string()), true, now());
        }
        assert_eq!((table.rows.len(), &table.rows[0].key), (MOST_ROWS, &key("a", "3")));
        table.forget(Timestamp::from_millis(NOW + 1), Duration::ZERO);
        assert!(table.rows.is_empty());
    }

    proptest! {
        /// What is damaged is not read, and nothing panics.
        #[test]
        fn a_damaged_table_is_not_taken(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let whole = table(&[("a", "x", false), ("a", "x", true)]).to_bytes().unwrap().unwrap();
            prop_assert!(VerdictTable::parse(&whole, now()).is_ok());
            let mut bytes = whole.clone();
            bytes[at.index(whole.len())] = byte;
            prop_assume!(bytes != whole);
            prop_assert!(VerdictTable::parse(&bytes, now()).is_err());
        }

        /// A seeded flake is found as soon as a failure was followed by a pass on the same inputs; what only fails from some
        /// run on is never called flaky.
        #[test]
        fn seeded_flakes_are_found_and_broken_checks_are_not(runs in prop::collection::vec(0..100u8, 1..80), share in 1..31u8, breaks_at in 0..80usize) {
            let flaky: Vec<_> = runs.iter().map(|chance| ("flaky", "x", *chance >= share)).collect();
            let broken: Vec<_> = (0..runs.len()).map(|run| ("broken", "x", run < breaks_at)).collect();
            let tables = [table(&flaky), table(&broken)];
            let found = |command| histories(&[key(command, "x")], &tables)[0].is_flaky();
            let first = flaky.iter().position(|(.., passed)| !passed);
            let is_seen = first.is_some_and(|first| flaky[first..].iter().any(|(.., passed)| *passed));
            prop_assert_eq!(found("flaky"), is_seen);
            prop_assert!(!found("broken"));
        }
    }
}
