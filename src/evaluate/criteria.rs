//! `criteria`: whether the work that a state file is about is done, goes on, or is stuck.

use serde_json::json;

use crate::base::decode::record;
use crate::base::template::Template;
use crate::criteria::decision::STUCK_AFTER;
use crate::criteria::{Standing, State, decide};

use super::field::{Field, FieldError};
use super::verdict::Verdict;
use super::{Evaluator, Judged, Judging, Verdicts, at_least_one};

record! {
    /// Reads the criteria of a piece of work from its state file.
    pub struct Criteria {
        /// The file, relative to the directory of the run.
        source: Template = Template::literal(".loop/state.json"),
        /// How many rounds in a row at the same criterion are enough.
        stuck_after: Field<i32> = Field::Literal(5),
    }
}

impl Evaluator for Criteria {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let stuck_after = self.stuck_after.resolve(judging.scope)?.max(1);
        let bytes = match judging.file {
            Some(Ok(Some(bytes))) => bytes,
            Some(Ok(None)) => {
                let details = json!({ "unmet": [], "next_step": null, "reason": "there is no state file" });
                return Ok(Judged::new(Verdict::new("inactive"), details));
            }
            Some(Err(why)) => return Ok(Judged::error(format!("the state file cannot be read: {why}"))),
            None => return Ok(Judged::error("nobody read the state file")),
        };
        let state = match State::read(bytes) {
            Ok(state) => state,
            Err(invalid) => return Ok(Judged::error(format!("invalid state file: {invalid}"))),
        };
        let decision = decide(&state, u32::try_from(stuck_after).unwrap_or(STUCK_AFTER));
        let verdict = Verdict::new(match decision.standing {
            Standing::Inactive => "inactive",
            Standing::Done => "done",
            Standing::Stuck => "stuck",
            Standing::Continue => "continue",
        });
        let details =
            json!({ "unmet": decision.unmet, "next_step": state.next_step(), "reason": decision.reason });
        Ok(Judged::new(verdict, details))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["done", "continue", "stuck", "inactive"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let stuck_after = self.stuck_after.as_template().map(|count| ("stuck_after", count));
        std::iter::once(("source", &self.source)).chain(stuck_after).collect()
    }

    fn oddities(&self) -> Vec<(&'static str, String)> {
        at_least_one("stuck_after", &self.stuck_after)
    }

    fn file(&self) -> Option<&Template> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::testing::Visits;
    use super::*;

    /// Judges a file, with its details; `spec` are keys besides the type.
    fn judged(spec: &str, file: &str) -> (String, Value) {
        let mut visits = Visits::of(&format!("{{type: criteria{spec}}}"));
        visits.file = Some(Ok(Some(file.as_bytes().to_vec())));
        let judged = visits.judge("", 0);
        (judged.verdict.to_string(), Value::Object(judged.details))
    }

    #[test]
    fn the_verdict_is_how_the_work_stands() {
        for (spec, file, expected) in [
            ("", r#"{"criteriaStatus": {"a": true}, "exit_signal": true}"#, "done"),
            ("", r#"{"criteriaStatus": {"a": true}}"#, "continue"),
            ("", r#"{"criteriaStatus": {"a": false}, "exit_signal": true}"#, "continue"),
            ("", r#"{"circuitBreaker": {"stuckCount": 5}}"#, "stuck"),
            ("", r#"{"circuitBreaker": {"stuckCount": 4}}"#, "continue"),
            (", stuck_after: 4", r#"{"circuitBreaker": {"stuckCount": 4}}"#, "stuck"),
            (", stuck_after: '${context.n}'", r#"{"circuitBreaker": {"stuckCount": 4}}"#, "continue"),
            ("", r#"{"status": "completed"}"#, "inactive"),
            ("", r#"{"status": "cancelled", "circuitBreaker": {"stuckCount": 9}}"#, "inactive"),
            ("", "[]", "error"),
            ("", "", "error"),
        ] {
            assert_eq!(judged(spec, file).0, expected, "{spec} {file}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_no_file_is_no_work() {
        let mut visits = Visits::of("{type: criteria, source: x.json}");
        assert_eq!(visits.judge("", 0).verdict.as_str(), "error");
        visits.file = Some(Err("a directory".to_owned()));
        assert_eq!(visits.judge("", 0).details["error"], "the state file cannot be read: a directory");
        visits.file = Some(Ok(None));
        assert_eq!(visits.judge("", 0).verdict.as_str(), "inactive");
    }

    #[test]
    fn details_are_fixed() {
        let file = r#"{"criteriaStatus": {"b": false, "a": 1}, "remainingSteps": ["one", "two"]}"#;
        let expected = json!({"unmet": ["b", "a"], "next_step": "one", "reason": "unmet criteria: b, a"});
        assert_eq!(judged("", file).1, expected);
        let done = r#"{"criteriaStatus": {"a": true}, "exit_signal": true}"#;
        assert_eq!(judged("", done).1, json!({"unmet": [], "next_step": null, "reason": null}));
    }
}
