//! `classify`: the action prints the verdict itself.

use serde_json::json;

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::judged_text::{excerpt, printed};
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;

record! {
    /// Takes a printed line as the verdict.
    pub struct Classify {
        /// Which of the lines that are not blank: `last`, `first`, or a number from 1.
        line: Field<String> = Field::Literal("last".to_owned()),
        /// The text to judge instead of what the action printed.
        source: Option<Template>,
    }
}

impl Evaluator for Classify {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let text = match &self.source {
            Some(source) => source.render(judging.scope)?.into(),
            None => printed(judging.seen),
        };
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let which = self.line.resolve(judging.scope)?;
        let line = match which.as_str() {
            "last" => lines.next_back(),
            "first" => lines.next(),
            number => number.parse::<usize>().ok().and_then(|number| lines.nth(number.checked_sub(1)?)),
        };
        Ok(match line.map(|line| (line, Verdict::parse(line))) {
            Some((_, Some(verdict))) => Judged::new(verdict, json!({ "line": which })),
            Some((line, None)) if line.chars().any(char::is_control) => {
                Judged::error(format!("`{}` has control characters, which no verdict has", excerpt(line)))
            }
            Some((line, None)) => Judged::error(format!("`{}` is too long for a verdict", excerpt(line))),
            None => Judged::error(format!("the output has no {which} line that is not blank")),
        })
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::Any
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["line"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let line = self.line.as_template().map(|line| ("line", line));
        line.into_iter().chain(self.source.as_ref().map(|source| ("source", source))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::judge;

    #[test]
    fn a_line_is_the_verdict() {
        let out = "deploy\n  rollback \n\n";
        assert_eq!(judge("type: classify", out, 0), "rollback");
        assert_eq!(judge("{type: classify, line: first}", out, 0), "deploy");
        assert_eq!(judge("{type: classify, line: 1}", out, 0), "deploy");
        assert_eq!(judge("{type: classify, line: 5}", out, 0), "error");
        assert_eq!(judge("type: classify", "\n", 0), "error");
        assert_eq!(judge("type: classify", &"x".repeat(500), 0), "error");
    }
}
