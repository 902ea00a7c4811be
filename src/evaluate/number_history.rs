//! A history of numbers that an action keeps in a file, one a line: whether the last ones still improve.

use serde_json::json;

use super::convergence::Direction;
use super::evaluator::{FileRead, Judged};
use super::number::{number, number_in};
use super::verdict::Verdict;
use crate::base::template::Template;
use crate::criteria::state::MAX_BYTES;

/// When the numbers of a history no longer improve.
pub(super) struct PlateauRule {
    /// How much better than the best one a number has to be.
    pub(super) epsilon: f64,
    /// How many numbers in a row that are no better mean no.
    pub(super) max_stall: i32,
    /// Which way is better.
    pub(super) direction: Direction,
}

impl PlateauRule {
    /// Judges what was read. A line that is not a number is passed over; without two numbers there is nothing to compare.
    pub(super) fn judge(&self, file: Option<&FileRead>) -> Judged {
        let text = match file {
            Some(Ok(Some(bytes))) if bytes.len() > MAX_BYTES => {
                return Judged::error(format!("the history is larger than {MAX_BYTES} bytes"));
            }
            Some(Ok(Some(bytes))) => String::from_utf8_lossy(bytes),
            Some(Ok(None)) => "".into(),
            Some(Err(why)) => return Judged::error(format!("the history cannot be read: {why}")),
            None => return Judged::error("nobody read the history"),
        };
        let numbers = text.lines().filter_map(number_in).filter(|number| number.is_finite());
        let (mut rounds, mut count, mut best) = (0_u32, 0_i32, None);
        for value in numbers {
            rounds = rounds.saturating_add(1);
            let Some(before) = best else {
                best = Some(value);
                continue;
            };
            // A small gain moves the best and still counts as a stall, as in the predecessor, which defined these files.
            let gain = self.direction.gain(before, value);
            count = if gain > self.epsilon { 0 } else { count.saturating_add(1) };
            best = Some(if gain > 0.0 { value } else { before });
        }
        let details = json!({
            "stall_count": count,
            "max_stall": self.max_stall,
            "epsilon": number(self.epsilon),
            "rounds": rounds,
            "best": best.map(number),
        });
        Judged::new(Verdict::yes_if(count < self.max_stall), details)
    }
}

/// Makes the template for a file of this name in the directory of the run; in the working directory where a run has none.
pub(super) fn in_run_dir(name: &str) -> Template {
    Template::parse(&format!("${{context.run_dir:default=.}}/{name}"))
        .expect("the template of a path can be read")
}
