//! The texts about the board that prompts use.

use std::fmt::Write as _;

use super::limits::Limits;
use super::task::{Board, Task, TaskCount, TaskStatus, Tests};
use crate::base::composed::{ONE, fair_share, shown_beginning};

/// The values of `${board.…}`. A text without content is empty.
pub const FIELDS: &[&str] = &[
    "id", "task", "brief", "criteria", "attempt", "attempts", "round", "rounds", "finished", "history",
    "failures", "fix_plan", "fixes", "plan", "revision", "progress", "tests",
];

impl Board {
    /// Returns a text about the board or about the current task, or `None` for an unknown name.
    pub fn text(&self, limits: &Limits, field: &str) -> Option<String> {
        let current = self.current();
        let of = |text: &dyn Fn(&Task) -> String| current.map_or_else(String::new, text);
        Some(match field {
            "id" => of(&|task| task.id.to_string()),
            "task" => of(&|task| task.description.clone()),
            "brief" => of(&|task| self.brief(task)),
            "criteria" => of(&|task| self.criteria(task)),
            "attempt" => of(&|task| task.attempts.to_string()),
            "attempts" => limits.attempts.to_string(),
            "round" => of(&|task| task.rounds.to_string()),
            "rounds" => limits.fix_cycles.to_string(),
            "finished" => self.finished(ONE),
            // Without numbers, because the oldest entries are dropped and a resume restarts the count.
            "history" => of(&|task| bullets(&task.history.iter().map(String::as_str).collect::<Vec<_>>())),
            "failures" => of(&|task| task.failures.clone()),
            "fix_plan" => of(&|task| task.fix_plan.clone()),
            "fixes" => of(&|task| numbered("Fix", &task.fixes)),
            "plan" => self.plan(ONE),
            "revision" => self.revision(),
            "progress" => self.progress(),
            "tests" => self.tests(),
            _ => return None,
        })
    }

    /// Says how far the work is: `2 of 5 tasks completed`.
    fn progress(&self) -> String {
        let TaskCount { all, completed, .. } = self.count();
        format!("{completed} of {all} tasks completed")
    }

    /// How the tests of the finished tasks ended, as far as somebody counted them.
    fn tests(&self) -> String {
        let counted = self.leaves().filter_map(|task| Some((task, task.tests?)));
        let lines: Vec<_> = counted
            .map(|(task, Tests { run, passed, failed })| {
                format!("task {}: {run} run, {passed} passed, {failed} failed", task.id)
            })
            .collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        if lines.is_empty() { "- nobody counted them".to_owned() } else { bullets(&lines) }
    }

    /// The task, and the tasks that it is a part of.
    fn brief(&self, task: &Task) -> String {
        let title = format!("Task {} ({}): ", task.id, task.complexity.word());
        let mut items = vec![ListItem::new(title, &task.description)];
        let mut around = task.id.parent();
        while let Some(parent) = around.as_ref().and_then(|id| self.task(id)) {
            items.push(ListItem::new(format!("It is a part of task {}: ", parent.id), &parent.description));
            around = parent.id.parent();
        }
        fitted(&items, ONE)
    }

    /// The criteria of a task: its own, and those of the tasks that it is a part of.
    fn criteria(&self, task: &Task) -> String {
        // Of the whole alone, and not of what that is a part of: a part is judged against its parent.
        let whole = task.id.parent().and_then(|parent| self.task(&parent)).map(|parent| &parent.criteria);
        let all: Vec<_> = whole.into_iter().flatten().chain(&task.criteria).map(String::as_str).collect();
        if all.is_empty() { "- it does what its description says".to_owned() } else { bullets(&all) }
    }

    fn finished(&self, room: usize) -> String {
        let done = self.leaves().filter(|task| task.status == TaskStatus::Completed);
        let lines: Vec<_> = done
            .map(|task| {
                let summary =
                    task.summary.as_ref().map_or_else(String::new, |summary| format!(": {summary}"));
                format!("{} {}{summary}", task.id, task.description)
            })
            .collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        if lines.is_empty() { "- none yet".to_owned() } else { bullets_within(&lines, room) }
    }

    /// The plan, with the criteria of its tasks as long as each of its texts can still be read.
    fn plan(&self, room: usize) -> String {
        let with_criteria = self.planned(true);
        if share(&with_criteria, room) >= READABLE {
            return fitted(&with_criteria, room);
        }
        let items = self.planned(false);
        let note = "The criteria of the tasks are left out: with them the plan would be too long.";
        format!("{}\n{note}", fitted(&items, room.saturating_sub(note.len() + 1)))
    }

