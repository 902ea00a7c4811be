//! The data of the board: tasks in the order of the plan, each before its parts.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a task: its place in the plan, from 1, and behind dots its places in what its parents were split into.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(String);

impl TaskId {
    /// Returns the name of the task at a place of the plan, from 0.
    pub(super) fn root(index: usize) -> Self {
        Self((index + 1).to_string())
    }

    /// Returns the name of a part of this task, from 0.
    pub(super) fn child(&self, index: usize) -> Self {
        Self(format!("{self}.{}", index + 1))
    }

    /// Returns the name of the task that this one is a part of.
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('.').map(|(parent, _)| Self(parent.to_owned()))
    }

    /// Returns the depth of the task: 0 for a task of the plan.
    pub fn depth(&self) -> u32 {
        u32::try_from(self.0.matches('.').count()).unwrap_or(u32::MAX)
    }

    /// Tells whether this task is that one or a part of it, at any depth.
    pub fn is_within(&self, other: &Self) -> bool {
        // Without the dot, task 10 would be a part of task 1.
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The planner's estimate of how hard a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Complexity {
    /// Little to do.
    Simple,
    /// More.
    #[default]
    Medium,
    /// Much.
    Complex,
}

impl Complexity {
    /// Returns the word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Medium => "medium",
            Self::Complex => "complex",
        }
    }
}

/// The status of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It waits for its turn.
    #[default]
    Pending,
    /// It is worked on.
    InProgress,
    /// It is done, and was verified if the loop asks for that.
    Completed,
    /// It failed for good.
    Failed,
    /// It was split, and its parts are worked on instead.
    Blocked,
}

impl TaskStatus {
    /// Returns the word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        }
    }
}

/// A piece of the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// What is to be done.
    pub description: String,
    /// How hard it is.
    pub complexity: Complexity,
    /// The tasks that have to be completed before it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dependencies: Vec<TaskId>,
    /// Its criteria.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub criteria: Vec<String>,
    /// Its status.
    pub status: TaskStatus,
    /// How often it was tried since the run began or was resumed.
    pub attempts: u32,
    /// Attempts that failed since anything was completed.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub idle: u32,
    /// Fixes in this attempt.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub rounds: u32,
    /// What the last test found.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub failures: String,
    /// The fixes that the tester asks for.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub fix_plan: String,
    /// What the fixes of this attempt did, the first one first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fixes: Vec<String>,
    /// Why attempts failed, the last ones, the latest last.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub history: Vec<String>,
    /// What was done, once it is completed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub summary: Option<String>,
    /// How its tests ended, once it is completed and where the tester counts them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tests: Option<Tests>,
}

/// The tests of a task, as the tester counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tests {
    /// All of them.
    #[serde(rename = "testsRun")]
    pub run: u64,
    /// Those that passed.
    #[serde(rename = "testsPassed")]
    pub passed: u64,
    /// Those that failed.
    #[serde(rename = "testsFailed")]
    pub failed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde wants")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How the planning stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planning {
    /// Why the plan was approved; absent until it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approval: Option<String>,
    /// How often a plan was reviewed and not approved.
    pub reviews: u32,
    /// Whether the next plan replaces the present one.
    pub is_revised: bool,
    /// What was said about the last plan.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub feedback: String,
    /// Tasks in a row that were split or failed for good, without one that was completed.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub idle: u32,
    /// Why the goal is not reached although all tasks were completed; empty until somebody says so, and once there is an
    /// approved plan for what is missing.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub rejection: String,
    /// How many tasks of earlier plans, which stay, the next plan is added to.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub kept: u32,
    /// Whether the work was given up as a whole.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_aborted: bool,
    /// What may go wrong, by whoever planned.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub risks: Vec<String>,
    /// What the plan takes for granted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub assumptions: Vec<String>,
}

/// The tasks of a run, and how far they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    /// How the planning stands.
    pub planning: Planning,
    /// The tasks, each in front of its parts.
    pub tasks: Vec<Task>,
}

/// The number of tasks in each status. Tasks that were split do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCount {
    /// All of them.
    pub all: u32,
    /// Those that are completed.
    pub completed: u32,
    /// Those that failed for good.
    pub failed: u32,
}

