//! Parses the answers of planners into plans and tasks.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::task::Complexity;

/// A plan for the goal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPlan {
    /// The tasks, in order.
    pub tasks: Vec<PlannedTask>,
    /// What may go wrong.
    #[serde(default, deserialize_with = "or_nothing")]
    pub risks: Vec<String>,
    /// Its assumptions.
    #[serde(default, deserialize_with = "or_nothing")]
    pub assumptions: Vec<String>,
}

/// A task in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskParts {
    /// The parts, in order.
    #[serde(alias = "tasks")]
    pub subtasks: Vec<PlannedTask>,
    /// Further criteria for all of them.
    #[serde(default, deserialize_with = "or_nothing")]
    pub verification_criteria: Vec<String>,
}

/// A task of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedTask {
    /// What is to be done.
    pub description: String,
    /// How hard it is.
    #[serde(default, deserialize_with = "or_nothing")]
    pub complexity: Complexity,
    /// The indices, from 0, of tasks that come before it.
    #[serde(default, deserialize_with = "or_nothing")]
    pub dependencies: Vec<Value>,
    /// Its criteria.
    #[serde(default, deserialize_with = "or_nothing")]
    pub verification_criteria: Vec<String>,
}

/// Reads a value that may be `null`.
fn or_nothing<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    // Models write `null` under keys for which they have nothing.
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
