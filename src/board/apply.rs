//! Applies operations to a board.

use std::collections::HashSet;

use serde_json::Value;

use super::limits::Limits;
use super::operation::{Note, NoteKind, Operation, Report};
use super::planner_answers::{PlannedTask, TaskParts, TaskPlan};
use super::task::{Board, Planning, Task, TaskCount, TaskId, TaskStatus, Tests};
use crate::base::composed::{ONE, shown_beginning, shown_end};
use crate::base::reason::reason;
use crate::base::text::{head, one_line, plural};

/// The most bytes of feedback about an attempt that are kept.
const KEPT: usize = 4000;

/// How long the description of a task may be: children get it as a variable, which the system bounds.
const DESCRIBED: usize = 8 * 1024;

/// How many attempts a task remembers.
const REMEMBERED: usize = 20;

/// The level of the supervisor that ends the work.
const ABORT: &str = "abort";

/// Applies an operation, and returns the new board with the verdict. An operation that the board has no
/// place for changes nothing and answers `error`, with the reason as a note.
pub fn apply(mut board: Board, limits: &Limits, operation: Operation) -> (Board, &'static str, Vec<Note>) {
    let mut notes = Vec::new();
    let done = match operation {
        Operation::Load(plan) => load(&mut board, plan, &mut notes),
        Operation::Approve { because } => approve(&mut board, because),
        Operation::Next => Ok(next(&mut board)),
        Operation::Tick(report) if board.planning.approval.is_none() => {
            Ok(review(&mut board, limits, &report, &mut notes))
        }
        Operation::Tick(report) => fix(&mut board, limits, &report),
        Operation::Pass { summary, tests } => pass(&mut board, &summary, tests),
        Operation::Fail(report) => fail(&mut board, limits, &report, &mut notes),
        Operation::Split(parts) => split(&mut board, parts, &mut notes),
        Operation::GiveUp => give_up(&mut board, limits, &mut notes),
        Operation::Recover { is_changed } => Ok(recover(&mut board, is_changed, &mut notes)),
    };
    let verdict = done.unwrap_or_else(|why| {
        notes.push(Note::refused(why));
        "error"
    });
    // Kept for `recover`, by which a run that gave up is taken up again.
    board.planning.is_aborted |= verdict == ABORT;
    (board, verdict, notes)
}

/// The verdict of an operation, or why the board refuses it.
type AppliedVerdict = Result<&'static str, &'static str>;

const NO_TASK: &str = "no task is worked on";

fn current(board: &mut Board) -> Result<&mut Task, &'static str> {
    board.tasks.iter_mut().find(|task| task.status == TaskStatus::InProgress).ok_or(NO_TASK)
}

fn load(board: &mut Board, plan: TaskPlan, notes: &mut Vec<Note>) -> AppliedVerdict {
    if board.planning.approval.is_some() {
        return Err("the plan is approved already");
    }
    let TaskPlan { tasks: planned, risks, assumptions } = plan;
    check(&planned)?;
    let kept = board.planning.kept as usize;
    let ids: Vec<_> = (kept..kept + planned.len()).map(TaskId::root).collect();
    // The tasks of earlier plans stay; those of a plan that was not approved give way.
    let earlier = board.tasks.iter().take_while(|task| !task.id.is_within(&TaskId::root(kept))).count();
    board.tasks.truncate(earlier);
    board.tasks.extend(tasks(&ids, planned, notes));
    let planning = std::mem::take(&mut board.planning);
    board.planning = Planning { approval: None, is_revised: false, risks, assumptions, ..planning };
    Ok("loaded")
}

/// Refuses an invalid plan.
fn check(planned: &[PlannedTask]) -> Result<(), &'static str> {
    if planned.is_empty() {
        return Err("the plan has no tasks");
    }
    // NULs are left out of a description, which may leave nothing.
    let is_blank = |task: &PlannedTask| task.description.chars().all(|c| c.is_whitespace() || c == '\0');
    if planned.iter().any(is_blank) { Err("a task of the plan says nothing") } else { Ok(()) }
}

