//! What is told about runs, while they go on and afterwards.

pub(crate) mod advice;
pub(crate) mod deliveries;
mod html_report;
mod known_runs;
mod many_runs;
mod paths;
mod replay;
mod reports;
mod why;
