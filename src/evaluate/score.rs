//! `score`: a reviewer's answer says how good the work is.

use serde_json::{Value, json};

use super::answer::{failed_all_the_same, read, said, wrong};
use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::level::{Approval, ScoreLevel, level};
use super::number::number;
use super::number_bounds::Points;
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;
use crate::base::text::head;

record! {
    /// Judges work by the score that the answer of a reviewer gives it.
    pub struct Score {
        /// The lowest score of work that is approved.
        approve: Field<Points> = Field::Literal(Points::APPROVED),
        /// The lowest score of work that is to be revised; below it is rejected.
        revise: Field<Points> = Field::Literal(Points::REVISED),
        /// The text to judge instead of the answer.
        source: Option<Template>,
    }
}

/// How much of the feedback is kept in the details.
const KEPT: usize = 16 * 1024;

/// What a reviewer thinks of the work.
struct ReviewScore {
    score: Option<f64>,
    approval: Approval,
}

impl Score {
    /// Reads what a reviewer thinks. The score decides; what else the answer says counts only without one.
    fn review(answer: &Value, approve: f64, revise: f64) -> Result<ReviewScore, &'static str> {
        // As in loop files, `null` is not given.
        let given = |key: &str| answer.get(key).filter(|value| !value.is_null());
        if let Some(score) = given("score") {
            let score = score.as_f64().filter(|score| (0.0..=100.0).contains(score));
            let score = score.ok_or("the `score` of the answer is not a number from 0 to 100")?;
            let approval = match score {
                score if score >= approve => Approval::Approved,
                score if score >= revise => Approval::Revise,
                _ => Approval::Rejected,
            };
            return Ok(ReviewScore { score: Some(score), approval });
        }
        let approved = given("approved")
            .map(|approved| approved.as_bool().ok_or("`approved` of the answer is neither true nor false"));
        let recommended = given("recommendation").and_then(Value::as_str).map(str::trim);
        let approval = match (approved.transpose()?, recommended) {
            (Some(true), _) | (None, Some("approve")) => Approval::Approved,
            // `approved: false` alone rejects; with a recommendation beside it, that says how far from good the work is.
            (Some(false) | None, Some("revise")) => Approval::Revise,
            (Some(false), _) | (None, Some("reject")) => Approval::Rejected,
            (None, Some(_)) => return Err("the `recommendation` of the answer is not a known word"),
            (None, None) => return Err("the answer has neither a score nor an approval"),
        };
        Ok(ReviewScore { score: None, approval })
    }

    /// Judges an answer that has the right form.
    fn weigh(answer: &Value, review: &ReviewScore) -> Result<(Verdict, Value), &'static str> {
        let issues = match answer.get("issues") {
            Some(Value::Array(issues)) => issues.len(),
            Some(Value::Null) | None => 0,
            // An unknown number of issues must not pass for none.
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                return Err("the `issues` of the answer are not a list");
            }
        };
        let own = level(review.score, issues, review.approval);
        // A word that is not a level is passed over: the rule has one in any case.
        let claimed = said(answer, "escalationLevel").and_then(ScoreLevel::parse);
        // A reviewer may ask for more than our rule does, and not for less.
        let claimed = claimed.filter(|_| review.approval != Approval::Approved);
        let level = claimed.map_or(own, |claimed| claimed.max(own));
        let feedback = said(answer, "feedback").map(|text| format!("{}{text}", level.start()));
        let details = json!({
            "score": review.score.map(number),
            "level": level.word(),
            "issues": issues,
            "feedback": head(&feedback.unwrap_or_default(), KEPT),
        });
        let verdict = match review.approval {
            Approval::Approved => Verdict::yes_if(true),
            Approval::Revise => Verdict::new("partial"),
            Approval::Rejected => Verdict::yes_if(false),
        };
        Ok((verdict, details))
    }
}

