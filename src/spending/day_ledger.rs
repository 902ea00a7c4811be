//! The ledger of what models take: lines that name the one before them by its digest, so that none of them can be changed or
//! taken out. What is promised to a run is written down before the run begins, and what it took when it is over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::base::explanation::Explanation;
use crate::base::text::hex;
use crate::base::time::Timestamp;
use crate::broker::dollars::Dollars;

/// The largest ledger that is read, in bytes: some twenty thousand runs of a day.
pub(crate) const MOST_BYTES: usize = 8 << 20;

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum LedgerEntry {
    /// Somebody began the ledger.
    Opened {
        /// Its id.
        ledger: String,
    },
    /// A part of a run may take so much.
    Reserved {
        /// The part.
        part: String,
        /// The run.
        run: String,
        /// US dollars.
        usd: f64,
    },
    /// A part of a run is over, and took so much.
    Spent {
        /// The part.
        part: String,
        /// US dollars.
        usd: f64,
    },
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct LedgerLine {
    /// Its number, from 0.
    seq: u64,
    /// The SHA-256 digest of the line before it.
    prev: String,
    /// The day in UTC for which it counts.
    day: String,
    at: Timestamp,
    #[serde(flatten)]
    entry: LedgerEntry,
}

/// A ledger, or its end from some day on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DayLedger {
    lines: Vec<WrittenLine>,
}

#[derive(Clone, Debug, PartialEq)]
struct WrittenLine {
    text: String,
    line: LedgerLine,
}

/// The last line that somebody has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenLine {
    /// Its number.
    pub(crate) seq: u64,
    /// Its SHA-256 digest.
    pub(crate) sha256: String,
}

/// The result of an attempt to add to a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Appended {
    /// The lines are there.
    Done,
    /// Somebody else was faster: it has another version.
    Outrun,
    /// The place can be reached and has the version that was read, and did not take the lines: another one is about to add to it, or
    /// it forbids it.
    Refused(Explanation),
}

/// What is known of a part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerPart {
    /// Its id.
    pub(crate) part: String,
    /// The run.
    pub(crate) run: String,
    /// What it may take.
    pub(crate) reserved: Dollars,
    /// What it took, once that was written down.
    pub(crate) spent: Option<Dollars>,
}

impl LedgerPart {
    /// Returns what counts of it.
    pub(crate) fn taken(&self) -> Dollars {
        self.spent.unwrap_or(self.reserved)
    }
}

/// Why a text is no ledger that can be counted on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LedgerFault {
    /// It has no lines.
    #[error("it is empty")]
    Empty,
    /// It is too large.
    #[error("it is larger than {} MiB", MOST_BYTES >> 20)]
    Large,
    /// A line is no entry that this version knows.
    #[error("line {0} is not an entry of a ledger")]
    Line(usize),
    /// A line does not follow the one before it.
    #[error("line {0} does not follow the one before it: somebody has changed it, or taken lines out")]
    Chain(usize),
    /// A part is promised something twice.
    #[error("line {0} promises something to a part of a run that has a promise already")]
    Twice(usize),
    /// The lines of the day are not all there.
    #[error("the lines of the day before it began are missing")]
    Torn,
    /// Its last line is of a day that is still to come.
    #[error("its last line is of {day}, and today is {today}")]
    Ahead {
        /// The day of the line.
        day: String,
        /// The day by the clock of this machine.
        today: String,
    },
    /// A line that was seen is gone.
    #[error("it has shrunk: line {0} was there, and is not any more")]
    Shrunk(u64),
}

impl DayLedger {
    /// Begins a ledger.
    pub(crate) fn open(id: &str, at: Timestamp) -> Self {
        let mut ledger = Self { lines: Vec::new() };
        ledger.push(LedgerEntry::Opened { ledger: id.to_owned() }, at.day(), at);
        ledger
    }

