use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::lease::fence::{LeaseFence, Urgency};
use crate::lease::lease_record::LeaseRecord;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn id(n: u64) -> ObjectId {
    ObjectId::parse(&format!("{n:040x}")).unwrap()
}

fn found(scopes: &[&str], n: u64, oid: u64) -> FoundLease {
    let scopes = Scopes::new(scopes.iter().copied());
    let record = LeaseRecord { run: "r".to_owned(), holder: "h".to_owned(), scopes, n, ttl_s: 60 };
    FoundLease { name: LeaseName::of(&record.scopes), oid: id(oid), record: Some(record) }
}

fn race(scopes: &[&str], queue: bool) -> Race {
    Race::new(Scopes::new(scopes.iter().copied()), s(60), queue)
}

#[test]
fn where_nothing_overlaps_it_is_made_looked_at_and_renewed_at_once() {
    let mut race = race(&["src/a"], false);
    assert_eq!(*race.act(), Act::Look);
    race.looked(vec![found(&["src/ab"], 7, 1)], s(1), s(2));
    assert_eq!(*race.act(), Act::Make);
    race.made(Some(id(9)), s(3));
    assert_eq!(*race.act(), Act::Look);
    race.looked(vec![found(&["src/ab"], 7, 1), found(&["src/a"], 0, 9)], s(4), s(5));
    assert_eq!(*race.act(), Act::Confirm(id(9)));
    race.confirmed(Some(id(10)), s(6));
    assert_eq!(*race.act(), Act::Hold(Held { oid: id(10), good: s(6) }));
}

#[test]
fn who_sees_somebody_gives_up_at_once_or_waits() {
    for other in
        [found(&["."], 3, 1), found(&["."], 0, 1), FoundLease { record: None, ..found(&["docs"], 0, 1) }]
    {
        let mut alone = race(&["src"], false);
        alone.looked(vec![other.clone()], s(0), s(0));
        assert_eq!(*alone.act(), Act::Refuse(vec![other.clone()]));
        let mut patient = race(&["src"], true);
        patient.looked(vec![other.clone()], s(0), s(0));
        assert_eq!(*patient.act(), Act::Wait(s(10)));
        assert_eq!(patient.in_the_way(), [other]);
        patient.waited();
        patient.looked(vec![], s(1), s(1));
        assert_eq!(*patient.act(), Act::Make);
    }
}

#[test]
fn of_two_new_ones_the_lower_id_stays_until_the_other_one_is_gone_or_was_first() {
    let with_own = |oid: u64| {
        let mut race = race(&["src"], false);
        race.looked(vec![], s(0), s(0));
        race.made(Some(id(oid)), s(0));
        race
    };
    let (own, other) = (|oid| found(&["src"], 0, oid), |n| found(&["."], n, 5));
    let mut higher = with_own(9);
    higher.looked(vec![own(9), other(0)], s(1), s(1));
    assert_eq!(*higher.act(), Act::Withdraw(id(9)));
    higher.removed();
    assert_eq!(*higher.act(), Act::Refuse(vec![other(0)]));

    let mut lower = with_own(3);
    lower.looked(vec![own(3), other(0)], s(1), s(1));
    assert!(matches!(lower.act(), Act::Wait(_)));
    lower.waited();
    let mut gone = lower;
    gone.looked(vec![own(3)], s(2), s(2));
    assert_eq!(*gone.act(), Act::Confirm(id(3)));

    let mut second = with_own(3);
    second.looked(vec![own(3), other(1)], s(1), s(1));
    assert_eq!(*second.act(), Act::Withdraw(id(3)));

    // It does not wait for ever, or somebody would take it for dead.
    let mut patient = with_own(3);
    patient.looked(vec![own(3), other(0)], s(19), s(20));
    assert_eq!(*patient.act(), Act::Withdraw(id(3)));
}

#[test]
fn who_was_taken_for_dead_before_it_held_anything_begins_anew() {
    let mut race = race(&["src"], false);
    race.looked(vec![], s(0), s(0));
    race.made(Some(id(1)), s(0));
    race.looked(vec![], s(100), s(100));
    assert_eq!(*race.act(), Act::Make);
    race.made(Some(id(2)), s(101));
    race.looked(vec![found(&["src"], 0, 2)], s(102), s(102));
    race.confirmed(None, s(103));
    assert_eq!(*race.act(), Act::Look);
    assert_eq!(race.own(), None);
}

