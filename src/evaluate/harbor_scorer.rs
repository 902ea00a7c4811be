//! `harbor_scorer`: a scorer that prints a number, and fails by its exit code.

use serde_json::json;

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::FieldError;
use super::judged_text::printed;
use super::number::{no_number, number, number_of};
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;

record! {
    /// Takes exit code 0 and a number as yes, and any other exit code as no.
    pub struct HarborScorer {
        /// The text that is the score, instead of what the action printed.
        source: Option<Template>,
    }
}

impl Evaluator for HarborScorer {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let exit_code = judging.seen.map_or(0, |seen| seen.exit_code);
        // Before the text: a scorer that failed may have printed a number all the same.
        if exit_code != 0 {
            return Ok(Judged::new(Verdict::yes_if(false), json!({ "exit_code": exit_code })));
        }
        let text = match &self.source {
            Some(source) => source.render(judging.scope)?.into(),
            None => printed(judging.seen),
        };
        // `inf` is what a division by zero prints, and not a score.
        Ok(match number_of(&text, None).filter(|score| score.is_finite()) {
            Some(score) => {
                let details = json!({ "score": number(score), "exit_code": exit_code });
                Judged::new(Verdict::yes_if(true), details)
            }
            None => Judged::error(no_number(&text, None)),
        })
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["score", "exit_code"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        self.source.iter().map(|source| ("source", source)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{judge, judge_with};
    use super::*;

    #[test]
    fn a_number_is_yes_and_a_code_is_no() {
        for (out, code, expected) in [
            ("0.75\n", 0, "yes"),
            ("1", 0, "yes"),
            ("0", 0, "yes"),
            ("0.75", 1, "no"),
            ("", 3, "no"),
            ("good", 0, "error"),
            ("", 0, "error"),
            ("0.5 points", 0, "error"),
            ("inf", 0, "error"),
        ] {
            assert_eq!(judge("type: harbor_scorer", out, code), expected, "{out:?} {code}");
        }
    }

    #[test]
    fn details_are_fixed() {
        let details = |out, code| judge_with("type: harbor_scorer", None, out, code).1;
        assert_eq!(details("0.75", 0), json!({"score": 0.75, "exit_code": 0}));
        assert_eq!(details("0.75", 4), json!({"exit_code": 4}));
    }
}
