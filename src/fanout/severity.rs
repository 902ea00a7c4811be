//! Which of several exit codes stands for all of them.

use crate::engine::outcome::Outcome;
use crate::report::unbegun_run::Hindrance;

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

/// Returns the outcome that an exit code stands for, in the word that outputs have, where no run says it more exactly.
pub fn word_of(code: u8) -> &'static str {
    let is_meant = |outcome: &Outcome| outcome.exit_code(None) == code;
    match (code, Outcome::ALL.iter().find(|outcome| is_meant(outcome))) {
        (2, _) => Hindrance::Invalid.word(),
        // Without a run, it is the scope that somebody else has.
        (_, Some(Outcome::LeaseLost)) => Hindrance::Locked.word(),
        (_, Some(outcome)) => outcome.word(),
        // 128 and the signal.
        (129.., None) => Outcome::Interrupted.word(),
        (_, None) => Outcome::Error.word(),
    }
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

    #[test]
    fn each_code_has_the_word_of_its_runs() {
        for (code, word) in [
            (0, "success"),
            (1, "failure"),
            (2, "invalid"),
            (4, "error"),
            (73, "locked"),
            (75, "handoff"),
            (124, "timeout"),
            (130, "interrupted"),
            (137, "interrupted"),
            (99, "error"),
        ] {
            assert_eq!(word_of(code), word, "{code}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_better_than_zero_and_only_zero_is_zero(codes in proptest::collection::vec(any::<u8>(), 0..9)) {
            prop_assert_eq!(worst(codes.iter().copied()) == 0, codes.iter().all(|code| *code == 0));
        }
    }
}
