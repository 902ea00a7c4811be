//! Deals the items of a plan to its legs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::item::{ItemId, LegKey};
use super::item_plan::{Item, Leg};
use crate::base::sum::Sum;
use crate::base::territory::ScopePath;

/// How many legs there are by default.
pub const AUTO: usize = 20;

/// How items come to their legs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// The longest first, each onto the leg with the least work.
    #[default]
    Lpt,
    /// By their ids alone, so that an item that is added or taken away moves no other one.
    Hash,
}

/// Items that have to run one after the other, because their scopes overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their places in the plan, ascending.
    pub items: Vec<usize>,
    /// Their weight, in milliseconds.
    weight: u64,
    /// The lowest of their ids.
    lowest: ItemId,
}

/// Places a path of a scope. Where the checkout lies does not matter, but a scope may also name what lies beside it.
fn placed(path: &str) -> ScopePath {
    ScopePath::from("checkout".to_owned()).join(path)
}

/// Finds an item with a path in its scope that holds something of what each other item works on.
pub fn widest(items: &[Item]) -> Option<(&Item, &str)> {
    let paths = items.iter().flat_map(|item| item.scope.iter().map(move |path| (item, path.as_str())));
    // A path has fewer components than what it holds.
    let (widest, path) = paths.min_by_key(|(_, path)| placed(path).depth())?;
    let around = placed(path);
    let holds = |item: &Item| item.scope.iter().any(|path| around.holds(&placed(path)));
    items.iter().all(holds).then_some((widest, path))
}

/// Finds the items whose scopes overlap, directly or through others. The time grows with the number of paths as sorting
/// does.
pub fn groups(items: &[Item]) -> Vec<Group> {
    let mut paths: Vec<(ScopePath, usize)> = items
        .iter()
        .enumerate()
        .flat_map(|(index, item)| item.scope.iter().map(move |path| (path, index)))
        .map(|(path, index)| (placed(path), index))
        .collect();
    paths.sort();
    let mut sets = Sets::new(items.len());
    // A path sorts right before what lies below it, so that the paths around the present one form a stack.
    let mut around: Vec<(&ScopePath, usize)> = Vec::new();
    for (path, index) in &paths {
        while around.last().is_some_and(|(above, _)| !above.holds(path)) {
            around.pop();
        }
        if let Some((_, above)) = around.last() {
            sets.join(*above, *index);
        }
        around.push((path, *index));
    }
    let mut found: BTreeMap<usize, Group> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let group = found.entry(sets.find(index)).or_insert_with(|| Group {
            items: Vec::new(),
            weight: 0,
            lowest: item.id.clone(),
        });
        group.items.push(index);
        group.weight = group.weight.saturating_add(item.weight_ms);
        if item.id < group.lowest {
            group.lowest = item.id.clone();
        }
    }
    found.into_values().collect()
}

/// Deals the groups to at most so many legs. Every leg has items.
pub fn legs(items: &[Item], groups: &[Group], most: Option<usize>, partition: Partition) -> Vec<Leg> {
    let dealt: BTreeMap<usize, Vec<&Group>> = match partition {
        Partition::Lpt => longest_first(groups, most.unwrap_or(AUTO).min(groups.len())),
        // The number of legs must not depend on the items, or adding one would move others.
        Partition::Hash => by_id(groups, most.unwrap_or(AUTO)),
    };
    let of = dealt.keys().last().map_or(0, |last| last + 1);
    let leg = |(number, groups): (usize, Vec<&Group>)| {
        let mut places: Vec<usize> = groups.iter().flat_map(|group| group.items.iter().copied()).collect();
        places.sort_unstable();
        Leg {
            key: LegKey::nth(number + 1, of),
            estimate_ms: groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.weight)),
            items: places.into_iter().map(|place| items[place].id.clone()).collect(),
        }
    };
    dealt.into_iter().map(leg).collect()
}

