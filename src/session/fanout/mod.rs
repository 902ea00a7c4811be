//! Fan-out where there are files and processes: makes plans of the loops here, and runs their legs.


pub(crate) mod leg;
pub(crate) mod plan;
mod since;
mod values;
