//! `convergence`: a number that should move towards a target, compared with the same state's last one.

use serde_json::{Value, json};

use crate::base::decode::{choice, record};
use crate::base::template::Template;

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::number::{number, number_in};
use super::subject::{excerpt, printed};
use super::verdict::Verdict;

choice! {
    /// Which way is better.
    pub enum Direction { Minimize = "minimize", Maximize = "maximize" }
}

record! {
    /// Tells whether a measured number reached its target, moved towards it, or stalled.
    pub struct Convergence {
        /// The number to reach.
        target or "toward": Field<f64>,
        /// How far from the target is near enough.
        tolerance: Field<f64> = Field::Literal(0.0),
        /// Which way is better.
        direction: Direction = Direction::Minimize,
        /// The number to compare with, instead of the one the engine remembers for this state.
        previous: Option<Template>,
        /// The text to judge instead of what the action printed.
        source: Option<Template>,
    }
}

impl Evaluator for Convergence {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let text = match &self.source {
            Some(source) => source.render(judging.scope)?.into(),
            None => printed(judging.seen),
        };
        let Some(current) = number_in(&text) else {
            return Ok(Judged::error(format!("`{}` is not a number", excerpt(&text))));
        };
        let target = self.target.resolve(judging.scope)?;
        let tolerance = self.tolerance.resolve(judging.scope)?;
        let previous = match &self.previous {
            // There is nothing to compare with on the first visit, and a template for it has no value yet.
            Some(previous) => previous.render(judging.scope).ok().as_deref().and_then(number_in),
            None => judging.memory.and_then(Value::as_f64),
        };
        let delta = previous.map(|previous| current - previous);
        let improved = match (self.direction, delta) {
            (_, None) => true,
            (Direction::Minimize, Some(delta)) => delta < 0.0,
            (Direction::Maximize, Some(delta)) => delta > 0.0,
        };
        let word = match ((current - target).abs() <= tolerance, improved) {
            (true, _) => "target",
            (false, true) => "progress",
            (false, false) => "stall",
        };
        let details = json!({
            "current": number(current),
            "previous": previous.map(number),
            "target": number(target),
            "delta": delta.map(number),
        });
        let memory = current.is_finite().then(|| json!(current));
        Ok(Judged::new(Verdict::new(word), details).remembering(memory))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["target", "progress", "stall"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["current", "previous", "target", "delta"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let fields = [("target", self.target.as_template()), ("tolerance", self.tolerance.as_template())];
        let texts = [("source", self.source.as_ref())];
        // `previous` is left out: without a value it means that there is none.
        fields.into_iter().chain(texts).filter_map(|(key, template)| Some((key, template?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::judge_with;

    fn check(spec: &str, last: Option<f64>, out: &str, expected: &str) {
        assert_eq!(
            judge_with(&format!("{{type: convergence, {spec}}}"), last, out, 0).0,
            expected,
            "{spec} {out}"
        );
    }

    #[test]
    fn it_compares_with_the_states_last_number() {
        check("target: 0", None, "9", "progress");
        check("target: 0", Some(9.0), "5", "progress");
        check("target: 0", Some(5.0), "5", "stall");
        check("target: 0", Some(5.0), "7", "stall");
        check("target: 0", None, "0", "target");
        check("toward: 0, tolerance: 2", Some(5.0), "2", "target");
        check("target: 10, direction: maximize", Some(5.0), "7", "progress");
        check("target: 0", None, "oops", "error");
    }

    #[test]
    fn previous_replaces_the_memory_and_may_be_absent() {
        check("target: 0, previous: '${context.n}'", Some(1.0), "4", "progress");
        check("target: 0, previous: '${context.n}'", None, "5", "stall");
        check("target: 0, previous: '${prev.output}'", None, "5", "progress");
    }

    #[test]
    fn details_are_fixed() {
        let (_, details) = judge_with("{type: convergence, target: 0}", Some(5.0), "3", 0);
        assert_eq!(details, json!({"current": 3, "previous": 5, "target": 0, "delta": -2}));
    }
}
