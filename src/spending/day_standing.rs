//! How a day stands in the ledgers of a policy, for people, and how a ledger is begun.

use serde_json::{Value, json};
use uuid::Uuid;

use super::day_ledger::{Appended, DayLedger, LedgerPart};
use super::day_reservation::{by_ledger, unreliable};
use super::ledger_store::LedgerStore;
use crate::broker::dollars::Dollars;
use crate::context::error::{Error, Kind};
use crate::context::{Session, binding};
use crate::policy::{DayCap, LedgerPlace};
use crate::process::clock::Clock;

/// A day in a ledger.
pub(crate) struct DayStanding {
    /// Where the ledger is, without a credential.
    pub(crate) ledger: String,
    /// Where the cap stands: a file or a variable, and the line.
    pub(crate) place: String,
    /// The day in UTC.
    pub(crate) day: String,
    /// US dollars.
    pub(crate) cap_usd: f64,
    /// What was promised to runs, and what they took.
    parts: Vec<LedgerPart>,
}

impl DayStanding {
    /// Returns what is taken, in US dollars.
    pub(crate) fn taken_usd(&self) -> f64 {
        self.taken().usd()
    }

    /// Returns what is left, in US dollars.
    pub(crate) fn left_usd(&self) -> f64 {
        Dollars::allowed(self.cap_usd).less(self.taken()).usd()
    }

    fn taken(&self) -> Dollars {
        self.parts.iter().map(LedgerPart::taken).fold(Dollars::ZERO, Dollars::plus)
    }

    /// Returns a line for each part of a run.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.parts.iter().map(|part| match part.spent {
            Some(spent) => format!("{}  spent ${:.2}", part.run, spent.usd()),
            None => format!("{}  reserved ${:.2}", part.run, part.reserved.usd()),
        })
    }

    /// Returns it for programs.
    pub(crate) fn json(&self) -> Value {
        let part = |part: &LedgerPart| {
            json!({
                "run": part.run,
                "reserved_usd": part.reserved.usd(),
                "spent_usd": part.spent.map(Dollars::usd),
            })
        };
        json!({
            "ledger": self.ledger,
            "policy": self.place,
            "day": self.day,
            "cap_usd": self.cap_usd,
            "taken_usd": self.taken_usd(),
            "left_usd": self.left_usd(),
            "runs": self.parts.iter().map(part).collect::<Vec<_>>(),
        })
    }
}

impl Session<'_> {
    /// Looks how the day stands in every ledger of the policy that is in force here.
    ///
    /// # Errors
    /// The policy cannot be read, or a ledger cannot be counted on.
    pub(crate) fn day_standings(&self) -> Result<Vec<DayStanding>, Error> {
        let standing = |(place, cap): (LedgerPlace, DayCap)| {
            let store = LedgerStore::at(&place, &self.cwd, self)?;
            let stored = store.read().map_err(|failure| unreliable(&failure, &cap, &store))?;
            let day = stored.ledger.day(Clock::start().now());
            let day = day.map_err(|fault| unreliable(&fault.into(), &cap, &store))?;
            let parts = stored.ledger.parts(&day);
            Ok(DayStanding {
                ledger: store.shown().to_owned(),
                place: cap.place,
                day,
                cap_usd: cap.cost_usd,
                parts,
            })
        };
        self.capped_days()?.into_iter().map(standing).collect()
    }

    /// Begins every ledger of the policy that is not there. Returns where those are that it has begun.
    ///
    /// # Errors
    /// The policy cannot be read, or one of them is there already, or cannot be written.
    pub(crate) fn begin_ledgers(&self) -> Result<Vec<String>, Error> {
        let begun = |(place, _): (LedgerPlace, DayCap)| {
            let store = LedgerStore::at(&place, &self.cwd, self)?;
            let now = Clock::start().now();
            let ledger = DayLedger::open(&Uuid::new_v4().simple().to_string(), now);
            let shown = store.shown().to_owned();
            match store.open(&ledger, &now.day()) {
                Ok(Appended::Done) => Ok(shown),
                Ok(Appended::Outrun) => Err(Error::refused(format!("the ledger {shown} has begun already"))
                    .with_hint("`ll-loop ledger` shows how the day stands in it")),
                Ok(Appended::Refused(why)) | Err(why) => {
                    Err(Error::refused(format!("cannot begin the ledger {shown}: {why}"))
                        .of_kind(Kind::Unavailable))
                }
            }
        };
        self.capped_days()?.into_iter().map(begun).collect()
    }

    fn capped_days(&self) -> Result<Vec<(LedgerPlace, DayCap)>, Error> {
        let caps = by_ledger(binding::here(self)?.day_caps())?;
        if !caps.is_empty() {
            return Ok(caps);
        }
        let message = "the policy in force here does not cap what models take on a day";
        Err(Error::refused(message)
            .with_hint("`caps: {day: {cost_usd: 50}}` and `ledger: git=REMOTE` in a policy do"))
    }
}
