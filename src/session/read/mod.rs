//! Reads runs that are there: which there are, and what each of them did.

pub mod choose;
pub(crate) mod detail;
pub mod fetch;
pub mod fold;
pub(crate) mod otherwise;
pub(crate) mod printed;
pub(crate) mod run_ref;
pub mod runs;
pub(crate) mod snapshots;
