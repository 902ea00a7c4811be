//! `open_question_stall`: whether a number of open questions, kept in a file, still gets smaller.

use super::convergence::Direction;
use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::number_bounds::{Margin, VisitCount};
use super::number_history::{PlateauRule, in_run_dir};
use crate::base::decode::record;
use crate::base::template::Template;

record! {
    /// Tells whether a history of numbers still falls.
    pub struct OpenQuestionStall {
        /// The file with the numbers, one a line; `.open_questions_history` in the directory of the run, when absent.
        history_file: Template = in_run_dir(".open_questions_history"),
        /// How much smaller than the smallest one a number has to be.
        epsilon: Field<Margin> = Field::Literal(Margin::HALF),
        /// How many numbers in a row that are no smaller mean no.
        max_stall: Field<VisitCount> = Field::Literal(VisitCount::ONE),
    }
}

impl Evaluator for OpenQuestionStall {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let history = PlateauRule {
            epsilon: self.epsilon.resolve(judging.scope)?.get(),
            max_stall: self.max_stall.resolve(judging.scope)?.get(),
            direction: Direction::Minimize,
        };
        Ok(history.judge(judging.file))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["stall_count", "max_stall", "epsilon", "rounds", "best"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let epsilon = self.epsilon.as_template().map(|epsilon| ("epsilon", epsilon));
        let max_stall = self.max_stall.as_template().map(|count| ("max_stall", count));
        std::iter::once(("history_file", &self.history_file)).chain(epsilon).chain(max_stall).collect()
    }

    fn file(&self) -> Option<&Template> {
        Some(&self.history_file)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::TestVisits;
    use crate::base::explanation::Explanation;

    fn check(spec: &str, history: Option<&str>, expected: &str) {
        let mut visits = TestVisits::of(&format!("{{type: open_question_stall, history_file: h{spec}}}"));
        visits.file = Some(Ok(history.map(|text| text.as_bytes().to_vec())));
        assert_eq!(visits.judge("", 0).verdict.as_str(), expected, "{spec} {history:?}");
    }

    #[test]
    fn fewer_questions_are_progress() {
        for (history, expected) in [
            (None, "yes"),
            (Some(""), "yes"),
            (Some("5\n"), "yes"),
            (Some("5\n5\n"), "no"),
            (Some("5\nx\n3\n"), "yes"),
            (Some("5\n3\n4\n"), "no"),
            (Some("5\n7\n4\n"), "yes"),
            (Some("5\n4.6\n"), "no"),
        ] {
            check("", history, expected);
        }
        check(", max_stall: 2", Some("5\n5\n"), "yes");
        check(", max_stall: 2", Some("5\n5\n6\n"), "no");
        check(", epsilon: 0", Some("5\n4.9\n"), "yes");
        check(", epsilon: '${context.n}'", Some("15\n11\n"), "no");
    }

    #[test]
    fn details_are_fixed_and_what_cannot_be_read_is_an_error() {
        let mut visits = TestVisits::of("type: open_question_stall");
        visits.file = Some(Ok(Some(b"5\n4\n4\nlater\n".to_vec())));
        let expected = json!({"stall_count": 1, "max_stall": 1, "epsilon": 0.5, "rounds": 3, "best": 4});
        assert_eq!(json!(visits.judge("", 0).details), expected);
        for bad in [Err("is a directory".to_owned()), Ok(Some(vec![b'1'; 5_000_000]))] {
            visits.file = Some(bad.map_err(Explanation::new));
            assert_eq!(visits.judge("", 0).verdict.as_str(), "error");
        }
    }
}