    /// Reads a ledger.
    ///
    /// # Errors
    /// A line cannot be read, or does not follow the one before it.
    pub(crate) fn parse(text: &str) -> Result<Self, LedgerFault> {
        if text.len() > MOST_BYTES {
            return Err(LedgerFault::Large);
        }
        let mut ledger = Self { lines: Vec::new() };
        let mut promised = BTreeSet::new();
        for (index, text) in text.lines().enumerate() {
            let number = index + 1;
            let line: LedgerLine = serde_json::from_str(text).map_err(|_| LedgerFault::Line(number))?;
            let is_fit = match &line.entry {
                // A ledger is begun once: further down, this could only pass one off as another.
                LedgerEntry::Opened { .. } => line.seq == 0,
                LedgerEntry::Reserved { usd, .. } | LedgerEntry::Spent { usd, .. } => {
                    // A negative amount would give back what others have taken, and one without an end would take every day.
                    line.seq > 0 && usd.is_finite() && *usd >= 0.0
                }
            };
            if !is_fit {
                return Err(LedgerFault::Line(number));
            }
            // What the first line follows may be left out: a place need only keep the lines of the day.
            if ledger.lines.last().is_some_and(|before| !before.leads_to(&line)) {
                return Err(LedgerFault::Chain(number));
            }
            // What was spent is looked up by the part: one line would settle both promises.
            if let LedgerEntry::Reserved { part, .. } = &line.entry
                && !promised.insert(part.clone())
            {
                return Err(LedgerFault::Twice(number));
            }
            ledger.lines.push(WrittenLine { text: text.to_owned(), line });
        }
        if ledger.lines.is_empty() { Err(LedgerFault::Empty) } else { Ok(ledger) }
    }

    /// Returns the day for which a line counts that is written now: never an earlier one than that of the last line.
    ///
    /// # Errors
    /// The ledger is ahead of the clock, or the lines of that day are not all there.
    pub(crate) fn day(&self, now: Timestamp) -> Result<String, LedgerFault> {
        let (today, tomorrow) = (now.day(), now.after(Duration::from_hours(24)).day());
        let last = self.lines.last().map(|last| last.line.day.clone()).unwrap_or_default();
        // Clocks differ by minutes, around midnight too.
        if last > tomorrow {
            return Err(LedgerFault::Ahead { day: last, today });
        }
        let day = today.max(last);
        // Only a line before the day shows that none of the day is missing in front.
        let is_whole = self.lines.first().is_some_and(|first| first.line.seq == 0 || first.line.day < day);
        if is_whole { Ok(day) } else { Err(LedgerFault::Torn) }
    }

    /// Returns the parts of runs that were promised something on a day, in the order in which they were.
    pub(crate) fn parts(&self, day: &str) -> Vec<LedgerPart> {
        let mut spent: BTreeMap<&str, Dollars> = BTreeMap::new();
        // All lines, and not those of the day alone: a part may begin before midnight and end after it.
        for written in &self.lines {
            if let LedgerEntry::Spent { part, usd } = &written.line.entry {
                let known = spent.entry(part).or_default();
                // Said twice, the larger one counts.
                *known = (*known).max(Dollars::spent(*usd));
            }
        }
        let of_day = self.lines.iter().filter(|written| written.line.day == day);
        let parts = of_day.filter_map(|written| match &written.line.entry {
            LedgerEntry::Reserved { part, run, usd, .. } => Some(LedgerPart {
                part: part.clone(),
                run: run.clone(),
                reserved: Dollars::spent(*usd),
                spent: spent.get(part.as_str()).copied(),
            }),
            LedgerEntry::Opened { .. } | LedgerEntry::Spent { .. } => None,
        });
        parts.collect()
    }

