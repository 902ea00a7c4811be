//! What each operation does.

use serde_json::Value;

use crate::base::text::{head, one_line, plural, tail};

use super::answer::{Parts, Plan, Planned};
use super::limits::Limits;
use super::operation::{Note, NoteKind, Operation, Report};
use super::task::{Board, Planning, Status, Task, TaskId};

/// How much of what was said about an attempt is kept.
const KEPT: usize = 4000;

/// How long the description of a task may be: children get it as a variable, which the system bounds.
const DESCRIBED: usize = 8 * 1024;

/// How many attempts a task remembers.
const REMEMBERED: usize = 6;

/// The level of the supervisor at which nothing goes on.
const ABORT: &str = "abort";

/// Makes a board of a board and an operation, with the word for what comes next. An operation that the board has no
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
        Operation::Pass { summary } => pass(&mut board, &summary),
        Operation::Fail(report) => fail(&mut board, limits, &report, &mut notes),
        Operation::Split(parts) => split(&mut board, parts, &mut notes),
        Operation::GiveUp => give_up(&mut board, limits, &mut notes),
        Operation::Recover => Ok(recover(&mut board, &mut notes)),
    };
    let verdict = done.unwrap_or_else(|why| {
        notes.push(Note::refused(why));
        "error"
    });
    (board, verdict, notes)
}

/// What an operation answers, or why the board has no place for it.
type Done = Result<&'static str, &'static str>;

const NO_TASK: &str = "no task is worked on";

fn current(board: &mut Board) -> Result<&mut Task, &'static str> {
    board.tasks.iter_mut().find(|task| task.status == Status::InProgress).ok_or(NO_TASK)
}

fn load(board: &mut Board, plan: Plan, notes: &mut Vec<Note>) -> Done {
    if board.planning.approval.is_some() {
        return Err("the plan is approved already");
    }
    if plan.tasks.is_empty() {
        return Err("the plan has no tasks");
    }
    let ids: Vec<_> = (0..plan.tasks.len()).map(TaskId::root).collect();
    board.tasks = tasks(&ids, plan.tasks, notes);
    let (reviews, feedback) = (board.planning.reviews, std::mem::take(&mut board.planning.feedback));
    let Plan { risks, assumptions, .. } = plan;
    board.planning = Planning { approval: None, reviews, is_revised: false, feedback, risks, assumptions };
    Ok("loaded")
}

/// Makes tasks of what was planned. A dependency on what there is not is dropped, and so is one that closes a circle.
fn tasks(ids: &[TaskId], planned: Vec<Planned>, notes: &mut Vec<Note>) -> Vec<Task> {
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); planned.len()];
    for (index, task) in planned.iter().enumerate() {
        for wanted in &task.dependencies {
            let on = usize::try_from(*wanted).ok().filter(|on| *on < planned.len());
            let (kind, why) = match on {
                None => (NoteKind::DroppedEdge, "there is no such task"),
                Some(on) if on == index => (NoteKind::DroppedEdge, "it is the task itself"),
                Some(on) if edges[index].contains(&on) => continue,
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
        // A variable cannot hold a NUL.
        description: head(&planned.description, DESCRIBED).replace('\0', ""),
        complexity: planned.complexity,
        dependencies: edges.into_iter().map(|on| ids[on].clone()).collect(),
        criteria: planned.verification_criteria,
        status: Status::Pending,
        attempts: 0,
        idle: 0,
        rounds: 0,
        failures: String::new(),
        fix_plan: String::new(),
        fixes: Vec::new(),
        history: Vec::new(),
        summary: None,
    })
    .collect()
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

fn approve(board: &mut Board, because: String) -> Done {
    if board.tasks.is_empty() {
        return Err("there is no plan to approve");
    }
    board.planning.approval = Some(because);
    Ok("approved")
}

/// Begins the first task in the order of the plan that waits for nothing, or goes on with the one that is begun.
fn next(board: &mut Board) -> &'static str {
    if board.current().is_some() {
        return "task";
    }
    if board.is_completed() {
        return "done";
    }
    let is_ready = |task: &&Task| task.status == Status::Pending && board.waits_for(task).is_none();
    let ready = board.leaves().find(is_ready).map(|task| task.id.clone());
    if let Some(task) = ready.and_then(|id| board.task_mut(&id)) {
        task.status = Status::InProgress;
        task.attempts = task.attempts.saturating_add(1);
        begin(task);
        return "task";
    }
    "stuck"
}

