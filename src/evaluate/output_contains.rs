//! `output_contains`: a pattern stands in the output, or does not.

use fancy_regex::Regex as Backtracking;
use regex::Regex;
use serde_json::json;

use crate::base::decode::record;
use crate::base::template::Template;

use super::field::FieldError;
use super::verdict::Verdict;
use super::{Evaluator, Judged, Judging, Subject, Verdicts, subject};

record! {
    /// Searches the output for a pattern.
    pub struct OutputContains {
        /// A regular expression; one that cannot be read is searched as plain text.
        pattern: Template,
        /// Whether not finding it means yes.
        negate: bool = false,
        /// Patterns that mean an error when the pattern itself was not found.
        error_patterns: Vec<Template> = Vec::new(),
        /// The text to judge instead of what the action printed.
        source: Option<Template>,
    }
}

impl Evaluator for OutputContains {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let text = match subject(self.source.as_ref(), judging)? {
            Subject::Text(text) => text,
            Subject::Crashed(judged) => return Ok(judged),
        };
        let pattern = self.pattern.render(judging.scope)?;
        let matched = match Pattern::read(&pattern).is_in(&text) {
            Ok(matched) => matched,
            Err(TooMuchBacktracking) => {
                return Ok(Judged::error(format!("the pattern `{pattern}` needs too much backtracking")));
            }
        };
        if !matched && !self.negate {
            for template in &self.error_patterns {
                let error = template.render(judging.scope)?;
                if Pattern::read(&error).is_in(&text).unwrap_or(false) {
                    return Ok(Judged::error(format!("the output contains `{error}`")));
                }
            }
        }
        let details = json!({ "matched": matched, "pattern": pattern, "negate": self.negate });
        Ok(Judged::new(Verdict::yes_if(matched != self.negate), details))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let patterns = self.error_patterns.iter().map(|pattern| ("error_patterns", pattern));
        let source = self.source.as_ref().map(|source| ("source", source));
        std::iter::once(("pattern", &self.pattern)).chain(patterns).chain(source).collect()
    }

    fn oddities(&self) -> Vec<(&'static str, String)> {
        let literal = self.pattern.as_literal();
        let odd = literal.filter(|pattern| matches!(Pattern::read(pattern), Pattern::Plain(_)));
        odd.map(|pattern| {
            ("pattern", format!("`{pattern}` is no regular expression and is searched as plain text"))
        })
        .into_iter()
        .collect()
    }
}

/// A pattern in the cheapest form that can express it.
enum Pattern {
    /// Linear time, whatever the output is.
    Linear(Regex),
    /// Look-around or back-references; the engine bounds its backtracking.
    Backtracking(Backtracking),
    /// No regular expression at all.
    Plain(String),
}

struct TooMuchBacktracking;

impl Pattern {
    fn read(pattern: &str) -> Self {
        if let Ok(linear) = Regex::new(pattern) {
            return Self::Linear(linear);
        }
        Backtracking::new(pattern).map_or_else(|_| Self::Plain(pattern.to_owned()), Self::Backtracking)
    }

    fn is_in(&self, text: &str) -> Result<bool, TooMuchBacktracking> {
        match self {
            Self::Linear(regex) => Ok(regex.is_match(text)),
            Self::Backtracking(regex) => regex.is_match(text).map_err(|_| TooMuchBacktracking),
            Self::Plain(plain) => Ok(text.contains(plain.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{judge, judge_with};

    fn check(keys: &str, output: &str, expected: &str) {
        assert_eq!(judge(&format!("{{type: output_contains, {keys}}}"), output, 0), expected, "{keys}");
    }

    #[test]
    fn patterns_are_searched_in_the_whole_text() {
        check(r"pattern: '\d+ passed'", "x\n3 passed\n", "yes");
        check("pattern: '^OK'", "x\nOK", "no");
        check("pattern: '(?m)^OK'", "x\nOK", "yes");
        check("pattern: 'a.b'", "a\nb", "no");
        check("pattern: a.b", "axb", "yes");
        check("pattern: ok, negate: true", "fine", "yes");
        check("pattern: '${context.word}'", "all OK", "yes");
    }

    #[test]
    fn look_around_and_back_references_work() {
        check(r"pattern: 'foo(?!bar)'", "foobaz", "yes");
        check(r"pattern: '(\w)\1'", "abba", "yes");
        check(r"pattern: '(?<=x)y'", "zy", "no");
    }

    #[test]
    fn endless_backtracking_is_an_error() {
        let hostile = "a".repeat(40) + "!";
        check(r"pattern: '(?=x?)(a|a)*(?=b)c'", &hostile, "error");
    }

    #[test]
    fn what_is_no_regex_is_plain_text() {
        check("pattern: '[unclosed'", "value [unclosed here", "yes");
        check("pattern: '[unclosed'", "value here", "no");
    }

    #[test]
    fn error_patterns_count_when_the_pattern_is_missing() {
        check("pattern: passed, error_patterns: [panicked]", "it panicked", "error");
        check("pattern: passed, error_patterns: [panicked]", "passed, though it panicked", "yes");
        check("pattern: passed, error_patterns: [panicked]", "nothing", "no");
    }

    #[test]
    fn details_are_fixed() {
        let (_, details) = judge_with("{type: output_contains, pattern: a}", None, "b", 0);
        assert_eq!(details, json!({"matched": false, "pattern": "a", "negate": false}));
    }
}
