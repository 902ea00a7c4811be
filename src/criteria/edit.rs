//! Edits the state for people and agents, who would otherwise write JSON: begins work, sets criteria, ends work.

use serde_json::{Map, Value, json};

use super::advance::object;
use super::exact_json::Json;
use super::state::CriteriaState;
use super::work_owner::Owner;

/// A criterion of work that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCriterion {
    /// Its name.
    pub name: String,
    /// The command that tells whether it is met; without one, somebody says it.
    pub check: Option<String>,
}

impl CriteriaState {
    /// Returns the state of work that begins: nothing is met, and nothing is done.
    pub fn begin(spec: &str, criteria: &[NewCriterion], steps: &[String]) -> Self {
        let names: Vec<_> = criteria.iter().map(|criterion| criterion.name.clone()).collect();
        let status: Map<_, _> = names.iter().map(|name| (name.clone(), json!(false))).collect();
        let check =
            |criterion: &NewCriterion| Some((criterion.name.clone(), json!(criterion.check.as_ref()?)));
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
        Self::of(&map)
    }

    /// Says whether a criterion is met; tells whether there is such a criterion.
    pub fn set(&mut self, name: &str, is_met: bool) -> bool {
        let status = object(&mut self.0, "criteriaStatus");
        status.get_mut(name).map(|value| *value = Json::Bool(is_met)).is_some()
    }

    /// Records whether the agent believes that the work is done.
    pub fn signal(&mut self, is_done: bool) {
        self.put("exit_signal", json!(is_done));
    }

    /// Says whose work it is, as long as it is somebody's: work that has ended belongs to no one.
    pub fn give_to(&mut self, owner: &Owner) {
        if !self.has_ended() {
            self.put("owner", owner.to_value());
        }
    }

    /// Ends the work, with `completed` or `cancelled`. What was done stays.
    pub fn end(&mut self, status: &str) {
        self.put("status", json!(status));
        // `swap_remove` would put the last key in its place, and keys keep their order.
        self.0.shift_remove("owner");
    }

    /// Ends the work of a run. Its commands go with it: what they were is known by its loop.
    pub fn end_with(&mut self, outcome: &str) {
        if !self.has_ended() {
            self.end("cancelled");
            self.put("outcome", json!(outcome));
        }
        self.0.shift_remove("owner");
        self.0.shift_remove("checks");
    }

    /// Takes up work that has ended, or that does not move any more: what is met stays so, and the rounds are counted
    /// anew.
    pub fn reopen(&mut self) {
        self.put("status", json!("in_progress"));
        self.0.shift_remove("outcome");
        self.signal(false);
        let breaker = object(&mut self.0, "circuitBreaker");
        breaker.insert("stuckCount".to_owned(), json!(0).into());
        breaker.insert("lastUnmet".to_owned(), json!("").into());
    }

    /// Moves a step to those that are done; tells whether it was left to do.
    pub fn step_done(&mut self, step: &str) -> bool {
        let Some(Json::List(left)) = self.0.get_mut("remainingSteps") else { return false };
        let Some(at) = left.iter().position(|left| left.as_str() == Some(step)) else { return false };
        let step = left.remove(at);
        match self.0.get_mut("completedSteps") {
            Some(Json::List(done)) => done.push(step),
            Some(_) | None => drop(self.0.insert("completedSteps".to_owned(), Json::List(vec![step]))),
        }
        true
    }

    fn put(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::{CriteriaDecision, Progress};

    fn state() -> CriteriaState {
        let criterion = |name: &str, check: Option<&str>| NewCriterion {
            name: name.to_owned(),
            check: check.map(str::to_owned),
        };
        let steps = ["one".to_owned(), "two".to_owned()];
        CriteriaState::begin("a spec", &[criterion("b", Some("true")), criterion("a", None)], &steps)
    }

    fn progress(state: &CriteriaState) -> Progress {
        CriteriaDecision::about(Some(state.text().as_bytes())).progress
    }

    #[test]
    fn work_begins_with_nothing_met_and_ends_when_all_is() {
        let mut state = state();
        assert_eq!(state.unmet().collect::<Vec<_>>(), ["b", "a"]);
        let checks: Vec<_> = state.checks().map(|check| (check.name, check.command)).collect();
        assert_eq!(checks, [("b", "true")]);
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
        assert_eq!(state.to_value()["completedSteps"], json!(["two"]));
        assert_eq!(state.next_step().as_deref(), Some("one"));
        let mut odd = CriteriaState::read(br#"{"remainingSteps": ["a"], "completedSteps": 7}"#).unwrap();
        assert!(odd.step_done("a"));
        assert_eq!(odd.to_value()["completedSteps"], json!(["a"]));
    }

    #[test]
    fn what_was_ended_is_nobodys_and_can_be_taken_up_again() {
        let mut state = state();
        let owner = Owner::Session(Some("s1".to_owned()));
        state.give_to(&owner);
        assert_eq!(state.owner(), Some(owner.clone()));
        assert!(state.set("a", true));
        state.end_with("timeout");
        let after = state.to_value();
        assert_eq!((&after["status"], &after["outcome"]), (&json!("cancelled"), &json!("timeout")));
        assert_eq!((after.get("owner"), after.get("checks")), (None, None));
        state.give_to(&owner);
        assert_eq!(state.owner(), None);
        state.end_with("success");
        assert_eq!(state.to_value()["outcome"], "timeout", "it ended once");
        state.reopen();
        let after = state.to_value();
        assert_eq!((&after["status"], after.get("outcome")), (&json!("in_progress"), None));
        assert_eq!(state.unmet().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn what_is_edited_leaves_the_numbers_of_others_as_they_were() {
        let text = r#"{"n":1e400,"criteriaStatus":{"a":1.0,"b":false},"circuitBreaker":{"x":-0.0},"remainingSteps":["s",2.50],"iteration":1}"#;
        let mut state = CriteriaState::read(text.as_bytes()).unwrap();
        assert!(state.set("b", true) && state.step_done("s"));
        let after = Json::Object(state.document().clone()).to_string();
        for kept in [r#""n":1e400"#, r#""a":1.0,"b":true"#, r#"{"x":-0.0}"#, r#""remainingSteps":[2.50]"#] {
            assert!(after.contains(kept), "no {kept} in {after}");
        }
    }
}
