//! What becomes of a run that waits, when nobody is there but a clock: it goes on, takes the verdict of a question that nobody
//! answered, ends, or waits on.

use super::run_wait::RunWait;
use crate::base::time::Timestamp;
use crate::engine::event::HandoffReason;

/// What is known beside the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingFacts {
    /// Whether its pull request is closed.
    pub is_closed: bool,
    /// In how many runs of workflows, or attempts of one, it was until now.
    pub links: u32,
    /// How many may continue the first one.
    pub max_chain: u32,
    /// The time.
    pub now: Timestamp,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// It waits on: for a person, or for somebody with an agent.
    Wait,
    /// Another run continues it.
    GoOn,
    /// The jobs of its run that failed run again.
    Repeat,
    /// Another run continues it by the verdict `timeout`, as nobody answered in time.
    TakeTimeout,
    /// It was continued as often as may be.
    EndChain,
    /// There is nothing to decide any more.
    Cancel,
}

/// Decides what becomes of a run that waits.
pub fn next_step(wait: &RunWait, facts: WaitingFacts) -> NextStep {
    if facts.is_closed {
        return NextStep::Cancel;
    }
    match wait {
        RunWait::Answer(question) if facts.now >= question.until => NextStep::TakeTimeout,
        // A budget is raised by people: another run would only spend more.
        RunWait::Answer(_) | RunWait::Budget => NextStep::Wait,
        RunWait::Resume(HandoffReason::Deadline | HandoffReason::Quota) | RunWait::Legs
            // The first run is a link, too, and continues nothing.
            if facts.links > facts.max_chain =>
        {
            NextStep::EndChain
        }
        RunWait::Legs => NextStep::Repeat,
        RunWait::Resume(HandoffReason::Deadline | HandoffReason::Quota) => NextStep::GoOn,
        // Time mends none of these: somebody has stopped the run, or has to bring an agent or an answer.
        RunWait::Resume(HandoffReason::Signal | HandoffReason::LlmDisabled | HandoffReason::Question) => {
            NextStep::Wait
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::asked::QuestionMark;

    #[test]
    fn a_run_goes_on_until_a_person_is_needed_or_the_chain_is_over() {
        let now = Timestamp::from_millis(1000);
        let facts = WaitingFacts { is_closed: false, links: 1, max_chain: 2, now };
        let question = |until: i64| {
            let until = Timestamp::from_millis(until);
            RunWait::Answer(QuestionMark { code: "0123abcd".to_owned(), until, state: "ask".to_owned() })
        };
        let resume = RunWait::Resume;
        for (wait, links, expected) in [
            (resume(HandoffReason::Deadline), 1, NextStep::GoOn),
            (resume(HandoffReason::Quota), 2, NextStep::GoOn),
            (resume(HandoffReason::Deadline), 3, NextStep::EndChain),
            (RunWait::Legs, 2, NextStep::Repeat),
            (RunWait::Legs, 3, NextStep::EndChain),
            (resume(HandoffReason::Signal), 1, NextStep::Wait),
            (resume(HandoffReason::LlmDisabled), 1, NextStep::Wait),
            (question(1001), 1, NextStep::Wait),
            (question(1000), 9, NextStep::TakeTimeout),
        ] {
            assert_eq!(next_step(&wait, WaitingFacts { links, ..facts }), expected, "{wait}");
            let closed = WaitingFacts { is_closed: true, links, ..facts };
            assert_eq!(next_step(&wait, closed), NextStep::Cancel, "{wait}");
        }
    }
}
