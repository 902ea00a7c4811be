//! Prepares a run: finds, loads and checks a loop and its sub-loops, and decides what it may do.

pub(crate) mod check_quarantine;
pub mod claim;
pub mod confinement;
pub mod consent;
mod guidance;
pub(crate) mod key_holder;
pub(crate) mod left_behind;
pub mod library;
pub mod loop_check;
pub mod prepared;
pub(crate) mod reuse_decision;
pub(crate) mod reuse_key;
mod reuse_origin;
pub mod trust;
pub mod variables;