    fn planned(&self, with_criteria: bool) -> Vec<ListItem<'_>> {
        let mut items = Vec::new();
        for task in &self.tasks {
            let indent = "  ".repeat(task.id.depth() as usize);
            let mut after = format!(" ({})", task.complexity.word());
            if !task.dependencies.is_empty() {
                let awaited: Vec<_> = task.dependencies.iter().map(ToString::to_string).collect();
                let _ = write!(after, ", after {}", awaited.join(", "));
            }
            if task.status != TaskStatus::Pending {
                let _ = write!(after, " [{}]", task.status.word());
            }
            items.push(ListItem {
                after,
                ..ListItem::new(format!("{indent}{}. ", task.id), &task.description)
            });
            let criteria = task.criteria.iter().filter(|_| with_criteria);
            items.extend(criteria.map(|criterion| ListItem::new(format!("{indent}   - "), criterion)));
        }
        for (title, list) in [("Risks", &self.planning.risks), ("Assumptions", &self.planning.assumptions)] {
            if !list.is_empty() {
                items.push(ListItem::new(format!("{title}:"), ""));
                items.extend(list.iter().map(|one| ListItem::new("- ".to_owned(), one)));
            }
        }
        items
    }

    /// What a planner has to know of earlier plans: that one was not approved, or that one was carried out and did not reach
    /// the goal.
    fn revision(&self) -> String {
        let planning = &self.planning;
        if planning.approval.is_some() {
            return String::new();
        }
        // Each of the texts has its share, and all of them together are one text of a prompt.
        let mut said = String::new();
        if planning.kept > 0 {
            let rejection = shown_beginning(&planning.rejection, ONE / 4);
            let done = self.finished(ONE / 4);
            said = format!(
                "An earlier plan was carried out, and the goal is not reached:\n{rejection}\n\nWhat is done, and stays:\n\
                 {done}\n\nWrite only the tasks that are still missing. They are added to these, and `dependencies` counts \
                 among the new ones alone."
            );
        }
        if !planning.feedback.is_empty() {
            let feedback = shown_beginning(&planning.feedback, ONE / 4);
            let between = if said.is_empty() { "" } else { "\n\n" };
            let _ = write!(
                said,
                "{between}Your last plan was not approved. Write a new one that answers this:\n{feedback}\n\nThe last \
                 plan:\n"
            );
            said.push_str(&self.plan(ONE.saturating_sub(said.len())));
        }
        said
    }
}

/// Below so many bytes, a text that is one of many says nothing any more.
const READABLE: usize = 40;

/// A line of a list, of which the text may be cut and the rest stays.
struct ListItem<'t> {
    before: String,
    text: &'t str,
    after: String,
}

impl<'t> ListItem<'t> {
    fn new(before: String, text: &'t str) -> Self {
        Self { before, text, after: String::new() }
    }
}

/// Returns how long each text of a list may be so that the list fits.
fn share(items: &[ListItem<'_>], room: usize) -> usize {
    let around: usize = items.iter().map(|item| item.before.len() + item.after.len() + 1).sum();
    fair_share(items.iter().map(|item| item.text.len()), room.saturating_sub(around))
}

/// Writes a list, in which the longest texts give way first.
fn fitted(items: &[ListItem<'_>], room: usize) -> String {
    let limit = share(items, room);
    let lines = items
        .iter()
        .map(|ListItem { before, text, after }| format!("{before}{}{after}", shown_beginning(text, limit)));
    lines.collect::<Vec<_>>().join("\n")
}

fn bullets(lines: &[&str]) -> String {
    bullets_within(lines, ONE)
}

fn bullets_within(lines: &[&str], room: usize) -> String {
    let items: Vec<_> = lines.iter().map(|line| ListItem::new("- ".to_owned(), line)).collect();
    fitted(&items, room)
}

fn numbered(word: &str, texts: &[String]) -> String {
    let items =
        texts.iter().enumerate().map(|(index, text)| ListItem::new(format!("{word} {}: ", index + 1), text));
    fitted(&items.collect::<Vec<_>>(), ONE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::apply;
    use super::super::operation::{Operation, OperationKind};
    use super::*;

    /// A board with so many tasks, of which so many are finished. Their texts are as long as an answer may have them.
    fn board(tasks: usize, finished: usize, criteria: usize) -> Board {
        let long = |word: &str| format!("{word} {}", "é blah ".repeat(1500));
        let tasks: Vec<_> = (1..=tasks)
            .map(|task| {
                let criteria = vec![long("criterion"); criteria];
                json!({"description": long(&format!("task {task}")), "complexity": "complex", "verificationCriteria": criteria})
            })
            .collect();
        let answer = json!({"tasks": tasks, "risks": vec![long("risk"); 20]}).to_string();
        let plan = OperationKind::Load.with(&[("answer".to_owned(), answer)].into_iter().collect()).unwrap();
        let limits = Limits::STANDARD;
        let (board, _, _) = apply(Board::default(), &limits, plan);
        let (board, _, _) = apply(board, &limits, Operation::Approve { because: String::new() });
        (0..finished).fold(board, |board, _| {
            let (board, _, _) = apply(board, &limits, Operation::Next);
            apply(board, &limits, Operation::Pass { summary: long("did it"), tests: None }).0
        })
    }

    #[test]
    fn every_task_is_named_however_many_there_are() {
        let limits = Limits::STANDARD;
        for (tasks, finished, criteria) in [(300, 100, 4), (15, 7, 30), (15, 15, 0), (120, 100, 2)] {
            let board = board(tasks, finished, criteria);
            let [plan, done] = ["plan", "finished"].map(|field| board.text(&limits, field).unwrap());
            assert!(plan.len() <= ONE && done.len() <= ONE, "{} {}", plan.len(), done.len());
            for task in 1..=tasks {
                assert!(plan.contains(&format!("\n{task}. task {task} é")) || task == 1, "{task} in {plan}");
            }
            for task in 1..=finished {
                assert!(done.contains(&format!("- {task} task {task} é")), "{task} in {done}");
            }
        }
    }

    #[test]
    fn a_short_plan_stays_whole_and_long_feedback_leaves_room_for_it() {
        let limits = Limits::STANDARD;
        let mut board = board(2, 0, 1);
        board.tasks[1].description = "a short one".to_owned();
        board.planning.approval = None;
        board.planning.feedback = "say how ".repeat(5000);
        let told = board.text(&limits, "revision").unwrap();
        assert!(told.len() <= ONE && told.contains("2. a short one (complex)"), "{told}");
        assert!(told.contains("say how say how"));
        for field in super::FIELDS {
            assert!(board.text(&limits, field).unwrap().len() <= ONE, "{field}");
        }
    }
}
