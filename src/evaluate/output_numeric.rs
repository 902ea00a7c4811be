//! `output_numeric`: what was printed is a number, compared with a target.

use serde_json::json;

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::judged_text::{JudgedText, subject};
use super::number::{no_number, number, number_of};
use super::operator::Operator;
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;

record! {
    /// Compares a printed number with a target.
    pub struct OutputNumeric {
        /// How they are compared.
        operator: Operator = Operator::Eq,
        /// The number to compare with.
        target: Field<f64>,
        /// Reads the last `KEY = NUMBER` of the text instead of the whole text.
        key: Option<Template>,
        /// The text to judge instead of what the action printed.
        source: Option<Template>,
    }
}

impl Evaluator for OutputNumeric {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let text = match subject(self.source.as_ref(), judging)? {
            JudgedText::Text(text) => text,
            JudgedText::Crashed(judged) => return Ok(judged),
        };
        let key = self.key.as_ref().map(|key| key.render(judging.scope)).transpose()?;
        let Some(value) = number_of(&text, key.as_deref()) else {
            return Ok(Judged::error(no_number(&text, key.as_deref())));
        };
        let target = self.target.resolve(judging.scope)?;
        let verdict = Verdict::yes_if(self.operator.numbers(value, target));
        let details =
            json!({ "value": number(value), "target": number(target), "operator": self.operator.word() });
        Ok(Judged::new(verdict, details))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["value", "target", "operator"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let target = self.target.as_template().map(|target| ("target", target));
        let key = self.key.as_ref().map(|key| ("key", key));
        let source = self.source.as_ref().map(|source| ("source", source));
        target.into_iter().chain(key).chain(source).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{judge, judge_with};

    #[test]
    fn every_operator() {
        for (operator, verdicts) in [
            ("eq", ["no", "yes", "no"]),
            ("ne", ["yes", "no", "yes"]),
            ("lt", ["yes", "no", "no"]),
            ("le", ["yes", "yes", "no"]),
            ("gt", ["no", "no", "yes"]),
            ("ge", ["no", "yes", "yes"]),
        ] {
            let spec = format!("{{type: output_numeric, operator: {operator}, target: 5}}");
            assert_eq!(["4", "5", "6.5"].map(|out| judge(&spec, out, 0)), verdicts, "{operator}");
        }
    }

    #[test]
    fn exit_1_is_judged_and_a_crash_is_an_error() {
        let spec = "{type: output_numeric, target: 0}";
        assert_eq!([0, 1, 2, 137].map(|code| judge(spec, "0\n", code)), ["yes", "yes", "error", "error"]);
    }

    #[test]
    fn what_is_no_number_is_an_error_that_shows_it() {
        let (verdict, details) = judge_with("{type: output_numeric, target: 0}", None, "5 errors\n", 0);
        assert_eq!((verdict.as_str(), details), ("error", json!({"error": "`5 errors` is not a number"})));
    }

    #[test]
    fn a_key_reads_its_last_assignment() {
        let spec = "{type: output_numeric, key: score, target: 45}";
        assert_eq!(judge(spec, "score=3\nscore = 4.5e1 points\nhighscore=9", 0), "yes");
        assert_eq!(judge(spec, "no such thing", 0), "error");
    }

    #[test]
    fn target_and_source_are_interpolated() {
        assert_eq!(judge("{type: output_numeric, target: '${context.t}'}", "5", 0), "yes");
        assert_eq!(judge("{type: output_numeric, source: '${context.n}', target: 5}", "9", 7), "yes");
        let unresolved = judge("{type: output_numeric, target: '${context.nope}'}", "5", 0);
        assert!(unresolved.starts_with("unresolved: `${context.nope}` has no value"), "{unresolved}");
    }

    #[test]
    fn details_are_fixed() {
        let (_, details) = judge_with("{type: output_numeric, operator: gt, target: 10}", None, "42", 0);
        assert_eq!(details, json!({"value": 42, "target": 10, "operator": "gt"}));
    }
}