    /// Returns what was spent and is promised on a day.
    pub(crate) fn taken(&self, day: &str) -> Dollars {
        self.parts(day).iter().map(LedgerPart::taken).fold(Dollars::ZERO, Dollars::plus)
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, entry: LedgerEntry, day: String, at: Timestamp) {
        let (seq, prev) = match self.lines.last() {
            Some(last) => (last.line.seq + 1, digest(&last.text)),
            None => (0, String::new()),
        };
        let line = LedgerLine { seq, prev, day, at, entry };
        let text = serde_json::to_string(&line).expect("its keys are texts, and its numbers are finite");
        self.lines.push(WrittenLine { text, line });
    }

    /// Returns the last line, for whoever looks again later.
    pub(crate) fn last_seen(&self) -> SeenLine {
        let last = self.lines.last().expect("a ledger that was read or begun has a line");
        SeenLine { seq: last.line.seq, sha256: digest(&last.text) }
    }

    /// Looks whether a line is still there that was seen; one from before the first line here is not looked for.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn still_has(&self, seen: &SeenLine) -> Result<(), LedgerFault> {
        let first = self.lines.first().expect("a ledger that was read or begun has a line");
        let found = match seen.seq.checked_sub(first.line.seq) {
            Some(index) => {
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                self.lines.get(index).is_some_and(|found| digest(&found.text) == seen.sha256)
            }
            None => seen.seq + 1 != first.line.seq || first.line.prev == seen.sha256,
        };
        if found { Ok(()) } else { Err(LedgerFault::Shrunk(seen.seq)) }
    }

    /// Returns the lines of a day, and the last one before it.
    pub(crate) fn of_day(&self, day: &str) -> String {
        let before = self.lines.iter().take_while(|written| written.line.day.as_str() < day).count();
        // That one shows by its digest and its day that the lines begin where the day does.
        self.text_from(before.saturating_sub(1))
    }

    /// Returns the lines that were added to one that had so many.
    pub(crate) fn added_after(&self, seen: &SeenLine) -> String {
        let known = self.lines.iter().take_while(|written| written.line.seq <= seen.seq).count();
        self.text_from(known)
    }

    fn text_from(&self, index: usize) -> String {
        self.lines[index..].iter().fold(String::new(), |text, written| text + &written.text + "\n")
    }
}

impl WrittenLine {
    fn leads_to(&self, next: &LedgerLine) -> bool {
        let is_next = self.line.seq.checked_add(1) == Some(next.seq);
        is_next && next.prev == digest(&self.text) && next.day >= self.line.day
    }
}

