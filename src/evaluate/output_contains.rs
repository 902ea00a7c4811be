//! `output_contains`: a pattern stands in the output, or does not.

use fancy_regex::Regex as Backtracking;
use regex::{Regex, RegexBuilder};
use serde_json::json;

use super::effort::PatternEffort;
use super::evaluator::{Evaluator, Judged, Judging, Oddity, Verdicts};
use super::field::FieldError;
use super::judged_text::{JudgedText, excerpt, subject};
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;

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
            JudgedText::Text(text) => text,
            JudgedText::Crashed(judged) => return Ok(judged),
        };
        // The end of its last line belongs to the way a text is printed, so that `done$` finds the last line.
        let text = text.strip_suffix('\n').map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text));
        let template = self.pattern.render(judging.scope)?;
        let pattern = match OutputPattern::read(&template) {
            Ok(pattern) => pattern,
            Err(why) => return Ok(Judged::error(why.to_string())),
        };
        if self.negate && pattern.is_plain() {
            return Ok(Judged::error(negated_plain(&template)));
        }
        let matched = match pattern.is_in(text) {
            Ok(matched) => matched,
            Err(why) => return Ok(Judged::error(why.to_string())),
        };
        // Only where absence means yes: what was not kept may hold the pattern.
        let unseen = if self.negate && !matched { self.unseen(judging) } else { None };
        if let Some(why) = unseen {
            return Ok(Judged::error(why));
        }
        // Only without a match: a text that has both is decided by the pattern. Where absence means yes, a crash before anything was
        // looked at must not be one.
        if !matched {
            for template in &self.error_patterns {
                let error = template.render(judging.scope)?;
                match OutputPattern::read(&error).and_then(|pattern| pattern.is_in(text)) {
                    Ok(true) => {
                        return Ok(Judged::error(format!("the output contains `{}`", excerpt(&error))));
                    }
                    Ok(false) => {}
                    Err(why) => return Ok(Judged::error(why.to_string())),
                }
            }
        }
        let details = json!({ "matched": matched, "pattern": template, "negate": self.negate });
        Ok(Judged::new(Verdict::yes_if(matched != self.negate), details))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["matched", "pattern", "negate"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let patterns = self.error_patterns.iter().map(|pattern| ("error_patterns", pattern));
        let source = self.source.as_ref().map(|source| ("source", source));
        std::iter::once(("pattern", &self.pattern)).chain(patterns).chain(source).collect()
    }

    fn check(&self, effort: &mut PatternEffort) -> Vec<Oddity> {
        let patterns = std::iter::once(("pattern", &self.pattern));
        let patterns = patterns.chain(self.error_patterns.iter().map(|pattern| ("error_patterns", pattern)));
        let literals = patterns.filter_map(|(key, pattern)| Some((key, pattern.as_literal()?)));
        literals.filter_map(|(key, pattern)| self.oddity(key, &pattern, effort)).collect()
    }
}

impl OutputContains {
    /// Returns why nothing can be said about a text in which the pattern is not.
    fn unseen(&self, judging: Judging<'_>) -> Option<String> {
        let Some(source) = &self.source else {
            let seen = judging.seen?;
            if seen.stdout.is_truncated() {
                let (printed, kept) = (seen.stdout.bytes(), seen.stdout.as_str().len());
                return Some(format!(
                    "the pattern is not in the last {kept} bytes of the output, and {printed} were printed"
                ));
            }
            // A tool that failed without a word may not have looked at anything.
            let is_silent = seen.stdout.as_str().trim().is_empty();
            return (is_silent && !seen.succeeded())
                .then(|| format!("the action failed (exit {}) and printed nothing", seen.exit_code));
        };
        let cut = source.expressions().find(|value| judging.scope.is_cut(value.namespace, &value.path))?;
        Some(format!("the pattern is not in what was kept of `${{{cut}}}`, which was longer"))
    }

    /// Says what is odd about a pattern that is known when the file is read.
    fn oddity(&self, key: &'static str, pattern: &str, effort: &mut PatternEffort) -> Option<Oddity> {
        match OutputPattern::check(pattern, effort) {
            CheckedPattern::Fine => None,
            CheckedPattern::Plain if self.negate && key == "pattern" => {
                Some(Oddity::fault(key, negated_plain(pattern)))
            }
            CheckedPattern::Plain => {
                let shown = excerpt(pattern);
                let message =
                    format!("`{shown}` is not a valid regular expression and is searched as plain text");
                Some(Oddity::warning(key, message))
            }
            CheckedPattern::Unusable(why) => Some(Oddity::fault(key, why.to_string())),
        }
    }
}

