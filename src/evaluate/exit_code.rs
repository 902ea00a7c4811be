//! `exit_code`: the Unix convention. 0 is yes, 1 is no, anything else is an error; a loop may list what is no.

use serde_json::{Value, json};

use super::effort::PatternEffort;
use super::evaluator::{Evaluator, Judged, Judging, Oddity, Verdicts};
use super::exit_codes::ExitCodes;
use super::field::{Field, FieldError};
use super::judged_text::excerpt;
use super::number_bounds::ExitStatus;
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;
use crate::tools;

record! {
    /// Judges the exit code of the action.
    pub struct ExitCode {
        /// The code that means yes; every other one is no, unless those are listed.
        target: Option<Field<ExitStatus>>,
        /// The codes that mean no; every other one is an error, except the target.
        no: Option<ExitCodes>,
        /// Whether `no` becomes an error where the output says that the tool did not run.
        error_if_not_run: bool = false,
        /// Whether exit code 3 says that the action could not judge: the verdict is `cannot_judge`.
        abstain_on_exit_3: bool = false,
        /// The code to judge instead of the one of the action.
        source: Option<Template>,
    }
}

/// The exit code of a checker that cannot judge.
const ABSTAINS: i32 = 3;

impl ExitCode {
    /// Makes the evaluator that shell actions get when they name none.
    pub fn unix() -> Self {
        Self { target: None, no: None, error_if_not_run: false, abstain_on_exit_3: false, source: None }
    }

    /// Returns what to write so that a code which is an error now means no. From 126 on, nothing ran that could say
    /// no.
    pub fn advice(&self, code: i32) -> Option<String> {
        let is_known = self.no.as_ref().is_some_and(|no| no.contain(code));
        let is_of_a_tool = ExitCodes::nonzero().contain(code) && !is_known;
        is_of_a_tool.then(|| match &self.no {
            Some(no) => format!("`\"no\": [{no}, {code}]`"),
            None => format!("`evaluate: {{type: exit_code, \"no\": [1, {code}]}}`"),
        })
    }

    /// Returns what shows that the tool did not run, where that is asked for: `npx` without the package ends with 1, as a
    /// linter does that found something.
    fn not_run(&self, judging: Judging<'_>, code: i32) -> Option<Value> {
        let seen = judging.seen.filter(|_| self.error_if_not_run)?;
        // Some tools say it on one of the streams, and some on the other.
        let output = format!("{}\n{}", seen.stdout.as_str(), seen.stderr.as_str());
        let found = tools::could_not_run_text(judging.action.unwrap_or(""), code, &output)?;
        let error = format!("it could not run: {} ({})", found.said, found.lacks.advice());
        Some(json!({ "exit_code": code, "error": error }))
    }

    /// Returns what is odd about a code that says that nothing could be judged.
    fn odd_abstention(&self) -> Option<Oddity> {
        let is_target =
            self.target.as_ref().and_then(Field::as_literal).is_some_and(|code| code.get() == ABSTAINS);
        let key = match &self.no {
            _ if is_target => "target",
            Some(no) if no.contain(ABSTAINS) => "no",
            _ => return None,
        };
        let message =
            || format!("the exit code {ABSTAINS} means `cannot_judge`, and stands in `{key}` as well");
        self.abstain_on_exit_3.then(|| Oddity::fault(key, message()))
    }

    /// Returns what is odd about the list of codes. A target that is a template is compared first.
    fn odd_list(&self) -> Option<Oddity> {
        let no = self.no.as_ref()?;
        let target =
            self.target.as_ref().map_or(Some(0), |target| target.as_literal().map(|code| code.get()))?;
        let message = || format!("the exit code {target} means yes, and stands in `no` as well");
        no.contain(target).then(|| Oddity::fault("no", message()))
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
            // Without an action, nothing has failed. That nothing was observed either is known to `observes`.
            None => judging.seen.map_or(0, |seen| seen.exit_code),
        };
        let target = self.target.as_ref().map(|target| target.resolve(judging.scope)).transpose()?;
        let target = target.map(ExitStatus::get);
        let is_no = match (&self.no, target) {
            (Some(no), _) => no.contain(code),
            (None, Some(_)) => true,
            (None, None) => code == 1,
        };
        let verdict = match code == target.unwrap_or(0) {
            // Before all else: with this key, code 3 never says anything about the work.
            _ if self.abstain_on_exit_3 && code == ABSTAINS => Verdict::cannot_judge(),
            true => Verdict::yes_if(true),
            false if is_no => match self.not_run(judging, code) {
                Some(not_run) => return Ok(Judged::new(Verdict::error(), not_run)),
                None => Verdict::yes_if(false),
            },
            false => Verdict::error(),
        };
        Ok(Judged::new(verdict, json!({ "exit_code": code })))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(if self.abstain_on_exit_3 { &["yes", "no", "cannot_judge"] } else { &["yes", "no"] })
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["exit_code"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let target = self.target.as_ref().and_then(Field::as_template).map(|target| ("target", target));
        let source = self.source.as_ref().map(|source| ("source", source));
        target.into_iter().chain(source).collect()
    }

