//! Writes findings for programs: one JSON object per line.

use crate::cli::output::Output;

use super::found::{Reports, objects};

pub(super) fn write(reports: &Reports, output: &Output) {
    reports.files.iter().flat_map(objects).for_each(|object| output.json(object));
}