/// Makes tasks from a plan. Drops dependencies on unknown tasks, and those that close a cycle.
fn tasks(ids: &[TaskId], planned: Vec<PlannedTask>, notes: &mut Vec<Note>) -> Vec<Task> {
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); planned.len()];
    for (index, task) in planned.iter().enumerate() {
        for wanted in &task.dependencies {
            let on = place(wanted).filter(|on| *on < planned.len());
            let (kind, why) = match on {
                None => (NoteKind::DroppedEdge, "there is no such task"),
                Some(on) if on == index => (NoteKind::DroppedEdge, "it is the task itself"),
                // To name a task twice is no mistake that a note would have to tell.
                Some(on) if edges[index].contains(&on) => continue,
                // Only edges before this one count, so that the one that closes a cycle is dropped.
                Some(on) if reaches(&edges, on, index) => {
                    (NoteKind::BrokenCycle, "that task waits for this one")
                }
                Some(on) => {
                    edges[index].push(on);
                    continue;
                }
            };
            let id = &ids[index];
            let text = format!("task {id} does not wait for the task at place {wanted}: {why}");
            notes.push(Note::new(kind, Some(id), text));
        }
    }
    let made = planned.into_iter().zip(edges).zip(ids);
    made.map(|((planned, edges), id)| Task {
        id: id.clone(),
        // An environment variable cannot hold a NUL.
        description: head(&planned.description, DESCRIBED).replace('\0', ""),
        complexity: planned.complexity,
        dependencies: edges.into_iter().map(|on| ids[on].clone()).collect(),
        criteria: planned.verification_criteria,
        status: TaskStatus::Pending,
        attempts: 0,
        idle: 0,
        rounds: 0,
        failures: String::new(),
        fix_plan: String::new(),
        fixes: Vec::new(),
        history: Vec::new(),
        summary: None,
        tests: None,
    })
    .collect()
}

/// Reads the place of a task: to JSON, `1.0` is a whole number as well.
fn place(wanted: &Value) -> Option<usize> {
    let whole = || wanted.as_f64().filter(|place| place.fract() == 0.0)?.to_string().parse().ok();
    wanted.as_u64().and_then(|place| usize::try_from(place).ok()).or_else(whole)
}

/// Tells whether one task waits for another, over however many others.
fn reaches(edges: &[Vec<usize>], from: usize, to: usize) -> bool {
    let mut seen = vec![false; edges.len()];
    let mut open = vec![from];
    while let Some(one) = open.pop() {
        if one == to {
            return true;
        }
        if !std::mem::replace(&mut seen[one], true) {
            open.extend(&edges[one]);
        }
    }
    false
}

fn approve(board: &mut Board, because: String) -> AppliedVerdict {
    if !board.has_plan() {
        return Err("there is no plan to approve");
    }
    let planning = &mut board.planning;
    planning.approval = Some(because);
    // From now on, the tasks of earlier plans are part of this one.
    planning.kept = 0;
    planning.rejection.clear();
    Ok("approved")
}

/// Begins the first task of the plan that waits for no other, or continues the current one.
fn next(board: &mut Board) -> &'static str {
    if board.current().is_some() {
        return "task";
    }
    if board.is_completed() {
        return "done";
    }
    let is_ready = |task: &&Task| task.status == TaskStatus::Pending && board.waits_for(task).is_none();
    let ready = board.leaves().find(is_ready).map(|task| task.id.clone());
    if let Some(task) = ready.and_then(|id| board.task_mut(&id)) {
        task.status = TaskStatus::InProgress;
        task.attempts = task.attempts.saturating_add(1);
        begin(task);
        return "task";
    }
    "stuck"
}

/// Notes the tasks that can never begin.
fn unreachable(board: &Board) -> Vec<Note> {
    let unreachable = board.unreachable();
    let awaited = board.leaves().filter_map(|task| Some((&task.id, *unreachable.get(&task.id)?)));
    let note = |(id, awaited): (&TaskId, &TaskId)| {
        let text = format!("task {id} cannot begin any more: task {awaited} is not completed");
        Note::new(NoteKind::Unreachable, Some(id), text)
    };
    awaited.map(note).collect()
}

/// Clears the facts about one attempt.
fn begin(task: &mut Task) {
    task.rounds = 0;
    task.failures.clear();
    task.fix_plan.clear();
    task.fixes.clear();
}

fn review(board: &mut Board, limits: &Limits, report: &Report, notes: &mut Vec<Note>) -> &'static str {
    escalate("the plan", None, report, notes);
    let planning = &mut board.planning;
    planning.reviews = planning.reviews.saturating_add(1);
    planning.feedback = said(report);
    if report.level.as_deref() == Some(ABORT) {
        return ABORT;
    }
    if planning.reviews >= limits.plan_revisions {
        return "enough";
    }
    planning.is_revised = true;
    "again"
}

fn fix(board: &mut Board, limits: &Limits, report: &Report) -> AppliedVerdict {
    let task = current(board)?;
    if task.rounds > 0 && !report.fix.is_empty() {
        task.fixes.push(one_line(&report.fix, 500));
    }
    task.failures = failures(report);
    let plan = report.answer.as_ref().and_then(|answer| answer.get("fixPlan"));
    task.fix_plan = plan.map_or_else(String::new, |plan| shown_beginning(&sentence(plan), KEPT));
    if task.rounds >= limits.fix_cycles {
        return Ok("enough");
    }
    task.rounds += 1;
    Ok("again")
}