fn negated_plain(pattern: &str) -> String {
    let shown = excerpt(pattern);
    format!("`{shown}` is not a valid regular expression, so its absence proves nothing (`negate`)")
}

/// A pattern in the cheapest form that can express it.
enum OutputPattern {
    /// Linear time, whatever the output is.
    Linear(Regex),
    /// Look-around or back-references; the engine bounds its backtracking.
    Backtracking(Backtracking),
    /// No regular expression at all.
    Plain(String),
}

/// Why a pattern cannot be searched.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("the pattern `{0}` needs too much backtracking")]
    TooMuchBacktracking(String),
    #[error("the pattern `{0}` is too large; repeat less in it")]
    TooLarge(String),
}

/// What is known about a pattern before the run.
enum CheckedPattern {
    Fine,
    Plain,
    Unusable(Unusable),
}

/// A pattern that is longer was pasted by mistake.
const LONGEST_PATTERN: usize = 64 * 1024;

/// The most memory that a compiled pattern may take.
// The limit that the crate `regex` has by default.
const LARGEST: usize = 10 * 1024 * 1024;

/// What is enough for nearly all patterns, and is reached in no time by the others.
const SMALL: usize = 64 * 1024;

/// The memory that is counted for an instruction of a pattern with look-around or back-references.
// An estimate: the engine limits the number of instructions, and not their bytes.
const INSTRUCTION: usize = 128;

impl OutputPattern {
    fn read(pattern: &str) -> Result<Self, Unusable> {
        Self::compiled(pattern, LARGEST)
    }

    fn compiled(pattern: &str, largest: usize) -> Result<Self, Unusable> {
        let too_large = || Unusable::TooLarge(excerpt(pattern));
        if pattern.len() > LONGEST_PATTERN {
            return Err(too_large());
        }
        // The linear engine comes first: no text makes it slow. Only what it cannot express takes
        // the other.
        match RegexBuilder::new(pattern).size_limit(largest).build() {
            Ok(linear) => return Ok(Self::Linear(linear)),
            // The other engine would be asked in vain: it gives its parts to this one.
            Err(regex::Error::CompiledTooBig(_)) => return Err(too_large()),
            Err(_) => {}
        }
        let backtracking = fancy_regex::RegexBuilder::new(pattern)
            .delegate_size_limit(largest)
            .max_prog_size(largest / INSTRUCTION)
            .build();
        match backtracking {
            Ok(backtracking) => Ok(Self::Backtracking(backtracking)),
            Err(error) if is_about_size(&error) => Err(too_large()),
            Err(_) => Ok(Self::Plain(pattern.to_owned())),
        }
    }

