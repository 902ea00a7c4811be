//! The texts about the board that prompts use.

use std::fmt::Write as _;

use super::limits::Limits;
use super::task::{Board, Count, Status, Task, Tests};

/// The values of `${board.…}`. A text without content is empty.
pub const FIELDS: &[&str] = &[
    "id", "task", "brief", "criteria", "attempt", "attempts", "round", "rounds", "finished", "history",
    "failures", "fix_plan", "fixes", "plan", "revision", "progress", "tests",
];

impl Board {
    /// Returns a text about the board or about the current task, or `None` for an unknown name.
    pub fn text(&self, limits: &Limits, field: &str) -> Option<String> {
        let current = self.current();
        let of = |text: &dyn Fn(&Task) -> String| current.map(text).unwrap_or_default();
        Some(match field {
            "id" => of(&|task| task.id.to_string()),
            "task" => of(&|task| task.description.clone()),
            "brief" => of(&|task| self.brief(task)),
            "criteria" => of(&|task| self.criteria(task)),
            "attempt" => of(&|task| task.attempts.to_string()),
            "attempts" => limits.attempts.to_string(),
            "round" => of(&|task| task.rounds.to_string()),
            "rounds" => limits.fix_cycles.to_string(),
            "finished" => self.finished(),
            // Without numbers, because the oldest entries are dropped and a resume restarts the count.
            "history" => of(&|task| bullets(&task.history.iter().map(String::as_str).collect::<Vec<_>>())),
            "failures" => of(&|task| task.failures.clone()),
            "fix_plan" => of(&|task| task.fix_plan.clone()),
            "fixes" => of(&|task| numbered("Fix", &task.fixes)),
            "plan" => self.plan(),
            "revision" => self.revision(),
            "progress" => self.progress(),
            "tests" => self.tests(),
            _ => return None,
        })
    }

    /// Says how far the work is: `2 of 5 tasks completed`.
    fn progress(&self) -> String {
        let Count { all, completed, .. } = self.count();
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
        let mut brief = format!("Task {} ({}): {}", task.id, task.complexity.word(), task.description);
        let mut around = task.id.parent();
        while let Some(parent) = around.as_ref().and_then(|id| self.task(id)) {
            let _ = write!(brief, "\nIt is a part of task {}: {}", parent.id, parent.description);
            around = parent.id.parent();
        }
        brief
    }

    /// The criteria of a task: its own, and those of the tasks that it is a part of.
    fn criteria(&self, task: &Task) -> String {
        let whole = task.id.parent().and_then(|parent| self.task(&parent)).map(|parent| &parent.criteria);
        let all: Vec<_> = whole.into_iter().flatten().chain(&task.criteria).map(String::as_str).collect();
        if all.is_empty() { "- it does what its description says".to_owned() } else { bullets(&all) }
    }

    fn finished(&self) -> String {
        let done = self.leaves().filter(|task| task.status == Status::Completed);
        let lines: Vec<_> = done
            .map(|task| {
                let summary = task.summary.as_ref().map(|summary| format!(": {summary}")).unwrap_or_default();
                format!("{} {}{summary}", task.id, task.description)
            })
            .collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        if lines.is_empty() { "- none yet".to_owned() } else { bullets(&lines) }
    }

    fn plan(&self) -> String {
        let mut plan = String::new();
        for task in &self.tasks {
            let indent = "  ".repeat(task.id.depth() as usize);
            let _ = write!(plan, "{indent}{}. {} ({})", task.id, task.description, task.complexity.word());
            if !task.dependencies.is_empty() {
                let after: Vec<_> = task.dependencies.iter().map(ToString::to_string).collect();
                let _ = write!(plan, ", after {}", after.join(", "));
            }
            if task.status != Status::Pending {
                let _ = write!(plan, " [{}]", task.status.word());
            }
            plan.push('\n');
            for criterion in &task.criteria {
                let _ = writeln!(plan, "{indent}   - {criterion}");
            }
        }
        for (title, list) in [("Risks", &self.planning.risks), ("Assumptions", &self.planning.assumptions)] {
            if !list.is_empty() {
                let list: Vec<_> = list.iter().map(String::as_str).collect();
                let _ = writeln!(plan, "{title}:\n{}", bullets(&list));
            }
        }
        plan.trim_end().to_owned()
    }

    /// What a planner has to know of earlier plans: that one was not approved, or that one was carried out and did not reach
    /// the goal.
    fn revision(&self) -> String {
        let planning = &self.planning;
        if planning.approval.is_some() {
            return String::new();
        }
        let mut said = Vec::new();
        if planning.kept > 0 {
            said.push(format!(
                "An earlier plan was carried out, and the goal is not reached:\n{}\n\nWhat is done, and stays:\n{}\n\nWrite \
                 only the tasks that are still missing. They are added to these, and `dependencies` counts among the new \
                 ones alone.",
                planning.rejection,
                self.finished()
            ));
        }
        if !planning.feedback.is_empty() {
            said.push(format!(
                "Your last plan was not approved. Write a new one that answers this:\n{}\n\nThe last plan:\n{}",
                planning.feedback,
                self.plan()
            ));
        }
        said.join("\n\n")
    }
}

fn bullets(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
}

fn numbered(word: &str, texts: &[String]) -> String {
    let lines = texts.iter().enumerate().map(|(index, text)| format!("{word} {}: {text}", index + 1));
    lines.collect::<Vec<_>>().join("\n")
}
