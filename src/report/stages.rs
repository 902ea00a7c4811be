//! The words for the work on a task board, for everything that shows it: stages, which are what somebody with a role
//! does for a task, and what becomes of the tasks.

use std::fmt::Write as _;

use serde_json::Value;

use super::board_work::{BoardWork, TaskChange};
use super::step::{Step, StepStanding};
use crate::base::text::{one_line, plural};
use crate::base::time::human;
use crate::board::{Note, NoteKind, Task, TaskCount, TaskId, TaskStatus};

/// Characters of a task's description in a line.
const MAX_DESCRIPTION: usize = 200;

/// The same in a title, behind which the stage stands.
const MAX_IN_TITLE: usize = 80;

const MAX_NAME: usize = 60;

/// How many notes of one operation are shown.
const MAX_NOTES: usize = 10;

/// A step that somebody with a role does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleStage {
    /// The state.
    pub name: String,
    /// Who does it; empty where the loop does not say.
    pub role: String,
    /// What it came to, and what that rests on.
    pub words: String,
}

impl RoleStage {
    /// Puts a step into words.
    pub fn of(step: &Step, work: &BoardWork) -> Self {
        Self { name: name(step), role: role(step).unwrap_or_default(), words: words(step, work) }
    }
}

/// Tells whether the progress leaves a step out: it has no role, and nothing that it ran failed.
pub fn is_silent(step: &Step) -> bool {
    let has_failed = step.result.as_ref().is_some_and(|result| !result.succeeded);
    step.role().is_none() && !has_failed && !step.closing
}

fn name(step: &Step) -> String {
    one_line(step.state.as_str(), MAX_NAME)
}

fn role(step: &Step) -> Option<String> {
    step.role().map(|role| one_line(role, MAX_NAME))
}

/// Returns `test (tester)`, for what runs.
pub fn running(step: &Step) -> String {
    let role = role(step).map_or_else(String::new, |role| format!(" ({role})"));
    format!("{}{role}", name(step))
}

/// Returns `task 1/3 Add the login form › test (tester)`.
pub fn title(step: &Step, work: &BoardWork) -> String {
    let Some(task) = work.board().current() else {
        return running(step);
    };
    let attempt = (task.attempts > 1).then(|| format!("attempt {}", task.attempts));
    let facts: Vec<String> = role(step).into_iter().chain(attempt).chain(round(work)).collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    // Parts are numbered within their task, so that the number of all tasks would not be their total.
    let id = match task.id.parent() {
        None => format!("{}/{}", task.id, roots(work)),
        Some(_) => task.id.to_string(),
    };
    let description = one_line(&task.description, MAX_IN_TITLE);
    format!("task {id} {description} › {}{facts}", name(step))
}

/// Returns `partial 62 (12.0s): too vague`.
fn words(step: &Step, work: &BoardWork) -> String {
    let detail = |key: &str| step.judged.as_ref().and_then(|judged| judged.details.get(key));
    let is_failing = step.standing() == StepStanding::Failing;
    let verdict = step.word();
    let said = match detail("score").filter(|score| score.is_number()) {
        // The sign in front of the words says `yes` already.
        Some(score) if verdict == "yes" => score.to_string(),
        Some(score) => format!("{verdict} {score}"),
        None => verdict.clone(),
    };
    let result = step.result.as_ref();
    let ended = result.filter(|result| !result.succeeded).map(|result| step.ended(result));
    let took = result.map(|result| human(result.duration));
    let facts: Vec<String> =
        ended.filter(|ended| *ended != verdict).into_iter().chain(round(work)).chain(took).collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    let reasons = ["reason", "feedback"].into_iter().filter_map(|key| detail(key).and_then(Value::as_str));
    let failure = result.and_then(|result| result.failure.as_deref());
    let why = reasons.chain(failure).map(|why| one_line(why, 300)).find(|why| !why.is_empty());
    let why = why.filter(|_| is_failing).map_or_else(String::new, |why| format!(": {why}"));
    format!("{said}{facts}{why}")
}

/// Says which round it is: of the fixes in an attempt, or of the planning while there is no approval.
fn round(work: &BoardWork) -> Option<String> {
    let board = work.board();
    let limits = work.limits();
    let (what, count, most) = match board.current() {
        Some(task) => ("round", task.rounds, limits.map(|limits| limits.fix_cycles)),
        // The first plan is not a revision.
        None if board.planning.approval.is_none() => {
            ("revision", board.planning.reviews, limits.map(|limits| limits.plan_revisions.saturating_sub(1)))
        }
        None => return None,
    };
    let most = most.map_or_else(String::new, |most| format!(" of {most}"));
    (count > 0).then(|| format!("{what} {count}{most}"))
}

fn roots(work: &BoardWork) -> usize {
    work.board().tasks.iter().filter(|task| task.id.depth() == 0).count()
}

