//! What a run waits for that was saved: an answer, or somebody who goes on with it. Its status tells it to other programs in
//! one word, in the mark of its link.

use std::fmt;

use super::asked::QuestionMark;
use crate::engine::event::HandoffReason;
use crate::engine::question::Awaiting;

/// The word for legs.
const LEGS: &str = "l-again";

/// The word for a budget.
const BUDGET: &str = "b-over";

/// What a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunWait {
    /// An answer.
    Answer(QuestionMark),
    /// To be resumed, for this reason.
    Resume(HandoffReason),
    /// For its legs, some of which were handed off: they run again in the same run of the workflow.
    Legs,
    /// For nobody: it is over, because its budget was used up.
    Budget,
}

impl RunWait {
    /// Takes it from the question or else the reason that a run was handed off with.
    pub fn of(awaiting: Option<&Awaiting>, reason: HandoffReason) -> Self {
        match awaiting {
            Some(Awaiting { code, until, state, .. }) => {
                Self::Answer(QuestionMark { code: code.clone(), until: *until, state: state.to_string() })
            }
            None => Self::Resume(reason),
        }
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub fn parse(word: &str) -> Option<Self> {
        if let Some(question) = word.strip_prefix("q-") {
            return QuestionMark::parse(question).map(Self::Answer);
        }
        match word {
            BUDGET => return Some(Self::Budget),
            LEGS => return Some(Self::Legs),
            _ => {}
        }
        let reason = word.strip_prefix("h-")?;
        HandoffReason::ALL.into_iter().find(|known| word_for(*known) == reason).map(Self::Resume)
    }
}

impl fmt::Display for RunWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(question) => write!(f, "q-{question}"),
            Self::Resume(reason) => write!(f, "h-{}", word_for(*reason)),
            Self::Legs => f.write_str(LEGS),
            Self::Budget => f.write_str(BUDGET),
        }
    }
}

fn word_for(reason: HandoffReason) -> &'static str {
    match reason {
        HandoffReason::Deadline => "deadline",
        HandoffReason::Signal => "signal",
        HandoffReason::LlmDisabled => "llm",
        HandoffReason::Quota => "quota",
        HandoffReason::Question => "question",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;

    #[test]
    fn a_word_is_read_as_it_was_written() {
        let question = QuestionMark {
            code: "0123abcd".to_owned(),
            until: Timestamp::from_millis(1_790_000_000_123),
            state: "ask: who".to_owned(),
        };
        let waits = HandoffReason::ALL.map(RunWait::Resume).into_iter().chain([
            RunWait::Answer(question),
            RunWait::Legs,
            RunWait::Budget,
        ]);
        for wait in waits {
            let word = wait.to_string();
            assert_eq!(RunWait::parse(&word), Some(wait));
            assert!(!word.contains([':', '@', '#', ')', '(', ' ']), "{word}");
        }
        assert_eq!(RunWait::parse("h-x"), None);
        assert_eq!(RunWait::parse("q-0123abcd"), None);
    }
}
