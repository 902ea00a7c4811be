//! The replies to the hooks of an agent's session: one JSON object on one line, whatever the state file says.

use serde_json::{Value, json};

use super::CriteriaDecision;

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookDialect {
    /// `{"ok": …}`
    Seed,
    /// The format of Claude Code.
    Claude,
}

impl HookDialect {
    /// Answers whether the session may stop; `advice` says what it can do about it. In the seed format the reason begins
    /// with the fixed words, and advice stands on a line of its own.
    pub fn to_stop(self, decision: &CriteriaDecision, advice: Option<&str>) -> String {
        let advice = advice.filter(|_| !decision.stop);
        let reason = decision.reason.as_deref().map(|reason| {
            let lines: Vec<&str> = [Some(reason), advice].into_iter().flatten().collect();
            Value::from(lines.join("\n"))
        });
        match (self, reason) {
            // By hand, because serde writes no space behind the colons of this format.
            (Self::Seed, Some(reason)) => format!(r#"{{"ok": {}, "reason": {reason}}}"#, decision.stop),
            (Self::Seed, None) => format!(r#"{{"ok": {}}}"#, decision.stop),
            (Self::Claude, Some(reason)) if !decision.stop => {
                format!(r#"{{"decision": "block", "reason": {reason}}}"#)
            }
            // An object that says nothing lets the session stop.
            (Self::Claude, _) => "{}".to_owned(),
        }
    }

    /// Answers that the session may stop although something is left to do, and tells whoever watches it.
    pub fn to_let_go(self, message: &str) -> String {
        let message = Value::from(message);
        match self {
            Self::Seed => format!(r#"{{"ok": true, "reason": {message}, "systemMessage": {message}}}"#),
            Self::Claude => format!(r#"{{"systemMessage": {message}}}"#),
        }
    }

    /// Answers what a session that begins has to know.
    pub fn to_resume(self, message: Option<String>) -> String {
        match (self, message) {
            (Self::Seed, message) => {
                format!(r#"{{"ok": true, "message": {}}}"#, Value::from(message.unwrap_or_default()))
            }
            (Self::Claude, None) => "{}".to_owned(),
            (Self::Claude, Some(message)) => json!({
                "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": message}
            })
            .to_string(),
        }
    }
}