fn longest_first(groups: &[Group], most: usize) -> BTreeMap<usize, Vec<&Group>> {
    let mut sorted: Vec<&Group> = groups.iter().collect();
    // Equal weights go by id: the same items have to make the same plan, with the same id, on every
    // machine.
    sorted.sort_by(|one, other| {
        (Reverse(one.weight), &one.lowest).cmp(&(Reverse(other.weight), &other.lowest))
    });
    let mut dealt: BTreeMap<usize, Vec<&Group>> = BTreeMap::new();
    let mut loads: BinaryHeap<Reverse<(u64, usize)>> = (0..most).map(|number| Reverse((0, number))).collect();
    for group in sorted {
        let Some(Reverse((load, number))) = loads.pop() else { break };
        dealt.entry(number).or_default().push(group);
        loads.push(Reverse((load.saturating_add(group.weight), number)));
    }
    dealt
}

fn by_id(groups: &[Group], legs: usize) -> BTreeMap<usize, Vec<&Group>> {
    let mut dealt: BTreeMap<usize, Vec<&Group>> = BTreeMap::new();
    for group in groups {
        let digest = Sum::of(group.lowest.as_str().as_bytes()).to_string();
        let number = u64::from_str_radix(&digest[..15], 16).unwrap_or(0) % legs.max(1) as u64;
        dealt.entry(usize::try_from(number).unwrap_or(0)).or_default().push(group);
    }
    dealt
}

/// Sets of items that grow together.
struct Sets(Vec<usize>);

impl Sets {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// Returns the item that stands for the set of this one.
    fn find(&mut self, item: usize) -> usize {
        let mut top = item;
        while self.0[top] != top {
            // Shortens the way for the next time: chains of thousands of items would make this quadratic.
            self.0[top] = self.0[self.0[top]];
            top = self.0[top];
        }
        top
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        let (low, high) = (one.min(other), one.max(other));
        // The lower one stands for both, so that groups keep the order of the items.
        self.0[high] = low;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::base::name::LoopName;
    use crate::fanout::item_plan::WeightFrom;

    fn item(id: &str, scope: &[&str], weight_ms: u64) -> Item {
        Item {
            id: ItemId::parse(id).unwrap(),
            r#loop: LoopName::parse("tidy").unwrap(),
            params: BTreeMap::new(),
            scope: scope.iter().map(|path| (*path).to_owned()).collect(),
            weight_ms,
            weight_from: WeightFrom::Runs,
            proves: None,
        }
    }

    fn dealt(items: &[Item], most: Option<usize>, partition: Partition) -> Vec<(String, Vec<String>)> {
        let legs = legs(items, &groups(items), most, partition);
        let shown =
            |leg: Leg| (leg.key.to_string(), leg.items.iter().map(ToString::to_string).collect::<Vec<_>>());
        legs.into_iter().map(shown).collect()
    }

    #[track_caller]
    fn check(items: &[Item], most: usize, expected: &[(&str, &[&str])]) {
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(key, items)| ((*key).to_owned(), items.iter().map(|item| (*item).to_owned()).collect()))
            .collect();
        assert_eq!(dealt(items, Some(most), Partition::Lpt), expected);
    }

    #[test]
    fn one_item_may_claim_what_the_others_work_on() {
        let of = |items: &[Item]| widest(items).map(|(item, path)| (item.id.to_string(), path.to_owned()));
        let some = |id: &str, path: &str| Some((id.to_owned(), path.to_owned()));
        assert_eq!(of(&[item("a", &["x/a"], 1), item("b", &["."], 1), item("c", &["y"], 1)]), some("b", "."));
        assert_eq!(of(&[item("a", &["x/a"], 1), item("b", &["docs", "x"], 1)]), None);
        assert_eq!(of(&[item("a", &["x/a/b"], 1), item("b", &["docs/de", "./x/"], 1)]), some("b", "./x/"));
        assert_eq!(of(&[item("a", &["x/a"], 1), item("b", &["x/b"], 1)]), None);
    }

    #[test]
    fn the_longest_go_first_and_ties_by_their_ids() {
        let items = [item("c", &["c"], 5), item("a", &["a"], 5), item("b", &["b"], 9), item("d", &["d"], 1)];
        check(&items, 2, &[("l01", &["b", "d"]), ("l02", &["c", "a"])]);
        check(&items, 9, &[("l01", &["b"]), ("l02", &["a"]), ("l03", &["c"]), ("l04", &["d"])]);
        check(&[], 3, &[]);
    }

