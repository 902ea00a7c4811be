//! Fan-out where there are files and processes: makes plans of the loops here, and runs their legs.

mod collect;
pub(crate) mod leg;
pub(crate) mod merge;
pub(crate) mod plan;
mod since;
mod story;
mod trees;
mod values;
