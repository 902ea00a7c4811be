//! The nights of a maintain loop, so that one night knows of those before it: what comes back again and again, what
//! is flaky, and which nights did not happen.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::Digest;
use super::mends::MAX_STATES;
use crate::base::format::{self, Unfit};
use crate::base::name::{LoopName, StateName};
use crate::base::text::{head, plural};
use crate::base::time::{Timestamp, human};
use crate::engine::night::Night;
use crate::engine::outcome::Outcome;

/// The file that keeps them.
pub const FILE: &str = "nights.json";

/// The longest file that is read.
pub const MAX_FILE: u64 = 4 << 20;

/// How many nights are kept.
pub const MAX_NIGHTS: usize = 30;

/// How many nights are looked at for what comes back.
pub const LOOKED_AT: usize = 5;

/// In how many of them a state has to be fixed or flaky to come back.
const OFTEN: usize = 2;

/// The version of the format.
const SCHEMA: u32 = 1;

const MAX_ID: usize = 200;

/// Why what was kept of earlier nights cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// It is not what this program writes.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// A later version wrote it.
    #[error("a later version of ll-loop wrote it (format {found}; this one knows {SCHEMA})")]
    Newer {
        /// The version of its format.
        found: u64,
    },
    /// It is about another loop.
    #[error("it is about the loop `{0}`")]
    OfAnother(LoopName),
}

/// The last nights of a loop, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    schema: u32,
    r#loop: LoopName,
    nights: Vec<Night>,
}

/// A state that comes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recurring {
    /// The state.
    pub state: StateName,
    /// In how many nights it was fixed or flaky.
    pub nights: usize,
    /// How many nights were looked at.
    pub of: usize,
    /// In how many it was fixed.
    pub fixed: usize,
    /// In how many it was flaky.
    pub flaky: usize,
}

impl Recurring {
    /// Returns the rest of the sentence that begins with the state.
    pub fn words(&self) -> String {
        let Self { fixed, flaky, of, .. } = self;
        let how = match (fixed, flaky) {
            (fixed, 0) => format!("fixed in {fixed}"),
            (0, flaky) => format!("flaky in {flaky}"),
            (fixed, flaky) => format!("fixed in {fixed} and flaky in {flaky}"),
        };
        format!("was {how} of the last {of} nights")
    }
}

