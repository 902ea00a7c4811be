//! Checks whose failures people have excused for a time: `.loops/quarantine.yaml`. An entry names one check of one loop, who looks
//! after it, and until when; after that day it excuses nothing.

use crate::base::decode::{Decode as _, record};
use crate::base::diagnostic::Diagnostics;
use crate::base::name::StateName;
use crate::base::node::FileId;
use crate::base::path::DocPath;
use crate::base::text::one_line;
use crate::base::time::Timestamp;
use crate::definition::{promises, yaml};
use crate::engine::check_history::QuarantinedCheck;

/// The file in `.loops`.
pub const FILE: &str = "quarantine.yaml";

record! {
    /// A check whose failures are excused for a time.
    pub struct QuarantineEntry {
        /// The loop.
        subject as "loop": String,
        /// The state.
        state: StateName,
        /// Who looks after it.
        owner: String,
        /// The last day, as `2026-12-31`, in UTC.
        until: String,
        /// Why.
        reason: String,
    }
}

record! {
    /// All of them.
    struct QuarantineList {
        /// The checks.
        entries: Vec<QuarantineEntry>,
    }
}

/// The entries about a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopQuarantine {
    /// Those that hold.
    pub in_force: Vec<QuarantinedCheck>,
    /// Those whose last day has passed.
    pub expired: Vec<QuarantinedCheck>,
}

/// Tells whether a path is that of the quarantine.
pub fn is_quarantine(path: &str) -> bool {
    path == ".loops/quarantine.yaml" || path.ends_with("/.loops/quarantine.yaml")
}

/// Reads the file. One wrong entry makes all of it unreadable: what was meant to be excused is unknown then.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn parse(text: &str) -> Result<Vec<QuarantineEntry>, WrongQuarantine> {
    let is_empty = |line: &str| line.trim().is_empty() || line.starts_with('#');
    // Below a key, nothing at all would be `null`, and not a list.
    if text.lines().all(is_empty) || text.trim() == "[]" {
        return Ok(Vec::new());
    }
    let mut findings = Diagnostics::default();
    // The reader is one of files that are mappings: the list becomes the value of a key.
    let tree = yaml::parse(&format!("entries:\n{text}"), FileId(0), &mut findings);
    // Before all other mistakes: somebody who wrote such a key believes to be protected by it.
    if let Some(key) = tree.as_ref().and_then(promises::first_key) {
        return Err(WrongQuarantine::Promise { key: one_line(key, 40) });
    }
    let file = tree.and_then(|tree| QuarantineList::decode(&tree, &DocPath::root(), &mut findings));
    let Some(QuarantineList { entries }) = file.filter(|_| findings.is_empty()) else {
        return Err(WrongQuarantine::of(&findings));
    };
    if let Some(entry) = entries.iter().find(|entry| !is_day(&entry.until)) {
        return Err(WrongQuarantine::Form(format!(
            "`until: {}` is not a day like `2026-12-31`",
            one_line(&entry.until, 40)
        )));
    }
    let is_empty = |entry: &&QuarantineEntry| entry.owner.trim().is_empty() || entry.reason.trim().is_empty();
    if let Some(entry) = entries.iter().find(is_empty) {
        return Err(WrongQuarantine::Form(format!(
            "the entry for `{}` says no owner or no reason",
            entry.state
        )));
    }
    Ok(entries)
}

/// What is wrong with a quarantine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongQuarantine {
    /// It is not a list of entries.
    #[error("{0}")]
    Form(String),
    /// It has a key that promises protection, which does nothing here.
    #[error("`{key}` protects nothing in a quarantine; write it in the loop")]
    Promise {
        /// The key, as it is written.
        key: String,
    },
}

impl WrongQuarantine {
    fn of(findings: &Diagnostics) -> Self {
        let first = findings.iter().next().map(|finding| one_line(&finding.message, 200));
        Self::Form(first.unwrap_or_else(|| "it is not a list of entries".to_owned()))
    }
}

