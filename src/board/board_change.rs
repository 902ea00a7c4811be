//! Describes what an operation changed, for the journal: writing a whole board of many tasks at every step would
//! cost too much.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::task::{Board, Planning, Task};

/// The difference between two boards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardChange {
    /// The new state of the planning, if it changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub planning: Option<Planning>,
    /// Whether all earlier tasks were removed.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub replaces: bool,
    /// The tasks that changed or are new, as they are now.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tasks: Vec<Task>,
}

impl BoardChange {
    /// Compares two boards.
    pub fn between(before: &Board, after: &Board) -> Self {
        let known: HashMap<_, _> = before.tasks.iter().map(|task| (&task.id, task)).collect();
        let planning = (before.planning != after.planning).then(|| after.planning.clone());
        let kept = after.tasks.iter().filter(|task| known.contains_key(&task.id)).count();
        // No operation removes single tasks: where one is gone, another plan came in its place.
        let replaces = kept < before.tasks.len();
        let is_new = |task: &&Task| replaces || known.get(&task.id) != Some(task);
        Self { planning, replaces, tasks: after.tasks.iter().filter(is_new).cloned().collect() }
    }
}

impl Board {
    /// Makes the change that an operation made before.
    pub fn take(&mut self, change: &BoardChange) {
        if let Some(planning) = &change.planning {
            self.planning = planning.clone();
        }
        if change.replaces {
            self.tasks.clear();
        }
        for task in &change.tasks {
            if let Some(known) = self.task_mut(&task.id) {
                *known = task.clone();
                continue;
            }
            // Each task stands before its parts, so a new part goes behind the last of the same parent.
            let parent = task.id.parent();
            let last =
                parent.and_then(|parent| self.tasks.iter().rposition(|other| other.id.is_within(&parent)));
            let place = last.map_or(self.tasks.len(), |last| last + 1);
            self.tasks.insert(place, task.clone());
        }
    }
}
