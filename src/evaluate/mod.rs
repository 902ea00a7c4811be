//! What a verdict is, and how an observation becomes one.
//!
//! Each evaluator is one file: the keys it takes in a loop file, and the function that judges. It is known to the
//! rest by its line in [`Evaluate`].

use crate::base::decode::tagged;

pub mod answer;
pub mod effort;
pub mod evaluator;
pub mod exit_codes;
pub mod field;
pub mod form;
pub mod jq;
pub mod jq_question;
pub mod model;
pub mod number_bounds;
pub mod observation;
pub mod observes;
pub mod operator;
pub mod survey;
pub mod verdict;

mod action_stall;
mod classify;
pub(crate) mod convergence;
mod criteria_evaluator;
mod diff_stall;
pub(crate) mod exit_code;
mod harbor_scorer;
mod judged_text;
mod level;
pub(crate) mod llm_structured;
pub(crate) mod mcp_result;
mod memory;
mod number;
mod number_history;
mod open_question_stall;
mod output_contains;
mod output_json;
mod output_numeric;
mod score;
mod score_stall;

pub use action_stall::ActionStall;
pub use answer::Answered;
pub use classify::Classify;
pub use convergence::{ConvergenceEvaluator, Direction};
pub use criteria_evaluator::CriteriaEvaluator;
pub use diff_stall::DiffStall;
pub use evaluator::{ANY_DETAILS, Evaluator, FileRead, Judged, Judging, Verdicts};
pub use exit_code::ExitCode;
pub use harbor_scorer::HarborScorer;
pub use llm_structured::LlmStructured;
pub use mcp_result::McpResult;
pub use open_question_stall::OpenQuestionStall;
pub use output_contains::OutputContains;
pub use output_json::OutputJson;
pub use output_numeric::OutputNumeric;
pub use score::Score;
pub use score_stall::ScoreStall;

tagged! {
    /// How the result of a state becomes a verdict.
    pub enum Evaluate: Evaluator {
        /// By the exit code.
        ExitCode(ExitCode) = "exit_code",
        /// By a number that was printed.
        OutputNumeric(OutputNumeric) = "output_numeric",
        /// By a value in JSON that was printed.
        OutputJson(OutputJson) = "output_json",
        /// By a pattern in what was printed.
        OutputContains(OutputContains) = "output_contains",
        /// By the way of a number towards a target.
        Convergence(ConvergenceEvaluator) = "convergence",
        /// By the word that was printed.
        Classify(Classify) = "classify",
        /// By whether the working tree changes.
        DiffStall(DiffStall) = "diff_stall",
        /// By whether a score improves.
        ScoreStall(ScoreStall) = "score_stall",
        /// By whether questions are answered.
        OpenQuestionStall(OpenQuestionStall) = "open_question_stall",
        /// By whether the same thing happens again.
        ActionStall(ActionStall) = "action_stall",
        /// By the exit code and the number of a scorer.
        HarborScorer(HarborScorer) = "harbor_scorer",
        /// By the envelope of an MCP tool's answer.
        McpResult(McpResult) = "mcp_result",
        /// By the criteria of a piece of work.
        Criteria(CriteriaEvaluator) = "criteria",
        /// By a field of the answer to a prompt.
        Answer(Answered) = "answer",
        /// By the score that a reviewer gives.
        Score(Score) = "score",
        /// By the answer of a model.
        LlmStructured(LlmStructured) = "llm_structured",
    }
    refused [
        "comparator" ["baseline_path", "auto_promote", "min_pairs"] =
            "compare with `llm_structured`: name both texts in its `prompt`",
        "contract" ["pairs"] = "compare the files in a shell action, or judge them with `llm_structured`",
        "advisor_consult" ["question", "verdict_map", "signal", "context_from"] =
            "ask in a state of its own, with `action_type: prompt` and `answer`",
    ]
}

#[cfg(test)]
mod testing;