/// Returns the entries about a loop, at a time. Of several about one state, the one that holds longest counts.
pub fn of_loop(entries: &[QuarantineEntry], name: &str, now: Timestamp) -> LoopQuarantine {
    let today = day(now);
    let mut own: Vec<&QuarantineEntry> = entries.iter().filter(|entry| entry.subject == name).collect();
    own.sort_by(|one, other| other.until.cmp(&one.until));
    let mut found = LoopQuarantine::default();
    for entry in own {
        let QuarantineEntry { state, owner, until, reason, .. } = entry.clone();
        let check = QuarantinedCheck { state, owner, until, reason };
        let known = found.in_force.iter().chain(&found.expired);
        if known.into_iter().any(|known| known.state == check.state) {
            continue;
        }
        if check.until.as_str() >= today.as_str() {
            found.in_force.push(check);
        } else {
            found.expired.push(check);
        }
    }
    found
}

/// Returns the day of a time, in UTC.
pub fn day(time: Timestamp) -> String {
    time.to_string().chars().take(10).collect()
}

/// Tells whether a text is a day. Only then do days sort like texts.
pub fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |text: &str, digits: usize| {
        (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse::<u32>().ok())?
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 31,
    };
    (1..=12).contains(&month) && (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(until: &str) -> Vec<QuarantineEntry> {
        let text = format!("- {{loop: api, state: test, owner: ann, until: {until}, reason: times out}}\n");
        parse(&text).unwrap()
    }

    /// A time so many days after 2026-01-01.
    fn on(days: i64) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000 + days * 86_400_000)
    }

    #[test]
    fn an_entry_holds_until_the_end_of_its_day_and_for_its_loop_alone() {
        let entries = entries("2026-01-03");
        let in_force = |name, days| !of_loop(&entries, name, on(days)).in_force.is_empty();
        assert!(in_force("api", 0) && in_force("api", 2));
        assert!(!in_force("api", 3) && !in_force("other", 0));
        assert_eq!(of_loop(&entries, "api", on(3)).expired.len(), 1);
    }

    #[test]
    fn an_entry_without_an_owner_a_day_or_a_reason_makes_the_file_wrong() {
        for wrong in [
            "- {loop: a, state: s, until: 2026-01-03, reason: r}\n",
            "- {loop: a, state: s, owner: o, reason: r}\n",
            "- {loop: a, state: s, owner: o, until: 2026-01-03}\n",
            "- {loop: a, state: s, owner: ' ', until: 2026-01-03, reason: r}\n",
            "- {loop: a, state: s, owner: o, until: never, reason: r}\n",
            "- {loop: a, state: s, owner: o, until: 2026-02-30, reason: r}\n",
            "- {loop: a, state: s, owner: o, until: 99999-01-01, reason: r}\n",
            "- {loop: a, state: s, owner: o, until: 2026-01-03, reason: r, forever: true}\n",
            "loop: a\n",
            "- x\n",
            "- {\n",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse("# none\n").unwrap(), []);
        assert_eq!(parse("[]\n").unwrap(), []);
    }

    #[test]
    fn a_promise_of_protection_is_told_from_other_mistakes() {
        let entry = "loop: a, state: s, owner: o, until: 2026-01-03, reason: r";
        for key in ["sandbox", "broker", "judges", "approvers", "reuse", "snadbox", "San_dbox"] {
            for text in [
                format!("- {{{entry}, {key}: workspace}}\n"),
                format!("- {{{entry}}}\n- {{{key}: []}}\n"),
                format!("{key}: workspace\n"),
                format!("- {{{entry}, more: {{{key}: workspace}}}}\n"),
            ] {
                assert_eq!(parse(&text), Err(WrongQuarantine::Promise { key: key.to_owned() }), "{text}");
            }
        }
        let named = "- {loop: sandbox, state: broker, owner: judges, until: 2026-01-03, reason: reuse}\n";
        assert_eq!(parse(named).unwrap().len(), 1);
    }

    proptest! {
        /// Whatever a file holds, nothing panics; and no entry holds after its day.
        #[test]
        fn nothing_is_excused_after_its_day(text in ".{0,200}", until in 0..400i64, today in 0..400i64) {
            let _read = parse(&text);
            let entries = entries(&day(on(until)));
            prop_assert_eq!(!of_loop(&entries, "api", on(today)).in_force.is_empty(), today <= until);
        }
    }
}