    #[test]
    fn what_overlaps_stays_together_also_through_others() {
        let items = [
            item("a", &["src/a"], 1),
            item("b", &["src/ab"], 1),
            item("c", &["docs", "src/a/x"], 1),
            item("d", &["./docs/"], 1),
            item("e", &["/cache"], 1),
            item("f", &["/cache/x"], 1),
            item("g", &[], 1),
        ];
        check(
            &items,
            9,
            &[("l01", &["a", "c", "d"]), ("l02", &["e", "f"]), ("l03", &["b"]), ("l04", &["g"])],
        );
        let all = [item("a", &["."], 1), item("b", &["x/y"], 1), item("c", &["z"], 1)];
        check(&all, 9, &[("l01", &["a", "b", "c"])]);
    }

    prop_compose! {
        fn some_items()(
            parts in proptest::collection::vec((proptest::collection::vec("[ab]/[ab]|[abc]|\\.|x/y/z|/c", 0..3), 0_u64..9), 0..40),
        ) -> Vec<Item> {
            let make = |(index, (scope, weight)): (usize, &(Vec<String>, u64))| {
                let scope: Vec<&str> = scope.iter().map(String::as_str).collect();
                item(&format!("i{index}"), &scope, *weight)
            };
            parts.iter().enumerate().map(make).collect()
        }
    }

    /// Tells directly whether two scopes overlap.
    fn meet(one: &Item, other: &Item) -> bool {
        let root = ScopePath::from("/checkout".to_owned());
        let paths =
            |item: &Item| -> Vec<ScopePath> { item.scope.iter().map(|path| root.join(path)).collect() };
        let (one, other) = (paths(one), paths(other));
        one.iter().any(|ours| other.iter().any(|theirs| ours.holds(theirs) || theirs.holds(ours)))
    }

    proptest! {
        #[test]
        fn every_item_is_on_one_leg_with_all_that_it_overlaps(
            items in some_items(),
            most in proptest::option::of(1_usize..9),
            hash: bool,
        ) {
            let partition = if hash { Partition::Hash } else { Partition::Lpt };
            let legs = dealt(&items, most, partition);
            prop_assert!(legs.len() <= most.unwrap_or(AUTO));
            prop_assert!(legs.iter().all(|(_, items)| !items.is_empty()));
            let keys: BTreeSet<&String> = legs.iter().map(|(key, _)| key).collect();
            prop_assert_eq!(keys.len(), legs.len());
            let mut all: Vec<&String> = legs.iter().flat_map(|(_, items)| items).collect();
            all.sort();
            let mut expected: Vec<String> = items.iter().map(|item| item.id.to_string()).collect();
            expected.sort();
            prop_assert_eq!(all, expected.iter().collect::<Vec<_>>());
            let leg = |id: &ItemId| legs.iter().position(|(_, items)| items.iter().any(|item| item == id.as_str()));
            for one in &items {
                for other in &items {
                    if meet(one, other) {
                        prop_assert_eq!(leg(&one.id), leg(&other.id));
                    }
                }
            }
        }

        #[test]
        fn by_id_nothing_moves_when_another_group_goes(count in 2_usize..60, gone in 0_usize..60, most in 1_usize..9) {
            let all: Vec<Item> =
                (0..count).map(|index| item(&format!("i{index}"), &[&format!("p{index}")], 1)).collect();
            let gone = gone % count;
            let rest: Vec<Item> = all.iter().filter(|item| item.id != all[gone].id).cloned().collect();
            let place = |legs: &[(String, Vec<String>)], id: &str| {
                legs.iter().find(|(_, items)| items.iter().any(|item| item == id)).map(|(key, _)| key.clone())
            };
            let (before, after) = (dealt(&all, Some(most), Partition::Hash), dealt(&rest, Some(most), Partition::Hash));
            for item in &rest {
                prop_assert_eq!(place(&before, item.id.as_str()), place(&after, item.id.as_str()));
            }
        }
    }
}
