//! `criteria`: whether the work that a state file is about is done, goes on, or is stuck.

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::number_bounds::VisitCount;
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::{RenderError, Room, Scope, Template};
use crate::criteria::decision::STUCK_AFTER;
use crate::criteria::edit::NewCriterion;
use crate::criteria::{CriteriaState, Progress, advance, decide};

record! {
    /// Reads the criteria of a piece of work from its state file, or keeps them itself from round to round.
    pub struct CriteriaEvaluator {
        /// The file, relative to the directory of the run.
        source: Template = Template::literal(".loop/state.json"),
        /// How many rounds in a row at the same criterion are enough.
        stuck_after: Field<VisitCount> = Field::Literal(VisitCount::FIVE),
        /// For criteria that are kept here: what is met, each by a verdict; `yes` is met.
        results: IndexMap<String, Template> = IndexMap::new(),
        /// For criteria that are kept here: what is to be done.
        spec: Option<Template>,
        /// For criteria that are kept here: the steps of the work, one a round.
        steps: Vec<Template> = Vec::new(),
        /// For criteria that are kept here: what became of the work of the round, by its verdict or its exit code; `yes`
        /// and `0` complete a step. Without it, every round does.
        work: Option<Template>,
        /// For criteria that are kept here: the text in which a line `EXIT_SIGNAL: true` says that the work is done.
        /// Without it, criteria that are met say so.
        signal: Option<Template>,
    }
}

/// The line by which whoever works says that the work is done.
const SIGNAL: &str = "EXIT_SIGNAL: true";

impl CriteriaEvaluator {
    /// Tells whether the criteria are kept here, and not in a file.
    pub fn is_own(&self) -> bool {
        !self.results.is_empty()
    }

    /// Returns the state of criteria that are kept here: as it was after the last round, or as the work begins.
    pub fn state(&self, memory: Option<&Value>, scope: &dyn Scope) -> Result<CriteriaState, RenderError> {
        if let Some(Value::Object(state)) = memory {
            return Ok(CriteriaState::of(state));
        }
        let mut room = Room::new();
        self.beginning(|text| text.render_within(&mut room, scope))
    }

    /// Returns the state of criteria that are kept here as the work begins.
    pub fn beginning<E>(
        &self,
        mut render: impl FnMut(&Template) -> Result<String, E>,
    ) -> Result<CriteriaState, E> {
        let criteria: Vec<_> =
            self.results.keys().map(|name| NewCriterion { name: name.clone(), check: None }).collect();
        let steps: Vec<_> = self.steps.iter().map(&mut render).collect::<Result<_, _>>()?;
        let spec = self.spec.as_ref().map(&mut render).transpose()?;
        Ok(CriteriaState::begin(&spec.unwrap_or_default(), &criteria, &steps))
    }

    /// Judges a round of criteria that are kept here.
    fn round(&self, judging: Judging<'_>, stuck_after: u32) -> Result<Judged, FieldError> {
        let mut results = Vec::new();
        for (name, verdict) in &self.results {
            // Anything else, an error as well, leaves the criterion unmet.
            results.push((name.clone(), verdict.render(judging.scope)? == "yes"));
        }
        let mut state = advance(self.state(judging.memory, judging.scope)?, &results);
        let has_worked = match &self.work {
            Some(work) => matches!(work.render(judging.scope)?.as_str(), "yes" | "0"),
            None => true,
        };
        if let Some(step) = state.next_step().filter(|_| has_worked).map(std::borrow::Cow::into_owned) {
            state.step_done(&step);
        }
        let is_signalled = match &self.signal {
            Some(text) => text.render(judging.scope)?.lines().any(|line| line.trim() == SIGNAL),
            None => state.unmet().next().is_none(),
        };
        state.signal(is_signalled);
        let judged = stands(&state, stuck_after);
        // After the decision, because work that has ended is judged as inactive.
        if judged.verdict.as_str() == "done" {
            state.end("completed");
        }
        let document = state.to_value();
        let mut judged = judged.remembering(Some(document.clone()));
        judged.details.insert("state".to_owned(), document);
        Ok(judged)
    }
}

/// Says how the work stands.
fn stands(state: &CriteriaState, stuck_after: u32) -> Judged {
    let decision = decide(state, stuck_after);
    let verdict = Verdict::new(match decision.progress {
        Progress::Inactive => "inactive",
        Progress::Done => "done",
        Progress::Stuck => "stuck",
        Progress::Continue => "continue",
    });
    let details =
        json!({ "unmet": decision.unmet, "next_step": state.next_step(), "reason": decision.reason });
    Judged::new(verdict, details)
}

