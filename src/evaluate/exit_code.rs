//! `exit_code`: the Unix convention. 0 is yes, 1 is no, anything else is an error.

use serde_json::json;

use crate::base::decode::record;
use crate::base::template::Template;

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::subject::excerpt;
use super::verdict::Verdict;

record! {
    /// Judges the exit code of the action.
    pub struct ExitCode {
        /// The code that means yes; every other one is no.
        target: Option<Field<i32>>,
        /// The code to judge instead of the one of the action.
        source: Option<Template>,
    }
}

impl ExitCode {
    /// Makes the evaluator that shell actions get when they name none.
    pub fn unix() -> Self {
        Self { target: None, source: None }
    }
}

impl Evaluator for ExitCode {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let code = match &self.source {
            Some(source) => {
                let text = source.render(judging.scope)?;
                let Ok(code) = text.trim().parse() else {
                    return Ok(Judged::error(format!("`{}` is not an exit code", excerpt(&text))));
                };
                code
            }
            None => judging.seen.map_or(0, |seen| seen.exit_code),
        };
        let verdict = match (&self.target, code) {
            (Some(target), code) => Verdict::yes_if(code == target.resolve(judging.scope)?),
            (None, 0 | 1) => Verdict::yes_if(code == 0),
            (None, _) => Verdict::error(),
        };
        Ok(Judged::new(verdict, json!({ "exit_code": code })))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let target = self.target.as_ref().and_then(Field::as_template).map(|target| ("target", target));
        let source = self.source.as_ref().map(|source| ("source", source));
        target.into_iter().chain(source).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::judge;

    #[test]
    fn the_unix_convention() {
        for (code, expected) in [(0, "yes"), (1, "no"), (2, "error"), (124, "error"), (137, "error")] {
            assert_eq!(judge("type: exit_code", "", code), expected, "{code}");
        }
    }

    #[test]
    fn a_target_turns_the_code_into_yes_or_no() {
        for (code, expected) in [(3, "yes"), (0, "no"), (127, "no")] {
            assert_eq!(judge("{type: exit_code, target: 3}", "", code), expected, "{code}");
        }
        assert_eq!(judge("{type: exit_code, target: '${context.n}'}", "", 5), "yes");
    }

    #[test]
    fn a_source_replaces_the_code() {
        assert_eq!(judge("{type: exit_code, source: '${context.n}'}", "", 0), "error");
        assert_eq!(judge("{type: exit_code, source: '${context.n}', target: 5}", "", 0), "yes");
        assert_eq!(judge("{type: exit_code, source: '${context.word}'}", "", 0), "error");
    }
}
