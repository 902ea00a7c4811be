//! What an agent is asked in each call, and which form its answer has.

use serde_json::{Value, json};

use crate::board::{MOST_PARTS, MOST_TASKS};
use crate::definition::schema::Phase;

/// Returns the prompt that is used when the loop brings none.
pub(super) fn prompt(phase: Phase) -> &'static str {
    match phase {
        Phase::Plan => include_str!("prompts/plan.md"),
        Phase::VerifyPlan => include_str!("prompts/verify_plan.md"),
        Phase::Implement => include_str!("prompts/implement.md"),
        Phase::Test => include_str!("prompts/test.md"),
        Phase::Fix => include_str!("prompts/fix.md"),
        Phase::VerifyStep => include_str!("prompts/verify_step.md"),
        Phase::Replan => include_str!("prompts/replan.md"),
        Phase::VerifyGoal => include_str!("prompts/verify_goal.md"),
    }
}

/// What the prompt for the judgement of the goal ends with where a command tests.
pub(super) const LAST_TEST: &str = "

The command that tests was run once more over everything, and passed. It printed:
${captured.test_goal.output?}
${captured.test_goal.stderr?}";

/// Returns the JSON Schema of the answer.
pub(super) fn form(phase: Phase) -> Value {
    match phase {
        Phase::Plan => object(
            &json!({
                "tasks": {"type": "array", "minItems": 1, "maxItems": MOST_TASKS, "items": object(
                    &json!({
                        "description": text(),
                        "complexity": complexity(),
                        "dependencies": {"type": ["array", "null"], "items": {"type": "integer"}},
                        "verificationCriteria": texts(),
                    }),
                    &["description", "complexity"],
                )},
                "risks": texts(),
                "assumptions": texts(),
            }),
            &["tasks"],
        ),
        // At least two parts: a single one would be the same task again.
        Phase::Replan => object(
            &json!({
                "analysis": {"type": "string"},
                "subtasks": {"type": "array", "minItems": 2, "maxItems": MOST_PARTS, "items": object(
                    &json!({
                        "description": text(),
                        "complexity": complexity(),
                        "verificationCriteria": texts(),
                    }),
                    &["description", "complexity"],
                )},
                "verificationCriteria": texts(),
            }),
            &["analysis", "subtasks"],
        ),
        Phase::Implement => object(
            &json!({
                "status": {"enum": ["complete", "blocked", "needs_clarification"]},
                "summary": {"type": "string"},
                "filesModified": texts(),
                "testsAdded": texts(),
                "blockReason": maybe_text(),
            }),
            &["status", "summary"],
        ),
        Phase::Fix => object(
            &json!({
                "status": {"enum": ["fixed", "still_failing", "blocked"]},
                "summary": {"type": "string"},
                "filesModified": texts(),
                "testsAdded": texts(),
                "remainingIssues": texts(),
            }),
            &["status", "summary"],
        ),
        Phase::Test => object(
            &json!({
                "status": {"enum": ["passed", "failed", "blocked"]},
                "testsRun": count(),
                "testsPassed": count(),
                "testsFailed": count(),
                "failures": {"type": ["array", "null"], "items": object(
                    &json!({
                        "testName": maybe_text(),
                        "error": maybe_text(),
                        "file": maybe_text(),
                        "severity": maybe_text(),
                    }),
                    &[],
                )},
                "fixPlan": {"type": ["string", "array", "null"]},
            }),
            &["status", "testsRun", "testsPassed", "testsFailed"],
        ),
        // The score is asked for and decides; an answer without one may still say whether it approves.
        Phase::VerifyPlan | Phase::VerifyStep | Phase::VerifyGoal => object(
            &json!({
                "score": {"type": ["number", "null"], "minimum": 0, "maximum": 100},
                "feedback": {"type": "string"},
                "approved": {"type": ["boolean", "null"]},
                "recommendation": {"type": ["string", "null"], "description": "approve, revise or reject"},
                "completeness": {},
                "issues": {"type": ["array", "null"]},
                "missingElements": {"type": ["array", "null"]},
                "escalationLevel": {
                    "type": ["string", "null"],
                    "description": "none, remind, correct, refocus, critical or abort",
                },
            }),
            &["feedback"],
        ),
    }
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn text() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn maybe_text() -> Value {
    json!({"type": ["string", "null"]})
}

fn texts() -> Value {
    // Agents write `null` where they have nothing to say, and an answer must not be refused for that.
    json!({"type": ["array", "null"], "items": {"type": "string"}})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn complexity() -> Value {
    json!({"enum": ["simple", "medium", "complex"]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::composed::ALL;

    #[test]
    fn our_own_words_leave_room_for_what_others_printed() {
        let room = 96 * 1024 - ALL;
        for phase in Phase::ALL.iter().copied() {
            let own = prompt(phase).len() + form(phase).to_string().len();
            assert!(own < room, "{phase:?}: {own}");
        }
    }
}
