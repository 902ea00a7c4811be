//! Prepares a run: finds, loads and checks a loop and its sub-loops, and decides what it may do.

pub mod claim;
pub mod confinement;
pub mod consent;
mod guidance;
pub(crate) mod key_holder;
pub(crate) mod left_behind;
pub mod library;
pub(crate) mod lock;
pub mod loop_check;
pub mod mistakes;
pub mod prepared;
pub mod trust;
pub mod variables;
