//! Edits the state for people and agents, who would otherwise write JSON: begins work, sets criteria, ends work.

use serde_json::{Map, Value, json};

use super::advance::object;
use super::state::State;

/// A criterion of work that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Criterion {
    /// Its name.
    pub name: String,
    /// The command that tells whether it is met; without one, somebody says it.
    pub check: Option<String>,
}

impl State {
    /// Returns the state of work that begins: nothing is met, and nothing is done.
    pub fn begin(spec: &str, criteria: &[Criterion], steps: &[String]) -> Self {
        let names: Vec<_> = criteria.iter().map(|criterion| criterion.name.clone()).collect();
        let status: Map<_, _> = names.iter().map(|name| (name.clone(), json!(false))).collect();
        let check = |criterion: &Criterion| Some((criterion.name.clone(), json!(criterion.check.as_ref()?)));
        let checks: Map<_, _> = criteria.iter().filter_map(check).collect();
        let mut map = Map::new();
        map.extend([
            ("spec".to_owned(), json!(spec)),
            ("criteria".to_owned(), json!(names)),
            ("criteriaStatus".to_owned(), Value::Object(status)),
            ("checks".to_owned(), Value::Object(checks)),
            ("exit_signal".to_owned(), json!(false)),
            ("steps".to_owned(), json!(steps)),
            ("completedSteps".to_owned(), json!([])),
            ("remainingSteps".to_owned(), json!(steps)),
            ("iteration".to_owned(), json!(1)),
            ("status".to_owned(), json!("in_progress")),
            ("circuitBreaker".to_owned(), json!({"stuckCount": 0, "lastUnmet": ""})),
        ]);
        Self(map)
    }

    /// Returns the criteria that a command tells about, with the command.
    pub fn checks(&self) -> impl Iterator<Item = (&str, &str)> {
        let checks = self.0.get("checks").and_then(Value::as_object).into_iter().flatten();
        checks.filter_map(|(name, check)| Some((name.as_str(), check.as_str()?)))
    }

    /// Says whether a criterion is met; tells whether there is such a criterion.
    pub fn set(&mut self, name: &str, is_met: bool) -> bool {
        let status = object(&mut self.0, "criteriaStatus");
        status.get_mut(name).map(|value| *value = json!(is_met)).is_some()
    }

    /// Records whether the agent believes that the work is done.
    pub fn signal(&mut self, is_done: bool) {
        self.0.insert("exit_signal".to_owned(), json!(is_done));
    }

    /// Ends the work, with `completed` or `cancelled`. What was done stays.
    pub fn end(&mut self, status: &str) {
        self.0.insert("status".to_owned(), json!(status));
    }

    /// Moves a step to those that are done; tells whether it was left to do.
    pub fn step_done(&mut self, step: &str) -> bool {
        let Some(left) = self.0.get_mut("remainingSteps").and_then(Value::as_array_mut) else { return false };
        let Some(at) = left.iter().position(|left| left == step) else { return false };
        let step = left.remove(at);
        match self.0.get_mut("completedSteps").and_then(Value::as_array_mut) {
            Some(done) => done.push(step),
            None => drop(self.0.insert("completedSteps".to_owned(), json!([step]))),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::{Decision, Progress};

    fn state() -> State {
        let criterion = |name: &str, check: Option<&str>| Criterion {
            name: name.to_owned(),
            check: check.map(str::to_owned),
        };
        let steps = ["one".to_owned(), "two".to_owned()];
        State::begin("a spec", &[criterion("b", Some("true")), criterion("a", None)], &steps)
    }

    fn progress(state: &State) -> Progress {
        Decision::about(Some(state.text().as_bytes())).progress
    }

    #[test]
    fn work_begins_with_nothing_met_and_ends_when_all_is() {
        let mut state = state();
        assert_eq!(state.unmet().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(state.checks().collect::<Vec<_>>(), [("b", "true")]);
        assert!(state.set("a", true) && state.set("b", true) && !state.set("c", true));
        assert_eq!(progress(&state), Progress::Continue);
        state.signal(true);
        assert_eq!(progress(&state), Progress::Done);
        state.end("completed");
        assert_eq!(progress(&state), Progress::Inactive);
    }

    #[test]
    fn a_step_is_done_once() {
        let mut state = state();
        assert!(state.step_done("two") && !state.step_done("two") && !state.step_done("three"));
        assert_eq!(state.document()["completedSteps"], json!(["two"]));
        assert_eq!(state.next_step().as_deref(), Some("one"));
        let mut odd = State::read(br#"{"remainingSteps": ["a"], "completedSteps": 7}"#).unwrap();
        assert!(odd.step_done("a"));
        assert_eq!(odd.document()["completedSteps"], json!(["a"]));
    }
}
