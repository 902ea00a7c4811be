//! Looks at runs that ended or that go on: why, what differs, the log again, a step again, statistics and reports. Only reads.

mod bundled;
mod diff;
pub(crate) mod replay;
pub mod report;
mod repro;
mod repro_script;
pub mod stats;
mod why;
