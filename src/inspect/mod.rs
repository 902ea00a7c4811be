//! Looks at runs that ended or that go on: why, what differs, the log again, a step again, statistics and reports. Only reads.

mod bundled;
mod compared_runs;
pub(crate) mod known_deliveries;
mod repro_script;
pub(crate) mod run_export;
pub(crate) mod run_files;
pub mod run_report;
pub(crate) mod shown_log;
pub mod stats_sources;
mod step_again;
mod why_ended;