impl History {
    /// Makes the history of a loop from what is known of its nights.
    pub fn new(name: LoopName, nights: impl IntoIterator<Item = Night>) -> Self {
        let mut history = Self { schema: SCHEMA, r#loop: name, nights: Vec::new() };
        nights.into_iter().for_each(|night| history.add(night));
        history
    }

    /// Reads what was kept of the nights of this loop.
    pub fn read(bytes: &[u8], name: &LoopName) -> Result<Self, HistoryError> {
        let damaged = |error: serde_json::Error| HistoryError::Damaged(error.to_string());
        let value: Value = serde_json::from_slice(bytes).map_err(damaged)?;
        format::check(&value, SCHEMA).map_err(|unfit| match unfit {
            Unfit::Newer(found) => HistoryError::Newer { found },
            Unfit::Unknown => HistoryError::Damaged("it has no `schema`".to_owned()),
        })?;
        let Self { r#loop, nights, .. } = serde_json::from_value(value).map_err(damaged)?;
        // `--previous` takes any file, and the nights of two loops have nothing in common.
        if r#loop != *name {
            return Err(HistoryError::OfAnother(r#loop));
        }
        Ok(Self::new(r#loop, nights))
    }

    /// Returns the text of the file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain values are JSON") + "\n"
    }

    /// Adds a night in its place. What was known of the same run before is known better now.
    pub fn add(&mut self, mut night: Night) {
        // The file may come from an artifact, and each of its nights is copied into the first event of the next run.
        for states in [&mut night.fixed, &mut night.flaky, &mut night.left] {
            states.truncate(MAX_STATES);
        }
        night.run_id.truncate(head(&night.run_id, MAX_ID).len());
        self.nights.retain(|known| known.run_id != night.run_id);
        let place = self.nights.partition_point(|known| known.at <= night.at);
        self.nights.insert(place, night);
        let too_many = self.nights.len().saturating_sub(MAX_NIGHTS);
        self.nights.drain(..too_many);
    }

    /// Returns the nights, the oldest first.
    pub fn nights(&self) -> &[Night] {
        &self.nights
    }

    /// Returns the nights that are looked at for what comes back, the oldest first.
    pub fn last(&self) -> &[Night] {
        &self.nights[self.nights.len().saturating_sub(LOOKED_AT)..]
    }

    /// Returns the states that were fixed or flaky in several of the last nights, the most frequent first.
    pub fn recurring(&self) -> Vec<Recurring> {
        let last = self.last();
        let in_how_many = |is_in: &dyn Fn(&Night) -> bool| last.iter().filter(|night| is_in(night)).count();
        let mut found: Vec<Recurring> = Vec::new();
        // The latest night first: the sort below keeps this order among states that came back equally often.
        for state in last.iter().rev().flat_map(|night| night.fixed.iter().chain(&night.flaky)) {
            if found.iter().any(|known| known.state == *state) {
                continue;
            }
            let fixed = in_how_many(&|night| night.fixed.contains(state));
            let flaky = in_how_many(&|night| night.flaky.contains(state));
            let nights = in_how_many(&|night| night.fixed.contains(state) || night.flaky.contains(state));
            found.push(Recurring { state: state.clone(), nights, of: last.len(), fixed, flaky });
        }
        found.retain(|state| state.nights >= OFTEN);
        found.sort_by_key(|state| std::cmp::Reverse(state.nights));
        found
    }

    /// Returns how many of the last nights in a row, the last one included, needed nothing.
    pub fn clean_in_a_row(&self) -> usize {
        self.nights.iter().rev().take_while(|night| is_clean(night)).count()
    }

    /// Says which nights did not happen when one is due `every` so often. Half of that is no delay.
    pub fn missed(&self, every: Duration, now: Timestamp) -> Option<String> {
        let last = self.nights.last()?.at;
        let since = now.since(last);
        let due = (since + every / 2).as_millis().checked_div(every.as_millis())?;
        let missed = u64::try_from(due.saturating_sub(1)).unwrap_or(u64::MAX);
        (missed > 0).then(|| {
            let nights = plural(missed, "night");
            let (every, since) = (human(every), human(since));
            format!("{nights} did not happen: one is due every {every}, and the last one began {since} ago, at {last}")
        })
    }
}

/// Tells whether a night ended well with nothing to do: no verdict said no, and the tree stayed as it was. What is not
/// known of nights of an earlier version counts for them.
pub fn is_clean(night: &Night) -> bool {
    let named = [&night.fixed, &night.flaky, &night.left];
    night.outcome == Some(Outcome::Success)
        && night.verified
        && night.unchanged != Some(false)
        && night.cycles == 1
        && named.iter().all(|states| states.is_empty())
}

/// Returns the nights up to this run, where it is one.
pub fn of(digest: &Digest) -> Option<History> {
    let start = digest.start().filter(|start| start.until_clean)?;
    let mends = digest.mends();
    let end = digest.end();
    let tonight = Night {
        run_id: start.run_id.clone(),
        at: digest.began()?,
        outcome: end.map(|end| end.outcome),
        verified: end.is_some_and(|end| end.verified),
        unchanged: digest.changes().map(|changes| !changes.has_own()),
        cycles: digest.cycles(),
        fixed: mends.fixed(),
        flaky: mends.flaky(),
        left: mends.left(),
    };
    Some(History::new(start.r#loop.clone(), start.nights.iter().cloned().chain([tonight])))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::testing::state;

    const DAY: Duration = Duration::from_hours(24);
    const HOUR: i64 = 3600 * 1000;

    fn name() -> LoopName {
        LoopName::parse("tidy").unwrap()
    }

    /// A night that began in this hour, and the states that were fixed and flaky in it.
    fn night(hour: i64, fixed: &str, flaky: &str) -> Night {
        let states = |names: &str| names.split_whitespace().map(state).collect();
        Night {
            run_id: format!("tidy-{hour}"),
            at: Timestamp::from_millis(hour * HOUR),
            outcome: Some(Outcome::Success),
            verified: true,
            unchanged: Some(true),
            cycles: if fixed.is_empty() && flaky.is_empty() { 1 } else { 2 },
            fixed: states(fixed),
            flaky: states(flaky),
            left: Vec::new(),
        }
    }

    fn nights(all: &[(&str, &str)]) -> History {
        let hours = (0i64..).map(|day| day * 24);
        History::new(name(), hours.zip(all).map(|(hour, (fixed, flaky))| night(hour, fixed, flaky)))
    }

    #[track_caller]
    fn recurs(all: &[(&str, &str)], expected: &[&str]) {
        let found = nights(all).recurring();
        let said: Vec<_> = found.iter().map(|one| format!("{} {}", one.state, one.words())).collect();
        assert_eq!(said, expected);
    }

    #[test]
    fn a_state_comes_back_that_is_fixed_or_flaky_in_two_of_five_nights() {
        recurs(&[], &[]);
        recurs(&[("a", "")], &[]);
        recurs(&[("a b", ""), ("", ""), ("a", "")], &["a was fixed in 2 of the last 3 nights"]);
        recurs(
            &[("", "a"), ("a", "a"), ("", "a")],
            &["a was fixed in 1 and flaky in 3 of the last 3 nights"],
        );
        recurs(&[("", "a"), ("", ""), ("", "a"), ("", "")], &["a was flaky in 2 of the last 4 nights"]);
        recurs(
            &[("a", ""), ("b", ""), ("", ""), ("", ""), ("", ""), ("a b", "")],
            &["b was fixed in 2 of the last 5 nights"],
        );
        recurs(
            &[("a", ""), ("a b", ""), ("b", ""), ("b", "")],
            &["b was fixed in 3 of the last 4 nights", "a was fixed in 2 of the last 4 nights"],
        );
    }

    #[track_caller]
    fn missing(hours: i64, every: Duration, expected: Option<&str>) {
        let said = nights(&[("", "")]).missed(every, Timestamp::from_millis(hours * HOUR));
        assert_eq!(said.as_deref().map(|said| said.split(':').next().unwrap()), expected, "{hours} hours");
    }

    #[test]
    fn a_night_that_is_late_is_told_from_one_that_did_not_happen() {
        for hours in [-5, 0, 3, 24, 35] {
            missing(hours, DAY, None);
        }
        missing(36, DAY, Some("1 night did not happen"));
        missing(48, DAY, Some("1 night did not happen"));
        missing(71, DAY, Some("2 nights did not happen"));
        missing(24 * 365, DAY, Some("364 nights did not happen"));
        missing(48, 7 * DAY, None);
        missing(48, Duration::ZERO, None);
        assert_eq!(nights(&[]).missed(DAY, Timestamp::from_millis(HOUR)), None);
        let said = nights(&[("", "")]).missed(DAY, Timestamp::from_millis(49 * HOUR)).unwrap();
        assert_eq!(
            said,
            "1 night did not happen: one is due every 1 day, and the last one began 2d 1h ago, at 1970-01-01T00:00:00.000Z"
        );
    }

    #[test]
    fn what_was_kept_is_read_as_it_was_written() {
        let mut history = nights(&[("a", "b"), ("", "")]);
        history.add(Night { outcome: None, left: vec![state("c")], ..night(99, "", "") });
        assert_eq!(History::read(history.to_json().as_bytes(), &name()).unwrap(), history);
    }

    #[test]
    fn a_run_that_went_on_is_one_night_and_only_the_last_nights_are_kept() {
        let mut history = nights(&[("", ""), ("", ""), ("", "")]);
        history.add(night(24, "a", ""));
        let at: Vec<_> = history.nights().iter().map(|night| night.at.as_millis() / HOUR).collect();
        assert_eq!(at, [0, 24, 48]);
        assert_eq!(history.nights()[1].fixed, [state("a")]);
        (100..200).for_each(|hour| history.add(night(hour, "", "")));
        assert_eq!(history.nights().len(), MAX_NIGHTS);
        assert_eq!(history.nights().last().unwrap().run_id, "tidy-199");
        history.add(Night { fixed: vec![state("a"); 1000], run_id: "x".repeat(1000), ..night(300, "", "") });
        let last = history.nights().last().unwrap();
        assert_eq!((last.fixed.len(), last.run_id.len()), (MAX_STATES, MAX_ID));
    }

    #[test]
    fn clean_nights_are_counted_from_the_last_one() {
        assert_eq!(nights(&[]).clean_in_a_row(), 0);
        assert_eq!(nights(&[("", ""), ("a", ""), ("", ""), ("", "")]).clean_in_a_row(), 2);
        assert_eq!(nights(&[("", ""), ("", "a")]).clean_in_a_row(), 0);
        let failed = Night { outcome: Some(Outcome::Failure), ..night(0, "", "") };
        let changed = Night { unchanged: Some(false), ..night(0, "", "") };
        assert!(is_clean(&night(0, "", "")) && !is_clean(&changed));
        assert!(!is_clean(&failed) && !is_clean(&Night { outcome: None, ..failed.clone() }));
    }

    #[track_caller]
    fn refused(value: &Value, expected: &str) {
        let error = History::read(value.to_string().as_bytes(), &name()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn what_cannot_be_used_is_told_apart() {
        refused(&json!([]), "it has no `schema`");
        refused(&json!({"schema": 1}), "it is damaged: missing field `loop`");
        refused(&json!({"schema": 1, "loop": "tidy", "nights": [{"run_id": 3}]}), "it is damaged");
        refused(
            &json!({"schema": 2, "loops": []}),
            "a later version of ll-loop wrote it (format 2; this one knows 1)",
        );
        refused(&json!({"schema": 1, "loop": "other", "nights": []}), "it is about the loop `other`");
        assert!(History::read(b"{", &name()).is_err());
    }
}
