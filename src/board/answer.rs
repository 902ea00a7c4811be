//! What planners answer, as far as it makes tasks.

use serde::Deserialize;

use super::task::Complexity;

/// A plan for the goal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The tasks, in order.
    pub tasks: Vec<Planned>,
    /// What may go wrong.
    #[serde(default)]
    pub risks: Vec<String>,
    /// What is taken for granted.
    #[serde(default)]
    pub assumptions: Vec<String>,
}

/// A task in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parts {
    /// The parts, in order.
    #[serde(alias = "tasks")]
    pub subtasks: Vec<Planned>,
    /// By what they are judged besides.
    #[serde(default)]
    pub verification_criteria: Vec<String>,
}

/// A task that somebody wants to have done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// What is to be done.
    pub description: String,
    /// How hard it is.
    #[serde(default)]
    pub complexity: Complexity,
    /// Which others come before it, from 0.
    #[serde(default)]
    pub dependencies: Vec<i64>,
    /// By what it is judged.
    #[serde(default)]
    pub verification_criteria: Vec<String>,
}
