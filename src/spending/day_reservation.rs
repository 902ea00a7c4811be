//! What a part of a run may take of a day: promised before it begins, and settled when it is over.

use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use super::day_ledger::{Appended, DayLedger, LedgerEntry, LedgerFault, LedgerPart};
use super::ledger_store::{LedgerFailure, LedgerStore, StoredLedger};
use crate::base::time::Timestamp;
use crate::broker::dollars::Dollars;
use crate::context::error::{Error, Kind};
use crate::context::{Session, binding};
use crate::policy::{DayCap, LedgerPlace, Policy};
use crate::process::clock::Clock;

/// How often is tried to add to a ledger that others add to as well: the legs of a plan all begin at once.
const TRIES: u32 = 60;

/// How often a place that cannot be reached is tried.
const FAILURES: u32 = 4;

/// How often a place that takes nothing is tried: while somebody else adds to it, git's servers refuse too, and do not say why.
const REFUSALS: u32 = 20;

/// The most time between two tries.
const BETWEEN: Duration = Duration::from_secs(3);

/// What a part of a run wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpendingRequest<'r> {
    /// The run.
    pub(crate) run: &'r str,
    /// Where its checkout is.
    pub(crate) checkout: &'r Path,
    /// The most that the whole run may cost, in US dollars; without it, it wants all that is left.
    pub(crate) budget: Option<f64>,
    /// What earlier parts of it took, in US dollars; nothing where a call had no price.
    pub(crate) before: Option<f64>,
    /// What is known of runs whose processes were killed, this one included.
    pub(crate) killed: &'r [KilledRun],
}

/// What the journal of a run says whose process was killed.
#[derive(Clone, Debug)]
pub(crate) struct KilledRun {
    /// The run.
    pub(crate) run: String,
    /// What all of it took, in US dollars.
    pub(crate) usd: f64,
}

/// What is promised to a part of a run.
pub(crate) struct DayReservation {
    parts: Vec<ReservedPart>,
    before: f64,
    granted: Dollars,
}

struct ReservedPart {
    store: LedgerStore,
    part: String,
}

/// Has a part of the rest of the day promised to a run by every ledger that binds it. Without such a cap nothing is.
///
/// # Errors
/// Nothing is left of a day, or a ledger cannot be counted on.
pub(crate) fn reserve(
    policy: &Policy,
    request: &SpendingRequest<'_>,
    session: &Session<'_>,
) -> Result<Option<DayReservation>, Error> {
    let caps = by_ledger(policy.day_caps())?;
    if caps.is_empty() {
        return Ok(None);
    }
    // Calls of unknown price stay promised: nothing is known that could be taken off.
    let before = request.before.unwrap_or_default();
    let wanted = request.budget.map(|budget| Dollars::allowed(budget).less(Dollars::spent(before)));
    let mut reservation = DayReservation { parts: Vec::new(), before, granted: Dollars::ZERO };
    // All are found before one of them promises anything.
    let found = caps
        .into_iter()
        .map(|(place, cap)| LedgerStore::at(&place, request.checkout, session).map(|store| (store, cap)));
    for (store, cap) in found.collect::<Result<Vec<_>, Error>>()? {
        match promise(&store, &cap, wanted, request) {
            Ok(PromisedPart { part, granted }) => {
                let least =
                    if reservation.parts.is_empty() { granted } else { reservation.granted.min(granted) };
                reservation.granted = least;
                reservation.parts.push(ReservedPart { store, part });
            }
            Err(stopped) => {
                reservation.give_back(session);
                return Err(stopped.error(&cap, &store));
            }
        }
    }
    Ok(Some(reservation))
}

/// Puts the caps together that are counted in the same ledger: the smallest one holds.
pub(super) fn by_ledger(caps: Vec<DayCap>) -> Result<Vec<(LedgerPlace, DayCap)>, Error> {
    let mut all: Vec<(LedgerPlace, DayCap)> = Vec::new();
    for cap in caps {
        let Some(place) = cap.ledger.clone() else {
            let message = format!("`{}` ({}) has no `ledger` beside it", DayCap::RULE, cap.place);
            let help = "in the same policy, `ledger: git=REMOTE` or an `https://` address says where days are counted";
            return Err(Error::refused(message).of_kind(Kind::Unavailable).with_hint(help));
        };
        match all.iter_mut().find(|(known, _)| *known == place) {
            Some((_, known)) if cap.cost_usd < known.cost_usd => *known = cap,
            Some(_) => {}
            None => all.push((place, cap)),
        }
    }
    Ok(all)
}

