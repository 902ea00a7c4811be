//! The items of a plan in the summary of their merge: what is not verified and why, what it printed, and then the rest.

use std::fmt::Write as _;

use super::markdown::{code, fenced, words};
use crate::base::text::{plural, tail};
use crate::base::time::human;
use crate::report::items::{Items, printed, why};
use crate::report::step::Step;

/// How many items are listed of each kind.
const MAX_ROWS: usize = 100;

/// Of how many items it is shown what they printed.
const MAX_PRINTED: usize = 5;

/// The most bytes that are shown of what an item printed.
const MAX_OUTPUT: usize = 4 * 1024;

/// Writes the items.
pub(super) fn render(items: &Items<'_>, out: &mut String) {
    if !items.unverified.is_empty() {
        out.push_str("### Not verified\n\n| item | exit | duration | run | why |\n|---|--:|--:|---|---|\n");
        for item in items.unverified.iter().take(MAX_ROWS) {
            let _ = writeln!(out, "{} {} |", row(items, item), words(&why(item)));
        }
        left_out(items.unverified.len(), out);
        out.push('\n');
    }
    last_output(items, out);
    if !items.verified.is_empty() {
        let count = plural(items.verified.len() as u64, "verified item");
        // Folded, because readers look for what is not verified.
        let _ = writeln!(out, "<details><summary>{count}</summary>\n");
        out.push_str("| item | exit | duration | run |\n|---|--:|--:|---|\n");
        for item in items.verified.iter().take(MAX_ROWS) {
            let _ = writeln!(out, "{}", row(items, item));
        }
        left_out(items.verified.len(), out);
        out.push_str("\n</details>\n\n");
    }
    if items.omitted > 0 {
        let _ = writeln!(out, "{} not shown; `result.json` has all.\n", plural(items.omitted, "more item"));
    }
}

fn row(items: &Items<'_>, item: &Step) -> String {
    let (exit, took) = match &item.result {
        Some(result) => (result.exit_code.to_string(), human(result.duration)),
        None => Default::default(),
    };
    let run = item.action_line(200).map_or_else(String::new, |run| words(&run));
    let run = items.page(item).map_or(run.clone(), |page| format!("[{run}]({page})"));
    format!("| {} | {exit} | {took} | {run} |", code(item.state.as_str(), 120))
}

fn left_out(count: usize, out: &mut String) {
    if count > MAX_ROWS {
        let _ = writeln!(out, "\n… and {}", plural((count - MAX_ROWS) as u64, "more item"));
    }
}

/// Writes what the first items that are not verified printed last.
fn last_output(items: &Items<'_>, out: &mut String) {
    let printed = items.unverified.iter().filter_map(|item| Some((item, printed(item)?)));
    for (item, text) in printed.take(MAX_PRINTED) {
        let _ = writeln!(out, "### Last output of {}\n", code(item.state.as_str(), 120));
        let _ = writeln!(out, "{}", fenced(tail(&text, MAX_OUTPUT)));
    }
}