fn digest(line: &str) -> String {
    hex(&Sha256::digest(line))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(day: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).after(Duration::from_hours(24 * day))
    }

    fn reserve(ledger: &mut DayLedger, part: &str, usd: f64, day: u64) {
        let (part, run) = (part.to_owned(), "tidy-1".to_owned());
        let entry = LedgerEntry::Reserved { part, run, usd };
        ledger.push(entry, at(day).day(), at(day));
    }

    fn spend(ledger: &mut DayLedger, part: &str, usd: f64, day: u64) {
        ledger.push(LedgerEntry::Spent { part: part.to_owned(), usd }, at(day).day(), at(day));
    }

    fn written(ledger: &DayLedger) -> String {
        ledger.text_from(0)
    }

    #[test]
    fn a_promise_counts_until_it_is_known_what_was_taken() {
        let mut ledger = DayLedger::open("id", at(0));
        reserve(&mut ledger, "a", 3.0, 0);
        assert_eq!(ledger.taken(&at(0).day()), Dollars::spent(3.0));
        spend(&mut ledger, "a", 1.25, 0);
        reserve(&mut ledger, "b", 2.0, 0);
        assert_eq!(ledger.taken(&at(0).day()), Dollars::spent(3.25));
        // Who takes it back does not make it smaller.
        spend(&mut ledger, "a", 0.0, 0);
        assert_eq!(ledger.taken(&at(0).day()), Dollars::spent(3.25));
        assert_eq!(DayLedger::parse(&written(&ledger)).unwrap(), ledger);
    }

    #[test]
    fn another_day_begins_with_nothing_taken_and_keeps_the_chain() {
        let mut ledger = DayLedger::open("id", at(0));
        reserve(&mut ledger, "a", 3.0, 0);
        let seen = ledger.last_seen();
        let day = ledger.day(at(1)).unwrap();
        reserve(&mut ledger, "b", 1.0, 1);
        assert_eq!(ledger.taken(&day), Dollars::spent(1.0));
        let kept = DayLedger::parse(&ledger.of_day(&day)).unwrap();
        assert_eq!(kept.lines.len(), 2);
        assert_eq!((kept.taken(&day), kept.day(at(1))), (Dollars::spent(1.0), Ok(day.clone())));
        assert_eq!(kept.still_has(&seen), Ok(()));
        let torn = DayLedger::parse(written(&kept).lines().nth(1).unwrap()).unwrap();
        assert_eq!(torn.day(at(1)), Err(LedgerFault::Torn));
        // What came after a clock that is behind counts for the later day.
        assert_eq!(kept.day(at(0)), Ok(day));
        assert!(matches!(
            kept.day(Timestamp::from_millis(1_600_000_000_000)),
            Err(LedgerFault::Ahead { .. })
        ));
    }

    #[test]
    fn a_ledger_that_has_shrunk_is_known_by_what_was_seen() {
        let mut ledger = DayLedger::open("id", at(0));
        reserve(&mut ledger, "a", 3.0, 0);
        let short = ledger.clone();
        reserve(&mut ledger, "b", 3.0, 0);
        let seen = ledger.last_seen();
        assert_eq!(short.still_has(&seen), Err(LedgerFault::Shrunk(2)));
        let mut other = short;
        reserve(&mut other, "c", 0.0, 0);
        assert_eq!(other.still_has(&seen), Err(LedgerFault::Shrunk(2)));
        spend(&mut ledger, "b", 1.0, 0);
        assert_eq!(ledger.still_has(&seen), Ok(()));
        assert_eq!(ledger.added_after(&seen).lines().count(), 1);
    }

    #[test]
    fn what_is_no_ledger_is_none() {
        assert_eq!(DayLedger::parse(""), Err(LedgerFault::Empty));
        assert_eq!(DayLedger::parse("{}"), Err(LedgerFault::Line(1)));
        let mut ledger = DayLedger::open("id", at(0));
        reserve(&mut ledger, "a", 1.0, 0);
        reserve(&mut ledger, "a", 1.0, 0);
        assert_eq!(DayLedger::parse(&written(&ledger)), Err(LedgerFault::Twice(3)));
        let negative = written(&ledger).replace("1.0", "-1.0");
        assert_eq!(DayLedger::parse(&negative), Err(LedgerFault::Line(2)));
    }

    proptest! {
        #[test]
        fn no_line_can_be_changed_or_taken_out(
            amounts in prop::collection::vec(1_u32..500, 3..12), which in 0_usize..100, cut in any::<bool>(), at_byte in 0_usize..400,
        ) {
            let mut ledger = DayLedger::open("id", at(0));
            for (number, cents) in amounts.iter().enumerate() {
                reserve(&mut ledger, &number.to_string(), f64::from(*cents) / 100.0, 0);
            }
            let text = written(&ledger);
            let mut lines: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
            // The last one is known by those who have seen it.
            let which = which % (lines.len() - 1);
            if cut {
                lines.remove(which);
            } else {
                let index = at_byte % lines[which].len();
                lines[which][index] ^= 1;
            }
            let changed = lines.join(&b'\n');
            let read = String::from_utf8(changed).ok().map(|text| DayLedger::parse(&text));
            // Without its first line it begins later, and is torn.
            let counts = |ledger: &DayLedger| ledger.day(at(0)).is_ok();
            prop_assert!(!matches!(&read, Some(Ok(ledger)) if counts(ledger)), "{:?}", read);
        }
    }
}