/// Why nothing is promised.
enum NotPromised {
    /// All of the day is taken: so much.
    Spent(Dollars),
    Failure(LedgerFailure),
}

impl From<LedgerFailure> for NotPromised {
    fn from(failure: LedgerFailure) -> Self {
        Self::Failure(failure)
    }
}

impl NotPromised {
    fn error(self, cap: &DayCap, store: &LedgerStore) -> Error {
        match self {
            Self::Spent(taken) => binding::refused(&cap.refusal(taken.usd())),
            Self::Failure(failure) => unreliable(&failure, cap, store),
        }
    }
}

/// Returns the error of a ledger that cannot be counted on: no model is called.
pub(super) fn unreliable(failure: &LedgerFailure, cap: &DayCap, store: &LedgerStore) -> Error {
    let message = format!(
        "no model may be called: the ledger {} of `{}` ({}) cannot be counted on: {failure}",
        store.shown(),
        DayCap::RULE,
        cap.place
    );
    let help = match failure {
        LedgerFailure::Missing => {
            "whoever keeps the policy makes it once with `ll-loop ledger --begin`; if it was there, somebody has removed it"
        }
        LedgerFailure::Fault(LedgerFault::Shrunk(_)) => {
            "whoever keeps it looks who has moved it back; where another one was begun on purpose, this machine forgets the old one when \
             `/var/tmp/.ll-loop-ledger-UID` is removed"
        }
        LedgerFailure::Fault(_) => {
            "whoever keeps it looks what happened to it; `--no-llm` runs without models, and counts nothing"
        }
        LedgerFailure::Refused(_) => {
            "the token of the job must be able to add to it, and no ruleset, hook or lock at the server may stand against that; \
             `--no-llm` runs without models, and counts nothing"
        }
        LedgerFailure::Unreached(_) | LedgerFailure::Crowded => {
            "try again later; `--no-llm` runs without models, and counts nothing"
        }
    };
    Error::refused(message).of_kind(Kind::Unavailable).with_hint(help)
}

fn promise(
    store: &LedgerStore,
    cap: &DayCap,
    wanted: Option<Dollars>,
    request: &SpendingRequest<'_>,
) -> Result<PromisedPart, NotPromised> {
    let mut promised = PromisedPart::default();
    added(store, |stored, now| {
        let day = stored.ledger.day(now).map_err(LedgerFailure::Fault)?;
        let mut next = stored.ledger.clone();
        for entry in known_by_now(&next.parts(&day), request.killed) {
            next.push(entry, day.clone(), now);
        }
        let taken = next.taken(&day);
        let rest = Dollars::allowed(cap.cost_usd).less(taken);
        let granted = wanted.map_or(rest, |wanted| wanted.min(rest));
        if rest == Dollars::ZERO {
            return Err(NotPromised::Spent(taken));
        }
        // Another one with each try: one that may or may not have been written counts, and is never written twice.
        promised = PromisedPart { part: Uuid::new_v4().simple().to_string(), granted };
        let (part, run) = (promised.part.clone(), request.run.to_owned());
        next.push(LedgerEntry::Reserved { part, run, usd: granted.usd() }, day.clone(), now);
        Ok((next, day))
    })?;
    Ok(promised)
}

/// What a ledger promises to a part of a run.
#[derive(Default)]
struct PromisedPart {
    part: String,
    granted: Dollars,
}

/// Returns what is known by now of parts of runs whose process was killed: what their journals say.
fn known_by_now(parts: &[LedgerPart], killed: &[KilledRun]) -> Vec<LedgerEntry> {
    killed.iter().flat_map(|killed| spent_by(parts, killed)).collect()
}

