//! What this machine has seen of ledgers last: one that has shrunk since is known by it, whoever moved it back.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::day_ledger::{DayLedger, SeenLine};
use crate::base::text::hex;
use crate::files::replace::replace;
use crate::files::{own_directory, read};

/// The directory of a user for what was seen.
const DIRECTORY: &str = "ll-loop-ledger";

/// The largest record, in bytes.
const MOST: u64 = 4 << 10;

/// Returns the last line of a ledger that was seen here. A ledger that was read after this was asked has it, or has shrunk.
pub(crate) fn last(place: &str) -> Option<SeenLine> {
    last_in(&own_directory::path(DIRECTORY), place)
}

/// Remembers the last line of a ledger. Where that cannot be written, only this machine's own look is missing.
pub(crate) fn remember(place: &str, ledger: &DayLedger) {
    remember_in(&own_directory::path(DIRECTORY), place, ledger);
}

fn remember_in(home: &Path, place: &str, ledger: &DayLedger) {
    let last = ledger.last_seen();
    // Several processes of a machine remember at once, and the line that goes furthest counts.
    let is_newer = last_in(home, place).is_none_or(|seen| seen.seq < last.seq);
    if is_newer && own_directory::make(home).is_ok() {
        let text = serde_json::to_string(&last).expect("it has a number and a text");
        let _best_effort = replace(&file(home, place), text);
    }
}

fn last_in(home: &Path, place: &str) -> Option<SeenLine> {
    // Another user of the machine could put a line there that no ledger has, and every run would be refused.
    if !own_directory::is_ours(home) {
        return None;
    }
    serde_json::from_str(&read::text(&file(home, place), MOST).ok()?).ok()
}

fn file(home: &Path, place: &str) -> PathBuf {
    home.join(&hex(&Sha256::digest(place))[..32])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;
    use crate::spending::day_ledger::{LedgerEntry, LedgerFault};

    #[test]
    fn a_ledger_that_lacks_what_was_seen_has_shrunk() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        let at = Timestamp::from_millis(0);
        let short = DayLedger::open("id", at);
        let mut long = short.clone();
        long.push(LedgerEntry::Spent { part: "a".to_owned(), usd: 1.0 }, at.day(), at);
        assert_eq!(last_in(&home, "here"), None);
        remember_in(&home, "here", &long);
        remember_in(&home, "here", &short);
        let seen = last_in(&home, "here").unwrap();
        assert_eq!(short.still_has(&seen), Err(LedgerFault::Shrunk(1)));
        assert_eq!(long.still_has(&seen), Ok(()));
        assert_eq!(last_in(&home, "elsewhere"), None);
    }
}