impl Evaluator for Score {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let (approve, revise) =
            (self.approve.resolve(judging.scope)?.get(), self.revise.resolve(judging.scope)?.get());
        let (answer, failed) = match read(self.source.as_ref(), judging)? {
            Ok(read) => read,
            Err(judged) => return Ok(judged),
        };
        let weighed = Self::review(&answer, approve, revise).and_then(|review| Self::weigh(&answer, &review));
        Ok(match (weighed, failed) {
            (Ok((verdict, details)), Some(seen)) if !verdict.is_failing() => {
                failed_all_the_same("approved", seen, details)
            }
            (Ok((verdict, details)), _) => Judged::new(verdict, details),
            (Err(why), _) => wrong(why, &answer),
        })
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no", "partial"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["score", "level", "issues", "feedback", "overruled"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let keys = [
            ("approve", self.approve.as_template()),
            ("revise", self.revise.as_template()),
            ("source", self.source.as_ref()),
        ];
        keys.into_iter().filter_map(|(key, template)| Some((key, template?))).collect()
    }

    fn oddities(&self) -> Vec<(&'static str, String)> {
        let (Some(approve), Some(revise)) = (self.approve.as_literal(), self.revise.as_literal()) else {
            return Vec::new();
        };
        let (approve, revise) = (approve.get(), revise.get());
        let message = || format!("nothing is ever revised: `revise: {revise}` is above `approve: {approve}`");
        (revise > approve).then(|| ("revise", message())).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::judge_formed;
    use super::*;

    #[track_caller]
    fn check(spec: &str, answer: &Value, exit_code: i32, expected: &str) -> Value {
        let judged = judge_formed(&format!("{{type: score{spec}}}"), None, &answer.to_string(), exit_code);
        assert_eq!(judged.verdict.as_str(), expected, "{answer}: {:?}", judged.details);
        Value::Object(judged.details)
    }

    #[test]
    fn the_score_decides() {
        for (spec, score, expected) in [
            ("", json!(100), "yes"),
            ("", json!(70), "yes"),
            ("", json!(69.9), "partial"),
            ("", json!(69), "partial"),
            ("", json!(50), "partial"),
            ("", json!(49), "no"),
            ("", json!(0), "no"),
            (", approve: 90, revise: 80", json!(89), "partial"),
            (", approve: 90, revise: 80", json!(79), "no"),
            (", approve: '${context.n}', revise: 1", json!(5), "yes"),
        ] {
            let lies = json!({"score": score, "approved": expected != "yes", "recommendation": "approve"});
            check(spec, &lies, 0, expected);
        }
    }

    #[test]
    fn without_a_score_the_reviewer_says_it() {
        for (answer, expected) in [
            (json!({"approved": true}), "yes"),
            (json!({"approved": true, "recommendation": "reject"}), "yes"),
            (json!({"approved": false}), "no"),
            (json!({"approved": false, "recommendation": "approve"}), "no"),
            (json!({"approved": false, "recommendation": "revise"}), "partial"),
            (json!({"approved": false, "recommendation": "reject"}), "no"),
            (json!({"approved": null, "recommendation": "approve"}), "yes"),
            (json!({"score": null, "recommendation": "revise"}), "partial"),
            (json!({"recommendation": "reject"}), "no"),
        ] {
            assert_eq!(check("", &answer, 0, expected)["score"], Value::Null);
        }
    }

    #[test]
    fn an_answer_that_approves_nothing_is_an_error() {
        let neither = "the answer has neither a score nor an approval";
        for (answer, why) in [
            (json!({}), neither),
            (json!({"feedback": "very good"}), neither),
            (json!({"score": null, "approved": null}), neither),
            (json!({"score": "90"}), "not a number from 0 to 100"),
            (json!({"score": 101}), "not a number from 0 to 100"),
            (json!({"score": -1, "approved": true}), "not a number from 0 to 100"),
            (json!({"approved": "yes", "recommendation": "approve"}), "neither true nor false"),
            (json!({"recommendation": "fine"}), "not a known word"),
            (json!({"score": 90, "issues": "none"}), "are not a list"),
            (json!([90]), "not a JSON object"),
        ] {
            let details = check("", &answer, 0, "error");
            assert!(details["error"].as_str().unwrap().contains(why), "{answer}: {details}");
        }
        let judged = judge_formed("type: score", None, "I give it 90.", 0);
        assert_eq!(judged.verdict.as_str(), "error");
        let form = Some("{type: object, required: [score, feedback]}");
        assert_eq!(judge_formed("type: score", form, r#"{"score": 90}"#, 0).verdict.as_str(), "error");
    }

    #[test]
    fn the_feedback_begins_with_how_serious_it_is() {
        let issues = |count: usize| vec!["one"; count];
        for (answer, verdict, level, feedback) in [
            (json!({"score": 90, "issues": issues(9), "escalationLevel": "abort"}), "yes", "none", "F"),
            (json!({"score": 60}), "partial", "remind", "Reminder: F"),
            (json!({"score": 60, "issues": issues(4)}), "partial", "remind", "Reminder: F"),
            (json!({"score": 40}), "no", "correct", "Correction: F"),
            (json!({"score": 20}), "no", "refocus", "Refocus on the task: F"),
            (json!({"score": 60, "issues": issues(5)}), "partial", "critical", "Critical: F"),
            (json!({"score": 60, "issues": issues(6)}), "partial", "abort", "Abort: F"),
            (
                json!({"score": 60, "escalationLevel": "refocus"}),
                "partial",
                "refocus",
                "Refocus on the task: F",
            ),
            (json!({"score": 20, "escalationLevel": "remind"}), "no", "refocus", "Refocus on the task: F"),
            (json!({"score": 20, "escalationLevel": "panic"}), "no", "refocus", "Refocus on the task: F"),
            (json!({"approved": false}), "no", "correct", "Correction: F"),
            (json!({"recommendation": "revise"}), "partial", "remind", "Reminder: F"),
        ] {
            let mut answer = answer;
            answer["feedback"] = " F ".into();
            let details = check("", &answer, 0, verdict);
            assert_eq!(
                (&details["level"], &details["feedback"]),
                (&json!(level), &json!(feedback)),
                "{answer}"
            );
        }
        let expected = json!({"score": 65, "level": "remind", "issues": 1, "feedback": ""});
        assert_eq!(check("", &json!({"score": 65.0, "issues": ["x"]}), 0, "partial"), expected);
        let high = check(", approve: 90", &json!({"score": 80, "feedback": "F"}), 0, "partial");
        assert_eq!((&high["level"], &high["feedback"]), (&json!("none"), &json!("F")));
    }

    #[test]
    fn an_action_that_failed_is_not_approved() {
        check("", &json!({"score": 90}), 1, "error");
        check("", &json!({"score": 90}), 137, "error");
        check("", &json!({"score": 60}), 1, "partial");
        check(", source: '{\"score\": 90}'", &json!("x"), 1, "yes");
    }
}
