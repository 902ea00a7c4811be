//! The calls of agents: who is asked what, and which form the answer has.

use serde_json::{Value, json};

use crate::board::{MOST_PARTS, MOST_TASKS};

/// A call of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// The goal becomes a plan.
    Plan,
    /// The plan is judged.
    VerifyPlan,
    /// A task is done.
    Implement,
    /// It is tested.
    Test,
    /// What the test found is mended.
    Fix,
    /// The task is judged.
    VerifyStep,
    /// A task is split.
    Replan,
    /// The goal is judged.
    VerifyGoal,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Planner,
    Coder,
    Tester,
    Supervisor,
}

impl Role {
    /// Returns the word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Coder => "coder",
            Self::Tester => "tester",
            Self::Supervisor => "supervisor",
        }
    }
}

impl Call {
    /// Every call, in the order of a run.
    pub(super) const ALL: [Self; 8] = [
        Self::Plan,
        Self::VerifyPlan,
        Self::Implement,
        Self::Test,
        Self::Fix,
        Self::VerifyStep,
        Self::Replan,
        Self::VerifyGoal,
    ];

    /// Returns its name, by which a loop replaces its prompt and children know it.
    pub(super) fn phase(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::VerifyPlan => "verify_plan",
            Self::Implement => "implement",
            Self::Test => "test",
            Self::Fix => "fix",
            Self::VerifyStep => "verify_step",
            Self::Replan => "replan",
            Self::VerifyGoal => "verify_goal",
        }
    }

    /// Returns the state that makes it.
    pub(super) fn state(self) -> &'static str {
        match self {
            Self::VerifyPlan => "review",
            Self::VerifyStep => "verify",
            Self::Plan | Self::Implement | Self::Test | Self::Fix | Self::Replan | Self::VerifyGoal => {
                self.phase()
            }
        }
    }

    /// Returns who is asked.
    pub(super) fn role(self) -> Role {
        match self {
            Self::Plan | Self::Replan => Role::Planner,
            Self::Implement | Self::Fix => Role::Coder,
            Self::Test => Role::Tester,
            Self::VerifyPlan | Self::VerifyStep | Self::VerifyGoal => Role::Supervisor,
        }
    }

    /// Tells whether it is about one task.
    pub(super) fn is_of_task(self) -> bool {
        match self {
            Self::Implement | Self::Test | Self::Fix | Self::VerifyStep | Self::Replan => true,
            Self::Plan | Self::VerifyPlan | Self::VerifyGoal => false,
        }
    }

    /// Returns the prompt that is used when the loop brings none.
    pub(super) fn prompt(self) -> &'static str {
        match self {
            Self::Plan => include_str!("prompts/plan.md"),
            Self::VerifyPlan => include_str!("prompts/verify_plan.md"),
            Self::Implement => include_str!("prompts/implement.md"),
            Self::Test => include_str!("prompts/test.md"),
            Self::Fix => include_str!("prompts/fix.md"),
            Self::VerifyStep => include_str!("prompts/verify_step.md"),
            Self::Replan => include_str!("prompts/replan.md"),
            Self::VerifyGoal => include_str!("prompts/verify_goal.md"),
        }
    }

    /// Returns the JSON Schema of its answer.
    pub(super) fn form(self) -> Value {
        match self {
            Self::Plan => object(
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
            Self::Replan => object(
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
            Self::Implement => object(
                &json!({
                    "status": {"enum": ["complete", "blocked", "needs_clarification"]},
                    "summary": {"type": "string"},
                    "filesModified": texts(),
                    "testsAdded": texts(),
                    "blockReason": maybe_text(),
                }),
                &["status", "summary"],
            ),
            Self::Fix => object(
                &json!({
                    "status": {"enum": ["fixed", "still_failing", "blocked"]},
                    "summary": {"type": "string"},
                    "filesModified": texts(),
                    "remainingIssues": texts(),
                }),
                &["status", "summary"],
            ),
            Self::Test => object(
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
            Self::VerifyPlan | Self::VerifyStep | Self::VerifyGoal => object(
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
    json!({"type": ["array", "null"], "items": {"type": "string"}})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn complexity() -> Value {
    json!({"enum": ["simple", "medium", "complex"]})
}
