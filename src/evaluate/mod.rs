//! What a verdict is, and how an observation becomes one.

pub mod field;
pub mod observation;
pub mod verdict;