    fn check(&self, _: &mut PatternEffort) -> Vec<Oddity> {
        self.odd_abstention().into_iter().chain(self.odd_list()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{checked, judge};

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
    fn a_checker_can_abstain() {
        let spec = "{type: exit_code, abstain_on_exit_3: true}";
        assert_eq!([0, 1, 3, 4].map(|code| judge(spec, "", code)), ["yes", "no", "cannot_judge", "error"]);
        assert_eq!(judge("{type: exit_code, abstain_on_exit_3: true, source: '3'}", "", 0), "cannot_judge");
        assert_eq!(judge("{type: exit_code, abstain_on_exit_3: false}", "", 3), "error");
        assert_eq!(judge("{type: exit_code, abstain_on_exit_3: true, target: 1}", "", 3), "cannot_judge");
    }

    #[test]
    fn a_source_replaces_the_code() {
        assert_eq!(judge("{type: exit_code, source: '${context.n}'}", "", 0), "error");
        assert_eq!(judge("{type: exit_code, source: '${context.n}', target: 5}", "", 0), "yes");
        assert_eq!(judge("{type: exit_code, source: '${context.word}'}", "", 0), "error");
    }

    #[test]
    fn listed_codes_are_no_and_the_others_stay_errors() {
        for (spec, codes) in [
            ("no: [1, 101]", "0 yes 1 no 101 no 2 error 137 error"),
            ("'no': [2, 4-6]", "0 yes 1 error 2 no 3 error 4 no 6 no 7 error"),
            ("no: nonzero", "0 yes 1 no 125 no 126 error 127 error 137 error"),
            ("no: 130-255", "0 yes 1 error 137 no 255 no"),
            ("target: 3, no: 0", "3 yes 0 no 1 error"),
            ("target: '${context.n}', no: 1-9", "5 yes 6 no 0 error"),
        ] {
            let words: Vec<_> = codes.split(' ').collect();
            for pair in words.chunks(2) {
                let spec = format!("{{type: exit_code, {spec}}}");
                assert_eq!(judge(&spec, "", pair[0].parse().unwrap()), pair[1], "{spec}: {}", pair[0]);
            }
        }
    }

    #[test]
    fn a_tool_that_did_not_run_has_not_said_no() {
        let missing = "npx canceled due to missing packages and no YES option: [\"eslint@9\"]";
        for (keys, output, expected) in [
            ("no: nonzero, error_if_not_run: true", missing, "error"),
            ("no: nonzero, error_if_not_run: true", "a.js: error", "no"),
            ("error_if_not_run: true", missing, "error"),
            ("no: nonzero", missing, "no"),
            ("target: 1, error_if_not_run: true", missing, "yes"),
        ] {
            assert_eq!(
                judge(&format!("{{type: exit_code, {keys}}}"), output, 1),
                expected,
                "{keys}: {output}"
            );
        }
    }

    #[test]
    fn codes_that_mean_two_things_or_nothing_are_faults() {
        for (spec, expected) in [
            ("no: [1]", None),
            ("no: 0", Some("no")),
            ("no: [1, 0-3]", Some("no")),
            ("target: 4, no: nonzero", Some("no")),
            ("target: 4, no: [0, 3, 5]", None),
            ("target: '${context.n}', no: 1-9", None),
            ("target: 255", None),
            ("target: 3", None),
            ("target: 3, abstain_on_exit_3: true", Some("target")),
            ("no: [2-4], abstain_on_exit_3: true", Some("no")),
            ("no: [4], abstain_on_exit_3: true", None),
        ] {
            let found = checked(&format!("{{type: exit_code, {spec}}}"));
            assert!(found.iter().all(|odd| odd.is_fault), "{spec}: {found:?}");
            assert_eq!(found.first().map(|odd| odd.key), expected, "{spec}");
        }
    }
}
