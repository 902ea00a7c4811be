//! Shows the checks that waver, by loop and state, over all inputs on which they were made.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::verdict_table::VerdictTable;
use crate::base::text::one_line;
use crate::base::time::Timestamp;

/// A check that has failed and passed on the same inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlakyCheckRow {
    r#loop: String,
    state: String,
    failed: u64,
    of: u64,
    /// On how many inputs it wavered.
    wavered: u64,
    last: Timestamp,
}

impl FlakyCheckRow {
    /// Tells whether a failure was taken back. Else the check passed, and has failed since: only another run tells whether it is
    /// flaky or broken.
    fn is_flaky(&self) -> bool {
        self.wavered > 0
    }
}

/// Returns the checks of a loop, or of all, that have said both on the same inputs: those that waver most first.
pub fn of(tables: &[VerdictTable], name: Option<&str>) -> Vec<FlakyCheckRow> {
    let mut rows: BTreeMap<(String, String), FlakyCheckRow> = BTreeMap::new();
    let wanted = tables.iter().filter(|table| name.is_none_or(|name| name == table.r#loop));
    for (table, wavering) in wanted.flat_map(|table| table.wavering().map(move |row| (table, row))) {
        let (history, state) = (&wavering.history, wavering.history.state.to_string());
        let row = rows.entry((table.r#loop.clone(), state.clone())).or_insert_with(|| FlakyCheckRow {
            r#loop: table.r#loop.clone(),
            state,
            failed: 0,
            of: 0,
            wavered: 0,
            last: wavering.last,
        });
        row.failed = row.failed.saturating_add(history.failed);
        row.of = row.of.saturating_add(history.of);
        row.wavered += u64::from(history.is_flaky());
        row.last = row.last.max(wavering.last);
    }
    let mut rows: Vec<FlakyCheckRow> = rows.into_values().collect();
    // Stable: what wavers as much as another stays in the order of the names.
    rows.sort_by_key(|row| std::cmp::Reverse((row.is_flaky(), row.failed)));
    rows
}

/// Writes them for programs.
pub fn json(rows: &[FlakyCheckRow]) -> Value {
    let row = |row: &FlakyCheckRow| {
        let FlakyCheckRow { r#loop, state, failed, of, wavered, last } = row;
        let is_flaky = row.is_flaky();
        json!({"loop": r#loop, "state": state, "flaky": is_flaky, "failed": failed, "of": of, "inputs": wavered, "last": last})
    };
    json!({"flaky": rows.iter().map(row).collect::<Vec<_>>()})
}

/// Writes them for people.
pub fn text(rows: &[FlakyCheckRow]) -> String {
    let mut out = String::new();
    for row in rows {
        let FlakyCheckRow { r#loop, state, failed, of, last, .. } = row;
        let (name, state) = (one_line(r#loop, 80), one_line(state, 80));
        let _ = if row.is_flaky() {
            writeln!(
                out,
                "{name}: {state} is flaky: failed {failed} of {of} on the same inputs, last on {last}"
            )
        } else {
            writeln!(
                out,
                "{name}: {state} failed {failed} of {of} on the same inputs, and has not passed since: another run tells whether it is flaky or broken"
            )
        };
    }
    if out.is_empty() {
        out.push_str("no check is known to waver; loops that say `reuse` are watched\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::key::of_texts;
    use super::super::origin::{OriginEvent, RunOrigin};
    use super::super::verdict_table::CheckKey;
    use super::*;
    use crate::base::name::StateName;

    #[test]
    fn what_failed_last_is_named_and_not_called_flaky() {
        let origin = RunOrigin { repository: "o/r".to_owned(), event: OriginEvent::Local, branch: None };
        let mut table = VerdictTable::new(origin, "main");
        let now = Timestamp::from_millis(1_700_000_000_000);
        let mut say = |state: &str, inputs: &str, verdicts: &[bool]| {
            let state = StateName::parse(state).unwrap();
            let key = CheckKey { state, command: of_texts(["x"]), inputs: of_texts([inputs]) };
            for passed in verdicts {
                table.add(&key, *passed, now);
            }
        };
        say("test", "a", &[true, false, true]);
        say("test", "b", &[true, true]);
        say("lint", "a", &[true, false]);
        say("types", "a", &[false, false]);
        let rows = of(&[table], None);
        insta::assert_snapshot!(text(&rows), @r"
        main: test is flaky: failed 1 of 3 on the same inputs, last on 2023-11-14T22:13:20.000Z
        main: lint failed 1 of 2 on the same inputs, and has not passed since: another run tells whether it is flaky or broken
        ");
        assert_eq!(of(&[], None), []);
    }
}
