//! Plays fan-outs in which anything may come back, and compares the merge with a rule that knows what was sent.

use proptest::prelude::*;

use super::item_plan::Plan;
use super::merged_runs::{BundledRun, MergeContent, MergeInput, MergeRefusal, Merged};
use super::testing::plan_of;
use crate::base::object::ObjectId;
use crate::base::relative::Line;
use crate::base::sum::Sum;
use crate::engine::event::Assignment;
use crate::engine::outcome::Outcome;

/// A run as it comes back when all is well.
fn good(plan: &Plan, item: usize, attempt: u32) -> BundledRun {
    let id = &plan.items[item].id;
    BundledRun {
        run: format!("tidy-{item}-{attempt}"),
        assignment: Some(Assignment {
            plan_id: plan.plan_id,
            leg: Line::of(plan.leg_of(id).unwrap().key.as_str()),
            item: Line::of(id.as_str()),
            attempt,
            ci_run: Some(Line::of("77")),
            differs: Vec::new(),
        }),
        commit: Some(plan.commit.clone()),
        definition_sha256: Some(Sum::of(b"tidy")),
        outcome: Some(Outcome::Success),
        exit_code: 0,
        verified: true,
        dirty_start: None,
        began_with_changes: false,
        entered: true,
        duration_ms: 5,
    }
}

fn reading(shown: String, run: BundledRun) -> MergeInput {
    MergeInput { shown, found: MergeContent::Run(Box::new(run)), is_of_merge: false }
}

/// What happens to an attempt at an item on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Verified,
    Lost,
    Unverified,
    Failed,
    HandedOff,
    Killed,
    NothingEntered,
    Torn {
        knows_item: bool,
        knows_attempt: bool,
    },
    Twice,
    OtherPlan {
        is_older: bool,
    },
    OtherCommit,
    OtherDefinition,
    OtherLeg,
    UnknownItem,
    WithoutPlan,
    ClaimsZero,
    /// It was verified on a tree that had something else as well.
    BeganDirty,
    /// Another CI run left it.
    OtherCiRun,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        60 => Just(Fate::Verified),
        4 => Just(Fate::Lost),
        2 => Just(Fate::Unverified),
        3 => Just(Fate::Failed),
        3 => Just(Fate::HandedOff),
        1 => Just(Fate::Killed),
        1 => Just(Fate::NothingEntered),
        2 => any::<(bool, bool)>().prop_map(|(knows_item, knows_attempt)| Fate::Torn { knows_item, knows_attempt }),
        4 => Just(Fate::Twice),
        1 => any::<bool>().prop_map(|is_older| Fate::OtherPlan { is_older }),
        1 => Just(Fate::OtherCommit),
        1 => Just(Fate::OtherDefinition),
        1 => Just(Fate::OtherLeg),
        1 => Just(Fate::UnknownItem),
        1 => Just(Fate::WithoutPlan),
        1 => Just(Fate::ClaimsZero),
        2 => Just(Fate::BeganDirty),
        2 => Just(Fate::OtherCiRun),
    ]
}

/// The fates of the attempts at each item, the first attempt first; and things that are not bundles.
fn fates(most: usize) -> impl Strategy<Value = (Vec<Vec<Fate>>, usize, usize, usize)> {
    let attempts = prop_oneof![
        // Most items come back at once, or large plans would never be green.
        20 => Just(vec![Fate::Verified]),
        1 => proptest::collection::vec(fate(), 1..4),
    ];
    (proptest::collection::vec(attempts, 0..most), 0..3_usize, 1..=most, 0..3_usize)
}

