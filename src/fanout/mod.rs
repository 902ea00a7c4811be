//! Fan-out, without machines: which items a plan has, on which leg each runs, and what the runs that came back prove
//! together. The jobs are the CI system's; nothing here starts one.

pub mod each;
pub mod item;
pub mod matrix;
pub mod partition;
pub mod plan;
pub mod spread;
pub mod weights;

/// The most items of a plan.
pub const MOST_ITEMS: usize = 10_000;
