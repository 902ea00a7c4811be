//! Counts the calls of agents that came to no usable answer, by who was asked for what, until one is answered.

use std::collections::BTreeMap;

use super::event::CallFailed;
use crate::machine::AgentCall;

/// So many calls in a row that fail for the same cause are enough.
// Without a bound, a service that is down was asked for each task and each of its parts, and calls are paid for.
const ENOUGH: u32 = 3;

/// The cause of an answer that does not have the form that was asked for.
pub(super) const FORM: &str = "form";

/// The calls that failed since they were last answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Calls(BTreeMap<(String, String), Failures>);

/// Calls of one kind that failed in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failures {
    cause: String,
    error: String,
    /// How many of them failed for this cause.
    in_a_row: u32,
    /// How many failed, whatever the cause.
    in_all: u32,
}

impl Calls {
    /// Counts a call that failed.
    pub(super) fn failed(&mut self, failed: &CallFailed) {
        let CallFailed { role, phase, cause, error, in_a_row, .. } = failed;
        let before = self.0.get(&(role.clone(), phase.clone())).map_or(0, |failures| failures.in_all);
        let (cause, error, in_all) = (cause.clone(), error.clone(), before.saturating_add(1));
        let failures = Failures { cause, error, in_a_row: *in_a_row, in_all };
        self.0.insert((role.clone(), phase.clone()), failures);
    }

    /// Forgets the failures of a call that was answered.
    pub(super) fn answered(&mut self, call: AgentCall<'_>) {
        self.0.remove(&key(call));
    }

    /// Returns how often in a row a call will have failed for a cause, with the failure that is being counted.
    pub(super) fn in_a_row(&self, call: AgentCall<'_>, cause: &str) -> u32 {
        let same = self.0.get(&key(call)).filter(|failures| failures.cause == cause);
        same.map_or(1, |failures| failures.in_a_row.saturating_add(1))
    }

    /// Returns what was wrong with the form of the last answer, if that is why the call is made again.
    pub(super) fn refused_form(&self, call: AgentCall<'_>) -> Option<&str> {
        let last = self.0.get(&key(call)).filter(|failures| failures.cause == FORM);
        last.map(|failures| failures.error.as_str())
    }

    /// Says why a call is not made again, if it is not: it failed too often for the same cause, or, for whatever causes,
    /// more often than it is repeated.
    pub(super) fn given_up(&self, call: AgentCall<'_>, repeated: Option<u32>) -> Option<String> {
        let Failures { error, in_a_row, in_all, .. } = self.0.get(&key(call))?;
        let role = call.role;
        if *in_a_row >= ENOUGH {
            return Some(format!("the {role} gave no usable answer {in_a_row} times in a row: {error}"));
        }
        // At least as many as for one cause, even where a state is retried once.
        let most = repeated?.saturating_add(1).max(ENOUGH);
        (*in_all >= most)
            .then(|| format!("the {role} gave no usable answer in {in_all} calls, the last time: {error}"))
    }
}

fn key(call: AgentCall<'_>) -> (String, String) {
    (call.role.to_owned(), call.phase.word().to_owned())
}

/// Returns what stays the same when a message is repeated: its first words, without those that hold a number, such as
/// times, ids and ports.
pub(super) fn stable(message: &str) -> String {
    const WORDS: usize = 12;
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let words = line.split_whitespace().take(WORDS);
    // Ids, times and ports differ from call to call, and would make each failure a new cause.
    let words = words.map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "#" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::StateName;
    use crate::definition::schema::Phase;

    const TEST: AgentCall<'static> = AgentCall { role: "tester", phase: Phase::Test };

    fn fail(calls: &mut Calls, cause: &str) {
        let in_a_row = calls.in_a_row(TEST, cause);
        calls.failed(&CallFailed {
            state: StateName::parse("test").unwrap(),
            role: "tester".to_owned(),
            phase: "test".to_owned(),
            cause: cause.to_owned(),
            error: format!("{cause} happened"),
            in_a_row,
        });
    }

    #[test]
    fn three_in_a_row_for_the_same_cause_are_enough() {
        let mut calls = Calls::default();
        for cause in ["a", "a", "b", "b"] {
            fail(&mut calls, cause);
            assert_eq!(calls.given_up(TEST, Some(9)), None);
        }
        fail(&mut calls, "b");
        let why = calls.given_up(TEST, Some(9)).unwrap();
        assert_eq!(why, "the tester gave no usable answer 3 times in a row: b happened");
        assert_eq!(calls.given_up(AgentCall { phase: Phase::Fix, ..TEST }, Some(9)), None);
        calls.answered(TEST);
        assert_eq!((calls.given_up(TEST, Some(0)), calls.in_a_row(TEST, "b")), (None, 1));
    }

    #[test]
    fn causes_that_alternate_are_bounded_by_the_repetitions_but_never_below_three() {
        for (repeated, most) in [(Some(0), 3), (Some(1), 3), (Some(3), 4), (None, 50)] {
            let mut calls = Calls::default();
            let failed = (1..=50).find(|n| {
                fail(&mut calls, if n % 2 == 0 { "a" } else { "b" });
                calls.given_up(TEST, repeated).is_some()
            });
            assert_eq!(failed.unwrap_or(50), most, "{repeated:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_form_is_known_until_something_else_is() {
        let mut calls = Calls::default();
        fail(&mut calls, FORM);
        assert_eq!(calls.refused_form(TEST), Some("form happened"));
        fail(&mut calls, "a");
        assert_eq!(calls.refused_form(TEST), None);
    }

    #[test]
    fn times_and_ids_are_no_part_of_a_cause() {
        for (one, other) in [
            ("claude: it failed: request req_011A failed", "claude: it failed: request req_99Z failed"),
            ("at 10:15:00 the service\nsaid x", "at 11:00:59 the service\nsaid y"),
            ("it exited with 1", "it exited with 2"),
            ("\n  port 4711 refused", "port 4712 refused"),
        ] {
            assert_eq!(stable(one), stable(other));
        }
        assert_ne!(stable("it exited with 1"), stable("it printed nothing"));
        assert_eq!(stable(""), "");
    }
}