impl Board {
    /// Finds a task.
    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == *id)
    }

    pub(super) fn task_mut(&mut self, id: &TaskId) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.id == *id)
    }

    /// Returns the task that is worked on.
    pub fn current(&self) -> Option<&Task> {
        self.tasks.iter().find(|task| task.status == TaskStatus::InProgress)
    }

    /// Returns the parts of a task, in order.
    pub fn parts<'b>(&'b self, id: &'b TaskId) -> impl Iterator<Item = &'b Task> {
        self.tasks.iter().filter(|task| task.id.parent().as_ref() == Some(id))
    }

    /// Returns the tasks that were not split, in order.
    pub fn leaves(&self) -> impl Iterator<Item = &Task> {
        // Parts come after the task that they are a part of.
        let next = self.tasks.iter().skip(1).map(Some).chain(std::iter::once(None));
        let is_leaf = |task: &Task, next: Option<&Task>| next.is_none_or(|next| !next.id.is_within(&task.id));
        self.tasks.iter().zip(next).filter(move |(task, next)| is_leaf(task, *next)).map(|(task, _)| task)
    }

    /// Counts the tasks by status.
    pub fn count(&self) -> TaskCount {
        self.leaves().fold(TaskCount::default(), |count, task| TaskCount {
            all: count.all + 1,
            completed: count.completed + u32::from(task.status == TaskStatus::Completed),
            failed: count.failed + u32::from(task.status == TaskStatus::Failed),
        })
    }

    /// Returns the first task that this one has to wait for: one of its own, or of what it is a part of.
    pub fn waits_for(&self, task: &Task) -> Option<&Task> {
        let around = self.tasks.iter().filter(|other| task.id.is_within(&other.id));
        let awaited = around.flat_map(|other| &other.dependencies);
        awaited.filter_map(|id| self.task(id)).find(|other| other.status != TaskStatus::Completed)
    }

    /// Returns the tasks that cannot begin because a task failed that they wait for, each with the one it waits for.
    /// Tasks that wait for work that can still be done are not among them.
    pub fn unreachable(&self) -> HashMap<&TaskId, &TaskId> {
        let tasks: HashMap<&TaskId, &Task> = self.tasks.iter().map(|task| (&task.id, task)).collect();
        let mut lost: HashSet<TaskId> = HashSet::new();
        let give_up = |lost: &mut HashSet<TaskId>, id: &TaskId| {
            let mut around = Some(id.clone());
            while let Some(id) = around {
                around = id.parent();
                lost.insert(id);
            }
        };
        for task in self.tasks.iter().filter(|task| task.status == TaskStatus::Failed) {
            give_up(&mut lost, &task.id);
        }
        let mut unreachable = HashMap::new();
        if lost.is_empty() {
            return unreachable;
        }
        // Until nothing is added: a task may wait for one that stands behind it.
        loop {
            let known = unreachable.len();
            for task in self.leaves().filter(|task| task.status == TaskStatus::Pending) {
                if unreachable.contains_key(&task.id) {
                    continue;
                }
                let around = std::iter::successors(Some(task.id.clone()), TaskId::parent);
                let awaited = around.filter_map(|id| tasks.get(&id)).flat_map(|task| &task.dependencies);
                let mut awaited = awaited.filter_map(|id| tasks.get(id));
                let is_lost = |task: &&&Task| task.status != TaskStatus::Completed && lost.contains(&task.id);
                if let Some(awaited) = awaited.find(is_lost) {
                    give_up(&mut lost, &task.id);
                    unreachable.insert(&task.id, &awaited.id);
                }
            }
            if unreachable.len() == known {
                return unreachable;
            }
        }
    }

    /// Counts the tasks that are not part of another one.
    pub(super) fn roots(&self) -> u32 {
        u32::try_from(self.tasks.iter().filter(|task| task.id.depth() == 0).count()).unwrap_or(u32::MAX)
    }

    /// Tells whether there is a plan beside what is kept of earlier ones.
    pub(super) fn has_plan(&self) -> bool {
        self.roots() > self.planning.kept
    }

    /// Tells whether a task is worked on, and none has failed for good.
    pub fn is_only_waiting(&self) -> bool {
        self.current().is_some() && self.tasks.iter().all(|task| task.status != TaskStatus::Failed)
    }

    /// Tells whether there is work and all of it is done.
    pub fn is_completed(&self) -> bool {
        // Without a plan, there is nothing that could be completed.
        !self.tasks.is_empty() && self.tasks.iter().all(|task| task.status == TaskStatus::Completed)
    }
}