/// Says which tasks nobody can begin any more.
fn unreachable(board: &Board) -> Vec<Note> {
    let unreachable = board.unreachable();
    let awaited = board.leaves().filter_map(|task| Some((&task.id, *unreachable.get(&task.id)?)));
    let note = |(id, awaited): (&TaskId, &TaskId)| {
        let text = format!("task {id} cannot begin any more: task {awaited} is not completed");
        Note::new(NoteKind::Unreachable, Some(id), text)
    };
    awaited.map(note).collect()
}

/// Forgets what belongs to one attempt.
fn begin(task: &mut Task) {
    task.rounds = 0;
    task.failures.clear();
    task.fix_plan.clear();
    task.fixes.clear();
}

fn review(board: &mut Board, limits: &Limits, report: &Report, notes: &mut Vec<Note>) -> &'static str {
    escalate(None, report, notes);
    let planning = &mut board.planning;
    planning.reviews = planning.reviews.saturating_add(1);
    planning.feedback = said(report);
    if report.level.as_deref() == Some(ABORT) {
        return "abort";
    }
    if planning.reviews >= limits.plan_revisions {
        return "enough";
    }
    planning.is_revised = true;
    "again"
}

fn fix(board: &mut Board, limits: &Limits, report: &Report) -> Done {
    let task = current(board)?;
    if task.rounds > 0 && !report.fix.is_empty() {
        task.fixes.push(one_line(&report.fix, 500));
    }
    task.failures = failures(report);
    let plan = report.answer.as_ref().and_then(|answer| answer.get("fixPlan"));
    task.fix_plan = plan.map(|plan| kept(&sentence(plan))).unwrap_or_default();
    if task.rounds >= limits.fix_cycles {
        return Ok("enough");
    }
    task.rounds += 1;
    Ok("again")
}

fn pass(board: &mut Board, summary: &str) -> Done {
    let task = current(board)?;
    task.status = Status::Completed;
    task.summary = Some(one_line(summary, 500)).filter(|summary| !summary.is_empty());
    begin(task);
    let mut id = task.id.clone();
    for task in &mut board.tasks {
        task.idle = 0;
    }
    while let Some(parent) = id.parent() {
        let is_completed = board.parts(&parent).all(|part| part.status == Status::Completed);
        if let Some(task) = board.task_mut(&parent).filter(|_| is_completed) {
            task.status = Status::Completed;
        }
        id = parent;
    }
    Ok("passed")
}

fn fail(board: &mut Board, limits: &Limits, report: &Report, notes: &mut Vec<Note>) -> Done {
    let id = current(board)?.id.clone();
    escalate(Some(&id), report, notes);
    let why = said(report);
    let task = current(board)?;
    let text = format!("task {id} failed in attempt {}: {}", task.attempts, one_line(&why, 300));
    notes.push(Note::new(NoteKind::Failed, Some(&id), text));
    task.history.push(why);
    let too_many = task.history.len().saturating_sub(REMEMBERED);
    task.history.drain(..too_many);
    task.idle = task.idle.saturating_add(1);
    let attempts = task.attempts;
    let around = board.tasks.iter().filter(|other| id.is_within(&other.id));
    let passes = around.fold(0_u32, |sum, task| sum.saturating_add(task.idle));
    let (status, verdict) = if report.level.as_deref() == Some(ABORT) {
        (Status::Failed, "abort")
    } else if passes >= limits.idle_passes {
        (Status::Failed, "stuck")
    } else if attempts < limits.attempts {
        (Status::Pending, "retry")
    } else if id.depth() < limits.depth {
        (Status::InProgress, "replan")
    } else {
        (Status::InProgress, "give_up")
    };
    current(board)?.status = status;
    if status == Status::Failed {
        notes.extend(unreachable(board));
    }
    Ok(verdict)
}

