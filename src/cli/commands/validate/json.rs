//! Findings for programs: one object per line.

use std::fmt::Write as _;

use crate::cli::output::Output;

use super::{Report, Reports};

pub(super) fn write(reports: &Reports, _: &Output) -> String {
    reports.files.iter().flat_map(Report::objects).fold(String::new(), |mut lines, object| {
        let _ = writeln!(lines, "{object}");
        lines
    })
}