fn readings(plan: &Plan, fates: &[Vec<Fate>]) -> Vec<MergeInput> {
    let mut all = Vec::new();
    for (item, attempts) in fates.iter().enumerate() {
        for (index, fate) in attempts.iter().enumerate() {
            let attempt = u32::try_from(index).unwrap() + 1;
            let shown = format!("{item}/{attempt}");
            let run = good(plan, item, attempt);
            let assigned = |edit: &dyn Fn(&mut Assignment)| {
                let mut run = run.clone();
                edit(run.assignment.as_mut().unwrap());
                run
            };
            let run = match fate {
                Fate::Lost => continue,
                Fate::Verified => run,
                Fate::Twice => {
                    all.push(reading(format!("{shown} again"), run.clone()));
                    run
                }
                Fate::Unverified => BundledRun { verified: false, ..run },
                Fate::Failed => {
                    BundledRun { outcome: Some(Outcome::Failure), exit_code: 1, verified: false, ..run }
                }
                Fate::HandedOff => {
                    BundledRun { outcome: Some(Outcome::Handoff), exit_code: 75, verified: false, ..run }
                }
                Fate::Killed => BundledRun { outcome: None, exit_code: 137, verified: false, ..run },
                Fate::NothingEntered => BundledRun { entered: false, ..run },
                Fate::ClaimsZero => BundledRun { outcome: Some(Outcome::Failure), exit_code: 0, ..run },
                Fate::Torn { knows_item, knows_attempt } => {
                    let item = knows_item.then(|| plan.items[item].id.clone());
                    let attempt = knows_attempt.then_some(attempt);
                    let found = MergeContent::Unreadable { why: "it is empty".to_owned(), item, attempt };
                    all.push(MergeInput { shown, found, is_of_merge: false });
                    continue;
                }
                Fate::OtherPlan { is_older } => assigned(&|one| {
                    one.plan_id = Sum::of(b"other");
                    one.attempt = if *is_older { 0 } else { attempt };
                }),
                Fate::OtherCommit => {
                    BundledRun { commit: Some(ObjectId::parse(&"b".repeat(40)).unwrap()), ..run }
                }
                Fate::OtherDefinition => BundledRun { definition_sha256: Some(Sum::of(b"other")), ..run },
                Fate::OtherLeg => assigned(&|one| one.leg = Line::of("l999")),
                Fate::UnknownItem => assigned(&|one| one.item = Line::of("tidy.unknown")),
                Fate::WithoutPlan => BundledRun { assignment: None, ..run },
                Fate::BeganDirty => BundledRun { dirty_start: Some("`a` differs".to_owned()), ..run },
                Fate::OtherCiRun => assigned(&|one| one.ci_run = Some(Line::of("76"))),
            };
            all.push(reading(shown, run));
        }
    }
    all
}

/// Tells from the fates alone whether everything was verified.
fn is_proven(fates: &[Vec<Fate>]) -> bool {
    fates.iter().all(|attempts| {
        let came = attempts
            .iter()
            .rev()
            .find(|fate| !matches!(fate, Fate::Lost | Fate::OtherCiRun | Fate::OtherPlan { is_older: true }));
        let unclear = |fate: &Fate| {
            matches!(fate, Fate::Torn { knows_item: false, .. } | Fate::Torn { knows_attempt: false, .. })
        };
        matches!(came, Some(Fate::Verified | Fate::Twice)) && !attempts.iter().any(unclear)
    })
}

/// Tells whether something came back that is of another plan, commit or definition.
fn is_mixed(fates: &[Vec<Fate>]) -> bool {
    let is_wrong = |fate: &Fate| {
        matches!(
            fate,
            Fate::OtherPlan { .. }
                | Fate::OtherCommit
                | Fate::OtherDefinition
                | Fate::OtherLeg
                | Fate::UnknownItem
                | Fate::WithoutPlan
        )
    };
    fates.iter().flatten().any(is_wrong)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_green_unless_all_of_it_is_there_and_verified(
        (fates, skipped, most, foreign) in prop_oneof![9 => fates(12), 1 => fates(256)],
        seed: u64,
    ) {
        let plan = plan_of(fates.len(), most, skipped);
        let mut found = readings(&plan, &fates);
        let other = |index| MergeInput { shown: format!("x{index}.zip"), found: MergeContent::Foreign { why: "it is not a bundle".to_owned() }, is_of_merge: false };
        found.extend((0..foreign).map(other));
        let merged = Merged::of(&plan, &found, Some("77"));
        let proven = is_proven(&fates);
        let mixed = is_mixed(&fates);
        match &merged {
            Ok(merged) => {
                prop_assert_eq!(merged.exit_code == 0, proven, "{:?}", fates);
                prop_assert_eq!(merged.items.len(), fates.len() + skipped);
                prop_assert_eq!(merged.unsettled().is_empty(), merged.items.iter().all(|item| item.standing.is_settled()));
            }
            Err(_) => prop_assert!(mixed, "{:?}", fates),
        }
        // Who comes first makes no difference.
        let turn = if found.is_empty() { 0 } else { usize::try_from(seed % found.len() as u64).unwrap() };
        found.rotate_left(turn);
        if seed % 2 == 0 {
            found.reverse();
        }
        match (merged, Merged::of(&plan, &found, Some("77"))) {
            (Ok(one), Ok(other)) => {
                prop_assert_eq!(one.exit_code, other.exit_code);
                prop_assert_eq!(&one.superseded, &other.superseded);
                for (one, other) in one.items.iter().zip(&other.items) {
                    prop_assert_eq!(one.standing.exit_code(), other.standing.exit_code());
                }
            }
            (Err(_), Err(_)) => {}
            (one, other) => prop_assert!(false, "{:?} {:?}", one, other),
        }
    }
}

