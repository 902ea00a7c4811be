//! The words of the conventions for how something of a run came out.

use serde::Serialize;

use crate::base::text::{first_line, one_line};
use crate::engine::outcome::Outcome;
use crate::evaluate::verdict::Observes;

/// The longest command that a span has, in characters.
const LONGEST_COMMAND: usize = 120;

/// Returns the result of a pipeline as `cicd.pipeline.result` knows it; none for a run that goes on later, which has no result yet.
pub fn pipeline_result(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Success => Some("success"),
        Outcome::Failure | Outcome::Exhausted | Outcome::Stopped | Outcome::Blocked => Some("failure"),
        Outcome::Error | Outcome::OverBudget | Outcome::Unavailable | Outcome::LeaseLost => Some("error"),
        Outcome::Timeout => Some("timeout"),
        Outcome::Interrupted | Outcome::Cancelled => Some("cancellation"),
        Outcome::Handoff => None,
    }
}

/// Returns the result of a step as `cicd.pipeline.task.run.result` knows it; none where its verdict says nothing of the work.
pub fn task_result(observes: Observes) -> Option<&'static str> {
    match observes {
        Observes::Passing => Some("success"),
        Observes::Failing => Some("failure"),
        Observes::Nothing => None,
    }
}

/// Returns the word by which a journal knows a value.
pub fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        // Only such as are words in a journal are asked for.
        Ok(_) | Err(_) => String::new(),
    }
}

/// Returns what is shown of a command: the beginning of its first line, because what is interpolated further on may be
/// output of others.
pub fn shown_command(command: &str) -> String {
    one_line(first_line(command.trim()), LONGEST_COMMAND)
}

/// Returns who offers a model, as `gen_ai.provider.name` knows them; none for a name that does not tell.
pub fn provider_of(model: &str) -> Option<&'static str> {
    // Gateways write the names of vendors in front, as in `anthropic/claude-opus`.
    let name = model.rsplit('/').next().unwrap_or(model);
    let begins = |word: &str| name.starts_with(word);
    if begins("claude") {
        Some("anthropic")
    } else if ["gpt", "o1", "o3", "o4", "codex"].into_iter().any(begins) {
        Some("openai")
    } else if begins("gemini") {
        Some("gcp.gemini")
    } else if ["mistral", "codestral", "devstral"].into_iter().any(begins) {
        Some("mistral_ai")
    } else if begins("deepseek") {
        Some("deepseek")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_cut_to_its_first_line() {
        assert_eq!(shown_command("  cargo test\necho secret"), "cargo test");
        assert!(shown_command(&"x".repeat(1000)).chars().count() <= LONGEST_COMMAND + 1);
    }

    #[test]
    fn a_model_tells_who_offers_it_or_nobody_does() {
        assert_eq!(provider_of("claude-sonnet-4-5"), Some("anthropic"));
        assert_eq!(provider_of("models/gemini-2.5-pro"), Some("gcp.gemini"));
        assert_eq!(provider_of("qwen3"), None);
    }
}
