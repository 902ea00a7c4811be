//! Writes findings for people: each with the lines it is about, a summary line for each file, and one for all of them.

use std::fmt::Write as _;

use super::found::{FindingCount, Reports};
use crate::base::text::{plural, screen};
use crate::cli::output::Output;
use crate::definition::render;

pub(super) fn write(reports: &Reports, output: &Output) {
    let mut out = String::new();
    for (report, count) in reports.files.iter().zip(&reports.counts) {
        let text = render::to_text(&report.findings, &report.sources, report.tree.as_ref(), output.color);
        out.push_str(&text);
        if !text.is_empty() {
            out.push_str("\n\n");
        }
        let shown = screen(&report.shown);
        let _ = match *count {
            FindingCount { errors: 0, .. } if reports.errors_only => Ok(()),
            FindingCount { errors: 0, warnings: 0 } => writeln!(out, "✓ {shown}"),
            FindingCount { errors: 0, warnings } => {
                writeln!(out, "✓ {shown}: {}", plural(warnings, "warning"))
            }
            FindingCount { errors, warnings } => {
                writeln!(out, "✗ {shown}: {}, {}", plural(errors, "error"), plural(warnings, "warning"))
            }
        };
    }
    let files = reports.files.len() + reports.unread.len();
    if files > 1 {
        let _ = writeln!(out, "{}", closing(files as u64, reports));
    }
    output.drawn(&out);
}

/// Returns the line about all files.
fn closing(files: u64, reports: &Reports) -> String {
    let wrong = reports.counts.iter().filter(|count| count.errors > 0).count() + reports.unread.len();
    let warnings: u64 = reports.counts.iter().map(|count| count.warnings).sum();
    let wrong = if wrong == 0 { "none".to_owned() } else { wrong.to_string() };
    let files = plural(files, "file");
    match warnings {
        0 => format!("{files}, {wrong} with errors"),
        warnings => format!("{files}, {wrong} with errors, {}", plural(warnings, "warning")),
    }
}