fn pass(board: &mut Board, summary: &str, tests: Option<Tests>) -> AppliedVerdict {
    let task = current(board)?;
    task.status = TaskStatus::Completed;
    task.summary = Some(one_line(summary, 500)).filter(|summary| !summary.is_empty());
    task.tests = tests;
    begin(task);
    let mut id = task.id.clone();
    board.planning.idle = 0;
    for task in &mut board.tasks {
        task.idle = 0;
    }
    while let Some(parent) = id.parent() {
        let is_completed = board.parts(&parent).all(|part| part.status == TaskStatus::Completed);
        if let Some(task) = board.task_mut(&parent).filter(|_| is_completed) {
            task.status = TaskStatus::Completed;
        }
        id = parent;
    }
    Ok("passed")
}

/// The attempt at the task failed, or, when every task is completed, the goal is not reached.
fn fail(board: &mut Board, limits: &Limits, report: &Report, notes: &mut Vec<Note>) -> AppliedVerdict {
    if board.is_completed() {
        escalate("the goal", None, report, notes);
        let why = said(report);
        notes.push(Note::new(
            NoteKind::Rejected,
            None,
            format!("the goal is not reached: {}", one_line(&why, 300)),
        ));
        board.planning.rejection = if why.is_empty() { "nobody said why".to_owned() } else { why };
        return Ok(if report.level.as_deref() == Some(ABORT) { ABORT } else { "stuck" });
    }
    let id = current(board)?.id.clone();
    escalate(&format!("task {id}"), Some(&id), report, notes);
    let why = match said(report) {
        // The next prompt shows it, and an empty line says nothing.
        nothing if nothing.is_empty() => "nothing was printed".to_owned(),
        why => why,
    };
    let task = current(board)?;
    let text = format!("task {id} failed in attempt {}: {}", task.attempts, one_line(&why, 300));
    notes.push(Note::new(NoteKind::Failed, Some(&id), text));
    task.history.push(why);
    let too_many = task.history.len().saturating_sub(REMEMBERED);
    task.history.drain(..too_many);
    task.idle = task.idle.saturating_add(1);
    let (attempts, tries) = (task.attempts, task.idle);
    // This task ends here, and counts as a pass.
    let passes = board.planning.idle.saturating_add(1);
    // Tries at a task and tasks in a row are counted apart: together, the standard limits would end the work before their depth.
    let is_last = attempts >= limits.attempts;
    let (status, verdict) = if report.level.as_deref() == Some(ABORT) {
        (TaskStatus::Failed, ABORT)
    } else if (is_last && passes >= limits.idle_passes) || (!is_last && tries >= limits.idle_passes) {
        (TaskStatus::Failed, "stuck")
    } else if !is_last {
        (TaskStatus::Pending, "retry")
    } else if id.depth() < limits.depth {
        (TaskStatus::InProgress, "replan")
    } else {
        (TaskStatus::InProgress, "give_up")
    };
    current(board)?.status = status;
    if verdict == "stuck" {
        let text =
            format!("no task was completed for too long: max_goal_iterations is {}", limits.idle_passes);
        notes.push(Note::new(NoteKind::Limit, None, text));
    }
    if status == TaskStatus::Failed {
        notes.extend(unreachable(board));
    }
    Ok(verdict)
}

fn split(board: &mut Board, parts: TaskParts, notes: &mut Vec<Note>) -> AppliedVerdict {
    check(&parts.subtasks)?;
    let task = current(board)?;
    let id = task.id.clone();
    task.status = TaskStatus::Blocked;
    begin(task);
    for criterion in parts.verification_criteria {
        if !task.criteria.contains(&criterion) {
            task.criteria.push(criterion);
        }
    }
    board.planning.idle = board.planning.idle.saturating_add(1);
    let ids: Vec<_> = (0..parts.subtasks.len()).map(|index| id.child(index)).collect();
    let place = board.tasks.iter().position(|task| task.id == id).map_or(board.tasks.len(), |at| at + 1);
    board.tasks.splice(place..place, tasks(&ids, parts.subtasks, notes));
    Ok("split")
}

/// Ends the work on a task, or, while there is no approved plan, on the goal.
fn give_up(board: &mut Board, limits: &Limits, notes: &mut Vec<Note>) -> AppliedVerdict {
    if board.planning.approval.is_none() {
        return Ok(ABORT);
    }
    current(board)?.status = TaskStatus::Failed;
    board.planning.idle = board.planning.idle.saturating_add(1);
    notes.extend(unreachable(board));
    let TaskCount { all, failed, .. } = board.count();
    if f64::from(failed) > limits.failed_ratio * f64::from(all) {
        let text =
            format!("{failed} of {all} tasks failed for good, more than {} of them", limits.failed_ratio);
        notes.push(Note::new(NoteKind::Limit, None, text));
        return Ok(ABORT);
    }
    Ok("given_up")
}

