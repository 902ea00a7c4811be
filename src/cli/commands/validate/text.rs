//! Writes findings for people: each with the lines it is about, and a summary line for each file.

use std::fmt::Write as _;

use crate::base::text::{plural, screen};
use crate::cli::output::Output;
use crate::definition::render;

use super::found::{Reports, counts};

pub(super) fn write(reports: &Reports, output: &Output) {
    let mut out = String::new();
    for report in &reports.files {
        let text = render::to_text(&report.findings, &report.sources, report.tree.as_ref(), output.color);
        out.push_str(&text);
        if !text.is_empty() {
            out.push_str("\n\n");
        }
        let shown = screen(&report.shown);
        let _ = match counts(report) {
            (0, 0) => writeln!(out, "✓ {shown}"),
            (0, warnings) => writeln!(out, "✓ {shown}: {}", plural(warnings, "warning")),
            (errors, warnings) => {
                writeln!(out, "✗ {shown}: {}, {}", plural(errors, "error"), plural(warnings, "warning"))
            }
        };
    }
    output.drawn(&out);
}
