//! What the events say about the work on a task board: how its tasks stand, what each of them took, and what those who
//! work on them cost.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use indexmap::IndexMap;

use crate::board::{Board, Limits, NoteKind, OperationKind, Task, TaskId, TaskStatus};
use crate::engine::event::BoardEvent;
use crate::evaluate::model::Usage;

/// What a task took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effort {
    /// How often it was begun, over resumes.
    pub attempts: u32,
    /// What agents and models cost while it was worked on.
    pub usage: Usage,
    /// Time in actions while it was worked on.
    pub duration: Duration,
    /// What was said when its last attempt failed.
    failed: Option<String>,
}

/// Something that an operation did to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskChange {
    /// There is a plan of so many tasks.
    Planned(usize),
    /// A task was begun.
    Began(TaskId),
    /// A task was completed.
    Completed(TaskId),
    /// A task failed for good.
    Failed(TaskId),
    /// A task was split into so many parts.
    Split(TaskId, usize),
}

/// The work of a run on its task board.
#[derive(Clone, Debug, Default)]
pub struct BoardWork {
    limits: Option<Limits>,
    board: Board,
    efforts: HashMap<TaskId, Effort>,
    roles: IndexMap<String, Usage>,
    others: Usage,
    acting: Option<String>,
    turns: Vec<TaskChange>,
}

impl BoardWork {
    /// Makes the work that a board alone tells of.
    pub fn on(board: Board) -> Self {
        Self { board, ..Self::default() }
    }

    /// Makes the work of a run that has not begun.
    pub(super) fn within(limits: Limits) -> Self {
        Self { limits: Some(limits), ..Self::default() }
    }

    /// Returns what the work may take, where that is known.
    pub(super) fn limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }

    /// Takes an operation on the board.
    pub(super) fn operated(&mut self, event: &BoardEvent) {
        self.turns.clear();
        // A plan that the board refuses leaves all tasks as they are.
        let is_plan =
            OperationKind::parse(&event.operation) == Some(OperationKind::Load) && !event.verdict.is_error();
        if is_plan {
            // What comes now is called like what was there before, but is not the same.
            self.efforts.clear();
        }
        let before: HashMap<TaskId, TaskStatus> = self.standing_of(&event.change.tasks);
        self.board.take(&event.change);
        if is_plan {
            self.turns.push(TaskChange::Planned(self.board.tasks.len()));
        }
        // What a task is a part of stands in front of it, and is completed by it.
        for task in event.change.tasks.iter().rev() {
            let was = before.get(&task.id).copied().unwrap_or_default();
            self.turns.extend(turn(&self.board, task, was));
        }
        for turn in &self.turns {
            if let TaskChange::Began(id) = turn {
                let effort = self.efforts.entry(id.clone()).or_default();
                effort.attempts = effort.attempts.saturating_add(1);
            }
        }
        for note in event.notes.iter().filter(|note| note.kind == NoteKind::Failed) {
            if let Some(id) = &note.task {
                self.efforts.entry(id.clone()).or_default().failed = Some(note.text.clone());
            }
        }
    }

    fn standing_of(&self, tasks: &[Task]) -> HashMap<TaskId, TaskStatus> {
        let wanted: HashSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
        let known = self.board.tasks.iter().filter(|task| wanted.contains(&task.id));
        known.map(|task| (task.id.clone(), task.status)).collect()
    }

    /// Says who does what begins now, if the loop says so.
    pub(super) fn began(&mut self, role: Option<&String>) {
        self.acting = role.cloned();
    }

    /// Takes the end of an action.
    pub(super) fn acted(&mut self, usage: Option<&Usage>, duration: Duration) {
        // Taken, because what is spent after the action, such as on a judge, has no role.
        let sum = match self.acting.take() {
            Some(role) => self.roles.entry(role).or_default(),
            None => &mut self.others,
        };
        if let Some(usage) = usage {
            sum.add(usage);
        }
        self.took(usage, duration);
    }

    /// Takes what was spent without anybody being named who does it.
    pub(super) fn spent(&mut self, usage: &Usage, duration: Duration) {
        self.others.add(usage);
        self.took(Some(usage), duration);
    }

    fn took(&mut self, usage: Option<&Usage>, duration: Duration) {
        if let Some(id) = self.board.current().map(|task| task.id.clone()) {
            let effort = self.efforts.entry(id).or_default();
            if let Some(usage) = usage {
                effort.usage.add(usage);
            }
            effort.duration = effort.duration.saturating_add(duration);
        }
    }

    /// Returns the board as it stands.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Returns what the last operation did to tasks.
    pub fn turns(&self) -> &[TaskChange] {
        &self.turns
    }

    /// Returns what a task took.
    pub fn effort(&self, id: &TaskId) -> Effort {
        self.efforts.get(id).cloned().unwrap_or_default()
    }

    /// Returns what those cost who have a role, in the order in which they first acted.
    pub fn roles(&self) -> &IndexMap<String, Usage> {
        &self.roles
    }

    /// Returns what was spent without a role.
    pub fn others(&self) -> &Usage {
        &self.others
    }

    /// Returns why the last attempt at a task failed, if one did and that was said.
    pub fn reason<'w>(&'w self, task: &'w Task) -> Option<&'w str> {
        let noted = || self.efforts.get(&task.id).and_then(|effort| effort.failed.as_deref());
        let told = task.history.last().map(String::as_str).filter(|why| !why.trim().is_empty());
        told.or_else(noted)
    }
}

