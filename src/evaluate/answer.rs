//! `answer`: a field of the answer to a prompt is the verdict.

use serde_json::{Value, json};

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::FieldError;
use super::form::mismatch;
use super::judged_text::{JudgedText, excerpt, subject};
use super::observation::Observation;
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;
use crate::base::text::{head, json_in};

record! {
    /// Takes a field of the answer to a prompt as the verdict.
    pub struct Answered {
        /// Where the word is: keys with dots between them. When absent, an answer of the right form is a `yes`.
        field: Option<String>,
        /// The words that mean `yes`.
        yes: Vec<String> = owned(&YES),
        /// The words that mean `no`.
        no: Vec<String> = owned(&NO),
        /// What has to be 0, empty or absent for a `yes`: keys with dots between them.
        zero: Vec<String> = Vec::new(),
        /// The text to judge instead of the answer.
        source: Option<Template>,
    }
}

const YES: [&str; 8] = ["complete", "completed", "fixed", "passed", "approved", "done", "ok", "success"];

// `needs_clarification` means no as well: in a run, there is no person to answer.
const NO: [&str; 4] = ["failed", "still_failing", "needs_clarification", "rejected"];

/// How much of what an answer says about itself is kept in the details.
// As much as an event carries of a stream: details stand in an event, too.
const KEPT: usize = 8 * 1024;

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().copied().map(str::to_owned).collect()
}

impl Answered {
    /// Makes the evaluator of prompts that ask for an answer in a certain form and name none.
    pub fn standard() -> Self {
        Self { field: None, yes: owned(&YES), no: owned(&NO), zero: Vec::new(), source: None }
    }

    /// Tells whether it reads a word as `yes` or `no`.
    pub fn reads(&self, word: &str) -> bool {
        self.yes.iter().chain(&self.no).any(|known| known == word)
    }

    /// Returns what a word of the answer means.
    fn verdict(&self, word: &str) -> Option<Verdict> {
        let is_in = |words: &[String]| words.iter().any(|known| known == word);
        // A word in both lists must not verify anything.
        if is_in(&self.no) {
            Some(Verdict::yes_if(false))
        } else if is_in(&self.yes) {
            Some(Verdict::yes_if(true))
        } else {
            Verdict::parse(word).map(|verdict| Verdict::canonical(verdict.as_str()))
        }
    }

    /// Judges an answer that has the right form.
    fn weigh(&self, answer: &Value, failed: Option<&Observation>) -> Judged {
        let Some(field) = &self.field else {
            let details = json!({ "answer": null });
            return match failed {
                Some(seen) => failed_all_the_same("the answer", seen, details),
                None => Judged::new(Verdict::yes_if(true), details),
            };
        };
        let word = match at(answer, field) {
            Some(Value::String(word)) => word.trim().to_owned(),
            // A boolean is read as its word, which is an alias of `yes` or `no`.
            Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
            Some(Value::Array(_) | Value::Object(_)) => {
                return wrong(&format!("`{field}` of the answer is not a word"), answer);
            }
            Some(Value::Null) | None => return wrong(&format!("the answer has no `{field}`"), answer),
        };
        let Some(verdict) = self.verdict(&word) else {
            return wrong(&format!("`{field}` of the answer is empty or too long for a verdict"), answer);
        };
        let mut details = json!({ "answer": word });
        // What stands in the way says more than what was done.
        if let Some(reason) = ["blockReason", "summary", "feedback"].iter().find_map(|key| said(answer, key))
        {
            details["reason"] = head(reason, KEPT).into();
        }
        if let Some(seen) = failed.filter(|_| !verdict.is_failing()) {
            return failed_all_the_same(&word, seen, details);
        }
        let is_yes = verdict == Verdict::yes_if(true);
        // What is left over only speaks against success: a `no` stays what it is.
        if let Some(path) = self.zero.iter().find(|path| is_yes && at(answer, path).is_some_and(is_something))
        {
            let value = at(answer, path).map_or_else(String::new, |value| excerpt(&value.to_string()));
            details["overruled"] = format!("`{word}`: `{path}` of the answer is {value}").into();
            return Judged::new(Verdict::yes_if(false), details);
        }
        Judged::new(verdict, details)
    }
}

impl Evaluator for Answered {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        Ok(match read(self.source.as_ref(), judging)? {
            Ok((answer, failed)) => self.weigh(&answer, failed),
            Err(judged) => judged,
        })
    }

    fn verdicts(&self) -> Verdicts<'_> {
        if self.field.is_some() { Verdicts::Any } else { Verdicts::only(&["yes"]) }
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["answer", "reason", "overruled"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        self.source.iter().map(|source| ("source", source)).collect()
    }

    fn oddities(&self) -> Vec<(&'static str, String)> {
        let both = self.yes.iter().filter(|word| self.no.contains(word));
        both.map(|word| ("yes", format!("`{word}` is in both `yes` and `no`; it counts as `no`"))).collect()
    }
}