/// Resets all tasks that are not completed. The plan, its approval and the parts of tasks stay. Where all tasks are
/// completed and the goal was not reached, a plan for what is missing comes next, unless somebody changed the tree: then
/// the goal is judged once more.
fn recover(board: &mut Board, is_changed: bool, notes: &mut Vec<Note>) -> &'static str {
    let leaves: HashSet<_> = board.leaves().map(|task| task.id.clone()).collect();
    let was_aborted = std::mem::take(&mut board.planning.is_aborted);
    board.planning.idle = 0;
    for task in &mut board.tasks {
        task.idle = 0;
        let is_left = match task.status {
            TaskStatus::Failed | TaskStatus::InProgress => true,
            // Without parts, nothing would ever complete it.
            TaskStatus::Blocked => leaves.contains(&task.id),
            TaskStatus::Pending | TaskStatus::Completed => false,
        };
        if is_left {
            let text = format!("task {} begins anew: it was {}", task.id, task.status.word());
            notes.push(Note::new(NoteKind::Reset, Some(&task.id), text));
            task.status = TaskStatus::Pending;
        }
        if task.status == TaskStatus::Pending {
            task.attempts = 0;
            begin(task);
        }
    }
    let (is_completed, has_plan, roots) = (board.is_completed(), board.has_plan(), board.roots());
    let planning = &mut board.planning;
    if planning.approval.is_some() && is_completed && !planning.rejection.is_empty() {
        if is_changed {
            planning.rejection.clear();
        } else {
            let Planning { rejection, .. } = std::mem::take(planning);
            *planning = Planning { rejection, kept: roots, ..Planning::default() };
            return "plan";
        }
    }
    if planning.approval.is_none() && was_aborted {
        // The last review was one too many; the next plan may have as many as the first.
        planning.is_revised = true;
        planning.reviews = 0;
    }
    match (&planning.approval, has_plan && !planning.is_revised) {
        (Some(_), _) => "next",
        (None, true) => "review",
        (None, false) => "plan",
    }
}

fn escalate(about: &str, task: Option<&TaskId>, report: &Report, notes: &mut Vec<Note>) {
    if let Some(level) = &report.level {
        notes.push(Note::new(
            NoteKind::Escalation,
            task,
            format!("the supervisor says {level} about {about}"),
        ));
    }
}

/// Combines the feedback about rejected work.
fn said(report: &Report) -> String {
    let of = |key: &str| listed(report, key);
    if !report.error.is_empty() {
        return shown_beginning(&report.error, KEPT);
    }
    if !report.feedback.is_empty() {
        let lists = [("issues", "Issues"), ("missingElements", "Missing")];
        let lists = lists.iter().filter_map(|(key, title)| Some(format!("{title}:\n{}", of(key)?)));
        let parts = std::iter::once(report.feedback.clone()).chain(lists);
        return shown_beginning(&parts.collect::<Vec<_>>().join("\n"), KEPT);
    }
    let why =
        // Each role says under a key of its own why its work is not done.
        ["blockReason", "failures", "remainingIssues", "summary", "feedback"].iter().find_map(|key| of(key));
    why.map_or_else(|| printed(&report.output), |why| shown_beginning(&why, KEPT))
}

/// Returns what is kept of an output: first the line that says why, which is all that titles and reports have room for.
fn printed(output: &str) -> String {
    let why = shown_beginning(reason(output), KEPT / 4);
    let end = shown_end(output, KEPT - why.len() - 1);
    if why.is_empty() || end == why { end } else { format!("{why}\n{end}") }
}

/// Returns what a test found, one line each.
fn failures(report: &Report) -> String {
    let count = || {
        let count = report.answer.as_ref()?.get("testsFailed")?.as_u64()?;
        Some(format!("{} failed", plural(count, "test")))
    };
    listed(report, "failures").or_else(count).map_or_else(
        || match shown_end(&report.output, ONE) {
            nothing if nothing.is_empty() => "the test failed and printed nothing".to_owned(),
            printed => printed,
        },
        |listed| shown_beginning(&listed, ONE),
    )
}

/// Returns a value of an answer as text, unless it is empty. What a command printed may be JSON, too, and have a
/// count where an answer has a list.
fn listed(report: &Report, key: &str) -> Option<String> {
    let value = report.answer.as_ref()?.get(key)?;
    let value = Some(value).filter(|value| key != "failures" || value.is_array())?;
    Some(sentence(value)).filter(|text| !text.is_empty())
}

/// Writes a value of an answer for people: a list as lines, a record as its values.
fn sentence(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let lines = items.iter().map(sentence).filter(|line| !line.is_empty());
            lines.map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
        }
        Value::Object(fields) => {
            let texts = fields.values().map(sentence).filter(|text| !text.is_empty());
            texts.collect::<Vec<_>>().join(": ")
        }
    }
}