#[test]
fn a_lease_is_taken_over_after_its_whole_time_without_a_change_and_not_earlier() {
    let mut race = race(&["src"], true);
    let look = |race: &mut Race, found: &FoundLease, began: u64, ended: u64| {
        race.looked(vec![found.clone()], s(began), s(ended));
        let act = race.act().clone();
        race.waited();
        act
    };
    let (first, renewed) = (found(&["."], 4, 1), found(&["."], 5, 2));
    assert!(matches!(look(&mut race, &first, 1000, 1005), Act::Wait(_)));
    assert!(matches!(look(&mut race, &first, 1064, 1066), Act::Wait(_)), "59 s have been watched");
    assert!(matches!(look(&mut race, &renewed, 1065, 1066), Act::Wait(_)));
    assert!(matches!(look(&mut race, &renewed, 1125, 1200), Act::Wait(_)));
    assert_eq!(look(&mut race, &renewed, 1126, 1126), Act::Remove(renewed.name.clone(), id(2)));
    // The time that its holder gave it counts, within bounds.
    let long = FoundLease {
        record: first.record.clone().map(|record| LeaseRecord { ttl_s: u64::MAX, ..record }),
        ..first
    };
    assert!(matches!(look(&mut race, &long, 2000, 2000), Act::Wait(_)));
    assert!(matches!(look(&mut race, &long, 2000 + 86_399, 90_000), Act::Wait(_)));
    assert!(matches!(look(&mut race, &long, 2000 + 86_400, 90_000), Act::Remove(..)));
    let unreadable = FoundLease { record: None, ..found(&["docs"], 0, 7) };
    assert!(matches!(look(&mut race, &unreadable, 100_000, 100_000), Act::Wait(_)));
    assert!(matches!(look(&mut race, &unreadable, 100_059, 100_060), Act::Wait(_)));
    assert!(matches!(look(&mut race, &unreadable, 100_060, 100_060), Act::Remove(..)));
}

/// Numbers that look like chance, and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// The server: each change names what was there before.
#[derive(Default)]
struct LeaseServer {
    refs: BTreeMap<LeaseName, FoundLease>,
    made: u64,
}

impl LeaseServer {
    fn swap(&mut self, name: &LeaseName, from: Option<&ObjectId>, to: Option<FoundLease>) -> bool {
        let is_so = self.refs.get(name).map(|found| &found.oid) == from;
        if is_so {
            match to {
                Some(found) => self.refs.insert(name.clone(), found),
                None => self.refs.remove(name),
            };
        }
        is_so
    }
}

/// What a machine is doing: every call takes its time, and comes to the server at some moment in between.
enum Doing {
    Idle,
    /// A call that was begun then, and has not come to the server.
    Sent(LeaseCall, u64),
    /// Its answer is on its way.
    Answered(LeaseReply, u64),
}

enum LeaseCall {
    Look,
    Swap(LeaseName, Option<ObjectId>, Option<FoundLease>),
}

enum LeaseReply {
    Seen(Vec<FoundLease>),
    Swapped(bool, Option<ObjectId>),
}

struct RacingMachine {
    number: usize,
    scopes: Scopes,
    ttl: u64,
    /// How far its clock is off.
    offset: u64,
    race: Race,
    held: Option<(LeaseFence, ObjectId, u64)>,
    doing: Doing,
    /// It is not heard of before this moment: it waits, is stopped, or its network is.
    until: u64,
    left: u64,
}

const NAMES: [&[&str]; 6] = [&["."], &["src"], &["src/a"], &["src/ab"], &["docs"], &["src/a", "docs"]];

impl RacingMachine {
    fn new(at: usize, chance: &mut Chance) -> Self {
        let scopes = Scopes::new(NAMES[at % NAMES.len()].iter().copied());
        let ttl = 60 + 60 * chance.below(3);
        Self {
            number: at,
            race: Race::new(scopes.clone(), s(ttl), chance.below(2) == 0),
            scopes,
            ttl,
            offset: chance.below(100_000),
            held: None,
            doing: Doing::Idle,
            until: 0,
            left: 100 + chance.below(500),
        }
    }

    fn clock(&self, now: u64) -> Duration {
        s(self.offset + now)
    }

    fn record(&self, n: u64, server: &mut LeaseServer) -> FoundLease {
        server.made += 1;
        // Ids in no order, as digests are.
        let oid = id(server.made.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ server.made);
        let record = LeaseRecord {
            run: "r".to_owned(),
            holder: "h".to_owned(),
            scopes: self.scopes.clone(),
            n,
            ttl_s: self.ttl,
        };
        FoundLease { name: LeaseName::of(&self.scopes), oid, record: Some(record) }
    }

    /// Tells whether it works now, whether it is heard of or not.
    fn works(&self, now: u64) -> bool {
        self.held.as_ref().is_some_and(|(fence, ..)| fence.clone().at(self.clock(now)) != Urgency::Now)
    }

    /// Goes on by a step. Returns false when it is done.
    fn step(&mut self, now: u64, server: &mut LeaseServer, chance: &mut Chance) -> bool {
        match std::mem::replace(&mut self.doing, Doing::Idle) {
            Doing::Sent(call, began) => {
                let reply = match call {
                    LeaseCall::Look => LeaseReply::Seen(server.refs.values().cloned().collect()),
                    LeaseCall::Swap(name, from, to) => {
                        let oid = to.as_ref().map(|found| found.oid.clone());
                        LeaseReply::Swapped(server.swap(&name, from.as_ref(), to), oid)
                    }
                };
                self.doing = Doing::Answered(reply, began);
                true
            }
            Doing::Answered(reply, began) => {
                self.answered(reply, began, now);
                true
            }
            Doing::Idle => self.begin(now, server, chance),
        }
    }

