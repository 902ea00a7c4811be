//! What a verdict says about the work where it is known which evaluator gave it: the one place that tells a passing
//! observation from a failing one, and both from a word that observes nothing.

use super::Evaluate;
use super::verdict::{Observes, Verdict};

impl Evaluate {
    /// Returns what a verdict of this evaluator says, in a state that has an action or has none.
    pub fn observes(&self, verdict: &Verdict, has_action: bool) -> Observes {
        let only = |good: &str, word: &str| if word == good { Observes::Passing } else { Observes::Failing };
        let observes = match (self, verdict.as_str()) {
            // The end of the action or of the evaluation, whoever was to judge.
            (_, "error" | "timeout") => Observes::Failing,
            // Whether something changes is not whether it is right.
            (
                Self::DiffStall(_) | Self::ScoreStall(_) | Self::OpenQuestionStall(_) | Self::ActionStall(_),
                _,
            )
            | (Self::Convergence(_), "progress")
            | (Self::Criteria(_), "inactive") => Observes::Nothing,
            (Self::Convergence(_), word) => only("target", word),
            (Self::Criteria(_), word) => only("done", word),
            (Self::McpResult(_), word) => only("success", word),
            (
                Self::ExitCode(_)
                | Self::OutputNumeric(_)
                | Self::OutputJson(_)
                | Self::OutputContains(_)
                | Self::Classify(_)
                | Self::HarborScorer(_)
                | Self::Answer(_)
                | Self::Score(_)
                | Self::LlmStructured(_),
                _,
            ) => verdict.observes(),
        };
        // Without an action, such an evaluator has judged an empty text.
        let is_of_nothing = observes == Observes::Passing && !has_action && !self.looks_further();
        if is_of_nothing { Observes::Nothing } else { observes }
    }

    /// Tells whether there is something to look at besides what the action of the state did.
    fn looks_further(&self) -> bool {
        let has = |keys: &[&str]| self.templates().iter().any(|(key, _)| keys.contains(key));
        match self {
            Self::Criteria(_) | Self::DiffStall(_) | Self::OpenQuestionStall(_) | Self::ActionStall(_) => {
                true
            }
            // A prompt of its own may name what an earlier state captured.
            Self::LlmStructured(_) => has(&["source", "prompt"]),
            Self::ExitCode(_)
            | Self::OutputNumeric(_)
            | Self::OutputJson(_)
            | Self::OutputContains(_)
            | Self::Convergence(_)
            | Self::Classify(_)
            | Self::ScoreStall(_)
            | Self::HarborScorer(_)
            | Self::McpResult(_)
            | Self::Answer(_)
            | Self::Score(_) => has(&["source"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::evaluator;
    use super::*;

    #[track_caller]
    fn check(spec: &str, expected: &str) {
        let evaluate = evaluator(spec);
        for pair in expected.split_whitespace() {
            let (word, sign) = pair.split_at(pair.len() - 1);
            let expected = match sign {
                "+" => Observes::Passing,
                "-" => Observes::Failing,
                _ => Observes::Nothing,
            };
            assert_eq!(evaluate.observes(&Verdict::new(word), true), expected, "{spec}: {word}");
        }
    }

    #[test]
    fn every_evaluator_says_what_its_verdicts_observe() {
        check("type: exit_code", "yes+ no- error- timeout-");
        check("{type: output_numeric, operator: eq, target: 0}", "yes+ no- error-");
        check("{type: output_json, path: a, operator: eq, target: 0}", "yes+ no- error-");
        check("{type: output_contains, pattern: x}", "yes+ no- error-");
        check("{type: convergence, target: 0}", "target+ progress. stall- error- timeout-");
        check(
            "type: classify",
            "yes+ green+ no- blocked- partial- progress. cannot_judge- error- not_found+",
        );
        for stall in ["diff_stall", "action_stall", "score_stall", "open_question_stall"] {
            check(&format!("type: {stall}"), "yes. no. error- timeout-");
        }
        check("type: harbor_scorer", "yes+ no- error-");
        check("type: mcp_result", "success+ tool_error- not_found- timeout- error-");
        check("type: criteria", "done+ continue- stuck- inactive. error-");
        check("{type: answer, field: verdict}", "yes+ no- partial- blocked- cannot_judge- error-");
        check("type: score", "yes+ no- partial- error-");
        check("type: llm_structured", "yes+ no- blocked- partial- yes_uncertain- cannot_judge- error-");
    }

    #[test]
    fn an_evaluator_with_nothing_to_look_at_observes_nothing() {
        let of = |spec: &str, word: &str| evaluator(spec).observes(&Verdict::new(word), false);
        for spec in ["type: exit_code", "{type: output_contains, pattern: x, negate: true}"] {
            assert_eq!(of(spec, "yes"), Observes::Nothing, "{spec}");
            assert_eq!(of(spec, "no"), Observes::Failing, "{spec}");
        }
        for spec in [
            "{type: exit_code, source: '${context.n}'}",
            "{type: output_contains, pattern: x, source: '${context.word}'}",
            "{type: llm_structured, prompt: 'is ${context.word} good?'}",
        ] {
            assert_eq!(of(spec, "yes"), Observes::Passing, "{spec}");
        }
        assert_eq!(of("type: criteria", "done"), Observes::Passing);
    }
}
