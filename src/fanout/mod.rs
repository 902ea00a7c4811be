//! Fan-out, without machines: which items a plan has, on which leg each runs, and what the runs that came back prove
//! together. The jobs are the CI system's; nothing here starts one.

pub mod each;
pub mod item;
pub mod lock;
pub mod matrix;
pub mod merge;
pub mod partition;
pub mod plan;
pub mod put_off;
pub mod severity;
pub mod spread;
pub mod weights;

/// The most items of a plan.
pub const MOST_ITEMS: usize = 10_000;

/// The exit code of a leg whose items were verified as far as they were begun, where somebody ended it.
pub const NOT_BEGUN: u8 = 4;

/// The exit code of what goes on in a later job: items for which the deadline left no time among it.
pub const GOES_ON: u8 = 75;

#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod testing;