fn split(board: &mut Board, parts: Parts, notes: &mut Vec<Note>) -> Done {
    if parts.subtasks.is_empty() {
        return Err("the plan for the parts has none");
    }
    let task = current(board)?;
    let id = task.id.clone();
    task.status = Status::Blocked;
    // The first part is tried in the pass in which the whole failed.
    task.idle = task.idle.saturating_sub(1);
    begin(task);
    for criterion in parts.verification_criteria {
        if !task.criteria.contains(&criterion) {
            task.criteria.push(criterion);
        }
    }
    let ids: Vec<_> = (0..parts.subtasks.len()).map(|index| id.child(index)).collect();
    let place = board.tasks.iter().position(|task| task.id == id).map_or(board.tasks.len(), |at| at + 1);
    board.tasks.splice(place..place, tasks(&ids, parts.subtasks, notes));
    Ok("split")
}

fn give_up(board: &mut Board, limits: &Limits, notes: &mut Vec<Note>) -> Done {
    current(board)?.status = Status::Failed;
    notes.extend(unreachable(board));
    let (leaves, failed) = board.leaves().fold((0_u32, 0_u32), |(leaves, failed), task| {
        (leaves + 1, failed + u32::from(task.status == Status::Failed))
    });
    if f64::from(failed) > limits.failed_ratio * f64::from(leaves) {
        return Ok("abort");
    }
    Ok("given_up")
}

/// Lets everything begin anew that is not completed. A plan and its approval stay, and so do the parts of a task.
fn recover(board: &mut Board, notes: &mut Vec<Note>) -> &'static str {
    let orphans: Vec<_> = board.leaves().map(|task| task.id.clone()).collect();
    for task in &mut board.tasks {
        task.idle = 0;
        let is_left = match task.status {
            Status::Failed | Status::InProgress => true,
            Status::Blocked => orphans.contains(&task.id),
            Status::Pending | Status::Completed => false,
        };
        if is_left {
            let text = format!("task {} begins anew: it was {}", task.id, task.status.word());
            notes.push(Note::new(NoteKind::Reset, Some(&task.id), text));
            task.status = Status::Pending;
        }
        if task.status == Status::Pending {
            task.attempts = 0;
            begin(task);
        }
    }
    match &board.planning {
        _ if board.tasks.is_empty() => "plan",
        Planning { approval: None, is_revised: true, .. } => "plan",
        Planning { approval: None, .. } => "review",
        Planning { .. } => "next",
    }
}

fn escalate(task: Option<&TaskId>, report: &Report, notes: &mut Vec<Note>) {
    if let Some(level) = &report.level {
        let about = task.map_or_else(|| "the plan".to_owned(), |id| format!("task {id}"));
        notes.push(Note::new(
            NoteKind::Escalation,
            task,
            format!("the supervisor says {level} about {about}"),
        ));
    }
}

/// Puts together what was said about work that was not good enough.
fn said(report: &Report) -> String {
    if !report.error.is_empty() {
        return kept(&report.error);
    }
    let of = |key: &str| {
        let value = report.answer.as_ref()?.get(key)?;
        Some(sentence(value)).filter(|text| !text.is_empty())
    };
    let lists = [("issues", "Issues"), ("missingElements", "Missing")];
    let lists: Vec<_> =
        lists.iter().filter_map(|(key, title)| Some(format!("{title}:\n{}", of(key)?))).collect();
    if !report.feedback.is_empty() {
        let parts = std::iter::once(report.feedback.clone()).chain(lists);
        return kept(&parts.collect::<Vec<_>>().join("\n"));
    }
    let why =
        ["blockReason", "failures", "remainingIssues", "summary", "feedback"].iter().find_map(|key| of(key));
    kept(&why.unwrap_or_else(|| report.output.clone()))
}

/// Returns what a test found, one line each.
fn failures(report: &Report) -> String {
    let answer = report.answer.as_ref();
    let listed = answer.and_then(|answer| answer.get("failures")).map(sentence);
    let listed = listed.filter(|listed| !listed.is_empty());
    let count = || {
        let count = answer?.get("testsFailed")?.as_u64()?;
        Some(format!("{} failed", plural(count, "test")))
    };
    kept(&listed.or_else(count).unwrap_or_else(|| report.output.clone()))
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

/// Cuts a text to the part that is kept: its end, where programs say what is wrong.
fn kept(text: &str) -> String {
    let text = text.trim();
    if text.len() <= KEPT { text.to_owned() } else { format!("…{}", tail(text, KEPT)) }
}
