//! Reads runs that are there: which there are, and what each of them did.

pub(crate) mod approver_facts;
pub(crate) mod asked_flips;
pub mod choose;
pub mod fetch;
pub mod listed_runs;
pub(crate) mod page_detail;
pub mod refolded;
pub(crate) mod run_ref;
pub(crate) mod run_snapshots;