fn spent_by(parts: &[LedgerPart], killed: &KilledRun) -> Vec<LedgerEntry> {
    let own = || parts.iter().filter(|part| part.run == killed.run);
    let settled = own().filter_map(|part| part.spent).fold(Dollars::ZERO, Dollars::plus);
    let mut rest = Dollars::spent(killed.usd).less(settled);
    let open = own().filter(|part| part.spent.is_none());
    open.map(|open| {
        // A journal knows one sum for all parts: the first open one takes it, and the others took nothing.
        let usd = std::mem::take(&mut rest).usd();
        LedgerEntry::Spent { part: open.part.clone(), usd }
    })
    .collect()
}

/// Adds what `next` makes of a ledger, again and again until no other writer was faster.
fn added(
    store: &LedgerStore,
    mut next: impl FnMut(&StoredLedger, Timestamp) -> Result<(DayLedger, String), NotPromised>,
) -> Result<(), NotPromised> {
    let (mut failures, mut refusals) = (0, 0);
    for try_number in 0..TRIES {
        if try_number > 0 {
            std::thread::sleep(pause(try_number));
        }
        match added_once(store, &mut next) {
            Ok(Appended::Done) => return Ok(()),
            // No failure: that another writer was faster means that the ledger works.
            Ok(Appended::Outrun) => {}
            Ok(Appended::Refused(why)) => {
                refusals += 1;
                if refusals == REFUSALS {
                    return Err(LedgerFailure::Refused(why).into());
                }
            }
            Err(NotPromised::Failure(LedgerFailure::Unreached(why))) => {
                failures += 1;
                if failures == FAILURES {
                    return Err(LedgerFailure::Unreached(why).into());
                }
            }
            Err(stopped) => return Err(stopped),
        }
    }
    Err(LedgerFailure::Crowded.into())
}

fn added_once(
    store: &LedgerStore,
    next: &mut impl FnMut(&StoredLedger, Timestamp) -> Result<(DayLedger, String), NotPromised>,
) -> Result<Appended, NotPromised> {
    let stored = store.read()?;
    // The time is read with each try, because a day may end between two of them.
    let (ledger, day) = next(&stored, Clock::start().now())?;
    Ok(store.append(&stored, &ledger, &day)?)
}

/// Returns how long to wait before a try: longer each time, and for everybody something else.
fn pause(try_number: u32) -> Duration {
    let any = u32::from(Uuid::new_v4().as_bytes()[0]);
    BETWEEN.min(Duration::from_millis(100) * try_number).mul_f64(f64::from(any) / 256.0)
}

impl DayReservation {
    /// Returns the most that the whole run may cost, in US dollars: what it took before, and what is promised.
    pub(crate) fn budget(&self) -> f64 {
        self.before + self.granted.usd()
    }

    /// Says what was promised, for people.
    pub(crate) fn sentence(&self) -> String {
        format!("${:.2} of the day's cap on cost are reserved for this run", self.granted.usd())
    }

    /// Writes down that nothing was taken: the run does not begin, or go on.
    pub(crate) fn give_back(self, session: &Session<'_>) {
        let before = self.before;
        self.settle(Some(before), session);
    }

    /// Writes down what the whole run took, in US dollars. Where that is not known, the promise stays, and counts.
    pub(crate) fn settle(self, total: Option<f64>, session: &Session<'_>) {
        let Some(total) = total else {
            session
                .talk
                .warning("a call had no known price: all that was reserved for the run counts for the day");
            return;
        };
        let usd = Dollars::spent((total - self.before).max(0.0)).usd();
        for ReservedPart { store, part } in self.parts {
            let settled = added(&store, |stored, now| {
                let day = stored.ledger.day(now).map_err(LedgerFailure::Fault)?;
                let mut next = stored.ledger.clone();
                next.push(LedgerEntry::Spent { part: part.clone(), usd }, day.clone(), now);
                Ok((next, day))
            });
            // A warning is enough: what is not settled counts in full, so the day is never overdrawn.
            if let Err(NotPromised::Failure(failure)) = settled {
                session.talk.warning(&format!(
                    "the ledger {} was not told what the run took, so all that was reserved for it counts: {failure}",
                    store.shown()
                ));
            }
        }
    }
}
