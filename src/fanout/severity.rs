//! Which of several exit codes stands for all of them.

/// From the worst to the best. What is not listed was not ended by us, such as a kill, and is as bad as an error.
const ORDER: [u8; 13] = [2, 4, 1, 6, 5, 3, 124, 143, 130, 69, 73, 75, 0];

/// Returns how bad an exit code is beside others: the higher, the worse.
pub fn severity(code: u8) -> usize {
    let of = |code: u8| ORDER.iter().position(|known| *known == code);
    let place = of(code).or_else(|| of(4)).unwrap_or(0);
    ORDER.len() - place
}

/// Returns the worst of these exit codes; without any, 0.
pub fn worst(codes: impl IntoIterator<Item = u8>) -> u8 {
    // The first one of the worst, so that the result depends on no sorting.
    codes.into_iter().fold(0, |worst, code| if severity(code) > severity(worst) { code } else { worst })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_worst_counts() {
        assert_eq!(worst([]), 0);
        assert_eq!(worst([0, 75, 0]), 75);
        assert_eq!(worst([75, 1, 3]), 1);
        assert_eq!(worst([1, 4, 2, 143]), 2);
        assert_eq!(worst([124, 143, 130]), 124);
        assert_eq!(worst([137, 1]), 137, "a kill is an error");
    }

    proptest! {
        #[test]
        fn nothing_is_better_than_zero_and_only_zero_is_zero(codes in proptest::collection::vec(any::<u8>(), 0..9)) {
            prop_assert_eq!(worst(codes.iter().copied()) == 0, codes.iter().all(|code| *code == 0));
        }
    }
}
