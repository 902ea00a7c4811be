//! Decides which runs have to wait for which others, as a pure function of their claims.

use super::claim_record::ClaimRecord;

/// Whether a live run has its scope or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimStanding {
    /// It runs.
    Holds,
    /// It waits for its turn.
    Waits,
}

/// A run that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// The run.
    pub instance: String,
    /// Whether it runs or waits.
    pub standing: ClaimStanding,
    /// The content of its claim; absent if a later version wrote it in a format that is unknown here.
    pub record: Option<ClaimRecord>,
}

/// Returns the runs that have to end before this one may begin.
///
/// Those are the runs that hold an overlapping scope, and, so that every run gets its turn, those that came earlier
/// and wait for one. A run that an action of another run started shares the scope of that run; and it does not
/// queue behind waiting runs, because those may wait for the run around it.
pub(super) fn in_the_way<'l>(wanted: &ClaimRecord, live: &'l [Live]) -> Vec<&'l Live> {
    let nested = !wanted.ancestors.is_empty();
    let blocks = |other: &&Live| {
        // What a claim of a later version is about is unknown, so it may be everything.
        let Some(record) = &other.record else { return true };
        let comes_first = match other.standing {
            ClaimStanding::Holds => true,
            ClaimStanding::Waits => !nested && record.place < wanted.place,
        };
        other.instance != wanted.instance
            && comes_first
            && !wanted.ancestors.contains(&other.instance)
            && record.territory.meets(&wanted.territory).is_some()
    };
    live.iter().filter(blocks).collect()
}