/// Reads the answer of a state, and the action if it failed all the same. Where there is no answer, or none of the form
/// that was asked for, the judgement says so.
pub(super) fn read<'a>(
    source: Option<&Template>,
    judging: Judging<'a>,
) -> Result<Result<(Value, Option<&'a Observation>), Judged>, FieldError> {
    let text = match subject(source, judging)? {
        JudgedText::Text(text) => text,
        JudgedText::Crashed(judged) => return Ok(Err(judged)),
    };
    if text.trim().is_empty() {
        return Ok(Err(Judged::error("there is no answer: the output is empty")));
    }
    let Some(answer) = json_in(&text) else {
        return Ok(Err(Judged::error(format!("the answer is not JSON: {}", excerpt(&text)))));
    };
    if !answer.is_object() {
        return Ok(Err(wrong("the answer is not a JSON object", &answer)));
    }
    if let Some(why) = judging.form.and_then(|form| mismatch(form.schema(), &answer)) {
        return Ok(Err(wrong(
            &format!("the answer does not have the form that was asked for: {why}"),
            &answer,
        )));
    }
    // A text from elsewhere is judged whatever the action of this state did.
    Ok(Ok((answer, judging.seen.filter(|seen| source.is_none() && !seen.succeeded()))))
}

/// Makes the judgement that something is wrong with an answer, and shows it.
pub(super) fn wrong(why: &str, answer: &Value) -> Judged {
    Judged::error(format!("{why} (it is {})", excerpt(&answer.to_string())))
}

/// Makes the judgement about a good answer of an action that failed.
pub(super) fn failed_all_the_same(said: &str, seen: &Observation, mut details: Value) -> Judged {
    let why = format!("the action exited with {}, whatever it answered", seen.exit_code);
    details["overruled"] = format!("`{said}`: {why}").into();
    details["error"] = why.into();
    Judged::new(Verdict::error(), details)
}

/// Returns a text of an answer, unless it is blank.
pub(super) fn said<'v>(answer: &'v Value, key: &str) -> Option<&'v str> {
    answer.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// Finds a value by keys with dots between them.
fn at<'v>(answer: &'v Value, path: &str) -> Option<&'v Value> {
    // `~` first, because it begins the escape that stands for a slash.
    let pointer = path.replace('~', "~0").replace('/', "~1").replace('.', "/");
    answer.pointer(&format!("/{pointer}"))
}