    /// Looks at a pattern as closely as there is effort left for.
    fn check(pattern: &str, effort: &mut PatternEffort) -> CheckedPattern {
        // Spent before it is compiled, so that what would take too long is not begun.
        if pattern.len() <= LONGEST_PATTERN && !effort.spend(effort_of(pattern)) {
            return CheckedPattern::Fine;
        }
        let checked = match Self::compiled(pattern, SMALL) {
            Err(Unusable::TooLarge(_)) if pattern.len() <= LONGEST_PATTERN => {
                if !effort.spend(PatternEffort::LARGE_PATTERN) {
                    return CheckedPattern::Fine;
                }
                Self::compiled(pattern, LARGEST)
            }
            checked => checked,
        };
        match checked {
            Ok(Self::Linear(_) | Self::Backtracking(_)) => CheckedPattern::Fine,
            Ok(Self::Plain(_)) => CheckedPattern::Plain,
            Err(why) => CheckedPattern::Unusable(why),
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    fn is_in(&self, text: &str) -> Result<bool, Unusable> {
        match self {
            Self::Linear(regex) => Ok(regex.is_match(text)),
            Self::Backtracking(regex) => {
                let too_much = |_| Unusable::TooMuchBacktracking(excerpt(regex.as_str()));
                regex.is_match(text).map_err(too_much)
            }
            Self::Plain(plain) => Ok(text.contains(plain.as_str())),
        }
    }
}

/// Estimates what it takes to read a pattern: classes and repetitions are written in a few signs and hold much.
fn effort_of(pattern: &str) -> usize {
    let repetitions = pattern.bytes().filter(|byte| *byte == b'{').count() * PatternEffort::REPETITION;
    let classes = pattern.bytes().filter(|byte| matches!(byte, b'\\' | b'[' | b'.')).count();
    // A guess that is never too low: the flag may stand in any group.
    let is_folded = pattern.contains("(?") && pattern.contains('i');
    pattern.len()
        + repetitions
        + classes * if is_folded { PatternEffort::FOLDED_CLASS } else { PatternEffort::CLASS }
}

fn is_about_size(error: &fancy_regex::Error) -> bool {
    use fancy_regex::{CompileError, Error};
    let Error::CompileError(error) = error else { return false };
    let is_piece = matches!(&**error, CompileError::InnerError(inner) if inner.size_limit().is_some());
    is_piece || matches!(**error, CompileError::PatternTooComplex)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{checked, judge, judge_seen, judge_with};
    use crate::evaluate::observation::{Observation, Text};

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
    fn the_end_of_the_last_line_is_not_searched() {
        check("pattern: 'done$'", "x\ndone\n", "yes");
        check("pattern: 'done$'", "x\r\ndone\r\n", "yes");
        check(r"pattern: 'done\z'", "done\n", "yes");
        check(r"pattern: 'done\z'", "done\n\n", "no");
        check("pattern: 'done$'", "done\nmore\n", "no");
        check(r#"pattern: "done\n""#, "done\n", "no");
        check(r#"pattern: "^$""#, "\n", "yes");
    }

    #[test]
    fn not_finding_it_counts_only_where_it_could_have_been_found() {
        let negated =
            |pattern: &str| format!("{{type: output_contains, pattern: '{pattern}', negate: true}}");
        let verdict = |spec: &str, stdout: Text, exit_code: i32| {
            let seen = Observation { stdout, ..Observation::exited(exit_code, "") };
            judge_seen(spec, &seen).verdict.to_string()
        };
        let cut = || Text::end_of("the end: FOUND\n".to_owned(), 10_000_000);
        assert_eq!(verdict(&negated("ERROR"), cut(), 0), "error", "it may have been in what was cut");
        assert_eq!(verdict(&negated("FOUND"), cut(), 0), "no", "it is there, whatever was cut");
        assert_eq!(verdict(&negated("[ERROR"), Text::whole("fine"), 0), "error", "no regular expression");
        assert_eq!(verdict(&negated("[ERROR"), Text::whole("[ERROR"), 0), "error", "no regular expression");
        assert_eq!(verdict(&negated("ERROR"), Text::whole(" \n"), 1), "error", "it failed and said nothing");
        assert_eq!(verdict(&negated("ERROR"), Text::whole("fine"), 1), "yes");
        assert_eq!(verdict(&negated("ERROR"), Text::whole(""), 0), "yes");
        let source = "{type: output_contains, pattern: ERROR, negate: true, source: '${captured.cut}'}";
        assert_eq!(verdict(source, Text::default(), 0), "error", "the source was cut");
        assert_eq!(verdict("{type: output_contains, pattern: ERROR}", cut(), 0), "no");
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

    fn found(keys: &str) -> Vec<(String, bool)> {
        let found = checked(&format!("{{type: output_contains, {keys}}}"));
        found.into_iter().map(|odd| (odd.key.to_owned(), odd.is_fault)).collect()
    }

    #[test]
    fn what_can_never_be_searched_is_found_before_the_run() {
        for (keys, expected) in [
            ("pattern: 'a+'", None),
            (r"pattern: '\p{L}{50}'", None),
            (r"pattern: '(?<=x)(\w)\1'", None),
            ("pattern: '${context.word}['", None),
            ("pattern: '[a'", Some(("pattern", false))),
            ("pattern: '[a', negate: true", Some(("pattern", true))),
            ("pattern: ok, error_patterns: ['[a']", Some(("error_patterns", false))),
            ("pattern: ok, negate: true, error_patterns: ['[a']", Some(("error_patterns", false))),
            ("pattern: '(a{1000}){1000}'", Some(("pattern", true))),
            ("pattern: '(?=b)((a{1000}){1000}){1000}c'", Some(("pattern", true))),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(key, fault)| (key.to_owned(), fault)).collect();
            assert_eq!(found(keys), expected, "{keys}");
        }
        check("pattern: '(a{1000}){1000}'", "(a{1000}){1000}", "error");
        check("pattern: '(?=b)((a{1000}){1000}){1000}c'", "b", "error");
    }

    #[test]
    fn a_file_of_nothing_but_patterns_is_not_compiled_to_the_end() {
        let mut effort = super::PatternEffort::new();
        let hostile = r"(?i)\p{L}".repeat(40);
        let checked = (0..1000).map(|_| super::OutputPattern::check(&hostile, &mut effort));
        let looked_at = checked.filter(|checked| !matches!(checked, super::CheckedPattern::Fine)).count();
        assert!(looked_at < 10, "{looked_at}");
        assert!(!effort.spend(500_000), "it was looked at");
    }
}
