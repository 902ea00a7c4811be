//! The numbers by which people name the steps of a run, in anchors, flags and refs: `12`, and `2.1` for the first step of
//! the sub-loop that step 2 ran.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::engine::event::{Event, Stamped};
use crate::engine::loop_stack::LoopStack;

/// The number of a step: those of the steps that ran the sub-loops on the way to it, the outermost first, and its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StepNumber {
    around: Vec<u32>,
    own: u32,
}

impl StepNumber {
    /// Returns the numbers of the steps on the way to it, the outermost first, and its own.
    pub fn path(&self) -> impl Iterator<Item = u32> {
        self.around.iter().copied().chain([self.own])
    }

    /// Returns the number of a step of the run itself.
    pub fn of_run(step: u32) -> Self {
        Self { around: Vec::new(), own: step }
    }

    /// Returns the number of a step of a sub-loop, which these steps ran, the outermost first.
    pub fn inside(around: &[u32], step: u32) -> Self {
        Self { around: around.to_vec(), own: step }
    }

    /// Returns the number of a step by those of the steps on the way to it, the outermost first, and its own.
    pub fn of(mut way: Vec<u32>) -> Option<Self> {
        let own = way.pop()?;
        Some(Self { around: way, own })
    }

    /// Returns the number of the step in its own loop.
    pub fn own(&self) -> u32 {
        self.own
    }

    /// Returns how deep in sub-loops the step is, 0 for the run itself.
    pub fn depth(&self) -> usize {
        self.around.len()
    }

    /// Returns the number of the step of the run itself that led here: this one, if it is of the run itself.
    pub fn outermost(&self) -> u32 {
        self.around.first().copied().unwrap_or(self.own)
    }
}

/// In the order in which the steps were entered: the steps of a sub-loop follow the one that ran it.
impl Ord for StepNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        self.path().cmp(other.path())
    }
}

impl PartialOrd for StepNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for StepNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.around.iter().try_for_each(|step| write!(f, "{step}."))?;
        write!(f, "{}", self.own)
    }
}

/// A text that is not a number of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the number of a step is `12`, or `2.1` for step 1 of the sub-loop that step 2 ran")]
pub struct NoStepNumber;

impl FromStr for StepNumber {
    type Err = NoStepNumber;

    fn from_str(text: &str) -> Result<Self, NoStepNumber> {
        let number = |part: &str| {
            // Anchors and refs have one name for each step, and `02` would be another one.
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit()) && !part.starts_with('0');
            is_number.then(|| part.parse().ok()).flatten().ok_or(NoStepNumber)
        };
        let mut around = text.split('.').map(number).collect::<Result<Vec<u32>, _>>()?;
        let own = around.pop().ok_or(NoStepNumber)?;
        Ok(Self { around, own })
    }
}

/// Numbers the steps of a run while its events pass.
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    entered: LoopStack<u32>,
}

impl Numbering {
    /// Takes the next event; returns the step that it belongs to, if one was entered.
    pub fn event(&mut self, stamped: &Stamped) -> Option<StepNumber> {
        if let Event::StateEnter { step, .. } = &stamped.event {
            // A journal that somebody changed may claim any depth.
            if !self.entered.reaches(stamped.depth) {
                return None;
            }
            self.entered.begin(stamped.depth, *step);
        }
        let (own, around) = self.entered.path(stamped.depth).split_last()?;
        Some(StepNumber { around: around.to_vec(), own: *own })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::name::StateName;
    use crate::base::time::Timestamp;

    fn entered(depth: u32, step: u32) -> Stamped {
        let state = StateName::parse("check").unwrap();
        let enter = Event::StateEnter { state, iteration: 1, step, attempt: 1 };
        Stamped { depth, ..Stamped::new(Timestamp::from_millis(0), 1, enter) }
    }

    fn numbered(events: &[(u32, u32)]) -> Vec<String> {
        let mut numbering = Numbering::default();
        let number = |(depth, step): &(u32, u32)| numbering.event(&entered(*depth, *step));
        events.iter().map(number).map(|number| number.map_or_else(String::new, |is| is.to_string())).collect()
    }

    #[test]
    fn the_steps_of_a_sub_loop_have_the_number_of_its_step_in_front() {
        let events = [(0, 1), (0, 2), (1, 1), (2, 1), (1, 2), (0, 3), (1, 1)];
        assert_eq!(numbered(&events), ["1", "2", "2.1", "2.1.1", "2.2", "3", "3.1"]);
        assert_eq!(numbered(&[(1, 1), (0, 1)]), ["", "1"]);
    }

    #[test]
    fn the_steps_of_a_sub_loop_come_after_the_one_that_ran_it() {
        let mut numbers =
            ["10", "2.1", "2", "3", "2.1.1", "2.10", "2.2"].map(|text| text.parse::<StepNumber>().unwrap());
        numbers.sort();
        assert_eq!(numbers.map(|number| number.to_string()), ["2", "2.1", "2.1.1", "2.2", "2.10", "3", "10"]);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "0", "01", "1.", ".1", "1..2", "-1", "+1", "x", "1.x", "99999999999"] {
            assert_eq!(text.parse::<StepNumber>(), Err(NoStepNumber), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_number_is_read_as_it_was_written(steps in prop::collection::vec(1_u32.., 1..5)) {
            let text = steps.iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
            let number: StepNumber = text.parse().unwrap();
            prop_assert_eq!(number.to_string(), text);
            prop_assert_eq!(number.depth() + 1, steps.len());
            prop_assert_eq!(number.own(), *steps.last().unwrap());
        }
    }
}
