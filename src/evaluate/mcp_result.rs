//! `mcp_result`: what an MCP tool answered, by the envelope of its answer.

use serde_json::{Value, json};

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::FieldError;
use super::judged_text::{excerpt, printed};
use super::observation::{NOT_FOUND_CODE, TIMEOUT_CODE};
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;

record! {
    /// Tells a tool's answer from its error, by `{isError, content}`.
    pub struct McpResult {
        /// The envelope, instead of what the action printed.
        source: Option<Template>,
    }
}

impl Evaluator for McpResult {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let exit_code = judging.seen.map_or(0, |seen| seen.exit_code);
        let text = match &self.source {
            Some(source) => source.render(judging.scope)?.into(),
            None => printed(judging.seen),
        };
        // A given envelope speaks for itself; the code is that of whatever ran here.
        let code = if self.source.is_some() { 0 } else { exit_code };
        let envelope: Option<Value> = serde_json::from_str(text.trim()).ok().filter(Value::is_object);
        let is_error = envelope.as_ref().and_then(|envelope| envelope.get("isError")?.as_bool());
        let word = match (code, is_error, &envelope) {
            // These two codes are ours: no tool has answered, whatever was printed.
            (TIMEOUT_CODE, ..) => "timeout",
            (NOT_FOUND_CODE, ..) => "not_found",
            (_, Some(true), _) | (_, None, None) => "tool_error",
            (_, Some(false), _) => "success",
            // An envelope that does not say is believed by the exit code.
            (code, None, Some(_)) => {
                if code == 0 {
                    "success"
                } else {
                    "tool_error"
                }
            }
        };
        let mut details = json!({ "exit_code": exit_code, "envelope": envelope });
        if envelope.is_none() && word == "tool_error" {
            details["error"] = format!("`{}` is not the envelope of an answer", excerpt(&text)).into();
        }
        Ok(Judged::new(Verdict::new(word), details))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["success", "tool_error", "not_found"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["exit_code", "envelope"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        self.source.iter().map(|source| ("source", source)).collect()
    }

    fn alias(&self, verdict: &str) -> Option<&'static str> {
        match verdict {
            "success" => Some("yes"),
            "tool_error" => Some("no"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{judge, judge_with};
    use super::*;

    #[test]
    fn the_envelope_decides() {
        for (out, code, expected) in [
            (r#"{"isError": false, "content": []}"#, 0, "success"),
            (r#"{"isError": true, "content": []}"#, 0, "tool_error"),
            (r#"{"isError": true}"#, 1, "tool_error"),
            (r#"{"content": []}"#, 0, "success"),
            (r#"{"content": []}"#, 1, "tool_error"),
            ("not json", 0, "tool_error"),
            ("[]", 0, "tool_error"),
            ("", 124, "timeout"),
            ("", 127, "not_found"),
        ] {
            assert_eq!(judge("type: mcp_result", out, code), expected, "{out} {code}");
        }
    }

    #[test]
    fn a_given_envelope_replaces_the_output() {
        let spec = "{type: mcp_result, source: '{\"isError\": false, \"n\": ${context.n}}'}";
        let (verdict, details) = judge_with(spec, None, "", 127);
        assert_eq!(verdict, "success");
        assert_eq!(details, json!({"exit_code": 127, "envelope": {"isError": false, "n": 5}}));
    }
}
