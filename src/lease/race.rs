//! Gets a lease, against others who want the same: which step comes next, after what was seen.
//!
//! Who wants a lease looks at all of them, makes its own ref where nothing is in the way, looks again, and holds the
//! lease only after a look in which nothing that overlaps was there. Of two who overlap, one has made its ref before the
//! other one looked for the last time, so that one sees it and gives way. To give way is to remove the own ref. Of two
//! new ones the lower id stays, and waits until the other one is gone or has shown, by its first renewal, that it came
//! earlier.
//!
//! A lease of somebody who is gone is removed when its id did not change for its whole time, as this machine has watched
//! it. Every change of a ref names what was there before, so a renewal that comes in between wins.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lease_record::{FoundLease, LeaseName};
use super::lease_scope::Scopes;
use crate::base::object::ObjectId;

/// How often the leases are looked at while one waits for its turn: six times in the time of a lease.
const LOOKS: u32 = 6;
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long to wait for a new one that has to give way.
const MOMENT: Duration = Duration::from_millis(200);

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Look at all leases, and tell [`Race::looked`].
    Look,
    /// Remove the lease of somebody who is gone, if it is still this one, and tell [`Race::removed`].
    Remove(LeaseName, ObjectId),
    /// Make the own lease, with `n` at 0 and only if there is no ref of its name, and tell [`Race::made`].
    Make,
    /// Move the own lease from here to its first renewal, and tell [`Race::confirmed`].
    Confirm(ObjectId),
    /// Remove the own lease, and tell [`Race::removed`].
    Withdraw(ObjectId),
    /// Wait, and tell [`Race::waited`].
    Wait(Duration),
    /// Nothing: the lease is held.
    Hold(Held),
    /// Nothing: somebody else has it.
    Refuse(Vec<FoundLease>),
}

/// A lease that was got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// What its ref points at.
    pub oid: ObjectId,
    /// When the renewal began that made it so.
    pub good: Duration,
}

/// A try to get a lease.
#[derive(Debug)]
pub struct Race {
    name: LeaseName,
    scopes: Scopes,
    ttl: Duration,
    queue: bool,
    watch: LeaseWatch,
    own: Option<Own>,
    in_the_way: Vec<FoundLease>,
    act: Act,
}

/// The own ref.
#[derive(Clone, Debug)]
struct Own {
    oid: ObjectId,
    /// When it was begun to be made.
    since: Duration,
}

impl Race {
    /// Begins. With `queue`, it waits for its turn; without, it gives up where somebody is in the way.
    pub fn new(scopes: Scopes, ttl: Duration, queue: bool) -> Self {
        Self {
            name: LeaseName::of(&scopes),
            scopes,
            ttl,
            queue,
            watch: LeaseWatch::default(),
            own: None,
            in_the_way: Vec::new(),
            act: Act::Look,
        }
    }

    /// Returns what to do next.
    pub fn act(&self) -> &Act {
        &self.act
    }

    /// Returns whom it waits for.
    pub fn in_the_way(&self) -> &[FoundLease] {
        &self.in_the_way
    }

    /// Returns the own ref, if there is one that may have to be removed where nothing goes on.
    pub fn own(&self) -> Option<&ObjectId> {
        self.own.as_ref().map(|own| &own.oid)
    }

    /// Takes all leases, as they were at some moment between `began` and `ended`.
    pub fn looked(&mut self, found: Vec<FoundLease>, began: Duration, ended: Duration) {
        self.watch.look(&found, ended);
        if let Some(own) = &self.own {
            let is_there = found.iter().any(|found| found.name == self.name && found.oid == own.oid);
            if !is_there {
                // Somebody took this process for dead.
                self.own = None;
            }
        }
        let is_own = |found: &FoundLease| self.own.is_some() && found.name == self.name;
        let (gone, live): (Vec<FoundLease>, Vec<FoundLease>) = found
            .into_iter()
            .filter(|found| !is_own(found) && self.is_in_the_way(found))
            .partition(|found| self.watch.is_gone(found, self.ttl, began));
        let is_first = |own: &Own| live.iter().all(|found| comes_after(found, &own.oid));
        self.act = match (&self.own, gone.into_iter().next()) {
            // One at a time: after each removal the others may have changed, so all are looked at
            // again.
            (None, Some(gone)) if live.is_empty() => Act::Remove(gone.name, gone.oid),
            (None, None) if live.is_empty() => Act::Make,
            (None, _) => self.give_up(live.clone()),
            (Some(_), Some(gone)) if live.is_empty() => Act::Remove(gone.name, gone.oid),
            (Some(own), None) if live.is_empty() => Act::Confirm(own.oid.clone()),
            // It has to renew its own ref before long, which would make it look older than it is.
            (Some(own), _) if is_first(own) && ended < own.since + self.ttl / 3 => {
                Act::Wait(MOMENT.min(self.ttl / 30))
            }
            (Some(own), _) => Act::Withdraw(own.oid.clone()),
        };
        self.in_the_way = live;
    }