/// Tells whether a value is anything that should not be there.
fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_so) => *is_so,
        Value::Number(number) => number.as_f64().is_none_or(|number| number > 0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::judge_formed;
    use super::*;

    const FORM: &str = "{type: object, required: [status], properties: {status: {type: string}}}";

    #[track_caller]
    fn check(spec: &str, stdout: &str, exit_code: i32, expected: &str) -> Value {
        let field = if spec.contains("field:") { "" } else { ", field: status" };
        let judged = judge_formed(&format!("{{type: answer{field}{spec}}}"), Some(FORM), stdout, exit_code);
        assert_eq!(judged.verdict.as_str(), expected, "{stdout}: {:?}", judged.details);
        Value::Object(judged.details)
    }

    #[test]
    fn a_word_of_the_answer_is_the_verdict() {
        for word in YES {
            check("", &format!(r#"{{"status": "{word}"}}"#), 0, "yes");
        }
        for word in NO {
            check("", &format!(r#"{{"status": "{word}"}}"#), 0, "no");
        }
        for (spec, answer, expected) in [
            ("", r#"{"status": "blocked"}"#, "blocked"),
            ("", r#"{"status": " needs review\n"}"#, "needs review"),
            ("", r#"{"status": "fail"}"#, "no"),
            ("", "so:\n```json\n{\"status\": \"done\"}\n```\n", "yes"),
            (", yes: [good], no: [done]", r#"{"status": "good"}"#, "yes"),
            (", yes: [good], no: [done]", r#"{"status": "done"}"#, "no"),
            (", yes: [good]", r#"{"status": "done"}"#, "done"),
            (", yes: [both], no: [both]", r#"{"status": "both"}"#, "no"),
            (", field: more.0.word", r#"{"status": "x", "more": [{"word": "done"}]}"#, "yes"),
            (", field: a/b", r#"{"status": "x", "a/b": "done"}"#, "yes"),
            (", field: count, yes: ['0']", r#"{"status": "x", "count": 0}"#, "yes"),
            (", field: count", r#"{"status": "x", "count": 3}"#, "3"),
            (", field: good", r#"{"status": "x", "good": true}"#, "yes"),
            (", field: good", r#"{"status": "x", "good": false}"#, "no"),
            (", source: '{\"status\": \"done\"}'", "not looked at", "yes"),
        ] {
            check(spec, answer, 0, expected);
        }
    }

    #[test]
    fn without_a_field_every_answer_of_the_form_is_a_yes() {
        for (answer, exit_code, expected) in [
            (r#"{"status": "failed"}"#, 0, "yes"),
            (r#"{"status": "done"}"#, 1, "error"),
            ("{}", 0, "error"),
            ("done", 0, "error"),
        ] {
            let judged = judge_formed("{type: answer}", Some(FORM), answer, exit_code);
            assert_eq!(judged.verdict.as_str(), expected, "{answer}");
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error_that_shows_it() {
        for (spec, answer, why) in [
            ("", "", "there is no answer"),
            ("", " \n", "there is no answer"),
            ("", "I am done.", "the answer is not JSON: I am done."),
            ("", r#"{"status": "done""#, "is not JSON"),
            ("", r#""done""#, r#"is not a JSON object (it is "done")"#),
            ("", r#"["done"]"#, "is not a JSON object"),
            ("", "null", "is not a JSON object"),
            ("", "{}", "required"),
            ("", r#"{"state": "done"}"#, r#"(it is {"state":"done"})"#),
            ("", r#"{"status": 1}"#, "/status: "),
            ("", r#"{"status": " "}"#, "`status` of the answer is empty"),
            (", field: other", r#"{"status": "done"}"#, "the answer has no `other`"),
            (", field: other", r#"{"status": "done", "other": null}"#, "the answer has no `other`"),
            (
                ", field: other",
                r#"{"status": "done", "other": ["done"]}"#,
                "`other` of the answer is not a word",
            ),
            (", source: ''", r#"{"status": "done"}"#, "there is no answer"),
        ] {
            let details = check(spec, answer, 0, "error");
            assert!(details["error"].as_str().unwrap().contains(why), "{answer}: {details}");
        }
        let long = format!(r#"{{"status": "{}"}}"#, "x".repeat(500));
        check("", &long, 0, "error");
    }

    #[test]
    fn what_should_be_zero_overrules_a_good_word() {
        let spec = ", zero: [tests.failed, left, note]";
        for (answer, why) in [
            (
                r#"{"status": "passed", "tests": {"failed": 1}}"#,
                "`passed`: `tests.failed` of the answer is 1",
            ),
            (r#"{"status": "passed", "tests": {"failed": 0.5}}"#, "0.5"),
            (r#"{"status": "passed", "left": ["a"]}"#, r#"["a"]"#),
            (r#"{"status": "passed", "note": "almost"}"#, "almost"),
            (r#"{"status": "passed", "note": {"a": 1}}"#, "`note`"),
            (r#"{"status": "passed", "note": true}"#, "`note`"),
        ] {
            let details = check(spec, answer, 0, "no");
            assert!(details["overruled"].as_str().unwrap().contains(why), "{details}");
        }
        for answer in [
            r#"{"status": "passed"}"#,
            r#"{"status": "passed", "tests": {"failed": 0}, "left": [], "note": " "}"#,
            r#"{"status": "passed", "tests": {"failed": -1}, "left": null, "note": false}"#,
        ] {
            assert_eq!(check(spec, answer, 0, "yes").get("overruled"), None);
        }
        check(spec, r#"{"status": "blocked", "left": ["a"]}"#, 0, "blocked");
    }

    #[test]
    fn an_action_that_failed_says_nothing_good() {
        for code in [1, 2, 137] {
            let details = check("", r#"{"status": "done"}"#, code, "error");
            assert!(details["error"].as_str().unwrap().contains(&code.to_string()), "{details}");
        }
        check("", r#"{"status": "reviewed"}"#, 1, "error");
        check("", r#"{"status": "failed"}"#, 1, "no");
        check("", r#"{"status": "blocked"}"#, 1, "blocked");
        check(", source: '{\"status\": \"done\"}'", "", 1, "yes");
    }

    #[test]
    fn the_details_are_the_word_and_why() {
        let details = |answer: &str, word: &str| check("", answer, 0, word);
        let expected = json!({"answer": "done", "reason": "two files"});
        assert_eq!(details(r#"{"status": "done", "summary": " two files ", "more": [1]}"#, "yes"), expected);
        assert_eq!(details(r#"{"status": "done", "feedback": "good"}"#, "yes")["reason"], "good");
        let blocked = r#"{"status": "blocked", "summary": "tried", "blockReason": "no key"}"#;
        assert_eq!(details(blocked, "blocked")["reason"], "no key");
        assert_eq!(details(r#"{"status": "done", "summary": ""}"#, "yes"), json!({"answer": "done"}));
        let long = details(&format!(r#"{{"status": "done", "summary": "{}"}}"#, "é".repeat(KEPT)), "yes");
        assert_eq!(long["reason"].as_str().unwrap().len(), KEPT);
    }
}
