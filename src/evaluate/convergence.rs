//! `convergence`: a number that should move towards a target, compared with the same state's last one.

use serde_json::{Value, json};

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::judged_text::{excerpt, printed};
use super::number::{number, number_in};
use super::number_bounds::Margin;
use super::verdict::Verdict;
use crate::base::decode::{choice, record};
use crate::base::template::Template;

choice! {
    /// Which way is better.
    pub enum Direction { Minimize = "minimize", Maximize = "maximize" }
}

record! {
    /// Tells whether a measured number reached its target, moved towards it, or stalled.
    pub struct ConvergenceEvaluator {
        /// The number to reach.
        target or "toward": Field<f64>,
        /// How far from the target is near enough.
        tolerance: Field<Margin> = Field::Literal(Margin::NONE),
        /// Which way is better.
        direction: Direction = Direction::Minimize,
        /// The number to compare with, instead of the one the engine remembers for this state.
        previous: Option<Template>,
        /// A number that must not get worse: beyond it, it is a stall whatever came before. 0 sets none.
        reference: Option<Field<f64>>,
        /// The text to judge instead of what the action printed.
        source: Option<Template>,
    }
}

impl Direction {
    /// Returns how much better a number is than another one.
    pub(super) fn gain(self, before: f64, now: f64) -> f64 {
        match self {
            Self::Minimize => before - now,
            Self::Maximize => now - before,
        }
    }
}

impl Evaluator for ConvergenceEvaluator {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let text = match &self.source {
            Some(source) => source.render(judging.scope)?.into(),
            None => printed(judging.seen),
        };
        let Some(current) = number_in(&text) else {
            return Ok(Judged::error(format!("`{}` is not a number", excerpt(&text))));
        };
        let target = self.target.resolve(judging.scope)?;
        let tolerance = self.tolerance.resolve(judging.scope)?.get();
        // JSON has no infinity.
        let memory = current.is_finite().then(|| json!(current));
        let reference = self.reference.as_ref().filter(|reference| reference.as_literal() != Some(&0.0));
        if let Some(reference) = reference.map(|reference| reference.resolve(judging.scope)) {
            let reference = match reference {
                Ok(reference) => reference,
                Err(why) => return Ok(Judged::error(format!("`reference` has no number: {why}"))),
            };
            if self.direction.gain(reference, current) < 0.0 {
                let details = json!({
                    "current": number(current),
                    "target": number(target),
                    "reference": number(reference),
                    "regressed_vs_reference": true,
                });
                return Ok(Judged::new(Verdict::new("stall"), details).remembering(memory));
            }
        }
        let remembered = judging.memory.and_then(Value::as_f64);
        // There is nothing to compare with on the first visit, and a template for it has no value yet.
        let given = self.previous.as_ref().and_then(|previous| previous.render(judging.scope).ok());
        let (previous, warning) = match given.as_deref().map(|text| (text, number_in(text))) {
            Some((_, Some(previous))) => (Some(previous), None),
            Some((text, None)) => (remembered, Some(no_previous(text, remembered))),
            None if self.previous.is_some() => (None, None),
            None => (remembered, None),
        };
        let delta = previous.map(|previous| current - previous);
        // The first number is progress: there is none that it could be worse than.
        let improved = previous.is_none_or(|previous| self.direction.gain(previous, current) > 0.0);
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
        Ok(Judged::new(Verdict::new(word), details).remembering(memory).warning(warning))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["target", "progress", "stall"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["current", "previous", "target", "delta", "reference", "regressed_vs_reference"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let fields = [("target", self.target.as_template()), ("tolerance", self.tolerance.as_template())];
        let reference = self.reference.as_ref().and_then(Field::as_template);
        let texts = [("source", self.source.as_ref()), ("reference", reference)];
        // `previous` is left out: without a value it means that there is none.
        fields.into_iter().chain(texts).filter_map(|(key, template)| Some((key, template?))).collect()
    }
}

/// Says what a number is compared with where there is no `previous`.
fn no_previous(text: &str, remembered: Option<f64>) -> String {
    let instead = match remembered {
        Some(remembered) => format!("compared with {}, the last number of this state", number(remembered)),
        None => "this counts as the first number".to_owned(),
    };
    format!("`previous` is `{}`, which is not a number: {instead}", excerpt(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{TestVisits, judge_with};

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
        check("target: 0, previous: '${prev.output}'", Some(1.0), "5", "progress");
    }

    #[test]
    fn a_previous_that_is_no_number_falls_back_to_the_memory_and_says_so() {
        let spec = "{type: convergence, target: 0, previous: '${context.word}'}";
        let mut visits = TestVisits::of(spec);
        for (out, verdict, warning) in [
            ("5", "progress", "`previous` is `OK`, which is not a number: this counts as the first number"),
            (
                "5",
                "stall",
                "`previous` is `OK`, which is not a number: compared with 5, the last number of this state",
            ),
            (
                "4",
                "progress",
                "`previous` is `OK`, which is not a number: compared with 5, the last number of this state",
            ),
        ] {
            let judged = visits.judge(out, 0);
            assert_eq!((judged.verdict.as_str(), &*judged.warnings), (verdict, &[warning.to_owned()][..]));
        }
        let fine = TestVisits::of("{type: convergence, target: 0, previous: '${context.n}'}").judge("4", 0);
        assert_eq!(fine.warnings, Vec::<String>::new());
    }

    #[test]
    fn what_is_worse_than_the_reference_is_a_stall_whatever_else() {
        check("target: 0, reference: 4", None, "5", "stall");
        check("target: 5, reference: 4", None, "5", "stall");
        check("target: 0, reference: 4", None, "4", "progress");
        check("target: 9, reference: 4, direction: maximize", Some(1.0), "3", "stall");
        check("target: 9, reference: '4', direction: maximize", Some(1.0), "5", "progress");
        check("target: 0, reference: '${context.n}'", None, "6", "stall");
        check("target: 0, reference: 0", None, "6", "progress");
        check("target: 0, reference: null", None, "6", "progress");
        for reference in ["${context.word}", "${context.nope}"] {
            check(&format!("target: 0, reference: '{reference}'"), None, "6", "error");
        }
        let (_, details) = judge_with("{type: convergence, target: 0, reference: 4}", Some(5.0), "5", 0);
        let expected = json!({"current": 5, "target": 0, "reference": 4, "regressed_vs_reference": true});
        assert_eq!(details, expected);
    }

    #[test]
    fn numbers_may_stand_in_quotes() {
        check("target: '0', tolerance: '2'", None, "2", "target");
    }

    #[test]
    fn details_are_fixed() {
        let (_, details) = judge_with("{type: convergence, target: 0}", Some(5.0), "3", 0);
        assert_eq!(details, json!({"current": 3, "previous": 5, "target": 0, "delta": -2}));
    }
}