    fn answered(&mut self, reply: LeaseReply, began: u64, now: u64) {
        let (start, end) = (self.clock(began), self.clock(now));
        match (reply, &mut self.held) {
            (LeaseReply::Seen(found), _) => self.race.looked(found, start, end),
            (LeaseReply::Swapped(true, Some(oid)), Some((fence, own, _))) => {
                fence.renewed(start, end);
                *own = oid;
            }
            (LeaseReply::Swapped(..), Some((fence, ..))) => fence.taken(),
            (LeaseReply::Swapped(is_done, oid), None) => {
                let oid = oid.filter(|_| is_done);
                match self.race.act() {
                    Act::Make => self.race.made(oid, start),
                    Act::Confirm(_) => self.race.confirmed(oid, start),
                    Act::Look
                    | Act::Remove(..)
                    | Act::Withdraw(_)
                    | Act::Wait(_)
                    | Act::Hold(_)
                    | Act::Refuse(_) => {
                        self.race.removed();
                    }
                }
            }
        }
    }

    fn begin(&mut self, now: u64, server: &mut LeaseServer, chance: &mut Chance) -> bool {
        let clock = self.clock(now);
        let name = LeaseName::of(&self.scopes);
        if let Some((fence, own, n)) = &mut self.held {
            let is_over = fence.at(clock) != Urgency::None || self.left == 0;
            self.left = self.left.saturating_sub(1);
            if is_over {
                // One in three is killed.
                if chance.below(3) > 0 {
                    server.swap(&name, Some(own), None);
                }
                return false;
            }
            if clock >= fence.renew_at() {
                *n += 1;
                let (own, n) = (own.clone(), *n);
                let next = self.record(n, server);
                self.doing = Doing::Sent(LeaseCall::Swap(name, Some(own), Some(next)), now);
            }
            return true;
        }
        let call = match self.race.act().clone() {
            Act::Look => LeaseCall::Look,
            Act::Remove(name, oid) => LeaseCall::Swap(name, Some(oid), None),
            Act::Withdraw(oid) => LeaseCall::Swap(name, Some(oid), None),
            Act::Make => LeaseCall::Swap(name, None, Some(self.record(0, server))),
            Act::Confirm(oid) => LeaseCall::Swap(name, Some(oid), Some(self.record(1, server))),
            Act::Wait(wait) => {
                self.until = now + wait.as_secs().max(1);
                self.race.waited();
                return true;
            }
            Act::Hold(held) => {
                self.held = Some((LeaseFence::new(s(self.ttl), held.good), held.oid, 1));
                return true;
            }
            Act::Refuse(others) => {
                assert!(!others.is_empty());
                return false;
            }
        };
        self.doing = Doing::Sent(call, now);
        true
    }
}

/// Plays machines against each other, with clocks that are off, calls that take long, and processes that are stopped and
/// killed. Returns how many held a lease.
fn play(seed: u64, count: usize) -> usize {
    let chance = &mut Chance(seed | 1);
    let mut server = LeaseServer::default();
    let mut machines: Vec<RacingMachine> = (0..count).map(|at| RacingMachine::new(at, chance)).collect();
    let mut held = std::collections::BTreeSet::new();
    for now in 0..100_000 {
        if machines.is_empty() {
            break;
        }
        let mut at = 0;
        while at < machines.len() {
            let goes_on = machines[at].until > now || {
                // Most are quick; some are not heard of for longer than any lease holds.
                let odds = if machines[at].held.is_some() { 12 } else { 40 };
                machines[at].until = match chance.below(odds) {
                    0 => now + chance.below(400),
                    1..4 => now + chance.below(20),
                    _ => now,
                };
                machines[at].step(now, &mut server, chance)
            };
            if goes_on {
                at += 1;
            } else {
                machines.remove(at);
            }
        }
        let working: Vec<&RacingMachine> = machines.iter().filter(|machine| machine.works(now)).collect();
        for (at, one) in working.iter().enumerate() {
            for other in &working[..at] {
                assert_eq!(one.scopes.meets(&other.scopes), None, "two hold at {now}, seed {seed}");
            }
        }
        held.extend(working.iter().map(|machine| machine.number));
    }
    assert!(machines.is_empty(), "somebody waits for ever, seed {seed}");
    held.len()
}

#[test]
fn most_who_wait_get_their_turn() {
    let held: usize = (1..=100).map(|seed| play(seed, 8)).sum();
    assert!(held > 300, "{held} of 800, of whom half do not wait");
}

proptest! {
    #[test]
    fn never_do_two_hold_what_overlaps_and_everybody_comes_to_an_end(seed in any::<u64>(), count in 2..12_usize) {
        play(seed, count);
    }
}
