//! Findings for programs: one object per line.

use crate::cli::output::Output;

use super::{Report, Reports};

pub(super) fn write(reports: &Reports, output: &Output) {
    reports.files.iter().flat_map(Report::objects).for_each(|object| output.json(object));
}
