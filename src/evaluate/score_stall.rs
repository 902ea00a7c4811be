//! `score_stall`: whether the best score of the run still improves.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::convergence::Direction;
use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::judged_text::{JudgedText, subject};
use super::memory::{recalled, remembered};
use super::number::{no_number, number, number_of};
use super::number_bounds::{Margin, VisitCount};
use super::number_history::{PlateauRule, in_run_dir};
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;

record! {
    /// Tells whether a score still gets better than the best one so far.
    pub struct ScoreStall {
        /// The text that is the score, instead of what the action printed.
        source: Option<Template>,
        /// Reads the last `KEY = NUMBER` of the text instead of the whole text.
        key: Option<Template>,
        /// How much better than the best one a score has to be; 0 when absent, and 0.5 for the scores of a file.
        epsilon: Option<Field<Margin>>,
        /// How many visits in a row without a better score mean no.
        max_stall: Field<VisitCount> = Field::Literal(VisitCount::ONE),
        /// Which way is better.
        direction: Direction = Direction::Maximize,
        /// A file with all scores, one a line. Without one, and without `source` and `key`, it is `.score_history` in the
        /// directory of the run, if that is there.
        history_file: Option<Template>,
    }
}

/// The file that is looked for where a loop names nothing to judge.
static UNNAMED: LazyLock<Template> = LazyLock::new(|| in_run_dir(".score_history"));

/// What is remembered from visit to visit.
#[derive(Serialize, Deserialize)]
struct ScoreMemory {
    best: f64,
    count: i32,
}

impl Evaluator for ScoreStall {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let max_stall = self.max_stall.resolve(judging.scope)?.get();
        let epsilon = |usual: Margin| match &self.epsilon {
            Some(epsilon) => epsilon.resolve(judging.scope).map(Margin::get),
            None => Ok(usual.get()),
        };
        if self.history_file.is_some() || (self.is_bare() && matches!(judging.file, Some(Ok(Some(_))))) {
            let epsilon = epsilon(Margin::HALF)?;
            return Ok(PlateauRule { epsilon, max_stall, direction: self.direction }.judge(judging.file));
        }
        let text = match subject(self.source.as_ref(), judging)? {
            JudgedText::Text(text) => text,
            JudgedText::Crashed(judged) => return Ok(judged),
        };
        let key = self.key.as_ref().map(|key| key.render(judging.scope)).transpose()?;
        // An infinite score could never be beaten.
        let Some(score) = number_of(&text, key.as_deref()).filter(|score| score.is_finite()) else {
            return Ok(Judged::error(no_number(&text, key.as_deref())));
        };
        let epsilon = epsilon(Margin::NONE)?;
        let memory = match recalled::<ScoreMemory>(judging.memory) {
            // The best score stays what it was until it is beaten by more than `epsilon`, so that many small steps
            // count as one that is large enough.
            Some(ScoreMemory { best, count }) if self.direction.gain(best, score) <= epsilon => {
                ScoreMemory { best, count: count.saturating_add(1) }
            }
            _ => ScoreMemory { best: score, count: 0 },
        };
        let details = json!({
            "score": number(score),
            "best": number(memory.best),
            "stall_count": memory.count,
            "max_stall": max_stall,
        });
        Ok(Judged::new(Verdict::yes_if(memory.count < max_stall), details).remembering(remembered(&memory)))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["score", "best", "stall_count", "max_stall", "epsilon", "rounds"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let texts = [
            ("source", self.source.as_ref()),
            ("key", self.key.as_ref()),
            ("epsilon", self.epsilon.as_ref().and_then(Field::as_template)),
            ("max_stall", self.max_stall.as_template()),
            ("history_file", self.history_file.as_ref()),
        ];
        texts.into_iter().filter_map(|(key, template)| Some((key, template?))).collect()
    }

    fn file(&self) -> Option<&Template> {
        self.history_file.as_ref().or_else(|| self.is_bare().then(|| &*UNNAMED))
    }

    fn oddities(&self) -> Vec<(&'static str, String)> {
        let beside = [("source", self.source.is_some()), ("key", self.key.is_some())];
        let idle = beside.into_iter().filter(|(_, given)| *given && self.history_file.is_some());
        idle.map(|(key, _)| (key, format!("`{key}` has no effect beside `history_file`"))).collect()
    }
}

impl ScoreStall {
    /// Tells whether the loop leaves it open what is judged.
    fn is_bare(&self) -> bool {
        self.history_file.is_none() && self.source.is_none() && self.key.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestVisits, judge};
    use super::*;

    fn verdicts(spec: &str, scores: &str) -> String {
        let mut visits = TestVisits::of(&format!("{{type: score_stall, {spec}}}"));
        let words = scores.split(' ').map(|score| visits.judge(score, 0).verdict.to_string());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_score_has_to_beat_the_best_one() {
        assert_eq!(verdicts("max_stall: 1", "1 2 2 3"), "yes yes no yes");
        assert_eq!(verdicts("max_stall: 2", "5 4 5 6 6 6"), "yes yes no yes yes no");
        assert_eq!(verdicts("direction: minimize", "5 4 6 3"), "yes yes no yes");
    }

    #[test]
    fn epsilon_is_what_does_not_count_and_small_steps_add_up() {
        assert_eq!(verdicts("epsilon: 1, max_stall: 3", "1 1.6 2 2.2 2.2"), "yes yes yes yes yes");
        assert_eq!(verdicts("epsilon: 1", "1 2 2.5"), "yes no yes");
    }

    #[test]
    fn no_number_is_an_error_and_forgets_nothing() {
        assert_eq!(verdicts("max_stall: 1", "5 oops 5"), "yes error no");
        assert_eq!(judge("{type: score_stall, key: f1}", "f1 = 0.5\n", 0), "yes");
        assert_eq!(judge("{type: score_stall, key: f1}", "0.5\n", 0), "error");
        assert_eq!(judge("{type: score_stall, source: '${context.n}'}", "x", 3), "yes");
        assert_eq!(judge("type: score_stall", "5", 3), "error");
    }

    #[test]
    fn a_file_holds_the_scores_of_all_visits() {
        let check = |spec: &str, history: Option<&str>, printed: &str, expected: &str| {
            let mut visits = TestVisits::of(&format!("{{type: score_stall{spec}}}"));
            visits.file = Some(Ok(history.map(|text| text.as_bytes().to_vec())));
            assert_eq!(visits.judge(printed, 0).verdict.as_str(), expected, "{spec} {history:?} {printed}");
        };
        for spec in ["", ", history_file: h"] {
            check(spec, Some("60\n70\n"), "x", "yes");
            check(spec, Some("60\n60.4\n"), "x", "no");
            check(spec, Some("60\nx\n50\n"), "x", "no");
        }
        check(", history_file: h", None, "x", "yes");
        check(", history_file: h, epsilon: 0", Some("60\n60.4\n"), "x", "yes");
        check(", history_file: h, direction: minimize", Some("60\n50\n"), "x", "yes");
        check("", None, "5", "yes");
        check("", None, "x", "error");
    }

    #[test]
    fn details_are_fixed() {
        let mut visits = TestVisits::of("type: score_stall");
        visits.judge("5", 0);
        let details = visits.judge("4.5", 0).details;
        assert_eq!(json!(details), json!({"score": 4.5, "best": 5, "stall_count": 1, "max_stall": 1}));
    }
}