/// Says what became of a task.
pub fn turn(turn: &TaskChange, work: &BoardWork) -> String {
    match turn {
        TaskChange::Planned(count) => format!("{} planned", plural(*count as u64, "task")),
        TaskChange::Began(id) => begun(id, work),
        TaskChange::Completed(id) => format!("task {id} completed"),
        TaskChange::Failed(id) => format!("task {id} failed"),
        TaskChange::Split(id, parts) => format!("task {id} split into {}", plural(*parts as u64, "part")),
    }
}

/// Returns `task 1 of 3: Add the login form`.
fn begun(id: &TaskId, work: &BoardWork) -> String {
    let task = work.board().task(id);
    let attempt = task.filter(|task| task.attempts > 1).map(|task| format!(", attempt {}", task.attempts));
    let place = match id.parent() {
        None => format!(" of {}", roots(work)),
        Some(_) => String::new(),
    };
    let description = task.map_or_else(String::new, description);
    format!("task {id}{place}{}: {description}", attempt.unwrap_or_default())
}

/// Returns the description of a task in a line.
pub fn description(task: &Task) -> String {
    one_line(&task.description, MAX_DESCRIPTION)
}

/// Returns the sign in front of what became of a task.
pub fn sign(turn: &TaskChange) -> &'static str {
    match turn {
        TaskChange::Planned(_) | TaskChange::Began(_) => "▸",
        TaskChange::Split(..) => mark(TaskStatus::Blocked),
        TaskChange::Completed(_) => mark(TaskStatus::Completed),
        TaskChange::Failed(_) => mark(TaskStatus::Failed),
    }
}

/// Tells whether notes are about the last attempt at a task.
pub fn are_about_an_attempt(notes: &[Note]) -> bool {
    let is_about = |note: &Note| match note.kind {
        NoteKind::Failed => true,
        NoteKind::Escalation => note.task.is_some(),
        NoteKind::DroppedEdge
        | NoteKind::BrokenCycle
        | NoteKind::Unreachable
        | NoteKind::Reset
        | NoteKind::Rejected
        | NoteKind::Limit
        | NoteKind::Refused => false,
    };
    notes.iter().any(is_about)
}

/// Returns what people should hear of beside that, in lines.
pub fn notes(notes: &[Note]) -> Vec<String> {
    let mut lines: Vec<String> = notes.iter().take(MAX_NOTES).map(|note| one_line(&note.text, 400)).collect();
    let more = notes.len().saturating_sub(MAX_NOTES);
    if more > 0 {
        lines.push(format!("and {more} more like these"));
    }
    lines
}

/// Returns the sign for how a task stands.
pub fn mark(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "·",
        TaskStatus::InProgress => "▸",
        TaskStatus::Completed => "✓",
        TaskStatus::Failed => "✗",
        TaskStatus::Blocked => "▾",
    }
}

/// Says how a task stands.
pub fn status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "pending",
        TaskStatus::InProgress => "in progress",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Blocked => "split",
    }
}

/// Says how far the work is: `1 of 3 tasks completed, 1 failed, 1 unreachable`; nothing where there are no tasks.
pub fn progress(work: &BoardWork) -> Option<String> {
    let count = work.board().count();
    counted(work, count, if count.all == 1 { "task " } else { "tasks " })
}

/// Says the same where it is clear that it is about tasks, and which one is worked on:
/// `2 of 5 completed; task 3 "Add the form" in progress, attempt 2`.
pub fn standing(work: &BoardWork) -> Option<String> {
    let counted = counted(work, work.board().count(), "")?;
    Some(std::iter::once(counted).chain(current(work)).collect::<Vec<_>>().join("; "))
}

fn counted(work: &BoardWork, count: TaskCount, what: &str) -> Option<String> {
    let TaskCount { all, completed, failed } = count;
    let mut said = format!("{completed} of {all} {what}completed");
    for (count, what) in [(failed as usize, "failed"), (work.board().unreachable().len(), "unreachable")] {
        if count > 0 {
            let _ = write!(said, ", {count} {what}");
        }
    }
    (all > 0).then_some(said)
}

fn current(work: &BoardWork) -> Option<String> {
    let task = work.board().current()?;
    let attempt = if task.attempts > 1 { format!(", attempt {}", task.attempts) } else { String::new() };
    Some(format!("task {} \"{}\" in progress{attempt}", task.id, one_line(&task.description, MAX_IN_TITLE)))
}

/// Returns the tasks as lines, each with how it stands: parts below what they are parts of.
pub fn tree(work: &BoardWork, limit: usize) -> Vec<String> {
    let unreachable = work.board().unreachable();
    let all = &work.board().tasks;
    let line = |task: &Task| {
        let standing = match unreachable.get(&task.id) {
            Some(awaited) => format!("unreachable, waits for task {awaited}"),
            None => status(task.status).to_owned(),
        };
        let indent = "  ".repeat(task.id.depth().min(8) as usize);
        let description = one_line(&task.description, MAX_IN_TITLE);
        format!("{indent}{} {} {description} ({standing})", mark(task.status), task.id)
    };
    let mut lines: Vec<String> = all.iter().take(limit).map(line).collect();
    let more = all.len().saturating_sub(limit) as u64;
    if more > 0 {
        lines.push(format!("and {}", plural(more, "more task")));
    }
    lines
}