    /// Takes that a ref was removed, or was another one by then.
    pub fn removed(&mut self) {
        self.act = match &self.act {
            Act::Withdraw(_) => {
                self.own = None;
                self.give_up(self.in_the_way.clone())
            }
            Act::Look
            | Act::Remove(..)
            | Act::Make
            | Act::Confirm(_)
            | Act::Wait(_)
            | Act::Hold(_)
            | Act::Refuse(_) => Act::Look,
        };
    }

    /// Takes what the own ref points at, if it was made by what began then.
    pub fn made(&mut self, oid: Option<ObjectId>, began: Duration) {
        self.own = oid.map(|oid| Own { oid, since: began });
        self.act = Act::Look;
    }

    /// Takes what the own ref points at after its first renewal, if that was made by what began then.
    pub fn confirmed(&mut self, oid: Option<ObjectId>, began: Duration) {
        self.own = None;
        // Somebody moved or removed the ref meanwhile; only a new look tells who is there.
        self.act = match oid {
            Some(oid) => Act::Hold(Held { oid, good: began }),
            None => Act::Look,
        };
    }

    /// Takes that the time has passed.
    pub fn waited(&mut self) {
        self.act = Act::Look;
    }

    fn give_up(&self, live: Vec<FoundLease>) -> Act {
        // Who does not wait has not watched, and cannot know that a holder is gone.
        if self.queue {
            Act::Wait((self.ttl / LOOKS).clamp(SHORTEST_PAUSE, LONGEST_PAUSE))
        } else {
            Act::Refuse(live)
        }
    }

    /// Tells whether a lease keeps this one from being held. One that cannot be read may be for anything.
    fn is_in_the_way(&self, found: &FoundLease) -> bool {
        let overlaps = |scopes: &Scopes| scopes.meets(&self.scopes).is_some();
        found.name == self.name || found.record.as_ref().is_none_or(|record| overlaps(&record.scopes))
    }
}

/// Tells whether a lease is as new as the own one, and has to give way to it.
fn comes_after(found: &FoundLease, own: &ObjectId) -> bool {
    found.record.as_ref().is_some_and(|record| record.is_new() && *own < found.oid)
}

/// Since when the leases are what they are, as this machine has seen it.
#[derive(Debug, Default)]
struct LeaseWatch(BTreeMap<LeaseName, (ObjectId, Duration)>);

impl LeaseWatch {
    fn look(&mut self, found: &[FoundLease], ended: Duration) {
        let before = std::mem::take(&mut self.0);
        let since = |found: &FoundLease| match before.get(&found.name) {
            Some((oid, since)) if *oid == found.oid => *since,
            // From the end of the look: when within it the ref was read is not known, and the later
            // moment is the safe one.
            Some(_) | None => ended,
        };
        self.0 = found.iter().map(|found| (found.name.clone(), (found.oid.clone(), since(found)))).collect();
    }

    /// Tells whether a lease did not change for its whole time, up to a look that began then. One that cannot be read
    /// has the time of the own one.
    fn is_gone(&self, found: &FoundLease, ttl: Duration, began: Duration) -> bool {
        let ttl = found.record.as_ref().map_or(ttl, super::lease_record::LeaseRecord::ttl);
        // From the beginning of the look, for the same reason. So the span between is never counted
        // too long.
        self.0.get(&found.name).is_some_and(|(_, since)| began.saturating_sub(*since) >= ttl)
    }
}

#[cfg(test)]
mod tests;
