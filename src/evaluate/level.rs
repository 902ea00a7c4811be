//! How urgently a score calls for more work.

/// How serious it is, from harmless to the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ScoreLevel {
    /// Nothing is to be said.
    None,
    /// Something small is missing.
    Remind,
    /// The work goes wrong.
    Correct,
    /// The work is about something else.
    Refocus,
    /// There are many issues.
    Critical,
    /// There are so many issues that going on makes no sense.
    Abort,
}

/// More issues than this are critical.
const MANY: usize = 4;

/// More issues than this end the run.
const TOO_MANY: usize = 5;

impl ScoreLevel {
    const ALL: [Self; 6] =
        [Self::None, Self::Remind, Self::Correct, Self::Refocus, Self::Critical, Self::Abort];

    /// Returns its word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Remind => "remind",
            Self::Correct => "correct",
            Self::Refocus => "refocus",
            Self::Critical => "critical",
            Self::Abort => "abort",
        }
    }

    /// Finds the level with this word.
    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }

    /// Returns how what is said begins.
    pub(super) fn start(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Remind => "Reminder: ",
            Self::Correct => "Correction: ",
            Self::Refocus => "Refocus on the task: ",
            Self::Critical => "Critical: ",
            Self::Abort => "Abort: ",
        }
    }
}

/// What became of work that was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    /// It is good.
    Approved,
    /// It is to be revised.
    Revise,
    /// It is no good.
    Rejected,
}

/// Returns how serious the judgement of a piece of work is: by the number of issues, or else by the score, or else by
/// what became of it.
pub(super) fn level(score: Option<f64>, issues: usize, approval: Approval) -> ScoreLevel {
    match (approval, score) {
        // Work that is good enough is not held up by what a reviewer still lists.
        (Approval::Approved, _) => ScoreLevel::None,
        _ if issues > TOO_MANY => ScoreLevel::Abort,
        _ if issues > MANY => ScoreLevel::Critical,
        (_, Some(score)) if score >= 70.0 => ScoreLevel::None,
        (_, Some(score)) if score >= 50.0 => ScoreLevel::Remind,
        (_, Some(score)) if score >= 30.0 => ScoreLevel::Correct,
        (_, Some(_)) => ScoreLevel::Refocus,
        (Approval::Revise, None) => ScoreLevel::Remind,
        (Approval::Rejected, None) => ScoreLevel::Correct,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_come_before_the_score() {
        use Approval::{Approved, Rejected, Revise};
        for (score, issues, approval, expected) in [
            (Some(100.0), 9, Approved, ScoreLevel::None),
            (None, 9, Approved, ScoreLevel::None),
            (Some(70.0), 0, Revise, ScoreLevel::None),
            (Some(69.9), 0, Revise, ScoreLevel::Remind),
            (Some(69.0), 4, Revise, ScoreLevel::Remind),
            (Some(50.0), 0, Revise, ScoreLevel::Remind),
            (Some(49.0), 0, Rejected, ScoreLevel::Correct),
            (Some(30.0), 0, Rejected, ScoreLevel::Correct),
            (Some(29.0), 0, Rejected, ScoreLevel::Refocus),
            (Some(0.0), 4, Rejected, ScoreLevel::Refocus),
            (Some(69.0), 5, Revise, ScoreLevel::Critical),
            (Some(0.0), 5, Rejected, ScoreLevel::Critical),
            (Some(69.0), 6, Revise, ScoreLevel::Abort),
            (None, 6, Rejected, ScoreLevel::Abort),
            (None, 5, Revise, ScoreLevel::Critical),
            (None, 4, Revise, ScoreLevel::Remind),
            (None, 0, Rejected, ScoreLevel::Correct),
        ] {
            assert_eq!(level(score, issues, approval), expected, "{score:?} {issues} {approval:?}");
        }
    }

    #[test]
    fn levels_have_an_order_and_words() {
        assert!(ScoreLevel::ALL.is_sorted());
        for level in ScoreLevel::ALL {
            assert_eq!(ScoreLevel::parse(level.word()), Some(level));
        }
        assert_eq!(ScoreLevel::parse("panic"), None);
    }
}