fn merged(plan: &Plan, readings: &[MergeInput]) -> (u8, Vec<u8>) {
    let merged = Merged::of(plan, readings, None).unwrap();
    (merged.exit_code, merged.items.iter().map(|item| item.standing.exit_code()).collect())
}

#[test]
fn one_run_each_is_green_and_one_less_is_not() {
    let plan = plan_of(3, 2, 1);
    let all: Vec<MergeInput> = (0..3).map(|item| reading(format!("{item}"), good(&plan, item, 1))).collect();
    assert_eq!(merged(&plan, &all), (0, vec![0, 0, 0, 0]));
    assert_eq!(merged(&plan, &all[1..]), (4, vec![4, 0, 0, 0]));
    assert_eq!(merged(&plan, &[]), (4, vec![4, 4, 4, 0]));
    let empty = plan_of(0, 1, 2);
    assert_eq!(merged(&empty, &[]), (0, vec![0, 0]));
}

#[test]
fn the_highest_attempt_counts_and_of_two_the_worse() {
    let plan = plan_of(1, 1, 0);
    let at = |attempt, outcome, exit_code| {
        let run = BundledRun {
            outcome: Some(outcome),
            exit_code,
            verified: exit_code == 0,
            ..good(&plan, 0, attempt)
        };
        reading(format!("{attempt} {exit_code}"), run)
    };
    let (failed, fixed) = (at(1, Outcome::Failure, 1), at(2, Outcome::Success, 0));
    assert_eq!(merged(&plan, &[failed.clone(), fixed.clone()]).0, 0);
    assert_eq!(merged(&plan, &[fixed.clone(), at(2, Outcome::Handoff, 75)]).0, 75);
    assert_eq!(merged(&plan, &[at(3, Outcome::Blocked, 5), fixed.clone(), failed.clone()]).0, 5);
    let both = Merged::of(&plan, &[failed, fixed], None).unwrap();
    assert_eq!(both.superseded, ["1 1"]);
}

#[test]
fn what_another_ci_run_has_left_is_not_counted() {
    let plan = plan_of(2, 2, 0);
    let of = |item: usize, ci_run: &str| {
        let mut run = good(&plan, item, 1);
        run.assignment.as_mut().unwrap().ci_run = Some(Line::of(ci_run));
        reading(format!("{ci_run}/{item}"), run)
    };
    let all = [of(0, "77"), of(1, "76")];
    let merged = Merged::of(&plan, &all, Some("77")).unwrap();
    assert_eq!((merged.exit_code, merged.ignored.len()), (4, 1));
    // Where the merge is part of none, it is not said which one is meant.
    assert!(matches!(Merged::of(&plan, &all, None), Err(MergeRefusal::SeveralCiRuns { .. })));
    assert_eq!(Merged::of(&plan, &[of(0, "76"), of(1, "76")], None).unwrap().exit_code, 0);
    // What an earlier merge has left is meant, if it was named.
    let merged_before = MergeInput { is_of_merge: true, ..of(1, "76") };
    assert_eq!(Merged::of(&plan, &[of(0, "77"), merged_before], Some("77")).unwrap().exit_code, 0);
}

#[test]
fn all_begin_on_one_tree_that_of_the_commit_or_that_of_the_plan() {
    let plan = plan_of(2, 2, 0);
    let of = |item: usize, began_with_changes: bool| {
        reading(item.to_string(), BundledRun { began_with_changes, ..good(&plan, item, 1) })
    };
    assert_eq!(merged(&plan, &[of(0, false), of(1, false)]), (0, vec![0, 0]));
    assert_eq!(merged(&plan, &[of(0, true), of(1, true)]), (0, vec![0, 0]));
    assert_eq!(merged(&plan, &[of(0, true), of(1, false)]), (1, vec![0, 1]));
}

#[test]
fn what_goes_on_and_what_is_not_verified_are_legs() {
    let plan = plan_of(3, 3, 0);
    let handed_off =
        BundledRun { outcome: Some(Outcome::Handoff), exit_code: 75, verified: false, ..good(&plan, 0, 1) };
    let failed =
        BundledRun { outcome: Some(Outcome::Failure), exit_code: 1, verified: false, ..good(&plan, 1, 1) };
    let all = [
        reading("0".into(), handed_off),
        reading("1".into(), failed),
        reading("2".into(), good(&plan, 2, 1)),
    ];
    let merged = Merged::of(&plan, &all, None).unwrap();
    assert_eq!((merged.handed_off().len(), merged.unsettled().len(), merged.exit_code), (1, 2, 1));
}