/// Says what happened to a task that stood otherwise before.
fn turn(board: &Board, task: &Task, was: TaskStatus) -> Option<TaskChange> {
    if task.status == was {
        return None;
    }
    let id = task.id.clone();
    match task.status {
        // That an attempt failed, or that work begins anew, is what notes say.
        TaskStatus::Pending => None,
        TaskStatus::InProgress => Some(TaskChange::Began(id)),
        TaskStatus::Completed => Some(TaskChange::Completed(id)),
        TaskStatus::Failed => Some(TaskChange::Failed(id)),
        TaskStatus::Blocked => {
            let parts = board.parts(&id).count();
            Some(TaskChange::Split(id, parts))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::board::TaskCount;
    use crate::engine::execution;
    use crate::report::testing::{planned, working};

    #[test]
    fn what_tasks_and_roles_took_is_counted() {
        let digest = working().digest();
        let work = digest.work().unwrap();
        let told = work.board().tasks.iter().map(|task| {
            let effort = work.effort(&task.id);
            let why = work.reason(task).unwrap_or_default();
            format!("{} {} {} {} {why}", task.id, task.status.word(), effort.attempts, effort.usage.calls)
        });
        insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @"
        1 completed 1 5 
        2 blocked 2 5 sessions are lost
        2.1 completed 1 1 
        2.2 failed 2 2 no disk
        3 pending 0 0
        ");
        let roles =
            work.roles().iter().map(|(role, usage)| format!("{role} {} {:?}", usage.calls, usage.cost_usd));
        insta::assert_snapshot!(roles.collect::<Vec<_>>().join("\n"), @"
        planner 3 Some(1.5)
        supervisor 5 Some(2.5)
        coder 7 Some(3.5)
        tester 2 Some(1.0)
        ");
        assert_eq!(work.roles().values().map(|usage| usage.calls).sum::<u32>(), digest.usage().calls);
        assert_eq!(execution::word(true, work.board(), digest.end()), "failed");
    }

    #[test]
    fn only_what_waits_for_a_failure_is_unreachable() {
        let mut journal = planned(&[("a", &[]), ("b", &[0]), ("c", &[1]), ("d", &[])]);
        journal.operate("next", "next", &json!({}));
        assert!(journal.digest().work().unwrap().board().unreachable().is_empty());
        journal.operate("give_up", "give_up", &json!({}));
        let digest = journal.digest();
        let work = digest.work().unwrap();
        let mut unreachable: Vec<String> =
            work.board().unreachable().iter().map(|(id, awaited)| format!("{id}<{awaited}")).collect();
        unreachable.sort();
        assert_eq!(unreachable, ["2<1", "3<2"]);
        assert_eq!(work.board().count(), TaskCount { all: 4, completed: 0, failed: 1 });
        assert_eq!(work.board().unreachable().len(), 2);
    }

    #[test]
    fn planning_is_the_cost_of_no_task() {
        let mut journal = planned(&[("a", &[])]);
        journal.operate("next", "next", &json!({})).stage("implement", "coder", "complete", &json!({}));
        assert_eq!(journal.digest().work().unwrap().board().count().all, 1);
        let digest = journal.digest();
        let work = digest.work().unwrap();
        assert_eq!(work.effort(&work.board().tasks[0].id).usage.calls, 1);
        assert_eq!(work.roles()["planner"].calls, 2);
    }
}