/// Tells whether waiting would be a deadlock: for a run that waits, perhaps through others, for one of its ancestors.
/// A run counts as waiting for the runs that its actions started.
pub(super) fn waits_for_itself(wanted: &ClaimRecord, live: &[Live]) -> bool {
    let mut open: Vec<&Live> = in_the_way(wanted, live);
    let mut seen: Vec<&str> = Vec::new();
    while let Some(next) = open.pop() {
        if wanted.ancestors.contains(&next.instance) {
            return true;
        }
        if seen.contains(&next.instance.as_str()) {
            continue;
        }
        seen.push(&next.instance);
        if let (ClaimStanding::Waits, Some(record)) = (next.standing, &next.record) {
            open.extend(in_the_way(record, live));
        }
        let is_inside = |other: &&Live| {
            other.record.as_ref().is_some_and(|record| record.ancestors.contains(&next.instance))
        };
        open.extend(live.iter().filter(is_inside));
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ClaimStanding::{Holds, Waits};
    use super::*;
    use crate::base::territory::{ScopePath, Territory};
    use crate::base::time::Timestamp;

    fn record(instance: &str, place: u64, paths: &[&str], ancestors: &[&str]) -> ClaimRecord {
        let tree = ScopePath::from("/r".to_owned());
        ClaimRecord {
            instance: instance.to_owned(),
            r#loop: "main".to_owned(),
            territory: Territory { paths: paths.iter().map(|path| tree.join(path)).collect(), tree },
            pid: 1,
            host: "here".to_owned(),
            since: Timestamp::from_millis(0),
            place,
            ancestors: ancestors.iter().map(|name| (*name).to_owned()).collect(),
            secret: String::new(),
            policy: Vec::new(),
        }
    }

    fn live(standing: ClaimStanding, record: ClaimRecord) -> Live {
        Live { instance: record.instance.clone(), standing, record: Some(record) }
    }

    #[track_caller]
    fn check(wanted: &ClaimRecord, live: &[Live], expected: &[&str]) {
        let found: Vec<_> = in_the_way(wanted, live).iter().map(|other| other.instance.as_str()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_overlapping_runs_are_in_the_way() {
        let others =
            [live(Holds, record("a", 1, &["src"], &[])), live(Holds, record("b", 2, &["docs"], &[]))];
        check(&record("x", 3, &["src/api"], &[]), &others, &["a"]);
        check(&record("x", 3, &["."], &[]), &others, &["a", "b"]);
        check(&record("x", 3, &["tests"], &[]), &others, &[]);
        check(&record("x", 3, &[], &[]), &others, &[]);
    }

    #[test]
    fn who_came_earlier_goes_first() {
        let others = [live(Holds, record("a", 1, &["src"], &[])), live(Waits, record("b", 2, &["."], &[]))];
        check(&record("x", 3, &["docs"], &[]), &others, &["b"]);
        check(&record("b", 2, &["."], &[]), &others, &["a"]);
        check(&record("early", 0, &["docs"], &[]), &others, &[]);
    }

    #[test]
    fn a_run_shares_the_scope_of_its_ancestors_and_of_nobody_else() {
        let others = [
            live(Holds, record("a", 1, &["."], &[])),
            live(Waits, record("b", 2, &["."], &[])),
            live(Holds, record("a1", 3, &["src"], &["a"])),
        ];
        check(&record("x", 4, &["docs"], &["a"]), &others, &[]);
        check(&record("x", 4, &["src"], &["a"]), &others, &["a1"]);
        check(&record("x", 4, &["src"], &["a", "a1"]), &others, &[]);
        check(&record("x", 4, &["src"], &["gone"]), &others, &["a", "a1"]);
    }

    #[test]
    fn a_claim_that_cannot_be_read_is_in_everybodys_way() {
        let others = [Live { instance: "new".to_owned(), standing: Holds, record: None }];
        check(&record("x", 1, &["docs"], &[]), &others, &["new"]);
    }

    #[test]
    fn two_runs_whose_inner_runs_wait_for_each_other_are_found() {
        let a = live(Holds, record("a", 1, &["src"], &[]));
        let b = live(Holds, record("b", 2, &["docs"], &[]));
        let inner = live(Waits, record("b1", 3, &["src"], &["b"]));
        let wanted = record("a1", 4, &["docs"], &["a"]);
        assert!(waits_for_itself(&wanted, &[a.clone(), b.clone(), inner]));
        assert!(!waits_for_itself(&wanted, &[a, b]));
    }

    #[derive(Clone, Debug)]
    enum QueueMove {
        Come(usize),
        End(usize),
    }

    const SCOPES: [&[&str]; 6] = [&["."], &["src"], &["src/api"], &["docs"], &["src", "docs"], &["tests"]];

    proptest! {
        /// Plays the queue with the rule alone: nobody meets anybody, and everybody gets a turn, in order.
        #[test]
        fn nobody_meets_and_nobody_is_left(moves in prop::collection::vec(
            prop_oneof![(0..SCOPES.len()).prop_map(QueueMove::Come), (0..8_usize).prop_map(QueueMove::End)], 1..60,
        )) {
            let mut all: Vec<Live> = Vec::new();
            let mut place = 0;
            let ends = std::iter::repeat_n(QueueMove::End(0), moves.len());
            for step in moves.clone().into_iter().chain(ends) {
                match step {
                    QueueMove::Come(scope) => {
                        place += 1;
                        all.push(live(Waits, record(&place.to_string(), place, SCOPES[scope], &[])));
                    }
                    QueueMove::End(which) => {
                        let running: Vec<usize> =
                            (0..all.len()).filter(|at| all[*at].standing == Holds).collect();
                        if let Some(at) = running.get(which % running.len().max(1)) {
                            all.remove(*at);
                        }
                    }
                }
                for at in 0..all.len() {
                    let wanted = all[at].record.clone().unwrap();
                    if in_the_way(&wanted, &all).is_empty() {
                        all[at].standing = Holds;
                    }
                }
                let territory = |live: &Live| live.record.clone().unwrap().territory;
                for (at, one) in all.iter().enumerate() {
                    for other in &all[..at] {
                        let meet = territory(one).meets(&territory(other)).is_some();
                        // Who came later and meets an earlier one waits, whether that one runs or not.
                        prop_assert!(!meet || one.standing == Waits);
                    }
                }
            }
            prop_assert!(all.is_empty(), "{all:?}");
        }
    }
}
