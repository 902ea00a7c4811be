//! Many numbers by how often each occurred, so that a share of them can be found without keeping them all.

use std::collections::BTreeMap;

/// Numbers, and how often each was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spread {
    seen: BTreeMap<u64, u64>,
    count: u64,
}

impl Spread {
    /// Adds a number.
    pub(super) fn add(&mut self, number: u64) {
        self.add_times(number, 1);
    }

    /// Adds all numbers of another spread.
    pub(super) fn add_all(&mut self, other: &Self) {
        other.seen.iter().for_each(|(number, times)| self.add_times(*number, *times));
    }

    /// Returns the smallest number that so many hundredths of all numbers do not exceed: the nearest rank, which is
    /// always one of them.
    pub(super) fn percentile(&self, hundredths: u8) -> Option<u64> {
        let rank = u128::from(self.count).saturating_mul(u128::from(hundredths)).div_ceil(100).max(1);
        let mut passed = 0;
        self.seen.iter().find_map(|(number, times)| {
            passed += u128::from(*times);
            (passed >= rank).then_some(*number)
        })
    }

    /// Returns the number in the middle.
    pub(super) fn median(&self) -> Option<u64> {
        self.percentile(50)
    }

    fn add_times(&mut self, number: u64, times: u64) {
        *self.seen.entry(number).or_default() += times;
        self.count += times;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(numbers: &[u64]) -> Spread {
        let mut spread = Spread::default();
        for number in numbers {
            spread.add(*number);
        }
        spread
    }

    #[test]
    fn the_nearest_rank_is_one_of_the_numbers() {
        let at = |numbers: &[u64], hundredths| of(numbers).percentile(hundredths);
        assert_eq!(at(&[], 50), None);
        assert_eq!((at(&[7], 50), at(&[7], 90), at(&[7], 0)), (Some(7), Some(7), Some(7)));
        assert_eq!((at(&[4, 1], 50), at(&[4, 1], 51)), (Some(1), Some(4)));
        assert_eq!((at(&[3, 1, 2], 50), at(&[3, 1, 2], 90)), (Some(2), Some(3)));
        let ten = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
        assert_eq!((at(&ten, 50), at(&ten, 90), at(&ten, 91)), (Some(50), Some(90), Some(100)));
    }

    proptest! {
        #[test]
        fn it_is_what_a_sorted_list_has_at_that_rank(
            mut numbers in prop::collection::vec(0_u64..50, 1..60), hundredths in 1_u8..=100,
        ) {
            let (one, other) = numbers.split_at(numbers.len() / 2);
            let mut spread = of(one);
            spread.add_all(&of(other));
            numbers.sort_unstable();
            let rank = (numbers.len() * usize::from(hundredths)).div_ceil(100);
            prop_assert_eq!(spread.percentile(hundredths), Some(numbers[rank - 1]));
        }
    }
}