impl Evaluator for CriteriaEvaluator {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let stuck_after = self.stuck_after.resolve(judging.scope)?.get();
        let stuck_after = u32::try_from(stuck_after).unwrap_or(STUCK_AFTER);
        if self.is_own() {
            return self.round(judging, stuck_after);
        }
        let bytes = match judging.file {
            Some(Ok(Some(bytes))) => bytes,
            // Not an error: before any work has begun, there is no file.
            Some(Ok(None)) => {
                let details =
                    json!({ "unmet": [], "next_step": null, "reason": "cannot find the state file" });
                return Ok(Judged::new(Verdict::new("inactive"), details));
            }
            Some(Err(why)) => return Ok(Judged::error(format!("the state file cannot be read: {why}"))),
            None => return Ok(Judged::error("nobody read the state file")),
        };
        let state = match CriteriaState::read(bytes) {
            Ok(state) => state,
            Err(invalid) => return Ok(Judged::error(format!("invalid state file: {invalid}"))),
        };
        Ok(stands(&state, stuck_after))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        let words: &[&str] = &["done", "continue", "stuck", "inactive"];
        // Criteria that are kept here exist from the first round on, so they are never inactive.
        Verdicts::only(&words[..if self.is_own() { 3 } else { 4 }])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["unmet", "next_step", "reason", "state"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let stuck_after = self.stuck_after.as_template().map(|count| ("stuck_after", count));
        let of_work = self.spec.iter().map(|spec| ("spec", spec));
        let of_work = of_work.chain(self.steps.iter().map(|step| ("steps", step)));
        let of_work = of_work.chain(self.results.values().map(|result| ("results", result)));
        let of_work = of_work.chain(self.work.iter().map(|work| ("work", work)));
        let of_work = of_work.chain(self.signal.iter().map(|signal| ("signal", signal)));
        std::iter::once(("source", &self.source)).chain(stuck_after).chain(of_work).collect()
    }

    fn file(&self) -> Option<&Template> {
        (!self.is_own()).then_some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::testing::TestVisits;
    use super::*;
    use crate::base::explanation::Explanation;

    /// Judges a file, with its details; `spec` are keys besides the type.
    fn judged(spec: &str, file: &str) -> (String, Value) {
        let mut visits = TestVisits::of(&format!("{{type: criteria{spec}}}"));
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
        let mut visits = TestVisits::of("{type: criteria, source: x.json}");
        assert_eq!(visits.judge("", 0).verdict.as_str(), "error");
        visits.file = Some(Err(Explanation::new("a directory")));
        assert_eq!(visits.judge("", 0).details["error"], "the state file cannot be read: a directory");
        visits.file = Some(Ok(None));
        assert_eq!(visits.judge("", 0).verdict.as_str(), "inactive");
    }

    #[test]
    fn criteria_that_are_kept_here_remember_their_rounds() {
        let mut visits = TestVisits::of(
            "{type: criteria, spec: s, results: {a: '${context.word}', b: '${context.n}'}, steps: [one], stuck_after: 2}",
        );
        assert!(visits.file.is_none());
        let verdicts = [(); 4].map(|()| visits.judge("", 0));
        assert_eq!(
            verdicts.each_ref().map(|judged| judged.verdict.as_str()),
            ["continue", "continue", "stuck", "stuck"]
        );
        let details = &verdicts[0].details;
        assert_eq!((&details["unmet"], &details["next_step"]), (&json!(["a", "b"]), &json!(null)));
        assert_eq!(details["state"]["completedSteps"], json!(["one"]));
        assert_eq!(
            verdicts[3].details["state"]["circuitBreaker"],
            json!({"stuckCount": 3, "lastUnmet": "a"})
        );
    }

    #[test]
    fn a_step_is_done_when_the_work_of_its_round_passed() {
        for (work, is_done) in [
            ("", true),
            (", work: 'yes'", true),
            (", work: '0'", true),
            (", work: 'no'", false),
            (", work: '1'", false),
            (", work: ''", false),
        ] {
            let mut visits =
                TestVisits::of(&format!("{{type: criteria, results: {{a: 'no'}}, steps: [one]{work}}}"));
            let judged = visits.judge("", 0);
            let left = if is_done { json!([]) } else { json!(["one"]) };
            assert_eq!(judged.details["state"]["remainingSteps"], left, "{work}");
        }
    }

    #[test]
    fn the_signal_is_a_line_of_its_own() {
        for (signal, expected) in [
            ("", "done"),
            (", signal: \"well\\n EXIT_SIGNAL: true\\nbye\"", "done"),
            (", signal: 'no EXIT_SIGNAL: true'", "continue"),
            (", signal: ''", "continue"),
        ] {
            let mut visits = TestVisits::of(&format!("{{type: criteria, results: {{a: 'yes'}}{signal}}}"));
            let judged = visits.judge("", 0);
            assert_eq!(judged.verdict.as_str(), expected, "{signal}");
            let is_ended = judged.details["state"]["status"] == "completed";
            assert_eq!(is_ended, expected == "done");
        }
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
