//! The last lines that an action printed, in the order in which they came; kept for the step that decides a run.

use std::collections::VecDeque;

use super::digest::Digest;
use super::step::Step;
use crate::base::text;

// More than any sink shows at the end; the log of a CI system shows 30 of them.
const MAX_LINES: usize = 40;
const MAX_LINE: usize = 2 * 1024;

#[derive(Debug, Default)]
pub(super) struct Recent {
    step: u32,
    lines: VecDeque<String>,
    failing: FailingLines,
}

/// The last lines of the step that failed last.
#[derive(Debug, Default)]
struct FailingLines {
    step: u32,
    lines: Vec<String>,
}

impl Recent {
    /// Begins with the lines of another step.
    pub(super) fn begin(&mut self, step: u32) {
        self.step = step;
        self.lines.clear();
    }

    pub(super) fn push(&mut self, line: &str) {
        // The oldest line gives its memory to the newest: a program may print a gigabyte of short lines.
        if self.lines.len() == MAX_LINES {
            self.lines.rotate_left(1);
        } else {
            self.lines.push_back(String::new());
        }
        if let Some(newest) = self.lines.back_mut() {
            newest.clear();
            newest.push_str(text::head(line, MAX_LINE));
        }
    }

    /// Keeps the lines if their step turned out to fail.
    pub(super) fn settle(&mut self, digest: &Digest) {
        // Once for each step, because its lines have been moved by then.
        if digest.last_failing().is_some_and(|step| step.number == self.step)
            && self.failing.step != self.step
        {
            self.failing = FailingLines { step: self.step, lines: self.lines.drain(..).collect() };
        }
    }

    /// Returns the last lines of a step, as they came where that is known, else from its event.
    pub(super) fn of(&self, step: &Step, limit: usize) -> Vec<String> {
        let known = match step.number {
            number if number == self.failing.step => self.failing.lines.clone(),
            number if number == self.step && !step.closing => self.lines.iter().cloned().collect(),
            _ => Vec::new(),
        };
        let lines = if known.is_empty() { step.output().lines().map(str::to_owned).collect() } else { known };
        let start = lines.len().saturating_sub(limit);
        lines.into_iter().skip(start).collect()
    }
}
